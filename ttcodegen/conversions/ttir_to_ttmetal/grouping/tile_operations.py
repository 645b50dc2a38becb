"""Operations on tiles: elementwise chains, reductions, and destination registers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from ttcodegen.dialects.core.datatypes import DataType, shape_of
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttkernel.attributes import ReduceType
from ttcodegen.dialects.ttkernel.operation import TTKernelOp
from ttcodegen.dialects.ttkernel.table import kernel_ops
from ttcodegen.dialects.ttnn.placement import declared_data_type
from ttcodegen.ops.core.builder import splat_of
from ttcodegen.ops.core.definition import TTIRDefinition
from ttcodegen.ops.core.lowering import NARROW_INTEGERS, Tile, TileBuilder, TileCall
from ttcodegen.ops.reduction.reduce import is_on_integer_tiles

# Lowering of elementwise chains to tile operations.


def is_elementwise(op: Operation) -> bool:
    """Returns whether an op has a tile operation on registers."""
    if not isinstance(op, CatalogueOp):
        return False
    definition = op.definition
    return isinstance(definition, TTIRDefinition) and definition.tile is not None


def unsupported_on_tiles(op: CatalogueOp) -> str | None:
    """Returns the reason for which an elementwise op has no tile operation; None if it has one."""
    builder = TileBuilder()
    tiles = [builder.new_tile(declared_data_type(value)) for value in op.operands]
    try:
        lower_to_tiles(builder, op, tiles)
    except VerifyException as error:
        return str(error)
    return None


def lower_to_tiles(builder: TileBuilder, op: CatalogueOp, tiles: list[Tile]) -> Tile:
    """Lowers an op on tiles; returns the tile of its result, in its data type.

    Raises VerifyException if there is no such operation for these data types."""
    definition = op.definition
    assert isinstance(definition, TTIRDefinition)
    assert definition.tile is not None
    tile = definition.tile(builder, op, tiles)
    wanted = declared_data_type(op.results[0])
    if tile.data_type.is_float and wanted.is_float:
        return tile
    if wanted in NARROW_INTEGERS and not definition.moves and not tile.data_type.is_float:
        return builder.wrap(tile, wanted)
    return builder.convert(tile, wanted)


def needs_fp32(values: Iterable[SSAValue]) -> bool:
    """Returns whether a value is not bf16, so that 32-bit registers are needed."""
    return any(declared_data_type(value) is not DataType.BFLOAT16 for value in values)


def lower_chain(
    builder: TileBuilder,
    ops: Iterable[CatalogueOp],
    known: dict[SSAValue, Tile],
    inputs: dict[SSAValue, Tile],
) -> None:
    """Lowers elementwise ops and fills in order.

    `known` maps values of the group to tiles, and is extended by the results; `inputs` is extended
    by the tiles of values from outside."""
    for op in ops:
        if (number := splat_of(op.results[0])) is not None:
            known[op.results[0]] = builder.fill(number, declared_data_type(op.results[0]))
            continue
        tiles: list[Tile] = []
        for value in op.operands:
            if value in known:
                tiles.append(known[value])
            elif (number := splat_of(value)) is not None:
                tiles.append(builder.fill(number, declared_data_type(value)))
            else:
                if value not in inputs:
                    inputs[value] = builder.new_tile(declared_data_type(value))
                tiles.append(inputs[value])
        known[op.results[0]] = lower_to_tiles(builder, op, tiles)


# Reductions that device kernels support.

GREATEST, LEAST = 0, 1
"""Registers of the running maximum and minimum; only the first is used if nothing is compared."""


@dataclass(frozen=True)
class Reduction:
    """Reduction op: how its tiles are combined."""

    noun: str
    """Noun for the result in a sentence."""
    combine: str
    """Op on two registers that combines partial results."""
    neutral: float
    pool: ReduceType
    negated: bool = False
    """True if it is computed as the negated maximum of negated floats."""
    averages: bool = False
    of_integers: str = ""
    """Op on two integer registers, either with a `dtype` or named after the type."""
    neutral_integers: tuple[int, int] = (0, 0)
    """Neutral elements of signed and unsigned integers."""

    @property
    def is_extreme(self) -> bool:
        """Returns whether floats are compared, which the vector engine does exactly."""
        return self.pool is ReduceType.MAX

    def prepared(self, builder: TileBuilder, tile: Tile) -> Tile:
        """Operand tile as it enters the reduction."""
        is_negated = self.negated and tile.data_type.is_float
        return builder.call("negative_tile", tile) if is_negated else tile

    def start(self, builder: TileBuilder, data_type: DataType) -> Tile:
        """Tile of neutral elements."""
        if data_type.is_float:
            return builder.fill(self.neutral, DataType.FLOAT32)
        signed, unsigned = self.neutral_integers
        return builder.fill(signed if data_type is DataType.INT32 else unsigned, data_type)

    def combined(self, builder: TileBuilder, first: Tile, second: Tile) -> Tile:
        """Combination of two tiles."""
        if first.data_type.is_float:
            return builder.call(self.combine, first, second)
        if self.of_integers.endswith("_tile"):
            return builder.call(self.of_integers, first, second, dtype=first.data_type)
        kind = "int32" if first.data_type is DataType.INT32 else "uint32"
        return builder.call(f"{self.of_integers}_{kind}_tile", first, second)

    def finished(self, builder: TileBuilder, total: Tile, elements: int) -> Tile:
        """Result of a reduction over `elements` elements per result."""
        if self.negated and total.data_type.is_float:
            total = builder.call("negative_tile", total)
        if self.averages:
            total = builder.call("mul_unary_tile", total, parameters=(1.0 / elements,))
        return total


def where_shown(builder: TileBuilder, shown: Tile, tile: Tile, hidden: Tile) -> Tile:
    """Selects `tile` where `shown` is not 0, otherwise `hidden`."""
    wide = DataType.FLOAT32
    return builder.call("where_tile", shown, tile, hidden, data_type=wide, dtype=wide)


def accumulated_type(op: CatalogueOp) -> DataType:
    """Accumulation type of the root op of a program."""
    return declared_data_type(op.operands[0]) if is_on_integer_tiles(op) else DataType.FLOAT32


def reduced_elements(op: CatalogueOp) -> int:
    """Number of elements that are reduced to one element of the result."""
    return prod(shape_of(op.operands[0].type)) // max(1, prod(op.result_shape))


_LEAST, _GREATEST = (-(2**31), 0), (2**31 - 1, 2**32 - 1)

REDUCTIONS = {
    "ttir.sum": Reduction(
        "sum", "add_binary_tile", 0.0, ReduceType.SUM, of_integers="add_int_tile"
    ),
    "ttir.mean": Reduction("mean", "add_binary_tile", 0.0, ReduceType.SUM, averages=True),
    "ttir.max": Reduction(
        "maximum",
        "binary_max_tile",
        float("-inf"),
        ReduceType.MAX,
        of_integers="binary_max",
        neutral_integers=_LEAST,
    ),
    # Over leading dimensions only, never within a tile.
    "ttir.prod": Reduction(
        "product",
        "mul_binary_tile",
        1.0,
        ReduceType.SUM,
        of_integers="mul_int_tile",
        neutral_integers=(1, 1),
    ),
    "ttir.min": Reduction(
        "minimum",
        "binary_max_tile",
        float("-inf"),
        ReduceType.MAX,
        negated=True,
        of_integers="binary_min",
        neutral_integers=_GREATEST,
    ),
}


# Register allocation of tiles in the destination registers of a core.
#
# The registers hold 16 tiles of 16 bits: half of them while the packer empties the other half, and
# half again if they are 32 bits wide (tt-metal, `DstSync::SyncHalf`, `fp32_dest_acc_en`).

HALF_OF_REGISTERS = 8


def capacity(fp32_destination: bool) -> int:
    """Number of destination registers that a section of a kernel may use."""
    return HALF_OF_REGISTERS // 2 if fp32_destination else HALF_OF_REGISTERS


@dataclass(frozen=True)
class Load:
    """Copies a tile from a circular buffer to a register."""

    tile: Tile
    register: int


@dataclass(frozen=True)
class Copy:
    """Copies a register, because the next call overwrites a tile that is needed later."""

    tile: Tile
    source: int
    register: int


@dataclass(frozen=True)
class Compute:
    """Runs a call with the registers of its destination operands, in order."""

    call: TileCall
    registers: tuple[int, ...]


Step = Load | Copy | Compute


@dataclass(frozen=True)
class Allocation:
    """Steps of a section, and the registers of its results."""

    steps: tuple[Step, ...]
    results: Mapping[Tile, int]


def needed_calls(calls: Sequence[TileCall], results: Sequence[Tile]) -> list[TileCall]:
    """Returns the calls that the results depend on, in order."""
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
    """Allocates registers for all tiles; None if there are too few.

    Args:
        calls: in an order in which each reads earlier results.
        results: tiles that have to be in registers at the end.
        registers: number of registers.
        held: tiles that are in a register at the start, such as an accumulator.
    """
    return _Allocator(calls, results, registers, dict(held or {})).run()


def destination_operands(op: str) -> int:
    """Number of destination register operands of an op of the dialect."""
    return len(kernel_ops()[op].destination_operands)


def named_registers(function: FuncOp) -> set[int]:
    """Destination registers that a kernel addresses by a constant number."""
    return {
        number
        for op in function.walk()
        if isinstance(op, TTKernelOp)
        for _, number in op.numbered_registers()
    }


class _Full(Exception):
    """Raised if no destination register is left."""


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

    def _take_free(self) -> int:
        if not self._free:
            raise _Full
        return self._free.pop(0)

    def _load(self, tile: Tile) -> None:
        if tile not in self._places:
            self._places[tile] = self._take_free()
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
                place = self._take_free()
                self._steps.append(Copy(first, read[0], place))
            named = (place, *read[1:])
        else:
            place = self._places.pop(dying.pop(0)) if dying else self._take_free()
            named = (*read, place)
        for tile in dying:
            self._free.append(self._places.pop(tile))
        self._free.sort()
        self._places[call.result] = place
        self._steps.append(Compute(call, named))
