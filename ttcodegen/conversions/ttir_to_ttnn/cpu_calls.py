"""Calls of functions that run on the CPU."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import BlockArgument, SSAValue

from ttcodegen.dialects.operations.functions import is_cpu_function
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.transforms.rebuilding import body_of


def cpu_functions(module: ModuleOp) -> list[FuncOp]:
    """The functions of a module that run on the CPU, in order."""
    found = (op for op in module.body.block.ops if isinstance(op, FuncOp))
    return [function for function in found if is_cpu_function(function)]


def overwritten_arguments(function: FuncOp) -> list[int]:
    """The positions of the arguments that a function overwrites."""
    found: set[int] = set()
    for op in body_of(function).ops:
        if isinstance(op, CatalogueOp) and op.definition.in_place is not None:
            value = op.operand(op.definition.in_place)
            if isinstance(value, BlockArgument):
                found.add(value.index)
    return sorted(found)


def overwritten_operands(call: CallOp) -> Sequence[SSAValue]:
    """The operands that a call overwrites."""
    module = call.get_toplevel_object()
    assert isinstance(module, ModuleOp)
    symbol = call.callee.string_value()
    for function in cpu_functions(module):
        if function.sym_name.data == symbol:
            return [call.operands[index] for index in overwritten_arguments(function)]
    return ()
