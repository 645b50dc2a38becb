"""Where the ops of a module stand in its C++, and which of them a person has changed."""

from __future__ import annotations

import difflib
import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING

from xdsl.dialects.func import FuncOp

from ttcodegen.emitc.printer import print_with_origins
from ttcodegen.emitc.statements import FileOp
from ttcodegen.explorer.graph import Graph
from ttcodegen.explorer.module_graphs import positions
from ttcodegen.ops.definition import function_of
from ttcodegen.optimizer.call_names import CallNames
from ttcodegen.project.edits import edited_files
from ttcodegen.project.pristine import read_pristine

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.ir import Operation

_NAMESPACE_END = re.compile(r"^\}\s*//.*$")
_CALL = re.compile(r"\b(?:ttnn|call)(?:::\w+)*::(\w+)\(")

_WRAPPERS = re.compile(r"namespace call \{$|\}\s*// namespace call$")
"""Where functions begin and end that give calls of the library default arguments."""

Node = tuple[str, str]
"""The function of an op, and its name in it."""


@dataclass(frozen=True)
class CodeLines:
    """Lines of a file, counted from 1, both ends included."""

    path: str
    first: int
    last: int

    def __str__(self) -> str:
        lines = str(self.first) if self.first == self.last else f"{self.first}-{self.last}"
        return f"{self.path}:{lines}"


def call_names(module: ModuleOp) -> dict[Operation, Node]:
    """The nodes of the ops of a module, before it becomes C++."""
    return {
        op: (names.function, names[op])
        for function in module.walk()
        if isinstance(function, FuncOp) and function.body.blocks
        for names in [CallNames(function)]
        for op in function.body.block.ops
        if op in names
    }


def printed_lines(
    module: ModuleOp, nodes: Mapping[Operation, Node]
) -> dict[str, tuple[str, list[tuple[Node, int, int]]]]:
    """The text of each file of a module of EmitC, as it is printed, and the lines of its nodes
    (counted from 0, and the end)."""
    found: dict[str, tuple[str, list[tuple[Node, int, int]]]] = {}
    for file in module.body.block.ops:
        if isinstance(file, FileOp):
            text, printed = print_with_origins(file)
            known = [
                (nodes[each.origin], each.first, each.end)
                for each in printed
                if each.origin in nodes
            ]
            if known:
                found[file.id.data] = text, known
    return found


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
    printed: Mapping[str, tuple[str, Iterable[tuple[Node, int, int]]]], files: Mapping[str, object]
) -> dict[Node, list[CodeLines]]:
    """The lines of nodes in files as they are written, which hold the same characters. Nodes of a
    file that holds others have none."""
    found: dict[Node, dict[CodeLines, None]] = {}
    for path, (text, lines) in printed.items():
        written = files.get(path)
        if not isinstance(written, str):
            continue
        before, after = _significant(text), _significant(written)
        if "".join(before) != "".join(after):
            continue
        starts = list(accumulate(map(len, before), initial=0))
        places = list(accumulate(map(len, after)))
        for node, first, end in lines:
            if starts[end] > starts[first]:
                top = bisect_right(places, starts[first]) + 1
                bottom = bisect_right(places, starts[end] - 1) + 1
                found.setdefault(node, {})[CodeLines(path, top, bottom)] = None
    return {node: list(each) for node, each in found.items()}


# Edits


def changed_lines(before: str, now: str) -> tuple[set[int], set[int]]:
    """Which lines of a text were changed or taken out, and which of the other are new; from 1."""
    old, new = before.split("\n"), now.split("\n")
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    gone: set[int] = set()
    come: set[int] = set()
    for tag, a, b, c, d in matcher.get_opcodes():
        if tag != "equal":
            gone.update(range(a + 1, b + 1))
            come.update(range(c + 1, d + 1))
    return gone, come


def _calls(text: str) -> list[tuple[str, int, int]]:
    """The library's functions that statements call, in order, with the first and the last line of
    the statement."""
    found: list[tuple[str, int, int]] = []
    first = 1
    pending: list[str] = []
    wraps = False
    for number, line in enumerate(text.split("\n"), start=1):
        stripped = line.strip()
        if _WRAPPERS.match(stripped):
            wraps = stripped.endswith("{")
        if wraps:
            continue  # What stands here is called by what follows.
        if not pending:
            first = number
        if not stripped.startswith(("//", "#")):
            pending += [match.group(1) for match in _CALL.finditer(line)]
        if stripped.endswith((";", "{", "}")):
            found += [(name, first, number) for name in pending]
            pending = []
            first = number + 1
    return found


def changed_nodes(out: Path, graphs: Sequence[Graph]) -> dict[Node, list[CodeLines]]:
    """The ops of a project whose statements a person has changed, with the lines where these stood
    when they were generated.

    The ops of a kind are found by their order, in the C++ and in the flatbuffer. Where layers share
    a function there are more ops than calls, and none of that kind is named.
    """
    before = read_pristine(out) or {}
    found: dict[Node, list[CodeLines]] = {}
    by_name: dict[str, list[Node]] = {}
    for graph in graphs:
        for node in positions(graph):
            name = (node.attribute("op") or "").rpartition(".")[2]
            by_name.setdefault(function_of(name), []).append((graph.id, node.id))
    calls: dict[str, list[CodeLines]] = {}
    for path, text in before.items():
        if path.startswith("src/") and path.endswith(".cpp"):
            for name, first, last in _calls(text):
                calls.setdefault(name, []).append(CodeLines(path, first, last))
    gone: dict[str, set[int]] = {}
    for path in edited_files(out):
        if path in before and path.endswith(".cpp"):
            now = out.joinpath(path).read_text("utf-8", "replace")
            gone[path] = changed_lines(before[path], now)[0]
    for name, places in calls.items():
        nodes = by_name.get(name, [])
        if len(nodes) != len(places):
            continue
        for node, lines in zip(nodes, places, strict=True):
            if gone.get(lines.path, set()) & set(range(lines.first, lines.last + 1)):
                found.setdefault(node, []).append(lines)
    return found
