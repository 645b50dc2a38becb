"""Work of the programs of convolutions and pools."""

from __future__ import annotations

from math import prod

from ttcodegen.dialects.ttcore.tile import TILE_SIDE, tiles_along
from ttcodegen.layout.placements import tile_bytes, tiles, whole_bytes
from ttcodegen.optimizer.core.call import LibraryCall
from ttcodegen.optimizer.core.footprint import bank_bytes
from ttcodegen.optimizer.cost.convolution_programs import convolution_footprint
from ttcodegen.optimizer.cost.work import Machine, Work, cores_of, traffic
from ttcodegen.optimizer.memory.pool_buffers import pool_buffers, shards_of_pool
from ttcodegen.optimizer.programs import matmul as products
from ttcodegen.optimizer.programs.pool_shards import pool_tensors


def convolved(chip: Machine, call: LibraryCall) -> Work:
    """A product whose left factor is gathered from an image in L1: in DRAM it comes as slices
    through L1, by programs of their own."""
    image, weights = call.operands[0], call.operands[1]
    result = call.result
    groups = int(call.attributes.get("groups", 1))
    inner_elements = prod(weights.shape[1:]) if len(weights.shape) == 4 else weights.shape[-2]
    channels = result.shape[-1]
    inner = tiles_along(inner_elements * groups) or 1
    rows = tiles_along(prod(result.shape[:-1]))
    columns = tiles_along(channels)
    kernel = prod(weights.shape[2:]) if len(weights.shape) == 4 else 1
    in_place = image.shards is not None and result.shards is not None
    cores = result.shards.cores if result.shards is not None else min(chip.description.cores, rows)
    work = Work(min(cores, chip.description.cores))
    count = -(-rows * columns // work.cores) * inner
    passes = products.fidelity_passes(call)
    # Rows of windows are copied in L1, and tilized, before they are multiplied.
    gathered = -(-rows // work.cores) * inner if kernel > 1 else 0
    work.movement_cycles = gathered * TILE_SIDE * chip.speed.transaction // 4
    work.engine_cycles = int(
        count * max(chip.speed.tile_product * passes, 40)
        + gathered * chip.pass_cycles([image])
        + -(-rows * columns // work.cores) * chip.pass_cycles([result])
    )
    traffic(work, call)
    work.launches = 1 if in_place and kernel == 1 else 3 if in_place else 5 if kernel > 1 else 1
    if not in_place and kernel > 1:
        work.noc_bytes += 2 * (whole_bytes(image) + whole_bytes(result))
    if call.name == "conv2d":
        found = convolution_footprint(call, chip.grid, chip.speed.usable_l1, chip.description.arch)
        work.circular_buffers = found.buffers
        own = sum(bank_bytes(placement, chip.description) for placement in (image, result))
        work.intermediates = max(found.tensors - own, 0)
        if image.buffer_type == "dram":
            # It is cut so that all of it fits.
            room = chip.speed.usable_l1 - found.buffers - own
            work.intermediates = max(min(work.intermediates, room), 0)
        if in_place and work.intermediates:
            # The image becomes rows, beside those of its neighbours.
            work.noc_bytes += work.intermediates * work.cores
            work.engine_cycles += -(-tiles(image) // work.cores) * chip.pass_cycles([image])
        return work
    work.circular_buffers = min(
        inner * 2 * tile_bytes(result) + 4 * inner_elements * 64, chip.speed.usable_l1 // 2
    )
    return work


def pooled(chip: Machine, call: LibraryCall) -> Work:
    kernel = prod(call.attributes.get("kernel_size", (1,)))
    units = max(tiles(call.operands[0]), tiles(call.result))
    cores = cores_of(chip, call, units)
    work = Work(cores, 16_640, launches=4)
    traffic(work, call)
    work.movement_cycles = -(-tiles(call.result) // cores) * TILE_SIDE * kernel * 8
    work.engine_cycles = -(-tiles(call.result) // cores) * kernel * chip.pass_cycles([call.result])
    description = chip.description
    work.intermediates = pool_tensors(call, description, shards_of_pool(call, description))
    if call.operands[0].buffer_type == "dram":
        # It is cut so that all of it fits.
        room = chip.speed.usable_l1 - pool_buffers(call, description)
        room -= bank_bytes(call.result, description)
        work.intermediates = max(min(work.intermediates, room), 0)
    return work
