"""Times forward runs on the CPU backend against the same program, op by op, in PyTorch.

    pip install -e '.[benchmark]'
    python benchmarks/forward_time.py --corpus DIR

Both get the same inputs, of the types of the source, and the same number of threads; they run in
turn, in processes of their own, and their outputs are compared. Reading weights and inputs does not
count. Two figures of a run are given: the time on the clock, the fastest of several in a process,
which needs an idle machine, and the seconds of all processors, which with `--threads 1`
mean something on a busy one as well.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from measure import TTCODEGEN, corpus_file, fastest_run, manifest, run
from xdsl.dialects.func import FuncOp

from ttcodegen.foundation.diagnostics import Source
from ttcodegen.numerics.drawing import draw_inputs
from ttcodegen.parsing import parse_module
from ttcodegen.project.building import build_project
from ttcodegen.project.toolchain import find_toolchain

MODELS = ("models__resnet_hf", "models__single_blocks_and_layers__llama_3_2_1b_prefill_layer")
EAGER = Path(__file__).resolve().parent / "torch_eager.py"


def write_inputs(path: Path, project: Mapping[str, Any], folder: Path) -> None:
    """Draws inputs and weights, into files as the executable of the project wants them."""
    module = parse_module(Source.read(str(path)))
    sources = {op.sym_name.data: op for op in module.body.ops if isinstance(op, FuncOp)}
    for function in project["functions"]:
        files = folder / function["cpp_name"]
        files.mkdir(parents=True)
        drawn = draw_inputs(module, sources[function["name"]], seed=0).values()
        for row, array in zip(function["inputs"], drawn, strict=True):
            plain = array.astype(np.float32) if array.dtype.name == "bfloat16" else array
            np.save(files / f"{row['cpp_name']}.npy", plain)


@dataclass(frozen=True)
class RunCost:
    """Seconds of one forward run: on the clock, and of all processors."""

    wall: float
    cpu: float

    def __str__(self) -> str:
        return f"{self.wall:8.3f} s {self.cpu:8.3f} s"


def run_cost(
    command: Sequence[str], loops: int, threads: int, seconds: Callable[[str], float]
) -> RunCost:
    """The cost of a run, from a process with `loops` further runs and one without.

    `seconds` reads the time of the fastest run off what the command prints.
    """
    environment = {"OMP_NUM_THREADS": str(threads), "TTCODEGEN_THREADS": str(threads)}
    once = run([*command, "--loops", "1"], environment)
    more = run([*command, "--loops", str(loops + 1)], environment)
    return RunCost(seconds(more.output), (more.cpu - once.cpu) / loops)


def eager_seconds(output: str) -> float:
    """The fastest run in PyTorch."""
    return min(json.loads(output)["seconds"])


def least_correlation(first: Path, second: Path) -> float:
    """The lowest correlation of a floating-point output in two folders."""
    least = 1.0
    for path in sorted(first.rglob("*.npy")):
        a, b = np.load(path), np.load(second / path.relative_to(first))
        if a.dtype.kind == "f" and a.size > 1:
            values = np.corrcoef(a.astype(np.float64).ravel(), b.astype(np.float64).ravel())
            least = min(least, float(values[0, 1]))
    return least


def compare(path: Path, scratch: Path, options: argparse.Namespace) -> str:
    """Costs of both, their ratios, and how well their outputs agree."""
    out, inputs = scratch / "out", scratch / "inputs"
    run((*TTCODEGEN, str(path), "-o", str(out)))
    project = manifest(out)
    executable = build_project(out, project["module"], find_toolchain(), "exe").executable
    write_inputs(path, project, inputs)
    ours = (str(executable), "--inputs", str(inputs), "--outputs", str(scratch / "ours"))
    eager = (
        *(sys.executable, str(EAGER), str(path), "--project", str(out)),
        *("--inputs", str(inputs), "--outputs", str(scratch / "eager")),
    )
    costs = [
        (
            run_cost(ours, options.loops, options.threads, fastest_run),
            run_cost(eager, options.loops, options.threads, eager_seconds),
        )
        for _ in range(options.rounds)
    ]
    walls = median(a.wall / b.wall for a, b in costs)
    cpus = median(a.cpu / b.cpu for a, b in costs)
    middle = [
        RunCost(median(c.wall for c in side), median(c.cpu for c in side))
        for side in zip(*costs, strict=True)
    ]
    correlation = least_correlation(scratch / "ours", scratch / "eager")
    return f"{middle[0]} {middle[1]} {walls:6.2f} {cpus:6.2f} {correlation:11.5f}"


def main() -> None:
    """Prints one line per model."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--corpus", type=Path, metavar="DIR", help="folder of the models")
    parser.add_argument("--models", nargs="+", default=MODELS, metavar="NAME")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--rounds", type=int, default=3, help="processes of each")
    parser.add_argument("--loops", type=int, default=5, help="runs in a process")
    options = parser.parse_args()
    if find_spec("torch") is None:
        raise SystemExit("PyTorch is not installed: pip install -e '.[benchmark]'")
    print(f"{options.threads} threads; ttcodegen, PyTorch, ratios: clock and processors each")
    for model in options.models:
        path = corpus_file(options.corpus, model)
        if path is not None:
            with tempfile.TemporaryDirectory() as name:
                print(f"{model}\n    {compare(path, Path(name), options)}", flush=True)


if __name__ == "__main__":
    main()
