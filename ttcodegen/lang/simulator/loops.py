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

# Loops of kernels that nothing ends: found before they run.

_Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef
_ENDS = (ast.Return, ast.Raise, ast.Yield, ast.Await, ast.Assert)
"""Statements that may end a loop at any depth."""
_ENDLESS_ITERATORS = ("count", "cycle")
"""Functions of itertools."""

_NOTHING = "nothing in this loop ends it, or changes what its condition reads"
_ENDLESS = "nothing in this loop ends it, and what it goes over has no end"
_AWAY = "what this loop changes never makes its condition false"


class _Change(Enum):
    """Change of a number from one iteration to the next."""

    NONE = 0
    GROWS = 1
    SHRINKS = -1
    UNKNOWN = 2

    def turned(self) -> _Change:
        """That of the number with the other sign."""
        return self if self is _Change.UNKNOWN else _Change(-self.value)

    def plus(self, other: _Change) -> _Change:
        """That of a sum."""
        if self is _Change.NONE:
            return other
        return self if other in (_Change.NONE, self) else _Change.UNKNOWN


@dataclass(frozen=True)
class _Endless:
    """A loop that nothing ends, and why."""

    loop: ast.While | ast.For
    why: str


@lru_cache(8)
def _loops(text: str) -> tuple[_Endless, ...]:
    """The loops of a program that nothing ends."""
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
        if isinstance(node, ast.While) and (why := _why_endless(node, shared)) is not None:
            found.append(_Endless(node, why))
        if isinstance(node, ast.For) and _goes_on(node, iterators):
            found.append(_Endless(node, _ENDLESS))
    return tuple(found)


def _inside(statements: Sequence[ast.AST]) -> Iterator[ast.AST]:
    """The parts of statements, without the functions that they define."""
    for statement in statements:
        if not isinstance(statement, _Function):
            yield statement
            yield from _inside(list(ast.iter_child_nodes(statement)))


def _may_be_left(loop: ast.While | ast.For) -> bool:
    return _breaks(loop.body) or any(isinstance(part, _ENDS) for part in _inside(loop.body))


def _goes_on(loop: ast.For, iterators: set[str]) -> bool:
    """True if a loop goes over something without an end, and is not left."""
    match loop.iter:
        case ast.Call(ast.Attribute(ast.Name("itertools"), name)) if name in _ENDLESS_ITERATORS:
            return not _may_be_left(loop)
        case ast.Call(ast.Name(name)) if name in iterators:
            return not _may_be_left(loop)
        case _:
            return False


def _why_endless(loop: ast.While, shared: set[str]) -> str | None:
    if _may_be_left(loop):
        return None
    changes = _Changes(loop, shared)
    if not changes.stays_true(loop.test):
        return None
    names = {part.id for part in ast.walk(loop.test) if isinstance(part, ast.Name)}
    return _AWAY if names & changes.stored else _NOTHING


class _Changes:
    """Changes of the numbers that a loop condition reads."""

    def __init__(self, loop: ast.While, shared: set[str]) -> None:
        parts = list(_inside(loop.body))
        self._shared = shared
        self.stored = {
            part.id
            for part in [*parts, *ast.walk(loop.test)]
            if isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Load)
        }
        self._steps: dict[str, _Change] = {}
        counted: dict[str, int] = {}
        for part in parts:
            step = _step(part)
            if step is not None:
                name, change = step
                self._steps[name] = self._steps.get(name, _Change.NONE).plus(change)
                counted[name] = counted.get(name, 0) + 1
        for name in self.stored:
            stores = [part for part in parts if isinstance(part, ast.Name) and part.id == name]
            stores = [part for part in stores if not isinstance(part.ctx, ast.Load)]
            if len(stores) != counted.get(name, 0):
                self._steps[name] = _Change.UNKNOWN

    def stays_true(self, test: ast.expr) -> bool:
        """True if a condition that holds once holds after each turn."""
        match test:
            case ast.Constant(value):
                return bool(value)
            case ast.BoolOp(_, values):
                return all(self.stays_true(value) for value in values)
            case ast.Compare(left, operators, rest):
                sides = [left, *rest]
                return all(
                    self._keeps(operator, before, after)
                    for operator, before, after in zip(operators, sides, rest, strict=False)
                )
            case _:
                return bool(_names(test)) and self._of(test) is _Change.NONE

    def _keeps(self, operator: ast.cmpop, left: ast.expr, right: ast.expr) -> bool:
        difference = self._of(left).plus(self._of(right).turned())
        if isinstance(operator, ast.Gt | ast.GtE):
            return difference in (_Change.NONE, _Change.GROWS)
        if isinstance(operator, ast.Lt | ast.LtE):
            return difference in (_Change.NONE, _Change.SHRINKS)
        return difference is _Change.NONE

    def _of(self, value: ast.expr) -> _Change:
        """Change of an expression's value."""
        match value:
            case ast.Constant():
                return _Change.NONE
            case ast.Name(name):
                if name in self._shared:
                    return _Change.UNKNOWN
                return self._steps.get(name, _Change.NONE)
            case ast.BinOp(left, ast.Add(), right):
                return self._of(left).plus(self._of(right))
            case ast.BinOp(left, ast.Sub(), right):
                return self._of(left).plus(self._of(right).turned())
            case ast.UnaryOp(ast.USub(), operand):
                return self._of(operand).turned()
            case ast.BinOp() | ast.UnaryOp() | ast.Compare() | ast.BoolOp():
                parts = [each for each in ast.iter_child_nodes(value) if isinstance(each, ast.expr)]
                constant = all(self._of(each) is _Change.NONE for each in parts)
                return _Change.NONE if constant else _Change.UNKNOWN
            case _:
                return _Change.UNKNOWN


def _names(test: ast.expr) -> set[str]:
    return {part.id for part in ast.walk(test) if isinstance(part, ast.Name)}


def _step(statement: ast.AST) -> tuple[str, _Change] | None:
    """The variable that a statement adds a number to, and how it changes by that."""
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
    """True if statements have a `break` of the loop that they are in."""
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
    """A statement, or those of a part of one that is none itself, as handlers are."""
    if isinstance(part, ast.stmt):
        return [part]
    return [each for each in ast.iter_child_nodes(part) if isinstance(each, ast.stmt)]


def check_ends(name: str, code: CodeType) -> None:
    """Raises ProgramError at the first loop of a kernel that nothing ends."""
    text = "".join(linecache.getlines(code.co_filename))
    last = _last_line(code)
    for endless in _loops(text) if text else ():
        loop = endless.loop
        if code.co_firstlineno <= loop.lineno <= last:
            line = linecache.getline(code.co_filename, loop.lineno).encode()[: loop.col_offset]
            column = len(line.decode(errors="replace")) + 1
            raise ProgramError(
                f"the kernel '{name}' never ends: {endless.why}",
                SourceLocation(code.co_filename, loop.lineno, column),
                remedy="go over a range, or leave the loop by break",
            )


def _last_line(code: CodeType) -> int:
    lines = [line for _, _, line in code.co_lines() if line is not None]
    inner = [_last_line(each) for each in code.co_consts if isinstance(each, CodeType)]
    return max([*lines, *inner], default=code.co_firstlineno)


# Loops of kernels that go on although their ends were never certain: their turns are counted.
#
# What a loop over a list or anything else with a length does has an end; a `while` loop, or one
# over an iterator, may wait for what never comes about, and use blocks all the time. A range with
# more numbers than such loops have turns is refused before the first one.

MOST_TURNS = 1_000_000
"""Of one loop: more than kernels need that go over the largest tensors a row of tiles at a time."""

_TURNS = "__ttl_turns__"
_COUNTED = "__ttl_counted__"
_NEXT = "__ttl_next__"


def turns() -> Iterator[None]:
    """Yields once per iteration of a `while` loop; unbounded outside of kernels."""
    return _turns() if current.kernel is not None else repeat(None)


def _turns() -> Iterator[None]:
    yield from repeat(None, MOST_TURNS)
    raise _no_end()


def counted(values: Iterable[Any]) -> Iterable[Any]:
    """Iterates a `for` loop or a comprehension; in kernels an iterator without a length is bounded.

    Raises:
        ProgramError: if it is a range with more numbers than a loop has turns.
    """
    if current.kernel is None:
        return values
    if isinstance(values, range) and values[MOST_TURNS : MOST_TURNS + 1]:
        raise error(
            f"this loop of {current.kernel} goes over {values}, more than the {MOST_TURNS:,} turns "
            "that a loop of a kernel has"
        )
    return values if isinstance(values, Sized) else _counted(iter(values))


def _counted(values: Iterator[Any]) -> Iterator[Any]:
    yield from islice(values, MOST_TURNS)
    for _ in values:
        raise _no_end()


def _no_end() -> ProgramError:
    return error(
        f"this loop of {current.kernel} has no end: it has gone on for {MOST_TURNS:,} turns",
        remedy="go over a range, which has an end, or leave the loop by break",
    )


def with_counted_loops(module: ast.Module) -> ast.Module:
    """The same program, whose functions count the turns of their loops. It finds `COUNTERS` among
    its global names."""
    return ast.fix_missing_locations(_Counting().visit(module))


COUNTERS: dict[str, Callable[..., object]] = {_TURNS: turns, _COUNTED: counted, _NEXT: next}
"""Functions called by instrumented loops, by name."""


class _Counting(ast.NodeTransformer):
    """Rewrites the loops of functions."""

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
        turn = ast.Expr(_call(_NEXT, ast.Name(name, ast.Load())))
        for made in (begin, turn):
            _place(made, node)
        node.body.insert(0, turn)
        return [begin, node]

    def visit_For(self, node: ast.For) -> ast.AST:
        self.generic_visit(node)
        if self._functions:
            node.iter = _place(_call(_COUNTED, node.iter), node)
        return node

    def visit_comprehension(self, node: ast.comprehension) -> ast.AST:
        self.generic_visit(node)
        if self._functions and not node.is_async:
            node.iter = _place(_call(_COUNTED, node.iter), node.iter)
        return node


def _call(name: str, *values: ast.expr) -> ast.Call:
    return ast.Call(ast.Name(name, ast.Load()), list(values), [])


def _place(made: Any, loop: ast.While | ast.For | ast.expr) -> Any:
    """New nodes are where the loop begins, or what a comprehension goes over; those of the program
    stay where they are."""
    for node in ast.walk(made):
        if not hasattr(node, "lineno"):
            ast.copy_location(node, loop)
    return made


# Kernels that never end: a loop in which a kernel neither waits nor does anything with a block.

PROGRESS_SECONDS = 30.0
"""Processor time after which a kernel that has done nothing to a block is taken for an endless
loop: what kernels do between such steps takes milliseconds."""


@contextmanager
def progress_required(
    steps: Callable[[], object], refusal: Callable[[], Exception]
) -> Generator[None]:
    """Ends what runs inside with an error once it makes no more progress.

    The system asks only the main thread, and not where somebody else measures processor time.

    Args:
        steps: what changes with each step.
        refusal: makes the error, called where the program is.
    """
    is_asked = (
        hasattr(signal, "setitimer")
        and threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGPROF) is signal.SIG_DFL
    )
    if not is_asked:
        yield
        return
    last = steps()

    def ask(_number: int, _frame: object) -> None:
        nonlocal last
        before, last = last, steps()
        if before == last:
            raise refusal()

    signal.signal(signal.SIGPROF, ask)
    signal.setitimer(signal.ITIMER_PROF, PROGRESS_SECONDS, PROGRESS_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
