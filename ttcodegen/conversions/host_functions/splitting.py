"""Where a long function is divided: along its layers, where few tensors are alive."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from xdsl.ir import SSAValue

from ttcodegen.conversions.host_functions.recording import Statement
from ttcodegen.naming.functions import part_title
from ttcodegen.naming.layers import common_parts

LONGEST = 95
"""The most lines that a function is left with before it is divided, without comments."""
LONGEST_WITH_COMMENTS = 110
"""The same with the names of its layers, each a comment after an empty line."""
_TITLE_LINES = 2
SHORTEST = 25
"""The fewest lines that a part has."""


@dataclass(frozen=True)
class Part:
    """Consecutive statements of a function that become a function of their own."""

    statements: tuple[Statement, ...]
    live_in: tuple[SSAValue, ...]
    live_out: tuple[SSAValue, ...]
    dying: frozenset[SSAValue]
    """Those that come in and that nothing after the part uses."""
    title: str | None


def split(
    statements: Sequence[Statement],
    layers_of: Callable[[], Sequence[str]],
    returned: Sequence[SSAValue],
    lines_of: Callable[[Statement], int],
) -> list[Part]:
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
    titled = [layer != before for before, layer in pairwise(["", *layers])]
    ends = [end + _TITLE_LINES * title for end, title in zip(ends, accumulate(titled), strict=True)]
    made_at = made_by(statements)
    last_use = last_uses(returned, statements, made_at)
    joined = [False, *(statement.op is last.op for last, statement in pairwise(statements))]
    alive = alive_counts(made_at, last_use, len(statements))
    parts: list[Part] = []
    start = 0
    for end in [*cuts(layers, ends, alive, joined, LONGEST_WITH_COMMENTS), len(statements)]:
        inside = statements[start:end]
        used = dict.fromkeys(value for statement in inside for value in statement.uses)
        live_in = [value for value in used if made_at.get(value, start) < start]
        live_out = [
            r for statement in inside for r in statement.results if last_use.get(r, -1) >= end
        ]
        dying = frozenset(value for value in live_in if last_use[value] < end)
        # Statements without a layer of their own were given that of the part before.
        new = [layer for layer in layers[start:end] if not start or layer != layers[start - 1]]
        title = part_title(new or layers[start:end])
        parts.append(Part(tuple(inside), tuple(live_in), tuple(live_out), dying, title))
        start = end
    return parts


def layers_of(
    statements: Iterable[Statement], found: Callable[[Statement], str | None]
) -> list[str]:
    """The layer of each statement; one that has none of its own belongs to the layer before it."""
    layers: list[str] = []
    for statement in statements:
        layers.append(found(statement) or (layers[-1] if layers else ""))
    return layers


def made_by(statements: Sequence[Statement]) -> dict[SSAValue, int]:
    """For each value the index of the statement that makes it."""
    return {
        result: index for index, statement in enumerate(statements) for result in statement.results
    }


def last_uses(
    returned: Sequence[SSAValue], statements: Sequence[Statement], made_at: Mapping[SSAValue, int]
) -> dict[SSAValue, int]:
    """For each value the index of the last statement that uses it, their number if the function
    returns it."""
    result = {
        value: index for index, statement in enumerate(statements) for value in statement.uses
    }
    result.update((value, len(statements)) for value in returned if value in made_at)
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


def cuts(
    layers: Sequence[str],
    ends: Sequence[int],
    alive: Sequence[int] = (),
    joined: Sequence[bool] = (),
    longest: int = LONGEST,
    *,
    is_early: bool = False,
) -> list[int]:
    """Where statements are divided: at least SHORTEST and at most `longest` lines apart, each where
    the fewest tensors are alive, and a layer ends if possible.

    Args:
        layers: that of each statement.
        ends: the lines up to the end of each.
        alive: how many tensors are alive before each; none count if it is empty.
        joined: statements that take another result of the call of the statement before them.
        is_early: takes the first of several positions that are as good, else the last.
    """
    found: list[int] = []
    start = 0
    while ends:
        before = ends[start - 1] if start else 0
        if ends[-1] - before <= longest:
            return found
        low = bisect_left(ends, before + SHORTEST) + 1
        high = bisect_right(ends, min(before + longest, ends[-1] - SHORTEST))
        window = range(max(low, start + 1), max(high, low, start + 1) + 1)

        def cost(position: int) -> tuple[int, int, int]:
            shared = common_parts(layers[position], layers[position - 1])
            width = alive[position] if alive else 0
            return width, shared, position if is_early else -position

        inside = [each for each in window if each < len(ends) and not (joined and joined[each])]
        if not inside:
            return found
        best = min(inside, key=cost)
        found.append(best)
        start = best
    return found
