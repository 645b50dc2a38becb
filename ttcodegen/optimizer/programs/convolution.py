"""Core assignment and L1 shards of convolutions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import Protocol, cast

from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.dialects.ttcore.shards import (
    CoreRange,
    CoreRanges,
    Layout,
    Memory,
    MemoryLayout,
    Orientation,
    Shards,
    filled_core_ranges,
)
from ttcodegen.dialects.ttcore.tile import TILE_SIDE, tiles_along
from ttcodegen.dialects.ttnn.placement import TensorPlacement
from ttcodegen.dialects.ttnn.program_configs import Conv2dConfig, CoreGrid
from ttcodegen.layout.collapse import align_up
from ttcodegen.layout.placements import row_bytes
from ttcodegen.optimizer.call import LibraryCall

# Convolutions of sharded images in L1: placements of images and results, and halos.
#
# The rules follow tt-metal (conv2d_utils.cpp, conv2d_op_program_factory_common.cpp), and hold for
# the measured calls: an image whose shards a convolution can use stays in place, and the result
# gets shards of the same kind.

SCRATCHPAD = 64
"""Bytes of a circular buffer of all convolution programs."""
_KINDS: tuple[MemoryLayout, ...] = ("height_sharded", "block_sharded")
_NARROW = ("bf16", "bfp_bf8")
"""Data types of image and result, which may differ; both may be f32 as well."""


@dataclass(frozen=True)
class Convolution:
    """Sizes of a 2D convolution."""

    batch: int
    size: tuple[int, int]
    """Height and width of the image; the pairs below have the same order."""
    in_channels: int
    out_channels: int
    kernel: tuple[int, int]
    stride: tuple[int, int]
    dilation: tuple[int, int]
    padding: tuple[int, int, int, int]
    """Top, bottom, left, right."""
    groups: int
    config: Conv2dConfig

    @staticmethod
    def of(call: LibraryCall) -> Convolution:
        """Returns the sizes of a call."""
        given = call.attributes
        pairs = [
            (int(pair[0]), int(pair[1]))
            for pair in (given["kernel_size"], given.get("stride", (1, 1)), given["dilation"])
        ]
        sides = [int(side) for side in given.get("padding", (0, 0))]
        if len(sides) == 2:
            sides = [sides[0], sides[0], sides[1], sides[1]]
        return Convolution(
            int(given["batch_size"]),
            (int(given["input_height"]), int(given["input_width"])),
            int(given["in_channels"]),
            int(given["out_channels"]),
            *pairs,
            padding=(sides[0], sides[1], sides[2], sides[3]),
            groups=int(given.get("groups", 1)),
            config=cast("Conv2dConfig", given.get("conv2d_config") or Conv2dConfig()),
        )

    @property
    def padded(self) -> tuple[int, int]:
        """Height and width of the image with its padding."""
        top, bottom, left, right = self.padding
        return self.size[0] + top + bottom, self.size[1] + left + right

    @property
    def out(self) -> tuple[int, int]:
        """Height and width of the result."""
        height, width = (
            (size - dilation * (kernel - 1) - 1) // stride + 1
            for size, kernel, stride, dilation in zip(
                self.padded, self.kernel, self.stride, self.dilation, strict=True
            )
        )
        return height, width

    @property
    def in_pixels(self) -> int:
        """Number of pixels of the images, rows of the image matrix."""
        return self.batch * prod(self.size)

    @property
    def out_pixels(self) -> int:
        """Number of pixels of the results, rows of the result matrix."""
        return self.batch * prod(self.out)

    @property
    def is_matmul(self) -> bool:
        """Returns whether the library computes the convolution as a matmul."""
        requested = self.config.shard_layout
        if requested is not None and requested.text == "width_sharded":
            return False
        return self.kernel == self.stride == self.dilation == (1, 1) and not any(self.padding)

    @property
    def block_height(self) -> int:
        """Requested tile rows of the result per block; 0 if not given."""
        return (self.config.act_block_h_override or 0) // TILE_SIDE

    def is_of_single_channels(self, has_bias: bool) -> bool:
        """Returns whether this is a depthwise convolution of a row (is_1d_depthwise_conv)."""
        alone = self.groups == self.in_channels == self.out_channels
        return alone and self.kernel == (1, 1) and self.size[0] == 1 and not has_bias

    @property
    def takes_shards(self) -> bool:
        """Returns whether the rules of sharded images hold for the call.

        They do not if the library folds the image first (stride equal to the kernel), or if the
        config sets fields that change them."""
        if self.stride == self.kernel and self.stride != (1, 1):
            return False
        requested = self.config
        return not (
            requested.override_sharding_config
            or requested.reshard_if_not_optimal
            or requested.act_block_h_override
            or requested.act_block_w_div
            or requested.config_tensors_in_dram
            or requested.enable_act_double_buffer
            or requested.enable_weights_double_buffer
            or requested.enable_kernel_stride_folding
            or requested.transpose_shards
            or (requested.output_layout is not None and requested.output_layout.text != "tile")
            or (
                requested.shard_layout is not None
                and requested.shard_layout.text == "width_sharded"
            )
            or (self.groups == self.in_channels == self.out_channels and self.size[0] == 1)
        )


def sharded_images(call: LibraryCall, grid: CoreGrid) -> Iterator[TensorPlacement]:
    """Yields sharded placements of a convolution's image.

    The current one, if the image can stay there, and the library's height and block sharded ones.
    """
    image = call.operands[0]
    convolution = Convolution.of(call)
    if image.layout is Layout.ROW_MAJOR and convolution.in_channels % TILE_SIDE == 0:
        # Pools return rows: they are tilized on the way to the shards.
        image = image.with_(layout=Layout.TILE)
    if not _can_shard(image, call.result) or not convolution.takes_shards:
        return
    if image.shards is not None and result_of(call, image, grid) is not None:
        yield image
    for kind in _KINDS:
        found = _sharded(image, convolution, kind, grid)
        if found != image and result_of(call, found, grid) is not None:
            yield found


def _can_shard(image: TensorPlacement, result: TensorPlacement) -> bool:
    return (
        image.layout is Layout.TILE
        and result.layout is Layout.TILE
        and image.memory is result.memory is Memory.DEVICE
        and (
            {image.data_type.mlir, result.data_type.mlir} <= {*_NARROW}
            or image.data_type.mlir == result.data_type.mlir == "f32"
        )
    )


def _sharded(
    image: TensorPlacement, convolution: Convolution, kind: MemoryLayout, grid: CoreGrid
) -> TensorPlacement:
    """Returns the image as the library shards it (determine_parallel_config,
    determine_input_memory_config)."""
    rows = tiles_along(convolution.out_pixels)
    channels = tiles_along(convolution.in_channels)
    if kind == "height_sharded":
        down, across = parts(rows, grid.cores), 1
        cores = filled_core_ranges(down, grid.columns)
    else:
        down = parts(rows, grid.rows)
        if convolution.is_matmul:
            outputs = tiles_along(convolution.out_channels)
            common = range(min(grid.columns, channels, outputs), 0, -1)
            across = next(n for n in common if outputs % n == 0 and channels % n == 0)
        else:
            across = parts(channels, grid.columns)
        cores = (CoreRange(0, 0, across - 1, down - 1),)
    height = align_up(convolution.in_pixels, down * TILE_SIDE) // down
    width = align_up(channels, across) // across * TILE_SIDE
    plain = image.with_(buffer_type="l1")
    return plain.sharded(kind, Shards((height, width), cores))


def result_of(call: LibraryCall, image: TensorPlacement, grid: CoreGrid) -> TensorPlacement | None:
    """Returns the placement of the result for a sharded image, without a memory config.

    None if the library would reshard the image (determine_output_parallel_config)."""
    convolution, shards = Convolution.of(call), image.shards
    kind = image.memory_layout
    if shards is None or image.buffer_type != "l1" or not convolution.takes_shards:
        return None
    height, width = shards.shape
    if shards.orientation is not Orientation.ROW_MAJOR or width % TILE_SIDE or height % TILE_SIDE:
        return None
    box = shards.bounding_box()
    if (box.first_column, box.first_row) != (0, 0):
        return None
    channels = tiles_along(convolution.out_channels)
    if kind == "height_sharded":
        down, across, cores = shards.cores, 1, shards.core_ranges
        fits = width == tiles_along(convolution.in_channels) * TILE_SIDE
    elif kind == "block_sharded":
        down, across = box.rows, box.columns
        fits = width * across >= convolution.in_channels
        if convolution.is_matmul:
            fits = convolution.in_channels == width * across
        else:
            across = parts(channels, grid.columns)
        cores = (CoreRange(0, 0, across - 1, down - 1),)
    else:
        return None
    if not fits:
        return None
    out_height = align_up(convolution.out_pixels, down * TILE_SIDE) // down
    out_width = align_up(channels, across) // across * TILE_SIDE
    if convolution.is_matmul:
        # A matmul leaves out cores without rows or columns to compute.
        rows = tiles_along(convolution.out_pixels)
        down = align_up(rows, out_height // TILE_SIDE) // (out_height // TILE_SIDE)
        across = align_up(channels, out_width // TILE_SIDE) // (out_width // TILE_SIDE)
        cores = (CoreRange(0, 0, across - 1, down - 1),)
        if kind == "height_sharded":
            cores = filled_core_ranges(down, box.columns)
    plain = call.result.with_(buffer_type="l1")
    return plain.sharded(kind, Shards((out_height, out_width), cores))


def halo_bytes(call: LibraryCall, image: TensorPlacement, result: TensorPlacement) -> int:
    """Returns the bytes of L1 per core of the image's copy with halos (sliding_window.cpp).

    0 for convolutions that are computed as matmuls."""
    convolution = Convolution.of(call)
    if image.shards is None or result.shards is None or convolution.is_matmul:
        return 0
    # The rows around a block are not tiled: block floats become bfloat16.
    rows = image.with_(data_type=DataType.BFLOAT16) if image.data_type.is_block_float else image
    return most_pixels(convolution, result.shards.shape[0]) * row_bytes(rows)


def most_pixels(convolution: Convolution, each: int) -> int:
    """Returns the maximum pixels of the image that a core needs for `each` pixels of the result
    (generate_shard_boundaries)."""
    total = convolution.out_pixels
    height, width = convolution.padded
    down, across = convolution.out
    reach = (convolution.kernel[0] - 1) * convolution.dilation[0] * width
    reach += (convolution.kernel[1] - 1) * convolution.dilation[1]

    def first_pixel(output: int) -> int:
        image_number, place = divmod(output, down * across)
        row, column = divmod(place, across)
        start = image_number * height * width
        return start + row * convolution.stride[0] * width + column * convolution.stride[1]

    return max(
        first_pixel(min(start + each, total) - 1) + reach - first_pixel(start) + 1
        for start in range(0, total, each)
    )


# Cores over which a convolution divides its image and its result.
#
# The rules follow tt-metal (determine_parallel_config, determine_output_parallel_config,
# determine_input_memory_config and get_conv_padded_input_shape_and_mem_config of
# conv2d_utils.cpp).

LEAST_ALIGNMENT = 8
"""Minimum alignment of 16-bit channels: the elements of a 16-byte transfer."""


class Sizes(Protocol):
    """Sizes and requests that determine the core assignment of a convolution."""

    @property
    def in_channels(self) -> int: ...
    @property
    def out_channels(self) -> int: ...
    @property
    def in_pixels(self) -> int: ...
    @property
    def out_pixels(self) -> int: ...
    @property
    def is_matmul(self) -> bool: ...
    @property
    def block_height(self) -> int:
        """Requested tile rows of the result per block; 0 if not given."""
        ...


@dataclass(frozen=True)
class DividedCores:
    """Cores of a sharded tensor, with the kind and orientation of its shards."""

    kind: MemoryLayout
    ranges: CoreRanges
    orientation: Orientation = Orientation.ROW_MAJOR

    @property
    def down(self) -> int:
        """Number of parts of the pixels."""
        return Shards((0, 0), self.ranges, self.orientation).grid(self.kind)[0]

    @property
    def across(self) -> int:
        """Number of parts of the channels."""
        return Shards((0, 0), self.ranges, self.orientation).grid(self.kind)[1]

    @property
    def count(self) -> int:
        """Number of cores."""
        return sum(range_.cores for range_ in self.ranges)

    @staticmethod
    def blocks(down: int, across: int, orientation: Orientation) -> DividedCores:
        """Returns the rectangle of cores of block shards."""
        column_major = orientation is Orientation.COL_MAJOR
        columns, rows = (down, across) if column_major else (across, down)
        return DividedCores("block_sharded", (CoreRange(0, 0, columns - 1, rows - 1),), orientation)

    @staticmethod
    def of(placement: TensorPlacement) -> DividedCores:
        """Returns the cores of a sharded tensor."""
        assert placement.shards is not None
        assert placement.memory_layout is not None
        kind: MemoryLayout = placement.memory_layout  # pyright: ignore[reportAssignmentType]
        return DividedCores(kind, placement.shards.core_ranges, placement.shards.orientation)


def parts(number: int, most: int, multiple: int = 1) -> int:
    """Returns the largest number of nonempty parts, whose sizes are multiples of `multiple`."""
    count = most
    while count > 1:
        rounded = align_up(number, count * multiple)
        if rounded - number < rounded // count:
            break
        count -= 1
    return count


def channel_alignment(
    kind: str | None, layout: Layout, is_matmul: bool, shard_width: int | None = None
) -> int:
    """Returns the alignment of the channels per core (get_input_channels_alignment)."""
    if is_matmul or kind == "width_sharded" or layout is not Layout.ROW_MAJOR:
        return TILE_SIDE
    if shard_width is None:
        return LEAST_ALIGNMENT
    widths = (TILE_SIDE, TILE_SIDE // 2, LEAST_ALIGNMENT)
    return next((width for width in widths if shard_width % width == 0), TILE_SIDE)


def input_cores(
    sizes: Sizes, kind: MemoryLayout, alignment: int, grid: CoreGrid, orientation: Orientation
) -> DividedCores:
    """Returns the cores of the sharded image (determine_parallel_config)."""
    rows = tiles_along(sizes.out_pixels)
    multiple = sizes.block_height or 1
    if kind == "height_sharded":
        count = parts(rows, grid.cores, multiple)
        return DividedCores(kind, filled_core_ranges(count, grid.columns))
    if kind == "width_sharded":
        channels = tiles_along(sizes.in_channels)
        if sizes.is_matmul:
            count = next(n for n in range(grid.cores, 0, -1) if channels % n == 0)
        else:
            count = parts(channels, grid.cores)
        return DividedCores(kind, filled_core_ranges(count, grid.columns))
    column_major = orientation is Orientation.COL_MAJOR
    most_down, most_across = (
        (grid.columns, grid.rows) if column_major else (grid.rows, grid.columns)
    )
    blocks = -(-sizes.in_channels // alignment)
    if sizes.is_matmul:
        outputs = tiles_along(sizes.out_channels)
        common = range(most_across, 0, -1)
        across = next(n for n in common if outputs % n == 0 and blocks % n == 0)
    else:
        across = parts(blocks, most_across)
    return DividedCores.blocks(parts(rows, most_down, multiple), across, orientation)


def output_cores(sizes: Sizes, given: DividedCores, grid: CoreGrid) -> DividedCores:
    """Returns the cores of the result (determine_output_parallel_config)."""
    channels = tiles_along(sizes.out_channels)
    if sizes.is_matmul or given.kind == "height_sharded":
        return given
    if given.kind == "width_sharded":
        count = parts(channels, grid.cores)
        return DividedCores(given.kind, filled_core_ranges(count, grid.columns))
    column_major = given.orientation is Orientation.COL_MAJOR
    most = grid.rows if column_major else grid.columns
    return DividedCores.blocks(given.down, parts(channels, most), given.orientation)


def image_shards(
    sizes: Sizes, image: TensorPlacement, cores: DividedCores, alignment: int
) -> TensorPlacement:
    """Returns the image sharded over cores (determine_input_memory_config)."""
    by_width = cores.kind == "width_sharded"
    side = 1 if by_width and image.layout is Layout.ROW_MAJOR else TILE_SIDE
    height = align_up(sizes.in_pixels, cores.down * side) // cores.down
    width = align_up(sizes.in_channels, cores.across * alignment) // cores.across
    shards = Shards((height, width), cores.ranges, cores.orientation)
    return image.sharded(cores.kind, shards)


def output_shards(sizes: Sizes, result: TensorPlacement, cores: DividedCores) -> TensorPlacement:
    """Returns the result sharded over cores (get_conv_configs)."""
    height = align_up(sizes.out_pixels, cores.down * TILE_SIDE) // cores.down
    width = align_up(sizes.out_channels, cores.across * TILE_SIDE) // cores.across
    return result.sharded(cores.kind, Shards((height, width), cores.ranges, cores.orientation))
