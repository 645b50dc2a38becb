"""Caches of keys and values that are written in place."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import BFloat16Type, Float32Type
from xdsl.ir import SSAValue

from ttcodegen.dialects.datatypes import element_of, shape_of
from ttcodegen.dialects.tile import TILE_SIDE
from ttcodegen.frontends.stablehlo.conversion import Conversion


def cached(
    conversion: Conversion,
    cache: SSAValue,
    update: SSAValue,
    starts: Sequence[int | SSAValue],
) -> bool:
    """Writes a slice into a cache in place; returns whether it could.

    A program keeps the contents of its arguments, but for one that the caller gives up and nothing
    else reads. The library writes one position of all users (users, heads, positions, size), or
    whole tiles of positions from the first on.
    """
    if cache not in conversion.donated or not conversion.is_only_read(cache):
        return False
    shape, sizes = shape_of(cache.type), shape_of(update.type)
    if len(shape) != 4 or shape[2] % TILE_SIDE or shape[3] % TILE_SIDE:
        return False
    if element_of(cache.type) not in (BFloat16Type(), Float32Type()):
        return False
    if any(sizes[axis] != shape[axis] or starts[axis] != 0 for axis in (0, 1, 3)):
        return False
    builder = conversion.builder
    place = starts[2]
    if isinstance(place, SSAValue) and sizes[2] == 1:
        row = builder.permute(update, [2, 1, 0, 3])
        index = builder.reshape(place, [1])
        builder.emit_op("update_cache", [cache, row, index], [], batch_offset=0)
        return True
    if place == 0 and sizes[2] % TILE_SIDE == 0:
        builder.emit_op("fill_cache", [cache, update], [], batch_offset=0)
        return True
    return False
