"""Captured variables of kernels: the operation's body, the module, and builtins.

The body of an operation runs on each node, as in the simulator. A captured number is a constant of
the kernel if it is the same on all nodes, and is else computed from the node's position.
"""

from __future__ import annotations

import ast
import builtins
import linecache
from collections.abc import Mapping, Sequence
from copy import deepcopy
from functools import lru_cache
from types import CodeType, FunctionType
from typing import Any

from ttcodegen.foundation.diagnostics import CompileError, SourceLocation
from ttcodegen.lang.compiler.python.merging import is_same, merged, plain
from ttcodegen.lang.compiler.python.rewriting import without_breaks
from ttcodegen.lang.simulator.buffers import DataflowBuffer
from ttcodegen.lang.simulator.context import Coordinates, Kernel
from ttcodegen.lang.simulator.locations import variables_of
from ttcodegen.lang.simulator.tensors import Tensor
from ttcodegen.lang.simulator.unified import GENERATED_KERNELS


def function_of(kernel: Kernel) -> FunctionType:
    """Python function of a kernel."""
    assert isinstance(kernel.function, FunctionType)
    return kernel.function


@lru_cache(8)
def _parsed(text: str) -> ast.Module:
    return without_breaks(ast.parse(text))


@lru_cache(64)
def _generated_syntax(code: CodeType) -> ast.FunctionDef:
    """Syntax of a kernel that was generated from the body of a unified operation."""
    (found,) = without_breaks(ast.Module([deepcopy(GENERATED_KERNELS[code])], [])).body
    assert isinstance(found, ast.FunctionDef)
    return found


def syntax_of(function: FunctionType) -> ast.FunctionDef | ast.Lambda:
    """Syntax tree of a function of the user's program.

    Raises:
        CompileError: if its source is not available.
    """
    code: CodeType = function.__code__
    if code in GENERATED_KERNELS:
        return _generated_syntax(code)
    code_positions = set(code.co_positions())
    for node in ast.walk(_parsed("".join(linecache.getlines(code.co_filename)))):
        if isinstance(node, ast.FunctionDef) and node.name == code.co_name:
            first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            if first == code.co_firstlineno:
                return node
        if isinstance(node, ast.Lambda) and code.co_name == "<lambda>":
            of = node.body
            if (of.lineno, of.end_lineno, of.col_offset, of.end_col_offset) in code_positions:
                return node
    raise CompileError(f"the text of the function '{code.co_name}' cannot be found")


def kernel_syntax(kernel: Kernel) -> ast.FunctionDef:
    """Syntax tree of a kernel."""
    found = syntax_of(function_of(kernel))
    assert isinstance(found, ast.FunctionDef)
    return found


def location(file: str, node: ast.AST) -> SourceLocation:
    """Source location of a syntax node."""
    line: int = getattr(node, "lineno", 1)
    text = linecache.getline(file, line).encode()[: getattr(node, "col_offset", 0)]
    return SourceLocation(file, line, len(text.decode(errors="replace")) + 1)


def file_of(kernel: Kernel) -> str:
    """File that defines a kernel."""
    return function_of(kernel).__code__.co_filename


class Captured:
    """Variables that a function captures: free variables, globals and builtins."""

    def __init__(self, functions: Mapping[Coordinates, FunctionType]) -> None:
        self._functions = functions
        self._first = next(iter(functions.values()))
        self._names = self._first.__code__.co_freevars

    @classmethod
    def of_kernel(cls, kernels: Mapping[Coordinates, Kernel]) -> Captured:
        """Captured variables of a kernel, from its functions on all nodes."""
        return cls({coordinates: function_of(kernel) for coordinates, kernel in kernels.items()})

    @property
    def file(self) -> str:
        """File that defines the function."""
        return self._first.__code__.co_filename

    def __contains__(self, name: str) -> bool:
        return (
            name in self._names or name in self._first.__globals__ or hasattr(builtins, name)
        )  # fmt: skip

    def __getitem__(self, name: str) -> Any:
        """Returns a value; node-dependent values are merged into a formula or table.

        Raises:
            ValueError: if the values of the nodes cannot be merged.
        """
        if name not in self._names:
            known = self._first.__globals__
            if name not in known:
                return getattr(builtins, name)
            found = known[name]
            return plain(found)
        values = self._values(name)
        if len(values) < len(self._functions) and not _is_object(name, values):
            raise ValueError(f"'{name}' is not set on all nodes")
        return merged(name, values)

    def groups(self) -> list[tuple[dict[str, Any], list[Coordinates]]]:
        """Groups nodes by their tensors and dataflow buffers in captured variables.

        Each group has the variables that differ between nodes; there is one group if none does.
        """
        names = [
            name
            for name in self._names
            if all(isinstance(v, Tensor | DataflowBuffer) for v in self._values(name).values())
            and not _is_object(name, self._values(name))
        ]
        found: dict[tuple[object, ...], tuple[dict[str, Any], list[Coordinates]]] = {}
        for coordinates, function in self._functions.items():
            held = variables_of(function)
            selected = {name: held[name] for name in names if name in held}
            key = tuple((name, _identity(value)) for name, value in selected.items())
            found.setdefault(key, (selected, []))[1].append(coordinates)
        return list(found.values())

    def _values(self, name: str) -> dict[Coordinates, Any]:
        """Values of a variable by node, for the nodes that set it."""
        return {
            coordinates: held[name]
            for coordinates, function in self._functions.items()
            if name in (held := variables_of(function))
        }

    def all(self, kind: type) -> dict[str, Any]:
        """Captured free variables that hold objects of a type, by name.

        Raises:
            CompileError: if the object differs between nodes.
        """
        found: dict[str, Any] = {}
        for name in self._names:
            if any(isinstance(value, kind) for value in self._values(name).values()):
                try:
                    found[name] = self[name]
                except ValueError as error:
                    where = location(self.file, syntax_of(self._first))
                    raise CompileError(str(error), where) from None
        return found


def _identity(value: Tensor | DataflowBuffer) -> int:
    return value.number if isinstance(value, DataflowBuffer) else id(value)


def _is_object(name: str, values: Mapping[Coordinates, Any]) -> bool:
    """True if a variable holds the same tensor or dataflow buffer on all nodes that set it."""
    first, *others = values.values()
    return isinstance(first, Tensor | DataflowBuffer) and all(is_same(v, first) for v in others)


def stored_names(nodes: Sequence[ast.AST]) -> list[str]:
    """Names that statements assign or define, in order of appearance."""
    found: dict[str, None] = {}
    for node in (each for part in nodes for each in ast.walk(part)):
        match node:
            case ast.Name(name, ast.Store()) | ast.FunctionDef(name):
                found.setdefault(name)
            case _:
                pass
    return list(found)
