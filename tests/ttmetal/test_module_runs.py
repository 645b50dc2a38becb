"""Modules of device programs in all three meanings: source, flatbuffer and emulated device."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from xdsl.dialects.func import FuncOp

from tests.random_programs.checking import (
    failures_built_together,
    generate,
    module_of,
    run_module,
)
from tests.random_programs.choices import SeededChoices
from tests.ttmetal.modules import MODULES, text_of
from ttcodegen.cli.ttcodegen import main
from ttcodegen.flatbuffer.modules import verify_ttm
from ttcodegen.flatbuffer.reader import read_ttm_file
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.ops.core.definition import TTIR
from ttcodegen.project.cpu_backend import CPUBackend
from ttcodegen.project.toolchain import Toolchain

MOST_OPS = 8
SEEDS = range(36)
LEAST_FUNCTIONS = 24
"""Of the random functions, so many have programs for all of their ops."""

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", MODULES)
def test_the_three_runs_agree(name: str, cpu_backend: CPUBackend, tmp_path: Path) -> None:
    source = tmp_path / f"{name}.mlir"
    source.write_text(text_of(name), "utf-8")
    out = tmp_path / name
    assert main([str(source), "-o", str(out), "--target", "ttmetal", "--check"]) == 0
    verify_ttm(read_ttm_file(out / "model.ttm"))
    checked = {row["function"] for row in json.loads((out / "check.json").read_text())["outputs"]}
    assert len(checked) == text_of(name).count("func.func")


def random_functions(seeds: Sequence[int]) -> list[FuncOp]:
    """The random functions that there are programs for; the others are refused."""
    found: list[FuncOp] = []
    for seed in seeds:
        function = generate(SeededChoices(seed), f"f{seed}", MOST_OPS, recipes=compiled_ops())
        with suppress(CompileError):
            run_module(module_of([function]), "ttmetal")
            found.append(function)
    return found


def compiled_ops() -> list[str]:
    """Ops that are likely to have a program, whatever they work on."""
    moved = "reshape permute transpose slice_static concat pad repeat squeeze unsqueeze".split()
    return sorted(
        {
            name
            for name, op in TTIR.items()
            if (op.tile is not None or op.primitives is not None) and not op.draws
        }
        | set(moved)
    )


def test_random_functions_agree(toolchain: Toolchain, cpu_backend: CPUBackend) -> None:
    functions = random_functions(SEEDS)
    assert len(functions) >= LEAST_FUNCTIONS
    assert failures_built_together(module_of(functions), toolchain, "ttmetal") == {}
