"""What the emulated device counts of the programs that it runs, in the form of tt-metal's device
profiler.

The counts are exact. The emulated device has no clock: cycles are what a card takes at least for
what was counted, one program after the other from 0 on.

Source: dumpDeviceResultsToCSV of tt_metal/impl/profiler/profiler.cpp in tt-metal.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from ttcodegen.dialects.datatypes import DataType
from ttcodegen.dialects.tile import TILE_SIDE
from ttcodegen.layout.tiled_shape import tile_bytes_of
from ttcodegen.runtime.backend_reports import DEVICE_REPORT, BackendReport
from ttcodegen.systems.performance import FIDELITY_PASSES, Performance

_TILE_BYTES = tile_bytes_of(DataType.BFLOAT16)
"""Whatever the format of a tile: the counts do not have it."""
_TILE_ELEMENTS = TILE_SIDE * TILE_SIDE
_HEADER = (
    "PCIe slot, core_x, core_y, RISC processor type, timer_id, time[cycles since reset], data, "
    "run host ID, trace id, trace id counter, zone name, type, source line, source file, meta data"
)


@dataclass(frozen=True)
class CoreCounts:
    """What one core did for a kernel."""

    noc: tuple[int, int]
    """Its coordinates on the NoC."""
    counters: Mapping[str, int]


@dataclass(frozen=True)
class KernelCounts:
    """A kernel of a program."""

    source: str
    """As given to CreateKernel."""
    processor: str
    """BRISC, NCRISC or TRISC."""
    cores: tuple[CoreCounts, ...]


@dataclass(frozen=True)
class ProgramCounts:
    """One run of a program."""

    kernels: tuple[KernelCounts, ...]
    seconds: float
    """How long it took here."""
    total: Mapping[str, int]

    @property
    def cores(self) -> int:
        """How many cores it ran on."""
        return len({core.noc for kernel in self.kernels for core in kernel.cores})

    def sources(self, computes: bool) -> str:
        """The kernels that compute, or those that move data."""
        found = dict.fromkeys(
            kernel.source for kernel in self.kernels if (kernel.processor == "TRISC") == computes
        )
        return "; ".join(found)


class DeviceCounts(BackendReport):
    """Takes what the emulated device of this process counts, for as long as it is open."""

    variable: ClassVar[str] = DEVICE_REPORT

    def __init__(self) -> None:
        self._taken = 0

    def take(self) -> list[ProgramCounts]:
        """The runs since the last call, in their order."""
        if not self.path.is_file():
            return []
        programs = json.loads(self.path.read_text("utf-8"))
        found = [_program(entry) for entry in programs[self._taken :]]
        self._taken = len(programs)
        return found


def _program(entry: Mapping[str, Any]) -> ProgramCounts:
    kernels = tuple(
        KernelCounts(
            kernel["kernel"],
            kernel["processor"],
            tuple(
                CoreCounts((core["noc"][0], core["noc"][1]), core["counters"])
                for core in kernel["places"]
            ),
        )
        for kernel in entry["kernels"]
    )
    return ProgramCounts(kernels, entry["run_seconds"], entry["total"])


def processor_cycles(
    kernel: KernelCounts, core: CoreCounts, fidelity: str, speed: Performance
) -> dict[str, int]:
    """The cycles that the processors of a core take at least for a kernel."""
    counted = core.counters
    if kernel.processor != "TRISC":
        moved = counted["noc_read_bytes"] + counted["noc_written_bytes"]
        return {kernel.processor: -(-moved // speed.noc_bytes)}
    tile = _TILE_BYTES // speed.unpacked_bytes
    product = speed.tile_product * FIDELITY_PASSES[fidelity.lower()]
    return {
        "TRISC_0": counted["unpacked_tiles"] * tile,
        "TRISC_1": (counted["matmul_tiles"] + counted["fpu_tiles"]) * product
        + counted["sfpu_tiles"] * (_TILE_ELEMENTS // speed.vector_lanes),
        "TRISC_2": counted["packed_tiles"] * tile,
    }


def longest_cycles(program: ProgramCounts, fidelity: str, speed: Performance) -> dict[str, int]:
    """The cycles of the slowest core, by processor."""
    found: dict[str, int] = {}
    for kernel in program.kernels:
        for core in kernel.cores:
            for name, cycles in processor_cycles(kernel, core, fidelity, speed).items():
                found[name] = max(found.get(name, 0), cycles)
    return found


def device_log(
    programs: Sequence[tuple[ProgramCounts, str]], arch: str, cores: int, speed: Performance
) -> str:
    """The text of `profile_log_device.csv` for programs with their fidelities."""
    megahertz = round(speed.clock / 1e6)
    lines = [f"ARCH: {arch}, CHIP_FREQ[MHz]: {megahertz}, Max Compute Cores: {cores}", _HEADER]
    start = 0
    for number, (program, fidelity) in enumerate(programs, 1):
        lines += _zones(program, fidelity, speed, start, number)
        start += max(longest_cycles(program, fidelity, speed).values(), default=0)
    return "\n".join(lines) + "\n"


def _zones(
    program: ProgramCounts, fidelity: str, speed: Performance, start: int, number: int
) -> Iterator[str]:
    """Begin and end of the kernels of a program on each core and processor."""
    for kernel in program.kernels:
        source = "" if "\n" in kernel.source else kernel.source.replace(",", ";")
        for core in kernel.cores:
            for name, cycles in processor_cycles(kernel, core, fidelity, speed).items():
                zone = f"{kernel.processor}-KERNEL"
                for phase, time in (("ZONE_START", start), ("ZONE_END", start + cycles)):
                    place = f"0,{core.noc[0]},{core.noc[1]},{name}"
                    yield f"{place},0,{time},0,{number},,,{zone},{phase},0,{source},"
