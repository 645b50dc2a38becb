"""Fused and distributed norms of TTNN."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation, SSAValue

from ttcodegen.compat.ttnn_modules import name_of
from ttcodegen.dialects.core.datatypes import element_of, f32, shape_of, tensor_type
from ttcodegen.dialects.operations.attribute_kinds import NUMBER
from ttcodegen.dialects.ttcore.tile import TILE_SIDE
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.frontends.ttnn.arguments import Properties, divided_operands, given
from ttcodegen.ops.core.builder import OpBuilder, builder_before
from ttcodegen.ops.dialects import ttnn_op_classes

# The two halves of a norm of rows that chips have parts of: sums of a chip, and the norm by the
# sums of all.
#
# Sums are in the first column of a tile: those of squares, for layer norms followed by those of
# the elements. Gathered, there are as many such tiles as chips have parts (tt-metal,
# `ttnn/operations/normalization/layernorm_distributed`).

_EPSILON = 1e-12
"""Default epsilon that the library adds to a variance."""


def sums_of_squares(
    builder: OpBuilder, op: Operation, operands: Sequence[SSAValue], properties: Properties
) -> SSAValue:
    """`rms_norm_pre_all_gather`: (..., width) to (..., 32)."""
    return _column_of_tile(builder, _squared_sum(builder, _row(builder, op, operands, properties)))


def sums_of_rows(
    builder: OpBuilder, op: Operation, operands: Sequence[SSAValue], properties: Properties
) -> SSAValue:
    """`layer_norm_pre_all_gather`: (..., width) to (..., 64). Reciprocals that the call may be
    given make it faster, and nothing else."""
    row = _row(builder, op, operands, properties)
    total = builder.reduce("sum", row, [len(shape_of(row.type)) - 1])
    columns = [_column_of_tile(builder, each) for each in (_squared_sum(builder, row), total)]
    return builder.concat(columns, len(shape_of(row.type)) - 1)


def normalized_by_squares(
    builder: OpBuilder, op: Operation, operands: Sequence[SSAValue], properties: Properties
) -> SSAValue:
    """`rms_norm_post_all_gather`: rows by the root of their mean square."""
    return _normalized(builder, op, operands, properties, centered=False)


def normalized_by_rows(
    builder: OpBuilder, op: Operation, operands: Sequence[SSAValue], properties: Properties
) -> SSAValue:
    """`layer_norm_post_all_gather`: rows without their mean, by the root of their variance."""
    return _normalized(builder, op, operands, properties, centered=True)


def _row(
    builder: OpBuilder, op: Operation, operands: Sequence[SSAValue], properties: Properties
) -> SSAValue:
    """The input and what is added to it, in 32 bits."""
    value, residual, _ = divided_operands(op, operands, properties, 3)
    if value is None:
        raise CompileError(f"'{name_of(op)}' needs an input", op)
    _expect_rows(op, value)
    row = in_32_bits(builder, op, value)
    if residual is None:
        return row
    if shape_of(residual.type) != shape_of(value.type):
        raise CompileError(f"'{name_of(op)}' adds a tensor of another shape than its input", op)
    return builder.like("add", row, in_32_bits(builder, op, residual))


def _expect_rows(op: Operation, *values: SSAValue) -> None:
    if any(not shape_of(value.type) for value in values):
        raise CompileError(f"'{name_of(op)}' takes tensors of rows, found a scalar", op)


def in_32_bits(builder: OpBuilder, op: Operation, value: SSAValue) -> SSAValue:
    """A value in 32 bits, where tensors are stored by default: a typecast keeps shards."""
    plain = tensor_type(element_of(value.type), shape_of(value.type))
    if value.type != plain:
        placed = builder_before(op, ttnn_op_classes())
        value = placed.emit("composite_to_layout", [value], plain)
    return builder.typecast(value, f32)


def _squared_sum(builder: OpBuilder, row: SSAValue) -> SSAValue:
    square = builder.like("multiply", row, row)
    return builder.reduce("sum", square, [len(shape_of(row.type)) - 1])


def _column_of_tile(builder: OpBuilder, column: SSAValue) -> SSAValue:
    """The column, and zeros to the end of a tile."""
    return builder.pad(column, [(0, TILE_SIDE - 1)])


def _normalized(
    builder: OpBuilder,
    op: Operation,
    operands: Sequence[SSAValue],
    properties: Properties,
    *,
    centered: bool,
) -> SSAValue:
    value, statistics, weight, bias = divided_operands(op, operands, properties, 4)
    if value is None or statistics is None:
        raise CompileError(f"'{name_of(op)}' needs an input and the sums of its rows", op)
    _expect_rows(op, value, statistics)
    shape, kinds = shape_of(value.type), 2 if centered else 1
    *outer, columns = shape_of(statistics.type)
    if tuple(outer) != tuple(shape[:-1]) or columns % (kinds * TILE_SIDE) or not columns:
        raise CompileError(
            f"'{name_of(op)}': sums of rows of {shape} are {kinds * TILE_SIDE} columns "
            f"for each chip, found {shape_of(statistics.type)}",
            op,
        )
    rank, chips = len(shape), columns // (kinds * TILE_SIDE)
    apart = builder.reshape(in_32_bits(builder, op, statistics), [*outer, chips, kinds, TILE_SIDE])
    ones = [1] * rank

    def mean(kind: int) -> SSAValue:
        of_chips = builder.slice_dim(builder.slice_dim(apart, rank, kind, kind + 1), rank + 1, 0, 1)
        total = builder.reduce("sum", of_chips, [rank - 1])
        count = builder.full(ones, 1.0 / (shape[-1] * chips), f32)
        return builder.broadcasting("multiply", builder.reshape(total, [*outer, 1]), count)

    row, variance = in_32_bits(builder, op, value), mean(0)
    if centered:
        average = mean(1)
        row = builder.broadcasting("subtract", row, average)
        square = builder.like("multiply", average, average)
        variance = builder.like("subtract", variance, square)
    epsilon = given(op, properties, "epsilon", NUMBER)
    added = builder.full(ones, _EPSILON if epsilon is None else float(epsilon), f32)
    scale = builder.like("rsqrt", builder.broadcasting("add", variance, added))
    row = builder.broadcasting("multiply", row, scale)
    for vector, joined in ((weight, "multiply"), (bias, "add")):
        if vector is not None:
            wide = builder.reshape(in_32_bits(builder, op, vector), [*ones[1:], shape[-1]])
            row = builder.broadcasting(joined, row, wide)
    return builder.typecast(row, element_of(op.results[0].type))


# The norm of rows with what surrounds it in blocks of diffusion transformers, in one call.

_EPSILON_fused_norm = 1e-5
"""Default epsilon of the call (tt-mlir, `TTNNOps.td`)."""
_ACTIVATIONS = frozenset({"gelu", "relu", "sigmoid", "silu", "tanh"})


def activated_norm(
    builder: OpBuilder, op: Operation, operands: Sequence[SSAValue], properties: Properties
) -> SSAValue:
    """`dit_rms_norm_unary_fused`: activation(rms_norm(input + residual) * weight + bias), in 32
    bits up to its result."""
    value, weight, bias, residual = divided_operands(op, operands, properties, 4)
    if value is None or not shape_of(value.type):
        raise CompileError(f"'{name_of(op)}' needs an input with rows", op)
    row, width = in_32_bits(builder, op, value), shape_of(value.type)[-1]
    if residual is not None:
        if shape_of(residual.type) != shape_of(value.type):
            raise CompileError(f"'{name_of(op)}' adds a tensor of another shape than its input", op)
        row = builder.like("add", row, in_32_bits(builder, op, residual))
    vectors: list[SSAValue | None] = []
    for vector in (weight, bias):
        if vector is not None and prod(shape_of(vector.type)) != width:
            raise CompileError(
                f"'{name_of(op)}' takes a weight and a bias of {width} elements, found "
                f"{shape_of(vector.type)}",
                op,
            )
        vectors.append(
            None if vector is None else builder.reshape(in_32_bits(builder, op, vector), [width])
        )
    epsilon = given(op, properties, "epsilon", NUMBER)
    row = builder.emit(
        "rms_norm",
        [row, *vectors],
        row.type,
        normalized_shape=[width],
        epsilon=_EPSILON_fused_norm if epsilon is None else float(epsilon),
    )
    activation = properties.get("activation")
    if isinstance(activation, StringAttr) and activation.data:
        if activation.data not in _ACTIVATIONS:
            raise CompileError(
                f"'{name_of(op)}': the activation should be one of "
                f"{', '.join(sorted(_ACTIVATIONS))}, found {activation.data}",
                op,
            )
        row = builder.like(activation.data, row)
    return builder.typecast(row, element_of(op.results[0].type))
