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
from ttcodegen.lang.simulator.occurrences import reads, stores, variables_in
from ttcodegen.lang.simulator.shapes import is_sequence

# Numbers that a kernel changes while it runs: C++ variables


@dataclass(eq=False)
class Variable:
    """A number that is loop-carried, or that conditions change: a C++ variable."""

    slot: SSAValue
    """Storage of the variable in the kernel."""
    read: SSAValue | None = None
    """Last value read, or None if it may have changed."""
    read_in: Regions = ()
    """Enclosing loops and conditions of that read."""

    def known_in(self, regions: Regions) -> SSAValue | None:
        """Last value read, if it is still valid inside the given loops and conditions."""
        return self.read if regions[: len(self.read_in)] == self.read_in else None


def reads_first(statements: Sequence[ast.stmt], name: str) -> bool:
    """True if statements may read a variable before they assign it."""
    return _flow(statements, name)[0]


def is_assigned_on_all_paths(branches: Sequence[Sequence[ast.stmt]], name: str) -> bool:
    """True if each branch assigns a variable before reading it."""
    return all(_flow(branch, name) == (False, True) for branch in branches)


def assigned_values(statements: Sequence[ast.stmt], name: str) -> list[ast.expr | None]:
    """Expressions that statements assign to a variable; None for other assignments."""
    found: list[ast.expr | None] = []
    for node in (each for statement in statements for each in ast.walk(statement)):
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            is_direct = any(
                isinstance(target, ast.Name) and target.id == name for target in targets
            )
            if is_direct or any(stores(target, name) for target in targets):
                found.append(node.value if is_direct else None)
        elif isinstance(node, ast.For | ast.withitem | ast.NamedExpr):
            target = node.optional_vars if isinstance(node, ast.withitem) else node.target
            if target is not None and stores(target, name):
                found.append(None)
    return found


@dataclass(frozen=True)
class CountingLoop:
    """A `while name < limit:` loop with `name += step` as its last statement."""

    name: str
    limit: ast.expr
    includes_limit: bool
    step: ast.expr
    body: Sequence[ast.stmt]
    """Loop body without the final increment."""


def counting_loop(node: ast.While) -> CountingLoop | None:
    """Recognizes a counting `while` loop, or returns None."""
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
    fixed = {name, *variables_in(limit, step)}
    if has_continue(body):
        return None
    changes = any(stores(statement, each) for statement in body for each in fixed)
    if adds_to != name or changes or (reads(limit, name) or reads(step, name)):
        return None
    return CountingLoop(name, limit, isinstance(comparison, ast.LtE), step, body)


def _flow(statements: Sequence[ast.stmt], name: str) -> tuple[bool, bool]:
    """Returns whether the old value of a variable may be read, and is definitely replaced."""
    for statement in statements:
        flow = _statement_flow(statement, name)
        if any(flow):
            return flow
    return False, False


def _statement_flow(statement: ast.stmt, name: str) -> tuple[bool, bool]:
    """Flags of `_flow` for a single statement."""
    match statement:
        case ast.If(test, body, orelse):
            first, second = _flow(body, name), _flow(orelse, name)
            return reads(test, name) or first[0] or second[0], first[1] and second[1]
        case ast.For(target, iterated, body, _):
            inside = not stores(target, name) and _flow(body, name)[0]
            return reads(iterated, name) or inside, False
        case ast.While(test, body):
            return reads(test, name) or _flow(body, name)[0], False
        case ast.With(items, body):
            if any(reads(item, name) for item in items):
                return True, False
            if any(stores(item, name) for item in items):
                return False, True
            return _flow(body, name)
        case ast.AugAssign(ast.Name(target)) if target == name:
            return True, False
        case _:
            is_read = reads(statement, name)
            return is_read, not is_read and stores(statement, name)


def last_line(statements: Sequence[ast.stmt]) -> int:
    """Last source line of a sequence of statements."""
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


# Frames of functions under translation: the kernel, and functions inlined into it.

_PLAIN = (int, float, str, bool, type(None))
Syntax = ast.FunctionDef | ast.Lambda


@dataclass(eq=False)
class Frame:
    """A function that is being translated: the kernel or an inlined call."""

    syntax: Syntax
    captured: Captured
    enclosing: Frame | None = None
    """Frame of the enclosing function, if that is also being translated."""
    regions: int = 0
    """Number of open device loops and conditions at the call."""
    names: dict[str, Any] = field(default_factory=dict[str, Any])
    here: ast.AST = field(default_factory=ast.Pass)
    """Syntax node that is being translated."""
    outer_names: set[str] = field(default_factory=set[str])
    """Names that the function declares as `nonlocal`."""
    iteration: Sequence[ast.stmt] = ()
    """Remaining statements of the innermost loop's iteration."""
    repeated_bodies: list[Sequence[ast.stmt]] = field(default_factory=list[Sequence[ast.stmt]])
    """Bodies of unrolled loops with further iterations, whose statements will be repeated."""
    rest: Sequence[ast.stmt] = field(init=False)
    """Remaining statements of the function."""

    def __post_init__(self) -> None:
        self.rest = self.body

    @cached_property
    def shared_names(self) -> frozenset[str]:
        """Variables of the function that nested functions declare as `nonlocal`."""
        return frozenset(
            name
            for part in ast.walk(self.syntax)
            if isinstance(part, ast.Nonlocal) and part not in self.body
            for name in part.names
        )

    def reads_later(self, name: str, line: int) -> bool:
        """True if the function may read a variable's current value after a line."""
        return read_after(self.syntax, line, name) or any(
            reads_first(body, name) for body in self.repeated_bodies
        )

    @property
    def name(self) -> str:
        """Name of the function."""
        return self.syntax.name if isinstance(self.syntax, ast.FunctionDef) else "lambda"

    @property
    def body(self) -> list[ast.stmt]:
        """Statements of the function."""
        if isinstance(self.syntax, ast.FunctionDef):
            return self.syntax.body
        value = self.syntax.body
        return [ast.copy_location(ast.Return(value), value)]


@dataclass(frozen=True, eq=False)
class LocalFunction:
    """A function defined inside a function that is being translated."""

    syntax: Syntax
    frame: Frame
    defaults: Mapping[str, Any]
    """Default values of parameters, by name."""

    def new_frame(self, regions: int) -> Frame:
        """A frame for a call."""
        return Frame(self.syntax, self.frame.captured, self.frame, regions)


def captured_frame(function: CapturedFunction, regions: int) -> Frame:
    """A frame for a call of a captured function."""
    return Frame(syntax_of(function.first), Captured(function.on_nodes), None, regions)


def captured_defaults(function: CapturedFunction) -> dict[str, Any]:
    """Default values of a captured function's parameters."""
    code, values = function.first.__code__, function.first.__defaults__ or ()
    names = code.co_varnames[: code.co_argcount]
    return dict(zip(names[len(names) - len(values) :], values, strict=True)) | dict(
        function.first.__kwdefaults__ or {}
    )


def is_plain(value: Any) -> bool:
    """True if a value is a plain Python value: a number, string or None, or a sequence of those."""
    if isinstance(value, tuple | list):
        return all(map(is_plain, value))  # pyright: ignore[reportUnknownArgumentType]
    return isinstance(value, _PLAIN)


def computed_by_python(
    function: CapturedFunction, positional: Sequence[Any], named: Mapping[str, Any]
) -> tuple[Any] | None:
    """Calls a function of plain values in Python, or returns None if the kernel must inline it.

    That is the case if the function differs between nodes or uses the language.
    """
    plain = all(map(is_plain, (*positional, *named.values())))
    if plain and function.is_same and "print" not in function.first.__code__.co_names:
        with inside_of(None), suppress(ProgramError):
            return (function.first(*positional, **named),)
    return None


class Returned(Exception):
    """Raised to end the translation of a call with its result."""

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
        TypeError: if the arguments do not match the parameters.
    """
    parameters = syntax.args
    names = [each.arg for each in (*parameters.posonlyargs, *parameters.args)]
    found = dict(zip(names, positional, strict=False))
    if parameters.vararg is not None:
        found[parameters.vararg.arg] = tuple(positional[len(names) :])
    elif len(positional) > len(names):
        raise TypeError(f"it takes {len(names)} arguments, not {len(positional)}")
    names += [each.arg for each in parameters.kwonlyargs]
    rest = {name: value for name, value in named.items() if name not in names}
    for name, value in named.items():
        if name in names:
            if name in found:
                raise TypeError(f"it gets two values for '{name}'")
            found[name] = value
    if parameters.kwarg is not None:
        found[parameters.kwarg.arg] = rest
    elif rest:
        raise TypeError(f"it has no argument '{next(iter(rest))}'")
    for name in names:
        if name not in found:
            if name not in defaults:
                raise TypeError(f"it gets no value for '{name}'")
            found[name] = defaults[name]
    return found


Limits: TypeAlias = tuple[Number, Number, Number]
"""Start, end and step of a counting loop."""

# Loop-carried state of device loops, apart from values that Python computes.


@dataclass(eq=False)
class Loop:
    """A device loop that is being translated, once for all of its iterations."""

    frame: Frame
    """Frame of the function that contains the loop."""
    regions: Regions
    before: Mapping[str, Any]
    """Values before the loop of the variables that it assigns."""
    counter: Number | None = None
    """Counter of the device loop; None if a condition ends it."""
    is_uniform: bool = False
    """True if the trip count is the same on all nodes."""
    _assigned: dict[str, set[Regions]] = field(default_factory=dict[str, set[Regions]])
    _read: dict[str, ast.AST] = field(default_factory=dict[str, ast.AST])

    def reads(self, frame: Frame, name: str, node: ast.AST, regions: Regions) -> None:
        """Records a read of a variable, unless this iteration has definitely assigned it before."""
        if frame is not self.frame or name not in self.before:
            return
        assigned = self._assigned.get(name, ())
        if not any(regions[: len(each)] == each for each in assigned):
            self._read.setdefault(name, node)

    def assigns(self, frame: Frame, name: str, regions: Regions) -> None:
        """Records an assignment to a variable inside given regions."""
        if frame is self.frame and regions[: len(self.regions)] == self.regions:
            self._assigned.setdefault(name, set()).add(regions)

    def carried(self) -> Iterator[tuple[str, ast.AST]]:
        """Yields loop-carried variables, each with the node that reads its previous value."""
        for name, node in self._read.items():
            if self.frame.names.get(name) is not self.before[name]:
                yield name, node


# Sequences whose elements only the running kernel knows: ranges with computed limits, zipped
# sequences, and lists that differ between nodes.


@dataclass(frozen=True, eq=False)
class KernelRange:
    """A Python range with limits that the kernel computes."""

    start: Number
    stop: Number
    step: Number


@dataclass(frozen=True, eq=False)
class KernelZip:
    """Tuples of the elements of several sequences, as made by `zip` and `enumerate`."""

    parts: tuple[Any, ...]
    length: Number | None = None
    """Number of elements, or None if the shortest part determines it."""


@dataclass(frozen=True, eq=False)
class KernelList:
    """A list with a node-dependent length, whose elements are computed from their index."""

    length: Number
    at: Callable[[Number], Any]


def is_kernel_sequence(value: object) -> bool:
    """True if the running kernel iterates over a sequence."""
    return isinstance(value, KernelRange | KernelZip | KernelList | range)


def zipped(parts: Sequence[Any]) -> KernelZip | None:
    """Zips sequences if the kernel iterates over one of them; None if Python zips them."""
    over_kernel = any(is_kernel_sequence(part) for part in parts)
    return KernelZip(tuple(parts)) if over_kernel else None


def length_of(value: Any, arithmetic: Arithmetic) -> Number | None:
    """Length of a sequence, or None if kernels cannot count it."""
    match value:
        case KernelRange(start, stop, step):
            return _trip_count(start, stop, step, arithmetic)
        case KernelZip(_, length) if length is not None:
            return length
        case KernelZip(parts):
            total: Number | None = None
            for part in parts:
                length = length_of(part, arithmetic)
                if length is None:
                    return None
                total = length if total is None else arithmetic.extreme("min", total, length)
            return total
        case KernelList(length, _):
            return length
        case _:
            return len(value)


def _trip_count(start: Number, stop: Number, step: Number, arithmetic: Arithmetic) -> Number | None:
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
    """Element at an index; None if kernels cannot compute it."""
    match value:
        case KernelRange(start, _, step):
            return arithmetic.add(start, arithmetic.multiply(position, step))
        case KernelZip(parts):
            found = tuple(element_of(part, position, arithmetic) for part in parts)
            return None if any(part is None for part in found) else found
        case KernelList(_, at):
            return at(position)
        case range():
            return arithmetic.add(value.start, arithmetic.multiply(position, value.step))
        case _ if isinstance(position, int):
            return value[position]
        case _:
            return looked_up(value, position, arithmetic)


def looked_up(values: Any, position: Number, arithmetic: Arithmetic, name: str = "table") -> Any:
    """Looks up an element of a sequence of integers or of integer tuples in kernel tables.

    None if the elements are something else.
    """
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
