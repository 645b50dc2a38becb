"""Weights of products as block floats: half or a quarter of the bytes that a run reads."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttcore.shards import Layout, Memory
from ttcodegen.dialects.ttnn.placement import placed_type, placement_of
from ttcodegen.ops.core.builder import OpBuilder
from ttcodegen.ops.core.definition import has_trait
from ttcodegen.ops.core.traits import Trait
from ttcodegen.ops.dialects import ttnn_op_classes
from ttcodegen.transforms.functions.const_eval_hoist import constant_values, is_const_eval
from ttcodegen.transforms.rebuilding import body_of

TYPES = {"bfp_bf8": DataType.BFLOAT8_B, "bfp_bf4": DataType.BFLOAT4_B}
"""Weight types that pipelines may convert to."""
_WIDER = (DataType.FLOAT32, DataType.BFLOAT16)


@dataclass(frozen=True)
class WeightTypes(ModulePass):
    """Converts the right factors of products that depend on weights alone, once."""

    name = "ttnn-weight-dtype-conversion"

    target: str = "none"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        data_type = TYPES.get(self.target)
        if data_type is None:
            return
        for function in op.walk():
            if isinstance(function, FuncOp) and not is_const_eval(function):
                _convert(function, data_type)


def _convert(function: FuncOp, data_type: DataType) -> None:
    constants = constant_values(function)
    made: dict[SSAValue, SSAValue] = {}
    for op in list(body_of(function).ops):
        if isinstance(op, CatalogueOp) and has_trait(op, Trait.MATRIX_PRODUCT):
            narrow(op, data_type, constants, made)


def narrow(
    op: CatalogueOp,
    data_type: DataType,
    constants: Container[SSAValue],
    made: dict[SSAValue, SSAValue],
) -> bool:
    """Makes the right factor of a product one of a narrower type, if it depends on weights alone.

    Args:
        op: the product.
        data_type: what the factor becomes.
        constants: the values that depend on weights alone.
        made: the factors that were converted already, by what they were.

    Returns:
        Whether the product has such a factor.
    """
    value = op.operands[1]
    if value not in constants:
        return False
    placement = placement_of(value)
    if placement.data_type not in _WIDER or placement.layout is not Layout.TILE:
        return False
    if placement.memory is Memory.HOST:
        return False
    if value not in made:
        block = op.parent_block()
        assert block is not None
        builder = OpBuilder(ttnn_op_classes(), lambda new: block.insert_op_before(new, op))
        builder.origin = op
        narrowed = placed_type(placement.with_(data_type=data_type))
        made[value] = builder.emit("composite_to_layout", [value], narrowed)
        made[value].name_hint = value.name_hint
    op.operands[1] = made[value]
    return True
