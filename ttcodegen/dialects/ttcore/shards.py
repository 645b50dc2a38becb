"""Memory layouts: core ranges, page layouts, kinds of memory, and shards."""

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
"""Pattern of one core range in the text of an attribute."""


@dataclass(frozen=True)
class CoreRange:
    """A rectangle of cores in logical coordinates, first and last inclusive."""

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
        """Returns column and row of each core, row by row or column by column."""
        columns = range(self.first_column, self.last_column + 1)
        rows = range(self.first_row, self.last_row + 1)
        if by_column:
            return [(column, row) for column in columns for row in rows]
        return [(column, row) for row in rows for column in columns]

    def meets(self, other: CoreRange) -> bool:
        """Returns whether two rectangles overlap."""
        return (
            self.first_column <= other.last_column
            and other.first_column <= self.last_column
            and self.first_row <= other.last_row
            and other.first_row <= self.last_row
        )


def core_ranges_text(core_ranges: Sequence[CoreRange]) -> str:
    """Returns the text of an attribute that lists core ranges."""
    ranges = [
        f"#ttnn.core_range<({r.first_column}, {r.first_row}), ({r.last_column}, {r.last_row})>"
        for r in core_ranges
    ]
    return f"#ttnn.core_range_set<[{', '.join(ranges)}]>"


# Sharding of the 2D view of a tensor over cores or DRAM banks.

GRID_WIDTH = NARROWEST.grid[1]
"""Columns of the grid over which shards are laid out by default, so that they fit on every card."""

MemoryLayout = Literal["height_sharded", "width_sharded", "block_sharded"]
"""Kinds of sharding."""
SHARDED: tuple[MemoryLayout, ...] = ("height_sharded", "width_sharded", "block_sharded")


class Orientation(StrEnum):
    """Order in which shards are assigned to the cores of a grid."""

    ROW_MAJOR = "row_major"
    COL_MAJOR = "col_major"


CoreRanges = tuple[CoreRange, ...]


def filled_core_ranges(cores: int, grid_width: int = GRID_WIDTH) -> CoreRanges:
    """Returns the ranges of the first cores of a grid, row by row: whole rows, and a remainder."""
    rows, rest = divmod(cores, grid_width)
    whole = (CoreRange(0, 0, grid_width - 1, rows - 1),) if rows else ()
    return whole + ((CoreRange(0, rows, rest - 1, rows),) if rest else ())


@dataclass(frozen=True)
class Shards:
    """Equal parts of the 2D view of a tensor, and the cores that hold them.

    The last shards of a row or column are padded to the shape of the others. Cores may be left
    without a shard, but reserve its memory all the same.
    """

    shape: tuple[int, int]
    """Height and width of each shard in elements, including tile padding."""
    core_ranges: CoreRanges
    orientation: Orientation = Orientation.ROW_MAJOR

    @staticmethod
    def by_rows(cores: int, shape: tuple[int, int], grid_width: int = GRID_WIDTH) -> Shards:
        """Returns shards on the first cores of a grid, row by row."""
        return Shards(shape, filled_core_ranges(cores, grid_width))

    @property
    def cores(self) -> int:
        """Number of cores, including those without a shard."""
        return sum(range_.cores for range_ in self.core_ranges)

    @property
    def is_rectangle(self) -> bool:
        """Returns whether the cores fill their bounding box."""
        return self.cores == self.bounding_box().cores

    def grid(self, memory_layout: str) -> tuple[int, int]:
        """Returns rows and columns of the grid of shards, as in the text of a layout.

        Height sharding has one column of shards wherever its cores are, width sharding one row;
        block sharding needs a rectangle of cores.
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
        """Returns the smallest equal shards for a tensor of that height and width on these
        cores."""
        side = TILE_SIDE if in_tiles else 1
        down, across = self.grid(memory_layout)
        rows, columns = -(-height // (down * side)) * side, -(-width // (across * side)) * side
        return Shards((rows, columns), self.core_ranges, self.orientation)

    def bounding_box(self) -> CoreRange:
        """Returns the smallest rectangle that contains all cores."""
        return CoreRange(
            min(r.first_column for r in self.core_ranges),
            min(r.first_row for r in self.core_ranges),
            max(r.last_column for r in self.core_ranges),
            max(r.last_row for r in self.core_ranges),
        )

    def misfit(self, memory_layout: str, height: int, width: int, in_tiles: bool) -> str | None:
        """Returns why a tensor of that padded height and width in elements cannot be sharded so, or
        None.

        The rules are those of tt-metal (TensorSpec, and BufferDistributionSpec of the shards).
        """
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


# Page layouts and kinds of memory


class Layout(Enum):
    """Page layout of a tensor."""

    TILE = "tile"
    ROW_MAJOR = "row_major"


class Memory(Enum):
    """Memory of a tensor, as far as ops depend on it."""

    DEVICE = "device"
    HOST = "host"


LAYOUTS_WANTED = "ttcodegen.layouts_wanted"
"""Marks a module whose TTNN ops, existing or created by the next pass, are to get layouts."""
