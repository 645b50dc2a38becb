"""Occurrences of variables in Python syntax."""

from __future__ import annotations

import ast


def occurrences(
    *nodes: ast.AST, name: str | None = None, context: type[ast.expr_context] = ast.expr_context
) -> list[ast.Name]:
    """Returns the names in syntax, nested functions included, in the order of `ast.walk`.

    Args:
        nodes: the syntax.
        name: the variable; by default all of them.
        context: `ast.Load`, `ast.Store` or `ast.Del`; by default each of them.
    """
    return [
        each
        for node in nodes
        for each in ast.walk(node)
        if isinstance(each, ast.Name)
        and isinstance(each.ctx, context)
        and (name is None or each.id == name)
    ]


def variables_in(*nodes: ast.AST, context: type[ast.expr_context] = ast.expr_context) -> set[str]:
    """Returns the variables that occur in syntax, as `occurrences` finds them."""
    return {each.id for each in occurrences(*nodes, context=context)}


def reads(node: ast.AST, name: str) -> bool:
    """True if syntax reads a variable."""
    return bool(occurrences(node, name=name, context=ast.Load))


def stores(node: ast.AST, name: str) -> bool:
    """True if syntax assigns a variable."""
    return bool(occurrences(node, name=name, context=ast.Store))
