"""Times `ttcodegen FILE -o OUT`, from a cold start to the last file written, without a build.

    python benchmarks/compile_time.py --corpus DIR

Each run is a process of its own that writes to a fresh folder. The fastest run is printed,
and its processor time as a multiple of what `python -c "import numpy, xdsl.ir"` takes in turn.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path

from measure import TTCODEGEN, corpus_file, multiple
from synthetic import synthetic_module

CORPUS_MODELS = ("models__mnist", "models__yolo_v8")
AIMS = {"models__mnist": 2, "models__yolo_v8": 8, "synthetic_10000": 25}
"""The multiples to be reached; 20,000 ops are to take at most 2.1 times as long as 10,000."""
SYNTHETIC_SIZES = (10_000, 20_000)
SPLAT_SIZE = 1000


def cases(corpus: Path | None, scratch: Path) -> list[Path]:
    """The modules that are compiled; synthetic ones are written to `scratch`."""
    found = [corpus_file(corpus, name) for name in CORPUS_MODELS]
    written = [(f"synthetic_{size}", synthetic_module(size)) for size in SYNTHETIC_SIZES]
    name = f"synthetic_{SPLAT_SIZE}"
    written.append((name, synthetic_module(SPLAT_SIZE)))
    written.append((f"{name}_splat", synthetic_module(SPLAT_SIZE, splat=True)))
    for name, text in written:
        path = scratch / f"{name}.mlir"
        path.write_text(text)
        found.append(path)
    return [path for path in found if path is not None]


def main() -> None:
    """Prints one line per module."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--corpus", type=Path, metavar="DIR", help="folder of the models")
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    print(f"{'module':24} {'wall':>10} {'processor':>10} {'peak':>9} {'multiple':>9} {'aim':>5}")
    with tempfile.TemporaryDirectory() as name:
        scratch, number = Path(name), 0
        for path in cases(options.corpus, scratch):

            def command(path: Path = path) -> Sequence[str]:
                nonlocal number
                number += 1
                return (*TTCODEGEN, str(path), "-o", str(scratch / f"out{number}"))

            least, times = multiple(command, options.runs)
            aim = AIMS.get(path.stem, "")
            print(f"{path.stem:24} {least} {times:9.1f} {aim:>5}", flush=True)


if __name__ == "__main__":
    main()
