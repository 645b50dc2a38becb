"""Writes records as a flatbuffer, driven by a schema."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from itertools import accumulate
from operator import attrgetter
from typing import Any

from ttcodegen.flatbuffer.schema import SCALARS, Field, FieldType, Schema
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.foundation.lazy_numpy import import_without_numpy

_MARGIN = 1 << 16
"""Bytes beside the large vectors for which the first buffer has room."""


def encode(schema: Schema, record: object, large_bytes: int = 0) -> bytes:
    """The file whose root is `record`.

    Equal records, strings and vectors are stored once, except for records that hold records in
    vectors: they are large, and seldom equal. `large_bytes` is the size of the byte vectors that
    will be written, so that the buffer need not grow over them.

    Raises:
        CompileError: if the file would be larger than a flatbuffer can be (2 GiB).
    """
    # The library takes long to import and only writers need it, none of them with numpy.
    library: Any = import_without_numpy("flatbuffers.builder")
    if large_bytes + _MARGIN > library.Builder.MAX_BUFFER_SIZE:
        raise _too_large()
    encoder = _Encoder(schema, library.Builder(large_bytes + _MARGIN))
    try:
        root = encoder.record(record)
        encoder.builder.Finish(root, file_identifier=schema.identifier.encode("ascii"))
    except library.BuilderSizeError:
        raise _too_large() from None
    return bytes(encoder.builder.Output())


def _too_large() -> CompileError:
    return CompileError(
        "the constants of the module do not fit into a flatbuffer (2 GiB)",
        remedy="pass large weights as arguments instead",
    )


class _Encoder:
    def __init__(self, schema: Schema, builder: Any) -> None:
        self._schema = schema
        self.builder = builder
        self._tags = {
            (name, member): tag
            for name, members in schema.unions.items()
            for tag, member in enumerate(members, start=1)
        }
        self._codes = {
            (name, enumerator): code
            for name, enumerators in schema.enums.items()
            for code, enumerator in enumerate(enumerators)
        }
        self._values = {
            table: [(field, attrgetter(field.name)) for field in fields]
            for table, fields in schema.tables.items()
        }
        self._shared = {
            table: all(
                field.type.kind != "vector"
                or (not schema.referenced(field.type) and field.alignment == 4)
                for field in fields
            )
            for table, fields in schema.tables.items()
        }
        self._layouts: dict[tuple[tuple[int, str], ...], _Layout] = {}
        self._descriptions: dict[bytes, int] = {}
        """Offsets of the vtables."""
        self._strings: dict[str, int] = {}
        self._records: dict[object, int] = {}
        self._vectors: dict[tuple[str, bytes | tuple[int, ...]], int] = {}

    def record(self, record: object) -> int:
        """The offset of a record, written if no equal one was."""
        table = type(record).__name__
        if not self._shared[table]:
            return self._new_record(table, record)
        offset = self._records.get(record)
        if offset is None:
            offset = self._records[record] = self._new_record(table, record)
        return offset

    def _new_record(self, table: str, record: object) -> int:
        # Everything that is pointed to has to be written before the table is begun.
        stored: list[tuple[int, str]] = []
        values: list[Any] = []
        for field, value_of in self._values[table]:
            value = value_of(record)
            kind = field.type.kind
            if kind == "scalar":
                # The sign of a zero is no default.
                if value or isinstance(value, float):
                    stored.append((field.slot, SCALARS[field.type.name]))
                    values.append(value)
            elif kind == "enum":
                if code := self._codes[field.type.name, value]:
                    stored.append((field.slot, SCALARS["ubyte"]))
                    values.append(code)
            elif kind == "union":
                if value is not None:
                    tag = self._tags[field.type.name, type(value).__name__]
                    stored += ((field.slot, _REFERENCE), (field.slot - 1, SCALARS["ubyte"]))
                    values += (self.record(value), tag)
            elif value is not None and not (kind == "vector" and len(value) == 0):
                stored.append((field.slot, _REFERENCE))
                values.append(self._reference(field, value))
        key = tuple(stored)
        layout = self._layouts.get(key)
        if layout is None:
            layout = self._layouts[key] = _Layout(key)
        return self._place_table(layout, values)

    def _place_table(self, layout: _Layout, values: Sequence[Any]) -> int:
        """The offset of the table with these values, written all at once. Tables with the same
        fields share a vtable."""
        builder = self.builder
        end = builder.Offset()
        builder.Prep(layout.alignment, 0)
        begin = builder.Offset()
        # The size of the offset of the vtable, which precedes the fields.
        padding = -(begin + layout.size) % 4
        place = begin + layout.size + padding + 4
        description = layout.description(padding, place - end)
        known = self._descriptions.get(description)
        # Offsets count from the end of the file, and references from their own position.
        fields = [
            begin + after - values[index] if is_reference else values[index]
            for index, after, is_reference in layout.order
        ]
        if known is None:
            # It is written after the table, and so precedes it.
            known = self._descriptions[description] = place + len(description)
        else:
            description = b""
        self._room(len(description) + place - begin)
        start = builder.head + len(description)
        builder.Bytes[builder.head : start] = description
        struct.pack_into(layout.format(padding), builder.Bytes, start, known - place, *fields)
        return place

    def _room(self, size: int) -> None:
        """Makes room for that many bytes before what was written."""
        self.builder.Prep(1, size)
        self.builder.head -= size

    def _reference(self, field: Field, value: Any) -> int:
        match field.type.kind:
            case "string":
                return self._string(value)
            case "table":
                return self.record(value)
            case _:
                assert field.type.element is not None
                return self._vector(field.type.element, value, field.alignment)

    def _string(self, text: str) -> int:
        offset = self._strings.get(text)
        if offset is None:
            # A name may hold lone surrogates; the file is UTF-8 whatever the name.
            data = text.encode("utf-8", "replace")
            offset = self._strings[text] = self.builder.CreateString(data)
        return offset

    def _vector(self, element: FieldType, values: Sequence[Any], alignment: int) -> int:
        if isinstance(values, bytes | memoryview):
            return self._place(values, len(values), 1, alignment)
        if element.kind == "scalar":
            return self._scalars(element.name, tuple(values))
        if element.kind != "table":
            raise NotImplementedError(f"vectors of {element.kind}s")
        offsets = tuple([self.record(value) for value in values])
        key = ("", offsets)
        if (found := self._vectors.get(key)) is not None:
            return found
        builder = self.builder
        builder.StartVector(4, len(offsets), 4)
        end = builder.Offset() + 4 * len(offsets)
        # Offsets count from the end: element i is at `end - 4 * i`, its table further after.
        distances = [end - 4 * i - offset for i, offset in enumerate(offsets)]
        return self._vectors.setdefault(
            key, self._fill(struct.pack(f"<{len(offsets)}I", *distances))
        )

    def _scalars(self, name: str, values: tuple[Any, ...]) -> int:
        data = struct.pack(f"<{len(values)}{SCALARS[name]}", *values)
        key = (name, data)
        offset = self._vectors.get(key)
        if offset is None:
            size = _WIDTHS[SCALARS[name]]
            offset = self._vectors[key] = self._place(data, len(values), size, max(size, 4))
        return offset

    def _place(self, data: bytes | memoryview, count: int, size: int, alignment: int) -> int:
        self.builder.StartVector(size, count, alignment)
        return self._fill(data)

    def _fill(self, data: bytes | memoryview) -> int:
        """Copies the elements of the vector that was begun, all at once."""
        builder = self.builder
        start = builder.head - len(data)
        builder.head = start
        builder.Bytes[start : start + len(data)] = data
        return builder.EndVector()


_REFERENCE = ""
"""The format, as in `struct`, of a field whose value is the offset of what it refers to."""
_WIDTHS = {_REFERENCE: 4} | {
    format_: struct.calcsize(f"<{format_}") for format_ in SCALARS.values()
}


class _Layout:
    """The offsets of the fields of a table whose other fields have their defaults.

    Args:
        stored: slot and format of each field, in the order of the schema.
    """

    def __init__(self, stored: Sequence[tuple[int, str]]) -> None:
        # Wide fields first, so that no padding is needed between them.
        first = sorted(range(len(stored)), key=lambda index: -_WIDTHS[stored[index][1]])
        widths = [_WIDTHS[stored[index][1]] for index in first]
        ends = list(accumulate(widths))
        self.size = sum(widths)
        self.alignment = widths[0] if widths else 1
        # What is written first comes last.
        self.order = [
            (index, end, stored[index][1] == _REFERENCE)
            for index, end in zip(reversed(first), reversed(ends), strict=True)
        ]
        """Index, distance of its start from the end of the table, and whether it is a reference,
        of each field in the order of the file."""
        self._formats = "".join(stored[index][1] or "I" for index in reversed(first))
        self._ends = {stored[index][0]: end for index, end in zip(first, ends, strict=True)}
        self._descriptions: dict[tuple[int, int], bytes] = {}

    def format(self, padding: int) -> str:
        """The format of the table, as in `struct`, with the offset of its description first."""
        return f"<i{padding}x{self._formats}"

    def description(self, padding: int, size: int) -> bytes:
        """The offsets of the fields, which the format calls vtable.

        Args:
            padding: the bytes between the first field and the offset of this description.
            size: the bytes of the whole table, with the padding after it.
        """
        if found := self._descriptions.get((padding, size)):
            return found
        slots = max(self._ends, default=-1) + 1
        whole = 4 + padding + self.size
        places = [whole - self._ends[slot] if slot in self._ends else 0 for slot in range(slots)]
        found = struct.pack(f"<{slots + 2}H", 2 * (slots + 2), size, *places)
        self._descriptions[padding, size] = found
        return found
