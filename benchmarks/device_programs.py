"""Times device programs on the emulated device, and compares what they move with the minimum.

    python benchmarks/device_programs.py

A product of two 1024x1024 matrices over 8x8 cores, and four elementwise ops on 2048x2048 elements,
both of bf16, with all checks of the device. The kernels are compiled before: the first run of a
process does that. Figures are the fastest run of a process on the clock, the seconds of all
processors of one run, and from manifest.json the bytes over the NoC and from and to DRAM, against
the minimum that the computation needs.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path
from statistics import median

from measure import TTCODEGEN, fastest_run, manifest, run

from ttcodegen.project.building import build_project
from ttcodegen.project.toolchain import find_toolchain

PRODUCT = "tensor<1024x1024xbf16>"
CHAIN = "tensor<2048x2048xbf16>"
MODULES = {
    "product of 1024x1024 matrices": f"""
func.func @forward(%a: {PRODUCT}, %b: {PRODUCT}) -> {PRODUCT} {{
  %0 = "ttir.matmul"(%a, %b) : ({PRODUCT}, {PRODUCT}) -> {PRODUCT}
  return %0 : {PRODUCT}
}}
""",
    "chain of four ops on 2048x2048 elements": f"""
func.func @forward(%a: {CHAIN}, %b: {CHAIN}) -> {CHAIN} {{
  %0 = "ttir.add"(%a, %b) : ({CHAIN}, {CHAIN}) -> {CHAIN}
  %1 = "ttir.exp"(%0) : ({CHAIN}) -> {CHAIN}
  %2 = "ttir.multiply"(%1, %b) : ({CHAIN}, {CHAIN}) -> {CHAIN}
  %3 = "ttir.sigmoid"(%2) : ({CHAIN}) -> {CHAIN}
  return %3 : {CHAIN}
}}
""",
}


def measured(text: str, folder: Path, options: argparse.Namespace) -> str:
    """Seconds of a run on the clock and of processors, medians of several processes."""
    source, out = folder / "program.mlir", folder / "out"
    source.write_text(text)
    run((*TTCODEGEN, str(source), "-o", str(out), "--target", "ttmetal"))
    toolchain = find_toolchain()
    built = build_project(out, manifest(out)["module"], toolchain, "exe")
    environment = {"TTCODEGEN_THREADS": str(options.threads)}
    command = [str(built.executable), "--loops"]
    wall, processor = _median_run(command, environment, options)
    line = f"{wall:8.3f} s {processor:8.3f} s   {_ratios(out)}"
    if options.store_checks:
        compiler = _without_store_checks(folder, toolchain.compiler)
        environment["TTCODEGEN_KERNEL_CXX"] = str(compiler)
        _, unchecked = _median_run(command, environment, options)
        line += f"\n    {processor / unchecked:.2f} times what it takes without checks of stores"
    return line


def _median_run(
    command: list[str], environment: dict[str, str], options: argparse.Namespace
) -> tuple[float, float]:
    """Seconds of a run on the clock and of processors."""
    walls: list[float] = []
    processors: list[float] = []
    run([*command, "1"], environment)
    for _ in range(options.rounds):
        once = run([*command, "1"], environment)
        more = run([*command, str(options.loops + 1)], environment)
        walls.append(fastest_run(more.output))
        processors.append((more.cpu - once.cpu) / options.loops)
    return median(walls), median(processors)


_WRAPPER = """\
#!{python}
import os, sys
words = iter(sys.argv[1:])
kept = []
for word in words:
    if word == "--param":
        next(words)
    elif word not in ("-DTTCODEGEN_CHECK_STORES", "-fsanitize=kernel-address"):
        kept.append(word)
os.execv({compiler!r}, [{compiler!r}, *kept])
"""


def _without_store_checks(folder: Path, compiler: str) -> Path:
    """A compiler of kernels that leaves out what checks their stores."""
    wrapper = folder / "without_store_checks"
    wrapper.write_text(_WRAPPER.format(python=sys.executable, compiler=compiler))
    wrapper.chmod(0o755)
    return wrapper


def _ratios(out: Path) -> str:
    """Traffic of device programs against the minimum, summed over launches."""
    totals: dict[str, int] = {}
    for program in manifest(out)["programs"]:
        for name, value in program["costs"].items():
            totals[name] = totals.get(name, 0) + value * program["launches"]
    dram = totals["dram_read_bytes"] + totals["dram_write_bytes"]
    least = totals["least_dram_read_bytes"] + totals["least_dram_write_bytes"]
    noc = totals["noc_bytes"] / totals["least_noc_bytes"]
    return (
        f"{totals['tiles_computed']} tiles, {dram} bytes of DRAM ({dram / least:.2f} times the "
        f"least), {totals['noc_bytes']} over the NoC ({noc:.2f})"
    )


def main() -> None:
    """Prints two lines per program."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--rounds", type=int, default=3, help="processes of each")
    parser.add_argument("--loops", type=int, default=5, help="runs in a process")
    parser.add_argument("--store-checks", action="store_true", help="show what they cost (GCC)")
    options = parser.parse_args()
    print(f"{options.threads} threads; a run on the clock, and of all processors")
    for name, text in MODULES.items():
        with tempfile.TemporaryDirectory() as folder:
            print(f"{name}\n    {measured(text, Path(folder), options)}", flush=True)


if __name__ == "__main__":
    main()
