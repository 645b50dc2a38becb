"""Annotations of tensors: requested shardings over a mesh, and quantized element types.

`ttcore.sharding = [[0], [1, 0], []]` of an argument, a result or the op that makes a value has for
each dimension the axes of the mesh that it is divided along, the major one first. A -1 at the end
leaves it open whether it is divided along others as well. It changes nothing of what is computed:
`ttir-partition` decides by it what each chip computes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    BFloat16Type,
    DenseArrayBase,
    Float16Type,
    Float32Type,
    Float64Type,
    IntegerType,
    Signedness,
    UnregisteredAttr,
    i64,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute

from ttcodegen.dialects.operations.attribute_kinds import INTEGERS

SHARDING = "ttcore.sharding"
"""The attribute."""

SHARE = "ttcodegen.share"
"""Of an argument or a result, as `SHARDING` says it: what each chip takes of it, or gives to it."""

DIVIDED = "ttcodegen.divided"
"""Of an argument or a result whose parts the host gives to the chips of the mesh or takes from
them: the dimension that is divided along each axis, -1 for none. Its type has the shape of a
part."""

Sharding = tuple[tuple[int, ...], ...]
"""For each dimension of a tensor the axes of the mesh that it is divided along, the major one
first."""

_OPEN = -1


@dataclass(frozen=True)
class WantedSharding:
    """Requested sharding of a value; open dimensions may be sharded further."""

    axes: Sharding
    is_open: tuple[bool, ...]

    def attribute(self) -> Attribute:
        """The sharding as an attribute."""
        return ArrayAttr(
            [
                DenseArrayBase.from_list(i64, [*axes, *((_OPEN,) if is_open else ())])
                for axes, is_open in zip(self.axes, self.is_open, strict=True)
            ]
        )

    @staticmethod
    def of(attribute: Attribute | None, rank: int) -> WantedSharding | None:
        """The sharding that an attribute says; None if it says none for a tensor of that rank, or
        divides along an axis twice."""
        if not isinstance(attribute, ArrayAttr):
            return None
        listed = cast("ArrayAttr[Attribute]", attribute).data
        if len(listed) != rank:
            return None
        try:
            dimensions = [list(INTEGERS.decode(each)) for each in listed]
        except (ValueError, TypeError, AttributeError):
            return None
        divided = [tuple([axis for axis in axes if axis in (0, 1)]) for axes in dimensions]
        used = [axis for axes in divided for axis in axes]
        if len(set(used)) < len(used):
            return None
        return WantedSharding(tuple(divided), tuple([_OPEN in axes for axes in dimensions]))


def says_shardings(function: FuncOp) -> bool:
    """True if a function says how an argument, a result or a value in between is to be divided."""
    return any(
        SHARDING in each.data
        for dictionaries in (function.arg_attrs, function.res_attrs)
        for each in (dictionaries.data if dictionaries is not None else ())
    ) or any(SHARDING in op.attributes for op in function.walk())


def undivided(rank: int) -> Sharding:
    """The sharding of a tensor that all chips have."""
    return ((),) * rank


def common_prefix(first: Sequence[int], second: Sequence[int]) -> int:
    """Number of leading axes that two shardings of a dimension share."""
    count = 0
    for one, other in zip(first, second, strict=False):
        if one != other:
            break
        count += 1
    return count


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
