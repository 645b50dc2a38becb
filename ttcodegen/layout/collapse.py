"""Collapse of tensor dimensions to a physical shape, and its inverse.

A collapsed dimension is a linear combination of tensor dimensions; its *coefficients* are a row of
a matrix with a column for each tensor dimension.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import prod

Shape = tuple[int, ...]
Interval = tuple[int, int]
Coefficients = tuple[tuple[int, ...], ...]

DEFAULT_INTERVALS: tuple[Interval, ...] = ((0, -1),)
"""Collapses all dimensions but the last into rows."""


def align_up(size: int, alignment: int) -> int:
    """Rounds `size` up to a multiple of `alignment`."""
    return -(-size // alignment) * alignment


def normalized_intervals(intervals: Sequence[Interval], rank: int) -> tuple[Interval, ...]:
    """Returns half-open intervals of dimensions that cover all `rank`, in order.

    Negative bounds count from the end, as in Python; dimensions in no interval are not collapsed.
    At rank 1 or 0 the interval of rows is empty: the tensor is a single row. Raises ValueError if
    an interval is invalid or two overlap.
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
    """Returns the coefficients and aligned sizes of the collapsed dimensions.

    Within an interval, from its last dimension on, the accumulated size is rounded up to the
    alignment of each dimension. Intervals must be normalized.
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
    """Raises ValueError if two elements of the tensor map to one position."""
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
    """Returns the nonzero factors of a row with their dimensions, ascending, without those of size
    1.
    """
    return sorted((factor, dim) for dim, factor in enumerate(row) if factor != 0 and shape[dim] > 1)


def collapse(coefficients: Coefficients, index: Sequence[int]) -> Shape:
    """Returns the physical position of an element."""
    return tuple(
        sum(factor * i for factor, i in zip(row, index, strict=True)) for row in coefficients
    )


def expand(coefficients: Coefficients, shape: Shape, place: Sequence[int]) -> Shape | None:
    """Returns the element at a physical position, None for padding."""
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
    # Layouts check that every dimension is in some row.
    return tuple(0 if number is None else number for number in index)


def volume(shape: Sequence[int]) -> int:
    """Returns the number of elements of a shape."""
    return prod(shape)
