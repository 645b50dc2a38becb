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
from ttcodegen.project.running import (  # noqa: E402
    compare_with_framework,
    given_arguments,
    reference_beside,
)

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


WRONG_RULES = {
    "cos": "sin",
    "sin": "tanh",
    "tanh": "sigmoid",
    "sigmoid": "tanh",
    "exp": "expm1",
    "exp2": "exp",
    "relu": "neg",
    "erf": "tanh",
    "log1p": "log",
    "floor": "ceil",
    "ceil": "trunc",
    "trunc": "round",
    "add": "sub",
    "sub": "add",
    "mul": "add",
    "maximum": "minimum",
    "atan2": "sub",
    "amax": "amin",
    "cumsum": "cumprod",
    "log_softmax": "softmax",
}
"""Operations of PyTorch, and those whose rule takes the place of theirs."""
_OF_TWO = ("add", "sub", "mul", "maximum", "atan2")
_ALONG = {"amax": (1,), "cumsum": (1,), "log_softmax": (1,)}


class Twenty(torch.nn.Module):
    """A result of each operation whose rule is replaced."""

    def forward(self, x: Any, y: Any) -> Any:
        return {
            name: getattr(torch, name)(x, *((y,) if name in _OF_TWO else ()), *_ALONG.get(name, ()))
            for name in WRONG_RULES
        }


def test_each_of_twenty_wrong_rules_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The module and its runs agree with each other, and not with what PyTorch computed."""
    from ttcodegen.flatbuffer.reader import read_ttnn
    from ttcodegen.frontends.torch.rules import RULES
    from ttcodegen.numerics.comparison import reference_tolerance
    from ttcodegen.numerics.interpreter import Interpreter

    def unlike(path: Path) -> set[str]:
        ttcodegen.torch.export(Twenty().eval(), (first, second), out=path)
        source = Source.from_bytes(str(path), path.read_bytes())
        compiled = compile_module(source, CompileOptions("twenty"))
        found = reference_beside(path, source, compiled.description)
        assert isinstance(found, dict)
        ((name, reference),) = found.items()
        (function,) = compiled.description.functions
        inputs = [reference.inputs[each.name] for each in function.arguments]
        results = Interpreter(read_ttnn(compiled.flatbuffer)).run(name, inputs)
        tolerance = reference_tolerance(np.dtype(np.float32), True)
        return {
            output.name
            for output, result in zip(function.outputs, results, strict=True)
            if not compare_with_framework(result, reference.outputs[output.name], tolerance).passed
        }

    torch.manual_seed(20)
    first, second = torch.rand(4, 6) * 3 + 0.2, torch.rand(4, 6) * 2 + 0.1
    assert unlike(tmp_path / "right.mlir") == set()
    rules = {name: RULES[wrong] for name, wrong in WRONG_RULES.items()}
    for name, rule in rules.items():
        monkeypatch.setitem(RULES, name, rule)
        for overload in [each for each in RULES if each.startswith(f"{name}.")]:
            monkeypatch.setitem(RULES, overload, rule)
    assert unlike(tmp_path / "wrong.mlir") == set(WRONG_RULES)
