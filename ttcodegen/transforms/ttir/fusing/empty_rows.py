"""Rows of attention in which a mask hides every key, by minus infinities or other numbers."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from ttcodegen.dialects.core.datatypes import element_of, shape_of, tensor_type
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.ops.attention.sdpa import LOWEST_MASKED
from ttcodegen.ops.core.builder import OpBuilder, splat_of
from ttcodegen.transforms.functions import merge_common_subexpressions
from ttcodegen.transforms.rewriting import Rewriter, functions, rewrite_each
from ttcodegen.transforms.ttir.fusing.attention import MASK_OPS, bounded, lowest, may_hide_rows

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
