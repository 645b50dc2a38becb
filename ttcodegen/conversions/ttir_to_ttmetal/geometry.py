"""Where the tiles of a tensor lie, and which of them another tensor's tile needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

from ttcodegen.dialects.tile import TILE_SIDE


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
        return -(-self.height // TILE_SIDE)

    @property
    def columns(self) -> int:
        """Columns of tiles in each batch."""
        return -(-self.width // TILE_SIDE)

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


def broadcast_strides(operand: TiledShape, domain: TiledShape) -> list[int]:
    """For each dimension of the domain's tile grid how far the operand's tile moves with it; 0
    where the operand has one element that stands for all."""
    missing = len(domain.grid) - len(operand.grid)
    found = [0] * missing + row_major_strides(operand.grid)
    sizes = [1] * (len(domain.grid) - len(operand.shape)) + list(operand.shape)
    # A tensor of rank 0 or 1 has a grid of two dimensions all the same.
    sizes = (
        sizes[-len(domain.grid) :]
        if len(operand.shape) > 1
        else [*([1] * (len(domain.grid) - 1)), operand.width]
    )
    return [0 if size == 1 else stride for size, stride in zip(sizes, found, strict=True)]


@dataclass(frozen=True)
class Broadcast:
    """Which part of a tile is repeated because the operand has one row, one column or both."""

    rows: bool
    """The first row stands for all."""
    columns: bool
    """The first column stands for all."""

    @property
    def word(self) -> str:
        """none, row, column or element."""
        if self.rows:
            return "element" if self.columns else "row"
        return "column" if self.columns else "none"


def broadcast_of(operand: TiledShape, domain: TiledShape) -> Broadcast:
    """How the tiles of an operand have to be filled up for a domain it is broadcast over."""
    return Broadcast(
        operand.height == 1 and domain.height > 1, operand.width == 1 and domain.width > 1
    )
