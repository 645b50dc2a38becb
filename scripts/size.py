"""Counts lines of code and tokens by room, and what a change adds to each.

    python scripts/size.py                  # every room as it is
    python scripts/size.py --since HEAD~1   # with the difference from a revision
    python scripts/size.py --depth 2        # rooms inside rooms

A line of code is one that holds more than comments and docstrings. Long lines do not make a file
smaller: tokens are counted next to lines.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import subprocess
import tarfile
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parent.parent
COUNTED = ("ttcodegen", "standalone", "kernels", "tests", "scripts", "benchmarks")

_CPP = {".cpp", ".hpp", ".h", ".inc"}
_CPP_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_CPP_TOKEN = re.compile(r'"(?:\\.|[^"\\\n])*"|\w+|[^\w\s]')
_LAYOUT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}


@dataclass(frozen=True)
class Size:
    """Files, lines of code and tokens."""

    files: int = 0
    lines: int = 0
    tokens: int = 0

    def __add__(self, other: Size) -> Size:
        return Size(self.files + other.files, self.lines + other.lines, self.tokens + other.tokens)


def python_size(text: str) -> Size:
    """The size of a Python file, without comments and docstrings."""
    docstrings = {
        line
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and ast.get_docstring(node, clean=False) is not None
        for line in range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1)
    }
    lines, tokens = set[int](), 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in _LAYOUT or token.start[0] in docstrings:
            continue
        lines.update(range(token.start[0], token.end[0] + 1))
        tokens += 1
    return Size(1, len(lines), tokens)


def cpp_size(text: str) -> Size:
    """The size of a C++ file, without comments."""
    code = _CPP_COMMENT.sub("", text)
    lines = sum(1 for line in code.splitlines() if line.strip())
    return Size(1, lines, len(_CPP_TOKEN.findall(code)))


def _is_counted(path: PurePosixPath) -> bool:
    return path.parts[0] in COUNTED and (path.suffix == ".py" or path.suffix in _CPP)


def _texts(revision: str | None) -> Iterator[tuple[PurePosixPath, str]]:
    """The counted files of a revision, or of the working tree."""
    if revision is None:
        listing = _git("ls-files", "-z").decode().split("\0")
        for path in map(PurePosixPath, filter(None, listing)):
            if _is_counted(path) and (ROOT / path).is_file():
                yield path, (ROOT / path).read_text("utf-8")
        return
    with tarfile.open(fileobj=io.BytesIO(_git("archive", revision))) as archive:
        for member in archive:
            path = PurePosixPath(member.name)
            if member.isfile() and _is_counted(path):
                file = archive.extractfile(member)
                assert file is not None
                yield path, file.read().decode("utf-8")


def _git(*arguments: str) -> bytes:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, check=True).stdout


def rooms(revision: str | None, depth: int) -> dict[str, Size]:
    """The size of each room, by its path; `depth` folders below the top are rooms of their own."""
    sizes = defaultdict[str, Size](Size)
    for path, text in _texts(revision):
        room = "/".join(path.parts[: min(depth + 1, len(path.parts) - 1)])
        sizes[room] += python_size(text) if path.suffix == ".py" else cpp_size(text)
    return dict(sizes)


def main() -> None:
    """Prints a row for each room, and one for each top folder."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--since", metavar="REV", help="show the difference from a revision")
    parser.add_argument("--depth", type=int, default=1, help="levels of rooms (default: 1)")
    options = parser.parse_args()
    now = rooms(None, options.depth)
    before = rooms(options.since, options.depth) if options.since else None
    print(f"{'room':48}{'files':>7}{'lines':>9}{'tokens':>10}")
    names = sorted(now.keys() | (before or now).keys())
    for name in names:
        _print_row(name, [name], now, before)
    for top in COUNTED:
        inside = [name for name in names if name.split("/")[0] == top]
        _print_row(f"all of {top}", inside, now, before)


def _print_row(
    title: str, names: list[str], now: dict[str, Size], before: dict[str, Size] | None
) -> None:
    size = sum((now.get(name, Size()) for name in names), Size())
    row = f"{title:48}{size.files:7}{size.lines:9,}{size.tokens:10,}"
    if before is not None:
        old = sum((before.get(name, Size()) for name in names), Size())
        if size == old:
            return
        row += f"  {size.files - old.files:+} files, {size.lines - old.lines:+,} lines"
    print(row)


if __name__ == "__main__":
    main()
