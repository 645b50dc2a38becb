"""Products of one row of tiles with weights that are sharded over the banks of the DRAM.

Each bank is read by the core beside it, at more of its bandwidth than interleaved weights are.
"""

from __future__ import annotations

from ttcodegen.dialects.ttcore.shards import CoreRange, Layout, Shards, filled_core_ranges
from ttcodegen.dialects.ttcore.tile import TILE_SIDE
from ttcodegen.dialects.ttnn.placement import TensorPlacement
from ttcodegen.dialects.ttnn.program_configs import CoreGrid, MatmulDRAMSharded
from ttcodegen.layout.placements import tile_bytes
from ttcodegen.optimizer.core.call import LibraryCall
from ttcodegen.optimizer.programs.matmul import Product, fills_rectangle, largest_divisor
from ttcodegen.systems.description import ChipDescription
from ttcodegen.systems.performance import performance_of

MOST_INNER = 8
"""Tiles along the summed dimension that are taken at a time."""
ROOM = 0.4
"""The part of L1 that the blocks of weights may take."""
LEAST_WEIGHTS = 64
"""Tiles of weights below which a program is launching more than reading."""

Placed = tuple[TensorPlacement, TensorPlacement, TensorPlacement, MatmulDRAMSharded]
"""Both factors, the result and the configuration."""


def dram_sharded(
    call: LibraryCall,
    chip: ChipDescription,
    given: MatmulDRAMSharded | None = None,
    on_rectangle: bool = False,
) -> Placed | None:
    """Returns the DRAM-sharded candidate of a matmul, or None if the library has none.

    Weights are read from all banks at once, with the given config or one that fits (rules measured
    with tt-metal).

    `on_rectangle`: the result fills its cores, and these a rectangle.
    """
    product = Product(call)
    left, right = call.operands[:2]
    turned = call.attributes.get("transpose_a") or call.attributes.get("transpose_b")
    if product.rows != 1 or product.batch_b != 1 or len(call.operands) > 2 or turned:
        return None
    if left.layout is not Layout.TILE or right.layout is not Layout.TILE:
        return None
    if right.buffer_type != "dram":
        return None
    if given is None and product.inner * product.width < LEAST_WEIGHTS:
        return None
    banks = chip.num_dram_channels
    columns = chip.grid[1]
    each = -(-product.width // banks)
    weights = right.sharded(
        "width_sharded",
        Shards((product.inner * TILE_SIDE, each * TILE_SIDE), (CoreRange(0, 0, banks - 1, 0),)),
        "dram",
    )
    # Few large blocks: three of them are in L1 at a time.
    room = performance_of(chip).usable_l1 * ROOM // (3 * each * tile_bytes(right))
    inner = largest_divisor(product.inner, int(min(MOST_INNER, max(1, room))))
    per_core = -(-product.width // chip.cores)
    if on_rectangle:
        grid = CoreGrid(columns, chip.grid[0])
        per_core = next(
            each
            for each in range(per_core, product.width + 1)
            if product.width % each == 0 and fills_rectangle(product.width // each, grid)
        )
    if given is not None:
        if product.inner % given.in0_block_w or given.per_core_n < per_core:
            return None
        inner, per_core = given.in0_block_w, given.per_core_n
    cores = largest_divisor(product.inner // inner, chip.cores)
    part = product.inner // cores
    taken = left.sharded(
        "width_sharded",
        Shards((TILE_SIDE, part * TILE_SIDE), filled_core_ranges(cores, columns)),
    )
    made = call.result.sharded(
        "width_sharded",
        Shards(
            (TILE_SIDE, per_core * TILE_SIDE),
            filled_core_ranges(-(-product.width // per_core), columns),
        ),
    )
    config = given or MatmulDRAMSharded(inner, 1, per_core)
    return taken, weights, made, config
