"""How many bytes tensors take in the memory of the device."""

from __future__ import annotations

from math import prod

from ttcodegen.dialects.memory import Layout
from ttcodegen.dialects.placement import TensorPlacement
from ttcodegen.dialects.tile import TILE_FORMATS, TILE_SIDE


def stored_bytes(placement: TensorPlacement) -> int:
    """Bytes of a tensor as it lies in its memory: whole tiles for the tile layout, the parts of all
    cores if it is sharded."""
    format_ = TILE_FORMATS[placement.data_type.mlir]
    if (shards := placement.shards) is not None:
        height, width = shards.shape
        parts = shards.cores
    else:
        height, width = _padded(placement)
        parts = 1
    if placement.layout is Layout.TILE:
        tiles = -(-height // TILE_SIDE) * -(-width // TILE_SIDE)
        return parts * tiles * format_.tile_bytes()
    return parts * height * width * format_.bits // 8


def _padded(placement: TensorPlacement) -> tuple[int, int]:
    """Height and width in elements of the 2D view, with the padding of its tiles."""
    height, width = placement.collapsed_shape()
    if placement.layout is Layout.TILE:
        return height * TILE_SIDE, width * TILE_SIDE
    return (height, width) if placement.shape else (1, 1)


def element_count(placement: TensorPlacement) -> int:
    """How many elements a tensor has, without padding."""
    return prod(placement.shape)
