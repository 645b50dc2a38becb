"""`ttcodegen-lit`: runs the RUN lines of MLIR tests, like LLVM's lit.

The programs of the project and filecheck are called in this process: starting Python costs more
than most tests. A RUN line is a pipe of commands, with `not`, `NAME=VALUE`, `2>&1`, `> FILE`,
`2> FILE` and `< FILE`; `%s` is the file, `%S` its folder, `%t` a file of the test's own, `%T` the
folder of that, `%system_desc_path%` what SYSTEM_DESC_PATH names, a card of one chip without it. The
programs may have the names that they have in tt-mlir. Files with `REQUIRES:` or `UNSUPPORTED:` run
where the features that they name are there or are not.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from unittest.mock import patch

from ttcodegen.cli.arguments import ArgumentParser, add_version_option
from ttcodegen.cli.entry import ExitStatus, Invocation, run_program
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.systems.cards import MACHINES

_RUN = re.compile(r"^\s*//\s*RUN:\s?(.*)$", re.MULTILINE)
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_OPERATORS = ("|", "<", ">", ">>", "2>", "2>&1", "&>", "&&", ";")


_CONDITION = re.compile(r"^\s*//\s*(REQUIRES|UNSUPPORTED):\s*(.*)$", re.MULTILINE)
_FEATURE = re.compile(r"\s*(&&|\|\||!|\(|\)|[\w.=+-]+)")
SYSTEM_DESC = "SYSTEM_DESC_PATH"
DEFAULT_SYSTEM = "n150"
"""Default system, if SYSTEM_DESC_PATH is not set."""


_PIPELINES = ("functional", "perf")
_DURATIONS = ("push", "pr")
"""Durations of tt-mlir's tests; all of them run."""


def features(extra: Collection[str] = ()) -> frozenset[str]:
    """Features that a file may require.

    These are the operating system, architecture and family of the system of SYSTEM_DESC_PATH, kinds
    of tests, and `extra`.

    Raises:
        CompileError: if SYSTEM_DESC_PATH is no system.
    """
    found = {sys.platform, f"system-{sys.platform}", *_PIPELINES, *_DURATIONS, *extra}
    named = os.environ.get(SYSTEM_DESC)
    found |= {"system-desc"} if named else set()
    return frozenset(found | set(_of_system(named or DEFAULT_SYSTEM)))


@cache
def _of_system(named: str) -> tuple[str, ...]:
    """Architecture and names of matching machines of a system."""
    from ttcodegen.flatbuffer.system import load_system

    system = load_system(named)
    chips = len(system.chip_indices)
    same = (
        each.name
        for each in MACHINES
        if (each.arch, each.chips, each.chip.grid) == (system.arch, chips, system.chip.grid)
    )
    return (system.arch, *same)


def unmet(text: str, present: frozenset[str]) -> str | None:
    """First unmet condition of a file; None if it runs with these features.

    Raises:
        LitError: if a condition is no expression of features, `&&`, `||`, `!` and parentheses.
    """
    for kind, conditions in _CONDITION.findall(text):
        for condition in conditions.split(","):
            if _holds(condition.strip(), present) != (kind == "REQUIRES"):
                return f"{kind}: {condition.strip()}"
    return None


def _holds(condition: str, present: frozenset[str]) -> bool:
    words = _FEATURE.findall(condition)
    if "".join(words) != re.sub(r"\s", "", condition) or not words:
        raise LitError(f"'{condition}' is no condition")
    operators = {"&&": "and", "||": "or", "!": "not", "(": "(", ")": ")"}
    operators |= {"true": "True", "false": "False"}
    text = " ".join(operators.get(word, str(word in present)) for word in words)
    try:
        return bool(eval(text, {"__builtins__": {}}))  # Nothing but True, False and operators.
    except SyntaxError:
        raise LitError(f"'{condition}' is no condition") from None


class LitError(Exception):
    """Failure of a RUN line, with its output."""


def run_lines(text: str) -> list[str]:
    """RUN lines of a test, with continuation lines joined."""
    lines: list[str] = []
    open_ = False
    for line in _RUN.findall(text):
        line = line.strip()
        continued = line.endswith("\\")
        part = line.removesuffix("\\").strip()
        if open_:
            lines[-1] += " " + part
        else:
            lines.append(part)
        open_ = continued
    return lines


def run_test(path: Path, folder: Path, *, inside: bool = False) -> None:
    """Runs all RUN lines of a file; output files go to `folder`.

    It is also the working directory with `inside`.

    Raises:
        LitError: at the first line that fails.
    """
    lines = run_lines(path.read_text("utf-8"))
    if not lines:
        raise LitError(f"{path} has no RUN lines")
    folder.mkdir(parents=True, exist_ok=True)
    names = {
        "%basename_t": path.stem,
        "%system_desc_path%": os.environ.get(SYSTEM_DESC) or DEFAULT_SYSTEM,
        "%%": "%",
        "%s": str(path),
        "%S": str(path.parent),
        "%t": str(folder / f"{path.name}.tmp"),
        "%T": str(folder),
    }
    pattern = re.compile("|".join(map(re.escape, names)))
    at = contextlib.chdir(folder) if inside else contextlib.nullcontext()
    with _temporary_files_in(folder), at:
        for line in lines:
            command = pattern.sub(lambda match: names[match.group()], line)
            for part in _split(shlex_tokens(command), ("&&", ";")):
                _run_pipe(part, command)


def run_command_line(command: str) -> str:
    """Runs a line; returns the output of its last command on both streams.

    Raises:
        LitError: if it fails.
    """
    (pipe,) = _split(shlex_tokens(command), ("&&", ";"))
    return _run_pipe(pipe, command)


@contextmanager
def _temporary_files_in(folder: Path):
    """Redirects temporary files, such as reproducers, to the test's folder."""
    before, tempfile.tempdir = tempfile.tempdir, str(folder)
    try:
        yield
    finally:
        tempfile.tempdir = before


def shlex_tokens(command: str) -> list[str]:
    """Tokens of a command, with operators separate."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars="|<>;&")
    lexer.whitespace_split = True
    lexer.commenters = ""
    tokens: list[str] = []
    for token in lexer:
        # Rejoin `2>&1` and `2>`, which shlex splits at the operator.
        if token.startswith((">", ">&")) and tokens and tokens[-1] == "2":
            tokens[-1] = "2" + token
        elif tokens and tokens[-1] == "2>&":
            tokens[-1] += token
        else:
            tokens.append(token)
    return tokens


def _split(tokens: Sequence[str], separators: Sequence[str]) -> list[list[str]]:
    parts: list[list[str]] = [[]]
    for token in tokens:
        if token in separators:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


@dataclass
class _Done:
    status: int
    out: bytes
    err: str


def _run_pipe(tokens: Sequence[str], line: str) -> str:
    """Runs the commands of a pipe; returns the last one's output."""
    data = b""
    written = ""
    reported: list[str] = []
    for command in _split(tokens, ("|",)):
        done = _run_command(command, data)
        data = done.out
        written = done.err + done.out.decode("utf-8", "replace")
        if done.err:
            reported.append(done.err)
        if done.status != 0:
            shown = data.decode("utf-8", "replace")
            raise LitError(
                f"RUN: {line}\n{shlex.join(command)} failed\n{''.join(reported)}\n{shown}"
            )
    return written


def _run_command(tokens: Sequence[str], stdin: bytes) -> _Done:
    """Runs a command of a pipe; a nonzero status fails the test."""
    words: list[str] = []
    redirections: dict[str, str] = {}
    rest = iter(tokens)
    merged = False
    for token in rest:
        if token == "2>&1":
            merged = True
        elif token in ("<", ">", "2>", "&>"):
            redirections[token] = next(rest)
        else:
            words.append(token)
    if "<" in redirections:
        stdin = Path(redirections["<"]).read_bytes()
    negated = bool(words) and words[0] == "not"
    done = _call_in_environment(words[1:] if negated else words, stdin)
    if negated:
        # `not` does not accept an internal error.
        done.status = 1 if done.status in (0, 70) else 0
    if merged or "&>" in redirections:
        done = _Done(done.status, done.err.encode() + done.out, "")
    for sign, file in redirections.items():
        if sign in (">", "&>"):
            Path(file).write_bytes(done.out)
            done.out = b""
        elif sign == "2>":
            Path(file).write_text(done.err, "utf-8")
            done.err = ""
    return done


def _programs() -> dict[str, Callable[[list[str]], int | None]]:
    from ttcodegen.cli import lang, opt, rt, translate, ttcodegen

    return {
        "ttcodegen": ttcodegen.main,
        "ttcodegen-lang": lang.main,
        "ttcodegen-opt": opt.main,
        "ttcodegen-translate": translate.main,
        "ttcodegen-rt": rt.main,
        "ttmlir-opt": opt.main,
        "ttmlir-translate": translate.main,
        "ttrt": rt.main,
        "filecheck": _filecheck,
        "FileCheck": _filecheck,
        "diff": _diff,
        "cat": _cat,
    }


def _call_in_environment(words: Sequence[str], stdin: bytes) -> _Done:
    """Calls a program with preceding variable assignments, as in a shell."""
    variables: dict[str, str] = {}
    while words and (assigned := _ASSIGNMENT.fullmatch(words[0])):
        variables[assigned[1]] = assigned[2]
        words = words[1:]
    with patch.dict(os.environ, variables):
        return _call(words, stdin)


def _call(words: Sequence[str], stdin: bytes) -> _Done:
    program = _programs().get(words[0])
    if program is None:
        ran = subprocess.run(words, input=stdin, capture_output=True, check=False)
        return _Done(ran.returncode, ran.stdout, ran.stderr.decode("utf-8", "replace"))
    out = io.TextIOWrapper(io.BytesIO(), "utf-8", newline="")
    err = io.StringIO()
    kept = sys.stdin, sys.stdout, sys.stderr
    sys.stdin, sys.stdout, sys.stderr = io.TextIOWrapper(io.BytesIO(stdin), "utf-8"), out, err
    try:
        status = int(program(list(words[1:])) or 0)
    except SystemExit as leave:
        status = int(leave.code or 0)
    except OSError as error:
        print(error, file=err)
        status = 1
    finally:
        sys.stdin, sys.stdout, sys.stderr = kept
    out.flush()
    buffer = out.buffer
    assert isinstance(buffer, io.BytesIO)
    return _Done(status, buffer.getvalue(), err.getvalue())


def _filecheck(arguments: list[str]) -> int | None:
    try:
        from filecheck.main import main
    except ImportError:
        raise CompileError(
            "there is no FileCheck", remedy="pip install filecheck, a dependency of ttcodegen"
        ) from None

    main(["filecheck", *arguments])
    return 0


def _text_of(name: str) -> str:
    return sys.stdin.read() if name == "-" else Path(name).read_text("utf-8")


def _diff(arguments: list[str]) -> int:
    import difflib

    one, other = arguments
    first, second = (_text_of(name).splitlines(keepends=True) for name in (one, other))
    lines = list(difflib.unified_diff(first, second, one, other))
    sys.stdout.writelines(lines)
    return 1 if lines else 0


def _cat(arguments: list[str]) -> int:
    for name in arguments or ["-"]:
        sys.stdout.write(_text_of(name))
    return 0


def lit_files(folder: Path) -> list[Path]:
    """Files below a folder that have RUN lines."""
    return [p for p in sorted(folder.rglob("*.mlir")) if _RUN.search(p.read_text("utf-8"))]


PROGRAM = "ttcodegen-lit"
_BUILD = "build"
"""Folder of the tests' output files, below the working directory."""

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
    """Runs tests and prints their outcomes; returns the exit status."""
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
    """Tests at a path; a path in the output folder stands for the tests that wrote it.

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
    """Output folder of a test, mirroring its path in the working directory."""
    beside = Path(os.path.relpath(test.parent))
    if beside.parts[:1] == ("..",):
        beside = Path(*test.parent.parts[1:])
    return (build / beside / "Output").resolve()


def _outcome(test: Path, folder: Path, present: frozenset[str]) -> tuple[str, str]:
    """Outcome of a test with its message."""
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
