"""Creation and data movement: ranges, views, concatenation."""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd, log2, prod
from typing import Any

import numpy as np
from xdsl.ir import Attribute, SSAValue

from ttcodegen.dialects.core.datatypes import element_of, f32, i1, shape_of, tensor_type
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.frontends.torch.elementwise import graph_number
from ttcodegen.frontends.torch.graph import (
    Graph,
    Rule,
    Scalar,
    kind_of,
    of_scalars,
    unsupported_argument,
)

# Operations that move elements: views, joins, parts, repetitions.


def _view(graph: Graph, x: SSAValue, *_: Any, **__: Any) -> SSAValue:
    """Reshape to the shape of the result."""
    if prod(shape_of(x.type)) != prod(graph.shape):
        raise CompileError("a view of another type of elements is not supported")
    return graph.reshape(x, graph.shape)


def _view_of_bits(graph: Graph, x: SSAValue, dtype: Any) -> SSAValue:
    """Bitcast to another element type of the same width."""
    if graph.shape != shape_of(x.type):
        raise CompileError(
            "a view as elements of another size is not supported",
            remedy="convert the elements with x.to(dtype), or compute the bits before the model",
        )
    if "b" in (kind_of(graph.element), kind_of(element_of(x.type))):
        return graph.typecast(x, graph.element)
    if graph.element == element_of(x.type):
        return x
    return graph.emit("bitcast_convert", [x], tensor_type(graph.element, graph.shape))


def _permute(graph: Graph, x: SSAValue, order: Sequence[int]) -> SSAValue:
    rank = len(shape_of(x.type))
    return graph.permute(x, [graph.dim(axis, rank) for axis in order])


def _transpose(graph: Graph, x: SSAValue, first: int, second: int) -> SSAValue:
    rank = len(shape_of(x.type))
    return graph.swapped(x, graph.dim(first, rank), graph.dim(second, rank)) if rank else x


def _reversed(graph: Graph, x: SSAValue) -> SSAValue:
    return graph.permute(x, list(reversed(range(len(shape_of(x.type))))))


def _matrices_transposed(graph: Graph, x: SSAValue) -> SSAValue:
    return _transpose(graph, x, -1, -2)


def _movedim(graph: Graph, x: SSAValue, source: Any, target: Any) -> SSAValue:
    rank = len(shape_of(x.type))
    sources = [graph.dim(s, rank) for s in ([source] if isinstance(source, int) else source)]
    targets = [graph.dim(t, rank) for t in ([target] if isinstance(target, int) else target)]
    rest = iter(axis for axis in range(rank) if axis not in sources)
    placed = dict(zip(targets, sources, strict=True))
    return graph.permute(x, [placed[i] if i in placed else next(rest) for i in range(rank)])


def _expand(graph: Graph, x: SSAValue, *_: Any, **__: Any) -> SSAValue:
    return graph.expanded(x, graph.shape)


def _copy(graph: Graph, _: SSAValue, source: SSAValue, *__: Any) -> SSAValue:
    """Broadcasts a source over a whole tensor."""
    return graph.expanded(source, graph.shape)


def _cat(graph: Graph, parts: Sequence[SSAValue], dim: int = 0) -> SSAValue:
    # Tensors without elements may have any shape here.
    full = [graph.value(part) for part in parts if shape_of(part.type) != (0,)]
    return graph.concat(full, graph.dim(dim, len(graph.shape)))


def _stack(graph: Graph, parts: Sequence[SSAValue], dim: int = 0) -> SSAValue:
    axis = graph.dim(dim, len(graph.shape))
    shape = [1 if index == axis else size for index, size in enumerate(graph.shape)]
    return graph.concat([graph.reshape(graph.value(part), shape) for part in parts], axis)


def _split(graph: Graph, x: SSAValue, _: Any, dim: int = 0) -> list[SSAValue]:
    """Split into parts whose sizes are those of the result types."""
    axis = graph.dim(dim, len(shape_of(x.type)))
    parts: list[SSAValue] = []
    begin = 0
    for type_ in graph.results:
        end = begin + shape_of(type_)[axis]
        parts.append(graph.part(x, axis, begin, end))
        begin = end
    return parts


def _unbind(graph: Graph, x: SSAValue, dim: int = 0) -> list[SSAValue]:
    axis = graph.dim(dim, len(shape_of(x.type)))
    return [
        graph.reshape(graph.part(x, axis, i, i + 1), shape_of(type_))
        for i, type_ in enumerate(graph.results)
    ]


def select(graph: Graph, x: SSAValue, dim: int, index: int) -> SSAValue:
    """The slice at a known position of a dimension, without this dimension."""
    axis = graph.dim(dim, len(shape_of(x.type)))
    index %= shape_of(x.type)[axis]
    return graph.reshape(graph.part(x, axis, index, index + 1), graph.shape)


def bounds(size: int, start: int | None, end: int | None) -> tuple[int, int]:
    """Normalizes the bounds of a slice to the tensor."""
    begin = 0 if start is None else start + size if start < 0 else start
    stop = size if end is None else end + size if end < 0 else end
    begin = min(max(begin, 0), size)
    return begin, min(max(stop, begin), size)


def _slice(
    graph: Graph,
    x: SSAValue,
    dim: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
) -> SSAValue:
    axis = graph.dim(dim, len(shape_of(x.type)))
    begin, stop = bounds(shape_of(x.type)[axis], start, end)
    return graph.part(x, axis, begin, stop, step)


def _narrow(graph: Graph, x: SSAValue, dim: int, start: int, length: int) -> SSAValue:
    return _slice(graph, x, dim, start, start + length if start >= 0 or start + length else None)


def slice_scatter(
    graph: Graph,
    x: SSAValue,
    source: SSAValue,
    dim: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
) -> SSAValue:
    """Replaces a slice by concatenation or, with a step, by selection of elements."""
    shape = shape_of(x.type)
    axis = graph.dim(dim, len(shape))
    begin, stop = bounds(shape[axis], start, end)
    middle = graph.typecast(source, element_of(x.type))
    if step != 1:
        return _interleaved(graph, x, middle, axis, begin, stop, step)
    around = [(0, begin), (stop, shape[axis])]
    before, after = ([graph.part(x, axis, a, b)] if b > a else [] for a, b in around)
    return graph.concat([*before, middle, *after], axis)


def _interleaved(
    graph: Graph, x: SSAValue, source: SSAValue, axis: int, begin: int, stop: int, step: int
) -> SSAValue:
    """Takes every `step`-th element from the source, the others from `x`."""
    shape = shape_of(x.type)
    count = shape_of(source.type)[axis]
    widened = [*shape[:axis], count * step, *shape[axis + 1 :]]
    dilated = graph.emit(
        "repeat_interleave", [source], tensor_type(element_of(x.type), widened),
        repeats=step, dim=axis,
    )  # fmt: skip
    dilated = graph.part(dilated, axis, 0, min(count * step, shape[axis] - begin))
    around = [(0, 0)] * len(shape)
    around[axis] = (begin, shape[axis] - begin - shape_of(dilated.type)[axis])
    chosen = np.zeros(shape[axis], bool)
    chosen[begin:stop:step] = True
    mask = graph.constant(chosen.reshape([-1 if i == axis else 1 for i in range(len(shape))]), i1)
    return graph.emit("where", [mask, graph.pad(dilated, around), x], x.type)


def _select_scatter(graph: Graph, x: SSAValue, source: SSAValue, dim: int, index: int) -> SSAValue:
    shape = list(shape_of(x.type))
    axis = graph.dim(dim, len(shape))
    index %= shape[axis]
    shape[axis] = 1
    return slice_scatter(graph, x, graph.reshape(source, shape), axis, index, index + 1)


def _flip(graph: Graph, x: SSAValue, dims: Sequence[int]) -> SSAValue:
    return graph.like("reverse", x, dimensions=graph.dims(dims, x)) if dims else x


def _roll(graph: Graph, x: SSAValue, shifts: Any, dims: Any = ()) -> SSAValue:
    """Rotates elements along dimensions; those past the end come in at the start."""
    shape = shape_of(x.type)
    shifts = [shifts] if isinstance(shifts, int) else list(shifts)
    if not shape:
        return x
    if not dims and dims != 0:
        flat = _rolled(graph, graph.reshape(x, [prod(shape)]), 0, shifts[0])
        return graph.reshape(flat, shape)
    for axis, shift in zip([dims] if isinstance(dims, int) else dims, shifts, strict=True):
        x = _rolled(graph, x, graph.dim(axis, len(shape)), shift)
    return x


def _rolled(graph: Graph, x: SSAValue, axis: int, shift: int) -> SSAValue:
    size = shape_of(x.type)[axis]
    cut = size - shift % max(size, 1)
    if cut == size:
        return x
    return graph.concat([graph.part(x, axis, cut, size), graph.part(x, axis, 0, cut)], axis)


def _repeat(graph: Graph, x: SSAValue, *_: Any) -> SSAValue:
    return graph.repeat(graph.aligned(x, graph.shape), graph.shape)


def _constant_pad(graph: Graph, x: SSAValue, widths: Sequence[int], value: float = 0.0) -> SSAValue:
    """Pads with a constant; width pairs start with the last dimension."""
    return graph.pad(x, _pairs(x, widths), value or 0)


def _pairs(x: SSAValue, widths: Sequence[int]) -> list[tuple[int, int]]:
    pairs = list(zip(widths[0::2], widths[1::2], strict=True))
    rank = len(shape_of(x.type))
    return [(0, 0)] * (rank - len(pairs)) + pairs[::-1]


def _pad(
    graph: Graph,
    x: SSAValue,
    widths: Sequence[int],
    mode: str = "constant",
    value: float | None = None,
) -> SSAValue:
    if mode == "constant":
        return _constant_pad(graph, x, widths, value or 0.0)
    if mode not in ("reflect", "replicate", "circular"):
        raise unsupported_argument("pad", "mode", mode)
    for axis, (before, after) in enumerate(_pairs(x, widths)):
        x = _pad_dimension(graph, x, axis, before, after, mode)
    return x


def _pad_dimension(
    graph: Graph, x: SSAValue, axis: int, before: int, after: int, mode: str
) -> SSAValue:
    """Pads one dimension by reflection, replication or periodically.

    Negative widths crop: before periodic padding, after the other modes.
    """
    cut = [(0, 0)] * len(shape_of(x.type))
    cut[axis] = (min(before, 0), min(after, 0))
    before, after = max(before, 0), max(after, 0)
    if mode == "circular":
        return _around(graph, graph.pad(x, cut), axis, before, after, mode)
    return graph.pad(_around(graph, x, axis, before, after, mode), cut)


def _around(graph: Graph, x: SSAValue, axis: int, before: int, after: int, mode: str) -> SSAValue:
    if not before and not after:
        return x
    size = shape_of(x.type)[axis]
    if mode == "replicate":
        first = [graph.part(x, axis, 0, 1)] * before
        last = [graph.part(x, axis, size - 1, size)] * after
    elif mode == "circular":
        first = [graph.part(x, axis, size - before, size)] if before else []
        last = [graph.part(x, axis, 0, after)] if after else []
    else:
        first = [graph.part(x, axis, i, i + 1) for i in range(before, 0, -1)]
        last = [graph.part(x, axis, i, i + 1) for i in range(size - 2, size - 2 - after, -1)]
    return graph.concat([*first, x, *last], axis)


def _by_mode(mode: str) -> Rule:
    def rule(graph: Graph, x: SSAValue, widths: Sequence[int]) -> SSAValue:
        return _pad(graph, x, widths, mode)

    return rule


def _pixel_shuffle(graph: Graph, x: SSAValue, factor: int) -> SSAValue:
    *batch, channels, height, width = shape_of(x.type)
    count = prod(batch)
    parts = graph.reshape(x, [count, channels // factor**2, factor, factor, height, width])
    return graph.reshape(graph.permute(parts, [0, 1, 4, 2, 5, 3]), graph.shape)


def _broadcast_tensors(graph: Graph, values: Sequence[SSAValue]) -> list[SSAValue]:
    return [graph.expanded(value, graph.shape) for value in values]


def _unfold(graph: Graph, x: SSAValue, dim: int, size: int, step: int) -> SSAValue:
    """Windows over a dimension: it becomes the number of windows, their elements come last."""
    rank = len(shape_of(x.type))
    axis = graph.dim(dim, rank)
    count = graph.shape[axis]
    order = [other for other in range(rank) if other != axis]
    whole = graph.permute(graph.part(x, axis, 0, (count - 1) * step + size), [*order, axis])
    windows = _windows(graph, whole, count, size, step)
    return graph.permute(windows, [*range(axis), rank - 1, *range(axis, rank - 1), rank])


def _windows(graph: Graph, x: SSAValue, count: int, size: int, step: int) -> SSAValue:
    """Windows over the last dimension, their number before their elements: of as many slices as
    there are windows, or as one has blocks, of which the steps between them are whole numbers."""
    block = gcd(size, step)
    *others, length = shape_of(x.type)
    axis = len(others)
    if count < size // block:
        parts = [graph.part(x, axis, i * step, i * step + size) for i in range(count)]
        rows = [graph.reshape(part, [*others, 1, size]) for part in parts]
        return graph.concat(rows, axis) if count > 1 else rows[0]
    blocks = graph.reshape(x, [*others, length // block, block])
    every = step // block
    reach = (count - 1) * every + 1
    parts = [graph.part(blocks, axis, i, i + reach, every) for i in range(size // block)]
    return graph.concat(parts, axis + 1) if len(parts) > 1 else parts[0]


RULES: dict[str, Rule] = {
    "unfold": of_scalars(_unfold),
    "view.dtype": _view_of_bits,
    "view_copy.dtype": _view_of_bits,
    **dict.fromkeys(
        """
        view reshape _unsafe_view flatten unflatten squeeze unsqueeze ravel view_as reshape_as
        _reshape_alias
        """.split(),
        _view,
    ),
    "permute": _permute,
    "transpose": _transpose,
    "swapaxes": _transpose,
    "t": _reversed,
    "numpy_T": _reversed,
    "mT": _matrices_transposed,
    "adjoint": _matrices_transposed,
    "movedim": _movedim,
    "moveaxis": _movedim,
    "expand": _expand,
    "expand_as": _expand,
    "broadcast_tensors": _broadcast_tensors,
    "broadcast_to": _expand,
    "cat": _cat,
    "concat": _cat,
    "stack": _stack,
    "copy": _copy,
    **dict.fromkeys(
        """
        split split_with_sizes chunk tensor_split unsafe_split unsafe_split_with_sizes unsafe_chunk
        """.split(),
        _split,
    ),
    "unbind": _unbind,
    "slice": _slice,
    "narrow": _narrow,
    "slice_scatter": slice_scatter,
    "select_scatter": _select_scatter,
    "flip": _flip,
    "roll": _roll,
    "repeat": _repeat,
    "tile": _repeat,
    "constant_pad_nd": _constant_pad,
    "pad": _pad,
    **{f"reflection_pad{n}d": _by_mode("reflect") for n in (1, 2, 3)},
    **{f"replication_pad{n}d": _by_mode("replicate") for n in (1, 2, 3)},
    "pixel_shuffle": _pixel_shuffle,
}
"""Rules by operation name, for all overloads."""


# Tensors that do not depend on others: ranges, masks, numbers throughout.


def _filled(number: float) -> Rule:
    def rule(graph: Graph, *_: Any, **__: Any) -> SSAValue:
        return graph.full(graph.shape, graph_number(graph, number), graph.element)

    return rule


def _full(graph: Graph, _: Any, value: float, *__: Any, **___: Any) -> SSAValue:
    return graph.full(graph.shape, graph_number(graph, value), graph.element)


def _new_full(graph: Graph, _: SSAValue, size: Any, value: float, **__: Any) -> SSAValue:
    return _full(graph, size, value)


def _scalar(graph: Graph, value: float, **_: Any) -> SSAValue:
    return graph.full([], graph_number(graph, value), graph.element)


def _arange(graph: Graph, *numbers: Any, **_: Any) -> SSAValue:
    numbers = tuple(number for number in numbers if number is not None)
    start, step = (0, 1) if len(numbers) == 1 else (numbers[0], (*numbers, 1)[2])
    (count,) = graph.shape
    values = start + step * np.arange(count)
    whole = all(isinstance(number, int) for number in numbers)
    if whole and kind_of(graph.element) != "b" and count:
        return graph.emit(
            "arange", [], graph.type, start=start, end=start + step * count, step=step,
            arange_dimension=0,
        )  # fmt: skip
    return graph.array(values)


def _range(graph: Graph, start: float, _: float, step: float = 1, **__: Any) -> SSAValue:
    """Range with an inclusive end."""
    return graph.array(start + step * np.arange(graph.shape[0]))


def _linspace(graph: Graph, start: Scalar, end: Scalar, steps: int, **_: Any) -> SSAValue:
    if isinstance(start, SSAValue) or isinstance(end, SSAValue):
        return _evenly(graph, start, end, steps, graph.element)
    return graph.array(np.linspace(start, end, steps))


def _evenly(
    graph: Graph, start: Scalar, end: Scalar, steps: int, limit: Attribute = f32
) -> SSAValue:
    """Evenly spaced numbers between two scalars, counted from both ends as in PyTorch."""
    # Integer limits are truncated first.
    start, end = (
        graph.typecast(graph.reshape(graph.value(v, limit), [1]), f32) for v in (start, end)
    )
    if steps == 1:
        return start
    step = graph.like("div", graph.like("subtract", end, start), graph.number(steps - 1, start))
    places = np.arange(steps)
    up, down = (graph.constant(each, f32) for each in (places, steps - 1 - places))
    rising = graph.broadcasting("add", graph.broadcasting("multiply", up, step), start)
    falling = graph.broadcasting("subtract", end, graph.broadcasting("multiply", down, step))
    first = graph.constant(places < steps // 2, i1)
    values = graph.emit("where", [first, rising, falling], rising.type)
    return values if kind_of(graph.element) == "f" else graph.like("trunc", values)


def _logspace(
    graph: Graph, start: Scalar, end: Scalar, steps: int, base: float = 10.0, **_: Any
) -> SSAValue:
    """Powers of a base with evenly spaced exponents."""
    if isinstance(start, SSAValue) or isinstance(end, SSAValue):
        exponents = _evenly(graph, start, end, steps)
        power = graph.like("exp2", graph.broadcasting(
            "multiply", exponents, graph.number(log2(base), exponents)
        ))  # fmt: skip
        return power if kind_of(graph.element) == "f" else graph.like("trunc", power)
    return graph.array(np.float64(base) ** np.linspace(start, end, steps))


def _uniform(graph: Graph, *_: Any, **__: Any) -> SSAValue:
    """Uniform random numbers in [0, 1) with a fixed seed per operation."""
    return graph.emit(
        "rand", [], graph.type, size=list(graph.shape), low=0.0, high=1.0, seed=graph.next_seed()
    )


_WINDOWS: dict[str, tuple[float, ...]] = {
    "hann_window": (0.5, 0.5),
    "hamming_window": (0.54, 0.46),
    "blackman_window": (0.42, 0.5, 0.08),
}
"""Cosine window functions by their coefficients, whose signs alternate."""


def _window(name: str) -> Rule:
    def rule(graph: Graph, size: int, periodic: bool = True, *given: float, **_: Any) -> SSAValue:
        factors = (*given, *_WINDOWS[name][len(given) :])
        turns = 2 * np.pi * np.arange(size) / max(size if periodic else size - 1, 1)
        waves = [(-1) ** n * factor * np.cos(n * turns) for n, factor in enumerate(factors)]
        return graph.array(np.ones(size) if size == 1 else sum(waves, np.zeros(size)))

    return rule


def _triangular_window(graph: Graph, size: int, periodic: bool = True, **_: Any) -> SSAValue:
    return graph.array(np.bartlett(size + periodic)[:size] if size > 1 else np.ones(size))


def _kaiser_window(
    graph: Graph, size: int, periodic: bool = True, beta: float = 12.0, **_: Any
) -> SSAValue:
    return graph.array(np.kaiser(size + periodic, beta)[:size] if size > 1 else np.ones(size))


def _eye(graph: Graph, *_: Any, **__: Any) -> SSAValue:
    return graph.array(np.eye(graph.shape[0], graph.shape[1]))


def _triangle_indices(upper: bool) -> Rule:
    """Makes the rule of the indices of a triangle's elements, [2, elements]."""

    def rule(graph: Graph, rows: int, columns: int, offset: int = 0, **_: Any) -> SSAValue:
        places = np.triu_indices if upper else np.tril_indices
        return graph.array(np.stack(places(rows, offset, columns)))

    return rule


def _triangle(upper: bool) -> Rule:
    """Rule that keeps one side of a diagonal and zeroes the other."""

    def rule(graph: Graph, x: SSAValue, diagonal: int = 0) -> SSAValue:
        rows, columns = shape_of(x.type)[-2:]
        ones = np.ones((rows, columns), dtype=bool)
        kept = np.triu(ones, diagonal) if upper else np.tril(ones, diagonal)
        mask = graph.aligned(graph.constant(kept, i1), graph.shape)
        if kind_of(graph.element) == "b":
            return graph.broadcasting("logical_and", mask, x)
        zero = graph.full([1] * len(graph.shape), graph_number(graph, 0), graph.element)
        return graph.emit("where", [mask, x, zero], graph.type)

    return rule


CREATION_RULES: dict[str, Rule] = {
    **dict.fromkeys(
        "zeros zeros_like new_zeros empty empty_like new_empty empty_permuted".split(), _filled(0)
    ),
    **dict.fromkeys("ones ones_like new_ones".split(), _filled(1)),
    **dict.fromkeys("full full_like".split(), _full),
    "new_full": _new_full,
    "scalar_tensor": _scalar,
    "arange": _arange,
    "range": _range,
    "rand": _uniform,
    "linspace": _linspace,
    "logspace": _logspace,
    **{name: _window(name) for name in _WINDOWS},
    "bartlett_window": _triangular_window,
    "kaiser_window": _kaiser_window,
    "eye": _eye,
    "tril": _triangle(upper=False),
    "tril_indices": _triangle_indices(upper=False),
    "triu_indices": _triangle_indices(upper=True),
    "triu": _triangle(upper=True),
}
"""Rules by operation name, for all overloads."""
