"""Chunk sizes of attention in queries and keys."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import inf

from ttcodegen.dialects.ttcore.tile import TILE_SIDE, tiles_along
from ttcodegen.dialects.ttnn.program_configs import SDPA, CoreGrid
from ttcodegen.ops.attention.primitives import fitting_grid, needed_program
from ttcodegen.optimizer.core.call import LibraryCall
from ttcodegen.optimizer.cost.calls import CostModel
from ttcodegen.optimizer.programs.attention_decode import DECODING, DecodeAttention

CHUNKS = (32, 64, 128, 256, 512)
"""Rows of queries or keys that are taken at a time; larger chunks of both do not fit into L1."""


def cheapest_program(call: LibraryCall, model: CostModel, room: int) -> SDPA | None:
    """The fastest chunks of those whose circular buffers fit into `room` bytes of
    each L1, the smaller ones of equals; None if the library's own are as good."""
    best, least = None, model.cost(call).seconds
    if call.name in DECODING and _needed(call, model.grid):
        least = inf
    for config in _programs(call, model.grid):
        attributes = {**call.attributes, "program_config": config}
        cost = model.cost(replace(call, attributes=attributes))
        if cost.circular_buffers <= room and cost.seconds < least:
            best, least = config, cost.seconds
    return best


def _needed(call: LibraryCall, grid: CoreGrid) -> bool:
    """True if the library refuses a call of one token on all cores of the device."""
    plan = DecodeAttention.of(call, grid.cores)
    return needed_program(plan.users, plan.key_heads, 0, grid) is not None


def _programs(call: LibraryCall, grid: CoreGrid) -> Iterator[SDPA]:
    if call.name in DECODING:
        plan = DecodeAttention.of(call, grid.cores)
        fitting = fitting_grid(plan.users, plan.key_heads, grid)
        if fitting is not None:
            # The library takes powers of two, and chunks of queries of their own are none.
            yield from (SDPA(fitting, 0, size) for size in CHUNKS if plan.keys % size == 0)
        return
    for queries in _chunks(call.operands[0].shape[-2]):
        for keys in _chunks(call.operands[1].shape[-2]):
            yield SDPA(grid, queries, keys)


def _chunks(rows: int) -> Iterator[int]:
    whole = tiles_along(rows) * TILE_SIDE
    # Parts of chunks are computed as if they were whole.
    return (size for size in CHUNKS if whole % size == 0)
