"""What the values and the constants of a function are called."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from functools import cache
from math import prod
from typing import TYPE_CHECKING, cast

from xdsl.ir import Operation, SSAValue

from ttcodegen.dialects.datatypes import shape_of
from ttcodegen.dialects.functions import body_of
from ttcodegen.dialects.memory import Layout
from ttcodegen.dialects.operation import CatalogueOp, operation_name
from ttcodegen.dialects.placement import declared_data_type, has_placement, placement_of
from ttcodegen.naming.layers import layer, location_name, plain_name, short_layer, stem_of_weight
from ttcodegen.ops.definition import TTIR, TTNN, library_definition, traits_of
from ttcodegen.ops.traits import Trait

if TYPE_CHECKING:
    from xdsl.dialects.func import FuncOp

    from ttcodegen.dialects.ttcore import LoadCachedOp

# A frontend's counters (`dot.31`, `add_5`) say nothing that the order of the code does not.
_COUNTER = re.compile(r"[._]\d+$")
_GENERIC = frozenset(
    "arg input output out result res tmp val value v x y cst const constant".split()
)
_NUMBER = re.compile(r"_?\d+$")
_INSTRUCTION = re.compile(r"([a-z][a-z-]*)\.\d+(_\w+)?$")
"""An instruction of HLO, which is called after its opcode, and what a pass made of it: `dot.31`,
`gather.62_reshapeStartIndices`."""
_OPCODES = frozenset(
    """
    abs add and atan2 batch-norm-inference batch-norm-training bitcast bitcast-convert broadcast
    call cbrt ceil clamp compare complex concatenate conditional constant convert convolution copy
    cosine custom-call divide dot dynamic-slice dynamic-update-slice erf exponential
    exponential-minus-one floor fusion gather get-tuple-element imag iota is-finite log
    log-plus-one logistic map maximum minimum multiply negate not or pad parameter popcnt power
    real reduce reduce-precision reduce-window remainder reshape reverse rng rng-bit-generator
    round-nearest-afz round-nearest-even rsqrt scatter select select-and-scatter set-dimension-size
    shift-left shift-right-arithmetic shift-right-logical sign sine slice sort sqrt subtract tan
    tanh topk transpose triangular-solve tuple while xor
    """.split()
)
"""The opcodes of HLO. Source: xla/hlo/ir/hlo_opcode.h."""

_ROLES = frozenset("queries keys values scores".split())
"""Names of roles that a value keeps through sums and rotations."""
_LARGEST_EPSILON = 1e-3


@cache
def _op_names() -> frozenset[str]:
    return frozenset((*TTIR, *TTNN))


def given_name(value: SSAValue) -> str | None:
    """What the source calls a value, None if that says nothing."""
    hint = value.name_hint
    if hint is not None and not _is_generic(hint) and hint not in _op_names():
        return hint
    owner = value.owner
    if not isinstance(owner, Operation):
        return None
    name = location_name(owner.location)
    if name is None:
        return None
    end = name.rpartition("/")[2]
    if (instruction := _INSTRUCTION.match(end)) and instruction[1] in _OPCODES:
        return None
    last = _COUNTER.sub("", end)
    named = last and not last.isdigit() and not _is_generic(last) and last not in _op_names()
    return last if named else None


def _is_generic(name: str) -> bool:
    """Whether a name is one that any value could have: `x`, `arg10`."""
    return _NUMBER.sub("", name) in _GENERIC


def name_or_kind(op: Operation) -> str:
    """What the source calls the result of an op, else what the op is."""
    hint = op.results[0].name_hint if op.results else None
    return hint or operation_name(op).rpartition(".")[2]


def noun_of(op: Operation) -> str:
    """What the result of an op is called that nothing else names."""
    short = op.name.rpartition(".")[2]
    if not isinstance(op, CatalogueOp):
        return short
    if short == "full":
        return _noun_of_fill(op)
    if Trait.COMPARES in _traits(op):
        return "condition"
    nouns = library_definition(op).nouns
    return nouns[0] if nouns else short


def _traits(op: CatalogueOp) -> Trait:
    return traits_of(library_definition(op))


def _noun_of_fill(op: CatalogueOp) -> str:
    """What a tensor is called whose elements are all one number."""
    number = float(cast("float", op.parameter("fill_value")))
    match number:
        case 0.0:
            return "zeros"
        case 1.0:
            return "ones"
        case _:
            return "epsilon" if 0 < number <= _LARGEST_EPSILON else "filled"


class ValueNames:
    """What the values of a function are called."""

    def __init__(
        self,
        ops: Iterable[Operation],
        members: Mapping[SSAValue, str],
        weight_names: Mapping[SSAValue, str],
        results: Mapping[SSAValue, str],
        *,
        of_weights: bool = False,
    ) -> None:
        """
        Args:
            ops: the ops of the function, in order.
            members: the names of its arguments and constants.
            weight_names: those of them that are weights.
            results: what the function's results are called, if the source says it.
            of_weights: whether the function only computes constants: whatever is made of a weight
                is that weight in another form.
        """
        self.of_weights = of_weights
        self._names = {value: plain_name(name) for value, name in members.items()}
        self._members = members
        self._weights = weight_names
        found = [op for op in ops if isinstance(op, CatalogueOp)]
        self._roles = self._find_roles(found, results)
        for op in found:
            for index, result in enumerate(op.results):
                self._names[result] = self._name(op, index)

    def __getitem__(self, value: SSAValue) -> str:
        """The name of a value; several values may have one."""
        return self._names.get(value) or value.name_hint or "tensor"

    def renamed(self, own: Mapping[SSAValue, str]) -> ValueNames:
        """The same names, but for some."""
        other = copy(self)
        other._names = {**self._names, **own}
        return other

    def suggest(self, value: SSAValue, name: str) -> None:
        """Takes a name for a value that has none but that of its op."""
        op = value.owner
        if isinstance(op, CatalogueOp) and self[value] == op.definition.short_name:
            self._names[value] = name

    def qualified(self, value: SSAValue) -> str:
        """The name of a value while another one of its name is in use: what was done to it."""
        name = self[value]
        op = value.owner
        if not isinstance(op, CatalogueOp):
            return name
        if name != noun_of(op):
            return f"{name}_{_qualifier(op)}"
        source = self[op.operands[0]] if op.operands else name
        return name if source.endswith(name) else f"{source}_{name}"

    def _name(self, op: CatalogueOp, index: int) -> str:
        result = op.results[index]
        given = given_name(result)
        if given is not None:
            return given
        kept = self._kept_operand(op)
        if kept is not None and kept in self._names:
            return self._names[kept]
        if Trait.OF_LAYER in _traits(op):
            found = layer(op, self._weights)
            if found is not None:
                return short_layer(found)
        role = self._roles.get(result)
        if role is not None:
            return role
        nouns = library_definition(op).nouns
        return nouns[index] if len(nouns) > 1 else noun_of(op)

    def _kept_operand(self, op: CatalogueOp) -> SSAValue | None:
        """The operand that the result is another form of."""
        short = op.definition.short_name
        if not op.operands:
            return None
        first = op.operands[0]
        traits = _traits(op)
        if op.definition.rearranges or traits & (Trait.ACTIVATES | Trait.ALTERS) or self.of_weights:
            return first
        if short == "concat":
            names = {self._names.get(operand) for operand in op.operands}
            return first if len(names) == 1 else None
        if short == "matmul":
            return self._transformed_operand(op)
        if Trait.ADJUSTS not in traits:
            return None
        if len(op.operands) == 1 or self._names.get(first) in _ROLES:
            return first
        left, right = op.operands[:2]
        if self._is_small(right, op):
            return None if self._is_small(left, op) else left
        return right if self._is_small(left, op) else None

    def _transformed_operand(self, op: CatalogueOp) -> SSAValue | None:
        """The operand that is multiplied by an input which is no weight, a mask or a rotation."""
        left, right = op.operands[:2]
        known = left in self._members or right in self._members
        if not known or not self._weights.keys().isdisjoint((left, right)):
            return None
        kept = right if left in self._members else left
        return kept if self._names.get(kept) in _ROLES else None

    def _is_small(self, value: SSAValue, op: CatalogueOp) -> bool:
        """Whether an operand only adjusts the other one."""
        return value in self._members or prod(shape_of(value.type)) < prod(op.result_shape)

    def _find_roles(
        self, ops: Sequence[CatalogueOp], results: Mapping[SSAValue, str]
    ) -> dict[SSAValue, str]:
        roles: dict[SSAValue, str] = {}
        for value, name in results.items():
            self._give(roles, value, name)
        for op in ops:
            if Trait.ATTENDS in _traits(op):
                names = ("queries", "keys", "values", "mask")
                for operand, name in zip(op.operands, names, strict=False):
                    self._give(roles, operand, name)
            elif op.definition.short_name == "softmax":
                self._attention_roles(roles, op)
        return roles

    def _attention_roles(self, roles: dict[SSAValue, str], softmax: CatalogueOp) -> None:
        scores = self._root(softmax.operands[0])
        product = scores.owner
        if not isinstance(product, CatalogueOp) or product.definition.short_name != "matmul":
            return
        if any(operand in self._weights for operand in product.operands):
            return
        roles[scores] = "scores"
        for operand, name in zip(product.operands, ("queries", "keys"), strict=False):
            self._give(roles, operand, name)
        consumer = _only_product(softmax.results[0])
        if consumer is not None:
            self._give(roles, consumer.operands[1], "values")
            roles.setdefault(consumer.results[0], "attention")

    def _give(self, roles: dict[SSAValue, str], value: SSAValue, name: str) -> None:
        root = self._root(value)
        if isinstance(root.owner, Operation):
            roles.setdefault(root, name)

    def _root(self, value: SSAValue) -> SSAValue:
        """The value that this one is another form of, through sums and products as well."""
        while isinstance(op := value.owner, CatalogueOp) and op.operands:
            changed = _traits(op) & (Trait.ACTIVATES | Trait.ALTERS | Trait.ADJUSTS)
            if not op.definition.rearranges and not changed:
                break
            if given_name(value) is not None:
                break
            origin = self._kept_operand(op) or op.operands[0]
            if not isinstance(origin.owner, Operation):
                break
            value = origin
        return value


def _only_product(value: SSAValue) -> CatalogueOp | None:
    """The matmul that takes a value, in whatever form, as its first operand."""
    while True:
        users = [use for use in value.uses if getattr(use.operation, "results", ())]
        if len(users) != 1 or not isinstance(user := users[0].operation, CatalogueOp):
            return None
        short = user.definition.short_name
        if short == "matmul":
            return user if users[0].index == 0 else None
        if not user.definition.rearranges:
            return None
        value = user.results[0]


def _qualifier(op: CatalogueOp) -> str:
    short = op.definition.short_name
    match short:
        case "to_layout" if has_placement(op.results[0]):
            return "tiled" if placement_of(op.results[0]).layout is Layout.TILE else "row_major"
        case "typecast":
            value = op.results[0]
            placed = has_placement(value)
            data_type = placement_of(value).data_type if placed else declared_data_type(value)
            return data_type.name.lower()
        case "permute":
            order = list(op.parameter("permutation"))
            last = [*range(len(order) - 2), len(order) - 1, len(order) - 2]
            return "transposed" if order == last else "permuted"
        case "reshape" | "reshape_row_major":
            before, after = shape_of(op.operands[0].type), op.result_shape
            return "flat" if len(after) < len(before) else "reshaped"
        case _:
            return library_definition(op).participle or noun_of(op)


def constant_names(
    load: LoadCachedOp | None, const_eval: FuncOp | None, names: Mapping[SSAValue, str]
) -> tuple[str, ...]:
    """What the constants of a function are called: after the weights that they are made of, or
    after what the function does with them.

    `names` are those of the function's arguments.
    """
    if const_eval is None or load is None:
        return ()
    inner = dict(zip(body_of(const_eval).args, load.operands, strict=True))
    weights: dict[SSAValue, str] = {
        argument: names[value] for argument, value in inner.items() if value in names
    }
    body = ValueNames(body_of(const_eval).ops, weights, weights, {}, of_weights=True)
    terminator = body_of(const_eval).last_op
    assert terminator is not None
    found = [_constant_name(value, weights, body) for value in terminator.operands]
    by_value = dict(zip(load.results, found, strict=True))
    known = {**names, **{value: name for value, name in by_value.items() if name is not None}}
    return tuple(name or _bias_name(value, known) or "constant" for value, name in by_value.items())


def _constant_name(
    value: SSAValue, weights: Mapping[SSAValue, str], body: ValueNames
) -> str | None:
    """The name of the weight that a constant is made of, or its own; None if it has none."""
    seen = value
    while isinstance(seen.owner, CatalogueOp) and seen.owner.operands:
        seen = seen.owner.operands[0]
    if seen in weights:
        return weights[seen]
    given = given_name(value) or given_name(seen)
    if given is not None:
        return given
    name = body[value]
    return None if name in _GENERIC or name == "filled" else name


def _bias_name(value: SSAValue, names: Mapping[SSAValue, str]) -> str | None:
    """The name of a constant that an op takes as its bias, after the weight of that op."""
    for use in value.uses:
        op = use.operation
        if not isinstance(op, CatalogueOp) or Trait.OF_LAYER not in _traits(op):
            continue
        weight = next((names[o] for o in op.operands[: use.index] if o in names), None)
        if use.index >= 2 and weight is not None:
            stem = stem_of_weight(weight)
            return f"{stem or weight}_bias"
    return None
