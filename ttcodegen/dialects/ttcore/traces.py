"""Modules whose calls are captured as traces of the device, and replayed."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.ir import Operation

_TRACED = "ttcodegen.traced"
"""Attribute of such a module."""


def mark_traced(module: ModuleOp) -> None:
    """Makes the lowering choose calls that a trace can capture."""
    module.attributes[_TRACED] = UnitAttr()


def is_traced(op: Operation) -> bool:
    """True if an op is part of a module whose calls are captured."""
    around: Operation | None = op
    while around is not None:
        if _TRACED in around.attributes:
            return True
        around = around.parent_op()
    return False
