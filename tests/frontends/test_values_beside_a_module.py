"""`export` writes what the framework computed beside the module, and `--check` finds it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: pip install torch")

import ttcodegen.torch  # noqa: E402
from ttcodegen.compilation import CompileOptions, compile_module  # noqa: E402
from ttcodegen.foundation.diagnostics import Source  # noqa: E402
from ttcodegen.project.running import given_arguments, reference_beside  # noqa: E402

pytestmark = [pytest.mark.frameworks, pytest.mark.filterwarnings("ignore")]


class Scaled(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(4, 3)

    def forward(self, x: Any) -> Any:
        return {"scores": self.linear(x), "sum": x.sum()}


@pytest.fixture
def module(tmp_path: Path) -> Path:
    torch.manual_seed(0)
    path = tmp_path / "models" / "scaled.mlir"
    example = torch.arange(8.0).reshape(2, 4)
    text = ttcodegen.torch.export(Scaled().eval(), (example,), out=path)
    assert path.read_text() == text
    return path


def _found(path: Path) -> Any:
    source = Source.from_bytes(str(path), path.read_bytes())
    compiled = compile_module(source, CompileOptions("scaled"))
    return reference_beside(path, source, compiled.description), compiled.description


def test_the_example_the_weights_and_the_results_are_found(module: Path) -> None:
    found, description = _found(module)
    (name,) = found
    torch.manual_seed(0)
    model = Scaled()
    example = torch.arange(8.0).reshape(2, 4)
    with torch.no_grad():
        expected = model(example)
    np.testing.assert_array_equal(found[name].outputs["scores"], expected["scores"].numpy())
    np.testing.assert_array_equal(found[name].outputs["sum"], expected["sum"].numpy())
    given = given_arguments(description, found)[name]
    np.testing.assert_array_equal(given["x"], example.numpy())
    np.testing.assert_array_equal(given["linear.weight"], model.linear.weight.detach().numpy())


def test_values_of_another_version_are_told_and_not_taken(module: Path) -> None:
    module.write_text(module.read_text().replace("@forward", "@backward"))
    found, _ = _found(module)
    assert isinstance(found, str)
    assert "is of another version of" in found


def test_a_module_by_itself_has_none(module: Path, tmp_path: Path) -> None:
    alone = tmp_path / "alone.mlir"
    alone.write_text(module.read_text())
    assert _found(alone)[0] is None


@pytest.mark.slow
def test_check_compares_with_them(module: Path, tmp_path: Path) -> None:
    """A result that is wrong in the module, however its runs agree, is a difference."""
    from ttcodegen.cli.ttcodegen import main

    out = str(tmp_path / "out")
    assert main([str(module), "-o", out, "--check", "-q"]) == 0
    results = module.with_suffix(".golden") / "outputs" / "scores.npy"
    np.save(results, np.load(results)[:, ::-1])
    assert main([str(module), "-o", out, "--check", "-q"]) != 0


def test_those_of_jax_are_found_too(tmp_path: Path) -> None:
    jax = pytest.importorskip("jax", reason="jax is not installed: pip install jax")
    import ttcodegen.jax

    path = tmp_path / "model.mlir"
    weights = {"kernel": jax.numpy.arange(12.0).reshape(4, 3)}
    example = jax.numpy.arange(8.0).reshape(2, 4)
    ttcodegen.jax.export(
        lambda p, x: jax.numpy.sin(x) @ p["kernel"], example, params=weights, out=path
    )
    found, description = _found(path)
    (name,) = found
    (result,) = found[name].outputs.values()
    np.testing.assert_allclose(result, np.sin(example) @ np.arange(12.0).reshape(4, 3), rtol=1e-5)
    given = list(given_arguments(description, found)[name].values())
    assert any(np.array_equal(each, example) for each in given)
    assert any(np.array_equal(each, weights["kernel"]) for each in given)
