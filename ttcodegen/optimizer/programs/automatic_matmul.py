"""The program configuration that tt-metal chooses for a product that has none
(matmul_program_config.cpp)."""

from __future__ import annotations

from math import gcd

from ttcodegen.dialects.ttcore.shards import Orientation
from ttcodegen.dialects.ttcore.tile import TILE_SIDE
from ttcodegen.dialects.ttnn.program_configs import (
    CoreGrid,
    MatmulMultiCast,
    MatmulMultiCast1D,
    MatmulReuse,
    ProgramConfig,
)
from ttcodegen.layout.placements import tile_bytes
from ttcodegen.optimizer.core.call import LibraryCall
from ttcodegen.optimizer.core.footprint import BF16_TILE, F32_TILE, ROW_ALIGNMENT, allocated_bytes
from ttcodegen.optimizer.programs.matmul import NARROW, SUBBLOCKS, Product, divisors, wide_sums

MOST_WIDE = 4
"""Tiles of sums of 32 bits that the registers hold."""
LARGEST_BLOCK = 16


class _Choice:
    """Inputs of the library's automatic program choice."""

    def __init__(self, call: LibraryCall, grid: CoreGrid, l1: int) -> None:
        self.call, self.grid = call, grid
        self.product = Product(call)
        self.left, self.right, self.result = call.operands[0], call.operands[1], call.result
        self.bias = tile_bytes(call.operands[2]) if len(call.operands) > 2 else 0
        self.wide = wide_sums(call)
        self.sums = F32_TILE if self.wide else max(BF16_TILE, tile_bytes(self.result))
        taken = sum(allocated_bytes(p, grid.cores, ROW_ALIGNMENT) for p in call.operands)
        self.space = l1 - taken

    def fits(self, height: int, width: int, inner: int) -> bool:
        """True if the estimated size of the buffers fits; their final size may differ."""
        left, right = tile_bytes(self.left), tile_bytes(self.right)
        shard = self.left.shards.shape[1] // TILE_SIDE if self.left.shards is not None else 0
        size = height * inner * 2 * left + width * inner * 2 * right + height * shard * left
        return size + height * width * (left + self.sums) + width * self.bias < self.space

    def fitting(self, height: int, width: int, inner: int, smaller: bool) -> tuple[int, int, int]:
        """The largest part of a core's block that fits, the squarest of equals."""
        if self.fits(height, width, inner):
            return height, width, inner
        by_size: dict[int, tuple[int, int]] = {}
        for high in _tried(height):
            for wide in _tried(width):
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
        """Subblock of a block that fits the destination registers."""
        for rows, columns in SUBBLOCKS:
            if self.wide and rows * columns > MOST_WIDE:
                continue
            if whole_rows and (columns != width or rows != 1):
                continue
            if height % rows == 0 and width % columns == 0:
                return rows, columns
        return 1, 1


def _tried(size: int) -> list[int]:
    """The divisors of a size in the order in which the library tries them."""
    return [size, 1, *divisors(size)[-2:0:-1]]


def _aspect(height: int, width: int) -> float:
    return max(height, width) / min(height, width)


def _is_narrow(height: int, width: int, in_dram: bool) -> bool:
    ratio = height // width if height > width else width // height
    return ratio > NARROW or (in_dram and min(height, width) <= 1)


def automatic_config(call: LibraryCall, grid: CoreGrid, l1: int) -> ProgramConfig | None:
    """The configuration; None for the program that has no blocks at all.

    Args:
        call: the product.
        grid: the cores of the chip.
        l1: bytes of each L1 that programs and tensors share, with what windowed operations set
            aside.
    """
    choice = _Choice(call, grid, l1)
    if not (choice.product.height and choice.product.width and choice.product.inner):
        return None
    if choice.left.shards is not None:
        return _of_shards(choice)
    return _of_interleaved(choice)


def _of_interleaved(choice: _Choice) -> ProgramConfig | None:
    product, grid, out = choice.product, choice.grid, choice.result
    tensors = (choice.left, choice.right, out)
    all_interleaved = all(p.shards is None for p in tensors)
    in_dram = all(p.buffer_type == "dram" for p in tensors)
    narrow = all_interleaved and _is_narrow(product.height, product.width, in_dram)
    factor = LARGEST_BLOCK
    while factor > 1 and not choice.fits(factor, factor, 2):
        factor //= 2
    down, across = -(-product.height // factor), -(-product.width // factor)
    divided = out.shards is not None or down > 1 or across > 1
    inner = 1 if divided and product.inner % 2 else 2
    everywhere = in_dram and all_interleaved
    if not everywhere and (down * across > grid.cores or product.inner % inner):
        return None
    on_cores = (down, across) != (1, 1) and down <= grid.rows and across <= grid.columns
    wide = narrow and product.width > product.height
    kind = out.memory_layout
    if wide or (not on_cores and kind == "width_sharded") or (on_cores and down == 1):
        return _along_one_side(choice, True)
    if narrow or (not on_cores and kind == "height_sharded") or (on_cores and across == 1):
        return _along_one_side(choice, False)
    if everywhere:
        return _in_two_dimensions(choice)
    if on_cores or kind == "block_sharded":
        rows = 4 if factor == 2 else 1
        return MatmulMultiCast(
            grid, inner, rows, 2, factor, factor, factor, factor, fuse_batch=False
        )
    return None


def _along_one_side(choice: _Choice, shares_left: bool) -> ProgramConfig:
    product, cores = choice.product, choice.grid.cores
    if shares_left:
        height, width = product.height, -(-product.width // cores)
    else:
        height, width = -(-product.height // cores), product.width
    inner = 2 if product.inner % 2 == 0 else 1
    high, wide, _ = choice.fitting(height, width, inner, False)
    return MatmulMultiCast1D(
        choice.grid, inner, *choice.subblock(high, wide), high, wide, height, width,
        fuse_batch=False, mcast_in0=shares_left,
    )  # fmt: skip


def _in_two_dimensions(choice: _Choice) -> ProgramConfig:
    product, grid = choice.product, choice.grid
    inner = product.inner // grid.columns if product.inner % grid.columns == 0 else 1
    height, width = -(-product.height // grid.rows), -(-product.width // grid.columns)
    high, wide, inner = choice.fitting(height, width, inner, True)
    return MatmulMultiCast(
        grid, inner, *choice.subblock(high, wide), high, wide, height, width, fuse_batch=False
    )


def _of_shards(choice: _Choice) -> ProgramConfig | None:
    product, left = choice.product, choice.left
    assert left.shards is not None
    box = left.shards.bounding_box()
    grid = CoreGrid(box.columns, box.rows)
    rows, columns = (size // TILE_SIDE for size in left.shards.shape)
    to_shards = choice.result.shards is not None
    if product.batch_b > 1:
        block = rows, product.width
        return MatmulReuse(grid, columns, *choice.subblock(*block, to_shards), *block)
    if left.memory_layout == "block_sharded":
        turned = left.shards.orientation is Orientation.COL_MAJOR
        down, across = (grid.columns, grid.rows) if turned else (grid.rows, grid.columns)
        height, width = -(-product.rows // down), -(-product.width // across)
        inner = gcd(columns, product.inner) if across == product.inner // columns else 1
        high, wide, _ = choice.fitting(height, width, inner, False)
        return MatmulMultiCast(
            grid, inner, *choice.subblock(high, wide, to_shards), high, wide, height, width, turned
        )
    by_width = left.memory_layout == "width_sharded"
    if by_width:
        height, width = product.rows, -(-product.width // left.shards.cores)
        inner = gcd(columns, product.inner)
    else:
        height, width, inner = rows, product.width, product.inner
    high, wide, _ = choice.fitting(height, width, inner, False)
    return MatmulMultiCast1D(
        grid, inner, *choice.subblock(high, wide, to_shards), high, wide, height, width,
        mcast_in0=by_width,
    )  # fmt: skip
