"""Gather, scatter and index operations."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, prod
from typing import Any

import numpy as np
from xdsl.dialects.builtin import i32
from xdsl.ir import Attribute, SSAValue

from ttcodegen.dialects.core.datatypes import (
    element_of,
    f32,
    i1,
    shape_of,
    tensor_type,
)
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.frontends.torch.graph import (
    Graph,
    Rule,
    Scalar,
    kind_of,
    limits,
    of_scalars,
    unsupported_argument,
)
from ttcodegen.frontends.torch.movement import select
from ttcodegen.frontends.translation import write_cache
from ttcodegen.transforms.const_eval import known_elements


def _embedding(graph: Graph, weight: SSAValue, index: SSAValue, *_: Any) -> SSAValue:
    return graph.emit("embedding", [_as_index(graph, index), weight], graph.type)


def _as_index(graph: Graph, index: SSAValue) -> SSAValue:
    """Converts an index to i32; refuses boolean indices, whose count is unknown."""
    if kind_of(element_of(index.type)) == "b":
        raise CompileError(
            "indexing with booleans is not supported: the number of elements is not known",
            remedy="use torch.where, or masked_fill",
        )
    return graph.typecast(index, i32)


def _wrap_negative(graph: Graph, index: SSAValue, size: int) -> SSAValue:
    """Wraps negative indices to count from the end of a dimension; no-op for known nonnegative
    ones."""
    index = _as_index(graph, index)
    known = known_elements(index)
    if known is not None and bool((known >= 0).all()):
        return index
    negative = graph.compare("lt", index, graph.number(0, index), i1)
    wrapped = graph.like("add", index, graph.number(size, index))
    return graph.emit("where", [negative, wrapped, index], index.type)


def _select_rows(graph: Graph, x: SSAValue, dim: int, index: SSAValue) -> SSAValue:
    """Selects along one dimension by an embedding lookup."""
    shape = shape_of(x.type)
    places = shape_of(index.type)
    x = graph.permute(x, [dim, *(axis for axis in range(len(shape)) if axis != dim)])
    rest = [size for axis, size in enumerate(shape) if axis != dim]
    element = element_of(x.type)
    if kind_of(element) != "f":
        return _gathered_rows(graph, x, index, rest, dim)
    table = graph.reshape(x, [shape[dim], prod(rest)])
    flat = graph.reshape(_as_index(graph, index), [prod(places)])
    found = graph.emit("embedding", [flat, table], tensor_type(element, [prod(places), prod(rest)]))
    found = graph.reshape(found, [*places, *rest])
    return _restore_dimensions(graph, found, len(places), dim)


def _gathered_rows(
    graph: Graph, x: SSAValue, index: SSAValue, rest: Sequence[int], dim: int
) -> SSAValue:
    places = shape_of(index.type)
    width = prod(rest)
    table = graph.reshape(x, [shape_of(x.type)[0], width])
    flat = graph.reshape(_as_index(graph, index), [prod(places), 1])
    index = graph.repeat(flat, [prod(places), width])
    result = tensor_type(element_of(x.type), [prod(places), width])
    found = graph.emit("gather", [table, index], result, dim=0)
    return _restore_dimensions(graph, graph.reshape(found, [*places, *rest]), len(places), dim)


def _restore_dimensions(graph: Graph, found: SSAValue, count: int, dim: int) -> SSAValue:
    """Moves the first `count` dimensions, those of the indices, to the indexed position."""
    rank = len(shape_of(found.type))
    rest = list(range(count, rank))
    return graph.permute(found, [*rest[:dim], *range(count), *rest[dim:]])


def _index_select(graph: Graph, x: SSAValue, dim: int, index: SSAValue) -> SSAValue:
    return _select_rows(graph, x, graph.dim(dim, len(shape_of(x.type))), index)


def _select(graph: Graph, x: SSAValue, dim: int, index: int | SSAValue) -> SSAValue:
    """A slice at a position that may be computed."""
    if isinstance(index, int):
        return select(graph, x, dim, index)
    axis = graph.dim(dim, len(shape_of(x.type)))
    place = _wrap_negative(graph, graph.reshape(index, [1]), shape_of(x.type)[axis])
    return graph.reshape(_select_rows(graph, x, axis, place), graph.shape)


def _index(graph: Graph, x: SSAValue, indices: Sequence[SSAValue | None]) -> SSAValue:
    """Advanced indexing by tensors for one dimension or several.

    Their dimensions replace the indexed ones in place, or come first if these are not adjacent.
    """
    named = [axis for axis, index in enumerate(indices) if index is not None]
    values = [index for index in indices if index is not None]
    if not _are_adjacent(named):
        x, named = graph.permute(x, _named_first(named, x)), list(range(len(named)))
    x, flat = _flatten_indexed(graph, x, named, values)
    return _select_rows(graph, x, named[0], flat)


def _are_adjacent(axes: Sequence[int]) -> bool:
    return list(axes) == list(range(axes[0], axes[0] + len(axes)))


def _named_first(named: Sequence[int], x: SSAValue) -> list[int]:
    """Permutation with the indexed dimensions first."""
    return [*named, *(axis for axis in range(len(shape_of(x.type))) if axis not in named)]


def _flatten_indexed(
    graph: Graph, x: SSAValue, named: Sequence[int], values: Sequence[SSAValue]
) -> tuple[SSAValue, SSAValue]:
    """Flattens adjacent indexed dimensions and their indices into one."""
    if any(kind_of(element_of(v.type)) == "b" for v in values):
        _as_index(graph, values[0])
    shape = shape_of(x.type)
    sizes = [shape[axis] for axis in named]
    values = [_wrap_negative(graph, v, size) for v, size in zip(values, sizes, strict=True)]
    flat = values[0]
    for index, size in zip(values[1:], sizes[1:], strict=True):
        scaled = graph.like("multiply", flat, graph.number(size, flat))
        rank = max(len(shape_of(scaled.type)), len(shape_of(index.type)))
        scaled, index = (graph.aligned(v, [1] * rank) for v in (scaled, index))
        flat = graph.broadcasting("add", scaled, index)
    joined = [*shape[: named[0]], prod(sizes), *shape[named[-1] + 1 :]]
    return graph.reshape(x, joined), flat


def _gather(graph: Graph, x: SSAValue, dim: int, index: SSAValue, **_: Any) -> SSAValue:
    axis = graph.dim(dim, len(shape_of(x.type)))
    shape, places = shape_of(x.type), shape_of(index.type)
    if not prod(places):
        return graph.nothing(graph.type)
    for other, size in enumerate(places):
        if other != axis and size < shape[other]:
            x = graph.part(x, other, 0, size)
    result = tensor_type(element_of(x.type), places)
    return graph.emit("gather", [x, _as_index(graph, index)], result, dim=axis)


_REDUCTIONS = {"add": "sum", "sum": "sum", "multiply": "prod", "prod": "prod", "amax": "max",
               "amin": "min"}  # fmt: skip
_OF_BOOLEANS = {"sum": "max", "prod": "min"}
"""Boolean equivalents of sums and products."""


def _scatter(
    graph: Graph,
    x: SSAValue,
    dim: int,
    index: SSAValue,
    source: Scalar,
    reduce: str | None = None,
    **_: Any,
) -> SSAValue:
    axis = graph.dim(dim, len(shape_of(x.type)))
    places = shape_of(index.type)
    if isinstance(source, SSAValue):
        for other, size in enumerate(places):
            if size < shape_of(source.type)[other]:
                source = graph.part(source, other, 0, size)
        values = graph.typecast(source, element_of(x.type))
    else:
        values = graph.full(places, _number(graph, source), element_of(x.type))
    return _scattered(graph, x, axis, _as_index(graph, index), values, reduce)


def _scattered(
    graph: Graph, x: SSAValue, axis: int, index: SSAValue, values: SSAValue, reduce: str | None
) -> SSAValue:
    attributes: dict[str, Any] = {}
    if reduce is not None:
        if reduce not in _REDUCTIONS:
            raise unsupported_argument("scatter", "reduce", reduce)
        kind = _REDUCTIONS[reduce]
        if kind_of(element_of(x.type)) == "b":
            kind = _OF_BOOLEANS.get(kind, kind)
        attributes["scatter_reduce_type"] = kind
    return graph.emit("scatter", [x, index, values], x.type, dim=axis, **attributes)


def _scatter_reduce(
    graph: Graph,
    x: SSAValue,
    dim: int,
    index: SSAValue,
    source: SSAValue,
    reduce: str,
    *,
    include_self: bool = True,
) -> SSAValue:
    """Scatter reduction of the source, with or without the existing values.

    Elements that no index selects keep their value.
    """
    if include_self and reduce != "mean":
        return _scatter(graph, x, dim, index, source, reduce)
    axis = graph.dim(dim, len(shape_of(x.type)))
    zeros, ones = (graph.full(shape_of(v.type), n, f32) for v, n in ((x, 0.0), (index, 1.0)))
    counts = _scattered(graph, zeros, axis, _as_index(graph, index), ones, "sum")
    own = x
    if not include_self:
        touched = graph.compare("gt", counts, graph.number(0, counts), i1)
        neutral = graph.number(_neutral(reduce, element_of(x.type)), x)
        own = graph.broadcasting("where", touched, neutral, x, element=element_of(x.type))
    if reduce != "mean":
        return _scatter(graph, own, dim, index, source, reduce)
    total = _scatter(graph, own, dim, index, source, "sum")
    counted = graph.like("maximum", counts, graph.number(1, counts)) if not include_self else (
        graph.like("add", counts, graph.number(1, counts))
    )  # fmt: skip
    if kind_of(element_of(x.type)) == "f":
        return graph.like("div", total, graph.typecast(counted, element_of(x.type)))
    return graph.like("floor", graph.like("div", graph.typecast(total, f32), counted))


def _neutral(reduce: str, element: Attribute) -> float:
    """Neutral element of a scatter reduction."""
    if reduce in ("amax", "amin"):
        return limits(element)[reduce == "amin"]
    return 1 if reduce == "prod" else 0


def _number(graph: Graph, value: float) -> float | int:
    return float(value) if kind_of(graph.element) == "f" else int(value)


def _scatter_add(
    graph: Graph, x: SSAValue, dim: int, index: SSAValue, source: SSAValue
) -> SSAValue:
    return _scatter(graph, x, dim, index, source, "add")


def _index_copy(graph: Graph, x: SSAValue, dim: int, index: SSAValue, source: SSAValue) -> SSAValue:
    """Writes source rows at indices of one dimension; in place for a cache that is overwritten."""
    axis = graph.dim(dim, len(shape_of(x.type)))
    if x is graph.overwritten and axis == 2:
        place = _first_position(graph, index)
        entry = graph.typecast(source, element_of(x.type))
        if place is not None and write_cache(graph, x, entry, place):
            return x
    shape = [1] * len(shape_of(x.type))
    (shape[axis],) = shape_of(index.type) or (1,)
    places = graph.reshape(graph.typecast(index, i32), shape)
    places = graph.repeat(places, shape_of(source.type))
    values = graph.typecast(source, element_of(x.type))
    return graph.emit("scatter", [x, places, values], x.type, dim=axis)


def _index_fill(graph: Graph, x: SSAValue, dim: int, index: SSAValue, value: Scalar) -> SSAValue:
    """Fills indices of one dimension with a number; negative ones count from the end."""
    axis, shape = graph.dim(dim, len(shape_of(x.type))), list(shape_of(x.type))
    places = _wrap_negative(graph, index, shape[axis])
    shape[axis] = prod(shape_of(index.type))
    number = graph.typecast(graph.value(value), element_of(x.type))
    return _index_copy(graph, x, axis, places, graph.repeat(graph.aligned(number, shape), shape))


def _first_position(graph: Graph, index: SSAValue) -> SSAValue | int | None:
    """First position of consecutive indices; None unless they are known to count from zero."""
    if prod(shape_of(index.type)) == 1:
        return graph.reshape(graph.typecast(index, i32), [1])
    op = index.owner
    if isinstance(op, CatalogueOp) and op.name == "ttir.arange":
        return 0 if (op.parameter("start"), op.parameter("step")) == (0, 1) else None
    return None


def _index_put(
    graph: Graph,
    x: SSAValue,
    indices: Sequence[SSAValue | None],
    values: SSAValue,
    accumulate: bool = False,
) -> SSAValue:
    """Writes, or accumulates, at the elements that `_index` reads."""
    named = [axis for axis, index in enumerate(indices) if index is not None]
    places = [index for index in indices if index is not None]
    if len(named) == 1 and kind_of(element_of(places[0].type)) == "b":
        return _masked_put(graph, x, places[0], values, accumulate)
    shape = shape_of(x.type)
    order = list(range(len(shape)))
    if not _are_adjacent(named):
        order, named = _named_first(named, x), list(range(len(named)))
    turned = graph.permute(x, order)
    joined, flat = _flatten_indexed(graph, turned, named, places)
    axis, own = named[0], shape_of(joined.type)
    count = prod(shape_of(flat.type))
    wanted = [*own[:axis], *shape_of(flat.type), *own[axis + 1 :]]
    repeated = graph.repeat(graph.aligned(values, wanted), wanted)
    repeated = graph.reshape(repeated, [*own[:axis], count, *own[axis + 1 :]])
    flat = graph.reshape(flat, [count])
    if accumulate:
        sizes = [count if other == axis else 1 for other in range(len(own))]
        at = graph.repeat(graph.reshape(flat, sizes), shape_of(repeated.type))
        written = _scatter(graph, joined, axis, at, repeated, "add")
    else:
        written = _index_copy(graph, joined, axis, flat, repeated)
    back = [order.index(dim) for dim in range(len(shape))]
    return graph.permute(graph.reshape(written, shape_of(turned.type)), back)


def _masked_put(
    graph: Graph, x: SSAValue, mask: SSAValue, values: SSAValue, accumulate: bool
) -> SSAValue:
    shape = shape_of(x.type)
    own = shape_of(mask.type)
    count, rest = prod(own), shape[len(own) :]
    element = element_of(x.type)
    values = graph.typecast(values, element)
    given = shape_of(values.type)
    if len(given) > len(rest) and given[0] != 1:
        # The values in turn: as many as elements of the mask are true.
        order = graph.typecast(graph.reshape(mask, [count]), f32)
        order = graph.emit("cumsum", [order], order.type, dim=0)
        order = graph.like("subtract", order, graph.number(1, order))
        order = graph.like("clamp_scalar", order, min=0.0, max=float(given[0] - 1))
        rows = graph.expanded(values, [given[0], *rest])
        values = _select_rows(graph, rows, 0, graph.typecast(order, i32))
        values = graph.reshape(values, shape)
    else:
        values = graph.aligned(graph.reshape(values, given[max(len(given) - len(rest), 0) :]),
                               shape)  # fmt: skip
    if accumulate:
        sum_ = "logical_or" if kind_of(element) == "b" else "add"
        values = graph.broadcasting(sum_, x, values)
    mask = graph.reshape(mask, [*own, *[1] * len(rest)])
    return graph.emit("where", [mask, values, x], x.type)


def _diagonal(
    graph: Graph, x: SSAValue, offset: int = 0, first: int = 0, second: int = 1
) -> SSAValue:
    """Diagonal of two dimensions, as a last dimension."""
    rank = len(shape_of(x.type))
    axes = [graph.dim(first, rank), graph.dim(second, rank)]
    x = graph.permute(x, [*(axis for axis in range(rank) if axis not in axes), *axes])
    *rest, rows, columns = shape_of(x.type)
    count = graph.shape[-1]
    begin = offset if offset >= 0 else -offset * columns
    places = begin + np.arange(count) * (columns + 1)
    flat = graph.reshape(x, [*rest, rows * columns])
    return _select_rows(graph, flat, rank - 2, graph.constant(places, i32))


def _cross(graph: Graph, x: SSAValue, y: SSAValue, *, dim: int = -1) -> SSAValue:
    """Cross product of 3-vectors: x[1] y[2] - x[2] y[1], ..."""
    axis = graph.dim(dim, len(graph.shape))
    x, y = (graph.expanded(graph.value(v), graph.shape) for v in (x, y))

    def turned(value: SSAValue, first: int) -> SSAValue:
        places = [(first + i) % 3 for i in range(3)]
        return graph.concat([graph.part(value, axis, p, p + 1) for p in places], axis)

    left = graph.like("multiply", turned(x, 1), turned(y, 2))
    return graph.like("subtract", left, graph.like("multiply", turned(x, 2), turned(y, 1)))


def _embedding_bag(
    graph: Graph,
    weight: SSAValue,
    index: SSAValue,
    offsets: SSAValue,
    _scale_by_frequency: bool = False,
    mode: int = 0,
    _sparse: bool = False,
    weights: SSAValue | None = None,
    include_last_offset: bool = False,
    padding: int = -1,
) -> list[SSAValue]:
    """Embedding bags: sums, means or maxima of table rows, over equal lengths or by offsets."""
    (total,) = shape_of(index.type)
    bags, width = graph.shape
    begins = known_elements(offsets)
    length = total // max(bags, 1)
    expected = np.arange(bags + int(include_last_offset)) * length
    if begins is None or length * bags != total or not np.array_equal(begins, expected):
        rows = (graph, weight, index, offsets, weights, ("sum", "mean", "max")[mode])
        return [_bags_from_offsets(*rows, include_last_offset, padding)]
    kind = ("sum", "mean", "max")[mode]
    element = element_of(weight.type)
    rows = tensor_type(element, [bags, length, width])
    places = graph.reshape(_as_index(graph, index), [bags, length])
    found = graph.emit("embedding", [places, weight], rows)
    if weights is not None:
        factors = graph.reshape(graph.typecast(weights, element), [bags, length, 1])
        found = graph.like("multiply", found, factors)
    if padding >= 0:
        return [_without_padding(graph, found, places, padding, kind)]
    return [graph.reduce(kind, found, [1], False)]


def _bags_from_offsets(
    graph: Graph,
    weight: SSAValue,
    index: SSAValue,
    offsets: SSAValue,
    weights: SSAValue | None,
    kind: str,
    has_end: bool,
    padding: int,
) -> SSAValue:
    """Embedding bags by a membership mask; an empty bag is 0."""
    (total,) = shape_of(index.type)
    bags, width = graph.shape
    element = element_of(weight.type)
    if not total or not bags:
        return graph.full(graph.shape, 0.0, element)
    ends = graph.reshape(graph.typecast(offsets, f32), [bags + int(has_end), 1])
    begins = graph.part(ends, 0, 0, bags)
    last = graph.full([1, 1], float(total), f32)
    ends = graph.part(ends, 0, 1, bags + 1) if has_end else (
        graph.concat([graph.part(ends, 0, 1, bags), last], 0) if bags > 1 else last
    )  # fmt: skip
    places = graph.constant(np.arange(total).reshape(1, total), f32)
    chosen = graph.broadcasting(
        "logical_and",
        graph.compare("ge", places, begins, i1),
        graph.compare("lt", places, ends, i1),
        element=i1,
    )
    if padding >= 0:
        kept = graph.reshape(_as_index(graph, index), [1, total])
        kept = graph.compare("ne", kept, graph.number(padding, kept), i1)
        chosen = graph.broadcasting("logical_and", chosen, kept, element=i1)
    rows = tensor_type(element, [total, width])
    found = graph.emit("embedding", [_as_index(graph, index), weight], rows)
    if weights is not None:
        factors = graph.reshape(graph.typecast(weights, element), [total, 1])
        found = graph.broadcasting("multiply", found, factors)
    shares = graph.typecast(chosen, element)
    count = graph.reduce("sum", shares, [1])
    if kind == "max":
        mask = graph.reshape(chosen, [bags, total, 1])
        least = graph.full([1, 1, 1], -inf, element)
        rows = graph.reshape(found, [1, total, width])
        hidden = graph.broadcasting("where", mask, rows, least, element=element)
        greatest = graph.reduce("max", hidden, [1], False)
        empty = graph.compare("eq", count, graph.number(0, count), i1)
        zero = graph.number(0, greatest)
        return graph.broadcasting("where", empty, zero, greatest, element=element)
    sums = graph.emit("matmul", [shares, found], graph.type)
    if kind == "sum":
        return sums
    at_least_one = graph.broadcasting("maximum", count, graph.number(1, count))
    return graph.broadcasting("div", sums, at_least_one)


def _without_padding(
    graph: Graph, rows: SSAValue, places: SSAValue, padding: int, kind: str
) -> SSAValue:
    """Reduces bags of [bags, length, width] rows without the padding index; an empty bag is 0."""
    if kind == "max":
        raise CompileError(
            "maxima over bags with padding are not supported",
            remedy="use the embedding, torch.where and amax",
        )
    column = graph.reshape(places, [*shape_of(places.type), 1])
    counts = graph.compare("ne", column, graph.number(padding, column), i1)
    counts = graph.typecast(counts, element_of(rows.type))
    total = graph.reduce("sum", graph.broadcasting("multiply", rows, counts), [1], False)
    if kind == "sum":
        return total
    count = graph.reduce("sum", counts, [1], False)
    at_least_one = graph.broadcasting("maximum", count, graph.number(1, count))
    return graph.broadcasting("div", total, at_least_one)


def _bucketize(
    graph: Graph, x: Scalar, limits: SSAValue, *, right: bool = False, **_: Any
) -> SSAValue:
    """Counts the boundaries below each element, or up to it with `right`.

    The boundaries are one list, or one per row of elements.
    """
    shape = graph.shape
    *rows, count = shape_of(limits.type)
    x, limits = graph.together(x, limits)
    x = graph.repeat(graph.reshape(x, [*shape, 1]), [*shape, count])
    if rows:
        limits = graph.reshape(limits, [*rows, 1, count])
    limits = graph.expanded(limits, [*shape, count])
    # NaN sorts after all boundaries.
    above = graph.compare("lt" if right else "le", x, limits, i1)
    counts = graph.reduce("sum", graph.typecast(above, f32), [len(shape)], False)
    below = graph.broadcasting("subtract", graph.number(count, counts), counts)
    return graph.typecast(graph.expanded(below, shape), i32)


def _searchsorted(
    graph: Graph,
    limits: SSAValue,
    x: Scalar,
    *,
    right: bool = False,
    side: str | None = None,
    sorter: SSAValue | None = None,
    **_: Any,
) -> SSAValue:
    if sorter is not None:
        ordered = tensor_type(element_of(limits.type), shape_of(limits.type))
        last = len(shape_of(limits.type)) - 1
        limits = graph.emit("gather", [limits, _as_index(graph, sorter)], ordered, dim=last)
    return _bucketize(graph, x, limits, right=right or side == "right")


def _repeat_interleave(
    graph: Graph,
    x: SSAValue,
    repeats: SSAValue | int | None = None,
    dim: int | None = None,
    **_: Any,
) -> SSAValue:
    """Repeats elements by a number or by counts.

    Without either, `x` holds the counts and the result the element indices.
    """
    if repeats is None:
        return _repeated_indices(graph, x, graph.shape[0])
    if dim is None:
        x, dim = graph.reshape(x, [prod(shape_of(x.type))]), 0
    axis = graph.dim(dim, len(graph.shape))
    if isinstance(repeats, int):
        return graph.emit(
            "repeat_interleave", [x], tensor_type(element_of(x.type), graph.shape),
            repeats=repeats, dim=axis,
        )  # fmt: skip
    counts = graph.expanded(repeats, [shape_of(x.type)[axis]])
    return _select_rows(graph, x, axis, _repeated_indices(graph, counts, graph.shape[axis]))


def _repeated_indices(graph: Graph, counts: SSAValue, total: int) -> SSAValue:
    """Index of each of `total` elements repeated by counts: the number of completed runs."""
    ends = graph.typecast(counts, f32)
    ends = graph.emit("cumsum", [ends], ends.type, dim=0)
    wide = [total, shape_of(ends.type)[0]]
    places = graph.reshape(graph.constant(np.arange(total), f32), [total, 1])
    done = graph.compare("ge", graph.repeat(places, wide), graph.expanded(ends, wide), i1)
    return graph.typecast(graph.reduce("sum", graph.typecast(done, f32), [1], False), i32)


RULES: dict[str, Rule] = {
    "embedding": _embedding,
    "_embedding_bag": _embedding_bag,
    "_embedding_bag_forward_only": _embedding_bag,
    "bucketize": _bucketize,
    "diagonal": _diagonal,
    "repeat_interleave": _repeat_interleave,
    "searchsorted": _searchsorted,
    "index_select": _index_select,
    "select": _select,
    "index": _index,
    "gather": _gather,
    "scatter": _scatter,
    "scatter_reduce": _scatter_reduce,
    "linalg_cross": _cross,
    "scatter_add": _scatter_add,
    "index_copy": _index_copy,
    "index_fill": _index_fill,
    "index_put": _index_put,
    "_unsafe_index": _index,
    "_unsafe_index_put": _index_put,
}
"""Rules by operation name, for all overloads."""

RULES.update(
    {
        name: of_scalars(RULES[name])
        for name in """
        index_select gather scatter scatter_reduce scatter_add index_copy index_fill
        """.split()
    }
)
