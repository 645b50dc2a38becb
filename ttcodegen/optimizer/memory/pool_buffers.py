"""Circular buffers of pools.

The sizes are those of `calculate_pool_cb_sizes` (pool_utils.cpp of tt-metal) and of the
programs that bring the image to shards and copy the halo of each.
"""

from __future__ import annotations

from math import prod

from ttcodegen.dialects.ttcore.shards import Layout
from ttcodegen.dialects.ttcore.tile import FACE_SIDE, TILE_SIDE, tiles_along
from ttcodegen.dialects.ttnn.placement import TensorPlacement
from ttcodegen.layout.collapse import align_up
from ttcodegen.layout.placements import tile_bytes
from ttcodegen.optimizer.core.call import LibraryCall
from ttcodegen.optimizer.core.footprint import stream_bytes
from ttcodegen.optimizer.programs.pool_shards import PoolShards, pool_shards
from ttcodegen.systems.description import ChipDescription

TILE_ELEMENTS = TILE_SIDE * TILE_SIDE


def pool_buffers(call: LibraryCall, chip: ChipDescription) -> int:
    """Bytes of the largest of the programs that a pool is made of."""
    image, width = call.operands[0], shards_of_pool(call, chip).width
    return max(_streamed(image, width, chip), _halo(image, width), _pooled(call, width))


def shards_of_pool(call: LibraryCall, chip: ChipDescription) -> PoolShards:
    """Sharding of a pool's image."""
    return pool_shards(call, chip, _pooled)


def _streamed(image: TensorPlacement, width: int, chip: ChipDescription) -> int:
    """Interleaved pages on their way into shards."""
    if image.shards is not None:
        return 0
    page = tile_bytes(image) if image.layout is Layout.TILE else width * _element_bytes(image)
    return stream_bytes(page, chip)


def _halo(image: TensorPlacement, width: int) -> int:
    """A row of padding for each of two readers; of tiles, also rows of tiles and what they hold."""
    padding = 2 * width * _element_bytes(image)
    if image.layout is Layout.ROW_MAJOR:
        return padding
    rows = tile_bytes(image) + _element_bytes(image) * TILE_ELEMENTS
    return padding + 2 * tiles_along(width) * rows


def _pooled(call: LibraryCall, width: int) -> int:
    image, result = call.operands[0], call.result
    of_means = call.name == "avg_pool2d"
    across = tiles_along(width)
    # Tiles of which one face is used are reduced half as high.
    highest = FACE_SIDE if 0 < width % TILE_SIDE <= FACE_SIDE else TILE_SIDE
    window = prod(call.attributes.get("kernel_size", (1,)))
    at_once = 4 if of_means and window > highest else 8
    rows = window if window <= FACE_SIDE else TILE_SIDE
    gathered = align_up(min(across, at_once) * TILE_SIDE * rows, TILE_ELEMENTS)
    tile = TILE_ELEMENTS * _element_bytes(image)
    # Numbers that windows are multiplied by, and what begins a sum: tiles; the windows of two
    # readers, each twice.
    size = 3 * tile + 4 * gathered * _element_bytes(image)
    if of_means and not _has_one_divisor(call):
        size += 2 * tile
    return size + (across * tile if result.layout is Layout.TILE else 0)


def _has_one_divisor(call: LibraryCall) -> bool:
    """True if all windows of a mean count the same elements."""
    padding = call.attributes.get("padding", (0,))
    counts_padding = bool(call.attributes.get("count_include_pad", True))
    ceils = bool(call.attributes.get("ceil_mode", False))
    return not ceils and (counts_padding or not any(padding))


def _element_bytes(image: TensorPlacement) -> int:
    """Block floats are unpacked to 16 bits."""
    return 4 if image.data_type.mlir == "f32" else 2
