"""Reads a flatbuffer by its schema, trusting nothing in it.

Every offset, length and size is checked against the file before it is followed. An object that
many point to is decoded once; since the objects of an honest file do not overlap, all that is
decoded together is not larger than the file, and a file that needs more is refused. Tables
cannot contain themselves (`parse_schema` sees to that), so there are no cycles to follow.
"""

from __future__ import annotations

import struct
from typing import Any, NoReturn

from ttcodegen.flatbuffer.schema import SCALARS, Field, FieldType, Schema
from ttcodegen.foundation.diagnostics import CompileError

_SIZES = {name: struct.calcsize(f"<{code}") for name, code in SCALARS.items()}


class MalformedError(Exception):
    """What is wrong with the bytes of a file."""


def decode(
    schema: Schema,
    records: tuple[type, ...],
    data: bytes | memoryview,
    kind: str,
    version: tuple[int, int],
) -> Any:
    """The root record of a file; `kind` names what the file should be, as in '.ttnn file'.

    The first two fields of the root table, its major and minor version, have to be `version`. Byte
    vectors are views of `data`.

    Raises:
        CompileError: if `data` are not a file of that schema, of another version, or damaged.
    """
    view = memoryview(data).toreadonly()
    if len(view) < 8 or bytes(view[4:8]) != schema.identifier.encode("ascii"):
        raise CompileError(f"this is not a {kind}: its identifier is missing")
    try:
        decoder = _Decoder(schema, records, view)
        # Of a file of another version nothing else can be understood.
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
        """The first two fields of the root table."""
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
        """Where the offset stored at `position` points to."""
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
        """The offsets of the fields of a table, and its size."""
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
        """The length of the vector at `position`, whose elements have `size` bytes."""
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
            places = range(start, start + 4 * count, 4)
            values = tuple([self._table(element.name, self._target(place)) for place in places])
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
