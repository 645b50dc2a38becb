"""Projects of `--kind runner`: an executable that runs what files hold, and no more."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from tests.project.conftest import write
from tests.project.test_program import BIAS, CONSTANT, WEIGHT, X, run, save
from ttcodegen.cli.ttcodegen import main
from ttcodegen.compilation import CompiledModule
from ttcodegen.project.building import BuildError, build_project
from ttcodegen.project.manifest import read_manifest
from ttcodegen.project.toolchain import Toolchain

pytestmark = pytest.mark.slow

DIGITS = Path(__file__).parents[2] / "examples" / "digits" / "digits.mlir"


@pytest.fixture(scope="module")
def project(compiled: CompiledModule, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project of the small module, written as a runner."""
    out = tmp_path_factory.mktemp("runner") / "tiny"
    module = dataclasses.replace(compiled.description, kind="runner")
    write(dataclasses.replace(compiled, description=module), out)
    return out


@pytest.fixture(scope="module")
def runner(project: Path, toolchain: Toolchain) -> Path:
    """Its executable."""
    executable = build_project(project, "tiny", toolchain, "runner").executable
    assert executable is not None
    return executable


def test_it_runs_what_files_hold(runner: Path, tmp_path: Path) -> None:
    save(tmp_path / "in" / "forward", x=X, layer_weight=WEIGHT, layer_bias=BIAS)
    arguments = ["--inputs", tmp_path / "in", "--outputs", tmp_path / "out"]
    done = run(runner, *arguments, "--function", "forward")
    assert (done.returncode, done.stderr) == (0, "")
    y = np.load(tmp_path / "out" / "forward" / "y.npy")
    np.testing.assert_allclose(y, X @ WEIGHT + BIAS + CONSTANT, rtol=1e-5)


def test_what_is_missing_is_an_error_with_a_remedy(runner: Path, tmp_path: Path) -> None:
    save(tmp_path / "in" / "forward", layer_weight=WEIGHT)
    arguments = ["--inputs", tmp_path / "in", "--function", "forward"]
    done = run(runner, *arguments)
    assert done.returncode == 2
    assert "input 'x' has no values: give --input x=FILE, or --inputs DIR with" in done.stderr
    assert "DIR/forward/x.npy" in done.stderr
    save(tmp_path, x=X)
    done = run(runner, *arguments, "--input", f"x={tmp_path}/x.npy")
    assert done.returncode == 2
    assert "weight 'layer.bias' has no values: give --input layer_bias=FILE" in done.stderr


@pytest.mark.parametrize("option", ["--seed=0", "--golden=/", "--correlation=1", "--max-error=1"])
def test_options_of_what_it_lacks_are_refused(runner: Path, option: str) -> None:
    done = run(runner, option)
    assert done.returncode == 2
    assert "ttcodegen --kind exe" in done.stderr
    assert option.split("=")[0] not in run(runner, "--help").stdout


def test_the_manifest_says_what_it_is(project: Path, toolchain: Toolchain) -> None:
    manifest = read_manifest(project)
    assert manifest is not None
    assert manifest["kind"] == "runner"
    with pytest.raises(BuildError, match="without a shared object"):
        build_project(project, "tiny", toolchain, "so")
    assert "--golden" not in (project / "README.md").read_text()


def test_it_is_checked(toolchain: Toolchain, tmp_path: Path) -> None:
    assert toolchain.compiler
    out = tmp_path / "digits"
    assert main([str(DIGITS), "-o", str(out), "-q", "--kind", "runner", "--check"]) == 0
    assert (out / "check.json").is_file()
