"""Runs what modules become for `--target ttmetal` on the vendor's simulator.

    scripts/simulated_sweep.py FOLDER... --count 30 --release 0.70.1 --simulator LIB --python PYTHON

Takes modules evenly from the folders, compiles each, builds its project with the tt-metal in
TT_METAL_HOME, and compares each program with its flatbuffer in numpy, as `ttcodegen-rt validate`
does. Modules that are refused are replaced by the next. Prints a line for each program, what
differs below it, and a summary; the exit status is 0 if nothing differs.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

# The package beside this file, whatever other checkout is installed.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from scripts.release_checks import taken_evenly
from ttcodegen.cli.ttcodegen import main as ttcodegen
from ttcodegen.project.toolchain import BuildError
from ttcodegen.rt.judging.simulated_project import package_of, simulated_verdicts
from ttcodegen.systems.releases import DEFAULT_RELEASE, RELEASES


def judged(module: Path, options: argparse.Namespace) -> Counter[str] | None:
    """The numbers of programs by verdict, after a line for each; None if the module is refused."""
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch, "project")
        given = [str(module), "-o", str(out), "--target", "ttmetal"]
        given += ["--tt-metal", options.release, "--arch", options.arch]
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            status = ttcodegen(given)
        if status != 0:
            return None
        found: Counter[str] = Counter()
        package = package_of(options.python)
        try:
            verdicts = simulated_verdicts(out, options.simulator, package, options.seconds)
        except BuildError as error:
            print(f"{module.name}: {error}", flush=True)
            return Counter({"not built": 1})
    for verdict in verdicts:
        kinds = ("refused", "different", "not_judged")
        kind = next((kind for kind in kinds if verdict[kind]), "agrees").replace("_", " ")
        found[kind] += 1
        print(f"{module.name}, {verdict['program']}: {kind}", flush=True)
        for line in (line for each in kinds for line in verdict[each]):
            print(f"    {line}", flush=True)
    return found


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the script; returns the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--count", type=int, default=30, help="how many modules (30)")
    parser.add_argument("--simulator", type=Path, required=True, help="the simulator (a .so)")
    parser.add_argument("--python", required=True, help="one that has the release's package ttnn")
    parser.add_argument("--release", choices=list(RELEASES), default=DEFAULT_RELEASE)
    parser.add_argument("--arch", choices=["wormhole_b0", "blackhole"], default="wormhole_b0")
    parser.add_argument("--seconds", type=float, default=600, help="limit of a program (600)")
    options = parser.parse_args(argv)
    total: Counter[str] = Counter()
    modules = 0
    for module in taken_evenly(options.folders):
        if modules == options.count:
            break
        if (found := judged(module, options)) is not None:
            modules += 1
            total += found
    verdicts = ", ".join(f"{count} {kind}" for kind, count in sorted(total.items()))
    print(f"{modules} modules: {verdicts or 'nothing ran'}")
    return 1 if total["different"] or total["refused"] or total["not built"] else 0


if __name__ == "__main__":
    sys.exit(main())
