"""Syntax rewrites of kernels: `break` and `match` as conditions."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field

from ttcodegen.emitc.spelling import NameScope

# `match` statements as conditions: a kernel compares numbers, and tuples of numbers part by part.
#
#     match row % 3, column:          matched = row % 3, column
#         case 0, 0:                  if matched[0] == 0 and matched[1] == 0:
#             ...                         ...
#         case 1 | 2, n if n > 4:     elif (matched[0] == 1 or matched[0] == 2) and matched[1] > 4:
#             ...                         n = matched[1]
#         case _:                         ...
#             ...                     else:
#                                         ...
#
# Patterns of classes and of mappings, and those with a star, stay, and are refused.

MATCHED = "matched"
"""The variable that holds what is compared, where that has no name."""


@dataclass
class _Pattern:
    """Conditions of a match pattern and the names that it binds."""

    tests: list[ast.expr] = field(default_factory=list[ast.expr])
    names: dict[str, ast.expr] = field(default_factory=dict[str, ast.expr])


class _NoConditionError(Exception):
    """A pattern is of a kind that kernels do not compare with."""


class MatchesAsConditions(ast.NodeTransformer):
    """Rewrites the `match` statements of a program."""

    def __init__(self, names: NameScope) -> None:
        self._names = names

    def visit_Match(self, node: ast.Match) -> ast.AST | list[ast.stmt]:
        """A statement that becomes a condition, after an assignment where what is compared has no
        name."""
        self.generic_visit(node)
        subject, made = node.subject, list[ast.stmt]()
        if not isinstance(subject, ast.Name):
            name = self._names.unique(MATCHED)
            target = ast.copy_location(ast.Name(name, ast.Store()), subject)
            made.append(ast.copy_location(ast.Assign([target], subject), node))
            subject = ast.copy_location(ast.Name(name, ast.Load()), subject)
        try:
            made += _conditions(subject, node.cases, node)
        except _NoConditionError:
            return node
        return made


def _conditions(subject: ast.expr, cases: list[ast.match_case], node: ast.Match) -> list[ast.stmt]:
    if not cases:
        return []
    first, *rest = cases
    pattern = _of(first.pattern, subject)
    tests = list(pattern.tests)
    if first.guard is not None:
        tests.append(_Replaced(pattern.names).visit(first.guard))
    body = [_named(name, value) for name, value in pattern.names.items()] + first.body
    if not tests:
        return body
    at = first.pattern
    test = tests[0] if len(tests) == 1 else ast.BoolOp(ast.And(), tests)
    made = ast.If(ast.copy_location(test, at), body, _conditions(subject, rest, node))
    ast.copy_location(made, at)
    # What comes after a statement is found by the line in which it ends.
    made.end_lineno = node.end_lineno
    return [made]


def _of(pattern: ast.pattern, subject: ast.expr) -> _Pattern:
    def test(operator: ast.cmpop, left: ast.expr, value: ast.expr) -> ast.expr:
        return _located(ast.Compare(left, [operator], [value]), pattern)

    match pattern:
        case ast.MatchValue(value):
            return _Pattern([test(ast.Eq(), subject, value)])
        case ast.MatchSingleton(value):
            return _Pattern([test(ast.Is(), subject, ast.Constant(value))])
        case ast.MatchAs(inner, name):
            found = _Pattern() if inner is None else _of(inner, subject)
            if name is not None:
                found.names[name] = _located(subject, pattern)
            return found
        case ast.MatchOr(patterns):
            ways = [_of(each, subject) for each in patterns]
            if any(way.names for way in ways):
                raise _NoConditionError
            if not all(way.tests for way in ways):
                return _Pattern()
            parts = [ast.BoolOp(ast.And(), way.tests) if len(way.tests) > 1 else way.tests[0]
                     for way in ways]  # fmt: skip
            return _Pattern([_located(ast.BoolOp(ast.Or(), list(parts)), pattern)])
        case ast.MatchSequence(patterns):
            if any(isinstance(each, ast.MatchStar) for each in patterns):
                raise _NoConditionError
            length = ast.Call(ast.Name("len", ast.Load()), [subject], [])
            found = _Pattern([test(ast.Eq(), length, ast.Constant(len(patterns)))])
            for number, each in enumerate(patterns):
                part = ast.Subscript(subject, ast.Constant(number), ast.Load())
                inner = _of(each, _located(part, pattern))
                found.tests += inner.tests
                found.names |= inner.names
            return found
        case _:
            raise _NoConditionError


class _Replaced(ast.NodeTransformer):
    """A condition that is asked before the names of its pattern are given."""

    def __init__(self, names: dict[str, ast.expr]) -> None:
        self._names = names

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return self._names.get(node.id, node)


def _named(name: str, value: ast.expr) -> ast.stmt:
    target = ast.copy_location(ast.Name(name, ast.Store()), value)
    return ast.copy_location(ast.Assign([target], value), value)


def _located(node: ast.expr, at: ast.AST) -> ast.expr:
    """A new expression, whose new parts are at a location, too."""
    for part in ast.walk(node):
        if not hasattr(part, "lineno"):
            ast.copy_location(part, at)
    return node


# Loops that a `break` ends, as loops without: the kernel notes that it is to go on no longer.
#
#     while True:                 while work < total:
#         if work >= total:           ...
#             break
#         ...
#
#     for i in range(n):          going = True
#         ...                     for i in range(n):
#         if found:                   if going:
#             break                       ...
#         ...                             if found:
#                                             going = False
#                                         else:
#                                             ...
#
# A `break` or `continue` in other conditions, and beside each other, leaves the rest of an
# iteration out by another variable:
#
#     for i in range(n):          for i in range(n):
#         if found:                   live = True
#             if wanted:              if found:
#                 continue                if wanted:
#             ...                             live = False
#         ...                             if live:
#                                             ...
#                                     if live:
#                                         ...
#
# What is written stays at its lines, so that errors point there. What is in statements that
# kernels do not have stays, and is refused.

GOING = "going"
"""The variable that says whether a loop goes on."""
LIVE = "live"
"""The variable that says whether an iteration does."""

_BROKEN = "had_breaks"
"""Marks loops that were rewritten."""
_OPPOSITE: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.GtE,
    ast.GtE: ast.Lt,
    ast.Gt: ast.LtE,
    ast.LtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
}


class WithoutBreaks(ast.NodeTransformer):
    """Rewrites the loops of functions."""

    def __init__(self, names: NameScope) -> None:
        self._names = names

    def visit_For(self, node: ast.For) -> ast.AST | list[ast.stmt]:
        """A loop over a sequence: what is left of it is skipped."""
        self.generic_visit(node)
        if not _ends_early(node.body):
            return node
        has_break = _has(node.body, ast.Break)
        going = self._names.unique(GOING) if has_break else ""
        node.body = self._without_ends(node.body, going)
        if not has_break:
            return node
        node.body = [_if(_read(going, node), node.body, [], node)]
        return [_assigned(going, True, node), node, *_otherwise(node, going)]

    def _without_ends(self, body: list[ast.stmt], going: str) -> list[ast.stmt]:
        """The body of a loop without `break`, and without `continue` where statements cannot be
        left out by turning a condition around."""
        if not _has(body, ast.Continue):
            guarded = _guarded(body, going)
            if not _has(guarded, ast.Break):
                return guarded
        live = self._names.unique(LIVE)
        return [_assigned(live, True, body[0]), *_left_out(body, live, going)]

    def visit_While(self, node: ast.While) -> ast.AST | list[ast.stmt]:
        """A loop with a condition, which becomes another one."""
        self.generic_visit(node)
        if not _ends_early(node.body):
            return node
        first, *rest = node.body
        is_true = isinstance(node.test, ast.Constant) and bool(node.test.value)
        match first:
            case ast.If(test, [ast.Break()], orelse) if (
                is_true and not node.orelse and not _ends_early([*orelse, *rest])
            ):
                node.test = _opposite(test)
                node.body = [*orelse, *rest] or [ast.copy_location(ast.Pass(), first)]
                return node
            case _:
                pass
        has_break = _has(node.body, ast.Break)
        going = self._names.unique(GOING) if has_break else ""
        body = self._without_ends(node.body, going)
        if not has_break:
            node.body = body
            return node
        goes_on = _read(going, node)
        node.test = (
            goes_on
            if is_true
            else ast.copy_location(ast.BoolOp(ast.And(), [goes_on, node.test]), node.test)
        )
        node.body = body
        setattr(node, _BROKEN, True)
        return [_assigned(going, True, node), node, *_otherwise(node, going)]


def _otherwise(loop: ast.For | ast.While, going: str) -> list[ast.stmt]:
    """The `else` of a loop, which is not carried out after a `break`."""
    rest, loop.orelse = loop.orelse, []
    return [_if(_read(going, rest[0]), rest, [], rest[0])] if rest else []


def has_breaks(loop: ast.While) -> bool:
    """True if a loop had a `break`, before it was rewritten."""
    return hasattr(loop, _BROKEN)


def without_breaks(module: ast.Module) -> ast.Module:
    """A program whose loops have no `break` where that can be, and no `match` statements."""
    names = NameScope(node.id for node in ast.walk(module) if isinstance(node, ast.Name))
    return WithoutBreaks(names).visit(MatchesAsConditions(names).visit(module))


class _Choice(ast.NodeTransformer):
    """Replaces one `a if test else b`."""

    def __init__(self, test: ast.AST, which: bool) -> None:
        self._place = (getattr(test, "lineno", 0), getattr(test, "col_offset", 0))
        self._which = which
        self.is_found = False

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        """The branch that is wanted."""
        if (node.test.lineno, node.test.col_offset) == self._place:
            self.is_found = True
            return node.body if self._which else node.orelse
        return self.generic_visit(node)


def with_choice(statement: ast.stmt, test: ast.AST, which: bool) -> ast.stmt | None:
    """A statement with the first or the second value of the `a if test else b` that has this test;
    None if it has none."""
    rewriting = _Choice(test, which)
    found = rewriting.visit(deepcopy(statement))
    return found if rewriting.is_found else None


def _has(statements: Sequence[ast.stmt], kind: type[ast.Break | ast.Continue]) -> bool:
    """True if statements have a `break` or a `continue` of the loop that they are in."""
    for statement in statements:
        match statement:
            case ast.Break() | ast.Continue():
                if isinstance(statement, kind):
                    return True
            case ast.For(orelse=orelse) | ast.While(orelse=orelse):
                if _has(orelse, kind):
                    return True
            case ast.FunctionDef():
                pass
            case _:
                inner = [each for each in ast.iter_child_nodes(statement)]
                if _has([each for each in inner if isinstance(each, ast.stmt)], kind):
                    return True
    return False


def has_continue(statements: Sequence[ast.stmt]) -> bool:
    """True if statements have a `continue` of the loop that they are in."""
    return _has(statements, ast.Continue)


def _ends_early(body: Sequence[ast.stmt]) -> bool:
    """True if the body of a loop has a `break`, or a `continue` anywhere else than at the end of
    conditions that the rest of the iteration becomes part of."""
    if _has(body, ast.Break):
        return True
    simple = [
        statement
        for statement in body
        if isinstance(statement, ast.If)
        and not statement.orelse
        and isinstance(statement.body[-1], ast.Continue)
        and not _has(statement.body[:-1], ast.Continue)
    ]
    return _has([statement for statement in body if statement not in simple], ast.Continue)


def _left_out(statements: Sequence[ast.stmt], live: str, going: str) -> list[ast.stmt]:
    """Statements that note where an iteration ends, and ask for it afterwards."""
    found: list[ast.stmt] = []
    for number, statement in enumerate(statements):
        rest = statements[number + 1 :]
        match statement:
            case ast.Break():
                ends = [_assigned(live, False, statement), _assigned(going, False, statement)]
                return [*found, *ends]
            case ast.Continue():
                return [*found, _assigned(live, False, statement)]
            case ast.If() | ast.With() if _has([statement], ast.Break) or _has(
                [statement], ast.Continue
            ):
                statement.body = _left_out(statement.body, live, going)
                if isinstance(statement, ast.If):
                    statement.orelse = _left_out(statement.orelse, live, going)
                found.append(statement)
                if rest:
                    others = _left_out(rest, live, going)
                    asked = _if(_read(live, rest[0]), others, [], rest[0])
                    asked.end_lineno = rest[-1].end_lineno
                    found.append(asked)
                return found
            case _:
                found.append(statement)
    return found


def _guarded(statements: Sequence[ast.stmt], going: str) -> list[ast.stmt]:
    """Statements that end where a `break` is."""
    found: list[ast.stmt] = []
    for number, statement in enumerate(statements):
        rest = statements[number + 1 :]
        match statement:
            case ast.Break():
                return [*found, _assigned(going, False, statement)]
            case ast.If(test, [*before, ast.Break() as end], orelse):
                ended = [*before, _assigned(going, False, end)]
                others = _guarded([*orelse, *rest], going)
                return [*found, _if(test, ended, others, statement)]
            case ast.If(test, body, [*before, ast.Break() as end]):
                ended = [*before, _assigned(going, False, end)]
                others = _guarded([*body, *rest], going)
                return [*found, _if(test, others, ended, statement)]
            case _:
                found.append(statement)
    return found


def _opposite(test: ast.expr) -> ast.expr:
    match test:
        case ast.UnaryOp(ast.Not(), of):
            return of
        case ast.Compare(left, [operator], [right]) if type(operator) in _OPPOSITE:
            other = ast.Compare(left, [_OPPOSITE[type(operator)]()], [right])
            return ast.copy_location(other, test)
        case _:
            return ast.copy_location(ast.UnaryOp(ast.Not(), test), test)


def _if(test: ast.expr, body: list[ast.stmt], orelse: list[ast.stmt], at: ast.stmt) -> ast.If:
    body = body or [ast.copy_location(ast.Pass(), at)]
    return ast.copy_location(ast.If(test, body, orelse), at)


def _read(name: str, at: ast.stmt) -> ast.expr:
    return ast.copy_location(ast.Name(name, ast.Load()), at)


def _assigned(name: str, value: bool, at: ast.stmt) -> ast.stmt:
    target = ast.copy_location(ast.Name(name, ast.Store()), at)
    number = ast.copy_location(ast.Constant(int(value)), at)
    return ast.copy_location(ast.Assign([target], number), at)
