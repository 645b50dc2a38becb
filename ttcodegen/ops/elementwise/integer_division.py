"""Quotients and remainders of integers in terms of what the library computes."""

from __future__ import annotations

from xdsl.ir import SSAValue

from ttcodegen.dialects.core.datatypes import DataType, element_of, shape_of, si32, ui32
from ttcodegen.dialects.ttnn.placement import declared_data_type
from ttcodegen.ops.core.builder import OpBuilder


def whole_quotient(builder: OpBuilder, a: SSAValue, b: SSAValue) -> SSAValue:
    """The quotient of integers, cut off towards zero; 0 where the divisor is 0.

    The library divides signed integers of 32 bits. Of unsigned ones it is given one bit less, which
    leaves the last bit of the quotient to be found by the remainder; divisors that are too large
    for that are contained once or not at all (H. Warren, Hacker's Delight, 9-3).
    """
    element = element_of(a.type)
    if declared_data_type(a) is not DataType.UINT32:
        first, second = (builder.typecast(value, si32) for value in (a, b))
        return builder.typecast(builder.broadcasting("div_trunc", first, second), element)
    one = builder.full([1] * len(shape_of(b.type)), 1, ui32)
    half = builder.broadcasting("logical_right_shift", a, one)
    signed = [builder.typecast(value, si32) for value in (half, b)]
    found = builder.typecast(builder.broadcasting("div_trunc", *signed), ui32)
    found = builder.broadcasting("logical_left_shift", found, one)
    rest = builder.broadcasting("subtract", a, builder.broadcasting("multiply", found, b))
    # 0 - 1 is the greatest number, which no remainder is beyond.
    last = builder.broadcasting("subtract", b, one)
    found = builder.broadcasting("add", found, builder.broadcasting("gt", rest, last))
    limit = builder.full([1] * len(shape_of(b.type)), 1 << 31, ui32)
    is_large = builder.broadcasting("ge", b, limit)
    return builder.broadcasting(
        "where", is_large, builder.broadcasting("ge", a, b), found, element=ui32
    )


def whole_remainder(builder: OpBuilder, a: SSAValue, b: SSAValue) -> SSAValue:
    """The remainder of integers, which has the sign of the divisor."""
    element = element_of(a.type)
    if declared_data_type(a) is not DataType.UINT32:
        first, second = (builder.typecast(value, si32) for value in (a, b))
        return builder.typecast(builder.broadcasting("remainder", first, second), element)
    whole = builder.broadcasting("multiply", whole_quotient(builder, a, b), b)
    return builder.broadcasting("subtract", a, whole)
