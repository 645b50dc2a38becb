"""Models of PyTorch: the C++ against torch itself. Runs where torch is installed."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: pip install torch")

import ttcodegen.torch  # noqa: E402
from tests.frontends.running import read, run  # noqa: E402
from tests.frontends.torch_models import MODELS, model  # noqa: E402
from ttcodegen.foundation.diagnostics import CompileError, SourceLocation  # noqa: E402
from ttcodegen.numerics.golden_values import Golden  # noqa: E402

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


def test_operations_of_torch_name_no_value(tmp_path: Path) -> None:
    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.gate = torch.nn.Linear(32, 32)

        def forward(self, x: Any) -> Any:
            weights = torch.softmax(self.gate(x).float(), -1).to(x.dtype)
            return weights * x.t()

    example = torch.ones(32, 32, dtype=torch.bfloat16)
    out = ttcodegen.torch.compile(
        Model().bfloat16().eval(), (example,), out=tmp_path / "out", name="model"
    )
    text = out.joinpath("src", "model.cpp").read_text()
    assert re.search(r"probabilities =\s+ttnn::softmax\(", text)
    assert not re.search(r"ttnn::Tensor (?:to|t|float)(?:_\d+)? =", text)


def test_everything_is_refused_at_once_by_lines_of_the_model() -> None:
    class Odd(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = torch._standard_gamma(x.abs()) + torch.linalg.ldl_factor(x).LD
            return torch.hash_tensor(x) + y.sum()

    with pytest.raises(CompileError) as caught:
        ttcodegen.torch.export(Odd().eval(), (torch.randn(4, 4),))
    text = str(caught.value)
    assert text == caught.value.render()
    assert "test_torch.py" in text
    assert "linalg_ldl_factor" in text
    assert "_standard_gamma" in text
    # All in the lines of the module, none in those of torch.nn.
    files = [place.file for d in caught.value.diagnostics if (place := d.place) is not None]
    assert files == [__file__] * len(caught.value.diagnostics)
    assert all(diagnostic.remedy for diagnostic in caught.value.diagnostics)


def test_a_module_in_training_keeps_the_statistics_of_its_input() -> None:
    module = torch.nn.BatchNorm1d(3, affine=False)
    x = torch.linspace(-1, 2, 12).reshape(4, 3).sin()
    text = ttcodegen.torch.export(module, (x,))
    mean, variance, count = (each.numpy().copy() for each in module.buffers())
    assert "new.running_mean" in text
    assert "new.running_var" in text
    found = Golden(read(text)).run("forward", [x.numpy(), mean, variance, count.astype(np.int32)])
    expected = [module(x), *module.buffers()]
    for got, want in zip(found, expected, strict=True):
        np.testing.assert_allclose(got, want.detach().numpy(), atol=1e-4)


def test_flow_of_control_that_depends_on_values_is_refused() -> None:
    class Branches(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + 1 if x.sum() > 0 else x - 1

    with pytest.raises(CompileError, match="depends on the values") as caught:
        ttcodegen.torch.export(Branches().eval(), (torch.randn(4),))
    place = caught.value.diagnostics[0].place
    line = Branches.forward.__code__.co_firstlineno + 1
    assert place == SourceLocation(__file__, line, len("            return x + 1 if ") + 1)


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


def test_complex_numbers_become_real_ones_without_their_imaginary_parts() -> None:
    class Module(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.view_as_complex(x).to(torch.float32)

    x = torch.arange(8.0).reshape(4, 2)
    (found,) = run(ttcodegen.torch.export(Module().eval(), (x,)), x.numpy())
    assert found.tolist() == [0.0, 2.0, 4.0, 6.0]


def test_complex_numbers_of_python_are_constants() -> None:
    class Module(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.view_as_real(torch.view_as_complex(x) * (2 - 1j))

    x = torch.arange(6.0).reshape(3, 2)
    (found,) = run(ttcodegen.torch.export(Module().eval(), (x,)), x.numpy())
    np.testing.assert_allclose(found, Module()(x).numpy())


def test_what_is_not_known_of_complex_numbers_is_refused() -> None:
    class Sine(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.view_as_real(torch.view_as_complex(x).sin())

    with pytest.raises(CompileError, match="'sin' of complex numbers is not supported") as caught:
        ttcodegen.torch.export(Sine().eval(), (torch.randn(3, 2),))
    assert "pairs of real tensors" in (caught.value.diagnostics[0].remedy or "")


class Cached(torch.nn.Module):
    """A step of a decoder that keeps its keys in a buffer, and counts in another one."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("keys", torch.zeros(1, 2, 16, 8))
        self.register_buffer("steps", torch.zeros(1, dtype=torch.int32), persistent=False)
        self.project = torch.nn.Linear(16, 16)

    def forward(self, x: torch.Tensor, place: torch.Tensor) -> torch.Tensor:
        key = self.project(x).view(1, 1, 2, 8).transpose(1, 2)
        self.keys[:, :, place] = key
        self.steps += 1
        return torch.matmul(key, self.keys.transpose(-1, -2)).softmax(-1)


@pytest.mark.slow
def test_buffers_that_change_go_in_and_come_out(tmp_path: Path) -> None:
    torch.manual_seed(1)
    module = Cached().eval()
    steps = [(torch.randn(1, 1, 16), torch.tensor([place])) for place in (3, 0)]
    out = ttcodegen.torch.compile(module, steps[0], out=tmp_path / "out", check=True, build=True)
    assert not module.keys.any(), "the check left its traces in the module"
    buffers = {name: each.numpy() for name, each in module.named_buffers()}
    with ttcodegen.load(out) as model:
        for x, place in steps:
            scores, buffers = model.forward(x, place.int(), buffers=buffers)
            expected = module(x, place).detach()
            torch.testing.assert_close(torch.from_numpy(scores), expected, rtol=1e-2, atol=1e-2)
    np.testing.assert_allclose(buffers["keys"], module.keys.detach(), rtol=1e-2, atol=1e-2)
    assert buffers["steps"] == [2]


class StaticCache(torch.nn.Module):
    """Keys and values of fixed length, as transformers keeps them."""

    def __init__(self) -> None:
        super().__init__()
        for name in ("keys", "values"):
            self.register_buffer(name, torch.zeros(2, 2, 64, 32, dtype=torch.bfloat16))
        self.register_buffer("inv_freq", torch.ones(32, dtype=torch.bfloat16))

    def forward(self, x: Any, place: Any) -> Any:
        self.keys.index_copy_(2, place, x * self.inv_freq)
        self.values[:, :, place] = x + 1
        return self.keys.float().sum(-1) + self.values.float().sum(-1)


def test_a_step_of_a_cache_writes_its_row() -> None:
    x = torch.randn(2, 2, 1, 32, dtype=torch.bfloat16)
    text = ttcodegen.torch.export(StaticCache().eval(), (x, torch.tensor([5])))
    assert text.count('"ttir.update_cache"') == 2
    assert "scatter" not in text
    several = torch.randn(2, 2, 3, 32, dtype=torch.bfloat16)
    text = ttcodegen.torch.export(StaticCache().eval(), (several, torch.tensor([5, 6, 7])))
    assert "update_cache" not in text


def test_a_cache_that_is_read_before_it_changes_is_copied() -> None:
    class Compared(StaticCache):
        def forward(self, x: Any, place: Any) -> Any:
            before = self.keys.float()
            self.keys.index_copy_(2, place, x)
            return self.keys.float() - before

    x = torch.randn(2, 2, 1, 32, dtype=torch.bfloat16)
    text = ttcodegen.torch.export(Compared().eval(), (x, torch.tensor([5])))
    assert "update_cache" not in text


@pytest.mark.slow
def test_all_buffers_may_be_given(tmp_path: Path) -> None:
    module = StaticCache().eval()
    x, place = torch.randn(2, 2, 1, 32, dtype=torch.bfloat16), torch.tensor([5])
    ttcodegen.torch.compile(module, (x, place), out=tmp_path / "out", check=True)
    model = ttcodegen.load(tmp_path / "out")
    buffers = {name: each.float().numpy() for name, each in module.named_buffers()}
    scores, buffers = model.forward(x.float().numpy(), place.numpy(), buffers=buffers)
    assert sorted(buffers) == ["keys", "values"]
    np.testing.assert_allclose(scores, module(x, place).numpy(), atol=0.2)


def test_arguments_that_change_are_results_as_well() -> None:
    class Update(torch.nn.Module):
        def forward(self, x: torch.Tensor, cache: torch.Tensor, place: torch.Tensor) -> Any:
            cache.index_copy_(0, place, x)
            return cache.sum(1)

    x, cache = torch.ones(1, 3), torch.arange(12.0).reshape(4, 3)
    text = ttcodegen.torch.export(Update().eval(), (x, cache, torch.tensor([2])))
    total, changed = run(text, x.numpy(), cache.numpy(), np.asarray([2], np.int32))
    np.testing.assert_array_equal(changed, [[0, 1, 2], [3, 4, 5], [1, 1, 1], [9, 10, 11]])
    np.testing.assert_array_equal(total, changed.sum(1))
    assert 'ttir.name = "new.cache"' in text


def test_a_buffer_that_changes_needs_a_name_of_its_own() -> None:
    class Counted(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("x", torch.zeros(3))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.x += x
            return self.x * 2

    with pytest.raises(CompileError, match=r"two arguments and buffers .* have one name: x"):
        ttcodegen.torch.export(Counted().eval(), (torch.ones(3),))


def test_what_is_no_module_is_refused_where_it_is_given() -> None:
    with pytest.raises(CompileError, match=r"expected a torch\.nn\.Module, found dict") as caught:
        ttcodegen.torch.export({}, (torch.ones(4),))
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.place is not None
    assert diagnostic.place.file == __file__
    assert diagnostic.remedy
