"""Makes functions that fail smaller: only what is computed up to the first wrong op is left."""

from __future__ import annotations

from collections.abc import Callable, Collection

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Operation

from tests.random_programs.generator import sliced
from ttcodegen.diagnostics import Source
from ttcodegen.parsing import parse_module

Failing = Callable[[str], Collection[str]]
"""Gives the names of the functions of a module that fail."""


def _functions(text: str) -> list[FuncOp]:
    module = parse_module(Source("random.mlir", text))
    return [op for op in module.ops if isinstance(op, FuncOp)]


def only(text: str, name: str) -> str:
    """The module with that function alone."""
    (function,) = (op for op in _functions(text) if op.sym_name.data == name)
    return _module([function.clone()])


def _module(functions: list[Operation]) -> str:
    return str(ModuleOp(functions)) + "\n"


def reduced(text: str, failing: Failing) -> str:
    """The only function of a module as far as it is needed to fail; the whole of it if no part of
    it fails alone. All parts are tried at once."""
    (function,) = _functions(text)
    parts = _parts(function)
    found = failing(_module(list(parts)))
    for part in parts:
        if part.sym_name.data in found:
            return _module([part.clone()])
    return text


def _parts(function: FuncOp) -> list[FuncOp]:
    """A function for each op that gives its results and nothing else."""
    attributes = function.arg_attrs.data if function.arg_attrs is not None else ()
    arguments = dict(zip(function.args, attributes, strict=True))
    ops = [op for op in function.body.block.ops if not isinstance(op, ReturnOp)]
    return [
        sliced(f"{function.sym_name.data}_{number}", arguments, ops[: number + 1], op.results)
        for number, op in enumerate(ops)
    ]


def bisected(names: list[str], fails: Callable[[list[str]], bool]) -> list[str]:
    """Those of the names with which something fails that does not fail for each set of others: a
    module that does not build, for example. `fails` is asked about parts of the list."""
    if not names or not fails(names):
        return []
    if len(names) == 1:
        return names
    middle = len(names) // 2
    return bisected(names[:middle], fails) + bisected(names[middle:], fails)
