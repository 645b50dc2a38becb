"""Where a sequence repeats itself, found by its suffixes in sorted order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import nlargest
from itertools import pairwise

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
    """Where the suffixes start, in their order, and the position of each in it; by doubling the
    length that they are sorted by."""
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
    """What stretches of the sorted suffixes have in common: its length, the first and the last."""
    stack: list[tuple[int, int]] = [(0, 0)]
    for place in range(1, len(common) + 1):
        length = common[place] if place < len(common) else 0
        low = place - 1
        while stack[-1][0] > length:
            top, low = stack.pop()
            yield top, low, place - 1
        if stack[-1][0] < length:
            stack.append((length, low))
