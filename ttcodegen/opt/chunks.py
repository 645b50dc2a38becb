"""Files of several modules, and the diagnostics that their comments expect."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ttcodegen.foundation.diagnostics import Diagnostic, Note, Place, Source

SEPARATOR = "// -----"
_SEPARATOR = re.compile(rf"^{re.escape(SEPARATOR)}[ \t]*\n?", re.MULTILINE)

_EXPECTATION = re.compile(
    r"expected-(error|warning|note|remark)(-re)?[ \t]*"
    r"(?:@([+-]\d+|above|below|unknown))?[ \t]*\{\{(.*)\}\}[ \t]*$"
)


def split(source: Source) -> list[Source]:
    """The parts of a text between lines `// -----`, each with its own line numbers.

    A part has an empty line for each line before it, so that places are those of the whole file.
    """
    parts: list[Source] = []
    start = 0
    for match in [*_SEPARATOR.finditer(source.text), None]:
        end = len(source.text) if match is None else match.start()
        blank = "\n" * source.text.count("\n", 0, start)
        parts.append(Source(source.name, blank + source.text[start:end]))
        if match is not None:
            start = match.end()
    return parts


@dataclass(frozen=True)
class Expectation:
    """A diagnostic that a comment expects: at a line (None: at no location), with that in its
    text."""

    severity: str
    line: int | None
    text: str
    pattern: re.Pattern[str]
    written: int
    """The line of the comment."""

    def matches(self, severity: str, line: int | None, message: str) -> bool:
        """True if a diagnostic is the one that is expected."""
        return (
            severity == self.severity
            and line == self.line
            and self.pattern.search(message) is not None
        )


def expectations(source: Source) -> list[Expectation]:
    """What the comments of a text expect, in order."""
    found: list[Expectation] = []
    for number, line in enumerate(source.text.splitlines(), start=1):
        match = _EXPECTATION.search(line)
        if match is None:
            continue
        severity, regular, offset, text = match.groups()
        # The pattern has regular expressions in double braces, as FileCheck's have.
        pieces = re.split(r"\{\{(.*?)\}\}", text) if regular else [text]
        pattern = "".join(p if i % 2 else re.escape(p) for i, p in enumerate(pieces))
        found.append(
            Expectation(severity, _expected_line(number, offset), text, re.compile(pattern), number)
        )
    return found


def _expected_line(number: int, offset: str | None) -> int | None:
    match offset:
        case None:
            return number
        case "above":
            return number - 1
        case "below":
            return number + 1
        case "unknown":
            return None
        case _:
            return number + int(offset)


def unmet(source: Source, diagnostics: Iterable[Diagnostic]) -> list[str]:
    """What differs between the diagnostics of a text and those that its comments expect.

    Unexpected notes make no difference.
    """
    open_ = expectations(source)
    differences: list[str] = []
    for diagnostic in diagnostics:
        severity = str(diagnostic.severity)
        line = _line(source, diagnostic.place)
        if not _take(open_, severity, line, diagnostic.message):
            where = source.name if line is None else f"{source.name}:{line}"
            differences.append(f"{where}: error: unexpected {severity}: {diagnostic.message}")
        for note in _notes(diagnostic):
            _take(open_, "note", _line(source, note.place), note.message)
    differences += [
        f"{source.name}:{e.written}: error: expected {e.severity} was not produced: {e.text}"
        for e in open_
    ]
    return differences


def _notes(diagnostic: Diagnostic) -> Sequence[Note]:
    remedy = () if diagnostic.remedy is None else (Note(diagnostic.remedy),)
    return (*diagnostic.notes, *remedy)


def _line(source: Source, place: Place) -> int | None:
    if isinstance(place, int):
        return source.location(place).line
    return None if place is None else place.line


def _take(open_: list[Expectation], severity: str, line: int | None, message: str) -> bool:
    for expectation in open_:
        if expectation.matches(severity, line, message):
            open_.remove(expectation)
            return True
    return False
