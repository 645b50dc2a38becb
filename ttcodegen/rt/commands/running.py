"""What `run` and `perf` have in common: which programs, on what values, how far they are."""

from __future__ import annotations

import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.runtime.executable import Executable
from ttcodegen.runtime.program_inputs import ProgramInputs, choose_inputs


def chosen_programs(arguments: Mapping[str, Any], executable: Executable) -> list[int]:
    """The programs that --program-index names.

    Raises:
        CompileError: if there is no such program.
    """
    wanted: str = arguments["program_index"]
    count = len(executable.programs)
    if wanted == "all":
        return list(range(count))
    if not wanted.isdecimal() or int(wanted) >= count:
        raise CompileError(
            f"'{executable.path}' has no program {wanted}; it has {count}, counted from 0"
        )
    return [int(wanted)]


def program_inputs(
    arguments: Mapping[str, Any], executable: Executable, program: int
) -> ProgramInputs:
    """The values for a program, as the arguments choose them.

    Raises:
        CompileError: as `choose_inputs`.
    """
    folder: Path | None = arguments["inputs"]
    if folder is not None and not folder.is_dir():
        raise CompileError(f"--inputs: there is no folder '{folder}'")
    return choose_inputs(
        executable, program, init=arguments["init"], seed=arguments["seed"], folder=folder
    )


class Progress:
    """Shows a person how far a long run is: on a terminal only, on one line that is wiped in the
    end."""

    def __init__(self, files: int, loops: int, quiet: bool) -> None:
        self._files = files
        self._loops = loops
        self._shown = not quiet and sys.stderr.isatty() and files * loops > 1
        self._file = 0
        self._what = ""

    @contextmanager
    def step(self, what: str) -> Generator[None]:
        """The work on one file."""
        self._file += 1
        self._what = what
        self._show("")
        try:
            yield
        finally:
            self.wipe()

    def loop(self, number: int) -> None:
        """A run of a program of that file begins; they count from 0."""
        if self._loops > 1:
            self._show(f", run {number + 1} of {self._loops}")

    def wipe(self) -> None:
        """Leaves the line to something else."""
        self._write("\r\x1b[K")

    def _show(self, more: str) -> None:
        self._write(f"\r\x1b[K[{self._file}/{self._files}] {self._what}{more}")

    def _write(self, text: str) -> None:
        if self._shown:
            sys.stderr.write(text)
            sys.stderr.flush()
