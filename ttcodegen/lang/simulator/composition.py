"""Composition of operations: calls of operations in another one are inlined."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any, Protocol, TypeGuard, cast

from ttcodegen.lang.simulator.locations import (
    ProgramError,
    error_at,
    syntax_of_function,
    variables_of,
)
from ttcodegen.lang.simulator.unified import has_kernels


class Composable(Protocol):
    """An operation that others may be made of."""

    @property
    def function(self) -> Callable[..., Any]:
        """Its function."""
        ...

    @property
    def name(self) -> str:
        """Its name."""
        ...


@dataclass
class _Inliner:
    """Inlines the operations that an operation calls."""

    is_operation: Callable[[object], TypeGuard[Composable]]
    taken: set[str]
    """The names that the operation uses."""
    values: dict[str, Any] = field(default_factory=dict[str, Any])
    """The outer variables of the inlined bodies, by the names that they have there."""

    def inlined(
        self,
        function: FunctionType,
        statements: Sequence[ast.stmt],
        under_way: Sequence[Composable],
    ) -> list[ast.stmt]:
        """Statements of a function, with bodies in place of calls of operations.

        Raises:
            ProgramError: if a call is no statement, gives not all parameters, or never ends.
        """
        found: list[ast.stmt] = []
        for statement in statements:
            for name in ("body", "orelse"):
                inner = getattr(statement, name, None)
                if isinstance(inner, list):
                    body = self.inlined(function, cast(list[ast.stmt], inner), under_way)
                    setattr(statement, name, body)
            match statement:
                case ast.Expr(ast.Call(called) as call) if self.is_operation(
                    operation := _value_of(function, called)
                ):
                    found += self._body(function, call, operation, under_way)
                case _:
                    self._check(function, statement)
                    found.append(statement)
        return found

    def _check(self, function: FunctionType, statement: ast.stmt) -> None:
        """Raises ProgramError if an expression calls an operation."""
        for field_, value in ast.iter_fields(statement):
            if field_ in ("body", "orelse", "decorator_list"):
                continue
            parts = cast(list[object], value) if isinstance(value, list) else [value]
            for node in (n for part in parts if isinstance(part, ast.AST) for n in ast.walk(part)):
                if isinstance(node, ast.Call) and self.is_operation(
                    found := _value_of(function, node.func)
                ):
                    raise _error(
                        function,
                        f"the call of the operation '{found.name}' is a statement: it has no value",
                        node,
                    )

    def _body(
        self,
        caller: FunctionType,
        call: ast.Call,
        operation: Composable,
        under_way: Sequence[Composable],
    ) -> list[ast.stmt]:
        function = operation.function
        assert isinstance(function, FunctionType)
        if any(each is operation for each in under_way):
            raise _error(caller, f"the operation '{operation.name}' calls itself", call)
        syntax = syntax_of_function(function)
        if syntax is None or has_kernels(syntax):
            raise _error(
                caller,
                f"the operation '{operation.name}' has kernels of its own, so no other operation "
                "calls it",
                call,
                "write it with one body for all kernels",
            )
        syntax = deepcopy(syntax)
        body = self.inlined(function, syntax.body, [*under_way, operation])
        given = self._arguments(caller, call, syntax)
        stored = {
            node.id
            for statement in body
            for node in ast.walk(statement)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        }
        stored |= {n.name for s in body for n in ast.walk(s) if isinstance(n, ast.FunctionDef)}
        for name in given:
            if name in stored:
                message = f"the operation '{operation.name}' assigns to its parameter '{name}'"
                raise _error(caller, message, call)
        renamed: dict[str, str] = {
            name: self._unused_name(name, syntax.name) for name in sorted(stored)
        }
        begin: list[ast.stmt] = []
        for name, value in given.items():
            if isinstance(value, ast.Name):
                renamed[name] = value.id
                continue
            own = self._unused_name(name, syntax.name)
            renamed[name] = own
            begin.append(ast.Assign([ast.Name(own, ast.Store())], value))
        self._rename_outer(caller, function, body, renamed, syntax.name)
        body = [_Renaming(renamed).visit(each) for each in body]
        is_elsewhere = function.__code__.co_filename != caller.__code__.co_filename
        for node in (n for statement in body for n in ast.walk(statement)):
            if is_elsewhere and hasattr(node, "lineno"):
                ast.copy_location(node, call)
        for each in begin:
            ast.copy_location(each, call)
            ast.fix_missing_locations(each)
        return [*begin, *body]

    def _arguments(
        self, caller: FunctionType, call: ast.Call, syntax: ast.FunctionDef
    ) -> dict[str, ast.expr]:
        """The argument of each parameter."""
        arguments = syntax.args
        names = [each.arg for each in (*arguments.posonlyargs, *arguments.args)]
        names += [each.arg for each in arguments.kwonlyargs]
        has_star = any(isinstance(each, ast.Starred) for each in call.args)
        if has_star or any(each.arg is None for each in call.keywords):
            raise _error(caller, "a call of an operation in another one unpacks nothing", call)
        given = dict(zip(names, call.args, strict=False))
        given |= {each.arg: each.value for each in call.keywords if each.arg is not None}
        if given.keys() != {*names} or len(call.args) > len(names):
            raise _error(
                caller,
                f"the operation '{syntax.name}' takes the arguments ({', '.join(names)}), all of "
                "them",
                call,
            )
        return given

    def _rename_outer(
        self,
        caller: FunctionType,
        function: FunctionType,
        body: Sequence[ast.stmt],
        renamed: dict[str, str],
        stem: str,
    ) -> None:
        """Gives outer variables of a body names in the caller."""
        loads = {n.id for s in body for n in ast.walk(s) if isinstance(n, ast.Name)}
        arguments = {n.arg for s in body for n in ast.walk(s) if isinstance(n, ast.arg)}
        closure = variables_of(function)
        for name in sorted(loads - renamed.keys() - arguments - self.values.keys()):
            if name in closure:
                value = closure[name]
            elif name in function.__globals__:
                value = function.__globals__[name]
                if caller.__globals__ is function.__globals__ and name not in self.taken:
                    continue
            else:
                continue
            own = self._unused_name(name, stem)
            self.values[own] = value
            renamed[name] = own

    def _unused_name(self, name: str, stem: str) -> str:
        """A name that nothing in the caller has."""
        found, number = name, 1
        while found in self.taken or hasattr(builtins, found):
            found = f"{stem}_{name}" if number == 1 else f"{stem}_{name}_{number}"
            number += 1
        self.taken.add(found)
        return found


class _Renaming(ast.NodeTransformer):
    """Renames variables."""

    def __init__(self, renamed: dict[str, str]) -> None:
        self._renamed = renamed

    def visit_Name(self, node: ast.Name) -> ast.AST:
        node.id = self._renamed.get(node.id, node.id)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.name = self._renamed.get(node.name, node.name)
        return self.generic_visit(node)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.arg = self._renamed.get(node.arg, node.arg)
        return node


def _value_of(function: FunctionType, node: ast.expr) -> Any:
    """The value of a name, or of an attribute of a module, around a function; None if unknown."""
    if isinstance(node, ast.Attribute):
        of = _value_of(function, node.value)
        return None if of is None else getattr(of, node.attr, None)
    if not isinstance(node, ast.Name):
        return None
    if node.id in function.__code__.co_freevars:
        return variables_of(function).get(node.id)
    return function.__globals__.get(node.id)


def _error(
    function: FunctionType, message: str, node: ast.AST, remedy: str | None = None
) -> ProgramError:
    return error_at(function.__code__.co_filename, message, node, remedy)


def inline_operations(
    function: FunctionType,
    syntax: ast.FunctionDef,
    operation: Composable,
    is_operation: Callable[[object], TypeGuard[Composable]],
) -> dict[str, Any]:
    """Inlines the operations that another one calls.

    Returns:
        The outer variables of the inlined bodies, by the names that they have there.
    """
    taken = {node.id for node in ast.walk(syntax) if isinstance(node, ast.Name)}
    taken |= {node.arg for node in ast.walk(syntax) if isinstance(node, ast.arg)}
    inliner = _Inliner(is_operation, taken)
    syntax.body = inliner.inlined(function, syntax.body, [operation])
    return inliner.values
