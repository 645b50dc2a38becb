"""Products of matrices of integers, exact to the last of 32 bits.

The matrix engine multiplies floats of a few bits and adds them up in float32, which has all
integers up to 2^24. So integers are divided into parts of few bits, whose sums of products stay
below that; products of parts are shifted to where they belong and added as integers, which wrap.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from xdsl.dialects.builtin import IntegerType, TensorType, i32
from xdsl.ir import Attribute, SSAValue

from ttcodegen.dialects.core.datatypes import element_of, f32, is_boolean, numpy_name, shape_of
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.foundation.lazy_numpy import np
from ttcodegen.ops.core.definition import has_trait
from ttcodegen.ops.core.traits import Trait
from ttcodegen.transforms.rewriting import Rewriter

_WIDTH = 32
"""Bits of the integers that the device computes with."""
_EXACT = 1 << 24
"""The greatest of the integers of which float32 has all."""
_MOST_BITS = 8
"""Bits of a part: what the multiplier takes of the second operand (docs/numbers.md)."""


def is_integer_product(op: CatalogueOp) -> bool:
    """True if `express_by_parts` is for the op."""
    is_product = has_trait(op, Trait.MATRIX_PRODUCT) or op.name == "ttir.dot_general"
    return is_product and all(
        isinstance(element_of(value.type), IntegerType) for value in (*op.operands, *op.results)
    )


@dataclass(frozen=True)
class _Factor:
    """A factor, and the integers that it may hold."""

    value: SSAValue
    bits: int
    signed: bool

    def largest(self, width: int) -> int:
        """The greatest size of a part of that many bits."""
        if width < self.bits:
            return (1 << width) - 1
        return 1 << (self.bits - 1) if self.signed else (1 << self.bits) - 1

    def count(self, width: int) -> int:
        """Counts the parts of the given bit width."""
        return -(-self.bits // width)


def express_by_parts(rewriter: Rewriter, op: CatalogueOp) -> SSAValue:
    """The op on floats, once for each two parts of the factors."""
    factors = [_factor(op.operands[0]), _factor(op.operands[1])]
    widths = _widths(factors[0], factors[1], _summed(op))
    parts = [_parts(rewriter, factor, width) for factor, width in zip(factors, widths, strict=True)]
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
        if given and made and np.dtype(given).kind in "biu":
            found = _range(element_of(source.type))
            if found[0] < bits and (bits >= _WIDTH or np.can_cast(given, made)):
                return _Factor(source, *found)
    return _Factor(value, bits, signed)


def _range(element: Attribute) -> tuple[int, bool]:
    """Bits of an integer type as the device has it, and whether one is a sign."""
    if is_boolean(element):
        return 1, False
    name = numpy_name(element) or "int64"
    return min(int(name.partition("int")[2]), _WIDTH), not name.startswith("u")


def _summed(op: CatalogueOp) -> int:
    """Counts the products summed up per result element."""
    shape = shape_of(op.operands[0].type)
    if op.name == "ttir.dot_general":
        dims: list[int] = op.parameter("contract_dims_lhs")
        return prod([shape[dim] for dim in dims])
    *_, rows, columns = (1, *shape)
    return rows if op.parameter("transpose_a") and len(shape) > 1 else columns


def _widths(first: _Factor, second: _Factor, summed: int) -> tuple[int, int]:
    """Bits of the parts of both factors: those that need the fewest products."""

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


def _parts(rewriter: Rewriter, factor: _Factor, width: int) -> list[SSAValue]:
    """The parts as floats, the lowest first; the highest has the sign."""
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
