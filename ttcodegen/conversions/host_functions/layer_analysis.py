"""Analyses of layers: repeated sequences, split points, and values that layers share."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import nlargest
from itertools import accumulate, pairwise
from math import prod

from xdsl.ir import SSAValue

from ttcodegen.conversions.host_functions.statements import Statement
from ttcodegen.dialects.ttcore.tile import TILE_FORMATS
from ttcodegen.dialects.ttnn.placement import has_placement, placement_of
from ttcodegen.naming.functions import part_title
from ttcodegen.naming.sources import common_parts

# Where a sequence repeats itself, found by its suffixes in sorted order.

MOST_RUNS = 200
"""Of more runs that repeat, those that cover most of the sequence are looked at."""


@dataclass(frozen=True)
class Run:
    """Equal runs of a sequence that do not overlap."""

    starts: tuple[int, ...]
    length: int


def repeated_runs(tokens: Sequence[int]) -> list[Run]:
    """The runs that occur more than once; each as long as it is equal everywhere.

    A sequence that repeats without a gap is divided into its periods.
    """
    if len(tokens) < 2:
        return []
    order, rank = _sorted_suffixes(tokens)
    common = _common_lengths(tokens, order, rank)

    def covered(interval: tuple[int, int, int]) -> int:
        length, low, high = interval
        return min((high - low) * length, len(tokens))

    runs: dict[Run, None] = {}
    for length, low, high in nlargest(MOST_RUNS, _intervals(common), key=covered):
        starts = sorted(order[low : high + 1])
        period = min(after - before for before, after in pairwise(starts))
        if period < length:
            # What repeats itself goes on to the end of the last one.
            found = set(starts)
            ends = [start for start in starts if start + period not in found]
            further = [range(end + period, end + length - period + 1, period) for end in ends]
            runs[Run(tuple(sorted(found.union(*further))), period)] = None
        else:
            runs[Run(tuple(starts), length)] = None
        if period < length:
            runs[Run(tuple(_apart(starts, length)), length)] = None
    return [run for run in runs if len(run.starts) > 1]


def primitive_lengths(tokens: Sequence[int], longest: int) -> Iterator[int]:
    """The lengths up to `longest` at which the start of a sequence is not itself part of a shorter
    one that is repeated, whole or not: of `abcabcabx` 3, not 5 and not 6."""
    borders = [0]
    """For each length what is both at its start and at its end."""
    for length in range(1, len(tokens) + 1):
        border = borders[-1] if length > 1 else 0
        while length > 1 and border and tokens[border] != tokens[length - 1]:
            border = borders[border]
        if length > 1 and tokens[border] == tokens[length - 1]:
            border += 1
        borders.append(border)
    for length in range(1, min(longest, len(tokens)) + 1):
        period = length - borders[length]
        twice = 2 * period
        if period == length or twice > len(tokens) or borders[twice] < period:
            yield length


def _apart(starts: Sequence[int], length: int) -> Iterator[int]:
    """The starts of runs of that length that do not overlap, the first ones first."""
    end = 0
    for start in starts:
        if start >= end:
            yield start
            end = start + length


def _sorted_suffixes(tokens: Sequence[int]) -> tuple[list[int], list[int]]:
    """Start positions of the suffixes in sorted order, and the rank of each; by prefix doubling."""
    count = len(tokens)
    numbers = {token: index for index, token in enumerate(sorted(set(tokens)))}
    rank = [numbers[token] for token in tokens]
    order = list(range(count))
    step = 1
    while True:
        after = rank[step:] + [-1] * min(step, count)
        keys = [first * (count + 1) + second + 1 for first, second in zip(rank, after, strict=True)]
        order.sort(key=keys.__getitem__)
        rank = [0] * count
        for before, here in pairwise(order):
            rank[here] = rank[before] + (keys[before] != keys[here])
        if rank[order[-1]] == count - 1:
            return order, rank
        step *= 2


def _common_lengths(tokens: Sequence[int], order: Sequence[int], rank: Sequence[int]) -> list[int]:
    """For each position in the order how much its suffix has in common with the one before it."""
    count = len(tokens)
    common = [0] * count
    length = 0
    for start, place in enumerate(rank):
        if not place:
            length = 0
            continue
        other = order[place - 1]
        end = count - max(start, other)
        while length < end and tokens[start + length] == tokens[other + length]:
            length += 1
        common[place] = length
        length = max(length - 1, 0)
    return common


def _intervals(common: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """Intervals of sorted suffixes with a common prefix: its length, the first and the last."""
    stack: list[tuple[int, int]] = [(0, 0)]
    for place in range(1, len(common) + 1):
        length = common[place] if place < len(common) else 0
        low = place - 1
        while stack[-1][0] > length:
            top, low = stack.pop()
            yield top, low, place - 1
        if stack[-1][0] < length:
            stack.append((length, low))


# Where a long function is divided: along its layers, where few tensors are alive.

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
    """Split points of statements: at least SHORTEST and at most `longest` lines apart, each where
    the fewest tensors are alive, at layer boundaries if possible.

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


# Values that several layers share, such as masks and tables of angles, computed before the
# layers.
#
# The lowering puts what brings a value into its form where it is needed first: in the middle of
# the first layer, which then differs from all others.

LEAST_DISTANCE = 10
"""The minimum number of statements between the first and the last use of a value of layers."""
MOST_STATEMENTS = 8
"""The most statements that such a value is made by."""


def shared_first(
    statements: Sequence[Statement], returned: Sequence[SSAValue], layers: Sequence[str] = ()
) -> list[Statement] | None:
    """The statements with what makes shared values as early as its operands are there; None if
    nothing moves, or if it took more memory at any time than the original order does.

    `layers` are the layers of the statements: nothing moves that precedes the first numbered one.
    """
    start = next((index for index, each in enumerate(layers) if _LAYER_NUMBER.search(each)), 0)
    moved = set[int]().union(*shared_values(statements, start).values())
    made_at = made_by(statements)
    slots: list[int] = []
    for index, statement in enumerate(statements):
        before = [slots[made_at[value]] for value in statement.uses if value in made_at]
        slots.append(max(before, default=-1) if index in moved else index)
    order = sorted(range(len(statements)), key=lambda index: (slots[index], index))
    if order == list(range(len(statements))):
        return None
    done = [statements[index] for index in order]
    return done if _peak(done, returned) <= _peak(statements, returned) else None


_LAYER_NUMBER = re.compile(r"(?:^|[./_])\d+(?:$|[./])")


def shared_values(statements: Sequence[Statement], start: int = 0) -> dict[SSAValue, set[int]]:
    """The values that are made of few statements and used far apart, each with the statements from
    `start` on that make it."""
    made_at = made_by(statements)
    joined = {
        index
        for second, (one, other) in enumerate(pairwise(statements), start=1)
        if one.op is other.op
        for index in (second - 1, second)
    }
    users: dict[SSAValue, list[int]] = {}
    for index, statement in enumerate(statements):
        for value in dict.fromkeys(statement.uses):
            users.setdefault(value, []).append(index)
    # What is written in place has another value before and after.
    written = {value for each in statements if not each.results for value in each.uses}
    found: dict[SSAValue, set[int]] = {}
    for value, index in made_at.items():
        uses = users.get(value, ())
        if len(uses) > 1 and uses[-1] - uses[0] >= LEAST_DISTANCE:
            makers = _makers(index, statements, made_at, joined, start)
            if makers is not None and not any(
                use in written for each in makers for use in statements[each].uses
            ):
                found[value] = makers
    return found


def _makers(
    index: int,
    statements: Sequence[Statement],
    made_at: Mapping[SSAValue, int],
    joined: Collection[int],
    start: int,
) -> set[int] | None:
    """The statements from `start` on that a value needs to be made; None if they are many, make it
    of nothing, as random numbers are, or take one of several results of a call (`joined`): the
    first such statement writes the call for those after it."""
    found: set[int] = set()
    pending = [index]
    while pending:
        each = pending.pop()
        if each in found or each < start:
            continue
        found.add(each)
        statement = statements[each]
        if len(found) > MOST_STATEMENTS or not statement.uses or len(statement.results) != 1:
            return None
        if each in joined:
            return None
        pending += [made_at[value] for value in statement.uses if value in made_at]
    return found


def _peak(statements: Sequence[Statement], returned: Sequence[SSAValue]) -> int:
    """The most bits of the device that the results of statements take at a time."""
    made_at = made_by(statements)
    last_use = last_uses(returned, statements, made_at)
    changes = [0] * (len(statements) + 2)
    for value, index in made_at.items():
        if not has_placement(value):
            continue
        placement = placement_of(value)
        size = prod(placement.shape) * TILE_FORMATS[placement.data_type.mlir].bits
        changes[index] += size
        changes[max(last_use.get(value, index), index) + 1] -= size
    return max(accumulate(changes))
