"""Sums, differences and products that the matrix engine computes of two circular buffers.

The vector engine computes with destination registers only: both operands are copied there before.
The matrix engine reads two tiles, and leaves what they come to in a register; of the second one it
may repeat a row, column or element.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ttcodegen.conversions.ttir_to_ttmetal.grouping.tile_operations import (
    Allocation,
    Compute,
    Copy,
    Load,
    needed_calls,
)
from ttcodegen.dialects.ttkernel.attributes import BroadcastType
from ttcodegen.dialects.ttkernel.builder import Value
from ttcodegen.ops.core.lowering import Tile, TileCall

_VERBS = {
    "add_binary_tile": "add",
    "sub_binary_tile": "sub",
    "mul_binary_tile": "mul",
    "square_tile": "mul",
}
BROADCAST_INITS = {
    ("add", BroadcastType.ROW): "add_bcast_rows_init_short",
    ("add", BroadcastType.COL): "add_bcast_cols_init_short",
    ("add", BroadcastType.SCALAR): "add_bcast_scalar_init_short",
    ("sub", BroadcastType.COL): "sub_bcast_cols_init_short",
    ("sub", BroadcastType.SCALAR): "sub_tiles_bcast_scalar_init_short",
    ("mul", BroadcastType.ROW): "mul_bcast_rows_init_short",
    ("mul", BroadcastType.COL): "mul_bcast_cols_init_short",
    ("mul", BroadcastType.SCALAR): "mul_tiles_bcast_scalar_init_short",
}
"""Initialisations of the engine for a verb with a broadcast."""


@dataclass(frozen=True)
class Operand:
    """A tile of a circular buffer.

    Attributes:
        broadcast: what of it is repeated over the tile, if anything is.
    """

    buffer: str
    index: Value
    broadcast: BroadcastType | None = None


@dataclass(frozen=True)
class OperandPair:
    """Two tiles that come into a register as their sum, difference or product."""

    verb: str
    left: Operand
    right: Operand


def operand_pairs(
    calls: Sequence[TileCall],
    results: Sequence[Tile],
    operand: Callable[[Tile], Operand | None],
) -> tuple[list[TileCall], dict[Tile, OperandPair]]:
    """The calls that are left to the vector engine, and what comes into registers as a pair.

    A pair saves the copies of operands that nothing else reads.

    Args:
        calls: what is computed, in order.
        results: the tiles that are wanted of it.
        operand: the place of a tile that the matrix engine may read; None of other tiles.
    """
    needed = needed_calls(calls, results)
    uses = Counter(tile for call in needed for tile in dict.fromkeys(call.reads))
    uses.update(results)
    left_over: list[TileCall] = []
    pairs: dict[Tile, OperandPair] = {}
    for call in needed:
        pair = _pair(call, operand)
        if pair is None or all(uses[tile] > 1 for tile in call.reads):
            left_over.append(call)
        else:
            pairs[call.result] = pair
    return left_over, pairs


def _pair(call: TileCall, operand: Callable[[Tile], Operand | None]) -> OperandPair | None:
    verb = _VERBS.get(call.op)
    if verb is None or call.attributes or call.parameters:
        return None
    left, right = operand(call.reads[0]), operand(call.reads[-1])
    if left is None or right is None:
        return None
    if left.broadcast is not None and verb != "sub":
        left, right = right, left
    if left.broadcast is not None:
        return None
    if right.broadcast is not None and (verb, right.broadcast) not in BROADCAST_INITS:
        return None
    return OperandPair(verb, left, right)


def multiplies_afresh(
    allocation: Allocation, pairs: Mapping[Tile, OperandPair], held: Sequence[int] = ()
) -> bool:
    """True if each product of a pair comes into a register that held nothing: the matrix engine
    adds it to what is there.

    Args:
        allocation: the steps of a section.
        pairs: what comes into registers as a pair.
        held: registers that hold something when the section begins.
    """
    used = set(held)
    for step in allocation.steps:
        match step:
            case Load(tile, register):
                if register in used and tile in pairs and pairs[tile].verb == "mul":
                    return False
                used.add(register)
            case Copy(_, _, register):
                used.add(register)
            case Compute(_, registers):
                used.update(registers)
    return True
