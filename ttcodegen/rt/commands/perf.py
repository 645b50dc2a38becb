"""`perf`: measured and estimated times of ops."""

from __future__ import annotations

import csv
import io
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from ttcodegen.cost import Roofline, card_roofline, host_roofline
from ttcodegen.flatbuffer.system import system_of
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.optimizer.cost.calls import CostModel
from ttcodegen.rt.card_report import CardCall, card_report
from ttcodegen.rt.commands.check import given_system
from ttcodegen.rt.commands.command import (
    Command,
    FileResult,
    Progress,
    build_as_it_is,
    chosen_programs,
    flatbuffer_of_project,
    json_text,
    program_inputs,
)
from ttcodegen.rt.commands.emitc import run_library
from ttcodegen.rt.device_profile import (
    ProgramCounts,
    Span,
    Trace,
    add_device_tracks,
    counts_of_launches,
    counts_of_second_run,
    device_log,
    zone_rows,
)
from ttcodegen.rt.edit_gains import (
    OpEdits,
    OpPlaces,
    build_as_generated,
    is_edited,
    table_lines,
    with_gains,
)
from ttcodegen.rt.op_times import (
    DeviceCall,
    KnownOps,
    LibraryRun,
    OpCall,
    OpClock,
    OpTimes,
    profiler_table,
    times_of_calls,
)
from ttcodegen.runtime.backend_reports import CallReport
from ttcodegen.runtime.executable import (
    ENDINGS,
    Executable,
    FlatbufferExecutable,
    LibraryExecutable,
    TTNNExecutable,
    find_files,
    flatbuffer_beside,
    library_beside,
    open_executable,
    open_flatbuffer,
)
from ttcodegen.systems.cards import Performance, default_machine, performance_of
from ttcodegen.systems.description import ChipDescription

COLUMNS: tuple[str, ...] = (
    "program",
    "index",
    "op",
    "name",
    "line",
    "location",
    "calls",
    "time_us",
    "processor_us",
    "time_share",
    "bytes",
    "flops",
    "bound",
    "roofline_share",
    "card_us",
    "estimated_us",
    "estimated_bound",
    "l1_bytes",
    "emulated_us",
    "link_bytes",
    "before_us",
    "estimated_before_us",
    "edit",
)
"""Columns of the table.

Calls, times, bytes and flops are means over the measured runs. `name` is the op's name and C++
variable, `line` its position. The last three are for edited projects.
"""


class Perf(Command):
    """Measures flatbuffers by op, and shared objects by their ttnn calls.

    Calls are attributed to the ops of the flatbuffer, if there is one. A project is built first; an
    edited one is also measured as generated. Writes `perf/<file>/op_times.csv`,
    `ops_perf_results.csv` and `trace.json` into the folder of artifacts, and
    `profile_log_device.csv` if the emulated device ran kernels.
    """

    name: ClassVar[str] = "perf"

    def execute(self) -> list[FileResult]:
        """Returns a result per file, whose content is the table's rows."""
        paths = self._files(self.arguments["binary"])
        self._host = host_roofline()
        loops: int = self.arguments["loops"]
        self._progress = Progress(len(paths), loops, self.arguments["quiet"])
        results: list[FileResult] = []
        for path in paths:
            with self._progress.step(str(path)):
                results.append(self._measure(path))
        return results

    def _files(self, binary: Path) -> list[Path]:
        """Measured files; for a project, its current C++."""
        flatbuffer = flatbuffer_of_project(binary)
        if flatbuffer is None:
            return find_files(binary, ENDINGS)
        library = build_as_it_is(binary)
        # Kernels are counted by what launches them in the flatbuffer.
        return [library] if flatbuffer.suffix == ".ttnn" else [flatbuffer, library]

    def _measure(self, path: Path) -> FileResult:
        kind = path.suffix.lstrip(".")
        self._launched: list[ProgramCounts] = []
        """Emulated device's counts for the programs of a shared object."""
        try:
            executable = open_executable(path)
            try:
                chip = self._chip(executable)
                self._places = OpPlaces(flatbuffer_of(executable))
                self._edits = edits_of(executable, self._chip(executable), self._places)
                programs = chosen_programs(self.arguments, executable)
                ops = [op for index in programs for op in self._measured(executable, index)]
                before = self._as_generated(executable, programs)
                has_launches = isinstance(executable, LibraryExecutable) or any(
                    op.fidelity is not None for op in ops
                )
            finally:
                executable.close()
        except CompileError as error:
            return self.failed(path, kind, error)
        if self.arguments["host_only"] and not has_launches:
            self.logger.info(f"note: --host-only has no effect: '{path}' has no device programs")
        card = card_roofline(chip)
        loops: int = self.arguments["loops"]
        rows = rows_of_ops(ops, self._host, card, self._places, loops)
        if self._edits is not None:
            rows = with_gains(rows, before, self._edits, self._places, loops)
        folder = f"perf/{self.artifact_folder(path)}"
        table = self.artifacts.write(f"{folder}/op_times.csv", _csv(rows))
        speed = performance_of(chip)
        calls = profiler_table(_calls(ops, card, speed), chip.arch, chip.cores)
        results = self.artifacts.write(f"{folder}/ops_perf_results.csv", calls)
        trace = _trace(path, ops)
        programs = [(op.counts, op.fidelity) for op in ops if op.counts and op.fidelity]
        programs += [(counts, counts.fidelity) for counts in self._launched]
        add_device_tracks(trace, f"{path.name} on the device", programs, speed)
        written = self.artifacts.write(f"{folder}/trace.json", json_text(trace.to_json()))
        files = {"csv": table, "perf_results": results, "trace": written}
        for name, listed in (("card", ops), ("card_generated", before)):
            if any(op.library_call for op in listed):
                report = f"{folder}/{name.replace('_', '-')}"
                files[name] = self._card_report(report, listed, chip, speed)
        if programs:
            log = device_log(programs, chip.arch, chip.cores, speed)
            files["device_log"] = self.artifacts.write(f"{folder}/profile_log_device.csv", log)
        self._progress.wipe()
        zones = zone_rows(programs, speed)
        self._report(path, rows, zones, list(files.values()))
        self._warn_of_lost_zones(counts for counts, _ in programs)
        content = {"ops": rows, **{name: str(file) for name, file in files.items()}}
        if zones:
            content["zones"] = zones
        return FileResult(str(path), kind, content=content)

    def _card_report(
        self, folder: str, ops: Sequence[OpTimes], chip: ChipDescription, speed: Performance
    ) -> Path:
        """Writes the estimate as a profiler report; returns its folder."""
        words = {} if self._edits is None or folder.endswith("generated") else self._edits.words
        calls: list[CardCall] = []
        for op in ops:
            if op.library_call is None or op.estimate is None:
                continue
            name = self._places.name(op.program, op.index)
            line = self._places.line(op.program, op.index)
            edit = None if op.index is None else words.get((op.program, op.index))
            call = CardCall(op.library_call, op.estimate, op.location, name, line, edit)
            calls += [call] * max(len(op.spans) // self.arguments["loops"], 1)
        report = card_report(calls, chip, speed)
        paths = [self.artifacts.write(f"{folder}/{name}", text) for name, text in report.items()]
        return paths[0].parent

    def _chip(self, executable: Executable) -> ChipDescription:
        given = given_system(self.arguments)
        return chip_of(executable) if given is None else given[1].chip

    def _as_generated(self, executable: Executable, programs: Sequence[int]) -> list[OpTimes]:
        """Measurements of an edited project without its edits."""
        if self._edits is None:
            return []
        flatbuffer = flatbuffer_of(executable)
        assert flatbuffer is not None
        known = KnownOps(flatbuffer, CostModel(self._chip(flatbuffer)))
        library = open_executable(build_as_generated(flatbuffer.path.absolute().parent))
        assert isinstance(library, LibraryExecutable)
        found: list[OpTimes] = []
        try:
            for index in programs:
                inputs = program_inputs(self.arguments, executable, index).arrays
                library.run(index, inputs)
                found += times_of_library(library, index, inputs, known, self.arguments["loops"])
        finally:
            library.close()
        return found

    def _measured(self, executable: Executable, index: int) -> list[OpTimes]:
        inputs = program_inputs(self.arguments, executable, index).arrays
        # The first run is not measured: caches are cold, and what depends on weights alone is
        # computed in it.
        if isinstance(executable, FlatbufferExecutable):
            executable.run(index, inputs)
            clock = OpClock(self._known_ops(executable))
            for loop in range(self.arguments["loops"]):
                self._progress.loop(loop)
                clock.start()
                executable.run(index, inputs, clock.observe)
            return self._counted(executable, index, inputs, clock.ops())
        assert isinstance(executable, LibraryExecutable)
        if self.arguments["host_only"]:
            executable.run(index, inputs)
        else:
            self._launched += counts_of_second_run(
                lambda: executable.run(index, inputs), lambda: executable.run_again(index, inputs)
            )
        program = executable.programs[index].name
        flatbuffer = flatbuffer_of(executable)
        known = None if flatbuffer is None else self._known_ops(flatbuffer)
        if known is not None and program not in known.operations:
            self.logger.warning(f"'{known.flatbuffer.path}' has no program '{program}'")
            known = None
        loops: int = self.arguments["loops"]
        return times_of_library(executable, index, inputs, known, loops, self._progress)

    def _known_ops(self, flatbuffer: FlatbufferExecutable) -> KnownOps:
        edited = None if self._edits is None else self._edits.calls
        return KnownOps(flatbuffer, CostModel(self._chip(flatbuffer)), edited)

    def _counted(
        self,
        flatbuffer: FlatbufferExecutable,
        index: int,
        inputs: Sequence[np.ndarray],
        ops: list[OpTimes],
    ) -> list[OpTimes]:
        """Adds the emulated device's counts of a run of the file's shared object, if there
        is one."""
        library = library_beside(flatbuffer.path)
        launches = [op for op in ops if op.fidelity is not None]
        if not launches or library is None or self.arguments["host_only"]:
            return ops
        try:
            programs = _device_counts(flatbuffer, library, index, inputs)
        except CompileError as error:
            self.logger.warning(f"no counts of the emulated device: {error.render()}")
            return ops
        counts = counts_of_launches(programs, len(launches))
        if counts is None:
            self.logger.warning(f"'{library}' runs other programs than '{flatbuffer.path}'")
            return ops
        for op, counted in zip(launches, counts, strict=True):
            op.counts = counted
        return ops

    def _warn_of_lost_zones(self, programs: Iterable[ProgramCounts]) -> None:
        lost = sum(
            core.lost_zones
            for program in programs
            for kernel in program.kernels
            for core in kernel.cores
        )
        if lost:
            self.logger.warning(
                f"{lost} zones are not recorded: for each program a processor keeps 125 of them"
            )

    def _report(
        self,
        path: Path,
        rows: Sequence[dict[str, Any]],
        zones: Sequence[dict[str, Any]],
        files: Sequence[Path],
    ) -> None:
        total = sum(row["time_us"] for row in rows)
        loops: int = self.arguments["loops"]
        runs = "" if loops == 1 else f", the mean of {loops} runs"
        self.logger.info(f"{path}: {total / 1e3:.3f} ms a run{runs}")
        for line in table_lines(rows):
            self.logger.info(f"  {line}")
        for zone in zones:
            self.logger.info(
                f"  zone '{zone['zone']}' at {zone['file']}:{zone['line']}: {zone['times']} times, "
                f"at most {zone['cycles']} cycles of a core"
            )
        self.logger.info("\n".join(f"  {file}" for file in files))


def _device_counts(
    flatbuffer: FlatbufferExecutable, library: Path, index: int, inputs: Sequence[np.ndarray]
) -> list[ProgramCounts]:
    """Counts of the kernel programs that a shared object runs for a program of a flatbuffer.

    Raises:
        CompileError: if the shared object cannot be run, or is of another program.
    """
    executable = open_executable(library)
    try:

        def run() -> object:
            return run_library(flatbuffer, executable, index, inputs)

        return counts_of_second_run(run, run)
    finally:
        executable.close()


def flatbuffer_of(executable: Executable) -> FlatbufferExecutable | None:
    """Flatbuffer of an executable, if there is one."""
    if isinstance(executable, FlatbufferExecutable):
        return executable
    path = flatbuffer_beside(executable.path)
    return None if path is None else open_flatbuffer(path)


def chip_of(executable: Executable) -> ChipDescription:
    """Chip that a program was compiled for."""
    flatbuffer = flatbuffer_of(executable)
    return (default_machine() if flatbuffer is None else system_of(flatbuffer.header)).chip


def edits_of(executable: Executable, chip: ChipDescription, places: OpPlaces) -> OpEdits | None:
    """Edits of a shared object's project; None if it is not edited."""
    flatbuffer = flatbuffer_of(executable)
    is_library = isinstance(executable, LibraryExecutable)
    if not is_library or not isinstance(flatbuffer, TTNNExecutable):
        return None
    folder = flatbuffer.path.absolute().parent
    if executable.path.absolute().parent.parent != folder or not is_edited(folder):
        return None
    return OpEdits(flatbuffer, CostModel(chip), places)


def times_of_library(
    library: LibraryExecutable,
    index: int,
    inputs: Sequence[np.ndarray],
    known: KnownOps | None,
    loops: int,
    progress: Progress | None = None,
) -> list[OpTimes]:
    """Measures the ttnn calls of a program of a shared object, after a warm-up run."""
    runs: list[LibraryRun] = []
    with CallReport() as report:
        for loop in range(loops):
            if progress is not None:
                progress.loop(loop)
            begin = time.perf_counter()
            library.run_again(index, inputs)
            seconds = time.perf_counter() - begin
            runs.append(LibraryRun(begin, seconds, report.take()))
    return times_of_calls(library.programs[index].name, runs, known)


def rows_of_ops(
    ops: Sequence[OpTimes], host: Roofline, card: Roofline, places: OpPlaces, runs: int
) -> list[dict[str, Any]]:
    """Table rows of measurements."""
    total = sum(op.seconds for op in ops) / runs or 1.0
    rows: list[dict[str, Any]] = []
    for op in ops:
        calls, seconds = _whole(len(op.spans) / runs), op.seconds / runs
        least = host.least_seconds(op.cost) * calls
        name, line = places.name(op.program, op.index), places.line(op.program, op.index)
        if op.index is None:
            name, line = places.added_call(op.op)
        values = (
            op.program,
            op.index,
            op.op,
            name,
            line,
            op.location,
            calls,
            round(seconds * 1e6, 3),
            None if op.processor_seconds is None else round(op.processor_seconds / runs * 1e6, 3),
            round(seconds / total, 6),
            _whole(op.cost.moved * calls),
            _whole(op.cost.flops * calls),
            card.bound(op.cost),
            round(least / seconds, 6) if seconds > 0 else None,
            round(card.least_seconds(op.cost) * calls * 1e6, 3),
            None if op.estimate is None else round(op.estimate.seconds * calls * 1e6, 3),
            None if op.estimate is None else op.estimate.bound,
            None if op.estimate is None else op.estimate.l1_bytes,
            None if op.counts is None else round(op.counts.seconds * calls * 1e6, 3),
            None if op.estimate is None else _whole(op.estimate.link_bytes * calls),
            *(None, None, None),
        )
        rows.append(dict(zip(COLUMNS, values, strict=True)))
    return rows


def _whole(number: float) -> int | float:
    """Rounds a mean, to an integer if it is one."""
    return int(number) if number == int(number) else round(number, 6)


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
