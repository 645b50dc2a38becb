"""The fusing pass and its rules; fusion of table lookups and topk, and empty attention rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import prod

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from ttcodegen.dialects.core.datatypes import (
    element_of,
    f32,
    i1,
    normalized_data_type,
    shape_of,
    tensor_type,
)
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.foundation.lazy_numpy import np
from ttcodegen.ops.attention.sdpa import LOWEST_MASKED, seen_band
from ttcodegen.ops.core.builder import OpBuilder, splat_of
from ttcodegen.transforms.const_eval import known_elements
from ttcodegen.transforms.functions import merge_common_subexpressions
from ttcodegen.transforms.rewriting import PatternSet, Rewriter, functions, rewrite_each
from ttcodegen.transforms.ttir.canonicalize import canonical_rules
from ttcodegen.transforms.ttir.fusing.activations import ACTIVATIONS, ERROR_FUNCTIONS
from ttcodegen.transforms.ttir.fusing.attention import (
    ATTENTION,
    MASK_OPS,
    bounded,
    lowest,
    may_hide_rows,
)
from ttcodegen.transforms.ttir.fusing.grouped_attention import DECODING, GROUPED_ATTENTION
from ttcodegen.transforms.ttir.fusing.heads import HEADS, REPEATED, ROTATIONS, SPLITS
from ttcodegen.transforms.ttir.fusing.matmuls import BATCH_NORMS, PRODUCTS
from ttcodegen.transforms.ttir.fusing.normalizations import NORMALIZATIONS
from ttcodegen.transforms.ttir.movement_passes import broadcast_rules
from ttcodegen.transforms.ttir.queries import is_float, is_weight

# Table lookups as matmuls by one-hot rows.

LOOKUPS = PatternSet()


@LOOKUPS.on("ttir.matmul")
def fuse_one_hot(rewriter: Rewriter, op: CatalogueOp) -> SSAValue | None:
    """Rewrites a matmul of one-hot rows and a weight table to an embedding.

    Rows of indices outside of the table are zero. Non-finite rows of the table make all results of
    a matmul NaN, but not those of an embedding.
    """
    if op.parameter("transpose_a") or op.parameter("transpose_b"):
        return None
    one_hot, table = op.operands
    places = _one_hot_indices(rewriter, one_hot)
    shape = shape_of(table.type)
    if places is None or len(shape) != 2 or not is_float(table) or not is_weight(table):
        return None
    count = prod(op.result_shape[:-1])
    places = rewriter.reshape(places, [count])
    within = rewriter.like("clamp_scalar", places, min=0, max=shape[0] - 1)
    rows = tensor_type(element_of(table.type), [count, shape[1]])
    found = rewriter.emit("embedding", [within, table], rows)
    is_within = rewriter.like("eq", places, within, element=i1)
    zero = rewriter.full([1, 1], 0.0, rows.element_type)
    found = rewriter.emit("where", [rewriter.reshape(is_within, [count, 1]), found, zero], rows)
    found = rewriter.typecast(found, op.result_type.element_type)
    return rewriter.reshape(found, op.result_shape)


def _one_hot_indices(rewriter: Rewriter, one_hot: SSAValue) -> SSAValue | None:
    """Returns the integers whose one-hot encoding `one_hot` is, or None."""
    value = one_hot
    while (converted := rewriter.sole(value, "ttir.typecast")) is not None:
        value = converted.operands[0]
    if (choice := rewriter.sole(value, "ttir.where")) is not None:
        condition, one, zero = choice.operands
        if splat_of(one) != 1 or splat_of(zero) != 0:
            return None
        if choice.result_shape != shape_of(condition.type):
            return None
        value = condition
    compared = rewriter.sole(value, "ttir.eq")
    if compared is None:
        return None
    shape = compared.result_shape
    for places, numbers in (compared.operands, compared.operands[::-1]):
        own = shape_of(places.type)
        if (1,) * (len(shape) - len(own)) + own != (*shape[:-1], 1):
            continue
        data_type = normalized_data_type(element_of(places.type))
        if data_type is None or data_type.is_float or element_of(places.type) == i1:
            continue
        if _is_iota(numbers, shape[-1]):
            return places
    return None


def _is_iota(numbers: SSAValue, size: int) -> bool:
    """Returns whether the values are known to be 0, 1, 2, ... along the last dimension."""
    if prod(shape_of(numbers.type)) == 0 or shape_of(numbers.type)[-1:] != (size,):
        return False
    known = known_elements(numbers)
    return known is not None and bool((known == np.arange(size)).all())


# Leading elements of a sort: `topk`.

SELECTIONS = PatternSet()


@SELECTIONS.on("ttir.reverse")
def sort_the_other_way(rewriter: Rewriter, op: CatalogueOp) -> SSAValue | None:
    """Folds a reverse into the sort order if the indices are unused: equal ones would be
    swapped."""
    source = op.operands[0]
    sort = rewriter.sole(source, "ttir.sort")
    if sort is None or source is not sort.results[0] or sort.results[1].first_use is not None:
        return None
    rank = len(op.result_shape)
    if [dim % rank for dim in op.parameter("dimensions")] != [sort.parameter("dim") % rank]:
        return None
    made = rewriter.emit_op(
        "sort",
        [sort.operands[0]],
        [result.type for result in sort.results],
        dim=sort.parameter("dim"),
        descending=not sort.parameter("descending"),
        stable=sort.parameter("stable"),
    )
    return made.results[0]


@SELECTIONS.on("ttir.slice_static")
def fuse_topk(rewriter: Rewriter, op: CatalogueOp) -> SSAValue | None:
    """Rewrites slices of the first k of sorted floats, or of their indices, to topk.

    All uses have to be such slices. Each makes the op; equal ops are merged later.
    """
    sort = rewriter.defining(op.operands[0], "ttir.sort")
    if sort is None or not is_float(sort.operands[0]) or not sort.result_shape:
        return None
    count = _first_elements(sort, op)
    if not count or count == sort.result_shape[sort.parameter("dim")]:
        return None
    users = [use.operation for result in sort.results for use in result.uses]
    if any(_first_elements(sort, user) != count for user in users):
        return None
    made = rewriter.emit_op(
        "topk",
        [sort.operands[0]],
        [tensor_type(element_of(result.type), op.result_shape) for result in sort.results],
        k=count,
        dim=sort.parameter("dim"),
        largest=sort.parameter("descending"),
        sorted=True,
    )
    return made.results[0 if op.operands[0] is sort.results[0] else 1]


def _first_elements(sort: CatalogueOp, user: Operation) -> int | None:
    """Counts the leading sorted elements that a user slices, or returns None."""
    if not isinstance(user, CatalogueOp) or user.name != "ttir.slice_static":
        return None
    if any(user.parameter("begins")) or any(step != 1 for step in user.parameter("step")):
        return None
    shape = list(sort.result_shape)
    dim: int = sort.parameter("dim")
    shape[dim] = user.result_shape[dim]
    return shape[dim] if user.result_shape == tuple(shape) else None


@cache
def fusing_rules() -> PatternSet:
    """Returns the fusing rules with the simplifications that they depend on."""
    return PatternSet.union(
        canonical_rules(), broadcast_rules(), NORMALIZATIONS, BATCH_NORMS, ACTIVATIONS, LOOKUPS,
        PRODUCTS, REPEATED, ATTENTION, GROUPED_ATTENTION, DECODING, ROTATIONS, SELECTIONS,
        HEADS, ERROR_FUNCTIONS,
    )  # fmt: skip


@dataclass(frozen=True)
class TTIRFusingPass(ModulePass):
    """Fuses decomposed biases, padding, activations, norms, lookups and attention.

    Ops whose intermediate values have other users are kept.
    """

    name = "ttir-fusing"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        rules = fusing_rules()
        for function in functions(op):
            rules.apply(function)
            SPLITS.apply(function)
            if users := merge_common_subexpressions(function):
                rules.apply(function, users)


_ATTENTION = "ttir.scaled_dot_product_attention"
_DECODING = frozenset(
    f"ttir.{kind}_attention_decode"
    for kind in ("scaled_dot_product", "paged_scaled_dot_product", "paged_flash_multi_latent")
)
"""Decode attention ops: queries (1, users, heads, size) and masks (users, 1, heads, keys)."""


@dataclass(frozen=True)
class TTIREmptyAttentionRowsPass(ModulePass):
    """Zeroes the rows of attention in which a mask hides every key.

    The kernels do not handle such rows: they divide by the sum of exponentials of the distances
    from the maximum, which are NaN if the maximum is minus infinity, and 1 if it is finite
    (compute_common.hpp of the attention in tt-metal). So masks are bounded to finite values, and
    the result is multiplied by whether the row sees any key. Masks known to hide no whole row are
    kept.
    """

    name = "ttir-empty-attention-rows"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions(op):
            if rewrite_each(function, _with_empty_rows, _attends):
                merge_common_subexpressions(function)


def _attends(op: CatalogueOp) -> bool:
    return op.name == _ATTENTION or op.name in _DECODING


def _with_empty_rows(rewriter: Rewriter, op: CatalogueOp) -> SSAValue | None:
    mask = op.optional_operand("attention_mask")
    if mask is None or _has_sink(op):
        return None
    if 0 in shape_of(mask.type) or _is_bounded(mask):
        return None
    may_hide, is_moderate = may_hide_rows(mask), _hides_by_moderate_numbers(mask)
    if not may_hide and not is_moderate:
        return None
    if op.name == _ATTENTION and op.parameter("sliding_window_size"):
        return _without_window(rewriter, op, mask)
    limited = bounded(rewriter, mask)
    if is_moderate:
        limited = bounded(rewriter, _shifted_to_zero(rewriter, limited))
    operands = [operand if operand is not mask else limited for operand in op.operands]
    result = rewriter.again(op, operands)
    if not may_hide:
        return result
    seen = rewriter.typecast(seen_rows(rewriter, mask), op.result_type.element_type)
    if op.name in _DECODING:
        seen = rewriter.permute(seen, [1, 0, 2, 3])
    rank = len(op.result_shape)
    seen = rewriter.reshape(seen, [1] * (rank - len(shape_of(seen.type))) + [*shape_of(seen.type)])
    return rewriter.emit("multiply", [result, seen], op.result_type)


def _without_window(builder: OpBuilder, op: CatalogueOp, mask: SSAValue) -> SSAValue:
    """Merges the sliding window into the mask: both together may hide whole rows.

    The kernels would take the window as a mask anyway.
    """
    queries, keys = op.shape("query")[2], op.shape("key")[2]
    band = seen_band(queries, keys, False, op.parameter("sliding_window_size"))
    assert band is not None
    element = element_of(mask.type)
    rows = np.arange(queries, dtype=np.float32).reshape(1, 1, queries, 1) - band.center
    columns = np.arange(keys, dtype=np.float32).reshape(1, 1, 1, keys)
    apart = builder.broadcasting("subtract", *(builder.constant(x) for x in (rows, columns)))
    half = builder.full([1] * 4, band.half, f32)
    inside = builder.broadcasting("le", builder.like("abs", apart), half)
    shown, unseen = (builder.full([1] * 4, number, element) for number in (0.0, -np.inf))
    window = builder.broadcasting("where", inside, shown, unseen, element=element)
    return builder.emit(
        _ATTENTION.removeprefix("ttir."),
        [*op.operands[:3], builder.broadcasting("add", mask, window)],
        op.result_type,
        is_causal=False,
        scale=op.parameter("scale"),
    )


def _has_sink(op: CatalogueOp) -> bool:
    """Returns whether an attention sink adds a term to the row sums, which are then never zero."""
    names = {spec.name for spec in op.definition.operands}
    return "attention_sink" in names and op.optional_operand("attention_sink") is not None


_MODERATE = (-1e6, -64.0)
"""Range of mask values that hide keys, but still keep most bits of an added float32 score."""


def _hides_by_moderate_numbers(mask: SSAValue) -> bool:
    """Returns whether a constant in the mask is in the range `_MODERATE`."""
    pending, seen = [mask], {mask}
    while pending and len(seen) < MASK_OPS:
        value = pending.pop()
        number = splat_of(value)
        if number is not None and _MODERATE[0] < number <= _MODERATE[1]:
            return True
        if isinstance(value.owner, CatalogueOp):
            fresh = [operand for operand in value.owner.operands if operand not in seen]
            seen.update(fresh)
            pending += fresh
    return False


def _shifted_to_zero(builder: OpBuilder, mask: SSAValue) -> SSAValue:
    """Subtracts the row maximum from a mask, unless it is too low to leave scores in float32.

    Kernels round scores to 16 bits after adding the mask.
    """
    shape = shape_of(mask.type)
    most = builder.reduce("max", mask, [len(shape) - 1])
    least = builder.full([1] * len(shape), _MODERATE[0], element_of(mask.type))
    most = builder.like("multiply", most, builder.broadcasting("ge", most, least))
    return builder.broadcasting("subtract", mask, most)


def _is_bounded(mask: SSAValue) -> bool:
    """Returns whether `bounded` made the mask."""
    op = mask.owner
    return (
        isinstance(op, CatalogueOp)
        and op.name == "ttir.maximum"
        and splat_of(op.operands[1]) == LOWEST_MASKED
    )


def seen_rows(builder: OpBuilder, mask: SSAValue) -> SSAValue:
    """Returns one for each row of a mask with an element above minus infinity, else zero.

    Compares by order, since the vector engine does not find two infinities equal.
    """
    shape = shape_of(mask.type)
    least = builder.full([1] * len(shape), lowest(mask), element_of(mask.type))
    truth = tensor_type(element_of(mask.type), shape)
    return builder.reduce("max", builder.emit("ge", [mask, least], truth), [len(shape) - 1])
