"""Operations on the bits of elements."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.dialects.builtin import IntegerType, Signedness
from xdsl.ir import Attribute, SSAValue

from ttcodegen.dialects.datatypes import element_of, i1, numpy_name, shape_of
from ttcodegen.frontends.stablehlo.conversion import Conversion, Rule, Value
from ttcodegen.frontends.stablehlo.number_types import numpy_dtype
from ttcodegen.frontends.stablehlo.operations import StableHLOOp
from ttcodegen.lazy_numpy import np

if TYPE_CHECKING:
    import numpy


def _bitcast(conversion: Conversion, op: StableHLOOp) -> Value:
    operand = conversion.tensor(op.operands[0])
    result = op.results[0].type
    if element_of(result) == element_of(operand.type):
        return operand
    if shape_of(result) != shape_of(operand.type):
        return _other_size(conversion, operand, result)
    return conversion.builder.emit("bitcast_convert", [operand], result)


def _other_size(conversion: Conversion, value: SSAValue, result: Attribute) -> SSAValue:
    """The bits of each element as several smaller ones in a last dimension, the lowest first, or of
    several as one larger."""
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
        bits = np.ascontiguousarray(known.astype(_dtype(source)))
        return conversion.constant(bits.view(_dtype(target)).reshape(shape_of(result)), target)
    if ratio * width > 32:
        raise ValueError("integers of the device have 32 bits: a bitcast to or from 64 is "
                         "supported of constants only")  # fmt: skip
    long_, short = (IntegerType(size, Signedness.UNSIGNED) for size in (ratio * width, width))
    if found > wanted:
        parts = _divided(conversion, _as_bits(conversion, value, long_), ratio, width, short)
        return _as_bits(conversion, parts, target)
    bits = conversion.builder.typecast(_as_bits(conversion, value, short), long_)
    return _as_bits(conversion, _joined(conversion, bits, ratio, width), target)


def _divided(
    conversion: Conversion, bits: SSAValue, ratio: int, width: int, short: Attribute
) -> SSAValue:
    """Each element as `ratio` elements of `width` bits, in a last dimension."""
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


def _joined(conversion: Conversion, bits: SSAValue, ratio: int, width: int) -> SSAValue:
    """The `ratio` elements of the last dimension, of `width` bits each, as one."""
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
    """How many bits an element has."""
    return _dtype(element).itemsize * 8


def _next_after(conversion: Conversion, op: StableHLOOp) -> Value:
    """The next number towards another one; the device has none that fine, so of constants only."""
    x, towards = conversion.tensors(op)
    known = [each for each in map(conversion.known, (x, towards)) if each is not None]
    if len(known) < 2:
        raise ValueError("the next number after one is supported of constants only")
    element = element_of(x.type)
    first, second = (each.astype(_dtype(element)) for each in known)
    return conversion.constant(np.nextafter(first, second), element)


def _population_count(conversion: Conversion, op: StableHLOOp) -> Value:
    """Each bit shifted to the last position, and all of them added."""
    builder = conversion.builder
    (x,) = conversion.tensors(op)
    one = conversion.filled_like(1, x)
    total = builder.like("bitwise_and", x, one)
    for place in range(1, _width(x)):
        bit = builder.like("logical_right_shift", x, conversion.filled_like(place, x))
        total = builder.like("add", total, builder.like("bitwise_and", bit, one))
    return total


def _leading_zeros(conversion: Conversion, op: StableHLOOp) -> Value:
    """The bits after which there are only zeros, counted from the top."""
    builder = conversion.builder
    (x,) = conversion.tensors(op)
    zero = conversion.filled_like(0, x)
    total = zero
    for place in range(_width(x)):
        rest = builder.like("logical_right_shift", x, conversion.filled_like(place, x))
        empty = builder.like("eq", rest, zero, element=i1)
        total = builder.like("add", total, builder.typecast(empty, element_of(x.type)))
    return total


def _width(x: SSAValue) -> int:
    element = element_of(x.type)
    width: int = element.bitwidth if isinstance(element, IntegerType) else 64
    if width > 32:
        raise ValueError("bits of integers of up to 32 bits only can be counted")
    return width


RULES: dict[str, Rule] = {
    "bitcast_convert": _bitcast,
    "count_leading_zeros": _leading_zeros,
    "next_after": _next_after,
    "popcnt": _population_count,
}
