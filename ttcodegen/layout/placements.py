"""The layouts of tensors of the library, and the bytes that they take in their memory."""

from __future__ import annotations

from functools import lru_cache
from math import prod

from ttcodegen.dialects.memory import Layout
from ttcodegen.dialects.placement import TensorPlacement
from ttcodegen.dialects.tile import TILE_SIDE
from ttcodegen.layout.collapse import Shape
from ttcodegen.layout.tensor_layout import TensorLayout


def layout_of(placement: TensorPlacement) -> TensorLayout:
    """The layout of a whole tensor, as if it lay on one core.

    Raises ValueError if the tensor has no elements.
    """
    return _layout(placement, placement.shape)


def _layout(placement: TensorPlacement, shape: Shape) -> TensorLayout:
    if placement.layout is Layout.TILE:
        return TensorLayout.aligned(shape, placement.data_type)
    return TensorLayout.create(shape, placement.data_type)


@lru_cache(maxsize=1 << 14)
def stored_bytes(placement: TensorPlacement) -> int:
    """Bytes of a tensor as it lies in its memory: whole tiles for the tile layout, the shards of
    all cores if it is sharded."""
    if (shards := placement.shards) is not None:
        return shards.cores * _layout(placement, shards.shape).shard_bytes
    return layout_of(placement).shard_bytes if prod(placement.shape) else 0


def is_view(source: TensorPlacement, result: TensorPlacement) -> bool:
    """Whether a reshape of one tensor to the other leaves the elements where they lie: rows stay
    rows, and tiles stay tiles.

    Source: ttnn/cpp/ttnn/operations/data_movement/reshape_view/reshape.cpp of tt-metal.
    """
    if (source.layout, source.buffer_type) != (result.layout, result.buffer_type):
        return False
    if source.memory_layout != result.memory_layout:
        return False
    before, after = (1, 1, *source.shape), (1, 1, *result.shape)
    if before[-1] != after[-1]:
        return prod(source.shape) == 0
    if source.layout is Layout.ROW_MAJOR or before[-2] == after[-2]:
        return True
    return before[-2] % TILE_SIDE == 0 and after[-2] % TILE_SIDE == 0
