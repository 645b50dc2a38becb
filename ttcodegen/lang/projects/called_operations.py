"""Operations of TT-Lang that modules call: the programs that have them are named on the command
line."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ttcodegen.systems.description import SystemDescription


def callable_operations(
    programs: Sequence[str], system: SystemDescription | None = None
) -> AbstractContextManager[None]:
    """Lets modules call the operations of programs.

    Args:
        programs: paths of Python files.
        system: the machine that runs the operations; the default one if not given.

    Raises:
        CompileError: if a program cannot be read, breaks a rule, raises an error or ends itself, or
            if two have the same name.
    """
    if not programs:
        return nullcontext()
    from ttcodegen.lang.projects.programs import operations_of
    from ttcodegen.ops.tt_lang import calling

    return calling(operations_of(programs, system))
