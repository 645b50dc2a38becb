"""Attribute syntax: enumerations, dataclasses as parameter lists, and affine maps."""

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
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
    AffineMap,
    AffineSymExpr,
)
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.str_enum import StrEnum

# Frozen dataclasses as attribute parameters: `<name = "gate", cores = <...>, pages = 2>`.
#
# The syntax of a field follows from its type: integers, booleans, strings, enumerations (bare
# words), nested records, tuples of these (`[a, b]`), and unions of records, which begin with a
# mnemonic (`address<operand = 0>`; the mnemonic alone for a record without fields). Types with a
# custom syntax derive from `OwnText`. Fields with default values are omitted.

Record = TypeVar("Record")

_MNEMONIC = "mnemonic"
"""Class attribute with the mnemonic of a record in a union."""


class OwnText:
    """A value with custom syntax, which may also be an integer."""

    def text(self) -> str:
        """Returns the text of the value."""
        raise NotImplementedError

    @classmethod
    def parse_text(cls, parser: AttrParser) -> Any:
        """Parses a value of this class or an integer."""
        raise NotImplementedError


def print_record(record: object) -> str:
    """Returns the text of a record in angle brackets."""
    return f"<{', '.join(_fields(record))}>"


def parse_record(parser: AttrParser, kind: type[Record]) -> Record:
    """Parses a record.

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
    """Returns the members of an enumeration by their words."""
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
    """Returns the fields without a default."""
    return frozenset(
        field.name
        for field in dataclasses.fields(kind)
        if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
    )


# Enumeration attributes: `#ttkernel.reduce_type<reduce_sum>`.

Word = TypeVar("Word", bound=StrEnum)


class WordAttribute(Data[Word], Generic[Word]):
    """Enumeration attribute written as `<word>`; subclasses set `name` and the enumeration."""

    words: ClassVar[type[StrEnum]]
    older_words: ClassVar[Mapping[str, str]] = {}
    """Former spellings, which are parsed but not printed, with the current ones."""

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
        """Parses the bare word, as in enclosing attributes."""
        position = parser.pos
        word = parser.parse_identifier()
        try:
            return cast("Word", cls.words(cls.older_words.get(word, word)))
        except ValueError:
            known = ", ".join(member.value for member in cls.words)
            parser.raise_error(f"#{cls.name} is one of {known}, not {word}", position)


_SUM = 0
_PRODUCT = 1
_ATOM = 2
_WORDS = {
    AffineBinaryOpKind.Mul: "*",
    AffineBinaryOpKind.FloorDiv: "floordiv",
    AffineBinaryOpKind.CeilDiv: "ceildiv",
    AffineBinaryOpKind.Mod: "mod",
}


def affine_map_text(map_: AffineMap) -> str:
    """Returns the text of a map with parentheses only around nested operations."""
    dims = ", ".join(f"d{i}" for i in range(map_.num_dims))
    symbols = ", ".join(f"s{i}" for i in range(map_.num_symbols))
    results = ", ".join(_affine_text(result)[0] for result in map_.results)
    return f"({dims}){f'[{symbols}]' if symbols else ''} -> ({results})"


def _affine_text(expression: AffineExpr) -> tuple[str, int]:
    """Returns the text of an expression, and its precedence."""
    match expression:
        case AffineConstantExpr(value):
            return str(value), _ATOM
        case AffineDimExpr(position):
            return f"d{position}", _ATOM
        case AffineSymExpr(position):
            return f"s{position}", _ATOM
        case AffineBinaryOpExpr(AffineBinaryOpKind.Add, lhs, rhs):
            return f"{_affine_text(lhs)[0]} + {_affine_text(rhs)[0]}", _SUM
        case AffineBinaryOpExpr(kind, lhs, rhs):
            left, right = _operand(lhs), _operand(rhs)
            return f"{left} {_WORDS[kind]} {right}", _PRODUCT
        case _:
            return str(expression), _SUM


def _operand(expression: AffineExpr) -> str:
    """Returns the text of a factor: in parentheses unless it is a name or a number."""
    text, binding = _affine_text(expression)
    return text if binding == _ATOM else f"({text})"


def parse_affine_map(parser: AttrParser) -> AffineMap:
    """Parses an affine map without simplification; divisors may be symbols, unlike in xDSL's
    parser."""
    dims = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_identifier)
    symbols = parser.parse_optional_comma_separated_list(
        parser.Delimiter.SQUARE, parser.parse_identifier
    )
    names: dict[str, AffineExpr] = {name: AffineDimExpr(i) for i, name in enumerate(dims)}
    names |= {name: AffineSymExpr(i) for i, name in enumerate(symbols or ())}
    parser.parse_punctuation("->")
    results = parser.parse_comma_separated_list(
        parser.Delimiter.PAREN, lambda: _parse_sum(parser, names)
    )
    return AffineMap(len(dims), len(symbols or ()), tuple(results))


def _parse_sum(parser: AttrParser, names: Mapping[str, AffineExpr]) -> AffineExpr:
    total = _parse_product(parser, names)
    while True:
        if parser.parse_optional_punctuation("+") is not None:
            term = _parse_product(parser, names)
        elif parser.parse_optional_punctuation("-") is not None:
            factor = _parse_product(parser, names)
            term = AffineBinaryOpExpr(AffineBinaryOpKind.Mul, factor, AffineConstantExpr(-1))
        else:
            return total
        total = AffineBinaryOpExpr(AffineBinaryOpKind.Add, total, term)


def _parse_product(parser: AttrParser, names: Mapping[str, AffineExpr]) -> AffineExpr:
    product = _parse_factor(parser, names)
    while (kind := _parse_optional_operator(parser)) is not None:
        product = AffineBinaryOpExpr(kind, product, _parse_factor(parser, names))
    return product


def _parse_optional_operator(parser: AttrParser) -> AffineBinaryOpKind | None:
    if parser.parse_optional_punctuation("*") is not None:
        return AffineBinaryOpKind.Mul
    for kind, word in _WORDS.items():
        if word != "*" and parser.parse_optional_keyword(word) is not None:
            return kind
    return None


def _parse_factor(parser: AttrParser, names: Mapping[str, AffineExpr]) -> AffineExpr:
    if parser.parse_optional_punctuation("(") is not None:
        inner = _parse_sum(parser, names)
        parser.parse_punctuation(")")
        return inner
    if (number := parser.parse_optional_integer(allow_boolean=False)) is not None:
        return AffineConstantExpr(number)
    position = parser.pos
    name = parser.parse_identifier()
    if name not in names:
        parser.raise_error(f"'{name}' is no dimension and no symbol of the map", position)
    return names[name]


def linear_map(coefficients: Sequence[Sequence[int]], rank: int) -> AffineMap:
    """Returns the map of `rank` dimensions with rows of coefficients."""
    return AffineMap(rank, 0, tuple(_linear(row) for row in coefficients))


def _linear(row: Sequence[int]) -> AffineExpr:
    total: AffineExpr | None = None
    for position, coefficient in enumerate(row):
        if coefficient:
            dim = AffineExpr.dimension(position)
            term = dim if coefficient == 1 else dim * coefficient
            total = term if total is None else total + term
    return AffineExpr.constant(0) if total is None else total


def coefficients_of(map_: AffineMap) -> tuple[tuple[int, ...], ...]:
    """Returns the coefficients of a linear map, a row for each result.

    Raises ValueError if a result is not linear.
    """
    origin = map_.eval([0] * map_.num_dims, [])
    rows = [[0] * map_.num_dims for _ in map_.results]
    for position in range(map_.num_dims):
        unit = [0] * map_.num_dims
        unit[position] = 1
        for row, value in zip(rows, map_.eval(unit, []), strict=True):
            row[position] = value
    if any(origin) or not all(map(_is_linear, map_.results)):
        raise ValueError(f"the map is not linear: {affine_map_text(map_)}")
    return tuple(map(tuple, rows))


def _is_linear(expression: AffineExpr) -> bool:
    match expression:
        case AffineBinaryOpExpr(AffineBinaryOpKind.Add, lhs, rhs):
            return _is_linear(lhs) and _is_linear(rhs)
        case AffineBinaryOpExpr(AffineBinaryOpKind.Mul, lhs, rhs):
            return isinstance(rhs, AffineConstantExpr) and _is_linear(lhs)
        case _:
            return isinstance(expression, AffineDimExpr | AffineConstantExpr)
