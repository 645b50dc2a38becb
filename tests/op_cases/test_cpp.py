"""All cases of all ops in their three meanings.

What the C++ calls exists in the release: it links against the CPU backend, all functions of which
are looked up in the release's libraries (tests/examples/test_links.py).
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.op_cases.cases import cases, function_of
from tests.random_programs.checking import failures, module_of
from tests.random_programs.recipes import RECIPES, WITHOUT_RECIPE
from ttcodegen.cli.ttcodegen import main
from ttcodegen.project.cpu_backend import CPUBackend
from ttcodegen.project.toolchain import Toolchain

OTHERS = Path(__file__).with_name("without_recipe.mlir")
EMPTY = Path(__file__).with_name("empty.mlir")
MESHES = Path(__file__).with_name("meshes.mlir")
PARTS = 22
"""Programs that the ops are divided among: a compiler takes some seconds for each."""

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("part", range(PARTS))
def test_cpp_agrees_with_flatbuffer(
    toolchain: Toolchain, cpu_backend: CPUBackend, part: int
) -> None:
    names = sorted(RECIPES)[part::PARTS]
    functions = [function_of(name, list(cases(name))) for name in names]
    assert failures(module_of(functions), toolchain) == {}


@pytest.mark.parametrize("path", [OTHERS, EMPTY, MESHES], ids=lambda path: path.stem)
def test_other_cases(cpu_backend: CPUBackend, tmp_path: Path, path: Path) -> None:
    assert main([str(path), "-o", str(tmp_path / "out"), "--check"]) == 0


def test_each_op_without_a_recipe_has_a_case() -> None:
    text = OTHERS.read_text() + MESHES.read_text()
    assert [name for name in WITHOUT_RECIPE if f'"ttir.{name}"' not in text] == []
