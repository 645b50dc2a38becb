"""Compiles all modules of a folder, many in one process: what is imported is imported once.

    python scripts/compile_corpus.py FOLDER [-j 2] [--check] [--timeout 300] [-- OPTIONS]

Prints a line for each module that does not come through, and a summary. OPTIONS are those of
`ttcodegen`. A module that crashes its process, or takes too long, costs nothing but itself: the
process is replaced. Exit status: 0 if all came through, else 1.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import multiprocessing
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Lock, Thread

CRASHED, TIMED_OUT = -1, -2


def main(arguments: Sequence[str] | None = None) -> int:
    """Compiles the modules; returns the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("-j", dest="jobs", type=int, default=2, help="processes (2)")
    parser.add_argument("--check", action="store_true", help="build and check each")
    parser.add_argument("--timeout", type=float, default=300.0, help="seconds for each (300)")
    given = list(sys.argv[1:] if arguments is None else arguments)
    end = given.index("--") if "--" in given else len(given)
    options = parser.parse_args(given[:end])
    extra = [*given[end + 1 :], *(["--check"] if options.check else [])]
    files = sorted(options.folder.rglob("*.mlir"))
    counts = Counter[str]()
    for path, status, messages in results(files, extra, options.jobs, options.timeout):
        name = {0: "done", CRASHED: "crashed", TIMED_OUT: "timed out"}.get(status)
        counts[name or f"status {status}"] += 1
        if status != 0:
            first = next(
                (line for line in messages.splitlines() if "error" in line), messages[:200]
            )
            print(f"{path.relative_to(options.folder)}: {name or status}: {first}", flush=True)
    print(f"{counts['done']} of {len(files)} done; {dict(counts.most_common())}")
    return 0 if counts["done"] == len(files) else 1


def results(
    files: Sequence[Path], options: Sequence[str], jobs: int, timeout: float
) -> Iterator[tuple[Path, int, str]]:
    """Each module with its exit status and its messages, in the order of the files."""
    waiting = iter(range(len(files)))
    found: dict[int, tuple[int, str]] = {}
    lock = Lock()

    def work() -> None:
        worker = Worker(options)
        while True:
            with lock:
                index = next(waiting, None)
            if index is None:
                worker.end()
                return
            found[index] = worker.compile(files[index], timeout)

    threads = [Thread(target=work, daemon=True) for _ in range(jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for index, path in enumerate(files):
        yield path, *found[index]


class Worker:
    """A process that compiles one module after the other."""

    def __init__(self, options: Sequence[str]) -> None:
        self._options = options
        self._start()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._connection, other = context.Pipe()
        self._process = context.Process(target=serve, args=(other, self._options), daemon=True)
        self._process.start()
        other.close()

    def compile(self, path: Path, timeout: float) -> tuple[int, str]:
        """The exit status, and what was written to standard error."""
        try:
            self._connection.send(path)
            if self._connection.poll(timeout):
                return self._connection.recv()
            status = TIMED_OUT
        except (EOFError, OSError):
            status = CRASHED
        self.end()
        self._start()
        return status, ""

    def end(self) -> None:
        """Ends the process, whatever it is doing."""
        self._process.kill()
        self._process.join()
        self._connection.close()


def serve(connection: Connection, options: Sequence[str]) -> None:
    """Compiles the modules whose paths arrive."""
    from ttcodegen.cli.ttcodegen import main as compile_module

    while True:
        path: Path = connection.recv()
        folder = tempfile.mkdtemp(prefix="corpus-")
        messages = io.StringIO()
        try:
            with contextlib.redirect_stderr(messages), contextlib.redirect_stdout(io.StringIO()):
                status = compile_module([str(path), "-o", f"{folder}/out", *options])
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        connection.send((int(status), messages.getvalue()))


if __name__ == "__main__":
    sys.exit(main())
