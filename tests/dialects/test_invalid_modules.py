"""Modules that contradict themselves are refused at the op, in all dialects that are read and by
all ways to compile and translate them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ttcodegen.compilation import CompileOptions, compile_module
from ttcodegen.foundation.diagnostics import CompileError, Source
from ttcodegen.frontends import module_for_passes
from ttcodegen.translation import ttnn_to_flatbuffer

T, V = "tensor<4x32xf32>", "tensor<32xf32>"
IMAGE = "tensor<1x8x8x32xbf16>"
FILTER = "tensor<32x32x3x3xbf16>"


def function(op: str, operands: str, result: str, attributes: str = "") -> str:
    """A module of one op; its operands are the arguments."""
    types = operands.split(", ") if operands else []
    names = [f"%{index}" for index in range(len(types))]
    taken = ", ".join(f"{name}: {type_}" for name, type_ in zip(names, types, strict=True))
    given = f" <{{{attributes}}}>" if attributes else ""
    return (
        f"func.func @f({taken}) -> {result} {{\n"
        f'  %r = "{op}"({", ".join(names)}){given} : ({operands}) -> {result}\n'
        f"  return %r : {result}\n}}\n"
    )


def window(padding: str) -> str:
    return (
        f"stride = array<i32: 1, 1>, padding = array<i32: {padding}>, "
        "dilation = array<i32: 1, 1>, groups = 1 : i32"
    )


CASES = {
    "an operand too many": (function("ttir.empty", T, T), "ttir.empty takes no operands, found 1"),
    "an operand of its own as destination": (
        function("ttir.abs", T, T).replace("(%0)", "(%0, %0)").replace(f"({T})", f"({T}, {T})"),
        "ttir.abs takes 'input', found 2",
    ),
    "a negative epsilon": (
        function(
            "ttir.rms_norm",
            T,
            T,
            "normalized_shape = array<i64: 32>, epsilon = -9.0e18 : f32, "
            "operandSegmentSizes = array<i32: 1, 0, 0>",
        ),
        "attribute 'epsilon' should be a finite number of 0 or more",
    ),
    "too many repeats": (
        function(
            "ttir.repeat_interleave",
            "tensor<0x4xf32>",
            "tensor<0x4xf32>",
            "repeats = 2147483648 : ui32, dim = 0 : si32",
        ),
        "expected repeats from 1 to 2147483647, found 2147483648",
    ),
    "padding without limit": (
        function(
            "ttir.conv2d",
            f"{IMAGE}, {FILTER}",
            "tensor<1x3x6x32xbf16>",
            window("2147483647, 0, 2147483647, 0").replace("1, 1>, pad", "2000000000, 1>, pad"),
        ),
        "padding of at most 65536 is supported, found 2147483647",
    ),
    "padding of three numbers": (
        function("ttir.conv2d", f"{IMAGE}, {FILTER}", IMAGE, window("1, 1, 1")),
        "expected 1, 2 or 4 numbers in 'padding', found 3",
    ),
    "a cast in a reshape": (
        function("ttir.reshape", T, "tensor<128xbf16>", "shape = [128 : i32]"),
        "expected a result of f32, as the operand 'input', found bf16",
    ),
    "an index beyond the end": (
        function(
            "ttir.index",
            T,
            T,
            "dim = 1 : i32, begin = 0 : i32, end = 40 : i32, step = 1 : i32",
        ),
        "0:40:1 is out of range in dimension 1",
    ),
    "factors that do not fit": (
        function("ttnn.matmul", "tensor<32x64xbf16>, tensor<96x32xbf16>", "tensor<32x32xbf16>"),
        "cannot multiply (32, 64) and (96, 32)",
    ),
    "a constant of a tensor": (
        function("ttir.constant", T, T, f"value = dense<1.0> : {T}"),
        "ttir.constant takes no operands, found 1",
    ),
    "zeros of a tensor": (
        function("ttir.zeros", T, T, "shape = array<i32: 4, 32>"),
        "ttir.zeros takes no operands, found 1",
    ),
    "a product of another rank": (
        function("ttnn.matmul", "tensor<4x32xbf16>, tensor<32x8xbf16>", "tensor<1x4x8xbf16>"),
        "expected a result of shape (4, 8), found (1, 4, 8)",
    ),
    "a product without its batch": (
        function("ttnn.linear", "tensor<1x4x32xbf16>, tensor<32x8xbf16>", "tensor<4x8xbf16>"),
        "expected a result of shape (1, 4, 8), found (4, 8)",
    ),
    "a dimension that there is not": (
        function("ttnn.softmax", T, T, "dimension = 99 : si32"),
        "dimension 99 is out of range for a tensor of rank 2",
    ),
    "another volume": (
        function("ttnn.reshape", T, "tensor<64xf32>", "shape = [64 : i32]"),
        "the number of elements differs",
    ),
    "no permutation": (
        function("ttnn.permute", T, T, "permutation = array<i64: 0, 0>"),
        "(0, 0) is no permutation of the dimensions",
    ),
    "a step of 0": (
        function(
            "ttnn.slice_static",
            T,
            T,
            "begins = [0 : i32, 0 : i32], ends = [4 : i32, 32 : i32], step = [0 : i32, 1 : i32]",
        ),
        "0:4:0 is out of range in dimension 0",
    ),
    "another stride": (
        function(
            "ttnn.conv2d",
            f"tensor<1x1x64x32xbf16>, {FILTER}",
            "tensor<1x1x36x32xbf16>",
            "in_channels = 32 : i32, out_channels = 32 : i32, batch_size = 1 : i32, "
            "input_height = 8 : i32, input_width = 8 : i32, kernel_size = array<i32: 3, 3>, "
            + window("0, 0").replace("1, 1>, pad", "1, 7>, pad"),
        ),
        "expected a result of the elements of (1, 6, 1, 32), found (1, 1, 36, 32)",
    ),
    "a mode that there is not": (
        function(
            "ttnn.upsample",
            IMAGE,
            "tensor<1x16x16x32xbf16>",
            'scale_factor = 2 : si32, mode = "x"',
        ),
        "expected a mode of nearest or bilinear, found 'x'",
    ),
    "an operation without one of its operands": (
        f"func.func @f(%a: {T}) -> tensor<4x32xi1> {{\n"
        f"  %0 = tosa.greater_equal %a : ({T}) -> tensor<4x32xi1>\n"
        "  return %0 : tensor<4x32xi1>\n}\n",
        "tosa.greater_equal: expected 2 operands, found 1",
    ),
    "a dimension of the result for two of the operand": (
        "func.func @f(%a: tensor<1x1xf32>) -> tensor<4x32xf32> {\n"
        "  %0 = stablehlo.broadcast_in_dim %a, dims = [0, 0] : (tensor<1x1xf32>) -> "
        "tensor<4x32xf32>\n  return %0 : tensor<4x32xf32>\n}\n",
        "dimensions [0, 0] name one of the result twice",
    ),
    "a slice that begins beyond its end": (
        function(
            "ttir.slice_static",
            "tensor<32xf32>",
            "tensor<0xf32>",
            "begins = [20 : i32], ends = [10 : i32], step = [1 : i32]",
        ),
        "20:10:1 begins beyond its end in dimension 0 of (32,)",
    ),
    "a step that leads away from the end": (
        function(
            "ttir.slice_static",
            "tensor<32xf32>",
            "tensor<0xf32>",
            "begins = [10 : i32], ends = [20 : i32], step = [-1 : i32]",
        ),
        "10:20:-1 begins before its end in dimension 0 of (32,)",
    ),
    "more padding than half of a pool's kernel": (
        function(
            "ttnn.max_pool2d",
            "tensor<1x1x64x32xbf16>",
            "tensor<1x1x121x32xbf16>",
            "batch_size = 1 : si32, input_height = 8 : si32, input_width = 8 : si32, "
            "channels = 32 : si32, kernel_size = array<i32: 2, 2>, stride = array<i32: 1, 1>, "
            "padding = array<i32: 2, 2>, dilation = array<i32: 1, 1>, ceil_mode = false",
        ),
        "expected padding of at most half of the kernel 2x2, found 2, 2 for rows",
    ),
    "a gathered dimension that there is not": (
        function(
            "ttnn.all_gather",
            T,
            T,
            "all_gather_dim = 2 : si32, cluster_axis = 1 : ui32, num_links = 1 : ui32",
        ),
        "dimension 2 is out of range for a tensor of rank 2",
    ),
    "a reduction that the library has not": (
        function(
            "ttnn.reduce_scatter",
            T,
            T,
            "scatter_dim = 1 : si32, cluster_axis = 1 : ui32, "
            "reduce_type = #ttcore.reduce_type<max>",
        ),
        "expected a reduce_type of 'sum', as the library reduces",
    ),
    "a cast between chips": (
        function(
            "ttir.all_to_all",
            "tensor<1x1x32x32xf32>",
            "tensor<1x1x32x32xi32>",
            "replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, concat_dim = 3 : si32, "
            "split_count = 2 : si32, split_dim = 3 : si32",
        ),
        "expected a result of f32, as the operand 'input', found i32",
    ),
    "groups of groups": (
        function(
            "ttir.collective_broadcast",
            T,
            T,
            "replica_groups = dense<[[[0], [1]]]> : tensor<1x2x1xi64>",
        ),
        "attribute 'replica_groups' should be rows of chips",
    ),
    "a cast in a slice": (
        function(
            "ttir.slice_dynamic",
            f"{T}, tensor<2xi32>, tensor<2xi32>",
            "tensor<2x16xbf16>",
            "step = [1 : i32, 1 : i32]",
        ),
        "expected a result of f32, as the operand 'input', found bf16",
    ),
    "a zero point beyond its storage": (
        function("ttir.dequantize", "tensor<4x32xi8>", T).replace(
            "xi8>", "x!quant.uniform<i8:f32, 0.1:300>>"
        ),
        "the zero point 300 is not one of the stored integers, -128 to 127",
    ),
    "an axis that a mesh has not": (
        "func.func @f(%q: tensor<1x8x32x64xbf16>, %k: tensor<1x1x32x64xbf16>, "
        "%w: tensor<1x8x32x1xbf16>) -> tensor<1x1x32x32xbf16> {\n"
        "  %0 = stablehlo.custom_call @tt.indexer_score_dsa(%q, %k, %w) {api_version = 0 : i32, "
        'mhlo.frontend_attributes = {cluster_axis = "-1"}} : (tensor<1x8x32x64xbf16>, '
        "tensor<1x1x32x64xbf16>, tensor<1x8x32x1xbf16>) -> tensor<1x1x32x32xbf16>\n"
        "  return %0 : tensor<1x1x32x32xbf16>\n}\n",
        "a mesh has the axes 0 and 1, found 'cluster_axis' -1",
    ),
    "an argument for a result": (
        function("ttnn.clamp_scalar", f"{T}, {T}", T, "max = 3.0 : f32, min = 2.0 : f32"),
        "found 2",
    ),
    "a volume without groups": (
        function(
            "ttnn.conv3d",
            "tensor<1x4x8x8x32xbf16>, tensor<32x32x3x3x3xbf16>",
            "tensor<1x2x6x6x32xbf16>",
            "kernel_size = array<i32: 3, 3, 3>, groups = 0 : i32",
        ),
        "expected 1 or more groups, found 0",
    ),
    "a volume for an image": (
        function(
            "ttnn.conv2d",
            f"tensor<8x8x32xbf16>, {FILTER}",
            "tensor<1x1x36x32xbf16>",
            "in_channels = 32 : i32, out_channels = 32 : i32, batch_size = 1 : i32, "
            "input_height = 8 : i32, input_width = 8 : i32, kernel_size = array<i32: 3, 3>, "
            + window("0, 0"),
        ),
        "expected input of rank 4, found (8, 8, 32)",
    ),
    "a placement along no dimension": (
        function(
            "ttnn.distribute_tensor",
            "tensor<64x32xf32>",
            T.replace("4x", "32x"),
            "placements = [2 : i32, -1 : i32], mesh_shape = array<i64: 2, 1>",
        ),
        "expected placements of a dimension of 2, or -1, for each of two axes of the mesh",
    ),
    "placements for three axes": (
        function(
            "ttnn.aggregate_tensor",
            "tensor<32x32xf32>",
            "tensor<64x32xf32>",
            "placements = [0 : i32, -1 : i32, -1 : i32], mesh_shape = array<i64: 2, 1>",
        ),
        "for each of two axes of the mesh, found (0, -1, -1)",
    ),
    "a mesh without chips": (
        function(
            "ttnn.distribute_tensor",
            "tensor<64x32xf32>",
            "tensor<64x32xf32>",
            "placements = [0 : i32, -1 : i32], mesh_shape = array<i64: 1, 0>",
        ),
        "a mesh of 1x0 chips is not supported",
    ),
    "a constant of a word": (
        function("ttir.constant", "", T, 'value = "x"'),
        "attribute 'value' should be elements",
    ),
    "no integers to store": (
        function(
            "ttir.quantize",
            T,
            "tensor<4x32xi8>",
            "scale = [0.5 : f32], zero_point = array<i32: 0>, storage_min = 9 : i32, "
            "storage_max = -9 : i32",
        ),
        "expected a storage_max above the storage_min of 9, found -9",
    ),
    "a sharding of no kind": (
        function(
            "ttir.mesh_shard",
            "tensor<16x64xf32>",
            "tensor<16x32xf32>",
            'shard_dims = array<i64: -1, 1>, shard_shape = array<i64: 1, 2>, shard_type = "x"',
        ),
        "expected a shard_type of devices, identity, replicate, manual, maximal, found 'x'",
    ),
    "a dropout that scales by less than nothing": (
        function("ttir.dropout", T, T, "prob = 0.5 : f32, scale = -1.0 : f32, seed = 1 : ui32"),
        "expected a positive scale, found -1.0",
    ),
    "a dropout to other elements": (
        function(
            "ttir.dropout", T, "tensor<4x32xbf16>", "prob = 0.5 : f32, scale = 1.0 : f32, seed = 1"
        ),
        "expected a result of f32, as the operand 'input', found bf16",
    ),
    "pages of no integers": (
        function(
            "ttir.paged_scaled_dot_product_attention_decode",
            "tensor<1x4x2x32xf32>, tensor<16x2x32x32xf32>, tensor<16x2x32x32xf32>, "
            "tensor<4x4xf32>, tensor<1x4x2x32xf32>, tensor<4xi32>",
            "tensor<1x4x2x32xf32>",
            "is_causal = true, operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 0, 1, 0>",
        ),
        "expected an operand 'page_table' of integers, found f32",
    ),
    "positions of no integers": (
        function(
            "ttir.scaled_dot_product_attention_decode",
            "tensor<1x4x2x32xf32>, tensor<4x2x32x32xf32>, tensor<4x2x32x32xf32>, tensor<4xf32>",
            "tensor<1x4x2x32xf32>",
            "is_causal = true, operandSegmentSizes = array<i32: 1, 1, 1, 0, 1, 0>",
        ),
        "expected an operand 'cur_pos_tensor' of integers, found f32",
    ),
    "an image of another size": (
        function(
            "ttnn.conv3d",
            "tensor<1x4x8x8x32xbf16>, tensor<32x32x3x3x3xbf16>",
            "tensor<1x2x6x6x32xbf16>",
            "kernel_size = array<i32: 3, 3, 3>, input_height = 9 : i32",
        ),
        "expected input_height of 8, as the operands have",
    ),
    "padding of no kind": (
        function(
            "ttnn.conv3d",
            "tensor<1x4x8x8x32xbf16>, tensor<32x32x3x3x3xbf16>",
            "tensor<1x2x6x6x32xbf16>",
            'kernel_size = array<i32: 3, 3, 3>, padding_mode = "x"',
        ),
        "expected padding_mode zeros or replicate, found x",
    ),
    "sizes that are not known": (
        function("ttnn.exp", "tensor<?x32xf32>", "tensor<?x32xf32>"),
        "ensors of ",
    ),
    "an image without its rank": (
        function(
            "ttnn.conv2d",
            f"tensor<1x1x64x32xbf16>, {FILTER}",
            "tensor<1x36x32xbf16>",
            "in_channels = 32 : i32, out_channels = 32 : i32, batch_size = 1 : i32, "
            "input_height = 8 : i32, input_width = 8 : i32, kernel_size = array<i32: 3, 3>, "
            + window("0, 0"),
        ),
        "expected a result of rank 4, found (1, 36, 32)",
    ),
}


def _compile(source: Source) -> None:
    compile_module(source, CompileOptions("wrong"))


def _read_for_passes(source: Source) -> None:
    from ttcodegen.dialects.operations.verification import verify_module

    verify_module(module_for_passes(source))


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("way", [_compile, _read_for_passes, ttnn_to_flatbuffer])
def test_a_module_that_contradicts_itself(name: str, way: Callable[[Source], object]) -> None:
    text, expected = CASES[name]
    with pytest.raises(CompileError) as error:
        way(Source("wrong.mlir", text))
    assert expected in " ".join(each.message for each in error.value.diagnostics)
    assert any(each.place is not None for each in error.value.diagnostics)


def test_a_tensor_is_deallocated_once() -> None:
    layout = (
        "#l = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<1x1x!ttcore.tile<32x32, f32>, "
        "#ttnn.buffer_type<dram>>, <interleaved>>\n"
    )
    tensor = "tensor<32x32xf32, #l>"
    free = f'  "ttnn.deallocate"(%0) <{{force = false}}> : ({tensor}) -> ()\n'
    for ends, expected in (
        (free * 2, "its operand is deallocated twice"),
        (f'{free}  %2 = "ttnn.exp"(%0) : ({tensor}) -> {tensor}\n', "was deallocated before"),
    ):
        text = (
            f"{layout}func.func @f(%x: {tensor}) -> {tensor} {{\n"
            f'  %0 = "ttnn.exp"(%x) : ({tensor}) -> {tensor}\n'
            f'  %1 = "ttnn.exp"(%0) : ({tensor}) -> {tensor}\n{ends}  return %1 : {tensor}\n}}\n'
        )
        for way in (_compile, _read_for_passes, ttnn_to_flatbuffer):
            with pytest.raises(CompileError, match=expected):
                way(Source("freed.mlir", text))


def _placed(layout: str, op: str, attributes: str = "") -> str:
    """A function of one operand that an op takes twice, with a layout of 64x64 elements."""
    return (
        f"#l = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), {layout}>\n"
        "func.func @f(%x: tensor<64x64xf32, #l>) -> tensor<64x64xf32, #l> {\n"
        f'  %0 = "{op}"(%x) {attributes} : (tensor<64x64xf32, #l>) -> tensor<64x64xf32, #l>\n'
        "  return %0 : tensor<64x64xf32, #l>\n}\n"
    )


TILES = "memref<{}x!ttcore.tile<32x32, f32>, #ttnn.buffer_type<{}>>"
LAYOUTS = {
    f"<2x2>, {TILES.format('1x1', 'dram')}, <interleaved>": (
        "a tensor interleaved in DRAM has a grid of 1x1, found 2x2"
    ),
    f"<2x2>, {TILES.format('1x1', 'system_memory')}": (
        "a tensor on the host has a grid of 1x1, found 2x2"
    ),
    f"<1x1>, {TILES.format('2x2', 'system_memory')}, <interleaved>": (
        "a tensor on the host is not interleaved"
    ),
    f"<2x2>, {TILES.format('1x1', 'dram')}, <block_sharded>": (
        "a tensor in DRAM is not block_sharded"
    ),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("way", [_compile, _read_for_passes, ttnn_to_flatbuffer])
def test_a_layout_that_no_memory_has(layout: str, way: Callable[[Source], object]) -> None:
    with pytest.raises(CompileError) as error:
        way(Source("placed.mlir", _placed(layout, "ttnn.relu")))
    assert LAYOUTS[layout] in " ".join(each.message for each in error.value.diagnostics)


def _convolved(buffer_type: str, after: str) -> str:
    """A convolution that has its input deallocated, and one more op with that input."""
    tile = f"!ttcore.tile<32x32, bf16>, #ttnn.buffer_type<{buffer_type}>>, <interleaved>>"
    map_ = "(d0, d1, d2, d3) -> (d0 * 64 + d1 * 64 + d2, d3)"
    filters = "tensor<64x64x1x1xbf16>"
    image = "tensor<1x1x64x64xbf16, #l>"
    return (
        f"#l = #ttnn.ttnn_layout<{map_}, <1x1>, memref<2x2x{tile}\n"
        f"func.func @f(%x: {image}, %w: {filters}) -> {image} {{\n"
        f'  %y = "ttnn.relu"(%x) : ({image}) -> {image}\n'
        '  %0 = "ttnn.conv2d"(%y, %w) <{in_channels = 64 : i32, out_channels = 64 : i32, '
        "batch_size = 1 : i32, input_height = 8 : i32, input_width = 8 : i32, "
        f"kernel_size = array<i32: 1, 1>, {window('0, 0')}, "
        "conv2d_config = #ttnn.conv2d_config<deallocate_activation = true>}> : "
        f"({image}, {filters}) -> {image}\n{after}  return %0 : {image}\n}}\n"
    )


def test_a_convolution_that_deallocates_its_input_is_the_last_to_read_it() -> None:
    image = "tensor<1x1x64x64xbf16, #l>"
    again = f'  %1 = "ttnn.add"(%y, %0) : ({image}, {image}) -> {image}\n'
    free = f'  "ttnn.deallocate"(%y) <{{force = false}}> : ({image}) -> ()\n'
    for way in (_compile, _read_for_passes, ttnn_to_flatbuffer):
        with pytest.raises(CompileError, match=r"deallocated before, by the 'ttnn\.conv2d'"):
            way(Source("freed.mlir", _convolved("l1", again)))
        way(Source("kept.mlir", _convolved("dram", again)))
        way(Source("freed.mlir", _convolved("l1", free)))


def test_functions_of_numbers_are_refused_on_tensors() -> None:
    text = f"func.func @f(%a: {T}) -> {T} {{\n  %0 = math.log10 %a : {T}\n  return %0 : {T}\n}}\n"
    with pytest.raises(CompileError) as error:
        _compile(Source("wrong.mlir", text))
    (found,) = error.value.diagnostics
    assert found.message == "'math.log10' of tensors is not supported"
    assert found.remedy is not None
    assert "linalg.generic" in found.remedy
