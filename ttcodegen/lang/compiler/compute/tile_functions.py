"""Functions of block expressions as operations on tiles in destination registers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.dialects.ttkernel.attributes import ReduceDim, ReduceType
from ttcodegen.lang.compiler.compute.expressions import Apply, Expression, Fill, Picked
from ttcodegen.lang.simulator.functions import MathFunction
from ttcodegen.ops.core.lowering import Tile, TileBuilder

FLOAT = DataType.FLOAT32
"""Registers hold 32 bits, whatever circular buffers hold."""

_EXACT: dict[str, dict[str, Any]] = {"gelu": {"fast_and_approx": False}}
_NAMES = {"neg": "negative", "logp1": "log1p", "rsub": "rsub_unary"}
Lowering = Callable[[TileBuilder, Tile, Sequence[float]], Tile]


def _threshold(builder: TileBuilder, x: Tile, numbers: Sequence[float]) -> Tile:
    limit, value = numbers
    above = builder.call("unary_gt_tile", x, parameters=(float(limit),))
    return builder.call("where_tile", above, builder.fill(value, FLOAT), x, dtype=FLOAT)


def _signbit(builder: TileBuilder, x: Tile, numbers: Sequence[float]) -> Tile:
    return builder.call("rsub_unary_tile", builder.call("signbit_tile", x), parameters=(1.0,))


def _round(builder: TileBuilder, x: Tile, numbers: Sequence[float]) -> Tile:
    return builder.call("round_tile", x, parameters=(int(numbers[0]),))


_IRREGULAR: dict[str, Lowering] = {
    "threshold": _threshold, "signbit": _signbit, "round": _round,
}  # fmt: skip


def _named(name: str, *numbers: int) -> Lowering:
    """An operation on signed integers: what it is given are its own numbers, or else those of the
    function."""

    def lower(builder: TileBuilder, x: Tile, given: Sequence[float]) -> Tile:
        words = [int(number) & 0xFFFFFFFF for number in (*numbers, *given)]
        return builder.call(name, x, parameters=words)

    return lower


def _unchanged(builder: TileBuilder, x: Tile, numbers: Sequence[float]) -> Tile:
    return x


def _integer_sign(builder: TileBuilder, x: Tile, numbers: Sequence[float]) -> Tile:
    above, below = (builder.call(f"{name}_tile_int32", x) for name in ("gtz", "ltz"))
    return builder.call("sub_int_tile", above, below, dtype=x.data_type)


def _integer_threshold(builder: TileBuilder, x: Tile, numbers: Sequence[float]) -> Tile:
    limit, value = numbers
    above = _named("unary_gt_tile_int32")(builder, x, (limit,))
    return builder.call("where_tile", above, builder.fill(value, x.data_type), x, dtype=x.data_type)


def _sloped_integer(builder: TileBuilder, x: Tile, numbers: Sequence[float]) -> Tile:
    slope = builder.fill(numbers[0], x.data_type)
    sloped = builder.call("mul_int_tile", x, slope, dtype=x.data_type)
    above = builder.call("gtz_tile_int32", x)
    return builder.call("where_tile", above, x, sloped, dtype=x.data_type)


def _reversed_difference(builder: TileBuilder, x: Tile, numbers: Sequence[float]) -> Tile:
    number = builder.fill(numbers[0] if numbers else 0, x.data_type)
    return builder.call("sub_int_tile", number, x, dtype=x.data_type)


_OF_ANY_INTEGERS: dict[str, Lowering] = {
    **dict.fromkeys(("floor", "ceil", "trunc", "round"), _unchanged),
    "neg": _reversed_difference,
    "rsub": _reversed_difference,
}
_OF_INTEGERS: dict[DataType, dict[str, Lowering]] = {
    DataType.INT32: {
        **_OF_ANY_INTEGERS,
        "abs": _named("abs_tile_int32"),
        "neg": _named("negative_tile_int32"),
        "relu": _named("relu_tile_int32"),
        "relu_max": _named("clamp_tile_int32", 0),
        "relu_min": lambda b, x, n: _named("unary_max_int32_tile")(b, x, [max(n[0], 0)]),
        "clamp": _named("clamp_tile_int32"),
        "hardtanh": _named("clamp_tile_int32"),
        "sign": _integer_sign,
        "signbit": _named("gez_tile_int32"),
        "threshold": _integer_threshold,
        "leaky_relu": _sloped_integer,
        "prelu": _sloped_integer,
    },
    DataType.UINT32: {**_OF_ANY_INTEGERS, "abs": _unchanged, "relu": _unchanged},
}
"""Functions of integers. Quotients, roots and their like have no operation on tiles of them."""


def _of_integers(name: str, numbers: Sequence[float], of: Expression) -> Expression | None:
    if name == "square":
        return power(of, 2)
    lower = _OF_INTEGERS[of.data_type].get(name)
    if lower is None or any(number != int(number) for number in numbers):
        return None
    return Apply(of.shape, lambda b, t: lower(b, t[0], numbers), (of,))


def math_call(
    function: MathFunction, numbers: Sequence[float], of: Expression
) -> Expression | None:
    """A function of the table; None if there is no operation on tiles of these elements."""
    if not of.data_type.is_float:
        return _of_integers(function.name, numbers, of)
    irregular = _IRREGULAR.get(function.name)

    def lower(builder: TileBuilder, tiles: Sequence[Tile]) -> Tile:
        if irregular is not None:
            return irregular(builder, tiles[0], numbers)
        name = _NAMES.get(function.name, function.name)
        attributes = _EXACT.get(function.name, {})
        given = [float(number) for number in numbers]
        return builder.call(f"{name}_tile", tiles[0], parameters=given, **attributes)

    return Apply(of.shape, lower, (of,))


_BINARY = {
    "Add": "add_binary_tile",
    "Sub": "sub_binary_tile",
    "Mult": "mul_binary_tile",
    "Div": "div_binary_tile",
    "Mod": "remainder_binary_tile",
    "max": "binary_max_tile",
    "min": "binary_min_tile",
}
_TYPED = {
    "Add": "add_int_tile",
    "Sub": "sub_int_tile",
    "Mult": "mul_int_tile",
    "BitXor": "bitwise_xor_binary_tile",
}
"""Operations on integers that take their data type."""
_BINARY_OF_INTEGERS = {
    DataType.INT32: {
        "FloorDiv": "div_int32_floor_tile",
        "Mod": "remainder_int32_tile",
        "max": "binary_max_int32_tile",
        "min": "binary_min_int32_tile",
    },
    DataType.UINT32: {"max": "binary_max_uint32_tile", "min": "binary_min_uint32_tile"},
}
_WITH_NUMBER = {
    "Add": "add_unary_tile",
    "Sub": "sub_unary_tile",
    "Mult": "mul_unary_tile",
}


def binary_call(symbol: str, left: Expression, right: Expression) -> Expression | None:
    """An operator of two expressions; None if there is no operation on tiles."""
    if not (left.data_type.is_float and right.data_type.is_float):
        kind = left.data_type if right.data_type.is_float else right.data_type
        typed = _TYPED.get(symbol)
        name = typed or _BINARY_OF_INTEGERS[kind].get(symbol)
        attributes: dict[str, Any] = {"dtype": kind} if typed else {}
        if name is None:
            return None
        return Apply(left.shape, lambda b, t: b.call(name, *t, **attributes), (left, right))
    if symbol == "FloorDiv":
        quotient = binary_call("Div", left, right)
        assert quotient is not None
        return Apply(left.shape, lambda b, t: b.call("floor_tile", t[0]), (quotient,))
    if symbol not in _BINARY:
        return None
    known = right.number if isinstance(right, Fill) else None
    if symbol in _WITH_NUMBER and isinstance(known, int | float):
        number, name = float(known), _WITH_NUMBER[symbol]
        return Apply(left.shape, lambda b, t: b.call(name, t[0], parameters=(number,)), (left,))
    return Apply(left.shape, lambda b, t: b.call(_BINARY[symbol], t[0], t[1]), (left, right))


def outer_reduction(kind: str, of: Expression, axes: Sequence[int]) -> Expression:
    """The sum or the maximum (`max`) of the tiles along dimensions; no elements of a tile come
    together."""
    places = product(*(range(of.shape[axis]) for axis in axes))
    shape = tuple(1 if axis in axes else size for axis, size in enumerate(of.shape))
    if shape == of.shape:
        return of
    total: Expression | None = None
    for place in places:
        part = Picked(shape, of, tuple(zip(axes, place, strict=True)))
        total = part if total is None else binary_call(_OF_REDUCTION[kind], total, part)
    assert total is not None
    return total


def inner_reduction(kind: str, of: Expression, dims: Sequence[int]) -> Expression:
    """The sum or the maximum of the elements of each tile of integers, along rows, columns or both:
    dimensions counted from the innermost, -1. The first column, row or element has the result."""

    def lower(builder: TileBuilder, tiles: Sequence[Tile]) -> Tile:
        (found,) = tiles
        for dim in sorted(dims):
            found = builder.call(
                "sfpu_reduce",
                found,
                reduce_type=_POOLS[kind],
                data_format=of.data_type,
                reduce_dim=_DIRECTIONS[dim],
            )
        return found

    return Apply(of.shape, lower, (of,))


_POOLS = {"sum": ReduceType.SUM, "max": ReduceType.MAX}
_DIRECTIONS = {-2: ReduceDim.COL, -1: ReduceDim.ROW}
_OF_REDUCTION = {"sum": "Add", "max": "max"}
"""The operator that a reduction repeats."""


def power(of: Expression, exponent: int) -> Expression:
    """A power, by multiplication."""

    def product(builder: TileBuilder, a: Tile, b: Tile) -> Tile:
        if not of.data_type.is_float:
            return builder.call("mul_int_tile", a, b, dtype=of.data_type)
        return builder.call("square_tile", a) if a is b else builder.call("mul_binary_tile", a, b)

    def lower(builder: TileBuilder, tiles: Sequence[Tile]) -> Tile:
        square, left, result = tiles[0], exponent, None
        while left:
            if left % 2:
                result = square if result is None else product(builder, result, square)
            left //= 2
            if left:
                square = product(builder, square, square)
        assert result is not None
        return result

    if exponent == 0:
        return Fill(of.shape, 1.0, holds=of.data_type)
    return Apply(of.shape, lower, (of,))


def where(condition: Expression, true: Expression, false: Expression) -> Expression:
    """The element of one expression or of another."""
    dtype = true.data_type if false.data_type.is_float else false.data_type
    return Apply(
        condition.shape,
        lambda b, t: b.call("where_tile", *t, dtype=dtype, data_type=dtype),
        (condition, true, false),
    )


def masked(of: Expression, mask: Expression, number: float) -> Expression:
    """A number where the mask is 1."""
    name, one = ("unary_eq_tile", 1.0) if mask.data_type.is_float else ("unary_eq_tile_int32", 1)
    is_masked = Apply(mask.shape, lambda b, t: b.call(name, t[0], parameters=(one,)), (mask,))
    return where(is_masked, Fill(of.shape, number, holds=of.data_type), of)
