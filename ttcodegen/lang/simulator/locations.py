"""Source locations in the user's program, syntax trees of its functions, and their variables."""

from __future__ import annotations

import ast
import dis
import linecache
import sys
from collections.abc import Iterable
from contextlib import suppress
from functools import cache, lru_cache
from types import CodeType, FrameType, FunctionType
from typing import Any

from ttcodegen.foundation.diagnostics import (
    CompileError,
    Note,
    SourceLocation,
    instruction_location,
)
from ttcodegen.foundation.messages import is_of_user

Instruction = tuple[CodeType, int]
"""Code object and offset of an instruction, from which its location is computed on demand."""


class ProgramError(CompileError):
    """Raised if a program breaks a rule of the language."""


class _UserFiles(dict[str, bool]):
    """Cache of whether files are the user's, because it is checked for each frame of a stack."""

    def __missing__(self, file: str) -> bool:
        self[file] = is_of_user(file)
        return self[file]


_IS_OF_USER = _UserFiles()


def user_frame(frame: FrameType | None = None) -> FrameType | None:
    """Innermost frame of user code, starting at `frame` or at the caller."""
    frame = frame if frame is not None else sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame is not None and not _IS_OF_USER[frame.f_code.co_filename]:
        frame = frame.f_back
    return frame


def here() -> Instruction | None:
    """Instruction of the user's program that is being executed."""
    frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    # `user_frame` inlined, because this runs for each acquisition of a block.
    while not _IS_OF_USER[frame.f_code.co_filename]:
        if frame.f_back is None:
            return None
        frame = frame.f_back
    return frame.f_code, frame.f_lasti


@cache
def location_of(instruction: Instruction | None) -> SourceLocation | None:
    """Source location of an instruction."""
    return None if instruction is None else instruction_location(*instruction)


def error(
    message: str,
    *,
    remedy: str | None = None,
    at: Instruction | None = None,
    notes: Iterable[Note] = (),
) -> ProgramError:
    """Creates an error at an instruction, by default at the program's current one."""
    if at is None:
        frame = user_frame(sys._getframe(1))  # pyright: ignore[reportPrivateUsage]
        at = (frame.f_code, frame.f_lasti) if frame is not None else None
    return ProgramError(message, location_of(at), remedy=remedy, notes=notes)


def assigned_name() -> str | None:
    """Name of the variable that the result of the running call is assigned to, if any."""
    found = here()
    return _assigned_name(*found) if found is not None else None


def is_dropped() -> bool:
    """True if the result of the running call is discarded."""
    found = here()
    after = None if found is None else _instruction_after(*found)
    return after is not None and after.opname == "POP_TOP"


@cache
def _instruction_after(code: CodeType, offset: int) -> dis.Instruction | None:
    following = (i for i in dis.get_instructions(code) if i.offset > offset)
    return next((i for i in following if i.opname != "CACHE"), None)


@cache
def _assigned_name(code: CodeType, offset: int) -> str | None:
    after = _instruction_after(code, offset)
    if after is not None and after.opname in ("STORE_FAST", "STORE_DEREF", "STORE_NAME",
                                              "STORE_GLOBAL"):  # fmt: skip
        return str(after.argval)
    return None


def syntax_of_function(function: FunctionType) -> ast.FunctionDef | None:
    """Syntax tree of a user function; None if its source is not available."""
    code = function.__code__
    text = "".join(linecache.getlines(code.co_filename))
    return _functions_of(text).get((code.co_name, code.co_firstlineno))


@lru_cache(8)
def _functions_of(text: str) -> dict[tuple[str, int], ast.FunctionDef]:
    """Functions of a program by name and first line."""
    found: dict[tuple[str, int], ast.FunctionDef] = {}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            found[node.name, first] = node
    return found


def variables_of(function: FunctionType) -> dict[str, Any]:
    """Values of a function's free variables."""
    found: dict[str, Any] = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        # An empty cell can only be detected by its exception.
        with suppress(ValueError):
            found[name] = cell.cell_contents
    return found


def error_at(file: str, message: str, node: ast.AST, remedy: str | None = None) -> ProgramError:
    """Creates an error at a syntax node of a file."""
    line: int = getattr(node, "lineno", 1)
    text = linecache.getline(file, line).encode()[: getattr(node, "col_offset", 0)]
    where = SourceLocation(file, line, len(text.decode(errors="replace")) + 1)
    return ProgramError(message, where, remedy=remedy)
