"""Compiles, builds, runs and measures a model in a thread, and reports how far it is."""

from __future__ import annotations

import re
import threading
import time
import traceback
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ttcodegen.compilation import CompileOptions
from ttcodegen.explorer.graph import Graph
from ttcodegen.explorer.models import (
    compile_stages,
    flatbuffer_graphs,
    flatbuffer_of,
    is_flatbuffer,
    source_graphs,
)
from ttcodegen.explorer.module_graphs import LINE
from ttcodegen.explorer.results import Measured, OpResults
from ttcodegen.explorer.settings import Settings
from ttcodegen.foundation.diagnostics import CompileError, Diagnostic, Source
from ttcodegen.rt.commands.command import Logger

_QUOTED = re.compile(r"'([^']+)'")
_LOG = "execution.log"
_MEASURING = 2
"""Steps that measure single ops."""


@dataclass
class Status:
    """Progress of an execution."""

    total: int
    progress: int = 0
    current: str = "waiting"
    done: bool = False
    error: str | None = None
    nodes: dict[str, str] = field(default_factory=dict[str, str])
    """Errors of single ops, by their nodes."""


class _JobLogger(Logger):
    """Takes the messages of the sub-commands of `ttcodegen-rt`."""

    def __init__(self, report: Callable[[str], None]) -> None:
        super().__init__("", "info")
        self._note = report

    def _write(self, level: str, message: str, stream: Any) -> None:
        if level != "debug":
            self._note(message)


class Execution:
    """One execution of a model. The thread ends by itself; what it found stays."""

    def __init__(
        self,
        path: Path,
        settings: Settings,
        options: CompileOptions,
        folder: Path,
        before: Measured | None = None,
    ) -> None:
        """
        Args:
            path: a module, a flatbuffer or the folder of a project.
            settings: of the run.
            options: of the compile.
            folder: where the project and the results go.
            before: what the execution before this one measured.
        """
        self.path = path
        self.options = options
        self.folder = folder
        self.before = before
        self.measured: Measured | None = None
        self.graphs: list[Graph] = []
        """Those of the stages, with the names of the nodes that results have."""
        self.project: Path | None = None
        self._settings = settings
        self._lines: list[str] = []
        self._begin = time.monotonic()
        self._end: float | None = None
        self._lock = threading.Lock()
        self._compiles = not path.is_dir() and not is_flatbuffer(path)
        self._status = Status(total=_MEASURING + (3 if self._compiles else 0))
        self._at_end: list[Callable[[], None]] = []
        self._thread = threading.Thread(target=self._run, name="execution", daemon=True)

    def start(self) -> None:
        """Begins; raises CompileError if there can be no such folder."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            (self.folder / _LOG).write_text("", "utf-8")
        except OSError as error:
            raise CompileError(f"cannot write '{self.folder}': {error.strerror}") from None
        self._thread.start()

    def at_end(self, do: Callable[[], None]) -> None:
        """Calls a function once the execution has ended: now, if it has."""
        with self._lock:
            if not self._status.done:
                self._at_end.append(do)
                return
        do()

    def wait(self, seconds: float | None = None) -> bool:
        """Waits for the end; whether it has come."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    @property
    def is_done(self) -> bool:
        """True if it has ended, well or not."""
        return self._status.done

    def report(self) -> dict[str, Any]:
        """The answer to `status_check`."""
        with self._lock:
            end = self._end if self._end is not None else time.monotonic()
            answer: dict[str, Any] = {
                "isDone": self._status.done,
                "progress": self._status.progress,
                "total": self._status.total,
                "timeElapsed": round(end - self._begin, 3),
                "currentStatus": self._status.current,
                "stdout": "\n".join(self._lines),
                "log_file": str(self.folder / _LOG),
            }
            if self._status.error is not None:
                answer["error"] = self._status.error
            if self._status.nodes:
                answer["nodeErrors"] = dict(self._status.nodes)
        if self.measured is not None:
            answer["perf_trace"] = str(self.measured.table)
            answer["summary"] = self.measured.summary
        return answer

    def _note(self, text: str) -> None:
        with self._lock:
            self._lines += text.splitlines()
            try:
                with (self.folder / _LOG).open("a", encoding="utf-8") as log:
                    log.write(text + "\n")
            except OSError:
                pass  # `report` still has the lines.

    @contextmanager
    def _step(self, what: str) -> Generator[None]:
        with self._lock:
            self._status.current = what
        self._note(what)
        yield
        with self._lock:
            self._status.progress += 1

    def _run(self) -> None:
        source: Source | None = None
        try:
            self._note(f"Path: {self.path}")
            if self._compiles:
                source = Source.read(str(self.path))
                self._execute_module(source)
            else:
                self._execute_artifact()
            self._finish("done", None, {})
        except CompileError as error:
            self._finish("failed", error.render(source), self._nodes_of(error, source))
        except Exception as error:
            # Nobody else would see an exception in a thread.
            self._note(traceback.format_exc())
            self._finish("failed", f"internal error: {type(error).__name__}: {error}", {})

    def _finish(self, current: str, error: str | None, nodes: Mapping[str, str]) -> None:
        self._note(error or "done")
        with self._lock:
            self._status.current = current
            self._status.error = error
            self._status.nodes = dict(nodes)
            self._end = time.monotonic()
            self._status.done = True
            waiting, self._at_end = self._at_end, []
        for do in waiting:
            do()

    # Errors by node

    def _nodes_of(self, error: CompileError, source: Source | None) -> dict[str, str]:
        """The nodes that an error is about: of the lines it points to, and those that it names."""
        if source is None:
            return {}
        try:
            nodes = [node for graph in source_graphs(source) for node in graph.nodes]
        except CompileError:
            return {}
        by_line = {node.attribute(LINE): node.id for node in nodes if node.attribute(LINE)}
        known = {node.id for node in nodes}
        found: dict[str, str] = {}
        for diagnostic in error.diagnostics:
            at = by_line.get(_line(diagnostic, source))
            for node in (at, *_QUOTED.findall(diagnostic.message)):
                if node in known:
                    found.setdefault(node, diagnostic.message)
        return found

    # Steps

    def _execute_module(self, source: Source) -> None:
        from ttcodegen.project.checking import check_project, check_summary, output_lines
        from ttcodegen.project.sources import FLATBUFFER_FILES, project_files
        from ttcodegen.project.toolchain import find_toolchain
        from ttcodegen.project.writer import refuse_unrelated_folder, write_project

        with self._step("Compiling"):
            toolchain = find_toolchain()
            compiled, recorder = compile_stages(source, self.options, report=self._note)
            self.graphs = recorder.graphs()
            if compiled.explanation:
                self._note(compiled.explanation)
        out = self.folder / "project"
        with self._step("Writing the project"):
            refuse_unrelated_folder(out, force=False)
            files = project_files(compiled, formatted=True)
            conflicts = write_project(compiled.description, out, files)
            for conflict in conflicts:
                raise CompileError(f"'{out / conflict.path}' {conflict.reason}")
            self.project = out
        with self._step("Building, running and comparing"):
            checks = check_project(
                source, compiled, out, toolchain, kind="both", seed=self._settings.seed
            )
            for line in (*output_lines(checks), check_summary(checks, out)):
                self._note(line)
        if compiled.flatbuffer:
            self._measure(out / FLATBUFFER_FILES[self.options.target])
        else:
            # Programs that TTIR has no ops for have no meaning that could be run op by op.
            with self._lock:
                self._status.total -= _MEASURING
            self._note("the program has no flatbuffer: nothing is measured op by op")
        failed = [reason for check in checks for reason in check.reasons]
        if failed or not all(check.passed for check in checks):
            raise CompileError("; ".join(failed) or "an output differs from its golden value")

    def _execute_artifact(self) -> None:
        """A project is built as it is, with edits, and compared with its flatbuffer by the run."""
        is_project = self.path.is_dir()
        self.project = self.path if is_project else None
        flatbuffer = flatbuffer_of(self.path) if is_project else self.path
        self.graphs = flatbuffer_graphs(flatbuffer.read_bytes())
        self._measure(flatbuffer)

    def _measure(self, flatbuffer: Path) -> None:
        results = OpResults(flatbuffer, self.folder, _JobLogger(self._note), self._settings.seed)
        with self._step("Measuring, op by op"):
            results.measure(self.project)
        with self._step("Comparing, op by op"):
            results.compare(self.path if self.path.is_dir() else flatbuffer)
        self.measured = results.measured(self.before)


def _line(diagnostic: Diagnostic, source: Source) -> str | None:
    place = diagnostic.place
    if isinstance(place, int):
        place = source.location(place)
    return None if place is None else str(place.line)
