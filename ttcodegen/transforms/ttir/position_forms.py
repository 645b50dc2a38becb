"""Positional forms: values and constants as functions of their indices."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from ttcodegen.dialects.core.datatypes import element_of, numpy_name
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.foundation.lazy_numpy import np
from ttcodegen.transforms.const_eval import evaluate, rounded

if TYPE_CHECKING:
    import numpy


# Positional forms: linear in the indices, a region, a mask, or a distance.


@dataclass(frozen=True)
class Linear:
    """Affine function of the indices."""

    coefficients: tuple[float, ...]
    constant: float

    @property
    def number(self) -> float | None:
        """Constant value of the form, or None if it varies."""
        return None if any(self.coefficients) else self.constant

    @property
    def is_constant(self) -> bool:
        """Returns whether it is the same at all positions."""
        return not any(self.coefficients)

    @property
    def is_whole(self) -> bool:
        """Returns whether all its values are integers."""
        return all(float(each).is_integer() for each in (*self.coefficients, self.constant))

    def varies(self, axis: int) -> bool:
        """Returns whether it depends on an index."""
        return self.coefficients[axis] != 0

    def with_rank(self, rank: int) -> Linear:
        """Returns the form with leading dimensions added up to a rank."""
        return Linear((0,) * (rank - len(self.coefficients)) + self.coefficients, self.constant)

    def with_places(self, places: Sequence[int | None]) -> Linear:
        """Returns the form for other dimensions: each an existing one, or None for a new one."""
        found = tuple(0 if place is None else self.coefficients[place] for place in places)
        return Linear(found, self.constant)

    def sliced(self, begins: Sequence[int], steps: Sequence[int], shape: Sequence[int]) -> Linear:
        """Returns the form at the positions of a slice."""
        rows = list(zip(self.coefficients, begins, steps, shape, strict=True))
        constant = self.constant + sum(each * begin for each, begin, _, _ in rows)
        return Linear(tuple(each * step if n != 1 else 0 for each, _, step, n in rows), constant)

    def plus(self, other: Linear) -> Linear:
        """Returns the sum of two forms of the same rank."""
        pairs = zip(self.coefficients, other.coefficients, strict=True)
        return Linear(tuple(a + b for a, b in pairs), self.constant + other.constant)

    def times(self, number: float) -> Linear:
        """Returns a multiple of the form."""
        return Linear(tuple(each * number for each in self.coefficients), self.constant * number)

    def __neg__(self) -> Linear:
        return self.times(-1)

    def bounds(self, shape: Sequence[int]) -> tuple[float, float]:
        """Returns minimum and maximum in a tensor of that shape."""
        ends = [each * (size - 1) for each, size in zip(self.coefficients, shape, strict=True)]
        low, high = sum(min(end, 0) for end in ends), sum(max(end, 0) for end in ends)
        return self.constant + low, self.constant + high


@dataclass(frozen=True)
class Region:
    """Positions where all bounds are at least zero; all positions if there are none."""

    bounds: frozenset[Linear]
    rank: int

    @property
    def is_constant(self) -> bool:
        """Returns whether it is the same at all positions."""
        return all(bound.is_constant for bound in self.bounds)

    def varies(self, axis: int) -> bool:
        """Returns whether it depends on an index."""
        return any(bound.varies(axis) for bound in self.bounds)

    def with_rank(self, rank: int) -> Region:
        """Returns the form with leading dimensions added up to a rank."""
        return Region(frozenset(bound.with_rank(rank) for bound in self.bounds), rank)

    def with_places(self, places: Sequence[int | None]) -> Region:
        """Returns the form for other dimensions."""
        bounds = frozenset(bound.with_places(places) for bound in self.bounds)
        return Region(bounds, len(places))

    def sliced(self, begins: Sequence[int], steps: Sequence[int], shape: Sequence[int]) -> Region:
        """Returns the form at the positions of a slice."""
        bounds = frozenset(bound.sliced(begins, steps, shape) for bound in self.bounds)
        return Region(bounds, self.rank)


@dataclass(frozen=True)
class Hiding:
    """Additive mask: zero in a region, elsewhere at most a negative number."""

    visible: Region
    number: float

    @property
    def is_constant(self) -> bool:
        """Returns whether it is the same at all positions."""
        return self.visible.is_constant

    def varies(self, axis: int) -> bool:
        """Returns whether it depends on an index."""
        return self.visible.varies(axis)

    def with_rank(self, rank: int) -> Hiding:
        """Returns the form with leading dimensions added up to a rank."""
        return Hiding(self.visible.with_rank(rank), self.number)

    def with_places(self, places: Sequence[int | None]) -> Hiding:
        """Returns the form for other dimensions."""
        return Hiding(self.visible.with_places(places), self.number)

    def sliced(self, begins: Sequence[int], steps: Sequence[int], shape: Sequence[int]) -> Hiding:
        """Returns the form at the positions of a slice."""
        return Hiding(self.visible.sliced(begins, steps, shape), self.number)


@dataclass(frozen=True)
class Distance:
    """Absolute value of an affine function."""

    signed: Linear

    @property
    def is_constant(self) -> bool:
        """Returns whether it is the same at all positions."""
        return self.signed.is_constant

    def varies(self, axis: int) -> bool:
        """Returns whether it depends on an index."""
        return self.signed.varies(axis)

    def with_rank(self, rank: int) -> Distance:
        """Returns the form with leading dimensions added up to a rank."""
        return Distance(self.signed.with_rank(rank))

    def with_places(self, places: Sequence[int | None]) -> Distance:
        """Returns the form for other dimensions."""
        return Distance(self.signed.with_places(places))

    def sliced(self, begins: Sequence[int], steps: Sequence[int], shape: Sequence[int]) -> Distance:
        """Returns the form at the positions of a slice."""
        return Distance(self.signed.sliced(begins, steps, shape))

    def within(self, most: float) -> Region:
        """Returns the positions where it is at most a number."""
        linear = self.signed
        bounds = (Linear(each.coefficients, each.constant + most) for each in (linear, -linear))
        return Region(frozenset(bounds), len(linear.coefficients))


Form = Linear | Region | Hiding | Distance


def both(first: Region, second: Region) -> Region:
    """Intersects two regions, keeping the tighter of parallel bounds."""
    kept: dict[tuple[float, ...], Linear] = {}
    for bound in (*first.bounds, *second.bounds):
        known = kept.get(bound.coefficients)
        if known is None or bound.constant < known.constant:
            kept[bound.coefficients] = bound
    return Region(frozenset(kept.values()), first.rank)


def either(first: Region, second: Region) -> Region | None:
    """Returns the union of two regions if one contains the other, else None."""
    common = both(first, second)
    if common == first or is_nowhere(first):
        return second
    return first if common == second or is_nowhere(second) else None


def everywhere(rank: int, truth: bool = True) -> Region:
    """Returns the region of all positions, or of none."""
    return Region(frozenset() if truth else frozenset([Linear((0,) * rank, -1)]), rank)


def is_nowhere(region: Region) -> bool:
    """Returns whether a region is known to be empty."""
    return any(bound.is_constant and bound.constant < 0 for bound in region.bounds)


def truth_of(form: Form) -> Region | None:
    """Region where a value is nonzero, if known."""
    if isinstance(form, Region):
        return form
    if isinstance(form, Hiding):
        return inverted(form.visible)
    if isinstance(form, Distance):
        return None
    number = form.number
    return None if number is None else everywhere(len(form.coefficients), number != 0)


def inverted(region: Region) -> Region | None:
    """Complement of a region with a single bound, else None."""
    if is_nowhere(region) or not region.bounds:
        return everywhere(region.rank, is_nowhere(region))
    if len(region.bounds) != 1:
        return None
    (bound,) = region.bounds
    if not bound.is_whole:
        return None
    outside = bound.times(-1)
    return Region(frozenset([Linear(outside.coefficients, outside.constant - 1)]), region.rank)


_BELOW = {"le": "ge", "lt": "gt"}
_TRUTH: dict[str, Callable[[float, float], bool]] = {
    name: getattr(operator, name) for name in ("ge", "gt", "eq", "ne")
}


def compared(name: str, first: Form, second: Form) -> Form | None:
    """Returns the form of a comparison of two values of the same rank, or None."""
    if name in _BELOW:
        return compared(_BELOW[name], second, first)
    if isinstance(first, Linear) and isinstance(second, Linear):
        difference = first.plus(second.times(-1))
        rank = len(difference.coefficients)
        if first.number is not None and second.number is not None:
            return everywhere(rank, _TRUTH[name](first.number, second.number))
        if difference.number is not None:
            return everywhere(rank, _TRUTH[name](difference.number, 0))
        if name not in ("ge", "gt") or not difference.is_whole:
            return None
        constant = difference.constant - (name == "gt")
        return Region(
            frozenset([Linear(difference.coefficients, constant)]), len(difference.coefficients)
        )
    if isinstance(second, Distance) and isinstance(first, Linear) and first.number is not None:
        is_bound = name in ("ge", "gt") and second.signed.is_whole and first.is_whole
        return second.within(first.number - (name == "gt")) if is_bound else None
    truth = _TRUTH[name]
    if isinstance(first, Region) and isinstance(second, Linear) and second.number is not None:
        return _select_truth(first, truth(0, second.number), truth(1, second.number))
    if isinstance(second, Region) and isinstance(first, Linear) and first.number is not None:
        return _select_truth(second, truth(first.number, 0), truth(first.number, 1))
    return None


def _select_truth(region: Region, outside: bool, inside: bool) -> Region | None:
    """Returns the region that is `inside` within a region and `outside` elsewhere, if known."""
    if inside == outside:
        return everywhere(region.rank, inside)
    return region if inside else inverted(region)


# Constants by position: arithmetic progressions and triangles.

_KNOWN: WeakKeyDictionary[CatalogueOp, Form | None] = WeakKeyDictionary()
"""Cache of forms: each layer analyses its mask, and constants do not change."""


def constant_form(op: CatalogueOp) -> Form | None:
    """Recognizes the positional form of a constant's elements, or returns None."""
    if op not in _KNOWN:
        _KNOWN[op] = _form(op)
    return _KNOWN[op]


def _form(op: CatalogueOp) -> Form | None:
    try:
        array = evaluate(op, [])[0]
    except ValueError:
        return None
    varying = [axis for axis, size in enumerate(array.shape) if size != 1]
    if is_line(array.shape):
        return _progression(array)
    return _triangle(array, varying[0], varying[1]) if len(varying) == 2 else None


def is_line(shape: Sequence[int]) -> bool:
    """Returns whether a shape has at most one dimension larger than 1."""
    return sum(size != 1 for size in shape) <= 1


def elements_of(form: Form, shape: Sequence[int]) -> numpy.ndarray:
    """Evaluates a form on a tensor of that shape."""
    if isinstance(form, Hiding):
        return np.where(elements_of(form.visible, shape) != 0, 0.0, form.number)
    if isinstance(form, Distance):
        return np.abs(elements_of(form.signed, shape))
    if isinstance(form, Region):
        inside = np.ones(shape, bool)
        for bound in form.bounds:
            inside &= elements_of(bound, shape) >= 0
        return inside.astype(np.float32)
    places = np.indices(shape, dtype=np.int64)
    found = np.full(shape, form.constant, np.float64)
    for coefficient, place in zip(form.coefficients, places, strict=True):
        found += coefficient * place
    return found


def computed_line(op: CatalogueOp, operands: Sequence[numpy.ndarray]) -> Form | None:
    """Evaluates an op on one-dimensional operands; returns its form, or None if it has none."""
    types = [numpy_name(element_of(operand.type)) or "" for operand in op.operands]
    try:
        arrays = [rounded(a, dtype) for a, dtype in zip(operands, types, strict=True)]
        return _progression(evaluate(op, arrays)[0])
    except (ValueError, TypeError, IndexError):
        return None


def _progression(array: numpy.ndarray) -> Form | None:
    if array.size < 2:
        return Linear((0,) * array.ndim, float(array.reshape(-1)[0])) if array.size else None
    axis = next(axis for axis, size in enumerate(array.shape) if size != 1)
    flat = array.reshape(-1).astype(np.float64)
    steps = np.diff(flat)
    if not np.isfinite(flat).all() or not (steps == steps[0]).all():
        return None
    coefficients = tuple(float(steps[0]) if each == axis else 0 for each in range(array.ndim))
    return Linear(coefficients, float(flat[0]))


def _triangle(array: numpy.ndarray, first: int, second: int) -> Form | None:
    """Recognizes a boolean or additive mask that is constant along diagonals."""
    rows = array.reshape(array.shape[first], array.shape[second])
    low, high = float(rows.min()), float(rows.max())
    if not ((rows == low) | (rows == high)).all():
        return None
    if high == 1 and low == 0:
        visible = rows == 1
    elif high == 0 and low < 0:
        visible = rows == 0
    else:
        return None
    distances = np.arange(rows.shape[0])[:, None] - np.arange(rows.shape[1])[None, :]
    inside = distances[visible]
    nearest, furthest = int(inside.min()), int(inside.max())
    if not (((distances >= nearest) & (distances <= furthest)) == visible).all():
        return None
    bounds: list[Linear] = []
    for sign, limit, reached in (
        (1, -nearest, int(distances.min())),
        (-1, furthest, int(distances.max())),
    ):
        if (nearest if sign == 1 else furthest) != reached:
            places = {first: float(sign), second: float(-sign)}
            coefficients = tuple(places.get(axis, 0) for axis in range(array.ndim))
            bounds.append(Linear(coefficients, limit))
    region = Region(frozenset(bounds), array.ndim)
    return region if high == 1 else Hiding(region, low)
