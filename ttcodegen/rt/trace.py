"""Traces in the Trace Event Format, which Perfetto and chrome://tracing open.

Source: the document "Trace Event Format" of the Chromium project: an object with `traceEvents`;
complete events have the phase X, a begin and a duration in microseconds; metadata events have the
phase M.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


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
