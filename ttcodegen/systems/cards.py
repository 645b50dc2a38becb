"""Cards and machines that are sold: chips, their arrangement and links, performance figures.

Grids, DRAM banks and the workers closest to them are what tt-metal reports of a mocked card
with the harvesting of that card; the other figures are those that tt-mlir assumes where no card is
queried.

Shapes and links are those of the mesh graph descriptors of tt-metal
(tt_metal/fabric/mesh_graph_descriptors).

`tech_reports` are those of tt-metal. A figure without a source is an estimate and says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ttcodegen.systems.description import (
    DATA_TYPES,
    DEFAULT_ARCHITECTURE,
    NOC_LAYOUTS,
    TILE_SIZES,
    ChipDescription,
    CPUDescription,
    SystemDescription,
)

_WORMHOLE_BANKS = (
    *((7, 3), (0, 0), (3, 0), (4, 0), (0, 4), (7, 7)),
    *((1, 4), (6, 4), (5, 4), (2, 6), (3, 4), (4, 4)),
)
_WEST_BANKS = ((9, 0), (0, 0), (7, 0), (3, 0))
"""The workers beside those banks of a blackhole that are west of all workers."""
_EAST_ROWS = (9, 1, 6, 4)
"""The rows of those beside the other banks."""

N150 = ChipDescription(
    arch="wormhole_b0",
    grid=(8, 8),
    coord_translation_offsets=(18, 18),
    l1_size=1464 * 1024,
    num_dram_channels=12,
    dram_channel_size=1 << 30,
    noc_l1_address_align_bytes=16,
    pcie_address_align_bytes=32,
    noc_dram_address_align_bytes=32,
    l1_unreserved_base=1024,
    erisc_l1_unreserved_base=1024,
    dram_unreserved_base=1024,
    dram_unreserved_end=1 << 30,
    supported_data_types=DATA_TYPES,
    supported_tile_sizes=TILE_SIZES,
    dst_physical_size_tiles=16,
    num_cbs=32,
    num_compute_threads=1,
    num_datamovement_threads=2,
    dram_grid=(1, 12),
    dram_bank_to_logical_worker_noc0=_WORMHOLE_BANKS,
    dram_bank_to_logical_worker_noc1=_WORMHOLE_BANKS,
    noc_grid=NOC_LAYOUTS["wormhole_b0"].grid,
    harvested_rows=(11,),
)


def _east_banks(column: int) -> tuple[tuple[int, int], ...]:
    """The workers beside the eastern banks, where these follow so many columns in the west."""
    return tuple((row, column) for row in _EAST_ROWS)


_ALL_BANKS = (*_WEST_BANKS, *_east_banks(7))

P150_140 = ChipDescription(
    arch="blackhole",
    grid=(10, 13),
    coord_translation_offsets=(18, 18),
    l1_size=1536 * 1024,
    num_dram_channels=8,
    dram_channel_size=4278190080,
    noc_l1_address_align_bytes=16,
    pcie_address_align_bytes=64,
    noc_dram_address_align_bytes=64,
    l1_unreserved_base=98304,
    erisc_l1_unreserved_base=100032,
    dram_unreserved_base=64,
    dram_unreserved_end=4276383744,
    supported_data_types=DATA_TYPES,
    supported_tile_sizes=TILE_SIZES,
    dst_physical_size_tiles=16,
    num_cbs=32,
    num_compute_threads=1,
    num_datamovement_threads=2,
    dram_grid=(1, 8),
    dram_bank_to_logical_worker_noc0=_ALL_BANKS,
    dram_bank_to_logical_worker_noc1=_ALL_BANKS,
    noc_grid=NOC_LAYOUTS["blackhole"].grid,
)
"""A p150 with all 140 cores, as firmware before 19.5.0 left it: one column dispatches work."""


def _harvested(columns: tuple[int, ...], banks: tuple[tuple[int, int], ...]) -> ChipDescription:
    """A blackhole without these columns of the network, and with these DRAM banks."""
    rows, width = P150_140.grid
    return replace(
        P150_140,
        grid=(rows, width - len(columns)),
        harvested_columns=columns,
        num_dram_channels=len(banks),
        dram_grid=(1, len(banks)),
        dram_bank_to_logical_worker_noc0=banks,
        dram_bank_to_logical_worker_noc1=banks,
    )


P150 = _harvested((4, 13), (*_WEST_BANKS, *_east_banks(6)))
"""A p150 since firmware 19.5.0, and a chip of a p300: 120 cores."""
P100 = _harvested((4, 13), ((9, 0), (0, 0), (7, 0), *((row, 6) for row in (0, 1, 6, 4))))
"""120 cores, and one of the eight DRAM banks switched off."""
BH_GALAXY = _harvested((13,), _ALL_BANKS)
"""A chip of a Galaxy: 130 cores."""

NARROWEST = min((N150, P150_140, P150, P100, BH_GALAXY), key=lambda chip: chip.grid[1])
"""The chip with the fewest columns of workers: what fits on its grid does on that of each card."""

_DEFAULTS = {"wormhole_b0": N150, "blackhole": P150}
"""Defaults of every card of an architecture."""


def card_text(chip: ChipDescription) -> str:
    """The card as the environment variable TTCODEGEN_ARCH of the CPU backend names it: by its
    architecture alone if it is the default of that, else with its grid and its DRAM banks. Empty
    for the card that is emulated by default."""
    default = _DEFAULTS[chip.arch]
    if (chip.grid, chip.num_dram_channels) == (default.grid, default.num_dram_channels):
        return "" if chip.arch == DEFAULT_ARCHITECTURE else chip.arch
    rows, columns = chip.grid
    return f"{chip.arch}:{columns}x{rows}:{chip.num_dram_channels}"


def default_system(arch: str) -> SystemDescription:
    """A machine with one chip of that architecture: an n150 or a p150.

    Raises:
        KeyError: if there is no such architecture.
    """
    return system_of_chips(_DEFAULTS[arch], 1, 1)


def default_machine() -> SystemDescription:
    """The machine that programs are for which name none."""
    return default_system(DEFAULT_ARCHITECTURE)


def mesh_system(arch: str, rows: int, columns: int) -> SystemDescription:
    """A machine with a mesh of the chips that are the default of an architecture.

    Raises:
        KeyError: if there is no such architecture.
    """
    return system_of_chips(_DEFAULTS[arch], rows, columns)


def system_of_chips(chip: ChipDescription, rows: int, columns: int) -> SystemDescription:
    """A machine with a mesh of such chips: an n300 for 1x2, a T3000 for 2x4, a Galaxy for 8x4.
    Chips are counted row by row; the first of each row is reached by PCIe."""
    chips = rows * columns
    places = tuple((0, 0, row, column) for row in range(rows) for column in range(columns))
    capabilities = tuple(1 if column == 0 else 0 for *_, column in places)
    return SystemDescription((CPUDescription(),), (chip,), (0,) * chips, capabilities, places)


@dataclass(frozen=True)
class Machine:
    """Equal chips in rows and columns."""

    name: str
    chip: ChipDescription
    rows: int
    columns: int
    links: int
    """Ethernet links between two neighbours; 0 for a single chip."""

    @property
    def arch(self) -> str:
        """The name of their architecture."""
        return self.chip.arch

    @property
    def chips(self) -> int:
        """Number of devices."""
        return self.rows * self.columns

    def system(self) -> SystemDescription:
        """Its description."""
        return system_of_chips(self.chip, self.rows, self.columns)


MACHINES = (
    Machine("n150", N150, 1, 1, 0),
    Machine("n300", N150, 1, 2, 2),
    Machine("t3000", N150, 2, 4, 2),
    Machine("galaxy", N150, 8, 4, 4),
    Machine("p150", P150, 1, 1, 0),
    Machine("p100", P100, 1, 1, 0),
    Machine("p150_140", P150_140, 1, 1, 0),
    Machine("p300", P150, 1, 2, 2),
    Machine("p150_x4", P150, 2, 2, 4),
    Machine("p150_x8", P150, 2, 4, 2),
    Machine("bh_galaxy", BH_GALAXY, 8, 4, 2),
)
"""By architecture, the smallest first."""

MOST_CHIPS = 128
"""Chips of the largest mesh that the mesh graph descriptors of tt-metal have: four Galaxies
as 32x4, 16x8 or 8x16. The CPU backend has as many
(`kMostChips` of standalone/src/core/device.hpp)."""

_ALIASES = {"t3k": "t3000", "tg": "galaxy"}

NAMES = tuple(machine.name for machine in MACHINES)


def machine(name: str) -> Machine | None:
    """The machine of that name, None if there is none."""
    wanted = _ALIASES.get(name.lower(), name.lower())
    return next((each for each in MACHINES if each.name == wanted), None)


def links_between(arch: str, chips: int) -> int:
    """Number of links between neighbours of a mesh.

    They are those of the smallest machine of that architecture with as many devices, or of the
    largest one if none has.
    """
    several = [each for each in MACHINES if each.arch == arch and each.chips > 1]
    fitting = [each for each in several if each.chips >= chips]
    return (fitting or several[-1:])[0].links


FIDELITY_PASSES: Mapping[str, int] = {"lofi": 1, "hifi2": 2, "hifi3": 3, "hifi4": 4}
"""Phases of the matrix engine per tile pair in each fidelity.

GEMM_FLOPS.md: 16, 32, 48 and 64 cycles a tile.
"""


@dataclass(frozen=True)
class Performance:
    """One chip. Rates are per cycle of its clock, unless they say otherwise."""

    clock: float
    """Hz of the Tensix cores (GEMM_FLOPS.md)."""
    dram_bandwidth: float
    """Bytes per second of all banks together (data sheets of n150 and p150)."""
    noc_bytes: int
    """Bytes that a core takes from or puts on one NoC per cycle (a flit; 256 and 512 bits)."""
    l1_bank: int
    """Bytes of each L1 that tensors and circular buffers share: its size less what firmware and
    kernels take (dev_mem_map.h; for wormhole_b0 measured as well)."""
    link_bandwidth: float
    """Bytes per second of one ethernet link in one direction, with packets of 4 KiB on a line of
    chips (tests/tt_metal/microbenchmarks/ethernet/golden/*/fabric_edm_bandwidth_golden.csv of
    tt-metal: 11.67 of the 12.5 bytes per cycle that a link has, and 12.78 on blackhole)."""
    tile_product: int = 16
    """Cycles of a product of two 32x32 tiles in the lowest fidelity (GEMM_FLOPS.md)."""
    vector_lanes: int = 32
    """Elements that the vector engine computes with at a time (tt-isa, SFPU)."""
    unpacked_bytes: int = 64
    """Bytes that a core moves from its L1 into registers, or back, per cycle (estimate)."""
    tile_overhead: int = 60
    """Cycles of synchronisation for each tile that goes through the circular buffers of a core
    (estimate)."""
    transaction: int = 30
    """Cycles for a data-movement core to issue a read or write (estimate)."""
    launch: float = 3e-6
    """Seconds between the end of a program and the begin of the next in a trace (LLMs/llms.md:
    below 6 us; single-digit microseconds)."""
    link_latency: float = 650e-9
    """Seconds from one chip to the next (EthernetMultichip/BasicEthernetGuide.md; measured on
    wormhole_b0)."""
    l1_small: int = 32768
    """Bytes of each L1 that windowed operations keep their tables in: what generated programs open
    the device with."""

    @property
    def usable_l1(self) -> int:
        """Bytes of each L1 that tensors and circular buffers may take."""
        return self.l1_bank - self.l1_small


_CHIPS = {
    "wormhole_b0": Performance(1.0e9, 288e9, 32, 1_499_136 - 103_712, 11.67e9),
    "blackhole": Performance(1.35e9, 512e9, 64, 1_572_864 - 111_104, 12.78 * 1.35e9),
}


def performance(arch: str) -> Performance:
    """The figures of the default chip of an architecture.

    Raises:
        KeyError: if there is no such architecture.
    """
    return _CHIPS[arch]


def performance_of(chip: ChipDescription) -> Performance:
    """The figures of a chip, whose DRAM banks share the bandwidth: 448 GB/s of a p100, which has
    seven of the eight of a p150."""
    figures = performance(chip.arch)
    banks = default_system(chip.arch).chip.num_dram_channels
    if chip.num_dram_channels == banks:
        return figures
    share = chip.num_dram_channels / banks
    return replace(figures, dram_bandwidth=figures.dram_bandwidth * share)
