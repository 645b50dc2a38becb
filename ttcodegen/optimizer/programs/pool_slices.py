"""Pools of images in DRAM, which the library computes in slices if they do not fit into L1.

The rule follows `determine_slice_config` (op_slicing.cpp of tt-metal) and the L1 that a slice takes
(`calculate_L1_usage_for_pool2d_slice`, pool_utils.cpp).
"""

from __future__ import annotations

from ttcodegen.dialects.ttcore.shards import Layout
from ttcodegen.dialects.ttcore.tile import FACE_SIDE, TILE_SIDE, tiles_along
from ttcodegen.layout.collapse import align_up
from ttcodegen.optimizer.call import LibraryCall
from ttcodegen.optimizer.movement_buffers import element_bytes, program_buffers, shards_of_pool
from ttcodegen.optimizer.programs.windows import most_pixels, windows_of
from ttcodegen.systems.description import ChipDescription

POOLS = ("max_pool2d", "avg_pool2d")


def is_sliced(call: LibraryCall, chip: ChipDescription, room: int) -> bool:
    """Returns whether the library pools slices of an image, and leaves an image in DRAM.

    Args:
        call: a pool.
        chip: the device.
        room: the bytes of L1 that are free on each core.
    """
    return call.operands[0].buffer_type == "dram" and image_bytes(call, chip) > room


def image_bytes(call: LibraryCall, chip: ChipDescription) -> int:
    """Returns the bytes on each core that a pool takes without slices, as the library reckons."""
    image, in_tiles = call.operands[0], call.result.layout is Layout.TILE
    pool, shards = windows_of(call), shards_of_pool(call, chip)
    high = TILE_SIDE if image.layout is Layout.TILE else 1
    size = element_bytes(image)
    row = shards.width * size
    sharded = -(-align_up(pool.in_pixels, high) // shards.down)
    snap = TILE_SIDE if in_tiles else 1
    each = align_up(pool.out_pixels, shards.down * snap) // shards.down
    halo = most_pixels(pool, each) * row
    untilized = 0
    if image.layout is Layout.TILE:
        untilized = 4 * tiles_along(shards.width) * TILE_SIDE * TILE_SIDE * size
    # The library counts the pixels of one image of a batch here.
    pooled = align_up(pool.out[0] * pool.out[1] // shards.down, snap)
    channels = -(-pool.in_channels // shards.across)
    written = min(FACE_SIDE, shards.width) * 2 * pooled * -(-channels // FACE_SIDE)
    buffers = program_buffers(call, channels) + written
    return max(
        align_up(sharded, high) * row + halo + 2 * align_up(row, FACE_SIDE) + untilized,
        halo + buffers + pooled * row,
    )
