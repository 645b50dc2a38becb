"""The conversion of TTNN functions to C++ files as a pass."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Operation

from ttcodegen.conversions.host_functions.file_emission import (
    FileEmission,
    hold_constants,
    replace_content,
)
from ttcodegen.conversions.host_functions.interface import entries, required
from ttcodegen.conversions.ttir_to_ttnn.cpu_calls import cpu_functions
from ttcodegen.conversions.ttnn_to_emitc.functions import convert_ttnn_to_emitc
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttnn.placement import TTNNLayoutAttr
from ttcodegen.emitc.statements import FileOp
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.transforms.pass_runner import PassRunner
from ttcodegen.transforms.rebuilding import body_of
from ttcodegen.transforms.registry import passes_of
from ttcodegen.transforms.ttnn.decompose_layouts import DecomposeLayouts
from ttcodegen.transforms.ttnn.layout import assign_wanted_layouts


@dataclass(frozen=True)
class ConvertTTNNToEmitC(FileEmission):
    """Makes one `emitc.file` per source file of what was a module of TTNN functions.

    Constants that the code reads from files go along in the module's attribute
    `ttcodegen.constants`.

    Raises CompileError if there is nothing to call, or the functions are not those of TTNN with
    layouts.
    """

    name = "convert-ttnn-to-emitc"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        complete_layouts(ctx, op)
        functions = self.interface or required(entries(op))
        program = convert_ttnn_to_emitc(
            self.cpp_name(op), functions, self.source_hash(op), self.release, self.trace
        )
        # Operations of the module's own became files before.
        others = [inner for inner in op.ops if isinstance(inner, FileOp)]
        replace_content(op, [*program.module.ops, *others])
        hold_constants(op, program.constants)


def complete_layouts(context: Context, module: ModuleOp) -> None:
    """Assigns layouts to a module that is marked to get them, lowers ops of TTIR among calls, and
    takes changes of layout apart into calls of the library, if that is still to be done.

    Raises:
        CompileError: if a function has ops of TTIR, or tensors without layouts.
    """
    assign_wanted_layouts(context, module)
    if _is_partly_lowered(module):
        PassRunner(context).run(module, passes_of("ttnn-to-ttnn-pipeline"))
    _require_ttnn(module)
    if any(inner.name == "ttnn.composite_to_layout" for inner in module.walk()):
        DecomposeLayouts().apply(context, module)


def _is_partly_lowered(module: ModuleOp) -> bool:
    """True if functions that call the library are still to be lowered: there are ops of TTIR among
    the calls, which stand for calls in forms that the library does not take, tensors without
    layouts, or calls of other functions."""
    names = {op.name.partition(".")[0] for op in module.walk()}
    if "ttnn" not in names:
        return False
    on_cpu = {function.sym_name.data for function in cpu_functions(module)}
    return "ttir" in names or any(
        _lacks_layout(op) or (isinstance(op, CallOp) and op.callee.string_value() not in on_cpu)
        for op in module.walk()
    )


def _lacks_layout(op: Operation) -> bool:
    """True if an op is a call with a tensor that has no layout."""
    return isinstance(op, CatalogueOp) and any(
        not isinstance(getattr(value.type, "encoding", None), TTNNLayoutAttr)
        for value in (*op.operands, *op.results)
    )


def _require_ttnn(module: ModuleOp) -> None:
    """Raises CompileError if a function has ops of TTIR, or tensors without layouts."""
    for op in module.walk():
        if isinstance(op, FuncOp):
            for argument in body_of(op).args:
                if not isinstance(getattr(argument.type, "encoding", None), TTNNLayoutAttr):
                    raise CompileError(
                        f"an argument of '{op.sym_name.data}' has no layout",
                        op,
                        remedy="run --convert-ttir-to-ttnn and --ttnn-layout first",
                    )
            continue
        if op.name.startswith("ttir."):
            raise CompileError(
                f"'{op.name}' has to be lowered before it becomes EmitC",
                op,
                remedy="run --convert-ttir-to-ttnn and --ttnn-layout first",
            )
        if _lacks_layout(op):
            raise CompileError(
                f"a tensor of '{op.name}' has no layout", op, remedy="run --ttnn-layout first"
            )
