"""Weights of convolutions as matrices, which other tools have prepared ahead of the call.

In such a matrix each column has the weights of an output channel, row by row of the window; of
volumes, one block of input channels after the other. The calls that are made here take weights as
models have them and prepare them by themselves, so that a prepared weight is put back in order: all
of it depends on weights alone, and runs once.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import prod

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation, SSAValue

from ttcodegen.compat.ttnn_modules import name_of
from ttcodegen.dialects.core.datatypes import shape_of
from ttcodegen.dialects.operations.attribute_kinds import INTEGER, INTEGERS
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.frontends.ttnn.call_parts import Properties, given
from ttcodegen.ops.core.builder import OpBuilder, builder_before
from ttcodegen.ops.dialects import ttir_op_classes

_TRANSPOSED = "conv_transpose2d"
_CONVOLUTIONS = {"conv2d": 2, _TRANSPOSED: 2, "conv3d": 3}
"""The dimensions of their windows."""
_BLOCK = re.compile(r"c_in_block\s*=\s*(\d+)")


def prepared_weight(
    builder: OpBuilder, op: Operation, operands: Sequence[SSAValue], properties: Properties
) -> SSAValue:
    """The matrix of a weight (outputs, inputs, window...), or (inputs, outputs, window...)."""
    (weight,) = operands
    inputs_first = _verify_preparation(op, shape_of(weight.type), properties)
    shape = shape_of(weight.type)
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
    block = _block(op, given(op, properties, "c_in_block", INTEGER) or 0, inputs)
    blocks = builder.reshape(weight, [outputs, inputs // block, block, *shape[2:]])
    matrix = builder.permute(blocks, [1, *(axis + 1 for axis in window), 2, 0])
    return builder.reshape(matrix, [prod(shape) // outputs, outputs])


def _verify_preparation(op: Operation, shape: Sequence[int], properties: Properties) -> bool:
    """True if the weight has its inputs first, after checking that the attributes of a call that
    prepares one agree with it; raises CompileError if they do not."""
    window, transposed = len(shape) - 2, _TRANSPOSED in name_of(op)

    def require(condition: bool, expected: str, found: object) -> None:
        if not condition:
            raise CompileError(f"'{name_of(op)}' expects {expected}, found {found}", op)

    format_ = properties.get("weights_format")
    if isinstance(format_, StringAttr) and window == 2:
        wanted = "IOHW" if transposed else "OIHW"
        require(format_.data == wanted, f"weights_format {wanted}", format_.data)
    inputs_first = isinstance(format_, StringAttr) and format_.data.startswith("IO")
    groups = given(op, properties, "groups", INTEGER) or 1
    require(groups > 0, "positive groups", groups)
    inputs, outputs = (0, 1) if inputs_first else (1, 0)
    grouped, whole = (outputs, inputs) if inputs_first else (inputs, outputs)
    for name, axis in (("in_channels", inputs), ("out_channels", outputs)):
        channels = given(op, properties, name, INTEGER)
        size = shape[axis] * (groups if axis == grouped else 1)
        if channels is not None and axis in (grouped, whole):
            require(
                channels == size, f"{name} of {size}, as the weight {tuple(shape)} has", channels
            )
    for name, counts in (
        ("kernel_size", (window,)),
        ("stride", (window,)),
        ("dilation", (window,)),
        ("padding", (window, 2 * window)),
    ):
        numbers = given(op, properties, name, INTEGERS)
        if numbers is None:
            continue
        require(len(numbers) in counts, f"{window} numbers in '{name}'", tuple(numbers))
        if name == "kernel_size":
            kernel = tuple(shape[2:])
            require(tuple(numbers) == kernel, f"kernel_size {kernel}", tuple(numbers))
    return inputs_first


def _block(op: Operation, block: int, inputs: int) -> int:
    """Number of input channels per block of a 3D weight; all by default."""
    if block and inputs % block:
        raise CompileError(f"blocks of {block} channels do not divide {inputs}", op)
    return block or inputs


def with_plain_weight(op: Operation, name: str, operands: Sequence[SSAValue]) -> list[SSAValue]:
    """The operands of a convolution, the weight among them as the model has it."""
    if name not in _CONVOLUTIONS or len(operands) < 2:
        return list(operands)
    window, weight = given(op, op.properties, "kernel_size", INTEGERS), operands[1]
    if window is None or len(window) != _CONVOLUTIONS[name]:
        return list(operands)
    matrix = shape_of(weight.type)
    outputs = matrix[-1] if matrix else 1
    inputs = prod(matrix) // max(outputs * prod(window), 1)
    is_matrix = prod(matrix[:-2]) == 1 and len(matrix) in (2, 4) and prod(matrix[-2:]) > 1
    if not is_matrix or prod((inputs, outputs, *window)) != prod(matrix):
        return list(operands)
    builder = builder_before(op, ttir_op_classes())
    if len(window) == 3:
        found = _BLOCK.search(str(op.properties.get("conv3d_config", "")))
        together = _block(op, int(found[1]) if found is not None else 0, inputs)
        weight = builder.reshape(weight, [inputs // together, *window, together, outputs])
        weight = builder.permute(weight, [5, 0, 4, 1, 2, 3])
        plain = builder.reshape(weight, [outputs, inputs, *window])
    else:
        weight = builder.reshape(weight, [*window, inputs, outputs])
        plain = builder.permute(weight, [2, 3, 0, 1] if name == _TRANSPOSED else [3, 2, 0, 1])
    return [operands[0], plain, *operands[2:]]
