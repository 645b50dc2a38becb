"""Dynamic dimensions of JAX functions: symbolic dimensions of `jax.export`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from ttcodegen.bucketing import (
    ArrayFunctions,
    DynamicModel,
    DynamicShapes,
    GivenDimension,
    buckets_of,
    dynamic_dimensions,
    linear,
)
from ttcodegen.emission.buckets import Buckets, Extent
from ttcodegen.foundation.diagnostics import CompileError, SourceLocation
from ttcodegen.framework import BucketCall, called_at

FORWARD = "forward"
"""Name of a function for inputs of any size, the prefix of those of buckets."""
_LARGEST = 1 << 20
"""Upper bound of dimensions; larger ones count as unbounded."""


@dataclass(frozen=True)
class DynamicExample:
    """Arguments of a function, some with dynamic dimensions."""

    args: tuple[Any, ...]
    """Arrays, or shapes and dtypes with symbolic dimensions; and static values."""
    array_places: tuple[int, ...]
    """Indices of the arguments that are trees of arrays."""
    names: Sequence[str]
    """Names of all arrays in them."""


def has_symbolic_dimensions(jax: Any, args: Any) -> bool:
    """Returns whether a shape in a tree of arguments has a symbolic dimension."""
    return any(
        not isinstance(size, int)
        for leaf in jax.tree_util.tree_leaves(args)
        if isinstance(leaf, jax.ShapeDtypeStruct)
        for size in leaf.shape
    )


def bucket_examples(
    jax: Any,
    name: str,
    function: Callable[[Sequence[Any]], Any],
    example: DynamicExample,
    dynamic: DynamicShapes,
    place: SourceLocation | None,
) -> tuple[dict[str, tuple[Any, ...]], Buckets, list[BucketCall]]:
    """Arguments of a function for each of its buckets.

    Args:
        jax: the framework.
        name: the function's name, the prefix of those of buckets.
        function: takes all arguments.
        example: the arguments.
        dynamic: shapes in `jax.export.symbolic_args_specs`' form, none for the example's.
        place: source location of the function.

    Raises:
        CompileError: if dimensions are declared incorrectly, or outputs depend on padding.
    """
    tree_util = jax.tree_util
    trees = tuple(example.args[i] for i in example.array_places)
    leaves, tree = tree_util.tree_flatten(trees)
    specs = tree_util.tree_leaves(_specifications(jax, trees, example, dynamic.shapes))
    given: dict[str, GivenDimension] = {}
    extents = [tuple(_extent(jax, size, given) for size in spec.shape) for spec in specs]
    if not given:
        raise CompileError(
            "no dimension of an argument is symbolic",
            called_at(),
            remedy='name those that are dynamic: dynamic_shapes=("batch, length", None)',
        )
    dimensions = dynamic_dimensions(list(given.values()), dynamic.lengths, place)
    largest = {each.name: each.sizes[-1] for each in dimensions}
    drawing = np.random.default_rng(0)
    values = [
        _drawn(jax, drawing, spec, tuple(e.size(largest) for e in each))
        if isinstance(leaf, jax.ShapeDtypeStruct)
        else jax.numpy.asarray(leaf)
        for leaf, spec, each in zip(leaves, specs, extents, strict=True)
    ]

    def arguments(arrays: Sequence[Any]) -> tuple[Any, ...]:
        found = list(example.args)
        for index, each in zip(
            example.array_places, tree_util.tree_unflatten(tree, list(arrays)), strict=True
        ):
            found[index] = each
        return tuple(found)

    def run(arrays: Sequence[Any]) -> list[Any]:
        try:
            return list(tree_util.tree_leaves(function(arguments(arrays))))
        except CompileError:
            raise
        except Exception as error:  # Whatever the function comes across.
            lines = str(error).strip().splitlines() or [""]
            raise CompileError(
                f"the function fails on its example in another size: {type(error).__name__}: "
                f"{lines[0]}",
                place,
                remedy="give the sizes that it takes: lengths={name: (size, size)}",
            ) from error

    model = DynamicModel(
        name, run, values, list(example.names), extents, _array_functions(jax), place
    )
    buckets, calls = buckets_of(model, dimensions, dynamic.padding or {})
    found = {
        buckets.function(bucket): arguments(model.inputs(bucket))
        for bucket in buckets.all_buckets()
    }
    return found, buckets, calls


def _array_functions(jax: Any) -> ArrayFunctions:
    def resize(array: Any, axis: int, size: int) -> Any:
        places = np.arange(size) % max(array.shape[axis], 1)
        return jax.numpy.take(array, places, axis=axis)

    def pad(array: Any, axis: int, size: int, value: float) -> Any:
        widths = [(0, 0)] * array.ndim
        widths[axis] = (0, size - array.shape[axis])
        return jax.numpy.pad(array, widths, constant_values=np.asarray(value).astype(array.dtype))

    return ArrayFunctions(lambda array: tuple(map(int, array.shape)), resize, pad, np.asarray)


def _drawn(jax: Any, drawing: np.random.Generator, spec: Any, shape: tuple[int, ...]) -> Any:
    """Random values for an argument with only a shape and dtype."""
    dtype = np.dtype(spec.dtype)
    if dtype.kind == "b":
        return jax.numpy.ones(shape, dtype)
    if dtype.kind in "iu":
        return jax.numpy.asarray(drawing.integers(0, 2, shape).astype(dtype))
    return jax.numpy.asarray(drawing.standard_normal(shape).astype(dtype))


def _specifications(
    jax: Any, trees: tuple[Any, ...], example: DynamicExample, dynamic_shapes: Any
) -> Any:
    """Shapes and dtypes of the arrays, with symbolic dimensions."""
    if dynamic_shapes is None:

        def specification(leaf: Any) -> Any:
            return jax.ShapeDtypeStruct(np.shape(leaf), jax.numpy.result_type(leaf))

        return jax.tree_util.tree_map(specification, trees)
    shapes: Any = (dynamic_shapes,) if isinstance(dynamic_shapes, str) else dynamic_shapes
    given = cast("Sequence[Any]", shapes) if isinstance(shapes, tuple | list) else ()
    if given and len(given) == len(example.args):
        shapes = tuple(given[i] for i in example.array_places)
    try:
        return jax.export.symbolic_args_specs(trees, shapes)
    except Exception as error:  # It has none of its own.
        lines = str(error).strip().splitlines() or [""]
        raise CompileError(
            f"dynamic_shapes: {lines[0]}",
            called_at(),
            remedy="give them as jax.export.symbolic_args_specs takes them, an entry for each "
            'argument: ("batch, length", None)',
        ) from None


def _extent(jax: Any, size: Any, given: dict[str, GivenDimension]) -> Extent:
    if isinstance(size, int):
        return Extent(size)
    symbol, offset, scale = linear(str(size))
    if symbol not in given:
        (dimension,) = (each for each in jax.export.symbolic_shape(symbol, scope=size.scope))
        given[symbol] = GivenDimension(
            symbol,
            _bound(dimension, lambda each, value: each >= value, largest=True) or 1,
            _bound(dimension, lambda each, value: each <= value, largest=False),
        )
    return Extent(offset, symbol, scale)


def _bound(dimension: Any, holds: Callable[[Any, int], bool], *, largest: bool) -> int | None:
    """Largest or smallest number for which jax proves a comparison with the dimension."""

    def known(value: int) -> bool:
        try:
            return bool(holds(dimension, value))
        except Exception:  # Inconclusive: the dimension may be on either side.
            return False

    low, high = 0, _LARGEST
    if not known(low if largest else high):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        if known(middle) == largest:
            low = middle
        else:
            high = middle
    return low if largest else high
