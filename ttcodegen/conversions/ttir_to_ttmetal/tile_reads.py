"""Reads of tile programs: their order, and the pages kept in L1."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from xdsl.dialects.builtin import IntegerType
from xdsl.ir import SSAValue

from ttcodegen.conversions.ttir_to_ttmetal.parts.data_movement import brought_bytes, element_word
from ttcodegen.conversions.ttir_to_ttmetal.parts.loop_nests import (
    AccessPattern,
    WorkOrder,
    broadcast_of,
)
from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.dialects.ttcore.shards import CoreRange
from ttcodegen.dialects.ttnn.placement import declared_data_type
from ttcodegen.layout.placements import TiledShape, tile_bytes_of
from ttcodegen.ops.core.lowering import Tile

MOST_KEPT_BYTES = 512 * 1024
"""Of L1, for tiles of operands that are needed again and again."""
LEAST_SPARED = 16
"""Another order than row by row, in which programs find tensors in shards, has to spare this part
of what is read."""


@dataclass(frozen=True)
class TileOperand:
    """A tensor that the reader brings, tile by tile."""

    value: SSAValue
    name: str
    """Of the circular buffer that it comes through."""
    tile: Tile
    shape: TiledShape
    domain: TiledShape
    """Domain that its tiles are broadcast over."""
    moves: tuple[int, ...]
    """Page strides per dimension of the result's tiles."""
    steps: tuple[int, ...]
    """The tiles that one tile of the result needs, in each dimension."""
    step_moves: tuple[int, ...]
    """Page strides per dimension of these steps."""

    @property
    def data_type(self) -> DataType:
        return declared_data_type(self.value)

    @property
    def element(self) -> IntegerType:
        return element_word(self.data_type)

    @property
    def broadcast(self) -> str:
        """The part of its tiles that is repeated: row, column or element; none for nothing."""
        return broadcast_of(self.shape, self.domain).word

    @property
    def brought_bytes(self) -> int:
        """Bytes read of a tile."""
        return brought_bytes(self.data_type, self.broadcast)

    def pattern(self, order: WorkOrder) -> AccessPattern:
        """The pages of it that are needed, where the result is gone through in an order."""
        sizes = (*order.sizes, *self.steps)
        return AccessPattern.of(sizes, (*order.moves(self.moves), *self.step_moves))


@dataclass(frozen=True)
class TileReads:
    """Read plan of the operands of a program."""

    order: WorkOrder
    slots: Mapping[str, int]
    """The tiles that are kept of an operand, by circular buffer; only of those that keep some."""
    tiles: Mapping[str, int]
    """The tiles that all cores together read of each."""

    def bytes(self, operands: Sequence[TileOperand]) -> int:
        """Bytes read by all cores."""
        return sum(self.tiles[operand.name] * operand.brought_bytes for operand in operands)


def plan_reads(
    operands: Sequence[TileOperand],
    keepable: Sequence[str],
    grid: Sequence[int],
    cores: CoreRange,
    free_buffers: int,
) -> TileReads:
    """The order in which fewest bytes are read.

    Args:
        operands: what is read.
        keepable: the circular buffers of those of which tiles may be kept.
        grid: the tiles of the result.
        cores: the cores that share them.
        free_buffers: the circular buffers that there may be for what is kept.
    """

    def reads(order: WorkOrder) -> TileReads:
        return _reads(operands, keepable, order, cores, free_buffers)

    row_by_row = reads(WorkOrder.row_by_row(grid))
    least = sum(o.pattern(row_by_row.order).pages * o.brought_bytes for o in operands)
    read = row_by_row.bytes(operands)
    enough = read - read // LEAST_SPARED
    if not read or least > enough:
        return row_by_row
    best = min(
        map(reads, row_by_row.order.others()), key=lambda r: r.bytes(operands), default=row_by_row
    )
    return best if best.bytes(operands) <= enough else row_by_row


def _reads(
    operands: Sequence[TileOperand],
    keepable: Sequence[str],
    order: WorkOrder,
    cores: CoreRange,
    free_buffers: int,
) -> TileReads:
    """Reads and kept pages of an order."""
    kept: dict[str, int] = {}
    tiles: dict[str, int] = {}
    free, units = MOST_KEPT_BYTES, prod(order.sizes)
    for operand in operands:
        pattern = operand.pattern(order)
        size = tile_bytes_of(operand.data_type)
        slots = 0
        if operand.name in keepable and len(kept) < free_buffers:
            slots = pattern.slots(free // size, cores, units)
        if slots:
            kept[operand.name] = slots
            free -= slots * size
        tiles[operand.name] = pattern.reads(slots, cores, units)
    return TileReads(order, kept, tiles)
