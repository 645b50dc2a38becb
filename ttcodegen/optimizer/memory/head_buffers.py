"""Circular buffers of embeddings, attention heads and rotary embeddings.

The sizes are those of the program factories of tt-metal.
"""

from __future__ import annotations

from ttcodegen.dialects.ttcore.shards import Layout
from ttcodegen.dialects.ttcore.tile import TILE_SIDE, tiles_along
from ttcodegen.layout.collapse import align_up
from ttcodegen.layout.placements import element_bits, row_bytes, tile_bytes
from ttcodegen.optimizer.core.call import LibraryCall
from ttcodegen.systems.description import ChipDescription

MOST_FOR_ROWS = 1 << 20
"""Bytes that an embedding takes for its rows before it reads them in parts."""
DOUBLE_BUFFERED = 64
"""Tiles of a row up to which an embedding reads the next row meanwhile."""
ROWS_KEPT = 8
"""Rows of tiles of heads on a core up to which the tables for all of them stay there."""


def embedded(call: LibraryCall, chip: ChipDescription) -> int:
    """embeddings_fused_program_factory.cpp for tiles, embeddings_rm_program_factory.cpp for rows,
    embeddings_tilized_indices_program_factory.cpp for indices in tiles."""
    indices, table = call.operands[:2]
    result = call.result
    size = element_bits(indices) // 8
    if indices.layout is Layout.TILE:
        # A row of the table, and half a tile row of indices.
        return 2 * row_bytes(table) + TILE_SIDE // 2 * TILE_SIDE * size // 4
    if result.layout is Layout.ROW_MAJOR:
        return _embedded_rows(call, chip)
    wide = tiles_along((result.shards.shape if result.shards is not None else table.shape)[-1])
    one = tile_bytes(table.with_(layout=Layout.TILE))
    times = 1 if wide > DOUBLE_BUFFERED else 2
    if 2 * wide * one > MOST_FOR_ROWS:
        wide, times = min(MOST_FOR_ROWS // one, DOUBLE_BUFFERED, wide), 2
    written = 0 if result.shards is not None else times * wide * tile_bytes(result)
    return times * wide * one + TILE_SIDE * size + written


def _embedded_rows(call: LibraryCall, chip: ChipDescription) -> int:
    indices, table = call.operands[:2]
    in_dram, in_l1 = chip.noc_dram_address_align_bytes, chip.noc_l1_address_align_bytes
    alignment = in_dram if indices.buffer_type == "dram" else in_l1
    at_once = alignment * 8 // element_bits(indices)
    size = at_once * in_dram
    if call.result.shards is not None:
        return size
    row = align_up(row_bytes(table.with_(shards=None)), alignment)
    return size + 2 * min(row, MOST_FOR_ROWS)


def heads_joined(call: LibraryCall) -> int:
    """nlp_concat_heads_program_factory.cpp: a row of tiles of all heads, twice; shards are copied
    to shards, and are interleaved before anything else."""
    source = call.operands[0]
    if source.shards is not None and call.result.shards is not None:
        return 0
    return 2 * source.shape[-3] * tiles_along(source.shape[-1]) * tile_bytes(source)


def heads_split(call: LibraryCall) -> int:
    """nlp_create_qkv_heads_program_factory.cpp, create_qkv_heads_program_factory.cpp for shards:
    tiles of a head, and where keys are transposed those before and after."""
    source = call.operands[0]
    turns = bool(call.attributes.get("transpose_key", True))
    head = tiles_along(call.results[0].shape[-1]) * tile_bytes(source)
    if source.shards is not None and call.result.shards is not None:
        # The tiles of a transposed head are turned once.
        return 2 * head if turns else 0
    return (3 if turns else 1) * 2 * head


def rotated(call: LibraryCall) -> int:
    """rotary_embedding_program_factory.cpp: rows of tiles, their rotated halves and the tables,
    each twice."""
    source, result = call.operands[0], call.result
    across = tiles_along(source.shape[-1])
    row = across * tile_bytes(source)
    rows = 2 * sum(placement.shards is None for placement in (source, result))
    if call.attributes.get("token_index") is None:
        rows += 6
    else:
        # One row of each table, which is untilized to be repeated.
        rows += 8
    return rows * row + 4 * tile_bytes(source)


def rotated_by_tables(call: LibraryCall, chip: ChipDescription) -> int:
    """rotary_embedding_llama_multi_core_program_factory.cpp, _sharded_program_factory.cpp."""
    source, cosines, _, turning = call.operands[:4]
    row = tiles_along(source.shape[-1]) * tile_bytes(source)
    if source.shards is not None:
        return 3 * row
    batch, heads, length = source.shape[0], source.shape[1], tiles_along(source.shape[2])
    of_sequence = min(chip.cores // min(batch, chip.cores), length)
    rows = -(-length // of_sequence)
    if rows * heads > ROWS_KEPT or cosines.shape[1] == heads:
        rows = 1
    return (3 * 2 * rows + 3 + 2) * row + tile_bytes(turning)
