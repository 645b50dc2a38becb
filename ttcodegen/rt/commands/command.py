"""What the sub-commands have in common: arguments, messages, artifacts, results."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path
from typing import Any, ClassVar

from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.lang.projects.called_operations import callable_operations
from ttcodegen.rt.commands.arguments import resolved
from ttcodegen.rt.commands.artifacts import Artifacts, Logger, json_text
from ttcodegen.version import __version__

SCHEMA_VERSION = 1
"""Of result files: goes up when an entry is taken away or means something else."""


class ResultCode(IntEnum):
    """How a sub-command ended; the exit statuses of the program have the same numbers."""

    PASSED = 0
    WRONG_INPUT = 1
    FAILED = 4
    """A comparison or a check failed."""


@dataclass
class FileResult:
    """What a sub-command found in one file."""

    file: str
    kind: str
    passed: bool = True
    error: str | None = None
    """Why the file could not be used."""
    content: dict[str, Any] = field(default_factory=dict[str, Any])

    def to_json(self) -> dict[str, Any]:
        """The entry of a result file."""
        entry = {"file": self.file, "kind": self.kind, "passed": self.passed, "error": self.error}
        return {**entry, **self.content}


class Command(ABC):
    """A sub-command with its arguments. Calls are independent of each other.

    Arguments have the names of the command line, as in `{"binary": "out.ttnn", "--loops": 10}`.
    Messages go to the terminal and artifacts to their folder, unless a logger or artifacts are
    given; --log-file and --artifact-dir come before these.
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
        level = "error" if self.arguments["quiet"] else self.arguments["log_level"]
        if logger is None or given.get("--log-file") is not None:
            logger = Logger(self.arguments["log_file"] or "", level)
        self.logger = logger
        if artifacts is None or given.get("--artifact-dir") is not None:
            artifacts = Artifacts(self.logger, self.arguments["artifact_dir"])
        self.artifacts = artifacts

    def __call__(self) -> tuple[int, dict[str, Any]]:
        """Runs the sub-command.

        Returns:
            A `ResultCode`, and the results as a result file has them.

        Raises:
            CompileError: if the arguments name no files, or a file cannot be written. What is wrong
                with one of several files is in its result.
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
        """Does the work; a result for each file."""

    def artifact_folder(self, path: Path) -> str:
        """Where in the folder of artifacts that of a file goes: by its name, or by its path in the
        folder that was searched."""
        root: Path = self.arguments["binary"]
        relative = path.relative_to(root) if root.is_dir() else Path(path.name)
        return str(relative.with_suffix(""))

    def failed(self, path: Path, kind: str, error: CompileError) -> FileResult:
        """The result of a file that cannot be used; its message is reported."""
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
