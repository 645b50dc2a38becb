"""Tensors that a module of TTNN writes to files and reads back."""

from __future__ import annotations

from xdsl.dialects.builtin import StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from ttcodegen.compat.ttnn_modules import is_device, name_of
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.ops.core.definition import TTNN, overwrites

DUMP, LOAD = "ttnn.dump_tensor", "ttnn.load_tensor"


def link_files(function: FuncOp) -> None:
    """Gives each load the tensor that was dumped to its file before, as an operand.

    Raises:
        CompileError: if the tensor was overwritten between the two.
    """
    for block in function.body.blocks:
        written: dict[str, SSAValue] = {}
        overwritten: set[SSAValue] = set()
        for op in block.ops:
            name = name_of(op)
            if name == DUMP and op.operands:
                written[_path(op)] = op.operands[0]
                overwritten.discard(op.operands[0])
            elif name == LOAD:
                _link(op, written.get(_path(op)), overwritten)
            elif name.startswith("ttnn.") and overwrites(name.removeprefix("ttnn.")):
                overwritten.add(_changed(op))


def _path(op: Operation) -> str:
    path = op.properties.get("file_path")
    return path.data if isinstance(path, StringAttr) else ""


def _changed(op: Operation) -> SSAValue:
    """The operand that a call overwrites: the one of its name comes first in all of them."""
    definition = TTNN[name_of(op).removeprefix("ttnn.")]
    names = [spec.name for spec in definition.operands]
    return op.operands[names.index(definition.in_place or "")]


def _link(op: Operation, written: SSAValue | None, overwritten: set[SSAValue]) -> None:
    if written is None or not all(is_device(value.type) for value in op.operands):
        return
    if written in overwritten:
        raise CompileError(
            f"'{LOAD}' reads '{_path(op)}' after the tensor that was dumped to it was overwritten",
            op,
            remedy="read the file before the tensor is overwritten, or dump a copy of it",
        )
    op.operands = [*op.operands, written]
