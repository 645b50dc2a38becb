"""Tiled shapes, and bytes of tensors in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from math import prod

from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.dialects.ttcore.shards import Layout
from ttcodegen.dialects.ttcore.tile import TILE_FORMATS, TILE_SIDE, tiles_along
from ttcodegen.dialects.ttnn.placement import TensorPlacement
from ttcodegen.layout.collapse import Shape, align_up
from ttcodegen.layout.tensor_layout import TensorLayout

# Tiled shapes


@cache
def tile_bytes_of(data_type: DataType) -> int:
    """Returns the bytes of a tile of that data type."""
    return TILE_FORMATS[data_type.mlir].tile_bytes()


@dataclass(frozen=True)
class TiledShape:
    """Shape of a tensor in tiles, ordered by batch, row and column of tiles.

    A tensor of rank 0 or 1 is one row.
    """

    shape: tuple[int, ...]

    @cached_property
    def batch(self) -> tuple[int, ...]:
        """Dimensions before the last two."""
        return self.shape[:-2]

    @property
    def height(self) -> int:
        """Size of the last dimension but one."""
        return self.shape[-2] if len(self.shape) > 1 else 1

    @property
    def width(self) -> int:
        """Size of the last dimension."""
        return self.shape[-1] if self.shape else 1

    @property
    def rows(self) -> int:
        """Tile rows of each batch entry."""
        return tiles_along(self.height)

    @property
    def columns(self) -> int:
        """Tile columns of each batch entry."""
        return tiles_along(self.width)

    @cached_property
    def grid(self) -> tuple[int, ...]:
        """Number of tiles in each dimension: batch dimensions, rows, columns."""
        return (*self.batch, self.rows, self.columns)

    @cached_property
    def tiles(self) -> int:
        """Number of tiles."""
        return prod(self.grid)

    @property
    def last_rows(self) -> int:
        """Number of valid rows in the last tile row."""
        return self.height - TILE_SIDE * (self.rows - 1)

    @property
    def last_columns(self) -> int:
        """Number of valid columns in the last tile column."""
        return self.width - TILE_SIDE * (self.columns - 1)


def row_major_strides(sizes: Sequence[int]) -> list[int]:
    """Returns the row-major strides of a shape."""
    strides = [1] * len(sizes)
    for index in range(len(sizes) - 1, 0, -1):
        strides[index - 1] = strides[index] * sizes[index]
    return strides


# Layouts of ttnn tensors, and their bytes in memory


def layout_of(placement: TensorPlacement) -> TensorLayout:
    """Returns the layout of a whole tensor, as if it were on one core.

    Raises ValueError if the tensor has no elements.
    """
    return _layout(placement.shape, placement.data_type, placement.layout)


def _layout(shape: Shape, data_type: DataType, pages: Layout) -> TensorLayout:
    if pages is Layout.TILE:
        return TensorLayout.aligned(shape, data_type)
    return TensorLayout.create(shape, data_type)


@lru_cache(maxsize=1 << 14)
def _bytes_on_one_core(shape: Shape, data_type: DataType, pages: Layout) -> int:
    return _layout(shape, data_type, pages).shard_bytes if prod(shape) else 0


def element_bits(placement: TensorPlacement) -> int:
    """Returns the bits of an element, without the shared exponent of block floats."""
    return TILE_FORMATS[placement.data_type.mlir].bits


def tiles(placement: TensorPlacement) -> int:
    """Number of tiles that the tensor fills, or would fill, with padding but without idle cores."""
    return TiledShape(placement.shape).tiles


def tile_bytes(placement: TensorPlacement) -> int:
    """Returns the bytes of a tile of the tensor."""
    return tile_bytes_of(placement.data_type)


def row_bytes(placement: TensorPlacement) -> int:
    """Returns the bytes of a row of the tensor, or of its shards."""
    if placement.shards is not None:
        width = placement.shards.shape[1]
    else:
        width = placement.shape[-1] if placement.shape else 1
    return width * element_bits(placement) // 8


def page_bytes(placement: TensorPlacement, alignment: int = 1) -> int:
    """Returns the bytes of a page (tile or row), rounded up to the address alignment."""
    size = tile_bytes(placement) if placement.layout is Layout.TILE else row_bytes(placement)
    return align_up(size, alignment)


def whole_bytes(placement: TensorPlacement) -> int:
    """Returns the bytes of the tensor with tile padding, but not shard padding."""
    return _bytes_on_one_core(placement.shape, placement.data_type, placement.layout)


def shard_bytes(placement: TensorPlacement, alignment: int = 1) -> int:
    """Bytes of a shard of a sharded tensor, its pages rounded up to the alignment of addresses."""
    assert placement.shards is not None
    if placement.layout is Layout.TILE:
        shape = placement.shards.shape
        return _bytes_on_one_core(shape, placement.data_type, placement.layout)
    return placement.shards.shape[0] * page_bytes(placement, alignment)


def stored_bytes(placement: TensorPlacement) -> int:
    """Returns the bytes of a tensor in its memory, with tile and shard padding."""
    if placement.shards is not None:
        return placement.shards.cores * shard_bytes(placement)
    return whole_bytes(placement)


def bank_bytes(placement: TensorPlacement, banks: int, alignment: int) -> int:
    """Returns the bytes of a tensor in each bank: one shard, or its share of the pages.

    Pages are interleaved over the banks and begin at multiples of `alignment`.
    """
    if placement.shards is not None:
        return align_up(shard_bytes(placement, alignment), alignment)
    height, width = placement.collapsed_shape()
    pages = height * width if placement.layout is Layout.TILE else height
    return -(-pages // banks) * page_bytes(placement, alignment)


def is_view(source: TensorPlacement, result: TensorPlacement) -> bool:
    """True if a reshape leaves the elements in place.

    Rows stay rows, and tiles stay tiles. Source:
    ttnn/cpp/ttnn/operations/data_movement/reshape_view/reshape.cpp of tt-metal.
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
