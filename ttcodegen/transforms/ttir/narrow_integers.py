"""Ops on the bits of integers of 8 and 16 bits, which the device computes with in 32.

What is more than such an integer holds must not stay in the wider one: `x << 4 >> 4` takes the
lower half out of a byte, and 100 + 100 is -56 in one with a sign. The device computes with unsigned
integers of 8 and 16 bits as such. Conversions of integers take the lowest bits, those of floats the
nearest number that there is.
"""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerType, TensorType, i32
from xdsl.ir import Attribute, SSAValue

from ttcodegen.dialects.core.datatypes import bf16, element_of, numpy_name, shape_of, ui16
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.foundation.lazy_numpy import np
from ttcodegen.ops.core.builder import splat_of
from ttcodegen.ops.core.definition import traits_of
from ttcodegen.ops.core.traits import Trait
from ttcodegen.transforms.rewriting import Rewriter

_WIDTH = 32
"""Bits of the integers that the device computes with."""
_NARROW = {"int8": 8, "int16": 16, "uint8": 8, "uint16": 16}
_BIT_PATTERNS = {**_NARROW, "bfloat16": 16}
_DIRECT = frozenset(("bfloat16", "uint16"))
"""Each other's bits are read by the library."""
_SUMS = frozenset(("ttir.sum", "ttir.prod", "ttir.cumsum", "ttir.cumprod"))
"""Ops that accumulate many elements; matmuls are converted later."""


def concerns_narrow_bits(op: CatalogueOp) -> bool:
    """True if `express_narrow_bits` is for the op."""
    match op.name:
        case "ttir.logical_left_shift" | "ttir.logical_right_shift":
            return _dtype(op.results[0]) in _NARROW
        case "ttir.bitcast_convert":
            dtypes = {_dtype(op.operands[0]), _dtype(op.results[0])}
            return len(dtypes) == 2 and dtypes <= _BIT_PATTERNS.keys() and not dtypes <= _DIRECT
        case "ttir.typecast":
            source, target = op.operands[0], op.result_type.element_type
            return not holds_all(element_of(source.type), target) and not _fits(source, target)
        case _ if op.name in _SUMS:
            return _dtype(op.results[0]) in _NARROW
        case _ if Trait.OUTGROWS in traits_of(op.definition):
            found = {_dtype(value) for value in (*op.operands, op.results[0])}
            return found in ({"int8"}, {"int16"})
        case _:
            return False


def express_narrow_bits(rewriter: Rewriter, op: CatalogueOp) -> SSAValue:
    """The op on integers of 32 bits, with what is beyond the narrow ones cut off."""
    element = op.result_type.element_type
    if op.name == "ttir.typecast":
        return _narrowed(rewriter, op.operands[0], element)
    if op.name in _SUMS:
        sums = rewriter.again(op, list(op.operands), TensorType(i32, op.result_shape))
        return _with_bits(rewriter, sums, element)
    operands = [_widened(rewriter, value) for value in op.operands]
    if op.name == "ttir.bitcast_convert":
        return _with_bits(rewriter, operands[0], element)
    if op.name == "ttir.logical_right_shift":
        operands[0] = _lowest(rewriter, operands[0], _NARROW[_dtype(op.results[0])])
    found = rewriter.broadcasting(op.definition.short_name, *operands)
    return _with_bits(rewriter, found, element)


def holds_all(source: Attribute, target: Attribute) -> bool:
    """True if a type holds all numbers of another one, as far as integers of less than 32 bits are
    concerned."""
    given, narrow = numpy_name(source) or "", numpy_name(target) or ""
    return narrow not in _NARROW or given == "bool" or np.can_cast(given or narrow, narrow)


def _fits(value: SSAValue, element: Attribute) -> bool:
    """True if an op on wider integers has left what a narrow one holds, as those below do."""
    op, limits = value.owner, np.iinfo(_dtype_of(element))
    if not isinstance(op, CatalogueOp):
        return False
    match op.name:
        case "ttir.clamp_scalar":
            return limits.min <= op.parameter("min") and op.parameter("max") <= limits.max
        case "ttir.bitwise_and":
            mask = splat_of(op.operands[1])
            return mask is not None and 0 <= mask <= limits.max
        case "ttir.right_shift":
            places = splat_of(op.operands[1])
            return places is not None and limits.min < 0 and _WIDTH - limits.bits <= places
        case _:
            return False


def _narrowed(rewriter: Rewriter, value: SSAValue, element: Attribute) -> SSAValue:
    wide = rewriter.typecast(value, i32)
    if isinstance(element_of(value.type), IntegerType):
        return _with_bits(rewriter, wide, element)
    # Before the conversion, which has 16 bits of its own way.
    limits = np.iinfo(_dtype_of(element))
    low, high = int(limits.min), int(limits.max)
    return rewriter.typecast(rewriter.like("clamp_scalar", wide, min=low, max=high), element)


def _dtype_of(element: Attribute) -> str:
    return numpy_name(element) or ""


def _dtype(value: SSAValue) -> str:
    return _dtype_of(element_of(value.type))


def _widened(rewriter: Rewriter, value: SSAValue) -> SSAValue:
    if element_of(value.type) == bf16:
        value = rewriter.like("bitcast_convert", value, element=ui16)
    return rewriter.typecast(value, i32)


def _with_bits(rewriter: Rewriter, value: SSAValue, element: Attribute) -> SSAValue:
    """The integer, or bf16, that the lowest bits of a 32-bit integer represent."""
    dtype = _dtype_of(element)
    width = _BIT_PATTERNS[dtype]
    if not dtype.startswith("int"):
        value = _lowest(rewriter, value, width)
        if element != bf16:
            return rewriter.typecast(value, element)
        return rewriter.like("bitcast_convert", rewriter.typecast(value, ui16), element=bf16)
    # The shift to the right repeats the sign.
    unused = _number(rewriter, value, _WIDTH - width)
    value = rewriter.like("logical_left_shift", value, unused)
    return rewriter.typecast(rewriter.like("right_shift", value, unused), element)


def _lowest(rewriter: Rewriter, value: SSAValue, bits: int) -> SSAValue:
    return rewriter.like("bitwise_and", value, _number(rewriter, value, (1 << bits) - 1))


def _number(rewriter: Rewriter, like: SSAValue, number: int) -> SSAValue:
    return rewriter.full([1] * len(shape_of(like.type)), number, i32)
