"""Device profile of the emulated device, and traces in the Trace Event Format."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from ttcodegen.conversions.mesh import EXCHANGE_KERNEL
from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.dialects.ttcore.tile import TILE_SIDE
from ttcodegen.layout.placements import tile_bytes_of
from ttcodegen.runtime.backend_reports import DEVICE_REPORT, BackendReport
from ttcodegen.systems.cards import FIDELITY_PASSES, Performance

# Traces in the Trace Event Format, which Perfetto and chrome://tracing open.
#
# Source: the document "Trace Event Format" of the Chromium project: an object with `traceEvents`;
# complete events have the phase X, a begin and a duration in microseconds; metadata events have
# the phase M.


@dataclass(frozen=True)
class Span:
    """Something that took time."""

    name: str
    category: str
    begin: float
    duration: float
    """Both in seconds."""
    details: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass
class Trace:
    """Spans in tracks, a process with threads for each file."""

    processes: dict[str, dict[str, list[Span]]] = field(
        default_factory=dict[str, dict[str, list[Span]]]
    )

    def add(self, process: str, thread: str, spans: Sequence[Span]) -> None:
        """Adds spans to a track."""
        self.processes.setdefault(process, {}).setdefault(thread, []).extend(spans)

    def to_json(self) -> dict[str, Any]:
        """The content of the file."""
        events: list[dict[str, Any]] = []
        for pid, (process, threads) in enumerate(self.processes.items(), start=1):
            events.append(_name("process_name", process, pid))
            for tid, (thread, spans) in enumerate(threads.items(), start=1):
                events.append(_name("thread_name", thread, pid, tid))
                events += [_event(span, pid, tid) for span in spans]
        return {"traceEvents": events, "displayTimeUnit": "ms"}


def _name(kind: str, name: str, pid: int, tid: int = 0) -> dict[str, Any]:
    return {"ph": "M", "name": kind, "pid": pid, "tid": tid, "args": {"name": name}}


def _event(span: Span, pid: int, tid: int) -> dict[str, Any]:
    return {
        "ph": "X",
        "name": span.name,
        "cat": span.category,
        "ts": round(span.begin * 1e6, 3),
        "dur": round(span.duration * 1e6, 3),
        "pid": pid,
        "tid": tid,
        "args": dict(span.details),
    }


# What the emulated device counts of the programs that it runs, in the form of tt-metal's device
# profiler.
#
# The counts are exact. The emulated device has no clock: cycles are what a card takes at least
# for what was counted, one program after the other from 0 on.
#
# Source: dumpDeviceResultsToCSV of tt_metal/impl/profiler/profiler.cpp in tt-metal.

_TILE_BYTES = tile_bytes_of(DataType.BFLOAT16)
"""Whatever the format of a tile: the counts do not have it."""
_TILE_ELEMENTS = TILE_SIDE * TILE_SIDE
DEVICE_LOG_COLUMNS = (
    "PCIe slot, core_x, core_y, RISC processor type, timer_id, time[cycles since reset], data, "
    "run host ID, trace id, trace id counter, zone name, type, source line, source file, meta data"
)


@dataclass(frozen=True)
class ZoneCounts:
    """A part of a kernel that has a name (DeviceZoneScopedN)."""

    name: str
    line: int
    """Of the kernel's source."""
    begin: Mapping[str, int]
    end: Mapping[str, int]
    """Counts of the core for the kernel at begin and end; zeros may be missing."""


@dataclass(frozen=True)
class CoreCounts:
    """Counts of one core for a kernel."""

    noc: tuple[int, int]
    """Its coordinates on the NoC."""
    counters: Mapping[str, int]
    zones: tuple[ZoneCounts, ...] = ()
    """In the order in which they began."""
    lost_zones: int = 0
    """Zones after those for which the device has room."""


@dataclass(frozen=True)
class KernelCounts:
    """A kernel of a program."""

    source: str
    """As given to CreateKernel."""
    processor: str
    """BRISC, NCRISC or TRISC."""
    cores: tuple[CoreCounts, ...]
    fidelity: str = ""
    """Of the matrix engine, if it computes."""

    @property
    def file(self) -> str:
        """Its source, if that is a file."""
        return "" if "\n" in self.source else os.path.normpath(self.source)


@dataclass(frozen=True)
class ProgramCounts:
    """One run of a program."""

    kernels: tuple[KernelCounts, ...]
    seconds: float
    """Seconds that it took here."""
    total: Mapping[str, int]
    chip: int = 0
    """On a mesh the chip that ran it."""

    @property
    def exchanges(self) -> bool:
        """True if it is no launch of a program, but what chips exchange in between."""
        return any(Path(kernel.source).name == EXCHANGE_KERNEL for kernel in self.kernels)

    @property
    def cores(self) -> int:
        """Number of cores that it ran on."""
        return len({core.noc for kernel in self.kernels for core in kernel.cores})

    @property
    def fidelity(self) -> str:
        """Of the matrix engine."""
        return next((kernel.fidelity for kernel in self.kernels if kernel.fidelity), "hifi4")

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


def counts_of_second_run(
    first: Callable[[], object], second: Callable[[], object]
) -> list[ProgramCounts]:
    """Counts of the emulated device in a run, without the work on weights alone.

    Args:
        first: the run that computes what depends on weights alone. What was reported in the process
            before is reported with it once more.
        second: the run that is counted. It is left out if the first one ran no programs of kernels.
    """
    with DeviceCounts() as counts:
        first()
        if not counts.take():
            return []
        second()
        return counts.take()


def counts_of_launches(
    programs: Sequence[ProgramCounts], launches: int
) -> list[ProgramCounts] | None:
    """Counts of each launch; of a mesh, whose devices run a program one after the other, those of
    its first device. None if the programs are those of other launches."""
    launched = [program for program in programs if not program.exchanges]
    chips, rest = divmod(len(launched), launches)
    if chips == 0 or rest:
        return None
    firsts = launched[::chips]
    for place, program in enumerate(launched):
        first = firsts[place // chips]
        if [kernel.source for kernel in program.kernels] != [k.source for k in first.kernels]:
            return None
    return list(firsts)


def _program(entry: Mapping[str, Any]) -> ProgramCounts:
    kernels = tuple(
        KernelCounts(
            kernel["kernel"],
            kernel["processor"],
            tuple(map(_core, kernel["places"])),
            kernel.get("fidelity", ""),
        )
        for kernel in entry["kernels"]
    )
    chip = entry.get("chip", 0)
    return ProgramCounts(kernels, entry["run_seconds"], entry["total"], chip)


def _core(entry: Mapping[str, Any]) -> CoreCounts:
    zones = tuple(
        ZoneCounts(zone["name"], zone["line"], zone["begin"], zone["end"])
        for zone in entry.get("zones", ())
    )
    x, y = entry["noc"]
    return CoreCounts((x, y), entry["counters"], zones, entry.get("lost_zones", 0))


def processor_cycles(
    processor: str, counted: Mapping[str, int], fidelity: str, speed: Performance
) -> dict[str, int]:
    """The cycles that the processors of a core take at least for what a kernel did there."""

    def count(*names: str) -> int:
        return sum(counted.get(name, 0) for name in names)

    if processor != "TRISC":
        moved = count("noc_read_bytes", "noc_written_bytes")
        return {processor: -(-moved // speed.noc_bytes)}
    tile = _TILE_BYTES // speed.unpacked_bytes
    product = speed.tile_product * FIDELITY_PASSES[fidelity.lower()]
    return {
        "TRISC_0": count("unpacked_tiles") * tile,
        "TRISC_1": count("matmul_tiles", "fpu_tiles") * product
        + count("sfpu_tiles") * (_TILE_ELEMENTS // speed.vector_lanes),
        "TRISC_2": count("packed_tiles") * tile,
    }


def longest_cycles(program: ProgramCounts, fidelity: str, speed: Performance) -> dict[str, int]:
    """The cycles of the slowest core, by processor."""
    found: dict[str, int] = {}
    for kernel in program.kernels:
        for core in kernel.cores:
            cycles = processor_cycles(kernel.processor, core.counters, fidelity, speed)
            for name, count in cycles.items():
                found[name] = max(found.get(name, 0), count)
    return found


@dataclass(frozen=True)
class ProfiledZone:
    """A kernel on a processor of a core, or a part of it, with its begin and end in cycles."""

    program: int
    """The number of the run of a program, from 1 on."""
    chip: int
    noc: tuple[int, int]
    processor: str
    name: str
    begin: int
    end: int
    file: str
    line: int = 0
    is_kernel: bool = False


def profiled_zones(
    programs: Sequence[tuple[ProgramCounts, str]], speed: Performance
) -> Iterator[ProfiledZone]:
    """The zones of programs with their fidelities, one program after the other; a kernel is
    before its parts."""
    start = 0
    for number, (program, fidelity) in enumerate(programs, 1):
        for kernel in program.kernels:
            for core in kernel.cores:
                yield from _zones_of((number, program.chip), kernel, core, fidelity, speed, start)
        start += max(longest_cycles(program, fidelity, speed).values(), default=0)


def _zones_of(
    run: tuple[int, int],
    kernel: KernelCounts,
    core: CoreCounts,
    fidelity: str,
    speed: Performance,
    start: int,
) -> Iterator[ProfiledZone]:
    def cycles(counted: Mapping[str, int]) -> dict[str, int]:
        return processor_cycles(kernel.processor, counted, fidelity, speed)

    times = [(zone, cycles(zone.begin), cycles(zone.end)) for zone in core.zones]
    for processor, end in cycles(core.counters).items():
        place = *run, core.noc, processor
        whole = f"{kernel.processor}-KERNEL"
        yield ProfiledZone(*place, whole, start, start + end, kernel.file, is_kernel=True)
        for zone, first, last in times:
            first_cycle, last_cycle = start + first[processor], start + last[processor]
            yield ProfiledZone(*place, zone.name, first_cycle, last_cycle, kernel.file, zone.line)


def device_log(
    programs: Sequence[tuple[ProgramCounts, str]], arch: str, cores: int, speed: Performance
) -> str:
    """The text of `profile_log_device.csv` for programs with their fidelities."""
    megahertz = round(speed.clock / 1e6)
    lines = [
        f"ARCH: {arch}, CHIP_FREQ[MHz]: {megahertz}, Max Compute Cores: {cores}",
        DEVICE_LOG_COLUMNS,
    ]
    for zone in profiled_zones(programs, speed):
        place = f"{zone.chip},{zone.noc[0]},{zone.noc[1]},{zone.processor}"
        name, file = (text.replace(",", ";") for text in (zone.name, zone.file))
        lines += [
            f"{place},0,{time},0,{zone.program},,,{name},{phase},{zone.line},{file},"
            for phase, time in (("ZONE_START", zone.begin), ("ZONE_END", zone.end))
        ]
    return "\n".join(lines) + "\n"


def add_device_tracks(
    trace: Trace,
    process: str,
    programs: Sequence[tuple[ProgramCounts, str]],
    speed: Performance,
) -> None:
    """Adds a track for each processor of each core, in the time that the counts need at least."""
    tracks: dict[str, list[Span]] = {}
    for zone in profiled_zones(programs, speed):
        name = Path(zone.file).name if zone.is_kernel and zone.file else zone.name
        begin, duration = zone.begin / speed.clock, (zone.end - zone.begin) / speed.clock
        category = "kernel" if zone.is_kernel else "zone"
        details = {"file": zone.file, "line": zone.line, "cycles": zone.end - zone.begin}
        track = f"core {zone.noc[0]}-{zone.noc[1]} {zone.processor}"
        tracks.setdefault(track, []).append(Span(name, category, begin, duration, details))
    for track, spans in tracks.items():
        trace.add(process, track, spans)


def zone_rows(
    programs: Sequence[tuple[ProgramCounts, str]], speed: Performance
) -> list[dict[str, Any]]:
    """Time of the named zones of kernels: how often each began, over all cores, and the cycles of
    the core and processor that spent most in it."""
    cycles: dict[tuple[str, str, int], Counter[tuple[object, ...]]] = {}
    times: Counter[tuple[str, str, int]] = Counter()
    for zone in profiled_zones(programs, speed):
        if not zone.is_kernel:
            key = zone.name, zone.file, zone.line
            place = zone.program, zone.noc, zone.processor
            cycles.setdefault(key, Counter())[place] += zone.end - zone.begin
            # The three processors of a compute kernel begin a zone together.
            times[key] += zone.processor not in ("TRISC_1", "TRISC_2")
    return [
        {
            "zone": name,
            "file": file,
            "line": line,
            "times": times[name, file, line],
            "cycles": max(places.values()),
        }
        for (name, file, line), places in cycles.items()
    ]
