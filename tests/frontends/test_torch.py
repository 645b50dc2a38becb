"""Models of PyTorch: the C++ against torch itself. Runs where torch is installed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: pip install torch")

import ttcodegen.torch  # noqa: E402
from tests.frontends.running import run  # noqa: E402
from tests.frontends.torch_models import MLP, MODELS, model  # noqa: E402
from ttcodegen.diagnostics import CompileError  # noqa: E402

pytestmark = [pytest.mark.frameworks, pytest.mark.filterwarnings("ignore")]

TYPES = {"f32": (torch.float32, 0.9999), "bf16": (torch.bfloat16, 0.99)}


@pytest.mark.slow
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("name", MODELS)
def test_models(name: str, kind: str, tmp_path: Path) -> None:
    dtype, least = TYPES[kind]
    module, example = model(name, dtype)
    ttcodegen.torch.compile(module, example, out=tmp_path / "out", check=True)
    for output in json.loads(tmp_path.joinpath("out/check.json").read_text())["outputs"]:
        assert output["reference_pcc"] >= least


def test_attention_and_norms_stay_whole() -> None:
    text = ttcodegen.torch.export(*model("block", torch.float32))
    counts = {
        name: text.count(f'"ttir.{name}"')
        for name in ("linear", "layer_norm", "scaled_dot_product_attention", "gelu")
    }
    expected = {"linear": 4, "layer_norm": 2, "scaled_dot_product_attention": 1, "gelu": 1}
    assert counts == expected
    assert 'loc("attention/output")' in text or 'loc("attention.output/output")' in text
    assert 'ttir.name = "attention.qkv.weight"' in text


def test_places_that_count_from_the_end() -> None:
    class Places(torch.nn.Module):
        def forward(self, x: torch.Tensor, i: torch.Tensor, j: torch.Tensor) -> Any:
            y = x.index_put((i,), torch.zeros(3, 5))
            return x[i], x[i, j], y, x[torch.arange(2)]

    x, i, j = torch.randn(4, 5), torch.tensor([-1, 0, -4]), torch.tensor([2, -5, -1])
    module = Places().eval()
    text = ttcodegen.torch.export(module, (x, i, j))
    found = run(text, x.numpy(), i.numpy().astype("int32"), j.numpy().astype("int32"))
    for first, second in zip(found, module(x, i, j), strict=True):
        torch.testing.assert_close(torch.from_numpy(first), second, check_dtype=False)
    # Each of the tensors of places is looked at once for each use; the counted one is not.
    assert text.count('"ttir.lt"') == 4


def test_weights_lie_under_their_names(tmp_path: Path) -> None:
    import numpy as np

    module, example = model("mlp", torch.float32)
    ttcodegen.torch.compile(module, example, out=tmp_path / "out", golden=tmp_path / "golden")
    found = np.load(tmp_path / "out/data/up_weight.npy")
    np.testing.assert_array_equal(found, module.up.weight.detach().numpy())
    assert tmp_path.joinpath("golden/outputs/output.npy").exists()


def test_everything_is_refused_at_once_by_lines_of_the_model() -> None:
    class Odd(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = torch.nonzero_static(x, size=4).sum()
            return torch.fft.rfft(x).real + y

    with pytest.raises(CompileError) as caught:
        ttcodegen.torch.export(Odd().eval(), (torch.randn(4, 4),))
    text = caught.value.render()
    assert "test_torch.py" in text
    assert "nonzero_static" in text


def test_a_module_in_training_is_refused() -> None:
    with pytest.raises(CompileError, match="training mode"):
        ttcodegen.torch.export(MLP(), (torch.randn(32, 64),))


def test_flow_of_control_that_depends_on_values_is_refused() -> None:
    class Branches(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + 1 if x.sum() > 0 else x - 1

    with pytest.raises(CompileError, match="cannot export"):
        ttcodegen.torch.export(Branches().eval(), (torch.randn(4),))


def test_buffers_of_complex_numbers_are_refused() -> None:
    class Rotated(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            angles = torch.linspace(0, 1, 8)
            self.register_buffer("turns", torch.polar(torch.ones(8), angles))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.view_as_real(torch.view_as_complex(x) * self.turns)

    with pytest.raises(CompileError) as caught:
        ttcodegen.torch.export(Rotated().eval(), (torch.randn(3, 8, 2),))
    told = [
        (each.message.partition("\n")[0], each.remedy or "") for each in caught.value.diagnostics
    ]
    message, remedy = next(pair for pair in told if "turns" in pair[0])
    assert "'turns': elements of type complex64 are not supported" in message
    assert "pairs of real tensors" in remedy
