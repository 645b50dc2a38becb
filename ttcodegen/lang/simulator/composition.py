"""Composition of operations: calls of operations in other operations are inlined."""

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
from ttcodegen.lang.simulator.occurrences import variables_in
from ttcodegen.lang.simulator.unified import has_kernels


class Composable(Protocol):
    """Interface of an operation that other operations can call."""

    @property
    def function(self) -> Callable[..., Any]:
        """Python function of the operation."""
        ...

    @property
    def name(self) -> str:
        """Name of the operation."""
        ...


@dataclass
class _Inliner:
    """Inlines the operations that an operation calls."""

    is_operation: Callable[[object], TypeGuard[Composable]]
    taken: set[str]
    """Names that are used in the operation."""
    values: dict[str, Any] = field(default_factory=dict[str, Any])
    """Outer variables of the inlined bodies, by their unique names."""

    def inline(
        self,
        function: FunctionType,
        statements: Sequence[ast.stmt],
        call_stack: Sequence[Composable],
    ) -> list[ast.stmt]:
        """Replaces calls of operations in statements by the bodies of the operations.

        Raises:
            ProgramError: if a call is not a statement, lacks arguments, or is recursive.
        """
        found: list[ast.stmt] = []
        for statement in statements:
            for name in ("body", "orelse"):
                inner = getattr(statement, name, None)
                if isinstance(inner, list):
                    body = self.inline(function, cast(list[ast.stmt], inner), call_stack)
                    setattr(statement, name, body)
            match statement:
                case ast.Expr(ast.Call(called) as call) if self.is_operation(
                    operation := _value_of(function, called)
                ):
                    found += self._inlined_body(function, call, operation, call_stack)
                case _:
                    self._check_no_calls(function, statement)
                    found.append(statement)
        return found

    def _check_no_calls(self, function: FunctionType, statement: ast.stmt) -> None:
        """Raises ProgramError if an operation is called inside an expression."""
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

    def _inlined_body(
        self,
        caller: FunctionType,
        call: ast.Call,
        operation: Composable,
        call_stack: Sequence[Composable],
    ) -> list[ast.stmt]:
        """Copies the body of a called operation, with arguments and unique names substituted."""
        function = operation.function
        assert isinstance(function, FunctionType)
        if any(each is operation for each in call_stack):
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
        body = self.inline(function, syntax.body, [*call_stack, operation])
        given = self._arguments(caller, call, syntax)
        stored = variables_in(*body, context=ast.Store)
        stored |= {n.name for s in body for n in ast.walk(s) if isinstance(n, ast.FunctionDef)}
        for name in given:
            if name in stored:
                message = f"the operation '{operation.name}' assigns to its parameter '{name}'"
                raise _error(caller, message, call)
        new_names: dict[str, str] = {
            name: self._unused_name(name, syntax.name) for name in sorted(stored)
        }
        assignments: list[ast.stmt] = []
        for name, value in given.items():
            if isinstance(value, ast.Name):
                new_names[name] = value.id
                continue
            unique = self._unused_name(name, syntax.name)
            new_names[name] = unique
            assignments.append(ast.Assign([ast.Name(unique, ast.Store())], value))
        self._rename_outer(caller, function, body, new_names, syntax.name)
        body = [_Renaming(new_names).visit(each) for each in body]
        is_elsewhere = function.__code__.co_filename != caller.__code__.co_filename
        for node in (n for statement in body for n in ast.walk(statement)):
            if is_elsewhere and hasattr(node, "lineno"):
                ast.copy_location(node, call)
        for each in assignments:
            ast.copy_location(each, call)
            ast.fix_missing_locations(each)
        return [*assignments, *body]

    def _arguments(
        self, caller: FunctionType, call: ast.Call, syntax: ast.FunctionDef
    ) -> dict[str, ast.expr]:
        """Argument expression of each parameter."""
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
        new_names: dict[str, str],
        stem: str,
    ) -> None:
        """Renames outer variables of a body where their names mean something else in the caller."""
        loads = variables_in(*body)
        arguments = {n.arg for s in body for n in ast.walk(s) if isinstance(n, ast.arg)}
        closure = variables_of(function)
        for name in sorted(loads - new_names.keys() - arguments - self.values.keys()):
            if name in closure:
                value = closure[name]
            elif name in function.__globals__:
                value = function.__globals__[name]
                if caller.__globals__ is function.__globals__ and name not in self.taken:
                    continue
            else:
                continue
            unique = self._unused_name(name, stem)
            self.values[unique] = value
            new_names[name] = unique

    def _unused_name(self, name: str, stem: str) -> str:
        """Returns a name that is unused in the caller, and reserves it."""
        found, number = name, 1
        while found in self.taken or hasattr(builtins, found):
            found = f"{stem}_{name}" if number == 1 else f"{stem}_{name}_{number}"
            number += 1
        self.taken.add(found)
        return found


class _Renaming(ast.NodeTransformer):
    """Renames variables."""

    def __init__(self, new_names: dict[str, str]) -> None:
        self._new_names = new_names

    def visit_Name(self, node: ast.Name) -> ast.AST:
        node.id = self._new_names.get(node.id, node.id)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.name = self._new_names.get(node.name, node.name)
        return self.generic_visit(node)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.arg = self._new_names.get(node.arg, node.arg)
        return node


def _value_of(function: FunctionType, node: ast.expr) -> Any:
    """Value of a name or module attribute in the scope of a function; None if unknown."""
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
    """Inlines the operations that another operation calls.

    Returns:
        The outer variables of the inlined bodies, by their unique names.
    """
    taken = variables_in(syntax)
    taken |= {node.arg for node in ast.walk(syntax) if isinstance(node, ast.arg)}
    inliner = _Inliner(is_operation, taken)
    syntax.body = inliner.inline(function, syntax.body, [operation])
    return inliner.values
