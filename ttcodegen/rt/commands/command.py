"""Base of the sub-commands: arguments, messages, artifacts, inputs and results."""

from __future__ import annotations

import json
import os
import shutil
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path
from typing import Any, ClassVar, TextIO

from xdsl.utils.exceptions import VerifyException

from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.foundation.messages import (
    Level,
    did_you_mean,
    printable,
    printable_json,
    set_level,
)
from ttcodegen.lang.projects.called_operations import callable_operations
from ttcodegen.project.building import build_project
from ttcodegen.project.manifest import read_manifest
from ttcodegen.project.sources import FLATBUFFER_FILES
from ttcodegen.project.staging import refuse_link
from ttcodegen.project.toolchain import find_toolchain
from ttcodegen.rt.commands.arguments import resolved
from ttcodegen.runtime.executable import Executable
from ttcodegen.runtime.program_inputs import ProgramInputs, choose_inputs
from ttcodegen.version import __version__

# Where the sub-commands put messages and files.

LEVELS = ("critical", "error", "warning", "info", "debug")
LEVEL_VARIABLE = "TTCODEGEN_RT_LOG_LEVEL"
OTHER_LEVEL_VARIABLE = "TTRT_LOGGER_LEVEL"
"""Log level variable of ttrt, overridden by ours."""
_MARK = ".ttcodegen-artifacts"


class Logger:
    """Writes messages as lines to the terminal, or to a new file.

    The environment variable TTCODEGEN_RT_LOG_LEVEL sets the minimum level by the names of Python's
    `logging`; INFO by default.
    """

    def __init__(self, file_name: str | os.PathLike[str] = "", level: str | None = None) -> None:
        self.file_name = os.fspath(file_name)
        level = level or os.environ.get(LEVEL_VARIABLE)
        level = level or os.environ.get(OTHER_LEVEL_VARIABLE) or "info"
        if level.lower() not in LEVELS:
            hint = did_you_mean(level, LEVELS)
            raise CompileError(f"the log level '{level}' is none of {', '.join(LEVELS)}{hint}")
        set_level(Level[level.upper()])
        self._level = LEVELS.index(level.lower())
        self._mode = "w"

    def error(self, message: str) -> None:
        """Reports an error."""
        self._write("error", message, sys.stderr)

    def warning(self, message: str) -> None:
        """Reports a possible mistake."""
        self._write("warning", message, sys.stderr)

    def info(self, message: str) -> None:
        """Reports a result."""
        self._write("info", message, sys.stdout)

    def debug(self, message: str) -> None:
        """Reports progress."""
        self._write("debug", message, sys.stderr)

    def _write(self, level: str, message: str, stream: TextIO) -> None:
        if LEVELS.index(level) > self._level:
            return
        if not self.file_name:
            stream.write(printable(message) + "\n")
            return
        try:
            with Path(self.file_name).open(self._mode, encoding="utf-8") as file:
                file.write(message + "\n")
            self._mode = "a"
        except OSError as error:
            raise CompileError(f"cannot write '{self.file_name}': {error.strerror}") from None


class Artifacts:
    """Folder of the sub-commands' output, with a mark that permits emptying it."""

    def __init__(
        self,
        logger: Logger | None = None,
        artifacts_folder_path: str | os.PathLike[str] = "ttcodegen-artifacts",
    ) -> None:
        self.logger = logger if logger is not None else Logger()
        self.folder = Path(artifacts_folder_path)

    def clean(self) -> None:
        """Empties the folder.

        Raises:
            CompileError: if the sub-commands did not create it.
        """
        if not self.folder.exists():
            return
        self._refuse_link()
        if not self.folder.joinpath(_MARK).is_file():
            raise CompileError(
                f"'{self.folder}' was not made by ttcodegen-rt and is not emptied",
                remedy="choose another folder with --artifact-dir, or remove it yourself",
            )
        shutil.rmtree(self.folder)

    def mark(self) -> None:
        """Creates the folder and marks it as one that may be emptied.

        Raises:
            CompileError: if it cannot be created, or is a link.
        """
        self._refuse_link()
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self.folder.joinpath(_MARK).touch()
        except OSError as error:
            raise CompileError(f"cannot write '{self.folder}': {error.strerror}") from None

    def _refuse_link(self) -> None:
        # The folder in which a sub-command is called may come from someone else, with a link in it.
        refuse_link(self.folder.parent, self.folder.name)

    def write(self, name: str, content: str | bytes) -> Path:
        """Writes a file at a path in the folder.

        Raises:
            CompileError: if it cannot be written.
        """
        data = content.encode("utf-8") if isinstance(content, str) else content
        return self._written(name, lambda path: path.write_bytes(data))

    def write_array(self, name: str, array: Any) -> Path:
        """Writes a .npy file; bfloat16 as float32.

        Raises:
            CompileError: if it cannot be written.
        """
        from ttcodegen.project.writer import save_array

        return self._written(name, lambda path: save_array(path, array))

    def _written(self, name: str, write: Callable[[Path], Any]) -> Path:
        path = self.folder / name
        self.mark()
        refuse_link(self.folder, name)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write(path)
        except OSError as error:
            raise CompileError(f"cannot write '{path}': {error.strerror or error}") from None
        self.logger.debug(f"wrote {path}")
        return path


def json_text(content: Any) -> str:
    """Serializes JSON."""
    text = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)
    return printable_json(text) + "\n"


# What the sub-commands have in common: arguments, messages, artifacts, results.

SCHEMA_VERSION = 1
"""Version of result files; incremented when an entry is removed or changes its meaning."""


class ResultCode(IntEnum):
    """Result of a sub-command, equal to the program's exit status."""

    PASSED = 0
    WRONG_INPUT = 1
    FAILED = 4
    """A comparison or a check failed."""


@dataclass
class FileResult:
    """Result of a sub-command for one file."""

    file: str
    kind: str
    passed: bool = True
    error: str | None = None
    """Reason for which the file could not be used."""
    content: dict[str, Any] = field(default_factory=dict[str, Any])

    def to_json(self) -> dict[str, Any]:
        """Entry of a result file."""
        entry = {"file": self.file, "kind": self.kind, "passed": self.passed, "error": self.error}
        return {**entry, **self.content}


class Command(ABC):
    """Sub-command with its arguments; calls are independent of each other.

    Arguments have the names of the command line, as in `{"binary": "out.ttnn", "--loops": 10}`.
    `--log-file` and `--artifact-dir` take precedence over a given logger and artifacts.
    """

    name: ClassVar[str]

    def __init__(
        self,
        args: Mapping[str, Any] | None = None,
        logger: Logger | None = None,
        artifacts: Artifacts | None = None,
    ) -> None:
        self.arguments = resolved(self.name, args or {})
        given = args or {}
        level = "warning" if self.arguments["quiet"] else self.arguments["log_level"]
        if logger is None or given.get("--log-file") is not None:
            logger = Logger(self.arguments["log_file"] or "", level)
        self.logger = logger
        if artifacts is None or given.get("--artifact-dir") is not None:
            folder = Path(self.arguments["artifact_dir"])
            if given.get("--artifact-dir") is not None and folder.is_symlink():
                folder = folder.resolve()  # The user's own link leads where it is to lead.
            artifacts = Artifacts(self.logger, folder)
        self.artifacts = artifacts

    def __call__(self) -> tuple[int, dict[str, Any]]:
        """Runs the sub-command.

        Returns:
            A `ResultCode`, and the content of a result file.

        Raises:
            CompileError: if no files are given, or a file cannot be written. Errors of single files
                are in their results.
        """
        if "binary" in self.arguments and self.arguments["binary"] is None:
            raise CompileError(f"'{self.name}' needs the argument 'binary'")
        if self.arguments["clean_artifacts"]:
            self.artifacts.clean()
        programs = (self.arguments.get("tt_lang") or "").split(",")
        with callable_operations([path for path in programs if path]):
            found = self.execute()
        code = ResultCode.PASSED
        if any(result.error is not None for result in found):
            code = ResultCode.WRONG_INPUT
        elif not all(result.passed for result in found):
            code = ResultCode.FAILED
        results = {
            "schema_version": SCHEMA_VERSION,
            "tool_version": __version__,
            "command": self.name,
            "result_code": int(code),
            "passed": code is ResultCode.PASSED,
            "results": [result.to_json() for result in found],
        }
        self._write_results(results)
        return int(code), results

    @abstractmethod
    def execute(self) -> list[FileResult]:
        """Does the work; returns a result per file."""

    def artifact_folder(self, path: Path) -> str:
        """Artifact folder of a file: by its name, or by its path in the searched folder."""
        root: Path = self.arguments["binary"]
        relative = path.relative_to(root) if root.is_dir() else Path(path.name)
        return str(relative.with_suffix(""))

    def failed(self, path: Path, kind: str, error: CompileError) -> FileResult:
        """Reports an error of a file and returns it as a result."""
        text = error.render()
        self.logger.error(f"{path}: {text}")
        message = "; ".join(diagnostic.message for diagnostic in error.diagnostics)
        return FileResult(str(path), kind, passed=False, error=message)

    def _write_results(self, results: Mapping[str, Any]) -> None:
        text = json_text(results)
        if self.arguments["save_artifacts"]:
            self.artifacts.write(f"{self.name}_results.json", text)
        path: Path | None = self.arguments["result_file"]
        if path is None:
            return
        try:
            path.write_text(text, "utf-8")
        except OSError as error:
            raise CompileError(f"cannot write '{path}': {error.strerror or error}") from None


# Programs in files that decode and make no sense.


@contextmanager
def blamed_on(path: Path) -> Generator[None]:
    """Converts exceptions to a CompileError that the file at `path` is damaged.

    For work that succeeds on any program that the compiler wrote.
    """
    try:
        yield
    except (VerifyException, LookupError, TypeError, ValueError, AttributeError, AssertionError,
            ArithmeticError, RecursionError, MemoryError) as error:  # fmt: skip
        raise CompileError(
            f"'{path}' is damaged: no C++ can be made of its program "
            f"({type(error).__name__}: {error})",
            remedy="compile the model again; if the file is as ttcodegen wrote it, this is a bug",
        ) from error


# What `run` and `perf` have in common: which programs, on what values, how far they are.


def chosen_programs(arguments: Mapping[str, Any], executable: Executable) -> list[int]:
    """Indices of the programs that --program-index selects.

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
    """Input values of a program, as the arguments request.

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
    """Progress display of a long run on one terminal line."""

    def __init__(self, files: int, loops: int, quiet: bool) -> None:
        self._files = files
        self._loops = loops
        self._shown = not quiet and sys.stderr.isatty() and files * loops > 1
        self._file = 0
        self._what = ""

    @contextmanager
    def step(self, what: str) -> Generator[None]:
        """Context of the work on one file."""
        self._file += 1
        self._what = what
        self._show("")
        try:
            yield
        finally:
            self.wipe()

    def loop(self, number: int) -> None:
        """Shows that run `number`, counted from 0, begins."""
        if self._loops > 1:
            self._show(f", run {number + 1} of {self._loops}")

    def wipe(self) -> None:
        """Clears the line."""
        self._write("\r\x1b[K")

    def _show(self, more: str) -> None:
        self._write(f"\r\x1b[K[{self._file}/{self._files}] {self._what}{more}")

    def _write(self, text: str) -> None:
        if self._shown:
            sys.stderr.write(text)
            sys.stderr.flush()


# The folder of a project, given in place of a file: its C++ is built as it is now.


def flatbuffer_of_project(folder: Path) -> Path | None:
    """Flatbuffer of the project in `folder`; None if it is no project."""
    manifest = read_manifest(folder)
    if manifest is None:
        return None
    path = folder / FLATBUFFER_FILES.get(str(manifest.get("target")), "")
    return path if path.is_file() else None


def build_as_it_is(folder: Path) -> Path:
    """Builds the shared object of a project with its edits; writes nothing else.

    Raises:
        BuildError: if the build fails.
    """
    manifest = read_manifest(folder) or {}
    library = build_project(folder, str(manifest.get("module")), find_toolchain(), "so").library
    assert library is not None
    return library
