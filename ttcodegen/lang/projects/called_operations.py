"""TT-Lang operations that modules call, from programs named on the command line."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ttcodegen.foundation.messages import Level, report

if TYPE_CHECKING:
    from ttcodegen.systems.description import SystemDescription


@contextmanager
def callable_operations(
    programs: Sequence[str], system: SystemDescription | None = None, *, all_are_used: bool = False
) -> Generator[None]:
    """Scope in which modules can call the operations of programs.

    Args:
        programs: paths of Python files.
        system: the machine that runs the operations; the default one if not given.
        all_are_used: True to warn about programs none of whose operations was called.

    Raises:
        CompileError: if a program cannot be read, breaks a rule, raises an error or ends itself, or
            if two have the same name.
    """
    if not programs:
        yield
        return
    from ttcodegen.lang.projects.programs import operations_of
    from ttcodegen.ops.tt_lang import calling

    operations = operations_of(programs, system)
    with calling(operations):
        yield
    used = {program for program, _ in operations.called}
    for path in programs if all_are_used else ():
        stem = Path(path).stem
        if stem not in used:
            names = ", ".join(name for program, name in operations.found if program == stem)
            report(
                Level.WARNING,
                f"warning: the model calls no operation of {path}, which has {names or 'none'}",
            )
