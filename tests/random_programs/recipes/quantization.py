"""Recipes of conversions between floats and the integers that represent them."""

from __future__ import annotations

from typing import Any

from xdsl.dialects.builtin import TensorType
from xdsl.ir import SSAValue

from tests.random_programs.generator import FLOATS, Generator, Recipe, i8, i32
from ttcodegen.dialects.core.datatypes import shape_of

_SCALES = (0.25, 0.5, 0.125, 1.0)


def _axis(generator: Generator, x: SSAValue) -> tuple[int | None, int]:
    """A dimension along which scales differ, and how many there are; None and 1 for one scale."""
    shape = shape_of(x.type)
    if not shape or generator.chance(60):
        return None, 1
    dim = generator.integer(0, len(shape) - 1)
    return dim, shape[dim]


def _numbers(generator: Generator, count: int, prefix: str = "") -> dict[str, Any]:
    first = generator.integer(0, 3)
    return {
        f"{prefix}scale": [_SCALES[(first + place) % len(_SCALES)] for place in range(count)],
        f"{prefix}zero_point": [(first + 3 * place) % 7 - 2 for place in range(count)],
    }


def _storage(generator: Generator) -> tuple[Any, dict[str, int]]:
    if generator.chance(50):
        return i8, {"storage_min": -128, "storage_max": 127}
    return i32, {"storage_min": -(2**31), "storage_max": 2**31 - 1}


def quantize(generator: Generator) -> None:
    x = generator.floating()
    axis, count = _axis(generator, x)
    element, storage = _storage(generator)
    numbers = _numbers(generator, count)
    result = TensorType(element, shape_of(x.type))
    generator.apply("quantize", [x], result, axis=axis, **numbers, **storage)


def dequantize(generator: Generator) -> None:
    x = generator.any(elements=(i8, i32))
    axis, count = _axis(generator, x)
    result = TensorType(generator.pick(FLOATS), shape_of(x.type))
    generator.apply("dequantize", [x], result, axis=axis, **_numbers(generator, count))


def requantize(generator: Generator) -> None:
    x = generator.any(elements=(i8, i32))
    axis, count = _axis(generator, x)
    element, storage = _storage(generator)
    numbers = _numbers(generator, count, "in_") | _numbers(generator, count, "out_")
    result = TensorType(element, shape_of(x.type))
    generator.apply("requantize", [x], result, axis=axis, **numbers, **storage)


def _tensors(generator: Generator, count: int, axis: int | None) -> list[SSAValue]:
    shape = () if axis is None else (count,)
    scale = generator.argument(shape, FLOATS[0], 0.25, 1.0)
    return [scale, generator.argument(shape, i32, -4, 4)]


def quantize_unrolled(generator: Generator) -> None:
    x = generator.floating()
    axis, count = _axis(generator, x)
    element, storage = _storage(generator)
    operands = [x, *_tensors(generator, count, axis)]
    result = TensorType(element, shape_of(x.type))
    generator.apply("quantize_unrolled", operands, result, axis=axis, **storage)


def dequantize_unrolled(generator: Generator) -> None:
    x = generator.any(elements=(i8, i32))
    axis, count = _axis(generator, x)
    operands = [x, *_tensors(generator, count, axis)]
    result = TensorType(generator.pick(FLOATS), shape_of(x.type))
    generator.apply("dequantize_unrolled", operands, result, axis=axis)


def requantize_unrolled(generator: Generator) -> None:
    x = generator.any(elements=(i8, i32))
    axis, count = _axis(generator, x)
    element, storage = _storage(generator)
    tensors = [*_tensors(generator, count, axis), *_tensors(generator, count, axis)]
    result = TensorType(element, shape_of(x.type))
    generator.apply("requantize_unrolled", [x, *tensors], result, axis=axis, **storage)


RECIPES: dict[str, Recipe] = {
    function.__name__: function
    for function in (
        quantize,
        dequantize,
        requantize,
        quantize_unrolled,
        dequantize_unrolled,
        requantize_unrolled,
    )
}
"""A recipe for each op of this kind."""
