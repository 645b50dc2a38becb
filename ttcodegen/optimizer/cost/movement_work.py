"""Work of elementwise, data movement and row-wise programs."""

from __future__ import annotations

from math import prod

from ttcodegen.dialects.ttcore.shards import Layout
from ttcodegen.dialects.ttcore.tile import TILE_SIDE
from ttcodegen.dialects.ttnn.placement import TensorPlacement
from ttcodegen.layout.placements import tiles, whole_bytes
from ttcodegen.ops.core.definition import call_has_trait, takes_two_tensors, vector_cycles
from ttcodegen.ops.core.traits import Trait
from ttcodegen.optimizer.core.call import LibraryCall
from ttcodegen.optimizer.core.footprint import bank_bytes
from ttcodegen.optimizer.cost.fabric_traffic import link_work
from ttcodegen.optimizer.cost.work import Machine, Work, cores_of, page_bytes, traffic
from ttcodegen.optimizer.memory.circular_buffers import elementwise as elementwise_buffers

HOST_READ = 8
"""The launches in whose time a number comes to the host, which waits for all that was launched
before (estimate)."""
ROW_OF_FACE = 32
"""Contiguous bytes of what crosses tiles, in a face of 16 bits an element."""


# Elementwise


def elementwise(chip: Machine, call: LibraryCall) -> Work:
    placements = [*call.operands, *call.results]
    units = max((tiles(placement) for placement in placements), default=1)
    cores = cores_of(chip, call, units)
    each = -(-units // cores)
    work = Work(cores, elementwise_buffers(call))
    traffic(work, call)
    work.engine_cycles = each * chip.pass_cycles(placements)
    wide = any(placement.data_type.mlir == "f32" for placement in call.operands)
    if wide or not call_has_trait(call.name, Trait.ON_MATRIX_ENGINE):
        steps = TILE_SIDE * TILE_SIDE // chip.speed.vector_lanes
        work.vector_cycles = each * steps * vector_cycles(call.name)
    in_rows = any(p.layout is Layout.ROW_MAJOR for p in placements)
    if takes_two_tensors(call.name) and in_rows and any(p.shards for p in placements):
        # Rows in shards become tiles, and tiles rows.
        work.intermediates = sum(_in_tiles(chip, placement) for placement in placements)
    return work


def _in_tiles(chip: Machine, placement: TensorPlacement) -> int:
    """Bytes of each L1 of a copy in tiles, where the tensor is."""
    return bank_bytes(placement.with_(layout=Layout.TILE), chip.description)


# Data movement


def _moving(chip: Machine, call: LibraryCall, whole_pages: bool) -> Work:
    """Tensors that are moved page by page, or in rows of faces where they cross tiles."""
    units = max(tiles(placement) for placement in (*call.operands, *call.results))
    cores = cores_of(chip, call, units)
    work = Work(cores, 4 * page_bytes(call.result))
    traffic(work, call)
    each = -(-units // cores)
    pieces = 1 if whole_pages else page_bytes(call.result) // ROW_OF_FACE
    work.movement_cycles = each * 2 * pieces * chip.speed.transaction
    return work


def copied(chip: Machine, call: LibraryCall) -> Work:
    work = _moving(chip, call, whole_pages=True)
    if call.name == "repeat":
        work.intermediates = _repeated_rows(chip, call)
    return work


def _repeated_rows(chip: Machine, call: LibraryCall) -> int:
    """Bytes of each L1 that `repeat` takes besides its tensors: rows are repeated, into which tiles
    are taken apart before."""
    source, target = call.operands[0], call.result
    if source.layout is Layout.ROW_MAJOR:
        return 0 if source.shards is None else _gathered_in_l1(chip, source)
    rows = [each.with_(layout=Layout.ROW_MAJOR) for each in (source, target)]
    if source.shards is not None:
        return _gathered_in_l1(chip, rows[1])
    before, after = (bank_bytes(each, chip.description) for each in rows)
    return max(before + after - bank_bytes(target, chip.description), after)


def changed_layout(chip: Machine, call: LibraryCall) -> Work:
    """Tilizing and untilizing: whole rows move, the registers sort them."""
    work = _moving(chip, call, whole_pages=True)
    rows = max(placement.collapsed_shape()[1] for placement in (*call.operands, *call.results))
    if call.operands[0].layout is not call.result.layout:
        units = max(tiles(placement) for placement in (*call.operands, *call.results))
        work.engine_cycles = -(-units // work.cores) * chip.pass_cycles(
            [*call.operands, *call.results]
        )
        # Rows of tensors that are a single tile wide are small pieces, a tile has as many.
        narrow = min(max(1, 512 // max(1, rows * 2)), TILE_SIDE)
        work.movement_cycles *= narrow
    return work


def reshaped(chip: Machine, call: LibraryCall) -> Work:
    source, target = call.operands[0], call.result
    work = _moving(chip, call, whole_pages=source.layout is Layout.ROW_MAJOR)
    if source.layout is Layout.ROW_MAJOR or _is_cut_in_columns(target):
        # Shards are gathered before, and distributed after it.
        for sharded in (source, target):
            if sharded.shards is not None and sharded.buffer_type == "l1":
                work.intermediates += _gathered_in_l1(chip, sharded)
    return work


def _is_cut_in_columns(placement: TensorPlacement) -> bool:
    """True if rows of a tensor are divided among cores."""
    return placement.memory_layout in ("width_sharded", "block_sharded")


def _gathered_in_l1(chip: Machine, placement: TensorPlacement) -> int:
    """Bytes of each L1 of the same tensor without shards."""
    return bank_bytes(placement.interleaved().with_(buffer_type="l1"), chip.description)


def permuted(chip: Machine, call: LibraryCall) -> Work:
    order = list(call.attributes.get("permutation", ()))
    last = sorted(order)[-2:]
    work = _moving(chip, call, whole_pages=sorted(order[-2:]) == last)
    if order[-2:] == last[::-1]:
        units = tiles(call.result)
        work.engine_cycles = -(-units // work.cores) * chip.pass_cycles([call.result])
    return work


def sliced(chip: Machine, call: LibraryCall) -> Work:
    """Parts and compositions: page by page where their borders are those of tiles."""
    shapes = [(1, *placement.shape)[-2:] for placement in (*call.operands, *call.results)]
    full = call.result.shape[-2:]
    aligned = all(
        size % TILE_SIDE == 0 or size == whole
        for shape in shapes
        for size, whole in zip(shape[-len(full) :], full, strict=True)
    )
    work = _moving(chip, call, whole_pages=aligned or call.result.layout is Layout.ROW_MAJOR)
    if call.name == "slice_static":
        # What is not taken is not read.
        work.dram_bytes = min(work.dram_bytes, 2 * whole_bytes(call.result))
    return work


def gathered(chip: Machine, call: LibraryCall) -> Work:
    """Rows that are looked up: of the table only those that are named."""
    size = whole_bytes(call.result)
    cores = min(chip.description.cores, tiles(call.result))
    rows = prod(call.result.shape[:-1])
    work = Work(cores, 4 * 2048, dram_bytes=2 * size, noc_bytes=2 * size)
    work.movement_cycles = -(-rows // cores) * 2 * chip.speed.transaction
    return work


def written(chip: Machine, call: LibraryCall) -> Work:
    """A cache of which only a part is overwritten."""
    taken = call.operands[1]
    cores = min(chip.description.cores, tiles(taken))
    size = whole_bytes(taken)
    work = Work(cores, 6 * page_bytes(taken), dram_bytes=3 * size, noc_bytes=3 * size)
    work.movement_cycles = -(-tiles(taken) // cores) * 4 * chip.speed.transaction
    if call.name == "update_cache":
        work.launches += HOST_READ  # The position is an argument.
    return work


def between_chips(chip: Machine, call: LibraryCall) -> Work:
    """Tensors that go through the memories of each chip, and over the links between them."""
    work = copied(chip, call)
    work.links = link_work(call)
    # A sum is one program that scatters and one that gathers.
    work.launches = 2 if call.name == "all_reduce" else 1
    return work


# Along rows


def normalised(chip: Machine, call: LibraryCall) -> Work:
    source = call.operands[0]
    height, width = source.with_(layout=Layout.TILE).collapsed_shape()
    cores = cores_of(chip, call, height)
    each = -(-height * width // cores)
    if source.shards is None:
        each = -(-height // cores) * width
    softmax = call.name == "softmax"
    work = Work(cores)
    traffic(work, call)
    passes = 4 if softmax else 5
    work.engine_cycles = each * passes * chip.pass_cycles([source])
    work.vector_cycles = each * TILE_SIDE * (12 if softmax else 0)
    return work


def reduced(chip: Machine, call: LibraryCall) -> Work:
    source = call.operands[0]
    units = tiles(source)
    cores = cores_of(chip, call, max(1, tiles(call.result)))
    work = Work(cores)
    traffic(work, call)
    work.engine_cycles = -(-units // cores) * chip.pass_cycles([source])
    work.intermediates = _between_reductions(chip, call)
    return work


def _between_reductions(chip: Machine, call: LibraryCall) -> int:
    """Bytes of each L1 that a reduction takes besides its operand and its result: a copy of rows in
    tiles; what is reduced along rows before it is along columns; a result in another shape."""
    source, description = call.operands[0], chip.description
    rank = len(source.shape)
    dims = sorted(dim % rank for dim in call.attributes.get("dim_arg") or ())
    copied = _in_tiles(chip, source) if source.layout is Layout.ROW_MAJOR else 0
    both = dims[-2:] == [rank - 2, rank - 1] and rank >= 2
    by_rows = source.with_(layout=Layout.TILE, shape=(*source.shape[:-1], 1))
    first = bank_bytes(by_rows, description) if both and source.shards is None else 0
    removed = not call.attributes.get("keep_dim", True) and rank - 1 in dims
    return max(copied + first, bank_bytes(call.result, description) if removed else 0)
