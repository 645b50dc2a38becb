"""Functions while they are translated: the kernel, and those that it calls, whose bodies are
where they are called."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ttcodegen.lang.compiler.python.captured import Captured, syntax_of
from ttcodegen.lang.compiler.python.merging import CapturedFunction
from ttcodegen.lang.compiler.python.variables import read_after, reads_first
from ttcodegen.lang.simulator.context import inside_of
from ttcodegen.lang.simulator.locations import ProgramError

_PLAIN = (int, float, str, bool, type(None))
Syntax = ast.FunctionDef | ast.Lambda


@dataclass(eq=False)
class Frame:
    """A function that is being translated."""

    syntax: Syntax
    captured: Captured
    enclosing: Frame | None = None
    """The function that it is defined in, if that is being translated too."""
    regions: int = 0
    """Number of open device loops and conditions at the call."""
    names: dict[str, Any] = field(default_factory=dict[str, Any])
    here: ast.AST = field(default_factory=ast.Pass)
    """Syntax node under translation."""
    outer_names: set[str] = field(default_factory=set[str])
    """The names that it declares to be variables of the functions around it."""
    iteration: Sequence[ast.stmt] = ()
    """The statements that the end of an iteration of the innermost loop follows."""
    again: list[Sequence[ast.stmt]] = field(default_factory=list[Sequence[ast.stmt]])
    """The bodies of loops that Python goes through and has not done with: their statements come
    again, after those that follow them."""
    rest: Sequence[ast.stmt] = field(init=False)
    """The statements that its end follows."""

    def __post_init__(self) -> None:
        self.rest = self.body

    @cached_property
    def shared_names(self) -> frozenset[str]:
        """Its variables that functions inside of it declare to change."""
        return frozenset(
            name
            for part in ast.walk(self.syntax)
            if isinstance(part, ast.Nonlocal) and part not in self.body
            for name in part.names
        )

    def reads_later(self, name: str, line: int) -> bool:
        """True if it reads a variable, as it is after a line."""
        return read_after(self.syntax, line, name) or any(
            reads_first(body, name) for body in self.again
        )

    @property
    def name(self) -> str:
        """The name of the function."""
        return self.syntax.name if isinstance(self.syntax, ast.FunctionDef) else "lambda"

    @property
    def body(self) -> list[ast.stmt]:
        """Its statements."""
        if isinstance(self.syntax, ast.FunctionDef):
            return self.syntax.body
        value = self.syntax.body
        return [ast.copy_location(ast.Return(value), value)]


@dataclass(frozen=True, eq=False)
class LocalFunction:
    """A function that is defined in another one that is being translated."""

    syntax: Syntax
    frame: Frame
    defaults: Mapping[str, Any]
    """The values of arguments that calls may leave out, by name."""

    def opened(self, regions: int) -> Frame:
        """A frame for a call."""
        return Frame(self.syntax, self.frame.captured, self.frame, regions)


def captured_frame(function: CapturedFunction, regions: int) -> Frame:
    """A frame for a call of a function defined outside of the kernel."""
    return Frame(syntax_of(function.first), Captured(function.on_nodes), None, regions)


def captured_defaults(function: CapturedFunction) -> dict[str, Any]:
    """The values of arguments that calls of a function may leave out."""
    code, values = function.first.__code__, function.first.__defaults__ or ()
    names = code.co_varnames[: code.co_argcount]
    return dict(zip(names[len(names) - len(values) :], values, strict=True)) | dict(
        function.first.__kwdefaults__ or {}
    )


def is_plain(value: Any) -> bool:
    """True if a value is one of Python alone."""
    if isinstance(value, tuple | list):
        return all(map(is_plain, value))  # pyright: ignore[reportUnknownArgumentType]
    return isinstance(value, _PLAIN)


def computed_by_python(
    function: CapturedFunction, positional: Sequence[Any], named: Mapping[str, Any]
) -> tuple[Any] | None:
    """Evaluates a function of Python values, or returns None.

    None if the result differs between nodes or the function uses the language, which needs the
    running kernel.
    """
    plain = all(map(is_plain, (*positional, *named.values())))
    if plain and function.is_same and "print" not in function.first.__code__.co_names:
        with inside_of(None), suppress(ProgramError):
            return (function.first(*positional, **named),)
    return None


class Returned(Exception):
    """The call that is being translated ends here, with a value."""

    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value


def bound_arguments(
    syntax: Syntax,
    defaults: Mapping[str, Any],
    positional: Sequence[Any],
    named: Mapping[str, Any],
) -> dict[str, Any]:
    """Binds the arguments of a call to a function's parameters.

    Raises:
        TypeError: if the call does not fit the function.
    """
    wanted = syntax.args
    names = [each.arg for each in (*wanted.posonlyargs, *wanted.args)]
    found = dict(zip(names, positional, strict=False))
    if wanted.vararg is not None:
        found[wanted.vararg.arg] = tuple(positional[len(names) :])
    elif len(positional) > len(names):
        raise TypeError(f"it takes {len(names)} arguments, not {len(positional)}")
    names += [each.arg for each in wanted.kwonlyargs]
    rest = {name: value for name, value in named.items() if name not in names}
    for name, value in named.items():
        if name in names:
            if name in found:
                raise TypeError(f"it gets two values for '{name}'")
            found[name] = value
    if wanted.kwarg is not None:
        found[wanted.kwarg.arg] = rest
    elif rest:
        raise TypeError(f"it has no argument '{next(iter(rest))}'")
    for name in names:
        if name not in found:
            if name not in defaults:
                raise TypeError(f"it gets no value for '{name}'")
            found[name] = defaults[name]
    return found
