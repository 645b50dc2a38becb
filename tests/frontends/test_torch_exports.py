"""Exports of PyTorch modules: sizes that known values say, and refusals of what torch does not
follow, each in one line at the line of the model and without what torch prints."""

from __future__ import annotations

import logging
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
