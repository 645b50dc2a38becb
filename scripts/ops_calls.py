"""Reads off the code of a lowering which ops it makes.

A lowering names ops where it calls an `OpBuilder`: `builder.emit("softmax", ...)`, `builder.pad()`.
Functions that it calls are followed as far as they belong to the catalogue; a name that is not
written there is looked up where the function was made (`_lower_reduction` of a row of a table).
"""

from __future__ import annotations

import ast
import functools
import inspect
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any

_NAMING = frozenset("emit emit_op like broadcasting reduce".split())
"""Methods of the builder that are given the name of an op."""
_NAMED: Mapping[str, tuple[str, ...]] = {
    "reshape": ("reshape",),
    "repeat": ("repeat",),
    "permute": ("permute",),
    "typecast": ("typecast",),
    "full": ("full",),
    "slice": ("slice_static",),
    "slice_dim": ("slice_static",),
    "pad": ("pad", "pad_row_major"),
    "concat": ("concat",),
}
"""Methods of the builder that make ops of one name."""
_CATALOGUE = "ttcodegen.ops."


def made_by(lowering: Callable[..., Any], own_name: str) -> set[str]:
    """The short names of the ops that a lowering may make for the op `own_name`.

    Where a name is handed from function to function, what else is a string there is among them.
    """
    reader = _Reader(own_name)
    found = set(reader.function(lowering))
    return found | reader.strings if reader.has_unknown else found


class _Reader:
    def __init__(self, own_name: str) -> None:
        self._own_name = own_name
        self._seen: set[object] = set()
        self.strings: set[str] = set()
        """All strings in the functions that were read."""
        self.has_unknown = False
        """True if a name could not be resolved."""

    def function(self, function: Callable[..., Any]) -> Iterator[str]:
        if isinstance(function, functools.partial):
            for argument in (*function.args, *function.keywords.values()):
                yield from self._value(argument)
            function = function.func
        if not isinstance(function, types.FunctionType) or function in self._seen:
            return
        if (
            not function.__module__.startswith(_CATALOGUE)
            or "ops.core.builder" in function.__module__
        ):
            return
        self._seen.add(function)
        names = _names_of(function)
        for node in ast.walk(_node_of(function)):
            if isinstance(node, ast.Call):
                yield from self._call(node, names)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                self.strings.add(node.value)

    def _call(self, node: ast.Call, names: Mapping[str, Any]) -> Iterator[str]:
        for argument in (*node.args, *(keyword.value for keyword in node.keywords)):
            # Functions are handed on to others, and called there.
            if isinstance(argument, ast.Name):
                yield from self._callable(names.get(argument.id))
        match node.func:
            case ast.Attribute(attr=method) if method in _NAMING and node.args:
                yield from self._name(node.args[0], names)
            case ast.Attribute(value=ast.Name(id=owner), attr=method) if owner in (
                "builder",
                "rewriter",
            ):
                yield from _NAMED.get(method, ())
            case ast.Attribute(value=ast.Name(id=owner), attr=field) if owner in names:
                # A function in a row of a table; a class or module is followed by its names only.
                if not isinstance(names[owner], type | types.ModuleType):
                    yield from self._callable(getattr(names[owner], field, None))
            case ast.Name(id=called):
                yield from self._callable(names.get(called))
            case _:
                pass

    def _callable(self, value: Any) -> Iterator[str]:
        if isinstance(value, types.FunctionType | functools.partial):
            yield from self.function(value)

    def _name(self, node: ast.expr, names: Mapping[str, Any]) -> Iterator[str]:
        """The names that an expression can give."""
        match node:
            case ast.Constant(value=str(name)):
                yield name
            case ast.IfExp(body=first, orelse=second):
                yield from self._name(first, names)
                yield from self._name(second, names)
            case ast.Name(id=variable) if variable not in names:
                self.has_unknown = True
            case ast.Name(id=variable):
                yield from self._value(names[variable])
            case ast.Attribute(value=ast.Name(id=owner), attr=field) if owner in names:
                yield from self._value(getattr(names[owner], field, None))
            case ast.Subscript(value=ast.Name(id=table)) if isinstance(names.get(table), dict):
                yield from self._value(names[table].get(self._own_name))
            case _:
                yield from self._names_of_op()

    def _value(self, value: Any) -> Iterator[str]:
        match value:
            case str():
                yield value
            case ast.expr():
                yield from self._name(value, {})
            case list() | tuple():
                for each in value:
                    yield from self._value(each)
            case None:
                yield from self._names_of_op()
            case _:
                yield from self._callable(value)

    def _names_of_op(self) -> Iterator[str]:
        yield self._own_name
        yield self._own_name.removesuffix("_unrolled")


def _names_of(function: types.FunctionType) -> dict[str, Any]:
    """The values of the names in a function: globals, what it closes over, and expressions that
    are assigned in it."""
    found = dict(function.__globals__)
    closure = function.__closure__ or ()
    for name, cell in zip(function.__code__.co_freevars, closure, strict=True):
        found[name] = cell.cell_contents
    for node in ast.walk(_node_of(function)):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    found[target.id] = node.value
    return found


@functools.cache
def _tree(path: str) -> ast.Module:
    with open(path, encoding="utf-8") as file:
        return ast.parse(file.read())


def _node_of(function: types.FunctionType) -> ast.AST:
    """The definition of a function, or the lambda."""
    path = inspect.getsourcefile(function)
    assert path is not None
    line = function.__code__.co_firstlineno
    wanted = ast.Lambda if function.__name__ == "<lambda>" else ast.FunctionDef
    for node in ast.walk(_tree(path)):
        if isinstance(node, wanted) and node.lineno == line:
            return node
    raise LookupError(f"{path}:{line} has no {function.__name__}")
