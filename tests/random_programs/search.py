"""Looks for random programs that fail, and keeps what is left of them when they are made smaller.

python -m tests.random_programs.search 1000 2000    # seeds from 1000 on, as far as 2000
python -m tests.random_programs.search 0 5000 --numpy    # without C++, ten times as fast
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from tests.random_programs.checking import (
    failures,
    failures_in_numpy,
    functions_of,
    module_of,
    seeded_module,
)
from tests.random_programs.reducing import reduced
from ttcodegen.foundation.diagnostics import Source
from ttcodegen.parsing import parse_module
from ttcodegen.project.toolchain import Toolchain, find_toolchain

KEPT = Path(__file__).parent / "kept"
BATCH = 100
"""Functions in one program."""


def _failures_in_numpy(text: str) -> dict[str, list[str]]:
    functions = functions_of(parse_module(Source("random.mlir", text)))
    found = {name: failures_in_numpy(module_of([op])) for name, op in functions.items()}
    return {name: reasons for name, reasons in found.items() if reasons}


def search(seeds: Sequence[int], toolchain: Toolchain | None) -> int:
    """Tries a program for each seed; gives how many of them failed and are kept now."""
    failing = _failures_in_numpy if toolchain is None else partial(failures, toolchain=toolchain)
    count = 0
    for start in range(0, len(seeds), BATCH):
        text = seeded_module(seeds[start : start + BATCH])
        for name, reasons in failing(text).items():
            count += 1
            kept = KEPT / f"{name}.mlir"
            reported = "".join(f"// {line}\n" for reason in reasons for line in reason.splitlines())
            kept.write_text(reported + reduced(text, name, failing))
            print(f"{kept.relative_to(KEPT.parent)}: {reasons[0]}", flush=True)
        print(f"{min(start + BATCH, len(seeds))} programs", flush=True)
    return count


def main() -> int:
    """The command of the docstring above; its exit status is 1 if something failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("first", type=int)
    parser.add_argument("last", type=int)
    parser.add_argument("--numpy", action="store_true", help="compare golden and flatbuffer only")
    options = parser.parse_args()
    toolchain = None if options.numpy else find_toolchain()
    return 1 if search(range(options.first, options.last), toolchain) else 0


if __name__ == "__main__":
    raise SystemExit(main())
