"""Times compiling the models of the front ends' tests, without a build, for each op of the text.

    python benchmarks/frontend_time.py

A model of StableHLO has more ops than one of TTIR that means the same, and each of them should not
cost more than half as much again. Processor time of the fastest run; imports are not in it.
"""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Callable
from pathlib import Path

from ttcodegen.compilation import CompileOptions, compile_module
from ttcodegen.foundation.diagnostics import Source
from ttcodegen.frontends import read_module

MODULES = Path(__file__).parents[1] / "tests" / "frontends" / "modules"
MODELS = (
    "torch_resnet18.bf16.ttir.mlir",
    "jax_resnet18.bf16.stablehlo.mlir",
    "torch_decoder.bf16.ttir.mlir",
    "jax_decoder.bf16.stablehlo.mlir",
    "jax_llama.bf16.stablehlo.mlir",
)
_OP = re.compile(r'^ *(?:%[\w:]+ = )?"?(?:ttir|stablehlo|chlo|func|call)\b', re.MULTILINE)


def least(run: Callable[[], object], runs: int) -> float:
    """The lowest processor time of the runs, in seconds."""
    times: list[float] = []
    for _ in range(runs):
        start = time.process_time()
        run()
        times.append(time.process_time() - start)
    return min(times)


def main() -> None:
    """Prints one line per model."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=3)
    runs: int = parser.parse_args().runs
    print(f"{'module':34} {'ops':>5} {'reading':>9} {'all':>9} {'an op':>9}")
    for name in MODELS:
        source = Source(name, MODULES.joinpath(name).read_text())
        ops = len(_OP.findall(source.text))
        reading = least(lambda source=source: read_module(source), runs)
        whole = least(lambda source=source: compile_module(source, CompileOptions("model")), runs)
        print(f"{name:34} {ops:5} {reading:7.2f} s {whole:7.2f} s {1e3 * whole / ops:6.2f} ms")


if __name__ == "__main__":
    main()
