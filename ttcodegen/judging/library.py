"""Process of the real library that answers calls."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.judging.python_calls import NO_CALLS
from ttcodegen.judging.simulator_output import lacking, last_words

JUDGE = Path(__file__).with_name("judge.py")
VARIABLE = "TTCODEGEN_TTNN_PYTHON"
_GB = 1 << 30
_NO_MEMORY = "bad_alloc"
"""Part of the library's message when it runs out of memory."""

Calls = Sequence[Mapping[str, Any]]


class Library:
    """Library with an open device, which answers list after list of calls.

    A device takes seconds to open, a list mostly less than one. Lists do not see each other's
    tensors and programs. Still a refusal counts only if a newly started process repeats it: memory
    that earlier lists left taken must not refuse a program. A simulated device starts for each.

    Args:
        command: the Python with the library, the judge, and its options.
    """

    def __init__(self, command: Sequence[str]) -> None:
        self._command = command
        self._process: subprocess.Popen[str] | None = None
        self._folder = tempfile.TemporaryDirectory()

    def close(self) -> None:
        """Ends the process."""
        self._stop()
        self._folder.cleanup()

    def answers(self, calls: Calls) -> list[dict[str, Any]]:
        """Returns an answer to each call.

        A call that ends the library's process counts as refused, and the remaining calls are
        repeated without it; a replacement tensor that ends it is not created.

        Raises:
            CompileError: if the library ends without a call.
        """
        if self._process is not None and "--simulator" not in self._command:
            run = self._run(calls)
            if run.is_complete(calls) and not any("refused" in each for each in run.answers):
                return run.answers
        self._stop()
        return self._fresh_answers(calls)

    def _fresh_answers(self, calls: Calls) -> list[dict[str, Any]]:
        """Answers of processes that have done nothing before."""
        ended: dict[int, str] = {}
        unmade: dict[int, set[int]] = defaultdict(set)
        while True:
            # Results of a skipped call are created like input tensors.
            left = [
                {**call, "callee": None} if index in ended else call
                for index, call in enumerate(calls)
            ]
            for index, results in unmade.items():
                left[index] = {**left[index], "unmade": sorted(results)}
            run = self._run(left)
            if run.is_complete(calls):
                break
            if run.making is not None:
                index, result = run.making
                unmade[index].add(result)
                continue
            at = len(run.answers)
            callee = left[at]["callee"] if run.answers else None
            if callee in NO_CALLS:
                at_call = f" at '{callee}'" if callee else ""
                remedy = f"name a Python that has it with --python or in {VARIABLE}"
                raise CompileError(
                    f"the library ended{at_call} with {run.end}",
                    remedy=remedy if "ModuleNotFoundError" in run.end else None,
                )
            ended[at] = run.end
        for index, how in ended.items():
            # What a simulator does not simulate says nothing about the call.
            lacks = lacking(how)
            said = {"unsimulated": lacks} if lacks else {"refused": f"the library ended with {how}"}
            run.answers[index] = {"index": index, **said}
        for answer in run.answers:
            if _NO_MEMORY in answer.get("refused", "") and "--memory" in self._command:
                limit = int(self._command[self._command.index("--memory") + 1]) / _GB
                answer["refused"] = (
                    f"simulating it takes more than {limit:.0f} GB of memory (--memory)"
                )
        return run.answers

    def _run(self, calls: Calls) -> _Run:
        """Makes calls in the process, which is started if there is none."""
        folder = Path(self._folder.name)
        listed = folder / "steps.json"
        listed.write_text(json.dumps(calls))
        said = (folder / "stderr").open("a+", errors="replace")
        with said:
            begin = said.seek(0, os.SEEK_END)
            process = self._process
            if process is None:
                process = subprocess.Popen(
                    [*self._command, str(listed)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=said,
                    text=True,
                    errors="replace",
                    cwd=folder,
                )
                self._process = process
            else:
                _ask(process, listed)
            run, others, is_done = _read(process)
            if is_done:
                return run
            self._stop()
            said.seek(begin)
            words = end(process.returncode, "".join(others), said.read())
            return replace(run, end=words)

    def _stop(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        # The process ends once it is asked nothing more, if it has not; what it says then, and
        # what it was asked last, are of no use.
        with suppress(BrokenPipeError):
            process.communicate()


@dataclass(frozen=True)
class _Run:
    """Output of the library's process for a list of calls."""

    answers: list[dict[str, Any]]
    """Answers to the first calls; to all if the process survived."""
    making: tuple[int, int] | None
    """Call and result index of the replacement tensor that was being created at the end."""
    end: str

    def is_complete(self, calls: Calls) -> bool:
        """Returns whether every call has an answer, and the last one its results."""
        return self.making is None and len(self.answers) == len(calls)


def _ask(process: subprocess.Popen[str], listed: Path) -> None:
    """Names the next list of calls to a process, which may have ended."""
    assert process.stdin is not None
    with suppress(BrokenPipeError):
        process.stdin.write(f"{listed}\n")
        process.stdin.flush()


def _read(process: subprocess.Popen[str]) -> tuple[_Run, list[str], bool]:
    """Reads the answers to a list of calls, what else the process says, and whether it goes on."""
    answers: list[dict[str, Any]] = []
    others: list[str] = []
    making: tuple[int, int] | None = None
    assert process.stdout is not None
    for line in process.stdout:
        if not line.startswith("{"):
            others.append(line)
            continue
        said = json.loads(line)
        if "done" in said:
            return _Run(answers, None, ""), others, True
        at = said.get("making")
        making = None if at is None else (at[0], at[1])
        if "index" in said:
            answers.append(said)
    return _Run(answers, making, ""), others, False


def library_answers(calls: Calls, command: Sequence[str]) -> list[dict[str, Any]]:
    """Answers of a library that is asked about one list of calls only; see `Library.answers`."""
    with closing(Library(command)) as library:
        return library.answers(calls)


def end(status: int, output: str, errors: str) -> str:
    """Describes how a process ended by its exit status and what it said."""
    if _NO_MEMORY in errors:
        return f"{_NO_MEMORY}: out of memory"
    if status > 0 and (said := last_words(output + errors)):
        return said
    if status < 0:
        return signal.Signals(-status).name
    lines = [line.strip() for line in errors.strip().splitlines()]
    # The library's message follows this line, before a stack trace.
    said = lines[lines.index("info:") + 1 :][:1] if "info:" in lines else lines[-1:]
    return f"status {status}: {said[0] if said else 'it said nothing'}"


class Libraries:
    """Libraries that were asked, each in a process of its own that goes on until it is closed."""

    def __init__(self) -> None:
        self._libraries: dict[tuple[str, ...], Library] = {}

    def of(self, command: Sequence[str]) -> Library:
        """The library of a command, started at the first question."""
        key = tuple(command)
        if key not in self._libraries:
            self._libraries[key] = Library(command)
        return self._libraries[key]

    def close(self) -> None:
        """Ends the processes."""
        for library in self._libraries.values():
            library.close()
        self._libraries.clear()


def python_of_release(given: str | None, release: str) -> str:
    """First of the given Pythons whose ttnn package is of a release.

    Raises CompileError if one does not exist, or none has that release.
    """
    named = given or os.environ.get(VARIABLE) or ""
    remedy = (
        f"name one with ttnn=={release} with --python or in {VARIABLE}; docs/optimizer.md says how "
        "to set one up"
    )
    others: list[str] = []
    for each in filter(None, named.split(os.pathsep)):
        found = shutil.which(each)
        if found is None:
            raise CompileError(f"there is no Python with the package 'ttnn' at {each}",
                               remedy=remedy)  # fmt: skip
        # Absolute for another working directory, unresolved to keep the environment.
        python = str(Path(found).absolute())
        installed = _installed_release(python)
        # Without any known release, errors are left to the process that makes the calls.
        if installed in (release, None):
            return python
        others.append(f"that of {each} is {installed}")
    if not others:
        raise CompileError("there is no Python with the package 'ttnn'", remedy=remedy)
    raise CompileError(
        f"the program is written for tt-metal {release}, which no package 'ttnn' here is of: "
        f"{', '.join(others)}",
        remedy=remedy,
    )


@lru_cache
def _installed_release(python: str) -> str | None:
    """Release of a Python's ttnn package, None if unknown."""
    query = "import importlib.metadata; print(importlib.metadata.version('ttnn'))"
    done = subprocess.run([python, "-c", query], capture_output=True, text=True, check=False)
    # Local builds have a version suffix.
    return done.stdout.strip().partition("+")[0] or None if done.returncode == 0 else None


def memory_limit(given: int | None) -> int:
    """Memory limit of the library's process in bytes, by default half of the machine's memory."""
    if given is None:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    return given * _GB
