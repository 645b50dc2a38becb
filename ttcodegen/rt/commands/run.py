"""`run`: runs programs and compares their outputs with golden values."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from ttcodegen.cost import MemoryUse, memory_use
from ttcodegen.flatbuffer.program import Program
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.numerics.execution import Observer
from ttcodegen.numerics.interpreter import Callback, OpEvent, RunStopped, observer
from ttcodegen.rt.commands.check import named_systems, names_system, refuse_other_system
from ttcodegen.rt.commands.command import (
    Artifacts,
    Command,
    FileResult,
    Logger,
    Progress,
    build_as_it_is,
    chosen_programs,
    flatbuffer_of_project,
    program_inputs,
)
from ttcodegen.rt.commands.emitc import (
    Check,
    check_golden,
    check_identity,
    check_non_zero,
    compare_with_flatbuffer,
)
from ttcodegen.runtime.executable import (
    ENDINGS,
    Executable,
    FlatbufferExecutable,
    TensorInfo,
    find_files,
    flatbuffer_beside,
    library_beside,
    open_executable,
    open_flatbuffer,
)
from ttcodegen.runtime.program_inputs import ProgramInputs
from ttcodegen.systems.description import SystemDescription


@dataclass
class ProgramRun:
    """State of a program's run."""

    executable: Executable
    index: int
    inputs: ProgramInputs
    outputs: list[np.ndarray] = field(default_factory=list[np.ndarray])
    seconds: list[float] = field(default_factory=list[float])
    checks: dict[int, list[Check]] = field(default_factory=dict[int, list[Check]])
    """Checks by output."""
    golden_origin: str | None = None
    """embedded (in the flatbuffer), unrounded (computed from it without rounding), or None."""
    drifting: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    """Ops whose outputs differ from their golden values, in order."""
    memory: MemoryUse | None = None
    leaks_matter: bool = False
    stopped: bool = False
    goldens: dict[int, np.ndarray] = field(default_factory=dict[int, np.ndarray])
    """Golden values by output."""

    @property
    def passed(self) -> bool:
        """Returns whether the program completed and all checks passed."""
        leaking = self.leaks_matter and self.memory is not None and bool(self.memory.leaks)
        failed = any(not c.agreement.passed for checks in self.checks.values() for c in checks)
        return not (self.stopped or leaking or failed)

    def add_check(self, output: int, check: Check) -> None:
        """Adds a check of an output."""
        self.checks.setdefault(output, []).append(check)

    def to_json(self) -> dict[str, Any]:
        """Entry of a result file."""
        info = self.executable.programs[self.index]
        return {
            "program": info.name,
            "index": self.index,
            "passed": self.passed,
            "inputs": self.inputs.origin,
            "golden": self.golden_origin,
            "stopped": self.stopped,
            "seconds": self.seconds,
            "outputs": [
                {**tensor.to_json(), "checks": [c.to_json() for c in self.checks.get(index, [])]}
                for index, tensor in enumerate(info.outputs)
            ],
            "drifting_ops": self.drifting,
            "memory": None if self.memory is None else self.memory.to_json(),
        }


class Run(Command):
    """Runs flatbuffers and shared objects.

    A project's folder is built first, with its edits, and its C++ is compared with its flatbuffer.
    `callback` is called for each op of a flatbuffer with its location, its outputs, and their
    golden values if the file has them. Returning False stops the run; exceptions propagate to the
    caller.
    """

    name: ClassVar[str] = "run"

    def __init__(
        self,
        args: Mapping[str, Any] | None = None,
        logger: Logger | None = None,
        artifacts: Artifacts | None = None,
        callback: Callback | None = None,
    ) -> None:
        super().__init__(args, logger, artifacts)
        if self.arguments["debugger"]:
            if not sys.stdin.isatty():
                raise CompileError("--debugger needs a terminal")
            callback = _debug
        self._callback = callback
        self._built: Path | None = None

    def execute(self) -> list[FileResult]:
        """Returns a result per file, whose content are the programs."""
        binary: Path = self.arguments["binary"]
        project = flatbuffer_of_project(binary)
        if project is not None:
            self._built = build_as_it_is(binary)
            paths = [project]
        else:
            endings = (".ttnn", ".ttm") if self.arguments["emitc"] else ENDINGS
            paths = find_files(binary, endings)
        loops: int = self.arguments["loops"]
        systems = named_systems(self.arguments)
        if project is not None and not names_system(self.arguments):
            systems = {}  # A project is built for the system that it was compiled for.
        self._progress = Progress(len(paths), loops, self.arguments["quiet"])
        results: list[FileResult] = []
        for path in paths:
            with self._progress.step(str(path)):
                results.append(self._run_file(path, systems))
        return results

    def _run_file(self, path: Path, systems: Mapping[str, SystemDescription]) -> FileResult:
        kind = path.suffix.lstrip(".")
        try:
            executable = open_executable(path)
            refuse_other_system(executable, systems)
            library = self._library(path)
            try:
                runs = [
                    self._run_program(executable, index, library)
                    for index in chosen_programs(self.arguments, executable)
                ]
            finally:
                executable.close()
                if library is not None:
                    library.close()
        except CompileError as error:
            return self.failed(path, kind, error)
        self._progress.wipe()
        for run in runs:
            self._report(path, run)
            self._save(path, run)
        content = {
            "shared_object": None if library is None else str(library.path),
            "programs": [run.to_json() for run in runs],
        }
        return FileResult(str(path), kind, all(run.passed for run in runs), content=content)

    def _library(self, path: Path) -> Executable | None:
        """Shared object to compare a flatbuffer with, if requested."""
        if self._built is not None:
            return open_executable(self._built)
        if not self.arguments["emitc"]:
            return None
        library = library_beside(path)
        source = path.with_suffix(".cpp")
        if library is None and path.suffix == ".ttnn" and source.is_file():
            from ttcodegen.rt.commands.emitc import build_translated

            out = self.artifacts.folder / "emitc" / self.artifact_folder(path)
            self.artifacts.mark()
            library = build_translated(path, source, out)
        if library is None:
            raise CompileError(
                f"there is no shared object that belongs to '{path}'",
                remedy="build it with ttcodegen --build; or put lib<name>.so, or the C++ that "
                "ttcodegen-translate makes as <name>.cpp, beside <name>.ttnn",
            )
        return open_executable(library)

    def _run_program(
        self, executable: Executable, index: int, library: Executable | None
    ) -> ProgramRun:
        run = ProgramRun(executable, index, program_inputs(self.arguments, executable, index))
        source = _flatbuffer_of(executable)
        program = None if source is None else _entry(source, executable.programs[index].name)
        if program is not None and (self.arguments["memory"] or self._checks_leaks):
            run.memory = memory_use(program)
            run.leaks_matter = self._checks_leaks
        self._execute(run)
        if run.stopped:
            return run
        if source is not None and program is not None and not self.arguments["disable_golden"]:
            self._compare_with_golden(run, source, source.entries.index(program))
        self._check_outputs(run)
        if library is not None and isinstance(executable, FlatbufferExecutable):
            found = compare_with_flatbuffer(
                self.arguments, executable, library, index, run.inputs.arrays, run.outputs
            )
            for output, check in enumerate(found):
                run.add_check(output, check)
        return run

    @property
    def _checks_leaks(self) -> bool:
        return bool(self.arguments["check_memory_leak"])

    def _execute(self, run: ProgramRun) -> None:
        """Runs a program the requested number of times; all runs have to agree."""
        observe = None
        if isinstance(run.executable, FlatbufferExecutable):
            if self._callback is not None or run.inputs.origin == "golden":
                observe = self._observer(run, run.executable)
        elif self._callback is not None:
            raise CompileError("callbacks see the ops of flatbuffers, not those of shared objects")
        for loop in range(self.arguments["loops"]):
            self._progress.loop(loop)
            start = time.perf_counter()
            try:
                outputs = run.executable.run(run.index, run.inputs.arrays, observe)
            except RunStopped:
                run.stopped = True
                return
            run.seconds.append(round(time.perf_counter() - start, 6))
            run.outputs = run.outputs or outputs
            observe = None

    def _observer(self, run: ProgramRun, file: FlatbufferExecutable) -> Observer:
        return observer(file.functions, file.constants, lambda event: self._goes_on(run, event))

    def _goes_on(self, run: ProgramRun, event: OpEvent) -> bool | None:
        if self.arguments["save_golden_tensors"]:
            self._save_goldens(run, event)
        if run.inputs.origin == "golden" and not self.arguments["disable_golden"]:
            for agreement in event.agreements(self.arguments["pcc"]):
                if agreement is not None and not agreement.passed:
                    drift = {
                        "program": event.program,
                        "op_index": event.index,
                        "op": event.name,
                        "location": event.location,
                        "reason": agreement.reason,
                    }
                    run.drifting.append(drift)
        return None if self._callback is None else self._callback(event)

    def _compare_with_golden(
        self, run: ProgramRun, source: FlatbufferExecutable, index: int
    ) -> None:
        goldens = source.goldens(index)
        entries = source.entries[index].outputs
        if run.inputs.origin == "golden" and all(entry.tensor in goldens for entry in entries):
            run.golden_origin = "embedded"
            run.goldens = {i: goldens[entry.tensor] for i, entry in enumerate(entries)}
        else:
            run.golden_origin = "unrounded"
            run.goldens = dict(enumerate(source.reference(index, run.inputs.arrays)))
        for output, golden in run.goldens.items():
            tensor = run.executable.programs[run.index].outputs[output]
            run.add_check(output, check_golden(self.arguments, tensor, run.outputs[output], golden))

    def _check_outputs(self, run: ProgramRun) -> None:
        given = run.inputs.arrays
        for output, array in enumerate(run.outputs):
            if self.arguments["identity"]:
                if output >= len(given):
                    raise CompileError("--identity: there are more outputs than inputs")
                run.add_check(output, check_identity(self.arguments, array, given[output]))
            if self.arguments["non_zero"]:
                run.add_check(output, check_non_zero(array))

    def _report(self, path: Path, run: ProgramRun) -> None:
        info = run.executable.programs[run.index]
        ended = "stopped" if run.stopped else "passed" if run.passed else "FAILED"
        times = f", {min(run.seconds) * 1e3:.2f} ms" if run.seconds else ""
        self.logger.info(f"{path}: {info.name}: {ended}{times}")
        for output, tensor in enumerate(info.outputs):
            for check in run.checks.get(output, []):
                if not check.agreement.passed:
                    reason = check.agreement.reason
                    self.logger.error(f"  output '{tensor.name}', {check.name}: {reason}")
        if run.drifting:
            first = run.drifting[0]
            where = f" at {first['location']}" if first["location"] else ""
            self.logger.info(f"  first op that drifts: {first['op']}{where}: {first['reason']}")
        if run.memory is not None:
            peaks = ", ".join(f"{k} {v} bytes" for k, v in run.memory.peak.items())
            self.logger.info(f"  peak memory: {peaks}")
            for leak in run.memory.leaks:
                self.logger.error(f"  leak: {leak.name}, {leak.size} bytes in {leak.memory}")
        if self.arguments["print_input_output_tensors"]:
            self._report_arrays(info.arguments, run.inputs.arrays)
            self._report_arrays(info.outputs, run.outputs)

    def _report_arrays(self, tensors: tuple[TensorInfo, ...], arrays: list[np.ndarray]) -> None:
        for tensor, array in zip(tensors, arrays, strict=False):
            self.logger.info(f"  {tensor.kind} '{tensor.name}':\n{array}")

    def _folder(self, path: Path, run: ProgramRun) -> str:
        return f"run/{self.artifact_folder(path)}/program_{run.index}"

    def _save_goldens(self, run: ProgramRun, event: OpEvent) -> None:
        """Writes the outputs of an op and their golden values."""
        folder = self._folder(run.executable.path, run)
        # Program names in a file are arbitrary.
        program = re.sub(r"[^\w.-]", "_", event.program)
        for number, (output, golden) in enumerate(zip(event.outputs, event.goldens, strict=True)):
            if golden is not None:
                name = f"{folder}/ops/{program}_{event.index}_{number}"
                self.artifacts.write_array(f"{name}_golden.npy", golden)
                self.artifacts.write_array(f"{name}_device.npy", output)

    def _save(self, path: Path, run: ProgramRun) -> None:
        """Writes the arrays of a run as artifacts, if requested."""
        folder = self._folder(path, run)
        if self.arguments["save_artifacts"]:
            for index, array in enumerate(run.inputs.arrays):
                self.artifacts.write_array(f"{folder}/input_{index}.npy", array)
            for index, array in enumerate(run.outputs):
                self.artifacts.write_array(f"{folder}/output_{index}.npy", array)
            if run.memory is not None:
                self.artifacts.write(f"{folder}/memory.csv", _memory_csv(run.memory))
        if self.arguments["save_golden_tensors"]:
            for index, array in run.goldens.items():
                self.artifacts.write_array(f"{folder}/golden_{index}.npy", array)


def _flatbuffer_of(executable: Executable) -> FlatbufferExecutable | None:
    """Flatbuffer with the reference semantics of a file; None if there is none."""
    if isinstance(executable, FlatbufferExecutable):
        return executable
    path = flatbuffer_beside(executable.path)
    return None if path is None else open_flatbuffer(path)


def _entry(flatbuffer: FlatbufferExecutable, name: str) -> Program | None:
    return next((program for program in flatbuffer.entries if program.name == name), None)


def _memory_csv(use: MemoryUse) -> str:
    rows = ["index,op,location,dram_bytes,l1_bytes"]
    for index, step in enumerate(use.steps):
        location = (step.location or "").replace('"', '""')
        amounts = f"{step.allocated['dram']},{step.allocated['l1']}"
        rows.append(f'{index},{step.op},"{location}",{amounts}')
    return "\n".join(rows) + "\n"


def _debug(event: OpEvent) -> None:
    """Breaks into the debugger; `event` is the op."""
    import pdb

    print(f"{event.program}, op {event.index}: {event.name} at {event.location}")
    pdb.set_trace()
