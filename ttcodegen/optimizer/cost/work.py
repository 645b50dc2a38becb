"""Work of a call's programs, by rules per kind of call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass

from ttcodegen.dialects.ttcore.shards import Layout, Memory
from ttcodegen.dialects.ttcore.tile import TILE_SIDE
from ttcodegen.dialects.ttnn.placement import TensorPlacement
from ttcodegen.dialects.ttnn.program_configs import CoreGrid
from ttcodegen.layout.placements import element_bits, tile_bytes, whole_bytes
from ttcodegen.optimizer.core.call import LibraryCall
from ttcodegen.optimizer.cost.fabric_traffic import LinkWork
from ttcodegen.systems.description import ChipDescription
from ttcodegen.systems.performance import Performance, performance_of


@dataclass
class Work:
    """Work of a call's programs; per core where noted."""

    cores: int = 1
    circular_buffers: int = 0
    _: KW_ONLY
    intermediates: int = 0
    dram_bytes: int = 0
    dram_share: float = 0.0
    """The part of the DRAM bandwidth that it gets."""
    noc_bytes: int = 0
    """Over all cores."""
    movement_cycles: int = 0
    """Of the data-movement processor of each core."""
    engine_cycles: int = 0
    vector_cycles: int = 0
    launches: int = 1
    links: LinkWork | None = None
    """Traffic over the links of the mesh."""


class Machine:
    """A chip, and how fast it is."""

    def __init__(self, description: ChipDescription) -> None:
        self.description = description
        self.speed: Performance = performance_of(description)
        self.grid = CoreGrid(description.grid[1], description.grid[0])

    def pass_cycles(self, placements: list[TensorPlacement]) -> int:
        """Cycles in which a core takes one tile of each of these through its registers."""
        size = max((page_bytes(placement) for placement in placements), default=0)
        return size // self.speed.unpacked_bytes + self.speed.tile_overhead


def page_bytes(placement: TensorPlacement) -> int:
    """Bytes of a tile, or of as many elements in rows."""
    if placement.layout is Layout.TILE:
        return tile_bytes(placement)
    return TILE_SIDE * TILE_SIDE * element_bits(placement) // 8


def traffic(work: Work, call: LibraryCall) -> None:
    """Counts every tensor once: from DRAM, or over the NoC unless it is where it is used. No
    program touches the padding of shards."""
    home = call.result.shards
    for placement in (*call.operands, *call.results):
        size = whole_bytes(placement)
        if placement.buffer_type == "dram":
            work.dram_bytes += size
            work.noc_bytes += size
        elif placement.memory is Memory.DEVICE and (home is None or placement.shards != home):
            work.noc_bytes += size


def cores_of(chip: Machine, call: LibraryCall, units: int) -> int:
    """The cores that a call runs on: those of its shards, else as many as it has units."""
    for placement in (*call.results, *call.operands):
        if placement.shards is not None and placement.buffer_type == "l1":
            return min(placement.shards.cores, chip.description.cores)
    return max(1, min(chip.description.cores, units))


WorkRule = Callable[[Machine, LibraryCall], Work]
"""Rule that computes the work of one kind of call."""
