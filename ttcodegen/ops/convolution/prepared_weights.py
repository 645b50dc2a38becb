"""Weights of the library's 2D convolutions, plain or prepared on the device."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.dialects.operations.attribute_kinds import BOOLEAN, DATA_TYPE, INTEGER, INTEGERS
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttnn.placement import PLACEMENT, TensorPlacement
from ttcodegen.foundation.lazy_numpy import np
from ttcodegen.ops.convolution.convolution import GROUPS, expect_bias, expect_weight, kernel_of
from ttcodegen.ops.convolution.sliding_window import Window, array_text
from ttcodegen.ops.core.calls import (
    COMPUTE_CONFIG_ATTRIBUTE,
    CONV2D_CONFIG_ATTRIBUTE,
    CONVOLUTION_COMPUTE,
    CONVOLUTION_CONFIG,
    NULLOPT,
    Argument,
    CppCalls,
    Text,
    compute_config,
    cpp_text,
    program_config,
)
from ttcodegen.ops.core.definition import (
    AttributeSpec,
    Call,
    Layout,
    Memory,
    NumpyMeaning,
    OperandSpec,
    ResultRule,
    TTNNDefinition,
    Verifier,
    attribute,
    register,
)
from ttcodegen.ops.core.dimensions import expect_shape, require
from ttcodegen.ops.core.traits import CallKind, Trait, no_flops

if TYPE_CHECKING:
    import numpy

# `ttnn::conv2d` takes host weights (out_channels, in_channels / groups, kernel), which it prepares
# in each call, or prepared ones: a tiled matrix on the device with one column per output channel,
# row by row of the window and with zeros for the channels of other groups. The order of its rows
# depends on the sharding of the image, so that the preparation takes the placement of the image
# and the config of the call.
#
# Source: prepare_conv2d_weights.cpp of tt-metal; shapes as its mocked device returns them.

WEIGHTS = (DataType.BFLOAT16, DataType.FLOAT32)
LIBRARY_SIZES = ("in_channels", "out_channels", "batch_size", "input_height", "input_width")
_HEADER = "ttnn/operations/conv/conv2d/prepare_conv2d_weights.hpp"
_NAMESPACE = "ttnn::operations::conv::conv2d"
_WINDOW = ("kernel_size", "stride", "padding", "dilation")


def image_attributes() -> tuple[AttributeSpec, ...]:
    """Returns the size attributes of image and window of 2D convolutions."""
    return (
        *(attribute(name, INTEGER) for name in LIBRARY_SIZES),
        attribute("kernel_size", INTEGERS),
        attribute("stride", INTEGERS, [1, 1]),
        attribute("padding", INTEGERS, [0, 0]),
        attribute("dilation", INTEGERS, [1, 1]),
        GROUPS,
    )


def prepared_shape(op: CatalogueOp | Call) -> tuple[int, ...]:
    """Returns the logical shape of the prepared weights of a call or its preparation."""
    value = op.parameter if isinstance(op, CatalogueOp) else op.__getitem__
    rows = value("in_channels") * prod(value("kernel_size"))
    return (1, 1, rows, value("out_channels"))


def has_prepared_weight(op: CatalogueOp) -> bool:
    """True if the weight of a convolution is prepared.

    The only plain weight of the same shape has one channel and a kernel of width 1, and its
    elements are in the same order.
    """
    return op.shape("weight") == prepared_shape(op)


def plain_weight(call: Call) -> numpy.ndarray:
    """Returns the weight as (out_channels, in_channels / groups, kernel)."""
    weight = call.array("weight")
    if weight.shape != prepared_shape(call):
        return weight
    height, width = call["kernel_size"]
    inputs, outputs, groups = call["in_channels"], call["out_channels"], call["groups"]
    whole = weight.reshape(height, width, inputs, outputs).transpose(3, 2, 0, 1)
    own = whole.reshape(groups, outputs // groups, groups, inputs // groups, height, width)
    return np.concatenate([own[group, :, group] for group in range(groups)])


def image_configs(calls: CppCalls, op: CatalogueOp) -> tuple[Argument, Argument]:
    """Returns the conv and compute configs of a call, by default the shared constants."""
    has_config = CONV2D_CONFIG_ATTRIBUTE in op.definition.attributes
    config = program_config(CONV2D_CONFIG_ATTRIBUTE.name)(calls, op) if has_config else NULLOPT
    compute = compute_config(calls, op)
    return (
        calls.tuned(CONVOLUTION_CONFIG) if config == NULLOPT else config,
        calls.tuned(CONVOLUTION_COMPUTE) if compute == NULLOPT else compute,
    )


def _numpy_weights(call: Call) -> numpy.ndarray:
    weight = call.array("weight")
    inputs, outputs, groups = call["in_channels"], call["out_channels"], call["groups"]
    height, width = weight.shape[2:]
    whole = np.zeros((groups, outputs // groups, groups, inputs // groups, height, width), "f4")
    for group in range(groups):
        whole[group, :, group] = weight.reshape(groups, outputs // groups, *weight.shape[1:])[group]
    matrix = whole.reshape(outputs, inputs, height, width).transpose(2, 3, 1, 0)
    return matrix.reshape(prepared_shape(call))


def _verify_image(op: CatalogueOp) -> None:
    """Image sizes are positive and the kernel fits into the image."""
    kernel = op.parameter("kernel_size")
    require(op, len(kernel) == 2, "a kernel_size of two numbers", tuple(kernel))
    for name in (*LIBRARY_SIZES, GROUPS.name):
        size = op.parameter(name)
        require(op, 1 <= size < 1 << 31, f"{name} of 1 or more", size)
    sizes = [op.parameter(name) for name in ("input_height", "input_width")]
    found = Window.of(op, kernel).output_sizes(op, sizes)
    require(op, min(found) > 0, f"a kernel that fits into the image of {sizes}", tuple(kernel))


def _verify_weights(op: CatalogueOp) -> None:
    """The attributes match the convolution that the weight belongs to."""
    _verify_image(op)
    inputs, outputs = op.parameter("in_channels"), op.parameter("out_channels")
    expect_weight(op, inputs, outputs, (outputs, inputs // max(op.parameter("groups"), 1)))
    kernel = kernel_of(op, 2)
    found = tuple(op.parameter("kernel_size"))
    require(op, found == kernel, f"a kernel_size of {kernel}, as the weight has", found)
    expect_shape(op, prepared_shape(op))


def _verify_bias(op: CatalogueOp) -> None:
    _verify_image(op)
    expect_bias(op, op.parameter("out_channels"))
    expect_shape(op, (1, 1, 1, op.parameter("out_channels")))


def _image_memory(calls: CppCalls, image: TensorPlacement) -> Argument:
    if image.shards is not None:
        return calls.memory_config(image)
    return Text(f"ttnn::{image.buffer_type.upper()}_MEMORY_CONFIG")


def _arguments(calls: CppCalls, op: CatalogueOp, format_: str | None) -> list[Argument]:
    """Arguments of a preparation after its tensor.

    Only weights have a format and a flag for the presence of a bias.
    """
    image: TensorPlacement = op.parameter("image")
    config, compute = image_configs(calls, op)
    data_type: DataType | None = op.parameter("dtype")
    return [
        _image_memory(calls, image),
        Text(f"ttnn::Layout::{'TILE' if image.layout is Layout.TILE else 'ROW_MAJOR'}"),
        *([] if format_ is None else [Text(cpp_text(format_))]),
        *(Text(str(op.parameter(size))) for size in LIBRARY_SIZES),
        *(array_text(op.parameter(name)) for name in _WINDOW),
        *([] if format_ is None else [Text(cpp_text(bool(op.parameter("has_bias"))))]),
        Text(str(op.parameter("groups"))),
        calls.device_pointer,
        Text(cpp_text(image.data_type)),
        NULLOPT if data_type is None else Text(cpp_text(data_type)),
        config,
        compute,
        NULLOPT,
    ]


def _preparation(
    name: str,
    function: str,
    format_: str | None,
    more: tuple[AttributeSpec, ...],
    numpy: NumpyMeaning,
    verify: Verifier,
) -> None:
    """Registers the library function that prepares an operand."""

    def emission(calls: CppCalls, op: CatalogueOp) -> None:
        calls.include(_HEADER)
        arguments = _arguments(calls, op, format_)
        prepared = calls.call(f"{_NAMESPACE}::{function}", calls[op.operands[0]], *arguments)
        calls.bind(op.results[0], prepared)

    register(
        TTNNDefinition(
            f"ttnn.{name}",
            (
                OperandSpec(
                    "bias" if format_ is None else "weight",
                    layout=Layout.ROW_MAJOR,
                    memory=Memory.HOST,
                    data_types=WEIGHTS,
                ),
            ),
            (
                attribute("image", PLACEMENT),
                *image_attributes(),
                *more,
                attribute("dtype", DATA_TYPE, None),
                CONV2D_CONFIG_ATTRIBUTE,
                COMPUTE_CONFIG_ATTRIBUTE,
            ),
            numpy=numpy,
            verify=verify,
            result_rules=(ResultRule("declared"),),
            cpp=emission,
            function=function,
            flops=no_flops,
            rearranges=True,
            traits=Trait.PREPARES_WEIGHTS,
            call_kind=CallKind.LAYOUT,
        )
    )


_preparation(
    "prepare_conv2d_weights",
    "prepare_conv_weights",
    "OIHW",
    (attribute("has_bias", BOOLEAN, False),),
    _numpy_weights,
    _verify_weights,
)
_preparation(
    "prepare_conv2d_bias",
    "prepare_conv_bias",
    None,
    (),
    lambda call: call.array("bias"),
    _verify_bias,
)
