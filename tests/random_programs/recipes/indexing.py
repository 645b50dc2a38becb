"""Recipes of ops that take elements by their places."""

from __future__ import annotations

from xdsl.dialects.builtin import TensorType
from xdsl.ir import SSAValue

from tests.random_programs.generator import FLOATS, INTEGERS, Generator, Recipe, Shape
from tests.random_programs.witnesses import Rejected
from ttcodegen.dialects.core.datatypes import element_of, shape_of


def _indices(generator: Generator, shape: Shape, places: int) -> SSAValue:
    """Integers below `places`: a value that holds such, or a new argument."""

    def fits(value: SSAValue) -> bool:
        if shape_of(value.type) != shape or element_of(value.type) not in INTEGERS:
            return False
        array = generator.array(value)
        return bool(array.size) and array.min() >= 0 and array.max() < places

    found = generator.existing(fits)
    if found is not None:
        return found
    return generator.argument(shape, generator.pick(INTEGERS), 0, places - 1)


def embedding(generator: Generator) -> None:
    table = generator.floating(low=2, high=2)
    rows, columns = shape_of(table.type)
    shape = generator.shape(0, 3, 64)
    index = _indices(generator, shape, rows)
    generator.apply(
        "embedding", [index, table], TensorType(element_of(table.type), (*shape, columns))
    )


def embedding_backward(generator: Generator) -> None:
    table = generator.floating(low=2, high=2)
    rows, columns = shape_of(table.type)
    shape = generator.shape(1, 2, 64)
    index = _indices(generator, shape, rows)
    gradient = generator.like((*shape, columns), element_of(table.type))
    generator.apply("embedding_backward", [index, table, gradient], table.type)


def gather(generator: Generator) -> None:
    x = generator.any(low=1)
    shape = shape_of(x.type)
    dim = generator.integer(0, len(shape) - 1)
    wanted = [generator.integer(1, size) if generator.chance(30) else size for size in shape]
    wanted[dim] = generator.integer(1, min(shape[dim] + 4, 40))
    index = _indices(generator, tuple(wanted), shape[dim])
    spelled = dim - len(shape) if generator.chance(40) else dim
    generator.apply("gather", [x, index], TensorType(element_of(x.type), wanted), dim=spelled)


def scatter(generator: Generator) -> None:
    x = generator.any(low=1, elements=(*FLOATS, *INTEGERS))
    shape = shape_of(x.type)
    dim = generator.integer(0, len(shape) - 1)
    wanted = list(shape)
    wanted[dim] = generator.integer(1, shape[dim])
    reduction = generator.pick(("invalid", "sum", "prod", "min", "max"))
    index = _indices(generator, tuple(wanted), shape[dim])
    if reduction == "invalid" and wanted[dim] > 1:
        if generator.array(index).size > 1 and _names_twice(generator, index, dim):
            raise Rejected("which of two elements stays is anybody's guess")
    source = generator.like(tuple(wanted), element_of(x.type))
    generator.apply("scatter", [x, index, source], x.type, dim=dim, scatter_reduce_type=reduction)


def _names_twice(generator: Generator, index: SSAValue, dim: int) -> bool:
    array = generator.array(index).copy()
    array.sort(axis=dim)
    front = array.take(range(1, array.shape[dim]), axis=dim)
    back = array.take(range(array.shape[dim] - 1), axis=dim)
    return bool((front == back).any())


RECIPES: dict[str, Recipe] = {
    function.__name__: function for function in (embedding, embedding_backward, gather, scatter)
}
"""A recipe for each op of this kind."""
