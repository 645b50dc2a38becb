"""Operations on the bits of elements."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.dialects.builtin import Float16Type, IntegerType, Signedness, i32
from xdsl.ir import Attribute, SSAValue

from ttcodegen.dialects.core.datatypes import (
    bf16,
    element_of,
    f32,
    i1,
    numpy_name,
    shape_of,
    tensor_type,
    ui16,
    ui32,
)
from ttcodegen.foundation.lazy_numpy import np
from ttcodegen.frontends.special_functions import (
    bits_of_float,
    float_of_bits,
    next_after,
    rounded,
)
from ttcodegen.frontends.stablehlo.conversion import Conversion, Rule, Value
from ttcodegen.frontends.stablehlo.reading.operations import StableHLOOp, is_unsigned, numpy_dtype

if TYPE_CHECKING:
    import numpy

f16 = Float16Type()
_DEVICE_BITS = 32
"""Width of the device's integers."""
_EXPONENT_BITS, _MANTISSA_BITS = 8, 23
"""Widths of float32's fields."""


def _bitcast(conversion: Conversion, op: StableHLOOp) -> Value:
    result = op.results[0].type
    if element_of(result) == element_of(op.operands[0].type):
        return conversion.value(op.operands[0])
    operand = conversion.tensor(op.operands[0])
    known = conversion.known(operand)
    if known is None and f16 in (element_of(operand.type), element_of(result)):
        return _bitcast_of_f16(conversion, operand, result)
    if shape_of(result) != shape_of(operand.type):
        return _bitcast_widths(conversion, operand, result)
    if known is not None:
        return _bitcast_of_known(conversion, known, element_of(operand.type), result)
    return conversion.builder.emit("bitcast_convert", [operand], result)


def _bitcast_of_f16(conversion: Conversion, value: SSAValue, result: Attribute) -> SSAValue:
    """Bitcasts from or to f16 by its bits: the device has no f16."""
    if element_of(value.type) == f16:
        value = _bits_of_f16(conversion, value)
    target = element_of(result)
    as_bits = ui16 if target == f16 else target
    if shape_of(value.type) != shape_of(result):
        value = _bitcast_widths(conversion, value, tensor_type(as_bits, shape_of(result)))
    value = _as_bits(conversion, value, as_bits)
    return _f16_of_bits(conversion, value) if target == f16 else value


def _bits_of_f16(conversion: Conversion, value: SSAValue) -> SSAValue:
    """Rounds numbers to f16 and returns its bit patterns as ui16."""
    builder = conversion.builder
    wide = builder.typecast(value, f32)
    bits = builder.like("bitcast_convert", wide, element=ui32)

    def number(value: int) -> SSAValue:
        return conversion.filled_like(value, bits)

    sign = builder.like("bitwise_and", builder.like("logical_right_shift", bits, number(16)),
                        number(0x8000))  # fmt: skip
    size = builder.like("bitwise_and", bits, number(0x7FFFFFFF))
    # Add half of the last kept bit, minus 1 if that bit is 0: ties to even.
    last = builder.like("logical_right_shift", size, number(13))
    last = builder.like("bitwise_and", last, number(1))
    up = builder.like("add", builder.like("add", size, last), number(0xFFF))
    rebased = builder.like("subtract", up, number(112 << 23))
    normal = builder.like("logical_right_shift", rebased, number(13))
    # What is below the smallest normal number counts its multiples of the smallest.
    scaled = builder.like(
        "multiply", builder.like("abs", wide), conversion.filled_like(2.0**24, wide)
    )
    whole = builder.typecast(rounded(builder, scaled, to_even=True), ui32)
    is_small = builder.like("lt", size, number(113 << 23), element=i1)
    is_large = builder.like("ge", up, number(143 << 23), element=i1)
    is_none = builder.like("gt", size, number(255 << 23), element=i1)
    found = builder.emit("where", [is_large, number(0x7C00), normal], bits.type)
    found = builder.emit("where", [is_none, number(0x7E00), found], bits.type)
    found = builder.emit("where", [is_small, whole, found], bits.type)
    return builder.typecast(builder.like("bitwise_or", found, sign), ui16)


def _f16_of_bits(conversion: Conversion, value: SSAValue) -> SSAValue:
    """Values of f16 bit patterns."""
    builder = conversion.builder
    bits = builder.typecast(_as_bits(conversion, value, ui16), ui32)

    def number(value: int) -> SSAValue:
        return conversion.filled_like(value, bits)

    sign = builder.like("logical_left_shift", builder.like("bitwise_and", bits, number(0x8000)),
                        number(16))  # fmt: skip
    size = builder.like("bitwise_and", bits, number(0x7FFF))
    normal = builder.like("logical_left_shift", size, number(13))
    normal = builder.like("add", normal, number(112 << 23))
    infinite = builder.like("add", normal, number(112 << 23))
    is_small = builder.like("lt", size, number(0x400), element=i1)
    is_large = builder.like("ge", size, number(0x7C00), element=i1)
    multiple = builder.typecast(size, f32)
    small = builder.like("multiply", multiple, conversion.filled_like(2.0**-24, multiple))
    small = builder.like("bitcast_convert", small, element=ui32)
    found = builder.emit("where", [is_large, infinite, normal], bits.type)
    found = builder.emit("where", [is_small, small, found], bits.type)
    found = builder.like("bitwise_or", found, sign)
    return builder.typecast(builder.like("bitcast_convert", found, element=f32), f16)


def _bitcast_widths(conversion: Conversion, value: SSAValue, result: Attribute) -> SSAValue:
    """Bitcast between widths: splits elements into a last dimension, low bits first, or
    joins it."""
    source, target = element_of(value.type), element_of(result)
    found, wanted = _bits(source), _bits(target)
    more, fewer = shape_of(result), shape_of(value.type)
    if found < wanted:
        more, fewer = fewer, more
    width = min(found, wanted)
    ratio = max(found, wanted) // width
    if more != (*fewer, ratio):
        raise ValueError(f"{shape_of(value.type)} elements of {found} bits are not "
                         f"{shape_of(result)} of {wanted}")  # fmt: skip
    known = conversion.known(value)
    if known is not None:
        return _bitcast_of_known(conversion, known, source, result)
    if ratio * width > 32:
        raise ValueError("integers of the device have 32 bits: a bitcast to or from 64 is "
                         "supported of constants only")  # fmt: skip
    long_, short = (IntegerType(size, Signedness.UNSIGNED) for size in (ratio * width, width))
    if found > wanted:
        parts = _split_bits(conversion, _as_bits(conversion, value, long_), ratio, width, short)
        return _as_bits(conversion, parts, target)
    bits = conversion.builder.typecast(_as_bits(conversion, value, short), long_)
    return _as_bits(conversion, _join_bits(conversion, bits, ratio, width), target)


def _bitcast_of_known(
    conversion: Conversion, known: numpy.ndarray, source: Attribute, result: Attribute
) -> SSAValue:
    """Bitcasts a constant."""
    target = element_of(result)
    bits = np.ascontiguousarray(known.astype(_dtype(source)))
    return conversion.constant(bits.view(_dtype(target)).reshape(shape_of(result)), target)


def _split_bits(
    conversion: Conversion, bits: SSAValue, ratio: int, width: int, short: Attribute
) -> SSAValue:
    """Splits each element into `ratio` elements of `width` bits in a new last dimension."""
    builder = conversion.builder
    shape = shape_of(bits.type)
    low = conversion.filled_like((1 << width) - 1, bits)
    parts: list[SSAValue] = []
    for place in range(ratio):
        part = bits
        if place:
            shift = conversion.filled_like(place * width, bits)
            part = builder.like("logical_right_shift", bits, shift)
        part = builder.typecast(builder.like("bitwise_and", part, low), short)
        parts.append(builder.reshape(part, [*shape, 1]))
    return builder.concat(parts, len(shape))


def _join_bits(conversion: Conversion, bits: SSAValue, ratio: int, width: int) -> SSAValue:
    """Joins the last dimension's `ratio` elements of `width` bits each, low bits first."""
    builder = conversion.builder
    *shape, _ = shape_of(bits.type)
    total: SSAValue | None = None
    for place in range(ratio):
        part = builder.reshape(builder.slice_dim(bits, len(shape), place, place + 1), shape)
        if place:
            shift = conversion.filled_like(place * width, part)
            part = builder.like("logical_left_shift", part, shift)
        total = part if total is None else builder.like("bitwise_or", total, part)
    assert total is not None
    return total


def _as_bits(conversion: Conversion, value: SSAValue, element: Attribute) -> SSAValue:
    if element_of(value.type) == element:
        return value
    return conversion.builder.like("bitcast_convert", value, element=element)


def _dtype(element: Attribute) -> numpy.dtype:
    name = numpy_name(element)
    if name is None:
        raise ValueError(f"the bits of elements of type {element} are not known")
    return numpy_dtype(name)


def _bits(element: Attribute) -> int:
    """Bit width of an element type."""
    return _dtype(element).itemsize * 8


def _next_after(conversion: Conversion, op: StableHLOOp) -> Value:
    return next_after(conversion.builder, *conversion.tensors(op))


def _reduce_precision(conversion: Conversion, op: StableHLOOp) -> Value:
    """Rounds to the given exponent and mantissa widths, to nearest with ties to even.

    Overflow becomes infinity and underflow zero, as in XLA.
    """
    builder = conversion.builder
    (x,) = conversion.tensors(op)
    element = element_of(x.type)
    exponent, mantissa = int(op["exponent_bits"]), int(op["mantissa_bits"])
    wide = builder.typecast(x, f32)
    if exponent >= _EXPONENT_BITS and mantissa >= _MANTISSA_BITS:
        return x
    if (exponent, mantissa) == (_EXPONENT_BITS, 7):
        return builder.typecast(builder.typecast(x, bf16), element)
    bits = bits_of_float(builder, wide)

    def number(value: int) -> SSAValue:
        return conversion.filled_like(value, bits)

    if mantissa < _MANTISSA_BITS:
        cut = _MANTISSA_BITS - mantissa
        last = builder.like("logical_right_shift", bits, number(cut))
        last = builder.like("bitwise_and", last, number(1))
        up = builder.like("add", last, number((1 << (cut - 1)) - 1))
        kept = number(0xFFFFFFFF ^ ((1 << cut) - 1))
        bits = builder.like("bitwise_and", builder.like("add", bits, up), kept)
    if exponent < _EXPONENT_BITS:
        bias, own = (1 << (exponent - 1)) - 1, 127
        size = builder.like("bitwise_and", bits, number(0x7F800000))
        sign = builder.like("bitwise_and", bits, number(0x80000000))
        infinite = builder.like("bitwise_or", sign, number(0x7F800000))
        above = builder.like("gt", size, number((own + bias) << _MANTISSA_BITS), element=i1)
        below = builder.like("le", size, number((own - bias) << _MANTISSA_BITS), element=i1)
        bits = builder.emit("where", [above, infinite, bits], bits.type)
        bits = builder.emit("where", [below, sign, bits], bits.type)
    found = builder.typecast(float_of_bits(builder, bits), element)
    is_none = builder.like("ne", x, x, element=i1)
    # Without a mantissa there is no NaN.
    none = x if mantissa else conversion.filled_like(float("inf"), x)
    return builder.emit("where", [is_none, none, found], x.type)


def _high_product(conversion: Conversion, op: StableHLOOp) -> Value:
    """Upper half of integer products."""
    builder = conversion.builder
    x, y = conversion.tensors(op)
    element, width = element_of(x.type), _width(x)
    if width > _DEVICE_BITS:
        raise ValueError("integers of the device have 32 bits: the upper half of a product of "
                         f"{width} bits is not among them")  # fmt: skip
    if width < _DEVICE_BITS:
        wide = ui32 if is_unsigned(element) else i32
        product = builder.like("multiply", *(builder.typecast(each, wide) for each in (x, y)))
        # The product fits 32 bits: shift its upper half down and narrow it.
        high = builder.like("logical_right_shift", product, conversion.filled_like(width, product))
        return _truncate(conversion, high, element)
    first, second = (_as_bits(conversion, each, ui32) for each in (x, y))
    high = _high_word(conversion, first, second)
    if not is_unsigned(element):
        # Correct the unsigned product for operands that are negative.
        for one, other in ((x, second), (y, first)):
            nothing = conversion.filled_like(0, other)
            more = builder.emit(
                "where", [_is_negative(conversion, one), other, nothing], other.type
            )
            high = builder.like("subtract", high, more)
    return _as_bits(conversion, high, element)


def _truncate(conversion: Conversion, value: SSAValue, element: Attribute) -> SSAValue:
    """Truncates integers to a narrower type."""
    builder = conversion.builder
    width = _bits(element)
    kept = builder.like("bitwise_and", value, conversion.filled_like((1 << width) - 1, value))
    if not is_unsigned(element):
        # Sign extension.
        half = conversion.filled_like(1 << (width - 1), kept)
        kept = builder.like("subtract", builder.like("bitwise_xor", kept, half), half)
    return builder.typecast(kept, element)


def _high_word(conversion: Conversion, first: SSAValue, second: SSAValue) -> SSAValue:
    """Upper 32 bits of unsigned products, from products of 16-bit halves."""
    builder = conversion.builder
    low_bits, by = conversion.filled_like(0xFFFF, first), conversion.filled_like(16, first)

    def high(value: SSAValue) -> SSAValue:
        return builder.like("logical_right_shift", value, by)

    def low(value: SSAValue) -> SSAValue:
        return builder.like("bitwise_and", value, low_bits)

    def multiplied(a: SSAValue, b: SSAValue) -> SSAValue:
        return builder.like("multiply", a, b)

    carry = high(multiplied(low(first), low(second)))
    middle = builder.like("add", multiplied(high(first), low(second)), carry)
    other = builder.like("add", multiplied(low(first), high(second)), low(middle))
    upper = builder.like("add", multiplied(high(first), high(second)), high(middle))
    return builder.like("add", upper, high(other))


def _population_count(conversion: Conversion, op: StableHLOOp) -> Value:
    """Sum of all bits. The device holds the lower 32 of 64 bits, sign-extended."""
    builder = conversion.builder
    (x,) = conversion.tensors(op)
    one = conversion.filled_like(1, x)
    total = builder.like("bitwise_and", x, one)
    for place in range(1, min(_width(x), _DEVICE_BITS)):
        bit = builder.like("logical_right_shift", x, conversion.filled_like(place, x))
        total = builder.like("add", total, builder.like("bitwise_and", bit, one))
    if _width(x) <= _DEVICE_BITS or is_unsigned(element_of(x.type)):
        return total
    more = conversion.filled_like(_width(x) - _DEVICE_BITS, x)
    return builder.emit("where", [_is_negative(conversion, x), builder.like("add", total, more),
                                  total], x.type)  # fmt: skip


def _leading_zeros(conversion: Conversion, op: StableHLOOp) -> Value:
    """Count of leading zeros: bit positions from which all higher bits are 0."""
    builder = conversion.builder
    (x,) = conversion.tensors(op)
    zero = conversion.filled_like(0, x)
    width = _width(x)
    total = conversion.filled_like(max(width - _DEVICE_BITS, 0), x)
    for place in range(min(width, _DEVICE_BITS)):
        rest = builder.like("logical_right_shift", x, conversion.filled_like(place, x))
        empty = builder.like("eq", rest, zero, element=i1)
        total = builder.like("add", total, builder.typecast(empty, element_of(x.type)))
    if width <= _DEVICE_BITS or is_unsigned(element_of(x.type)):
        return total
    return builder.emit("where", [_is_negative(conversion, x), zero, total], x.type)


def _is_negative(conversion: Conversion, x: SSAValue) -> SSAValue:
    return conversion.builder.like("lt", x, conversion.filled_like(0, x), element=i1)


def _width(x: SSAValue) -> int:
    element = element_of(x.type)
    assert isinstance(element, IntegerType)
    return element.bitwidth


RULES: dict[str, Rule] = {
    "bitcast_convert": _bitcast,
    "count_leading_zeros": _leading_zeros,
    "mulhi": _high_product,
    "next_after": _next_after,
    "popcnt": _population_count,
    "reduce_precision": _reduce_precision,
}
