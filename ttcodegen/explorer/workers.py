"""Worker processes that compute requests on models.

A model can take any time and memory. A process of its own can be ended where a thread cannot, and
gives its memory back: workers end after a number of requests, and when they were idle for a while.

Importing what a request needs takes longer than most requests. One process, the template, does it
once; workers are copies of it (`os.fork`), which are there at once and share its memory.
"""

from __future__ import annotations

import contextlib
import gc
import os
import pickle
import resource
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from ttcodegen.compilation import CompileOptions
from ttcodegen.explorer.requests import Request, perform
from ttcodegen.foundation.diagnostics import CompileError, Diagnostic

SECONDS = 120.0
"""Time limit of a request in seconds."""
MEBIBYTES = 4096
"""Memory limit of a request in MiB."""
_MOST_REQUESTS = 64
"""Limit on a worker's requests, after which it ends and frees their memory."""
_IDLE = 20.0
"""Seconds after which an idle worker ends."""
_LARGE = 256 << 10
"""Model size in bytes from which a request gets a low-priority worker.

One worker always remains for small models.
"""


class Workers:
    """Bounded pool of worker processes; thread-safe."""

    def __init__(
        self, count: int = 0, *, seconds: float = SECONDS, mebibytes: int = MEBIBYTES
    ) -> None:
        """
        Args:
            count: number of concurrent requests; 0 for one more than there are cores.
            seconds: time limit of a request.
            mebibytes: memory limit of a worker.
        """
        count = max(2, count or (os.cpu_count() or 1) + 1)
        self._seconds = seconds
        self._mebibytes = mebibytes
        self._template = _Template()
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
            CompileError: as `requests.perform`, or if a limit is exceeded.
        """
        is_large = _is_large(request.path)
        with self._slot(is_large), self._worker(is_large) as worker:
            return worker.perform(request, self._seconds, self._mebibytes)

    def warm_up(self) -> None:
        """Starts the template before the first request needs it."""
        self._template.start()

    def wait_until_warm(self) -> None:
        """Waits until the template has completed its imports."""
        self._template.wait_until_ready()

    def close(self) -> None:
        """Ends all workers, including busy ones."""
        self._closing.set()
        with self._lock:
            idle = [worker for _, worker in self._idle]
            self._idle.clear()
            for worker in self._busy:
                worker.kill()
        for worker in idle:
            worker.end()
        self._template.end()

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
                worker = _Worker(self._template, self._mebibytes, is_patient=True)
            else:
                worker = self._idle.pop()[1] if self._idle else None
                worker = worker or _Worker(self._template, self._mebibytes)
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


_FORK, _PATIENT, _KILL = b"f", b"p", b"k"
"""Commands to the template: fork, fork with low priority, kill."""
_READY = b"r"
"""First message of the template."""


class _Template:
    """Process that workers are forked from, started on demand."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._made = 0
        self._is_ready = False

    def start(self) -> socket.socket:
        """Starts the process unless it runs; returns the command socket."""
        with self._lock:
            if self._process is not None and self._control is not None:
                if self._process.poll() is None:
                    return self._control
                self._control.close()
            self._is_ready = False
            self._control, given = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            command = [sys.executable, "-m", "ttcodegen.explorer.workers", str(given.fileno())]
            with given:
                self._process = subprocess.Popen(
                    command, stdin=subprocess.DEVNULL, pass_fds=[given.fileno()]
                )
            return self._control

    def copy(self, mebibytes: int, *, is_patient: bool) -> tuple[int, socket.socket]:
        """Forks a worker; returns its number and its request socket."""
        ours, theirs = socket.socketpair()
        with theirs, self._lock:
            self._made += 1
            command = b"%b %d %d" % (_PATIENT if is_patient else _FORK, self._made, mebibytes)
            try:
                socket.send_fds(self.start(), [command], [theirs.fileno()])
            except OSError:
                # The process ended meanwhile.
                socket.send_fds(self.start(), [command], [theirs.fileno()])
            return self._made, ours

    def wait_until_ready(self) -> None:
        """Waits until the process can fork."""
        with self._lock:
            control = self.start()
            if not self._is_ready:
                self._is_ready = bool(control.recv(1))

    def end_copy(self, number: int) -> None:
        """Kills a worker and waits for its end."""
        with self._lock, contextlib.suppress(OSError):
            if self._process is not None and self._control is not None:
                self._control.send(b"%b %d 0" % (_KILL, number))
                if self._control.recv(1) == _READY:
                    self._is_ready = True
                    self._control.recv(1)

    def end(self) -> None:
        """Ends the process and its remaining workers."""
        with self._lock:
            if self._process is not None and self._control is not None:
                self._control.close()
                self._process.wait()
                self._process = None


class _Worker:
    """Worker process, which takes one request at a time."""

    def __init__(self, template: _Template, mebibytes: int, *, is_patient: bool = False) -> None:
        """A patient worker has low priority."""
        self._template = template
        self._number, self._socket = template.copy(mebibytes, is_patient=is_patient)
        self._stream = self._socket.makefile("rwb")
        self._requests = 0

    @property
    def is_usable(self) -> bool:
        """Returns whether it accepts another request."""
        if self._requests >= _MOST_REQUESTS or self._socket.fileno() < 0:
            return False
        return not select.select([self._socket], [], [], 0)[0]  # Readable only at its end.

    def perform(self, request: Request, seconds: float, mebibytes: int) -> bytes:
        """Computes a request; raises CompileError as `Workers.perform`."""
        self._requests += 1
        try:
            pickle.dump(request, self._stream)
            self._stream.flush()
            if not select.select([self._socket], [], [], seconds)[0]:
                self.end()
                raise CompileError(
                    f"'{request.path.name}' takes longer than {seconds:g} s",
                    remedy="compile it with ttcodegen, which has no limit of time",
                )
            found: bytes | tuple[Diagnostic, ...] = pickle.load(self._stream)
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
        """Kills the process; a waiting thread then reads the end of the stream.

        The stream stays open for that thread, which calls `end`.
        """
        self._template.end_copy(self._number)

    def end(self) -> None:
        """Kills the process and releases its resources."""
        self.kill()
        with contextlib.suppress(OSError):
            self._stream.close()  # Unwritten data is discarded.
        self._socket.close()


def main() -> None:
    """Runs the template process: forks and kills workers until the command socket closes."""
    control = socket.socket(fileno=int(sys.argv[1]))
    # Ctrl-C ends the server, which then ends the workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Libraries must not print to the server's output.
    os.dup2(2, 1)
    _prepare()
    with contextlib.suppress(OSError):
        control.send(_READY)
    copies: dict[int, int] = {}
    while True:
        is_asked = bool(select.select([control], [], [], 1.0)[0])
        for number, process in list(copies.items()):
            if os.waitpid(process, os.WNOHANG)[0]:
                del copies[number]
        if not is_asked:
            continue
        command, given, *_ = socket.recv_fds(control, 64, 1)
        if not command:
            break
        kind, number, mebibytes = command.split()
        if kind == _KILL:
            _end(copies.pop(int(number), None))
            control.send(_KILL)
            continue
        process = os.fork()
        if process == 0:
            control.close()
            os.nice(10 * (kind == _PATIENT))
            _serve(socket.socket(fileno=given[0]), int(mebibytes) << 20)
            os._exit(0)
        copies[int(number)] = process
        os.close(given[0])
    for process in copies.values():
        _end(process)


def _end(process: int | None) -> None:
    if process is not None:
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)


_FIRST = """func.func @first(%x: tensor<32x32xf32>) -> tensor<32x32xf32> {
  %0 = "ttir.exp"(%x) : (tensor<32x32xf32>) -> tensor<32x32xf32>
  return %0 : tensor<32x32xf32>
}
"""


def _prepare() -> None:
    """Converts a model, so that workers inherit imports and caches."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "first.mlir")
        path.write_text(_FIRST)
        perform(Request("convert", path, CompileOptions("first")))
    gc.collect()
    gc.freeze()


def _serve(connection: socket.socket, limit: int) -> None:
    """Serves requests until the connection closes."""
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    with contextlib.suppress(EOFError, OSError), connection.makefile("rwb") as stream:
        while True:
            request: Request = pickle.load(stream)
            pickle.dump(_answer(request), stream)
            stream.flush()


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
