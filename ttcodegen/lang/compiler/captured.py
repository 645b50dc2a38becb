"""What kernels refer to: variables of the operation's body, of the module, and Python's own.

The body of an operation runs on each node, as in the simulator; a variable that is the same number
everywhere is a constant of the kernel, one that depends on the node is computed from its place.
"""

from __future__ import annotations

import ast
import builtins
import linecache
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType, FunctionType
from typing import Any

from ttcodegen.diagnostics import CompileError, SourceLocation
from ttcodegen.lang.context import Coordinates, Kernel
from ttcodegen.lang.semaphores import MulticastRemoteSemaphore, UnicastRemoteSemaphore
from ttcodegen.lang.shapes import is_range, is_tuple


@dataclass(frozen=True)
class OfPlace:
    """A number that depends on the node: the smaller of a sum of multiples of its coordinates and a
    bound, where there is one."""

    first: int
    per_column: int
    per_row: int
    bound: int | None


def function_of(kernel: Kernel) -> FunctionType:
    """The Python function of a kernel."""
    assert isinstance(kernel.function, FunctionType)
    return kernel.function


@lru_cache(8)
def _parsed(text: str) -> ast.Module:
    return ast.parse(text)


def syntax_of(kernel: Kernel) -> ast.FunctionDef:
    """The text of a kernel."""
    code: CodeType = function_of(kernel).__code__
    for node in ast.walk(_parsed("".join(linecache.getlines(code.co_filename)))):
        if isinstance(node, ast.FunctionDef) and node.name == code.co_name:
            first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            if first == code.co_firstlineno:
                return node
    raise CompileError(f"the text of the kernel '{kernel.name}' cannot be found")


def location(kernel: Kernel, node: ast.AST) -> SourceLocation:
    """The place of a part of a kernel."""
    file = function_of(kernel).__code__.co_filename
    line: int = getattr(node, "lineno", 1)
    text = linecache.getline(file, line).encode()[: getattr(node, "col_offset", 0)]
    return SourceLocation(file, line, len(text.decode(errors="replace")) + 1)


class Captured:
    """The variables that a kernel finds outside of itself."""

    def __init__(self, kernels: Mapping[Coordinates, Kernel]) -> None:
        self._functions = {place: function_of(kernel) for place, kernel in kernels.items()}
        self._first = next(iter(self._functions.values()))
        self._names = {name: n for n, name in enumerate(self._first.__code__.co_freevars)}

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
            return known[name] if name in known else getattr(builtins, name)
        values = {place: self._cell(function, name) for place, function in self._functions.items()}
        return _merged(name, values)

    def _cell(self, function: FunctionType, name: str) -> Any:
        assert function.__closure__ is not None
        return function.__closure__[self._names[name]].cell_contents

    def all(self, kind: type) -> dict[str, Any]:
        """The variables of the body that hold objects of a kind, by name."""
        found = {name: self[name] for name in self._names}
        return {name: value for name, value in found.items() if isinstance(value, kind)}


def in_grid(place: Coordinates) -> tuple[int, int]:
    """The column and the row of a node."""
    return (place[0], place[1] if len(place) > 1 else 0)


def _merged(name: str, values: Mapping[Coordinates, Any]) -> Any:
    """What a variable holds on all nodes. Objects that the body makes are made by each node."""
    first = next(iter(values.values()))
    if is_tuple(first):
        parts = {place: tuple(value) for place, value in values.items()}
        lengths = {len(part) for part in parts.values()}
        if len(lengths) == 1:
            return tuple(
                _merged(name, {place: part[n] for place, part in parts.items()})
                for n in range(lengths.pop())
            )
    if isinstance(first, UnicastRemoteSemaphore | MulticastRemoteSemaphore):
        if any(value.nodes != first.nodes for value in values.values()):
            raise ValueError(f"'{name}' is not the same on all nodes")
    plain = isinstance(first, int | float | str) or is_tuple(first) or is_range(first)
    if not plain or all(value == first for value in values.values()):
        return first
    if not isinstance(first, int):
        raise ValueError(f"'{name}' is not the same on all nodes")
    return _of_place(name, values)


def _of_place(name: str, values: Mapping[Coordinates, Any]) -> OfPlace:
    known = {in_grid(place): int(value) for place, value in values.items()}
    first = known[0, 0]
    per_column = known.get((1, 0), first) - first
    per_row = known.get((0, 1), first) - first
    plain = {p: first + p[0] * per_column + p[1] * per_row for p in known}
    if first >= 0 <= per_column and per_row >= 0:
        if plain == known:
            return OfPlace(first, per_column, per_row, None)
        bound = max(known.values())
        rows = 1 + max(row for _, row in known)
        # A column that is cut off may be so many rows further on.
        for step in (per_column, per_row * rows):
            found = {p: min(first + p[0] * step + p[1] * per_row, bound) for p in known}
            if found == known:
                return OfPlace(first, step, per_row, bound)
    raise ValueError(
        f"'{name}' depends on the node in a way that the compiler does not see through"
    )


def loaded_names(nodes: Sequence[ast.stmt]) -> list[str]:
    """The names that statements read, in order."""
    found = [
        node.id
        for statement in nodes
        for node in ast.walk(statement)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    ]
    return list(dict.fromkeys(found))


def stored_names(nodes: Sequence[ast.stmt]) -> list[str]:
    """The names that statements assign to, in order."""
    found = [
        node.id
        for statement in nodes
        for node in ast.walk(statement)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    ]
    return list(dict.fromkeys(found))
