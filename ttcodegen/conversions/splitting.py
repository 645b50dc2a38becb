"""Where a long function is divided: along its layers, where few tensors are alive."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise, takewhile
from typing import Generic, Protocol, TypeVar

from xdsl.ir import Operation, SSAValue

_PARTS = re.compile(r"[./]")

LONGEST = 95
"""The most lines that a function is left with before it is divided."""
SHORTEST = 25
"""The fewest lines that a part has."""


class Unit(Protocol):
    """What is divided: a statement, or an op."""

    @property
    def op(self) -> Operation: ...

    @property
    def uses(self) -> Sequence[SSAValue]: ...

    @property
    def results(self) -> Sequence[SSAValue]: ...


U = TypeVar("U", bound=Unit)
T = TypeVar("T")


@dataclass(frozen=True)
class Part(Generic[U]):
    """Consecutive statements of a function that become a function of their own."""

    statements: tuple[U, ...]
    live_in: tuple[SSAValue, ...]
    live_out: tuple[SSAValue, ...]
    dying: frozenset[SSAValue]
    """Those that come in and that nothing after the part uses."""
    title: str | None

    def result_type(self, tensor: str = "ttnn::Tensor") -> str | None:
        """The C++ type of what the part returns, from that of a tensor."""
        if not self.live_out:
            return None
        if len(self.live_out) == 1:
            return tensor
        return f"std::array<{tensor}, {len(self.live_out)}>"


def split(
    statements: Sequence[U],
    layers_of: Callable[[], Sequence[str]],
    returned: Sequence[SSAValue],
    lines_of: Callable[[U], int] = lambda _: 1,
) -> list[Part[U]]:
    """Divides the statements of a function into parts; one part if they are few.

    Args:
        statements: what a function does, in order.
        layers_of: gives the layer of each statement.
        returned: what the function returns.
        lines_of: how many lines a statement takes.
    """
    ends = list(accumulate(map(lines_of, statements)))
    if not ends or ends[-1] <= LONGEST:
        return [Part(tuple(statements), (), (), frozenset(), None)]
    layers = layers_of()
    made_at = made_by(statements)
    last_use = last_uses(returned, statements, made_at)
    joined = [False, *(unit.op is last.op for last, unit in pairwise(statements))]
    cuts = _cuts(layers, alive_counts(made_at, last_use, len(statements)), ends, joined)
    parts: list[Part[U]] = []
    start = 0
    for end in [*cuts, len(statements)]:
        inside = statements[start:end]
        used = dict.fromkeys(value for unit in inside for value in unit.uses)
        live_in = [value for value in used if made_at.get(value, start) < start]
        live_out = [r for unit in inside for r in unit.results if last_use.get(r, -1) >= end]
        dying = frozenset(value for value in live_in if last_use[value] < end)
        title = common_layer(layers[start:end])
        parts.append(Part(tuple(inside), tuple(live_in), tuple(live_out), dying, title))
        start = end
    return parts


def layers_of(units: Iterable[T], found: Callable[[T], str | None]) -> list[str]:
    """The layer of each unit; one that has none of its own belongs to the layer before it."""
    layers: list[str] = []
    for unit in units:
        layers.append(found(unit) or (layers[-1] if layers else ""))
    return layers


def _common_parts(first: str, second: str) -> int:
    """How many of their first parts two layers share."""
    pairs = zip(_PARTS.split(first), _PARTS.split(second), strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1] != "", pairs))


def common_layer(layers: Sequence[str]) -> str | None:
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


def made_by(units: Sequence[Unit]) -> dict[SSAValue, int]:
    """For each value the index of the statement that makes it."""
    return {result: index for index, unit in enumerate(units) for result in unit.results}


def last_uses(
    returned: Sequence[SSAValue], units: Sequence[Unit], made_at: Mapping[SSAValue, int]
) -> dict[SSAValue, int]:
    """For each value the index of the last statement that uses it, their number if the function
    returns it."""
    result = {value: index for index, unit in enumerate(units) for value in unit.uses}
    result.update((value, len(units)) for value in returned if value in made_at)
    return result


def alive_counts(
    made_at: Mapping[SSAValue, int], last_use: Mapping[SSAValue, int], count: int
) -> list[int]:
    """For each position the number of values made before it and used at or after it."""
    changes = [0] * (count + 2)
    for value, index in made_at.items():
        changes[index + 1] += 1
        changes[max(last_use.get(value, index), index) + 1] -= 1
    return list(accumulate(changes[: count + 1]))


def _cuts(
    layers: Sequence[str], widths: Sequence[int], ends: Sequence[int], joined: Sequence[bool]
) -> list[int]:
    """Cuts at least SHORTEST and at most LONGEST lines apart, each where the fewest tensors are
    alive, and a layer ends if possible. `ends` are the lines up to the end of each statement;
    `joined` are statements that take another result of the call of the statement before them."""
    cuts: list[int] = []
    start = 0
    while True:
        before = ends[start - 1] if start else 0
        if ends[-1] - before <= LONGEST:
            return cuts
        low = bisect_left(ends, before + SHORTEST) + 1
        high = bisect_right(ends, min(before + LONGEST, ends[-1] - SHORTEST))
        window = range(max(low, start + 1), max(high, low, start + 1) + 1)

        def cost(position: int) -> tuple[int, int, int]:
            shared = _common_parts(layers[position], layers[position - 1])
            return widths[position], shared, -position

        inside = [position for position in window if position < len(ends) and not joined[position]]
        if not inside:
            return cuts
        best = min(inside, key=cost)
        cuts.append(best)
        start = best
