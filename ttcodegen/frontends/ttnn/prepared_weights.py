"""Weights of convolutions as matrices, which other tools have prepared ahead of the call.

In such a matrix each column has the weights of an output channel, row by row of the window; of
volumes, one block of input channels after the other. The calls that are made here take weights as
models have them and prepare them by themselves, so that a prepared weight is put back in order: all
of it depends on weights alone, and runs once.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import prod

from xdsl.dialects.builtin import IntegerAttr, StringAttr
from xdsl.ir import Attribute, Operation, SSAValue

from ttcodegen.diagnostics import CompileError, copy_source_offset
from ttcodegen.dialects.attribute_kinds import INTEGERS
from ttcodegen.dialects.datatypes import shape_of
from ttcodegen.ops.op_builder import OpBuilder
from ttcodegen.ops.ttir import ttir_op_classes

_TRANSPOSED = "conv_transpose2d"
_CONVOLUTIONS = ("conv2d", _TRANSPOSED, "conv3d")
_BLOCK = re.compile(r"c_in_block\s*=\s*(\d+)")


def prepared_bias(
    builder: OpBuilder,
    op: Operation,
    operands: Sequence[SSAValue],
    properties: Mapping[str, Attribute],
) -> SSAValue:
    """A bias is a row before and after."""
    return operands[0]


def prepared_weight(
    builder: OpBuilder,
    op: Operation,
    operands: Sequence[SSAValue],
    properties: Mapping[str, Attribute],
) -> SSAValue:
    """The matrix of a weight (outputs, inputs, window...), or (inputs, outputs, window...)."""
    (weight,) = operands
    shape, format_ = shape_of(weight.type), properties.get("weights_format")
    inputs_first = isinstance(format_, StringAttr) and format_.data.startswith("IO")
    inputs, outputs = (shape[0], shape[1]) if inputs_first else (shape[1], shape[0])
    if prod(shape_of(op.results[0].type)) != prod(shape):
        raise CompileError(
            "this weight becomes a matrix with other elements than it has, as those of groups and "
            "of channels that are filled up do",
            op,
            remedy="give the weight to the convolution as the model has it",
        )
    window = list(range(2, len(shape)))
    if len(window) == 2:
        order = [*window, 0, 1] if inputs_first else [*window, 1, 0]
        return builder.reshape(
            builder.permute(weight, order), [1, 1, prod(shape) // outputs, outputs]
        )
    block = _block(op, properties.get("c_in_block"), inputs)
    blocks = builder.reshape(weight, [outputs, inputs // block, block, *shape[2:]])
    matrix = builder.permute(blocks, [1, *(axis + 1 for axis in window), 2, 0])
    return builder.reshape(matrix, [prod(shape) // outputs, outputs])


def _block(op: Operation, given: Attribute | None, inputs: int) -> int:
    """How many input channels of a volume stand together."""
    block = given.value.data if isinstance(given, IntegerAttr) else 0
    if block and inputs % block:
        raise CompileError(f"blocks of {block} channels do not divide {inputs}", op)
    return block or inputs


def with_plain_weight(op: Operation, name: str, operands: Sequence[SSAValue]) -> list[SSAValue]:
    """The operands of a convolution, the weight among them as the model has it."""
    kernel = op.properties.get("kernel_size")
    if name not in _CONVOLUTIONS or len(operands) < 2 or kernel is None:
        return list(operands)
    window, weight = list(INTEGERS.decode(kernel)), operands[1]
    matrix = shape_of(weight.type)
    outputs = matrix[-1] if matrix else 1
    inputs = prod(matrix) // max(outputs * prod(window), 1)
    is_matrix = prod(matrix[:-2]) == 1 and len(matrix) in (2, 4) and prod(matrix[-2:]) > 1
    if not is_matrix or prod((inputs, outputs, *window)) != prod(matrix):
        return list(operands)
    block = op.parent
    assert block is not None

    def insert(made: Operation) -> None:
        block.insert_op_before(made, op)
        copy_source_offset(op, made)

    builder = OpBuilder(ttir_op_classes(), insert)
    builder.origin = op
    if len(window) == 3:
        found = _BLOCK.search(str(op.properties.get("conv3d_config", "")))
        together = (int(found[1]) if found is not None else 0) or inputs
        weight = builder.reshape(weight, [inputs // together, *window, together, outputs])
        weight = builder.permute(weight, [5, 0, 4, 1, 2, 3])
        plain = builder.reshape(weight, [outputs, inputs, *window])
    else:
        weight = builder.reshape(weight, [*window, inputs, outputs])
        plain = builder.permute(weight, [2, 3, 0, 1] if name == _TRANSPOSED else [3, 2, 0, 1])
    return [operands[0], plain, *operands[2:]]
