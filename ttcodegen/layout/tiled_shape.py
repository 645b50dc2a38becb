"""Tensors as grids of tiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from math import prod

from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.dialects.ttcore.tile import TILE_FORMATS, TILE_SIDE, tiles_along


@cache
def tile_bytes_of(data_type: DataType) -> int:
    """Bytes of a tile of a tensor of that data type."""
    return TILE_FORMATS[data_type.mlir].tile_bytes()


@dataclass(frozen=True)
class TiledShape:
    """A tensor in pages of one tile, batch by batch, row of tiles by row of tiles.

    A tensor of rank 0 or 1 is one row.
    """

    shape: tuple[int, ...]

    @cached_property
    def batch(self) -> tuple[int, ...]:
        """The dimensions before the last two."""
        return self.shape[:-2]

    @property
    def height(self) -> int:
        """Elements of the last dimension but one."""
        return self.shape[-2] if len(self.shape) > 1 else 1

    @property
    def width(self) -> int:
        """Elements of the last dimension."""
        return self.shape[-1] if self.shape else 1

    @property
    def rows(self) -> int:
        """Rows of tiles in each batch."""
        return tiles_along(self.height)

    @property
    def columns(self) -> int:
        """Columns of tiles in each batch."""
        return tiles_along(self.width)

    @cached_property
    def grid(self) -> tuple[int, ...]:
        """The tiles in each dimension: batch dimensions, rows, columns."""
        return (*self.batch, self.rows, self.columns)

    @cached_property
    def tiles(self) -> int:
        """How many tiles there are."""
        return prod(self.grid)

    @property
    def last_rows(self) -> int:
        """Rows of the lowest tiles that hold elements."""
        return self.height - TILE_SIDE * (self.rows - 1)

    @property
    def last_columns(self) -> int:
        """Columns of the rightmost tiles that hold elements."""
        return self.width - TILE_SIDE * (self.columns - 1)


def row_major_strides(sizes: Sequence[int]) -> list[int]:
    """How far apart neighbours of each dimension are, the last one varying fastest."""
    strides = [1] * len(sizes)
    for index in range(len(sizes) - 1, 0, -1):
        strides[index - 1] = strides[index] * sizes[index]
    return strides
