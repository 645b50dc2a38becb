"""Sorts integers that float32 does not hold, which is what the library sorts integers as.

They are sorted twice, as numbers of radix 2^16 are: by their lower halves, and then, keeping the
order of equal ones, by their upper halves. Integers that are known to be small are sorted at once.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import i32, i64
from xdsl.ir import SSAValue

from ttcodegen.dialects.core.datatypes import (
    constant_array,
    element_of,
    f32,
    numpy_name,
    shape_of,
    tensor_type,
)
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.foundation.lazy_numpy import np
from ttcodegen.ops.core.definition import TTIRDefinition, traits_of
from ttcodegen.ops.core.traits import Trait
from ttcodegen.transforms.rewriting import Rewriter

_MOST = 1 << 24
"""Largest integer up to which float32 represents all integers."""
_HALF = 16
_MOST_PRODUCERS = 64
"""Upper bound on the producers visited to bound an integer's magnitude."""


def concerns_wide_order(op: CatalogueOp) -> bool:
    """True if `order_in_halves` is for the op."""
    match op.name:
        case "ttir.sort" | "ttir.topk":
            value = op.operands[0]
            return element_of(value.type) in (i32, i64) and not _is_small(value)
        case _:
            return False


def order_in_halves(rewriter: Rewriter, op: CatalogueOp) -> Sequence[SSAValue]:
    """The ordered integers and their places, by two orders of 16 bits each."""
    value = rewriter.typecast(op.operands[0], i32)
    shape = shape_of(value.type)
    dim: int = op.parameter("dim") % len(shape)
    is_sort = op.name == "ttir.sort"
    descending: bool = op.parameter("descending" if is_sort else "largest")

    def number(amount: int) -> SSAValue:
        return rewriter.full([1] * len(shape), amount, i32)

    def places_of(half: SSAValue) -> SSAValue:
        half = rewriter.typecast(half, f32)
        made = rewriter.emit_op(
            "sort", [half], [half.type, value.type], dim=dim, descending=descending, stable=True
        )
        return made.results[1]

    def gathered(source: SSAValue, places: SSAValue) -> SSAValue:
        result = tensor_type(element_of(source.type), shape_of(places.type))
        return rewriter.emit("gather", [source, places], result, dim=dim)

    upper = rewriter.like("right_shift", value, number(_HALF))
    lower = rewriter.like("bitwise_and", value, number((1 << _HALF) - 1))
    by_lower = places_of(lower)
    by_upper = places_of(gathered(upper, by_lower))
    if not is_sort:
        by_upper = rewriter.slice_dim(by_upper, dim, 0, op.parameter("k"))
    places = gathered(by_lower, by_upper)
    values, indices = (result.type for result in op.results)
    found = rewriter.typecast(gathered(value, places), element_of(values))
    return [found, rewriter.typecast(places, element_of(indices))]


def _is_small(value: SSAValue) -> bool:
    """True if all elements are known to be integers that float32 holds."""
    pending = [value]
    for _ in range(_MOST_PRODUCERS):
        if not pending:
            return True
        each = pending.pop()
        op = each.owner
        name = numpy_name(element_of(each.type)) or ""
        if name in ("bool", "int8", "uint8", "int16", "uint16"):
            continue
        if not isinstance(op, CatalogueOp):
            return False
        match op.name:
            case "ttir.constant":
                found = constant_array(op.parameter("value"))
                if found.size and np.abs(found.astype(np.float64)).max() > _MOST:
                    return False
            case "ttir.full":
                if abs(op.parameter("fill_value")) > _MOST:
                    return False
            case "ttir.arange":
                if max(abs(op.parameter("start")), abs(op.parameter("end"))) > _MOST:
                    return False
            case "ttir.typecast":
                pending.append(op.operands[0])
            case "ttir.argmax":
                pass
            case "ttir.pad":
                return False
            case _ if Trait.ORDERS in traits_of(op.definition) and each is op.results[-1]:
                pass
            case _ if isinstance(op.definition, TTIRDefinition) and op.definition.moves:
                pending += op.operands
            case _:
                return False
    return False
