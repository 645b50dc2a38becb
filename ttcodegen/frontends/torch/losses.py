"""Losses, which some models give next to what they predict."""

from __future__ import annotations

from math import prod

from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue

from ttcodegen.dialects.core.datatypes import element_of, i1, shape_of, tensor_type
from ttcodegen.frontends.torch.graph import Graph, Rule

_NONE, _MEAN = 0, 1
"""Of the reductions of ATen."""


def _negative_log_likelihood(
    graph: Graph,
    scores: SSAValue,
    target: SSAValue,
    weight: SSAValue | None = None,
    reduction: int = _MEAN,
    ignore_index: int = -100,
) -> SSAValue:
    """Less the score of the class that is right, [samples, classes, ...] or [classes]; samples of
    the class `ignore_index` count nothing."""
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
    """The form that gives the total of weights as well, which is rarely used."""
    return [_negative_log_likelihood(graph, scores, target, weight, reduction, ignore_index)]


RULES: dict[str, Rule] = {
    "nll_loss": _negative_log_likelihood,
    "nll_loss_nd": _negative_log_likelihood,
    "nll_loss2d": _negative_log_likelihood,
    "nll_loss_forward": _with_weight,
    "nll_loss2d_forward": _with_weight,
}
"""Operations by their names, for all their overloads."""
