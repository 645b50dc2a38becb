"""Operations on the bits of elements."""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerType, Signedness
from xdsl.ir import Attribute, SSAValue

from ttcodegen.dialects.datatypes import element_of, i1, numpy_name, shape_of
from ttcodegen.frontends.stablehlo.conversion import Conversion, Rule, Value
from ttcodegen.frontends.stablehlo.dialect import StableHLOOp
from ttcodegen.frontends.stablehlo.number_types import numpy_dtype
from ttcodegen.lazy_numpy import np


def _same(conversion: Conversion, number: float, like: SSAValue) -> SSAValue:
    return conversion.filled(number, shape_of(like.type), element_of(like.type))


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
    builder = conversion.builder
    target = element_of(result)
    found, wanted = _bits(element_of(value.type)), _bits(target)
    known = conversion.known(value)
    if known is not None:
        own = numpy_dtype(numpy_name(element_of(value.type)) or "")
        bits = np.ascontiguousarray(known.astype(own))
        viewed = bits.view(numpy_dtype(numpy_name(target) or "")).reshape(shape_of(result))
        return conversion.constant(viewed, target)
    if max(found, wanted) > 32:
        raise ValueError("integers of the device have 32 bits: a bitcast to or from 64 is "
                         "supported of constants only")  # fmt: skip
    ratio = max(found, wanted) // min(found, wanted)
    width = min(found, wanted)
    long_, short = (IntegerType(size, Signedness.UNSIGNED) for size in (ratio * width, width))
    if found > wanted:
        bits = _as_bits(conversion, value, long_)
        shape = shape_of(bits.type)
        low = _same(conversion, (1 << width) - 1, bits)
        parts = [
            builder.like(
                "bitwise_and",
                builder.like("logical_right_shift", bits, _same(conversion, place * width, bits))
                if place
                else bits,
                low,
            )
            for place in range(ratio)
        ]
        narrow = [builder.reshape(builder.typecast(part, short), [*shape, 1]) for part in parts]
        return _as_bits(conversion, builder.concat(narrow, len(shape)), target)
    bits = builder.typecast(_as_bits(conversion, value, short), long_)
    rank = len(shape_of(bits.type))
    total: SSAValue | None = None
    for place in range(ratio):
        part = builder.slice_dim(bits, rank - 1, place, place + 1)
        part = builder.reshape(part, shape_of(result))
        if place:
            shift = _same(conversion, place * width, part)
            part = builder.like("logical_left_shift", part, shift)
        total = part if total is None else builder.like("bitwise_or", total, part)
    assert total is not None
    return _as_bits(conversion, total, target)


def _as_bits(conversion: Conversion, value: SSAValue, element: Attribute) -> SSAValue:
    if element_of(value.type) == element:
        return value
    return conversion.builder.like("bitcast_convert", value, element=element)


def _bits(element: Attribute) -> int:
    """How many bits an element has."""
    return numpy_dtype(numpy_name(element) or "").itemsize * 8


def _next_after(conversion: Conversion, op: StableHLOOp) -> Value:
    """The next number towards another one; the device has none that fine, so of constants only."""
    x, towards = conversion.tensors(op)
    known = conversion.known(x), conversion.known(towards)
    if known[0] is None or known[1] is None:
        raise ValueError("the next number after one is supported of constants only")
    element = element_of(x.type)
    dtype = numpy_dtype(numpy_name(element) or "")
    return conversion.constant(
        np.nextafter(known[0].astype(dtype), known[1].astype(dtype)), element
    )


def _population_count(conversion: Conversion, op: StableHLOOp) -> Value:
    """Each bit shifted to the last place, and all of them added."""
    builder = conversion.builder
    (x,) = conversion.tensors(op)
    one = _same(conversion, 1, x)
    total = builder.like("bitwise_and", x, one)
    for place in range(1, _width(x)):
        bit = builder.like("logical_right_shift", x, _same(conversion, place, x))
        total = builder.like("add", total, builder.like("bitwise_and", bit, one))
    return total


def _leading_zeros(conversion: Conversion, op: StableHLOOp) -> Value:
    """The bits after which nothing but zeros stands, counted from the top."""
    builder = conversion.builder
    (x,) = conversion.tensors(op)
    zero = _same(conversion, 0, x)
    total = zero
    for place in range(_width(x)):
        rest = builder.like("logical_right_shift", x, _same(conversion, place, x))
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
