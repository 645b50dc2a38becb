"""Cards and machines: chips, meshes, links and performance figures.

Grids, DRAM banks and the workers closest to them are those that tt-metal reports for a mocked card
with the harvesting of that card; the other figures are those that tt-mlir assumes where no card is
queried.

Shapes and links are those of the mesh graph descriptors of tt-metal
(tt_metal/fabric/mesh_graph_descriptors).

`tech_reports` are those of tt-metal. Figures without a source are marked as estimates.
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
from ttcodegen.systems.releases import l1_base

_WORMHOLE_BANKS = (
    *((7, 3), (0, 0), (3, 0), (4, 0), (0, 4), (7, 7)),
    *((1, 4), (6, 4), (5, 4), (2, 6), (3, 4), (4, 4)),
)
_WEST_BANKS = ((9, 0), (0, 0), (7, 0), (3, 0))
"""Workers beside the western DRAM banks of a blackhole."""
_EAST_ROWS = (9, 1, 6, 4)
"""Rows of the workers beside the eastern DRAM banks."""

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
    """Returns the workers beside the eastern banks, in that column of the grid."""
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
"""A p150 with all 140 cores, as with firmware before 19.5.0; one column dispatches work."""


def _harvested(columns: tuple[int, ...], banks: tuple[tuple[int, int], ...]) -> ChipDescription:
    """Returns a blackhole without these NoC columns, and with these DRAM banks."""
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
"""A p100: 120 cores, and one of the eight DRAM banks disabled."""
BH_GALAXY = _harvested((13,), _ALL_BANKS)
"""A chip of a Galaxy: 130 cores."""

NARROWEST = min((N150, P150_140, P150, P100, BH_GALAXY), key=lambda chip: chip.grid[1])
"""Chip with the fewest worker columns: grids that fit on it fit on every card."""

_DEFAULTS = {"wormhole_b0": N150, "blackhole": P150}
"""Default chip of each architecture."""


def card_text(chip: ChipDescription) -> str:
    """Returns the card as the value of TTCODEGEN_ARCH for the CPU backend.

    The architecture alone for its default card, else with grid and DRAM banks; empty for the
    default card of the emulator.
    """
    default = _DEFAULTS[chip.arch]
    if (chip.grid, chip.num_dram_channels) == (default.grid, default.num_dram_channels):
        return "" if chip.arch == DEFAULT_ARCHITECTURE else chip.arch
    rows, columns = chip.grid
    return f"{chip.arch}:{columns}x{rows}:{chip.num_dram_channels}"


def default_system(arch: str) -> SystemDescription:
    """Returns a system with one chip of that architecture: an n150 or a p150.

    Raises:
        KeyError: if there is no such architecture.
    """
    return system_of_chips(_DEFAULTS[arch], 1, 1)


def default_machine() -> SystemDescription:
    """Returns the default target system."""
    return default_system(DEFAULT_ARCHITECTURE)


def mesh_system(arch: str, rows: int, columns: int) -> SystemDescription:
    """Returns a system with a mesh of default chips of an architecture.

    Raises:
        KeyError: if there is no such architecture.
    """
    return system_of_chips(_DEFAULTS[arch], rows, columns)


def system_of_chips(chip: ChipDescription, rows: int, columns: int) -> SystemDescription:
    """Returns a system with a mesh of chips: an n300 for 1x2, a T3000 for 2x4, a Galaxy for 8x4.

    Chips are numbered row by row; the first of each row is connected by PCIe.
    """
    chips = rows * columns
    places = tuple((0, 0, row, column) for row in range(rows) for column in range(columns))
    capabilities = tuple(1 if column == 0 else 0 for *_, column in places)
    return SystemDescription((CPUDescription(),), (chip,), (0,) * chips, capabilities, places)


def joined_system(system: SystemDescription, hosts: tuple[int, int]) -> SystemDescription:
    """The system of several hosts, in rows and columns, that have such a system each."""
    rows, columns = system.mesh
    if rows == 1:  # Chips whose places are no grid are counted as a row.
        where = tuple((0, index) for index in range(columns))
    else:
        where = tuple((row, column) for *_, row, column in system.chip_coordinates)
    places = sorted(
        ((first * rows + row, second * columns + column), (first, second), index)
        for first in range(hosts[0])
        for second in range(hosts[1])
        for index, (row, column) in enumerate(where)
    )
    number = {(host, index): chip for chip, (_, host, index) in enumerate(places)}
    return replace(
        system,
        cpus=system.cpus * (hosts[0] * hosts[1]),
        chip_indices=tuple(system.chip_indices[index] for *_, index in places),
        chip_capabilities=tuple(system.chip_capabilities[index] for *_, index in places),
        chip_coordinates=tuple((0, 0, *place) for place, *_ in places),
        chip_channels=tuple(
            replace(channel, first=number[host, channel.first], second=number[host, channel.second])
            for host in dict.fromkeys(host for _, host, _ in places)
            for channel in system.chip_channels
        ),
    )


@dataclass(frozen=True)
class Machine:
    """A mesh of equal chips."""

    name: str
    chip: ChipDescription
    rows: int
    columns: int
    links: int
    """Ethernet links between two neighbours; 0 for a single chip."""
    hop: float = 0.0
    """Seconds that a packet takes from a chip to the next; 0 for a single chip."""

    @property
    def arch(self) -> str:
        """Name of the architecture."""
        return self.chip.arch

    @property
    def chips(self) -> int:
        """Number of devices."""
        return self.rows * self.columns

    def system(self) -> SystemDescription:
        """Returns the system description."""
        return system_of_chips(self.chip, self.rows, self.columns)


_ON_BOARD = 650e-9
"""Between the two chips of a board (EthernetMultichip/BasicEthernetGuide.md, on wormhole_b0)."""
_BETWEEN_BOARDS = 801e-9
"""Between the boards of a T3000; this and what follows are packets of 16 bytes on a line
(golden_latency_summary_*.csv of tests/tt_metal/tt_metal/perf_microbenchmark of tt-metal)."""
_IN_GALAXY = 894e-9
_BETWEEN_BLACKHOLES = 681e-9
"""Between four p150. Other machines of blackhole were not measured."""

MACHINES = (
    Machine("n150", N150, 1, 1, 0),
    Machine("n300", N150, 1, 2, 2, _ON_BOARD),
    Machine("t3000", N150, 2, 4, 2, _BETWEEN_BOARDS),
    Machine("galaxy", N150, 8, 4, 4, _IN_GALAXY),
    Machine("p150", P150, 1, 1, 0),
    Machine("p100", P100, 1, 1, 0),
    Machine("p150_140", P150_140, 1, 1, 0),
    Machine("p300", P150, 1, 2, 2, _BETWEEN_BLACKHOLES),
    Machine("p150_x4", P150, 2, 2, 4, _BETWEEN_BLACKHOLES),
    Machine("p150_x8", P150, 2, 4, 2, _BETWEEN_BLACKHOLES),
    Machine("bh_galaxy", BH_GALAXY, 8, 4, 2, _BETWEEN_BLACKHOLES),
)
"""Machines by architecture, the smallest first."""

_LINKS_BETWEEN_HOSTS = {"wormhole_b0": 1, "blackhole": 2}
"""Links between two chips that are neighbours across hosts, of which each pair has its own: those
of two Galaxies as 8x8, and of two and four hosts with p150 as 4x4, in the mesh graph descriptors of
tt-metal. Galaxies that are cabled as 32x4 have more; what such links take was not measured."""

MOST_CHIPS = 128
"""Chips of the largest mesh in tt-metal's mesh graph descriptors.

Four Galaxies as 32x4, 16x8 or 8x16. The CPU backend supports as many (`kMostChips` of
standalone/src/core/device.hpp).
"""

_ALIASES = {"t3k": "t3000", "tg": "galaxy"}

NAMES = tuple(machine.name for machine in MACHINES)


def machine(name: str) -> Machine | None:
    """Returns the machine of that name, None if there is none."""
    wanted = _ALIASES.get(name.lower(), name.lower())
    return next((each for each in MACHINES if each.name == wanted), None)


@dataclass(frozen=True)
class Links:
    """Links between two neighbours of a mesh."""

    count: int
    hop: float
    """Seconds that a packet takes from one to the other."""


def _machine_of(arch: str, chips: int) -> Machine:
    """The smallest machine of an architecture with several devices and as many as that, or the
    largest one if none has."""
    several = [each for each in MACHINES if each.arch == arch and each.chips > 1]
    fitting = [each for each in several if each.chips >= chips]
    return (fitting or several[-1:])[0]


def links_between(arch: str, chips: int) -> int:
    """Number of links between neighbours of a mesh on one host."""
    return _machine_of(arch, chips).links


def links_along(arch: str, chips: int, hosts: int, hosts_along: int) -> Links:
    """The links of a line of chips, which are those of its pair of neighbours with the fewest.

    Args:
        arch: the architecture.
        chips: those of the mesh.
        hosts: those that have the mesh.
        hosts_along: those that the line passes.
    """
    within = _machine_of(arch, chips // hosts)
    if hosts_along == 1:
        return Links(within.links, within.hop)
    return Links(min(within.links, _LINKS_BETWEEN_HOSTS[arch]), within.hop)


FIDELITY_PASSES: Mapping[str, int] = {"lofi": 1, "hifi2": 2, "hifi3": 3, "hifi4": 4}
"""Phases of the matrix engine per tile pair in each fidelity.

GEMM_FLOPS.md: 16, 32, 48 and 64 cycles per tile.
"""


@dataclass(frozen=True)
class Performance:
    """Performance figures of one chip. Rates are per clock cycle unless stated otherwise."""

    clock: float
    """Hz of the Tensix cores (GEMM_FLOPS.md)."""
    dram_bandwidth: float
    """Bytes per second of all banks together (data sheets of n150 and p150)."""
    noc_bytes: int
    """Bytes that a core reads from or writes to one NoC per cycle (a flit; 256 and 512 bits)."""
    l1_bank: int
    """Bytes of each L1 for tensors and circular buffers.

    The L1 size without firmware and kernels, in the release where these take most.
    """
    link_bandwidth: float
    """Bytes per second of one ethernet link in one direction, with packets of 4 KiB on a line of
    chips.

    11.67 of the 12.5 bytes per cycle of a link, and 12.78 on blackhole
    (tests/tt_metal/microbenchmarks/ethernet/golden/*/fabric_edm_bandwidth_golden.csv of tt-metal).
    """
    tile_product: int = 16
    """Cycles of a matmul of two 32x32 tiles in the lowest fidelity (GEMM_FLOPS.md)."""
    vector_lanes: int = 32
    """Lanes of the vector engine (tt-isa, SFPU)."""
    unpacked_bytes: int = 64
    """Bytes that a core moves between L1 and registers per cycle (estimate)."""
    tile_overhead: int = 60
    """Cycles of synchronisation for each tile in the circular buffers of a core (estimate)."""
    transaction: int = 30
    """Cycles for a data movement core to issue a read or write (estimate)."""
    launch: float = 3e-6
    """Seconds between the end of a program and the begin of the next in a trace (LLMs/llms.md:
    below 6 us; single-digit microseconds)."""
    l1_small: int = 32768
    """Bytes of each L1 for the tables of windowed ops, with which generated programs open the
    device.
    """

    @property
    def usable_l1(self) -> int:
        """Bytes of each L1 that tensors and circular buffers may take."""
        return self.l1_bank - self.l1_small


_CHIPS = {
    "wormhole_b0": Performance(1.0e9, 288e9, 32, 1_499_136 - l1_base("wormhole_b0"), 11.67e9),
    "blackhole": Performance(1.35e9, 512e9, 64, 1_572_864 - l1_base("blackhole"), 12.78 * 1.35e9),
}


def performance(arch: str) -> Performance:
    """Returns the figures of the default chip of an architecture.

    Raises:
        KeyError: if there is no such architecture.
    """
    return _CHIPS[arch]


def performance_of(chip: ChipDescription) -> Performance:
    """Returns the figures of a chip; its DRAM bandwidth is proportional to its banks.

    A p100 has seven of the eight banks of a p150: 448 GB/s.
    """
    figures = performance(chip.arch)
    banks = default_system(chip.arch).chip.num_dram_channels
    if chip.num_dram_channels == banks:
        return figures
    share = chip.num_dram_channels / banks
    return replace(figures, dram_bandwidth=figures.dram_bandwidth * share)
