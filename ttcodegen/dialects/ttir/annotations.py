"""Annotations of tensors: requested shardings over a mesh, and quantized element types.

`ttcore.sharding = [[0], [1, 0], []]` of an argument, a result or a defining op lists, per
dimension, the mesh axes that shard it, the major one first. A trailing -1 leaves the dimension open
to further axes. The annotation does not change semantics: `ttir-partition` derives the computation
of each device from it.
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
"""Attribute with a requested sharding."""

SHARE = "ttcodegen.share"
"""Attribute of an argument or result with the sharding that devices take or give, like
`SHARDING`."""

DIVIDED = "ttcodegen.divided"
"""Attribute of an argument or result whose shards the host distributes or collects.

It has the sharded dimension for each mesh axis, -1 for none. The type has the shape of a shard.
"""

Sharding = tuple[tuple[int, ...], ...]
"""Mesh axes that shard each dimension of a tensor, the major one first."""

_OPEN = -1


@dataclass(frozen=True)
class WantedSharding:
    """Requested sharding of a value; open dimensions may be sharded further."""

    axes: Sharding
    is_open: tuple[bool, ...]

    def attribute(self) -> Attribute:
        """Returns the sharding as an attribute."""
        return ArrayAttr(
            [
                DenseArrayBase.from_list(i64, [*axes, *((_OPEN,) if is_open else ())])
                for axes, is_open in zip(self.axes, self.is_open, strict=True)
            ]
        )

    @staticmethod
    def of(attribute: Attribute | None, rank: int) -> WantedSharding | None:
        """Parses a sharding attribute; None if it does not fit the rank, or uses an axis twice."""
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
    """Returns whether a function requests a sharding of any value."""
    return any(
        SHARDING in each.data
        for dictionaries in (function.arg_attrs, function.res_attrs)
        for each in (dictionaries.data if dictionaries is not None else ())
    ) or any(SHARDING in op.attributes for op in function.walk())


def undivided(rank: int) -> Sharding:
    """Returns the sharding of a replicated tensor."""
    return ((),) * rank


def common_prefix(first: Sequence[int], second: Sequence[int]) -> int:
    """Returns the number of leading axes that two shardings of a dimension share."""
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
    """Uniform quantization: real = (integer - zero point) * scale.

    Scale and zero point are per tensor, or per index along `axis`.
    """

    storage: IntegerType
    """Integer type; values are from `low` to `high`."""
    low: int
    high: int
    expressed: Attribute
    """Float type that the tensor represents."""
    axis: int | None
    scales: tuple[float, ...]
    zero_points: tuple[int, ...]


def quantization_of(element_type: Attribute) -> Quantization | None:
    """Returns the quantization of an element type, or None for other and unsupported types.

    Unsupported are storage of more than 32 bits and blocks along several dimensions.
    """
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
    """Returns the narrowest width of host integers with that many bits."""
    return next(width for width in (8, 16, 32) if bits <= width)
