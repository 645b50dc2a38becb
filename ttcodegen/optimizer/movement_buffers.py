"""Circular buffers of permutes, attention heads, embeddings and pools."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.dialects.ttcore.shards import Layout
from ttcodegen.dialects.ttcore.tile import FACE_SIDE, TILE_ELEMENTS, TILE_SIDE, tiles_along
from ttcodegen.dialects.ttnn.placement import TensorPlacement
from ttcodegen.layout.collapse import align_up
from ttcodegen.layout.placements import element_bits, row_bytes, tile_bytes
from ttcodegen.optimizer.call import LibraryCall, stream_bytes
from ttcodegen.optimizer.programs.windows import PoolShards, pool_shards
from ttcodegen.systems.description import ChipDescription

# Circular buffers of `permute` and `transpose`, in bytes of L1.
#
# The library swaps two dimensions at a time if it has a program for that, and otherwise runs a
# general program (permute.cpp and transpose.cpp of tt-metal 0.70). The sizes follow their program
# factories.

SHARDED_COLUMN = 8
"""Maximum tiles of a column that are untilized at once."""
_Order = tuple[int, ...]
_SWAP_BATCHES: _Order = (1, 0, 2, 3)
_SWAP_LAST: _Order = (0, 1, 3, 2)
_SWAP_MIDDLE: _Order = (0, 2, 1, 3)
_SHARDED_SWAPS: dict[_Order, tuple[_Order, ...]] = {
    _SWAP_LAST: (_SWAP_LAST,),
    _SWAP_MIDDLE: (_SWAP_MIDDLE,),
    (0, 2, 3, 1): (_SWAP_MIDDLE, _SWAP_LAST),
    (0, 3, 1, 2): (_SWAP_LAST, _SWAP_MIDDLE),
    (0, 3, 2, 1): (_SWAP_LAST, _SWAP_MIDDLE, _SWAP_LAST),
}
"""Swaps of two dimensions into which the library decomposes permutations of sharded tensors."""
_INTERLEAVED_SWAPS = (_SWAP_LAST, _SWAP_MIDDLE, _SWAP_BATCHES)
"""Permutations of interleaved tensors that the library computes by one swap."""


@dataclass(frozen=True)
class _Step:
    """One program of a permutation, with the placements of its operand and result."""

    source: TensorPlacement
    order: _Order
    target: TensorPlacement

    @property
    def element(self) -> int:
        return max(element_bits(self.source) // 8, 1)

    @property
    def in_shards(self) -> bool:
        return self.source.shards is not None and self.source.buffer_type == "l1"


def reordering_buffers(call: LibraryCall, cores: int, l1: int) -> int:
    """Returns the bytes of the largest program of a call with a `permutation`.

    `cores`: cores of the chip; `l1`: bytes of L1 per core for circular buffers.
    """
    source, target = call.operands[0], call.result
    order = list(call.attributes.get("permutation", ()))
    rank = len(order)
    if order == sorted(order):
        return 0
    as_bf16 = source.data_type.mlir.startswith("bfp") and source.shards is None
    if as_bf16 and not _keeps_tiles(order):
        source, target = (p.with_(data_type=DataType.from_mlir("bf16")) for p in (source, target))
    if rank > 4:
        return _permuted(_Step(source, tuple(order), target))
    shape = (1,) * (4 - rank) + tuple(source.shape)
    full = (*range(4 - rank), *(4 - rank + d for d in order))
    folded = source.with_(shape=shape)
    is_swap = full in _INTERLEAVED_SWAPS and (source.shards is None or call.name == "transpose")
    swaps = (full,) if is_swap else _SHARDED_SWAPS.get(full)
    if swaps is None or not (is_swap or source.shards is not None):
        return _permuted(_Step(folded, full, target))
    sizes: list[int] = []
    for index, order_of_step in enumerate(swaps):
        made = folded.with_(shape=tuple(folded.shape[d] for d in order_of_step))
        if index == len(swaps) - 1:
            made = target.with_(shape=made.shape)
        sizes.append(_swapped(_Step(folded, order_of_step, made), cores, l1))
        folded = made
    return max(sizes)


def _keeps_tiles(order: Sequence[int]) -> bool:
    """Returns whether the last two of up to four dimensions stay last, in either order."""
    rank = len(order)
    full = [*range(4 - rank), *(4 - rank + d for d in order)] if rank < 4 else list(order)
    return sorted(full[-2:]) == [len(full) - 2, len(full) - 1] and len(full) == 4


def _row(step: _Step) -> int:
    return step.source.shape[-1] * step.element


def _swapped(step: _Step, cores: int, l1: int) -> int:
    in_tiles = step.source.layout is Layout.TILE
    if step.order == _SWAP_LAST:
        return _transposed_tiles(step) if in_tiles else _transposed_rows(step, l1)
    if not in_tiles and step.source.shards is None:
        return _permuted(step)
    if step.order == _SWAP_BATCHES:
        return 2 * (tile_bytes(step.source) if in_tiles else _row(step))
    if in_tiles:
        # A face of padding if the new rows do not fill their tiles.
        padded = step.source.shape[1] % TILE_SIDE != 0
        return 2 * tile_bytes(step.source) + padded * FACE_SIDE**2 * step.element
    if _holds_whole_rows(step.source) and _holds_whole_rows(step.target):
        return 0
    return -(-prod(step.source.shape[:-1]) // cores) * _row(step)


def _holds_whole_rows(placement: TensorPlacement) -> bool:
    """Returns whether shards in L1 hold whole rows."""
    shards = placement.shards
    return (
        shards is not None
        and placement.buffer_type == "l1"
        and shards.shape[1] == placement.shape[-1]
    )


def _transposes_in_place(step: _Step) -> bool:
    """Returns whether each core transposes its own shard."""
    source, target = step.source, step.target
    if not _holds_whole_rows(source) or target.shards is None or target.buffer_type != "l1":
        return False
    assert source.shards is not None
    matrices = source.shards.shape[0] % source.shape[-2] == 0
    if matrices and _holds_whole_rows(target) and target.shards.shape[0] % target.shape[-2] == 0:
        return True
    return prod(source.shape[:2]) == 1 and target.shards.shape[0] == target.shape[-2]


def _transposed_tiles(step: _Step) -> int:
    if _transposes_in_place(step):
        return 0
    return 2 * tile_bytes(step.source) + 2 * tile_bytes(step.target)


def _transposed_rows(step: _Step, l1: int) -> int:
    """Row-major matrices are tilized, transposed and untilized as a whole if they fit into L1."""
    high, wide = (tiles_along(size) for size in step.source.shape[-2:])
    tile = TILE_SIDE * TILE_SIDE * step.element
    strips = (2 * wide + 2 * high) * TILE_SIDE * step.element
    if step.source.shards is None or strips + high * wide * tile > l1:
        return _permuted(step)
    if not _transposes_in_place(step):
        return (2 * wide + 2 * high + high * wide + high) * tile
    return (2 * wide + high * wide + (3 * high if high > SHARDED_COLUMN else 0)) * tile


def _permuted(step: _Step) -> int:
    """permute_rm_program_factory.cpp and permute_tiled_program_factory.cpp."""
    order, rank = step.order, len(step.order)
    last = rank - 1
    if step.source.layout is not Layout.TILE:
        row = step.source.shape[-1] * step.element
        return 2 * row if order[-1] == last else 6 * TILE_SIDE * TILE_SIDE * step.element
    tile = tile_bytes(step.source)
    if order[-2:] == (last - 1, last):
        return 2 * tile
    if order[-2:] == (last, last - 1):
        return 4 * tile
    new_rows = step.source.shape[order[-2]] if order[-1] != last - 1 else step.source.shape[last]
    padding = FACE_SIDE * step.element
    if order[-1] == last:
        return 2 * tile + (padding if new_rows % TILE_SIDE else 0)
    if order[-1] == last - 1:
        swapped = [*step.source.shape[:-2], step.source.shape[-1], step.source.shape[-2]]
        place = {last - 1: last, last: last - 1}.get(order[-2], order[-2])
        return 4 * tile + (padding if swapped[place] % TILE_SIDE else 0)
    return 6 * tile + (padding if step.source.shape[order[-2]] % TILE_SIDE else 0)


# Circular buffers of embeddings, attention heads and rotary embeddings.
#
# The sizes follow the program factories of tt-metal.

MAX_ROW_BYTES = 1 << 20
"""Bytes of buffered rows above which an embedding reads rows in parts."""
DOUBLE_BUFFERED = 64
"""Maximum tiles of a row that an embedding double buffers."""
ROWS_KEPT = 8
"""Maximum tile rows of heads per core for which rotation tables stay in L1."""


def embedded(call: LibraryCall, chip: ChipDescription) -> int:
    """embeddings_fused_program_factory.cpp (tiles), embeddings_rm_program_factory.cpp (rows) and
    embeddings_tilized_indices_program_factory.cpp (tiled indices)."""
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
    if 2 * wide * one > MAX_ROW_BYTES:
        wide, times = min(MAX_ROW_BYTES // one, DOUBLE_BUFFERED, wide), 2
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
    return size + 2 * min(row, MAX_ROW_BYTES)


def heads_joined(call: LibraryCall) -> int:
    """nlp_concat_heads_program_factory.cpp: a double-buffered tile row of all heads.

    Shards are copied to shards without buffers, and are interleaved first otherwise."""
    source = call.operands[0]
    if source.shards is not None and call.result.shards is not None:
        return 0
    return 2 * source.shape[-3] * tiles_along(source.shape[-1]) * tile_bytes(source)


def heads_split(call: LibraryCall) -> int:
    """nlp_create_qkv_heads_program_factory.cpp, create_qkv_heads_program_factory.cpp (shards).

    Double-buffered tiles of a head; transposed keys add buffers before and after."""
    source = call.operands[0]
    transposes_keys = bool(call.attributes.get("transpose_key", True))
    head = tiles_along(call.results[0].shape[-1]) * tile_bytes(source)
    if source.shards is not None and call.result.shards is not None:
        # Only the tiles of a transposed head are buffered.
        return 2 * head if transposes_keys else 0
    return (3 if transposes_keys else 1) * 2 * head


def rotated(call: LibraryCall) -> int:
    """rotary_embedding_program_factory.cpp: double-buffered tile rows of the operand, its rotated
    half and the tables."""
    source, result = call.operands[0], call.result
    across = tiles_along(source.shape[-1])
    row = across * tile_bytes(source)
    rows = 2 * sum(placement.shards is None for placement in (source, result))
    if call.attributes.get("token_index") is None:
        rows += 6
    else:
        # One row of each table, which is untilized and repeated.
        rows += 8
    return rows * row + 4 * tile_bytes(source)


def rotated_by_tables(call: LibraryCall, chip: ChipDescription) -> int:
    """rotary_embedding_llama_multi_core_program_factory.cpp, _sharded_program_factory.cpp."""
    source, cosines, _, transformation = call.operands[:4]
    row = tiles_along(source.shape[-1]) * tile_bytes(source)
    if source.shards is not None:
        return 3 * row
    batch, heads, length = source.shape[0], source.shape[1], tiles_along(source.shape[2])
    cores_per_sequence = min(chip.cores // min(batch, chip.cores), length)
    rows = -(-length // cores_per_sequence)
    if rows * heads > ROWS_KEPT or cosines.shape[1] == heads:
        rows = 1
    return (3 * 2 * rows + 3 + 2) * row + tile_bytes(transformation)


# Circular buffers of pools.
#
# The sizes follow `calculate_pool_cb_sizes` (pool_utils.cpp of tt-metal) and the programs that
# shard the image and copy the halo of each shard.


def pool_buffers(call: LibraryCall, chip: ChipDescription) -> int:
    """Returns the bytes of the largest program of a pool."""
    image, width = call.operands[0], shards_of_pool(call, chip).width
    return max(_streamed(image, width, chip), _halo(image, width), program_buffers(call, width))


def shards_of_pool(call: LibraryCall, chip: ChipDescription) -> PoolShards:
    """Returns the sharding of a pool's image."""
    return pool_shards(call, chip, program_buffers)


def _streamed(image: TensorPlacement, width: int, chip: ChipDescription) -> int:
    """Bytes of the buffer between interleaved pages and shards."""
    if image.shards is not None:
        return 0
    page = tile_bytes(image) if image.layout is Layout.TILE else width * element_bytes(image)
    return stream_bytes(page, chip)


def _halo(image: TensorPlacement, width: int) -> int:
    """Bytes of a halo: a row of padding per reader; for tiled images also a tile row and its
    untilized form, both double buffered."""
    padding = 2 * width * element_bytes(image)
    if image.layout is Layout.ROW_MAJOR:
        return padding
    rows = tile_bytes(image) + element_bytes(image) * TILE_ELEMENTS
    return padding + 2 * tiles_along(width) * rows


def program_buffers(call: LibraryCall, width: int) -> int:
    image, result = call.operands[0], call.result
    is_mean = call.name == "avg_pool2d"
    across = tiles_along(width)
    # Tiles with a single used face are reduced at half height.
    highest = FACE_SIDE if 0 < width % TILE_SIDE <= FACE_SIDE else TILE_SIDE
    window = prod(call.attributes.get("kernel_size", (1,)))
    at_once = 4 if is_mean and window > highest else 8
    rows = window if window <= FACE_SIDE else TILE_SIDE
    gathered = align_up(min(across, at_once) * TILE_SIDE * rows, TILE_ELEMENTS)
    tile = TILE_ELEMENTS * element_bytes(image)
    # Tiles of scalars and initial values, and double-buffered windows of two readers.
    size = 3 * tile + 4 * gathered * element_bytes(image)
    if is_mean and not _has_one_divisor(call):
        size += 2 * tile
    return size + (across * tile if result.layout is Layout.TILE else 0)


def _has_one_divisor(call: LibraryCall) -> bool:
    """Returns whether all windows of a mean have the same divisor."""
    padding = call.attributes.get("padding", (0,))
    counts_padding = bool(call.attributes.get("count_include_pad", True))
    ceils = bool(call.attributes.get("ceil_mode", False))
    return not ceils and (counts_padding or not any(padding))


def element_bytes(image: TensorPlacement) -> int:
    """Bytes of an unpacked element; block floats are unpacked to 16 bits."""
    return 4 if image.data_type.mlir == "f32" else 2
