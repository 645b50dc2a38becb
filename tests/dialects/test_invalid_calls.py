"""Calls, allocations and layouts that say what no device can do are refused at the op, whether they
are compiled or verified only."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.dialects.test_invalid_modules import function
from ttcodegen.compilation import CompileOptions, compile_module
from ttcodegen.dialects.operations.verification import verify_module
from ttcodegen.foundation.diagnostics import CompileError, Source
from ttcodegen.frontends import module_for_passes

T = "tensor<32x32xf32>"
CACHE = "tensor<2x4x64x32xbf16>"
ROWS = "tensor<1x4x2x32xbf16>"
PAGES = "tensor<8x4x32x64xbf16>"
VOLUME = "tensor<1x4x8x8x32xbf16>, tensor<32x32x3x3x3xbf16>"
VOLUMES = "tensor<1x2x6x6x32xbf16>"
BIAS = (
    "batch_size = 1 : i32, input_height = 8 : i32, input_width = 8 : i32, in_channels = 32 : i32, "
    "out_channels = 64 : i32, kernel_size = array<i32: 3, 3>, stride = array<i32: 1, 1>, "
    "padding = array<i32: 0, 0>, dilation = array<i32: 1, 1>, "
)


def without_result(op: str, operands: str, attributes: str) -> str:
    """A module of one op that changes its first operand."""
    types = operands.split(", ")
    names = [f"%{index}" for index in range(len(types))]
    taken = ", ".join(f"{name}: {type_}" for name, type_ in zip(names, types, strict=True))
    return (
        f"func.func @f({taken}) -> {types[0]} {{\n"
        f'  "{op}"({", ".join(names)}) <{{{attributes}}}> : ({operands}) -> ()\n'
        f"  return %0 : {types[0]}\n}}\n"
    )


def turned(index: str, tables: str = "tensor<1x1x64x64xbf16>") -> str:
    rows = "tensor<1x8x32x64xbf16>"
    operands = f"{rows}, {tables}, {tables}"
    return function("ttnn.rotary_embedding", operands, rows, f"token_index = {index}")


def allocated(op: str, attributes: str) -> str:
    return function(op, "", T, attributes)


def placed(layout: str) -> str:
    return (
        f"#l = #ttnn.ttnn_layout<{layout}>\n"
        "func.func @f(%x: tensor<64x64xbf16, #l>) -> tensor<64x64xbf16, #l> {\n"
        '  %0 = "ttnn.relu"(%x) : (tensor<64x64xbf16, #l>) -> tensor<64x64xbf16, #l>\n'
        "  return %0 : tensor<64x64xbf16, #l>\n}\n"
    )


L1, DRAM = "#ttnn.buffer_type<l1>", "#ttnn.buffer_type<dram>"
TILE = "!ttcore.tile<32x32, bf16>"
CASES = {
    "a row beyond the input": (
        without_result(
            "ttnn.update_cache", f"{CACHE}, {ROWS}, tensor<1xi32>", "batch_offset = 1 : i32"
        ),
        "expected a batch_offset of 0",
    ),
    "a row before the input": (
        without_result(
            "ttnn.update_cache", f"{CACHE}, {ROWS}, tensor<1xi32>", "batch_offset = -1 : i32"
        ),
        "expected a batch_offset of 0",
    ),
    "a user without a row": (
        without_result(
            "ttnn.update_cache",
            f"{CACHE}, tensor<1x4x1x32xbf16>, tensor<1xi32>",
            "batch_offset = 0 : i32",
        ),
        "a row for each of the 2 users of the cache, found 1",
    ),
    "a position before the first": (turned("-1 : i32"), "a token_index below 64"),
    "a position beyond the tables": (turned("64 : ui32"), "a token_index below 64"),
    "a position that no word holds": (turned("4294967295 : ui32"), "a token_index below 64"),
    "tables of another rank": (turned("0 : ui32", "tensor<64xbf16>"), "rank 4"),
    "a cache of integers": (
        without_result(
            "ttir.paged_update_cache",
            "tensor<2x4x64x32xi32>, tensor<1x2x4x32xi32>, tensor<2xi32>",
            "share_cache = false, operandSegmentSizes = array<i32: 1, 1, 1, 0>",
        ),
        "expected an operand 'cache' of floats, found i32",
    ),
    "a query of integers": (
        function(
            "ttir.paged_scaled_dot_product_attention_decode",
            f"tensor<1x1x4x64xi32>, {PAGES}, {PAGES}, tensor<1x4xi32>, tensor<1x1x4x64xi32>, "
            "tensor<1xi32>",
            "tensor<1x1x4x64xi32>",
            "is_causal = true, operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 0, 1, 0>",
        ),
        "expected an operand 'query' of floats, found i32",
    ),
    "a destination of another shape": (
        function(
            "ttir.paged_scaled_dot_product_attention_decode",
            f"tensor<1x1x4x64xbf16>, {PAGES}, {PAGES}, tensor<1x4xi32>, tensor<1x4x64xbf16>, "
            "tensor<1xi32>",
            "tensor<1x1x4x64xbf16>",
            "is_causal = true, operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 0, 1, 0>",
        ),
        "expected a destination of the shape of the result, (1, 1, 4, 64), found (1, 4, 64)",
    ),
    "a destination of another rank": (
        function("ttir.to_layout", f"{T}, tensor<1x32x32xbf16>", "tensor<32x32xbf16>"),
        "expected a destination of the shape of the result, (32, 32), found (1, 32, 32)",
    ),
    "input channels that there are not": (
        function(
            "ttnn.conv3d",
            VOLUME,
            VOLUMES,
            "kernel_size = array<i32: 3, 3, 3>, in_channels = -1 : i32",
        ),
        "expected in_channels of 32, as the operands have, found -1",
    ),
    "output channels that there are not": (
        function(
            "ttnn.conv3d",
            VOLUME,
            VOLUMES,
            "kernel_size = array<i32: 3, 3, 3>, in_channels = 32 : i32, out_channels = 33 : i32",
        ),
        "expected out_channels of 32, as the operands have, found 33",
    ),
    "a bias of another length": (
        function(
            "ttnn.prepare_conv2d_bias",
            "tensor<1x1x1x32xbf16>",
            "tensor<1x1x1x32xbf16>",
            BIAS + "groups = 1 : i32",
        ),
        "expects a bias (1, 1, 1, 64), found (1, 1, 1, 32)",
    ),
    "a bias of another rank": (
        function(
            "ttnn.prepare_conv2d_bias",
            "tensor<64xbf16>",
            "tensor<64xbf16>",
            BIAS + "groups = 1 : i32",
        ),
        "expects a bias (1, 1, 1, 64), found (64,)",
    ),
    "groups that do not divide": (
        function(
            "ttnn.prepare_conv2d_bias",
            "tensor<1x1x1x64xbf16>",
            "tensor<1x1x1x64xbf16>",
            BIAS + "groups = 1000 : i32",
        ),
        "expects groups that divide 32 inputs and 64 outputs, found 1000",
    ),
    "a zero that no element is": (
        function(
            "ttir.dequantize",
            "tensor<4x4xi8>",
            "tensor<4x4xf32>",
            "scale = [0.5 : f32], zero_point = array<i32: 1000>",
        ),
        "expected -128 to 255 in 'zero_point', as i8, found 1000",
    ),
    "an infinite scale": (
        function(
            "ttir.dequantize",
            "tensor<4x4xi8>",
            "tensor<4x4xf32>",
            "scale = [0x7F800000 : f32], zero_point = array<i32: 0>",
        ),
        "expected finite, positive numbers in 'scale'",
    ),
    "shards along a dimension that there is not": (
        function(
            "ttir.mesh_shard",
            "tensor<2x32x64x64xbf16>",
            "tensor<1x32x64x64xbf16>",
            "shard_dims = array<i64: 1000, 0>, shard_direction = "
            "#ttcore.shard_direction<full_to_shard>, shard_shape = array<i64: 2, 1, 1, 1>, "
            "shard_type = #ttcore.shard_type<devices>",
        ),
        "dimension 1000 is out of range for a tensor of rank 4",
    ),
    "places of no integers": (
        function(
            "ttir.slice_dynamic",
            "tensor<64xbf16>, tensor<1xf32>, tensor<1xi32>",
            "tensor<32xbf16>",
            "step = [1 : i32]",
        ),
        "expected an operand 'begins' of integers, found f32",
    ),
    "a range without an end": (
        function("ttir.rand", "", T, "low = 0.0 : f32, high = 0x7F800000 : f32, seed = 1 : ui32"),
        "expected finite low < high, found 0.0 and inf",
    ),
    "a range of no numbers": (
        function("ttir.rand", "", T, "low = 0x7FC00000 : f32, high = 1.0 : f32, seed = 1 : ui32"),
        "expected finite low < high, found nan and 1.0",
    ),
    "no bytes of TTNN": (
        allocated("ttnn.alloc", "address = 4096 : i64, size = 0 : i64"),
        "'ttnn.alloc' allocates some bytes, found a size of 0",
    ),
    "no bytes of TTIR": (
        allocated(
            "ttir.alloc",
            "address = 4096 : i64, size = 0 : i64, memory_space = #ttcore.memory_space<l1>",
        ),
        "'ttir.alloc' allocates some bytes, found a size of 0",
    ),
    "an address of the host": (
        allocated(
            "ttir.alloc",
            "address = 64 : i64, size = 4096 : i64, memory_space = #ttcore.memory_space<system>",
        ),
        "'ttir.alloc' has an address 0 on the host, found 64",
    ),
    "no address of the device": (
        allocated("ttnn.alloc", f"address = 0 : i64, size = 4096 : i64, buffer_type = {DRAM}"),
        "'ttnn.alloc' has an address other than 0 on the device, found 0",
    ),
    "an address that no word holds": (
        allocated("ttir.alloc", "address = -1 : i64, size = 4096 : i64"),
        "'address' is a number of 64 bits without a sign, found -1",
    ),
    "a grid without cores": (
        placed(f"(d0, d1) -> (d0, d1), <0x1>, memref<2x2x{TILE}, {L1}>, <block_sharded>"),
        "a grid has rows and columns, found 0x1",
    ),
    "a grid of three dimensions": (
        placed(f"(d0, d1) -> (d0, d1), <1x1x1>, memref<2x2x{TILE}, {DRAM}>, <interleaved>"),
        "the layout is malformed",
    ),
    "a shard of nothing": (
        placed(f"(d0, d1) -> (d0, d1), <1x1>, memref<0x2x{TILE}, {L1}>, <block_sharded>"),
        "a shard has rows and columns, found 0x64",
    ),
    "rows before the first": (
        placed(f"(d0, d1) -> (d0 - 5, d1), <1x1>, memref<2x2x{TILE}, {DRAM}>, <interleaved>"),
        "the rows and columns of a tensor are not (d0 - 5, d1)",
    ),
    "block floats in rows": (
        placed(f"(d0, d1) -> (d0, d1), <1x1>, memref<64x64xbfp_bf8, {DRAM}>, <interleaved>"),
        "elements of bfp_bf8 are in tiles",
    ),
    "a device of no module": (
        "ttcore.device_module {\n}\n",
        "'ttcore.device_module' is around one module, found 0",
    ),
    "a device of two modules": (
        "ttcore.device_module {\n  builtin.module {\n  }\n  builtin.module {\n  }\n}\n",
        "'ttcore.device_module' is around one module, found 2",
    ),
}


def compile_(source: Source) -> None:
    compile_module(source, CompileOptions("wrong"))


def verify(source: Source) -> None:
    verify_module(module_for_passes(source))


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("way", [compile_, verify])
def test_what_no_device_can_do(name: str, way: Callable[[Source], object]) -> None:
    text, expected = CASES[name]
    with pytest.raises(CompileError) as error:
        way(Source("wrong.mlir", text))
    assert expected in " ".join(each.message for each in error.value.diagnostics)


def test_cores_that_the_chip_has_not() -> None:
    cores = "core_ranges = <[#ttnn.core_range<(100, 0), (101, 0)>]>"
    text = placed(
        f"(d0, d1) -> (d0, d1), <1x2>, memref<2x1x{TILE}, {L1}>, <width_sharded>, {cores}"
    )
    with pytest.raises(CompileError, match="a tensor is on cores up to column 101 and row 0"):
        compile_(Source("wrong.mlir", text))
