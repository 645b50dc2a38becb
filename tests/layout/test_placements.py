"""What the compiler says of a tensor's tiles and bytes is what its layout says."""

from __future__ import annotations

from math import prod

from hypothesis import given
from hypothesis import strategies as st

from ttcodegen.dialects.datatypes import DataType
from ttcodegen.dialects.memory import Layout
from ttcodegen.dialects.placement import TensorPlacement
from ttcodegen.dialects.shards import Shards
from ttcodegen.layout.placements import layout_of, stored_bytes
from ttcodegen.layout.tiled_shape import TiledShape

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
