"""Compiles all modules of a folder, many in one process: what is imported is imported once.

    python scripts/compile_corpus.py FOLDER... [-j 2] [--check] [--timeout 300] [--sample 60]
        [--variant "--machine p150"] [--variant "--machine p100 --optimize 2"] [-- OPTIONS]

Prints a line for each module that does not come through, and a summary. OPTIONS are those of
`ttcodegen`; each variant adds its own, and has a summary. A sample takes modules evenly from each
folder, in the order of their names, which begin with what they are about. A module that crashes its
process, or takes too long, costs nothing but itself: the process is replaced. Exit status: 0 if all
came through, else 1.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import math
import multiprocessing
import shlex
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
    parser.add_argument("folders", metavar="folder", nargs="+", type=Path)
    parser.add_argument("-j", dest="jobs", type=int, default=2, help="processes (2)")
    parser.add_argument("--check", action="store_true", help="build and check each")
    parser.add_argument("--timeout", type=float, default=300.0, help="seconds for each (300)")
    parser.add_argument("--sample", type=int, help="modules of all folders together (all)")
    parser.add_argument("--variant", action="append", help="options to compile all modules with")
    given = list(sys.argv[1:] if arguments is None else arguments)
    end = given.index("--") if "--" in given else len(given)
    options = parser.parse_args(given[:end])
    extra = [*given[end + 1 :], *(["--check"] if options.check else [])]
    folders = [sorted(folder.rglob("*.mlir")) for folder in options.folders]
    files = sample(folders, options.sample)
    failed = 0
    for variant in options.variant or [""]:
        counts = Counter[str]()
        given = [*extra, *shlex.split(variant)]
        for path, status, messages in results(files, given, options.jobs, options.timeout):
            name = {0: "done", CRASHED: "crashed", TIMED_OUT: "timed out"}.get(status)
            counts[name or f"status {status}"] += 1
            if status != 0:
                first = next(
                    (line for line in messages.splitlines() if "error" in line), messages[:200]
                )
                place = path.relative_to(
                    next(folder for folder in options.folders if path.is_relative_to(folder))
                )
                print(f"{place}: {name or status}: {first}", flush=True)
        label = f"{variant}: " if variant else ""
        print(f"{label}{counts['done']} of {len(files)} done; {dict(counts.most_common())}")
        failed += len(files) - counts["done"]
    return 0 if failed == 0 else 1


def sample(folders: Sequence[Sequence[Path]], count: int | None) -> list[Path]:
    """As many modules of each folder as its share of the square roots of their sizes."""
    if count is None:
        return [path for files in folders for path in files]
    weights = [math.sqrt(len(files)) for files in folders]
    chosen: list[Path] = []
    for index, files in enumerate(folders):
        share = round(count * sum(weights[: index + 1]) / sum(weights)) - len(chosen)
        taken = min(share, len(files))
        chosen += [files[(2 * place + 1) * len(files) // (2 * taken)] for place in range(taken)]
    return chosen


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
