"""Over which cores a pool divides its image, and what tensors that takes of each L1 on the way.

The rules are those of tt-metal: get_pool_input_memory_config and pool2d_L1
(generic_pools.cpp), determine_pool_config_for_auto_shard (pool_utils.cpp) and
determine_parallel_config (conv2d_utils.cpp).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from ttcodegen.dialects.ttcore.shards import Layout, MemoryLayout
from ttcodegen.dialects.ttcore.tile import FACE_SIDE, TILE_SIDE, tiles_along
from ttcodegen.dialects.ttnn.placement import TensorPlacement
from ttcodegen.dialects.ttnn.program_configs import Conv2dConfig
from ttcodegen.layout.collapse import align_up
from ttcodegen.layout.placements import tile_bytes
from ttcodegen.optimizer.call import LibraryCall, bank_bytes
from ttcodegen.optimizer.programs.convolution import (
    LEAST_ALIGNMENT,
    Convolution,
    most_pixels,
    parts,
)
from ttcodegen.systems.description import ChipDescription

SCHEME = "applied_shard_scheme"
"""The attribute of a call that requests one; no op of ours does."""
_KINDS: tuple[MemoryLayout, ...] = ("height_sharded", "width_sharded", "block_sharded")


@dataclass(frozen=True)
class PoolShards:
    """Sharding of a pool's image and result."""

    kind: MemoryLayout
    down: int
    """Into how many parts the pixels are divided."""
    across: int
    """Into how many parts the channels are divided."""
    width: int
    """Channels of the image on each core."""


LocalBuffers = Callable[[LibraryCall, int], int]
"""Bytes of the circular buffers of a pool with so many channels on each core."""


def pool_shards(call: LibraryCall, chip: ChipDescription, local: LocalBuffers) -> PoolShards:
    """Those of the image if it is sharded, else those that are requested, else those with which
    the circular buffers and the result take least."""
    image = call.operands[0]
    if image.shards is not None and image.buffer_type == "l1":
        kind = cast("MemoryLayout", image.memory_layout)
        down, across = image.shards.grid(kind)
        return PoolShards(kind, down, across, image.shards.shape[1])
    asked = call.attributes.get(SCHEME)
    if asked is not None:
        alignment = TILE_SIDE if _in_tiles(image) else LEAST_ALIGNMENT
        return _divided(call, chip, asked, alignment)
    several = {kind: _divided(call, chip, kind, TILE_SIDE) for kind in _KINDS}
    height, width, block = (
        _size(call, each, local, chip.noc_dram_address_align_bytes) for each in several.values()
    )
    if height > width:
        return several["block_sharded" if width > block else "width_sharded"]
    return several["block_sharded" if height > block else "height_sharded"]


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
        across = _divisor(rows * columns, blocks)
    else:
        down = parts(pixels, rows)
        across = _divisor(columns, blocks, -(-channels // alignment))
    snapped = TILE_SIDE if _in_tiles(image) else LEAST_ALIGNMENT
    return PoolShards(kind, down, across, align_up(channels, across * snapped) // across)


def _divisor(most: int, *numbers: int) -> int:
    """The largest number that divides all of these."""
    return next(n for n in range(most, 0, -1) if all(number % n == 0 for number in numbers))


def _size(call: LibraryCall, shards: PoolShards, local: LocalBuffers, alignment: int) -> int:
    """Size by which the library compares shardings of a pool.

    Circular buffers, and the result in whole tiles.
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
    """The windows of a pool, as those of a convolution."""
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
        # Windows that begin in the image count: it is padded for them.
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
    """Bytes of each L1 that tensors take at most besides the image and the result of the call: the
    image in shards, the same with the pixels around those of each core, and the result in shards
    if it goes to another place."""
    pool, (image, result) = windows_of(call), (call.operands[0], call.result)
    own, rounded = bank_bytes(image, chip), chip.noc_dram_address_align_bytes
    given = image.shards is not None and image.buffer_type == "l1"
    high = TILE_SIDE if _in_tiles(image) else 1
    placed = 0
    if not given:
        height = align_up(pool.in_pixels, shards.down * high) // shards.down
        placed = _bytes(image, height, shards.width, rounded)
    snap = TILE_SIDE if _in_tiles(result) else 1
    each = align_up(pool.out_pixels, shards.down * snap) // shards.down
    halo = align_up(most_pixels(pool, each) * shards.width * 2, rounded)
    alignment = TILE_SIDE if _in_tiles(result) else FACE_SIDE
    width = align_up(pool.in_channels, shards.across * alignment) // shards.across
    computed = _bytes(result, each, width, rounded)
    # An image that came from DRAM is freed as soon as its pixels are copied.
    kept = 0 if image.buffer_type == "dram" else placed
    peak = max(own + placed + halo, own + kept + halo + computed)
    final = bank_bytes(result, chip)
    if not _is_computed_so(result, shards, each, width):
        peak = max(peak, own + kept + halo + computed + final)
    return max(peak - own - final, 0)


def _is_computed_so(result: TensorPlacement, shards: PoolShards, each: int, width: int) -> bool:
    """True if the result stays where the pool computes it."""
    return (
        result.shards is not None
        and result.memory_layout == shards.kind
        and result.shards.shape == (each, width)
        and result.shards.grid(shards.kind) == (shards.down, shards.across)
    )


def _bytes(tensor: TensorPlacement, height: int, width: int, alignment: int) -> int:
    """Bytes of a shard of that many rows and columns."""
    if _in_tiles(tensor):
        return tile_bytes(tensor) * tiles_along(height) * tiles_along(width)
    return align_up(height * align_up(width * 2, 16), alignment)
