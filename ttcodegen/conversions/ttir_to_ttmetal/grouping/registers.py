"""Places for tiles in the destination registers of a core.

The registers hold 16 tiles of 16 bits; half of that while the packer empties the other half, and
half again if they are 32 bits wide (tt-metal 0.70.1, `DstSync::SyncHalf`, `fp32_dest_acc_en`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects.func import FuncOp

from ttcodegen.dialects.ttkernel.operation import TTKernelOp
from ttcodegen.dialects.ttkernel.table import kernel_ops
from ttcodegen.ops.core.tile_lowering import Tile, TileCall

HALF_OF_REGISTERS = 8


def capacity(fp32_destination: bool) -> int:
    """How many tiles a section of a kernel may hold."""
    return HALF_OF_REGISTERS // 2 if fp32_destination else HALF_OF_REGISTERS


@dataclass(frozen=True)
class Load:
    """A tile of a circular buffer comes into a register."""

    tile: Tile
    register: int


@dataclass(frozen=True)
class Copy:
    """A register is copied because the next call overwrites what is needed later."""

    tile: Tile
    source: int
    register: int


@dataclass(frozen=True)
class Compute:
    """A call with the registers of its destination operands, in order."""

    call: TileCall
    registers: tuple[int, ...]


Step = Load | Copy | Compute


@dataclass(frozen=True)
class Allocation:
    """The steps of a section, and where its results are afterwards."""

    steps: tuple[Step, ...]
    results: Mapping[Tile, int]


def needed_calls(calls: Sequence[TileCall], results: Sequence[Tile]) -> list[TileCall]:
    """The calls that the results depend on, in order."""
    wanted = set(results)
    kept: list[TileCall] = []
    for call in reversed(calls):
        if call.result in wanted:
            kept.append(call)
            wanted.update(call.reads)
    return kept[::-1]


def allocate(
    calls: Sequence[TileCall],
    results: Sequence[Tile],
    registers: int,
    held: Mapping[Tile, int] | None = None,
) -> Allocation | None:
    """Finds registers for all tiles; None if there are too few.

    Args:
        calls: in an order in which each reads what came before.
        results: the tiles that have to be in registers at the end.
        registers: how many there are.
        held: tiles that are in a register when the section begins, such as an accumulator.
    """
    return _Allocator(calls, results, registers, dict(held or {})).run()


def destination_operands(op: str) -> int:
    """How many destination registers an op of the dialect names."""
    return len(kernel_ops()[op].destination_operands)


def named_registers(function: FuncOp) -> set[int]:
    """The destination registers that a kernel names by a number."""
    return {
        number
        for op in function.walk()
        if isinstance(op, TTKernelOp)
        for _, number in op.numbered_registers()
    }


class _Full(Exception):
    """There is no register left."""


class _Allocator:
    def __init__(
        self,
        calls: Sequence[TileCall],
        results: Sequence[Tile],
        registers: int,
        held: dict[Tile, int],
    ) -> None:
        self._calls = needed_calls(calls, results)
        self._results = results
        self._places = held
        self._free = [n for n in range(registers) if n not in held.values()]
        self._steps: list[Step] = []
        self._last_use = {
            tile: position for position, call in enumerate(self._calls) for tile in call.reads
        } | {tile: len(self._calls) for tile in results}

    def run(self) -> Allocation | None:
        try:
            for position, call in enumerate(self._calls):
                self._place(position, call)
            for tile in self._results:
                self._load(tile)
        except _Full:
            return None
        return Allocation(tuple(self._steps), {tile: self._places[tile] for tile in self._results})

    def _take(self) -> int:
        if not self._free:
            raise _Full
        return self._free.pop(0)

    def _load(self, tile: Tile) -> None:
        if tile not in self._places:
            self._places[tile] = self._take()
            self._steps.append(Load(tile, self._places[tile]))

    def _place(self, position: int, call: TileCall) -> None:
        for tile in call.reads:
            self._load(tile)
        read = [self._places[tile] for tile in call.reads]
        dying = [tile for tile in dict.fromkeys(call.reads) if self._last_use[tile] == position]
        if destination_operands(call.op) == len(call.reads):
            first = call.reads[0]
            if first in dying:
                dying.remove(first)
                place = self._places.pop(first)
            else:
                place = self._take()
                self._steps.append(Copy(first, read[0], place))
            named = (place, *read[1:])
        else:
            place = self._places.pop(dying.pop(0)) if dying else self._take()
            named = (*read, place)
        for tile in dying:
            self._free.append(self._places.pop(tile))
        self._free.sort()
        self._places[call.result] = place
        self._steps.append(Compute(call, named))
