"""Weights of products as block floats: half or a quarter of the bytes that a run reads."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from ttcodegen.dialects.datatypes import DataType
from ttcodegen.dialects.memory import Layout, Memory
from ttcodegen.dialects.operation import CatalogueOp
from ttcodegen.dialects.placement import placed_type, placement_of
from ttcodegen.ops.op_builder import OpBuilder
from ttcodegen.ops.ttnn import ttnn_op_classes
from ttcodegen.transforms.const_eval_hoist import constant_values, is_const_eval
from ttcodegen.transforms.rebuilding import body_of

TYPES = {"bfp_bf8": DataType.BFLOAT8_B, "bfp_bf4": DataType.BFLOAT4_B}
"""What weights can become, as the pipelines spell it."""
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
    block = body_of(function)
    constants = constant_values(function)
    made: dict[SSAValue, SSAValue] = {}
    for op in list(block.ops):
        if not isinstance(op, CatalogueOp) or op.definition.short_name not in ("matmul", "linear"):
            continue
        value = op.operands[1]
        if value not in constants:
            continue
        placement = placement_of(value)
        narrowed = placement.with_(data_type=data_type)
        if placement.data_type not in _WIDER or placement.layout is not Layout.TILE:
            continue
        if placement.memory is Memory.HOST:
            continue
        if value not in made:
            builder = OpBuilder(
                ttnn_op_classes(), lambda new, op=op: block.insert_op_before(new, op)
            )
            builder.origin = op
            made[value] = builder.emit("composite_to_layout", [value], placed_type(narrowed))
            made[value].name_hint = value.name_hint
        op.operands[1] = made[value]
