"""The program configurations of normalisations whose rows are sharded."""

from __future__ import annotations

from ttcodegen.dialects.ttcore.shards import CoreRange, Shards
from ttcodegen.dialects.ttcore.tile import TILE_SIDE
from ttcodegen.dialects.ttnn.placement import TensorPlacement
from ttcodegen.dialects.ttnn.program_configs import CoreGrid, LayerNormSharded
from ttcodegen.optimizer.programs.matmul import divisors

MOST_NORM_SUBBLOCK = 4
"""Tiles of 32 bits that the registers hold, in which normalisations sum up by default."""


def norm_misfit(source: TensorPlacement, config: LayerNormSharded) -> str | None:
    """Returns why a row normalization cannot have a config, or None.

    The rules are measured with tt-metal for the placement of its input.
    """
    fitting = norm_config(source)
    if source.shards is not None and not source.shards.is_rectangle:
        return "the cores of its operand's shards are no rectangle"
    if fitting is None or source.shards is None:
        return "its operand has no shards by width or blocks that its tiles fill"
    if (config.block_h, config.block_w) != (fitting.block_h, fitting.block_w):
        blocks = f"{fitting.block_h}x{fitting.block_w}"
        return f"blocks of {config.block_h}x{config.block_w} tiles are not its shards of {blocks}"
    box, grid = source.shards.bounding_box(), config.compute_with_storage_grid_size
    if grid.columns < box.columns or grid.rows < box.rows:
        return f"its shards are on {box.columns}x{box.rows} cores"
    if config.subblock_w > MOST_NORM_SUBBLOCK:
        return f"a subblock has {MOST_NORM_SUBBLOCK} tiles at most"
    return None


def on_rectangle(source: TensorPlacement, grid: CoreGrid) -> TensorPlacement | None:
    """Rows sharded by width over as many cores as fill a rectangle of the grid and divide the
    tiles of a row; None if that is a single core, or there are several rows of shards.

    Programs that shard by width fill the grid row by row: on 11 or 13 columns few counts of cores
    are a rectangle, which the normalisations of tt-metal ask for."""
    if source.shards is None or source.memory_layout != "width_sharded":
        return None
    height, width = source.collapsed_shape()
    boxes = {
        columns * rows: CoreGrid(columns, rows)
        for rows in range(grid.rows, 0, -1)
        for columns in range(1, grid.columns + 1)
    }
    across = max((n for n in divisors(width) if n in boxes), default=1)
    if across == 1:
        return None
    box = boxes[across]
    cores = (CoreRange(0, 0, box.columns - 1, box.rows - 1),)
    shape = (height * TILE_SIDE, width // across * TILE_SIDE)
    return source.sharded("width_sharded", Shards(shape, cores))


def norm_config(source: TensorPlacement) -> LayerNormSharded | None:
    """The configuration of a normalisation whose rows are divided among several cores; None if the
    library takes no such shards (layernorm_device_operation.cpp of tt-metal)."""
    shards = source.shards
    if shards is None or source.memory_layout == "height_sharded" or not shards.is_rectangle:
        return None
    height, width = source.collapsed_shape()
    block_h, block_w = (size // TILE_SIDE for size in shards.shape)
    box = shards.bounding_box()
    across = shards.cores if source.memory_layout == "width_sharded" else box.columns
    down = 1 if source.memory_layout == "width_sharded" else box.rows
    if block_w * across != width or block_h * down != height:
        return None
    sub_w = max(d for d in divisors(block_w) if d <= MOST_NORM_SUBBLOCK)
    return LayerNormSharded(CoreGrid(box.columns, box.rows), sub_w, block_h, block_w)
