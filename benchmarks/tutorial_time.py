"""Times the simulator with the tutorials of the public package tt-lang, beside that package's own.

    python benchmarks/tutorial_time.py [--size 1024] [--peer "COMMAND"]

The tutorials are taken from the wheel that tests/lang/test_tutorials.py downloads. COMMAND runs a
program in the simulator of tt-lang, `ttlang-sim` where that package is installed, which needs
Python 3.12. Products have matrices of the size given, 8192 in the tutorials themselves. Both print
seconds of processors of the whole process, of one thread, the minimum of the runs.
"""

from __future__ import annotations

import argparse
import shlex
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

from measure import run

WHEELS = Path(__file__).parents[1] / "build" / "wheels"
FOLDER = "ttl/tutorials/"
SIZE = "M, K, N = 8192, 8192, 8192"
OURS = (sys.executable, "-c", "from ttcodegen.cli.lang import main; raise SystemExit(main())")
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


def minimum(command: Sequence[str], runs: int) -> str:
    """The minimum processor time of the runs."""
    try:
        return f"{min(run(command, ONE_THREAD).cpu for _ in range(runs)):7.2f} s"
    except SystemExit:
        return "    fails"


def main() -> None:
    """Prints one line per tutorial."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--size", type=int, default=1024)
    parser.add_argument("--peer", type=shlex.split, default=[])
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--only", default="", help="what the names of the tutorials have in them")
    options = parser.parse_args()
    wheel = next(WHEELS.glob("tt_lang-*.whl"), None)
    if wheel is None:
        raise SystemExit(f"no wheel of tt-lang in {WHEELS}: run tests/lang/test_tutorials.py")
    files = zipfile.ZipFile(wheel)
    commands = [OURS, options.peer] if options.peer else [OURS]
    print(f"{'tutorial':56} {'here':>9} {'tt-lang':>9}")
    for name in sorted(files.namelist()):
        is_tutorial = name.startswith(FOLDER) and not name.endswith(("/", "__init__.py"))
        if not is_tutorial or options.only not in name:
            continue
        size: int = options.size
        text = files.read(name).decode().replace(SIZE, f"M, K, N = {size}, {size}, {size}")
        with tempfile.TemporaryDirectory() as folder:
            program = Path(folder, Path(name).name)
            program.write_text(text, "utf-8")
            times = [minimum([*command, str(program)], options.runs) for command in commands]
        print(f"{name.removeprefix(FOLDER):56}", *times, flush=True)


if __name__ == "__main__":
    main()
