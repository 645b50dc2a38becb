"""Drops TTNN ops whose results are unused."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass

from ttcodegen.transforms.rewriting import erase_dead


@dataclass(frozen=True)
class RemoveDeadValues(ModulePass):
    """Drops what lowering left over, constants that became numbers in calls above all."""

    name = "remove-dead-values"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in op.walk():
            if isinstance(function, FuncOp):
                erase_dead(function)
