"""TTIR modules in short."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from ttcodegen.foundation.diagnostics import Source
from ttcodegen.parsing import parse_module


def parse(text: str) -> ModuleOp:
    """The module of a text."""
    return parse_module(Source("in.mlir", text))


def functions(module: ModuleOp) -> dict[str, FuncOp]:
    """The functions of a module by name."""
    return {op.sym_name.data: op for op in module.ops if isinstance(op, FuncOp)}
