"""Loops of kernels that nothing ends: found before they run."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from types import CodeType

from ttcodegen.foundation.diagnostics import SourceLocation
from ttcodegen.lang.simulator.locations import ProgramError

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
