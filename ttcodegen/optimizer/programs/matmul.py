"""Core assignment of matmuls, automatic or by program config."""

from __future__ import annotations

from math import prod

from ttcodegen.dialects.ttcore.tile import TILE_SIDE, tiles_along
from ttcodegen.dialects.ttnn.placement import TensorPlacement
from ttcodegen.dialects.ttnn.program_configs import (
    CoreGrid,
    MatmulDRAMSharded,
    MatmulMultiCast,
    MatmulMultiCast1D,
    MatmulProgramConfig,
    MatmulReuse,
    ProgramConfig,
)
from ttcodegen.optimizer.core.call import LibraryCall

NARROW = 8
"""From which ratio of the sides of a product on it is divided along one of them only."""
SUBBLOCKS = (
    *((4, 2), (2, 4), (8, 1), (1, 8), (7, 1), (1, 7), (3, 2), (2, 3), (6, 1), (1, 6), (5, 1)),
    *((1, 5), (2, 2), (4, 1), (1, 4), (3, 1), (1, 3), (2, 1), (1, 2), (1, 1)),
)
"""Height and width of what the registers hold, the best first (matmul_program_config.cpp)."""


class Product:
    """The sizes of a product in tiles: `batch` times height x inner x width."""

    def __init__(self, call: LibraryCall) -> None:
        a, b = (1, 1, *call.operands[0].shape), (1, 1, *call.operands[1].shape)
        if len(call.operands[1].shape) < 2:
            b = (1, *call.operands[1].shape, 1)
        rows, inner = a[-2], a[-1]
        if call.attributes.get("transpose_a"):
            rows, inner = inner, rows
        columns = b[-2] if call.attributes.get("transpose_b") else b[-1]
        self.batch_b = prod(b[:-2])
        self.batch = prod(a[:-2])
        self.height, self.inner, self.width = (
            tiles_along(rows),
            tiles_along(inner),
            tiles_along(columns),
        )

    @property
    def rows(self) -> int:
        """Rows of tiles, those of all batches one after the other."""
        return self.batch * self.height


def divisors(number: int) -> list[int]:
    """All divisors of a number, the smallest first."""
    return [part for part in range(1, number + 1) if number % part == 0]


def largest_divisor(number: int, most: int) -> int:
    """The largest divisor of a number that is at most `most`."""
    return next(part for part in range(most, 0, -1) if number % part == 0)


def fills_rectangle(cores: int, grid: CoreGrid) -> bool:
    """True if so many cores, row by row, end with a whole row or are in one."""
    return cores < grid.columns or cores % grid.columns == 0


def rectangle(cores: int, grid: CoreGrid) -> CoreGrid | None:
    """The widest rectangle of so many cores; None if the grid has none."""
    widths = range(min(cores, grid.columns), 0, -1)
    columns = next((c for c in widths if cores % c == 0 and cores // c <= grid.rows), None)
    return None if columns is None else CoreGrid(columns, cores // columns)


def subblock(height: int, width: int, most: int = 8, whole_rows: bool = False) -> tuple[int, int]:
    """The largest block of tiles that fits into the registers and divides a core's part; of whole
    rows where a sharded result needs them so (out_subblock_w is per_core_N, or one row high)."""
    for rows, columns in SUBBLOCKS:
        if whole_rows and rows > 1 and columns != width:
            continue
        if rows * columns <= most and height % rows == 0 and width % columns == 0:
            return rows, columns
    return 1, 1


def config_cores(config: ProgramConfig | None, product: Product, grid: CoreGrid) -> int:
    """Number of cores of a matmul."""
    match config:
        case MatmulMultiCast():
            rows = product.rows if config.fuse_batch else product.height
            down = -(-rows // config.per_core_m)
            return down * -(-product.width // config.per_core_n)
        case MatmulMultiCast1D():
            down = -(-product.rows // config.per_core_m)
            return down * -(-product.width // config.per_core_n)
        case MatmulReuse():
            return min(
                grid.cores,
                -(-product.rows * product.width // (config.per_core_m * config.per_core_n)),
            )
        case MatmulDRAMSharded():
            return min(grid.cores, -(-product.width // config.per_core_n))
        case _:
            return min(grid.cores, product.rows * product.width)


def config_misfit(
    config: MatmulProgramConfig, product: Product, grid: CoreGrid, wide: bool
) -> str | None:
    """Returns why a matmul cannot have a program config, or None.

    The rules are measured with tt-metal.
    """
    cores = getattr(config, "compute_with_storage_grid_size", grid)
    if cores.columns > grid.columns or cores.rows > grid.rows:
        return f"the chip has {grid.columns}x{grid.rows} cores"
    if product.inner % getattr(config, "in0_block_w", 1):
        return f"in0_block_w does not divide the {product.inner} tiles that are summed over"
    most = 4 if wide else 8
    if getattr(config, "out_subblock_h", 1) * getattr(config, "out_subblock_w", 1) > most:
        return f"a subblock has {most} tiles at most"
    per_m, per_n = getattr(config, "per_core_m", 1), getattr(config, "per_core_n", 1)
    rows = product.rows if getattr(config, "fuse_batch", True) else product.height
    down, across = -(-rows // per_m), -(-product.width // per_n)
    match config:
        case MatmulMultiCast():
            fits = down <= cores.rows and across <= cores.columns
        case MatmulMultiCast1D():
            whole = per_m >= rows if config.mcast_in0 else per_n >= product.width
            fits = whole and down * across <= cores.cores
        case _:
            fits = True
    if not fits:
        return f"{down}x{across} blocks of {per_m}x{per_n} tiles do not fit on the cores"
    return None


def config_takes_shards(config: MatmulProgramConfig, left: TensorPlacement) -> bool:
    """True if the left factor's shards are the blocks that a program reads."""
    shards = left.shards
    if shards is None:
        return False
    height, width = shards.shape[0] // TILE_SIDE, shards.shape[1] // TILE_SIDE
    if height != getattr(config, "per_core_m", 0):
        return False
    match config:
        case MatmulMultiCast():
            kind = "block_sharded"
        case MatmulMultiCast1D():
            kind = "width_sharded" if config.mcast_in0 else "height_sharded"
        case _:
            return False
    return left.memory_layout == kind and width % config.in0_block_w == 0


def fidelity_passes(call: LibraryCall, wormhole: bool = True) -> int:
    """Number of fidelity phases of the matrix engine.

    The call gives them, or else the library decides by data types and by whether it got a program
    config.
    """
    from ttcodegen.systems.performance import FIDELITY_PASSES

    config = call.compute_config
    if config is not None:
        return FIDELITY_PASSES[config.math_fidelity.value]
    types = {placement.data_type.mlir for placement in call.operands[:2]}
    if types == {"f32"}:
        return 3 if wormhole else 4
    if call.name.startswith("conv"):
        return 4
    return 1 if types <= {"bfp_bf8", "bfp_bf4"} or call.program_config is not None else 2


def wide_sums(call: LibraryCall) -> bool:
    """True if sums have 32 bits in the registers."""
    config = call.compute_config
    if config is not None:
        return config.fp32_dest_acc_en
    return call.result.data_type.mlir == "f32"
