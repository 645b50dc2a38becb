"""Random programs in all three meanings, and those that once failed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.random_programs.checking import (
    failures,
    failures_in_numpy,
    functions_of,
    module_of,
    seeded_module,
)
from tests.random_programs.reducing import reduced
from ttcodegen.foundation.diagnostics import Source
from ttcodegen.parsing import parse_module
from ttcodegen.project.cpu_backend import CPUBackend
from ttcodegen.project.toolchain import Toolchain

KEPT = sorted(Path(__file__).parent.joinpath("kept").glob("*.mlir"))
SEEDS = range(64)
"""The functions that CI builds and runs, in one program; `search.py` looks for others."""


@pytest.mark.parametrize("path", KEPT, ids=[path.stem for path in KEPT])
def test_kept_program_without_cpp(path: Path) -> None:
    assert failures_in_numpy(path.read_text()) == []


@pytest.mark.slow
def test_cpp_agrees_with_flatbuffer(toolchain: Toolchain, cpu_backend: CPUBackend) -> None:
    modules = [seeded_module(SEEDS), *(path.read_text() for path in KEPT)]
    parsed = [parse_module(Source("random.mlir", text)) for text in modules]
    text = module_of([function for module in parsed for function in functions_of(module).values()])
    failed = failures(text, toolchain)
    # The smallest part of the first one shows more than a long program.
    reported = [
        reduced(text, name, lambda part: failures(part, toolchain)) for name in [*failed][:1]
    ]
    assert failed == {}, "\n".join(reported)
