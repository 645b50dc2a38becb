"""`ttcodegen-lit`: runs MLIR files that hold the commands of their tests, as LLVM's lit does."""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from unittest.mock import patch

from ttcodegen.cli.arguments import ArgumentParser, add_version_option
from ttcodegen.cli.entry import ExitStatus, Invocation, run_program
from ttcodegen.cli.run_lines import SYSTEM_DESC, LitError, features, lit_files, run_test, unmet
from ttcodegen.foundation.diagnostics import CompileError

PROGRAM = "ttcodegen-lit"
_BUILD = "build"
"""The folder of what tests write, below the working directory."""

_EPILOG = f"""\
examples:
  {PROGRAM} test/Dialect                     all tests below a folder
  {PROGRAM} -v test/matmul.mlir              one test, with what a failure wrote
  {PROGRAM} --show-tests test                their names
  {SYSTEM_DESC}=n300 {PROGRAM} test          for another system: REQUIRES: n300 holds
  {PROGRAM} build/test/Silicon               as test/Silicon: files go there in any case

What test/a.mlir writes to %t stays in build/test/Output/a.mlir.tmp.

exit status: 0 all tests passed or are not for this system; 1 one failed; 2 wrong usage;
70 a bug in ttcodegen
"""


def argument_parser() -> argparse.ArgumentParser:
    """The options of the command line."""
    parser = ArgumentParser(
        prog=PROGRAM,
        description="Runs the RUN lines of MLIR files and checks what they print.",
        epilog=_EPILOG,
    )
    add = parser.add_argument
    add("paths", nargs="*", metavar="PATH", type=Path, default=[Path()],
        help="files with RUN lines, or folders that hold some (.)")  # fmt: skip
    add("-s", "--succinct", action="store_true", help="name only tests that fail")
    add("-v", "--verbose", action="store_true", help="print what failing commands wrote")
    add("-q", "--quiet", action="store_true", help="print nothing but failures")
    add("--show-tests", action="store_true", help="list the tests, run none")
    add("--show-features", action="store_true", help="list what tests may require, run none")
    add("--system-desc", metavar="F", help="the system, as a .ttsys file or by name, instead of "
        f"${SYSTEM_DESC} (n150)")  # fmt: skip
    add("--feature", action="append", default=[], metavar="NAME",
        help="something else that tests may require is there")  # fmt: skip
    add("-o", "--output", type=Path, metavar="DIR", help="the folder for what tests write (build)")
    add_version_option(parser)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit status."""
    return run_program(PROGRAM, _run, argv)


def _run(invocation: Invocation) -> int:
    options = argument_parser().parse_args(invocation.arguments)
    named = {SYSTEM_DESC: options.system_desc} if options.system_desc else {}
    with patch.dict(os.environ, named):
        return _run_tests(options)


def _run_tests(options: argparse.Namespace) -> int:
    build: Path = options.output or Path(_BUILD)
    tests = [test for path in options.paths for test in _tests(path, build)]
    present = features(options.feature)
    if options.show_features:
        print("-- Available Features:", *sorted(present))
        return ExitStatus.DONE
    if options.show_tests:
        print("-- Available Tests --")
        for test in tests:
            print(f"  ttcodegen :: {os.path.relpath(test)}")
        return ExitStatus.DONE
    return _report(tests, build, present, options)


def _report(
    tests: Sequence[Path], build: Path, present: frozenset[str], options: argparse.Namespace
) -> int:
    """Runs tests, and prints the outcome of each requested one; the exit status."""
    counts = Counter[str]()
    for number, test in enumerate(tests, 1):
        outcome, said = _outcome(test, _folder(test, build), present)
        counts[outcome] += 1
        failed = outcome == "FAIL"
        if failed or not (options.succinct or options.quiet):
            where = f"ttcodegen :: {os.path.relpath(test)} ({number} of {len(tests)})"
            print(f"{outcome}: {where}{f' {said}' if said and not failed else ''}")
        if failed and options.verbose:
            print(said)
    if not options.quiet:
        _summarize(counts, len(tests))
    return ExitStatus.WRONG_INPUT if counts["FAIL"] else ExitStatus.DONE


def _tests(path: Path, build: Path) -> list[Path]:
    """The tests that a path names. One below the folder of what tests write stands for the tests
    that wrote it.

    Raises:
        CompileError: if there are none.
    """
    own = Path(os.path.relpath(path))
    root = Path(os.path.relpath(build))
    source = own.relative_to(root) if own.is_relative_to(root) else own
    for each in (path, source):
        if each.is_file():
            return [each.resolve()]
        if each.is_dir() and (found := lit_files(each.resolve())):
            outputs = build.resolve()
            return [test for test in found if each == path == build or outputs not in test.parents]
    missing = "has no tests" if path.exists() else "is not there"
    raise CompileError(f"'{path}' {missing}", remedy="a test is a .mlir file with RUN lines")


def _folder(test: Path, build: Path) -> Path:
    """The folder of what a test writes: as the test is in the working directory."""
    beside = Path(os.path.relpath(test.parent))
    if beside.parts[:1] == ("..",):
        beside = Path(*test.parent.parts[1:])
    return (build / beside / "Output").resolve()


def _outcome(test: Path, folder: Path, present: frozenset[str]) -> tuple[str, str]:
    """The outcome of a test, and what it says of it."""
    try:
        condition = unmet(test.read_text("utf-8"), present)
        if condition is not None:
            return "UNSUPPORTED", f"({condition})"
        run_test(test, folder, inside=True)
    except (LitError, CompileError) as error:
        return "FAIL", str(error)
    return "PASS", ""


def _summarize(counts: Counter[str], total: int) -> None:
    print(f"\nTotal Discovered Tests: {total}")
    for outcome, name in (("UNSUPPORTED", "Unsupported"), ("PASS", "Passed"), ("FAIL", "Failed")):
        if counts[outcome]:
            print(f"  {name:<11}: {counts[outcome]} ({100 * counts[outcome] / total:.2f}%)")


if __name__ == "__main__":
    sys.exit(main())
