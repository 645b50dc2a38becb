"""What values are called and which layer an op belongs to, by what the source says of them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    CallSiteLoc,
    FusedLoc,
    NameLoc,
)
from xdsl.ir import Attribute, Operation, SSAValue

from ttcodegen.conversions.rebuilding import body_of
from ttcodegen.dialects.operation import CatalogueOp

if TYPE_CHECKING:
    from xdsl.dialects.func import FuncOp

    from ttcodegen.dialects.ttcore import LoadCachedOp

# A frontend's counters (`dot.31`, `add_5`) say nothing that the order of the code does not.
_COUNTER = re.compile(r"[._]\d+$")
_WEIGHT = re.compile(r"(?i)[._/]*(weights?|bias|kernel|gamma|beta|scale|running_mean|running_var)$")
_ROOT = re.compile(r"^(?:l__self_+|self_+|model\.)")


def location_name(location: Attribute) -> str | None:
    """The name in a location, None if it has none."""
    match location:
        case NameLoc():
            return location.desc.data
        case CallSiteLoc():
            return location_name(location.callee)
        case FusedLoc():
            inner = cast("ArrayAttr[Attribute]", location.locations)
            names = (location_name(part) for part in inner.data)
            return next((name for name in names if name), None)
        case _:
            return None


def layer_of_weight(name: str) -> str | None:
    """The layer that a weight belongs to by its name: `layer1.conv1.weight` -> `layer1.conv1`."""
    stripped = _WEIGHT.sub("", name)
    if stripped == name or not stripped:
        return None
    return _ROOT.sub("", stripped)


def layer(op: Operation, weight_names: Mapping[SSAValue, str]) -> str | None:
    """The layer an op belongs to: the scope of its location, or else that of a weight it uses."""
    name = location_name(op.location)
    if name is not None and "/" in name:
        return name.rpartition("/")[0]
    for operand in op.operands:
        weight = weight_names.get(operand)
        if weight is not None and (found := layer_of_weight(weight)) is not None:
            return found
    return None


PASSING = frozenset(
    """
    typecast to_layout to_device from_device to_memory_config reshape reshape_row_major permute
    """.split()
)
"""Ops whose result is called as their operand: the same values, arranged in another way."""
_LONGEST_CHAIN = 16


def value_name(op: CatalogueOp, index: int, weight_names: Mapping[SSAValue, str]) -> str:
    """What a result should be called."""
    hint = op.results[index].name_hint
    if hint is not None:
        return hint
    short = op.definition.short_name
    name = location_name(op.location)
    if name is not None:
        last = _COUNTER.sub("", name.rpartition("/")[2])
        if last and not last.isdigit():
            return last
    if short in PASSING:
        return _passed_name(op, weight_names) or short
    if short in ("matmul", "linear", "conv2d", "embedding", "layer_norm", "rms_norm"):
        found = layer(op, weight_names)
        if found is not None:
            return ".".join(found.split(".")[-2:])
    return short


def _passed_name(op: CatalogueOp, weight_names: Mapping[SSAValue, str]) -> str | None:
    """The name of the value that passes through the op."""
    value = op.operands[0]
    for _ in range(_LONGEST_CHAIN):
        if value in weight_names:
            return weight_names[value]
        if value.name_hint is not None:
            return value.name_hint
        owner = value.owner
        if not isinstance(owner, CatalogueOp) or not owner.operands:
            return None
        if owner.definition.short_name not in PASSING:
            return value_name(owner, 0, weight_names)
        value = owner.operands[0]
    return None


def constant_names(
    load: LoadCachedOp | None, const_eval: FuncOp | None, names: Mapping[SSAValue, str]
) -> tuple[str, ...]:
    """What the constants of a function are called: after the weights that they are made of.

    `names` are those of the function's arguments.
    """
    if const_eval is None or load is None:
        return ()
    inner = dict(zip(body_of(const_eval).args, load.operands, strict=True))
    weights: dict[SSAValue, str] = {
        argument: names[value] for argument, value in inner.items() if value in names
    }
    terminator = body_of(const_eval).last_op
    assert terminator is not None
    return tuple(_constant_name(value, weights) for value in terminator.operands)


def _constant_name(value: SSAValue, weights: dict[SSAValue, str]) -> str:
    seen = value
    for _ in range(_LONGEST_CHAIN):
        if seen in weights:
            return weights[seen]
        if not isinstance(seen.owner, CatalogueOp) or not seen.owner.operands:
            break
        seen = seen.owner.operands[0]
    if not isinstance(value.owner, CatalogueOp):
        return value.name_hint or "constant"
    name = value_name(value.owner, 0, weights)
    return "constant" if name in ("full", *PASSING) else name
