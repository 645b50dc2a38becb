"""Messages on standard error: verbosity, progress, printable text, suggestions, user files."""

from __future__ import annotations

import os
import re
import sys
import sysconfig
from collections.abc import Iterable, Sequence
from enum import IntEnum
from functools import cache
from pathlib import Path
from time import monotonic

# Sanitization of text for terminals

_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    r"""Escapes control characters and bidirectional marks, as `\x1b` or `\u202e`.

    A name in a model must not move the cursor of a terminal, nor reorder a message. Line feeds and
    tabs stay.
    """
    return _UNSEEN.sub(lambda found: _escape(ord(found[0])), text)


def printable_json(text: str) -> str:
    """Escapes the same characters in JSON text."""
    return _UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _escape(code: int) -> str:
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


# Verbosity and progress
#
# The levels are those of Python's `logging`, by name and number. A program sets the level of its
# process once; by default only warnings and errors are written.

_SECONDS_BETWEEN_LINES = 10.0
"""Seconds between two progress lines, if there is no terminal to update in place."""


class Level(IntEnum):
    """Level of a message; a process writes messages of its level and above."""

    DEBUG = 10
    INFO = 20
    WARNING = 30
    ERROR = 40
    CRITICAL = 50


_level = Level.WARNING


def set_level(level: Level) -> None:
    """Sets the level of this process."""
    global _level
    _level = level


def is_reported(level: Level) -> bool:
    """True if messages of that level are written."""
    return level >= _level


def report(level: Level, text: str) -> None:
    """Writes a message of that level to standard error, if the level of the process permits."""
    if is_reported(level):
        _write(printable(text) + "\n")


def _write(text: str) -> None:
    """Writes to standard error, which is redirected to the null device if it fails."""
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)


class Progress:
    """Progress of a step: one line updated in place on a terminal, else a line now and then."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._is_reported = is_reported(Level.INFO)
        self._in_place = self._is_reported and sys.stderr.isatty()
        self._last = -_SECONDS_BETWEEN_LINES
        self._begun = False

    def update(self, done: int, total: int) -> None:
        """Reports that `done` of `total` parts are done."""
        if not self._is_reported:
            return
        if self._in_place:
            _write(f"\r\x1b[K{self._title}: {done} of {total}")
        elif not self._begun or monotonic() - self._last >= _SECONDS_BETWEEN_LINES:
            self._last = monotonic()
            _write(f"{self._title}: {done} of {total}\n")
        self._begun = True

    def end(self) -> None:
        """Clears the line."""
        if self._in_place and self._begun:
            _write("\r\x1b[K")


# Tables


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a table whose columns are as wide as their longest cells."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


# Suggestions for unknown names


def closest(name: str, known: Iterable[str], cutoff: float = 0.7) -> str | None:
    """Returns the known name that is most similar to `name`, or begins with it.

    None if none is similar enough, as difflib measures it.
    """
    from difflib import get_close_matches

    spellings = {spelling.lower(): spelling for spelling in sorted(known)}
    lowered = name.lower()
    close = get_close_matches(lowered, spellings, 3, cutoff)
    close = [spelling for spelling in close if _differs_by_spelling(lowered, spelling)]
    if not close and len(lowered) > 2:
        close = [spelling for spelling in spellings if spelling.startswith(lowered)]
    return spellings[close[0]] if close else None


def _differs_by_spelling(name: str, other: str) -> bool:
    """True if the words that two names do not share are similar.

    convert-a-to-c is not a misspelling of convert-b-to-c, although most of the names is equal.
    """
    from difflib import SequenceMatcher

    words = [re.split(r"[-_.]", each) for each in (name, other)]
    mine, theirs = (
        "".join(word for word in those if word not in others)
        for those, others in (words, reversed(words))
    )
    if not mine or not theirs:
        return True
    return mine[0] == theirs[0] and SequenceMatcher(None, mine, theirs).ratio() > 0.4


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Returns a suggestion to append to a message; empty if no name is similar."""
    found = closest(name, known)
    return f"; did you mean {found}?" if found is not None else ""


_PACKAGES = frozenset({"site-packages", "dist-packages"})


def is_of_user(file: str) -> bool:
    """True if a file belongs neither to ttcodegen, nor to Python or an installed package."""
    return not file.startswith(("<", *_others())) and not _is_installed(Path(file))


def _is_installed(file: Path) -> bool:
    """True if a file belongs to an installed package.

    Also detects folders of `pip install --target`, which contain package metadata.
    """
    return not _PACKAGES.isdisjoint(file.parts) or any(
        str(folder) in sys.path and _has_packages(str(folder)) for folder in file.parents
    )


@cache
def _has_packages(folder: str) -> bool:
    return any(Path(folder).glob("*.dist-info"))


@cache
def _others() -> tuple[str, ...]:
    """Returns the folders of ttcodegen and of Python's library, with a trailing separator."""
    paths = sysconfig.get_paths()
    folders = (str(Path(__file__).parents[1]), paths["stdlib"], paths["platstdlib"])
    return tuple(folder + os.sep for folder in folders)
