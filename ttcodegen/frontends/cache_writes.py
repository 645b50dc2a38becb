"""Writes of keys and values into caches that a program may overwrite."""

from __future__ import annotations

from xdsl.dialects.builtin import BFloat16Type, Float32Type
from xdsl.ir import SSAValue

from ttcodegen.dialects.core.datatypes import element_of, shape_of
from ttcodegen.dialects.ttcore.tile import TILE_SIDE
from ttcodegen.ops.core.builder import OpBuilder


def write_cache(
    builder: OpBuilder, cache: SSAValue, update: SSAValue, place: int | SSAValue
) -> bool:
    """Writes entries of all users into a cache (users, heads, positions, size) in place, from a
    position on; returns whether the library can.

    It writes one position of all users, or whole tiles of positions from the first on.
    """
    shape, sizes = shape_of(cache.type), shape_of(update.type)
    if len(shape) != 4 or shape[2] % TILE_SIDE or shape[3] % TILE_SIDE:
        return False
    if element_of(cache.type) not in (BFloat16Type(), Float32Type()):
        return False
    if len(sizes) != 4 or any(sizes[axis] != shape[axis] for axis in (0, 1, 3)):
        return False
    if isinstance(place, SSAValue) and sizes[2] == 1:
        row = builder.permute(update, [2, 1, 0, 3])
        index = builder.reshape(place, [1])
        builder.emit_op("update_cache", [cache, row, index], [], batch_offset=0)
        return True
    if not isinstance(place, SSAValue) and place == 0 and sizes[2] % TILE_SIDE == 0:
        builder.emit_op("fill_cache", [cache, update], [], batch_offset=0)
        return True
    return False
