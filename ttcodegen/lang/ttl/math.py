"""`ttl.math`: functions of block expressions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ttcodegen.lang.simulator import expressions, functions
from ttcodegen.lang.simulator.expressions import BlockExpr
from ttcodegen.lang.simulator.functions import (
    MATH_FUNCTIONS,
    ExponentialFlags,
    MathFunction,
    broadcast,
    fill,
    filled_like,
    mask,
    mask_posinf,
    reduce_max,
    reduce_sum,
    transpose,
    where,
)
from ttcodegen.lang.simulator.locations import error
from ttcodegen.lang.simulator.shapes import is_integer


def max(a: BlockExpr, b: BlockExpr) -> BlockExpr:
    """Elementwise maximum."""
    return expressions.elementwise("ttl.math.max", np.maximum, a, b)


def min(a: BlockExpr, b: BlockExpr) -> BlockExpr:
    """Elementwise minimum."""
    return expressions.elementwise("ttl.math.min", np.minimum, a, b)


def pow(expr: BlockExpr, exponent: int) -> BlockExpr:
    """Elementwise power with an exponent of 0 or more."""
    return expressions.power(expr, exponent)


def _comparison(name: str) -> Callable[..., BlockExpr]:
    def compared(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return functions.COMPARISONS[name](x, y).astype(x.dtype)

    def compare(a: BlockExpr, b: BlockExpr) -> BlockExpr:
        return expressions.elementwise(f"ttl.math.{name}", compared, a, b)

    compare.__name__ = compare.__qualname__ = name
    return compare


COMPARISONS = {_comparison(name): name for name in functions.COMPARISONS}
"""Comparison functions, with their names."""


def bound_flags(function: MathFunction, named: dict[str, object]) -> ExponentialFlags:
    """Removes the flags of a call from its keyword arguments, and validates them."""
    found: dict[str, Any] = {name: named.pop(name) for name in function.flags if name in named}
    for name, value in found.items():
        what = f"the {name} of ttl.math.{function.name}"
        if name in ("approx", "skip_clamp_check") and not isinstance(value, bool):
            raise error(f"{what} is True or False, not {value!r}")
        if name == "iterations" and not (is_integer(value) and int(value) > 0):
            raise error(f"{what} is a positive integer, not {value!r}")
        if name == "scale" and not (value is None or isinstance(value, float) or is_integer(value)):
            raise error(f"{what} is a number that Python knows, not a {type(value).__name__}")
    return ExponentialFlags(**found)


def bound_numbers(
    function: MathFunction, given: tuple[object, ...], named: dict[str, object]
) -> list[float]:
    """Binds the numeric arguments of a call, in order.

    Raises:
        ProgramError: if arguments are missing, unknown or no numbers.
    """
    numbers: list[Any] = [*given]
    for name in function.numbers[len(given) :]:
        if name in named:
            numbers.append(named.pop(name))
    if named or len(numbers) != len(function.numbers):
        flags = ["*", *(f"{flag}=" for flag in function.flags)] if function.flags else []
        wanted = ", ".join(["expr", *function.numbers, *flags])
        raise error(f"ttl.math.{function.name} takes the arguments ({wanted})")
    for number in numbers:
        if not isinstance(number, float) and not is_integer(number):
            raise error(f"ttl.math.{function.name} takes numbers, not a {type(number).__name__}")
    return numbers


def _function(function: MathFunction) -> Callable[..., BlockExpr]:
    def call(expr: BlockExpr, *numbers: Any, **named: Any) -> BlockExpr:
        flags = bound_flags(function, named)
        bound = bound_numbers(function, numbers, named)
        what = f"ttl.math.{function.name}"
        if flags.scale is not None:
            expr = expr * filled_like(expressions.operand(what, expr), flags.scale)
        return expressions.unary(what, lambda x: function.meaning(x, *bound), expr, bound)

    call.__name__ = call.__qualname__ = function.name
    return call


FUNCTIONS = {_function(function): function for function in MATH_FUNCTIONS.values()}
"""Functions of this module, generated from the table of math functions."""

globals().update({call.__name__: call for call in (*FUNCTIONS, *COMPARISONS)})

# Before version 0.17 of the specification these functions were here, not in ttl.block.
__all__ = [
    "broadcast", "fill", "mask", "mask_posinf", "max", "min", "pow", "reduce_max", "reduce_sum",
    "transpose", "where", *MATH_FUNCTIONS, *functions.COMPARISONS,
]  # fmt: skip  # pyright: ignore[reportUnsupportedDunderAll]
