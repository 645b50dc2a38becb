"""The lines of the ops of a model in the C++ of its project, kept apart from what a person
edits."""

from __future__ import annotations

import re
import zlib
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any, cast

from ttcodegen.emission.op_lines import LoweredOp, OpLines
from ttcodegen.project.pristine import packed, unpacked

LINES = ".ttcodegen/lines.json.gz"
"""A gzip file with a JSON object: `ops` with function, name and location in the source, and of each
of the `files` the lines as the number of an op, the first and the last."""

_NAMESPACE_END = re.compile(r"^\}\s*//.*$")


def _significant(text: str) -> list[str]:
    """The lines without what clang-format moves: spaces, comments, the order of includes, and where
    a long string is divided."""
    kept: list[str] = []
    for line in text.split("\n"):
        stripped = _NAMESPACE_END.sub("}", line.strip())
        if stripped.startswith(("//", "#include")):
            stripped = ""
        kept.append("".join(stripped.replace('"', "").split()))
    return kept


def formatted_lines(
    lines: Iterable[OpLines], printed: Mapping[str, str], written: Mapping[str, object]
) -> Iterator[OpLines]:
    """The lines of ops in files as they are written, which hold the same characters as what was
    printed. Of a file that holds others nothing is known."""
    by_path: dict[str, list[OpLines]] = {}
    for each in lines:
        by_path.setdefault(each.path, []).append(each)
    for path, found in by_path.items():
        text = written.get(path)
        if not isinstance(text, str):
            continue
        before, after = _significant(printed[path]), _significant(text)
        if "".join(before) != "".join(after):
            continue
        starts = list(accumulate(map(len, before), initial=0))
        places = list(accumulate(map(len, after)))
        for each in found:
            start, end = starts[each.first - 1], starts[each.last]
            if end > start:
                top = bisect_right(places, start) + 1
                bottom = bisect_right(places, end - 1) + 1
                yield OpLines(each.op, path, top, bottom)


def lines_archive(lines: Iterable[OpLines]) -> bytes:
    """The bytes of the archive; the same for the same lines."""
    ops: dict[LoweredOp, int] = {}
    files: dict[str, dict[tuple[int, int, int], None]] = {}
    for each in lines:
        number = ops.setdefault(each.op, len(ops))
        files.setdefault(each.path, {})[number, each.first, each.last] = None
    content = {
        "ops": [[op.function, op.name, op.offset] for op in ops],
        "files": {path: list(found) for path, found in files.items()},
    }
    return packed(content)


def read_lines(out: Path) -> list[OpLines]:
    """The lines of the ops of a project when it was generated; nothing if it has no record of
    them."""
    try:
        content = cast("dict[str, Any]", unpacked(out.joinpath(LINES)))
        ops = [LoweredOp(*op) for op in cast("list[tuple[str, str, int | None]]", content["ops"])]
        files = cast("dict[str, Sequence[tuple[int, int, int]]]", content["files"])
        return [
            OpLines(ops[number], path, int(first), int(last))
            for path, rows in files.items()
            for number, first, last in rows
        ]
    except (
        AttributeError,
        LookupError,
        OSError,
        RecursionError,
        TypeError,
        ValueError,
        zlib.error,
    ):
        return []
