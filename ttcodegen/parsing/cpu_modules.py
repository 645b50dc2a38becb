"""Functions for the CPU, as they are written: in a `ttcore.cpu_module` beside the device's.

A module of ours is flat. A function that runs on the CPU says so (`is_cpu_function`), and is
next to those that call it; in the text the module that calls it declares it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.dialects.builtin import ModuleOp, StringAttr, SymbolRefAttr, UnitAttr, UnregisteredOp
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Operation

from ttcodegen.dialects.operations.functions import CPU_CALL, CPU_FUNCTION, FUNCTION_TYPE
from ttcodegen.foundation.diagnostics import CompileError

CPU_MODULE = "ttcore.cpu_module"
_DECLARED = "_decl"
"""What older tools add to the name of a function where they declare it."""


def take_cpu_functions(operations: Sequence[Operation]) -> list[FuncOp]:
    """Takes the functions for the CPU out of the operations of a file, and their declarations;
    calls name the functions themselves from then on.

    Raises:
        CompileError: if a module for the CPU holds something else than functions.
    """
    modules = [op for top in operations for op in top.walk() if _is_cpu_module(op)]
    functions = [function for module in modules for function in _functions(module)]
    if not functions:
        return []
    defined = {function.sym_name.data for function in functions}
    names = defined | {f"{name}{_DECLARED}" for name in defined}
    on_cpu = {op for function in functions for op in function.walk()}
    for op in [op for top in operations for op in top.walk()]:
        if isinstance(op, FuncOp) and op.is_declaration and op.sym_name.data in names:
            op.detach()
        elif isinstance(op, CallOp) and (name := op.callee.string_value()) in names:
            if name not in defined:
                op.callee = SymbolRefAttr(name.removesuffix(_DECLARED))
            if op not in on_cpu:
                op.attributes[CPU_CALL] = UnitAttr()
    for function in functions:
        function.detach()
        function.sym_visibility = StringAttr("private")
        # Reading gives what begins with `tt.` the name of today's dialect.
        function.attributes.pop(FUNCTION_TYPE.replace("tt.", "ttcore."), None)
        function.attributes[FUNCTION_TYPE] = CPU_FUNCTION
    return functions


def _is_cpu_module(op: Operation) -> bool:
    name = op.op_name.data if isinstance(op, UnregisteredOp) else op.name
    return name == CPU_MODULE


def _functions(module: Operation) -> Iterator[FuncOp]:
    for region in module.regions:
        for block in region.blocks:
            for op in block.ops:
                if isinstance(op, ModuleOp):
                    yield from _functions(op)
                elif isinstance(op, FuncOp):
                    yield op
                else:
                    raise CompileError(
                        "a ttcore.cpu_module should contain functions of TTIR",
                        op,
                        remedy="give the module as it was before its functions were lowered",
                    )
