"""Ops that a person edited and that are no longer what they were: a merge of lines alone would
keep an edit that belongs to an op which the model has lost."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

from ttcodegen.emission.op_lines import OpLines


def lost_ops(ops: Iterable[OpLines], before: str, edited: str, new: str) -> list[str]:
    """The names of ops whose lines were edited and which are not generated any more as they were.

    Args:
        ops: the ops of the file with their lines in `before`.
        before: the file as it was generated last.
        edited: what a person made of it.
        new: the file as it is generated now.
    """
    lines = before.split("\n")
    changed, inserted = _edited_lines(lines, edited.split("\n"))
    generated = _without_spaces(new)
    lost: dict[str, None] = {}
    for op in ops:
        is_edited = any(number in changed for number in range(op.first, op.last + 1)) or any(
            number in inserted for number in range(op.first, op.last)
        )
        if is_edited and _without_spaces("".join(lines[op.first - 1 : op.last])) not in generated:
            lost[op.op.name] = None
    return list(lost)


def _edited_lines(before: Sequence[str], edited: Sequence[str]) -> tuple[set[int], set[int]]:
    """The lines, from 1, that were changed or removed, and those after which some were added."""
    changed: set[int] = set()
    inserted: set[int] = set()
    matcher = difflib.SequenceMatcher(None, before, edited)
    for kind, first, last, _, _ in matcher.get_opcodes():
        if kind == "insert":
            inserted.add(first)
        elif kind != "equal":
            changed.update(range(first + 1, last + 1))
    return changed, inserted


def _without_spaces(text: str) -> str:
    return "".join(text.split())
