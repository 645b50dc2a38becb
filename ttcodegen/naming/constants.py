"""What the constants of a function are called: after weights, or after what is done with them."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from ttcodegen.dialects.core.datatypes import shape_of
from ttcodegen.dialects.operations.functions import body_of
from ttcodegen.dialects.operations.operation import CatalogueOp, operation_name
from ttcodegen.dialects.ttcore.dialect import LoadCachedOp
from ttcodegen.emitc.identifiers import NameScope, identifier
from ttcodegen.naming.layers import stem_of_weight
from ttcodegen.naming.sources import GENERIC, given_name, is_generic, name_or_kind
from ttcodegen.naming.values import ValueNames, noun_of, operand_noun
from ttcodegen.ops.core.definition import library_definition, traits_of
from ttcodegen.ops.core.traits import Trait

_CONSTANTS = frozenset({"ttir.constant", "ttnn.constant"})
_LEARNED = frozenset({"weight", "bias"})
"""What the catalogue calls operands of layers that models have learned."""
_MOST_POSITIONS = 1 << 16
"""The most elements that are looked at."""


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
    if None not in found:
        return tuple(known[value] for value in load.results)
    order = {op: index for index, op in enumerate(load.parent.ops)} if load.parent else {}
    # Field, variable and file of a constant have one name.
    scope = NameScope(map(identifier, known.values()))
    return tuple(
        name or scope.unique(bias_name(value, known) or _use_name(value, order) or "constant")
        for value, name in by_value.items()
    )


def constant_title(op: Operation, order: Mapping[Operation, int]) -> str:
    """What a constant of a function of programs is called: by the source, or after its contents or
    its use there.

    Args:
        op: the constant.
        order: the positions of the ops of the function.
    """
    value = op.results[0]
    if value.name_hint and not is_generic(value.name_hint):
        return value.name_hint
    if _counts_up(op):
        return "positions"
    return _use_name(_used_form(value), order) or name_or_kind(op)


def _used_form(value: SSAValue) -> SSAValue:
    """The form of a constant that a layer takes: after it was put into another order, or computed
    with other constants."""
    while (use := value.get_user_of_unique_use()) is not None:
        others = [operand.owner for operand in use.operands if operand is not value]
        is_form = isinstance(use, CatalogueOp) and len(use.results) == 1
        if not is_form or any(not isinstance(o, CatalogueOp) or o.operands for o in others):
            break
        value = use.results[0]
    return value


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
    if isinstance(seen.owner, Operation) and _counts_up(seen.owner):
        return "positions"
    name = body[value]
    return None if name in GENERIC or name == "filled" else name


def _use_name(value: SSAValue, order: Mapping[Operation, int]) -> str | None:
    """The name of a constant after what the first op does with it that says so."""
    named = {
        order[op]: name
        for use in value.uses
        if isinstance(op := use.operation, CatalogueOp)
        and op in order
        and (name := _learned_name(op, use.index) or operand_noun(op)) is not None
    }
    return named[min(named)] if named else None


def _learned_name(op: CatalogueOp, index: int) -> str | None:
    """The name of an operand of a layer that the source has learned: `convolution_weight`."""
    groups = op.operand_groups()
    if index == 0 or _LEARNED.isdisjoint(groups):
        return None
    role = next(name for name, group in groups.items() if op.operands[index] in group)
    return f"{noun_of(op)}_{'bias' if role == 'bias' else 'weight'}"


def _counts_up(op: Operation) -> bool:
    """True if a constant is 0, 1, 2, ...: the positions along a dimension."""
    if operation_name(op) not in _CONSTANTS:
        return False
    if not 1 < prod(shape_of(op.results[0].type)) <= _MOST_POSITIONS:
        return False
    value = op.properties.get("value", op.attributes.get("value"))
    if not isinstance(value, DenseIntOrFPElementsAttr):
        return False
    numbers = value.get_values()
    return all(number == index for index, number in enumerate(numbers))


def bias_name(value: SSAValue, names: Mapping[SSAValue, str]) -> str | None:
    """The name of a constant that an op takes as its bias, after the weight of that op."""
    for use in value.uses:
        op = use.operation
        if not isinstance(op, CatalogueOp) or Trait.OF_LAYER not in traits_of(
            library_definition(op)
        ):
            continue
        weight = next((names[o] for o in op.operands[1 : use.index] if o in names), None)
        if use.index >= 2 and weight is not None:
            stem = stem_of_weight(weight)
            return f"{stem or weight}_bias"
    return None
