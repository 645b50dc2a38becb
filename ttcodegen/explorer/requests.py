"""Requests on models, computed in worker processes."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import resource
import select
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

from ttcodegen.compilation import CompileOptions
from ttcodegen.explorer.graph import divide_large_layers, to_json
from ttcodegen.explorer.models import Model, code_of, is_flatbuffer, model_graphs, open_model
from ttcodegen.explorer.stages import graph_of_stage
from ttcodegen.foundation.diagnostics import CompileError, Diagnostic, Source

# Requests on models that take time: each is computed from a path and options alone.
#
# A request is a picklable value and its result JSON text, so that a worker process can compute it
# (`workers.py`) and the result can be kept by content (`results_cache.py`).


@dataclass(frozen=True)
class Request:
    """A request on one model.

    Attributes:
        kind: a key of `KINDS`.
        path: the model: a module, a flatbuffer or the folder of a project.
        options: how the model is compiled.
        elements: how many elements of a constant are listed.
        stages: whether there are graphs of the stages of a compile; None for small models only.
        names: an op and its function, two graphs, or stages, as the kind takes them.
    """

    kind: str
    path: Path
    options: CompileOptions
    elements: int = 16
    stages: bool | None = None
    names: tuple[str, ...] = ()

    def digest(self) -> str | None:
        """A key of the result: of the content of the model and of all that was asked.

        Returns:
            None for the folder of a project, which consists of many files.

        Raises:
            CompileError: if the file cannot be read.
        """
        if self.path.is_dir():
            return None
        found = hashlib.sha256()
        try:
            with self.path.open("rb") as file:
                while block := file.read(1 << 20):
                    found.update(block)
        except OSError as error:
            raise CompileError(f"cannot read '{self.path}': {error.strerror}") from None
        found.update(repr(self).encode("utf-8", "replace"))
        return found.hexdigest()


def perform(request: Request) -> bytes:
    """Computes a request.

    Returns:
        JSON: a list, what the field `graphs` of the answer has.

    Raises:
        CompileError: with locations in the text of the model, if it is wrong.
    """
    try:
        found = KINDS[request.kind](request)
    except CompileError as error:
        raise _located(error, request.path) from None
    text = json.dumps(to_json(found), ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8", "replace")


def _opened(request: Request) -> Model:
    model = open_model(
        request.path, request.options, elements=request.elements, stages=request.stages
    )
    for graph in model.graphs:
        divide_large_layers(graph)
    return model


def _convert(request: Request) -> list[Any]:
    return list(_opened(request).graphs)


def _synchronisation(request: Request) -> list[Any]:
    known = _opened(request).synchronisation
    for side, name in zip(("left", "right"), request.names, strict=True):
        if name not in known:
            raise CompileError(
                f"the setting '{side}' names no graph of '{request.path.name}'",
                remedy="it is the id of a graph that 'convert' gave",
            )
    left, right = request.names
    return [known.mapping(left, right)]


def _graphs_of_stages(request: Request) -> list[Any]:
    graphs = model_graphs(request.path, request.options, elements=0, stages=True)
    wrong = graphs[0].described.get("compile_error")
    if wrong is not None:
        raise CompileError(wrong.removeprefix("error: "))
    return [graph_of_stage(graphs, stage) for stage in request.names]


def _choices(request: Request) -> list[Any]:
    # The optimizer is needed by these two requests only.
    from ttcodegen.explorer.choices import choices_of

    node, function = request.names
    return [choices_of(_module(request.path), request.options, node, function).to_json()]


def _decisions(request: Request) -> list[Any]:
    from ttcodegen.explorer.choices import decisions_of

    return decisions_of(_module(request.path), request.options)


def _code(request: Request) -> list[Any]:
    code = code_of(request.path, request.options)
    lines: dict[str, list[dict[str, Any]]] = {}
    edited: dict[str, list[dict[str, Any]]] = {}
    changed = frozenset(code.changed)
    for (function, node), places in code.lines.items():
        said = {"function": function, "node": node}
        for each in places:
            lines.setdefault(each.path, []).append({**said, "first": each.first, "last": each.last})
        if (function, node) in changed:
            words = code.words.get((function, node), "")
            for path in dict.fromkeys(each.path for each in places):
                edited.setdefault(path, []).append({**said, "edit": words})
    return [
        {
            "path": name,
            "text": text,
            "lines": lines.get(name, []),
            "changed": code.written.get(name, []),
            "edited": edited.get(name, []),
        }
        for name, text in code.files.items()
    ]


KINDS: Mapping[str, Callable[[Request], list[Any]]] = {
    "convert": _convert,
    "synchronisation": _synchronisation,
    "stages": _graphs_of_stages,
    "choices": _choices,
    "decisions": _decisions,
    "code": _code,
}
"""Functions that compute each kind of request."""


def _module(path: Path) -> Source:
    """The text of a module; raises CompileError if there is nothing left to choose."""
    if path.is_dir() or is_flatbuffer(path):
        raise CompileError(f"'{path.name}' was compiled already", remedy="give the module")
    return Source.read(str(path))


def _located(error: CompileError, path: Path) -> CompileError:
    """An error of a module with the locations in its text, which is read again for that."""
    if path.is_dir() or all(diagnostic.place is None for diagnostic in error.diagnostics):
        return error
    return CompileError(error.render(Source.read(str(path))).removeprefix("error: "))


# Worker processes that compute requests on models.
#
# A model can take any time and memory. A process of its own can be ended where a thread cannot,
# and gives its memory back: workers end after a number of requests, and when they were idle for a
# while.

SECONDS = 120.0
"""The time that one request may take."""
MEBIBYTES = 4096
"""The memory that one request may take."""
_MOST_REQUESTS = 64
"""After as many a worker ends, and what its requests left in memory with it."""
_IDLE = 20.0
"""Seconds after which a worker that nobody needs ends."""
_LARGE = 256 << 10
"""Bytes of a model from which on it has a worker of its own, which leaves the processor to those of
small ones; one of those is always left."""


class Workers:
    """A bounded number of worker processes. Requests may come from any thread."""

    def __init__(
        self, count: int = 0, *, seconds: float = SECONDS, mebibytes: int = MEBIBYTES
    ) -> None:
        """
        Args:
            count: how many requests are computed at a time; 0 for one more than there are cores.
            seconds: the limit of time of a request.
            mebibytes: the limit of memory of a worker.
        """
        count = max(2, count or (os.cpu_count() or 1) + 1)
        self._seconds = seconds
        self._mebibytes = mebibytes
        self._slots = threading.BoundedSemaphore(count)
        self._large = threading.BoundedSemaphore(count - 1)
        self._idle: list[tuple[float, _Worker]] = []
        self._busy: set[_Worker] = set()
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._reaper = threading.Thread(target=self._reap, daemon=True)

    def perform(self, request: Request) -> bytes:
        """Computes a request in a worker.

        Raises:
            CompileError: as `requests.perform`; also if a limit is passed.
        """
        is_large = _is_large(request.path)
        with self._slot(is_large), self._worker(is_large) as worker:
            return worker.perform(request, self._seconds, self._mebibytes)

    def warm_up(self) -> None:
        """Starts a worker, so that the first request need not wait for its imports."""
        with self._lock:
            self._idle.append((time.monotonic(), _Worker(self._mebibytes)))

    def close(self) -> None:
        """Ends all workers, also in the middle of a request."""
        self._closing.set()
        with self._lock:
            idle = [worker for _, worker in self._idle]
            self._idle.clear()
            for worker in self._busy:
                worker.kill()
        for worker in idle:
            worker.end()

    @contextmanager
    def _slot(self, is_large: bool) -> Generator[None]:
        if is_large:
            with self._large, self._slots:
                yield
        else:
            with self._slots:
                yield

    @contextmanager
    def _worker(self, is_large: bool) -> Generator[_Worker]:
        with self._lock:
            if self._closing.is_set():
                raise CompileError("the server is being ended")
            if is_large:
                worker = _Worker(self._mebibytes, is_patient=True)
            else:
                worker = self._idle.pop()[1] if self._idle else _Worker(self._mebibytes)
            self._busy.add(worker)
            if self._reaper.ident is None:
                self._reaper.start()
        try:
            yield worker
        finally:
            with self._lock:
                self._busy.discard(worker)
                kept = worker.is_usable and not is_large and not self._closing.is_set()
                if kept:
                    self._idle.append((time.monotonic(), worker))
            if not kept:
                worker.end()

    def _reap(self) -> None:
        while not self._closing.wait(_IDLE / 4):
            last = time.monotonic() - _IDLE
            with self._lock:
                ended = [worker for since, worker in self._idle if since < last]
                self._idle = [each for each in self._idle if each[0] >= last]
            for worker in ended:
                worker.end()


def _is_large(path: Path) -> bool:
    try:
        return path.is_dir() or path.stat().st_size > _LARGE
    except OSError:
        return False


class _Worker:
    """One process. It reads requests from its standard input, one at a time."""

    def __init__(self, mebibytes: int, *, is_patient: bool = False) -> None:
        """A patient one leaves the processor to others."""
        command = [sys.executable, "-m", "ttcodegen.explorer.requests", str(mebibytes)]
        command += ["10"] * is_patient
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._requests = 0

    @property
    def is_usable(self) -> bool:
        """True if it may be given another request."""
        return self._requests < _MOST_REQUESTS and self._process.poll() is None

    def perform(self, request: Request, seconds: float, mebibytes: int) -> bytes:
        """Computes a request; raises CompileError as `Workers.perform`."""
        self._requests += 1
        sent, answered = cast("IO[bytes]", self._process.stdin), self._process.stdout
        assert answered is not None
        try:
            pickle.dump(request, sent)
            sent.flush()
            if not select.select([answered], [], [], seconds)[0]:
                self.end()
                raise CompileError(
                    f"'{request.path.name}' takes longer than {seconds:g} s",
                    remedy="compile it with ttcodegen, which has no limit of time",
                )
            found: bytes | tuple[Diagnostic, ...] = pickle.load(answered)
        except (OSError, EOFError, pickle.UnpicklingError):
            self.end()
            raise CompileError(
                f"'{request.path.name}' ended the process that read it",
                remedy=f"it may take more than the {mebibytes} MiB that a request is given",
            ) from None
        if isinstance(found, bytes):
            return found
        raise CompileError.from_diagnostics(found)

    def kill(self) -> None:
        """Ends the process at once; a thread that waits for its answer finds its streams at an end.

        The streams stay open, for that thread still reads them: it calls `end`.
        """
        self._process.kill()

    def end(self) -> None:
        """Ends the process at once and releases what it holds."""
        self.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                try:
                    stream.close()
                except OSError:
                    pass  # What was not written is lost with the process.


def main() -> None:
    """Computes the requests that come, until no more can come."""
    limit = int(sys.argv[1]) << 20
    os.nice(int(sys.argv[2]) if len(sys.argv) > 2 else 0)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    # What a library prints must not be taken for a result.
    results = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    requests = sys.stdin.buffer
    while True:
        try:
            request: Request = pickle.load(requests)
        except EOFError:
            return
        pickle.dump(_answer(request), results)
        results.flush()


def _answer(request: Request) -> bytes | tuple[Diagnostic, ...]:
    try:
        return perform(request)
    except CompileError as error:
        return error.diagnostics
    except MemoryError:
        message = f"'{request.path.name}' takes more memory than a request is given"
        return CompileError(message).diagnostics
    except RecursionError:
        message = f"'{request.path.name}' is nested too deeply"
        return CompileError(message).diagnostics
    except Exception as error:
        import traceback

        traceback.print_exc()
        message = f"internal error: {type(error).__name__}: {error}"
        return CompileError(message).diagnostics


if __name__ == "__main__":
    main()
