"""The attributes and types of `ttcore`: spellings of all years, and what is refused."""

from __future__ import annotations

import re
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.dialects.builtin import MemRefLayoutAttr, MemRefType, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute
from xdsl.parser import Parser

from tests.dialects.texts import assert_round_trip, parse, refusal, text_of
from ttcodegen.dialects.core.attribute_syntax import (
    affine_map_text,
    coefficients_of,
    parse_affine_map,
)
from ttcodegen.dialects.ttcore.dialect import SystemDescAttr
from ttcodegen.dialects.ttcore.layouts import AlignedLayout, MetalLayoutAttr
from ttcodegen.dialects.ttcore.tile import TILE_FORMATS, WORD_ATTRIBUTES, TileType
from ttcodegen.foundation.diagnostics import CompileError, Diagnostics, Source
from ttcodegen.ops.dialects import load_dialects
from ttcodegen.parsing import parse_module
from ttcodegen.systems.cards import default_system


def attribute(text: str) -> Attribute:
    """The attribute that a text spells, which has to read back as it is printed."""
    module = parse(f"module attributes {{a = {text}}} {{}}")
    assert_round_trip(module)
    return module.attributes["a"]


def type_of(text: str) -> Attribute:
    """The type that a text spells, which has to read back as it is printed."""
    module = parse(f"func.func @f(%a: {text}) {{ return }}")
    assert_round_trip(module)
    (function,) = [op for op in module.body.ops if isinstance(op, FuncOp)]
    return function.function_type.inputs.data[0]


@pytest.mark.parametrize("name", sorted(TILE_FORMATS))
def test_tiles_of_all_formats(name: str) -> None:
    for side in ("32x32", "16x32", "4x16"):
        type_ = type_of(f"!tt.tile<{side}, {name}>")
        assert isinstance(type_, TileType)
        assert str(type_) == f"!ttcore.tile<{side}, {name}>"


def test_sizes_of_tiles() -> None:
    """As tt::tt_metal::Tile::get_tile_size of tt-metal 0.70.1."""
    sizes = {name: TileType(name).size for name in ("f32", "bf16", "bfp_bf8", "bfp_bf4", "u8")}
    assert sizes == {"f32": 4096, "bf16": 2048, "bfp_bf8": 1088, "bfp_bf4": 576, "u8": 1024}
    assert TileType("bfp_bf8", 16, 32).size == 16 * 32 + 32
    assert TileType("bfp_bf4", 4, 16).size == 4 * 16 // 2 + 16


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("!ttcore.tile<32x33, f32>", "a tile has 1, 2, 4, 8, 16 or 32 rows and 16 or 32 columns"),
        ("!ttcore.tile<32x32, f13>", "no tile holds numbers of the format f13"),
        ("!ttcore.tile<32, f32>", "a tile has two dimensions"),
        ("!ttkernel.cb<0, f32>", "a circular buffer has a page at least"),
        ("!ttkernel.l1_addr_ptr<12>", "no pointer has elements of 12 bits"),
        (
            "memref<2x2xf32, #ttcore.shard<8x4, 0>, #ttcore.memory_space<l1>>",
            "a layout has one buffer at least",
        ),
    ],
)
def test_impossible_types_are_refused_at_their_place(text: str, expected: str) -> None:
    message = refusal(f"func.func @f(%a: {text}) {{ return }}")
    assert expected in message
    assert message.startswith("in.mlir:1:")


@pytest.mark.parametrize("class_", WORD_ATTRIBUTES, ids=lambda class_: class_.name)
def test_words(class_: type) -> None:
    for word in class_.words:
        older = class_.name.replace("ttcore.", "tt.")
        found = attribute(f"#{older}<{word.value}>")
        assert str(found) == f"#{class_.name}<{word.value}>"


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("#tt.grid<8x8>", "#ttcore.grid<8x8>"),
        ("#tt.grid<1x1, (d0, d1) -> (0, d0, d1)>", "#ttcore.grid<1x1, (d0, d1) -> (0, d0, d1)>"),
        ("#tt.arg_alloc<0, 32768, system>", "#ttcore.arg_alloc<0, 32768, system>"),
        ("#tt.core_coord<3x4>", "#ttcore.core_coord<3x4>"),
        ('#ttcore.meshes<[<"a" = 1x2>, <"b" = 2>]>', '#ttcore.meshes<[<"a" = 1x2>, <"b" = 2>]>'),
        ("#ttcore.mesh_topology<[linear, ring]>", "#ttcore.mesh_topology<[linear, ring]>"),
        ('#ttcore.tensor_mesh<"a">', '#ttcore.tensor_mesh<"a">'),
        (
            "#ttkernel.arg_spec<rt_args = [<arg_type = buffer_address, operand_index = 0>] "
            "ct_args = [<arg_type = cb_port, operand_index = 1>]>",
            "#ttkernel.arg_spec<rt_args = [<arg_type = buffer_address, operand_index = 0>] "
            "ct_args = [<arg_type = cb_port, operand_index = 1>]>",
        ),
    ],
)
def test_attributes_are_printed_in_todays_spelling(text: str, printed: str) -> None:
    assert str(attribute(text)) == printed


@pytest.mark.parametrize(
    "layout",
    [
        "#ttcore.shard<16384x4096, 1>",
        "#ttcore.interleaved<16384x4096>",
        "#ttcore.cb_layout<16384x4096, 2>",
        "#ttcore.view<2>",
        "#ttcore.view<(d0, d1) -> (d1, d0)>",
        "#ttcore.stream<(d0, d1) -> (d0, d1), alias, 1>",
        "#ttcore.host_layout<logical_shape = 2x4, host_strides = 32x1, host_volume = 1024>",
    ],
)
def test_memrefs_keep_their_layouts(layout: str) -> None:
    type_ = type_of(f"memref<2x4xf32, {layout}, #ttcore.memory_space<l1>>")
    memref = cast("MemRefType[Attribute]", type_)
    assert isinstance(memref.layout, MemRefLayoutAttr)
    assert str(memref.layout) == layout
    assert memref.layout.get_affine_map().num_dims == 2


def test_strides_of_shards_are_bytes() -> None:
    memref = cast("MemRefType[Attribute]", type_of("memref<2x4xf32, #ttcore.shard<16x4, 1>>"))
    layout = memref.layout
    assert isinstance(layout, MemRefLayoutAttr)
    assert layout.get_affine_map().eval([1, 3], []) == (28,)


def encoding(text: str) -> MetalLayoutAttr:
    type_ = type_of(f"tensor<64x128xf32, {text}>")
    assert isinstance(type_, TensorType)
    layout = cast("TensorType[Attribute]", type_).encoding
    assert isinstance(layout, MetalLayoutAttr)
    return layout


def test_layouts_of_2024_are_read() -> None:
    memref = "memref<64x128xf32, #tt.memory_space<system>>"
    today = encoding(f"#tt.metal_layout<(d0, d1) -> (d0, d1), undef, <1x1>, {memref}>")
    assert encoding(f"#tt.layout<(d0, d1) -> (d0, d1), undef, <1x1>, {memref}>") == today
    assert encoding(f"#tt.metal_layout<8192x128x1, undef, <1x1>, {memref}>") == today
    placed = encoding(f"#tt.layout<(d0, d1) -> (d0, d1), zero, <1x1>, {memref}, interleaved>")
    assert str(placed).endswith(", interleaved>")


INTERVALS = "collapsed_intervals = dense<[[0, 1], [1, 2]]> : tensor<2x2xi64>"


@pytest.mark.parametrize(
    ("tail", "printed"),
    [
        ("l1, sharded", "l1, sharded"),
        ("undef, dram", "undef, dram"),
        ("undef, l1, interleaved", "undef, l1, interleaved"),
        ("undef, l1, index_map = map(0)", "undef, l1"),
    ],
)
def test_layouts_of_2025_and_2026_are_read(tail: str, printed: str) -> None:
    shapes = "logical_shape = 64x128, dim_alignments = 32x32"
    if "index_map" in tail:
        tail = tail.replace("map(0)", "affine_map<(d0, d1) -> (d0, d1)>")
    layout = encoding(f"#ttcore.metal_layout<{shapes}, {INTERVALS}, {tail}>")
    assert isinstance(layout.data, AlignedLayout)
    assert str(layout) == f"#ttcore.metal_layout<{shapes}, {INTERVALS}, {printed}>"


def warnings(text: str) -> list[str]:
    diagnostics = Diagnostics()
    parse_module(Source("in.mlir", f"module attributes {{a = {text}}} {{}}"), diagnostics)
    return [warning.message for warning in diagnostics.warnings]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("#ttcore.metal_layout<(d0) -> (d1), undef, <1>, memref<1xf32>>", "'d1' is no dimension"),
        ("#ttcore.metal_layout<(d0) -> (d0), green, <1>, memref<1xf32>>", "one of undef, zero"),
        ("#ttcore.device<workerGrid = #ttcore.grid<8x8>, chips = [0]>", "a device has no 'chips'"),
        ("#ttcore.device<meshShape = 1, chipIds = [0]>", "a device has a workerGrid"),
        ("#ttcore.system_desc<[], [0]>", "lists of chips, expected 4 or 5"),
        (
            "#ttcore.system_desc<[{arch = <wormhole_b0>, grid = 8x8, l2_size = 1}], [0], "
            "[1 : i32], [0x0x0x0]>",
            "there is no field 'l2_size'",
        ),
    ],
)
def test_what_is_not_understood_is_kept_and_reported(text: str, reason: str) -> None:
    """Layouts and devices change from version to version; no program depends on them."""
    (message,) = warnings(text)
    assert message.startswith(text[: text.index("<")] + " is ignored: ")
    assert reason in message


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "#ttcore.metal_layout<(d0) -> (d0), undef, <1x1>, memref<1x1xf32>>",
            "have the same rank, found 1, 2 and 2",
        ),
        (
            f"#ttcore.metal_layout<logical_shape = 4, dim_alignments = 1x1, {INTERVALS}, l1>",
            "a layout of rank 1 has 2 alignments",
        ),
        (
            "#ttcore.device<workerGrid = #ttcore.grid<8x8>, meshShape = 1x2, chipIds = [0]>",
            "a mesh of the shape 1x2 has 2 chips, but 1 are listed",
        ),
        (
            "#ttcore.device<workerGrid = #ttcore.grid<8x8, (d0, d1) -> (d0, d1)>, chipIds = [0]>",
            "leads to chip, row and column, but has 2 results",
        ),
        (
            "#ttcore.system_desc<[{arch = <grayskull>, grid = 8x8}], [0], [1 : i32], [0x0x0x0]>",
            "'grayskull', which is not supported",
        ),
    ],
)
def test_what_contradicts_itself_is_refused(text: str, reason: str) -> None:
    with pytest.raises(CompileError, match=re.escape(reason)):
        warnings(text)


def system(text: str) -> SystemDescAttr:
    found = attribute(text)
    assert isinstance(found, SystemDescAttr)
    return found


@pytest.mark.parametrize("arch", ["wormhole_b0", "blackhole"])
def test_systems_read_back(arch: str) -> None:
    description = default_system(arch)
    assert system(str(SystemDescAttr(description))).data == description


def test_systems_of_2024_and_2025_are_read() -> None:
    shortest = system(
        "#tt.system_desc<[<#tt.arch<wormhole_b0>, #tt.grid<8x8>>], [0], [<pcie|host_mmio>], "
        "[<0, 0, 0, 0>]>"
    ).data
    assert (shortest.arch, shortest.chip.grid) == ("wormhole_b0", (8, 8))
    assert shortest.chip_capabilities == (3,)
    chip = "{arch = <wormhole_b0>, grid = <7x8>, l1_size = 1048576, num_dram_channels = 12, "
    chip += "dram_channel_size = 1048576, chip_physical_cores = {worker = [ 1x1,  1x2], dram = "
    chip += "[ 0x0], eth = [], eth_inactive = [ 0x1]}}"
    longer = system(f"#tt.system_desc<[{chip}], [0], [<host_mmio>], [<0, 0, 0, 0>]>").data
    assert longer.chip.grid == (7, 8)
    assert (longer.chip.l1_size, longer.chip.dram_unreserved_end) == (1 << 20, 1 << 20)


def test_links_between_chips() -> None:
    chip = str(SystemDescAttr(default_system("wormhole_b0")))
    start, end = chip.index("[{arch"), chip.index("}], [0]")
    text = f"#ttcore.system_desc<{chip[start:end]}}}], [0, 0], [1 : i32, 0 : i32], "
    text += "[0x0x0x0, 0x0x0x1], [<[0, 8x0], [1, 0x0]>]>"
    (channel,) = system(text).data.chip_channels
    assert (channel.first, channel.first_core, channel.second) == (0, (8, 0), 1)


# Affine maps

MAPS = [
    "(d0, d1) -> ((d0 floordiv 8) * 2 + d1 floordiv 8, d0, d1 mod 8)",
    "() -> (0, 7)",
    "(d0)[s0, s1] -> (d0 * s0 + s1, (d0 ceildiv s1) mod 3)",
    "(d0, d1) -> (d0 * 3 + (d1 + d0) * 2, (d0 * d1) floordiv 2)",
]


@pytest.mark.parametrize("text", MAPS)
def test_affine_maps_are_printed_as_they_are_written(text: str) -> None:
    map_ = parse_affine_map(Parser(load_dialects(), text))
    assert affine_map_text(map_) == text


def test_affine_maps_mean_what_they_say() -> None:
    map_ = parse_affine_map(Parser(load_dialects(), MAPS[0]))
    assert map_.eval([9, 17], []) == (4, 9, 1)
    other = parse_affine_map(Parser(load_dialects(), "(a, b) -> (-2 + a - b * 3)"))
    assert other.eval([1, 2], []) == (-7,)


@given(st.lists(st.lists(st.integers(0, 9), min_size=3, max_size=3), min_size=1, max_size=3))
def test_linear_maps_and_their_coefficients(rows: list[list[int]]) -> None:
    terms = [" + ".join(f"d{i} * {f}" for i, f in enumerate(row)) for row in rows]
    map_ = parse_affine_map(Parser(load_dialects(), f"(d0, d1, d2) -> ({', '.join(terms)})"))
    assert coefficients_of(map_) == tuple(map(tuple, rows))


@pytest.mark.parametrize("text", ["(d0) -> (d0 + 1)", "(d0) -> (d0 mod 2)", "(d0) -> (d0 * d0)"])
def test_other_maps_have_no_coefficients(text: str) -> None:
    with pytest.raises(ValueError, match="is not linear"):
        coefficients_of(parse_affine_map(Parser(load_dialects(), text)))


def test_tensors_of_ttir_lose_layouts_that_the_compiler_assigns() -> None:
    layout = "#ttcore.metal_layout<(d0, d1) -> (d0, d1), undef, <1x1>, memref<4x4xf32>>"
    t = f"tensor<4x4xf32, {layout}>"
    text = f'func.func @f(%a: {t}) -> {t} {{ %0 = "ttir.exp"(%a) : ({t}) -> {t} return %0 : {t} }}'
    assert "metal_layout" not in text_of(parse(text))
