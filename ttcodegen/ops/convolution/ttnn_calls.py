"""TTNN calls of convolutions and pools."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ttcodegen.dialects.core.datatypes import DataType, shape_of
from ttcodegen.dialects.operations.attribute_kinds import BOOLEAN, DATA_TYPE, INTEGER, INTEGERS
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.foundation.lazy_numpy import np
from ttcodegen.ops.convolution.convolution import (
    expect_bias,
    expect_channels,
    expect_groups,
    kernel_of,
    transposed_sizes,
    with_bias,
)
from ttcodegen.ops.convolution.pooling import (
    avg_pool,
    max_pool,
    max_pool_indices,
    seen,
    window_counts,
)
from ttcodegen.ops.convolution.prepared_weights import (
    LIBRARY_SIZES,
    WEIGHTS,
    has_prepared_weight,
    image_attributes,
    image_configs,
    plain_weight,
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
    NULLOPT,
    Argument,
    CppCalls,
    Text,
    bind_elements,
    compute_config,
    cpp_text,
    trimmed,
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
from ttcodegen.ops.core.dimensions import (
    expect_rank,
    expect_result_volume,
    expect_volume,
    require,
)
from ttcodegen.ops.core.engine import cut, element_product, in_destination
from ttcodegen.ops.core.traits import (
    CallKind,
    Trait,
    convolution_flops,
    transposed_convolution_flops,
    window_flops,
)
from ttcodegen.ops.elementwise.activations import activated, verify_activation

if TYPE_CHECKING:
    import numpy


# conv2d and conv_transpose2d

ACTIVATIONS = (DataType.BFLOAT16, DataType.FLOAT32, DataType.BFLOAT8_B)


# Tiled and row-major images are supported (docs/library-rules.md).
_INPUT_IMAGE = OperandSpec("input", layout=None, data_types=ACTIVATIONS)
_WEIGHT = OperandSpec("weight", layout=Layout.ROW_MAJOR, memory=Memory.HOST, data_types=WEIGHTS)
_LIBRARY_OPERANDS = (_INPUT_IMAGE, _WEIGHT, replace(_WEIGHT, name="bias", count="optional"))
_PREPARED_OPERANDS = (
    _INPUT_IMAGE,
    *(replace(spec, prepared=has_prepared_weight) for spec in _LIBRARY_OPERANDS[1:]),
)


def _library_attributes(*more: AttributeSpec) -> tuple[AttributeSpec, ...]:
    return (
        *image_attributes(),
        *more,
        attribute("dtype", DATA_TYPE, None),
        COMPUTE_CONFIG_ATTRIBUTE,
    )


def _library_image(call: Call) -> numpy.ndarray:
    size = (call["batch_size"], call["input_height"], call["input_width"], call["in_channels"])
    return call.array("input").reshape(size)


def _verify_window(op: CatalogueOp) -> tuple[Window, tuple[int, int, int, int]]:
    """Returns window and image size of a call, verified against the operands."""
    window = verified_library_window(op, op.parameter("kernel_size"))
    inputs, outputs, *sizes = (op.parameter(name) for name in LIBRARY_SIZES)
    image = (*sizes, inputs)
    expect_volume(op, image, "input")
    groups = max(op.parameter("groups"), 1)
    if op.definition.short_name == "conv2d" and has_prepared_weight(op):
        expect_groups(op, inputs, outputs)
        expect_bias(op, outputs)
        return window, image
    kernel = kernel_of(op, 2)
    require(op, kernel == window.kernel, f"a kernel_size of {kernel}, as the weight has", kernel)
    transposed = "output_padding" in {spec.name for spec in op.definition.attributes}
    ends = (inputs, outputs // groups) if transposed else (outputs, inputs // groups)
    expect_channels(op, inputs, outputs, ends)
    return window, image


def _expect_rows(op: CatalogueOp, image: Sequence[int]) -> None:
    """Raises VerifyException unless results are of rank 4 with the volume of the image.

    The form is (1, 1, N*H*W, C); older modules declare (N, H, W, C).
    """
    bias = "bias" in {spec.name for spec in op.definition.operands} and op.optional_operand("bias")
    expect_rank(op, 4, "input", *(["bias"] if bias else []))
    for result in op.results:
        shape = shape_of(result.type)
        require(op, len(shape) == 4, "a result of rank 4", shape)
    expect_result_volume(op, image)


def _verify_conv2d(op: CatalogueOp) -> None:
    """The attributes match image and weight; the result has a row for each window."""
    verify_activation(op)
    window, (images, *size, _) = _verify_window(op)
    _expect_rows(op, (images, *window.output_sizes(op, size), op.parameter("out_channels")))


def _verify_transposed(op: CatalogueOp) -> None:
    """The attributes match image and weight; the result has the positions that windows cover."""
    window, (images, *size, _) = _verify_window(op)
    covered = transposed_sizes(window, op, size)
    _expect_rows(op, (images, *covered, op.parameter("out_channels")))


def _rows_of_image(image: numpy.ndarray) -> numpy.ndarray:
    """Reshapes images to rows of channels, also without rows."""
    return image.reshape(1, 1, math.prod(image.shape[:-1]), image.shape[-1])


def _library_conv2d(call: Call) -> numpy.ndarray:
    window = library_window(call, call["kernel_size"])
    result = convolution(
        _library_image(call),
        plain_weight(call),
        window,
        call["groups"],
        arithmetic=call.arithmetic,
    )
    rows = _rows_of_image(with_bias(call, result))
    return activated(rows, call.attributes)


def _bind_image_convolution(
    calls: CppCalls, op: CatalogueOp, name: str, window: Sequence[tuple[Argument, bool]]
) -> None:
    """Emits a convolution call.

    `window` are the arguments between kernel and data type, with True for those that equal the
    default; trailing defaults are left out.
    """
    calls.include(f"ttnn/operations/conv/{name}/{name}.hpp")
    bias = op.optional_operand("bias")
    data_type = op.parameter("dtype")
    window_config, config = image_configs(calls, op)
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
        *(Text(str(op.parameter(size))) for size in LIBRARY_SIZES),
        array_text(op.parameter("kernel_size")),
        *(argument for argument, _ in tail),
        type=f"ttnn::{'Conv2d' if name == 'conv2d' else 'ConvTranspose2d'}ResultWithOptions",
    )
    calls.bind(op.results[0], calls.get(result, 0))


def _memory(calls: CppCalls, op: CatalogueOp) -> tuple[Argument, bool]:
    """Memory config of the result, and True if it is the default.

    By default the result is in DRAM, or in sharded L1 if the image is.
    """
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
        _PREPARED_OPERANDS,
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
        block_floats=("input",),
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
    return _rows_of_image(with_bias(call, result))


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


# Pools

_HEADER = "ttnn/operations/pool/generic/generic_pools.hpp"

_POOL_SIZES = ("batch_size", "input_height", "input_width", "channels")
_LIBRARY = (
    *(attribute(name, INTEGER) for name in _POOL_SIZES),
    attribute("kernel_size", INTEGERS),
    attribute("stride", INTEGERS),
    attribute("padding", INTEGERS, [0, 0]),
    attribute("ceil_mode", BOOLEAN, False),
)
_DILATION = attribute("dilation", INTEGERS, [1, 1])
# Tiled and row-major images are supported, of bf16 only (docs/library-rules.md).
_INPUT = (OperandSpec("input", layout=None, data_types=(DataType.BFLOAT16,)),)
_POOLED = ResultRule(DataType.BFLOAT16, Layout.ROW_MAJOR)


def _verify_pool(op: CatalogueOp) -> None:
    """The attributes give the size of the image; results have a row for each window."""
    images, height, width, channels = (op.parameter(name) for name in _POOL_SIZES)
    expect_volume(op, (images, height, width, channels), "input")
    window = verified_library_window(op, op.parameter("kernel_size"))
    (before, after), (left, _) = window.padding
    rows, columns = window.kernel
    # The library does not check the padding on the right (pool_utils.cpp).
    require(
        op,
        max(before, after) <= rows // 2 and left <= columns // 2,
        f"padding of at most half of the kernel {rows}x{columns}",
        f"{before}, {after} for rows and {left} for columns",
    )
    windows = window.output_sizes(op, (height, width))
    _expect_rows(op, (images, *windows, channels))


def _pool_image(call: Call) -> numpy.ndarray:
    return call.array("input").reshape([call[name] for name in _POOL_SIZES])


def _pixels(call: Call, image: numpy.ndarray) -> numpy.ndarray:
    """Pixels as the library gives them: rows, or an image if it pools slices of one."""
    return image.reshape(call.results[0].shape)


def _library_max_pool2d(call: Call) -> numpy.ndarray:
    return _pixels(call, max_pool(_pool_image(call), library_window(call, call["kernel_size"])))


def _library_max_pool2d_with_indices(call: Call) -> list[numpy.ndarray]:
    window = library_window(call, call["kernel_size"])
    return [_pixels(call, array) for array in max_pool_indices(_pool_image(call), window)]


def _reduced_at_once(channels: int) -> int:
    """Returns the number of window elements that the library reduces at a time."""
    return 16 if 1 <= channels % 32 <= 16 else 32


def _pool_row(attribute_of: Callable[[str], Any]) -> str:
    """Selects the compute defaults: means of large windows have 32-bit sums."""
    elements = math.prod(attribute_of("kernel_size"))
    return "large_pool" if elements > _reduced_at_once(attribute_of("channels")) else "pool"


def _library_avg_pool2d(call: Call) -> numpy.ndarray:
    """Device arithmetic: elements are multiplied with 1/count, truncated to bfloat16."""
    image, window = _pool_image(call), library_window(call, call["kernel_size"])
    padding, arithmetic = call["count_include_pad"], call.arithmetic
    if arithmetic is None:
        return _pixels(call, avg_pool(image, window, padding))
    _, height, width, channels = image.shape
    counts = window_counts(window, height, width, padding)
    shares = np.where(counts > 0, 1 / np.maximum(counts, 1), 0).astype(np.float32)
    shares = cut(shares, 7)
    at_once = _reduced_at_once(channels)
    sums = np.float32(0)
    views = seen(image, window)
    for number, view in enumerate(views, 1):
        sums = sums + element_product(view, shares, arithmetic)
        if number % at_once == 0:
            sums = in_destination(sums, arithmetic)
    return _pixels(call, in_destination(np.asarray(sums), arithmetic))


def _arguments(calls: CppCalls, op: CatalogueOp, *arrays: str) -> list[Argument]:
    calls.include(_HEADER)
    return [
        calls[op.operand("input")],
        *(Text(str(op.parameter(name))) for name in _POOL_SIZES),
        *(array_text(op.parameter(name)) for name in ("kernel_size", "stride", "padding", *arrays)),
        Text(cpp_text(bool(op.parameter("ceil_mode")))),
    ]


def _pool_memory(calls: CppCalls, op: CatalogueOp) -> Argument:
    """Memory config of the result; by default the library leaves it sharded in L1."""
    from ttcodegen.dialects.ttnn.placement import placement_of

    return calls.memory_config(placement_of(op.results[0]))


def _cpp_max_pool2d(calls: CppCalls, op: CatalogueOp) -> None:
    arguments = [*_arguments(calls, op, "dilation"), _pool_memory(calls, op)]
    if len(op.results) == 2:
        deallocate_input, reallocate_halo_output, return_indices = "false", "true", "true"
        flags = (deallocate_input, reallocate_halo_output, return_indices)
        arguments += [NULLOPT, NULLOPT, *(Text(flag) for flag in flags)]
    call = calls.call("ttnn::max_pool2d", *arguments, type="std::vector<ttnn::Tensor>")
    bind_elements(calls, op, call)


def _cpp_avg_pool2d(calls: CppCalls, op: CatalogueOp) -> None:
    arguments = [
        *_arguments(calls, op),
        Text(cpp_text(bool(op.parameter("count_include_pad")))),
        NULLOPT,
        _pool_memory(calls, op),
        NULLOPT,  # slices
        NULLOPT,  # shard scheme
        compute_config(calls, op),
    ]
    calls.bind(op.results[0], calls.call("ttnn::avg_pool2d", *trimmed(arguments)))


register(
    TTNNDefinition(
        "ttnn.max_pool2d",
        _INPUT,
        (*_LIBRARY, _DILATION),
        verify=_verify_pool,
        numpy=_library_max_pool2d,
        result_rules=(_POOLED,),
        cpp=_cpp_max_pool2d,
        flops=window_flops,
        nouns=("pooled",),
        call_kind=CallKind.POOLING,
    )
)

register(
    TTNNDefinition(
        "ttnn.max_pool2d_with_indices",
        _INPUT,
        (*_LIBRARY, _DILATION),
        results=2,
        verify=_verify_pool,
        numpy=_library_max_pool2d_with_indices,
        result_rules=(_POOLED, ResultRule("declared", Layout.ROW_MAJOR)),
        cpp=_cpp_max_pool2d,
        flops=window_flops,
        nouns=("pooled", "indices"),
    )
)

register(
    TTNNDefinition(
        "ttnn.avg_pool2d",
        _INPUT,
        (*_LIBRARY, attribute("count_include_pad", BOOLEAN, True), COMPUTE_CONFIG_ATTRIBUTE),
        verify=_verify_pool,
        numpy=_library_avg_pool2d,
        compute=_pool_row,
        result_rules=(_POOLED,),
        cpp=_cpp_avg_pool2d,
        flops=window_flops,
        nouns=("pooled",),
        call_kind=CallKind.POOLING,
    )
)
