"""Loops of kernels that nothing ends: found before they run."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterator, Sequence
from functools import lru_cache
from types import CodeType

from ttcodegen.diagnostics import SourceLocation
from ttcodegen.lang.places import ProgramError

_Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef
_ENDS = (ast.Return, ast.Raise, ast.Yield, ast.Await, ast.Assert)
"""What may end a loop, wherever it is in it."""
_OF_CONDITIONS = (
    ast.Name, ast.Constant, ast.Compare, ast.BoolOp, ast.UnaryOp, ast.BinOp, ast.operator,
    ast.unaryop, ast.boolop, ast.cmpop, ast.expr_context,
)  # fmt: skip
"""What a condition is made of that only assignments to its names change."""


@lru_cache(8)
def _loops(text: str) -> tuple[ast.While, ...]:
    """The loops of a program that nothing ends."""
    module = ast.parse(text)
    shared = {
        name
        for node in ast.walk(module)
        if isinstance(node, ast.Nonlocal | ast.Global)
        for name in node.names
    }
    loops = (node for node in ast.walk(module) if isinstance(node, ast.While))
    return tuple(loop for loop in loops if _never_ends(loop, shared))


def _inside(statements: Sequence[ast.AST]) -> Iterator[ast.AST]:
    """The parts of statements, without the functions that they define."""
    for statement in statements:
        if not isinstance(statement, _Function):
            yield statement
            yield from _inside(list(ast.iter_child_nodes(statement)))


def _never_ends(loop: ast.While, shared: set[str]) -> bool:
    parts = list(_inside(loop.body))
    if any(isinstance(part, _ENDS) for part in parts) or _breaks(loop.body):
        return False
    tested = list(ast.walk(loop.test))
    if not all(isinstance(part, _OF_CONDITIONS) for part in tested):
        return False
    names = {part.id for part in tested if isinstance(part, ast.Name)}
    if not names:
        return isinstance(loop.test, ast.Constant) and bool(loop.test.value)
    stored = {part.id for part in parts if isinstance(part, ast.Name) and _is_stored(part)}
    return not names & (stored | shared)


def _is_stored(name: ast.Name) -> bool:
    return not isinstance(name.ctx, ast.Load)


def _breaks(statements: Sequence[ast.stmt]) -> bool:
    """Whether statements have a `break` of the loop that they are in."""
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
    for loop in _loops(text) if text else ():
        if code.co_firstlineno <= loop.lineno <= last:
            line = linecache.getline(code.co_filename, loop.lineno).encode()[: loop.col_offset]
            column = len(line.decode(errors="replace")) + 1
            raise ProgramError(
                f"the kernel '{name}' never ends: nothing in this loop ends it, or changes what "
                "its condition reads",
                SourceLocation(code.co_filename, loop.lineno, column),
                remedy="go over a range, or leave the loop by break",
            )


def _last_line(code: CodeType) -> int:
    lines = [line for _, _, line in code.co_lines() if line is not None]
    inner = [_last_line(each) for each in code.co_consts if isinstance(each, CodeType)]
    return max([*lines, *inner], default=code.co_firstlineno)
