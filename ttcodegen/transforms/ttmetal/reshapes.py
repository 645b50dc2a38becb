"""Lets reshapes that divide rows among more tiles wait until ops that work row by row are done.

One row for each of 32 users, (32, 1, 8192), is 32 rows of tiles with a row of elements in each:
what computes on rows does so before they come apart, and perhaps they need not come apart at all.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import prod

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from ttcodegen.dialects.core.datatypes import element_of, shape_of
from ttcodegen.dialects.operations.functions import is_cpu_function
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.layout.placements import TiledShape
from ttcodegen.ops.core.builder import splat_of
from ttcodegen.ops.core.definition import TTIR, TTIRDefinition
from ttcodegen.ops.dialects import ttir_op_classes
from ttcodegen.transforms.rewriting import PatternSet, Rewriter, functions
from ttcodegen.transforms.ttir.own_buffers import CLONE

Shape = tuple[int, ...]

_NORMS = ("ttir.layer_norm", "ttir.rms_norm")
_REDUCING = {"dim_arg", "keep_dim"}
"""The attributes of reductions."""


@dataclass(frozen=True)
class ReshapeLater(ModulePass):
    """Moves reshapes to after elementwise ops, softmaxes, norms and reductions of rows."""

    name = "ttmetal-reshape-later"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        rules = _rules()
        for function in functions(op):
            if not is_cpu_function(function):
                rules.apply(function)


@cache
def _rules() -> PatternSet:
    ttir_op_classes()
    rules = PatternSet()
    rules.on(*(d.name for d in TTIR.values() if _moves_in_tiles(d)))(_after_elementwise)
    rules.on("ttir.softmax")(_after_softmax)
    rules.on(*_NORMS)(_after_norm)
    reductions = [d.name for d in TTIR.values() if {a.name for a in d.attributes} == _REDUCING]
    rules.on(*reductions)(_after_reduction)
    return rules


def _moves_in_tiles(definition: TTIRDefinition) -> bool:
    """True if ops give the same elements wherever these are in tiles: not what is drawn. A clone is
    to be overwritten in the shape that it has."""
    return definition.tile is not None and not definition.draws and definition.name != CLONE


def _gathered(rewriter: Rewriter, value: SSAValue) -> SSAValue | None:
    """The tensor whose rows `value` has in more tiles; None if it is no such reshape that one op
    reads."""
    reshape = rewriter.sole(value, "ttir.reshape")
    if reshape is None:
        return None
    source = reshape.operands[0]
    before, after = shape_of(source.type), reshape.result_shape
    if len(before) < 2 or before[-1:] != after[-1:] or 0 in after:
        return None
    return source if TiledShape(before).tiles <= TiledShape(after).tiles else None


def _after_elementwise(rewriter: Rewriter, op: CatalogueOp) -> SSAValue | None:
    shape = op.result_shape
    sources: dict[int, SSAValue] = {}
    for index, value in enumerate(op.operands):
        if shape_of(value.type) == shape and (source := _gathered(rewriter, value)) is not None:
            sources[index] = source
    shapes = {shape_of(source.type) for source in sources.values()}
    if len(shapes) != 1:
        return None
    [before] = shapes
    is_fewer_tiles = TiledShape(before).tiles < TiledShape(shape).tiles
    operands: list[SSAValue] = []
    for index, value in enumerate(op.operands):
        if index in sources:
            operands.append(sources[index])
            continue
        row = shape_of(value.type)
        if row == shape and not is_fewer_tiles:
            return None  # Its own reshape would come back the same way.
        # One number for all, or one for each column.
        if prod(row) != 1 and (prod(row) != row[-1] or row[-1] != shape[-1]):
            return None
        operands.append(_row(rewriter, value, [1] * (len(before) - 1) + [prod(row)]))
    return _again(rewriter, op, operands, before)


def _row(rewriter: Rewriter, value: SSAValue, shape: list[int]) -> SSAValue:
    """The value as one row; a number stays one, which programs have in their kernels."""
    number = splat_of(value)
    if number is None:
        return rewriter.reshape(value, shape)
    return rewriter.full(shape, number, element_of(value.type))


def _after_softmax(rewriter: Rewriter, op: CatalogueOp) -> SSAValue | None:
    source = _gathered(rewriter, op.operands[0])
    rank = len(op.result_shape)
    if source is None or op.parameter("dimension") % rank != rank - 1:
        return None
    before = shape_of(source.type)
    return _again(rewriter, op, [source], before, dimension=len(before) - 1)


def _after_norm(rewriter: Rewriter, op: CatalogueOp) -> SSAValue | None:
    source = _gathered(rewriter, op.operands[0])
    if source is None or len(op.parameter("normalized_shape")) != 1:
        return None
    return _again(rewriter, op, [source, *op.operands[1:]], shape_of(source.type))


def _after_reduction(rewriter: Rewriter, op: CatalogueOp) -> SSAValue | None:
    source = _gathered(rewriter, op.operands[0])
    rank = len(shape_of(op.operands[0].type))
    if source is None or [dim % rank for dim in op.parameter("dim_arg") or ()] != [rank - 1]:
        return None
    before = shape_of(source.type)
    kept = (*before[:-1], 1) if op.parameter("keep_dim") else before[:-1]
    return _again(rewriter, op, [source], kept, dim_arg=[len(before) - 1])


def _again(
    rewriter: Rewriter, op: CatalogueOp, operands: list[SSAValue], shape: Shape, **words: object
) -> SSAValue:
    """The op on tensors that are not reshaped yet, with a result that is."""
    result = TensorType(element_of(op.results[0].type), shape)
    return rewriter.reshape(rewriter.again(op, operands, result, **words), op.result_shape)
