"""Times forward runs on the CPU backend against the same program, op by op, in PyTorch.

    pip install -e '.[benchmark]'
    python benchmarks/forward_time.py --corpus DIR

Both get the same inputs, of the types of the source, and the same processors; they run in turn, in
processes of their own, and their outputs are compared. The time is that of a run without reading
weights and inputs, the fastest of several in a process.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from measure import TTCODEGEN, corpus_file, manifest, run
from xdsl.dialects.func import FuncOp

from ttcodegen.diagnostics import Source
from ttcodegen.parsing import parse_module
from ttcodegen.project.building import build_project
from ttcodegen.project.toolchain import find_toolchain
from ttcodegen.runtime.drawing import draw_inputs

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


def output_of(command: Sequence[str]) -> str:
    """What a command prints; raises SystemExit if it fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    return done.stdout


def compiled_seconds(command: Sequence[str]) -> float:
    """The fastest run of a model's executable, from what it prints."""
    match = re.search(r"fastest run ([\d.]+) ms", output_of(command))
    if match is None:
        raise SystemExit(f"{command[0]} printed no time")
    return float(match.group(1)) / 1e3


def eager_seconds(command: Sequence[str]) -> float:
    """The fastest run in PyTorch."""
    return min(json.loads(output_of(command))["seconds"])


def least_correlation(first: Path, second: Path) -> float:
    """Of the floating-point outputs in two folders, that with the least correlation."""
    least = 1.0
    for path in sorted(first.rglob("*.npy")):
        a, b = np.load(path), np.load(second / path.relative_to(first))
        if a.dtype.kind == "f" and a.size > 1:
            values = np.corrcoef(a.astype(np.float64).ravel(), b.astype(np.float64).ravel())
            least = min(least, float(values[0, 1]))
    return least


def compare(path: Path, scratch: Path, rounds: int, loops: int) -> str:
    """Times of both, their ratio, and how well their outputs agree."""
    out, inputs = scratch / "out", scratch / "inputs"
    run((*TTCODEGEN, str(path), "-o", str(out)))
    project = manifest(out)
    executable = build_project(out, project["module"], find_toolchain(), "exe").executable
    write_inputs(path, project, inputs)
    common = ("--inputs", str(inputs), "--loops", str(loops))
    ours = (str(executable), *common, "--outputs", str(scratch / "ours"))
    eager = (
        sys.executable,
        str(EAGER),
        str(path),
        "--project",
        str(out),
        *common,
        "--outputs",
        str(scratch / "eager"),
    )
    times = [(compiled_seconds(ours), eager_seconds(eager)) for _ in range(rounds)]
    correlation = least_correlation(scratch / "ours", scratch / "eager")
    return (
        f"{median(a for a, _ in times):8.3f} s {median(b for _, b in times):8.3f} s "
        f"{median(a / b for a, b in times):8.2f} {correlation:12.5f}"
    )


def main() -> None:
    """Prints one line per model."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--corpus", type=Path, metavar="DIR", help="folder of the models")
    parser.add_argument("--rounds", type=int, default=3, help="processes of each")
    parser.add_argument("--loops", type=int, default=5, help="runs in a process")
    options = parser.parse_args()
    if find_spec("torch") is None:
        raise SystemExit("PyTorch is not installed: pip install -e '.[benchmark]'")
    print(f"{'module':60} {'ttcodegen':>10} {'PyTorch':>10} {'ratio':>8} {'correlation':>12}")
    for model in MODELS:
        path = corpus_file(options.corpus, model)
        if path is not None:
            with tempfile.TemporaryDirectory() as name:
                row = compare(path, Path(name), options.rounds, options.loops)
                print(f"{model:60} {row}", flush=True)


if __name__ == "__main__":
    main()
