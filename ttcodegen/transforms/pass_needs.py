"""The state of a module that passes need, for the message of one that could not run."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from ttcodegen.dialects.operations.operation import operation_name
from ttcodegen.dialects.ttnn.placement import has_placement
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.transforms.registry import Group, PassEntry, find, is_known

_LATER = {
    Group.TTIR: ("ttnn", "ttmetal", "ttkernel", "emitc"),
    Group.TTNN: ("ttmetal", "ttkernel", "emitc"),
    Group.TTMETAL: ("ttnn", "emitc"),
    Group.EMITC: ("emitc",),
}
"""Dialects that modules were lowered to which are past the passes of a group."""
_NAMES = {"ttnn": "TTNN", "ttmetal": "TTMetal", "ttkernel": "TTKernel", "emitc": "EmitC"}


def unmet_need(name: str, module: ModuleOp) -> CompileError | None:
    """Returns why a pass cannot run on a module, or None if its preconditions hold."""
    if not is_known(name):
        return None
    entry = find(name)
    if not isinstance(entry, PassEntry):
        return None
    found = {operation_name(op).partition(".")[0]: op for op in module.walk(reverse=True)}
    for dialect in _LATER.get(entry.group, ()):
        if dialect in found:
            return CompileError(
                f"--{name} is a pass on {entry.group.value}, and the module has ops of "
                f"{_NAMES[dialect]}",
                found[dialect],
                remedy="run it on the module as it was before its lowering",
            )
    on_programs = entry.group is Group.TTMETAL or "ttmetal" in name
    if "ttir" in found and (entry.group in (Group.TTNN, Group.EMITC)):
        what, remedy = "calls of TTNN", "run --convert-ttir-to-ttnn and --ttnn-layout first"
        if on_programs:
            what, remedy = "device programs", "run --ttir-to-ttmetal-pipeline first"
        return CompileError(
            f"--{name} needs {what}: '{operation_name(found['ttir'])}' is an op of TTIR",
            found["ttir"],
            remedy=remedy,
        )
    generic = next((op for op in module.walk() if op.name == "ttir.generic"), None)
    if generic is not None and entry.group in (Group.TTIR, Group.TTMETAL):
        return CompileError(
            f"--{name} needs ops on whole tensors, and the module has ttir.generic already",
            generic,
            remedy="run --inline=generics=true first",
        )
    if entry.group is Group.TTIR and not on_programs:
        return None
    for op in _without_layout(module):
        first = "--ttmetal-complete-programs" if on_programs else "--ttnn-layout"
        return CompileError(f"--{name} needs layouts", op, remedy=f"run {first} first")
    return None


def _without_layout(module: ModuleOp) -> Iterator[Operation]:
    """The ops with a tensor that has no layout, in order."""
    for op in module.walk():
        values: list[SSAValue] = [*op.operands, *op.results]
        if isinstance(op, FuncOp) and op.body.blocks:
            values += op.body.blocks[0].args
        if any(isinstance(value.type, TensorType) and not has_placement(value) for value in values):
            yield op
