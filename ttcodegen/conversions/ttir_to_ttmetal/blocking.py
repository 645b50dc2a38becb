"""How a product of matrices is divided over the cores of a device."""

from __future__ import annotations

from dataclasses import dataclass

from ttcodegen.dialects.cores import CoreRange

MOST_BLOCK_SIDE = 8
"""Tiles of the result that a core computes at a time, in each direction; their sums wait in L1 as
32-bit floats."""
MOST_INNER = 8
"""Tiles of the inner dimension that are brought at a time."""
MOST_OPERAND_BYTES = 768 * 1024
"""Of L1, for the blocks of the operands. The sums take 256 KiB at most; of the 1.5 MiB that a core
has, tt-metal and tensors of the user's own take some."""


@dataclass(frozen=True)
class Blocking:
    """How a product is divided; all in tiles or in blocks.

    A pass computes one block on each core of the grid; there are `row_blocks` times `column_blocks`
    of them for each matrix, and each brings `inner_blocks` blocks of each operand.
    """

    batches: int
    rows: int
    columns: int
    inner: int
    block_rows: int
    block_columns: int
    block_inner: int
    grid_rows: int
    grid_columns: int

    @classmethod
    def of(
        cls,
        batches: int,
        rows: int,
        columns: int,
        inner: int,
        cores: CoreRange,
        tile_bytes: tuple[int, int] = (2048, 2048),
    ) -> Blocking:
        """The division over the cores of a range that starts at 0, 0.

        `tile_bytes` are those of the left and the right operand: as much of the inner dimension is
        brought at a time as goes into `MOST_OPERAND_BYTES`, twice over.
        """
        block_rows, grid_rows = _share(rows, cores.last_row + 1)
        block_columns, grid_columns = _share(columns, cores.last_column + 1)
        slice_bytes = 2 * (block_rows * tile_bytes[0] + block_columns * tile_bytes[1])
        most = max(1, min(MOST_INNER, MOST_OPERAND_BYTES // slice_bytes))
        divisors = [n for n in range(1, most + 1) if inner % n == 0]
        return cls(
            batches,
            rows,
            columns,
            inner,
            block_rows,
            block_columns,
            divisors[-1],
            grid_rows,
            grid_columns,
        )

    @property
    def row_blocks(self) -> int:
        """Passes from top to bottom."""
        return -(-self.rows // (self.block_rows * self.grid_rows))

    @property
    def column_blocks(self) -> int:
        """Passes from left to right."""
        return -(-self.columns // (self.block_columns * self.grid_columns))

    @property
    def inner_blocks(self) -> int:
        """Blocks that the inner dimension is brought in."""
        return self.inner // self.block_inner

    @property
    def passes(self) -> int:
        """Blocks that each core computes."""
        return self.batches * self.row_blocks * self.column_blocks


def _share(tiles: int, cores: int) -> tuple[int, int]:
    """Tiles of a block, and cores that get one in each pass."""
    block = min(MOST_BLOCK_SIDE, -(-tiles // cores))
    return block, min(cores, -(-tiles // block))
