"""System descriptions: the chips of a machine and their resources.

The fields and their names are those of `#ttcore.system_desc` (tt-mlir, 2026), whose text can be
read and written; `noc_grid` and the harvested rows and columns are additions. The NoC layouts are
those of the descriptors in tt-metal (tt_metal/soc_descriptors).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import cast

from ttcodegen.foundation.diagnostics import CompileError

ARCHITECTURES = ("wormhole_b0", "blackhole")
"""Names of the supported target architectures."""

DEFAULT_ARCHITECTURE = "wormhole_b0"
"""Default target architecture."""

DATA_TYPES = (
    "f32",
    "f16",
    "bf16",
    "bfp_f8",
    "bfp_bf8",
    "bfp_f4",
    "bfp_bf4",
    "bfp_f2",
    "bfp_bf2",
    "u32",
    "u16",
    "u8",
    "si32",
)
"""Data types that a chip may support, spelled as in `#ttcore.supportedDataTypes`."""

TILE_SIZES = ((4, 16), (16, 16), (32, 16), (4, 32), (16, 32), (32, 32))
"""Height and width of the tiles that the matrix engines of both architectures support."""

Pair = tuple[int, int]


@dataclass(frozen=True)
class NocLayout:
    """Positions of the worker cores on the NoC of an architecture."""

    grid: Pair
    """Rows and columns of the whole network."""
    worker_rows: tuple[int, ...]
    worker_columns: tuple[int, ...]


NOC_LAYOUTS = {
    "wormhole_b0": NocLayout((12, 10), (1, 2, 3, 4, 5, 7, 8, 9, 10, 11), (1, 2, 3, 4, 6, 7, 8, 9)),
    "blackhole": NocLayout((12, 17), tuple(range(2, 12)), (*range(1, 8), *range(10, 17))),
}


@dataclass(frozen=True)
class ChipDescription:
    """Description of a chip. Sizes and addresses are in bytes, pairs are rows and columns."""

    arch: str
    grid: Pair
    """Worker cores, without those that dispatch work."""
    coord_translation_offsets: Pair
    l1_size: int
    num_dram_channels: int
    dram_channel_size: int
    noc_l1_address_align_bytes: int
    pcie_address_align_bytes: int
    noc_dram_address_align_bytes: int
    l1_unreserved_base: int
    """Start of the L1 region left to tensors by firmware and kernels."""
    erisc_l1_unreserved_base: int
    dram_unreserved_base: int
    dram_unreserved_end: int
    supported_data_types: tuple[str, ...]
    supported_tile_sizes: tuple[Pair, ...]
    dst_physical_size_tiles: int
    num_cbs: int
    num_compute_threads: int
    num_datamovement_threads: int
    dram_grid: Pair
    dram_bank_to_logical_worker_noc0: tuple[Pair, ...] = ()
    """Worker closest to each DRAM bank on NoC 0, as row and column."""
    dram_bank_to_logical_worker_noc1: tuple[Pair, ...] = ()
    noc_grid: Pair = (0, 0)
    harvested_rows: tuple[int, ...] = ()
    """Rows of the network whose workers are disabled."""
    harvested_columns: tuple[int, ...] = ()

    @property
    def cores(self) -> int:
        """Number of worker cores."""
        return self.grid[0] * self.grid[1]

    @property
    def usable_l1(self) -> int:
        """Bytes of L1 of each core that tensors and circular buffers may take."""
        return self.l1_size - self.l1_unreserved_base

    @property
    def usable_dram(self) -> int:
        """Bytes of DRAM, over all channels, that tensors may take."""
        return self.num_dram_channels * (self.dram_unreserved_end - self.dram_unreserved_base)

    def physical_core(self, row: int, column: int) -> Pair:
        """Returns the NoC row and column of a worker of the logical grid.

        Raises:
            IndexError: if the grid has no such position.
        """
        if not (0 <= row < self.grid[0] and 0 <= column < self.grid[1]):
            raise IndexError((row, column))
        layout = NOC_LAYOUTS[self.arch]
        rows = [y for y in layout.worker_rows if y not in self.harvested_rows]
        columns = [x for x in layout.worker_columns if x not in self.harvested_columns]
        return rows[row], columns[column]


@dataclass(frozen=True)
class CPUDescription:
    """A processor that runs host code."""

    role: str = "host"
    target_triple: str = "x86_64-pc-linux-gnu"


@dataclass(frozen=True)
class ChipChannel:
    """An ethernet link between two chips of the system, by index and core."""

    first: int
    first_core: Pair
    second: int
    second_core: Pair


@dataclass(frozen=True)
class SystemDescription:
    """All chips of a machine. `chips` are kinds of chips; `chip_indices` has the kind of each."""

    cpus: tuple[CPUDescription, ...]
    chips: tuple[ChipDescription, ...]
    chip_indices: tuple[int, ...]
    chip_capabilities: tuple[int, ...]
    """Per chip: bit 0 if it is connected by PCIe, bit 1 if it can map host memory."""
    chip_coordinates: tuple[tuple[int, int, int, int], ...]
    """Per chip: rack, shelf, row and column."""
    chip_channels: tuple[ChipChannel, ...] = ()

    @property
    def chip(self) -> ChipDescription:
        """Target chip of programs: the first one."""
        return self.chips[self.chip_indices[0]]

    @property
    def arch(self) -> str:
        """Name of the target architecture."""
        return self.chip.arch

    @property
    def mesh(self) -> Pair:
        """Rows and columns of all chips; one row if their coordinates are not a full grid."""
        rows = len({(rack, shelf, row) for rack, shelf, row, _ in self.chip_coordinates})
        columns = len({column for *_, column in self.chip_coordinates})
        chips = len(self.chip_indices)
        return (rows, columns) if rows * columns == chips else (1, chips)

    def check(self) -> SystemDescription:
        """Verifies the description and returns it.

        Raises:
            CompileError: if a field is invalid; names the first one.
        """
        if not self.chips or not self.chip_indices:
            raise _impossible("it has no chips")
        if any(index >= len(self.chips) or index < 0 for index in self.chip_indices):
            raise _impossible("an index of 'chip_indices' names no chip")
        fields_of_chips = (self.chip_capabilities, self.chip_coordinates, self.chip_channels)
        if not all(0 <= number < 1 << 32 for number in _numbers_in(fields_of_chips)):
            raise _impossible("a number of a chip's place or abilities is not one of 32 bits")
        for chip in self.chips:
            _check_chip(chip)
        return self


def _numbers_in(value: object) -> Iterator[int]:
    """Yields all integers in tuples of tuples and channels."""
    if isinstance(value, ChipChannel):
        value = (value.first, value.first_core, value.second, value.second_core)
    if isinstance(value, int):
        yield value
    elif isinstance(value, tuple):
        for part in cast("tuple[object, ...]", value):
            yield from _numbers_in(part)


def _impossible(what: str) -> CompileError:
    return CompileError(f"the system description is inconsistent: {what}")


_COUNTS = (
    "l1_size",
    "num_dram_channels",
    "dram_channel_size",
    "dst_physical_size_tiles",
    "num_cbs",
    "num_compute_threads",
    "num_datamovement_threads",
)
_ALIGNMENTS = (
    "noc_l1_address_align_bytes",
    "pcie_address_align_bytes",
    "noc_dram_address_align_bytes",
)
_BASES = ("l1_unreserved_base", "erisc_l1_unreserved_base", "dram_unreserved_base")


def _check_chip(chip: ChipDescription) -> None:
    if chip.arch not in NOC_LAYOUTS:
        raise CompileError(
            f"the system description is of the architecture '{chip.arch}', which is not supported",
            remedy=f"supported are {', '.join(ARCHITECTURES)}",
        )
    for field in fields(chip):
        # Flatbuffers hold sizes in 64 bits, all else in 32.
        least, bits = (-(1 << 63), 63) if field.type == "int" else (0, 32)
        for number in _numbers_in(getattr(chip, field.name)):
            if not least <= number < 1 << bits:
                raise _impossible(f"'{field.name}' has the number {number}")
    for name in _COUNTS:
        if getattr(chip, name) < 1:
            raise _impossible(f"'{name}' is {getattr(chip, name)}")
    for name in _ALIGNMENTS:
        value = getattr(chip, name)
        if value < 1 or value & (value - 1):
            raise _impossible(f"'{name}' is {value}, which is no power of two")
    for name in _BASES:
        if getattr(chip, name) < 0:
            raise _impossible(f"'{name}' is negative")
    if chip.l1_unreserved_base >= chip.l1_size:
        raise _impossible("nothing of L1 is left above 'l1_unreserved_base'")
    if not chip.dram_unreserved_base < chip.dram_unreserved_end <= chip.dram_channel_size:
        raise _impossible("'dram_unreserved_base' and 'dram_unreserved_end' enclose no DRAM")
    for name in chip.supported_data_types:
        if name not in DATA_TYPES:
            raise _impossible(f"there is no data type '{name}'")
    _check_grid(chip)


def _check_grid(chip: ChipDescription) -> None:
    layout = NOC_LAYOUTS[chip.arch]
    rows = len(layout.worker_rows) - len(set(layout.worker_rows) & set(chip.harvested_rows))
    columns = len(layout.worker_columns)
    columns -= len(set(layout.worker_columns) & set(chip.harvested_columns))
    if not (1 <= chip.grid[0] <= rows and 1 <= chip.grid[1] <= columns):
        raise _impossible(
            f"'grid' is {chip.grid[0]}x{chip.grid[1]}, but {chip.arch} has {rows} rows and "
            f"{columns} columns of workers that are not harvested"
        )


def differences(first: SystemDescription, second: SystemDescription) -> list[str]:
    """Returns the differing fields of the target chips of two systems, with both values.

    Empty if programs for one run on the other.
    """
    found: list[str] = []
    for field in fields(ChipDescription):
        one, other = getattr(first.chip, field.name), getattr(second.chip, field.name)
        if one != other:
            found.append(f"{field.name}: {_shown(one)} and {_shown(other)}")
    return found


def _shown(value: object) -> str:
    return "none" if value == () else str(value)
