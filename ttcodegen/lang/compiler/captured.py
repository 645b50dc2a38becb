"""What kernels refer to: variables of the operation's body, of the module, and Python's own.

The body of an operation runs on each node, as in the simulator; a variable that is the same number
everywhere is a constant of the kernel, one that depends on the node is computed from its position.
"""

from __future__ import annotations

import ast
import builtins
import linecache
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType, FunctionType
from typing import Any

import numpy as np

from ttcodegen.diagnostics import CompileError, SourceLocation
from ttcodegen.lang.buffers import DataflowBuffer
from ttcodegen.lang.compiler.fitting import Formula, fitted
from ttcodegen.lang.context import Coordinates, Kernel
from ttcodegen.lang.pipes import PipeNet
from ttcodegen.lang.semaphores import (
    MulticastRemoteSemaphore,
    Semaphore,
    UnicastRemoteSemaphore,
)


@dataclass(frozen=True)
class OfPlace:
    """A number that depends on the node: a formula of its column and its row."""

    formula: Formula


def function_of(kernel: Kernel) -> FunctionType:
    """The Python function of a kernel."""
    assert isinstance(kernel.function, FunctionType)
    return kernel.function


@dataclass(frozen=True, eq=False)
class CapturedFunction:
    """A function of the program, as each node has it."""

    on_nodes: Mapping[Coordinates, FunctionType]

    @property
    def first(self) -> FunctionType:
        """That of the first node."""
        return next(iter(self.on_nodes.values()))

    @property
    def is_same(self) -> bool:
        """Whether it is one function on all nodes, or refers to the same on all."""
        return all(_is_same(function, self.first) for function in self.on_nodes.values())


@lru_cache(8)
def _parsed(text: str) -> ast.Module:
    return ast.parse(text)


def syntax_of(function: FunctionType) -> ast.FunctionDef | ast.Lambda:
    """The text of a function of the program.

    Raises:
        CompileError: if it cannot be found.
    """
    code: CodeType = function.__code__
    places = set(code.co_positions())
    for node in ast.walk(_parsed("".join(linecache.getlines(code.co_filename)))):
        if isinstance(node, ast.FunctionDef) and node.name == code.co_name:
            first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            if first == code.co_firstlineno:
                return node
        if isinstance(node, ast.Lambda) and code.co_name == "<lambda>":
            of = node.body
            if (of.lineno, of.end_lineno, of.col_offset, of.end_col_offset) in places:
                return node
    raise CompileError(f"the text of the function '{code.co_name}' cannot be found")


def kernel_syntax(kernel: Kernel) -> ast.FunctionDef:
    """The text of a kernel."""
    found = syntax_of(function_of(kernel))
    assert isinstance(found, ast.FunctionDef)
    return found


def location(file: str, node: ast.AST) -> SourceLocation:
    """The location of a part of a program."""
    line: int = getattr(node, "lineno", 1)
    text = linecache.getline(file, line).encode()[: getattr(node, "col_offset", 0)]
    return SourceLocation(file, line, len(text.decode(errors="replace")) + 1)


def file_of(kernel: Kernel) -> str:
    """The file that defines a kernel."""
    return function_of(kernel).__code__.co_filename


class Captured:
    """The variables that a function finds outside of itself."""

    def __init__(self, functions: Mapping[Coordinates, FunctionType]) -> None:
        self._functions = functions
        self._first = next(iter(functions.values()))
        self._names = self._first.__code__.co_freevars

    @classmethod
    def of_kernel(cls, kernels: Mapping[Coordinates, Kernel]) -> Captured:
        """Those of a kernel."""
        return cls({place: function_of(kernel) for place, kernel in kernels.items()})

    @property
    def file(self) -> str:
        """The file that defines the function."""
        return self._first.__code__.co_filename

    def __contains__(self, name: str) -> bool:
        return (
            name in self._names or name in self._first.__globals__ or hasattr(builtins, name)
        )  # fmt: skip

    def __getitem__(self, name: str) -> Any:
        """A value; a number that depends on the node is an `OfPlace`.

        Raises:
            ValueError: if it depends on the node in another way.
        """
        if name not in self._names:
            known = self._first.__globals__
            if name not in known:
                return getattr(builtins, name)
            found = known[name]
            return _plain(found)
        values = self._values(name)
        if len(values) < len(self._functions):
            raise ValueError(f"'{name}' is not set on all nodes")
        return _merged(name, values)

    def _values(self, name: str) -> dict[Coordinates, Any]:
        """What a variable holds, on the nodes on which it is set."""
        return {
            place: variables[name]
            for place, function in self._functions.items()
            if name in (variables := _variables(function))
        }

    def all(self, kind: type) -> dict[str, Any]:
        """The variables of the body that hold objects of a kind, by name.

        Raises:
            CompileError: if one of them is not the same on all nodes.
        """
        found: dict[str, Any] = {}
        for name in self._names:
            if any(isinstance(value, kind) for value in self._values(name).values()):
                try:
                    found[name] = self[name]
                except ValueError as wrong:
                    where = location(self.file, syntax_of(self._first))
                    raise CompileError(str(wrong), where) from None
        return found


def _variables(function: FunctionType) -> dict[str, Any]:
    """What the variables of outer functions hold that a function refers to, of those set."""
    found: dict[str, Any] = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        # Nothing else than its exception says that a cell is empty.
        with suppress(ValueError):
            found[name] = cell.cell_contents
    return found


def _plain(value: Any) -> Any:
    """A number of numpy as one of Python."""
    return value.item() if isinstance(value, np.generic) else value  # pyright: ignore


def in_grid(place: Coordinates) -> tuple[int, int]:
    """The column and the row of a node."""
    return (place[0], place[1] if len(place) > 1 else 0)


def _merged(name: str, values: Mapping[Coordinates, Any]) -> Any:
    """What a variable holds on all nodes. Objects that the body makes are made by each node."""
    values = {place: _plain(value) for place, value in values.items()}
    first = next(iter(values.values()))
    if all(_is_same(value, first) for value in values.values()):
        return first
    if all(isinstance(v, FunctionType) and v.__code__ is first.__code__ for v in values.values()):
        return CapturedFunction(values)
    if all(_is_sequence(value) and len(value) == len(first) for value in values.values()):
        return tuple(
            _merged(name, {place: value[n] for place, value in values.items()})
            for n in range(len(first))
        )
    if not all(isinstance(value, int) for value in values.values()):
        raise ValueError(f"'{name}' is not the same on all nodes")
    return _of_place(name, values)


def _is_sequence(value: object) -> bool:
    return isinstance(value, tuple | list)


def _is_same(value: Any, first: Any) -> bool:
    """Whether a node has in a variable what the first one has."""
    if value is first:
        return True
    if type(value) is not type(first):
        return False
    match first:
        case DataflowBuffer() | Semaphore():
            return value.number == first.number
        case UnicastRemoteSemaphore() | MulticastRemoteSemaphore():
            return (value.semaphore.number, value.nodes) == (first.semaphore.number, first.nodes)
        case PipeNet():
            return value.key == first.key
        case FunctionType():
            if value.__code__ is not first.__code__:
                return False
            mine, others = _variables(value), _variables(first)
            return mine.keys() == others.keys() and all(
                # A function may call itself.
                mine[name] is value or _is_same(mine[name], others[name])
                for name in mine
            )
        case _ if _is_sequence(first):
            return len(value) == len(first) and all(map(_is_same, value, first))
        case _:
            return bool(np.all(value == first))


def _of_place(name: str, values: Mapping[Coordinates, Any]) -> OfPlace:
    known = {in_grid(place): int(value) for place, value in values.items()}
    periods = [1 + max(place[axis] for place in known) for axis in range(2)]
    formula = fitted(known, periods) if min(known.values()) >= 0 else None
    if formula is None:
        raise ValueError(
            f"'{name}' depends on the node in a way that the compiler does not see through"
        )
    return OfPlace(formula)


def stored_names(nodes: Sequence[ast.AST]) -> list[str]:
    """The names that statements assign to, or define, in order."""
    found: dict[str, None] = {}
    for node in (each for part in nodes for each in ast.walk(part)):
        match node:
            case ast.Name(name, ast.Store()) | ast.FunctionDef(name):
                found.setdefault(name)
            case _:
                pass
    return list(found)
