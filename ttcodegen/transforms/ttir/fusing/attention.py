"""Fusion of attention, and analysis of its masks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf, prod
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import TensorType
from xdsl.ir import SSAValue

from ttcodegen.dialects.core.datatypes import (
    DataType,
    bf16,
    element_of,
    normalized_data_type,
    shape_of,
)
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.foundation.lazy_numpy import np
from ttcodegen.ops.attention.reference import Band
from ttcodegen.ops.attention.sdpa import LOWEST_MASKED
from ttcodegen.ops.core.builder import OpBuilder, splat_of
from ttcodegen.ops.reduction.reduce import reduced_dims
from ttcodegen.transforms.const_eval import evaluate, known_elements
from ttcodegen.transforms.rewriting import PatternSet, Rewriter
from ttcodegen.transforms.ttir.fusing.activations import product_of
from ttcodegen.transforms.ttir.fusing.heads import REPETITIONS, head_repetition, repetition
from ttcodegen.transforms.ttir.movement_passes import broadcast
from ttcodegen.transforms.ttir.position_forms import Hiding, Region
from ttcodegen.transforms.ttir.position_values import form_of
from ttcodegen.transforms.ttir.queries import is_float, same_type, unconverted

if TYPE_CHECKING:
    import numpy


# Analysis of attention masks: the keys visible to each query.

HIDES = -0.99e9
"""Upper bound on mask values that hide a score, whether added or selected.

Masks of -1e9 count, also where bfloat16 rounds them up. In rows without a visible score all weights
are equal then, added or selected.
"""
_LOWEST = {DataType.BFLOAT16: -3.3895313892515355e38, DataType.FLOAT32: -3.4028234663852886e38}
MASK_OPS = 256


def lowest(value: SSAValue) -> float:
    """Returns the lowest finite number of the element type."""
    data_type = normalized_data_type(element_of(value.type))
    return _LOWEST[DataType.FLOAT32 if data_type is None else data_type]


@dataclass(frozen=True)
class SeenKeys:
    """Keys that a mask shows each query: all up to it, the last `window`, or those around it."""

    window: int | None
    is_causal: bool = True


def seen_keys(mask: SSAValue, scores: tuple[int, ...]) -> SeenKeys | None:
    """Recognizes an additive mask that is causal, a sliding window or both, or returns None."""
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


def hides_nothing(mask: SSAValue) -> bool:
    """Returns whether an additive mask is known to be zero, as in encoders."""
    form, shape = form_of(mask), shape_of(mask.type)
    if isinstance(form, Hiding):
        return all(bound.bounds(shape)[0] >= 0 for bound in form.visible.bounds)
    return splat_of(mask) == 0


def _band(visible: Region, shape: tuple[int, ...]) -> SeenKeys | None:
    """Returns the keys of a region bounded only by the distance of query and key, or None."""
    after, before = None, None
    for bound in visible.bounds:
        if bound.bounds(shape)[0] >= 0:
            continue
        *outer, query, key = bound.coefficients
        if any(outer) or (query, key) not in ((1, -1), (-1, 1)):
            return None
        if query == 1:
            after = int(bound.constant)
        else:
            before = int(bound.constant)
    if after == 0 and (before is None or before >= 0):
        return SeenKeys(None if before is None else before + 1)
    if after is not None and after == before and after > 0:
        return SeenKeys(2 * after + 1, is_causal=False)
    return None


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
    """Returns whether a mask may have rows of minus infinity only; conservatively True for large
    masks."""
    shape = shape_of(mask.type)
    if hides_nothing(mask):
        return False
    if len(shape) >= 2 and shape[-2] == shape[-1] and seen_keys(mask, shape) is not None:
        return False
    pending = [mask]
    least = lowest(mask)
    for _ in range(MASK_OPS):
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
            # One bounded operand suffices.
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


def hides_keys(mask: SSAValue) -> bool:
    """Returns whether an additive mask may hide keys; conservatively True for large masks."""
    pending = [mask]
    for _ in range(MASK_OPS):
        if not pending:
            return False
        value = pending.pop()
        op, splat = value.owner, splat_of(value)
        if splat is not None:
            if not splat > HIDES:
                return True
        elif not isinstance(op, CatalogueOp):
            if is_float(value):
                return True
        elif op.name == "ttir.constant":
            try:
                if not bool((evaluate(op, [])[0] > HIDES).all()):
                    return True
            except ValueError:
                return True
        else:
            pending += op.operands
    return True


def sum_of_masks(rewriter: Rewriter, masks: Sequence[SSAValue]) -> SSAValue | None:
    """Returns the sum of additive masks without minus infinity.

    None if several of them may hide keys and not all are known by position: where together they
    hide a whole row, keys hidden by one mask would weigh more than those hidden by two.
    """
    hiding = [mask for mask in masks if hides_keys(mask)]
    if len(hiding) > 1 and not all(isinstance(form_of(mask), Hiding) for mask in hiding):
        return None
    total, *others = (rewriter.typecast(mask, bf16) for mask in masks)
    for other in others:
        shape = np.broadcast_shapes(shape_of(total.type), shape_of(other.type))
        total = rewriter.emit("add", [total, other], TensorType(bf16, shape))
    return bounded(rewriter, total)


def bounded(builder: OpBuilder, mask: SSAValue) -> SSAValue:
    """Returns a mask bounded from below, without minus infinity."""
    ones = [1] * len(shape_of(mask.type))
    least = builder.full(ones, LOWEST_MASKED, element_of(mask.type))
    return builder.emit("maximum", [mask, least], mask.type)


# Decomposed attention: concatenation of heads, scaled dot products.

ATTENTION = PatternSet()

_HEAD_SIZE = 32
"""Head sizes have to be multiples of this tile width in the library (docs/library-rules.md)."""


@ATTENTION.on("ttir.reshape")
def fuse_concatenate_heads(rewriter: Rewriter, op: CatalogueOp) -> SSAValue | None:
    """(batch, heads, sequence, size) to (batch, sequence, heads * size)."""
    permuted = rewriter.sole(op.operands[0], "ttir.permute")
    if permuted is None or permuted.parameter("permutation") != [0, 2, 1, 3]:
        return None
    batch, sequence, heads, size = permuted.result_shape
    wanted = ((batch, sequence, heads * size), (batch * sequence, heads * size))
    if op.result_shape not in wanted or size % _HEAD_SIZE != 0 or heads == 1 or sequence == 1:
        return None
    joined = TensorType(op.result_type.element_type, wanted[0])
    result = rewriter.emit("concatenate_heads", [permuted.operands[0]], joined)
    return rewriter.reshape(result, op.result_shape)


# Scaled dot product attention


@dataclass(frozen=True)
class _Factor:
    """An operand of a matmul, without the ops that were stripped from it."""

    value: SSAValue
    number: float = 1.0
    transposed: bool = False
    repeats: int = 1
    """Repetition count of each head."""


_UNDONE = (
    "ttir.typecast",
    "ttir.permute",
    "ttir.reshape",
    *REPETITIONS,
    "ttir.multiply",
    "ttir.div",
    "ttir.neg",
)


def _factor(rewriter: Rewriter, value: SSAValue, transposed: bool = False) -> _Factor:
    """Strips conversions, constant factors, head repetitions and transposes from an operand."""
    factor = found = _Factor(value, transposed=transposed)
    for _ in range(2 * len(_UNDONE)):
        producer = rewriter.sole(factor.value, *_UNDONE)
        inner = None if producer is None else _without(rewriter, factor, producer)
        if inner is None:
            break
        factor = inner
        # Values computed in a wider type, such as rotated queries, are used as rounded for the
        # matmul.
        if element_of(factor.value.type) == bf16:
            found = factor
    return found


def _without(rewriter: Rewriter, factor: _Factor, op: CatalogueOp) -> _Factor | None:
    """Strips one op from a factor; None if the op cannot be stripped."""
    source = op.operands[0]
    if not is_float(source):
        return None
    if op.name in REPETITIONS:
        repeats = head_repetition(op)
        return replace(factor, value=source, repeats=factor.repeats * repeats) if repeats else None
    match op.name:
        case "ttir.typecast":
            return replace(factor, value=source)
        case "ttir.permute" | "ttir.reshape":
            if op.name == "ttir.permute" and op.parameter("permutation") == [0, 1, 3, 2]:
                return replace(factor, value=source, transposed=not factor.transposed)
            return _scaled_before(rewriter, factor, op)
        case _:
            product = product_of(rewriter, op)
            if len(product.factors) != 1 or not same_type(product.factors[0], op):
                return None
            number = factor.number * product.number
            return replace(factor, value=product.factors[0], number=number)


def _scaled_before(rewriter: Rewriter, factor: _Factor, op: CatalogueOp) -> _Factor | None:
    """Strips a constant factor that was applied before a permute or reshape."""
    producer = rewriter.sole(op.operands[0], "ttir.multiply", "ttir.div", "ttir.neg")
    product = None if producer is None else product_of(rewriter, producer)
    if producer is None or product is None or len(product.factors) != 1:
        return None
    if not same_type(product.factors[0], producer):
        return None
    moved = rewriter.again(op, [product.factors[0]])
    return replace(factor, value=moved, number=factor.number * product.number)


def _converted(rewriter: Rewriter, value: SSAValue) -> SSAValue:
    """Returns `value` before a conversion between floats."""
    producer = rewriter.sole(value, "ttir.typecast")
    return producer.operands[0] if producer and is_float(producer.operands[0]) else value


@dataclass(frozen=True)
class Scores:
    """Decomposed scores under the softmax of an attention."""

    product: CatalogueOp
    number: float
    mask: SSAValue | None
    """Additive mask or, if `hidden` is set, boolean mask of the scores."""
    hidden: float = 0.0
    """Fill value of the scores that the boolean mask hides.

    The mask hides where it is false, or true if it is inverted.
    """
    inverted: bool = False

    def added(self, rewriter: Rewriter) -> SSAValue | None:
        """Returns the additive mask of the scores."""
        if self.mask is None or self.hidden == 0.0:
            return self.mask
        shape = [1] * len(shape_of(self.mask.type))
        hidden = max(self.hidden, LOWEST_MASKED)
        choices = [rewriter.full(shape, number, bf16) for number in (0.0, hidden)]
        if self.inverted:
            choices.reverse()
        result = TensorType(bf16, shape_of(self.mask.type))
        return rewriter.emit("where", [self.mask, *choices], result)


def _scores(rewriter: Rewriter, value: SSAValue) -> Scores | None:
    """Matches a matmul, scaled, plus an additive mask or selected by a boolean one."""
    total = rewriter.defining(unconverted(rewriter, value), "ttir.add", "ttir.where", *_PRODUCTS)
    if total is None:
        return None
    if total.name == "ttir.where":
        return _selected_scores(rewriter, total)
    if total.name != "ttir.add":
        found = _product(rewriter, total.results[0])
        return None if found is None else Scores(*found, None)
    for candidate, mask in _either_way(total):
        found = _product(rewriter, candidate)
        if found is not None and candidate.has_one_use():
            return Scores(*found, _converted(rewriter, mask))
    return None


def _selected_scores(rewriter: Rewriter, choice: CatalogueOp) -> Scores | None:
    """Matches scores selected by a condition, else hidden, or the inverse."""
    condition, first, second = choice.operands
    for scores, other, inverted in ((first, second, False), (second, first, True)):
        number = splat_of(other)
        if number is None or number > HIDES or not scores.has_one_use():
            continue
        found = _product(rewriter, scores)
        if found is not None:
            return Scores(*found, condition, float(number), inverted)
        biased = rewriter.defining(scores, "ttir.add")
        for candidate, bias in () if biased is None else _either_way(biased):
            found = _product(rewriter, candidate)
            if found is not None and candidate.has_one_use():
                choices = [other, bias] if inverted else [bias, other]
                return Scores(*found, _selected_bias(rewriter, condition, *choices))
    return None


def _either_way(op: CatalogueOp) -> tuple[tuple[SSAValue, SSAValue], ...]:
    """Both orders of an op's operands."""
    lhs, rhs = op.operands
    return (lhs, rhs), (rhs, lhs)


def _selected_bias(
    rewriter: Rewriter, condition: SSAValue, first: SSAValue, second: SSAValue
) -> SSAValue:
    """Returns a select in bf16, of the smallest shape that holds it."""
    first, second = rewriter.typecast(first, bf16), rewriter.typecast(second, bf16)
    shape = np.broadcast_shapes(*(shape_of(each.type) for each in (condition, first, second)))
    return rewriter.emit("where", [condition, first, second], TensorType(bf16, shape))


_PRODUCTS = ("ttir.matmul", "ttir.multiply", "ttir.div")


def _product(rewriter: Rewriter, value: SSAValue) -> tuple[CatalogueOp, float] | None:
    """Matches a matmul times a constant; returns both."""
    producer = rewriter.defining(_converted(rewriter, value), *_PRODUCTS)
    if producer is None or producer.name == "ttir.matmul":
        return None if producer is None else (producer, 1.0)
    product = product_of(rewriter, producer)
    if len(product.factors) != 1:
        return None
    matmul = rewriter.sole(_converted(rewriter, product.factors[0]), "ttir.matmul")
    return None if matmul is None else (matmul, product.number)


def _softmax(rewriter: Rewriter, value: SSAValue) -> tuple[CatalogueOp, bool] | None:
    """Matches a softmax over the last dimension.

    Also returns whether a select zeroes rows of minus infinity only.
    """
    guard = rewriter.sole(value, "ttir.where")
    if guard is None:
        softmax = rewriter.sole(value, "ttir.softmax")
        is_guarded = softmax is None or not softmax.operands[0].has_one_use()
        return None if softmax is None or is_guarded or not _is_last(softmax) else (softmax, False)
    condition, first, second = guard.operands
    negation = rewriter.sole(condition, "ttir.logical_not")
    if negation is not None:
        condition, first, second = negation.operands[0], second, first
    softmax = rewriter.sole(first, "ttir.softmax")
    if softmax is None or splat_of(second) != 0 or not _is_last(softmax):
        return None
    return (softmax, True) if _has_finite(rewriter, condition, softmax.operands[0]) else None


def _is_last(softmax: CatalogueOp) -> bool:
    rank = len(softmax.result_shape)
    return rank == 4 and softmax.parameter("dimension") % rank == rank - 1


def _has_finite(rewriter: Rewriter, condition: SSAValue, scores: SSAValue) -> bool:
    """Matches `condition` as true for rows of `scores` with an element above minus infinity.

    The scores may have no other users than the condition and a softmax.
    """
    found = rewriter.sole(condition, "ttir.max")
    if found is None or not found.parameter("keep_dim") or reduced_dims(found) != [3]:
        return False
    unequal = rewriter.sole(found.operands[0], "ttir.ne")
    if unequal is None or unequal.operands[0] is not scores:
        return False
    uses = [use.operation for _, use in zip(range(3), scores.uses, strict=False)]
    return splat_of(unequal.operands[1]) == float("-inf") and len(uses) == 2


@ATTENTION.on("ttir.matmul")
def fuse_attention(rewriter: Rewriter, op: CatalogueOp) -> SSAValue | None:
    """softmax(scale * Q K^T + mask) V of bf16 tensors (batch, heads, sequence, size)."""
    if len(op.result_shape) != 4:
        return None
    if op.parameter("transpose_a") or op.parameter("transpose_b"):
        return None
    found = _softmax(rewriter, _converted(rewriter, op.operands[0]))
    scores = None if found is None else _scores(rewriter, found[0].operands[0])
    if found is None or scores is None or scores.product.parameter("transpose_a"):
        return None
    product = scores.product
    query = _factor(rewriter, product.operands[0])
    key = _factor(rewriter, product.operands[1], product.parameter("transpose_b"))
    value = _factor(rewriter, op.operands[1])
    if query.transposed or not key.transposed or value.transposed or value.number != 1.0:
        return None
    if query.repeats != 1:
        return None
    result = emit_attention(
        rewriter,
        query.value,
        key.value,
        value.value,
        replace(scores, number=scores.number * query.number * key.number),
        product.result_shape,
        is_guarded=found[1],
    )
    return None if result is None else rewriter.typecast(result, op.result_type.element_type)


def emit_attention(
    rewriter: Rewriter,
    query: SSAValue,
    key: SSAValue,
    value: SSAValue,
    scores: Scores,
    shape: tuple[int, ...],
    *,
    is_guarded: bool = False,
) -> SSAValue | None:
    """Emits the op for softmax(scores) V, in bf16.

    Args:
        query: (batch, heads, queries, size); `key` and `value` as the library takes them.
        scores: the decomposed operand of the softmax; its matmul is not used.
        shape: (batch, heads, queries, keys).
        is_guarded: whether fully masked rows are zero, as in the op. Otherwise they are NaN or, if
            the mask has the lowest number there, the mean of the values: they become the latter.

    Returns None if the library has no attention for these tensors, or not with this mask.
    """
    if not _attends(query, key, value):
        return None
    mask = scores.added(rewriter)
    if mask is not None and hides_nothing(mask):
        mask = None
    seen = None if mask is None else seen_keys(mask, shape)
    if mask is not None and seen is None:
        if not is_guarded and may_hide_rows(mask):
            mask = bounded(rewriter, mask)
        mask = _fitting_mask(rewriter, mask, shape)
        if mask is None:
            return None
    return rewriter.emit(
        "scaled_dot_product_attention",
        [query, key, value, None if seen is not None else mask],
        TensorType(bf16, shape_of(query.type)),
        is_causal=seen is not None and seen.is_causal,
        scale=scores.number,
        sliding_window_size=None if seen is None else seen.window,
    )


@ATTENTION.on("ttir.scaled_dot_product_attention")
def attend_to_earlier_keys(rewriter: Rewriter, op: CatalogueOp) -> SSAValue | None:
    """Replaces a causal or windowed mask by attributes, and drops a mask that hides nothing."""
    mask, query, key = (op.optional_operand(name) for name in ("attention_mask", "query", "key"))
    if mask is None or query is None or key is None:
        return None
    if hides_nothing(mask):
        return rewriter.emit(
            "scaled_dot_product_attention",
            [query, key, op.operand("value"), None, op.optional_operand("attention_sink")],
            op.result_type,
            is_causal=op.parameter("is_causal"),
            scale=op.parameter("scale"),
            sliding_window_size=op.parameter("sliding_window_size"),
        )
    if element_of(query.type) != bf16:
        return None
    if op.parameter("is_causal") or op.parameter("sliding_window_size"):
        return None
    scores = (*shape_of(query.type)[:-1], shape_of(key.type)[-2])
    seen = seen_keys(mask, scores)
    if seen is None:
        return None
    return rewriter.emit(
        "scaled_dot_product_attention",
        [query, key, op.operand("value"), None, op.optional_operand("attention_sink")],
        op.result_type,
        is_causal=seen.is_causal,
        scale=op.parameter("scale"),
        sliding_window_size=seen.window,
    )


def _attends(query: SSAValue, keys: SSAValue, values: SSAValue) -> bool:
    """Returns whether the attention op takes these tensors.

    Heads that are no whole tiles are padded for the library (docs/library-rules.md).
    """
    shapes = [shape_of(tensor.type) for tensor in (query, keys, values)]
    if any(len(shape) != 4 for shape in shapes) or shapes[1] != shapes[2]:
        return False
    batch, heads, _, size = shapes[0]
    if any(element_of(tensor.type) != bf16 for tensor in (query, keys, values)):
        return False
    same = shapes[1][0] == batch and shapes[1][3] == size and heads % shapes[1][1] == 0
    return same and size > 0


def _fitting_mask(rewriter: Rewriter, mask: SSAValue, scores: tuple[int, ...]) -> SSAValue | None:
    """Returns the mask as the library takes it: rank 4, bf16, full rows and columns; else None."""
    shape = shape_of(mask.type)
    shape = (1,) * (4 - len(shape)) + shape
    if len(shape) != 4 or any(a not in (1, b) for a, b in zip(shape, scores, strict=True)):
        return None
    if prod(scores) == 0:
        return None
    mask = rewriter.typecast(rewriter.reshape(mask, shape), bf16)
    wanted = (*shape[:2], *scores[2:])
    return mask if wanted == shape else broadcast(rewriter, mask, TensorType(bf16, wanted))
