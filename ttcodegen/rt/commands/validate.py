"""`validate`: validation of a program's calls by the real library."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Any, ClassVar

from ttcodegen.flatbuffer import program as file
from ttcodegen.flatbuffer.reader import read_ttm_file, read_ttnn_file
from ttcodegen.flatbuffer.system import system_of
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.judging.library import (
    JUDGE,
    VARIABLE,
    Libraries,
    Library,
    library_answers,
    memory_limit,
    python_of_release,
)
from ttcodegen.judging.programs import all_of, mocked_command, program_groups
from ttcodegen.judging.python_calls import (
    NO_CALLS,
    joined_steps,
    named_operations,
    steps_of_call,
)
from ttcodegen.optimizer.cost.measurements import call_key
from ttcodegen.project.tuning.search import Trial, Verdict
from ttcodegen.rt.commands.check import given_system
from ttcodegen.rt.commands.command import Artifacts, Command, FileResult, Logger
from ttcodegen.rt.judging.call_values import CallValues
from ttcodegen.rt.judging.simulated_project import (
    device_project,
    package_of,
    simulated_verdicts,
)
from ttcodegen.runtime.executable import find_files, open_flatbuffer
from ttcodegen.runtime.program_inputs import choose_inputs

_REPEATS = 20
"""Number of runs of a measured call."""


class Validate(Command):
    """Makes the calls of flatbuffers with the Python package `ttnn`, on a mocked device or a card.

    The package has wheels for Python 3.10 and 3.12, so it runs in another interpreter.
    """

    name: ClassVar[str] = "validate"

    def __init__(
        self,
        args: Mapping[str, Any] | None = None,
        logger: Logger | None = None,
        artifacts: Artifacts | None = None,
        libraries: Libraries | None = None,
    ) -> None:
        """Creates the command.

        Args:
            args: the arguments.
            logger: as of any command.
            artifacts: as of any command.
            libraries: those that are asked, for calls that follow each other to share their
                processes.
        """
        super().__init__(args, logger, artifacts)
        self._given = libraries

    def execute(self) -> list[FileResult]:
        """Returns a result per file: refused calls, results with another layout, and
        unjudged ops."""
        projects: dict[Path, None] = {}
        files: dict[Path, None] = {}
        for path in self.arguments["binary"]:
            project = device_project(path)
            if project is not None:
                projects[project] = None
            else:
                files |= dict.fromkeys(find_files(path, (".ttnn",)))
        found = [self._simulated(project) for project in projects]
        with closing(Libraries()) if self._given is None else nullcontext(self._given) as libraries:
            return found + [self._file(path, libraries) for path in files]

    def _file(self, path: Path, libraries: Libraries) -> FileResult:
        """Result of a flatbuffer."""
        try:
            binary = read_ttnn_file(path)
            python = python_of_release(self.arguments["python"], binary.release)
            command = self._command(python, binary, memory_limit(self.arguments["memory"]))
            library = libraries.of(command)
            found = [
                verdict
                for programs in program_groups(binary)
                for verdict in self._judged(path, binary, programs, library)
            ]
        except CompileError as error:
            return self.failed(path, "ttnn", error)
        return self._result(path, found)

    def _simulated(self, project: Path) -> FileResult:
        """Result of a project of device programs, run as a whole on a simulator."""
        path = project / "model.ttm"
        try:
            simulator = self._simulator()
            if simulator is None:
                raise CompileError(
                    "device programs make no calls of the library that a mocked device could judge",
                    remedy="name the vendor's simulator with --simulator",
                )
            named = self.arguments["python"] or os.environ.get(VARIABLE)
            release = read_ttm_file(path).release
            package = package_of(python_of_release(named, release)) if named else None
            found = simulated_verdicts(project, simulator, package)
        except CompileError as error:
            return self.failed(path, "ttm", error)
        return self._result(path, found, "ttm", "runs")

    def _simulator(self) -> Path | None:
        """Simulator that the arguments name, if any."""
        simulator: Path | None = self.arguments["simulator"]
        if simulator is not None:
            if self.arguments["card"]:
                raise CompileError("--card and --simulator name two devices: give one of them")
            if not simulator.is_file():
                raise CompileError(f"there is no simulator '{simulator}'")
        return simulator

    def _judged(
        self,
        path: Path,
        binary: file.Binary,
        programs: Sequence[file.Program],
        library: Library,
    ) -> list[dict[str, Any]]:
        """Verdicts on consecutive programs, including values if a simulator computes them."""
        joined = joined_steps(programs)
        if self.arguments["simulator"] is None or programs[-1].kind != "entry":
            return _verdicts(programs, joined, library.answers(all_of(joined)), {})
        with tempfile.TemporaryDirectory() as folder:
            flatbuffer = open_flatbuffer(path)
            index = [each.name for each in flatbuffer.programs].index(programs[-1].name)
            inputs = choose_inputs(flatbuffer, index, init=None, seed=None, folder=None)
            values = CallValues(binary, programs, inputs.arrays, Path(folder))
            values.give(joined)
            answers = library.answers(all_of(joined))
            return _verdicts(programs, joined, answers, values.differences(joined))

    def _command(self, python: str, binary: file.Binary, memory: int) -> list[str]:
        """Command of the judge with a file's device."""
        given = given_system(self.arguments)
        simulator = self._simulator()
        if simulator is not None:
            return [python, str(JUDGE), "--simulator", str(simulator.absolute())]
        if self.arguments["card"]:
            if given is not None:
                raise CompileError("--card judges on the card that is there: name no system")
            # No memory limit: a card's tensors are not in the process.
            return [python, str(JUDGE), "--card"]
        system = system_of(binary) if given is None else given[1]
        return mocked_command(python, system.chip, memory)

    def _result(
        self,
        path: Path,
        found: Sequence[dict[str, Any]],
        kind: str = "ttnn",
        judged: str = "calls accepted",
    ) -> FileResult:
        passed = all(not one["refused"] and not one["different"] for one in found)
        for one in found:
            accepted = f"{path}: '{one['program']}': {one['accepted']} {judged}"
            if one["compared"]:
                accepted += f", {one['compared']} compared"
            self.logger.info(accepted)
            for problem in (*one["refused"], *one["different"]):
                self.logger.error(f"  {problem}")
            if one["not_judged"]:
                self.logger.info(f"  not judged: {', '.join(one['not_judged'])}")
        return FileResult(str(path), kind, passed=passed, content={"programs": list(found)})


class LibraryJudge:
    """Library's answers to forms of a flatbuffer's calls.

    Args:
        path: the flatbuffer.
        python: interpreters with the package, as `--python`.
        card: whether calls are measured on a card; else the device is mocked.
    """

    def __init__(self, path: Path, python: str | None, *, card: bool = False) -> None:
        self._binary = read_ttnn_file(path)
        self._python = python_of_release(python, self._binary.release)
        self._card = card
        self.measured: dict[str, float] = {}
        """Measured times of calls on the card, by key."""

    def __call__(self, trials: Sequence[Trial]) -> list[Verdict]:
        """Answers to trials; a call that cannot be judged is accepted."""
        operations = named_operations(self._binary)
        listed: list[dict[str, Any]] = []
        places: list[int | None] = []
        for number, trial in enumerate(trials):
            program, operation = operations[trial.node]
            calls = steps_of_call(program, operation, trial.call, number)
            places.append(len(listed) + 1 if calls else None)
            listed += calls
        if self._card:
            command = [self._python, str(JUDGE), "--card", "--repeat", str(_REPEATS)]
        else:
            chip = system_of(self._binary).chip
            command = mocked_command(self._python, chip, memory_limit(None))
        answers = library_answers(listed, command) if listed else []
        found: list[Verdict] = []
        for trial, place in zip(trials, places, strict=True):
            answer = {} if place is None else answers[place]
            seconds = answer.get("seconds")
            if seconds is not None:
                self.measured[call_key(trial.call)] = seconds
            found.append(Verdict(answer.get("refused"), seconds))
        return found


def _verdicts(
    programs: Sequence[file.Program],
    joined: Sequence[list[dict[str, Any]]],
    answers: Sequence[dict[str, Any]],
    compared: Mapping[str, Sequence[tuple[int, str | None]]],
) -> list[dict[str, Any]]:
    """Verdicts on programs by the answers to their steps.

    Args:
        programs: consecutive programs.
        joined: the steps of each.
        answers: answers to all steps.
        compared: by program, the steps with compared values, and their differences.
    """
    verdicts: list[dict[str, Any]] = []
    for program, calls in zip(programs, joined, strict=True):
        verdict = _verdict(program, calls, answers[: len(calls)])
        values = compared.get(program.name, ())
        verdict["compared"] = len(values)
        for index, difference in values:
            if difference is not None:
                where = f"ttnn.{calls[index]['callee']} (step {index})"
                verdict["different"].append(f"{where} computes something else: {difference}")
        verdicts.append(verdict)
        answers = answers[len(calls) :]
    return verdicts


def _verdict(
    program: file.Program, calls: Sequence[dict[str, Any]], answers: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    """Verdict on a program by the answers to its steps."""
    refused: list[str] = []
    missing: list[str] = []
    different: list[str] = []
    for index, (call, answer) in enumerate(zip(calls, answers, strict=True)):
        where = f"ttnn.{call['callee']} (step {index})"
        if "missing" in answer:
            missing.append(where)
        if "unsimulated" in answer:
            missing.append(f"{where}, which the simulator cannot run ({answer['unsimulated']})")
        if "refused" in answer:
            refused.append(f"{where} is refused: {answer['refused']}")
        for result, found in zip(call["results"], answer.get("results") or (), strict=False):
            if result["type"] != found:
                different.append(f"{where} gives {found}, not {result['type']}")
    judged = sum(call["callee"] not in NO_CALLS for call in calls)
    left = {
        operation.name
        for operation, call in zip(program.operations, calls[1:], strict=True)
        if call["callee"] is None and operation.callee is None
    }
    return {
        "program": program.name,
        "accepted": judged - len(refused) - len(missing),
        "refused": refused,
        "different": different,
        "not_judged": [*sorted(left), *missing],
    }
