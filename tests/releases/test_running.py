"""Programs of a later release on the CPU backend: calls in its form, and kernels of its API."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.op_cases.cases import cases, function_of
from tests.random_programs.checking import module_of
from tests.ttmetal import modules
from ttcodegen.cli.ttcodegen import main
from ttcodegen.project.cpu_backend import CPUBackend
from ttcodegen.systems.releases import RELEASES, release_named

ROOT = Path(__file__).resolve().parents[2]
OP_CASES = ROOT / "tests" / "op_cases"
LATER = RELEASES[-1]
CHANGED = ("argmax", "gelu_bw")
"""Ops whose calls have another form, beside those in the files of op cases."""
NOT_CALLED = {"ttnn::group_norm", "ttnn::experimental::nlp_create_qkv_heads"}
"""Functions with another form that no lowering calls."""
MODULES = ("broadcasts", "matmuls", "reductions")
"""Modules of device programs whose kernels call what later releases spell otherwise."""

pytestmark = pytest.mark.slow


def checked(text: str, folder: Path, *options: str) -> Path:
    """The project of a module for the later release, which computes what numpy does."""
    source = folder / "model.mlir"
    source.write_text(text)
    out = folder / "out"
    arguments = [str(source), "-o", str(out), "-q", "--tt-metal", LATER, "--check"]
    assert main([*arguments, *options]) == 0
    return out


def test_calls_in_another_form_run(cpu_backend: CPUBackend, tmp_path: Path) -> None:
    functions = [function_of(name, list(cases(name))[:8]) for name in CHANGED]
    called = "".join(
        path.read_text() for path in checked(module_of(functions), tmp_path).glob("src/*.cpp")
    )
    for name in ("meshes", "without_recipe"):
        folder = tmp_path / name
        folder.mkdir()
        out = checked(OP_CASES.joinpath(f"{name}.mlir").read_text(), folder)
        called += "".join(path.read_text() for path in out.glob("src/*.cpp"))
    calls = release_named(LATER).calls.items()
    changed = {change.callee or name for name, change in calls if name.startswith("ttnn::")}
    # Only modules of TTNN dump and load tensors.
    assert {name for name in changed if f"{name}(" not in called} == NOT_CALLED


@pytest.mark.parametrize("name", MODULES)
def test_kernels_run_on_the_emulated_device(
    cpu_backend: CPUBackend, tmp_path: Path, name: str
) -> None:
    out = checked(modules.text_of(name), tmp_path, "--target", "ttmetal")
    kernels = [path.read_text() for path in out.glob("kernels/*.cpp")]
    assert kernels
    assert all(f"for tt-metal {LATER}" in text for text in kernels)
