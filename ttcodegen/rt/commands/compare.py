"""`compare`: two programs side by side, output by output, and op by op where both have ops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from ttcodegen.diagnostics import CompileError
from ttcodegen.numerics.comparison import Agreement, compare
from ttcodegen.numerics.op_events import OpEvent, observer
from ttcodegen.numerics.tolerances import tolerance_of_type
from ttcodegen.project.manifest import read_manifest
from ttcodegen.rt.commands.command import Command, FileResult
from ttcodegen.rt.commands.output_checks import device_data_type
from ttcodegen.rt.commands.project import flatbuffer_of_project
from ttcodegen.rt.commands.running import chosen_programs, program_inputs
from ttcodegen.runtime.executable import (
    Executable,
    FlatbufferExecutable,
    ProgramInfo,
    TensorInfo,
    flatbuffer_beside,
    library_beside,
    open_executable,
    open_flatbuffer,
)


@dataclass(frozen=True)
class Side:
    """One of the two that are compared."""

    executable: Executable
    """What computes the outputs."""
    flatbuffer: FlatbufferExecutable | None
    """What knows the ops, if there is any such file."""


class Compare(Command):
    """Runs two programs on the same values: projects, shared objects or flatbuffers.

    A project is its shared object if that is built, else its flatbuffer. Ops are compared if a
    flatbuffer belongs to each side: as the flatbuffers have them, for shared objects have nothing
    on their ops.
    """

    name: ClassVar[str] = "compare"

    def execute(self) -> list[FileResult]:
        """One result; its content has a row for each output, and the first op that drifts."""
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
        outputs = first.executable.run(index, inputs)
        others = second.executable.run(other, theirs)
        rows = [
            self._output(tensor, actual, expected)
            for tensor, actual, expected in zip(info.outputs, others, outputs, strict=False)
        ]
        if len(outputs) != len(others):
            self.logger.error(f"{info.name}: {len(outputs)} outputs and {len(others)}")
        drift = self._first_drift(first, second, info.name, inputs, theirs)
        passed = all(row["passed"] for row in rows) and len(outputs) == len(others)
        return [{"program": info.name, "passed": passed, "outputs": rows, "first_drift": drift}]

    def _output(
        self, tensor: TensorInfo, actual: np.ndarray, expected: np.ndarray
    ) -> dict[str, Any]:
        found = compare(actual, expected, tolerance_of_type(device_data_type(tensor)))
        text = f"{tensor.name}: {_text(found)}"
        (self.logger.info if found.passed else self.logger.error)(text)
        return {"name": tensor.name, **_json(found)}

    def _first_drift(
        self,
        first: Side,
        second: Side,
        program: str,
        inputs: Sequence[np.ndarray],
        theirs: Sequence[np.ndarray],
    ) -> dict[str, Any] | None:
        if first.flatbuffer is None or second.flatbuffer is None:
            self.logger.info("ops are not compared: a side has no flatbuffer with them")
            return None
        ours = _events(first.flatbuffer, program, inputs)
        events = _events(second.flatbuffer, program, theirs)
        matcher = SequenceMatcher(
            None, [_key(event) for event in ours], [_key(event) for event in events], autojunk=False
        )
        compared = 0
        for start, other, size in matcher.get_matching_blocks():
            for offset in range(size):
                event = ours[start + offset]
                compared += 1
                for expected, actual in zip(
                    event.outputs, events[other + offset].outputs, strict=True
                ):
                    tolerance = tolerance_of_type(_data_type(expected))
                    found = compare(actual, expected, tolerance)
                    if not found.passed:
                        where = event.location or f"op {event.index}"
                        self.logger.error(
                            f"the first op that drifts: {event.name} at {where}: {_text(found)}"
                        )
                        return {"op": event.name, "index": event.index, "location": event.location}
        self.logger.info(
            f"no op drifts, of {compared} that both have ({len(ours)} and {len(events)})"
        )
        return None


def _open(path: Path) -> Side:
    """What a path names: a project's folder, a shared object or a flatbuffer.

    Raises:
        CompileError: if it is none of them, or cannot be read.
    """
    if path.is_dir():
        if read_manifest(path) is None:
            raise CompileError(f"'{path}' is no project of ttcodegen")
        flatbuffer = flatbuffer_of_project(path)
        if flatbuffer is None:
            raise CompileError(f"'{path}' has no flatbuffer")
        path = library_beside(flatbuffer) or flatbuffer
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
    """The values for another program, whose arguments have the same names in any order."""
    values = {t.name: array for t, array in zip(info.arguments, arrays, strict=True)}
    missing = [tensor.name for tensor in other.arguments if tensor.name not in values]
    if missing:
        raise CompileError(f"'{info.name}' takes '{missing[0]}' on one side only")
    return [values[tensor.name].astype(tensor.dtype) for tensor in other.arguments]


def _events(
    flatbuffer: FlatbufferExecutable, program: str, arrays: Sequence[np.ndarray]
) -> list[OpEvent]:
    events: list[OpEvent] = []

    def keep(event: OpEvent) -> None:
        events.append(event)

    observe = observer(flatbuffer.functions, flatbuffer.constants, keep)
    flatbuffer.run(_program_named(flatbuffer, program), arrays, observe)
    return events


def _key(event: OpEvent) -> tuple[str, tuple[tuple[int, ...], ...]]:
    return event.name, tuple(output.shape for output in event.outputs)


def _data_type(array: np.ndarray) -> Any:
    from ttcodegen.dialects.datatypes import DataType

    if array.dtype.kind in "biu":
        return DataType.INT32
    return DataType.FLOAT32 if array.dtype == np.float32 else DataType.BFLOAT16


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
