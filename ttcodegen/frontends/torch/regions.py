"""Operations of PyTorch that hold graphs of their own: regions under a setting, branches, loops.

Regions become part of the graph around them, loops the repetition of their body, or functions of
their own where only the device knows the trip count; of branches that are chosen at run time both
are computed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from xdsl.ir import SSAValue

from ttcodegen.dialects.core.datatypes import element_of, i1, shape_of
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.frontends.torch.graph import Graph
from ttcodegen.transforms.evaluation import known_elements

Region = Callable[[Any, Sequence[Any]], list[Any]]
"""Translates a graph of an operation with these values for its arguments; gives what it returns."""
RegionRule = Callable[..., list[Any]]
"""Gets the graph that is made, what translates graphs, and the arguments of an operation; gives its
results."""

MOST_ITERATIONS = 4096
"""Upper bound on the unrolled iterations of a loop."""
CHECKS = frozenset({"_assert_async", "_assert_scalar", "_assert_tensor_metadata",
                    "_linalg_check_errors", "sym_constrain_range",
                    "sym_constrain_range_for_size"})  # fmt: skip
"""Runtime checks of torch programs that a graph of fixed shapes satisfies."""


def _under_gradients(_: Graph, region: Region, __: bool, inside: Any, *operands: Any) -> list[Any]:
    return region(inside, operands)


def _under_autocast(
    _: Graph, region: Region, device: str, dtype: Any, is_on: bool, __: Any, inside: Any,
    *operands: Any,
) -> list[Any]:  # fmt: skip
    """Conversions of an autocast that is on are part of the graph before it is translated."""
    return region(inside, operands)


def _called(_: Graph, region: Region, inside: Any, *operands: Any) -> list[Any]:
    return region(inside, operands)


def _named(_: Graph, region: Region, inside: Any, __: Any, *operands: Any) -> list[Any]:
    return region(inside, operands)


def _with_hints(
    _: Graph, region: Region, inside: Any, operands: Sequence[Any], *__: Any
) -> list[Any]:
    return region(inside, operands)


def _cond(
    graph: Graph,
    region: Region,
    predicate: SSAValue | bool,
    first: Any,
    second: Any,
    operands: Sequence[Any],
) -> list[Any]:
    if not isinstance(predicate, SSAValue):
        return region(first if predicate else second, operands)
    known = known_elements(predicate)
    if known is not None:
        return region(first if known.all() else second, operands)
    origin = graph.origin
    branches = [region(inside, operands) for inside in (first, second)]
    graph.origin = origin
    return [_chosen(graph, predicate, *pair) for pair in zip(*branches, strict=True)]


def _chosen(
    graph: Graph, predicate: SSAValue, first: SSAValue | None, second: SSAValue | None
) -> SSAValue | None:
    if first is None or second is None or first is second:
        return first
    shape = shape_of(first.type)
    one = graph.reshape(graph.typecast(predicate, i1), [1] * len(shape))
    return graph.emit("where", [graph.repeat(one, shape), first, second], first.type)


def _while_loop(
    graph: Graph,
    region: Region,
    condition: Any,
    body: Any,
    carried: Sequence[Any],
    others: Sequence[Any] = (),
) -> list[Any]:
    values = list(carried)
    for _ in range(MOST_ITERATIONS + 1):
        found: list[SSAValue | bool] = region(condition, [*values, *others])
        (going,) = found
        if isinstance(going, SSAValue):
            known = known_elements(going)
            if known is None:
                break
            going = bool(known.all())
        if not going:
            return values
        values = [_settled(graph, value) for value in region(body, [*values, *others])]

    def iterate(values: Sequence[SSAValue]) -> Sequence[SSAValue]:
        following = region(body, [*values, *others])
        return [holds(following), *following]

    def holds(values: Sequence[Any]) -> SSAValue:
        found: list[SSAValue | bool] = region(condition, [*values, *others])
        (going,) = found
        return going if isinstance(going, SSAValue) else graph.full([], float(going), i1)

    if graph.make_loop is None or not all(isinstance(value, SSAValue) for value in carried):
        raise CompileError(
            "the trip count of the loop is only known at run time, and it carries numbers that are "
            "no tensors",
            remedy="give the loop tensors, or a fixed length",
        )
    return list(graph.make_loop(holds(carried), list(carried), iterate))


def _too_long() -> CompileError:
    return CompileError(
        f"the loop runs more than {MOST_ITERATIONS} times, and its body would be repeated as often",
        remedy="compile the body of the loop, and call it from a loop of your own",
    )


def _settled(graph: Graph, value: SSAValue | None) -> SSAValue | None:
    """A counter as the number that it is, so that it is not counted up at run time."""
    if value is None or shape_of(value.type):
        return value
    known = known_elements(value)
    if known is None or getattr(value.owner, "name", "") == "ttir.constant":
        return value
    return graph.constant(known, element_of(value.type))


def _scan(
    graph: Graph,
    region: Region,
    body: Any,
    carried: Sequence[Any],
    rows: Sequence[SSAValue],
    others: Sequence[Any] = (),
) -> list[Any]:
    """The body for each row after the other: what it carries at last, and what it gives for each,
    stacked."""
    values = list(carried)
    given: list[list[Any]] = []
    for inputs in _rows(graph, rows):
        found = region(body, [*values, *inputs, *others])
        values = found[: len(values)]
        given.append(found[len(values) :])
    return [*values, *_stacked(graph, given)]


def _map(
    graph: Graph, region: Region, body: Any, rows: Sequence[SSAValue], others: Sequence[Any] = ()
) -> list[Any]:
    return _stacked(
        graph, [region(body, [*inputs, *others]) for inputs in _rows(graph, rows)]
    )  # fmt: skip


def _rows(graph: Graph, values: Sequence[SSAValue]) -> list[list[SSAValue]]:
    """The rows of tensors of as many rows each, without their dimension."""
    count = shape_of(values[0].type)[0]
    if count > MOST_ITERATIONS:
        raise _too_long()
    return [
        [graph.reshape(graph.part(v, 0, i, i + 1), shape_of(v.type)[1:]) for v in values]
        for i in range(count)
    ]


def _stacked(graph: Graph, rows: Sequence[Sequence[SSAValue]]) -> list[SSAValue]:
    columns = zip(*rows, strict=True)
    return [
        graph.concat([graph.reshape(v, [1, *shape_of(v.type)]) for v in column], 0)
        for column in columns
    ]


REGION_RULES: Mapping[str, RegionRule] = {
    "cond": _cond,
    "hints_wrapper": _with_hints,
    "invoke_subgraph": _named,
    "map_impl": _map,
    "scan": _scan,
    "strict_mode": _with_hints,
    "tag_activation_checkpoint": _called,
    "while_loop": _while_loop,
    "wrap": _called,
    "wrap_activation_checkpoint": _called,
    "wrap_with_autocast": _under_autocast,
    "wrap_with_set_grad_enabled": _under_gradients,
}
"""By the names of the operations."""
