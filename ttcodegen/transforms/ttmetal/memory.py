"""L1 placement and sharding of tensors between device programs."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from ttcodegen.dialects.operations.functions import body_of
from ttcodegen.dialects.operations.operation import operation_name
from ttcodegen.dialects.ttcore.dialect import system_of
from ttcodegen.dialects.ttcore.shards import CoreRange, Layout, MemoryLayout, Shards
from ttcodegen.dialects.ttcore.tile import TILE_SIDE
from ttcodegen.dialects.ttmetal.device_module import (
    ProgramAttr,
    functions_of,
    is_host_function,
    launch_of,
)
from ttcodegen.dialects.ttmetal.programs import (
    CREATE_BUFFER,
    DEALLOCATE_BUFFER,
    RUN_PROGRAM,
    VIEW,
    BlockTiles,
    Division,
    Program,
    UnitTiles,
)
from ttcodegen.dialects.ttnn.placement import TensorPlacement, placed_type, placement_of
from ttcodegen.layout.device import Bank
from ttcodegen.layout.device import Block as Place
from ttcodegen.layout.placements import bank_bytes, tiles
from ttcodegen.ops.device_constants import device_constants
from ttcodegen.systems.cards import default_system, performance_of
from ttcodegen.systems.description import DEFAULT_ARCHITECTURE, ChipDescription
from ttcodegen.transforms.rewriting import set_type
from ttcodegen.transforms.ttnn.layout import buffer_owners

# Sharding of tensors between device programs over the L1 memories of cores.
#
# A tensor is sharded where cores can then write or read its tiles in their own memory. Kernels do
# not change for sharded tensors: accessors resolve the addresses of pages.

Core = tuple[int, int]
"""Column and row of a core."""


@dataclass(frozen=True)
class CoreTiles:
    """Tiles of an operand that each core of a program needs."""

    division: Division
    """Division of tiles among cores, with sizes evaluated."""
    cores: CoreRange
    units: int
    """Units of linear work."""

    @classmethod
    def of(cls, program: Program, operand: int) -> CoreTiles:
        """Returns the tiles of an operand that each core needs."""
        division = program.traffic[operand].division
        if isinstance(division, BlockTiles):
            division = BlockTiles(program.value(division.rows), program.value(division.columns))
        return cls(division, program.core_range, program.work_units)


@dataclass(frozen=True)
class Use:
    """A program that reads or writes a tensor."""

    needs: CoreTiles
    bytes: int
    """Bytes that the use reads or writes."""


def sharded(placement: TensorPlacement, uses: Sequence[Use]) -> TensorPlacement | None:
    """Returns the placement in shards that makes the most accesses local, or None if none is."""
    if placement.layout is not Layout.TILE:
        return None
    found = {
        shards: own_bytes(shards, uses) for use in uses for shards in _candidates(placement, use)
    }
    best = max(found, key=lambda shards: found[shards], default=None)
    return best if best is not None and found[best] else None


def own_bytes(placement: TensorPlacement, uses: Iterable[Use]) -> int:
    """Returns the bytes of a sharded tensor that programs access in the cores' own L1."""
    total = tiles(placement)
    return sum(_own_tiles(placement, use.needs) * use.bytes // total for use in uses)


def lies_in_order(placement: TensorPlacement, needs: CoreTiles) -> bool:
    """Returns whether each core has exactly the tiles that it needs, in the order of its units."""
    shards = placement.shards
    if shards is None or not isinstance(needs.division, UnitTiles):
        return False
    is_run = placement.memory_layout == "height_sharded" or shards.shape[0] == TILE_SIDE
    return is_run and _own_tiles(placement, needs) == tiles(placement)


def _candidates(placement: TensorPlacement, use: Use) -> Iterator[TensorPlacement]:
    """Yields sharded placements whose shards hold the tiles that a core needs in that use."""
    cores, division = use.needs.cores, use.needs.division
    height, width = placement.collapsed_shape()
    if isinstance(division, BlockTiles):
        assert isinstance(division.rows, int)
        assert isinstance(division.columns, int)
        yield from _with_shards(placement, "block_sharded", division.rows, division.columns, cores)
    elif isinstance(division, UnitTiles):
        share = -(-use.needs.units // cores.cores) * division.tiles
        if share % width == 0:
            yield from _with_shards(placement, "height_sharded", share // width, width, cores)
        elif height == 1:
            yield from _with_shards(placement, "width_sharded", 1, share, cores)
        elif -(-width // share) == cores.columns:
            yield from _with_shards(placement, "block_sharded", 1, share, cores)


def _with_shards(
    placement: TensorPlacement, layout: MemoryLayout, rows: int, columns: int, cores: CoreRange
) -> Iterator[TensorPlacement]:
    """Yields the placement in shards of `rows` x `columns` tiles, if the tensor can be divided
    so."""
    shards = Shards((rows * TILE_SIDE, columns * TILE_SIDE), (cores,))
    if shards.misfit(layout, *placement.padded_shape(), in_tiles=True) is None:
        yield placement.sharded(layout, shards)


@lru_cache(maxsize=4096)
def _own_tiles(placement: TensorPlacement, needs: CoreTiles) -> int:
    """Returns the number of tiles that are in the L1 of the core that needs them."""
    pairs = zip(_owners(placement), _users(placement, needs), strict=False)
    return sum(owner == user for owner, user in pairs)


def _users(placement: TensorPlacement, needs: CoreTiles) -> Iterator[Core]:
    """Yields the core that needs each tile of a tensor, in tile order."""
    cores = needs.cores
    height, width = placement.collapsed_shape()
    match needs.division:
        case BlockTiles(int(rows), int(columns)):
            for row in range(height):
                for column in range(width):
                    yield (
                        cores.first_column + column // columns,
                        cores.first_row + row // rows,
                    )
        case UnitTiles(size):
            least, rest = divmod(needs.units, cores.cores)
            for index, core in enumerate(_each_core(cores)):
                for _ in range((least + (index < rest)) * size):
                    yield core
        case _:
            return


def _owners(placement: TensorPlacement) -> Iterator[Core]:
    """Yields the core that holds each tile of a sharded tensor, in tile order."""
    assert placement.shards is not None
    height, width = placement.collapsed_shape()
    rows, columns = (size // TILE_SIDE for size in placement.shards.shape)
    [cores] = placement.shards.core_ranges
    in_order = list(_each_core(cores))
    across = cores.columns if placement.memory_layout == "block_sharded" else -(-width // columns)
    for row in range(height):
        for column in range(width):
            yield in_order[row // rows * across + column // columns]


def _each_core(cores: CoreRange) -> Iterator[Core]:
    """Yields the cores of a range, row by row."""
    for row in range(cores.first_row, cores.last_row + 1):
        for column in range(cores.first_column, cores.last_column + 1):
            yield column, row


# Placement of tensors between device programs in L1.

_PROGRAMS_ONLY = frozenset({RUN_PROGRAM, VIEW, DEALLOCATE_BUFFER})
"""Allowed users of a tensor in L1: the host neither returns nor copies it."""


@dataclass(frozen=True)
class PlaceInL1(ModulePass):
    """Places tensors that only programs use in L1, where they fit from definition to last use.

    They are sharded where that makes accesses local, else interleaved. A tensor fits if the
    device's allocator finds room above the circular buffers of every program that runs meanwhile.
    Tensors are placed in the order of their definitions.
    """

    name = "ttmetal-place-in-l1"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        chip = (system_of(op) or default_system(DEFAULT_ARCHITECTURE)).chip
        for function in functions_of(op):
            if is_host_function(function) and function.body.blocks:
                _Placer(function, chip).place()


class _Placer:
    """Simulates the allocator over a host function, op by op."""

    def __init__(self, function: FuncOp, chip: ChipDescription) -> None:
        block = body_of(function)
        self.ops: list[Operation] = list(block.ops)
        self.chip = chip
        self.room = min(chip.usable_l1, performance_of(chip).usable_l1)
        self.members = _members(block)
        self.constants = set(device_constants(function).values)
        """Constant values, which are live from the first call on and stay in DRAM."""
        self.ends = {
            op.operands[0]: position
            for position, op in enumerate(self.ops)
            if operation_name(op) == DEALLOCATE_BUFFER
        }
        self.needed = _RangeMaximum([_circular_buffers(op) for op in self.ops])
        self.placements: dict[SSAValue, TensorPlacement] = {}
        """Placements of the tensors promoted to L1."""

    def place(self) -> None:
        """Promotes tensors that fit to L1 and removes their DRAM traffic from the costs of
        programs."""
        bank = Bank(self.room)
        held: dict[SSAValue, Place] = {}
        for position, op in enumerate(self.ops):
            name = operation_name(op)
            if name == CREATE_BUFFER and self._may_move(op.results[0]):
                value = op.results[0]
                lowest = self.needed.between(position, self.ends[value])
                found = self._allocate(bank, value, lowest)
                if found is not None:
                    held[value] = found
            elif name == DEALLOCATE_BUFFER and op.operands[0] in held:
                bank.free(held[op.operands[0]])
        moved = {value: root for root in held for value in self.members[root]}
        for value, root in moved.items():
            placement = self.placements[root].with_(shape=placement_of(value).shape)
            set_type(value, placed_type(placement))
        for op in self.ops:
            if operation_name(op) == RUN_PROGRAM:
                _update_costs(op, moved)

    def _allocate(self, bank: Bank, value: SSAValue, lowest: int) -> Place | None:
        """Allocates a tensor at or above the address `lowest`, sharded if that helps and fits."""
        interleaved = placement_of(value).with_(buffer_type="l1")
        shards = sharded(interleaved, self._uses(value)) if self._has_uniform_views(value) else None
        for placement in (shards, interleaved):
            if placement is not None:
                place = bank.allocate(self._bytes(placement))
                if place[0] >= lowest:
                    self.placements[value] = placement
                    return place
                bank.free(place)
        return None

    def _has_uniform_views(self, value: SSAValue) -> bool:
        """Returns whether all views of a tensor have its tile rows and columns, so that they share
        shards."""
        members = map(placement_of, self.members[value])
        return len({member.collapsed_shape() for member in members}) == 1

    def _uses(self, value: SSAValue) -> list[Use]:
        """Returns the programs that read or write a tensor."""
        found: list[Use] = []
        for member in self.members[value]:
            for use in member.uses:
                if operation_name(use.operation) == RUN_PROGRAM:
                    found += _uses(launch_of(use.operation).program, [use.index])
        return found

    def _may_move(self, value: SSAValue) -> bool:
        if value not in self.ends or placement_of(value).buffer_type != "dram":
            return False
        if not self.constants.isdisjoint(self.members[value]):
            return False
        uses = (use.operation for member in self.members[value] for use in member.uses)
        return all(operation_name(op) in _PROGRAMS_ONLY for op in uses)

    def _bytes(self, placement: TensorPlacement) -> int:
        """Returns the L1 bytes per core of a placed tensor."""
        return bank_bytes(placement, self.chip.cores, self.chip.noc_l1_address_align_bytes)


def _members(block: Block) -> dict[SSAValue, list[SSAValue]]:
    """Returns the values that share each buffer, by their owner."""
    members: dict[SSAValue, list[SSAValue]] = {}
    for value, root in buffer_owners(block).items():
        members.setdefault(root, []).append(value)
    return members


def _circular_buffers(op: Operation) -> int:
    """Returns the bytes of L1 that circular buffers take while an op runs."""
    return launch_of(op).program.l1_bytes if operation_name(op) == RUN_PROGRAM else 0


def _uses(program: Program, operands: Iterable[int]) -> list[Use]:
    """Returns the uses of some operands by a program."""
    if not program.traffic:
        return []
    return [Use(CoreTiles.of(program, each), program.traffic[each].bytes) for each in operands]


def _update_costs(op: Operation, moved: Container[SSAValue]) -> None:
    """Subtracts the traffic of operands in L1 from a program's DRAM traffic."""
    program = launch_of(op).program
    places = [place for place, value in enumerate(op.operands) if value in moved]
    own = sum(
        own_bytes(placement_of(op.operands[place]), _uses(program, [place]))
        for place in places
        if placement_of(op.operands[place]).shards is not None
    )
    op.properties["program"] = ProgramAttr(program.with_operands_in_l1(places, own))


class _RangeMaximum:
    """Range maximum queries by a sparse table of spans 1, 2, 4, ..."""

    def __init__(self, numbers: Sequence[int]) -> None:
        self.tables = [list(numbers)]
        step = 1
        while 2 * step <= len(numbers):
            last = self.tables[-1]
            self.tables.append([max(pair) for pair in zip(last, last[step:], strict=False)])
            step *= 2

    def between(self, first: int, last: int) -> int:
        """Returns the maximum from `first` to `last`, inclusive."""
        level = (last - first + 1).bit_length() - 1
        table = self.tables[level]
        return max(table[first], table[last - (1 << level) + 1])
