"""Parser of flatbuffer schemas.

Reader and writer are driven by the schema text, so that there is no second description that could
differ from it. Supports namespaces, enums, unions and tables of https://flatbuffers.dev/schema.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Literal

SCALARS = {
    "bool": "?",
    "ubyte": "B",
    "ushort": "H",
    "uint": "I",
    "long": "q",
    "double": "d",
}
"""Scalar types of the schemas, with their codes in the struct module."""

_TOKEN = re.compile(r'//[^\n]*|"[^"]*"|[A-Za-z_][\w.]*|-?\d+|[^\s]')

_INCLUDE = re.compile(r'^include "([\w.]+)";$', re.MULTILINE)

Kind = Literal["scalar", "enum", "string", "table", "union", "vector"]


class SchemaError(ValueError):
    """Unsupported or malformed schema text."""


@dataclass(frozen=True)
class FieldType:
    """Type of a field: its kind, name, and the element type of a vector."""

    kind: Kind
    name: str = ""
    element: FieldType | None = None


@dataclass(frozen=True)
class Field:
    """Field of a table. `slot` is its index in the vtable; a union has its type in the previous
    slot.
    """

    name: str
    type: FieldType
    slot: int
    required: bool = False
    alignment: int = 4


@dataclass(frozen=True)
class Schema:
    """A parsed schema."""

    identifier: str
    root: str
    enums: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """Enumerators of each enum, stored in a byte from 0 on."""
    unions: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """Member tables of each union; the tag of the first is 1."""
    tables: dict[str, tuple[Field, ...]] = field(default_factory=dict[str, tuple[Field, ...]])

    def referenced(self, type_: FieldType) -> tuple[str, ...]:
        """Returns the tables that a field of that type may refer to."""
        match type_.kind:
            case "table":
                return (type_.name,)
            case "union":
                return self.unions[type_.name]
            case "vector":
                assert type_.element is not None
                return self.referenced(type_.element)
            case _:
                return ()


@cache
def load_schema(file: str) -> Schema:
    """Loads a schema file of this package, with its includes."""
    return parse_schema(_text_of(file))


def _text_of(file: str) -> str:
    text = Path(__file__).with_name(file).read_text("utf-8")
    return _INCLUDE.sub(lambda match: _text_of(match[1]), text)


def parse_schema(text: str) -> Schema:
    """Parses a schema.

    Raises SchemaError for unsupported text and for tables that contain themselves, whose files
    could have cycles.
    """
    schema = _SchemaParser(text).parse()
    _check_references(schema)
    return schema


def _check_references(schema: Schema) -> None:
    finished: set[str] = set()

    def visit(table: str, open_tables: tuple[str, ...]) -> None:
        if table in open_tables:
            raise SchemaError(f"table {table} contains itself")
        if table in finished:
            return
        if table not in schema.tables:
            raise SchemaError(f"there is no table {table}")
        for entry in schema.tables[table]:
            for referenced in schema.referenced(entry.type):
                visit(referenced, (*open_tables, table))
        finished.add(table)

    for name in (schema.root, *schema.tables):
        visit(name, ())


class _SchemaParser:
    def __init__(self, text: str) -> None:
        self._tokens: Iterator[str] = iter(
            [token for token in _TOKEN.findall(text) if not token.startswith("//")] + [""]
        )
        self._token = next(self._tokens)
        self._identifier = ""
        self._root = ""
        self._enums: dict[str, tuple[str, ...]] = {}
        self._unions: dict[str, tuple[str, ...]] = {}
        self._tables: dict[str, tuple[Field, ...]] = {}

    def parse(self) -> Schema:
        while self._token:
            match keyword := self._take():
                case "namespace" | "file_extension":
                    self._take()
                    self._expect(";")
                case "file_identifier":
                    self._identifier = self._take().strip('"')
                    self._expect(";")
                case "root_type":
                    self._root = self._take()
                    self._expect(";")
                case "enum":
                    name = self._take()
                    self._expect(":")
                    self._expect("ubyte")
                    self._enums[name] = self._names()
                case "union":
                    name = self._take()
                    self._unions[name] = self._names()
                case "table":
                    name = self._take()
                    self._tables[name] = self._fields()
                case _:
                    raise SchemaError(f"unexpected '{keyword}'")
        return Schema(self._identifier, self._root, self._enums, self._unions, self._tables)

    def _take(self) -> str:
        token = self._token
        if not token:
            raise SchemaError("the schema ends too early")
        self._token = next(self._tokens)
        return token

    def _expect(self, token: str) -> None:
        if (found := self._take()) != token:
            raise SchemaError(f"expected '{token}', found '{found}'")

    def _names(self) -> tuple[str, ...]:
        self._expect("{")
        names = [self._take()]
        while self._token == ",":
            self._take()
            names.append(self._take())
        self._expect("}")
        return tuple(names)

    def _fields(self) -> tuple[Field, ...]:
        self._expect("{")
        fields: list[Field] = []
        slot = 0
        while self._token != "}":
            name = self._take()
            self._expect(":")
            type_ = self._type()
            slot += type_.kind == "union"
            required, alignment = self._metadata()
            fields.append(Field(name, type_, slot, required, alignment))
            slot += 1
            self._expect(";")
        self._expect("}")
        return tuple(fields)

    def _type(self) -> FieldType:
        name = self._take()
        if name == "[":
            element = self._type()
            if element.kind in ("vector", "union"):
                raise SchemaError(f"vectors of {element.kind}s are not supported")
            self._expect("]")
            return FieldType("vector", element=element)
        if name in SCALARS:
            return FieldType("scalar", name)
        if name == "string":
            return FieldType("string")
        if name in self._enums:
            return FieldType("enum", name)
        return FieldType("union" if name in self._unions else "table", name)

    def _metadata(self) -> tuple[bool, int]:
        required, alignment = False, 4
        if self._token == "(":
            self._take()
            match key := self._take():
                case "required":
                    required = True
                case "force_align":
                    self._expect(":")
                    alignment = int(self._take())
                case _:
                    raise SchemaError(f"unexpected '{key}'")
            self._expect(")")
        return required, alignment
