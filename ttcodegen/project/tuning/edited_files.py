"""Edits of a project's C++ by file: decisions of its calls and constants, and edits of text."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher

from ttcodegen.emission.manifest_entries import LoweredOp, OpLines
from ttcodegen.project.manifest import CodeLines
from ttcodegen.project.tuning.statements import Constant, Statement


@dataclass(frozen=True)
class Change:
    """Argument that the user changed."""

    parameter: str
    """Parameter of the decision, a key of `KINDS`."""
    words: tuple[str, ...]
    """New value; empty if the argument was removed."""
    before: tuple[str, ...]
    """Generated value; empty if there was none."""
    option: bool
    """True for a field of options, False for a positional argument."""
    position: int = -1
    fillers: tuple[tuple[str, ...], ...] = ()
    """All positional arguments as edited, which fill those before an added one."""


@dataclass(frozen=True)
class EditedCall:
    """Call with decisions of the user."""

    path: str
    ops: tuple[LoweredOp, ...]
    """Ops of the call: several for a function that all layers call."""
    before: Statement
    after: Statement
    changes: tuple[Change, ...]
    fused: Statement | None = None
    """Generated activation call that the call applies now."""
    fused_ops: tuple[LoweredOp, ...] = ()
    comments: tuple[str, ...] = ()
    """User's comments at the call."""
    line: int = 0


@dataclass(frozen=True)
class ReplacedCalls:
    """Calls that the user replaced by equivalent ones."""

    path: str
    ops: tuple[LoweredOp, ...]
    before: tuple[Statement, ...]
    """Generated calls; the last one produces the result."""
    after: tuple[Statement, ...]
    texts: tuple[str, ...]
    """Texts of the user's calls."""
    ops_before: tuple[tuple[LoweredOp, ...], ...] = ()
    """Ops of each generated call."""
    comments: tuple[str, ...] = ()
    line: int = 0
    apart: str = ""
    """Activation that the generated call applied, if the user only calls it by itself."""
    applied: tuple[str, ...] = ()
    """Activation that each generated call applies; empty for none."""


@dataclass(frozen=True)
class MovedCall:
    """Call that the user moved."""

    path: str
    ops: tuple[LoweredOp, ...]
    statement: Statement
    """Statement as generated."""
    previous: Statement | None
    """Statement that it follows now, as generated."""
    following: Statement | None
    ops_around: tuple[tuple[LoweredOp, ...], tuple[LoweredOp, ...]] = ((), ())
    """Ops of the nearest calls before and after its place that have a name."""
    comments: tuple[str, ...] = ()
    line: int = 0


@dataclass(frozen=True)
class EditedConstant:
    """Constant of tuning.hpp that the user changed or added."""

    constant: Constant
    before: Constant | None
    """Generated constant; None if the user added it."""
    ops: tuple[LoweredOp, ...]
    """Ops whose calls use the constant."""
    text: str
    """Text of the declaration."""
    comments: tuple[str, ...] = ()
    line: int = 0


@dataclass(frozen=True)
class TextEdit:
    """Edit that is no decision."""

    place: CodeLines
    ops: tuple[LoweredOp, ...]


@dataclass
class EditedFile:
    """Generated and current version of a project file."""

    path: str
    before: str
    after: str
    ops: Sequence[OpLines]
    """Lines of the ops in the generated file."""
    calls: list[EditedCall] = field(default_factory=list[EditedCall])
    replaced: list[ReplacedCalls] = field(default_factory=list[ReplacedCalls])
    moved: list[MovedCall] = field(default_factory=list[MovedCall])
    constants: list[EditedConstant] = field(default_factory=list[EditedConstant])
    constants_known: Mapping[str, Constant] = field(default_factory=dict[str, Constant])
    """Current constants of tuning.hpp, by name."""
    rest: str = ""
    """File with only the edits that are no decisions."""

    @property
    def has_decisions(self) -> bool:
        """Returns whether the file has a decision."""
        return bool(self.calls or self.replaced or self.moved or self.constants)

    @property
    def text_edits(self) -> list[TextEdit]:
        """Edits that are no decisions, by their lines in the generated file."""
        if self.rest == self.before:
            return []
        old, new = self.before.split("\n"), self.rest.split("\n")
        found: list[TextEdit] = []
        for kind, low, high, _, _ in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
            if kind == "equal":
                continue
            first, last = min(low + 1, len(old)), max(high, low + 1)
            # Insertions between two ops belong to the preceding one.
            inside = [each for each in self.ops if each.first <= last and each.last >= first]
            if not inside:
                above = [each for each in self.ops if each.last <= first]
                inside = above[-1:]
            ops = tuple(dict.fromkeys(each.op for each in inside))
            found.append(TextEdit(CodeLines(self.path, first, last), ops))
        return found


class OpIndex:
    """Ops of a file by line.

    Args:
        text: the file.
        ops: the lines of its ops; those of other files are ignored.
        path: the path of the file.
    """

    def __init__(self, text: str, ops: Iterable[OpLines], path: str) -> None:
        self._starts = [0, *(match.end() for match in re.finditer("\n", text))]
        self._ops = [each for each in ops if each.path == path]
        self._by_line: dict[int, list[int]] = {}
        for index, each in enumerate(self._ops):
            for line in range(each.first, each.last + 1):
                self._by_line.setdefault(line, []).append(index)

    def line(self, place: int) -> int:
        """Line of a text position, counted from 1."""
        return bisect_right(self._starts, place)

    def at(self, statement: Statement) -> tuple[LoweredOp, ...]:
        """Ops that a statement belongs to."""
        lines = range(self.line(statement.start), self.line(statement.end) + 1)
        found = {index for line in lines for index in self._by_line.get(line, ())}
        return tuple(dict.fromkeys(self._ops[index].op for index in sorted(found)))


def new_comments(before: Statement | None, after: Statement) -> list[tuple[int, int, str]]:
    """User's comments at a statement, with their positions."""
    old = [] if before is None else [each.text for each in before.comments]
    found: list[tuple[int, int, str]] = []
    for each in after.comments:
        if each.text in old:
            old.remove(each.text)
        elif not (each.start >= after.start and each.end <= after.end):
            text = each.text.removeprefix("//").removeprefix("/*").removesuffix("*/").strip()
            found.append((each.start, each.end, text))
    return found


TextEdits = list[tuple[int, int, str]]
"""Replacements of text ranges: start, end and new text."""


def with_edits(text: str, edits: TextEdits) -> str:
    """Applies edits to a text."""
    made: list[str] = []
    position = 0
    for start, end, new in sorted(edits, key=lambda each: each[:2]):
        made += [text[position:start], new]
        position = max(position, end)
    return "".join([*made, text[position:]])


def line_of_comment(text: str, start: int, end: int) -> tuple[int, int]:
    """Range of a comment with its whole line if it is alone, else with the preceding spaces."""
    left = start
    while left and text[left - 1] in " \t":
        left -= 1
    if left == 0 or text[left - 1] == "\n":
        right = text.find("\n", end)
        return left, len(text) if right < 0 else right + 1
    return left, end
