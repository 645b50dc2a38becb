"""Which TTIR values are known to be one number throughout."""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from ttcodegen.dialects.constants import splat_value
from ttcodegen.dialects.operation import CatalogueOp


def splat_of(value: SSAValue) -> float | int | None:
    """The number that every element of `value` equals, None if that is not known."""
    op = value.owner
    if not isinstance(op, Operation) or not isinstance(op, CatalogueOp):
        return None
    match op.name:
        case "ttir.full":
            return op.parameter("fill_value")
        case "ttir.zeros":
            return 0
        case "ttir.ones":
            return 1
        case "ttir.constant":
            return splat_value(op.parameter("value"))
        case _:
            return None
