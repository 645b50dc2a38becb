"""Convolution of sequences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.dialects.builtin import TensorType
from xdsl.ir import SSAValue

from ttcodegen.dialects.core.datatypes import element_of, shape_of
from ttcodegen.dialects.operations.attribute_kinds import INTEGER
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.foundation.lazy_numpy import np
from ttcodegen.ops.convolution.convolution2d import (
    CONVOLUTION_OPERANDS,
    GROUPS,
    dims,
    expect_channels,
    kernel_of,
    library_bias,
    output_channels,
    with_bias,
)
from ttcodegen.ops.convolution.sliding_window import Window, convolution, window_attributes
from ttcodegen.ops.core.builder import OpBuilder
from ttcodegen.ops.core.definition import Call, TTIRDefinition, attribute, register
from ttcodegen.ops.core.shape_checks import expect_shape
from ttcodegen.ops.movement.data_movement import inverse_permutation

if TYPE_CHECKING:
    import numpy


_SEQUENCE_DIMS = tuple(
    attribute(f"{name}_dim", INTEGER, position)
    for position, name in enumerate(("batch", "length", "channel"))
)


def _verify_conv1d(op: CatalogueOp) -> None:
    """Weight (Co, Ci/groups, kernel length); the result's length follows."""
    order = dims(op, _SEQUENCE_DIMS)
    n, length, channels = (op.shape("input")[axis] for axis in order)
    outputs = output_channels(op, order)
    window = Window.of(op, kernel_of(op, 1))
    expect_channels(op, channels, outputs, (outputs, channels // max(op.parameter("groups"), 1)))
    expected = (n, *window.output_sizes(op, (length,)), outputs)
    expect_shape(op, [expected[order.index(axis)] for axis in range(3)])


def _conv1d(call: Call) -> numpy.ndarray:
    order = [call[spec.name] for spec in _SEQUENCE_DIMS]
    x, weight = np.transpose(call.array("input"), order), call.array("weight")
    result = convolution(x, weight, Window.of(call, weight.shape[2:]), call["groups"])
    return np.transpose(with_bias(call, result), np.argsort(order))


def _decompose_conv1d(builder: OpBuilder, op: CatalogueOp) -> SSAValue:
    """A sequence is an image of height 1, as in the library's conv1d.cpp: each row of the pixels
    that windows begin at is one entry of a table, which tt-metal 0.70.1 limits to one number per
    pixel (conv2d_op_program_factory_common.cpp)."""
    order = dims(op, _SEQUENCE_DIMS)
    window = Window.of(op, kernel_of(op, 1))
    sequence = builder.permute(builder.operand(op, "input"), order)
    n, length, channels = shape_of(sequence.type)
    outputs = output_channels(op, order)
    weight = builder.operand(op, "weight")
    _, weight_channels, kernel = shape_of(weight.type)
    ((before, after),) = window.padding
    (result_length,) = window.output_sizes(op, (length,))
    image = builder.emit(
        "conv2d",
        [
            builder.reshape(sequence, [n, 1, length, channels]),
            builder.reshape(weight, [outputs, weight_channels, 1, kernel]),
            library_bias(builder, op, outputs),
        ],
        TensorType(element_of(op.result_type), [n, 1, result_length, outputs]),
        stride=[1, *window.stride],
        padding=[0, before, 0, after],
        dilation=[1, *window.dilation],
        groups=op.parameter("groups"),
    )
    sequence = builder.reshape(image, [n, result_length, outputs])
    return builder.permute(sequence, inverse_permutation(order))


register(
    TTIRDefinition(
        "ttir.conv1d",
        CONVOLUTION_OPERANDS,
        (*window_attributes(), GROUPS, *_SEQUENCE_DIMS),
        verify=_verify_conv1d,
        numpy=_conv1d,
        decompose=_decompose_conv1d,
    )
)
