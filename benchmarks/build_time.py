"""Times the build of the CPU backend, once, and of one model's C++ afterwards.

    python benchmarks/build_time.py --corpus DIR

The backend is built into a fresh cache. A model is built in a fresh folder each time.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter

from measure import TTCODEGEN, corpus_file, manifest, run

from ttcodegen.project.building import BUILD_FOLDER, build_project
from ttcodegen.project.cpu_backend import ensure_cpu_backend
from ttcodegen.project.toolchain import find_toolchain

MODELS = ("models__mnist", "models__yolo_v8")


def build_seconds(path: Path, out: Path, runs: int) -> float:
    """The median time to configure, compile and link a model: executable and shared object."""
    run((*TTCODEGEN, str(path), "-o", str(out)))
    toolchain, seconds = find_toolchain(), list[float]()
    for _ in range(runs + 1):
        shutil.rmtree(out / BUILD_FOLDER, ignore_errors=True)
        start = perf_counter()
        build_project(out, manifest(out)["module"], toolchain)
        seconds.append(perf_counter() - start)
    return median(seconds[1:])


def main() -> None:
    """Prints one line per build."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--corpus", type=Path, metavar="DIR", help="folder of the models")
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        os.environ["TTCODEGEN_CACHE"] = name
        start = perf_counter()
        ensure_cpu_backend(find_toolchain())
        print(f"{'CPU backend':24} {perf_counter() - start:8.2f} s", flush=True)
        for model in MODELS:
            path = corpus_file(options.corpus, model)
            if path is not None:
                seconds = build_seconds(path, Path(name, "out", model), options.runs)
                print(f"{model:24} {seconds:8.2f} s", flush=True)


if __name__ == "__main__":
    main()
