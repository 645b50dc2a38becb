"""Circular buffers of `permute` and `transpose`, in bytes of L1.

The library swaps two dimensions at a time where it has a program for that, and has a general
program for everything else (permute.cpp and transpose.cpp of tt-metal 0.70); the sizes are those
of the program factories beside them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.dialects.ttcore.shards import Layout
from ttcodegen.dialects.ttcore.tile import FACE_SIDE, TILE_SIDE, tiles_along
from ttcodegen.dialects.ttnn.placement import TensorPlacement
from ttcodegen.layout.placements import element_bits, tile_bytes
from ttcodegen.optimizer.core.call import LibraryCall

SHARDED_COLUMN = 8
"""Tiles of a column that are untilized in one piece."""
_Order = tuple[int, ...]
_BATCHES: _Order = (1, 0, 2, 3)
_LAST_TWO: _Order = (0, 1, 3, 2)
_ROWS_OF_MATRICES: _Order = (0, 2, 1, 3)
_SWAPS: dict[_Order, tuple[_Order, ...]] = {
    _LAST_TWO: (_LAST_TWO,),
    _ROWS_OF_MATRICES: (_ROWS_OF_MATRICES,),
    (0, 2, 3, 1): (_ROWS_OF_MATRICES, _LAST_TWO),
    (0, 3, 1, 2): (_LAST_TWO, _ROWS_OF_MATRICES),
    (0, 3, 2, 1): (_LAST_TWO, _ROWS_OF_MATRICES, _LAST_TWO),
}
"""By which swaps of two dimensions the library makes orders of sharded tensors."""
_SWAPS_OF_PAGES = (_LAST_TWO, _ROWS_OF_MATRICES, _BATCHES)
"""The orders that it makes by one swap where tensors are interleaved."""


@dataclass(frozen=True)
class _Step:
    """One program: a tensor of four dimensions, and the placement of its result."""

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
    """Bytes of the largest program of a call with a `permutation`.

    `cores`: those of the chip; `l1`: the bytes of each L1 that circular buffers may take.
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
    is_swap = full in _SWAPS_OF_PAGES and (source.shards is None or call.name == "transpose")
    swaps = (full,) if is_swap else _SWAPS.get(full)
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
    """True if only the first two of four dimensions are swapped, or the last two, or both."""
    rank = len(order)
    full = [*range(4 - rank), *(4 - rank + d for d in order)] if rank < 4 else list(order)
    return sorted(full[-2:]) == [len(full) - 2, len(full) - 1] and len(full) == 4


def _row(step: _Step) -> int:
    return step.source.shape[-1] * step.element


def _swapped(step: _Step, cores: int, l1: int) -> int:
    in_tiles = step.source.layout is Layout.TILE
    if step.order == _LAST_TWO:
        return _turned_tiles(step) if in_tiles else _turned_rows(step, l1)
    if not in_tiles and step.source.shards is None:
        return _permuted(step)
    if step.order == _BATCHES:
        return 2 * (tile_bytes(step.source) if in_tiles else _row(step))
    if in_tiles:
        # A face of padding, where the new rows do not fill their tiles.
        padded = step.source.shape[1] % TILE_SIDE != 0
        return 2 * tile_bytes(step.source) + padded * FACE_SIDE**2 * step.element
    if _holds_rows(step.source) and _holds_rows(step.target):
        return 0
    return -(-prod(step.source.shape[:-1]) // cores) * _row(step)


def _holds_rows(placement: TensorPlacement) -> bool:
    """True if shards of L1 are as wide as the tensor."""
    shards = placement.shards
    return (
        shards is not None
        and placement.buffer_type == "l1"
        and shards.shape[1] == placement.shape[-1]
    )


def _turned_in_place(step: _Step) -> bool:
    """True if each core transposes what is in its own shard."""
    source, target = step.source, step.target
    if not _holds_rows(source) or target.shards is None or target.buffer_type != "l1":
        return False
    assert source.shards is not None
    matrices = source.shards.shape[0] % source.shape[-2] == 0
    if matrices and _holds_rows(target) and target.shards.shape[0] % target.shape[-2] == 0:
        return True
    return prod(source.shape[:2]) == 1 and target.shards.shape[0] == target.shape[-2]


def _turned_tiles(step: _Step) -> int:
    if _turned_in_place(step):
        return 0
    return 2 * tile_bytes(step.source) + 2 * tile_bytes(step.target)


def _turned_rows(step: _Step, l1: int) -> int:
    """Matrices of rows are tilized, turned and untilized, as a whole where they fit."""
    high, wide = (tiles_along(size) for size in step.source.shape[-2:])
    tile = TILE_SIDE * TILE_SIDE * step.element
    strips = (2 * wide + 2 * high) * TILE_SIDE * step.element
    if step.source.shards is None or strips + high * wide * tile > l1:
        return _permuted(step)
    if not _turned_in_place(step):
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
