"""The table of op times in the columns of tt-metal's profiler, for tools that read its reports.

Source: the header of tools/tracy/process_ops_logs.py in tt-metal; `LOC` is what ttrt adds to it.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ttcodegen.rt.device_profile import ProgramCounts, longest_cycles
from ttcodegen.systems.performance import Performance

COLUMNS: tuple[str, ...] = (
    "OP CODE",
    "OP TYPE",
    "GLOBAL CALL COUNT",
    "DEVICE ID",
    "DEVICE ARCH",
    "MATH FIDELITY",
    "CORE COUNT",
    "AVAILABLE WORKER CORE COUNT",
    "HOST START TS",
    "HOST END TS",
    "HOST DURATION [ns]",
    "OP TO OP LATENCY [ns]",
    "DEVICE FW DURATION [ns]",
    "DEVICE KERNEL DURATION [ns]",
    "DEVICE BRISC KERNEL DURATION [ns]",
    "DEVICE NCRISC KERNEL DURATION [ns]",
    "DEVICE TRISC0 KERNEL DURATION [ns]",
    "DEVICE TRISC1 KERNEL DURATION [ns]",
    "DEVICE TRISC2 KERNEL DURATION [ns]",
    "COMPUTE KERNEL SOURCE",
    "DATA MOVEMENT KERNEL SOURCE",
    "PM IDEAL [ns]",
    "PM COMPUTE [ns]",
    "PM BANDWIDTH [ns]",
    "NOC UTIL (%)",
    "DRAM BW UTIL (%)",
    "LOC",
)
"""In the order of the profiler. Those that only a card can fill are empty, and those of the device
where no program of kernels ran."""


@dataclass(frozen=True)
class OpCall:
    """A call of an op: when it began and how long it took here, and what a card would need."""

    name: str
    location: str | None
    begin: float
    """In seconds, as of `time.perf_counter`."""
    duration: float
    card_compute: float
    """The seconds that the arithmetic takes a card at least."""
    card_memory: float
    """The seconds that the bytes take a card at least."""
    device: DeviceCall | None = None
    """What the emulated device counted, of a program of kernels."""


@dataclass(frozen=True)
class DeviceCall:
    """A run of a program of kernels."""

    counts: ProgramCounts
    fidelity: str
    speed: Performance

    def columns(self) -> dict[str, object]:
        """What the counts fill of the columns."""
        cycles = longest_cycles(self.counts, self.fidelity, self.speed)
        longest = max(cycles.values(), default=0)
        durations = {
            f"DEVICE {name.replace('_', '')} KERNEL DURATION [ns]": self._time(cycles[name])
            for name in cycles
        }
        total, seconds = self.counts.total, longest / self.speed.clock
        moved = total["noc_read_bytes"] + total["noc_written_bytes"]
        dram = total["dram_read_bytes"] + total["dram_written_bytes"]
        # Each core has two networks.
        room = 2 * self.counts.cores * self.speed.noc_bytes * longest
        return {
            "OP TYPE": "tt_dnn_device",
            "MATH FIDELITY": self.fidelity,
            "CORE COUNT": self.counts.cores,
            "DEVICE FW DURATION [ns]": self._time(longest),
            "DEVICE KERNEL DURATION [ns]": self._time(longest),
            **durations,
            "COMPUTE KERNEL SOURCE": self.counts.sources(computes=True),
            "DATA MOVEMENT KERNEL SOURCE": self.counts.sources(computes=False),
            "NOC UTIL (%)": _percentage(moved, room),
            "DRAM BW UTIL (%)": _percentage(dram, self.speed.dram_bandwidth * seconds),
        }

    def _time(self, cycles: int) -> int:
        return _nanoseconds(cycles / self.speed.clock)


def _percentage(part: float, whole: float) -> object:
    return round(100 * part / whole, 1) if whole else ""


def profiler_table(calls: Sequence[OpCall], arch: str, cores: int) -> str:
    """The text of the file: a row for each call, in the order in which they began."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, restval="", lineterminator="\n")
    writer.writeheader()
    end: int | None = None
    for number, call in enumerate(sorted(calls, key=lambda call: call.begin), 1):
        start = _nanoseconds(call.begin)
        row: Mapping[str, object] = {
            "OP CODE": call.name,
            "OP TYPE": "host",
            "GLOBAL CALL COUNT": number,
            "DEVICE ID": 0,
            "DEVICE ARCH": arch,
            "AVAILABLE WORKER CORE COUNT": cores,
            "HOST START TS": start,
            "HOST END TS": start + _nanoseconds(call.duration),
            "HOST DURATION [ns]": _nanoseconds(call.duration),
            "OP TO OP LATENCY [ns]": "" if end is None else max(start - end, 0),
            "PM IDEAL [ns]": _nanoseconds(max(call.card_compute, call.card_memory)),
            "PM COMPUTE [ns]": _nanoseconds(call.card_compute),
            "PM BANDWIDTH [ns]": _nanoseconds(call.card_memory),
            "LOC": call.location or "",
            **({} if call.device is None else call.device.columns()),
        }
        writer.writerow(row)
        end = start + _nanoseconds(call.duration)
    return text.getvalue()


def _nanoseconds(seconds: float) -> int:
    return round(seconds * 1e9)
