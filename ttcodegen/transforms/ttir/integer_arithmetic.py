"""Exact integer arithmetic: matmuls, narrow types, and sorting."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from xdsl.dialects.builtin import IntegerType, TensorType, i32, i64
from xdsl.ir import Attribute, SSAValue

from ttcodegen.dialects.core.datatypes import (
    bf16,
    constant_array,
    element_of,
    f32,
    is_boolean,
    numpy_name,
    shape_of,
    tensor_type,
    ui16,
    ui32,
)
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.foundation.lazy_numpy import np
from ttcodegen.ops.core.builder import splat_of
from ttcodegen.ops.core.definition import TTIRDefinition, has_trait, traits_of
from ttcodegen.ops.core.traits import Trait
from ttcodegen.transforms.rewriting import Rewriter

# Integer matmuls, exact modulo 2^32.
#
# The matrix engine multiplies floats of few bits and accumulates in float32, which represents all
# integers up to 2^24. So integers are split into limbs of few bits, whose sums of products stay
# below that; products of limbs are shifted into place and added as integers, which wrap.

_WIDTH = 32
"""Bits of the device's integers."""
_EXACT = 1 << 24
"""Upper bound up to which float32 represents all integers."""
_MOST_BITS = 8
"""Bits of a limb, as many as the multiplier takes of the second operand (docs/numbers.md)."""


def is_integer_product(op: CatalogueOp) -> bool:
    """Returns whether `express_by_parts` applies to the op."""
    is_product = has_trait(op, Trait.MATRIX_PRODUCT) or op.name == "ttir.dot_general"
    return is_product and all(
        isinstance(element_of(value.type), IntegerType) for value in (*op.operands, *op.results)
    )


@dataclass(frozen=True)
class _Factor:
    """An operand with the bit width and signedness of its values."""

    value: SSAValue
    bits: int
    signed: bool

    def largest(self, width: int) -> int:
        """Returns the largest magnitude of a limb of that many bits."""
        if width < self.bits:
            return (1 << width) - 1
        return 1 << (self.bits - 1) if self.signed else (1 << self.bits) - 1

    def count(self, width: int) -> int:
        """Returns the number of limbs of the given bit width."""
        return -(-self.bits // width)


def express_by_parts(rewriter: Rewriter, op: CatalogueOp) -> SSAValue:
    """Rewrites an integer matmul to float matmuls of limbs, one per pair."""
    factors = [_factor(op.operands[0]), _factor(op.operands[1])]
    widths = _widths(factors[0], factors[1], _summed(op))
    parts = [_limbs(rewriter, factor, width) for factor, width in zip(factors, widths, strict=True)]
    sums: dict[int, list[SSAValue]] = {}
    for i, first in enumerate(parts[0]):
        for j, second in enumerate(parts[1]):
            if (place := i * widths[0] + j * widths[1]) < _WIDTH:
                product = _product(rewriter, op, first, second)
                sums.setdefault(place, []).append(rewriter.typecast(product, i32))
    total: SSAValue | None = None
    for place, values in sorted(sums.items()):
        found = values[0]
        for value in values[1:]:
            found = rewriter.like("add", found, value)
        if place:
            found = rewriter.like("logical_left_shift", found, _number(rewriter, found, place))
        total = found if total is None else rewriter.like("add", total, found)
    assert total is not None
    if op.name == "ttir.linear" and len(op.operands) > 2:
        total = rewriter.broadcasting("add", total, rewriter.typecast(op.operands[2], i32))
    return rewriter.typecast(total, op.result_type.element_type)


def _product(rewriter: Rewriter, op: CatalogueOp, first: SSAValue, second: SSAValue) -> SSAValue:
    result = TensorType(f32, op.result_shape)
    if op.name != "ttir.linear":
        return rewriter.again(op, [first, second], result)
    turned = {name: op.parameter(name) for name in ("transpose_a", "transpose_b")}
    return rewriter.emit("matmul", [first, second], result, **turned)


def _factor(value: SSAValue) -> _Factor:
    """Bounds the integer values of a matmul operand.

    A converted operand has the bound of its source, unless the conversion cuts it to fewer bits.
    """
    owner = value.owner
    bits, signed = _range(element_of(value.type))
    if isinstance(owner, CatalogueOp) and owner.name == "ttir.typecast":
        source = owner.operands[0]
        given, made = (numpy_name(element_of(each.type)) for each in (source, value))
        if given and made and isinstance(element_of(source.type), IntegerType):
            found = _range(element_of(source.type))
            if found[0] < bits and (bits >= _WIDTH or np.can_cast(given, made)):
                return _Factor(source, *found)
    return _Factor(value, bits, signed)


def _range(element: Attribute) -> tuple[int, bool]:
    """Returns bits and signedness of an integer type on the device."""
    if is_boolean(element):
        return 1, False
    name = numpy_name(element) or "int64"
    return min(int(name.partition("int")[2]), _WIDTH), not name.startswith("u")


def _summed(op: CatalogueOp) -> int:
    """Returns the number of products summed per result element."""
    shape = shape_of(op.operands[0].type)
    if op.name == "ttir.dot_general":
        dims: list[int] = op.parameter("contract_dims_lhs")
        return prod([shape[dim] for dim in dims])
    *_, rows, columns = (1, *shape)
    return rows if op.parameter("transpose_a") and len(shape) > 1 else columns


def _widths(first: _Factor, second: _Factor, summed: int) -> tuple[int, int]:
    """Returns the limb widths of both operands that need the fewest matmuls."""

    def products(widths: tuple[int, int]) -> int:
        places = [
            i * widths[0] + j * widths[1]
            for i in range(first.count(widths[0]))
            for j in range(second.count(widths[1]))
        ]
        return sum(place < _WIDTH for place in places)

    possible = [
        (a, b)
        for a in range(_MOST_BITS, 0, -1)
        for b in range(_MOST_BITS, 0, -1)
        if first.largest(a) * second.largest(b) * summed <= _EXACT
    ]
    return min(possible or [(1, 1)], key=products)


def _limbs(rewriter: Rewriter, factor: _Factor, width: int) -> list[SSAValue]:
    """Returns the limbs as floats, lowest first; the highest has the sign."""
    value = factor.value
    if factor.bits <= width:
        return [rewriter.typecast(value, f32)]
    if is_narrow := factor.bits < _WIDTH:
        value = rewriter.typecast(value, i32)
    signed = factor.signed or is_narrow
    mask = _number(rewriter, value, (1 << width) - 1)
    count = factor.count(width)
    parts: list[SSAValue] = []
    for index in range(count):
        part = value
        is_last = index == count - 1
        if index:
            name = "right_shift" if is_last and signed else "logical_right_shift"
            part = rewriter.like(name, value, _number(rewriter, value, index * width))
        if not is_last:
            part = rewriter.like("bitwise_and", part, mask)
        parts.append(rewriter.typecast(part, f32))
    return parts


def _number(rewriter: Rewriter, like: SSAValue, number: int) -> SSAValue:
    return rewriter.full([1] * len(shape_of(like.type)), number, element_of(like.type))


# Bitwise and wrapping ops on 8- and 16-bit integers, which the device computes in 32 bits.
#
# Overflow has to be cut off: `x << 4 >> 4` extracts the lower half of a byte, and 100 + 100 is
# -56 in int8. The device computes with unsigned integers of 8 and 16 bits natively. Conversions
# from integers keep the lowest bits, those from floats saturate.

"""Bits of the integers that the device computes with."""
_NARROW = {"int8": 8, "int16": 16, "uint8": 8, "uint16": 16}
_BIT_PATTERNS = {**_NARROW, "bfloat16": 16}
_DIRECT = frozenset(("bfloat16", "uint16"))
"""Types whose bits the library reinterprets as each other directly."""
_SUMS = frozenset(("ttir.sum", "ttir.prod", "ttir.cumsum", "ttir.cumprod"))
"""Ops that accumulate many elements; matmuls are converted later."""


def concerns_narrow_bits(op: CatalogueOp) -> bool:
    """Returns whether `express_narrow_bits` applies to the op."""
    match op.name:
        case "ttir.logical_left_shift" | "ttir.logical_right_shift":
            return _dtype(op.results[0]) in _NARROW
        case "ttir.bitcast_convert":
            dtypes = {_dtype(op.operands[0]), _dtype(op.results[0])}
            return len(dtypes) == 2 and dtypes <= _BIT_PATTERNS.keys() and not dtypes <= _DIRECT
        case "ttir.typecast":
            source, target = op.operands[0], op.result_type.element_type
            if holds_all(element_of(source.type), target):
                return False
            return _is_rounded(source, target) or not _fits(source, target)
        case _ if op.name in _SUMS or _adds_up(op):
            return _dtype(op.results[0]) in _NARROW
        case _ if Trait.OUTGROWS in traits_of(op.definition):
            found = {_dtype(value) for value in (*op.operands, op.results[0])}
            return found in ({"int8"}, {"int16"})
        case _:
            return False


def _adds_up(op: CatalogueOp) -> bool:
    """Returns whether the op is a scatter that adds or multiplies."""
    return op.name == "ttir.scatter" and op.parameter("scatter_reduce_type").lower() in (
        "sum",
        "prod",
    )


def express_narrow_bits(rewriter: Rewriter, op: CatalogueOp) -> SSAValue:
    """Rewrites the op in 32-bit integers, truncated to the narrow type."""
    element = op.result_type.element_type
    if op.name == "ttir.typecast":
        return _narrowed(rewriter, op.operands[0], element)
    if op.name in _SUMS:
        sums = rewriter.again(op, list(op.operands), TensorType(i32, op.result_shape))
        return _with_bits(rewriter, sums, element)
    if _adds_up(op):
        value, index, source = op.operands
        operands = [rewriter.typecast(value, i32), index, rewriter.typecast(source, i32)]
        return _with_bits(
            rewriter, rewriter.again(op, operands, TensorType(i32, op.result_shape)), element
        )
    operands = [_widened(rewriter, value) for value in op.operands]
    if op.name == "ttir.bitcast_convert":
        return _with_bits(rewriter, operands[0], element)
    if op.name == "ttir.logical_right_shift":
        operands[0] = _lowest(rewriter, operands[0], _NARROW[_dtype(op.results[0])])
    found = rewriter.broadcasting(op.definition.short_name, *operands)
    return _with_bits(rewriter, found, element)


def holds_all(source: Attribute, target: Attribute) -> bool:
    """Returns whether a type represents all values of another one.

    Only integers of less than 32 bits are checked as targets.
    """
    given, narrow = numpy_name(source) or "", numpy_name(target) or ""
    if narrow not in _NARROW or given == "bool":
        return True
    # numpy knows bfloat16 only where something has imported it; no float is in a narrow integer.
    return isinstance(source, IntegerType) and np.can_cast(given or narrow, narrow)


def _fits(value: SSAValue, element: Attribute) -> bool:
    """Returns whether the 32-bit value is known to be in the range of the narrow type."""
    op, limits = value.owner, np.iinfo(_dtype_of(element))
    if not isinstance(op, CatalogueOp):
        return False
    match op.name:
        case "ttir.typecast":
            return op.result_type.element_type == i32 and _fits(op.operands[0], element)
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


def _is_rounded(value: SSAValue, element: Attribute) -> bool:
    """Returns whether floats are converted to uint16, which the device rounds to nearest."""
    return not isinstance(element_of(value.type), IntegerType) and _dtype_of(element) == "uint16"


def _narrowed(rewriter: Rewriter, value: SSAValue, element: Attribute) -> SSAValue:
    if isinstance(element_of(value.type), IntegerType):
        return _with_bits(rewriter, rewriter.typecast(value, i32), element)
    limits = np.iinfo(_dtype_of(element))
    if not _fits(value, element):
        # Clamped as floats: beyond 32 bits, the conversion gives the lowest integer.
        if element_of(value.type) == bf16 and limits.bits == 16:
            # bf16 does not represent the limits of 16 bits.
            value = rewriter.typecast(value, f32)
        value = rewriter.like("clamp_scalar", value, min=float(limits.min), max=float(limits.max))
    # The device converts to 8 bits with a dedicated kernel, truncates to 32, and rounds to 16.
    return rewriter.typecast(
        value if limits.bits == 8 and limits.min == 0 else rewriter.typecast(value, i32), element
    )


def _dtype_of(element: Attribute) -> str:
    return numpy_name(element) or ""


def _dtype(value: SSAValue) -> str:
    return _dtype_of(element_of(value.type))


def _widened(rewriter: Rewriter, value: SSAValue) -> SSAValue:
    if element_of(value.type) == bf16:
        value = rewriter.like("bitcast_convert", value, element=ui16)
    return rewriter.typecast(value, i32)


def _with_bits(rewriter: Rewriter, value: SSAValue, element: Attribute) -> SSAValue:
    """Returns the integer, or bf16, whose bits are the lowest ones of a 32-bit integer."""
    dtype = _dtype_of(element)
    width = _BIT_PATTERNS[dtype]
    if not dtype.startswith("int"):
        value = _lowest(rewriter, value, width)
        if element != bf16:
            return rewriter.typecast(value, element)
        return rewriter.like("bitcast_convert", rewriter.typecast(value, ui16), element=bf16)
    # Sign extension.
    unused = _number_narrow_integers(rewriter, value, _WIDTH - width)
    value = rewriter.like("logical_left_shift", value, unused)
    return rewriter.typecast(rewriter.like("right_shift", value, unused), element)


def _lowest(rewriter: Rewriter, value: SSAValue, bits: int) -> SSAValue:
    return rewriter.like(
        "bitwise_and", value, _number_narrow_integers(rewriter, value, (1 << bits) - 1)
    )


def _number_narrow_integers(rewriter: Rewriter, like: SSAValue, number: int) -> SSAValue:
    return rewriter.full([1] * len(shape_of(like.type)), number, i32)


# Sorting of integers that float32, in which the library sorts, does not represent.
#
# A radix sort in base 2^16: by lower halves, then stably by upper halves. Integers known to be
# small are sorted directly.

_MOST = 1 << 24
"""Largest integer up to which float32 represents all integers."""
_HALF = 16
_MOST_PRODUCERS = 64
"""Upper bound on the producers visited to bound an integer's magnitude."""


def concerns_wide_order(op: CatalogueOp) -> bool:
    """Returns whether `order_in_halves` applies to the op."""
    match op.name:
        case "ttir.sort" | "ttir.topk":
            value = op.operands[0]
            return element_of(value.type) in (i32, i64, ui32) and not _is_small(value)
        case _:
            return False


def order_in_halves(rewriter: Rewriter, op: CatalogueOp) -> Sequence[SSAValue]:
    """Returns sorted integers and their indices, by two sorts of 16 bits each."""
    value, source = _in_signed_order(rewriter, op.operands[0])
    shape = shape_of(value.type)
    dim: int = op.parameter("dim") % len(shape)
    is_sort = op.name == "ttir.sort"
    descending: bool = op.parameter("descending" if is_sort else "largest")

    def number(amount: int) -> SSAValue:
        return rewriter.full([1] * len(shape), amount, i32)

    def places_of(half: SSAValue) -> SSAValue:
        half = rewriter.typecast(half, f32)
        made = rewriter.emit_op(
            "sort", [half], [half.type, value.type], dim=dim, descending=descending, stable=True
        )
        return made.results[1]

    def gathered(source: SSAValue, places: SSAValue) -> SSAValue:
        result = tensor_type(element_of(source.type), shape_of(places.type))
        return rewriter.emit("gather", [source, places], result, dim=dim)

    upper = rewriter.like("right_shift", value, number(_HALF))
    lower = rewriter.like("bitwise_and", value, number((1 << _HALF) - 1))
    by_lower = places_of(lower)
    by_upper = places_of(gathered(upper, by_lower))
    if not is_sort:
        by_upper = rewriter.slice_dim(by_upper, dim, 0, op.parameter("k"))
    places = gathered(by_lower, by_upper)
    values, indices = (result.type for result in op.results)
    found = rewriter.typecast(gathered(source, places), element_of(values))
    return [found, rewriter.typecast(places, element_of(indices))]


def _in_signed_order(rewriter: Rewriter, value: SSAValue) -> tuple[SSAValue, SSAValue]:
    """Returns int32 keys in the order of the elements, and the elements."""
    if element_of(value.type) != ui32:
        value = rewriter.typecast(value, i32)
        return value, value
    # Flipping the top bit maps unsigned order to signed order.
    bits = rewriter.like("bitcast_convert", value, element=i32)
    top = rewriter.full([1] * len(shape_of(value.type)), -(1 << 31), i32)
    return rewriter.broadcasting("bitwise_xor", bits, top), value


def _is_small(value: SSAValue) -> bool:
    """Returns whether all elements are known to be integers that float32 represents."""
    pending = [value]
    for _ in range(_MOST_PRODUCERS):
        if not pending:
            return True
        each = pending.pop()
        op = each.owner
        name = numpy_name(element_of(each.type)) or ""
        if name in ("bool", "int8", "uint8", "int16", "uint16"):
            continue
        if not isinstance(op, CatalogueOp):
            return False
        match op.name:
            case "ttir.constant":
                found = constant_array(op.parameter("value"))
                if found.size and np.abs(found.astype(np.float64)).max() > _MOST:
                    return False
            case "ttir.full":
                if abs(op.parameter("fill_value")) > _MOST:
                    return False
            case "ttir.arange":
                if max(abs(op.parameter("start")), abs(op.parameter("end"))) > _MOST:
                    return False
            case "ttir.typecast":
                pending.append(op.operands[0])
            case "ttir.argmax":
                pass
            case "ttir.pad":
                return False
            case _ if Trait.ORDERS in traits_of(op.definition) and each is op.results[-1]:
                pass
            case _ if isinstance(op.definition, TTIRDefinition) and op.definition.moves:
                pending += op.operands
            case _:
                return False
    return False
