"""The fusing pass with its rules; fusion of table lookups and topk, and empty attention rows."""

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
    i1,
    normalized_data_type,
    shape_of,
    tensor_type,
)
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.foundation.lazy_numpy import np
from ttcodegen.ops.attention.sdpa import LOWEST_MASKED
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

# Rows of tables that were looked up by products with zeros and ones.

LOOKUPS = PatternSet()


@LOOKUPS.on("ttir.matmul")
def fuse_one_hot(rewriter: Rewriter, op: CatalogueOp) -> SSAValue | None:
    """A product of one-hot rows with a table of weights is an embedding. Where an index is outside
    of the table its row is zero. Of what is computed, rows that are not finite make the others NaN
    in a product, which an embedding does not."""
    if op.parameter("transpose_a") or op.parameter("transpose_b"):
        return None
    one_hot, table = op.operands
    places = _places(rewriter, one_hot)
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


def _places(rewriter: Rewriter, one_hot: SSAValue) -> SSAValue | None:
    """Integers, if each row of `one_hot` is one at the index that one of them says, else zero."""
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
        if _counts(numbers, shape[-1]):
            return places
    return None


def _counts(numbers: SSAValue, size: int) -> bool:
    """True if numbers are known to be 0, 1, 2, ... along the last dimension."""
    if prod(shape_of(numbers.type)) == 0 or shape_of(numbers.type)[-1:] != (size,):
        return False
    known = known_elements(numbers)
    return known is not None and bool((known == np.arange(size)).all())


# The first elements of sorted ones: `topk`.

SELECTIONS = PatternSet()


@SELECTIONS.on("ttir.reverse")
def sort_the_other_way(rewriter: Rewriter, op: CatalogueOp) -> SSAValue | None:
    """Sorted values backwards are sorted the other way, if their indices are not used: equal ones
    would change places."""
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
    """The first k of sorted floats, or of their indices, if the others are not used. Each
    slice makes the op; equal ones are merged."""
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
    """The fusing rules, with the simplifications between them that they wait for."""
    return PatternSet.union(
        canonical_rules(), broadcast_rules(), NORMALIZATIONS, BATCH_NORMS, ACTIVATIONS, LOOKUPS,
        PRODUCTS, REPEATED, ATTENTION, GROUPED_ATTENTION, DECODING, ROTATIONS, SELECTIONS,
        HEADS, ERROR_FUNCTIONS,
    )  # fmt: skip


@dataclass(frozen=True)
class TTIRFusingPass(ModulePass):
    """Recognises biases, padding, activations, norms, lookups and attention that were spelled out.

    Where others use an intermediate value, the ops stay as they are.
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


@dataclass(frozen=True)
class TTIREmptyAttentionRowsPass(ModulePass):
    """Makes the rows of attention zero in which a mask hides every key.

    The kernels know no such rows: they divide by the sum of the exponentials of the distances from
    the maximum, which are no numbers where the maximum is minus infinity, and one where it is any
    number (compute_common.hpp of the attention in tt-metal). So masks are limited to what is
    finite, and the result is multiplied with whether the row sees anything. Masks that are known to
    hide no whole row stay.
    """

    name = "ttir-empty-attention-rows"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions(op):
            if rewrite_each(function, _with_empty_rows, lambda each: each.name == _ATTENTION):
                merge_common_subexpressions(function)


def _with_empty_rows(rewriter: Rewriter, op: CatalogueOp) -> SSAValue | None:
    mask = op.optional_operand("attention_mask")
    # A sink is one more term in the sum, which is never zero then.
    if mask is None or op.optional_operand("attention_sink") is not None:
        return None
    if 0 in shape_of(mask.type) or _is_bounded(mask):
        return None
    may_hide, is_moderate = may_hide_rows(mask), _hides_by_moderate_numbers(mask)
    if not may_hide and not is_moderate:
        return None
    limited = bounded(rewriter, mask)
    if is_moderate:
        limited = bounded(rewriter, _less_maximum(rewriter, limited))
    operands = [operand if operand is not mask else limited for operand in op.operands]
    result = rewriter.again(op, operands)
    if not may_hide:
        return result
    seen = rewriter.typecast(seen_rows(rewriter, mask), op.result_type.element_type)
    rank = len(op.result_shape)
    seen = rewriter.reshape(seen, [1] * (rank - len(shape_of(seen.type))) + [*shape_of(seen.type)])
    return rewriter.emit("multiply", [result, seen], op.result_type)


_MODERATE = (-1e6, -64.0)
"""Numbers that hide keys, to which float32 adds a score without losing most of its bits."""


def _hides_by_moderate_numbers(mask: SSAValue) -> bool:
    """True if one of the numbers that a mask is made of hides keys, but is no lowest number."""
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


def _less_maximum(builder: OpBuilder, mask: SSAValue) -> SSAValue:
    """A mask less the greatest number of each row, unless that leaves no scores in float32 either:
    kernels round scores to 16 bits after adding it."""
    shape = shape_of(mask.type)
    most = builder.reduce("max", mask, [len(shape) - 1])
    least = builder.full([1] * len(shape), _MODERATE[0], element_of(mask.type))
    most = builder.like("multiply", most, builder.broadcasting("ge", most, least))
    return builder.broadcasting("subtract", mask, most)


def _is_bounded(mask: SSAValue) -> bool:
    """True if `bounded` made a mask."""
    op = mask.owner
    return (
        isinstance(op, CatalogueOp)
        and op.name == "ttir.maximum"
        and splat_of(op.operands[1]) == LOWEST_MASKED
    )


def seen_rows(builder: OpBuilder, mask: SSAValue) -> SSAValue:
    """One for each row of a mask that holds more than minus infinity, else zero. The comparison is
    one of order: the vector engine finds two infinities different."""
    shape = shape_of(mask.type)
    least = builder.full([1] * len(shape), lowest(mask), element_of(mask.type))
    truth = tensor_type(element_of(mask.type), shape)
    return builder.reduce("max", builder.emit("ge", [mask, least], truth), [len(shape) - 1])
