"""Leaves broadcasting to the ops that do it themselves.

A broadcast moves towards its users: after ops of one operand, reshapes and permutes, and is
dropped where it meets an elementwise op that broadcasts as numpy does. The library does so for all
of them (docs/library-rules.md: binary ops, where, clamp; ranks may differ for binary ops).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import prod

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import Attribute, SSAValue
from xdsl.passes import ModulePass

from ttcodegen.dialects.core.datatypes import element_of, shape_of
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.ops.core.builder import broadcast_shapes, splat_of
from ttcodegen.ops.core.definition import TTIR
from ttcodegen.ops.core.dimensions import dimension_groups
from ttcodegen.ops.dialects import ttir_op_classes
from ttcodegen.ops.elementwise.registration import verify_broadcast
from ttcodegen.transforms.rewriting import PatternSet, Rewriter, functions

Shape = tuple[int, ...]


@dataclass(frozen=True)
class TTIRImplicitBroadcastFoldPass(ModulePass):
    """Drops the broadcasts before elementwise ops."""

    name = "ttir-implicit-broadcast-fold"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        rules = broadcast_rules()
        for function in functions(op):
            rules.apply(function)


@cache
def broadcast_rules() -> PatternSet:
    """The rules of the pass; they need the catalogue to be complete."""
    ttir_op_classes()
    rules = PatternSet()
    elementwise = [d.name for d in TTIR.values() if d.verify is verify_broadcast]
    binary = [d.name for d in TTIR.values() if d.name in elementwise and len(d.operands) == 2]
    rules.on(*elementwise, "ttir.typecast")(broadcast_in_op)
    rules.on(*elementwise)(one_element_in_op)
    rules.on(*binary)(rank_in_op)
    rules.on("ttir.reshape")(broadcast_after_reshape)
    rules.on("ttir.permute")(broadcast_after_permute)
    return rules


def broadcast_in_op(rewriter: Rewriter, op: CatalogueOp) -> SSAValue | None:
    """Takes what was broadcast instead; where the op spans less then, its result is broadcast."""
    operands: list[SSAValue] = list(op.operands)
    small = [_before_broadcast(rewriter, value) for value in operands]
    if small == operands:
        return None
    shape = op.result_shape
    # Numbers have any shape; they must not be what keeps the op from being small.
    spanned = broadcast_shapes([shape_of(v.type) for v in small if splat_of(v) is None])
    if spanned is None:
        return None
    if spanned == shape:
        return rewriter.again(op, small)
    if broadcast_shapes([shape_of(value.type) for value in small]) == shape:
        small = [_shrunk(rewriter, value, len(spanned)) for value in small]
    if len(spanned) != len(shape):
        return None
    result = rewriter.again(op, small, TensorType(op.result_type.element_type, spanned))
    return broadcast(rewriter, result, op.result_type)


def _before_broadcast(rewriter: Rewriter, value: SSAValue) -> SSAValue:
    producer = rewriter.defining(value, "ttir.broadcast")
    return value if producer is None else producer.operands[0]


def _shrunk(rewriter: Rewriter, value: SSAValue, rank: int) -> SSAValue:
    splat = splat_of(value)
    return value if splat is None else rewriter.full([1] * rank, splat, element_of(value.type))


def broadcast(rewriter: Rewriter, value: SSAValue, result: TensorType[Attribute]) -> SSAValue:
    """`value` broadcast to that type of the same rank."""
    factors = [
        wanted // size
        for wanted, size in zip(result.get_shape(), shape_of(value.type), strict=True)
    ]
    return rewriter.emit("broadcast", [value], result, broadcast_dimensions=factors)


def one_element_in_op(rewriter: Rewriter, op: CatalogueOp) -> SSAValue | None:
    """One element is enough of a number, unless it is what gives the result its shape."""
    operands: list[SSAValue] = list(op.operands)
    rest = [value for value in operands if splat_of(value) is None]
    if len(rest) == len(operands):
        return None
    if broadcast_shapes([shape_of(value.type) for value in rest]) != op.result_shape:
        return None
    small = [
        value if prod(shape_of(value.type)) == 1 else _shrunk(rewriter, value, len(op.result_shape))
        for value in operands
    ]
    return None if small == operands else rewriter.again(op, small)


def rank_in_op(rewriter: Rewriter, op: CatalogueOp) -> SSAValue | None:
    """Takes what a reshape only gave leading dimensions of one element, or took such from where the
    result has them: numpy adds them itself."""
    operands: list[SSAValue] = list(op.operands)
    for index, value in enumerate(operands):
        producer = rewriter.defining(value, "ttir.reshape")
        if producer is None:
            continue
        source = producer.operands[0]
        shape, before = shape_of(value.type), shape_of(source.type)
        added = len(shape) - len(before)
        if not before or len(before) > len(op.result_shape) or added == 0:
            continue
        if (1,) * -added + shape != (1,) * added + before:
            continue
        operands[index] = source
        if broadcast_shapes([shape_of(v.type) for v in operands]) == op.result_shape:
            return rewriter.again(op, operands)
        operands[index] = value
    return None


def broadcast_after_permute(rewriter: Rewriter, op: CatalogueOp) -> SSAValue | None:
    """A permute of a broadcast is the broadcast of a permute."""
    producer = rewriter.defining(op.operands[0], "ttir.broadcast")
    if producer is None:
        return None
    permuted = rewriter.permute(producer.operands[0], op.parameter("permutation"))
    return broadcast(rewriter, permuted, op.result_type)


def broadcast_after_reshape(rewriter: Rewriter, op: CatalogueOp) -> SSAValue | None:
    """A reshape of a broadcast is the broadcast of a reshape, unless it puts dimensions together or
    apart of which some were broadcast and some were not."""
    producer = rewriter.defining(op.operands[0], "ttir.broadcast")
    if producer is None:
        return None
    source = producer.operands[0]
    shape = reshaped_source(shape_of(source.type), shape_of(op.operands[0].type), op.result_shape)
    if shape is None:
        return None
    return broadcast(rewriter, rewriter.reshape(source, shape), op.result_type)


def reshaped_source(source: Shape, before: Shape, after: Shape) -> Shape | None:
    """The shape of a tensor that broadcasts to `after` as `source` broadcasts to `before`, where
    `after` is a reshape of `before`; None if there is none."""
    if 0 in before:
        return None
    result = [1] * len(after)
    for first, second in dimension_groups(before, after):
        if all(source[axis] == before[axis] for axis in first):
            for axis in second:
                result[axis] = after[axis]
        elif any(source[axis] != 1 for axis in first):
            return None
    return tuple(result)
