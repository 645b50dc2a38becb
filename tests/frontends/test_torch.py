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


class Rotated(torch.nn.Module):
    """A rotary embedding as the first Llama had it."""

    def __init__(self) -> None:
        super().__init__()
        angles = torch.outer(torch.arange(6.0), torch.linspace(1, 0.1, 4))
        self.turns = torch.polar(torch.ones_like(angles), angles)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
        turned = pairs * self.turns[: x.shape[1]].view(1, -1, 1, 4)
        return torch.view_as_real(turned).flatten(3).type_as(x)


class ComplexNumbers(torch.nn.Module):
    def forward(self, x: torch.Tensor, f: torch.Tensor) -> Any:
        z = torch.view_as_complex(x)
        w = z * f
        u = (z + 2 * w) / (f + 1.5) - torch.exp(w * 0.3)
        both = torch.cat([u, z], 0)[1:, None].expand(3, 2, 4)
        return w.real, u.abs(), torch.complex(w.real, w.imag), both, z.angle(), (z * f.conj()).imag


@pytest.mark.parametrize(
    ("module", "arguments"),
    [
        (Rotated(), (torch.linspace(-2, 2, 240).reshape(2, 5, 3, 8).sin(),)),
        (
            ComplexNumbers(),
            (torch.linspace(-2, 2, 16).reshape(2, 4, 2).cos(), Rotated().turns[3]),
        ),
    ],
)
def test_complex_numbers_are_pairs(module: Any, arguments: tuple[Any, ...]) -> None:
    def pairs(tensor: Any) -> Any:
        return torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor

    text = ttcodegen.torch.export(module.eval(), arguments)
    found = run(text, *(pairs(each).numpy() for each in arguments))
    for got, want in zip(found, torch.utils._pytree.tree_leaves(module(*arguments)), strict=True):
        torch.testing.assert_close(torch.from_numpy(got), pairs(want), rtol=1e-4, atol=1e-5)


def test_what_is_not_known_of_complex_numbers_is_refused() -> None:
    class Sine(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.view_as_real(torch.view_as_complex(x).sin())

    with pytest.raises(CompileError, match="'sin' of complex numbers is not supported") as caught:
        ttcodegen.torch.export(Sine().eval(), (torch.randn(3, 2),))
    assert "pairs of real tensors" in (caught.value.diagnostics[0].remedy or "")
