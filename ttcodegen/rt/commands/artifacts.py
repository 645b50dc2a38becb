"""Where the sub-commands put messages and files."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.foundation.messages import Level, set_level
from ttcodegen.foundation.printable import printable
from ttcodegen.foundation.suggestions import did_you_mean

LEVELS = ("critical", "error", "warning", "info", "debug")
LEVEL_VARIABLE = "TTCODEGEN_RT_LOG_LEVEL"
OTHER_LEVEL_VARIABLE = "TTRT_LOGGER_LEVEL"
"""What ttrt reads; ours comes first."""
_MARK = ".ttcodegen-artifacts"


class Logger:
    """Writes messages, a line each: to the terminal, or to a file that is begun anew.

    The environment variable TTCODEGEN_RT_LOG_LEVEL chooses from which level on, by the names of
    Python's `logging`; INFO without it.
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
        """Reports what went wrong."""
        self._write("error", message, sys.stderr)

    def warning(self, message: str) -> None:
        """Reports what may be a mistake."""
        self._write("warning", message, sys.stderr)

    def info(self, message: str) -> None:
        """Reports a result."""
        self._write("info", message, sys.stdout)

    def debug(self, message: str) -> None:
        """Reports what is being done."""
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
    """A folder of what the sub-commands make. It is marked as theirs: no other one is emptied."""

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
            CompileError: if it was not made by the sub-commands.
        """
        if not self.folder.exists():
            return
        if not self.folder.joinpath(_MARK).is_file():
            raise CompileError(
                f"'{self.folder}' was not made by ttcodegen-rt and is not emptied",
                remedy="choose another folder with --artifact-dir, or remove it yourself",
            )
        shutil.rmtree(self.folder)

    def mark(self) -> None:
        """Makes the folder, and marks it as one that may be emptied.

        Raises:
            CompileError: if it cannot be made.
        """
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self.folder.joinpath(_MARK).touch()
        except OSError as error:
            raise CompileError(f"cannot write '{self.folder}': {error.strerror}") from None

    def write(self, name: str, content: str | bytes) -> Path:
        """Writes a file of that path in the folder.

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
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write(path)
        except OSError as error:
            raise CompileError(f"cannot write '{path}': {error.strerror or error}") from None
        self.logger.debug(f"wrote {path}")
        return path


def json_text(content: Any) -> str:
    """The text of a JSON file."""
    return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
