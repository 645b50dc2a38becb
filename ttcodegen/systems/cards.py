"""The chips of the cards that are sold.

Grids, DRAM banks and the workers closest to them are what tt-metal reports of a mocked card
with the harvesting of that card; the other figures are those that tt-mlir assumes where no card is
queried.
"""

from __future__ import annotations

from dataclasses import replace

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
