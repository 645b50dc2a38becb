"""Writes records as a flatbuffer, driven by a schema."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from operator import attrgetter
from typing import Any

from ttcodegen.diagnostics import CompileError
from ttcodegen.flatbuffer.schema import SCALARS, Field, FieldType, Schema
from ttcodegen.lazy_numpy import import_without_numpy

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
        self._slots = {table: schema.slots(table) for table in schema.tables}
        self._shared = {
            table: all(
                field.type.kind != "vector"
                or (not schema.referenced(field.type) and field.alignment == 4)
                for field in fields
            )
            for table, fields in schema.tables.items()
        }
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
        stored: list[_Stored] = []
        for field, value_of in self._values[table]:
            value = value_of(record)
            kind = field.type.kind
            if kind == "scalar":
                # The sign of a zero is no default.
                if value or isinstance(value, float):
                    stored.append((field.slot, SCALARS[field.type.name], value))
            elif kind == "enum":
                if code := self._codes[field.type.name, value]:
                    stored.append((field.slot, SCALARS["ubyte"], code))
            elif kind == "union":
                if value is not None:
                    tag = self._tags[field.type.name, type(value).__name__]
                    stored.append((field.slot, _REFERENCE, self.record(value)))
                    stored.append((field.slot - 1, SCALARS["ubyte"], tag))
            elif value is not None and not (kind == "vector" and len(value) == 0):
                stored.append((field.slot, _REFERENCE, self._reference(field, value)))
        builder = self.builder
        builder.StartObject(self._slots[table])
        # Wide fields first, so that no padding is needed between them.
        stored.sort(key=_width, reverse=True)
        if stored:
            builder.Prep(_width(stored[0]), 0)
            self._place_fields(stored)
        return builder.EndObject()

    def _place_fields(self, stored: Sequence[_Stored]) -> None:
        """Writes the fields of the table that was begun, which need no padding, all at once."""
        builder = self.builder
        begin = offset = builder.Offset()
        formats: list[str] = []
        values: list[Any] = []
        for slot, format_, value in stored:
            offset += _WIDTHS[format_]
            builder.current_vtable[slot] = offset
            formats.append(format_ or "I")
            # Offsets count from the end of the file, and references from where they stand.
            values.append(value if format_ else offset - value)
        # The library only makes room here.
        builder.Prep(1, offset - begin)
        builder.head -= offset - begin
        # What is written first stands last.
        layout = "<" + "".join(reversed(formats))
        struct.pack_into(layout, builder.Bytes, builder.head, *reversed(values))

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


_Stored = tuple[int, str, Any]
"""A field of a table: its slot, its format as in `struct`, and its value; the format is _REFERENCE
where the value is the offset of what the field refers to."""
_REFERENCE = ""
_WIDTHS = {_REFERENCE: 4} | {
    format_: struct.calcsize(f"<{format_}") for format_ in SCALARS.values()
}


def _width(stored: _Stored) -> int:
    return _WIDTHS[stored[1]]
