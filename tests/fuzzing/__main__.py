"""The long mode: `python -m tests.fuzzing --mutants N --first SEED --findings FOLDER`."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from pathlib import Path

from tests.fuzzing.targets import TARGETS, Finding, mutant_of, tried, with_threads


def main() -> int:
    """Tries the mutants of a range of seeds; 1 if one of them ended as none should."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzzing", description=__doc__)
    parser.add_argument("--mutants", type=int, default=100_000, help="how many (100000)")
    parser.add_argument("--first", type=int, default=0, help="the seed of the first one (0)")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after that time")
    parser.add_argument(
        "--findings", type=Path, default=Path("build", "fuzzing"), help="where mutants are kept"
    )
    parser.add_argument(
        "--threads", action="store_true", help="the C API under threads, too: builds a project"
    )
    options = parser.parse_args()
    targets = with_threads() if options.threads else TARGETS
    counts: Counter[str] = Counter()
    findings = 0
    end = time.monotonic() + options.seconds
    for seed in range(options.first, options.first + options.mutants):
        if time.monotonic() > end:
            break
        counts[mutant_of(seed, targets)[0].name] += 1
        finding = tried(seed, targets)
        if finding is not None:
            findings += 1
            _keep(finding, options.findings)
        if sum(counts.values()) % 1000 == 0:
            _report(counts, findings)
    _report(counts, findings)
    return 1 if findings else 0


def _keep(finding: Finding, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    mutant = finding.mutant
    suffix = "mlir" if isinstance(mutant, str) else finding.target
    name = f"{finding.seed}-{finding.target}.{suffix}"
    data = mutant.encode("utf-8", "replace") if isinstance(mutant, str) else mutant
    folder.joinpath(name).write_bytes(data)
    folder.joinpath(f"{name}.txt").write_text(finding.what)
    print(f"{folder / name}: {finding.what.splitlines()[-1]}", flush=True)


def _report(counts: Counter[str], findings: int) -> None:
    listed = ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))
    print(f"{sum(counts.values())} mutants ({listed}), {findings} findings", flush=True)


if __name__ == "__main__":
    sys.exit(main())
