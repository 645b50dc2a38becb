"""The container of MLIR's bytecode: sections, strings, dialects, and the tree of operations.

The format is documented and versioned (https://mlir.llvm.org/docs/BytecodeFormat/); versions 1 to 6
are read. What types and attributes are made of is the business of their dialects: `Tables` keeps
their bytes until they are needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NoReturn, TypeVar

from ttcodegen.foundation.diagnostics import BYTECODE_MAGIC, CompileError

NEWEST_VERSION = 6
_STRINGS, _DIALECTS, _ENTRIES, _OFFSETS, _IR, _RESOURCES, _RESOURCE_OFFSETS = range(7)
_PROPERTIES = 8
_SECTIONS = 9
_ALIGNED = 0x80
_DEEPEST = 200

T = TypeVar("T")


def damaged(offset: int, what: str) -> NoReturn:
    """Refuses bytes that are no bytecode."""
    raise CompileError(
        f"the bytecode is damaged at byte {offset}: {what}",
        remedy="write the file again; a download or a copy may have been cut off",
    )


class Reader:
    """Reads the primitives of the format from `data[offset:end]`."""

    def __init__(self, data: bytes, offset: int = 0, end: int | None = None) -> None:
        self.data = data
        self.offset = offset
        self.end = len(data) if end is None else end

    def byte(self) -> int:
        """One byte."""
        if self.offset >= self.end:
            damaged(self.offset, "it ends here")
        self.offset += 1
        return self.data[self.offset - 1]

    def take(self, size: int) -> bytes:
        """That many bytes."""
        if size > self.end - self.offset:
            damaged(self.offset, f"{size} more bytes are needed")
        self.offset += size
        return self.data[self.offset - size : self.offset]

    def number(self) -> int:
        """An integer of variable width: the zeros at the end of its first byte count the bytes that
        follow."""
        first = self.byte()
        if first & 1:
            return first >> 1
        if first == 0:
            return int.from_bytes(self.take(8), "little")
        more = (first & -first).bit_length() - 1
        value = int.from_bytes(bytes([first]) + self.take(more), "little")
        return value >> (more + 1)

    def signed(self) -> int:
        """A signed integer of variable width, in zigzag."""
        value = self.number()
        return (value >> 1) ^ -(value & 1)

    def numbers(self) -> list[int]:
        """A count, and as many integers."""
        return [self.number() for _ in range(self.count())]

    def signed_numbers(self) -> list[int]:
        """A count, and as many signed integers."""
        return [self.signed() for _ in range(self.count())]

    def count(self) -> int:
        """A number of things of which each takes a byte at least."""
        value = self.number()
        if value > self.end - self.offset:
            damaged(self.offset, f"{value} entries do not fit into what follows")
        return value

    def text(self) -> str:
        """The bytes before the next zero byte."""
        end = self.data.find(b"\0", self.offset, self.end)
        if end < 0:
            damaged(self.offset, "a text has no end")
        found = self.data[self.offset : end].decode("utf-8", "replace")
        self.offset = end + 1
        return found

    def section(self) -> tuple[int, Reader]:
        """The number and the content of a section."""
        kind = self.byte()
        size = self.number()
        if kind & _ALIGNED:
            alignment = self.number()
            if alignment == 0 or alignment & (alignment - 1):
                damaged(self.offset, f"{alignment} is no alignment")
            self.take(-self.offset % alignment)
        if size > self.end - self.offset:
            damaged(self.offset, f"a section of {size} bytes does not fit into what follows")
        content = Reader(self.data, self.offset, self.offset + size)
        self.offset += size
        return kind & ~_ALIGNED, content


@dataclass
class Entry:
    """A type or an attribute as stored in the file."""

    dialect: str
    start: int
    end: int
    encoded: bool
    """True if its dialect has an encoding for it; else it is text."""


@dataclass
class Tables:
    """Index tables that bytecode operations refer to."""

    data: bytes
    version: int
    producer: str
    strings: list[str] = field(default_factory=list[str])
    operations: list[str] = field(default_factory=list[str])
    attributes: list[Entry] = field(default_factory=list[Entry])
    types: list[Entry] = field(default_factory=list[Entry])
    properties: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    """Offset ranges of operation properties."""

    def string(self, reader: Reader) -> str:
        """The string whose number comes next."""
        return picked(self.strings, reader, "string")

    def reader(self, entry: Entry) -> Reader:
        """Reads the bytes of a type or attribute."""
        return Reader(self.data, entry.start, entry.end)


def picked(values: Sequence[T], reader: Reader, what: str) -> T:
    """The value whose number comes next."""
    index = reader.number()
    if index >= len(values):
        damaged(reader.offset, f"there is no {what} {index}")
    return values[index]


@dataclass
class RawBlock:
    """A block: the types and locations of its arguments by number, and its operations."""

    arguments: list[tuple[int, int | None]] = field(default_factory=list[tuple[int, "int | None"]])
    first: int = 0
    """The number of the first argument among the values of its scope."""
    operations: list[RawOperation] = field(default_factory=list["RawOperation"])


@dataclass
class RawOperation:
    """An operation: everything it refers to by number."""

    name: str
    location: int
    attributes: int | None
    results: list[int]
    first_result: int
    operands: list[int]
    regions: list[list[RawBlock]] = field(default_factory=list[list[RawBlock]])
    isolated: bool = False
    """True if the values in its regions are numbered on their own."""
    properties: int | None = None
    successors: bool = False


def read_bytecode(data: bytes) -> tuple[Tables, RawBlock]:
    """The tables of a file, and the block that holds its top-level operations.

    Raises:
        CompileError: if the file is damaged, or of a newer version.
    """
    reader = Reader(data)
    if reader.take(4) != BYTECODE_MAGIC:
        damaged(0, "it does not start as bytecode does")
    version = reader.number()
    producer = reader.text()
    if version > NEWEST_VERSION:
        raise CompileError(
            f"the bytecode is of version {version} of the format (by {producer}); versions up to "
            f"{NEWEST_VERSION} are read",
            remedy="serialize the module for an older version, or give it as text",
        )
    sections: dict[int, Reader] = {}
    while reader.offset < reader.end:
        kind, content = reader.section()
        if kind >= _SECTIONS or kind in sections:
            damaged(content.offset, f"section {kind} is not expected")
        sections[kind] = content
    for kind in (_STRINGS, _DIALECTS, _ENTRIES, _OFFSETS, _IR):
        if kind not in sections:
            damaged(len(data), f"section {kind} is missing")
    tables = Tables(data, version, producer)
    _read_strings(tables, sections[_STRINGS])
    dialects = _read_dialects(tables, sections[_DIALECTS])
    _read_offsets(tables, sections[_OFFSETS], sections[_ENTRIES], dialects)
    if _PROPERTIES in sections:
        _read_properties(tables, sections[_PROPERTIES])
    body = _Body(tables)
    return tables, body.block(sections[_IR], _Scope(), 0)


def _read_strings(tables: Tables, reader: Reader) -> None:
    """The sizes are in reverse order, the strings with their ends after them."""
    sizes = reader.numbers()
    for size in reversed(sizes):
        text = reader.take(size)
        tables.strings.append(text[:-1].decode("utf-8", "replace"))


def _read_dialects(tables: Tables, reader: Reader) -> list[str]:
    names: list[str] = []
    for _ in range(reader.count()):
        number = reader.number()
        versioned = False
        if tables.version >= 1:
            number, versioned = number >> 1, bool(number & 1)
        if number >= len(tables.strings):
            damaged(reader.offset, f"there is no string {number}")
        names.append(tables.strings[number])
        if versioned:
            reader.section()
    if tables.version >= 4:
        reader.number()  # how many names follow in all
    while reader.offset < reader.end:
        dialect = picked(names, reader, "dialect")
        for _ in range(reader.count()):
            number = reader.number()
            if tables.version >= 5:
                number >>= 1
            if number >= len(tables.strings):
                damaged(reader.offset, f"there is no string {number}")
            tables.operations.append(f"{dialect}.{tables.strings[number]}")
    return names


def _read_offsets(tables: Tables, reader: Reader, entries: Reader, dialects: list[str]) -> None:
    counts = reader.number(), reader.number()
    start = entries.offset
    for table, count in zip((tables.attributes, tables.types), counts, strict=True):
        while len(table) < count:
            dialect = picked(dialects, reader, "dialect")
            for _ in range(reader.count()):
                number = reader.number()
                end = start + (number >> 1)
                if end > entries.end:
                    damaged(reader.offset, "a type or an attribute is longer than its section")
                table.append(Entry(dialect, start, end, bool(number & 1)))
                start = end


def _read_properties(tables: Tables, reader: Reader) -> None:
    for _ in range(reader.count()):
        size = reader.number()
        start = reader.offset
        reader.take(size)
        tables.properties.append((start, start + size))


class _Scope:
    """Numbers values: those of a nested region after all those of the regions around it."""

    def __init__(self) -> None:
        self.total = 0
        self.next: list[int] = [0]

    def open(self, count: int) -> None:
        """Starts a region of so many values."""
        self.next.append(self.total)
        self.total += count

    def close(self, count: int) -> None:
        """Ends it."""
        self.next.pop()
        self.total -= count

    def define(self, count: int) -> int:
        """The number of the first of so many new values."""
        first = self.next[-1]
        self.next[-1] += count
        return first


class _Body:
    """Reads blocks and operations."""

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        self.version = tables.version

    def block(self, reader: Reader, scope: _Scope, depth: int) -> RawBlock:
        """A block with its operations."""
        if depth > _DEEPEST:
            damaged(reader.offset, "regions are nested too deeply")
        encoding = reader.number()
        block = RawBlock()
        if encoding & 1:
            for _ in range(reader.count()):
                block.arguments.append(self._argument(reader))
            block.first = scope.define(len(block.arguments))
            if self.version >= 3 and reader.byte():
                self._skip_use_orders(reader, len(block.arguments))
        operations = encoding >> 1
        if operations > reader.end - reader.offset:
            damaged(reader.offset, f"{operations} operations do not fit into what follows")
        for _ in range(operations):
            block.operations.append(self._operation(reader, scope, depth))
        return block

    def _argument(self, reader: Reader) -> tuple[int, int | None]:
        number = reader.number()
        if self.version < 4:
            return number, reader.number()
        return number >> 1, reader.number() if number & 1 else None

    def _operation(self, reader: Reader, scope: _Scope, depth: int) -> RawOperation:
        name = picked(self.tables.operations, reader, "operation")
        mask = reader.byte()
        location = reader.number()
        attributes = reader.number() if mask & 0x01 else None
        properties = reader.number() if mask & 0x40 else None
        results = reader.numbers() if mask & 0x02 else []
        first = scope.define(len(results))
        operands = reader.numbers() if mask & 0x04 else []
        successors = reader.numbers() if mask & 0x08 else []
        if mask & 0x20:
            self._skip_use_orders(reader, len(results))
        operation = RawOperation(name, location, attributes, results, first, operands)
        operation.properties, operation.successors = properties, bool(successors)
        if mask & 0x10:
            encoding = reader.number()
            operation.isolated = bool(encoding & 1)
            inner = reader
            if operation.isolated and self.version >= 2:
                kind, inner = reader.section()
                if kind != _IR:
                    damaged(inner.offset, "a region is expected")
            for _ in range(encoding >> 1):
                region_scope = _Scope() if operation.isolated else scope
                operation.regions.append(self._region(inner, region_scope, depth + 1))
        return operation

    def _region(self, reader: Reader, scope: _Scope, depth: int) -> list[RawBlock]:
        count = reader.count()
        if count == 0:
            return []
        values = reader.number()
        scope.open(values)
        blocks = [self.block(reader, scope, depth) for _ in range(count)]
        scope.close(values)
        return blocks

    def _skip_use_orders(self, reader: Reader, values: int) -> None:
        """The order in which uses are listed says nothing to us."""
        count = reader.count() if values > 1 else 1
        for _ in range(count):
            if values > 1:
                reader.number()
            encoding = reader.number()
            for _ in range(encoding >> 1):
                reader.number()
