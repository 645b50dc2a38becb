"""Which TTIR values are known to be one number throughout."""

from __future__ import annotations

from xdsl.ir import OpResult, SSAValue

from ttcodegen.dialects.constants import splat_value
from ttcodegen.dialects.operation import CatalogueOp

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
