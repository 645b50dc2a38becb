"""Hoisting of constant computations to the front of host functions."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ttcodegen.dialects.operations.functions import body_of
from ttcodegen.dialects.ttmetal.device_module import functions_of, is_host_function
from ttcodegen.ops.device_constants import device_constants


@dataclass(frozen=True)
class ConstantsFirst(ModulePass):
    """Moves what depends on weights and constants alone to the start of each host function, in its
    order.

    The C++ has it in a function that runs once. In this order, later passes account for memory as
    the C++ needs it: all constants are there while the rest runs.
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
