"""Rows of attention that see no key are zero."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from ttcodegen.dialects.core.datatypes import element_of, shape_of, tensor_type
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.ops.attention.sdpa import LOWEST_MASKED
from ttcodegen.ops.core.builder import OpBuilder
from ttcodegen.transforms.functions.common_subexpressions import merge_common_subexpressions
from ttcodegen.transforms.rewriting import Rewriter, functions, rewrite_each
from ttcodegen.transforms.ttir.fusing.attention_masks import lowest, may_hide_rows

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
    if not may_hide_rows(mask) or 0 in shape_of(mask.type):
        return None
    operands = [
        operand if operand is not mask else bounded(rewriter, mask) for operand in op.operands
    ]
    result = rewriter.again(op, operands)
    seen = rewriter.typecast(seen_rows(rewriter, mask), op.result_type.element_type)
    rank = len(op.result_shape)
    seen = rewriter.reshape(seen, [1] * (rank - len(shape_of(seen.type))) + [*shape_of(seen.type)])
    return rewriter.emit("multiply", [result, seen], op.result_type)


def bounded(builder: OpBuilder, mask: SSAValue) -> SSAValue:
    """A mask without minus infinity."""
    ones = [1] * len(shape_of(mask.type))
    least = builder.full(ones, LOWEST_MASKED, element_of(mask.type))
    return builder.emit("maximum", [mask, least], mask.type)


def seen_rows(builder: OpBuilder, mask: SSAValue) -> SSAValue:
    """One for each row of a mask that holds more than minus infinity, else zero. The comparison is
    one of order: the vector engine finds two infinities different."""
    shape = shape_of(mask.type)
    least = builder.full([1] * len(shape), lowest(mask), element_of(mask.type))
    truth = tensor_type(element_of(mask.type), shape)
    return builder.reduce("max", builder.emit("ge", [mask, least], truth), [len(shape) - 1])
