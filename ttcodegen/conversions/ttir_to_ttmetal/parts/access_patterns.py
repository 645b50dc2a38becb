"""Which pages of an operand cores read, and which of them are worth keeping."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from math import prod

from ttcodegen.dialects.ttcore.cores import CoreRange


@dataclass(frozen=True)
class AccessPattern:
    """The pages of a tensor in the order in which a program needs them.

    Each page is needed at least once. Dimensions are those of the nest, from the outermost on, with
    how far the page moves with them; none has size 1, and neighbours that go through pages in a
    row, or that stay on one, are one dimension.
    """

    dimensions: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, sizes: Sequence[int], moves: Sequence[int]) -> AccessPattern:
        """The pattern of a nest over a grid."""
        merged: list[tuple[int, int]] = []
        for size, move in zip(sizes, moves, strict=True):
            if size == 1:
                continue
            if merged and merged[-1][1] == move * size:
                merged[-1] = (merged[-1][0] * size, move)
            else:
                merged.append((size, move))
        return cls(tuple(merged))

    @property
    def count(self) -> int:
        """How often a page is needed."""
        return prod(size for size, _ in self.dimensions)

    @property
    def pages(self) -> int:
        """How many pages there are."""
        return prod(size for size, move in self.dimensions if move)

    def slots(self, most: int, cores: CoreRange, units: int) -> int:
        """How many pages, of `most`, a core should keep: as few as spare it as many reads as any
        number does. 0 if that are less than half of them."""
        numbers = {1} if self.dimensions and self.dimensions[-1][1] == 0 else set[int]()
        choices = [n for n in sorted(numbers | {self.pages}) if n <= most]
        found = min(choices, key=lambda n: self.reads(n, cores, units), default=0)
        return found if 2 * self.reads(found, cores, units) <= self.count else 0

    def reads(self, slots: int, cores: CoreRange, units: int) -> int:
        """How many pages all cores read together.

        Args:
            slots: the pages that each of them keeps: none, all, or one if it is needed several
                times in a row.
            cores: the cores that share the nest.
            units: the parts that it is divided into for them.
        """
        if slots == 0:
            return self.count
        length = self.count // units
        if slots == self.pages:
            return _distinct_pages(self.dimensions, length, units, cores.cores)
        shares = ((f * length, e * length) for f, e in _shares(units, cores.cores))
        repeated = self.dimensions[-1][0]
        return sum((end - 1) // repeated - first // repeated + 1 for first, end in shares)


def _shares(units: int, cores: int) -> Iterator[tuple[int, int]]:
    """The first unit of each core that has some, and the one after its last."""
    first = 0
    for core in range(min(units, cores)):
        end = first + units // cores + (core < units % cores)
        yield first, end
        first = end


@cache
def _distinct_pages(
    dimensions: tuple[tuple[int, int], ...], length: int, units: int, cores: int
) -> int:
    """The different pages of each core's share, of all cores together; a unit is so many steps of
    the nest."""
    shares = ((first * length, end * length) for first, end in _shares(units, cores))
    return sum(len(_distinct(dimensions, first, end)) for first, end in shares)


def _distinct(dimensions: Sequence[tuple[int, int]], first: int, end: int) -> frozenset[int]:
    """The pages of a part of a nest."""
    if first >= end:
        return frozenset()
    if not dimensions:
        return frozenset([0])
    (_, move), *inner = dimensions
    length = prod(size for size, _ in inner)
    low, high = first // length, (end - 1) // length
    found: set[int] = set()
    for index in range(low, high + 1):
        begin, stop = max(first - index * length, 0), min(end - index * length, length)
        found |= {index * move + page for page in _distinct(inner, begin, stop)}
        if move == 0 and (begin, stop) == (0, length):
            # All that there is.
            break
    return frozenset(found)
