"""Agreement of placements with layouts in tiles, shards and bytes."""

from __future__ import annotations

from math import prod

from hypothesis import assume, given
from hypothesis import strategies as st

from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.dialects.ttcore.shards import Layout, Shards
from ttcodegen.dialects.ttnn.placement import TensorPlacement
from ttcodegen.layout.placements import (
    TiledShape,
    bank_bytes,
    layout_of,
    page_bytes,
    shard_bytes,
    stored_bytes,
    tiles,
    whole_bytes,
)

SHAPES = st.lists(st.integers(1, 70), max_size=5).map(tuple)
DATA_TYPES = st.sampled_from(
    [DataType.BFLOAT16, DataType.FLOAT32, DataType.BFLOAT8_B, DataType.INT32, DataType.UINT8]
)


@given(SHAPES, DATA_TYPES, st.sampled_from(Layout))
def test_placements_agree_with_layouts(
    shape: tuple[int, ...], data_type: DataType, pages: Layout
) -> None:
    placement = TensorPlacement(shape, data_type, pages)
    layout = layout_of(placement)
    assert layout.padded_shard_shape == placement.padded_shape()
    assert layout.memref_shape == placement.collapsed_shape()
    assert layout.shard_bytes == stored_bytes(placement)
    if pages is Layout.TILE:
        assert layout.padding == placement.tile_padding()


@given(SHAPES)
def test_tiled_shapes_agree_with_layouts(shape: tuple[int, ...]) -> None:
    layout = layout_of(TensorPlacement(shape, DataType.FLOAT32))
    assert prod(layout.memref_shape) == TiledShape(shape).tiles


def test_every_core_of_a_sharded_tensor_has_a_shard() -> None:
    placement = TensorPlacement((64, 32), DataType.BFLOAT16)
    sharded = placement.height_sharded(Shards.by_rows(3, (32, 32)))
    assert stored_bytes(sharded) == 3 * 2048


def test_a_tensor_without_elements_takes_no_bytes() -> None:
    assert stored_bytes(TensorPlacement((0, 32), DataType.BFLOAT16)) == 0


@given(SHAPES, DATA_TYPES)
def test_tiles_of_placements_are_those_of_layouts(
    shape: tuple[int, ...], data_type: DataType
) -> None:
    placement = TensorPlacement(shape, data_type)
    assert tiles(placement) == prod(layout_of(placement).memref_shape)
    assert whole_bytes(placement) == tiles(placement) * page_bytes(placement)


@given(SHAPES, DATA_TYPES, st.sampled_from(Layout), st.integers(1, 70))
def test_all_banks_together_have_room_for_the_tensor(
    shape: tuple[int, ...], data_type: DataType, pages: Layout, banks: int
) -> None:
    placement = TensorPlacement(shape, data_type, pages)
    assume(not (pages is Layout.ROW_MAJOR and data_type.is_block_float))
    taken = banks * bank_bytes(placement, banks, 32)
    page = page_bytes(placement, 32)
    assert stored_bytes(placement) <= taken
    assert bank_bytes(placement, 1, 32) <= taken < bank_bytes(placement, 1, 32) + banks * page


def test_shards_of_block_floats_have_their_exponents() -> None:
    placement = TensorPlacement((64, 32), DataType.BFLOAT8_B)
    sharded = placement.height_sharded(Shards.by_rows(2, (32, 32)))
    assert shard_bytes(sharded) == 1088
    assert bank_bytes(sharded, 64, 16) == 1088


def test_rows_of_shards_begin_at_aligned_addresses() -> None:
    placement = TensorPlacement((6, 5), DataType.BFLOAT16, Layout.ROW_MAJOR)
    sharded = placement.height_sharded(Shards.by_rows(2, (3, 5)))
    assert shard_bytes(sharded) == 30
    assert shard_bytes(sharded, 16) == 48
