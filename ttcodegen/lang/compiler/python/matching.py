"""`match` statements as conditions: a kernel compares numbers, and tuples of numbers part by part.

    match row % 3, column:          matched = row % 3, column
        case 0, 0:                  if matched[0] == 0 and matched[1] == 0:
            ...                         ...
        case 1 | 2, n if n > 4:     elif (matched[0] == 1 or matched[0] == 2) and matched[1] > 4:
            ...                         n = matched[1]
        case _:                         ...
            ...                     else:
                                        ...

Patterns of classes and of mappings, and those with a star, stay, and are refused.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from ttcodegen.emitc.spelling import NameScope

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
