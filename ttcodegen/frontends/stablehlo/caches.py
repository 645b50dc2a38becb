"""Caches of keys and values that are written in place."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from ttcodegen.frontends.cache_writes import write_cache
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
    if any(start != 0 for axis, start in enumerate(starts) if axis != 2):
        return False
    return len(starts) == 4 and write_cache(conversion.builder, cache, update, starts[2])
