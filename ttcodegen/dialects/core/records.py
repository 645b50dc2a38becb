"""Attribute syntax: enumerations, and frozen dataclasses as parameter lists."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from functools import cache
from types import UnionType
from typing import (
    Any,
    ClassVar,
    Generic,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Data
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.str_enum import StrEnum

# Frozen dataclasses as the text of an attribute: `<name = "gate", cores = <...>, pages = 2>`.
#
# What a field may hold follows from its type: integers, booleans, texts, enumerations (a bare
# word), other records, tuples of those (`[a, b]`), and alternatives of records, which begin with
# a word of their own (`address<operand = 0>`; only the word where a record has no fields). What
# has a text of its own (`OwnText`) is written as that. Fields with the value that they have by
# default are left out.

Record = TypeVar("Record")

_MNEMONIC = "mnemonic"
"""The class attribute of a record with the word that it begins with among alternatives."""


class OwnText:
    """A value that is not written field by field; it is used for integers as well."""

    def text(self) -> str:
        """Text of the attribute."""
        raise NotImplementedError

    @classmethod
    def parse_text(cls, parser: AttrParser) -> Any:
        """Parses the next tokens: a value of this class or an integer."""
        raise NotImplementedError


def print_record(record: object) -> str:
    """The text of a record, with the brackets around it."""
    return f"<{', '.join(_fields(record))}>"


def parse_record(parser: AttrParser, kind: type[Record]) -> Record:
    """A record from its text.

    Raises:
        ParseError: at a field that is unknown, missing, or of another type.
    """
    position = parser.pos
    hints = _hints(kind)
    parser.parse_punctuation("<")
    values: dict[str, Any] = {}
    while parser.parse_optional_punctuation(">") is None:
        if values:
            parser.parse_punctuation(",")
        start = parser.pos
        name = parser.parse_identifier(" as the name of a field")
        if name not in hints:
            known = ", ".join(hints)
            parser.raise_error(f"there is no field '{name}'; the fields are {known}", start)
        if name in values:
            parser.raise_error(f"'{name}' is given twice", start)
        parser.parse_punctuation("=")
        values[name] = _parse(parser, hints[name], name)
    missing = sorted(_required(kind) - set(values))
    if missing:
        parser.raise_error(f"'{missing[0]}' is missing", position)
    return kind(**values)


def _fields(record: object) -> Iterator[str]:
    for field in dataclasses.fields(cast(Any, record)):
        value = getattr(record, field.name)
        if value == field.default:
            continue
        if (
            field.default_factory is not dataclasses.MISSING
            and value == cast(Any, field.default_factory)()
        ):
            continue
        hint = _hints(type(record))[field.name]
        yield f"{field.name} = {_text(value, _is_alternative(hint))}"


def _text(value: object, is_alternative: bool = False) -> str:
    match value:
        case Enum():
            return _word(value)
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case str():
            return str(StringAttr(value))
        case OwnText():
            return value.text()
        case tuple():
            items = cast(Sequence[object], value)
            return f"[{', '.join(_text(item) for item in items)}]"
        case _:
            if not is_alternative:
                return print_record(value)
            fields = print_record(value)
            return getattr(value, _MNEMONIC) + ("" if fields == "<>" else fields)


def _parse(parser: AttrParser, kind: Any, what: str) -> Any:
    if get_origin(kind) is tuple:
        item = get_args(kind)[0]
        return tuple(
            parser.parse_comma_separated_list(
                parser.Delimiter.SQUARE, lambda: _parse(parser, item, what)
            )
        )
    if _is_alternative(kind):
        return _parse_alternative(parser, get_args(kind), what)
    if kind is bool:
        return parser.parse_boolean()
    if kind is int:
        return parser.parse_integer(allow_boolean=False)
    if kind is str:
        return parser.parse_str_literal()
    if issubclass(kind, Enum):
        return _parse_word(parser, kind, what)
    return parse_record(parser, kind)


def _parse_word(parser: AttrParser, kind: type[Enum], what: str) -> Enum:
    position = parser.pos
    word = parser.parse_identifier()
    members = _members(kind)
    if word not in members:
        parser.raise_error(f"'{what}' is one of {', '.join(members)}, not '{word}'", position)
    return members[word]


def _parse_alternative(parser: AttrParser, kinds: Sequence[Any], what: str) -> Any:
    for kind in kinds:
        if issubclass(kind, OwnText):
            return kind.parse_text(parser)
    if int in kinds:
        number = parser.parse_optional_integer(allow_boolean=False)
        if number is not None:
            return number
    position = parser.pos
    word = parser.parse_identifier()
    names: list[str] = []
    for kind in kinds:
        if kind is int:
            names.append("an integer")
        elif issubclass(kind, Enum):
            members = _members(kind)
            if word in members:
                return members[word]
            names += members
        else:
            if word == getattr(kind, _MNEMONIC):
                return parse_record(parser, kind)
            names.append(getattr(kind, _MNEMONIC))
    return parser.raise_error(f"'{what}' is one of {', '.join(names)}, not '{word}'", position)


@cache
def _members(kind: type[Enum]) -> Mapping[str, Enum]:
    """The members of an enumeration by the words for them."""
    return {_word(member): member for member in kind}


def _word(member: Enum) -> str:
    return member.name.lower()


def _is_alternative(kind: Any) -> bool:
    return get_origin(kind) in (Union, UnionType)


@cache
def _hints(kind: type[Any]) -> dict[str, Any]:
    return get_type_hints(kind)


@cache
def _required(kind: type[Any]) -> frozenset[str]:
    """The fields without a default."""
    return frozenset(
        field.name
        for field in dataclasses.fields(kind)
        if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
    )


# Attributes that are one word of a list: `#ttkernel.reduce_type<reduce_sum>`.

Word = TypeVar("Word", bound=StrEnum)


class WordAttribute(Data[Word], Generic[Word]):
    """An enumeration written as `<word>`; each subclass has a `name` and says its enumeration."""

    words: ClassVar[type[StrEnum]]
    older_words: ClassVar[Mapping[str, str]] = {}
    """Former spellings, which are read but not written, and today's."""

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        (cls.words,) = get_args(cls.__dict__["__orig_bases__"][0])

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(f"<{self.data.value}>")

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Word:
        with parser.in_angle_brackets():
            return cls.parse_word(parser)

    @classmethod
    def parse_word(cls, parser: AttrParser) -> Word:
        """The word alone, as enclosing attributes write it."""
        position = parser.pos
        word = parser.parse_identifier()
        try:
            return cast("Word", cls.words(cls.older_words.get(word, word)))
        except ValueError:
            known = ", ".join(member.value for member in cls.words)
            parser.raise_error(f"#{cls.name} is one of {known}, not {word}", position)
