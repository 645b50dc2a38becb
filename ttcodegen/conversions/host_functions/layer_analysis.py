"""Analyses of layers: repeated sequences, split points, and values that layers share."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import nlargest
from itertools import accumulate, pairwise
from math import prod

from xdsl.ir import Operation, SSAValue

from ttcodegen.conversions.host_functions.statements import Statement
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttcore.tile import TILE_FORMATS
from ttcodegen.dialects.ttnn.placement import has_placement, placement_of
from ttcodegen.naming.functions import part_title
from ttcodegen.naming.sources import common_parts
from ttcodegen.ops.core.definition import library_definition, traits_of
from ttcodegen.ops.core.traits import Trait

# Repeated runs of a sequence, found in its suffix array.

MOST_RUNS = 200
"""Maximum number of repeated runs that are considered: those that cover most of the sequence."""


@dataclass(frozen=True)
class Run:
    """Equal runs of a sequence that do not overlap."""

    starts: tuple[int, ...]
    length: int


def repeated_runs(tokens: Sequence[int]) -> list[Run]:
    """Returns the maximal runs that occur more than once.

    A sequence that repeats without a gap is divided into its periods."""
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
            # A periodic run continues to the end of its last occurrence.
            found = set(starts)
            ends = [start for start in starts if start + period not in found]
            further = [range(end + period, end + length - period + 1, period) for end in ends]
            runs[Run(tuple(sorted(found.union(*further))), period)] = None
        else:
            runs[Run(tuple(starts), length)] = None
        if period < length:
            runs[Run(tuple(_without_overlap(starts, length)), length)] = None
    return [run for run in runs if len(run.starts) > 1]


def primitive_lengths(tokens: Sequence[int], longest: int) -> Iterator[int]:
    """Yields lengths up to `longest` whose prefix is not part of a shorter repetition.

    Repetitions may be incomplete: of `abcabcabx` it yields 3, but neither 5 nor 6."""
    borders = [0]
    """Per length, the longest proper prefix that is also a suffix."""
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


def _without_overlap(starts: Sequence[int], length: int) -> Iterator[int]:
    """Yields the starts of runs that do not overlap, greedily from the first."""
    end = 0
    for start in starts:
        if start >= end:
            yield start
            end = start + length


def _sorted_suffixes(tokens: Sequence[int]) -> tuple[list[int], list[int]]:
    """Returns the start positions of the suffixes in sorted order, and the rank of each.

    Uses prefix doubling."""
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
    """Longest common prefix of each sorted suffix with the one before it (Kasai)."""
    count = len(tokens)
    common = [0] * count
    length = 0
    for start, position in enumerate(rank):
        if not position:
            length = 0
            continue
        other = order[position - 1]
        end = count - max(start, other)
        while length < end and tokens[start + length] == tokens[other + length]:
            length += 1
        common[position] = length
        length = max(length - 1, 0)
    return common


def _intervals(common: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """Yields intervals of sorted suffixes with a common prefix: its length, first and last."""
    stack: list[tuple[int, int]] = [(0, 0)]
    for position in range(1, len(common) + 1):
        length = common[position] if position < len(common) else 0
        low = position - 1
        while stack[-1][0] > length:
            top, low = stack.pop()
            yield top, low, position - 1
        if stack[-1][0] < length:
            stack.append((length, low))


# Split of a long function: along its layers, where few tensors are alive.

LONGEST = 95
"""Maximum number of lines of a function that is not divided, without comments."""
LONGEST_WITH_COMMENTS = 110
"""The same with layer names, each a comment after an empty line."""
_TITLE_LINES = 2
SHORTEST = 25
"""Minimum number of lines of a part."""


@dataclass(frozen=True)
class Part:
    """Consecutive statements of a function that become a function of their own."""

    statements: tuple[Statement, ...]
    live_in: tuple[SSAValue, ...]
    live_out: tuple[SSAValue, ...]
    dying: frozenset[SSAValue]
    """Incoming values that nothing after the part uses."""
    title: str | None


def split(
    statements: Sequence[Statement],
    layers_of: Callable[[], Sequence[str]],
    returned: Sequence[SSAValue],
    lines_of: Callable[[Statement], int],
) -> list[Part]:
    """Divides the statements of a function into parts; returns one part for a short function.

    Args:
        statements: statements of the function, in order.
        layers_of: returns the layer of each statement.
        returned: values that the function returns.
        lines_of: number of lines of a statement.
    """
    ends = list(accumulate(map(lines_of, statements)))
    if not ends or ends[-1] <= LONGEST:
        return [Part(tuple(statements), (), (), frozenset(), None)]
    layers = layers_of()
    titled = [layer != before for before, layer in pairwise(["", *layers])]
    ends = [end + _TITLE_LINES * title for end, title in zip(ends, accumulate(titled), strict=True)]
    made_at = made_by(statements)
    last_use = last_uses(returned, statements, made_at)
    joined = joined_at(statements)
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
        # Leading statements without a layer inherited the layer of the previous part.
        new = [layer for layer in layers[start:end] if not start or layer != layers[start - 1]]
        title = part_title(new or layers[start:end])
        parts.append(Part(tuple(inside), tuple(live_in), tuple(live_out), dying, title))
        start = end
    return parts


def layers_of(
    statements: Iterable[Statement], found: Callable[[Statement], str | None]
) -> list[str]:
    """Returns the layer of each statement; one without a layer belongs to the layer before it."""
    layers: list[str] = []
    for statement in statements:
        layers.append(found(statement) or (layers[-1] if layers else ""))
    return layers


def made_by(statements: Sequence[Statement]) -> dict[SSAValue, int]:
    """Index of the defining statement of each value."""
    return {
        result: index for index, statement in enumerate(statements) for result in statement.results
    }


def last_uses(
    returned: Sequence[SSAValue],
    statements: Sequence[Statement],
    made_at: Mapping[SSAValue, int],
) -> dict[SSAValue, int]:
    """Index of the last statement that uses each value.

    For values that the function returns it is the number of statements."""
    result = {
        value: index for index, statement in enumerate(statements) for value in statement.uses
    }
    result.update((value, len(statements)) for value in returned if value in made_at)
    return result


def joined_at(statements: Sequence[Statement]) -> list[bool]:
    """Positions between statements that take results of one call, marked as true.

    They share it as one variable, which a function of some of them would not have. Others may have
    moved between them.
    """
    joined = [False] * (len(statements) + 1)
    first: dict[int, int] = {}
    for index, statement in enumerate(statements):
        begin = first.setdefault(id(statement.op), index)
        joined[begin + 1 : index + 1] = [True] * (index - begin)
    return joined


def alive_counts(
    made_at: Mapping[SSAValue, int], last_use: Mapping[SSAValue, int], count: int
) -> list[int]:
    """Number of values that are alive before each statement: defined before it and used later."""
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
    """Returns split points of statements, at least SHORTEST and at most `longest` lines apart.

    Each is where the fewest tensors are alive, preferably at a layer boundary.

    Args:
        layers: layer of each statement.
        ends: number of lines up to the end of each statement.
        alive: number of tensors alive before each; ignored if empty.
        joined: whether a statement takes another result of the previous statement's call.
        longest: maximum number of lines of a part.
        is_early: takes the first of several equally good positions instead of the last.
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


# Hoisting of values that several layers share, such as masks and rotary tables.
#
# The lowering inserts conversions of a value at its first use: in the middle of the first layer,
# which then differs from all others.

LEAST_DISTANCE = 10
"""Minimum number of statements between the first and the last use of a shared value."""
MOST_STATEMENTS = 8
"""Maximum number of statements that compute a shared value."""


def shared_first(
    statements: Sequence[Statement], returned: Sequence[SSAValue], layers: Sequence[str] = ()
) -> list[Statement] | None:
    """Hoists the statements that compute shared values to the earliest position.

    None if nothing moves, or if peak memory would grow. `layers` are the layers of the statements:
    nothing before the first numbered one moves."""
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


def drawn_near(
    statements: Sequence[Statement], returned: Sequence[SSAValue]
) -> list[Statement] | None:
    """Moves slices of a value to their only users, and conversions to their producers.

    Each step of a recurrent layer then contains the slices of its input and the conversions of its
    output. None if nothing moves, or if peak memory would grow."""
    if not all(statement.results for statement in statements):
        return None  # Values that are overwritten in place must not move.
    made_at = made_by(statements)
    users: dict[SSAValue, list[int]] = {}
    for index, statement in enumerate(statements):
        for value in dict.fromkeys(statement.uses):
            users.setdefault(value, []).append(index)
    kept = set(returned)
    slots_of = [(float(index), 0) for index in range(len(statements))]
    joined = joined_at(statements)
    parts: set[int] = set()
    for index, statement in enumerate(statements):
        if joined[index] or joined[index + 1] or len(statement.results) != 1:
            continue
        producers = {made_at[value] for value in statement.uses if value in made_at}
        used = users.get(statement.results[0], ())
        is_form = rearranges(statement.op)
        if len(used) == 1 and statement.results[0] not in kept:
            if _takes_part(statement.op) or (is_form and producers and producers <= parts):
                parts.add(index)
                continue
        if is_form and len(producers) == 1 and not producers & parts:
            (producer,) = producers
            slots_of[index] = slots_of[producer][0], slots_of[producer][1] + 1
    for index in sorted(parts, reverse=True):
        user = slots_of[users[statements[index].results[0]][0]]
        slots_of[index] = user[0], user[1] - 1
    order = sorted(range(len(statements)), key=lambda index: (*slots_of[index], index))
    if order == list(range(len(statements))):
        return None
    done = [statements[index] for index in order]
    return done if _peak(done, returned) <= _peak(statements, returned) else None


def rearranges(op: Operation) -> bool:
    """Returns whether an op only changes the layout or shape of a tensor."""
    return isinstance(op, CatalogueOp) and op.definition.rearranges


def _takes_part(op: Operation) -> bool:
    is_known = isinstance(op, CatalogueOp)
    return is_known and Trait.TAKES_PART in traits_of(library_definition(op))


def shared_values(statements: Sequence[Statement], start: int = 0) -> dict[SSAValue, set[int]]:
    """Returns values that few statements compute and whose uses are far apart.

    Each maps to the statements from `start` on that compute it."""
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
    # Values that are overwritten in place must not move.
    written = {value for each in statements if not each.results for value in each.uses}
    found: dict[SSAValue, set[int]] = {}
    for value, index in made_at.items():
        uses = users.get(value, ())
        if len(uses) > 1 and uses[-1] - uses[0] >= LEAST_DISTANCE:
            producers = _producers(index, statements, made_at, joined, start)
            if producers is not None and not any(
                use in written for each in producers for use in statements[each].uses
            ):
                found[value] = producers
    return found


def _producers(
    index: int,
    statements: Sequence[Statement],
    made_at: Mapping[SSAValue, int],
    joined: Collection[int],
    start: int,
) -> set[int] | None:
    """Returns the statements from `start` on that compute a value.

    None if there are too many, or if one has no operands (random numbers) or takes one of several
    results of a call (`joined`): the first such statement writes the call for those after it."""
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
    """Maximum number of bits of device memory that the results of statements take at a time."""
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
