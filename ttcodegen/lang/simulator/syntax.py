"""Functions of programs: their syntax trees, and the variables around them."""

from __future__ import annotations

import ast
import linecache
from contextlib import suppress
from functools import lru_cache
from types import FunctionType
from typing import Any

from ttcodegen.foundation.diagnostics import SourceLocation
from ttcodegen.lang.simulator.locations import ProgramError


def syntax_of_function(function: FunctionType) -> ast.FunctionDef | None:
    """The syntax of a function of the program, None if its text cannot be found."""
    code = function.__code__
    text = "".join(linecache.getlines(code.co_filename))
    return _functions_of(text).get((code.co_name, code.co_firstlineno))


@lru_cache(8)
def _functions_of(text: str) -> dict[tuple[str, int], ast.FunctionDef]:
    """The functions of a program by their names and first lines."""
    found: dict[tuple[str, int], ast.FunctionDef] = {}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            found[node.name, first] = node
    return found


def variables_of(function: FunctionType) -> dict[str, Any]:
    """Values of the outer variables that a function refers to."""
    found: dict[str, Any] = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        # Nothing else than its exception says that a cell is empty.
        with suppress(ValueError):
            found[name] = cell.cell_contents
    return found


def error_at(file: str, message: str, node: ast.AST, remedy: str | None = None) -> ProgramError:
    """The error of a program at a part of its text."""
    line: int = getattr(node, "lineno", 1)
    text = linecache.getline(file, line).encode()[: getattr(node, "col_offset", 0)]
    where = SourceLocation(file, line, len(text.decode(errors="replace")) + 1)
    return ProgramError(message, where, remedy=remedy)
