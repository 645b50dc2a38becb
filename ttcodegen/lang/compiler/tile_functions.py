"""Functions of block expressions as operations on tiles in destination registers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

from ttcodegen.dialects.datatypes import DataType
from ttcodegen.lang.compiler.expressions import Apply, Expression, Fill, Picked
from ttcodegen.lang.functions import MathFunction
from ttcodegen.ops.tile_lowering import Tile, TileBuilder

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


_OF_INTEGERS = {"abs": "abs_tile_int32", "neg": "negative_tile_int32", "relu": "relu_tile_int32"}


def math_call(
    function: MathFunction, numbers: Sequence[float], of: Expression
) -> Expression | None:
    """A function of the table; None if there is no operation on tiles of these elements."""
    if not of.data_type.is_float:
        if function.name == "square":
            return power(of, 2)
        whole = _OF_INTEGERS.get(function.name)
        return None if whole is None else Apply(of.shape, lambda b, t: b.call(whole, *t), (of,))
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
_BINARY_OF_INTEGERS = {
    "Add": "add_int_tile",
    "Sub": "sub_int_tile",
    "Mult": "mul_int_tile",
    "Mod": "remainder_int32_tile",
    "BitXor": "bitwise_xor_binary_tile",
    "max": "binary_max_int32_tile",
    "min": "binary_min_int32_tile",
}
_TYPED = frozenset({"Add", "Sub", "Mult", "BitXor"})
"""Those whose operations take the data type."""
_WITH_NUMBER = {
    "Add": "add_unary_tile",
    "Sub": "sub_unary_tile",
    "Mult": "mul_unary_tile",
}


def binary_call(symbol: str, left: Expression, right: Expression) -> Expression | None:
    """An operator of two expressions; None if there is no operation on tiles."""
    if not (left.data_type.is_float and right.data_type.is_float):
        name = _BINARY_OF_INTEGERS.get(symbol)
        attributes: dict[str, Any] = {"dtype": DataType.INT32} if symbol in _TYPED else {}
        if name is None:
            return None
        return Apply(left.shape, lambda b, t: b.call(name, *t, **attributes), (left, right))
    if symbol == "FloorDiv":
        quotient = binary_call("Div", left, right)
        assert quotient is not None
        return Apply(left.shape, lambda b, t: b.call("floor_tile", t[0]), (quotient,))
    if symbol not in _BINARY:
        return None
    if symbol in _WITH_NUMBER and isinstance(right, Fill):
        number, name = float(right.number), _WITH_NUMBER[symbol]
        return Apply(left.shape, lambda b, t: b.call(name, t[0], parameters=(number,)), (left,))
    return Apply(left.shape, lambda b, t: b.call(_BINARY[symbol], t[0], t[1]), (left, right))


def outer_reduction(kind: str, of: Expression, axes: Sequence[int]) -> Expression:
    """The sum or the maximum (`max`) of the tiles along dimensions before the last two."""
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


_OF_REDUCTION = {"sum": "Add", "max": "max"}
"""The operator that a reduction repeats."""


def power(of: Expression, exponent: int) -> Expression:
    """A power, by multiplication."""

    def product(builder: TileBuilder, a: Tile, b: Tile) -> Tile:
        if not of.data_type.is_float:
            return builder.call("mul_int_tile", a, b, dtype=DataType.INT32)
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
    of_integers = not (true.data_type.is_float and false.data_type.is_float)
    dtype = DataType.INT32 if of_integers else FLOAT
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
