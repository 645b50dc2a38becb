"""Makes functions that fail smaller: only what is computed up to the first wrong op is left."""

from __future__ import annotations

from collections.abc import Callable, Collection

from xdsl.dialects.func import FuncOp, ReturnOp

from tests.random_programs.checking import functions_of, module_of
from tests.random_programs.generator import sliced
from ttcodegen.foundation.diagnostics import Source
from ttcodegen.parsing import parse_module

Failing = Callable[[str], Collection[str]]
"""Gives the names of the functions of a module that fail."""


def reduced(text: str, name: str, failing: Failing) -> str:
    """A module with one function: that of the given module as far as it is needed to fail, or all
    of it if no part of it fails alone. All parts are tried at once."""
    function = functions_of(parse_module(Source("random.mlir", text)))[name]
    parts = _parts(function)
    found = failing(module_of(parts))
    for part in parts:
        if part.sym_name.data in found:
            return module_of([part])
    return module_of([function])


def _parts(function: FuncOp) -> list[FuncOp]:
    """A function for each op that gives its results and nothing else."""
    attributes = function.arg_attrs.data if function.arg_attrs is not None else ()
    arguments = dict(zip(function.args, attributes, strict=True))
    ops = [op for op in function.body.block.ops if not isinstance(op, ReturnOp)]
    return [
        sliced(f"{function.sym_name.data}_op{number}", arguments, ops[: number + 1], op.results)
        for number, op in enumerate(ops)
    ]
