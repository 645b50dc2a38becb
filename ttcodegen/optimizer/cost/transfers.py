"""Work of data movement: copies, layout changes, reshapes, slices, lookups and collectives."""

from __future__ import annotations

from math import isqrt, prod

from ttcodegen.dialects.ttcore.shards import Layout
from ttcodegen.dialects.ttcore.tile import FACE_SIDE, TILE_SIDE, tiles_along
from ttcodegen.dialects.ttnn.placement import TensorPlacement
from ttcodegen.layout.placements import element_bits, tiles, whole_bytes
from ttcodegen.optimizer.call import LibraryCall, bank_bytes
from ttcodegen.optimizer.cost.work import (
    Machine,
    Work,
    cores_of,
    link_work,
    page_bytes,
    page_count,
    traffic,
)

# The cycles per page depend on the barriers of a kernel: some kernels request many pages before a
# barrier, others wait for each page before they request the next. Unless noted, constants are
# cycles, fitted to the named calls in tests/cost/measured.tsv.

ROW_IN = 545
"""Read of a row from DRAM or L1 into shards, one by one (20 row-major tensors of 128 B to 1 KiB
rows)."""
ROW_OUT = 54
"""Write of a row of a shard, many per barrier (12 such tensors)."""
ROW_OVER = 500
"""Copy of an interleaved row (`to_memory_config` of 5 row-major tensors)."""
ROW_OF_SLICE = 160
"""Copy of a row of a slice (9 row-major tensors)."""
ROW_OF_RESHAPE = 450
"""Copy of a row to rows of another length (6 row-major tensors)."""
TILE_IN = 17
"""Read of a tile into a shard, in addition to its bytes (18 tensors of bfp8 and bf16)."""
BYTE_IN = 0.07
"""Read of a byte of a tile into a shard."""
BYTE_OUT = 0.112
"""Write of a byte of a tile of a shard (12 tensors)."""
TILED = 68
"""Tilizing of a tile in a shard (8 tensors)."""
UNTILED = 75
"""Untilizing of a tile in a shard, in addition to `UNTILED_ROW` (14 tensors)."""
UNTILED_ROW = 400
"""Untilizing of a tile row in a shard."""
PADDED_ROW = 450
"""Read or write of a row of a tensor with tile padding, one by one, in addition to `ROW_BYTE`
(30 tensors)."""
WIDE_ROW = 32
"""Number of tiles above which rows are divided among cores (threshold_row_block of tilize and
untilize)."""
WHOLE_ROW = 85
"""Read or write of a row without tile padding, many per barrier, in addition to `ROW_BYTE`
(24 tensors)."""
ROW_BYTE = 0.15
"""Read or write of a byte of such rows."""
FACE_BYTE = 3.2
"""Move of a byte of a face row to another tile (26 permuted and reshaped tensors)."""
FACE_ROW = 80
"""Minimum for the move of a face row to another tile (`permute` of 3 channels, 3 tensors)."""
FILLED_ROW = 26
"""Fill of a face row with padding (`permute` to tiles of one row, 3 tensors)."""
TILE_OVER = 430
"""Copy of an interleaved tile, one by one, in addition to its bytes (43 calls of `slice`, `permute`
and `concat` that keep tiles)."""
TILE_BYTE = 0.08
"""Copy of a byte of such tiles."""
RESHARDED = 60
"""Copy of a tile from shard to shard (`to_memory_config`, 4 tensors)."""
CROSSED = 700
"""Write of a tile with rows of other tiles, in addition to these rows (`permute`, `reshape`)."""
RESHAPED = 6000
"""Read of the map from source to target tiles, once per call (`reshape` of 19 rows to heads,
4 tensors)."""
LOOKED_UP = 600
"""Copy of a row of a table (`embedding`, 4 calls)."""
ROWS_OF_INDICES = 16
"""Minimum number of rows that a core looks up (`embedding` of 19 rows on 2 cores)."""
SCATTERED = 5
"""Move of an element of a row (3 row-major permutes of the last dimension)."""
SCANNED = 660
"""Addition of a tile to a running sum (`cumsum` over 12 to 160 tiles, 15 tensors)."""


def tile_by_tile(chip: Machine, call: LibraryCall) -> int:
    """Returns the cycles per tile: the longer of reading the operands and writing the result."""
    fitted, home = chip.fitted, call.result.shards

    def away(placement: TensorPlacement) -> bool:
        return placement.shards is None or placement.shards != home

    reading = sum(
        fitted.read_wait
        + page_bytes(operand) / fitted.read_bytes
        + (fitted.broadcast if _is_broadcast(operand, call.result) else 0)
        for operand in call.operands
        if away(operand)
    )
    if not away(call.result):
        return int(reading)
    writing = fitted.write_wait + page_bytes(call.result) / fitted.write_bytes
    return int(max(reading, writing))


def _is_broadcast(operand: TensorPlacement, result: TensorPlacement) -> bool:
    """Returns whether a row or a column of an operand broadcasts; False for scalars."""
    return operand.shape[-2:] != result.shape[-2:] and prod(operand.shape[-2:]) > 1


def in_tiles(chip: Machine, placement: TensorPlacement) -> int:
    """Returns the bytes of L1 per core of a tilized copy with the same placement."""
    return bank_bytes(placement.with_(layout=Layout.TILE), chip.description)


def _is_row_major(call: LibraryCall) -> bool:
    return call.operands[0].layout is call.result.layout is Layout.ROW_MAJOR


def _width(placement: TensorPlacement) -> int:
    """Returns the elements of a row; 1 for scalars."""
    return placement.shape[-1] if placement.shape else 1


def _row_bytes(placement: TensorPlacement) -> int:
    """Returns the bytes of a row of a shard, or of the tensor."""
    shards, width = placement.shards, _width(placement)
    width = width if shards is None else min(shards.shape[1], width)
    return max(1, width * element_bits(placement) // 8)


def _moved_pages(chip: Machine, call: LibraryCall, cycles: float, units: int) -> Work:
    """Work of a call whose cores each move a share of `units` pages, one by one."""
    cores = cores_of(chip, call, units)
    work = Work(cores, 4 * page_bytes(call.result))
    traffic(work, call)
    work.movement_cycles = int(-(-units // cores) * cycles)
    return work


def _pages(call: LibraryCall) -> int:
    """Returns the pages of the larger tensor; parts of rows count if shards divide rows."""
    counts: list[int] = []
    for placement in (*call.operands, *call.results):
        count = page_count(placement)
        if placement.layout is Layout.ROW_MAJOR and placement.shards is not None:
            count = placement.shards.shape[0] * placement.shards.cores
        counts.append(count)
    return max(counts)


def _page_cycles(call: LibraryCall) -> float:
    """Returns the cycles per page of a copy."""
    source, target = call.operands[0], call.result
    into, out_of = (each.shards is not None for each in (target, source))
    if _is_row_major(call):
        if into and out_of:
            return ROW_OUT
        return ROW_IN if into else ROW_OUT if out_of else ROW_OVER
    size = page_bytes(target)
    if into and out_of:
        return RESHARDED
    if into or out_of:
        return TILE_IN + size * BYTE_IN if into else size * BYTE_OUT
    return TILE_OVER + size * TILE_BYTE


def copied(chip: Machine, call: LibraryCall) -> Work:
    """Work of a copy, whose pages do not change; without operands, of filling the result."""
    if not call.operands:
        return _moved_pages(
            chip, call, chip.fitted.write_wait + page_bytes(call.result) / 16, tiles(call.result)
        )
    work = _moved_pages(chip, call, _page_cycles(call), _pages(call))
    if any(placement.shards is not None for placement in (*call.operands, *call.results)):
        work.overlap = 8.0
    if call.name == "repeat":
        work.intermediates = _repeated_rows(chip, call)
    return work


def _repeated_rows(chip: Machine, call: LibraryCall) -> int:
    """Returns the bytes of L1 per core of the intermediates of `repeat`, which untilizes first."""
    source, target = call.operands[0], call.result
    if source.layout is Layout.ROW_MAJOR:
        return 0 if source.shards is None else _interleaved_l1_bytes(chip, source)
    rows = [each.with_(layout=Layout.ROW_MAJOR) for each in (source, target)]
    if source.shards is not None:
        return _interleaved_l1_bytes(chip, rows[1])
    before, after = (bank_bytes(each, chip.description) for each in rows)
    return max(before + after - bank_bytes(target, chip.description), after)


def changed_layout(chip: Machine, call: LibraryCall) -> Work:
    """Work of tilize and untilize: unpacker or packer reorder whole rows."""
    source, target = call.operands[0], call.result
    if source.layout is target.layout:
        work = _moved_pages(chip, call, _page_cycles(call), _pages(call))
        if source.data_type is not target.data_type:
            work.engine_cycles = -(-tiles(target) // work.cores) * 2 * chip.fitted.one_tile
        return work
    tiled = target.layout is Layout.TILE
    rows = tiles(target) // max(1, tiles_along(_width(target)))
    wide, size = tiles_along(_row_bytes(target) * 8 // element_bits(target)), _row_bytes(target)
    work = _moved_pages(chip, call, 0, max(1, rows))
    each = -(-rows // work.cores)
    shards = source.shards if target.shards is None else target.shards
    if shards is not None:
        each = tiles_along(shards.shape[0])
    elif (block := _block(chip, target)) is not None:
        side, cores = block
        high = tiles_along((1, *target.shape)[-2])
        if work.cores < cores:
            work.cores = cores
            # Each core has one block per matrix.
            each, wide = min(side, high) * max(1, rows // max(1, high)), side
            size = side * TILE_SIDE * element_bits(target) // 8
    work.engine_cycles = each * (TILED * wide if tiled else UNTILED_ROW + UNTILED * wide)
    if source.shards is None or target.shards is None:
        height, width = (1, 1, *target.shape)[-2:]
        padded = height % TILE_SIDE or width % TILE_SIDE
        row = (PADDED_ROW if padded else WHOLE_ROW) + ROW_BYTE * size
        work.movement_cycles = int(each * max(1, height) / max(1, tiles_along(height)) * row)
        work.dram_pages //= 2
    return work


def _block(chip: Machine, placement: TensorPlacement) -> tuple[int, int] | None:
    """Returns the side in tiles of the square blocks of wide interleaved tensors, and their number.

    None for tensors that are divided into tile rows. The rules follow compute_ncores_wh in
    work_split_tilize.hpp and select_program_factory of tilize and untilize."""
    if not placement.shape:
        return None
    high, wide = (tiles_along(size) for size in (1, *placement.shape)[-2:])
    if wide <= WIDE_ROW or not (high > WIDE_ROW or wide > high):
        return None
    cores = chip.description.cores
    each = -(-wide * high // cores)
    side = isqrt(each)
    if side * side != each or -(-wide // side) * -(-high // side) >= cores:
        # Larger blocks until there are fewer than cores.
        side = max(side + 1, -(-wide // cores))
        while -(-wide // side) * -(-high // side) >= cores:
            side += 1
    return side, -(-wide // side) * -(-high // side)


def reshaped(chip: Machine, call: LibraryCall) -> Work:
    """Work of a reshape: row-major rows are split or joined, or face rows change tiles."""
    source, target = call.operands[0], call.result
    if source.layout is Layout.ROW_MAJOR:
        work = _moved_pages(chip, call, ROW_OF_RESHAPE, _pages(call))
    else:
        work = _moved_pages(chip, call, 0, max(tiles(source), tiles(target)))
        work.movement_cycles = RESHAPED + _crossing_cycles(call, work.cores)
    if source.layout is Layout.ROW_MAJOR or _divides_rows(target):
        # ttnn converts shards to interleaved tensors before the reshape, and back after it.
        for sharded in (source, target):
            if sharded.shards is not None and sharded.buffer_type == "l1":
                work.intermediates += _interleaved_l1_bytes(chip, sharded)
    return work


def _crossing_cycles(call: LibraryCall, cores: int) -> int:
    """Returns the cycles per core of assembling tiles from face rows and filling the padding."""
    target = call.result
    count = tiles(target)
    width = max(1, _width(target))
    size = min(width, FACE_SIDE) * element_bits(target) // 8
    moved = prod(target.shape[:-1]) * -(-width // FACE_SIDE)
    filled = max(0, count * 4 * FACE_SIDE - moved)
    piece = max(FACE_ROW, FACE_BYTE * size)
    return int(-(-count // cores) * (CROSSED + (moved * piece + filled * FILLED_ROW) / count))


def _divides_rows(placement: TensorPlacement) -> bool:
    """Returns whether shards divide the rows of a tensor."""
    return placement.memory_layout in ("width_sharded", "block_sharded")


def _interleaved_l1_bytes(chip: Machine, placement: TensorPlacement) -> int:
    """Returns the bytes of L1 per core of an interleaved copy in L1."""
    return bank_bytes(placement.interleaved().with_(buffer_type="l1"), chip.description)


def permuted(chip: Machine, call: LibraryCall) -> Work:
    """Work of a permutation: whole tiles, transposed or not, or face rows change tiles."""
    order = list(call.attributes.get("permutation", ()))
    last = sorted(order)[-2:]
    if _is_row_major(call):
        source = call.operands[0]
        row = ROW_OUT if order[-1:] == last[-1:] else 30 + SCATTERED * _width(source)
        return _moved_pages(chip, call, row, page_count(source))
    if sorted(order[-2:]) != last:
        work = _moved_pages(chip, call, 0, tiles(call.result))
        work.movement_cycles = _crossing_cycles(call, work.cores)
        return work
    cycles = TILE_OVER + page_bytes(call.result) * TILE_BYTE
    work = _moved_pages(chip, call, cycles, tiles(call.result))
    if order[-2:] == last[::-1]:
        work.engine_cycles = -(-tiles(call.result) // work.cores) * chip.pass_cycles([call.result])
    return work


def sliced(chip: Machine, call: LibraryCall) -> Work:
    """Work of slices and concatenations; those aligned to tiles copy whole pages."""
    is_slice = call.name == "slice_static"
    if call.result.layout is Layout.ROW_MAJOR:
        cycles = ROW_OF_SLICE if is_slice else ROW_OVER
        work = _moved_pages(chip, call, cycles, page_count(call.result))
    elif _keeps_tiles(call):
        cycles = TILE_OVER + page_bytes(call.result) * TILE_BYTE
        work = _moved_pages(chip, call, cycles, tiles(call.result))
    else:
        work = _moved_pages(chip, call, 0, tiles(call.result))
        work.movement_cycles = _crossing_cycles(call, work.cores)
    if is_slice:
        # Only the slice is read.
        work.dram_bytes = min(work.dram_bytes, 2 * whole_bytes(call.result))
        work.dram_pages = min(work.dram_pages, 2 * page_count(call.result))
    return work


def _keeps_tiles(call: LibraryCall) -> bool:
    """Returns whether the tiles of the result are tiles of the operands."""
    if call.name == "slice_static":
        steps = call.attributes.get("step") or ()
        begins = list(call.attributes.get("begins") or ())[-2:]
        return all(step == 1 for step in steps) and not any(n % TILE_SIDE for n in begins)
    full = call.result.shape[-2:]
    return all(
        size % TILE_SIDE == 0 or size == whole
        for placement in call.operands
        for size, whole in zip((1, *placement.shape)[-2:][-len(full) :], full, strict=True)
    )


def scanned(chip: Machine, call: LibraryCall) -> Work:
    """Work of a cumulative sum or product along a dimension.

    The library permutes one of the last two dimensions to the front and back; in between, each
    step along it is in another tile."""
    source = call.operands[0]
    shape = source.shape
    axis = int(call.attributes.get("dim", 0)) % len(shape)
    steps = shape[axis]
    if axis < len(shape) - 2:
        work = _moved_pages(chip, call, 0, max(1, tiles(source) // max(1, steps)))
    else:
        order = list(range(len(shape)))
        order[0], order[axis] = axis, 0
        permuted_source = source.with_(shape=tuple(shape[n] for n in order))
        work = _moved_pages(chip, call, 0, max(1, tiles(permuted_source) // max(1, steps)))
        permutes = [(source, permuted_source), (permuted_source, source)]
        for before, after in permutes:
            permute = permuted(
                chip, LibraryCall("permute", (before,), (after,), {"permutation": order})
            )
            work.movement_cycles += permute.movement_cycles
            work.dram_bytes += permute.dram_bytes
        work.launches = 3
        source = permuted_source
    units = max(1, tiles(source) // max(1, steps))
    work.movement_cycles += -(-units // work.cores) * steps * SCANNED
    return work


def gathered(chip: Machine, call: LibraryCall) -> Work:
    """Work of a lookup, which reads only the indexed rows of the table."""
    size = whole_bytes(call.result)
    blocks = -(-prod(call.result.shape[:-1]) // ROWS_OF_INDICES)
    cores = max(1, min(chip.description.cores, blocks))
    work = Work(cores, 4 * 2048, dram_bytes=2 * size, noc_bytes=2 * size)
    work.movement_cycles = -(-blocks // cores) * ROWS_OF_INDICES * LOOKED_UP
    return work


def written(chip: Machine, call: LibraryCall) -> Work:
    """Work of a cache update, which writes only a part of the cache."""
    taken = call.operands[1]
    cores = min(chip.description.cores, tiles(taken))
    size = whole_bytes(taken)
    work = Work(cores, 6 * page_bytes(taken), dram_bytes=3 * size, noc_bytes=3 * size)
    work.movement_cycles = -(-tiles(taken) // cores) * 4 * chip.speed.transaction
    if call.name == "update_cache":
        work.host_wait = chip.fitted.host_read  # The position is a runtime argument.
    return work


def between_chips(chip: Machine, call: LibraryCall) -> Work:
    """Work of a collective: a copy on each device, and fabric traffic."""
    work = copied(chip, call)
    work.links = link_work(call)
    # all_reduce is a reduce-scatter program and an all-gather program.
    work.launches = 2 if call.name == "all_reduce" else 1
    return work
