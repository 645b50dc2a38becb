"""Work of matmul, attention, elementwise, normalization and reduction programs."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from ttcodegen.dialects.ttcore.shards import Layout
from ttcodegen.dialects.ttcore.tile import TILE_SIDE, tiles_along
from ttcodegen.dialects.ttnn.program_configs import (
    SDPA,
    CoreGrid,
    MatmulDRAMSharded,
    MatmulMultiCast1D,
    MatmulReuse,
    ProgramConfig,
)
from ttcodegen.layout.placements import tile_bytes, tiles, whole_bytes
from ttcodegen.ops.core.definition import call_has_trait, takes_two_tensors, vector_cycles
from ttcodegen.ops.core.traits import Trait
from ttcodegen.ops.elementwise.binary import OPERAND_ACTIVATIONS
from ttcodegen.optimizer import call as footprint
from ttcodegen.optimizer.call import LibraryCall, bank_bytes
from ttcodegen.optimizer.circular_buffers import argmax_cores
from ttcodegen.optimizer.circular_buffers import elementwise as elementwise_buffers
from ttcodegen.optimizer.cost.transfers import in_tiles, tile_by_tile
from ttcodegen.optimizer.cost.work import Machine, Work, cores_of, traffic
from ttcodegen.optimizer.programs import matmul as matmul
from ttcodegen.optimizer.programs.attention_and_norms import DecodeAttention
from ttcodegen.optimizer.programs.matmul import automatic_config

# Matmul and attention

SOFTMAX_CYCLES = 3
"""Vector engine cycles of attention per 32 scores.

From 7 prefills of 1,024 and 4,096 positions on p100a; with chunks of 128 and no mask, a tile of
scores takes 596 cycles."""
FULL_OVERLAP = 8.0
"""Overlap exponent of matmuls, which read blocks while they multiply others (486 matmuls)."""


def multiplied(chip: Machine, call: LibraryCall) -> Work:
    """Work of a matmul."""
    sizes = matmul.MatmulSizes(call)
    config = call.program_config or automatic_config(call, chip.grid, chip.speed.l1_bank)
    passes = matmul.fidelity_passes(call, chip.description.arch == "wormhole_b0")
    left, right, result = call.operands[0], call.operands[1], call.result
    cores = min(matmul.config_cores(config, sizes, chip.grid), chip.description.cores)
    work = Work(cores)
    if config is None:
        return _blockless(chip, call, sizes, work, passes)
    k = min(getattr(config, "in0_block_w", 1), sizes.inner)
    height = getattr(config, "out_block_h", getattr(config, "per_core_m", 1))
    width = getattr(config, "out_block_w", getattr(config, "per_core_n", 1))
    rows = min(getattr(config, "per_core_m", 1), sizes.rows)
    columns = min(getattr(config, "per_core_n", 1), sizes.width)
    if isinstance(config, MatmulDRAMSharded):
        # Only the cores next to the banks compute; they send result shards to the others.
        cores = min(chip.description.num_dram_channels, sizes.width)
        columns = width = -(-sizes.width // cores)
        work.cores = cores
    repeats = 1 if getattr(config, "fuse_batch", True) else sizes.batch
    sub_h = getattr(config, "out_subblock_h", 1)
    sub_w = getattr(config, "out_subblock_w", min(8, columns))
    fitted = chip.fitted
    # A tile of one operand is unpacked for each tile product, of the other once per subblock side.
    feeding = fitted.operand_sync + tile_bytes(right) * fitted.operand_byte * (
        1 + 1 / max(sub_h, sub_w)
    )
    each = max(fitted.tile_product * passes, feeding)
    out = repeats * rows * columns
    count = out * sizes.inner
    blocks = -(-sizes.inner // k)
    splits = -(-rows // height) * -(-columns // width) * repeats
    packed = out * tile_bytes(result) * fitted.packed_byte
    work.engine_cycles = int(count * each + packed + blocks * splits * fitted.block_sync)
    traffic(work, call)
    work.overlap, work.start = FULL_OVERLAP, fitted.start_of_matmul
    work.dram_rate, work.page_seconds = fitted.dram_matmul, fitted.matmul_page
    if isinstance(config, MatmulDRAMSharded):
        work.dram_rate, work.page_seconds = fitted.dram_sharded, 0.0
    received = repeats * sizes.inner * (rows * tile_bytes(left) + columns * tile_bytes(right))
    work.noc_bytes = max(work.noc_bytes, received * cores // 2)
    sent = rows * -(-columns // width), columns * -(-rows // height)
    work.movement_cycles = _multicast_cycles(chip, call, config, repeats * sizes.inner, sent)
    if call.attributes.get("activation") or config.activation is not None:
        work.vector_cycles = out * TILE_SIDE * 8
    work.circular_buffers = _buffers(call, config, sizes)
    return work


def _multicast_cycles(
    chip: Machine, call: LibraryCall, config: ProgramConfig, inner: int, tiles: tuple[int, int]
) -> int:
    """Cycles of the busier sender, of the left or the right operand.

    Args:
        chip: the chip.
        call: the matmul.
        config: program config of the matmul.
        inner: tiles of the contracted dimension.
        tiles: tile rows and tile columns that a core reads, repeated per block of its result.
    """
    if isinstance(config, MatmulDRAMSharded):
        return 0
    fitted, (left, right) = chip.fitted, call.operands[:2]
    shared = (True, True)
    if isinstance(config, MatmulMultiCast1D):
        shared = (config.mcast_in0, not config.mcast_in0)
    elif isinstance(config, MatmulReuse):
        shared = (False, False)
    cycles = [
        inner
        * count
        * (
            fitted.multicast + tile_bytes(factor) * fitted.multicast_byte
            if sends
            else fitted.own_read + tile_bytes(factor) * fitted.own_read_byte
        )
        for factor, count, sends in zip((left, right), tiles, shared, strict=True)
        if factor.shards is None or factor.buffer_type != "l1"
    ]
    return int(max(cycles, default=0))


def matmul_call_buffers(call: LibraryCall, grid: CoreGrid, l1: int) -> int:
    """Returns the bytes of the circular buffers of a matmul.

    Without a program config, ttnn chooses one for `l1` bytes of L1 per core."""
    config = call.program_config or automatic_config(call, grid, l1)
    if config is None:
        return _blockless_buffers(call)
    return _buffers(call, config, matmul.MatmulSizes(call))


def _blockless_buffers(call: LibraryCall) -> int:
    return 2 * sum(tile_bytes(p) for p in (*call.operands[:2], call.result))


def _buffers(call: LibraryCall, config: ProgramConfig, sizes: matmul.MatmulSizes) -> int:
    """Returns the bytes of the circular buffers of a matmul with blocks."""
    left, right, result = call.operands[0], call.operands[1], call.result
    wide_sums = matmul.wide_sums(call)
    k = min(getattr(config, "in0_block_w", 1), sizes.inner)
    if isinstance(config, MatmulDRAMSharded) and right.shards is not None:
        return footprint.dram_sharded_matmul_buffers(k, left, right, result, wide_sums)
    bias = call.operands[2] if len(call.operands) > 2 else None
    high = getattr(config, "out_block_h", getattr(config, "per_core_m", 1))
    wide = getattr(config, "out_block_w", getattr(config, "per_core_n", 1))
    # A core with several batches processes one at a time.
    is_batched = isinstance(config, MatmulReuse)
    left_high = min(high, sizes.height) if is_batched else high
    repeats = 1 if getattr(config, "fuse_batch", True) else sizes.batch
    blocks = -(-sizes.inner // k)
    compute = call.compute_config
    packs_to_l1 = compute is None or compute.packer_l1_acc
    return footprint.matmul_buffers(
        footprint.Blocks(
            high, wide, k, blocks * (sizes.batch if is_batched else repeats) == 1, left_high
        ),
        left,
        right,
        result,
        wide_sums,
        bias,
        multicast=left.memory_layout != "height_sharded",
        gathered_sums=packs_to_l1 and blocks > (1 if bias is not None else 2),
    )


def _blockless(
    chip: Machine, call: LibraryCall, sizes: matmul.MatmulSizes, work: Work, passes: int
) -> Work:
    """Work of a matmul without blocks: a row and a column of tiles are read per result tile."""
    left, right = call.operands[0], call.operands[1]
    out = sizes.rows * sizes.width
    count = out * sizes.inner
    each = max(chip.speed.tile_product * passes, 2 * tile_bytes(right) // chip.speed.unpacked_bytes)
    work.engine_cycles = -(-count // work.cores) * (each + chip.speed.tile_overhead)
    work.noc_bytes = count * (tile_bytes(left) + tile_bytes(right))
    in_dram = [p for p in (left, right) if p.buffer_type == "dram"]
    work.dram_bytes = count * sum(tile_bytes(placement) for placement in in_dram)
    work.circular_buffers = _blockless_buffers(call)
    return work


def attended(chip: Machine, call: LibraryCall) -> Work:
    """Work of attention with an online softmax over chunks.

    In causal attention, each chunk of queries reads the keys and values that its mask does not
    exclude; otherwise cores forward them to each other."""
    query, key, value = call.operands[:3]
    passes = matmul.fidelity_passes(call)
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
    causal = call.attributes.get("is_causal", True)
    for operand in (key, value) if causal else ():
        again = max(0, int(read * tile_bytes(operand)) - whole_bytes(operand))
        work.noc_bytes += again
        work.dram_bytes += again if operand.buffer_type == "dram" else 0
    scores, steps = each * seen * q * keys, each * seen * -(-keys // k)
    # Online softmax: each step rescales the accumulated output and sums.
    corrected = steps * q * (depth + 3) * chip.pass_cycles([query])
    work.engine_cycles = int(
        scores * depth * 2 * chip.fitted.tile_product * passes
        + scores * 2 * chip.pass_cycles([query])
        + corrected
        + steps * 2 * chip.fitted.block_sync
    )
    work.vector_cycles = int(scores * TILE_SIDE * SOFTMAX_CYCLES)
    return work


def attended_by_one(chip: Machine, call: LibraryCall) -> Work:
    """Work of decode attention, with the keys of each user distributed over cores.

    The positions of the users are unknown at compile time: the whole cache is counted."""
    plan = DecodeAttention.of(call, chip.description.cores)
    query, key, value, *others = call.operands
    work = Work(min(plan.active_cores, chip.description.cores))
    traffic(work, replace(call, operands=(query, *others)))
    pages = plan.users * plan.key_heads * tiles_along(plan.keys) * plan.depth
    read = pages * (tile_bytes(key) + tile_bytes(value))
    work.dram_bytes += read
    work.noc_bytes += read
    each = chip.pass_cycles([query])
    tile_cycles = max(chip.speed.tile_product * matmul.fidelity_passes(call), 40)
    scores = plan.rows * plan.chunk_tiles
    summed = plan.rows * (plan.depth + 3) * each
    step = scores * (2 * plan.depth * tile_cycles + 4 * each) + summed + 2 * chip.fitted.block_sync
    work.engine_cycles = plan.steps * step + plan.rounds * (2 * summed + chip.fitted.block_sync)
    work.vector_cycles = plan.steps * scores * TILE_SIDE * 12
    return work


# Elementwise


def elementwise(chip: Machine, call: LibraryCall) -> Work:
    """Work of an elementwise call."""
    placements = [*call.operands, *call.results]
    units = max((tiles(placement) for placement in placements), default=1)
    cores = cores_of(chip, call, units)
    each = -(-units // cores)
    work = Work(cores, elementwise_buffers(call))
    traffic(work, call)
    fitted = chip.fitted
    work.movement_cycles = each * tile_by_tile(chip, call)
    wide = any(placement.data_type.mlir == "f32" for placement in call.operands)
    if wide or not call_has_trait(call.name, Trait.ON_MATRIX_ENGINE):
        steps = TILE_SIDE * TILE_SIDE // chip.speed.vector_lanes
        work.vector_cycles = each * steps * vector_cycles(call.name)
        work.engine_cycles = each * fitted.one_tile * len(placements) // 2
    else:
        work.engine_cycles = each * fitted.two_tiles
    for name in ("activation", *OPERAND_ACTIVATIONS):
        if (activation := call.attributes.get(name)) is not None:
            # It runs in the destination registers, whichever engine filled them.
            steps = TILE_SIDE * TILE_SIDE // chip.speed.vector_lanes
            work.vector_cycles += each * steps * vector_cycles(activation)
    in_rows = any(p.layout is Layout.ROW_MAJOR for p in placements)
    if takes_two_tensors(call.name) and in_rows and any(p.shards for p in placements):
        # ttnn tilizes row-major shards first, and untilizes the result.
        work.intermediates = sum(in_tiles(chip, placement) for placement in placements)
    return work


# Along rows


def normalised(chip: Machine, call: LibraryCall) -> Work:
    """Work of a normalization or softmax."""
    source = call.operands[0]
    height, width = source.with_(layout=Layout.TILE).collapsed_shape()
    cores = cores_of(chip, call, height)
    each = -(-height * width // cores)
    if source.shards is None:
        each = -(-height // cores) * width
    fitted = chip.fitted
    work = Work(cores)
    traffic(work, call)
    steps = fitted.rms_norm if "rms" in call.name else fitted.layer_norm
    if call.name == "softmax":
        steps = fitted.softmax
    work.engine_cycles = steps[0] + each * steps[1]
    return work


def _argmax(chip: Machine, call: LibraryCall) -> Work:
    """Work of argmax: each core searches its part of a row element by element.

    One core then compares the candidates of all."""
    source = call.operands[0]
    cores, part = argmax_cores(call, chip.description)
    work = Work(cores)
    traffic(work, call)
    rows = prod(source.shape[:-1])
    compared = part + (cores if cores > 1 else 0)
    work.movement_cycles = rows * (compared * chip.fitted.searched + chip.fitted.read_wait)
    return work


def reduced(chip: Machine, call: LibraryCall) -> Work:
    """Work of a reduction, argmax included."""
    source = call.operands[0]
    if call_has_trait(call.name, Trait.ORDERS):
        return _argmax(chip, call)
    units = tiles(source)
    cores = cores_of(chip, call, max(1, tiles(call.result)))
    work = Work(cores)
    traffic(work, call)
    work.engine_cycles = -(-units // cores) * chip.pass_cycles([source])
    work.intermediates = _reduction_intermediates(chip, call)
    return work


def _reduction_intermediates(chip: Machine, call: LibraryCall) -> int:
    """Returns the bytes of L1 per core of the intermediates of a reduction.

    These are the tilized copy of a row-major operand, the result along rows before the reduction
    along columns, and the result before its last dimension is removed."""
    source, description = call.operands[0], chip.description
    rank = len(source.shape)
    dims = sorted(dim % rank for dim in call.attributes.get("dim_arg") or ())
    copied = in_tiles(chip, source) if source.layout is Layout.ROW_MAJOR else 0
    both = dims[-2:] == [rank - 2, rank - 1] and rank >= 2
    by_rows = source.with_(layout=Layout.TILE, shape=(*source.shape[:-1], 1))
    first = bank_bytes(by_rows, description) if both and source.shards is None else 0
    removed = not call.attributes.get("keep_dim", True) and rank - 1 in dims
    return max(copied + first, bank_bytes(call.result, description) if removed else 0)
