"""Convolutions of images that are sharded in L1: where their results are placed, and what they
take.

The rules are those of tt-metal (conv2d_utils.cpp, conv2d_op_program_factory_common.cpp), and
hold for the measured calls: an image whose shards a convolution can use stays where it is, and the
result gets shards of the same kind.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import cast

from ttcodegen.dialects.ttcore.shards import (
    CoreRange,
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
from ttcodegen.optimizer.core.call import LibraryCall

SCRATCHPAD = 64
"""Bytes of a circular buffer that all programs of convolutions have."""
_KINDS: tuple[MemoryLayout, ...] = ("height_sharded", "block_sharded")
_TYPES = ("bf16", "f32")


@dataclass(frozen=True)
class Convolution:
    """The sizes of a two-dimensional convolution."""

    batch: int
    size: tuple[int, int]
    """Height and width of the image, as the following pairs."""
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
        """That of a call."""
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
        """Rows of the image as a matrix."""
        return self.batch * prod(self.size)

    @property
    def out_pixels(self) -> int:
        """Rows of the result as a matrix."""
        return self.batch * prod(self.out)

    @property
    def is_product(self) -> bool:
        """True if the library multiplies matrices instead."""
        asked = self.config.shard_layout
        if asked is not None and asked.text == "width_sharded":
            return False
        return self.kernel == self.stride == self.dilation == (1, 1) and not any(self.padding)

    @property
    def block_height(self) -> int:
        """Rows of tiles of the result that are to be computed at a time; 0 if nothing is said."""
        return (self.config.act_block_h_override or 0) // TILE_SIDE

    def is_of_single_channels(self, has_bias: bool) -> bool:
        """True if each channel of a row of pixels is scaled alone (is_1d_depthwise_conv)."""
        alone = self.groups == self.in_channels == self.out_channels
        return alone and self.kernel == (1, 1) and self.size[0] == 1 and not has_bias

    @property
    def takes_shards(self) -> bool:
        """True if the rules below are those of the call: not if the library folds the image first
        (a stride as large as the kernel), or something else is requested."""
        if self.stride == self.kernel and self.stride != (1, 1):
            return False
        asked = self.config
        return not (
            asked.override_sharding_config
            or asked.reshard_if_not_optimal
            or asked.act_block_h_override
            or asked.act_block_w_div
            or asked.config_tensors_in_dram
            or asked.enable_act_double_buffer
            or asked.enable_weights_double_buffer
            or asked.enable_kernel_stride_folding
            or asked.transpose_shards
            or (asked.output_layout is not None and asked.output_layout.text != "tile")
            or (asked.shard_layout is not None and asked.shard_layout.text == "width_sharded")
            or (self.groups == self.in_channels == self.out_channels and self.size[0] == 1)
        )


def sharded_images(call: LibraryCall, grid: CoreGrid) -> Iterator[TensorPlacement]:
    """Yields the placements in which the library would shard a convolution's image.

    By height and in blocks, and its current placement if it can stay there.
    """
    image = call.operands[0]
    convolution = Convolution.of(call)
    if not _takes_image(image, call.result) or not convolution.takes_shards:
        return
    if image.shards is not None and result_of(call, image, grid) is not None:
        yield image
    for kind in _KINDS:
        found = _sharded(image, convolution, kind, grid)
        if found != image and result_of(call, found, grid) is not None:
            yield found


def _takes_image(image: TensorPlacement, result: TensorPlacement) -> bool:
    return (
        image.layout is Layout.TILE
        and result.layout is Layout.TILE
        and image.memory is result.memory is Memory.DEVICE
        and image.data_type is result.data_type
        and image.data_type.mlir in _TYPES
    )


def _sharded(
    image: TensorPlacement, convolution: Convolution, kind: MemoryLayout, grid: CoreGrid
) -> TensorPlacement:
    """determine_parallel_config, determine_input_memory_config."""
    rows = tiles_along(convolution.out_pixels)
    channels = tiles_along(convolution.in_channels)
    if kind == "height_sharded":
        down, across = _parts(rows, grid.cores), 1
        cores = filled_core_ranges(down, grid.columns)
    else:
        down = _parts(rows, grid.rows)
        if convolution.is_product:
            outputs = tiles_along(convolution.out_channels)
            common = range(min(grid.columns, channels, outputs), 0, -1)
            across = next(n for n in common if outputs % n == 0 and channels % n == 0)
        else:
            across = _parts(channels, grid.columns)
        cores = (CoreRange(0, 0, across - 1, down - 1),)
    height = align_up(convolution.in_pixels, down * TILE_SIDE) // down
    width = align_up(channels, across) // across * TILE_SIDE
    plain = image.with_(buffer_type="l1")
    return plain.sharded(kind, Shards((height, width), cores))


def _parts(number: int, most: int) -> int:
    """The largest number of parts, each of which has something of `number`."""
    parts = most
    while parts > 1:
        rounded = align_up(number, parts)
        if rounded - number < rounded // parts:
            break
        parts -= 1
    return parts


def result_of(call: LibraryCall, image: TensorPlacement, grid: CoreGrid) -> TensorPlacement | None:
    """The placement of the result for an image that is sharded so, without a memory configuration;
    None if the library would shard the image anew (determine_output_parallel_config)."""
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
        if convolution.is_product:
            fits = convolution.in_channels == width * across
        else:
            across = _parts(channels, grid.columns)
        cores = (CoreRange(0, 0, across - 1, down - 1),)
    else:
        return None
    if not fits:
        return None
    out_height = align_up(convolution.out_pixels, down * TILE_SIDE) // down
    out_width = align_up(channels, across) // across * TILE_SIDE
    if convolution.is_product:
        # A product leaves out cores that have nothing to compute.
        rows = tiles_along(convolution.out_pixels)
        down = align_up(rows, out_height // TILE_SIDE) // (out_height // TILE_SIDE)
        across = align_up(channels, out_width // TILE_SIDE) // (out_width // TILE_SIDE)
        cores = (CoreRange(0, 0, across - 1, down - 1),)
        if kind == "height_sharded":
            cores = filled_core_ranges(down, box.columns)
    plain = call.result.with_(buffer_type="l1")
    return plain.sharded(kind, Shards((out_height, out_width), cores))


def halo_bytes(call: LibraryCall, image: TensorPlacement, result: TensorPlacement) -> int:
    """Bytes of each L1 that the image takes once more, with the pixels around those of each core
    (sliding_window.cpp); none for a product."""
    convolution = Convolution.of(call)
    if image.shards is None or result.shards is None or convolution.is_product:
        return 0
    return most_pixels(convolution, result.shards.shape[0]) * row_bytes(image)


def most_pixels(convolution: Convolution, each: int) -> int:
    """Pixels of the image that a core needs which computes so many of the result
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
