"""Splat constants of TTIR: their value, and its conversion to an element type."""

from __future__ import annotations

from xdsl.ir import OpResult, SSAValue

from ttcodegen.dialects.core.constants import splat_value
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.foundation.lazy_numpy import Array, np

_FILLS = frozenset({"ttir.full", "ttir.zeros", "ttir.ones", "ttir.constant"})


def splat_of(value: SSAValue) -> float | int | None:
    """The number that every element of `value` equals, None if that is not known."""
    # Rules ask this of every operand; the name says no sooner than the class.
    if type(value) is not OpResult or value.op.name not in _FILLS:
        return None
    op = value.op
    if not isinstance(op, CatalogueOp):
        return None
    match op.name:
        case "ttir.full":
            return op.parameter("fill_value")
        case "ttir.zeros":
            return 0
        case "ttir.ones":
            return 1
        case _:
            return splat_value(op.parameter("value"))


def number_as(value: float, dtype: str) -> Array:
    """A number as an element of that dtype. Integers take what is before the point, or the nearest
    one that there is, 0 for NaN. A negative integer names the bits of an unsigned one: attributes
    of TTIR have 32 bits and a sign."""
    target = np.dtype(dtype)
    if np.issubdtype(target, np.integer):
        limits = np.iinfo(target)
        low, high = int(limits.min), int(limits.max)
        if isinstance(value, float):
            value = int(np.nan_to_num(value, nan=0.0, posinf=high, neginf=low))
        elif value < 0 and low == 0:
            value %= high + 1
        value = min(max(value, low), high)
    return np.asarray(value).astype(target)
