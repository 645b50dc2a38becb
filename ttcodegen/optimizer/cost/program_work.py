"""Work of matmul, attention, elementwise, movement and row-wise programs."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from ttcodegen.dialects.ttcore.shards import Layout
from ttcodegen.dialects.ttcore.tile import TILE_SIDE, tiles_along
from ttcodegen.dialects.ttnn.placement import TensorPlacement
from ttcodegen.dialects.ttnn.program_configs import (
    SDPA,
    CoreGrid,
    MatmulDRAMSharded,
    MatmulReuse,
    ProgramConfig,
)
from ttcodegen.layout.placements import tile_bytes, tiles, whole_bytes
from ttcodegen.ops.core.definition import call_has_trait, takes_two_tensors, vector_cycles
from ttcodegen.ops.core.traits import Trait
from ttcodegen.optimizer import call as footprint
from ttcodegen.optimizer.call import LibraryCall, bank_bytes
from ttcodegen.optimizer.cost.work import Machine, Work, cores_of, link_work, page_bytes, traffic
from ttcodegen.optimizer.memory.circular_buffers import elementwise as elementwise_buffers
from ttcodegen.optimizer.programs import matmul as products
from ttcodegen.optimizer.programs.attention_and_norms import DecodeAttention
from ttcodegen.optimizer.programs.matmul import automatic_config

# Work of the programs of matmul and attention.

BLOCK_SYNC = 400
"""Cycles in which senders and receivers of a multicast synchronize (estimate)."""


def multiplied(chip: Machine, call: LibraryCall) -> Work:
    product = products.Product(call)
    config = call.program_config or automatic_config(call, chip.grid, chip.speed.l1_bank)
    passes = products.fidelity_passes(call, chip.description.arch == "wormhole_b0")
    left, right, result = call.operands[0], call.operands[1], call.result
    cores = min(products.config_cores(config, product, chip.grid), chip.description.cores)
    work = Work(cores)
    if config is None:
        return _blockless(chip, call, product, work, passes)
    k = min(getattr(config, "in0_block_w", 1), product.inner)
    height = getattr(config, "out_block_h", getattr(config, "per_core_m", 1))
    width = getattr(config, "out_block_w", getattr(config, "per_core_n", 1))
    rows = min(getattr(config, "per_core_m", 1), product.rows)
    columns = min(getattr(config, "per_core_n", 1), product.width)
    if isinstance(config, MatmulDRAMSharded):
        # Only the cores next to the banks compute; they send the others their result shards.
        cores = min(chip.description.num_dram_channels, product.width)
        columns = width = -(-product.width // cores)
        work.cores = cores
    repeats = 1 if getattr(config, "fuse_batch", True) else product.batch
    sub_h = getattr(config, "out_subblock_h", 1)
    sub_w = getattr(config, "out_subblock_w", min(8, columns))
    # A tile of one operand is unpacked for each tile multiplication, of the other once a subblock.
    unpack = tile_bytes(right) // chip.speed.unpacked_bytes
    feeding = unpack * (1 + 1 / max(sub_h, sub_w))
    each = max(chip.speed.tile_product * passes, feeding)
    count = repeats * rows * columns * product.inner
    blocks = -(-product.inner // k)
    out = repeats * rows * columns
    compute = call.compute_config
    sums = 1 if compute is not None and compute.packer_l1_acc else 2
    respilled = (blocks - 1) * out * sums * (tile_bytes(result) // chip.speed.unpacked_bytes)
    packed = out * chip.pass_cycles([result])
    splits = -(-rows // height) * -(-columns // width) * repeats
    work.engine_cycles = int(count * each) + respilled + packed + blocks * splits * BLOCK_SYNC
    work.dram_share = chip.speed.dram_interleaved
    if isinstance(config, MatmulDRAMSharded):
        work.dram_share = chip.speed.dram_sharded
    traffic(work, call)
    received = repeats * product.inner * (rows * tile_bytes(left) + columns * tile_bytes(right))
    work.noc_bytes = max(work.noc_bytes, received * cores // 2)
    if call.attributes.get("activation") or config.activation is not None:
        work.vector_cycles = out * TILE_SIDE * 8
    work.circular_buffers = _buffers(call, config, product)
    return work


def product_call_buffers(call: LibraryCall, grid: CoreGrid, l1: int) -> int:
    """Bytes of the circular buffers of a matmul with its program config.

    Without one, with the config that ttnn chooses if cores have `l1` bytes of L1."""
    config = call.program_config or automatic_config(call, grid, l1)
    if config is None:
        return _blockless_buffers(call)
    return _buffers(call, config, products.Product(call))


def _blockless_buffers(call: LibraryCall) -> int:
    return 2 * sum(tile_bytes(p) for p in (*call.operands[:2], call.result))


def _buffers(call: LibraryCall, config: ProgramConfig, product: products.Product) -> int:
    """Bytes of the circular buffers of a matmul with blocks."""
    left, right, result = call.operands[0], call.operands[1], call.result
    wide_sums = products.wide_sums(call)
    k = min(getattr(config, "in0_block_w", 1), product.inner)
    if isinstance(config, MatmulDRAMSharded) and right.shards is not None:
        return footprint.banked_product_buffers(k, left, right, result, wide_sums)
    bias = call.operands[2] if len(call.operands) > 2 else None
    high = getattr(config, "out_block_h", getattr(config, "per_core_m", 1))
    wide = getattr(config, "out_block_w", getattr(config, "per_core_n", 1))
    # A core with several batches processes one at a time.
    of_batches = isinstance(config, MatmulReuse)
    left_high = min(high, product.height) if of_batches else high
    repeats = 1 if getattr(config, "fuse_batch", True) else product.batch
    blocks = -(-product.inner // k)
    compute = call.compute_config
    adds_up = compute is None or compute.packer_l1_acc
    return footprint.product_buffers(
        footprint.Blocks(
            high, wide, k, blocks * (product.batch if of_batches else repeats) == 1, left_high
        ),
        left,
        right,
        result,
        wide_sums,
        bias,
        multicast=left.memory_layout != "height_sharded",
        gathered_sums=adds_up and blocks > (1 if bias is not None else 2),
    )


def _blockless(
    chip: Machine, call: LibraryCall, product: products.Product, work: Work, passes: int
) -> Work:
    """Work of a matmul without blocks: a row and a column of tiles are read per result tile."""
    left, right = call.operands[0], call.operands[1]
    out = product.rows * product.width
    count = out * product.inner
    each = max(chip.speed.tile_product * passes, 2 * tile_bytes(right) // chip.speed.unpacked_bytes)
    work.engine_cycles = -(-count // work.cores) * (each + chip.speed.tile_overhead)
    work.noc_bytes = count * (tile_bytes(left) + tile_bytes(right))
    in_dram = [p for p in (left, right) if p.buffer_type == "dram"]
    work.dram_bytes = count * sum(tile_bytes(placement) for placement in in_dram)
    work.circular_buffers = _blockless_buffers(call)
    return work


def attended(chip: Machine, call: LibraryCall) -> Work:
    """Work of attention with an online softmax over chunks.

    Each chunk of queries reads all keys and values that its mask does not exclude."""
    query, key, value = call.operands[:3]
    passes = products.fidelity_passes(call)
    heads, rows = prod(query.shape[:-2]), tiles_along(query.shape[-2])
    keys, depth = tiles_along(key.shape[-2]), tiles_along(query.shape[-1])
    config = call.program_config
    q = k = 1
    if isinstance(config, SDPA):
        q, k = (max(size // TILE_SIDE, 1) for size in (config.q_chunk_size, config.k_chunk_size))
    chunks = heads * -(-rows // q)
    seen = 1.0
    if call.attributes.get("is_causal", True):
        seen = (1 + q / max(rows, q)) / 2
    cores = min(chip.description.cores, max(1, chunks))
    each = -(-chunks // cores)
    work = Work(cores)
    traffic(work, call)
    read = chunks * seen * keys * depth
    for operand in (key, value):
        again = max(0, int(read * tile_bytes(operand)) - whole_bytes(operand))
        work.noc_bytes += again
        work.dram_bytes += again if operand.buffer_type == "dram" else 0
    scores, steps = each * seen * q * keys, each * seen * -(-keys // k)
    # Online softmax: each step rescales the accumulated output and sums.
    corrected = steps * q * (depth + 3) * chip.pass_cycles([query])
    work.engine_cycles = int(
        scores * depth * 2 * max(chip.speed.tile_product * passes, 40)
        + scores * 4 * chip.pass_cycles([query])
        + corrected
        + steps * 2 * BLOCK_SYNC
    )
    work.vector_cycles = int(scores * TILE_SIDE * 12)
    return work


def attended_by_one(chip: Machine, call: LibraryCall) -> Work:
    """Work of decode attention, with the keys of a user distributed over cores.

    The positions of the users are not known at compile time: the whole cache counts."""
    plan = DecodeAttention.of(call, chip.description.cores)
    query, key, value, *others = call.operands
    work = Work(min(plan.active_cores, chip.description.cores))
    traffic(work, replace(call, operands=(query, *others)))
    pages = plan.users * plan.key_heads * tiles_along(plan.keys) * plan.depth
    read = pages * (tile_bytes(key) + tile_bytes(value))
    work.dram_bytes += read
    work.noc_bytes += read
    each = chip.pass_cycles([query])
    product = max(chip.speed.tile_product * products.fidelity_passes(call), 40)
    scores = plan.rows * plan.chunk_tiles
    summed = plan.rows * (plan.depth + 3) * each
    step = scores * (2 * plan.depth * product + 4 * each) + summed + 2 * BLOCK_SYNC
    work.engine_cycles = plan.steps * step + plan.rounds * (2 * summed + BLOCK_SYNC)
    work.vector_cycles = plan.steps * scores * TILE_SIDE * 12
    return work


# Work of elementwise, data movement and row-wise programs.

HOST_READ = 8
"""Time of reading a number on the host, in launches: it drains the queue first (estimate)."""
ROW_OF_FACE = 32
"""Bytes of a row of a face of 16-bit elements: contiguous bytes in a move across tiles."""


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
        # ttnn tilizes row-major shards first, and untilizes the result.
        work.intermediates = sum(_in_tiles(chip, placement) for placement in placements)
    return work


def _in_tiles(chip: Machine, placement: TensorPlacement) -> int:
    """Bytes of L1 per core of a tilized copy with the same placement."""
    return bank_bytes(placement.with_(layout=Layout.TILE), chip.description)


# Data movement


def _moving(chip: Machine, call: LibraryCall, whole_pages: bool) -> Work:
    """Work of moving a tensor by whole pages, or by rows of faces if it crosses tiles."""
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
    """Bytes of L1 per core of the intermediates of `repeat`, which untilizes tiles first."""
    source, target = call.operands[0], call.result
    if source.layout is Layout.ROW_MAJOR:
        return 0 if source.shards is None else _gathered_in_l1(chip, source)
    rows = [each.with_(layout=Layout.ROW_MAJOR) for each in (source, target)]
    if source.shards is not None:
        return _gathered_in_l1(chip, rows[1])
    before, after = (bank_bytes(each, chip.description) for each in rows)
    return max(before + after - bank_bytes(target, chip.description), after)


def changed_layout(chip: Machine, call: LibraryCall) -> Work:
    """Work of tilize and untilize: whole rows move, unpacker or packer reorder them."""
    work = _moving(chip, call, whole_pages=True)
    rows = max(placement.collapsed_shape()[1] for placement in (*call.operands, *call.results))
    if call.operands[0].layout is not call.result.layout:
        units = max(tiles(placement) for placement in (*call.operands, *call.results))
        work.engine_cycles = -(-units // work.cores) * chip.pass_cycles(
            [*call.operands, *call.results]
        )
        # Narrow rows take more transactions per tile: 32, one per row, up to a width of 8 tiles,
        # and fewer in proportion to the width from there on.
        narrow = min(max(1, 512 // max(1, rows * 2)), TILE_SIDE)
        work.movement_cycles *= narrow
    return work


def reshaped(chip: Machine, call: LibraryCall) -> Work:
    source, target = call.operands[0], call.result
    work = _moving(chip, call, whole_pages=source.layout is Layout.ROW_MAJOR)
    if source.layout is Layout.ROW_MAJOR or _is_cut_in_columns(target):
        # ttnn converts shards to interleaved before, and back after the reshape.
        for sharded in (source, target):
            if sharded.shards is not None and sharded.buffer_type == "l1":
                work.intermediates += _gathered_in_l1(chip, sharded)
    return work


def _is_cut_in_columns(placement: TensorPlacement) -> bool:
    """True if the shards of a tensor hold parts of rows."""
    return placement.memory_layout in ("width_sharded", "block_sharded")


def _gathered_in_l1(chip: Machine, placement: TensorPlacement) -> int:
    """Bytes of L1 per core of the same tensor interleaved."""
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
    """Work of slices and concatenations: by whole pages if they are aligned to tiles."""
    shapes = [(1, *placement.shape)[-2:] for placement in (*call.operands, *call.results)]
    full = call.result.shape[-2:]
    aligned = all(
        size % TILE_SIDE == 0 or size == whole
        for shape in shapes
        for size, whole in zip(shape[-len(full) :], full, strict=True)
    )
    work = _moving(chip, call, whole_pages=aligned or call.result.layout is Layout.ROW_MAJOR)
    if call.name == "slice_static":
        # Only the slice is read.
        work.dram_bytes = min(work.dram_bytes, 2 * whole_bytes(call.result))
    return work


def gathered(chip: Machine, call: LibraryCall) -> Work:
    """Work of a lookup: only the indexed rows of the table are read."""
    size = whole_bytes(call.result)
    cores = min(chip.description.cores, tiles(call.result))
    rows = prod(call.result.shape[:-1])
    work = Work(cores, 4 * 2048, dram_bytes=2 * size, noc_bytes=2 * size)
    work.movement_cycles = -(-rows // cores) * 2 * chip.speed.transaction
    return work


def written(chip: Machine, call: LibraryCall) -> Work:
    """Work of a cache update, which writes only a part of the cache."""
    taken = call.operands[1]
    cores = min(chip.description.cores, tiles(taken))
    size = whole_bytes(taken)
    work = Work(cores, 6 * page_bytes(taken), dram_bytes=3 * size, noc_bytes=3 * size)
    work.movement_cycles = -(-tiles(taken) // cores) * 4 * chip.speed.transaction
    if call.name == "update_cache":
        work.launches += HOST_READ  # The host reads the position, a runtime argument.
    return work


def between_chips(chip: Machine, call: LibraryCall) -> Work:
    """Work of a collective: a copy on each device, and fabric traffic."""
    work = copied(chip, call)
    work.links = link_work(call)
    # all_reduce is a reduce-scatter program and an all-gather program.
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
    """Bytes of L1 per core of the intermediates of a reduction.

    They are a tilized copy of a row-major operand, the result along rows before the reduction along
    columns, and the result before its last dimension is removed."""
    source, description = call.operands[0], chip.description
    rank = len(source.shape)
    dims = sorted(dim % rank for dim in call.attributes.get("dim_arg") or ())
    copied = _in_tiles(chip, source) if source.layout is Layout.ROW_MAJOR else 0
    both = dims[-2:] == [rank - 2, rank - 1] and rank >= 2
    by_rows = source.with_(layout=Layout.TILE, shape=(*source.shape[:-1], 1))
    first = bank_bytes(by_rows, description) if both and source.shards is None else 0
    removed = not call.attributes.get("keep_dim", True) and rank - 1 in dims
    return max(copied + first, bank_bytes(call.result, description) if removed else 0)
