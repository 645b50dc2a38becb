"""Programs that are compiled: what became of their operations, and what was said of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from ttcodegen.foundation.diagnostics import CompileError, Source
from ttcodegen.lang.projects.programs import run_program_text
from ttcodegen.lang.projects.projects import OutputComparison, Projects
from ttcodegen.systems.description import SystemDescription

PROGRAMS = Path(__file__).parent / "programs"


def kernels(out: Path, name: str, *arguments: object) -> dict[str, str]:
    """The kernels of the only operation of a program, by name."""
    source = Source.read(str(PROGRAMS / f"{name}.py"))
    projects = Projects(source.digest, out)
    run_program_text(source, [str(argument) for argument in arguments], projects.watch)
    (project,) = projects.written
    return {path.stem: path.read_text() for path in project.glob("kernels/*.cpp")}


def checked(
    source: Source, *arguments: object, system: SystemDescription | None = None
) -> list[OutputComparison]:
    """Comparisons of the outputs of a program's operations on the emulated device."""
    projects = Projects(source.digest, checks=True)
    run_program_text(
        source, [str(argument) for argument in arguments], projects.watch, system=system
    )
    return projects.comparisons


def refusal(text: str) -> str:
    """The message of a program that the simulator takes and the compiler does not."""
    source = Source("program.py", text)
    with pytest.raises(CompileError) as raised:
        run_program_text(source, [], Projects(source.digest, checks=False).watch)
    return raised.value.render(source)
