"""Exports of PyTorch modules: sizes that known values say, and refusals of what torch does not
follow, each in one line at the line of the model and without what torch prints."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: pip install torch")

import ttcodegen.torch  # noqa: E402
from tests.frontends.running import run  # noqa: E402
from ttcodegen.foundation.diagnostics import CompileError  # noqa: E402

pytestmark = [pytest.mark.frameworks, pytest.mark.filterwarnings("ignore")]
MATRIX = torch.arange(12.0).reshape(3, 4).sin()


class OfBuffers(torch.nn.Module):
    """Calls a function with the module, which has counts and masks."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function
        self.register_buffer("counts", torch.tensor([1, 0, 3]))
        self.register_buffer("mask", torch.tensor([[True, False, True, True], [False] * 4] * 2)[:3])
        self.rows = torch.tensor([True, False, True])

    def forward(self, x: Any) -> Any:
        return self.function(self, x)


@pytest.mark.parametrize(
    "function",
    [
        lambda m, x: x.repeat_interleave(torch.tensor([2, 0, 1]), 0),
        lambda m, x: x.repeat_interleave(m.counts, dim=0),
        lambda m, x: torch.repeat_interleave(m.counts),
        lambda m, x: torch.repeat_interleave(x, torch.tensor([2]), dim=1),
        lambda m, x: torch.repeat_interleave(x, torch.tensor([3])),
        lambda m, x: x[m.mask],
        lambda m, x: x[m.rows],
        lambda m, x: x[m.rows, 1:],
        lambda m, x: x[:, torch.tensor([False, True, True, False])],
    ],
)
def test_sizes_follow_from_values_that_are_known(function: Callable[..., Any]) -> None:
    module = OfBuffers(function).eval()
    expected = module(MATRIX)
    (found,) = run(ttcodegen.torch.export(module, (MATRIX,)), MATRIX.numpy())
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected.numpy(), atol=1e-6)


def _counts_that_change(module: OfBuffers, x: Any) -> Any:
    repeated = x.repeat_interleave(module.counts, dim=0)
    module.counts.add_(1)
    return repeated


def _counts_written_in_place(_: OfBuffers, x: Any) -> Any:
    counts = torch.tensor([1, 1, 1])
    counts[0] = x[0].sum().long()
    return x.repeat_interleave(counts, dim=0)


def test_a_tensor_that_changes_has_to_be_a_buffer() -> None:
    class Counting(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.calls = torch.zeros(1)

        def forward(self, x: Any) -> Any:
            self.calls.add_(1)
            return x + self.calls

    with pytest.raises(CompileError) as caught:
        ttcodegen.torch.export(Counting().eval(), (MATRIX,))
    (diagnostic,) = caught.value.diagnostics
    assert "changes a tensor that is neither an argument nor a buffer" in diagnostic.message
    assert "register_buffer" in str(diagnostic.remedy)
    assert diagnostic.place is not None
    assert diagnostic.place.file == __file__


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda m, x: x + 1 if x.sum() > 0 else x - 1, "flow of control, or a number"),
        (lambda m, x: x[:, : int(x.sum().item())], "flow of control, or a number"),
        (lambda m, x: torch.from_numpy(np.tanh(x.numpy())), "converted to numpy"),
        (lambda m, x: x @ x, "the module fails on its example: RuntimeError: mat1 and mat2"),
        (lambda m, x: x + m.nothing, "the module fails on its example: AttributeError"),
        (lambda m, x: x[x > 0], "shape of the result of 'index' depends on the values"),
        (lambda m, x: x.repeat_interleave(x[:, 0].long(), 0), "result of 'repeat_interleave'"),
        (_counts_written_in_place, "result of 'repeat_interleave' depends on the values"),
        (_counts_that_change, "a size depends on the values of 'counts', which the model changes"),
    ],
)
def test_what_torch_cannot_follow_is_refused_in_one_line(
    function: Callable[..., Any], message: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(CompileError) as caught:
        ttcodegen.torch.export(OfBuffers(function).eval(), (MATRIX,))
    (diagnostic,) = caught.value.diagnostics
    assert message in diagnostic.message
    assert "\n" not in diagnostic.message
    assert diagnostic.remedy
    assert diagnostic.place is not None
    assert diagnostic.place.file == __file__
    assert capfd.readouterr() == ("", "")


def test_what_a_module_prints_and_logs_is_seen(capfd: pytest.CaptureFixture[str]) -> None:
    logger = logging.getLogger("torch.fx.experimental.symbolic_shapes")
    filters = [list(handler.filters) for handler in logger.handlers]

    def function(_: OfBuffers, x: Any) -> Any:
        import sys

        print("one step", file=sys.stderr)
        return x + 1

    ttcodegen.torch.export(OfBuffers(function).eval(), (MATRIX,))
    assert "one step" in capfd.readouterr().err
    assert [list(handler.filters) for handler in logger.handlers] == filters


class Rows:
    """A cache that is no module, as the layers of a cache of transformers are none."""

    def __init__(self) -> None:
        self.keys = torch.zeros(1, 2, 64, 32, dtype=torch.bfloat16)


class Stepped(torch.nn.Module):
    """A step that writes a row to such a cache, whose tensors are buffers of the module."""

    def __init__(self) -> None:
        super().__init__()
        self.rows = Rows()
        self.register_buffer("keys", self.rows.keys)

    def forward(self, x: Any, place: Any) -> Any:
        self.rows.keys.index_copy_(2, place, x)
        return self.rows.keys.float().sum(-1)


def test_buffers_that_an_object_holds_are_buffers() -> None:
    """torch takes them for constants, and loses what is written to them."""
    x = torch.arange(64.0).reshape(1, 2, 1, 32).sin().bfloat16()
    module, place = Stepped().eval(), torch.tensor([5])
    before = torch.full((1, 2, 64, 32), 0.5)
    text = ttcodegen.torch.export(module, (x, place))
    assert text.count('"ttir.update_cache"') == 1
    given = {"x": x.float(), "place": place, "keys": before}
    names = re.findall(r'%\w+: [^%]*?ttir.name = "(\w+)"', text.partition("->")[0])
    scores, keys = run(text, *(given[name].numpy() for name in names))
    after = before.index_copy(2, place, x.float())
    np.testing.assert_allclose(keys.astype(np.float32), after.numpy())
    np.testing.assert_allclose(scores, after.sum(-1).numpy(), rtol=1e-2)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("qwen3", {}),
        ("mistral", {"sliding_window": None}),
        ("gemma3_text", {"sliding_window": 64, "query_pre_attn_scalar": 32}),
    ],
)
def test_static_caches_of_transformers_are_written_row_by_row(
    kind: str, options: dict[str, Any]
) -> None:
    transformers = pytest.importorskip("transformers")
    exporter = pytest.importorskip("transformers.integrations.executorch")
    config = transformers.AutoConfig.for_model(
        kind, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
        intermediate_size=128, vocab_size=128, max_position_embeddings=64, head_dim=32, **options,
    )  # fmt: skip
    model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="sdpa")
    model = model.bfloat16().eval()
    model.generation_config = transformers.GenerationConfig(
        use_cache=True, cache_implementation="static", max_length=64,
        cache_config={"batch_size": 1, "max_cache_len": 64},
    )  # fmt: skip
    module = exporter.TorchExportableModuleWithStaticCache(
        model, batch_size=1, max_cache_len=64, device="cpu"
    )
    step = OnTokens(module).eval()
    text = ttcodegen.torch.export(step, (torch.tensor([[5]]), torch.tensor([7])))
    assert text.count('"ttir.update_cache"') == 4
    assert '"ttir.scatter"' not in text


class OnTokens(torch.nn.Module):
    """A step of a decoder with named arguments."""

    def __init__(self, module: Any) -> None:
        super().__init__()
        self.module = module

    def forward(self, tokens: Any, place: Any) -> Any:
        return self.module(input_ids=tokens, cache_position=place)
