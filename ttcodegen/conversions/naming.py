"""What values are called and which layer an op belongs to, by what the source says of them."""

from __future__ import annotations

import re
from collections.abc import Mapping

from xdsl.dialects.builtin import (
    ArrayAttr,
    CallSiteLoc,
    FusedLoc,
    NameLoc,
)
from xdsl.ir import Attribute, Operation, SSAValue

from ttcodegen.dialects.operation import CatalogueOp

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
            inner = location.locations
            assert isinstance(inner, ArrayAttr)
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


def value_name(op: CatalogueOp, index: int, weight_names: Mapping[SSAValue, str]) -> str:
    """What a result should be called."""
    hint = op.results[index].name_hint
    if hint is not None:
        return hint
    name = location_name(op.location)
    short = op.definition.short_name
    if name is not None:
        last = _COUNTER.sub("", name.rpartition("/")[2])
        if last and not last.isdigit():
            return last
    if short in ("matmul", "linear", "conv2d", "embedding", "layer_norm", "rms_norm"):
        found = layer(op, weight_names)
        if found is not None:
            return ".".join(found.split(".")[-2:])
    return short
