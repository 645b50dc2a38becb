"""Programs in files that decode and make no sense."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from xdsl.utils.exceptions import VerifyException

from ttcodegen.foundation.diagnostics import CompileError


@contextmanager
def blamed_on(path: Path) -> Generator[None]:
    """For what works on any program that the compiler writes: a failure says that the file at
    `path` holds another one, in which ops, tensors and attributes do not fit each other.

    Raises:
        CompileError: in place of what is raised then.
    """
    try:
        yield
    except (VerifyException, LookupError, TypeError, ValueError, AttributeError, AssertionError,
            ArithmeticError, RecursionError, MemoryError) as error:  # fmt: skip
        raise CompileError(
            f"'{path}' is damaged: no C++ can be made of its program "
            f"({type(error).__name__}: {error})",
            remedy="compile the model again; if the file is as ttcodegen wrote it, this is a bug",
        ) from error
