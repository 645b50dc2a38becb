"""Detection of endless loops in kernels, before and during the run."""

from __future__ import annotations

import ast
import linecache
import signal
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence, Sized
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from itertools import islice, repeat
from types import CodeType
from typing import Any

from ttcodegen.foundation.diagnostics import SourceLocation
from ttcodegen.lang.simulator.context import current
from ttcodegen.lang.simulator.locations import ProgramError, error
from ttcodegen.lang.simulator.occurrences import variables_in

# Static detection of endless loops in kernels

_Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef
_EXITS = (ast.Return, ast.Raise, ast.Yield, ast.Await, ast.Assert)
"""Statements that may end a loop at any depth."""
_ENDLESS_ITERATORS = ("count", "cycle")
"""Infinite iterators of itertools."""

_NO_EXIT = "nothing in this loop ends it, or changes what its condition reads"
_ENDLESS = "nothing in this loop ends it, and what it goes over has no end"
_DIVERGES = "what this loop changes never makes its condition false"


class _Change(Enum):
    """Direction of change of a number from one iteration to the next."""

    NONE = 0
    GROWS = 1
    SHRINKS = -1
    UNKNOWN = 2

    def negated(self) -> _Change:
        """Change of the negated number."""
        return self if self is _Change.UNKNOWN else _Change(-self.value)

    def plus(self, other: _Change) -> _Change:
        """Change of the sum of two numbers."""
        if self is _Change.NONE:
            return other
        return self if other in (_Change.NONE, self) else _Change.UNKNOWN


@dataclass(frozen=True)
class _Endless:
    """An endless loop, and the reason."""

    loop: ast.While | ast.For
    reason: str


@lru_cache(8)
def _loops(text: str) -> tuple[_Endless, ...]:
    """Endless loops of a program."""
    module = ast.parse(text)
    nodes = list(ast.walk(module))
    shared = {
        name for node in nodes if isinstance(node, ast.Nonlocal | ast.Global) for name in node.names
    }
    iterators = {
        imported.asname or imported.name
        for node in nodes
        if isinstance(node, ast.ImportFrom) and node.module == "itertools"
        for imported in node.names
        if imported.name in _ENDLESS_ITERATORS
    }
    found: list[_Endless] = []
    for node in nodes:
        if isinstance(node, ast.While) and (reason := _endless_reason(node, shared)) is not None:
            found.append(_Endless(node, reason))
        if isinstance(node, ast.For) and _is_infinite(node, iterators):
            found.append(_Endless(node, _ENDLESS))
    return tuple(found)


def _inside(statements: Sequence[ast.AST]) -> Iterator[ast.AST]:
    """Yields the syntax nodes of statements, except inside nested functions."""
    for statement in statements:
        if not isinstance(statement, _Function):
            yield statement
            yield from _inside(list(ast.iter_child_nodes(statement)))


def _has_exit(loop: ast.While | ast.For) -> bool:
    return _breaks(loop.body) or any(isinstance(part, _EXITS) for part in _inside(loop.body))


def _is_infinite(loop: ast.For, iterators: set[str]) -> bool:
    """True if a loop iterates over an infinite iterator and has no exit."""
    match loop.iter:
        case ast.Call(ast.Attribute(ast.Name("itertools"), name)) if name in _ENDLESS_ITERATORS:
            return not _has_exit(loop)
        case ast.Call(ast.Name(name)) if name in iterators:
            return not _has_exit(loop)
        case _:
            return False


def _endless_reason(loop: ast.While, shared: set[str]) -> str | None:
    if _has_exit(loop):
        return None
    changes = _Changes(loop, shared)
    if not changes.stays_true(loop.test):
        return None
    return _DIVERGES if variables_in(loop.test) & changes.stored else _NO_EXIT


class _Changes:
    """Changes of the variables that a loop condition reads."""

    def __init__(self, loop: ast.While, shared: set[str]) -> None:
        parts = list(_inside(loop.body))
        self._shared = shared
        self.stored = {
            part.id
            for part in [*parts, *ast.walk(loop.test)]
            if isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Load)
        }
        self._steps: dict[str, _Change] = {}
        bounded: dict[str, int] = {}
        for part in parts:
            step = _step(part)
            if step is not None:
                name, change = step
                self._steps[name] = self._steps.get(name, _Change.NONE).plus(change)
                bounded[name] = bounded.get(name, 0) + 1
        for name in self.stored:
            stores = [part for part in parts if isinstance(part, ast.Name) and part.id == name]
            stores = [part for part in stores if not isinstance(part.ctx, ast.Load)]
            if len(stores) != bounded.get(name, 0):
                self._steps[name] = _Change.UNKNOWN

    def stays_true(self, test: ast.expr) -> bool:
        """True if a condition that holds before an iteration also holds after it."""
        match test:
            case ast.Constant(value):
                return bool(value)
            case ast.BoolOp(_, values):
                return all(self.stays_true(value) for value in values)
            case ast.Compare(left, operators, rest):
                sides = [left, *rest]
                return all(
                    self._keeps_comparison(operator, before, after)
                    for operator, before, after in zip(operators, sides, rest, strict=False)
                )
            case _:
                return bool(variables_in(test)) and self._change_of(test) is _Change.NONE

    def _keeps_comparison(self, operator: ast.cmpop, left: ast.expr, right: ast.expr) -> bool:
        difference = self._change_of(left).plus(self._change_of(right).negated())
        if isinstance(operator, ast.Gt | ast.GtE):
            return difference in (_Change.NONE, _Change.GROWS)
        if isinstance(operator, ast.Lt | ast.LtE):
            return difference in (_Change.NONE, _Change.SHRINKS)
        return difference is _Change.NONE

    def _change_of(self, value: ast.expr) -> _Change:
        """Change of an expression's value."""
        match value:
            case ast.Constant():
                return _Change.NONE
            case ast.Name(name):
                if name in self._shared:
                    return _Change.UNKNOWN
                return self._steps.get(name, _Change.NONE)
            case ast.BinOp(left, ast.Add(), right):
                return self._change_of(left).plus(self._change_of(right))
            case ast.BinOp(left, ast.Sub(), right):
                return self._change_of(left).plus(self._change_of(right).negated())
            case ast.UnaryOp(ast.USub(), operand):
                return self._change_of(operand).negated()
            case ast.BinOp() | ast.UnaryOp() | ast.Compare() | ast.BoolOp():
                parts = [each for each in ast.iter_child_nodes(value) if isinstance(each, ast.expr)]
                constant = all(self._change_of(each) is _Change.NONE for each in parts)
                return _Change.NONE if constant else _Change.UNKNOWN
            case _:
                return _Change.UNKNOWN


def _step(statement: ast.AST) -> tuple[str, _Change] | None:
    """Variable that a statement increments by a constant, and its change."""
    match statement:
        case ast.AugAssign(ast.Name(name), ast.Add(), ast.Constant(int(by))):
            return name, _sign(by)
        case ast.AugAssign(ast.Name(name), ast.Sub(), ast.Constant(int(by))):
            return name, _sign(-by)
        case ast.Assign(
            [ast.Name(name)], ast.BinOp(ast.Name(same), ast.Add(), ast.Constant(int(by)))
        ) if name == same:
            return name, _sign(by)
        case ast.Assign(
            [ast.Name(name)], ast.BinOp(ast.Name(same), ast.Sub(), ast.Constant(int(by)))
        ) if name == same:
            return name, _sign(-by)
        case _:
            return None


def _sign(step: int) -> _Change:
    return _Change((step > 0) - (step < 0))


def _breaks(statements: Sequence[ast.stmt]) -> bool:
    """True if statements have a `break` of the enclosing loop."""
    for statement in statements:
        if isinstance(statement, ast.Break):
            return True
        if isinstance(statement, ast.FunctionDef | ast.ClassDef):
            continue
        is_loop = isinstance(statement, ast.For | ast.While)
        inner = statement.orelse if is_loop else list(ast.iter_child_nodes(statement))
        blocks = [each for part in inner for each in _statements(part)]
        if _breaks(blocks):
            return True
    return False


def _statements(part: ast.AST) -> list[ast.stmt]:
    """A statement, or the statements of a node that is not one, such as an exception handler."""
    if isinstance(part, ast.stmt):
        return [part]
    return [each for each in ast.iter_child_nodes(part) if isinstance(each, ast.stmt)]


def check_ends(name: str, code: CodeType) -> None:
    """Raises ProgramError at the first endless loop of a kernel."""
    text = "".join(linecache.getlines(code.co_filename))
    last = _last_line(code)
    for endless in _loops(text) if text else ():
        loop = endless.loop
        if code.co_firstlineno <= loop.lineno <= last:
            line = linecache.getline(code.co_filename, loop.lineno).encode()[: loop.col_offset]
            column = len(line.decode(errors="replace")) + 1
            raise ProgramError(
                f"the kernel '{name}' never ends: {endless.reason}",
                SourceLocation(code.co_filename, loop.lineno, column),
                remedy="go over a range, or leave the loop by break",
            )


def _last_line(code: CodeType) -> int:
    lines = [line for _, _, line in code.co_lines() if line is not None]
    inner = [_last_line(each) for each in code.co_consts if isinstance(each, CodeType)]
    return max([*lines, *inner], default=code.co_firstlineno)


# Dynamic detection of endless loops in kernels, by counting iterations.
#
# A loop over an object with a length ends. A `while` loop, or a loop over an iterator, may never
# end, even if it uses blocks all the time. Ranges that exceed the maximum trip count of such loops
# are refused before their first iteration.

MAX_TRIP_COUNT = 1_000_000
"""Maximum trip count: more than a loop over the rows of tiles of the largest tensors needs."""

_TURNS = "__ttl_turns__"
_COUNTED = "__ttl_counted__"
_NEXT = "__ttl_next__"


def iterations() -> Iterator[None]:
    """Yields once per iteration of a `while` loop; unbounded outside of kernels."""
    return _bounded_iterations() if current.kernel is not None else repeat(None)


def _bounded_iterations() -> Iterator[None]:
    yield from repeat(None, MAX_TRIP_COUNT)
    raise _trip_count_error()


def bounded(values: Iterable[Any]) -> Iterable[Any]:
    """Wraps the iterable of a loop or comprehension; iterators in kernels are bounded.

    Raises:
        ProgramError: if a range exceeds the maximum trip count.
    """
    if current.kernel is None:
        return values
    if isinstance(values, range) and values[MAX_TRIP_COUNT : MAX_TRIP_COUNT + 1]:
        raise error(
            f"this loop of {current.kernel} goes over {values}, more than the "
            f"{MAX_TRIP_COUNT:,} iterations that a loop of a kernel has"
        )
    return values if isinstance(values, Sized) else _bounded(iter(values))


def _bounded(values: Iterator[Any]) -> Iterator[Any]:
    yield from islice(values, MAX_TRIP_COUNT)
    for _ in values:
        raise _trip_count_error()


def _trip_count_error() -> ProgramError:
    return error(
        f"this loop of {current.kernel} has no end: it has gone on for {MAX_TRIP_COUNT:,} "
        "iterations",
        remedy="go over a range, which has an end, or leave the loop by break",
    )


def with_counted_loops(module: ast.Module) -> ast.Module:
    """Instruments loops of functions with iteration counters: globals in `COUNTERS`."""
    return ast.fix_missing_locations(_LoopCounting().visit(module))


COUNTERS: dict[str, Callable[..., object]] = {_TURNS: iterations, _COUNTED: bounded, _NEXT: next}
"""Functions that instrumented loops call, by global name."""


class _LoopCounting(ast.NodeTransformer):
    """Instruments the loops of functions."""

    def __init__(self) -> None:
        self._functions = 0
        self._loops = 0

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self._functions += 1
        self.generic_visit(node)
        self._functions -= 1
        return node

    def visit_While(self, node: ast.While) -> ast.AST | list[ast.stmt]:
        self.generic_visit(node)
        if not self._functions:
            return node
        self._loops += 1
        name = f"__ttl_turns_{self._loops}__"
        begin = ast.Assign([ast.Name(name, ast.Store())], _call(_TURNS))
        advance = ast.Expr(_call(_NEXT, ast.Name(name, ast.Load())))
        for made in (begin, advance):
            _located(made, node)
        node.body.insert(0, advance)
        return [begin, node]

    def visit_For(self, node: ast.For) -> ast.AST:
        self.generic_visit(node)
        if self._functions:
            node.iter = _located(_call(_COUNTED, node.iter), node)
        return node

    def visit_comprehension(self, node: ast.comprehension) -> ast.AST:
        self.generic_visit(node)
        if self._functions and not node.is_async:
            node.iter = _located(_call(_COUNTED, node.iter), node.iter)
        return node


def _call(name: str, *values: ast.expr) -> ast.Call:
    return ast.Call(ast.Name(name, ast.Load()), list(values), [])


def _located(made: Any, loop: ast.While | ast.For | ast.expr) -> Any:
    """Sets the location of new nodes to that of a loop or iterable; others keep theirs."""
    for node in ast.walk(made):
        if not hasattr(node, "lineno"):
            ast.copy_location(node, loop)
    return made


# Watchdog for kernels that neither wait nor use blocks

PROGRESS_SECONDS = 30.0
"""Processor time in seconds after which a kernel without block operations is considered endless.

The work of kernels between block operations takes milliseconds.
"""


@contextmanager
def progress_required(
    steps: Callable[[], object], refusal: Callable[[], Exception]
) -> Generator[None]:
    """Scope that is interrupted by an error once it makes no more progress.

    This works in the main thread only, and only if nobody else uses the profiling timer.

    Args:
        steps: returns a progress counter.
        refusal: creates the error, in the frame that is interrupted.
    """
    is_available = (
        hasattr(signal, "setitimer")
        and threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGPROF) is signal.SIG_DFL
    )
    if not is_available:
        yield
        return
    last = steps()

    def check(_number: int, _frame: object) -> None:
        nonlocal last
        before, last = last, steps()
        if before == last:
            raise refusal()

    signal.signal(signal.SIGPROF, check)
    signal.setitimer(signal.ITIMER_PROF, PROGRESS_SECONDS, PROGRESS_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
