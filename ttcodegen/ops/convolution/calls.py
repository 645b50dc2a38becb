"""Calls of the library's convolutions of images: ordinary and transposed ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.dialects.operations.attribute_kinds import DATA_TYPE, INTEGER, INTEGERS
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.ops.convolution.convolution2d import (
    GROUPS,
    expect_channels,
    kernel_of,
    transposed_sizes,
    with_bias,
)
from ttcodegen.ops.convolution.sliding_window import (
    Window,
    array_text,
    convolution,
    library_window,
    transposed_convolution,
    verified_library_window,
)
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
    OperandSpec,
    ResultRule,
    TTNNDefinition,
    attribute,
    register,
)
from ttcodegen.ops.core.shape_checks import expect_result_volume, expect_volume, require
from ttcodegen.ops.core.traits import CallKind, Trait
from ttcodegen.ops.core.work import convolution_flops, transposed_convolution_flops
from ttcodegen.ops.elementwise.fused_activations import activated, verify_activation

if TYPE_CHECKING:
    import numpy

WEIGHTS = (DataType.BFLOAT16, DataType.FLOAT32)
ACTIVATIONS = (DataType.BFLOAT16, DataType.FLOAT32, DataType.BFLOAT8_B)


_LIBRARY_OPERANDS = (
    # Tiles, rows, bf16 and f32 are all taken (docs/library-rules.md).
    OperandSpec("input", layout=None, data_types=ACTIVATIONS),
    OperandSpec("weight", layout=Layout.ROW_MAJOR, memory=Memory.HOST, data_types=WEIGHTS),
    OperandSpec(
        "bias", "optional", layout=Layout.ROW_MAJOR, memory=Memory.HOST, data_types=WEIGHTS
    ),
)
_SIZES = ("in_channels", "out_channels", "batch_size", "input_height", "input_width")


def _library_attributes(*more: AttributeSpec) -> tuple[AttributeSpec, ...]:
    return (
        *(attribute(name, INTEGER) for name in _SIZES),
        attribute("kernel_size", INTEGERS),
        attribute("stride", INTEGERS, [1, 1]),
        attribute("padding", INTEGERS, [0, 0]),
        attribute("dilation", INTEGERS, [1, 1]),
        GROUPS,
        *more,
        attribute("dtype", DATA_TYPE, None),
        COMPUTE_CONFIG_ATTRIBUTE,
    )


def _library_image(call: Call) -> numpy.ndarray:
    size = (call["batch_size"], call["input_height"], call["input_width"], call["in_channels"])
    return call.array("input").reshape(size)


def _verify_window(op: CatalogueOp) -> tuple[Window, tuple[int, int, int, int]]:
    """The window of a call and the size of its image, after checking that the attributes agree with
    the operands."""
    window = verified_library_window(op, op.parameter("kernel_size"))
    inputs, outputs, *sizes = (op.parameter(name) for name in _SIZES)
    image = (*sizes, inputs)
    expect_volume(op, image, "input")
    kernel = kernel_of(op, 2)
    require(op, kernel == window.kernel, f"a kernel_size of {kernel}, as the weight has", kernel)
    groups = max(op.parameter("groups"), 1)
    transposed = "output_padding" in {spec.name for spec in op.definition.attributes}
    ends = (inputs, outputs // groups) if transposed else (outputs, inputs // groups)
    expect_channels(op, inputs, outputs, ends)
    return window, image


def _verify_conv2d(op: CatalogueOp) -> None:
    """The attributes say the sizes of image and weight; the result has a row for each window."""
    verify_activation(op)
    window, (images, *size, _) = _verify_window(op)
    expect_result_volume(op, (images, *window.output_sizes(op, size), op.parameter("out_channels")))


def _verify_transposed(op: CatalogueOp) -> None:
    """As for ordinary convolutions; the result has the positions that windows cover."""
    window, (images, *size, _) = _verify_window(op)
    covered = transposed_sizes(window, op, size)
    expect_result_volume(op, (images, *covered, op.parameter("out_channels")))


def _library_conv2d(call: Call) -> numpy.ndarray:
    window = library_window(call, call["kernel_size"])
    result = convolution(
        _library_image(call),
        call.array("weight"),
        window,
        call["groups"],
        arithmetic=call.arithmetic,
    )
    rows = with_bias(call, result).reshape(1, 1, -1, call["out_channels"])
    return activated(rows, call.attributes)


def _bind_image_convolution(
    calls: CppCalls, op: CatalogueOp, name: str, window: Sequence[tuple[Argument, bool]]
) -> None:
    """`window` are the arguments between the kernel and the data type, and whether each is the
    default of the call; those at the end that are need not be written."""
    calls.include(f"ttnn/operations/conv/{name}/{name}.hpp")
    bias = op.optional_operand("bias")
    data_type, config = op.parameter("dtype"), compute_config(calls, op)
    has_config = CONV2D_CONFIG_ATTRIBUTE in op.definition.attributes
    window_config = program_config("conv2d_config")(calls, op) if has_config else NULLOPT
    if window_config == NULLOPT:
        window_config = calls.tuned(CONVOLUTION_CONFIG)
    if config == NULLOPT:
        config = calls.tuned(CONVOLUTION_COMPUTE)
    optionals: list[tuple[Argument, bool]] = [
        (NULLOPT if data_type is None else Text(cpp_text(data_type)), data_type is None),
        (NULLOPT if bias is None else calls[bias], bias is None),
        (window_config, window_config == NULLOPT),
        (config, config == NULLOPT),
        _memory(calls, op),
    ]
    tail = [*window, *optionals]
    while tail and tail[-1][1]:
        tail.pop()
    result = calls.call(
        f"ttnn::{name}",
        calls[op.operand("input")],
        calls[op.operand("weight")],
        calls.device_pointer,
        *(Text(str(op.parameter(size))) for size in _SIZES),
        array_text(op.parameter("kernel_size")),
        *(argument for argument, _ in tail),
        type=f"ttnn::{'Conv2d' if name == 'conv2d' else 'ConvTranspose2d'}ResultWithOptions",
    )
    calls.bind(op.results[0], calls.get(result, 0))


def _memory(calls: CppCalls, op: CatalogueOp) -> tuple[Argument, bool]:
    """The memory configuration of the result: by default in DRAM, or in shards of L1 if the image
    is there."""
    from ttcodegen.dialects.ttnn.placement import placement_of

    placement, image = placement_of(op.results[0]), placement_of(op.operand("input"))
    is_default = all(p.buffer_type != "l1" and p.shards is None for p in (placement, image))
    return (NULLOPT if is_default else calls.memory_config(placement)), is_default


def _array(op: CatalogueOp, name: str) -> tuple[Argument, bool]:
    values = op.parameter(name)
    return array_text(values), values == op.definition.attribute(name).default


def _groups(op: CatalogueOp) -> tuple[Argument, bool]:
    groups = op.parameter("groups")
    return Text(str(groups)), groups == 1


def _cpp_conv2d(calls: CppCalls, op: CatalogueOp) -> None:
    window = [*(_array(op, name) for name in ("stride", "padding", "dilation")), _groups(op)]
    _bind_image_convolution(calls, op, "conv2d", window)


register(
    TTNNDefinition(
        "ttnn.conv2d",
        _LIBRARY_OPERANDS,
        _library_attributes(CONV2D_CONFIG_ATTRIBUTE),
        numpy=_library_conv2d,
        verify=_verify_conv2d,
        compute="convolution",
        result_rules=(ResultRule("attribute"),),
        cpp=_cpp_conv2d,
        flops=convolution_flops,
        nouns=("convolution",),
        traits=Trait.OF_LAYER,
        call_kind=CallKind.CONVOLUTION,
    )
)


def _library_conv_transpose2d(call: Call) -> numpy.ndarray:
    result = transposed_convolution(
        _library_image(call),
        call.array("weight"),
        library_window(call, call["kernel_size"]),
        call["output_padding"],
        call["groups"],
        call.arithmetic,
    )
    return with_bias(call, result).reshape(1, 1, -1, call["out_channels"])


def _cpp_conv_transpose2d(calls: CppCalls, op: CatalogueOp) -> None:
    names = ("stride", "padding", "output_padding", "dilation")
    _bind_image_convolution(
        calls, op, "conv_transpose2d", [*(_array(op, name) for name in names), _groups(op)]
    )


register(
    TTNNDefinition(
        "ttnn.conv_transpose2d",
        _LIBRARY_OPERANDS,
        _library_attributes(attribute("output_padding", INTEGERS, [0, 0])),
        verify=_verify_transposed,
        numpy=_library_conv_transpose2d,
        compute="convolution",
        result_rules=(ResultRule("attribute"),),
        cpp=_cpp_conv_transpose2d,
        flops=transposed_convolution_flops,
        nouns=("convolution",),
        traits=Trait.OF_LAYER,
        call_kind=CallKind.CONVOLUTION,
    )
)
