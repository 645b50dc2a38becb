"""Blocking plan of 2D convolutions, and core assignment and L1 shards of pools.

The rules follow tt-metal: get_pool_input_memory_config and pool2d_L1
(generic_pools.cpp), determine_pool_config_for_auto_shard (pool_utils.cpp) and
determine_parallel_config (conv2d_utils.cpp).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.dialects.ttcore.shards import SHARDED, Layout, MemoryLayout
from ttcodegen.dialects.ttcore.tile import FACE_SIDE, TILE_SIDE, tiles_along
from ttcodegen.dialects.ttnn.placement import TensorPlacement
from ttcodegen.dialects.ttnn.program_configs import Conv2dConfig, CoreGrid
from ttcodegen.layout.collapse import align_up
from ttcodegen.layout.placements import tile_bytes, tile_bytes_of
from ttcodegen.optimizer.call import (
    BF16_TILE,
    F32_TILE,
    Blocks,
    LibraryCall,
    bank_bytes,
    matmul_buffers,
)
from ttcodegen.optimizer.programs.convolution import (
    LEAST_ALIGNMENT,
    SCRATCHPAD,
    Convolution,
    DividedCores,
    most_pixels,
    parts,
)
from ttcodegen.systems.description import ChipDescription

# Split readers: both data movement processors of a core gather the image of a convolution.
#
# The library compares the time before a matmul can begin with and without them. Rule and figures
# come from is_split_reader_viable (conv2d_op_program_factory_common.cpp of tt-metal).

MIN_TRANSFER = 16
"""Bytes of the shortest transfer in the figures."""


@dataclass(frozen=True)
class Reading:
    """Data that is read before a matmul begins."""

    high: int
    """Tile rows of a block of the image."""
    wide: int
    """Tile columns of a block of the image."""
    channels: int
    read_at_once: int
    """Number of adjacent pixels per read."""
    columns: int
    """Columns of the kernel window."""
    weight_tiles: int
    weight_tile: int
    is_f32: bool
    result: str
    wide_sums: bool


@dataclass(frozen=True)
class _Rate:
    """Bandwidth in GB/s, which grows linearly with the length of transfers up to a maximum."""

    longest: int
    least: float
    most: float

    def of(self, size: int) -> float:
        length = min(max(size, MIN_TRANSFER), self.longest)
        grown = (self.most - self.least) / (self.longest - MIN_TRANSFER)
        return self.least + grown * (length - MIN_TRANSFER)


@dataclass(frozen=True)
class _Speeds:
    """Figures of a chip."""

    clock: float
    """Clock in GHz."""
    local: _Rate
    dram: _Rate
    multicast: _Rate
    tilizing: dict[tuple[bool, str], tuple[int, int]]
    """Cycles per tile with 16-bit and 32-bit sums, by whether the image is float32 and by the
    result's data type."""


_SPEEDS = {
    "wormhole_b0": _Speeds(
        1.0,
        _Rate(1024, 0.868, 27.84),
        _Rate(2048, 0.436, 28.411),
        _Rate(65536, 0.318, 25.345),
        {
            (True, "f32"): (107, 128), (True, "bf16"): (74, 74), (True, "bfp_bf8"): (74, 70),
            (False, "f32"): (92, 117), (False, "bf16"): (61, 68), (False, "bfp_bf8"): (40, 43),
        },
    ),
    "blackhole": _Speeds(
        1.35,
        _Rate(4096, 1.124, 80.48),
        _Rate(2048, 0.671, 80.885),
        _Rate(65536, 0.182, 57.677),
        {
            (True, "f32"): (132, 132), (True, "bf16"): (132, 80), (True, "bfp_bf8"): (132, 77),
            (False, "f32"): (105, 128), (False, "bf16"): (72, 72), (False, "bfp_bf8"): (60, 60),
        },
    ),
}  # fmt: skip


def splits_reading(reading: Reading, arch: str) -> bool:
    """Returns whether split readers pay, although they delay the reading of the weights."""
    speeds = _SPEEDS[arch]
    element = 4 if reading.is_f32 else 2
    unit = element * reading.channels * reading.read_at_once
    image = element * reading.high * TILE_SIDE * reading.channels * reading.columns
    gathering = speeds.clock * image / speeds.local.of(unit)
    weights = reading.weight_tile * reading.weight_tiles
    fetching = speeds.clock * weights * (
        1 / speeds.dram.of(reading.weight_tile) + 1 / speeds.multicast.of(weights)
    )  # fmt: skip
    known = speeds.tilizing.get((reading.is_f32, reading.result))
    if known is None:
        known = speeds.tilizing[reading.is_f32, "bfp_bf8"]
    tilizing = known[reading.wide_sums] * reading.high * reading.wide
    return gathering / 2 + max(fetching, tilizing) < max(gathering + tilizing, fetching)


# Blocking plan of a 2D convolution: tiles and circular buffers per core.
#
# The rules follow conv2d_utils.cpp and conv2d_op_program_factory_common.cpp of tt-metal.


@dataclass(frozen=True)
class Setting:
    """Settings shared by all slices of a convolution."""

    grid: CoreGrid
    space: int
    """Bytes of L1 per core that a slice may use."""
    arch: str
    weight: DataType
    has_bias: bool
    wide_sums: bool
    gathers_sums: bool


def element_bytes(data_type: DataType) -> int:
    """Returns the bytes of an unpacked element; block floats are unpacked to 16 bits."""
    return 4 if data_type.mlir == "f32" else 2


class Plan:
    """Blocking plan of a convolution per core, in tiles."""

    def __init__(
        self,
        setting: Setting,
        convolution: Convolution,
        data_type: DataType,
        cores: DividedCores,
        outputs: DividedCores,
        inner: int,
    ) -> None:
        self.setting, self.convolution = setting, convolution
        self.cores, self.outputs = cores, outputs
        self.data_type, self.inner = data_type, inner
        self.high = self.shard_height(outputs.down) // TILE_SIDE
        self.wide = tiles_along(
            align_up(convolution.out_channels, outputs.across * TILE_SIDE) // outputs.across
        )
        self.block_height = self._block_height()
        self.block_width = self._block_width()

    def shard_height(self, down: int) -> int:
        """Returns the rows of the result per core if they are divided into `down` parts."""
        return align_up(self.convolution.out_pixels, down * TILE_SIDE) // down

    def _block_height(self) -> int:
        requested = self.convolution.block_height
        if not requested:
            return self.high
        return next(n for n in range(min(requested, self.high), 0, -1) if self.high % n == 0)

    def _block_width(self) -> int:
        """Tiles along the depth of a block (determine_per_core_conv_block_config)."""
        convolution, cores = self.convolution, self.cores
        rows, columns = convolution.kernel
        if cores.kind == "height_sharded":
            single = convolution.is_of_single_channels(self.setting.has_bias)
            return tiles_along(self.inner * (1 if single else columns))
        if cores.kind == "block_sharded":
            return tiles_along(self.inner // cores.across * columns)
        parts = cores.count * (convolution.config.act_block_w_div or 1)
        return tiles_along(self.inner * rows * columns // parts)

    def matmul_bytes(self, image: TensorPlacement, result: TensorPlacement) -> int:
        """Returns the bytes of the circular buffers of a 1x1 convolution of a sharded image."""
        setting = self.setting
        weight = TensorPlacement((1, 1, 32, 32), setting.weight, Layout.TILE)
        whole = self.block_width == tiles_along(self.inner)
        return matmul_buffers(
            Blocks(self.high, self.wide, self.block_width, whole),
            image,
            weight,
            result,
            setting.wide_sums,
            weight if setting.has_bias else None,
            multicast=self.cores.kind != "height_sharded",
        )

    def buffers(self, result: TensorPlacement, skips: bool | None = None) -> int:
        """Returns the bytes of the circular buffers of the convolution program (get_cb_info).

        `skips`: whether the program skips the multicast of the image, which needs a buffer.
        """
        setting, convolution, cores = self.setting, self.convolution, self.cores
        config = convolution.config
        by_height = cores.kind == "height_sharded"
        if skips is None:
            skips = not by_height and cores.across == self.outputs.across == 1
        out_tile = tile_bytes(result)
        rows_tile = F32_TILE if self.data_type.mlir == "f32" else BF16_TILE
        weight = tile_bytes_of(setting.weight)
        single = convolution.is_of_single_channels(setting.has_bias)
        first, second = self._readers(single, result)
        # Multicast blocks of the image have the format of the result.
        same = (rows_tile, self.data_type.mlir == "f32") == (
            out_tile,
            result.data_type.mlir == "f32",
        )
        overlaps = cores.kind == "block_sharded" and same and not skips
        times = 2 if config.enable_act_double_buffer else 1
        size = self._weights(single) * weight
        size += self.wide * weight if setting.has_bias else 0
        size += self._sums(result, single)
        if by_height:
            size += times * first * rows_tile
        elif not skips:
            size += times * (first + second) * out_tile
        size += 0 if overlaps else times * second * rows_tile
        size += self.block_height * self.block_width * out_tile
        if not overlaps and cores.kind == "width_sharded":
            size += 2 * self.block_width * rows_tile
        elif not overlaps and cores.kind == "block_sharded":
            size += times * first * rows_tile
        if single:
            size += out_tile
        if config.config_tensors_in_dram:
            size += 2 * self.high * TILE_SIDE
        return size + SCRATCHPAD

    def _weights(self, single: bool) -> int:
        rows, columns = self.convolution.kernel
        deep = self.block_height * columns if single else self.block_width
        count = self.wide * deep
        doubled = bool(self.convolution.config.enable_weights_double_buffer)
        if self.cores.kind == "height_sharded" and self.high > self.block_height:
            return count * rows
        return count * (2 if doubled else 1)

    def _sums(self, result: TensorPlacement, single: bool) -> int:
        """Bytes of the partial sums' buffer; 0 if they share the buffer of the result."""
        setting, convolution, cores = self.setting, self.convolution, self.cores
        steps = convolution.kernel[0]
        if cores.kind == "block_sharded":
            steps *= cores.across * self.outputs.across
        elif cores.kind == "width_sharded":
            steps = cores.count * (convolution.config.act_block_w_div or 1)
        kind = result.data_type.mlir
        if setting.gathers_sums and steps > (1 if setting.has_bias else 2):
            kind = "f32" if setting.wide_sums else "bf16"
        word = convolution.config.output_layout
        in_rows = word is not None and word.text == "row_major"
        if kind == result.data_type.mlir and not in_rows and not single:
            return 0
        return (1 if single else self.high * self.wide) * tile_bytes_of(DataType.from_mlir(kind))

    def _readers(self, single: bool, result: TensorPlacement) -> tuple[int, int]:
        """Returns the tiles of an image block that each of the two readers gathers."""
        whole = self.block_height * self.block_width
        if single or self.cores.kind == "width_sharded" or self.block_height <= 1:
            return whole, 0
        by_height = self.cores.kind == "height_sharded"
        convolution, setting = self.convolution, self.setting
        if by_height and not splits_reading(
            Reading(
                self.block_height,
                self.block_width,
                self.inner,
                convolution.kernel[1] if convolution.dilation[1] == 1 else 1,
                convolution.kernel[1],
                self.wide * self.block_width,
                tile_bytes_of(setting.weight),
                self.data_type.mlir == "f32",
                result.data_type.mlir,
                setting.wide_sums,
            ),
            setting.arch,
        ):
            return whole, 0
        last = self.block_height // 2
        return (self.block_height - last) * self.block_width, last * self.block_width


SCHEME = "applied_shard_scheme"
"""Attribute of a pool with a requested memory layout; the compiler never sets it."""


@dataclass(frozen=True)
class PoolShards:
    """Sharding of a pool's image and result."""

    kind: MemoryLayout
    down: int
    """Number of parts of the pixels."""
    across: int
    """Number of parts of the channels."""
    width: int
    """Channels of the image per core."""


LocalBuffers = Callable[[LibraryCall, int], int]
"""Bytes of the circular buffers of a pool, by its number of channels per core."""


def pool_shards(call: LibraryCall, chip: ChipDescription, local: LocalBuffers) -> PoolShards:
    """Returns the sharding of a pool.

    It is the sharding of the image, or else the requested one, or else the one with the smallest
    circular buffers and result."""
    image = call.operands[0]
    if image.shards is not None and image.buffer_type == "l1":
        kind = cast("MemoryLayout", image.memory_layout)
        down, across = image.shards.grid(kind)
        return PoolShards(kind, down, across, image.shards.shape[1])
    requested = call.attributes.get(SCHEME)
    if requested is not None:
        alignment = TILE_SIDE if _in_tiles(image) else LEAST_ALIGNMENT
        return _divided(call, chip, requested, alignment)
    by_kind = {kind: _divided(call, chip, kind, TILE_SIDE) for kind in SHARDED}
    height, width, block = (
        _compared_size(call, each, local, chip.noc_dram_address_align_bytes)
        for each in by_kind.values()
    )
    if height > width:
        return by_kind["block_sharded" if width > block else "width_sharded"]
    return by_kind["block_sharded" if height > block else "height_sharded"]


def _in_tiles(placement: TensorPlacement) -> bool:
    return placement.layout is Layout.TILE


def _divided(
    call: LibraryCall, chip: ChipDescription, kind: MemoryLayout, alignment: int
) -> PoolShards:
    pool, (image, result) = windows_of(call), (call.operands[0], call.result)
    channels, (rows, columns) = pool.in_channels, chip.grid
    high = TILE_SIDE if _in_tiles(result) else 1
    wide = TILE_SIDE if _in_tiles(image) or _in_tiles(result) else FACE_SIDE
    pixels, blocks = -(-pool.out_pixels // high), -(-channels // wide)
    down = across = 1
    if kind == "height_sharded":
        down = parts(pixels, rows * columns)
    elif kind == "width_sharded":
        across = _common_divisor(rows * columns, blocks)
    else:
        down = parts(pixels, rows)
        across = _common_divisor(columns, blocks, -(-channels // alignment))
    snapped = TILE_SIDE if _in_tiles(image) else LEAST_ALIGNMENT
    return PoolShards(kind, down, across, align_up(channels, across * snapped) // across)


def _common_divisor(most: int, *numbers: int) -> int:
    """Returns the largest common divisor of the numbers up to `most`."""
    return next(n for n in range(most, 0, -1) if all(number % n == 0 for number in numbers))


def _compared_size(
    call: LibraryCall, shards: PoolShards, local: LocalBuffers, alignment: int
) -> int:
    """Returns the size by which the library compares shardings of a pool.

    It is the size of the circular buffers and of the result in whole tiles.
    """
    pool, result = windows_of(call), call.result
    width = align_up(pool.in_channels, shards.across * TILE_SIDE) // shards.across
    height = align_up(pool.out_pixels, shards.down * TILE_SIDE) // shards.down
    each = -(-pool.in_channels // shards.across)
    if _in_tiles(result):
        size = tile_bytes(result) * height * width // (TILE_SIDE * TILE_SIDE)
    else:
        size = min(FACE_SIDE, width) * 2 * height * -(-each // FACE_SIDE)
    return local(call, each) + align_up(size, alignment)


def windows_of(call: LibraryCall) -> Convolution:
    """Returns the windows of a pool as a depthwise convolution."""
    given = call.attributes
    channels = int(given["channels"])
    (kernel, stride, dilation) = (
        (int(pair[0]), int(pair[1]))
        for pair in (given["kernel_size"], given["stride"], given.get("dilation", (1, 1)))
    )
    sides = [int(side) for side in given.get("padding", (0, 0))]
    if len(sides) == 2:
        sides = [sides[0], sides[0], sides[1], sides[1]]
    size = (int(given["input_height"]), int(given["input_width"]))
    if given.get("ceil_mode"):
        # Padding completes the windows that begin in the image.
        for axis, after in enumerate((1, 3)):
            reach = size[axis] + sides[after - 1] + sides[after]
            reach -= dilation[axis] * (kernel[axis] - 1) + 1
            sides[after] += -reach % stride[axis]
    return Convolution(
        int(given["batch_size"]),
        size,
        channels,
        channels,
        kernel,
        stride,
        dilation,
        padding=(sides[0], sides[1], sides[2], sides[3]),
        groups=channels,
        config=Conv2dConfig(),
    )


def pool_tensors(call: LibraryCall, chip: ChipDescription, shards: PoolShards) -> int:
    """Returns the peak bytes per L1 bank of a pool's temporary tensors.

    These are the sharded image, its copy with halos, and the sharded result if it is moved."""
    pool, (image, result) = windows_of(call), (call.operands[0], call.result)
    own, rounded = bank_bytes(image, chip), chip.noc_dram_address_align_bytes
    given = image.shards is not None and image.buffer_type == "l1"
    high = TILE_SIDE if _in_tiles(image) else 1
    placed = 0
    if not given:
        height = align_up(pool.in_pixels, shards.down * high) // shards.down
        placed = _shard_bytes(image, height, shards.width, rounded)
    snap = TILE_SIDE if _in_tiles(result) else 1
    each = align_up(pool.out_pixels, shards.down * snap) // shards.down
    halo = align_up(most_pixels(pool, each) * shards.width * 2, rounded)
    alignment = TILE_SIDE if _in_tiles(result) else FACE_SIDE
    width = align_up(pool.in_channels, shards.across * alignment) // shards.across
    computed = _shard_bytes(result, each, width, rounded)
    # The shards of an image from DRAM are freed after their pixels are copied.
    kept = 0 if image.buffer_type == "dram" else placed
    peak = max(own + placed + halo, own + kept + halo + computed)
    final = bank_bytes(result, chip)
    if not _stays_in_place(result, shards, each, width):
        peak = max(peak, own + kept + halo + computed + final)
    return max(peak - own - final, 0)


def _stays_in_place(result: TensorPlacement, shards: PoolShards, each: int, width: int) -> bool:
    """Returns whether the result stays where the pool computes it."""
    return (
        result.shards is not None
        and result.memory_layout == shards.kind
        and result.shards.shape == (each, width)
        and result.shards.grid(shards.kind) == (shards.down, shards.across)
    )


def _shard_bytes(tensor: TensorPlacement, height: int, width: int, alignment: int) -> int:
    """Returns the bytes of a shard of these rows and columns."""
    if _in_tiles(tensor):
        return tile_bytes(tensor) * tiles_along(height) * tiles_along(width)
    return align_up(height * align_up(width * 2, 16), alignment)
