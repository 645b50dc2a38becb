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
from ttcodegen.dialects.ttcore.tile import TILE_ELEMENTS
from ttcodegen.optimizer.call import BF16_TILE
from ttcodegen.runtime.backend_reports import DEVICE_REPORT, BackendReport
from ttcodegen.systems.cards import FIDELITY_PASSES, Performance

# Traces in the Trace Event Format, which Perfetto and chrome://tracing open.
#
# Source: the document "Trace Event Format" of the Chromium project: an object with `traceEvents`;
# complete events have the phase X, a begin and a duration in microseconds; metadata events have
# the phase M.


@dataclass(frozen=True)
class Span:
    """Time span with a name."""

    name: str
    category: str
    begin: float
    duration: float
    """Duration in seconds, as `begin`."""
    details: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass
class Trace:
    """Spans in tracks: a process with threads per file."""

    processes: dict[str, dict[str, list[Span]]] = field(
        default_factory=dict[str, dict[str, list[Span]]]
    )

    def add(self, process: str, thread: str, spans: Sequence[Span]) -> None:
        """Adds spans to a track."""
        self.processes.setdefault(process, {}).setdefault(thread, []).extend(spans)

    def to_json(self) -> dict[str, Any]:
        """Content of the trace file."""
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

DEVICE_LOG_COLUMNS = (
    "PCIe slot, core_x, core_y, RISC processor type, timer_id, time[cycles since reset], data, "
    "run host ID, trace id, trace id counter, zone name, type, source line, source file, meta data"
)


@dataclass(frozen=True)
class ZoneCounts:
    """Named zone of a kernel (DeviceZoneScopedN)."""

    name: str
    line: int
    """Line in the kernel's source."""
    begin: Mapping[str, int]
    end: Mapping[str, int]
    """Core's counters for the kernel at begin and end of the zone; zeros may be missing."""


@dataclass(frozen=True)
class CoreCounts:
    """Counters of one core for a kernel."""

    noc: tuple[int, int]
    """NoC coordinates of the core."""
    counters: Mapping[str, int]
    zones: tuple[ZoneCounts, ...] = ()
    """Zones in order of their begin."""
    lost_zones: int = 0
    """Number of zones that did not fit the device's buffer."""


@dataclass(frozen=True)
class KernelCounts:
    """Kernel of a program."""

    source: str
    """Source as given to CreateKernel."""
    processor: str
    """Processor: BRISC, NCRISC or TRISC."""
    cores: tuple[CoreCounts, ...]
    fidelity: str = ""
    """Matrix engine's fidelity, for compute kernels."""

    @property
    def file(self) -> str:
        """Source file, if the source is one."""
        return "" if "\n" in self.source else os.path.normpath(self.source)


@dataclass(frozen=True)
class ProgramCounts:
    """One run of a program."""

    kernels: tuple[KernelCounts, ...]
    seconds: float
    """Measured seconds on this machine."""
    total: Mapping[str, int]
    chip: int = 0
    """Device index on a mesh."""

    @property
    def exchanges(self) -> bool:
        """Returns whether it is a data exchange of devices, not a program launch."""
        return any(Path(kernel.source).name == EXCHANGE_KERNEL for kernel in self.kernels)

    @property
    def cores(self) -> int:
        """Number of cores that ran it."""
        return len({core.noc for kernel in self.kernels for core in kernel.cores})

    @property
    def fidelity(self) -> str:
        """Fidelity of the matrix engine."""
        return next((kernel.fidelity for kernel in self.kernels if kernel.fidelity), "hifi4")

    def sources(self, computes: bool) -> str:
        """Sources of the compute kernels, or of the data movement kernels."""
        found = dict.fromkeys(
            kernel.source for kernel in self.kernels if (kernel.processor == "TRISC") == computes
        )
        return "; ".join(found)


class DeviceCounts(BackendReport):
    """Collects the emulated device's counts in this process while it is open."""

    variable: ClassVar[str] = DEVICE_REPORT

    def __init__(self) -> None:
        self._taken = 0

    def take(self) -> list[ProgramCounts]:
        """Returns the runs since the last call, in order."""
        if not self.path.is_file():
            return []
        programs = json.loads(self.path.read_text("utf-8"))
        found = [_program(entry) for entry in programs[self._taken :]]
        self._taken = len(programs)
        return found


def counts_of_second_run(
    first: Callable[[], object], second: Callable[[], object]
) -> list[ProgramCounts]:
    """Counts of a run on the emulated device without const-eval.

    Args:
        first: the run that includes const-eval; counts of earlier work in the process are discarded
            with it.
        second: the counted run. It is skipped if the first one ran no kernels.
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
    """Counts of each launch; on a mesh, those of the first device.

    None if the programs do not match the launches. Devices of a mesh run a program one after the
    other.
    """
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
    """Lower bound of the cycles of a core's processors for a kernel's counters."""

    def count(*names: str) -> int:
        return sum(counted.get(name, 0) for name in names)

    if processor != "TRISC":
        moved = count("noc_read_bytes", "noc_written_bytes")
        return {processor: -(-moved // speed.noc_bytes)}
    tile = BF16_TILE // speed.unpacked_bytes
    product = speed.tile_product * FIDELITY_PASSES[fidelity.lower()]
    return {
        "TRISC_0": count("unpacked_tiles") * tile,
        "TRISC_1": count("matmul_tiles", "fpu_tiles") * product
        + count("sfpu_tiles") * (TILE_ELEMENTS // speed.vector_lanes),
        "TRISC_2": count("packed_tiles") * tile,
    }


def longest_cycles(program: ProgramCounts, fidelity: str, speed: Performance) -> dict[str, int]:
    """Cycles of the slowest core, by processor."""
    found: dict[str, int] = {}
    for kernel in program.kernels:
        for core in kernel.cores:
            cycles = processor_cycles(kernel.processor, core.counters, fidelity, speed)
            for name, count in cycles.items():
                found[name] = max(found.get(name, 0), count)
    return found


@dataclass(frozen=True)
class ProfiledZone:
    """Kernel on a core's processor, or a zone of it, with begin and end in cycles."""

    program: int
    """Number of the program's run, counted from 1."""
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
    """Zones of consecutive programs with their fidelities; a kernel precedes its zones."""
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
    """Text of `profile_log_device.csv` for programs with their fidelities."""
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
    """Adds a track per processor of each core, with the counts' lower bound as time."""
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
    """Rows of kernel zones: begin counts over all cores, and cycles of the slowest core's
    processor."""
    cycles: dict[tuple[str, str, int], Counter[tuple[object, ...]]] = {}
    times: Counter[tuple[str, str, int]] = Counter()
    for zone in profiled_zones(programs, speed):
        if not zone.is_kernel:
            key = zone.name, zone.file, zone.line
            place = zone.program, zone.noc, zone.processor
            cycles.setdefault(key, Counter())[place] += zone.end - zone.begin
            # The three processors of a compute kernel share a zone: count it once.
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
