"""Numbers that depend on the node as formulas of its coordinates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

Point = tuple[int, ...]


@dataclass(frozen=True)
class Formula:
    """A sum of multiples of coordinates and a constant; the rest of a division, or the smaller or
    the larger of that and a bound, where there is one."""

    first: int
    factors: Point
    modulus: int | None = None
    most: int | None = None
    least: int | None = None

    def at(self, point: Point) -> int:
        """Evaluates the formula at a point."""
        value = self.first + sum(f * c for f, c in zip(self.factors, point, strict=True))
        if self.modulus is not None:
            value %= self.modulus
        if self.most is not None:
            value = min(value, self.most)
        return value if self.least is None else max(value, self.least)


def fitted(values: Mapping[Point, int], periods: Sequence[int] = ()) -> Formula | None:
    """The simplest formula that has these values; None if none is found.

    Args:
        values: by point.
        periods: numbers that rests of divisions by them are tried for, besides the number after the
            largest value.
    """
    for formula in _candidates(values, periods):
        if all(formula.at(point) == value for point, value in values.items()):
            return formula
    return None


def _candidates(values: Mapping[Point, int], periods: Sequence[int]) -> Iterator[Formula]:
    most, least = max(values.values()), min(values.values())
    start = min(values)
    plain = _affine(values, start, None)
    yield plain
    for modulus in dict.fromkeys((most + 1, *periods)):
        if modulus > most:
            rest = _affine(values, start, modulus)
            yield Formula(rest.first % modulus, rest.factors, modulus)
    yield Formula(plain.first, plain.factors, most=most)
    # The first coordinate may be cut off before it makes a step: it may be so many of the second's.
    if len(start) > 1:
        counts = 1 + max(point[1] for point in values)
        factors = (plain.factors[1] * counts, *plain.factors[1:])
        yield Formula(values[start] - _dot(factors, start), factors, most=most)
    end = max(values)
    last = _affine(values, end, None)
    yield Formula(last.first, last.factors, least=least)


def _dot(factors: Sequence[int], point: Sequence[int]) -> int:
    return sum(f * c for f, c in zip(factors, point, strict=True))


def _affine(values: Mapping[Point, int], at: Point, modulus: int | None) -> Formula:
    """The sum of multiples with the steps that the values make beside a point."""
    factors: list[int] = []
    for axis in range(len(at)):
        step = _step(values, at, axis)
        factors.append(step if modulus is None else step % modulus)
    return Formula(values[at] - _dot(factors, at), tuple(factors))


def _step(values: Mapping[Point, int], at: Point, axis: int) -> int:
    """Step of a value along a coordinate, measured at the point or else anywhere."""

    def beside(point: Point, distance: int) -> Point:
        return (*point[:axis], point[axis] + distance, *point[axis + 1 :])

    for distance in (1, -1):
        if (near := beside(at, distance)) in values:
            return (values[near] - values[at]) * distance
    for point, value in values.items():
        if (near := beside(point, 1)) in values:
            return values[near] - value
    return 0
