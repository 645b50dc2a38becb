"""Layouts of tensors: the examples of the tensor layout specification, and its sweeps."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise, product
from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.func import FuncOp

from tests.dialects.texts import parse, text_of
from ttcodegen.dialects.ttcore.tile import MemorySpace, OutOfBounds
from ttcodegen.layout import TensorLayout, from_shards, to_shards
from ttcodegen.layout.collapse import normalized_intervals
from ttcodegen.layout.device import offsets
from ttcodegen.layout.tensor_layout import offset_in_tile, place_in_tile

MAP_4D = "(d0, d1, d2, d3) -> (d0 * 192 + d1 * 64 + d2, d3)"
MAP_7D = (
    "(d0, d1, d2, d3, d4, d5, d6) -> "
    "(d0 * 2688 + d1 * 896 + d2 * 448 + d3 * 224 + d4 * 32 + d5, d4, d5, d6)"
)


def layout_text(map_: str, grid: str, memref: str) -> str:
    return (
        f"#ttcore.metal_layout<{map_}, undef, <{grid}>, memref<{memref}, #ttcore.memory_space<l1>>>"
    )


def of_text(tensor: str, layout: str) -> TensorLayout:
    """The layout that the type `tensor<..., layout>` has."""
    older = layout.replace("ttcore.", "tt.")
    module = parse(f"func.func @f(%a: tensor<{tensor}, {older}>) {{ return }}")
    (function,) = [op for op in module.body.ops if isinstance(op, FuncOp)]
    found = TensorLayout.of(function.function_type.inputs.data[0])
    assert str(found) == layout
    assert f"tensor<{tensor}, {layout}>" in text_of(module)
    return found


# The examples of the specification, in its order


def test_the_walkthrough() -> None:
    layout = TensorLayout.create((2, 3, 64, 128), "f32")
    text = layout_text(MAP_4D, "1x1", "384x128xf32")
    assert str(layout) == text
    assert of_text("2x3x64x128xf32", text) == layout
    assert layout.linear_map.eval([1, 1, 6, 100], []) == (262, 100)
    assert layout.locate((1, 1, 6, 100)).position == (262, 100)


@pytest.mark.parametrize(
    ("rank", "intervals", "expected"),
    [
        (3, [(0, -1)], [(0, 2), (2, 3)]),
        (4, [(1, -1)], [(0, 1), (1, 3), (3, 4)]),
        (4, [(0, 2)], [(0, 2), (2, 3), (3, 4)]),
        (7, [(0, 3), (-3, -1)], [(0, 3), (3, 4), (4, 6), (6, 7)]),
        (7, [(-3, -1), (0, 3)], [(0, 3), (3, 4), (4, 6), (6, 7)]),
        (2, [(0, -1)], [(0, 1), (1, 2)]),
        (1, [(0, -1)], [(0, 0), (0, 1)]),
        (0, [(0, -1)], [(0, 0), (0, 0)]),
    ],
)
def test_intervals_are_dimensions_that_become_one(
    rank: int, intervals: list[tuple[int, int]], expected: list[tuple[int, int]]
) -> None:
    assert list(normalized_intervals(intervals, rank)) == expected


@pytest.mark.parametrize("intervals", [[(0, 4)], [(2, 1)], [(-5, -1)], [(0, 2), (1, 3)]])
def test_impossible_intervals_are_refused(intervals: list[tuple[int, int]]) -> None:
    with pytest.raises(ValueError, match="interval"):
        normalized_intervals(intervals, 3)


def test_several_cores() -> None:
    layout = TensorLayout.create((2, 3, 64, 128), grid=(2, 4))
    assert layout.physical_shape == (384, 128)
    assert layout.shard_shape == (192, 32)
    text = layout_text(MAP_4D, "2x4", "192x32xf32")
    assert of_text("2x3x64x128xf32", text) == layout
    assert TensorLayout.create((2, 3, 64, 128)).parallelize((2, 4)) == layout


@pytest.mark.parametrize(
    ("tensor", "map_", "grid", "memref"),
    [
        ("8x300xf32", "(d0, d1) -> (d0, d1)", "1x2", "8x150xf32"),
        ("8x96x32xf32", "(d0, d1, d2) -> (d0 * 96 + d1, d2)", "2x1", "384x32xf32"),
        ("8x96x32xf32", "(d0, d1, d2) -> (d0 * 96 + d1, d1, d2)", "2x1x2", "384x96x16xf32"),
        ("5x3x2x2x7x32x32xf32", MAP_7D, "3x2x2x2", "4480x4x16x16xf32"),
        (
            "3x64x128xf32",
            "(d0, d1, d2) -> (d0 * 64 + d1, d2)",
            "3x2",
            "2x2x!ttcore.tile<32x32, bfp_bf8>",
        ),
        ("53x63xf32", "(d0, d1) -> (d0, d1)", "3x2", "18x32xf32"),
        ("53x63xf32", "(d0, d1) -> (d0, d1)", "3x2", "1x1x!ttcore.tile<32x32, bfp_bf8>"),
        ("2x8x32xf32", "(d0, d1, d2) -> (d0 * 8 + d1, d2)", "1x2", "16x16xf32"),
        (
            "2x3x64x128xf32",
            "(d0, d1, d2, d3) -> (d0, d1 * 64 + d2, d3)",
            "2x2x4",
            "1x3x1x!ttcore.tile<32x32, bfp_bf8>",
        ),
        ("2x8x32xf32", "(d0, d1, d2) -> (d0 * 32 + d1, d2)", "1x1", "40x32xf32"),
    ],
)
def test_examples_read_back(tensor: str, map_: str, grid: str, memref: str) -> None:
    layout = of_text(tensor, layout_text(map_, grid, memref))
    assert_one_to_one(layout, samples=50)


def test_tiles_keep_the_shape_and_type_of_the_tensor() -> None:
    layout = TensorLayout.create((3, 64, 128)).parallelize((3, 2))
    assert str(layout.memref) == "memref<64x64xf32, #ttcore.memory_space<l1>>"
    tiled = layout.tilize((32, 32), "bfp_bf8")
    assert str(tiled.memref).startswith("memref<2x2x!ttcore.tile<32x32, bfp_bf8>")
    assert tiled.tensor_type.get_shape() == (3, 64, 128)
    assert str(tiled.tensor_type).startswith("tensor<3x64x128xf32, ")
    assert tiled.untilize() == layout


def test_padding_of_a_grid_that_does_not_divide() -> None:
    layout = TensorLayout.create((53, 63), grid=(3, 2))
    assert layout.shard_shape == (18, 32)
    # One row on the last row of cores, one column on the last column of cores.
    assert layout.occupied((0, 0)) == (18, 32)
    assert layout.occupied((2, 1)) == (17, 31)
    assert layout.padding == 3 * 18 * 2 * 32 - 53 * 63
    assert layout.index_at((2, 0), 17 * 32) is None
    assert layout.index_at((0, 1), 31) is None


def test_padding_of_tiles() -> None:
    layout = TensorLayout.create((53, 63), grid=(3, 2)).tilize()
    assert layout.padded_shard_shape == (32, 32)
    for row in range(3):
        padded = 32 - layout.occupied((row, 0))[0]
        assert padded == (15 if row == 2 else 14)


def test_the_grid_divides_before_tiles_do() -> None:
    """The second core begins at row 18, not at the next tile."""
    layout = TensorLayout.create((53, 63), grid=(3, 2)).tilize()
    assert layout.locate((18, 0)).core == (1, 0)
    assert layout.locate((18, 0)).offset == 0


def test_strides_leave_gaps() -> None:
    dense = TensorLayout.create((2, 8, 32)).tilize()
    assert dense.memref_shape == (1, 1)
    apart = TensorLayout.create((2, 8, 32), strides=[(32, 1, 0), (0, 0, 1)]).tilize()
    assert apart.memref_shape == (2, 1)
    assert apart.locate((1, 0, 0)).offset == 1024
    assert apart.index_at((0, 0), offset_in_tile(8, 0, (32, 32))) is None
    assert "(d0 * 32 + d1, d2)" in str(apart)


def test_grids_may_be_larger_than_chips() -> None:
    layout = TensorLayout.create((32, 2048), grid=(1, 64)).tilize()
    assert layout.memref_shape == (1, 1)
    assert layout.locate((0, 2047)).core == (0, 63)


def test_dimensions_of_the_grid_may_be_those_of_devices() -> None:
    layout = TensorLayout.create(
        (2, 3, 64, 128), collapse_intervals=[(1, -1)], grid=(2, 2, 4)
    ).tilize((32, 32), "bfp_bf8")
    assert layout.memref_shape == (1, 3, 1)
    assert layout.locate((1, 2, 63, 127)).core == (1, 1, 3)


# Sweeps


def assert_one_to_one(layout: TensorLayout, samples: int = 10**9) -> None:
    """Elements have places of their own, from which they are found again; other places are
    padding."""
    seen: set[tuple[tuple[int, ...], int]] = set()
    indices = product(*(range(size) for size in layout.shape))
    step = max(1, prod(layout.shape) // samples)
    for number, index in enumerate(indices):
        if number % step:
            continue
        place = layout.locate(index)
        assert layout.index_at(place.core, place.offset) == index
        assert layout.core_map.eval(list(index), []) == place.core
        assert layout.shard_map.eval(list(index), []) == place.position
        assert (place.core, place.offset) not in seen
        seen.add((place.core, place.offset))


def count_padding(layout: TensorLayout) -> int:
    size = prod(layout.padded_shard_shape)
    cores = product(*(range(side) for side in layout.grid))
    return sum(layout.index_at(core, i) is None for core in cores for i in range(size))


GRIDS = [(1, 1), (1, 2), (2, 1), (3, 2), (8, 8), (1, 64), (5, 7)]
SHAPES = [(53, 63), (64, 128), (3, 40, 33), (2, 3, 8, 20), (17,), ()]


@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize("shape", SHAPES)
def test_sweep_of_grids(shape: tuple[int, ...], grid: tuple[int, int]) -> None:
    layout = TensorLayout.create(shape, grid=grid)
    rows, columns = layout.physical_shape
    assert layout.memref_shape == (-(-rows // grid[0]), -(-columns // grid[1]))
    assert TensorLayout.of(layout.tensor_type) == layout
    assert_one_to_one(layout, samples=60)


@pytest.mark.parametrize("tile", [(32, 32), (16, 32), (32, 16), (16, 16), (4, 32), (1, 16)])
@pytest.mark.parametrize("grid", [(1, 1), (3, 2), (2, 5)])
@pytest.mark.parametrize("shape", SHAPES)
def test_sweep_of_tiles(
    shape: tuple[int, ...], grid: tuple[int, int], tile: tuple[int, int]
) -> None:
    layout = TensorLayout.create(shape, grid=grid)
    tiled = layout.tilize(tile, "bf16")
    rows, columns = layout.memref_shape
    assert tiled.memref_shape == (-(-rows // tile[0]), -(-columns // tile[1]))
    assert tiled.untilize() == layout
    assert TensorLayout.of(tiled.tensor_type) == tiled
    assert_one_to_one(tiled, samples=60)


@pytest.mark.parametrize("tile", [None, (32, 32), (16, 16)])
@pytest.mark.parametrize("grid", [(1, 1), (3, 2), (4, 1)])
@pytest.mark.parametrize("shape", [(5, 7), (3, 4, 5), (33, 2)])
def test_sweep_of_padding(
    shape: tuple[int, ...], grid: tuple[int, int], tile: tuple[int, int] | None
) -> None:
    layout = TensorLayout.create(shape, grid=grid)
    layout = layout if tile is None else layout.tilize(tile)
    assert count_padding(layout) == layout.padding


@pytest.mark.parametrize("fill", list(OutOfBounds))
def test_data_goes_to_shards_and_back(fill: OutOfBounds) -> None:
    layout = TensorLayout.create((3, 20, 33), grid=(2, 2), out_of_bounds=fill).tilize()
    array = np.arange(3 * 20 * 33, dtype=np.float32).reshape(layout.shape) + 1
    shards = to_shards(layout, array)
    assert shards.shape == (2, 2, prod(layout.padded_shard_shape))
    np.testing.assert_array_equal(from_shards(layout, shards), array)
    expected = {"one": 1.0, "inf": np.inf, "neginf": -np.inf}.get(fill.value, 0.0)
    assert shards[1, 1, -1] == expected
    for index in ((0, 0, 0), (2, 19, 32), (1, 7, 16)):
        place = layout.locate(index)
        assert shards[(*place.core, place.offset)] == array[index]


def test_infinity_is_no_integer() -> None:
    layout = TensorLayout.create((4, 4), "si32", out_of_bounds="inf")
    with pytest.raises(ValueError, match="no inf among integers"):
        to_shards(layout, np.zeros((4, 4), np.int32))
    with pytest.raises(ValueError, match="not"):
        to_shards(layout, np.zeros((4, 5), np.int32))


@st.composite
def layouts(draw: st.DrawFn) -> TensorLayout:
    shape = draw(st.lists(st.integers(1, 9), min_size=0, max_size=4))
    cuts = sorted(draw(st.sets(st.integers(1, max(1, len(shape) - 1)), max_size=3)))
    bounds = [0, *(cut for cut in cuts if cut < len(shape)), len(shape)]
    intervals = [(a, b) for a, b in pairwise(bounds) if a < b]
    rank = len(normalized_intervals(intervals, len(shape)))
    grid = draw(st.lists(st.integers(1, 5), min_size=rank, max_size=rank))
    layout = TensorLayout.create(shape, grid=grid, collapse_intervals=intervals)
    if rank < 2 or draw(st.booleans()):
        return layout
    return layout.tilize(draw(st.sampled_from([(32, 32), (16, 16), (4, 16), (1, 32)])))


@settings(max_examples=60, deadline=None)
@given(layouts())
def test_every_element_is_found_again(layout: TensorLayout) -> None:
    assert_one_to_one(layout)
    cores, places = offsets(layout)
    for index in product(*(range(size) for size in layout.shape)):
        place = layout.locate(index)
        number = 0
        for position, side in zip(place.core, layout.grid, strict=True):
            number = number * side + position
        assert (cores[index], places[index]) == (number, place.offset)


@settings(max_examples=40, deadline=None)
@given(layouts(), st.sampled_from(list(MemorySpace)))
def test_attributes_say_all_of_a_layout(layout: TensorLayout, space: MemorySpace) -> None:
    moved = layout.with_memory_space(space)
    assert TensorLayout.of(moved.tensor_type) == moved


@given(st.sampled_from([(32, 32), (16, 32), (4, 16), (1, 32), (32, 16), (2, 4)]), st.data())
def test_numbers_of_a_tile_have_places_of_their_own(
    tile: tuple[int, int], data: st.DataObject
) -> None:
    offset = data.draw(st.integers(0, tile[0] * tile[1] - 1))
    row, column = place_in_tile(offset, tile)
    assert 0 <= row < tile[0]
    assert 0 <= column < tile[1]
    assert offset_in_tile(row, column, tile) == offset


# The later form


@pytest.mark.parametrize(
    ("shape", "grid", "device_shape"),
    [
        ((8, 300), (1, 2), (1, 2, 1, 5)),
        ((1024, 1024), (2, 2), (2, 2, 16, 16)),
        ((2, 3, 40, 100), (3, 4), (3, 4, 4, 1)),
        ((100,), (1, 4), (1, 4, 1, 1)),
        ((), (1, 1), (1, 1, 1, 1)),
    ],
)
def test_the_later_form_has_grid_and_shard_in_its_shape(
    shape: tuple[int, ...], grid: tuple[int, int], device_shape: tuple[int, ...]
) -> None:
    layout = TensorLayout.aligned(shape, "bf16", grid=grid)
    type_ = layout.tensor_type
    assert type_.get_shape() == device_shape
    assert "!ttcore.tile<32x32, bf16>" in str(type_)
    assert TensorLayout.of(type_) == layout
    assert_one_to_one(layout, samples=200)


def test_the_later_form_aligns_what_is_collapsed() -> None:
    """Each matrix of a batch begins at a tile."""
    layout = TensorLayout.aligned((2, 3, 40, 100))
    assert layout.alignments == (1, 1, 32, 32)
    assert layout.physical_shape == (2 * 3 * 64, 128)
    assert layout.locate((0, 1, 0, 0)).position == (64, 0)


def test_the_later_form_has_no_rest() -> None:
    with pytest.raises(ValueError, match="align it to 384"):
        TensorLayout.aligned((8, 300), grid=(1, 3))
    wider = TensorLayout.aligned((8, 300), grid=(1, 3), dim_alignments=(32, 96))
    assert wider.memref_shape == (1, 4)


# What is refused


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: TensorLayout.create((2, 0)), "has no elements"),
        (lambda: TensorLayout.create((2, 2), "f13"), "no data type f13"),
        (lambda: TensorLayout.create((2, 2), grid=(1, 1, 1)), "has 3 dimensions, but 2"),
        (lambda: TensorLayout.create((2, 2), grid=(0, 1)), "has no cores"),
        (lambda: TensorLayout.create((2, 2), strides=[(1, 1), (0, 1)]), "fall on places of others"),
        (lambda: TensorLayout.create((2, 2), strides=[(1, 0), (0, 0)]), "fall on one position"),
        (lambda: TensorLayout.create((2, 2), "bfp_bf8").element_type, "in tiles only"),
        (lambda: TensorLayout.create((2, 2)).locate((2, 0)), "is no index of a tensor"),
        (lambda: TensorLayout.create((2, 2)).locate((0,)), "is no index of a tensor"),
        (lambda: TensorLayout.create((2, 2)).index_at((1, 0), 0), "is no core of the grid"),
        (lambda: TensorLayout.create((2, 2)).index_at((0, 0), 4), "a shard has 4 elements"),
    ],
)
def test_impossible_layouts_are_refused(make: object, message: str) -> None:
    assert callable(make)
    with pytest.raises(ValueError, match=message):
        make()


def test_a_memref_has_to_be_that_of_the_grid() -> None:
    text = layout_text("(d0, d1) -> (d0, d1)", "1x2", "8x300xf32")
    with pytest.raises(ValueError, match="a shard of this layout is 8x150"):
        of_text("8x300xf32", text)


def test_sizes_in_bytes() -> None:
    def size(data_type: str, tile: Sequence[int] | None = (32, 32)) -> int:
        layout = TensorLayout.create((32, 64), "bf16")
        return (layout if tile is None else layout.tilize((32, 32), data_type)).shard_bytes

    assert size("bf16", None) == 32 * 64 * 2
    assert [size(name) for name in ("f32", "bf16", "bfp_bf8", "bfp_bf4")] == [
        *(2 * 4096, 2 * 2048, 2 * 1088, 2 * 576)
    ]


def test_what_the_introduction_prints() -> None:
    """Its five lines, in today's spelling."""
    first = TensorLayout.create([2, 3, 64, 128], grid=[2, 4])
    second = TensorLayout.create([2, 3, 64, 128], grid=[2, 2, 4], collapse_intervals=[(1, -1)])
    whole = "(d0, d1, d2, d3) -> (d0 * 192 + d1 * 64 + d2, d3)"
    divided = (
        f"#ttcore.metal_layout<{whole}, undef, <3x2>, memref<128x64xf32, #ttcore.memory_space<l1>>>"
    )
    assert str(first.tensor_type) == (
        f"tensor<2x3x64x128xf32, #ttcore.metal_layout<{whole}, undef, <2x4>, "
        "memref<192x32xf32, #ttcore.memory_space<l1>>>>"
    )
    assert str(first.tilize(data_type="bfp_bf8")) == (
        f"#ttcore.metal_layout<{whole}, undef, <2x4>, "
        "memref<6x1x!ttcore.tile<32x32, bfp_bf8>, #ttcore.memory_space<l1>>>"
    )
    assert str(first.parallelize([3, 2])) == divided
    assert str(second.tilize(data_type="bfp_bf8")) == (
        "#ttcore.metal_layout<(d0, d1, d2, d3) -> (d0, d1 * 64 + d2, d3), undef, <2x2x4>, "
        "memref<1x3x1x!ttcore.tile<32x32, bfp_bf8>, #ttcore.memory_space<l1>>>"
    )
    assert str(second.parallelize([3, 2])) == divided
    assert str(second.parallelize([3, 2], [(0, -1)])) == divided


def test_parallelize_collapses_anew() -> None:
    layout = TensorLayout.create([2, 3, 64, 128], grid=[2, 4])
    batched = layout.parallelize([2, 2, 4], [(1, -1)])
    assert batched == TensorLayout.create(
        [2, 3, 64, 128], grid=[2, 2, 4], collapse_intervals=[(1, -1)]
    )
    with pytest.raises(ValueError, match="has 3 dimensions, but 2 are collapsed"):
        layout.parallelize([2, 2, 4])


def test_strides_and_grids_of_ttnn() -> None:
    """The terms of the second half of the specification."""
    layout = TensorLayout.create((2, 3, 64, 128), grid=(4, 2))
    assert layout.stride == (3 * 64 * 128, 64 * 128, 128, 1)
    assert layout.grid_shape == (4, 2)
    # Shards of five columns: eight cores for forty of them.
    assert TensorLayout.create((3, 40), grid=(2, 8)).grid_shape == (2, 8)
    # Shards of two columns: the last three of eight cores have none of nine.
    assert TensorLayout.create((1, 9), grid=(1, 8)).grid_shape == (1, 5)
    apart = TensorLayout.create((2, 8, 32), strides=[(32, 1, 0), (0, 0, 1)])
    assert apart.stride == (32 * 32, 32, 1)
    with pytest.raises(ValueError, match="only if all dimensions but the last"):
        _ = TensorLayout.create((2, 3, 64, 128), collapse_intervals=[(1, -1)]).stride
