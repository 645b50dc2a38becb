"""Names of the values of a function, and the roles of operands in kernels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from math import prod
from typing import cast

from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ttcodegen.dialects.core.datatypes import shape_of
from ttcodegen.dialects.operations.functions import body_of
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttcore.shards import Layout
from ttcodegen.dialects.ttnn.placement import declared_data_type, has_placement, placement_of
from ttcodegen.naming.functions import shape_text
from ttcodegen.naming.roles import (
    ROLES,
    STATES,
    Role,
    attention_roles,
    cell_roles,
    reordered,
    rotary_roles,
    rotated_value,
)
from ttcodegen.naming.sources import (
    given_name,
    hinted_name,
    is_named_as_layer,
    layer,
    numbered_layer,
    plain_name,
    short_layer,
)
from ttcodegen.ops.core.definition import library_definition, traits_of
from ttcodegen.ops.core.traits import Trait
from ttcodegen.ops.tt_lang import LIBRARY_CALL, called_name

# Names of the values of a function.

_LARGEST_EPSILON = 1e-3
_MOST_STEPS_TO_LAYER = 8


def noun_of(op: Operation) -> str:
    """Noun for an unnamed result of an op."""
    short = op.name.rpartition(".")[2]
    if not isinstance(op, CatalogueOp):
        return short
    if short == "full":
        return _noun_of_fill(op)
    if op.name == LIBRARY_CALL:
        return called_name(op)
    if Trait.COMPARES in _traits(op):
        return "condition"
    nouns = library_definition(op).nouns
    return nouns[0] if nouns else short


_OPERANDS = {"shifted": "offset", "scaled": "factor", "clamped": "bound"}
"""Names of adjusting operands, by the name of the adjusted value."""


def operand_noun(op: CatalogueOp) -> str | None:
    """Noun for an unnamed operand, by its role in the op."""
    traits, participle = _traits(op), library_definition(op).participle
    if Trait.COMPARES in traits:
        return "limit"
    if Trait.MATRIX_PRODUCT in traits:
        return "matrix"
    return _OPERANDS.get(participle) if participle else None


def _traits(op: CatalogueOp) -> Trait:
    return traits_of(library_definition(op))


def _noun_of_fill(op: CatalogueOp) -> str:
    """Noun for a tensor with equal elements."""
    number = float(cast("float", op.parameter("fill_value")))
    match number:
        case 0.0:
            return "zeros"
        case 1.0:
            return "ones"
        case _:
            return "epsilon" if 0 < number <= _LARGEST_EPSILON else "filled"


def _roles_around(op: CatalogueOp, caches: dict[SSAValue, str]) -> Iterator[Role]:
    """Yields roles of operands and results of an op and of preceding ops.

    Args:
        op: the op.
        caches: memoized roles of caches, which this op may extend.
    """
    yield from attention_roles(op, caches)
    yield from rotary_roles(op)
    yield from cell_roles(op)


def _intermediates(ops: Sequence[CatalogueOp]) -> Iterator[SSAValue]:
    """Yields intermediate values of computations that share one location.

    The name in the location belongs to the final value."""
    of_location: dict[Attribute, list[CatalogueOp]] = {}
    for op in ops:
        of_location.setdefault(op.location, []).append(op)
    for group in of_location.values():
        computing = [
            i for i, op in enumerate(group) if op.operands and op.results and not _moves(op)
        ]
        if len(computing) > 1:
            for op in group[: computing[-1]]:
                yield from op.results


def _moves(op: CatalogueOp) -> bool:
    return op.definition.rearranges or bool(_traits(op) & (Trait.ALTERS | Trait.ACTIVATES))


def _computes(op: CatalogueOp) -> bool:
    return bool(op.operands) and not op.definition.rearranges and Trait.ALTERS not in _traits(op)


def _joins(op: CatalogueOp) -> bool:
    return op.definition.short_name in ("concat", "concat_row_major")


class ValueNames:
    """Names of the values of a function."""

    def __init__(
        self,
        ops: Iterable[Operation],
        members: Mapping[SSAValue, str],
        weight_names: Mapping[SSAValue, str],
        results: Mapping[SSAValue, str],
        *,
        of_weights: bool = False,
        longer: Mapping[SSAValue, str] | None = None,
        others: Mapping[SSAValue, str] | None = None,
    ) -> None:
        """
        Args:
            ops: the ops of the function, in order.
            members: the names of its arguments and constants.
            weight_names: the names of weights among them.
            results: names of the function's results, if the source has them.
            of_weights: whether the function only computes constants: values that depend on a weight
                are then forms of that weight.
            longer: alternative names of values without catalogue op, used if a name is taken.
            others: second alternatives, used if the longer names are taken as well.
        """
        self.of_weights = of_weights
        self._longer = longer or {}
        self._others = others or {}
        self._names = {value: plain_name(name) for value, name in members.items()}
        self._members = members
        self._weights = weight_names
        found = [op for op in ops if isinstance(op, CatalogueOp)]
        self._intermediates = frozenset(_intermediates(found))
        self._roles: dict[SSAValue, str] = {}
        self._find_roles(found, results)
        for op in found:
            for index, result in enumerate(op.results):
                self._names[result] = self._name(op, index)

    def __getitem__(self, value: SSAValue) -> str:
        """Name of a value; several values may share one."""
        return self._names.get(value) or value.name_hint or "tensor"

    def renamed(self, own: Mapping[SSAValue, str]) -> ValueNames:
        """Copy with other names for some values."""
        other = copy(self)
        other._names = {**self._names, **own}
        other._longer, other._others = (
            {**longer, **dict(self._endings(longer, own))}
            for longer in (self._longer, self._others)
        )
        return other

    def _endings(
        self, longer: Mapping[SSAValue, str], own: Mapping[SSAValue, str]
    ) -> Iterator[tuple[SSAValue, str]]:
        """Yields longer names for renamed values: the new names with the same suffix."""
        for value, name in own.items():
            if value in longer:
                ending = longer[value].removeprefix(self[value])
                yield value, name if ending == longer[value] else f"{name}{ending}"

    def names_of(self, value: SSAValue) -> Iterator[str]:
        """Yields names for a value, best first; later ones are for when earlier ones are taken."""
        yield self[value]
        numbered = self._others.get(value) or self._numbered(value)
        if numbered is not None and self._roles.get(value) in ROLES:
            # Another layer's value has the role, not another form of this one.
            yield numbered
        if self._roles.get(value) not in STATES:
            yield self._qualified(value)
        if numbered is not None:
            yield numbered

    def _numbered(self, value: SSAValue) -> str | None:
        """Name of a value with the index of its layer: `m_1_sum`."""
        op: Operation | Block = value.owner
        for _ in range(_MOST_STEPS_TO_LAYER):
            if not isinstance(op, CatalogueOp):
                return None
            found = layer(op, self._weights)
            if found is not None:
                place = numbered_layer(found)
                return None if place is None else f"{place}_{self[value]}"
            # The term that is added to a residual identifies the layer, not the residual itself.
            producers = [operand.owner for operand in op.operands]
            op = next(
                (producer for producer in reversed(producers) if isinstance(producer, CatalogueOp)),
                op,
            )
        return None

    def _qualified(self, value: SSAValue) -> str:
        """Name of a value with the operation that was applied to it."""
        name = self[value]
        op = value.owner
        if not isinstance(op, CatalogueOp):
            return self._longer.get(value, name)
        if Trait.TAKES_PART in _traits(op):
            # The form of a weight is called after the weight, a part of it too.
            return _part_name(name, part_of(op)) if name == self[op.operands[0]] else name
        if not op.operands:
            return f"{name}_{shape_text(op.result_shape)}"
        if name != noun_of(op):
            return f"{name}_{qualifier(op) if reordered(op) is None else 'rotated'}"
        source = self[op.operands[0]] if op.operands else name
        return name if source.endswith(name) else f"{source}_{name}"

    def _name(self, op: CatalogueOp, index: int) -> str:
        result = op.results[index]
        given = self.given(result)
        role = self._roles.get(result)
        if given is not None and (role not in ROLES or not is_named_as_layer(result)):
            return given
        # A role from the name of a result does not replace the name of its layer.
        wins = (role in ROLES and result not in self._titled) or (self.of_weights and _joins(op))
        if role is not None and (wins or (self.of_weights and _computes(op))):
            return role
        kept = self._kept_operand(op)
        # A matmul of queries and keys is neither of them.
        is_role = role is not None and Trait.MATRIX_PRODUCT in _traits(op)
        if kept is not None and kept in self._names and not is_role:
            return self._names[kept]
        if Trait.OF_LAYER in _traits(op) and (role is None or self._has_weights(op)):
            found = layer(op, self._weights)
            if found is not None:
                return short_layer(found)
        if role is not None:
            return role
        if Trait.TAKES_PART in _traits(op) and op.operands[0] in self._names:
            return _part_name(self._names[op.operands[0]], part_of(op))
        nouns = library_definition(op).nouns
        return nouns[index] if len(nouns) > 1 else noun_of(op)

    def given(self, value: SSAValue) -> str | None:
        """Name of a value in the source; None if it names a larger computation."""
        return hinted_name(value) if value in self._intermediates else given_name(value)

    def _has_weights(self, op: CatalogueOp) -> bool:
        return any(operand in self._weights for operand in op.operands)

    def _kept_operand(self, op: CatalogueOp) -> SSAValue | None:
        """Operand that the result is a form of."""
        short = op.definition.short_name
        if not op.operands:
            return None
        first = op.operands[0]
        traits = _traits(op)
        if op.definition.rearranges or traits & (Trait.ACTIVATES | Trait.ALTERS):
            return first
        if self.of_weights:
            # A layer applied to a constant, such as an initial state, is not a form of its weight.
            is_applied = Trait.OF_LAYER in traits and not self._weights.keys().isdisjoint(
                op.operands[1:]
            )
            return None if is_applied and first not in self._weights else first
        if _joins(op):
            names = {self._names.get(operand) for operand in op.operands}
            return first if len(names) == 1 else reordered(op)
        if short == "matmul":
            return self._transformed_operand(op)
        if short == "add" and (turned := rotated_value(op)) is not None:
            return turned
        if Trait.ADJUSTS not in traits:
            return None
        if len(op.operands) == 1 or self._names.get(first) in ROLES:
            return first
        left, right = op.operands[:2]
        if self._is_small(right, op):
            return None if self._is_small(left, op) else left
        return right if self._is_small(left, op) else None

    def _transformed_operand(self, op: CatalogueOp) -> SSAValue | None:
        """Operand that a matmul multiplies by an input such as a mask or a rotation."""
        left, right = op.operands[:2]
        known = left in self._members or right in self._members
        if not known or not self._weights.keys().isdisjoint((left, right)):
            return None
        kept = right if left in self._members else left
        return kept if self._names.get(kept) in ROLES else None

    def _is_small(self, value: SSAValue, op: CatalogueOp) -> bool:
        """Returns whether an operand only adjusts the other one."""
        return value in self._members or prod(shape_of(value.type)) < prod(op.result_shape)

    def _find_roles(self, ops: Sequence[CatalogueOp], results: Mapping[SSAValue, str]) -> None:
        for value, name in results.items():
            self._give(value, name)
        self._titled = frozenset(self._roles)
        caches: dict[SSAValue, str] = {}
        for op in ops:
            for value, name, is_computed in _roles_around(op, caches):
                if is_computed:
                    self._roles.setdefault(value, name)
                else:
                    self._give(value, name)
            if op.definition.short_name == "softmax":
                self._attention_roles(op)
                for value in self._masks_before(op):
                    self._give(value, "mask")

    def _attention_roles(self, softmax: CatalogueOp) -> None:
        scores = self._root(softmax.operands[0])
        product = scores.owner
        if isinstance(product, CatalogueOp) and noun_of(product) == "selected":
            # `where` replaces masked scores.
            scores = self._root(product.operands[1])
            product = scores.owner
        if not isinstance(product, CatalogueOp) or product.definition.short_name != "matmul":
            return
        if any(operand in self._weights for operand in product.operands):
            return
        self._roles[scores] = "scores"
        for operand, name in zip(product.operands, ("queries", "keys"), strict=False):
            self._give(operand, name)
        consumer = _only_matmul(softmax.results[0])
        if consumer is not None:
            self._give(consumer.operands[1], "values")
            self._roles.setdefault(consumer.results[0], "attention")

    def _masks_before(self, softmax: CatalogueOp) -> Iterator[SSAValue]:
        """Yields masks of the scores of a softmax: added to them, or selecting them.

        Biases that are looked up or computed by a layer are skipped."""
        value = softmax.operands[0]
        while isinstance(op := value.owner, CatalogueOp) and op.operands:
            if op.definition.short_name == "where":
                yield op.operands[0]
                value = op.operands[1]
                continue
            changed = _traits(op) & (Trait.ACTIVATES | Trait.ALTERS | Trait.ADJUSTS)
            if len(op.results) > 1 or not (op.definition.rearranges or changed):
                return
            kept = self._kept_operand(op) or op.operands[0]
            if op.definition.short_name == "add" and len(op.operands) == 2:
                yield from (value for value in op.operands if value is not kept)
            value = kept

    def role_of(self, value: SSAValue) -> str | None:
        """Role of a value in the ops around it, such as `mask`, if it is one of `ROLES`."""
        role = self._roles.get(value)
        return role if role in ROLES else None

    def _give(self, value: SSAValue, name: str) -> None:
        root = self._root(value)
        owner = root.owner
        if name == "mask" and isinstance(owner, CatalogueOp) and Trait.OF_LAYER in _traits(owner):
            return
        if isinstance(owner, Operation):
            self._roles.setdefault(root, name)

    def _root(self, value: SSAValue) -> SSAValue:
        """Value that this one is a form of, also through sums and products."""
        while isinstance(op := value.owner, CatalogueOp) and op.operands:
            changed = _traits(op) & (Trait.ACTIVATES | Trait.ALTERS | Trait.ADJUSTS)
            if len(op.results) > 1 or (not op.definition.rearranges and not changed):
                break
            if self._roles.get(value) in STATES:
                break
            if self.given(value) is not None:
                break
            origin = self._kept_operand(op) or op.operands[0]
            if not isinstance(origin.owner, Operation):
                break
            value = origin
        return value


_ORDINALS = dict(enumerate("second third fourth fifth sixth seventh eighth".split(), 1))
"""Ordinals of equal slices between the first and the last one."""


def _part_name(whole: str, part: str) -> str:
    return whole if whole.endswith(f"_{part}") else f"{whole}_{part}"


def part_of(op: CatalogueOp) -> str:
    """Name of the slice that an op takes of its operand."""
    sizes = shape_of(op.operands[0].type)
    bounds = list(zip(op.parameter("begins"), op.parameter("ends"), sizes, strict=True))
    cut = [(begin, end, size) for begin, end, size in bounds if end - begin != size]
    if len(cut) != 1:
        return "slice"
    ((begin, end, size),) = cut
    length = end - begin
    index = begin // length if begin % length == size % length == 0 else 0
    if begin == 0:
        return "first" if length == 1 else "first_half" if 2 * length == size else "start"
    if end == size:
        return "last" if length == 1 else "second_half" if 2 * length == size else "end"
    return _ORDINALS.get(index, "middle")


def _only_matmul(value: SSAValue) -> CatalogueOp | None:
    """Matmul whose first operand is the value, in any form; None if there are other users."""
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


def qualifier(op: CatalogueOp) -> str:
    short = op.definition.short_name
    match short:
        case "to_layout" if has_placement(op.results[0]):
            return "tiled" if placement_of(op.results[0]).layout is Layout.TILE else "row_major"
        case "typecast":
            value = op.results[0]
            is_placed = has_placement(value)
            data_type = placement_of(value).data_type if is_placed else declared_data_type(value)
            return data_type.name.lower()
        case "permute" | "permute_row_major":
            order = list(op.parameter("permutation"))
            last = [*range(len(order) - 2), len(order) - 1, len(order) - 2]
            return "transposed" if order == last else "permuted"
        case "reshape" | "reshape_row_major":
            before, after = shape_of(op.operands[0].type), op.result_shape
            return "flat" if len(after) < len(before) else "reshaped"
        case _:
            return library_definition(op).participle or noun_of(op)


# Names of tensors in kernels that several programs share: their roles.

INPUT = "input"
"""Role of a single tensor, and of the operands of an op that treats them alike."""
SIDES = ("left", "right")
"""Roles of two operands that differ only in their order."""
_SIDE_NAMES = ("a", "b", "lhs", "rhs")
"""Catalogue names of the operands of matmuls and elementwise ops."""
_REPEATED = {"factor": "scale", "offset": "bias"}
_WHOLE = {"factor": "factor", "offset": "residual"}
"""Names of adjusting operands by noun, for operands that are broadcast, and for full-size ones."""


def operand_roles(meaning: FuncOp | None) -> list[str]:
    """Roles of the tensors that a program reads, in order; empty if its meaning is unknown."""
    if meaning is None or meaning.is_declaration:
        return []
    return [_role(argument) for argument in body_of(meaning).args]


def _role(value: SSAValue) -> str:
    """Role of a tensor in the first op that takes other operands, too."""
    use = next(iter(value.uses), None)
    if use is None or not isinstance(use.operation, CatalogueOp):
        return INPUT
    op = use.operation
    if len(op.operands) == 1:
        return _role(op.results[0])
    operand = next((name for name, group in op.operand_groups().items() if value in group), INPUT)
    if operand not in _SIDE_NAMES:
        return operand.removesuffix("s") if operand == f"{INPUT}s" else operand
    if Trait.MATRIX_PRODUCT in traits_of(library_definition(op)):
        return SIDES[use.index]
    return _role_in_elementwise(op, use.index)


def _role_in_elementwise(op: CatalogueOp, index: int) -> str:
    """Role of an operand of a binary elementwise op."""
    noun = operand_noun(op) or ""
    other = op.operands[1 - index]
    if isinstance(other.owner, Operation) and not other.owner.operands:
        return INPUT  # The other one is a constant.
    if _is_repeated(op, index) and noun in _REPEATED:
        return _REPEATED[noun]
    if noun in _WHOLE and _is_computed(other):
        return _WHOLE[noun]
    return INPUT if _is_repeated(op, 1 - index) else SIDES[index]


def _is_repeated(op: CatalogueOp, index: int) -> bool:
    """Returns whether an operand is broadcast."""
    return shape_of(op.operands[index].type) != op.result_shape


def _is_computed(value: SSAValue) -> bool:
    """Returns whether a value is not a form of a tensor that the program reads."""
    owner = value.owner
    while isinstance(owner, CatalogueOp) and len(owner.operands) == 1:
        owner = owner.operands[0].owner
    return isinstance(owner, Operation)
