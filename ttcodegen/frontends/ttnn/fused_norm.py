"""The norm of rows with what surrounds it in blocks of diffusion transformers, in one call."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation, SSAValue

from ttcodegen.compat.ttnn_modules import name_of
from ttcodegen.dialects.core.datatypes import element_of, shape_of
from ttcodegen.dialects.operations.attribute_kinds import NUMBER
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.frontends.ttnn.call_parts import Properties, divided_operands, given
from ttcodegen.frontends.ttnn.row_statistics import in_32_bits
from ttcodegen.ops.core.builder import OpBuilder

_EPSILON = 1e-5
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
        epsilon=_EPSILON if epsilon is None else float(epsilon),
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
