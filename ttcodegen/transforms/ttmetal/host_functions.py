"""Host functions of device programs: delayed reshapes, hoisted constants, weight data types.

A reshape to one row per user, such as (32, 1, 8192), puts each row into a tile row of its own: ops
on rows run before such a reshape, which may then cancel.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import prod

from xdsl.context import Context
from xdsl.dialects.builtin import FunctionType, ModuleOp, StringAttr, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue, Use
from xdsl.passes import ModulePass

from ttcodegen.dialects.core.datatypes import DataType, element_of, shape_of
from ttcodegen.dialects.operations.functions import (
    argument_attribute,
    argument_type,
    body_of,
    is_cpu_function,
)
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttcore.dialect import ArgumentType
from ttcodegen.dialects.ttcore.tile import TILE_SIDE
from ttcodegen.dialects.ttmetal.device_module import functions_of, is_host_function
from ttcodegen.dialects.ttnn.placement import TensorPlacement, declared_data_type, placed_type
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.layout.placements import TiledShape
from ttcodegen.ops.core.builder import splat_of
from ttcodegen.ops.core.definition import TTIR, TTIRDefinition
from ttcodegen.ops.device_constants import device_constants
from ttcodegen.ops.dialects import ttir_op_classes
from ttcodegen.transforms.functions import is_entry
from ttcodegen.transforms.rewriting import PatternSet, Rewriter, functions, set_type
from ttcodegen.transforms.ttir.own_buffers import CLONE

Shape = tuple[int, ...]

_NORMS = ("ttir.layer_norm", "ttir.rms_norm")
_REDUCING = {"dim_arg", "keep_dim"}
"""Attributes of reductions."""


@dataclass(frozen=True)
class ReshapeLater(ModulePass):
    """Moves reshapes after elementwise ops, softmaxes, norms and reductions of rows."""

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
    """Returns whether an op is elementwise in tiles, wherever elements are; random ops are not.

    Nor are clones, which are to be overwritten in the shape that they have.
    """
    return definition.tile is not None and not definition.draws and definition.name != CLONE


def _before_row_reshape(rewriter: Rewriter, value: SSAValue) -> SSAValue | None:
    """Returns the tensor before a single-use reshape that keeps rows but needs at least as many
    tiles."""
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
        if (
            shape_of(value.type) == shape
            and (source := _before_row_reshape(rewriter, value)) is not None
        ):
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
            return None  # A reshape of that operand would be moved back the same way.
        # A scalar, or one number per column.
        if prod(row) != 1 and (prod(row) != row[-1] or row[-1] != shape[-1]):
            return None
        operands.append(_row(rewriter, value, [1] * (len(before) - 1) + [prod(row)]))
    return _reshaped_after(rewriter, op, operands, before)


def _row(rewriter: Rewriter, value: SSAValue, shape: list[int]) -> SSAValue:
    """Returns the value as one row; splats stay splats, which programs have in their kernels."""
    number = splat_of(value)
    if number is None:
        return rewriter.reshape(value, shape)
    return rewriter.full(shape, number, element_of(value.type))


def _after_softmax(rewriter: Rewriter, op: CatalogueOp) -> SSAValue | None:
    source = _before_row_reshape(rewriter, op.operands[0])
    rank = len(op.result_shape)
    if source is None or op.parameter("dimension") % rank != rank - 1:
        return None
    before = shape_of(source.type)
    return _reshaped_after(rewriter, op, [source], before, dimension=len(before) - 1)


def _after_norm(rewriter: Rewriter, op: CatalogueOp) -> SSAValue | None:
    source = _before_row_reshape(rewriter, op.operands[0])
    if source is None or len(op.parameter("normalized_shape")) != 1:
        return None
    return _reshaped_after(rewriter, op, [source, *op.operands[1:]], shape_of(source.type))


def _after_reduction(rewriter: Rewriter, op: CatalogueOp) -> SSAValue | None:
    source = _before_row_reshape(rewriter, op.operands[0])
    rank = len(shape_of(op.operands[0].type))
    if source is None or [dim % rank for dim in op.parameter("dim_arg") or ()] != [rank - 1]:
        return None
    before = shape_of(source.type)
    kept = (*before[:-1], 1) if op.parameter("keep_dim") else before[:-1]
    return _reshaped_after(rewriter, op, [source], kept, dim_arg=[len(before) - 1])


def _reshaped_after(
    rewriter: Rewriter, op: CatalogueOp, operands: list[SSAValue], shape: Shape, **words: object
) -> SSAValue:
    """Returns the op on tensors before their reshapes, with its result reshaped."""
    result = TensorType(element_of(op.results[0].type), shape)
    return rewriter.reshape(rewriter.again(op, operands, result, **words), op.result_shape)


# Hoisting of constant computations to the start of host functions.


@dataclass(frozen=True)
class ConstantsFirst(ModulePass):
    """Moves ops that depend only on weights and constants to the start of host functions, in order.

    The C++ has them in a function that runs once. In this order, later passes account for memory as
    the C++ needs it: all constants are live while the rest runs.
    """

    name = "ttmetal-constants-first"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions_of(op):
            if not is_host_function(function) or not function.body.blocks:
                continue
            block = body_of(function)
            ops = device_constants(function).ops
            first = block.first_op
            if not ops or first is None:
                continue
            for each in ops:
                each.detach()
            if block.first_op is None:
                block.add_ops(ops)
            else:
                block.insert_ops_before(ops, block.first_op)


# Block-float weights in DRAM, where all programs that read them take such tiles.
#
# Block floats take half or a quarter of the memory and bandwidth of bf16. They are chosen per
# argument with `ttcore.weight_dtype = "bfp_bf8"`, or for all weights with the option
# `target-dtype`, as in tt-mlir (2026). Kernels that move single elements cannot read block
# floats: such weights keep their type.

WEIGHT_TYPE = "ttcore.weight_dtype"
BLOCK_FLOATS = ("bfp_bf8", "bfp_bf4")


@dataclass(frozen=True)
class TTMetalWeightTypes(ModulePass):
    """Sets the requested block-float types of arguments.

    Raises CompileError if a requested type is not a block float format.
    """

    name = "ttmetal-weight-dtype-conversion"
    target_dtype: str = ""
    """bfp_bf8 or bfp_bf4 for all weights; empty for only those with the attribute."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions(op):
            if not is_entry(function):
                continue
            for argument in function.body.block.args:
                wanted = self._wanted(function, argument.index)
                if wanted and _reads_tiles(argument):
                    data_type = DataType.from_mlir(wanted)
                    placement = TensorPlacement(shape_of(argument.type), data_type)
                    set_type(argument, placed_type(placement))
            function.function_type = FunctionType.from_lists(
                [argument.type for argument in function.body.block.args],
                list(function.function_type.outputs.data),
            )

    def _wanted(self, function: FuncOp, index: int) -> str:
        said = argument_attribute(function, index, WEIGHT_TYPE)
        kind = argument_type(function, index)
        is_weight = kind is ArgumentType.PARAMETER or kind is ArgumentType.CONSTANT
        wanted = said.data if isinstance(said, StringAttr) else self.target_dtype * is_weight
        if wanted and wanted not in BLOCK_FLOATS:
            raise CompileError(
                f"weights cannot be kept as {wanted}",
                getattr(function, "source_offset", None),
                remedy=f"the types are {' and '.join(BLOCK_FLOATS)}",
            )
        return wanted


def _reads_tiles(value: SSAValue) -> bool:
    """Returns whether all programs read the value as whole tiles."""
    if not declared_data_type(value).is_float or not shape_of(value.type):
        return False
    uses = list(value.uses)
    return bool(uses) and all(_reads_whole_tiles(use, value) for use in uses)


def _reads_whole_tiles(use: Use, value: SSAValue) -> bool:
    op = use.operation
    if not isinstance(op, CatalogueOp):
        return False
    shape = shape_of(value.type)
    if op.name == "ttir.matmul":
        inner = shape_of(op.operands[0].type)[-1]
        return inner % TILE_SIDE == 0
    definition = op.definition
    is_elementwise = isinstance(definition, TTIRDefinition) and definition.tile is not None
    return is_elementwise and shape[-2:] == op.result_shape[-2:]
