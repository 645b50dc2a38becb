"""Constants that follow from positions: numbers at equal distances, and triangles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from ttcodegen.dialects.core.datatypes import element_of, numpy_name
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.foundation.lazy_numpy import np
from ttcodegen.transforms.evaluation import evaluate, rounded
from ttcodegen.transforms.ttir.positions.forms import Form, Hiding, Linear, Region

if TYPE_CHECKING:
    import numpy


_KNOWN: WeakKeyDictionary[CatalogueOp, Form | None] = WeakKeyDictionary()
"""Each layer looks at its mask, and constants do not change."""


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
    """True if a tensor of that shape has at most one dimension of several elements."""
    return sum(size != 1 for size in shape) <= 1


def elements_of(form: Form, shape: Sequence[int]) -> numpy.ndarray:
    """The elements that a form says of a tensor."""
    if isinstance(form, Hiding):
        return np.where(elements_of(form.visible, shape) != 0, 0.0, form.number)
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
    """The form of the line that an op makes of others, None if it has none of these."""
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
    """Truth or a mask of which each diagonal is one number."""
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
