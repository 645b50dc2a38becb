"""Affine maps as people write them: `(d0, d1) -> (d0 * 64 + d1 floordiv 8, d1 mod 8)`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

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
    """The text of a map with as few parentheses as it needs; products of sums keep theirs."""
    dims = ", ".join(f"d{i}" for i in range(map_.num_dims))
    symbols = ", ".join(f"s{i}" for i in range(map_.num_symbols))
    results = ", ".join(_text(result)[0] for result in map_.results)
    return f"({dims}){f'[{symbols}]' if symbols else ''} -> ({results})"


def _text(expression: AffineExpr) -> tuple[str, int]:
    """The text of an expression, and how tightly it binds."""
    match expression:
        case AffineConstantExpr(value):
            return str(value), _ATOM
        case AffineDimExpr(position):
            return f"d{position}", _ATOM
        case AffineSymExpr(position):
            return f"s{position}", _ATOM
        case AffineBinaryOpExpr(AffineBinaryOpKind.Add, lhs, rhs):
            return f"{_text(lhs)[0]} + {_text(rhs)[0]}", _SUM
        case AffineBinaryOpExpr(kind, lhs, rhs):
            left, right = _operand(lhs), _operand(rhs)
            return f"{left} {_WORDS[kind]} {right}", _PRODUCT
        case _:
            return str(expression), _SUM


def _operand(expression: AffineExpr) -> str:
    """A factor: anything but a name or a number is in parentheses."""
    text, binding = _text(expression)
    return text if binding == _ATOM else f"({text})"


def parse_affine_map(parser: AttrParser) -> AffineMap:
    """The map at the current token, as it is written: nothing is simplified, and divisors may be
    symbols, which xDSL's parser does not take."""
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
    """The map of `rank` dimensions whose results are sums of multiples of them."""
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
    """The multiples that the results of a linear map sum up.

    Raises ValueError if a result is no such sum.
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
