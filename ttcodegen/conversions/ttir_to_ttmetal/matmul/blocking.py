"""How a product of matrices is divided over the cores of a device."""

from __future__ import annotations

from dataclasses import dataclass

from ttcodegen.dialects.ttcore.cores import CoreRange

MOST_BLOCK_SIDE = 16
"""Tiles of the result that a core computes at a time, in each direction."""
MOST_BLOCK_TILES = 64
"""Tiles of such a block; their sums wait in L1 as 32-bit floats."""
MOST_INNER = 8
"""Tiles of the inner dimension that are brought at a time."""
MOST_OPERAND_BYTES = 768 * 1024
"""Of L1, for the blocks of the operands. The sums take 256 KiB at most; of the 1.5 MiB that a core
has, tt-metal and tensors of the user's own take some."""


@dataclass(frozen=True)
class Blocking:
    """How a product is divided; all in tiles or in blocks.

    A pass computes one block on each core of the grid; there are `row_blocks` times `column_blocks`
    of them for each matrix, and each brings `inner_blocks` blocks of each operand. The blocks of a
    core are next to each other.
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
        most_rows, most_columns = cores.last_row + 1, cores.last_column + 1
        block_rows, block_columns = _block(
            -(-rows // most_rows),
            -(-columns // most_columns),
            most_rows * inner * tile_bytes[0],
            most_columns * inner * tile_bytes[1],
        )
        grid_rows = min(most_rows, -(-rows // block_rows))
        grid_columns = min(most_columns, -(-columns // block_columns))
        slice_bytes = 2 * (block_rows * tile_bytes[0] + block_columns * tile_bytes[1])
        most = max(1, min(MOST_INNER, MOST_OPERAND_BYTES // slice_bytes))
        inner_blocks = -(-inner // most)
        return cls(
            batches,
            rows,
            columns,
            inner,
            block_rows,
            block_columns,
            -(-inner // inner_blocks),
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
        """Blocks that the inner dimension is brought in; the last has what is left."""
        return -(-self.inner // self.block_inner)

    @property
    def passes(self) -> int:
        """Blocks that each core computes."""
        return self.batches * self.row_blocks * self.column_blocks


def _block(rows: int, columns: int, row_bytes: int, column_bytes: int) -> tuple[int, int]:
    """Rows and columns of the blocks that make so many rows and columns of each core.

    The left operand is read once for each block of columns, the right one once for each of rows,
    including what is beyond the last row or column of the result; the fewest bytes count. Of
    equals, the right operand, mostly a weight in DRAM, is read less often.

    Args:
        rows: those of the result that a core computes.
        columns: likewise.
        row_bytes: what all cores together read of the left operand for one of them.
        column_bytes: what they read of the right operand.
    """
    found: list[tuple[int, int, int, int]] = []
    for block_rows, row_blocks in _divisions(rows):
        for block_columns, column_blocks in _divisions(columns):
            if block_rows * block_columns <= MOST_BLOCK_TILES:
                left = row_blocks * block_rows * row_bytes * column_blocks
                right = column_blocks * block_columns * column_bytes * row_blocks
                found.append((left + right, row_blocks, block_rows, block_columns))
    *_, block_rows, block_columns = min(found)
    return block_rows, block_columns


def _divisions(tiles: int) -> set[tuple[int, int]]:
    """The ways to divide tiles into blocks of the same size: tiles of a block, and blocks."""
    counts = {-(-tiles // side) for side in range(1, min(tiles, MOST_BLOCK_SIDE) + 1)}
    return {(-(-tiles // count), count) for count in counts}
