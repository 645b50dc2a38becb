"""The C++ calls of convolutions, pooling and normalisations, as tt-metal 0.81.1 has them."""

from __future__ import annotations

import re

import pytest

from ttcodegen.compilation import CompileOptions, compile_module
from ttcodegen.foundation.diagnostics import Source

IMAGE = "tensor<1x8x8x32xbf16>"
VECTOR = "tensor<32xbf16>"
PARAMETER = "{ttcore.argument_type = #ttcore.argument_type<parameter>}"
NUMBERS = "stride = array<i32: 1, 1>, padding = array<i32: 0, 0>, dilation = array<i32: 1, 1>"
POOL = f"kernel = array<i32: 2, 2>, {NUMBERS}, ceil_mode = false"


def emitted(*lines: str, arguments: str, result: str) -> str:
    """The C++ of a function with those ops, whose result is `%r`, on one line."""
    body = "\n".join(lines)
    text = f"func.func @f({arguments}) -> {result} {{\n{body}\nreturn %r : {result}\n}}\n"
    module = compile_module(Source("calls.mlir", text), CompileOptions("calls"))
    return " ".join(" ".join(module.files.values()).split())


def without_names(text: str) -> str:
    """The text without the names of arguments."""
    return re.sub(r"/\*\w+=\*/", "", text)


def calls_as(call: str, text: str) -> bool:
    """Returns whether the text has that call; `@` stands for any name or member.

    The names of arguments, and whether a variable is used for the last time, do not matter.
    """
    text = without_names(re.sub(r"last_use\((\w+)\)", r"\1", text))
    call = without_names(call)
    return re.search(re.escape(call).replace("@", r"[\w.]+"), text) is not None


CONVOLUTION = (
    "std::array<uint32_t, 2>{1, 1}, 1, std::nullopt, std::nullopt, tuning::convolution_config, "
    "tuning::convolution_compute)"
)
"""Dilation, groups, and what follows."""
ONE_OP = [
    (
        f'%r = "ttir.softmax"(%x) <{{dimension = -1 : si32}}> : ({IMAGE}) -> {IMAGE}',
        IMAGE,
        "ttnn::softmax(@, 3, std::nullopt, tuning::hifi4_compute)",
    ),
    (
        f'%r = "ttir.rms_norm"(%x, %v) <{{normalized_shape = array<i64: 32>, '
        "epsilon = 1.000000e-05 : f32, operandSegmentSizes = array<i32: 1, 1, 0>}> : "
        f"({IMAGE}, {VECTOR}) -> {IMAGE}",
        IMAGE,
        "ttnn::rms_norm(@, 1e-5f, @)",
    ),
    (
        f'%r = "ttir.layer_norm"(%x, %v) <{{normalized_shape = array<i64: 32>, '
        "epsilon = 1.000000e-05 : f32, operandSegmentSizes = array<i32: 1, 0, 1>}> : "
        f"({IMAGE}, {VECTOR}) -> {IMAGE}",
        IMAGE,
        "ttnn::layer_norm(@, 1e-5f, std::nullopt, @)",
    ),
    (
        f'%r = "ttir.conv2d"(%x, %w) <{{{NUMBERS}, groups = 1 : i32}}> : '
        f"({IMAGE}, tensor<4x32x3x3xbf16>) -> tensor<1x6x6x4xbf16>",
        "tensor<1x6x6x4xbf16>",
        "std::get<0>(ttnn::conv2d(@, @, &device, 32, 4, 1, 8, 8, std::array<uint32_t, 2>{3, 3}, "
        "std::array<uint32_t, 2>{1, 1}, std::array<uint32_t, 2>{0, 0}, " + CONVOLUTION + ")",
    ),
    (
        f'%r = "ttir.conv2d"(%x, %w) <{{stride = 1 : i32, padding = array<i32: 0, 1, 2, 3>, '
        f"dilation = 1 : i32, groups = 1 : i32}}> : "
        f"({IMAGE}, tensor<4x32x3x3xbf16>) -> tensor<1x8x10x4xbf16>",
        "tensor<1x8x10x4xbf16>",
        "std::array<uint32_t, 2>{3, 3}, std::array<uint32_t, 2>{1, 1}, "
        "std::array<uint32_t, 4>{0, 2, 1, 3}, " + CONVOLUTION + ")",
    ),
    (
        f'%r = "ttir.conv_transpose2d"(%x, %t) <{{stride = 2 : i32, padding = 0 : i32, '
        f"dilation = 1 : i32, output_padding = 1 : i32, groups = 1 : i32}}> : "
        f"({IMAGE}, tensor<32x4x2x2xbf16>) -> tensor<1x17x17x4xbf16>",
        "tensor<1x17x17x4xbf16>",
        "ttnn::conv_transpose2d(@, @, &device, 32, 4, 1, 8, 8, "
        "std::array<uint32_t, 2>{2, 2}, std::array<uint32_t, 2>{2, 2}, "
        "std::array<uint32_t, 2>{0, 0}, std::array<uint32_t, 2>{1, 1}, " + CONVOLUTION,
    ),
    (
        f'%r = "ttir.max_pool2d"(%x) <{{{POOL}}}> : ({IMAGE}) -> tensor<1x7x7x32xbf16>',
        "tensor<1x7x7x32xbf16>",
        "ttnn::max_pool2d(@, 1, 8, 8, 32, std::array<uint32_t, 2>{2, 2}, "
        "std::array<uint32_t, 2>{1, 1}, std::array<uint32_t, 2>{0, 0}, "
        "std::array<uint32_t, 2>{1, 1}, false, tuning::activations_memory)",
    ),
    (
        f'%m, %r = "ttir.max_pool2d_with_indices"(%x) <{{{POOL}}}> : ({IMAGE}) -> '
        "(tensor<1x7x7x32xbf16>, tensor<1x7x7x32xi32>)",
        "tensor<1x7x7x32xi32>",
        "false, tuning::activations_memory, std::nullopt, std::nullopt, false, true, true)",
    ),
    (
        f'%r = "ttir.avg_pool2d"(%x) <{{{POOL}}}> : ({IMAGE}) -> tensor<1x7x7x32xbf16>',
        "tensor<1x7x7x32xbf16>",
        "ttnn::avg_pool2d(@, 1, 8, 8, 32, std::array<uint32_t, 2>{2, 2}, "
        "std::array<uint32_t, 2>{1, 1}, std::array<uint32_t, 2>{0, 0}, false, true, "
        "std::nullopt, tuning::activations_memory)",
    ),
    (
        f'%r = "ttir.upsample2d"(%x) <{{scale_factor = array<i32: 2, 3>}}> : ({IMAGE}) -> '
        "tensor<1x16x24x32xbf16>",
        "tensor<1x16x24x32xbf16>",
        ", std::array<int, 2>{2, 3})",
    ),
    (
        f'%r = "ttir.upsample2d"(%x) <{{scale_factor = 2 : si32, mode = "bilinear"}}> : '
        f"({IMAGE}) -> tensor<1x16x16x32xbf16>",
        "tensor<1x16x16x32xbf16>",
        'std::array<int, 2>{2, 2}, "bilinear")',
    ),
]


@pytest.mark.parametrize(("line", "result", "call"), ONE_OP)
def test_call(line, result, call):
    text = emitted(
        line,
        arguments=f"%x: {IMAGE}, %v: {VECTOR} {PARAMETER}, %w: tensor<4x32x3x3xbf16> {PARAMETER}, "
        f"%t: tensor<32x4x2x2xbf16> {PARAMETER}",
        result=result,
    )
    assert calls_as(call, text)


def test_conv3d_names_its_data_type_and_its_groups():
    volume = "tensor<1x4x8x8x64xbf16>"
    text = emitted(
        '%r = "ttir.conv3d"(%x, %w) <{padding = 0 : i32, stride = 1 : i32, groups = 2 : i32}> : '
        f"({volume}, tensor<6x32x1x1x1xbf16>) -> tensor<1x4x8x8x6xbf16>",
        arguments=f"%x: {volume}, %w: tensor<6x32x1x1x1xbf16>",
        result="tensor<1x4x8x8x6xbf16>",
    )
    assert "ttnn::experimental::conv3d(" in text
    assert (
        "&device, std::nullopt, std::nullopt, ttnn::DataType::BFLOAT16, 6, "
        "std::array<uint32_t, 3>{1, 1, 1}, std::array<uint32_t, 3>{1, 1, 1}, "
        "std::array<uint32_t, 3>{0, 0, 0}, std::array<uint32_t, 3>{1, 1, 1}, "
        '"zeros", 2)'
    ) in without_names(text)


def test_batch_norm_passes_statistics_before_scale_and_offset():
    image = "tensor<1x32x8x8xbf16>"
    text = emitted(
        '%r = "ttir.batch_norm_inference"(%x, %s, %o, %m, %v) <{dimension = 1 : i32, '
        f"epsilon = 1.000000e-05 : f32}}> : ({image}, {', '.join([VECTOR] * 4)}) -> {image}",
        arguments=f"%x: {image}, " + ", ".join(f"%{name}: {VECTOR} {PARAMETER}" for name in "somv"),
        result=image,
    )
    assert calls_as(
        "ttnn::batch_norm(@, constants.m, constants.v, /*training=*/false, 1e-5f, "
        "/*momentum=*/0.1F, constants.s, constants.o)",
        text,
    )
