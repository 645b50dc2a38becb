"""Completion of hand-written device programs with omitted attributes."""

from __future__ import annotations

from typing import cast

from xdsl.dialects.builtin import ModuleOp, NoneAttr, SymbolRefAttr, TensorType, UnitAttr
from xdsl.ir import Attribute, Operation

from ttcodegen.dialects.core.datatypes import normalized_data_type, shape_of
from ttcodegen.dialects.operations.functions import change_types
from ttcodegen.dialects.operations.operation import operation_name
from ttcodegen.dialects.ttmetal.device_module import (
    MEANING,
    functions_of,
    holds_programs,
    is_host_function,
)
from ttcodegen.dialects.ttmetal.programs import RUN_PROGRAM
from ttcodegen.dialects.ttnn.placement import TensorPlacement, has_placement, placed_type
from ttcodegen.foundation.diagnostics import CompileError


def complete_programs(module: ModuleOp) -> None:
    """Marks the functions that programs name as their meanings, and places tensors without a layout
    in DRAM, in tiles, as the lowering does; leaves modules without programs alone.

    Raises:
        CompileError: at an operand of a program that has another kind of layout.
    """
    named = {
        meaning.string_value()
        for op in module.walk()
        if operation_name(op) == RUN_PROGRAM
        and isinstance(meaning := op.properties.get("meaning"), SymbolRefAttr)
    }
    for function in functions_of(module):
        if function.sym_name.data in named:
            function.attributes[MEANING] = UnitAttr()
    if not holds_programs(module):
        return
    for function in functions_of(module):
        if is_host_function(function):
            change_types(function, _placed)
            for op in function.walk():
                if operation_name(op) == RUN_PROGRAM:
                    _require_placements(op)


def _placed(type_: Attribute) -> Attribute:
    """The type of a tensor with a placement; types that have a layout, or can have none, as they
    are."""
    if not isinstance(type_, TensorType):
        return type_
    tensor = cast("TensorType[Attribute]", type_)
    data_type = normalized_data_type(tensor.element_type)
    if not isinstance(tensor.encoding, NoneAttr) or data_type is None:
        return tensor
    return placed_type(TensorPlacement(shape_of(tensor), data_type))


def _require_placements(launch: Operation) -> None:
    """Raises CompileError at a launch of a program on tensors that have no placement."""
    for position, operand in enumerate(launch.operands):
        if not has_placement(operand):
            raise CompileError(
                f"operand {position} of this program is {operand.type}, which is no tensor in a "
                "memory of the device",
                launch,
                remedy="give it a #ttnn.ttnn_layout, or leave the layout out: then it is in DRAM, "
                "in tiles",
            )
