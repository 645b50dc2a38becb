"""Memory layouts: core ranges, page layouts, memory kinds and shards."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import Literal

from ttcodegen.dialects.ttcore.tile import TILE_SIDE
from ttcodegen.systems.cards import NARROWEST

# Rectangles of cores.

CORE_RANGE = re.compile(
    r"(?:#ttnn\.core_range)?\s*<\s*\(\s*(\d+)\s*,\s*(\d+)\s*\)\s*,"
    r"\s*\(\s*(\d+)\s*,\s*(\d+)\s*\)\s*>"
)
"""One range in the text of an attribute."""


@dataclass(frozen=True)
class CoreRange:
    """A rectangle of cores in logical coordinates, first and last included."""

    first_column: int
    first_row: int
    last_column: int
    last_row: int

    @property
    def columns(self) -> int:
        return self.last_column - self.first_column + 1

    @property
    def rows(self) -> int:
        return self.last_row - self.first_row + 1

    @property
    def cores(self) -> int:
        """Number of cores."""
        return self.columns * self.rows

    def coordinates(self, *, by_column: bool = False) -> list[tuple[int, int]]:
        """Column and row of each core, row by row or column by column."""
        columns = range(self.first_column, self.last_column + 1)
        rows = range(self.first_row, self.last_row + 1)
        if by_column:
            return [(column, row) for column in columns for row in rows]
        return [(column, row) for row in rows for column in columns]

    def meets(self, other: CoreRange) -> bool:
        """True if there is a core in both."""
        return (
            self.first_column <= other.last_column
            and other.first_column <= self.last_column
            and self.first_row <= other.last_row
            and other.first_row <= self.last_row
        )


def core_ranges_text(core_ranges: Sequence[CoreRange]) -> str:
    """The text of an attribute that lists ranges of cores."""
    ranges = [
        f"#ttnn.core_range<({r.first_column}, {r.first_row}), ({r.last_column}, {r.last_row})>"
        for r in core_ranges
    ]
    return f"#ttnn.core_range_set<[{', '.join(ranges)}]>"


# How the 2D view of a tensor is divided among the memories of cores or DRAM banks.

GRID_WIDTH = NARROWEST.grid[1]
"""The cores of one row of the grid that shards are laid out on, if the device has as many: so they
fit on every card."""

MemoryLayout = Literal["height_sharded", "width_sharded", "block_sharded"]
"""The ways to shard a tensor."""
SHARDED: tuple[MemoryLayout, ...] = ("height_sharded", "width_sharded", "block_sharded")


class Orientation(StrEnum):
    """In which order shards are dealt out to the cores of a grid."""

    ROW_MAJOR = "row_major"
    COL_MAJOR = "col_major"


CoreRanges = tuple[CoreRange, ...]


def filled_core_ranges(cores: int, grid_width: int = GRID_WIDTH) -> CoreRanges:
    """So many cores of a grid, row by row: whole rows, and a rest."""
    rows, rest = divmod(cores, grid_width)
    whole = (CoreRange(0, 0, grid_width - 1, rows - 1),) if rows else ()
    return whole + ((CoreRange(0, rows, rest - 1, rows),) if rest else ())


@dataclass(frozen=True)
class Shards:
    """Equal parts of the 2D view of a tensor, and the cores that have them.

    The last shards of a row or column are padded to the shape of the others; cores without a shard
    may be left over, and take their share of memory all the same.
    """

    shape: tuple[int, int]
    """Height and width of each shard in elements, with the padding of its tiles."""
    core_ranges: CoreRanges
    orientation: Orientation = Orientation.ROW_MAJOR

    @staticmethod
    def by_rows(cores: int, shape: tuple[int, int], grid_width: int = GRID_WIDTH) -> Shards:
        """Shards on the first cores of a grid, row by row."""
        return Shards(shape, filled_core_ranges(cores, grid_width))

    @property
    def cores(self) -> int:
        """Number of cores, with those that have no shard."""
        return sum(range_.cores for range_ in self.core_ranges)

    @property
    def is_rectangle(self) -> bool:
        """True if its cores are all those of their bounding box."""
        return self.cores == self.bounding_box().cores

    def grid(self, memory_layout: str) -> tuple[int, int]:
        """Rows and columns of the grid of shards, as the text of a layout has them.

        A tensor that is sharded by height has one column of shards wherever its cores are, one that
        is sharded by width one row; blocks need a rectangle of cores.
        """
        if memory_layout == "height_sharded":
            return self.cores, 1
        if memory_layout == "width_sharded":
            return 1, self.cores
        bounds = self.bounding_box()
        if self.orientation is Orientation.COL_MAJOR:
            return bounds.columns, bounds.rows
        return bounds.rows, bounds.columns

    def evenly(self, memory_layout: str, height: int, width: int, in_tiles: bool) -> Shards:
        """As large shards as a tensor of that height and width needs on these cores."""
        side = TILE_SIDE if in_tiles else 1
        down, across = self.grid(memory_layout)
        rows, columns = -(-height // (down * side)) * side, -(-width // (across * side)) * side
        return Shards((rows, columns), self.core_ranges, self.orientation)

    def bounding_box(self) -> CoreRange:
        """The smallest rectangle that has all cores."""
        return CoreRange(
            min(r.first_column for r in self.core_ranges),
            min(r.first_row for r in self.core_ranges),
            max(r.last_column for r in self.core_ranges),
            max(r.last_row for r in self.core_ranges),
        )

    def misfit(self, memory_layout: str, height: int, width: int, in_tiles: bool) -> str | None:
        """Reason for which a tensor of that height and width in elements, padding to tiles
        included, cannot be sharded so; None if it can. The rules are those of tt-metal
        (TensorSpec, and BufferDistributionSpec of the shards)."""
        rows, columns = self.shape
        if rows <= 0 or columns <= 0:
            return f"a shard of {rows}x{columns} holds nothing"
        if in_tiles and (rows % TILE_SIDE or columns % TILE_SIDE):
            return f"a shard of {rows}x{columns} is no multiple of a {TILE_SIDE}x{TILE_SIDE} tile"
        down, across = -(-height // rows), -(-width // columns)
        if memory_layout == "block_sharded":
            if len(self.core_ranges) != 1:
                return "blocks need one rectangle of cores"
            most_down, most_across = self.grid(memory_layout)
            if down > most_down or across > most_across:
                return f"{down}x{across} shards do not fit on {most_down}x{most_across} cores"
            return None
        if memory_layout == "height_sharded":
            if columns != width and (in_tiles or columns < width):
                return f"shards are {columns} wide, the tensor is {width}"
            needed = down
        else:
            if rows != height:
                return f"shards are {rows} high, the tensor is {height}"
            needed = across
        if needed > self.cores:
            return f"{needed} shards do not fit on {self.cores} cores"
        return None


# Page layouts and kinds of memory.


class Layout(Enum):
    """The page layout of a tensor."""

    TILE = "tile"
    ROW_MAJOR = "row_major"


class Memory(Enum):
    """Memory of a tensor, as far as an op depends on it."""

    DEVICE = "device"
    HOST = "host"


LAYOUTS_WANTED = "ttcodegen.layouts_wanted"
"""Marks a module whose TTNN ops, there already or made by the next pass, are to get layouts."""
