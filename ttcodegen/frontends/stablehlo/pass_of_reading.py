"""The pass that other tools have for what is done here when a module of StableHLO is read."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass


@dataclass(frozen=True)
class ConvertStableHLOToTTIR(ModulePass):
    """Leaves a module of TTIR as it is: no other one comes here."""

    name = "convert-stablehlo-to-ttir"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """There is nothing left to do."""
