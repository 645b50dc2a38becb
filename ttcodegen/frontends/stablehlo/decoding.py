"""Decoding calls with optional operands, and sampling of the next token."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from xdsl.dialects.builtin import IntegerType
from xdsl.ir import SSAValue

from ttcodegen.dialects.core.datatypes import element_of, shape_of
from ttcodegen.frontends.stablehlo.conversion import Conversion, Value
from ttcodegen.frontends.stablehlo.reading.call_options import flag, integer, like_result
from ttcodegen.frontends.stablehlo.reading.operations import StableHLOOp

_OPTIONALS = ("attention_mask", "cur_pos_tensor", "attention_sink")
"""Sequence[SSAValue] of decoding that attributes `has_...` say are there."""


def optionals(rest: list[SSAValue], attributes: Mapping[str, Any]) -> list[SSAValue | None]:
    """The optional operands, taken from those that are left. Where no attribute says which are
    there, their types do: positions are integers, a mask has rank 4."""
    if any(f"has_{kind}" in attributes for kind in _OPTIONALS):
        return [
            rest.pop(0) if flag(attributes, f"has_{kind}") and rest else None for kind in _OPTIONALS
        ]
    found: dict[str, SSAValue] = {}
    for value in rest:
        if isinstance(element_of(value.type), IntegerType):
            kind = "cur_pos_tensor"
        else:
            kind = "attention_mask" if len(shape_of(value.type)) == 4 else "attention_sink"
        if kind in found:
            raise ValueError(f"two operands may be its {kind}: say which with has_{kind}")
        found[kind] = value
    rest.clear()
    return [found.get(kind) for kind in _OPTIONALS]


def sampled(
    conversion: Conversion,
    op: StableHLOOp,
    operands: Sequence[SSAValue],
    attributes: Mapping[str, Any],
) -> Value:
    """One of the likeliest tokens of each user: values, their indices, and k, p and temperature of
    each."""
    if len(operands) != 5:
        raise ValueError(f"it takes values, indices, k, p and temperatures, not {len(operands)}")
    seed = integer(attributes, "seed")
    return conversion.builder.emit("sampling", list(operands), like_result(op), seed=seed)
