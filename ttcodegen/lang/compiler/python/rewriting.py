"""Syntax rewrites of kernels: `break` and `match` as conditions."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field

from ttcodegen.emitc.spelling import NameScope

# `match` statements as conditions: a kernel compares numbers, and tuples of numbers elementwise.
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
# Class, mapping and star patterns are kept, and refused later.

MATCHED = "matched"
"""Name of the variable that holds an unnamed subject."""


@dataclass
class _Pattern:
    """Conditions of a match pattern and the names that it binds."""

    tests: list[ast.expr] = field(default_factory=list[ast.expr])
    names: dict[str, ast.expr] = field(default_factory=dict[str, ast.expr])


class _NoConditionError(Exception):
    """Raised for a pattern that cannot be expressed as a condition."""


class MatchesAsConditions(ast.NodeTransformer):
    """Rewrites `match` statements to `if` statements."""

    def __init__(self, names: NameScope) -> None:
        self._names = names

    def visit_Match(self, node: ast.Match) -> ast.AST | list[ast.stmt]:
        """Rewrites a statement; an unnamed subject is first assigned to a variable."""
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
    """Converts the cases of a `match` statement to an `if` chain."""
    if not cases:
        return []
    first, *rest = cases
    pattern = _pattern(first.pattern, subject)
    tests = list(pattern.tests)
    if first.guard is not None:
        tests.append(_Substitution(pattern.names).visit(first.guard))
    body = [_assignment(name, value) for name, value in pattern.names.items()] + first.body
    if not tests:
        return body
    at = first.pattern
    test = tests[0] if len(tests) == 1 else ast.BoolOp(ast.And(), tests)
    made = ast.If(ast.copy_location(test, at), body, _conditions(subject, rest, node))
    ast.copy_location(made, at)
    # Code after a statement is identified by the line in which the statement ends.
    made.end_lineno = node.end_lineno
    return [made]


def _pattern(pattern: ast.pattern, subject: ast.expr) -> _Pattern:
    """Converts a pattern to tests of a subject and to bindings of names."""

    def test(operator: ast.cmpop, left: ast.expr, value: ast.expr) -> ast.expr:
        return _located(ast.Compare(left, [operator], [value]), pattern)

    match pattern:
        case ast.MatchValue(value):
            return _Pattern([test(ast.Eq(), subject, value)])
        case ast.MatchSingleton(value):
            return _Pattern([test(ast.Is(), subject, ast.Constant(value))])
        case ast.MatchAs(inner, name):
            found = _Pattern() if inner is None else _pattern(inner, subject)
            if name is not None:
                found.names[name] = _located(subject, pattern)
            return found
        case ast.MatchOr(patterns):
            alternatives = [_pattern(each, subject) for each in patterns]
            if any(each.names for each in alternatives):
                raise _NoConditionError
            if not all(each.tests for each in alternatives):
                return _Pattern()
            parts = [ast.BoolOp(ast.And(), each.tests) if len(each.tests) > 1 else each.tests[0]
                     for each in alternatives]  # fmt: skip
            return _Pattern([_located(ast.BoolOp(ast.Or(), list(parts)), pattern)])
        case ast.MatchSequence(patterns):
            if any(isinstance(each, ast.MatchStar) for each in patterns):
                raise _NoConditionError
            length = ast.Call(ast.Name("len", ast.Load()), [subject], [])
            found = _Pattern([test(ast.Eq(), length, ast.Constant(len(patterns)))])
            for number, each in enumerate(patterns):
                part = ast.Subscript(subject, ast.Constant(number), ast.Load())
                inner = _pattern(each, _located(part, pattern))
                found.tests += inner.tests
                found.names |= inner.names
            return found
        case _:
            raise _NoConditionError


class _Substitution(ast.NodeTransformer):
    """Replaces the names that a pattern binds in its guard, which is evaluated before them."""

    def __init__(self, names: dict[str, ast.expr]) -> None:
        self._names = names

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return self._names.get(node.id, node)


def _assignment(name: str, value: ast.expr) -> ast.stmt:
    target = ast.copy_location(ast.Name(name, ast.Store()), value)
    return ast.copy_location(ast.Assign([target], value), value)


def _located(node: ast.expr, at: ast.AST) -> ast.expr:
    """Sets the location of the new parts of an expression."""
    for part in ast.walk(node):
        if not hasattr(part, "lineno"):
            ast.copy_location(part, at)
    return node


# Loops with `break` as loops without: a variable records whether the loop continues.
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
# A `break` or `continue` in nested conditions, or a combination of both, skips the rest of an
# iteration by a second variable:
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
# Statements keep their line numbers, so that errors point to the source. Unsupported statements
# are kept with what they contain, and refused later.

GOING = "going"
"""Name of the variable that records whether a loop continues."""
LIVE = "live"
"""Name of the variable that records whether an iteration continues."""

_HAD_BREAK = "had_breaks"
"""Attribute that marks rewritten loops."""
_OPPOSITE: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.GtE,
    ast.GtE: ast.Lt,
    ast.Gt: ast.LtE,
    ast.LtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
}


class WithoutBreaks(ast.NodeTransformer):
    """Rewrites loops to loops without `break`, and without `continue` where needed."""

    def __init__(self, names: NameScope) -> None:
        self._names = names

    def visit_For(self, node: ast.For) -> ast.AST | list[ast.stmt]:
        """Rewrites a `for` loop; its remaining iterations are skipped."""
        self.generic_visit(node)
        if not _ends_early(node.body):
            return node
        has_break = _has_exit(node.body, ast.Break)
        going = self._names.unique(GOING) if has_break else ""
        node.body = self._without_exits(node.body, going)
        if not has_break:
            return node
        node.body = [_if(_read(going, node), node.body, [], node)]
        return [_flag_assignment(going, True, node), node, *_else_clause(node, going)]

    def _without_exits(self, body: list[ast.stmt], going: str) -> list[ast.stmt]:
        """Loop body without `break`, and without `continue` where inverting a condition fails."""
        if not _has_exit(body, ast.Continue):
            guarded = _guarded(body, going)
            if not _has_exit(guarded, ast.Break):
                return guarded
        live = self._names.unique(LIVE)
        return [_flag_assignment(live, True, body[0]), *_with_skipping(body, live, going)]

    def visit_While(self, node: ast.While) -> ast.AST | list[ast.stmt]:
        """Rewrites a `while` loop; `break` becomes a part of its condition."""
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
        has_break = _has_exit(node.body, ast.Break)
        going = self._names.unique(GOING) if has_break else ""
        body = self._without_exits(node.body, going)
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
        setattr(node, _HAD_BREAK, True)
        return [_flag_assignment(going, True, node), node, *_else_clause(node, going)]


def _else_clause(loop: ast.For | ast.While, going: str) -> list[ast.stmt]:
    """The `else` clause of a loop, guarded because a `break` skips it."""
    rest, loop.orelse = loop.orelse, []
    return [_if(_read(going, rest[0]), rest, [], rest[0])] if rest else []


def has_breaks(loop: ast.While) -> bool:
    """True if a rewritten loop originally had a `break`."""
    return hasattr(loop, _HAD_BREAK)


def without_breaks(module: ast.Module) -> ast.Module:
    """Rewrites all `match` statements, and all `break` statements that can be expressed."""
    names = NameScope(node.id for node in ast.walk(module) if isinstance(node, ast.Name))
    return WithoutBreaks(names).visit(MatchesAsConditions(names).visit(module))


class _Choice(ast.NodeTransformer):
    """Replaces one `a if test else b` by one of its values."""

    def __init__(self, test: ast.AST, takes_body: bool) -> None:
        self._place = (getattr(test, "lineno", 0), getattr(test, "col_offset", 0))
        self._takes_body = takes_body
        self.is_found = False

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        """Replaces the expression if it is the requested one."""
        if (node.test.lineno, node.test.col_offset) == self._place:
            self.is_found = True
            return node.body if self._takes_body else node.orelse
        return self.generic_visit(node)


def with_choice(statement: ast.stmt, test: ast.AST, takes_body: bool) -> ast.stmt | None:
    """Replaces the `a if test else b` with a given test by one of its values, on a copy.

    None if the statement does not contain it.
    """
    rewriting = _Choice(test, takes_body)
    found = rewriting.visit(deepcopy(statement))
    return found if rewriting.is_found else None


def _has_exit(statements: Sequence[ast.stmt], kind: type[ast.Break | ast.Continue]) -> bool:
    """True if statements have a `break` or `continue` that belongs to the enclosing loop."""
    for statement in statements:
        match statement:
            case ast.Break() | ast.Continue():
                if isinstance(statement, kind):
                    return True
            case ast.For(orelse=orelse) | ast.While(orelse=orelse):
                if _has_exit(orelse, kind):
                    return True
            case ast.FunctionDef():
                pass
            case _:
                inner = [each for each in ast.iter_child_nodes(statement)]
                if _has_exit([each for each in inner if isinstance(each, ast.stmt)], kind):
                    return True
    return False


def has_continue(statements: Sequence[ast.stmt]) -> bool:
    """True if statements have a `continue` that belongs to the enclosing loop."""
    return _has_exit(statements, ast.Continue)


def _ends_early(body: Sequence[ast.stmt]) -> bool:
    """True if a loop body has a `break`, or a `continue` in a nested position.

    A `continue` that ends a simple `if` is not counted: the translation inverts its condition.
    """
    if _has_exit(body, ast.Break):
        return True
    simple = [
        statement
        for statement in body
        if isinstance(statement, ast.If)
        and not statement.orelse
        and isinstance(statement.body[-1], ast.Continue)
        and not _has_exit(statement.body[:-1], ast.Continue)
    ]
    return _has_exit([statement for statement in body if statement not in simple], ast.Continue)


def _with_skipping(statements: Sequence[ast.stmt], live: str, going: str) -> list[ast.stmt]:
    """Rewrites statements to record the end of an iteration, and to check it afterwards."""
    found: list[ast.stmt] = []
    for number, statement in enumerate(statements):
        rest = statements[number + 1 :]
        match statement:
            case ast.Break():
                ends = [
                    _flag_assignment(live, False, statement),
                    _flag_assignment(going, False, statement),
                ]
                return [*found, *ends]
            case ast.Continue():
                return [*found, _flag_assignment(live, False, statement)]
            case ast.If() | ast.With() if _has_exit([statement], ast.Break) or _has_exit(
                [statement], ast.Continue
            ):
                statement.body = _with_skipping(statement.body, live, going)
                if isinstance(statement, ast.If):
                    statement.orelse = _with_skipping(statement.orelse, live, going)
                found.append(statement)
                if rest:
                    others = _with_skipping(rest, live, going)
                    check = _if(_read(live, rest[0]), others, [], rest[0])
                    check.end_lineno = rest[-1].end_lineno
                    found.append(check)
                return found
            case _:
                found.append(statement)
    return found


def _guarded(statements: Sequence[ast.stmt], going: str) -> list[ast.stmt]:
    """Rewrites statements up to a `break`, with the remaining ones in the other branch."""
    found: list[ast.stmt] = []
    for number, statement in enumerate(statements):
        rest = statements[number + 1 :]
        match statement:
            case ast.Break():
                return [*found, _flag_assignment(going, False, statement)]
            case ast.If(test, [*before, ast.Break() as end], orelse):
                ended = [*before, _flag_assignment(going, False, end)]
                others = _guarded([*orelse, *rest], going)
                return [*found, _if(test, ended, others, statement)]
            case ast.If(test, body, [*before, ast.Break() as end]):
                ended = [*before, _flag_assignment(going, False, end)]
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


def _flag_assignment(name: str, value: bool, at: ast.stmt) -> ast.stmt:
    target = ast.copy_location(ast.Name(name, ast.Store()), at)
    number = ast.copy_location(ast.Constant(int(value)), at)
    return ast.copy_location(ast.Assign([target], number), at)
