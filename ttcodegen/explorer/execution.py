"""Executions of a model in a thread: compile, build, run, measure; progress and node data."""

from __future__ import annotations

import json
import re
import threading
import time
import traceback
from collections import OrderedDict
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ttcodegen.compilation import CompileOptions
from ttcodegen.explorer.graph import GradientStop, Graph, NodeData, NodeValue, to_json
from ttcodegen.explorer.models import (
    compile_stages,
    flatbuffer_graphs,
    flatbuffer_of,
    is_flatbuffer,
    source_graphs,
)
from ttcodegen.explorer.module_graphs import LINE, positions
from ttcodegen.explorer.stages import Settings
from ttcodegen.foundation.diagnostics import CompileError, Diagnostic, Source
from ttcodegen.foundation.whole_files import write_whole
from ttcodegen.project.manifest import Node
from ttcodegen.rt.commands.command import Logger

if TYPE_CHECKING:
    import numpy as np

    from ttcodegen.numerics.interpreter import OpEvent

# What an execution found, op by op, as numbers of nodes.

_HEAT = [GradientStop(0, "#ffffff"), GradientStop(1, "#e53935")]
_AGREEMENT = [GradientStop(0, "#e53935"), GradientStop(1, "#c8e6c9")]
_CHANGE = [GradientStop(0, "#66bb6a"), GradientStop(0.5, "#ffffff"), GradientStop(1, "#e53935")]
_MOST_KEPT = 1 << 28
"""Limit in bytes on op results that are kept for comparison with the next execution."""

METRICS = {
    "estimated_us": ("estimated time on the card (us)", _HEAT),
    "estimated_share": ("share of the estimated time (%)", _HEAT),
    "measured_us": ("measured time of the C++ on the CPU backend (us)", _HEAT),
    "flatbuffer_us": ("measured time of the flatbuffer run (us)", _HEAT),
    "l1_bytes": ("L1 of each core (bytes)", _HEAT),
    "bytes": ("bytes read and written", _HEAT),
    "correlation": ("correlation with the golden", _AGREEMENT),
    "correlation_before": ("correlation with the run before", _AGREEMENT),
    "estimated_change": ("estimated time, change from the run before (us)", _CHANGE),
    "measured_change": ("measured time, change from the run before (us)", _CHANGE),
}
"""Metrics of ops: title and colours."""


@dataclass
class Measured:
    """Measurements of an execution."""

    values: dict[str, dict[Node, float]]
    """Values by metric and node."""
    table: Path
    """CSV file with a line per op."""
    summary: dict[str, float]
    """Totals in microseconds: estimate, flatbuffer, and C++ on the CPU backend."""
    outputs: Mapping[Node, np.ndarray]
    """Kept outputs of ops."""

    def node_data(self, graphs: list[Graph]) -> dict[str, dict[str, NodeData]]:
        """Node data by metric and graph.

        Values of a function's nodes apply to nodes of the same name in all stages' graphs.
        """
        found: dict[str, dict[str, NodeData]] = {}
        for metric, values in self.values.items():
            name, gradient = METRICS[metric]
            by_function: dict[str, dict[str, float]] = {}
            for (function, node), value in values.items():
                by_function.setdefault(function, {})[node] = value
            for graph in graphs:
                function = graph.id.partition(": ")[2] or graph.id
                known = by_function.get(function)
                if known is None:
                    continue
                results = {n.id: NodeValue(known[n.id]) for n in graph.nodes if n.id in known}
                if results:
                    found.setdefault(metric, {})[graph.id] = NodeData(results, name, gradient)
        return found

    def write_node_data(self, graphs: list[Graph], folder: Path) -> dict[Path, Any]:
        """Writes a file per metric in Model Explorer's format; returns their contents."""
        written: dict[Path, Any] = {}
        for metric, data in self.node_data(graphs).items():
            path = folder / f"{metric}.json"
            written[path] = to_json(data)
            # Requests of other pages write and read it at the same time.
            write_whole(path, json.dumps(written[path]))
        return written


@dataclass
class OpResults:
    """Measures and compares the ops of a flatbuffer."""

    flatbuffer: Path
    folder: Path
    logger: Logger
    seed: int
    _values: dict[str, dict[Node, float]] = field(default_factory=dict[str, dict[Node, float]])
    _outputs: dict[Node, np.ndarray] = field(default_factory=lambda: {})
    _kept: int = 0
    """Size of the kept outputs in bytes."""
    _summary: dict[str, float] = field(default_factory=dict[str, float])
    _table: Path | None = None

    def __post_init__(self) -> None:
        graphs = flatbuffer_graphs(self.flatbuffer.read_bytes(), elements=0)
        self._nodes = {graph.id: [node.id for node in positions(graph)] for graph in graphs}

    def _node(self, function: str, index: int) -> Node | None:
        nodes = self._nodes.get(function, [])
        return (function, nodes[index]) if index < len(nodes) else None

    def measure(self, project: Path | None) -> None:
        """Measures each op of the flatbuffer, and of the C++ of a built project.

        Raises:
            CompileError: if the file cannot be run.
        """
        content = self._perf(self.flatbuffer)
        self._table = Path(content["csv"])
        rows: list[dict[str, Any]] = content["ops"]
        total = sum(row["estimated_us"] or 0.0 for row in rows)
        for row in rows:
            node = self._node(row["program"], row["index"])
            if node is None:
                continue
            self._set("flatbuffer_us", node, row["time_us"])
            # Emulated times of kernel programs, for the target whose C++ launches them.
            self._set("measured_us", node, row["emulated_us"])
            self._set("bytes", node, row["bytes"])
            self._set("l1_bytes", node, row["l1_bytes"])
            self._set("estimated_us", node, row["estimated_us"])
            if total and row["estimated_us"] is not None:
                self._set("estimated_share", node, round(100 * row["estimated_us"] / total, 3))
        self._summary["estimated_us"] = round(total, 3)
        self._summary["flatbuffer_us"] = round(sum(row["time_us"] for row in rows), 3)
        if project is not None:
            self._measure_library()

    def _measure_library(self) -> None:
        """Measures the C++ calls that are ops of the flatbuffer, and their total."""
        from ttcodegen.runtime.executable import library_beside

        library = library_beside(self.flatbuffer)
        if library is None:
            return
        ops: list[dict[str, Any]] = self._perf(library)["ops"]
        self._summary["cpu_backend_us"] = round(sum(row["time_us"] for row in ops), 3)
        for row in ops:
            # Skip rows of whole programs and of calls that are no op.
            if row["index"] is not None and row["processor_us"] is not None:
                node = self._node(row["program"], row["index"])
                if node is not None:
                    self._set("measured_us", node, row["time_us"])

    def _perf(self, path: Path) -> dict[str, Any]:
        from ttcodegen.rt import API, Artifacts

        artifacts = Artifacts(self.logger, self.folder / "artifacts")
        perf = API.Perf({"binary": str(path), "--quiet": True}, self.logger, artifacts)
        return _content(perf()[1])

    def compare(self, binary: Path) -> None:
        """Compares each op with its golden value, if there is one.

        A project is built with its edits, and its C++ compared with its flatbuffer. Raises:
        CompileError: if the file cannot be run, or an output differs.
        """
        from ttcodegen.rt import API, Artifacts

        artifacts = Artifacts(self.logger, self.folder / "artifacts")
        callback = self._observe if self.flatbuffer.suffix == ".ttnn" else None
        arguments = {"binary": str(binary), "--quiet": True}
        run = API.Run(arguments, self.logger, artifacts, callback)
        content = _content(run()[1])
        failed = [
            f"output '{output['name']}' of '{program['program']}': {check['check']}"
            for program in content["programs"]
            for output in program["outputs"]
            for check in output["checks"]
            if not check["passed"]
        ]
        if failed:
            raise CompileError(f"the run differs: {'; '.join(failed)}")

    def _observe(self, event: OpEvent) -> None:
        node = self._node(event.program, event.index)
        if node is None:
            return
        found = [a.correlation for a in event.agreements() if a is not None]
        correlations = [correlation for correlation in found if correlation is not None]
        if correlations:
            self._set("correlation", node, round(min(correlations), 6))
        if not event.outputs:
            return
        last = self._outputs.get(node)
        kept = self._kept + event.outputs[0].nbytes - (last.nbytes if last is not None else 0)
        if kept <= _MOST_KEPT:
            self._kept = kept
            self._outputs[node] = event.outputs[0].copy()

    def _set(self, metric: str, node: Node, value: float | None) -> None:
        if value is not None and isfinite(value):
            self._values.setdefault(metric, {})[node] = value

    def measured(self, before: Measured | None) -> Measured:
        """All measurements, with the changes since the previous execution."""
        assert self._table is not None
        if before is not None:
            self._compare_with(before)
        return Measured(self._values, self._table, self._summary, self._outputs)

    def _compare_with(self, before: Measured) -> None:
        for metric in ("estimated", "measured"):
            times = before.values.get(f"{metric}_us", {})
            for node, value in self._values.get(f"{metric}_us", {}).items():
                if node in times:
                    self._set(f"{metric}_change", node, round(value - times[node], 3))
        for node, array in self._outputs.items():
            other = before.outputs.get(node)
            if other is not None and other.shape == array.shape:
                self._set("correlation_before", node, _correlation(array, other))


def _content(results: Mapping[str, Any]) -> dict[str, Any]:
    """Result of a single file; raises CompileError with its error."""
    (found,) = results["results"]
    if found["error"] is not None:
        raise CompileError(str(found["error"]))
    return found


def _correlation(first: np.ndarray, second: np.ndarray) -> float | None:
    """Pearson correlation, None if it is undefined."""
    from ttcodegen.numerics.interpreter import golden_agreement

    return golden_agreement(first, second).correlation


# Results of requests, kept by content up to a number of bytes.
#
# Requests for the same result that come while it is computed wait for it.

MOST_KEPT = 64 << 20
"""Limit on the cached results in bytes."""


class ResultsCache:
    """Bounded LRU cache of byte strings."""

    def __init__(self, most_kept: int = MOST_KEPT) -> None:
        self._most = most_kept
        self._kept: OrderedDict[str, bytes] = OrderedDict()
        self._bytes = 0
        self._computed: dict[str, Future[bytes]] = {}
        self._lock = threading.Lock()

    def kept(self, key: str) -> bytes | None:
        """Cached result of a key, None if there is none."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
            return self._kept.get(key)

    def get(self, key: str, compute: Callable[[], bytes]) -> bytes:
        """Cached result of a key, computed once if missing.

        Raises:
            Exception: of `compute`, to all that wait for the result; errors are not cached.
        """
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
            waiting = self._computed.get(key)
            own: Future[bytes] = Future()
            if waiting is None:
                self._computed[key] = own
        if waiting is not None:
            return waiting.result()
        try:
            found = compute()
        except BaseException as error:
            with self._lock:
                del self._computed[key]
            own.set_exception(error)
            own.exception()
            raise
        with self._lock:
            del self._computed[key]
            self._keep(key, found)
        own.set_result(found)
        return found

    def _keep(self, key: str, found: bytes) -> None:
        # A result that would push most others out is computed again instead.
        if len(found) > self._most // 4:
            return
        self._kept[key] = found
        self._bytes += len(found)
        while self._bytes > self._most:
            _, dropped = self._kept.popitem(last=False)
            self._bytes -= len(dropped)


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
    """Errors of single ops, by node."""


class _JobLogger(Logger):
    """Logger for the sub-commands of `ttcodegen-rt`."""

    def __init__(self, report: Callable[[str], None]) -> None:
        super().__init__("", "info")
        self._note = report

    def _write(self, level: str, message: str, stream: Any) -> None:
        if level != "debug":
            self._note(message)


class Execution:
    """Execution of a model in a thread; its results outlive the thread."""

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
            path: a module, a flatbuffer or a project's folder.
            settings: of the run.
            options: of the compile.
            folder: folder of the project and the results.
            before: measurements of the previous execution.
        """
        self.path = path
        self.options = options
        self.folder = folder
        self.before = before
        self.measured: Measured | None = None
        self.graphs: list[Graph] = []
        """Graphs of the stages, with the node names of the results."""
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
        """Starts the thread; raises CompileError if the folder cannot be created."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            (self.folder / _LOG).write_text("", "utf-8")
        except OSError as error:
            raise CompileError(f"cannot write '{self.folder}': {error.strerror}") from None
        self._thread.start()

    def at_end(self, do: Callable[[], None]) -> None:
        """Calls a function when the execution ends, or now if it has ended."""
        with self._lock:
            if not self._status.done:
                self._at_end.append(do)
                return
        do()

    def wait(self, seconds: float | None = None) -> bool:
        """Waits for the end; returns whether it ended."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    @property
    def is_done(self) -> bool:
        """Returns whether it ended, successfully or not."""
        return self._status.done

    def report(self) -> dict[str, Any]:
        """Answer to `status_check`."""
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
        """Nodes of an error: by the lines that it refers to, and by quoted names."""
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
        from ttcodegen.project.check_summary import check_summary, output_lines
        from ttcodegen.project.checking import check_project
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
        """Runs a flatbuffer or a project, which is built with its edits and compared with its
        flatbuffer."""
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
