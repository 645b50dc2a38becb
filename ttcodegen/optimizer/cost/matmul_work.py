"""Work of the programs of matmul and attention."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from ttcodegen.dialects.ttcore.tile import TILE_SIDE, tiles_along
from ttcodegen.dialects.ttnn.program_configs import (
    SDPA,
    CoreGrid,
    MatmulDRAMSharded,
    MatmulReuse,
    ProgramConfig,
)
from ttcodegen.layout.placements import tile_bytes, whole_bytes
from ttcodegen.optimizer.core import footprint
from ttcodegen.optimizer.core.call import LibraryCall
from ttcodegen.optimizer.cost.work import Machine, Work, traffic
from ttcodegen.optimizer.programs import matmul as products
from ttcodegen.optimizer.programs.attention_decode import DecodeAttention
from ttcodegen.optimizer.programs.automatic_matmul import automatic_config

BLOCK_SYNC = 400
"""Cycles in which senders and receivers of a multicast find each other (estimate)."""


# Products


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
        # The cores beside the banks compute, and send the others what these are to hold.
        cores = min(chip.description.num_dram_channels, product.width)
        columns = width = -(-product.width // cores)
        work.cores = cores
    repeats = 1 if getattr(config, "fuse_batch", True) else product.batch
    sub_h = getattr(config, "out_subblock_h", 1)
    sub_w = getattr(config, "out_subblock_w", min(8, columns))
    # A tile of one side is unpacked for each product, of the other once for a subblock.
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
    """Bytes of the circular buffers of a product, in the configuration that it has or that the
    library chooses with so many bytes of L1."""
    config = call.program_config or automatic_config(call, grid, l1)
    if config is None:
        return _blockless_buffers(call)
    return _buffers(call, config, products.Product(call))


def _blockless_buffers(call: LibraryCall) -> int:
    return 2 * sum(tile_bytes(p) for p in (*call.operands[:2], call.result))


def _buffers(call: LibraryCall, config: ProgramConfig, product: products.Product) -> int:
    """Bytes of the circular buffers of a product with blocks."""
    left, right, result = call.operands[0], call.operands[1], call.result
    wide_sums = products.wide_sums(call)
    k = min(getattr(config, "in0_block_w", 1), product.inner)
    if isinstance(config, MatmulDRAMSharded) and right.shards is not None:
        return footprint.banked_product_buffers(k, left, right, result, wide_sums)
    bias = call.operands[2] if len(call.operands) > 2 else None
    high = getattr(config, "out_block_h", getattr(config, "per_core_m", 1))
    wide = getattr(config, "out_block_w", getattr(config, "per_core_n", 1))
    # A core that has several batches takes one of them at a time.
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
    """Tiles of the result one by one, for each of which a row and a column are read."""
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
    """Attention: scores and their product with the values, chunk by chunk, with a softmax. Each
    chunk of queries reads all keys and values that it sees."""
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
    # What was summed up is scaled anew in each step.
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
    """Attention of one query of each user, whose keys are distributed over cores. Where in the
    cache each user is, is not known before: all positions count."""
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
