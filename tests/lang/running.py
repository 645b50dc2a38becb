"""Runs programs of TT-Lang for tests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ttcodegen.foundation.diagnostics import CompileError, Source
from ttcodegen.lang.compiler.operations import compile_operation
from ttcodegen.lang.projects.programs import run_program_text
from ttcodegen.lang.simulator.context import Launch

PROGRAMS = Path(__file__).parent / "programs"


def run_file(name: str, *arguments: object) -> dict[str, object]:
    """Variables of a program of the folder `programs` at its end."""
    source = Source.read(str(PROGRAMS / f"{name}.py"))
    return run_program_text(source, [str(argument) for argument in arguments])


HEAD = """import ttl, ttnn
x = ttnn.rand((64, 64))
y = ttnn.zeros((64, 64))
"""


def operation(body: str, call: str = "op(x, y)", grid: str = "(1, 1)") -> str:
    """A program with an operation `op(x, y)` that has two buffers of a tile each, and this body."""
    lines = [
        f"@ttl.operation(grid={grid})",
        "def op(x, y):",
        "    x_dfb = ttl.make_dataflow_buffer_like(x, shape=(1, 1))",
        "    y_dfb = ttl.make_dataflow_buffer_like(y, shape=(1, 1))",
        *(f"    {line}" for line in body.strip("\n").splitlines()),
        call,
    ]
    return HEAD + "\n".join(lines) + "\n"


def run_text(text: str) -> dict[str, object]:
    """Variables of a program at its end."""
    return run_program_text(Source("program.py", text))


def failure(text: str) -> str:
    """The message of a program that breaks a rule."""
    with pytest.raises(CompileError) as raised:
        run_text(text)
    return raised.value.render(Source("program.py", text))


class CompiledError(Exception):
    """The compiler takes an operation."""


def compiler_refusal(text: str) -> str:
    """The message of the compiler, which looks at an operation before it runs."""

    def watch(launch: Launch) -> Callable[[], None]:
        compile_operation(launch)
        raise CompiledError

    source = Source("program.py", text)
    with pytest.raises(CompileError) as raised:
        run_program_text(source, [], watch)
    assert "CompiledError" not in str(raised.value)
    return raised.value.render(source)
