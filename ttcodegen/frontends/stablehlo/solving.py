"""Systems of linear equations."""

from __future__ import annotations

from xdsl.dialects.builtin import Float64Type
from xdsl.ir import SSAValue

from ttcodegen.dialects.core.datatypes import element_of, f32, shape_of
from ttcodegen.frontends.stablehlo.conversion import Conversion, Rule, Value
from ttcodegen.frontends.stablehlo.reading.operations import StableHLOOp
from ttcodegen.ops.core.builder import OpBuilder

_MOST_UNKNOWNS = 256
"""Each takes a handful of operations."""


def _triangular_solve(conversion: Conversion, op: StableHLOOp) -> Value:
    """`op(A) X = B` or `X op(A) = B` for triangular matrices A, of which the other half is not
    read."""
    builder = conversion.builder
    a, b = conversion.tensors(op)
    element = element_of(b.type)
    transposes = "NO_TRANSPOSE" not in str(op.get("transpose_a", "NO_TRANSPOSE")).upper()
    lower, left = bool(op.get("lower", False)), bool(op.get("left_side", False))
    if shape_of(a.type)[-1] > _MOST_UNKNOWNS:
        raise ValueError(f"systems of more than {_MOST_UNKNOWNS} equations are not supported")
    if not isinstance(element, Float64Type):
        a, b = builder.typecast(a, f32), builder.typecast(b, f32)
    # X A = B is A^T X^T = B^T.
    if transposes is left:
        a, lower = _transposed(builder, a), not lower
    if not left:
        b = _transposed(builder, b)
    found = _substituted(builder, a, b, lower, bool(op.get("unit_diagonal", False)))
    return builder.typecast(found if left else _transposed(builder, found), element)


def _transposed(builder: OpBuilder, value: SSAValue) -> SSAValue:
    rank = len(shape_of(value.type))
    return builder.permute(value, [*range(rank - 2), rank - 1, rank - 2])


def _substituted(
    builder: OpBuilder, a: SSAValue, b: SSAValue, lower: bool, is_unit: bool
) -> SSAValue:
    """One unknown after the other, each of which is taken out of the equations that are left: in
    the vector engine, which has all bits of float32."""
    *_, size = shape_of(a.type)
    rank = len(shape_of(a.type))
    rest, rows = b, list[SSAValue]()
    for step in range(size):
        place = step if lower else size - 1 - step
        # The equations that are left: this one, and those after it or before it.
        first = 0 if lower else size - step - 1
        row = builder.slice_dim(rest, rank - 2, first, first + 1)
        if not is_unit:
            diagonal = builder.slice_dim(a, rank - 2, place, place + 1)
            diagonal = builder.slice_dim(diagonal, rank - 1, place, place + 1)
            row = builder.broadcasting("div", row, diagonal)
        rows.append(row)
        if step == size - 1:
            break
        begin, end = (place + 1, size) if lower else (0, place)
        column = builder.slice_dim(builder.slice_dim(a, rank - 1, place, place + 1), rank - 2,
                                   begin, end)  # fmt: skip
        kept = shape_of(rest.type)[rank - 2]
        begin, end = (1, kept) if lower else (0, kept - 1)
        taken = builder.broadcasting("multiply", column, row)
        rest = builder.like("subtract", builder.slice_dim(rest, rank - 2, begin, end), taken)
    return builder.concat(rows if lower else rows[::-1], rank - 2)


RULES: dict[str, Rule] = {"triangular_solve": _triangular_solve}
