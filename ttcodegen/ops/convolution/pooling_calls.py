"""Calls of the library's pools."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.dialects.operations.attribute_kinds import BOOLEAN, INTEGER, INTEGERS
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.foundation.lazy_numpy import np
from ttcodegen.ops.convolution.pooling import (
    avg_pool,
    max_pool,
    max_pool_indices,
    seen,
    window_counts,
)
from ttcodegen.ops.convolution.sliding_window import (
    array_text,
    library_window,
    verified_library_window,
)
from ttcodegen.ops.core.calls import (
    COMPUTE_CONFIG_ATTRIBUTE,
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
    Call,
    Layout,
    OperandSpec,
    ResultRule,
    TTNNDefinition,
    attribute,
    register,
)
from ttcodegen.ops.core.engine import cut, element_product, in_destination
from ttcodegen.ops.core.shape_checks import expect_result_volume, expect_volume
from ttcodegen.ops.core.traits import CallKind
from ttcodegen.ops.core.work import window_flops

if TYPE_CHECKING:
    import numpy


_HEADER = "ttnn/operations/pool/generic/generic_pools.hpp"

_SIZES = ("batch_size", "input_height", "input_width", "channels")
_LIBRARY = (
    *(attribute(name, INTEGER) for name in _SIZES),
    attribute("kernel_size", INTEGERS),
    attribute("stride", INTEGERS),
    attribute("padding", INTEGERS, [0, 0]),
    attribute("ceil_mode", BOOLEAN, False),
)
_DILATION = attribute("dilation", INTEGERS, [1, 1])
# Tiles are taken as well as rows, but of bf16 only (docs/library-rules.md).
_INPUT = (OperandSpec("input", layout=None, data_types=(DataType.BFLOAT16,)),)
_POOLED = ResultRule(DataType.BFLOAT16, Layout.ROW_MAJOR)


def _verify_pool(op: CatalogueOp) -> None:
    """The attributes say the size of the image; results have a row for each window."""
    images, height, width, channels = (op.parameter(name) for name in _SIZES)
    expect_volume(op, (images, height, width, channels), "input")
    window = verified_library_window(op, op.parameter("kernel_size"))
    windows = window.output_sizes(op, (height, width))
    expect_result_volume(op, (images, *windows, channels))


def _library_image(call: Call) -> numpy.ndarray:
    return call.array("input").reshape([call[name] for name in _SIZES])


def _rows(image: numpy.ndarray) -> numpy.ndarray:
    return image.reshape(1, 1, -1, image.shape[-1])


def _library_max_pool2d(call: Call) -> numpy.ndarray:
    return _rows(max_pool(_library_image(call), library_window(call, call["kernel_size"])))


def _library_max_pool2d_with_indices(call: Call) -> list[numpy.ndarray]:
    window = library_window(call, call["kernel_size"])
    return [_rows(array) for array in max_pool_indices(_library_image(call), window)]


def _reduced_at_once(channels: int) -> int:
    """Counts the window elements that the library reduces at a time."""
    return 16 if 1 <= channels % 32 <= 16 else 32


def _pool_row(attribute_of: Callable[[str], Any]) -> str:
    """Means of large windows have sums of 32 bits by default."""
    elements = math.prod(attribute_of("kernel_size"))
    return "large_pool" if elements > _reduced_at_once(attribute_of("channels")) else "pool"


def _library_avg_pool2d(call: Call) -> numpy.ndarray:
    """Each element is multiplied with one by their number, which is cut to bfloat16."""
    image, window = _library_image(call), library_window(call, call["kernel_size"])
    padding, arithmetic = call["count_include_pad"], call.arithmetic
    if arithmetic is None:
        return _rows(avg_pool(image, window, padding))
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
    return _rows(in_destination(np.asarray(sums), arithmetic))


def _arguments(calls: CppCalls, op: CatalogueOp, *arrays: str) -> list[Argument]:
    calls.include(_HEADER)
    return [
        calls[op.operand("input")],
        *(Text(str(op.parameter(name))) for name in _SIZES),
        *(array_text(op.parameter(name)) for name in ("kernel_size", "stride", "padding", *arrays)),
        Text(cpp_text(bool(op.parameter("ceil_mode")))),
    ]


def _memory(calls: CppCalls, op: CatalogueOp) -> Argument:
    """By default the library leaves its result in L1, in shards."""
    from ttcodegen.dialects.ttnn.placement import placement_of

    return calls.memory_config(placement_of(op.results[0]))


def _cpp_max_pool2d(calls: CppCalls, op: CatalogueOp) -> None:
    arguments = [*_arguments(calls, op, "dilation"), _memory(calls, op)]
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
        _memory(calls, op),
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
