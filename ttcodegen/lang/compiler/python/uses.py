"""Uses of a variable between its assignment and the next one."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

_Place = tuple[int, int]


def _begin(node: ast.AST) -> _Place:
    return getattr(node, "lineno", 0), getattr(node, "col_offset", 0)


def _end(node: ast.AST) -> _Place:
    return getattr(node, "end_lineno", 0), getattr(node, "end_col_offset", 0)


def uses_after(syntax: ast.AST, statement: ast.AST | None, name: str) -> int:
    """Number of reads of the value that a statement assigned to a variable, or that the function
    was called with (None). Reads in a loop that the statement is not in count twice."""
    after = (0, 0) if statement is None else _end(statement)
    stores = [_begin(n) for n in _named(syntax, name, ast.Store) if _begin(n) >= after]
    before = min(stores, default=(1 << 60, 0))
    found = 0
    for node, loops in _loads(syntax, name, ()):
        # The value of an assignment is read before its target is stored.
        if not after <= _begin(node) or (_begin(node)[0], 0) > (before[0], 0):
            continue
        outside = any(statement is None or not _holds(loop, statement) for loop in loops)
        found += 2 if outside else 1
    return found


def is_assigned_once(syntax: ast.AST, name: str) -> bool:
    """True if a function has one assignment to a variable."""
    return sum(1 for _ in _named(syntax, name, ast.Store)) == 1


def shares_line(syntax: ast.AST, line: int) -> bool:
    """True if several statements begin on a line."""
    begun = (n for n in ast.walk(syntax) if isinstance(n, ast.stmt) and n.lineno == line)
    return sum(1 for _ in begun) > 1


def _named(syntax: ast.AST, name: str, kind: type[ast.expr_context]) -> Iterator[ast.Name]:
    for node in ast.walk(syntax):
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, kind):
            yield node


def _loads(
    node: ast.AST, name: str, loops: Sequence[ast.AST]
) -> Iterator[tuple[ast.Name, Sequence[ast.AST]]]:
    """Reads of a variable, with the loops that they are in."""
    if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load):
        yield node, loops
    if isinstance(node, ast.For | ast.While | ast.ListComp | ast.GeneratorExp):
        loops = (*loops, node)
    for child in ast.iter_child_nodes(node):
        yield from _loads(child, name, loops)


def _holds(loop: ast.AST, statement: ast.AST) -> bool:
    return _begin(loop) <= _begin(statement) and _end(statement) <= _end(loop)
