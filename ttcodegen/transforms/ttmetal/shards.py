"""Sharding of tensors between device programs over the L1 memories of cores.

A tensor is sharded where a core that writes or reads tiles of it can then do so in its own
memory. Kernels are the same for tensors in shards: the accessors know where a page is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from ttcodegen.dialects.ttcore.shards import CoreRange, Layout, MemoryLayout, Shards
from ttcodegen.dialects.ttcore.tile import TILE_SIDE
from ttcodegen.dialects.ttmetal.programs import BlockTiles, Division, Program, UnitTiles
from ttcodegen.dialects.ttnn.placement import TensorPlacement
from ttcodegen.layout.placements import tiles

Core = tuple[int, int]
"""Column and row."""


@dataclass(frozen=True)
class CoreTiles:
    """Tiles of an operand that each core of a program needs."""

    division: Division
    """With numbers for sizes."""
    cores: CoreRange
    units: int
    """Of linear work."""

    @classmethod
    def of(cls, program: Program, operand: int) -> CoreTiles:
        """Collects the tiles of an operand that each core needs."""
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
    """The tensor in shards, so that as much as possible is where it is needed.

    None if that is nothing.
    """
    if placement.layout is not Layout.TILE:
        return None
    found = {shards: own_bytes(shards, uses) for use in uses for shards in _fits(placement, use)}
    best = max(found, key=lambda shards: found[shards], default=None)
    return best if best is not None and found[best] else None


def own_bytes(placement: TensorPlacement, uses: Iterable[Use]) -> int:
    """Bytes of a sharded tensor that programs access in the cores' own L1."""
    total = tiles(placement)
    return sum(_own_tiles(placement, use.needs) * use.bytes // total for use in uses)


def lies_in_order(placement: TensorPlacement, needs: CoreTiles) -> bool:
    """True if each core has the tiles that it needs, and no others, in the order of its units."""
    shards = placement.shards
    if shards is None or not isinstance(needs.division, UnitTiles):
        return False
    is_run = placement.memory_layout == "height_sharded" or shards.shape[0] == TILE_SIDE
    return is_run and _own_tiles(placement, needs) == tiles(placement)


def _fits(placement: TensorPlacement, use: Use) -> Iterator[TensorPlacement]:
    """The tensor in shards that each hold what a core needs in that use."""
    cores, division = use.needs.cores, use.needs.division
    height, width = placement.collapsed_shape()
    if isinstance(division, BlockTiles):
        assert isinstance(division.rows, int)
        assert isinstance(division.columns, int)
        yield from _in_shards(placement, "block_sharded", division.rows, division.columns, cores)
    elif isinstance(division, UnitTiles):
        share = -(-use.needs.units // cores.cores) * division.tiles
        if share % width == 0:
            yield from _in_shards(placement, "height_sharded", share // width, width, cores)
        elif height == 1:
            yield from _in_shards(placement, "width_sharded", 1, share, cores)
        elif -(-width // share) == cores.columns:
            yield from _in_shards(placement, "block_sharded", 1, share, cores)


def _in_shards(
    placement: TensorPlacement, layout: MemoryLayout, rows: int, columns: int, cores: CoreRange
) -> Iterator[TensorPlacement]:
    """The tensor in shards of so many tiles, if it can be divided so."""
    shards = Shards((rows * TILE_SIDE, columns * TILE_SIDE), (cores,))
    if shards.misfit(layout, *placement.padded_shape(), in_tiles=True) is None:
        yield placement.sharded(layout, shards)


@lru_cache(maxsize=4096)
def _own_tiles(placement: TensorPlacement, needs: CoreTiles) -> int:
    """Counts the tiles that are in the L1 of the core that needs them."""
    pairs = zip(_owners(placement), _users(placement, needs), strict=False)
    return sum(owner == user for owner, user in pairs)


def _users(placement: TensorPlacement, needs: CoreTiles) -> Iterator[Core]:
    """The cores that need the tiles of a tensor, in the order of the tiles."""
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
    """The cores that have the tiles of a tensor in shards, in the order of the tiles."""
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
    """The cores of a range, row by row."""
    for row in range(cores.first_row, cores.last_row + 1):
        for column in range(cores.first_column, cores.last_column + 1):
            yield column, row
