"""Drops private functions that are never called."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass

from ttcodegen.dialects.operations.functions import callee_of
from ttcodegen.transforms.rewriting import erase


@dataclass(frozen=True)
class SymbolDCE(ModulePass):
    """Keeps public functions and what they call, also through others."""

    name = "symbol-dce"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        functions = {f.sym_name.data: f for f in op.walk() if isinstance(f, FuncOp)}
        pending = [name for name, function in functions.items() if not _is_private(function)]
        used: set[str] = set()
        while pending:
            name = pending.pop()
            if name in used or name not in functions:
                continue
            used.add(name)
            pending += [c for inner in functions[name].walk() if (c := callee_of(inner))]
        for name, function in functions.items():
            if name not in used:
                erase(function)


def _is_private(function: FuncOp) -> bool:
    visibility = function.sym_visibility
    return visibility is not None and visibility.data == "private"
