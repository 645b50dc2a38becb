"""Times commands as whole processes, by what the operating system accounts for them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

TTCODEGEN = (
    sys.executable,
    "-c",
    "from ttcodegen.cli.ttcodegen import main; raise SystemExit(main())",
)
"""The command line of the interpreter that runs the benchmark."""

BASE = (sys.executable, "-c", "import numpy, xdsl.ir")
"""Command whose time is the unit of the others, because machines differ in speed."""


@dataclass(frozen=True)
class Cost:
    """Cost of a command, and its output.

    Wall seconds, seconds of all processors, and the peak memory of its largest process in MB.
    """

    wall: float
    cpu: float
    peak: float
    output: str = ""

    def __str__(self) -> str:
        return f"{self.wall:8.2f} s {self.cpu:8.2f} s {self.peak:6.0f} MB"


def run(command: Sequence[str], environment: dict[str, str] | None = None) -> Cost:
    """Runs a command once; raises SystemExit with what it said if it fails.

    It may keep the bytecode of what it imports, as an installed package has it.
    """
    variables = os.environ | (environment or {})
    variables.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as messages:
        start = perf_counter()
        process = subprocess.Popen(
            command,
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=messages,
        )
        _, status, usage = os.wait4(process.pid, 0)
        wall = perf_counter() - start
        process.returncode = status  # waited for here, not by the class
        output.seek(0)
        messages.seek(0)
        if status != 0:
            raise SystemExit(f"{' '.join(command)}\n{messages.read()}")
        cpu, peak = usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024
        return Cost(wall, cpu, peak, output.read())


def cost(command: Callable[[], Sequence[str]], runs: int) -> Cost:
    """The medians of several runs after one that is not counted; `command` prepares each."""
    run(command())
    costs = [run(command()) for _ in range(runs)]
    return Cost(
        median(cost.wall for cost in costs),
        median(cost.cpu for cost in costs),
        median(cost.peak for cost in costs),
    )


def multiple(command: Callable[[], Sequence[str]], runs: int) -> tuple[Cost, float]:
    """The lowest cost of several runs, and its processor time as a multiple of that of `BASE`,
    which runs in turn with them: other work on the machine slows down both."""
    run(command())
    costs, bases = zip(*((run(command()), run(BASE)) for _ in range(runs)), strict=True)
    least = min(costs, key=lambda cost: cost.cpu)
    return least, least.cpu / min(base.cpu for base in bases)


def corpus_file(corpus: Path | None, name: str) -> Path | None:
    """A module of the corpus; says so and gives None if it is not there."""
    path = corpus / f"{name}.mlir" if corpus is not None else None
    if path is None or not path.is_file():
        print(f"{name}: skipped, give the folder of {name}.mlir with --corpus", file=sys.stderr)
        return None
    return path


def manifest(out: Path) -> dict[str, Any]:
    """Contents of a project's manifest."""
    return json.loads((out / "manifest.json").read_text())


def fastest_run(output: str) -> float:
    """Seconds of the fastest run that an executable reports."""
    match = re.search(r"fastest run ([\d.]+) ms", output)
    if match is None:
        raise SystemExit("the executable printed no time")
    return float(match.group(1)) / 1e3
