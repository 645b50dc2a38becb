"""Diagnostics: compile errors, warnings and their rendering.

A stage raises `CompileError` (or adds a warning to a `Diagnostics` collector) with an operation or
a text offset. Offsets become `file:line:column` only when a diagnostic is rendered against the
parsed `Source`, so that no stage has to carry the text.
"""

from __future__ import annotations

import bisect
import hashlib
import linecache
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import islice
from pathlib import Path
from types import CodeType
from typing import TYPE_CHECKING, TextIO

from ttcodegen.foundation.messages import printable

if TYPE_CHECKING:
    from xdsl.ir import Operation, SSAValue

# Width of the excerpt of a source line: a line with a constant can be megabytes long.
_EXCERPT_WIDTH = 120

_OFFSET_ATTRIBUTE = "source_offset"

BYTECODE_MAGIC = b"ML\xefR"
"""First bytes of MLIR bytecode."""


@dataclass(frozen=True, slots=True)
class SourceLocation:
    """Location in a text file; `line` and `column` count from 1, columns in code points."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


def instruction_location(code: CodeType, offset: int) -> SourceLocation:
    """Returns the Python source location of a bytecode instruction."""
    line, _, column, _ = next(islice(code.co_positions(), offset // 2, None))
    line = line or code.co_firstlineno
    text = linecache.getline(code.co_filename, line).encode()
    return SourceLocation(
        code.co_filename, line, len(text[: column or 0].decode(errors="replace")) + 1
    )


class Source:
    """Source text; resolves offsets (in code points) to lines and columns.

    For MLIR bytecode the text is empty and `data` holds the bytes.
    """

    def __init__(self, name: str, text: str, data: bytes = b"") -> None:
        self.name = name
        self.text = text
        self.data = data
        self._line_starts: list[int] | None = None

    @classmethod
    def from_bytes(cls, name: str, data: bytes) -> Source:
        """Decodes UTF-8 text (without its byte-order mark), or keeps MLIR bytecode.

        Raises:
            CompileError: at the first byte that is not UTF-8, or if the data are not text.
        """
        if data.startswith(BYTECODE_MAGIC):
            return cls(name, "", data)
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            readable = data[: error.start].decode("utf-8", "replace")
            message = f"the input is not UTF-8 text: invalid byte 0x{data[error.start]:02x}"
            raise CompileError(
                message,
                cls(name, readable + "�").location(len(readable)),
                remedy="give MLIR as text or as bytecode; flatbuffers are not read",
            ) from None
        if "\0" in text:
            raise CompileError(
                "the input is binary data, not text: it contains a NUL character",
                cls(name, text).location(text.index("\0")),
                remedy="give MLIR as text or as bytecode; flatbuffers are not read",
            )
        return cls(name, text)

    @classmethod
    def read(cls, path: str) -> Source:
        """Reads the file at `path`; `-` reads standard input.

        Raises:
            CompileError: if the file cannot be read or is not UTF-8 text.
        """
        return cls.from_bytes("<stdin>" if path == "-" else path, read_input(path))

    @property
    def digest(self) -> str:
        """SHA-256 of the content, in hexadecimal digits."""
        return hashlib.sha256(self.data or self.text.encode()).hexdigest()

    def location(self, offset: int) -> SourceLocation:
        """Returns the location of the character at `offset`, clamped to the text."""
        starts = self._starts()
        offset = max(0, min(offset, len(self.text)))
        line = bisect.bisect_right(starts, offset)
        return SourceLocation(self.name, line, offset - starts[line - 1] + 1)

    def line(self, number: int) -> str:
        """Returns line `number` (from 1) without its line end; empty if there is none."""
        starts = self._starts()
        if not 1 <= number <= len(starts):
            return ""
        end = starts[number] - 1 if number < len(starts) else len(self.text)
        return self.text[starts[number - 1] : end].removesuffix("\r")

    def _starts(self) -> list[int]:
        if self._line_starts is None:
            starts = [0]
            position = self.text.find("\n")
            while position >= 0:
                starts.append(position + 1)
                position = self.text.find("\n", position + 1)
            self._line_starts = starts
        return self._line_starts


def read_input(path: str) -> bytes:
    """Reads the bytes of a file; `-` is standard input.

    Raises:
        CompileError: if it cannot be read.
    """
    if path == "-" and (sys.stdin is None or sys.stdin.closed):  # pyright: ignore[reportUnnecessaryComparison]
        raise CompileError("cannot read the standard input: it is closed")
    try:
        return sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    except (OSError, ValueError) as error:
        what = "the standard input" if path == "-" else f"'{path}'"
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise CompileError(f"cannot read {what}: {reason}") from None


Place = SourceLocation | int | None
"""Position of a diagnostic: a resolved location, an offset into the source, or none."""


class Severity(StrEnum):
    """Severity of a diagnostic: errors end the run, notes suggest improvements."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Note:
    """Additional information on a diagnostic, optionally with its own location."""

    message: str
    place: Place = None


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """A message to the user; `remedy` suggests a fix, `notes` give additional information."""

    message: str
    place: Place = None
    remedy: str | None = None
    notes: tuple[Note, ...] = ()
    severity: Severity = Severity.ERROR

    def render(self, source: Source | None = None) -> str:
        """Renders the diagnostic like a C compiler, without a final newline."""
        lines = _render_statement(str(self.severity), self.message, self.place, source)
        for note in self.notes:
            lines += _render_statement("note", note.message, note.place, source)
        if self.remedy is not None:
            lines.append(f"note: {self.remedy}")
        return "\n".join(lines)


class CompileError(Exception):
    """An error in the input, the command line or the environment, which the user can fix.

    Carries one or more diagnostics. A location is an operation or value (its text offset is used),
    an offset, a `SourceLocation`, or None if there is none in the source.
    """

    def __init__(
        self,
        message: str,
        place: Operation | SSAValue | Place = None,
        *,
        remedy: str | None = None,
        notes: Iterable[Note] = (),
    ) -> None:
        super().__init__(message)
        self.diagnostics: tuple[Diagnostic, ...] = (
            Diagnostic(message, place_of(place), remedy, tuple(notes)),
        )

    @classmethod
    def from_diagnostics(cls, diagnostics: Sequence[Diagnostic]) -> CompileError:
        """Creates an error of all `diagnostics`, at least one."""
        if not diagnostics:
            raise ValueError("an error needs at least one diagnostic")
        error = cls(diagnostics[0].message)
        error.diagnostics = tuple(diagnostics)
        return error

    def render(self, source: Source | None = None) -> str:
        """Renders all diagnostics; `source` resolves offsets and supplies source lines."""
        return "\n".join(diagnostic.render(source) for diagnostic in self.diagnostics)


@dataclass
class Diagnostics:
    """Collects diagnostics of a stage that continues after the first one."""

    diagnostics: list[Diagnostic] = field(default_factory=list[Diagnostic])

    def error(
        self,
        message: str,
        place: Operation | SSAValue | Place = None,
        *,
        remedy: str | None = None,
    ) -> None:
        """Records an error; `raise_errors` ends the stage."""
        self.diagnostics.append(Diagnostic(message, place_of(place), remedy))

    def warn(
        self,
        message: str,
        place: Operation | SSAValue | Place = None,
        *,
        remedy: str | None = None,
        severity: Severity = Severity.WARNING,
    ) -> None:
        """Records a warning, or a note."""
        self.diagnostics.append(Diagnostic(message, place_of(place), remedy, severity=severity))

    @property
    def warnings(self) -> list[Diagnostic]:
        """Warnings recorded so far, in order."""
        return [d for d in self.diagnostics if d.severity is Severity.WARNING]

    def raise_errors(self) -> None:
        """Raises a CompileError with all errors recorded so far, if there are any."""
        errors = [d for d in self.diagnostics if d.severity is Severity.ERROR]
        if errors:
            raise CompileError.from_diagnostics(errors)

    def write(self, stream: TextIO, source: Source | None = None) -> None:
        """Writes all recorded diagnostics."""
        for diagnostic in self.diagnostics:
            stream.write(printable(diagnostic.render(source)) + "\n")


def set_source_offset(subject: Operation | SSAValue, offset: int) -> None:
    """Records the text offset of an operation or block argument."""
    setattr(subject, _OFFSET_ATTRIBUTE, offset)


def source_offset(subject: Operation | SSAValue) -> int | None:
    """Returns the text offset of `subject`, None if it has none.

    A result has the offset of its operation.
    """
    offset = getattr(subject, _OFFSET_ATTRIBUTE, None)
    if offset is None and (owner := getattr(subject, "op", None)) is not None:
        offset = getattr(owner, _OFFSET_ATTRIBUTE, None)
    return offset if isinstance(offset, int) and offset >= 0 else None


def copy_source_offset(origin: Operation, created: Operation) -> None:
    """Gives `created` the source offset and MLIR location of `origin`."""
    offset = source_offset(origin)
    if offset is not None:
        set_source_offset(created, offset)
    created.location = origin.location


def place_of(place: Operation | SSAValue | Place) -> Place:
    """Returns the location of a diagnostic about `place`."""
    if place is None or isinstance(place, int | SourceLocation):
        return place
    return source_offset(place)


def plural(count: int, noun: str) -> str:
    """`1 value`, `2 values`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _render_statement(kind: str, message: str, place: Place, source: Source | None) -> list[str]:
    if isinstance(place, int):
        place = source.location(place) if source is not None else None
    if place is None:
        prefix = f"{source.name}: " if source is not None else ""
        return [f"{prefix}{kind}: {message}"]
    lines = [f"{place}: {kind}: {message}"]
    if source is not None and place.file == source.name:
        lines += _excerpt(source.line(place.line), place.column - 1)
    elif source is not None and (line := linecache.getline(place.file, place.line).rstrip("\n")):
        # A program that the source calls.
        lines += _excerpt(line, place.column - 1)
    return lines


def _excerpt(line: str, column: int) -> list[str]:
    """Returns the source line, cut to a window if it is long, and a caret under `column`
    (from 0).
    """
    start = 0
    if len(line) > _EXCERPT_WIDTH:
        start = max(0, min(column - _EXCERPT_WIDTH // 2, len(line) - _EXCERPT_WIDTH))
    window = line[start : start + _EXCERPT_WIDTH]
    # Tabs keep their width in the caret line; unprintable characters must not reach a terminal.
    shown = "".join(c if c.isprintable() or c == "\t" else "�" for c in window)
    lead = "".join("\t" if c == "\t" else " " for c in shown[: column - start])
    return [shown, lead + "^"]
