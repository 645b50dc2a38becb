"""`ttl.math`: functions of block expressions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ttcodegen.lang.simulator import expressions
from ttcodegen.lang.simulator.block_functions import (
    broadcast,
    fill,
    mask,
    mask_posinf,
    reduce_max,
    reduce_sum,
    transpose,
    where,
)
from ttcodegen.lang.simulator.expressions import BlockExpr
from ttcodegen.lang.simulator.functions import MATH_FUNCTIONS, MathFunction
from ttcodegen.lang.simulator.locations import error
from ttcodegen.lang.simulator.shapes import is_integer


def max(a: BlockExpr, b: BlockExpr) -> BlockExpr:
    """The larger of two elements."""
    return expressions.elementwise("ttl.math.max", np.maximum, a, b)


def min(a: BlockExpr, b: BlockExpr) -> BlockExpr:
    """The smaller of two elements."""
    return expressions.elementwise("ttl.math.min", np.minimum, a, b)


def pow(expr: BlockExpr, exponent: int) -> BlockExpr:
    """A power with an exponent that is a natural number."""
    return expressions.power(expr, exponent)


def bound_numbers(
    function: MathFunction, given: tuple[object, ...], named: dict[str, object]
) -> list[float]:
    """The numbers that a call gives, in order; raises ProgramError if some are missing or wrong."""
    numbers: list[Any] = [*given]
    for name in function.numbers[len(given) :]:
        if name in named:
            numbers.append(named.pop(name))
    if named or len(numbers) != len(function.numbers):
        wanted = ", ".join(["expr", *function.numbers])
        raise error(f"ttl.math.{function.name} takes the arguments ({wanted})")
    for number in numbers:
        if not isinstance(number, float) and not is_integer(number):
            raise error(f"ttl.math.{function.name} takes numbers, not a {type(number).__name__}")
    return numbers


def _function(function: MathFunction) -> Callable[..., BlockExpr]:
    def call(expr: BlockExpr, *numbers: Any, **named: Any) -> BlockExpr:
        bound = bound_numbers(function, numbers, named)
        what = f"ttl.math.{function.name}"
        return expressions.mapped(what, lambda x: function.meaning(x, *bound), expr, bound)

    call.__name__ = call.__qualname__ = function.name
    return call


FUNCTIONS = {_function(function): function for function in MATH_FUNCTIONS.values()}
"""Functions of this module that the table describes."""

globals().update({call.__name__: call for call in FUNCTIONS})

# Before version 0.17 of the specification these were here, instead of in ttl.block.
__all__ = [
    "broadcast", "fill", "mask", "mask_posinf", "max", "min", "pow", "reduce_max", "reduce_sum",
    "transpose", "where", *MATH_FUNCTIONS,
]  # fmt: skip  # pyright: ignore[reportUnsupportedDunderAll]
