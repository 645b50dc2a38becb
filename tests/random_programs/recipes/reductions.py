"""Recipes of reductions, running sums and products, and of what orders elements."""

from __future__ import annotations

from functools import partial

from xdsl.dialects.builtin import TensorType
from xdsl.ir import SSAValue

from tests.random_programs.choices import shuffled
from tests.random_programs.generator import FLOATS, INTEGERS, Generator, Recipe, i1, i32
from ttcodegen.dialects.core.datatypes import element_of, shape_of, ui16, ui32
from ttcodegen.ops.core.definition import TTIR


def _operand(generator: Generator, name: str, low: int, elements: tuple) -> SSAValue:
    x = generator.any(low=low, elements=elements)
    domain = TTIR[name].operands[0].domain
    return x if domain is None else generator.within(x, *domain)


def _negative(generator: Generator, dim: int, rank: int) -> int:
    return dim - rank if generator.chance(40) else dim


def _dims(generator: Generator, rank: int) -> list[int] | None:
    """Some dimensions, from the front or the back; None for all."""
    if rank == 0 or generator.chance(20):
        return None
    dims = shuffled(generator.choices, range(rank))[: generator.integer(1, rank)]
    return [_negative(generator, dim, rank) for dim in dims]


def _reduced(shape: tuple[int, ...], dims: list[int] | None, keep: bool) -> list[int]:
    rank = len(shape)
    gone = range(rank) if dims is None else {dim % rank for dim in dims}
    return [1 if a in gone else size for a, size in enumerate(shape) if keep or a not in gone]


def _reduce(name: str, generator: Generator) -> None:
    x = _operand(generator, name, 0, (i1,) if name.startswith("reduce") else (*FLOATS, *INTEGERS))
    shape = shape_of(x.type)
    dims, keep = _dims(generator, len(shape)), generator.chance(50)
    if name == "mean" and element_of(x.type) in INTEGERS:
        # A mean of integers that has a fraction has to be cut off; that of a float is meant here.
        x = generator.like(shape, generator.pick(FLOATS))
    result = TensorType(element_of(x.type), _reduced(shape, dims, keep))
    generator.apply(name, [x], result, dim_arg=dims, keep_dim=keep)


def argmax(generator: Generator) -> None:
    x = generator.any(low=1, elements=(*FLOATS, *INTEGERS))
    shape = shape_of(x.type)
    rank = len(shape)
    one = [_negative(generator, generator.integer(0, rank - 1), rank)]
    dims, keep = generator.pick((one, one, None)), generator.chance(50)
    dims = _dims(generator, rank) if generator.chance(30) else dims
    element = generator.pick((i32, ui32))
    result = TensorType(element, _reduced(shape, dims, keep))
    generator.apply("argmax", [x], result, dim_arg=dims, keep_dim=keep)


def _scan(name: str, generator: Generator) -> None:
    x = _operand(generator, name, 1, (*FLOATS, i32))
    rank = len(shape_of(x.type))
    dim = _negative(generator, generator.integer(0, rank - 1), rank)
    generator.apply(name, [x], x.type, dim=dim)


def sort(generator: Generator) -> None:
    x = generator.any(low=1, elements=(*FLOATS, *INTEGERS))
    x = generator.argument(shape_of(x.type), element_of(x.type)) if generator.chance(50) else x
    shape = shape_of(x.type)
    dim = _negative(generator, generator.integer(0, len(shape) - 1), len(shape))
    places = TensorType(generator.pick((i32, ui32, ui16)), shape)
    # Of equal elements, only a stable order decides which comes first.
    descending = generator.chance(50)
    results = generator.apply(
        "sort", [x], [x.type, places], dim=dim, descending=descending, stable=True
    )
    _keep_values(generator, x, results)


def topk(generator: Generator) -> None:
    x = generator.any(low=1, elements=(*FLOATS, *INTEGERS))
    shape = list(shape_of(x.type))
    dim = generator.integer(0, len(shape) - 1)
    k = generator.integer(1, shape[dim])
    shape[dim] = k
    types = [TensorType(element_of(x.type), shape), TensorType(generator.pick((i32, ui32)), shape)]
    dim = _negative(generator, dim, len(shape))
    results = generator.apply(
        "topk", [x], types, k=k, dim=dim, largest=generator.chance(70), sorted=True
    )
    _keep_values(generator, x, results)


def _keep_values(generator: Generator, x: SSAValue, results: list[SSAValue]) -> None:
    """The indices of equal elements are undefined: they are not used any further."""
    array = generator.array(x)
    if len(set(array.reshape(-1).tolist())) < array.size:
        generator.pool.remove(results[1])


RECIPES: dict[str, Recipe] = {
    **{
        name: partial(_reduce, name)
        for name in ("sum", "mean", "max", "min", "prod", "reduce_or", "reduce_and")
    },
    **{name: partial(_scan, name) for name in ("cumsum", "cumprod")},
    "argmax": argmax,
    "sort": sort,
    "topk": topk,
}
"""A recipe for each op of this kind."""
