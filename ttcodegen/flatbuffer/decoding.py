"""Encoding and decoding of flatbuffers by a schema."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from itertools import accumulate
from operator import attrgetter
from typing import Any, NoReturn

from ttcodegen.flatbuffer.schema import SCALARS, Field, FieldType, Schema
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.foundation.lazy_numpy import import_without_numpy

# Decoder of untrusted flatbuffers.
#
# Every offset, length and size is checked against the file before it is followed. Shared objects
# are decoded once. Objects of a valid file do not overlap, so that the decoded bytes are bounded by
# the file size; files that exceed it are refused. Tables cannot contain themselves (`parse_schema`
# ensures it), so that there are no cycles.

_SIZES = {name: struct.calcsize(f"<{code}") for name, code in SCALARS.items()}


class MalformedError(Exception):
    """Error in the bytes of a file."""


def decode(
    schema: Schema,
    records: tuple[type, ...],
    data: bytes | memoryview,
    kind: str,
    version: tuple[int, int],
) -> Any:
    """Decodes the root record of a file; `kind` names the file in messages, as in '.ttnn file'.

    The first two fields of the root table, major and minor version, must equal `version`. Byte
    vectors are views of `data`.

    Raises:
        CompileError: if `data` are not a file of that schema, of another version, or damaged.
    """
    view = memoryview(data).toreadonly()
    if len(view) < 8 or bytes(view[4:8]) != schema.identifier.encode("ascii"):
        raise CompileError(f"this is not a {kind}: its identifier is missing")
    try:
        decoder = _Decoder(schema, records, view)
        # Checked first: the rest of a file of another version cannot be decoded.
        found = decoder.version()
        if found != version:
            raise _other_version(kind, found, version)
        return decoder.root()
    except MalformedError as error:
        raise CompileError(f"the {kind} is damaged: {error}") from None


def _other_version(kind: str, found: tuple[int, int], version: tuple[int, int]) -> CompileError:
    age = "newer" if found > version else "older"
    read, written = (f"{major}.{minor}" for major, minor in (version, found))
    remedy = "make it again with this version of ttcodegen"
    if found > version:
        remedy += ", or use the newer one that made it"
    return CompileError(
        f"the {kind} has version {written}, which is {age} than version {read}, the one that is "
        "read here",
        remedy=remedy,
    )


class _Decoder:
    def __init__(self, schema: Schema, records: tuple[type, ...], view: memoryview) -> None:
        self._schema = schema
        self._records = {record.__name__: record for record in records}
        self._view = view
        self._known: dict[tuple[str, int], Any] = {}
        self._budget = len(view)

    def root(self) -> Any:
        return self._table(self._schema.root, self._target(0))

    def version(self) -> tuple[int, int]:
        """Returns the first two fields of the root table."""
        table = self._target(0)
        slots, size = self._layout(table)
        major, minor = self._schema.tables[self._schema.root][:2]
        return self._field(major, slots, table, size), self._field(minor, slots, table, size)

    def _fail(self, message: str, position: int) -> NoReturn:
        raise MalformedError(f"{message} at byte {position}")

    def _unpack(self, code: str, size: int, position: int) -> Any:
        if not 0 <= position <= len(self._view) - size:
            self._fail("an offset is out of range", position)
        return struct.unpack_from(f"<{code}", self._view, position)[0]

    def _target(self, position: int) -> int:
        """Returns the target of the offset stored at `position`."""
        return position + self._unpack("I", 4, position)

    def _spend(self, size: int, position: int) -> None:
        self._budget -= size
        if self._budget < 0:
            self._fail("objects overlap", position)

    def _table(self, name: str, position: int) -> Any:
        key = (name, position)
        if (known := self._known.get(key)) is not None:
            return known
        slots, size = self._layout(position)
        self._spend(size, position)
        values = {
            field.name: self._field(field, slots, position, size)
            for field in self._schema.tables[name]
        }
        record = self._known[key] = self._records[name](**values)
        return record

    def _layout(self, position: int) -> tuple[tuple[int, ...], int]:
        """Returns the field offsets of a table, and its size."""
        vtable = position - self._unpack("i", 4, position)
        vtable_size = self._unpack("H", 2, vtable)
        size = self._unpack("H", 2, vtable + 2)
        if vtable_size < 4 or vtable_size % 2 or vtable + vtable_size > len(self._view):
            self._fail("a table of fields is out of range", vtable)
        if size < 4 or position + size > len(self._view):
            self._fail("a table is larger than the file", position)
        slots = struct.unpack_from(f"<{(vtable_size - 4) // 2}H", self._view, vtable + 4)
        return slots, size

    def _field(self, field: Field, slots: tuple[int, ...], table: int, size: int) -> Any:
        at = slots[field.slot] if field.slot < len(slots) else 0
        type_ = field.type
        if type_.kind == "union":
            tag = self._byte(field.slot - 1, slots, table, size)
            return self._union(type_.name, tag, table, at, size)
        if type_.kind == "enum":
            return self._enumerator(type_.name, self._byte(field.slot, slots, table, size), table)
        if at == 0:
            if field.required:
                self._fail(f"the field '{field.name}' is missing", table)
            return b"" if field.alignment > 4 else _default(type_)
        if type_.kind == "scalar":
            width = _SIZES[type_.name]
            self._check_field(at, width, size, table)
            return self._unpack(SCALARS[type_.name], width, table + at)
        self._check_field(at, 4, size, table)
        target = self._target(table + at)
        match type_.kind:
            case "string":
                return self._string(target)
            case "table":
                return self._table(type_.name, target)
            case _:
                assert type_.element is not None
                return self._vector(type_.element, target, field.alignment > 4)

    def _check_field(self, at: int, width: int, size: int, table: int) -> None:
        if at < 4 or at + width > size:
            self._fail("a field is outside its table", table)

    def _byte(self, slot: int, slots: tuple[int, ...], table: int, size: int) -> int:
        at = slots[slot] if slot < len(slots) else 0
        if at == 0:
            return 0
        self._check_field(at, 1, size, table)
        return self._unpack("B", 1, table + at)

    def _enumerator(self, name: str, code: int, position: int) -> str:
        enumerators = self._schema.enums[name]
        if code >= len(enumerators):
            self._fail(f"{code} is no value of {name}", position)
        return enumerators[code]

    def _union(self, name: str, tag: int, table: int, at: int, size: int) -> Any:
        members = self._schema.unions[name]
        if tag > len(members):
            self._fail(f"{tag} is no member of {name}", table)
        if (tag == 0) != (at == 0):
            self._fail(f"a {name} has no value or no type", table)
        if tag == 0:
            return None
        self._check_field(at, 4, size, table)
        return self._table(members[tag - 1], self._target(table + at))

    def _string(self, position: int) -> str:
        key = ("string", position)
        if (known := self._known.get(key)) is not None:
            return known
        count = self._count(position, 1)
        try:
            text = str(self._view[position + 4 : position + 4 + count], "utf-8")
        except UnicodeDecodeError:
            self._fail("a string is not UTF-8", position)
        self._known[key] = text
        return text

    def _count(self, position: int, size: int) -> int:
        """Returns the length of the vector at `position`, with elements of `size` bytes."""
        count = self._unpack("I", 4, position)
        if count * size > len(self._view) - position - 4:
            self._fail(f"a vector of {count} elements is larger than the file", position)
        self._spend(4 + count * size, position)
        return count

    def _vector(self, element: FieldType, position: int, as_bytes: bool) -> Any:
        key = (f"[{element.name}]", position)
        if (known := self._known.get(key)) is not None:
            return known
        values: Any
        start = position + 4
        if as_bytes:
            values = self._view[start : start + self._count(position, 1)]
        elif element.kind == "scalar":
            count = self._count(position, _SIZES[element.name])
            values = struct.unpack_from(f"<{count}{SCALARS[element.name]}", self._view, start)
        else:
            count = self._count(position, 4)
            positions = range(start, start + 4 * count, 4)
            values = tuple([self._table(element.name, self._target(each)) for each in positions])
        self._known[key] = values
        return values


def _default(type_: FieldType) -> Any:
    match type_:
        case FieldType("scalar", "bool"):
            return False
        case FieldType("scalar", "double"):
            return 0.0
        case FieldType("scalar"):
            return 0
        case FieldType("vector"):
            return ()
        case _:
            return None


# Encoder

_MARGIN = 1 << 16
"""Bytes of the initial buffer in addition to the large vectors."""


def encode(schema: Schema, record: object, large_bytes: int = 0) -> bytes:
    """Encodes `record` as the root of a file.

    Equal records, strings and vectors are stored once, except for records with vectors of records,
    which are large and seldom equal. `large_bytes` is the size of the byte vectors that will be
    written, so that the buffer need not grow over them.

    Raises:
        CompileError: if the file would exceed the limit of flatbuffers (2 GiB), or a number does
            not fit into its field.
    """
    # Imported here, without numpy: the import is slow and only writers need it.
    library: Any = import_without_numpy("flatbuffers.builder")
    if large_bytes + _MARGIN > library.Builder.MAX_BUFFER_SIZE:
        raise _too_large()
    encoder = _Encoder(schema, library.Builder(large_bytes + _MARGIN))
    try:
        root = encoder.record(record)
        encoder.builder.Finish(root, file_identifier=schema.identifier.encode("ascii"))
    except library.BuilderSizeError:
        raise _too_large() from None
    except struct.error as error:
        raise CompileError(f"a number does not fit into the flatbuffer: {error}") from None
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
        """Returns the offset of a record, which is written unless an equal one was."""
        table = type(record).__name__
        if not self._shared[table]:
            return self._new_record(table, record)
        offset = self._records.get(record)
        if offset is None:
            offset = self._records[record] = self._new_record(table, record)
        return offset

    def _new_record(self, table: str, record: object) -> int:
        # Referenced objects have to be written before the table is begun.
        stored: list[tuple[int, str]] = []
        values: list[Any] = []
        for field, value_of in self._values[table]:
            value = value_of(record)
            kind = field.type.kind
            if kind == "scalar":
                # -0.0 is not the default.
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
        """Writes a table at once and returns its offset. Equal vtables are shared."""
        builder = self.builder
        end = builder.Offset()
        builder.Prep(layout.alignment, 0)
        begin = builder.Offset()
        # The offset of the vtable, 4 bytes, precedes the fields.
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
            # Written after the table, it precedes it in the file.
            known = self._descriptions[description] = place + len(description)
        else:
            description = b""
        self._room(len(description) + place - begin)
        start = builder.head + len(description)
        builder.Bytes[builder.head : start] = description
        struct.pack_into(layout.format(padding), builder.Bytes, start, known - place, *fields)
        return place

    def _room(self, size: int) -> None:
        """Reserves `size` bytes before those already written."""
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
            # Names may contain lone surrogates, which UTF-8 cannot encode.
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
        """Copies the elements of the current vector at once."""
        builder = self.builder
        start = builder.head - len(data)
        builder.head = start
        builder.Bytes[start : start + len(data)] = data
        return builder.EndVector()


_REFERENCE = ""
"""Format, as in `struct`, of fields that hold an offset."""
_WIDTHS = {_REFERENCE: 4} | {
    format_: struct.calcsize(f"<{format_}") for format_ in SCALARS.values()
}


class _Layout:
    """Field offsets of a table whose other fields have their defaults.

    Args:
        stored: Slot and format of each field, in the order of the schema.
    """

    def __init__(self, stored: Sequence[tuple[int, str]]) -> None:
        # Wide fields first, so that no padding is needed between them.
        first = sorted(range(len(stored)), key=lambda index: -_WIDTHS[stored[index][1]])
        widths = [_WIDTHS[stored[index][1]] for index in first]
        ends = list(accumulate(widths))
        self.size = sum(widths)
        self.alignment = widths[0] if widths else 1
        # Buffers are written back to front.
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
        """Returns the `struct` format of the table, with the vtable offset first."""
        return f"<i{padding}x{self._formats}"

    def description(self, padding: int, size: int) -> bytes:
        """Returns the vtable.

        Args:
            padding: Bytes between the first field and the vtable offset.
            size: Bytes of the whole table, with the padding after it.
        """
        if found := self._descriptions.get((padding, size)):
            return found
        slots = max(self._ends, default=-1) + 1
        whole = 4 + padding + self.size
        offsets = [whole - self._ends[slot] if slot in self._ends else 0 for slot in range(slots)]
        found = struct.pack(f"<{slots + 2}H", 2 * (slots + 2), size, *offsets)
        self._descriptions[padding, size] = found
        return found
