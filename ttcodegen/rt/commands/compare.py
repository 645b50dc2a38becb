"""`compare`: comparison of two programs by outputs and by ops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from ttcodegen.cost import card_roofline, host_roofline
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.numerics.comparison import Agreement, compare
from ttcodegen.numerics.interpreter import OpEvent, observer
from ttcodegen.numerics.tolerances import tolerance_of_type
from ttcodegen.optimizer.cost.calls import CostModel
from ttcodegen.project.building import library_path
from ttcodegen.project.edits import edited_files
from ttcodegen.project.manifest import read_manifest
from ttcodegen.rt.commands.command import (
    Command,
    FileResult,
    build_as_it_is,
    chosen_programs,
    flatbuffer_of_project,
    program_inputs,
)
from ttcodegen.rt.commands.emitc import device_data_type
from ttcodegen.rt.commands.perf import chip_of, edits_of, rows_of_ops, times_of_library
from ttcodegen.rt.edit_gains import OpPlaces, joined_rows, table_lines
from ttcodegen.rt.op_times import OUTSIDE, KnownOps
from ttcodegen.rt.op_values import (
    OpValues,
    Pair,
    side_by_side,
    values_of_calls,
    values_of_events,
)
from ttcodegen.runtime.backend_reports import CallReport
from ttcodegen.runtime.executable import (
    Executable,
    FlatbufferExecutable,
    LibraryExecutable,
    ProgramInfo,
    TensorInfo,
    TTNNExecutable,
    flatbuffer_beside,
    library_beside,
    open_executable,
    open_flatbuffer,
)

_MAX_LISTED = 5
"""Limit on the one-sided ops that are listed."""


@dataclass(frozen=True)
class Side:
    """One of the two compared programs."""

    executable: Executable
    """Executable that computes the outputs."""
    flatbuffer: FlatbufferExecutable | None
    """Flatbuffer that lists the ops, if there is one."""

    @cached_property
    def places(self) -> OpPlaces:
        """Positions of its ops in its C++."""
        return OpPlaces(self.flatbuffer)


@dataclass(frozen=True)
class Run:
    """Results of the run of a program."""

    outputs: Sequence[np.ndarray]
    ops: Callable[[bool], Sequence[OpValues]]
    """Returns the results of its ops; with True, also the functions that their C++ calls."""
    of_calls: bool = False
    """True if the ops are calls of C++."""
    of_flatbuffer: bool = False
    """True if the ops are those of the flatbuffer of a C++ program with kernels."""


class Compare(Command):
    """Runs two programs on the same values: projects, shared objects or flatbuffers.

    A project is its current C++ if that was edited or built before, else its flatbuffer. The ops of
    C++ are its ttnn calls.
    """

    name: ClassVar[str] = "compare"

    def execute(self) -> list[FileResult]:
        """Returns one result: a row per output, the first op that drifts, and op times of both
        sides."""
        first = _open(self.arguments["binary"])
        second = _open(self.arguments["other"])
        path = first.executable.path
        try:
            rows = [
                row
                for program in chosen_programs(self.arguments, first.executable)
                for row in self._compare(first, second, program)
            ]
        except CompileError as error:
            return [self.failed(path, path.suffix.lstrip("."), error)]
        finally:
            for side in (first, second):
                side.executable.close()
        content = {"other": str(second.executable.path), "programs": rows}
        passed = all(row["passed"] for row in rows)
        return [FileResult(str(path), path.suffix.lstrip("."), passed, content=content)]

    def _compare(self, first: Side, second: Side, index: int) -> list[dict[str, Any]]:
        info = first.executable.programs[index]
        other = _program_named(second.executable, info.name)
        inputs = program_inputs(self.arguments, first.executable, index).arrays
        theirs = _reordered(info, second.executable.programs[other], inputs)
        with ExitStack() as open_reports:
            ours = _run(first, index, inputs, open_reports)
            others = _run(second, other, theirs, open_reports)
            rows = [
                self._output(tensor, actual, expected)
                for tensor, actual, expected in zip(
                    info.outputs, others.outputs, ours.outputs, strict=False
                )
            ]
            counts = len(ours.outputs), len(others.outputs)
            if counts[0] != counts[1]:
                self.logger.error(f"{info.name}: {counts[0]} outputs and {counts[1]}")
            drift = self._first_drift(info.name, ours, others, (first.places, second.places))
        passed = all(row["passed"] for row in rows) and counts[0] == counts[1]
        ops = self._gains((first, index, inputs), (second, other, theirs))
        return [
            {
                "program": info.name,
                "passed": passed,
                "outputs": rows,
                "first_drift": drift,
                "ops": ops,
            }
        ]

    def _gains(self, *sides: tuple[Side, int, Sequence[np.ndarray]]) -> list[dict[str, Any]]:
        """Op times of both sides: measured if both are C++, and estimated by the cost model."""
        loops: int = self.arguments["loops"]
        is_measured = all(isinstance(side.executable, LibraryExecutable) for side, _, _ in sides)
        if loops > 1 and not is_measured:
            self.logger.info("note: --loops has no effect: two shared objects are measured only")
        host, found = host_roofline(), list[list[dict[str, Any]]]()
        words: dict[str, str] = {}
        for side, index, inputs in sides:
            if not isinstance(side.flatbuffer, TTNNExecutable):
                return []
            chip = chip_of(side.flatbuffer)
            edits = edits_of(side.executable, chip, side.places)
            edited = None if edits is None else edits.calls
            known = KnownOps(side.flatbuffer, CostModel(chip), edited)
            name = side.executable.programs[index].name
            if isinstance(side.executable, LibraryExecutable):
                runs = loops if is_measured else 1
                ops = times_of_library(side.executable, index, inputs, known, runs)
            else:
                runs, ops = 1, known.once(name)
            rows = rows_of_ops(ops, host, card_roofline(chip), side.places, runs)
            words = {} if edits is None else edits.words_by_name(name, side.places)
            for row in rows:
                # A call that is none of the model's ops has the name of its variable.
                row["edit"] = None if row["index"] is None else words.get(row["name"])
                if not is_measured:
                    row["time_us"] = row["processor_us"] = row["time_share"] = None
            found.append([row for row in rows if is_measured or row["op"] != OUTSIDE])
        rows = joined_rows(found[0], found[1], words)
        for line in table_lines(rows):
            self.logger.info(line)
        return rows

    def _output(
        self, tensor: TensorInfo, actual: np.ndarray, expected: np.ndarray
    ) -> dict[str, Any]:
        found = compare(actual, expected, tolerance_of_type(device_data_type(tensor)))
        text = f"{tensor.name}: {_text(found)}"
        (self.logger.info if found.passed else self.logger.error)(text)
        return {"name": tensor.name, **_json(found)}

    def _first_drift(
        self, program: str, ours: Run, others: Run, places: tuple[OpPlaces, OpPlaces]
    ) -> dict[str, Any] | None:
        by_function = ours.of_calls or others.of_calls
        our_ops, other_ops = ours.ops(by_function), others.ops(by_function)
        if not our_ops or not other_ops:
            self.logger.info("ops are not compared: one side does not say what its ops gave")
            return None
        ops = side_by_side(our_ops, other_ops, by_function=by_function)
        for which, alone in (("first", ops.only_first), ("second", ops.only_second)):
            if alone:
                more = "" if len(alone) <= _MAX_LISTED else ", ..."
                names = ", ".join(op.name for op in alone[:_MAX_LISTED])
                self.logger.info(f"only the {which} has: {names}{more}")
        for pair in ops.common:
            first, second = pair.first, pair.second
            found = _difference(first, second)
            if found is not None and not _is_fused(pair):
                location = first.location or second.location
                name, line = _position(program, pair, places)
                where = line or location or f"op {first.index}"
                said = f"{first.name} {name}" if name else first.name
                self.logger.error(f"the first op that drifts: {said} at {where}: {_text(found)}")
                return {
                    "op": first.name,
                    "index": first.index,
                    "name": name,
                    "line": line,
                    "location": location,
                }
        both = len(ops.common)
        ours_all, others_all = both + len(ops.only_first), both + len(ops.only_second)
        self.logger.info(
            f"no op drifts, of {both} that both have ({ours_all} and {others_all} in all)"
        )
        if ours.of_flatbuffer and others.of_flatbuffer:
            self.logger.info("these are ops of the flatbuffers: kernels do not report their ops")
        return None


def _position(
    program: str, pair: Pair, places: tuple[OpPlaces, OpPlaces]
) -> tuple[str | None, str | None]:
    """Variable and line of an op: in the second side's C++, else in the first's.

    Calls that belong to no op have neither.
    """
    found: list[tuple[str | None, str | None]] = [
        (at.variable(program, op.index), at.line(program, op.index))
        for op, at in ((pair.second, places[1]), (pair.first, places[0]))
        if op.name.startswith("ttnn.")
    ]
    return (
        next((name for name, _ in found if name), None),
        next((line for _, line in found if line), None),
    )


def _open(path: Path) -> Side:
    """Opens a project's folder, a shared object or a flatbuffer.

    Raises:
        CompileError: if it is none of them, or cannot be read.
    """
    if path.is_dir():
        if read_manifest(path) is None:
            raise CompileError(f"'{path}' is no project of ttcodegen")
        flatbuffer = flatbuffer_of_project(path)
        if flatbuffer is None:
            raise CompileError(f"'{path}' has no flatbuffer")
        built = library_beside(flatbuffer)
        is_own = built is not None and built.parent == library_path(path.absolute(), "").parent
        if is_own or any(file.startswith("src/") for file in edited_files(path)):
            built = build_as_it_is(path)
        path = built or flatbuffer
    if not path.exists():
        raise CompileError(f"cannot read '{path}': No such file or directory")
    executable = open_executable(path)
    if isinstance(executable, FlatbufferExecutable):
        return Side(executable, executable)
    beside = flatbuffer_beside(path)
    return Side(executable, None if beside is None else open_flatbuffer(beside))


def _program_named(executable: Executable, name: str) -> int:
    for index, info in enumerate(executable.programs):
        if info.name == name:
            return index
    known = ", ".join(info.name for info in executable.programs)
    raise CompileError(f"'{executable.path}' has no program '{name}'; it has {known}")


def _reordered(
    info: ProgramInfo, other: ProgramInfo, arrays: Sequence[np.ndarray]
) -> list[np.ndarray]:
    """Values for another program whose arguments have the same names in any order."""
    values = {t.name: array for t, array in zip(info.arguments, arrays, strict=True)}
    missing = [tensor.name for tensor in other.arguments if tensor.name not in values]
    if missing:
        raise CompileError(f"'{info.name}' takes '{missing[0]}' on one side only")
    return [values[tensor.name].astype(tensor.dtype) for tensor in other.arguments]


def _run(side: Side, index: int, arrays: Sequence[np.ndarray], reports: ExitStack) -> Run:
    """Runs a program; results of its calls are readable while the reports are open."""
    executable = side.executable
    if isinstance(executable, FlatbufferExecutable):
        return _run_flatbuffer(executable, index, arrays)
    report = reports.enter_context(CallReport(tensors=True))
    outputs = executable.run(index, arrays)
    report.stop()
    info = executable.programs[index]
    calls = report.take()
    if calls or side.flatbuffer is None:
        values = values_of_calls(calls, side.flatbuffer, info.name)
        return Run(outputs, lambda _: values, of_calls=True)
    # Kernels do not report results of single ops.
    known = side.flatbuffer
    same = _program_named(known, info.name)
    ops = _run_flatbuffer(known, same, _reordered(info, known.programs[same], arrays)).ops
    return Run(outputs, ops, of_flatbuffer=True)


def _run_flatbuffer(
    flatbuffer: FlatbufferExecutable, index: int, arrays: Sequence[np.ndarray]
) -> Run:
    events: list[OpEvent] = []

    def keep(event: OpEvent) -> None:
        events.append(event)

    observe = observer(flatbuffer.functions, flatbuffer.constants, keep)
    outputs = flatbuffer.run(index, arrays, observe)
    return Run(
        outputs,
        lambda functions: values_of_events(events, flatbuffer if functions else None),
    )


def _difference(first: OpValues, second: OpValues) -> Agreement | None:
    """Difference of an op's result between two runs; None if there is none."""
    for actual, expected, data_type in zip(
        second.load(), first.load(), first.data_types, strict=False
    ):
        if actual.shape == expected.shape:
            found = compare(actual, expected, tolerance_of_type(data_type))
            if not found.passed:
                return found
    return None


def _is_fused(pair: Pair) -> bool:
    """Returns whether the op of one side computes a later op of the other side."""
    return any(
        op.shapes == pair.second.shapes and _difference(op, pair.second) is None
        for op in pair.after_first
    ) or any(
        op.shapes == pair.first.shapes and _difference(pair.first, op) is None
        for op in pair.after_second
    )


def _text(found: Agreement) -> str:
    value = "" if found.value is None else f"{found.measure} {found.value:.6g}, "
    text = f"{value}largest error {found.max_abs_err:.3g}"
    return text if found.passed else f"{text}: {found.reason}"


def _json(found: Agreement) -> dict[str, Any]:
    finite = np.isfinite(found.max_abs_err)
    return {
        "passed": found.passed,
        "measure": found.measure,
        "value": found.value,
        "max_abs_err": found.max_abs_err if finite else None,
    }
