"""Numbers that a kernel changes while it runs: variables of C++."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue

from ttcodegen.lang.compiler.python.block_lifetimes import Regions
from ttcodegen.lang.compiler.python.loop_rewriting import has_continue


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
