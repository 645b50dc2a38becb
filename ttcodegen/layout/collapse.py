"""Collapsing the dimensions of a tensor into those of its physical shape, and back.

A collapsed dimension is a sum of multiples of the tensor's dimensions: its *coefficients*. They are
the rows of a matrix with a column for each dimension of the tensor.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import prod

Shape = tuple[int, ...]
Interval = tuple[int, int]
Coefficients = tuple[tuple[int, ...], ...]

DEFAULT_INTERVALS: tuple[Interval, ...] = ((0, -1),)
"""All dimensions but the last become rows."""


def align_up(size: int, alignment: int) -> int:
    """The smallest multiple of `alignment` that is not less than `size`."""
    return -(-size // alignment) * alignment


def normalized_intervals(intervals: Sequence[Interval], rank: int) -> tuple[Interval, ...]:
    """Intervals of dimensions, from the first to before the last, that cover all `rank`.

    Negative ends count from the end, as in Python; dimensions in no interval are not collapsed. Of
    a tensor of rank 1 or 0, the interval of rows is empty, so that it is a single row.

    Raises ValueError if an interval is none, or two overlap.
    """
    found: list[Interval] = []
    for start, end in intervals:
        first, last = (start + rank if start < 0 else start), (end + rank if end < 0 else end)
        if rank == 0:
            first = last = 0
        if not 0 <= first <= last <= rank:
            raise ValueError(f"({start}, {end}) is no interval of {rank} dimensions")
        found.append((first, last))
    found.sort()
    for (_, end), (start, _) in pairwise(found):
        if start < end:
            raise ValueError(f"two intervals overlap at dimension {start}")
    covered: list[Interval] = []
    position = 0
    for start, end in found:
        covered += [(dim, dim + 1) for dim in range(position, start)]
        covered.append((start, end))
        position = end
    covered += [(dim, dim + 1) for dim in range(position, rank)]
    while len(covered) < 2 and rank < 2:
        covered.insert(0, (0, 0)) if rank else covered.append((0, 0))
    return tuple(covered)


def collapsed(
    shape: Shape, intervals: Sequence[Interval], alignments: Shape | None = None
) -> tuple[Coefficients, Shape]:
    """The coefficients of the collapsed dimensions, and the sizes that alignments give them.

    Within an interval, from its last dimension on, the size that a dimension reaches is rounded up
    to its alignment. Intervals are normalized ones.
    """
    rows: list[tuple[int, ...]] = []
    sizes: list[int] = []
    for start, end in intervals:
        row = [0] * len(shape)
        size = 1
        for dim in reversed(range(start, end)):
            row[dim] = size
            size *= shape[dim]
            if alignments is not None:
                size = align_up(size, alignments[dim])
        rows.append(tuple(row))
        sizes.append(size)
    return tuple(rows), tuple(sizes)


def extents(coefficients: Coefficients, shape: Shape) -> Shape:
    """The sizes of the collapsed dimensions: one more than the index of the last element."""
    return tuple(
        sum(factor * (size - 1) for factor, size in zip(row, shape, strict=True)) + 1
        for row in coefficients
    )


def check_one_to_one(coefficients: Coefficients, shape: Shape) -> None:
    """Raises ValueError if two elements of the tensor fall on one position."""
    found: set[int] = set()
    for row in coefficients:
        reached = 0
        for factor, dim in _factors(row, shape):
            if factor <= reached:
                raise ValueError(f"elements along dimension {dim} fall on places of others")
            reached += factor * (shape[dim] - 1)
            found.add(dim)
    missing = [dim for dim, size in enumerate(shape) if size > 1 and dim not in found]
    if missing:
        raise ValueError(f"elements along dimension {missing[0]} fall on one position")


def _factors(row: Sequence[int], shape: Shape) -> list[tuple[int, int]]:
    """The multiples of a row with their dimensions, ascending; those of size 1 say nothing."""
    return sorted((factor, dim) for dim, factor in enumerate(row) if factor != 0 and shape[dim] > 1)


def collapse(coefficients: Coefficients, index: Sequence[int]) -> Shape:
    """The position of an element in the physical shape."""
    return tuple(
        sum(factor * i for factor, i in zip(row, index, strict=True)) for row in coefficients
    )


def expand(coefficients: Coefficients, shape: Shape, place: Sequence[int]) -> Shape | None:
    """The element at a position in the physical shape, None if it is padding."""
    index: list[int | None] = [0 if size == 1 else None for size in shape]
    for row, position in zip(coefficients, place, strict=True):
        rest = position
        for factor, dim in reversed(_factors(row, shape)):
            number, rest = divmod(rest, factor)
            if number >= shape[dim] or index[dim] not in (None, number):
                return None
            index[dim] = number
        if rest:
            return None
    # A dimension that no row has was refused when the layout was made.
    return tuple(0 if number is None else number for number in index)


def volume(shape: Sequence[int]) -> int:
    """Number of elements of a shape."""
    return prod(shape)
