"""Core assignment of matmuls, chosen by the library or by a program config."""

from __future__ import annotations

from math import gcd, prod

from ttcodegen.dialects.ttcore.shards import Orientation
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
from ttcodegen.layout.placements import tile_bytes
from ttcodegen.optimizer.call import (
    BF16_TILE,
    F32_TILE,
    ROW_ALIGNMENT,
    LibraryCall,
    allocated_bytes,
)

NARROW = 8
"""Ratio of the sides of a result above which it is divided along the longer one only."""
SUBBLOCKS = (
    *((4, 2), (2, 4), (8, 1), (1, 8), (7, 1), (1, 7), (3, 2), (2, 3), (6, 1), (1, 6), (5, 1)),
    *((1, 5), (2, 2), (4, 1), (1, 4), (3, 1), (1, 3), (2, 1), (1, 2), (1, 1)),
)
"""Heights and widths of subblocks, the best first (matmul_program_config.cpp)."""


class MatmulSizes:
    """Sizes of a matmul in tiles: `batch` times height x inner x width."""

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
        """Tile rows of all batches."""
        return self.batch * self.height


def divisors(number: int) -> list[int]:
    """Returns all divisors of a number in ascending order."""
    return [part for part in range(1, number + 1) if number % part == 0]


def largest_divisor(number: int, most: int) -> int:
    """Returns the largest divisor of a number up to `most`."""
    return next(part for part in range(most, 0, -1) if number % part == 0)


def fills_rectangle(cores: int, grid: CoreGrid) -> bool:
    """Returns whether cores that are assigned row by row fill whole rows, or fit into one."""
    return cores < grid.columns or cores % grid.columns == 0


def rectangle(cores: int, grid: CoreGrid) -> CoreGrid | None:
    """Returns the widest rectangle of that number of cores; None if the grid has none."""
    widths = range(min(cores, grid.columns), 0, -1)
    columns = next((c for c in widths if cores % c == 0 and cores // c <= grid.rows), None)
    return None if columns is None else CoreGrid(columns, cores // columns)


def subblock(height: int, width: int, most: int = 8, whole_rows: bool = False) -> tuple[int, int]:
    """Returns height and width of the largest subblock that fits the registers and divides a block.

    `whole_rows`: whether a sharded result requires `out_subblock_w` to be `per_core_N`, unless the
    subblock is one row high."""
    for rows, columns in SUBBLOCKS:
        if whole_rows and rows > 1 and columns != width:
            continue
        if rows * columns <= most and height % rows == 0 and width % columns == 0:
            return rows, columns
    return 1, 1


def config_cores(config: ProgramConfig | None, sizes: MatmulSizes, grid: CoreGrid) -> int:
    """Returns the number of cores of a matmul."""
    match config:
        case MatmulMultiCast():
            rows = sizes.rows if config.fuse_batch else sizes.height
            down = -(-rows // config.per_core_m)
            return down * -(-sizes.width // config.per_core_n)
        case MatmulMultiCast1D():
            down = -(-sizes.rows // config.per_core_m)
            return down * -(-sizes.width // config.per_core_n)
        case MatmulReuse():
            return min(
                grid.cores,
                -(-sizes.rows * sizes.width // (config.per_core_m * config.per_core_n)),
            )
        case MatmulDRAMSharded():
            return min(grid.cores, -(-sizes.width // config.per_core_n))
        case _:
            return min(grid.cores, sizes.rows * sizes.width)


def config_misfit(
    config: MatmulProgramConfig, sizes: MatmulSizes, grid: CoreGrid, wide: bool
) -> str | None:
    """Returns why a matmul cannot have a program config, or None.

    The rules are measured with tt-metal.
    """
    cores = getattr(config, "compute_with_storage_grid_size", grid)
    if cores.columns > grid.columns or cores.rows > grid.rows:
        return f"the chip has {grid.columns}x{grid.rows} cores"
    if sizes.inner % getattr(config, "in0_block_w", 1):
        return f"in0_block_w does not divide the {sizes.inner} tiles that are summed over"
    most = 4 if wide else 8
    if getattr(config, "out_subblock_h", 1) * getattr(config, "out_subblock_w", 1) > most:
        return f"a subblock has {most} tiles at most"
    per_m, per_n = getattr(config, "per_core_m", 1), getattr(config, "per_core_n", 1)
    rows = sizes.rows if getattr(config, "fuse_batch", True) else sizes.height
    down, across = -(-rows // per_m), -(-sizes.width // per_n)
    match config:
        case MatmulMultiCast():
            fits = down <= cores.rows and across <= cores.columns
        case MatmulMultiCast1D():
            whole = per_m >= rows if config.mcast_in0 else per_n >= sizes.width
            fits = whole and down * across <= cores.cores
        case _:
            fits = True
    if not fits:
        return f"{down}x{across} blocks of {per_m}x{per_n} tiles do not fit on the cores"
    return None


def config_takes_shards(config: MatmulProgramConfig, left: TensorPlacement) -> bool:
    """Returns whether the shards of the left operand are the blocks that a program reads."""
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
    """Returns the number of fidelity phases of the matrix engine.

    Without a compute config, the library decides by data types and program config.
    """
    from ttcodegen.systems.cards import FIDELITY_PASSES

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
    """Returns whether the registers accumulate in 32 bits."""
    config = call.compute_config
    if config is not None:
        return config.fp32_dest_acc_en
    return call.result.data_type.mlir == "f32"


# Program config that tt-metal chooses for a matmul without one (matmul_program_config.cpp).

MOST_WIDE = 4
"""Capacity of the registers in 32-bit tiles."""
LARGEST_BLOCK = 16


class _Choice:
    """Inputs of the library's automatic program choice."""

    def __init__(self, call: LibraryCall, grid: CoreGrid, l1: int) -> None:
        self.call, self.grid = call, grid
        self.sizes = MatmulSizes(call)
        self.left, self.right, self.result = call.operands[0], call.operands[1], call.result
        self.bias = tile_bytes(call.operands[2]) if len(call.operands) > 2 else 0
        self.wide = wide_sums(call)
        self.sums = F32_TILE if self.wide else max(BF16_TILE, tile_bytes(self.result))
        taken = sum(allocated_bytes(p, grid.cores, ROW_ALIGNMENT) for p in call.operands)
        self.space = l1 - taken

    def fits(self, height: int, width: int, inner: int) -> bool:
        """Returns whether the library's estimate of the buffers fits; the final size may differ."""
        left, right = tile_bytes(self.left), tile_bytes(self.right)
        shard = self.left.shards.shape[1] // TILE_SIDE if self.left.shards is not None else 0
        size = height * inner * 2 * left + width * inner * 2 * right + height * shard * left
        return size + height * width * (left + self.sums) + width * self.bias < self.space

    def fitting(self, height: int, width: int, inner: int, smaller: bool) -> tuple[int, int, int]:
        """Returns height, width and depth of the largest block that fits, preferring squares."""
        if self.fits(height, width, inner):
            return height, width, inner
        by_size: dict[int, tuple[int, int]] = {}
        for high in _divisors_as_tried(height):
            for wide in _divisors_as_tried(width):
                known = by_size.get(high * wide)
                if known is None or _aspect(*known) >= _aspect(high, wide):
                    by_size[high * wide] = high, wide
        for k in range(inner, 0 if smaller else inner - 1, -1):
            if inner % k:
                continue
            for size in sorted(by_size, reverse=True):
                if self.fits(*by_size[size], k):
                    return *by_size[size], k
        return 1, 1, 1

    def subblock(self, height: int, width: int, whole_rows: bool = False) -> tuple[int, int]:
        """Returns the subblock of a block that fits the destination registers."""
        for rows, columns in SUBBLOCKS:
            if self.wide and rows * columns > MOST_WIDE:
                continue
            if whole_rows and (columns != width or rows != 1):
                continue
            if height % rows == 0 and width % columns == 0:
                return rows, columns
        return 1, 1


def _divisors_as_tried(size: int) -> list[int]:
    """Returns the divisors of a size in the order in which the library tries them."""
    return [size, 1, *divisors(size)[-2:0:-1]]


def _aspect(height: int, width: int) -> float:
    return max(height, width) / min(height, width)


def _is_narrow(height: int, width: int, in_dram: bool) -> bool:
    ratio = height // width if height > width else width // height
    return ratio > NARROW or (in_dram and min(height, width) <= 1)


def automatic_config(call: LibraryCall, grid: CoreGrid, l1: int) -> ProgramConfig | None:
    """Returns the config that the library chooses; None for the program without blocks.

    Args:
        call: the matmul.
        grid: cores of the chip.
        l1: bytes of L1 per core for circular buffers and tensors, those reserved for sliding
            windows included.
    """
    choice = _Choice(call, grid, l1)
    if not (choice.sizes.height and choice.sizes.width and choice.sizes.inner):
        return None
    if choice.left.shards is not None:
        return _sharded_config(choice)
    return _interleaved_config(choice)


def _interleaved_config(choice: _Choice) -> ProgramConfig | None:
    sizes, grid, out = choice.sizes, choice.grid, choice.result
    tensors = (choice.left, choice.right, out)
    all_interleaved = all(p.shards is None for p in tensors)
    in_dram = all(p.buffer_type == "dram" for p in tensors)
    narrow = all_interleaved and _is_narrow(sizes.height, sizes.width, in_dram)
    factor = LARGEST_BLOCK
    while factor > 1 and not choice.fits(factor, factor, 2):
        factor //= 2
    down, across = -(-sizes.height // factor), -(-sizes.width // factor)
    divided = out.shards is not None or down > 1 or across > 1
    inner = 1 if divided and sizes.inner % 2 else 2
    everywhere = in_dram and all_interleaved
    if not everywhere and (down * across > grid.cores or sizes.inner % inner):
        return None
    on_cores = (down, across) != (1, 1) and down <= grid.rows and across <= grid.columns
    wide = narrow and sizes.width > sizes.height
    kind = out.memory_layout
    if wide or (not on_cores and kind == "width_sharded") or (on_cores and down == 1):
        return _multicast_1d(choice, True)
    if narrow or (not on_cores and kind == "height_sharded") or (on_cores and across == 1):
        return _multicast_1d(choice, False)
    if everywhere:
        return _multicast_2d(choice)
    if on_cores or kind == "block_sharded":
        rows = 4 if factor == 2 else 1
        return MatmulMultiCast(
            grid, inner, rows, 2, factor, factor, factor, factor, fuse_batch=False
        )
    return None


def _multicast_1d(choice: _Choice, shares_left: bool) -> ProgramConfig:
    sizes, cores = choice.sizes, choice.grid.cores
    if shares_left:
        height, width = sizes.height, -(-sizes.width // cores)
    else:
        height, width = -(-sizes.height // cores), sizes.width
    inner = 2 if sizes.inner % 2 == 0 else 1
    high, wide, _ = choice.fitting(height, width, inner, False)
    return MatmulMultiCast1D(
        choice.grid, inner, *choice.subblock(high, wide), high, wide, height, width,
        fuse_batch=False, mcast_in0=shares_left,
    )  # fmt: skip


def _multicast_2d(choice: _Choice) -> ProgramConfig:
    sizes, grid = choice.sizes, choice.grid
    inner = sizes.inner // grid.columns if sizes.inner % grid.columns == 0 else 1
    height, width = -(-sizes.height // grid.rows), -(-sizes.width // grid.columns)
    high, wide, inner = choice.fitting(height, width, inner, True)
    return MatmulMultiCast(
        grid, inner, *choice.subblock(high, wide), high, wide, height, width, fuse_batch=False
    )


def _sharded_config(choice: _Choice) -> ProgramConfig | None:
    sizes, left = choice.sizes, choice.left
    assert left.shards is not None
    box = left.shards.bounding_box()
    grid = CoreGrid(box.columns, box.rows)
    rows, columns = (size // TILE_SIDE for size in left.shards.shape)
    to_shards = choice.result.shards is not None
    if sizes.batch_b > 1:
        block = rows, sizes.width
        return MatmulReuse(grid, columns, *choice.subblock(*block, to_shards), *block)
    if left.memory_layout == "block_sharded":
        column_major = left.shards.orientation is Orientation.COL_MAJOR
        down, across = (grid.columns, grid.rows) if column_major else (grid.rows, grid.columns)
        height, width = -(-sizes.rows // down), -(-sizes.width // across)
        inner = gcd(columns, sizes.inner) if across == sizes.inner // columns else 1
        high, wide, _ = choice.fitting(height, width, inner, False)
        return MatmulMultiCast(
            grid,
            inner,
            *choice.subblock(high, wide, to_shards),
            high,
            wide,
            height,
            width,
            column_major,
        )
    by_width = left.memory_layout == "width_sharded"
    if by_width:
        height, width = sizes.rows, -(-sizes.width // left.shards.cores)
        inner = gcd(columns, sizes.inner)
    else:
        height, width, inner = rows, sizes.width, sizes.inner
    high, wide, _ = choice.fitting(height, width, inner, False)
    return MatmulMultiCast1D(
        grid, inner, *choice.subblock(high, wide, to_shards), high, wide, height, width,
        mcast_in0=by_width,
    )  # fmt: skip
