"""Orders of tiles: each tile comes once, and those are chosen in which cores read least."""

from __future__ import annotations

from itertools import product
from math import prod

from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.ir import Block

from ttcodegen.conversions.ttir_to_ttmetal.parts.data_movement import (
    TileOperand,
    TileReads,
    plan_reads,
)
from ttcodegen.conversions.ttir_to_ttmetal.parts.loop_nests import WorkOrder, broadcast_strides
from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.dialects.ttcore.shards import CoreRange
from ttcodegen.dialects.ttnn.placement import TensorPlacement, placed_type
from ttcodegen.layout.placements import TiledShape, row_major_strides
from ttcodegen.ops.core.lowering import Tile

CORES = CoreRange(0, 0, 7, 7)
GRIDS = st.lists(st.integers(1, 5), min_size=2, max_size=4)


def _pages(order: WorkOrder) -> list[int]:
    moves = order.moves(row_major_strides(order.grid))
    places = product(*map(range, order.sizes))
    return [sum(i * move for i, move in zip(place, moves, strict=True)) for place in places]


@settings(deadline=None, max_examples=30)
@given(GRIDS)
def test_each_order_has_each_tile_once(grid: list[int]) -> None:
    row_by_row = WorkOrder.row_by_row(grid)
    assert _pages(row_by_row) == list(range(prod(grid)))
    for order in row_by_row.others():
        assert sorted(_pages(order)) == list(range(prod(grid)))
        assert not order.is_row_by_row


def _planned(result: tuple[int, ...], *operands: tuple[int, ...]) -> TileReads:
    domain = TiledShape(result)
    types = [placed_type(TensorPlacement(shape, DataType.BFLOAT16)) for shape in operands]
    values = Block(arg_types=types).args
    ones = (1,) * len(domain.grid)
    read = [
        TileOperand(
            value,
            f"operand_{place}",
            Tile(place, DataType.BFLOAT16),
            TiledShape(shape),
            domain,
            tuple(broadcast_strides(TiledShape(shape), domain)),
            ones,
            tuple(0 for _ in ones),
        )
        for place, (value, shape) in enumerate(zip(values, operands, strict=True))
    ]
    return plan_reads(read, [each.name for each in read], domain.grid, CORES, 8)


def test_what_is_not_broadcast_is_read_row_by_row() -> None:
    assert _planned((8, 512, 512), (8, 512, 512)).order.is_row_by_row


def test_a_single_row_is_no_reason_to_leave_rows() -> None:
    """Little of its tiles is read."""
    assert _planned((512, 512), (512, 512), (1, 512)).order.is_row_by_row


def test_tiles_of_all_batches_are_read_once() -> None:
    reads = _planned((8, 512, 512), (8, 512, 512), (512, 512))
    assert reads.tiles == {"operand_0": 8 * 256, "operand_1": 256}
    assert reads.order.text == "batch0, then column, then row"


def test_blocks_are_of_both_dimensions_that_operands_are_broadcast_over() -> None:
    """8 of the first batches and 4 of the second: 12 tiles a core instead of 18."""
    reads = _planned((16, 16, 64, 128), (16, 1, 64, 128), (1, 16, 64, 128))
    assert sum(reads.tiles.values()) == 64 * (8 + 4)
