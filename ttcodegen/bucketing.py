"""Buckets of a framework model: sizes, examples, and a check that padding does not change outputs.

Padded elements must not influence the others: a decoder is causal, rows of a batch are independent,
attention applies its mask. This is verified by running the model itself before compilation.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

import numpy as np

from ttcodegen.dialects.ttcore.tile import TILE_SIDE, whole_tiles
from ttcodegen.emission.buckets import Buckets, DynamicDimension, Extent, Extents
from ttcodegen.foundation.diagnostics import CompileError, SourceLocation
from ttcodegen.framework import BucketCall, called_at

Lengths = Sequence[int] | Mapping[str, Sequence[int]]
"""Bucket sizes: of the only dynamic dimension, or by dimension name."""

_MAX_SIZES = 4
"""Maximum number of default bucket sizes of a dimension."""
_MAX_FUNCTIONS = 64
_MASK = (
    "give the model a mask among its arguments that hides padding (0 there, or padding={'mask': "
    "value}), or compile it for each size that occurs"
)


@dataclass(frozen=True)
class DynamicShapes:
    """Dynamic dimensions as passed to `compile`."""

    shapes: Any = None
    """In the framework's notation; None if the model or its example declares them."""
    lengths: Lengths | None = None
    padding: Mapping[str, float] | None = None
    """Values of padded elements by input name; 0 for others."""

    @property
    def are_given(self) -> bool:
        """True if any of the fields is given."""
        return any(each is not None for each in (self.shapes, self.lengths, self.padding))

    def refuse_several(self, functions: int) -> None:
        """Raises CompileError if there are several functions."""
        if functions > 1:
            raise CompileError(
                "dynamic dimensions of several functions are not supported",
                called_at(),
                remedy="compile each function to a project of its own",
            )


@dataclass(frozen=True)
class GivenDimension:
    """A dynamic dimension as declared in the framework."""

    name: str
    least: int = 1
    most: int | None = None
    """None if the framework has no upper bound."""


@dataclass(frozen=True)
class ArrayFunctions:
    """Framework operations on arrays."""

    shape: Callable[[Any], tuple[int, ...]]
    resize: Callable[[Any, int, int], Any]
    """Resizes an array in a dimension to a size: repeats the elements, or drops the last ones."""
    pad: Callable[[Any, int, int, float], Any]
    """Pads an array at the end of a dimension to a size with a value."""
    to_numpy: Callable[[Any], np.ndarray]


@dataclass(frozen=True)
class DynamicModel:
    """A model with dynamic dimensions, and an example."""

    name: str
    run: Callable[[Sequence[Any]], Sequence[Any]]
    """Runs the model on input arrays; returns the output arrays."""
    example: Sequence[Any]
    input_names: Sequence[str]
    extents: Sequence[Extents]
    """Extents of each input."""
    arrays: ArrayFunctions
    place: SourceLocation | None
    """Location of the model in the user's program."""

    def inputs(self, sizes: Mapping[str, int]) -> list[Any]:
        """Returns the example inputs resized to `sizes`."""
        found: list[Any] = []
        for array, extents in zip(self.example, self.extents, strict=True):
            for axis, extent in enumerate(extents):
                if extent.dimension:
                    array = self.arrays.resize(array, axis, extent.size(sizes))
            found.append(array)
        return found

    def padded(
        self, inputs: Sequence[Any], bucket: Mapping[str, int], values: Sequence[float]
    ) -> list[Any]:
        """Returns inputs padded to the sizes of a bucket."""
        found: list[Any] = []
        for array, extents, value in zip(inputs, self.extents, values, strict=True):
            for axis, extent in enumerate(extents):
                if extent.dimension:
                    array = self.arrays.pad(array, axis, extent.size(bucket), value)
            found.append(array)
        return found


def dynamic_dimensions(
    given: Sequence[GivenDimension], lengths: Lengths | None, place: SourceLocation | None
) -> tuple[DynamicDimension, ...]:
    """Returns the dimensions with their bucket sizes.

    Default sizes are the maximum and its successive halves, in whole tiles.

    Raises:
        CompileError: if a dimension has no maximum size, or sizes are out of its range.
    """
    names = [each.name for each in given]
    if lengths is None:
        chosen: Mapping[str, Sequence[int]] = {}
    elif isinstance(lengths, Mapping):
        chosen = lengths
    elif len(given) == 1:
        chosen = {names[0]: lengths}
    else:
        raise CompileError(
            f"there are {len(given)} dynamic dimensions: {', '.join(names)}",
            place,
            remedy=f"say which one has these sizes: lengths={{'{names[0]}': ...}}",
        )
    for name in chosen:
        if name not in names:
            raise CompileError(
                f"there is no dynamic dimension '{name}', only {', '.join(names)}", place
            )
    found = tuple(_with_sizes(each, chosen.get(each.name), place) for each in given)
    if (count := prod(len(each.sizes) for each in found)) > _MAX_FUNCTIONS:
        raise CompileError(
            f"{count} buckets are too many, a project has {_MAX_FUNCTIONS} at most",
            place,
            remedy="give fewer sizes, lengths={name: (size, size)}",
        )
    return found


def _with_sizes(
    given: GivenDimension, sizes: Sequence[int] | None, place: SourceLocation | None
) -> DynamicDimension:
    if sizes is None:
        if given.most is None:
            raise CompileError(
                f"the dimension '{given.name}' has no largest size",
                place,
                remedy=f"declare one, or give the sizes: lengths={{'{given.name}': (32, 128)}}",
            )
        return DynamicDimension(given.name, given.least, _halves(given.most, given.least))
    found = tuple(sorted(set(sizes)))
    whole: tuple[Any, ...] = found
    if not found or any(isinstance(each, bool) or not isinstance(each, int) for each in whole):
        raise CompileError(f"sizes of '{given.name}' are integers, one at least", place)
    if found[0] < given.least or (given.most is not None and found[-1] > given.most):
        most = "" if given.most is None else f" to {given.most}"
        raise CompileError(
            f"sizes of '{given.name}' are from {given.least}{most}, found "
            f"{', '.join(map(str, found))}",
            place,
        )
    return DynamicDimension(given.name, given.least, found)


def _halves(most: int, least: int) -> tuple[int, ...]:
    sizes = [most]
    while len(sizes) < _MAX_SIZES:
        half = -(-sizes[-1] // 2)
        half = whole_tiles(half) if half > TILE_SIDE else half
        # Smaller buckets than a tile save nothing: tiles are computed as a whole.
        if half >= sizes[-1] or half < max(least, TILE_SIDE):
            break
        sizes.append(half)
    return tuple(reversed(sizes))


def buckets_of(
    model: DynamicModel, dimensions: tuple[DynamicDimension, ...], padding: Mapping[str, float]
) -> tuple[Buckets, list[BucketCall]]:
    """Returns the buckets of a model; runs the model to verify that padding changes no output.

    Args:
        model: the model.
        dimensions: its dynamic dimensions.
        padding: values of padded elements by input name; 0 for others.

    Returns:
        The buckets, and calls with sizes between them, for checks of the project.

    Raises:
        CompileError: if the outputs of the model depend on padding, or their sizes are not linear
            in a dimension.
    """
    for name in padding:
        if name not in model.input_names:
            raise CompileError(
                f"padding: there is no input '{name}', only {', '.join(model.input_names)}",
                model.place,
            )
    values = tuple(float(padding.get(name, 0.0)) for name in model.input_names)
    combinations = list(product(*(each.sizes for each in dimensions)))
    functions = {sizes: "_".join([model.name, *map(str, sizes)]) for sizes in combinations}
    outputs = _output_extents(model, dimensions)
    found = Buckets(model.name, dimensions, tuple(model.extents), outputs, values, functions)
    calls = [
        _check_padding(model, found, sizes, bucket)
        for bucket in found.all_buckets()
        for sizes in _sizes_within(dimensions, bucket)
    ]
    return found, calls


def _sizes_within(
    dimensions: Sequence[DynamicDimension], bucket: Mapping[str, int]
) -> Iterator[dict[str, int]]:
    """Yields sizes that are padded to a bucket: the smallest ones, and the middle ones."""
    smallest: dict[str, int] = {}
    for each in dimensions:
        below = [size for size in each.sizes if size < bucket[each.name]]
        smallest[each.name] = below[-1] + 1 if below else each.least
    middle = {name: (least + bucket[name]) // 2 for name, least in smallest.items()}
    yield smallest
    if middle not in (smallest, bucket):
        yield middle


def _output_extents(
    model: DynamicModel, dimensions: Sequence[DynamicDimension]
) -> tuple[Extents, ...]:
    """Returns the extents of outputs, derived from runs with different sizes."""

    def shapes(sizes: Mapping[str, int]) -> list[tuple[int, ...]]:
        return [model.arrays.shape(each) for each in model.run(model.inputs(sizes))]

    base = {each.name: each.sizes[-1] for each in dimensions}
    before = shapes(base)
    slopes: list[dict[int, tuple[str, int]]] = [{} for _ in before]
    for each in dimensions:
        smaller = max(each.least, base[each.name] - 1)
        if smaller == base[each.name]:
            continue
        for index, shape in enumerate(shapes({**base, each.name: smaller})):
            if len(shape) != len(before[index]):
                raise _not_linear(model, index)
            for axis, (small, large) in enumerate(zip(shape, before[index], strict=True)):
                if small != large:
                    if axis in slopes[index]:
                        raise _not_linear(model, index)
                    slopes[index][axis] = each.name, large - small
    found: list[Extents] = []
    for shape, slope in zip(before, slopes, strict=True):
        extents: list[Extent] = []
        for axis, size in enumerate(shape):
            name, scale = slope.get(axis, ("", 0))
            extents.append(Extent(size - scale * base[name], name, scale) if name else Extent(size))
        found.append(tuple(extents))
    return tuple(found)


def _not_linear(model: DynamicModel, index: int) -> CompileError:
    return CompileError(
        f"the size of output {index} of '{model.name}' is not linear in one dynamic dimension",
        model.place,
        remedy="return tensors whose dimensions are those of the inputs",
    )


def _check_padding(
    model: DynamicModel, buckets: Buckets, sizes: Mapping[str, int], bucket: Mapping[str, int]
) -> BucketCall:
    """Raises CompileError if padding a call to a bucket changes its outputs; returns the call."""
    inputs = model.inputs(sizes)
    expected = [model.arrays.to_numpy(each) for each in model.run(inputs)]
    padded = model.run(model.padded(inputs, bucket, buckets.padding))
    for index, (wanted, array, extents) in enumerate(
        zip(expected, padded, buckets.outputs, strict=True)
    ):
        if wanted.shape != tuple(each.size(sizes) for each in extents):
            raise _not_linear(model, index)
        actual = model.arrays.to_numpy(array)[tuple(map(slice, wanted.shape))]
        if not _equal(actual, wanted):
            given = ", ".join(f"{name} {size}" for name, size in sizes.items())
            whole = ", ".join(f"{name} {size}" for name, size in bucket.items())
            raise CompileError(
                f"the model depends on padding: output {index} for {given} changes when its "
                f"inputs are padded to {whole}",
                model.place,
                remedy=_MASK,
            )
    arrays = tuple(model.arrays.to_numpy(each) for each in inputs)
    return BucketCall(arrays, tuple(expected))


def _equal(actual: np.ndarray, expected: np.ndarray) -> bool:
    """Returns whether arrays are equal up to rounding: the order of sums may depend on sizes."""
    if expected.dtype.kind in "biu":
        return bool(np.array_equal(actual, expected))
    # The kind of ml_dtypes floats is not 'f'.
    bits = 8 if expected.dtype.itemsize == 2 else 20
    first, second = actual.astype(np.float64), expected.astype(np.float64)
    finite = second[np.isfinite(second)]
    largest = float(np.abs(finite).max()) if finite.size else 0.0
    return bool(
        np.allclose(first, second, rtol=0.0, atol=largest * 2.0 ** (4 - bits), equal_nan=True)
    )


_OPERATORS: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
}


def linear(text: str) -> tuple[str, int, int]:
    """Parses a size that is linear in one symbol, as frameworks print it.

    Returns:
        Symbol, offset and factor.

    Raises:
        CompileError: if the size is not linear in one symbol.
    """
    try:
        tree = ast.parse(text, mode="eval").body
        symbols = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        if len(symbols) == 1:
            at = [_value(tree, size) for size in (0, 1, 2)]
            if at[2] - at[1] == at[1] - at[0] > 0:
                return symbols.pop(), at[0], at[1] - at[0]
    except (SyntaxError, KeyError, TypeError):
        pass
    raise CompileError(
        f"an input has a dimension of size {text}, which is not linear in one dynamic dimension",
        called_at(),
    )


def _value(node: ast.expr, size: int) -> int:
    """Evaluates an expression with `size` for its symbol."""
    match node:
        case ast.Name():
            return size
        case ast.Constant(value=int(number)):
            return number
        case ast.BinOp(left, symbol, right):
            return _OPERATORS[type(symbol)](_value(left, size), _value(right, size))
        case _:
            raise TypeError(ast.dump(node))
