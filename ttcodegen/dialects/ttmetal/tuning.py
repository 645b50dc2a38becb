"""Tuning of a device program: its settings, and derived expressions.

A size is a number, or an expression of settings and derived values. In the text of an attribute it
is written like an affine expression (`depth * block_rows`, `rows ceildiv (block_rows *
grid_rows)`), with comparisons (`inner mod block_inner eq 0`) and `select(condition, then, else)`.
Conditions are the numbers 1 and 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from xdsl.parser import AttrParser

from ttcodegen.dialects.core.attribute_syntax import OwnText


class Operator(StrEnum):
    """Operator of an expression, by its text; all numbers are unsigned."""

    PRODUCT = "*"
    QUOTIENT = "floordiv"
    CEIL_QUOTIENT = "ceildiv"
    REMAINDER = "mod"
    SUM = "+"
    DIFFERENCE = "-"
    EQUAL = "eq"
    AT_MOST = "le"
    AT_LEAST = "ge"
    SELECT = "select"


_BINDING = {
    Operator.PRODUCT: 3,
    Operator.QUOTIENT: 3,
    Operator.CEIL_QUOTIENT: 3,
    Operator.REMAINDER: 3,
    Operator.SUM: 2,
    Operator.DIFFERENCE: 2,
    Operator.EQUAL: 1,
    Operator.AT_MOST: 1,
    Operator.AT_LEAST: 1,
}
"""Precedence of infix operators."""
_ATOM = 4


class Expression(OwnText):
    """An expression of settings."""

    def __mul__(self, other: Size) -> Size:
        return self if other == 1 else Operation(Operator.PRODUCT, (self, other))

    def __rmul__(self, other: int) -> Size:
        return self if other == 1 else Operation(Operator.PRODUCT, (other, self))

    def __add__(self, other: Size) -> Size:
        return self if other == 0 else Operation(Operator.SUM, (self, other))

    def __sub__(self, other: Size) -> Size:
        return self if other == 0 else Operation(Operator.DIFFERENCE, (self, other))

    def text(self) -> str:
        return _text(self)[0]

    @classmethod
    def parse_text(cls, parser: AttrParser) -> Size:
        return _parse(parser, 1)


@dataclass(frozen=True)
class Name(Expression):
    """A setting, or a derived value."""

    name: str


@dataclass(frozen=True)
class Operation(Expression):
    """An operator with two operands, or a `select` with three."""

    operator: Operator
    operands: tuple[Size, ...]


Size = int | Expression
"""A number, or an expression of settings."""


def ceil_quotient(dividend: Size, divisor: Size) -> Size:
    """Returns `dividend / divisor`, rounded up."""
    if isinstance(dividend, int) and isinstance(divisor, int):
        return -(-dividend // divisor)
    return dividend if divisor == 1 else Operation(Operator.CEIL_QUOTIENT, (dividend, divisor))


def remainder(dividend: Size, divisor: Size) -> Size:
    """Returns the remainder of `dividend / divisor`."""
    return Operation(Operator.REMAINDER, (dividend, divisor))


def equal(left: Size, right: Size) -> Operation:
    """Constraint: two sizes are equal."""
    return Operation(Operator.EQUAL, (left, right))


def at_most(left: Size, right: Size) -> Operation:
    """Constraint: a size is at most another one."""
    return Operation(Operator.AT_MOST, (left, right))


def at_least(left: Size, right: Size) -> Operation:
    """Constraint: a size is at least another one."""
    return Operation(Operator.AT_LEAST, (left, right))


def select(condition: Size, then: Size, otherwise: Size) -> Operation:
    """Returns `then` if the condition holds, else `otherwise`."""
    return Operation(Operator.SELECT, (condition, then, otherwise))


def names_in(size: Size) -> Iterator[str]:
    """Yields the settings and derived values in a size."""
    match size:
        case Name(name):
            yield name
        case Operation(_, operands):
            for operand in operands:
                yield from names_in(operand)
        case _:
            pass


def evaluate(size: Size, values: Mapping[str, int]) -> int:
    """Evaluates a size.

    Raises:
        KeyError: if it names an unknown value.
        ZeroDivisionError: if it divides by 0.
    """
    match size:
        case int():
            return size
        case Name(name):
            return values[name]
        case Operation(Operator.SELECT, (condition, then, otherwise)):
            return evaluate(then if evaluate(condition, values) else otherwise, values)
        case Operation(operator, (left, right)):
            return _calculate(operator, evaluate(left, values), evaluate(right, values))
        case _:
            raise TypeError(f"{size!r} is no size")


def _calculate(operator: Operator, left: int, right: int) -> int:
    match operator:
        case Operator.PRODUCT:
            return left * right
        case Operator.QUOTIENT:
            return left // right
        case Operator.CEIL_QUOTIENT:
            return -(-left // right)
        case Operator.REMAINDER:
            return left % right
        case Operator.SUM:
            return left + right
        case Operator.DIFFERENCE:
            return left - right
        case Operator.EQUAL:
            return int(left == right)
        case Operator.AT_MOST:
            return int(left <= right)
        case _:
            return int(left >= right)


@dataclass(frozen=True)
class Setting:
    """A tuning parameter."""

    name: str
    """Identifier; kernels have it as a named compile-time argument."""
    value: int
    remark: str = ""
    """Meaning of the setting, and reasons to increase or decrease it."""


@dataclass(frozen=True)
class Derived:
    """A value derived from settings, or from the tensors of the program."""

    name: str
    value: Size


@dataclass(frozen=True)
class Rule:
    """Constraint between settings."""

    condition: Size
    message: str
    """Requirement, and the remedy if it is violated."""


@dataclass(frozen=True)
class Tuning:
    """Settings of a program, with derived values and constraints."""

    settings: tuple[Setting, ...] = ()
    derived: tuple[Derived, ...] = ()
    """Values derived from settings and earlier derived values."""
    rules: tuple[Rule, ...] = ()

    def values(self, flags: Mapping[str, int] | None = None) -> dict[str, int]:
        """Returns all values by name; expressions may also name `flags`.

        Raises:
            KeyError, ZeroDivisionError: as `evaluate` does.
        """
        values = dict(flags or {})
        values.update((setting.name, setting.value) for setting in self.settings)
        for derived in self.derived:
            values[derived.name] = evaluate(derived.value, values)
        return values


def _text(size: Size) -> tuple[str, int]:
    """Returns the text of a size, and its precedence."""
    match size:
        case Name(name):
            return name, _ATOM
        case Operation(Operator.SELECT, operands):
            return f"select({', '.join(_text(operand)[0] for operand in operands)})", _ATOM
        case Operation(operator, (left, right)):
            binding = _BINDING[operator]
            return f"{_side(left, binding)} {operator.value} {_side(right, binding + 1)}", binding
        case _:
            return str(size), _ATOM


def _side(size: Size, least: int) -> str:
    text, binding = _text(size)
    return text if binding >= least else f"({text})"


def _parse(parser: AttrParser, least: int) -> Size:
    """Parses an expression of operators with at least precedence `least`."""
    left = _parse_atom(parser)
    while (operator := _parse_operator(parser, least)) is not None:
        left = Operation(operator, (left, _parse(parser, _BINDING[operator] + 1)))
    return left


def _parse_operator(parser: AttrParser, least: int) -> Operator | None:
    for operator, binding in _BINDING.items():
        if binding < least:
            continue
        if operator.value.isalpha():
            found = parser.parse_optional_keyword(operator.value)
        else:
            found = parser.parse_optional_punctuation(operator.value)  # pyright: ignore[reportArgumentType]
        if found is not None:
            return operator
    return None


def _parse_atom(parser: AttrParser) -> Size:
    number = parser.parse_optional_integer(allow_boolean=False)
    if number is not None:
        return number
    if parser.parse_optional_punctuation("(") is not None:
        inner = _parse(parser, 1)
        parser.parse_punctuation(")")
        return inner
    name = parser.parse_optional_identifier()
    if name is None:
        parser.raise_error("a number, or the name of a setting or derived value, expected")
    if name != Operator.SELECT:
        return Name(name)
    condition, then, otherwise = _parse_three(parser)
    return select(condition, then, otherwise)


def _parse_three(parser: AttrParser) -> list[Size]:
    position = parser.pos
    operands = parser.parse_comma_separated_list(
        parser.Delimiter.PAREN, lambda: _parse(parser, 1), "the operands of select"
    )
    if len(operands) != 3:
        parser.raise_error(f"select has three operands, not {len(operands)}", position)
    return operands
