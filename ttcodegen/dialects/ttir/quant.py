"""`!quant.uniform<...>`: element types that say which real number an integer represents."""

from __future__ import annotations

import re
from dataclasses import dataclass

from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
    Float32Type,
    Float64Type,
    IntegerType,
    Signedness,
    UnregisteredAttr,
)
from xdsl.ir import Attribute

NAME = "quant.uniform"

_NUMBER = r"[-+]?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?"
_INTEGER = r"-?\d{1,19}"
_PAIR = rf"({_NUMBER})\s*(?::\s*({_INTEGER}))?"
_TYPE = re.compile(
    rf"\s*(s?i|ui?)(\d{{1,9}})\s*(?:<\s*({_INTEGER})\s*:\s*({_INTEGER})\s*>)?\s*"
    rf":\s*(f64|f32|f16|bf16)\s*(?::\s*(\d{{1,9}})\s*)?,\s*(?:{_PAIR}|\{{(.*)\}})\s*"
)
_EXPRESSED: dict[str, Attribute] = {
    "f64": Float64Type(),
    "f32": Float32Type(),
    "f16": Float16Type(),
    "bf16": BFloat16Type(),
}


@dataclass(frozen=True)
class Quantization:
    """real = (integer - zero point) * scale, with one scale and zero point for a tensor, or one for
    each index along `axis`."""

    storage: IntegerType
    """The type of the integers; they are between `low` and `high`."""
    low: int
    high: int
    expressed: Attribute
    """The float type that the tensor represents."""
    axis: int | None
    scales: tuple[float, ...]
    zero_points: tuple[int, ...]


def quantization_of(element_type: Attribute) -> Quantization | None:
    """Quantization of an element type, None for any other type and for unsupported ones: storage of
    more than 32 bits, blocks along several dimensions."""
    if not isinstance(element_type, UnregisteredAttr) or element_type.attr_name.data != NAME:
        return None
    match = _TYPE.fullmatch(element_type.value.data)
    if match is None:
        return None
    sign, width, low, high, expressed, axis, scale, zero_point, several = match.groups()
    pairs = [(scale, zero_point)]
    if several is not None:
        pairs = [found.groups() for found in re.finditer(_PAIR, several)]
    bits, signed = int(width), not sign.startswith("u")
    if not 1 <= bits <= 32 or (axis is None) != (several is None):
        return None
    signedness = Signedness.SIGNLESS if signed else Signedness.UNSIGNED
    least = -(1 << (bits - 1)) if signed else 0
    return Quantization(
        IntegerType(_stored_width(bits), signedness),
        least if low is None else int(low),
        least + (1 << bits) - 1 if high is None else int(high),
        _EXPRESSED[expressed],
        None if axis is None else int(axis),
        tuple(float(scale) for scale, _ in pairs),
        tuple(int(zero_point or 0) for _, zero_point in pairs),
    )


def _stored_width(bits: int) -> int:
    """The narrowest width of which there are integers on a host."""
    return next(width for width in (8, 16, 32) if bits <= width)
