"""Where a long function is divided: along its layers, where few tensors are alive."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, takewhile

from xdsl.dialects.func import ReturnOp
from xdsl.ir import Operation, SSAValue

from ttcodegen.conversions.interface import Entry
from ttcodegen.conversions.naming import layer
from ttcodegen.conversions.rebuilding import body_of
from ttcodegen.dialects.operation import CatalogueOp

_PARTS = re.compile(r"[./]")

LONGEST = 120
"""The most statements that a function is left with before it is divided."""
SHORTEST = 30
"""The fewest statements that a part has."""


@dataclass(frozen=True)
class Part:
    """Consecutive ops of a function that become a function of their own."""

    ops: tuple[Operation, ...]
    live_in: tuple[SSAValue, ...]
    live_out: tuple[SSAValue, ...]
    title: str | None

    def result_type(self, tensor: str = "ttnn::Tensor") -> str | None:
        """The C++ type of what the part returns, from that of a tensor."""
        if not self.live_out:
            return None
        if len(self.live_out) == 1:
            return tensor
        return f"std::array<{tensor}, {len(self.live_out)}>"


def split(entry: Entry) -> list[Part]:
    """The parts of a function's body, one if it is short."""
    ops = [op for op in body_of(entry.function).ops if isinstance(op, CatalogueOp)]
    return split_ops(ops, lambda: _layers(entry, ops), _returned(entry))


def split_ops(
    ops: Sequence[Operation], layers_of: Callable[[], Sequence[str]], returned: Sequence[SSAValue]
) -> list[Part]:
    """Divides ops into parts; one part if they are few.

    Args:
        ops: what a function does, in order.
        layers_of: gives the layer of each op.
        returned: what the function returns.
    """
    if len(ops) <= LONGEST:
        return [Part(tuple(ops), (), (), None)]
    layers = layers_of()
    made_at: dict[SSAValue, int] = {
        result: index for index, op in enumerate(ops) for result in op.results
    }
    last_use = _last_uses(returned, ops, made_at)
    cuts = _cuts(layers, _alive_counts(made_at, last_use, len(ops)))
    parts: list[Part] = []
    start = 0
    for end in [*cuts, len(ops)]:
        inside = ops[start:end]
        used = dict.fromkeys(operand for op in inside for operand in op.operands)
        live_in = [value for value in used if made_at.get(value, start) < start]
        live_out = [r for op in inside for r in op.results if last_use.get(r, -1) >= end]
        title = _common_layer(layers[start:end])
        parts.append(Part(tuple(inside), tuple(live_in), tuple(live_out), title))
        start = end
    return parts


def _layers(entry: Entry, ops: Sequence[CatalogueOp]) -> list[str]:
    """The layer of each op; one that has none of its own belongs to the layer before it."""
    weights = {port.value: port.name for port in entry.arguments if port.is_weight}
    if entry.load is not None:
        weights.update(zip(entry.load.results, entry.constant_names, strict=True))
    layers: list[str] = []
    for op in ops:
        found = layer(op, weights)
        layers.append(found or (layers[-1] if layers else ""))
    return layers


def _common_parts(first: str, second: str) -> int:
    """How many of their first parts two layers share."""
    pairs = zip(_PARTS.split(first), _PARTS.split(second), strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1] != "", pairs))


def _common_layer(layers: Sequence[str]) -> str | None:
    """What the layers of most ops have in common, None if nothing."""
    counts = Counter(layer for layer in layers if layer)
    if not counts:
        return None
    named = [name for name, count in counts.items() if count * 20 >= len(layers)]
    first, *others = named or list(counts)
    shared = min((_common_parts(first, other) for other in others), default=None)
    if shared is None:
        return first
    return ".".join(_PARTS.split(first)[:shared]) or counts.most_common(1)[0][0]


def _returned(entry: Entry) -> Sequence[SSAValue]:
    terminator = body_of(entry.function).last_op
    assert isinstance(terminator, ReturnOp)
    return terminator.operands


def _last_uses(
    returned: Sequence[SSAValue], ops: Sequence[Operation], made_at: Mapping[SSAValue, int]
) -> dict[SSAValue, int]:
    """For each value the index of the last op that uses it, len(ops) if the function returns it."""
    result = {operand: index for index, op in enumerate(ops) for operand in op.operands}
    result.update((value, len(ops)) for value in returned if value in made_at)
    return result


def _alive_counts(
    made_at: Mapping[SSAValue, int], last_use: Mapping[SSAValue, int], count: int
) -> list[int]:
    """For each position the number of values made before it and used at or behind it."""
    changes = [0] * (count + 2)
    for value, index in made_at.items():
        changes[index + 1] += 1
        changes[max(last_use.get(value, index), index) + 1] -= 1
    return list(accumulate(changes[: count + 1]))


def _cuts(layers: Sequence[str], widths: Sequence[int]) -> list[int]:
    """Cuts at least SHORTEST and at most LONGEST ops apart, each where the fewest tensors are
    alive, and a layer ends if possible."""
    cuts: list[int] = []
    start = 0
    while len(layers) - start > LONGEST:
        window = range(start + SHORTEST, min(start + LONGEST, len(layers) - SHORTEST))

        def cost(position: int) -> tuple[int, int, int]:
            shared = _common_parts(layers[position], layers[position - 1])
            return widths[position], shared, -position

        best = min(window, key=cost)
        cuts.append(best)
        start = best
    return cuts
