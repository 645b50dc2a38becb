"""Analysis of attention masks: the keys that each query sees."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, prod
from typing import TYPE_CHECKING

from xdsl.ir import SSAValue

from ttcodegen.dialects.core.datatypes import DataType, element_of, normalized_data_type, shape_of
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.ops.attention.reference import Band
from ttcodegen.ops.core.builder import splat_of
from ttcodegen.transforms.evaluation import evaluate, known_elements
from ttcodegen.transforms.ttir.fusing.repetitions import REPETITIONS, repetition
from ttcodegen.transforms.ttir.positions.forms import Hiding, Region
from ttcodegen.transforms.ttir.positions.values import form_of

if TYPE_CHECKING:
    import numpy

HIDES = -0.99e9
"""A number that is added to a score hides it as well as one that replaces it if no score is
visible beside it: in a row of which nothing is visible, all weights are equal then. Masks of -1e9
count, also where bfloat16 rounds them up."""
_LOWEST = {DataType.BFLOAT16: -3.3895313892515355e38, DataType.FLOAT32: -3.4028234663852886e38}
_MASK_OPS = 256


def lowest(value: SSAValue) -> float:
    """The lowest finite number of the element type."""
    data_type = normalized_data_type(element_of(value.type))
    return _LOWEST[DataType.FLOAT32 if data_type is None else data_type]


@dataclass(frozen=True)
class SeenKeys:
    """Keys that a causal mask shows each query: all up to it, or the last few."""

    window: int | None


def seen_keys(mask: SSAValue, scores: tuple[int, ...]) -> SeenKeys | None:
    """Recognizes an additive causal mask, with or without a window, or returns None."""
    queries, keys = scores[-2:]
    if queries != keys or queries == 1:
        return None
    form = form_of(mask)
    shape = shape_of(mask.type)
    if isinstance(form, Hiding):
        return _band(form.visible, shape) if form.number <= HIDES else None
    while isinstance(op := mask.owner, CatalogueOp) and op.name in REPETITIONS:
        if repetition(op)[-2:] != [1, 1]:
            break
        mask = op.operands[0]
    shape = shape_of(mask.type)
    if shape[-2:] != (queries, keys) or prod(shape[:-2]) != 1:
        return None
    added = known_elements(mask)
    return None if added is None else _seen_in(added.reshape(queries, keys), queries)


def _band(visible: Region, shape: tuple[int, ...]) -> SeenKeys | None:
    """The keys of a region that is bounded by the distance of query and key alone."""
    is_causal, window = False, None
    for bound in visible.bounds:
        if bound.bounds(shape)[0] >= 0:
            continue
        *outer, query, key = bound.coefficients
        if any(outer) or (query, key) not in ((1, -1), (-1, 1)):
            return None
        if query == 1:
            if bound.constant != 0:
                return None
            is_causal = True
        else:
            window = int(bound.constant) + 1
    return SeenKeys(window) if is_causal and (window is None or window > 0) else None


def _seen_in(added: numpy.ndarray, size: int) -> SeenKeys | None:
    count = int((added[-1] == 0).sum())
    window = None if count == size else count
    band = Band.of(size, size, True, window)
    if count == 0 or band is None:
        return None
    visible = band.visible(size, size)
    known = (added[visible] == 0).all() and (added[~visible] <= HIDES).all()
    return SeenKeys(window) if known else None


def may_hide_rows(mask: SSAValue) -> bool:
    """True if a mask may hold a row of minus infinities alone. Gives up, with yes, on masks that
    many ops make."""
    shape = shape_of(mask.type)
    if len(shape) >= 2 and shape[-2] == shape[-1] and seen_keys(mask, shape) is not None:
        return False
    pending = [mask]
    least = lowest(mask)
    for _ in range(_MASK_OPS):
        if not pending:
            return False
        value = pending.pop()
        op, splat = value.owner, splat_of(value)
        if splat is not None:
            if splat < least or splat != splat:
                return True
        elif not isinstance(op, CatalogueOp):
            return True
        elif op.name == "ttir.maximum":
            # One of both is enough.
            splats = [splat_of(operand) for operand in op.operands]
            if not any(number is not None and number >= least for number in splats):
                pending += op.operands
        elif op.name == "ttir.constant":
            if _has_hidden_row(op):
                return True
        elif op.name in _MAY_HIDE_AS_OPERANDS:
            pending += op.operands[1:] if op.name == "ttir.where" else op.operands
        else:
            return True
    return True


_MAY_HIDE_AS_OPERANDS = frozenset(
    f"ttir.{name}"
    for name in (
        *("where", "add", "minimum", "typecast", "reshape", "permute"),
        *("broadcast", "repeat", "repeat_interleave", "slice_static"),
    )
)


def _has_hidden_row(op: CatalogueOp) -> bool:
    try:
        array = evaluate(op, [])[0]
    except ValueError:
        return True
    return bool((array == -inf).any()) if array.ndim == 0 else bool((array == -inf).all(-1).any())
