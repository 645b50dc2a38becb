"""Variables of kernels, frames of inlined functions, and loop-carried state."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

from xdsl.ir import SSAValue

from ttcodegen.lang.compiler.python.block_lifetimes import Regions
from ttcodegen.lang.compiler.python.captured import Captured, syntax_of
from ttcodegen.lang.compiler.python.merging import CapturedFunction
from ttcodegen.lang.compiler.python.numbers import Arithmetic, Number
from ttcodegen.lang.compiler.python.rewriting import has_continue
from ttcodegen.lang.simulator.context import inside_of
from ttcodegen.lang.simulator.locations import ProgramError
from ttcodegen.lang.simulator.shapes import is_sequence

# Numbers that a kernel changes while it runs: variables of C++.


@dataclass(eq=False)
class Variable:
    """A number that loops carry from one iteration to the next, or that conditions change."""

    slot: SSAValue
    """Storage of the variable in the kernel."""
    read: SSAValue | None = None
    """Last value read, or None if it may have changed."""
    read_in: Regions = ()
    """The loops and conditions that were open then."""

    def known_in(self, regions: Regions) -> SSAValue | None:
        """Known value where these loops and conditions are open."""
        return self.read if regions[: len(self.read_in)] == self.read_in else None


def reads_first(statements: Sequence[ast.stmt], name: str) -> bool:
    """True if statements may read a variable before they assign to it."""
    return _flow(statements, name)[0]


def assigned_on_all_ways(branches: Sequence[Sequence[ast.stmt]], name: str) -> bool:
    """True if each of some branches assigns to a variable before it reads it."""
    return all(_flow(branch, name) == (False, True) for branch in branches)


def assigned_values(statements: Sequence[ast.stmt], name: str) -> list[ast.expr | None]:
    """Expressions that statements assign to a variable; None for other assignments."""
    found: list[ast.expr | None] = []
    for node in (each for statement in statements for each in ast.walk(statement)):
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            alone = any(isinstance(target, ast.Name) and target.id == name for target in targets)
            if alone or any(_stores(target, name) for target in targets):
                found.append(node.value if alone else None)
        elif isinstance(node, ast.For | ast.withitem | ast.NamedExpr):
            target = node.optional_vars if isinstance(node, ast.withitem) else node.target
            if target is not None and _stores(target, name):
                found.append(None)
    return found


@dataclass(frozen=True)
class CountingLoop:
    """`while name < limit:` with `name += step` as its last statement."""

    name: str
    limit: ast.expr
    includes_limit: bool
    step: ast.expr
    body: Sequence[ast.stmt]
    """Loop body without the increment at its end."""


def counting_loop(node: ast.While) -> CountingLoop | None:
    """Recognizes a while loop that counts, or returns None."""
    match node.test, node.body[-1]:
        case (
            ast.Compare(ast.Name(name), [ast.Lt() | ast.LtE() as comparison], [limit]),
            ast.AugAssign(ast.Name(counted), ast.Add(), step)
            | ast.Assign([ast.Name(counted)], ast.BinOp(ast.Name(_), ast.Add(), step)),
        ) if counted == name:
            pass
        case _:
            return None
    last = node.body[-1]
    body = node.body[:-1] or [ast.copy_location(ast.Pass(), last)]
    adds_to = last.value.left.id if isinstance(last, ast.Assign) else name  # pyright: ignore
    fixed = {name, *(each.id for each in (*ast.walk(limit), *ast.walk(step))
                     if isinstance(each, ast.Name))}  # fmt: skip
    if has_continue(body):
        return None
    changes = any(_stores(statement, each) for statement in body for each in fixed)
    if adds_to != name or changes or (_loads(limit, name) or _loads(step, name)):
        return None
    return CountingLoop(name, limit, isinstance(comparison, ast.LtE), step, body)


def _flow(statements: Sequence[ast.stmt], name: str) -> tuple[bool, bool]:
    """True if a variable may be read as it was before, and whether it is assigned to for sure."""
    for statement in statements:
        reads, assigns = _of_statement(statement, name)
        if reads or assigns:
            return reads, assigns
    return False, False


def _of_statement(statement: ast.stmt, name: str) -> tuple[bool, bool]:
    match statement:
        case ast.If(test, body, orelse):
            first, second = _flow(body, name), _flow(orelse, name)
            return _loads(test, name) or first[0] or second[0], first[1] and second[1]
        case ast.For(target, iterated, body, _):
            inside = not _stores(target, name) and _flow(body, name)[0]
            return _loads(iterated, name) or inside, False
        case ast.While(test, body):
            return _loads(test, name) or _flow(body, name)[0], False
        case ast.With(items, body):
            if any(_loads(item, name) for item in items):
                return True, False
            if any(_stores(item, name) for item in items):
                return False, True
            return _flow(body, name)
        case ast.AugAssign(ast.Name(target)) if target == name:
            return True, False
        case _:
            reads = _loads(statement, name)
            return reads, not reads and _stores(statement, name)


def _loads(node: ast.AST, name: str) -> bool:
    return _has(node, name, ast.Load)


def _stores(node: ast.AST, name: str) -> bool:
    return _has(node, name, ast.Store)


def _has(node: ast.AST, name: str, context: type[ast.expr_context]) -> bool:
    return any(
        isinstance(each, ast.Name) and each.id == name and isinstance(each.ctx, context)
        for each in ast.walk(node)
    )


def last_line(statements: Sequence[ast.stmt]) -> int:
    """Last source line of statements."""
    return max(statement.end_lineno or 0 for statement in statements)


def read_after(syntax: ast.AST, line: int, name: str) -> bool:
    """True if a function reads a variable after a line."""
    for node in ast.walk(syntax):
        match node:
            case ast.Name(read, ast.Load()) | ast.AugAssign(ast.Name(read)):
                if read == name and node.lineno > line:
                    return True
            case _:
                pass
    return False


# Functions while they are translated: the kernel, and those that it calls, whose bodies are where
# they are called.

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


Limits: TypeAlias = tuple[Number, Number, Number]
"""Start, end and step of a loop that counts."""

# Loop-carried state of device loops, without values computed by Python.


@dataclass(eq=False)
class Loop:
    """A loop of the device that is being translated, once for all of its iterations."""

    frame: Frame
    """The function that it is in."""
    regions: Regions
    before: Mapping[str, Any]
    """Values of the assigned variables before the loop."""
    counter: Number | None = None
    """Counter of the kernel; None of a loop that a condition ends."""
    is_uniform: bool = False
    """True if it goes on for as long on all nodes."""
    _assigned: dict[str, set[Regions]] = field(default_factory=dict[str, set[Regions]])
    _read: dict[str, ast.AST] = field(default_factory=dict[str, ast.AST])

    def reads(self, frame: Frame, name: str, node: ast.AST, regions: Regions) -> None:
        """A variable of a function is read: one that this iteration may not have assigned to."""
        if frame is not self.frame or name not in self.before:
            return
        assigned = self._assigned.get(name, ())
        if not any(regions[: len(each)] == each for each in assigned):
            self._read.setdefault(name, node)

    def assigns(self, frame: Frame, name: str, regions: Regions) -> None:
        """A variable of a function is given a value: by the iterations that come to `regions`."""
        if frame is self.frame and regions[: len(self.regions)] == self.regions:
            self._assigned.setdefault(name, set()).add(regions)

    def carried(self) -> Iterator[tuple[str, ast.AST]]:
        """Variables that hold another value at the end of an iteration than the one that it read,
        and where it read that."""
        for name, node in self._read.items():
            if self.frame.names.get(name) is not self.before[name]:
                yield name, node


# Sequences whose elements only the running kernel knows: ranges with limits that it computes,
# what goes through several sequences at once, and lists that differ from node to node.


@dataclass(frozen=True, eq=False)
class KernelRange:
    """A range of Python with limits of the kernel."""

    start: Number
    stop: Number
    step: Number


@dataclass(frozen=True, eq=False)
class Zipped:
    """Tuples of the elements of several sequences, as `zip` and `enumerate` give them."""

    parts: tuple[Any, ...]
    length: Number | None = None
    """Number of elements, where known."""


@dataclass(frozen=True, eq=False)
class Listed:
    """A list with another length on each node: its elements follow from their positions."""

    length: Number
    at: Callable[[Number], Any]


def is_kernel_sequence(value: object) -> bool:
    """True if the running kernel goes over a sequence; over ranges it does so too."""
    return isinstance(value, KernelRange | Zipped | Listed | range)


def zipped(parts: Sequence[Any]) -> Zipped | None:
    """Several sequences at once, if the kernel can go over them; None if Python does."""
    over_kernel = any(is_kernel_sequence(part) for part in parts)
    return Zipped(tuple(parts)) if over_kernel else None


def length_of(value: Any, arithmetic: Arithmetic) -> Number | None:
    """Length of a sequence, or None if kernels cannot count it."""
    match value:
        case KernelRange(start, stop, step):
            return _steps(start, stop, step, arithmetic)
        case Zipped(_, length) if length is not None:
            return length
        case Zipped(parts):
            total: Number | None = None
            for part in parts:
                length = length_of(part, arithmetic)
                if length is None:
                    return None
                total = length if total is None else arithmetic.extreme("min", total, length)
            return total
        case Listed(length, _):
            return length
        case _:
            return len(value)


def _steps(start: Number, stop: Number, step: Number, arithmetic: Arithmetic) -> Number | None:
    if not isinstance(step, int):
        return None
    if step < 0:
        start, stop, step = stop, start, -step
    distance = arithmetic.subtract(stop, start)
    if not arithmetic.is_natural(distance):
        # A range that ends before it starts is empty.
        larger = arithmetic.extreme("max", stop, start)
        if larger is None:
            return None
        distance = arithmetic.subtract(larger, start)
        arithmetic.bound(distance, 0, None)
    return arithmetic.binary("FloorDiv", arithmetic.add(distance, step - 1), step)


def element_of(value: Any, position: Number, arithmetic: Arithmetic) -> Any:
    """The element at a position; None if kernels cannot find it."""
    match value:
        case KernelRange(start, _, step):
            return arithmetic.add(start, arithmetic.multiply(position, step))
        case Zipped(parts):
            found = tuple(element_of(part, position, arithmetic) for part in parts)
            return None if any(part is None for part in found) else found
        case Listed(_, at):
            return at(position)
        case range():
            return arithmetic.add(value.start, arithmetic.multiply(position, value.step))
        case _ if isinstance(position, int):
            return value[position]
        case _:
            return looked_up(value, position, arithmetic)


def looked_up(values: Any, position: Number, arithmetic: Arithmetic, name: str = "table") -> Any:
    """An element of a sequence of integers, or of tuples of them, in a table of the kernel; None if
    there is no such table."""
    parts = list(values)
    if not parts:
        return None
    if all(hasattr(part, "__index__") for part in parts):
        return arithmetic.looked_up([int(part) for part in parts], position, name)
    if not all(is_sequence(part) and len(part) == len(parts[0]) for part in parts):
        return None
    found = tuple(
        looked_up([part[n] for part in parts], position, arithmetic, f"{name}_{n}")
        for n in range(len(parts[0]))
    )
    return None if any(part is None for part in found) else found
