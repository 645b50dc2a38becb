"""Over which cores a convolution divides its image and its result.

The rules are those of tt-metal (determine_parallel_config, determine_output_parallel_config,
determine_input_memory_config and get_conv_padded_input_shape_and_mem_config of conv2d_utils.cpp).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from ttcodegen.dialects.ttcore.shards import (
    CoreRange,
    CoreRanges,
    Layout,
    MemoryLayout,
    Orientation,
    Shards,
    filled_core_ranges,
)
from ttcodegen.dialects.ttcore.tile import TILE_SIDE, tiles_along
from ttcodegen.dialects.ttnn.placement import TensorPlacement
from ttcodegen.dialects.ttnn.program_configs import CoreGrid
from ttcodegen.layout.collapse import align_up

LEAST_ALIGNMENT = 8
"""Channels of 16 bits that can be moved at once."""


class Sizes(Protocol):
    """Sizes and requests that the core division of a convolution depends on."""

    @property
    def in_channels(self) -> int: ...
    @property
    def out_channels(self) -> int: ...
    @property
    def in_pixels(self) -> int: ...
    @property
    def out_pixels(self) -> int: ...
    @property
    def is_product(self) -> bool: ...
    @property
    def block_height(self) -> int:
        """Rows of tiles of the result that are to be computed at a time; 0 if nothing is said."""
        ...


@dataclass(frozen=True)
class DividedCores:
    """Cores, and how a tensor is divided over them."""

    kind: MemoryLayout
    ranges: CoreRanges
    orientation: Orientation = Orientation.ROW_MAJOR

    @property
    def down(self) -> int:
        """Into how many parts the pixels are divided."""
        return Shards((0, 0), self.ranges, self.orientation).grid(self.kind)[0]

    @property
    def across(self) -> int:
        """Into how many parts the channels are divided."""
        return Shards((0, 0), self.ranges, self.orientation).grid(self.kind)[1]

    @property
    def count(self) -> int:
        """Number of cores."""
        return sum(range_.cores for range_ in self.ranges)

    @staticmethod
    def blocks(down: int, across: int, orientation: Orientation) -> DividedCores:
        """A rectangle for blocks."""
        turned = orientation is Orientation.COL_MAJOR
        columns, rows = (down, across) if turned else (across, down)
        return DividedCores("block_sharded", (CoreRange(0, 0, columns - 1, rows - 1),), orientation)

    @staticmethod
    def of(placement: TensorPlacement) -> DividedCores:
        """Those of a sharded tensor."""
        assert placement.shards is not None
        assert placement.memory_layout is not None
        kind: MemoryLayout = placement.memory_layout  # pyright: ignore[reportAssignmentType]
        return DividedCores(kind, placement.shards.core_ranges, placement.shards.orientation)


def parts(number: int, most: int, multiple: int = 1) -> int:
    """The largest number of parts, each of which has something of `number`, and a multiple of
    `multiple`."""
    count = most
    while count > 1:
        rounded = align_up(number, count * multiple)
        if rounded - number < rounded // count:
            break
        count -= 1
    return count


def channel_alignment(
    kind: str | None, layout: Layout, is_product: bool, shard_width: int | None = None
) -> int:
    """Channels that those of each core are rounded up to (get_input_channels_alignment)."""
    if is_product or kind == "width_sharded" or layout is not Layout.ROW_MAJOR:
        return TILE_SIDE
    if shard_width is None:
        return LEAST_ALIGNMENT
    widths = (TILE_SIDE, TILE_SIDE // 2, LEAST_ALIGNMENT)
    return next((width for width in widths if shard_width % width == 0), TILE_SIDE)


def input_cores(
    sizes: Sizes, kind: MemoryLayout, alignment: int, grid: CoreGrid, orientation: Orientation
) -> DividedCores:
    """Cores of the sharded image (determine_parallel_config)."""
    rows = tiles_along(sizes.out_pixels)
    multiple = sizes.block_height or 1
    if kind == "height_sharded":
        count = parts(rows, grid.cores, multiple)
        return DividedCores(kind, filled_core_ranges(count, grid.columns))
    if kind == "width_sharded":
        channels = tiles_along(sizes.in_channels)
        if sizes.is_product:
            count = next(n for n in range(grid.cores, 0, -1) if channels % n == 0)
        else:
            count = parts(channels, grid.cores)
        return DividedCores(kind, filled_core_ranges(count, grid.columns))
    turned = orientation is Orientation.COL_MAJOR
    most_down, most_across = (grid.columns, grid.rows) if turned else (grid.rows, grid.columns)
    blocks = -(-sizes.in_channels // alignment)
    if sizes.is_product:
        outputs = tiles_along(sizes.out_channels)
        common = range(most_across, 0, -1)
        across = next(n for n in common if outputs % n == 0 and blocks % n == 0)
    else:
        across = parts(blocks, most_across)
    return DividedCores.blocks(parts(rows, most_down, multiple), across, orientation)


def output_cores(sizes: Sizes, given: DividedCores, grid: CoreGrid) -> DividedCores:
    """Cores of the result (determine_output_parallel_config)."""
    channels = tiles_along(sizes.out_channels)
    if sizes.is_product or given.kind == "height_sharded":
        return given
    if given.kind == "width_sharded":
        count = parts(channels, grid.cores)
        return DividedCores(given.kind, filled_core_ranges(count, grid.columns))
    turned = given.orientation is Orientation.COL_MAJOR
    most = grid.rows if turned else grid.columns
    return DividedCores.blocks(given.down, parts(channels, most), given.orientation)


def image_shards(
    sizes: Sizes, image: TensorPlacement, cores: DividedCores, alignment: int
) -> TensorPlacement:
    """An image on these cores (determine_input_memory_config)."""
    by_width = cores.kind == "width_sharded"
    side = 1 if by_width and image.layout is Layout.ROW_MAJOR else TILE_SIDE
    height = align_up(sizes.in_pixels, cores.down * side) // cores.down
    width = align_up(sizes.in_channels, cores.across * alignment) // cores.across
    shards = Shards((height, width), cores.ranges, cores.orientation)
    return image.sharded(cores.kind, shards)


def output_shards(sizes: Sizes, result: TensorPlacement, cores: DividedCores) -> TensorPlacement:
    """The result on these cores (get_conv_configs)."""
    height = align_up(sizes.out_pixels, cores.down * TILE_SIDE) // cores.down
    width = align_up(sizes.out_channels, cores.across * TILE_SIDE) // cores.across
    return result.sharded(cores.kind, Shards((height, width), cores.ranges, cores.orientation))
