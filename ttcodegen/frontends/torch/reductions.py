"""Reductions, softmax, scans, sorting and losses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf, nan, prod
from typing import Any

from xdsl.dialects.builtin import i32, i64
from xdsl.ir import Attribute, SSAValue

from ttcodegen.dialects.core.datatypes import element_of, i1, shape_of, tensor_type
from ttcodegen.frontends.torch.graph import Graph, Rule, kind_of, of_scalars

__all__ = [
    "RULES",
    "i1",
]


# Reductions, softmax, sums along a dimension, sorting.

Dims = int | Sequence[int] | None


def _reduction(name: str) -> Rule:
    """Makes the rule of a reduction over some or all dimensions, in the result's element type."""

    def rule(graph: Graph, x: SSAValue, dim: Dims = None, keep: bool = False, **_: Any) -> SSAValue:
        x = graph.value(x)
        return graph.reduced(name, x, graph.dims(dim, x), keep)

    return rule


def _truth(name: str) -> Rule:
    def rule(graph: Graph, x: SSAValue, dim: Dims = None, keep: bool = False) -> SSAValue:
        x = graph.logical(x)
        if dim is not None and not isinstance(dim, int) and not dim:
            return x if shape_of(x.type) == graph.shape else graph.reduced(
                name, x, graph.dims(None, x), keep
            )  # fmt: skip
        return graph.reduced(name, x, graph.dims(dim, x), keep)

    return rule


def _place(name: str) -> Rule:
    """Makes the rule of argmax or argmin, over all elements without a dimension."""

    def rule(graph: Graph, x: SSAValue, dim: int | None = None, keep: bool = False) -> SSAValue:
        return place(graph, x, name, dim, keep)

    return rule


def place(graph: Graph, x: SSAValue, name: str, dim: int | None, keep: bool) -> SSAValue:
    """Index of the maximum (`max`) or minimum (`min`)."""
    if dim is None:
        x = graph.reshape(x, [_count(x)])
    axis = graph.dim(dim or 0, len(shape_of(x.type)))
    if name == "min":
        x = _reverse_order(graph, x)
    shape = [
        1 if index == axis else size
        for index, size in enumerate(shape_of(x.type))
        if keep or index != axis
    ]
    return graph.emit("argmax", [x], tensor_type(i32, shape), dim_arg=[axis], keep_dim=keep)


def _reverse_order(graph: Graph, x: SSAValue) -> SSAValue:
    """Reverses the order of elements: negates floats, inverts all bits of integers.

    The lowest integer has no negative.
    """
    kind = kind_of(element_of(x.type))
    if kind == "f":
        return graph.like("neg", x)
    if element_of(x.type) != i64:
        x = graph.typecast(x, i32)
    return graph.like("bitwise_not", x)


def _count(x: SSAValue) -> int:
    count = 1
    for size in shape_of(x.type):
        count *= size
    return count


def _extreme(name: str) -> Rule:
    """Makes the rule of max or min; with a dimension, the index is a second result."""

    def rule(
        graph: Graph, x: SSAValue, dim: Dims = None, keep: bool = False
    ) -> SSAValue | list[SSAValue]:
        if isinstance(dim, SSAValue):
            return graph.apply(f"{name}imum", x, dim)
        value = graph.reduced(name, x, graph.dims(dim, x), keep)
        if len(graph.results) == 1:
            return value
        assert isinstance(dim, int)
        return [value, place(graph, x, name, dim, keep)]

    return rule


def _softmax(graph: Graph, x: SSAValue, dim: int, *_: Any, **__: Any) -> SSAValue:
    x = graph.value(x)
    return graph.like(
        "softmax", x, dimension=graph.dim(dim, len(shape_of(x.type))), numericStable=True
    )


def _safe_softmax(graph: Graph, x: SSAValue, dim: int, *_: Any, **__: Any) -> SSAValue:
    """Softmax that is 0 where all elements are -inf."""
    x = graph.value(x)
    axis = graph.dim(dim, len(shape_of(x.type)))
    shares = graph.like("softmax", x, dimension=axis, numericStable=True)
    top = graph.reduced("max", x, [axis], True)
    hidden = graph.compare("eq", top, graph.number(-inf, top), i1)
    zero = graph.number(0, x)
    return graph.broadcasting("where", hidden, zero, shares, element=element_of(x.type))


def _log_softmax(graph: Graph, x: SSAValue, dim: int, *_: Any, **__: Any) -> SSAValue:
    """Log-softmax after subtracting the maximum."""
    x = graph.value(x)
    axis = [graph.dim(dim, len(shape_of(x.type)))]
    centred = graph.broadcasting("subtract", x, graph.reduced("max", x, axis, True))
    total = graph.reduced("sum", graph.like("exp", centred), axis, True)
    return graph.broadcasting("subtract", centred, graph.like("log", total))


def _logsumexp(graph: Graph, x: SSAValue, dim: Dims, keep: bool = False) -> SSAValue:
    x = graph.value(x)
    axes = graph.dims(dim, x)
    top = _finite_or_zero(graph, graph.reduced("max", x, axes, True))
    exponentials = graph.like("exp", graph.broadcasting("subtract", x, top))
    total = graph.like("log", graph.reduced("sum", exponentials, axes, True))
    return graph.reshape(graph.like("add", total, top), graph.shape)


def _finite_or_zero(graph: Graph, top: SSAValue) -> SSAValue:
    """Replaces infinite maxima by 0, as inf - inf is NaN."""
    zero = graph.full(shape_of(top.type), 0.0, element_of(top.type))
    is_finite = graph.like("isfinite", top, element=i1)
    return graph.emit("where", [is_finite, top, zero], top.type)


def _variance(
    graph: Graph, x: SSAValue, dim: Dims = None, correction: Any = 1, keepdim: bool = False
) -> tuple[SSAValue, SSAValue]:
    """Variance with Bessel's correction, and mean, with the dimensions kept."""
    axes = graph.dims(dim, x)
    mean = graph.reduced("mean", x, axes, True)
    squares = graph.like("square", graph.broadcasting("subtract", x, mean))
    count = 1
    for axis in axes:
        count *= shape_of(x.type)[axis]
    variance = graph.reduced("mean", squares, axes, True)
    bessel = 1 if correction is None else correction
    if bessel:
        # Too few elements give NaN, or infinity where they differ.
        rest = count - bessel
        factor = count / rest if rest > 0 else inf
        variance = graph.like("multiply", variance, graph.number(factor, variance))
    return variance, mean


def _variance_or_deviation(root: bool) -> Rule:
    def rule(graph: Graph, x: SSAValue, *arguments: Any, **named: Any) -> SSAValue:
        variance, _ = _variance(graph, x, **_variance_arguments(arguments, named))
        return graph.reshape(graph.like("sqrt", variance) if root else variance, graph.shape)

    return rule


def _variance_arguments(arguments: Sequence[Any], named: dict[str, Any]) -> dict[str, Any]:
    """Normalizes the overloads (unbiased), (dim, unbiased, keepdim) and (dim, correction,
    keepdim)."""
    if arguments and isinstance(arguments[0], bool):
        return {"correction": int(arguments[0])}
    known: dict[str, Any] = dict(named)
    if "unbiased" in known:
        known["correction"] = int(known.pop("unbiased"))
    known |= dict(zip(("dim", "correction", "keepdim"), arguments, strict=False))
    return known


def _variance_and_mean(graph: Graph, x: SSAValue, *arguments: Any, **named: Any) -> list[SSAValue]:
    variance, mean = _variance(graph, x, **_variance_arguments(arguments, named))
    return [graph.reshape(v, graph.shape) for v in (variance, mean)]


def _deviation_and_mean(graph: Graph, x: SSAValue, *arguments: Any, **named: Any) -> list[SSAValue]:
    variance, mean = _variance(graph, x, **_variance_arguments(arguments, named))
    return [graph.reshape(v, graph.shape) for v in (graph.like("sqrt", variance), mean)]


def _norm(graph: Graph, x: SSAValue, order: Any = 2, dim: Dims = None, keep: bool = False,
          *_: Any, **__: Any) -> SSAValue:  # fmt: skip
    axes = graph.dims(dim, x)
    x = graph.value(x)
    if order in (None, 2):
        return graph.like("sqrt", graph.reduced("sum", graph.like("square", x), axes, keep))
    size = graph.like("abs", x)
    if order in (inf, -inf):
        return graph.reduced("max" if order > 0 else "min", size, axes, keep)
    if order == 0:
        nonzero = graph.compare("ne", x, graph.number(0, x), i1)
        return graph.reduced("sum", graph.typecast(nonzero, element_of(x.type)), axes, keep)
    if order == 1:
        return graph.reduced("sum", size, axes, keep)
    powers = graph.broadcasting("pow", size, graph.number(order, x))
    total = graph.reduced("sum", powers, axes, keep)
    return graph.broadcasting("pow", total, graph.number(1 / order, total))


def _running(name: str) -> Rule:
    def rule(graph: Graph, x: SSAValue, dim: int, **_: Any) -> SSAValue:
        x = graph.value(x)
        return graph.like(name, x, dim=graph.dim(dim, len(shape_of(x.type))))

    return rule


Combine = Callable[[Sequence[SSAValue], Sequence[SSAValue]], Sequence[SSAValue]]


def _scan(
    graph: Graph, values: Sequence[SSAValue], axis: int, combine: Combine
) -> Sequence[SSAValue]:
    """Scans an associative operation in logarithmically many steps."""
    size = shape_of(values[0].type)[axis]
    distance = 1
    while distance < size:
        done = [graph.part(value, axis, 0, distance) for value in values]
        earlier = [graph.part(value, axis, 0, size - distance) for value in values]
        own = [graph.part(value, axis, distance, size) for value in values]
        both = zip(done, combine(earlier, own), strict=True)
        values = [graph.concat(parts, axis) for parts in both]
        distance *= 2
    return values


def _running_extreme(name: str) -> Rule:
    """Makes the rule of a cumulative maximum or minimum, with the last index of each."""

    def rule(graph: Graph, x: SSAValue, dim: int) -> Sequence[SSAValue]:
        shape = shape_of(x.type)
        axis = graph.dim(dim, len(shape))
        sizes = [size if other == axis else 1 for other, size in enumerate(shape)]
        places = graph.emit("arange", [], tensor_type(i32, sizes), start=0, end=sizes[axis],
                            step=1, arange_dimension=axis)  # fmt: skip
        places = graph.repeat(places, shape)

        def later(first: Sequence[SSAValue], second: Sequence[SSAValue]) -> list[SSAValue]:
            is_first = _precedes(graph, name, first[0], second[0])
            return [
                graph.emit("where", [is_first, before, own], own.type)
                for before, own in zip(first, second, strict=True)
            ]

        return _scan(graph, [x, places], axis, later)

    return rule


def _precedes(graph: Graph, name: str, first: SSAValue, second: SSAValue) -> SSAValue:
    """Mask where only the first element is the extreme, which NaN always is."""
    if kind_of(element_of(first.type)) != "f":
        return graph.compare("gt" if name == "max" else "lt", first, second, i1)
    is_number = graph.compare("eq", second, second, i1)
    takes_over = graph.compare("ge" if name == "max" else "le", second, first, i1)
    stays = graph.like("logical_not", takes_over)
    return graph.like("logical_and", is_number, stays)


def _running_logsumexp(graph: Graph, x: SSAValue, dim: int) -> SSAValue:
    def together(first: Sequence[SSAValue], second: Sequence[SSAValue]) -> list[SSAValue]:
        top = _finite_or_zero(graph, graph.like("maximum", first[0], second[0]))
        parts = [graph.like("exp", graph.like("subtract", v[0], top)) for v in (first, second)]
        return [graph.like("add", top, graph.like("log", graph.like("add", *parts)))]

    x = graph.value(x)
    axis = graph.dim(dim, len(shape_of(x.type)))
    return _scan(graph, [x], axis, together)[0]


def _topk(
    graph: Graph, x: SSAValue, k: int, dim: int = -1, largest: bool = True, sorted: bool = True
) -> Sequence[SSAValue]:
    types: list[Attribute] = [graph.results[0], tensor_type(i32, graph.shape)]
    axis = graph.dim(dim, len(shape_of(x.type)))
    op = graph.emit_op("topk", [x], types, k=k, dim=axis, largest=largest, sorted=sorted)
    return op.results


def _sort(
    graph: Graph, x: SSAValue, dim: int = -1, descending: bool = False, **_: Any
) -> list[SSAValue]:
    return _sorted(graph, x, dim, descending)


def _stable_sort(
    graph: Graph, x: SSAValue, stable: bool | None, dim: int = -1, descending: bool = False
) -> list[SSAValue]:
    return _sorted(graph, x, dim, descending, bool(stable))


def _sorted(
    graph: Graph, x: SSAValue, dim: int, descending: bool, stable: bool = False
) -> list[SSAValue]:
    shape = shape_of(x.type)
    op = graph.emit_op(
        "sort",
        [x],
        [x.type, tensor_type(i32, shape)],
        dim=graph.dim(dim, len(shape)),
        descending=descending,
        stable=stable,
    )
    return list(op.results)


def _argsort(graph: Graph, x: SSAValue, dim: int = -1, descending: bool = False) -> SSAValue:
    return _sorted(graph, x, dim, descending)[1]


def _median(graph: Graph, x: SSAValue, dim: int, keep: bool = False) -> list[SSAValue]:
    """Lower median and its index; NaN if any element is."""
    axis = graph.dim(dim, len(shape_of(x.type)))
    found = _nth(graph, x, (shape_of(x.type)[axis] - 1) // 2, axis, keep)
    element = element_of(x.type)
    if kind_of(element) != "f":
        return found
    unordered = graph.compare("ne", x, x, i1)
    is_any = graph.reduced("reduce_or", unordered, [axis], keep)
    first = place(graph, graph.typecast(unordered, element), "max", axis, keep)
    choices = zip((graph.number(nan, found[0]), first), found, strict=True)
    return [
        graph.broadcasting("where", is_any, special, usual, element=element_of(usual.type))
        for special, usual in choices
    ]


def _kth_value(
    graph: Graph, x: SSAValue, k: int, dim: int = -1, keep: bool = False
) -> list[SSAValue]:
    return _nth(graph, x, k - 1, graph.dim(dim, len(shape_of(x.type))), keep)


def _nth(graph: Graph, x: SSAValue, place: int, axis: int, keep: bool) -> list[SSAValue]:
    found = [graph.part(each, axis, place, place + 1) for each in _sorted(graph, x, axis, False)]
    if keep:
        return found
    shape = shape_of(x.type)
    return [graph.reshape(each, [*shape[:axis], *shape[axis + 1 :]]) for each in found]


def _mean(graph: Graph, x: SSAValue, dim: Dims = None, keep: bool = False, **_: Any) -> SSAValue:
    x = graph.value(x)
    return graph.reduced("mean", x, graph.dims(dim, x), keep)


def _sum(graph: Graph, x: SSAValue, dim: Dims = None, keep: bool = False, **_: Any) -> SSAValue:
    if kind_of(element_of(x.type)) == "b":
        x = graph.typecast(x, graph.element)
    return _mean_like("sum", graph, x, dim, keep)


def _mean_like(name: str, graph: Graph, x: SSAValue, dim: Dims, keep: bool) -> SSAValue:
    x = graph.value(x)
    return graph.reduced(name, x, graph.dims(dim, x), keep)


RULES: dict[str, Rule] = {
    "sum": _sum,
    "mean": _mean,
    "prod": _reduction("prod"),
    "amax": _reduction("max"),
    "amin": _reduction("min"),
    "max": _extreme("max"),
    "min": _extreme("min"),
    "any": _truth("reduce_or"),
    "all": _truth("reduce_and"),
    "argmax": _place("max"),
    "argmin": _place("min"),
    "softmax": _softmax,
    "_softmax": _softmax,
    "_safe_softmax": _safe_softmax,
    "log_softmax": _log_softmax,
    "_log_softmax": _log_softmax,
    "logsumexp": _logsumexp,
    "var": _variance_or_deviation(root=False),
    "std": _variance_or_deviation(root=True),
    "var_mean": _variance_and_mean,
    "std_mean": _deviation_and_mean,
    "linalg_vector_norm": _norm,
    "norm": _norm,
    "cumsum": _running("cumsum"),
    "cumprod": _running("cumprod"),
    "cummax": _running_extreme("max"),
    "cummin": _running_extreme("min"),
    "logcumsumexp": _running_logsumexp,
    "topk": _topk,
    "sort": _sort,
    "sort.stable": _stable_sort,
    "argsort": _argsort,
    "median.dim": _median,
    "kthvalue": _kth_value,
}
"""Rules by operation name, for all overloads or for one."""

RULES.update(
    {
        name: of_scalars(RULES[name])
        for name in """
    max min argmax argmin softmax _softmax _safe_softmax log_softmax _log_softmax logsumexp var std
    var_mean std_mean cumsum cumprod cummax cummin logcumsumexp topk sort sort.stable argsort
    median.dim kthvalue
    """.split()
    }
)


# Losses, which some models give next to what they predict.

_NONE, _MEAN = 0, 1
"""Reduction codes of ATen."""


def _negative_log_likelihood(
    graph: Graph,
    scores: SSAValue,
    target: SSAValue,
    weight: SSAValue | None = None,
    reduction: int = _MEAN,
    ignore_index: int = -100,
) -> SSAValue:
    """Negative log-likelihood of the target class, [samples, classes, ...] or [classes].

    Samples of the class `ignore_index` are ignored.
    """
    rank = len(shape_of(scores.type))
    if rank > 2:
        scores = graph.permute(scores, [0, *range(2, rank), 1])
    classes = shape_of(scores.type)[-1]
    samples = prod(shape_of(target.type))
    scores = graph.reshape(scores, [samples, classes])
    element = element_of(scores.type)
    target = graph.reshape(graph.typecast(target, i32), [samples, 1])
    counted = graph.compare("ne", target, graph.number(ignore_index, target), i1)
    place = target
    if not 0 <= ignore_index < classes:
        place = graph.emit("where", [counted, target, graph.full([1, 1], 0, i32)], target.type)
    column = tensor_type(element, [samples, 1])
    found = graph.emit("gather", [scores, place], column, dim=1)
    shares = graph.typecast(counted, element)
    if weight is not None:
        table = graph.reshape(graph.typecast(weight, element), [1, classes])
        table = graph.repeat(table, [samples, classes])
        own = graph.emit("gather", [table, place], column, dim=1)
        shares = graph.like("multiply", own, shares)
    losses = graph.like("neg", graph.like("multiply", found, shares))
    if reduction == _NONE:
        return graph.reshape(losses, graph.shape)
    total = graph.reduce("sum", losses, [0, 1], False)
    if reduction == _MEAN:
        total = graph.like("div", total, graph.reduce("sum", shares, [0, 1], False))
    return graph.reshape(total, graph.shape)


def _with_weight(
    graph: Graph,
    scores: SSAValue,
    target: SSAValue,
    weight: SSAValue | None,
    reduction: int,
    ignore_index: int,
) -> list[SSAValue]:
    """Drops the total weight, a second result that is rarely used."""
    return [_negative_log_likelihood(graph, scores, target, weight, reduction, ignore_index)]


LOSS_RULES: dict[str, Rule] = {
    "nll_loss": _negative_log_likelihood,
    "nll_loss_nd": _negative_log_likelihood,
    "nll_loss2d": _negative_log_likelihood,
    "nll_loss_forward": _with_weight,
    "nll_loss2d_forward": _with_weight,
}
"""Rules by operation name, for all overloads."""
