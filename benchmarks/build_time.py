"""Times the build of the CPU backend, once, and of one model's C++ afterwards.

    python benchmarks/build_time.py --corpus DIR

The backend is built into a fresh cache. A model is built in a fresh folder each time.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter

from measure import TTCODEGEN, corpus_file, manifest, run

from ttcodegen.project.building import BUILD_FOLDER, build_project
from ttcodegen.project.cpu_backend import ensure_cpu_backend
from ttcodegen.project.toolchain import find_toolchain

MODELS = ("models__mnist", "models__yolo_v8")


@dataclass(frozen=True)
class BuildCost:
    """Seconds on the clock, and of all processors."""

    wall: float
    cpu: float

    def __str__(self) -> str:
        return f"{self.wall:8.2f} s {self.cpu:8.2f} s"


def cost_of(build: Callable[[], object]) -> BuildCost:
    """Measures the time of a call, with that of the processes it starts."""
    start, before = perf_counter(), os.times()
    build()
    wall, after = perf_counter() - start, os.times()
    return BuildCost(wall, sum(after[:4]) - sum(before[:4]))


def model_cost(path: Path, out: Path, runs: int) -> BuildCost:
    """The median cost to configure, compile and link a model: executable and shared object."""
    run((*TTCODEGEN, str(path), "-o", str(out)))
    toolchain, name = find_toolchain(), manifest(out)["module"]
    costs: list[BuildCost] = []
    for _ in range(runs + 1):
        shutil.rmtree(out / BUILD_FOLDER, ignore_errors=True)
        costs.append(cost_of(lambda: build_project(out, name, toolchain)))
    counted = costs[1:]
    return BuildCost(median(c.wall for c in counted), median(c.cpu for c in counted))


def main() -> None:
    """Prints one line per build."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--corpus", type=Path, metavar="DIR", help="folder of the models")
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    print(f"{'':24} {'wall':>10} {'processor':>10}")
    with tempfile.TemporaryDirectory() as name:
        os.environ["TTCODEGEN_CACHE"] = name
        print(f"{'CPU backend':24} {cost_of(lambda: ensure_cpu_backend(find_toolchain()))}")
        for model in MODELS:
            path = corpus_file(options.corpus, model)
            if path is not None:
                cost = model_cost(path, Path(name, "out", model), options.runs)
                print(f"{model:24} {cost}", flush=True)


if __name__ == "__main__":
    main()
