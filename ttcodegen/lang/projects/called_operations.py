"""Operations of TT-Lang that modules call: the programs that have them are named on the command
line."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext


def callable_operations(programs: Sequence[str]) -> AbstractContextManager[None]:
    """Lets modules call the operations of programs.

    Args:
        programs: paths of Python files.

    Raises:
        CompileError: if a program cannot be read, breaks a rule, raises an error or ends itself, or
            if two have the same name.
    """
    if not programs:
        return nullcontext()
    from ttcodegen.lang.projects.calling import operations_of
    from ttcodegen.ops.tt_lang import calling

    return calling(operations_of(programs))
