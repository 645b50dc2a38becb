"""Programs of each release on the CPU backend: calls in its form, and kernels of its API."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.op_cases.cases import cases, function_of
from tests.random_programs.checking import module_of
from tests.ttmetal import modules
from ttcodegen.cli.ttcodegen import main
from ttcodegen.project.cpu_backend import CPUBackend
from ttcodegen.systems.releases import DEFAULT_RELEASE, RELEASES, release_named

ROOT = Path(__file__).resolve().parents[2]
OP_CASES = ROOT / "tests" / "op_cases"
OTHER = next(name for name in RELEASES if name != DEFAULT_RELEASE)
"""A release that is not the default, of whose programs a sample runs."""
CHANGED = ("argmax", "gelu_bw")
"""Ops whose calls have another form, beside those in the files of op cases."""
NOT_CALLED = {"ttnn::group_norm", "ttnn::experimental::nlp_create_qkv_heads"}
"""Functions with another form that no lowering calls."""
MODULES = ("broadcasts", "matmuls", "reductions")
"""Modules of device programs whose kernels call what releases spell differently."""

pytestmark = pytest.mark.slow


def checked(text: str, folder: Path, release: str, *options: str) -> Path:
    """The project of a module for a release, which computes what numpy does."""
    source = folder / "model.mlir"
    source.write_text(text)
    out = folder / "out"
    arguments = [str(source), "-o", str(out), "-q", "--tt-metal", release, "--check"]
    assert main([*arguments, *options]) == 0
    return out


@pytest.mark.parametrize("release", RELEASES)
def test_calls_in_another_form_run(cpu_backend: CPUBackend, tmp_path: Path, release: str) -> None:
    functions = [function_of(name, list(cases(name))[:8]) for name in CHANGED]
    called = "".join(
        path.read_text()
        for path in checked(module_of(functions), tmp_path, release).glob("src/*.cpp")
    )
    for name in ("meshes", "without_recipe"):
        folder = tmp_path / name
        folder.mkdir()
        out = checked(OP_CASES.joinpath(f"{name}.mlir").read_text(), folder, release)
        called += "".join(path.read_text() for path in out.glob("src/*.cpp"))
    here = release_named(release).calls
    changed = {
        here[name].callee or name if name in here else name
        for each in RELEASES
        for name in release_named(each).calls
        # Only modules of TTNN dump and load tensors.
        if name.startswith("ttnn::")
    }
    assert {name for name in changed if f"{name}(" not in called} == NOT_CALLED


@pytest.mark.parametrize("name", MODULES)
def test_kernels_run_on_the_emulated_device(
    cpu_backend: CPUBackend, tmp_path: Path, name: str
) -> None:
    out = checked(modules.text_of(name), tmp_path, OTHER, "--target", "ttmetal")
    kernels = [path.read_text() for path in out.glob("kernels/*.cpp")]
    assert kernels
    assert all(f"for tt-metal {OTHER}" in text for text in kernels)
