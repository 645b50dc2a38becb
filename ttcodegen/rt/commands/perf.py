"""`perf`: how long each op takes, and how long it would have to take."""

from __future__ import annotations

import csv
import io
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from ttcodegen.cost.roofline import Roofline, card_roofline, host_roofline
from ttcodegen.cost.work import Cost
from ttcodegen.diagnostics import CompileError
from ttcodegen.numerics.execution import Observation
from ttcodegen.optimizer.calls import call_in_file
from ttcodegen.optimizer.cost import CallCost, CostModel
from ttcodegen.rt.commands.artifacts import json_text
from ttcodegen.rt.commands.command import Command, FileResult
from ttcodegen.rt.commands.emitc import run_library
from ttcodegen.rt.commands.read import system_of
from ttcodegen.rt.commands.running import Progress, chosen_programs, program_inputs
from ttcodegen.rt.device_profile import DeviceCounts, ProgramCounts, device_log
from ttcodegen.rt.profiler_table import DeviceCall, OpCall, profiler_table
from ttcodegen.rt.trace import Span, Trace
from ttcodegen.runtime.executable import (
    ENDINGS,
    Executable,
    FlatbufferExecutable,
    TTMExecutable,
    TTNNExecutable,
    find_files,
    flatbuffer_beside,
    library_beside,
    open_executable,
    open_flatbuffer,
)
from ttcodegen.systems.description import ChipDescription, default_system
from ttcodegen.systems.performance import Performance, performance

COLUMNS: tuple[str, ...] = (
    "program",
    "index",
    "op",
    "location",
    "calls",
    "time_us",
    "time_share",
    "bytes",
    "flops",
    "bound",
    "roofline_share",
    "card_us",
    "estimated_us",
    "estimated_bound",
    "l1_bytes",
)
"""The columns of the table. Times, bytes and flops are those of all calls together."""


@dataclass
class OpTimes:
    """What was measured of an op."""

    program: str
    index: int
    op: str
    location: str | None
    cost: Cost
    """Of one call."""
    estimate: CallCost | None = None
    """What the model of cost says of one call of the library."""
    fidelity: str | None = None
    """Of a program of kernels."""
    counts: ProgramCounts | None = None
    """What the emulated device counted of one call of a program of kernels."""
    spans: list[tuple[float, float]] = field(default_factory=list[tuple[float, float]])
    """Begin and duration of each call, in seconds."""

    @property
    def seconds(self) -> float:
        """The time of all calls."""
        return sum(duration for _, duration in self.spans)


class Perf(Command):
    """Measures flatbuffers op by op, and shared objects function by function.

    Writes `perf/<file>/op_times.csv`, `ops_perf_results.csv` and `trace.json` into the folder of
    artifacts, and `profile_log_device.csv` if the emulated device ran programs of kernels.
    """

    name: ClassVar[str] = "perf"

    def execute(self) -> list[FileResult]:
        """A result for each file; its content are the rows of the table."""
        paths = find_files(self.arguments["binary"], ENDINGS)
        self._host = host_roofline()
        loops: int = self.arguments["loops"]
        self._progress = Progress(len(paths), loops, self.arguments["quiet"])
        results: list[FileResult] = []
        for path in paths:
            with self._progress.step(str(path)):
                results.append(self._measure(path))
        return results

    def _measure(self, path: Path) -> FileResult:
        kind = path.suffix.lstrip(".")
        try:
            executable = open_executable(path)
            try:
                chip = self._chip(executable)
                ops = [
                    op
                    for index in chosen_programs(self.arguments, executable)
                    for op in self._measured(executable, index)
                ]
            finally:
                executable.close()
        except CompileError as error:
            return self.failed(path, kind, error)
        card = card_roofline(chip)
        rows = _rows(ops, self._host, card)
        folder = f"perf/{self.artifact_folder(path)}"
        table = self.artifacts.write(f"{folder}/op_times.csv", _csv(rows))
        speed = performance(chip.arch)
        calls = profiler_table(_calls(ops, card, speed), chip.arch, chip.cores)
        results = self.artifacts.write(f"{folder}/ops_perf_results.csv", calls)
        trace = self.artifacts.write(f"{folder}/trace.json", json_text(_trace(path, ops).to_json()))
        files = {"csv": table, "perf_results": results, "trace": trace}
        programs = [(op.counts, op.fidelity) for op in ops if op.counts and op.fidelity]
        if programs:
            log = device_log(programs, chip.arch, chip.cores, speed)
            files["device_log"] = self.artifacts.write(f"{folder}/profile_log_device.csv", log)
        self._progress.wipe()
        self._report(path, rows, list(files.values()))
        content = {"ops": rows, **{name: str(file) for name, file in files.items()}}
        return FileResult(str(path), kind, content=content)

    def _chip(self, executable: Executable) -> ChipDescription:
        arch: str | None = self.arguments["arch"]
        flatbuffer = _flatbuffer_of(executable)
        if arch is not None or flatbuffer is None:
            return default_system(arch or "wormhole_b0").chip
        return system_of(flatbuffer.header).chip

    def _measured(self, executable: Executable, index: int) -> list[OpTimes]:
        inputs = program_inputs(self.arguments, executable, index).arrays
        # The first run is not measured: caches are cold, and what depends on weights alone is
        # computed in it.
        executable.run(index, inputs)
        if isinstance(executable, FlatbufferExecutable):
            chip = default_system(self.arguments["arch"] or system_of(executable.header).arch).chip
            clock = _OpClock(executable, CostModel(chip))
            for loop in range(self.arguments["loops"]):
                self._progress.loop(loop)
                clock.start()
                executable.run(index, inputs, clock.observe)
            return self._counted(executable, index, inputs, clock.ops())
        name = executable.programs[index].name
        flatbuffer = _flatbuffer_of(executable)
        cost = Cost(0, 0) if flatbuffer is None else flatbuffer.cost(name)
        whole = OpTimes(name, 0, "(whole program)", None, cost)
        for loop in range(self.arguments["loops"]):
            self._progress.loop(loop)
            start = time.perf_counter()
            executable.run(index, inputs)
            whole.spans.append((start, time.perf_counter() - start))
        return [whole]

    def _counted(
        self,
        flatbuffer: FlatbufferExecutable,
        index: int,
        inputs: Sequence[np.ndarray],
        ops: list[OpTimes],
    ) -> list[OpTimes]:
        """Adds what the emulated device counts in a run of the shared object that belongs to the
        file, if there is one."""
        library = library_beside(flatbuffer.path)
        launches = [op for op in ops if op.fidelity is not None]
        if not launches or library is None or self.arguments["host_only"]:
            return ops
        try:
            programs = _device_counts(flatbuffer, library, index, inputs)
        except CompileError as error:
            self.logger.warning(f"no counts of the emulated device: {error.render()}")
            return ops
        if len(programs) != len(launches):
            self.logger.warning(f"'{library}' runs other programs than '{flatbuffer.path}'")
            return ops
        for op, counted in zip(launches, programs, strict=True):
            op.counts = counted
        return ops

    def _report(self, path: Path, rows: Sequence[dict[str, Any]], files: Sequence[Path]) -> None:
        total = sum(row["time_us"] for row in rows)
        self.logger.info(f"{path}: {total / 1e3:.3f} ms")
        estimates = [row["estimated_us"] for row in rows if row["estimated_us"] is not None]
        if estimates:
            self.logger.info(f"  estimated for the card: {sum(estimates) / 1e3:.3f} ms")
        longest = sorted(rows, key=lambda row: -row["time_us"])[:10]
        for row in longest:
            where = f" at {row['location']}" if row["location"] else ""
            self.logger.info(
                f"  {row['time_share']:7.1%} {row['time_us'] / 1e3:10.3f} ms  {row['op']}{where}"
            )
        self.logger.info("\n".join(f"  {file}" for file in files))


class _OpClock:
    """Measures the ops of a run from one observation to the next."""

    def __init__(self, flatbuffer: FlatbufferExecutable, model: CostModel) -> None:
        self._model = model
        self._functions = {f.name: f for f in flatbuffer.functions}
        self._operations = {f.name: flatbuffer.operations(f) for f in flatbuffer.functions}
        self._flatbuffer = flatbuffer
        self._ops: dict[tuple[str, int], OpTimes] = {}
        self._indices: dict[int, int] = {}
        self._mark = 0.0

    def start(self) -> None:
        """A run begins. Its steps are objects of its own."""
        self._indices.clear()
        self._mark = time.perf_counter()

    def observe(self, observation: Observation) -> None:
        """An op ended. What runs inside a program of the device counts for the program."""
        now = time.perf_counter()
        begin = self._mark
        function, step = observation.function, observation.step
        if not self._operations[function.name]:
            return
        index = self._indices.get(id(step))
        if index is None:
            self._indices |= {id(s): i for i, s in enumerate(function.steps)}
            index = self._indices[id(step)]
        if step.name != "ttnn.deallocate":
            self._times(function.name, index).spans.append((begin, now - begin))
        # What the observer takes itself is nobody's time.
        self._mark = time.perf_counter()

    def _times(self, program: str, index: int) -> OpTimes:
        key = (program, index)
        if key not in self._ops:
            operation = self._operations[program][index]
            name, cost = self._flatbuffer.work(program, operation)
            estimate = None
            if isinstance(self._flatbuffer, TTNNExecutable) and operation.callee is None:
                estimate = self._model.cost(call_in_file(self._functions[program], operation))
            times = OpTimes(program, index, name, operation.location, cost, estimate)
            if isinstance(self._flatbuffer, TTMExecutable):
                launched = self._flatbuffer.launched(operation)
                times.fidelity = None if launched is None else launched.fidelity
            self._ops[key] = times
        return self._ops[key]

    def ops(self) -> list[OpTimes]:
        """What was measured, in the order of the first calls."""
        return list(self._ops.values())


def _device_counts(
    flatbuffer: FlatbufferExecutable, library: Path, index: int, inputs: Sequence[np.ndarray]
) -> list[ProgramCounts]:
    """The programs of kernels that a shared object runs for a program of a flatbuffer.

    Raises:
        CompileError: if the shared object cannot be run, or is of another program.
    """
    executable = open_executable(library)
    try:
        with DeviceCounts() as counts:
            # What depends on weights alone is computed in the first run.
            run_library(flatbuffer, executable, index, inputs)
            counts.take()
            run_library(flatbuffer, executable, index, inputs)
            return counts.take()
    finally:
        executable.close()


def _flatbuffer_of(executable: Executable) -> FlatbufferExecutable | None:
    if isinstance(executable, FlatbufferExecutable):
        return executable
    path = flatbuffer_beside(executable.path)
    return None if path is None else open_flatbuffer(path)


def _rows(ops: Sequence[OpTimes], host: Roofline, card: Roofline) -> list[dict[str, Any]]:
    total = sum(op.seconds for op in ops) or 1.0
    rows: list[dict[str, Any]] = []
    for op in ops:
        calls, seconds = len(op.spans), op.seconds
        least = host.least_seconds(op.cost) * calls
        values = (
            op.program,
            op.index,
            op.op,
            op.location,
            calls,
            round(seconds * 1e6, 3),
            round(seconds / total, 6),
            op.cost.moved * calls,
            op.cost.flops * calls,
            card.bound(op.cost),
            round(least / seconds, 6) if seconds > 0 else None,
            round(card.least_seconds(op.cost) * calls * 1e6, 3),
            None if op.estimate is None else round(op.estimate.seconds * calls * 1e6, 3),
            None if op.estimate is None else op.estimate.bound,
            None if op.estimate is None else op.estimate.l1_bytes,
        )
        rows.append(dict(zip(COLUMNS, values, strict=True)))
    return rows


def _calls(ops: Sequence[OpTimes], card: Roofline, speed: Performance) -> list[OpCall]:
    return [
        OpCall(
            op.op,
            op.location,
            begin,
            duration,
            op.cost.flops / card.flops,
            op.cost.moved / card.bandwidth,
            None
            if op.counts is None or op.fidelity is None
            else DeviceCall(op.counts, op.fidelity, speed),
        )
        for op in ops
        for begin, duration in op.spans
    ]


def _csv(rows: Sequence[dict[str, Any]]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _trace(path: Path, ops: Sequence[OpTimes]) -> Trace:
    trace = Trace()
    origin = min((begin for op in ops for begin, _ in op.spans), default=0.0)
    for op in ops:
        details = {"location": op.location, "bytes": op.cost.moved, "flops": op.cost.flops}
        spans = [
            Span(op.op, "op", begin - origin, duration, details) for begin, duration in op.spans
        ]
        trace.add(path.name, op.program, spans)
    return trace
