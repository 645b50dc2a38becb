"""Tensors that do not depend on others: ranges, masks, numbers throughout."""

from __future__ import annotations

from math import log2
from typing import Any

import numpy as np
from xdsl.ir import Attribute, SSAValue

from ttcodegen.dialects.core.datatypes import f32, i1, shape_of
from ttcodegen.frontends.torch.elementwise import graph_number
from ttcodegen.frontends.torch.graph import Graph, Rule, Scalar, kind_of


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


def _linspace(graph: Graph, start: Scalar, end: Scalar, steps: int, **_: Any) -> SSAValue:
    if isinstance(start, SSAValue) or isinstance(end, SSAValue):
        return _evenly(graph, start, end, steps, graph.element)
    return graph.array(np.linspace(start, end, steps))


def _evenly(
    graph: Graph, start: Scalar, end: Scalar, steps: int, limit: Attribute = f32
) -> SSAValue:
    """Numbers from one tensor to another in equal steps, counted from both ends as PyTorch does."""
    # Limits of integers are cut before.
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
    """Numbers from 0 to 1, each operation with a seed of its own; they are the same in each run."""
    return graph.emit(
        "rand", [], graph.type, size=list(graph.shape), low=0.0, high=1.0, seed=graph.next_seed()
    )


_WINDOWS: dict[str, tuple[float, ...]] = {
    "hann_window": (0.5, 0.5),
    "hamming_window": (0.54, 0.46),
    "blackman_window": (0.42, 0.5, 0.08),
}
"""Windows of signals by the factors of their cosines, whose signs alternate."""


def _window(name: str) -> Rule:
    def rule(graph: Graph, size: int, periodic: bool = True, *given: float, **_: Any) -> SSAValue:
        factors = (*given, *_WINDOWS[name][len(given) :])
        turns = 2 * np.pi * np.arange(size) / max(size if periodic else size - 1, 1)
        waves = [(-1) ** n * factor * np.cos(n * turns) for n, factor in enumerate(factors)]
        return graph.array(np.ones(size) if size == 1 else sum(waves, np.zeros(size)))

    return rule


def _eye(graph: Graph, *_: Any, **__: Any) -> SSAValue:
    return graph.array(np.eye(graph.shape[0], graph.shape[1]))


def _places_in_triangle(upper: bool) -> Rule:
    """The rows and columns of the elements on one side of a diagonal, [2, elements]."""

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


RULES: dict[str, Rule] = {
    **dict.fromkeys(
        "zeros zeros_like new_zeros empty empty_like new_empty empty_permuted".split(), _filled(0)
    ),
    **dict.fromkeys("ones ones_like new_ones".split(), _filled(1)),
    **dict.fromkeys("full full_like".split(), _full),
    "new_full": _new_full,
    "scalar_tensor": _scalar,
    "arange": _arange,
    "rand": _uniform,
    "linspace": _linspace,
    "logspace": _logspace,
    **{name: _window(name) for name in _WINDOWS},
    "eye": _eye,
    "tril": _triangle(upper=False),
    "tril_indices": _places_in_triangle(upper=False),
    "triu_indices": _places_in_triangle(upper=True),
    "triu": _triangle(upper=True),
}
"""Operations by their names, for all their overloads."""
