"""The lines of each op in the C++ of a project as it is now, and which of them were changed."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ttcodegen.emission.op_lines import OpLines

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


class Edits:
    """Edits of a user in a file: its lines as they follow from the generated ones."""

    def __init__(self, before: str, now: str) -> None:
        old, new = before.split("\n"), now.split("\n")
        # Lines that occur often in a file, as braces do, make comparing all of it slow.
        start = _equal_at_start(old, new)
        end = _equal_at_start(old[start:][::-1], new[start:][::-1])
        matcher = difflib.SequenceMatcher(
            None, old[start : len(old) - end], new[start : len(new) - end], autojunk=False
        )
        self._changes = [
            (low + start, high + start, first + start, last + start)
            for tag, low, high, first, last in matcher.get_opcodes()
            if tag != "equal"
        ]
        """Parts of the old text, and of the new one, counted from 0, with their ends."""

    @property
    def written(self) -> list[int]:
        """The lines that the person wrote, from 1."""
        return [line + 1 for _, _, first, end in self._changes for line in range(first, end)]

    def touch(self, lines: OpLines) -> bool:
        """True if something of lines that were generated is changed, or inserted between them."""
        first, end = lines.first - 1, lines.last
        return any(
            low < end and high > first if high > low else first < low < end
            for low, high, _, _ in self._changes
        )

    def now(self, lines: OpLines) -> CodeLines | None:
        """Current position of generated lines; None if they are gone."""
        first = self._moved(lines.first - 1, last=False)
        last = self._moved(lines.last - 1, last=True)
        return CodeLines(lines.path, first + 1, last + 1) if first <= last else None

    def _moved(self, line: int, *, last: bool) -> int:
        """Current index of a line, from 0; of a changed one an end of its replacement."""
        offset = 0
        for low, high, first, end in self._changes:
            if line < low:
                break
            if line < high:
                return end - 1 if last else first
            offset = end - high
        return line + offset


def _equal_at_start(one: Sequence[str], other: Sequence[str]) -> int:
    """Length of the common prefix of two texts, in lines."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))


def known_lines(lines: Iterable[OpLines]) -> dict[Node, list[CodeLines]]:
    """The lines of each op, once each."""
    found: dict[Node, dict[CodeLines, None]] = {}
    for each in lines:
        node = each.op.function, each.op.name
        found.setdefault(node, {})[CodeLines(each.path, each.first, each.last)] = None
    return {node: list(places) for node, places in found.items()}


def edited(
    lines: Iterable[OpLines], edits: Mapping[str, Edits]
) -> tuple[dict[Node, list[CodeLines]], list[Node]]:
    """The lines of the ops of a project now, and which of them were changed.

    Args:
        lines: their lines when it was generated.
        edits: those of the files that are still there, by path.
    """
    places: dict[Node, dict[CodeLines, None]] = {}
    changed: dict[Node, None] = {}
    for each in lines:
        if each.path not in edits:
            continue
        node = each.op.function, each.op.name
        now = edits[each.path].now(each)
        if now is not None:
            places.setdefault(node, {})[now] = None
        if edits[each.path].touch(each):
            changed[node] = None
    return {node: list(found) for node, found in places.items()}, list(changed)
