"""Quotients, paddings and arguments of PyTorch whose values rounding or merging easily changes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch: Any = pytest.importorskip("torch", reason="torch is not installed: pip install torch")

import ttcodegen.torch  # noqa: E402
from tests.frontends.running import run  # noqa: E402

pytestmark = [pytest.mark.frameworks, pytest.mark.filterwarnings("ignore")]
nan, inf = float("nan"), float("inf")


def as_torch_has_it(module: Any, *inputs: Any) -> None:
    """Requires equal integers, and floats within a few units in the last place."""
    text = ttcodegen.torch.export(module.eval(), inputs)
    found = run(text, *(each.numpy() for each in inputs))
    for index, (array, tensor) in enumerate(zip(found, module(*inputs), strict=True)):
        tolerance = 1e-5 if tensor.is_floating_point() else 0.0
        np.testing.assert_allclose(
            array, tensor.numpy(), rtol=tolerance, atol=tolerance / 10, err_msg=f"result {index}"
        )


def test_floats_are_divided_to_whole_numbers_by_their_remainder() -> None:
    class Divided(torch.nn.Module):
        def forward(self, x: Any, y: Any) -> Any:
            return (
                x // y,
                torch.floor_divide(x, 0.1),
                torch.div(x, y, rounding_mode="trunc"),
                torch.fmod(x, y),
                torch.fmod(x, 0.1),
                torch.heaviside(x, torch.tensor(0.5)),
            )

    x = [1, -1, 0.3, 6, -6, 1e10, 1e8, -1e-20, 7.5, -7.5, 5, 16777216, inf, -1, 4, nan]
    y = [0.1, 0.1, -0.1, 0.3, 0.2, 3, 0.7, 3, 2.5, 2.5, 1e10, 3, 2, inf, 0, 1]
    as_torch_has_it(Divided(), torch.tensor(x), torch.tensor(y))


def test_weights_of_zero_and_one_give_the_ends() -> None:
    class Between(torch.nn.Module):
        def forward(self, x: Any, y: Any, w: Any) -> Any:
            return torch.lerp(x, y, 0.0), torch.lerp(x, y, 1.0), torch.lerp(x, y, w)

    ends = torch.tensor([1e10, inf, -2.0]), torch.tensor([1.0, 3.0, 7.0])
    as_torch_has_it(Between(), *ends, torch.tensor([1.0, 0.75, 0.25]))


def test_integers_are_padded_with_numbers_beyond_float32() -> None:
    class Padded(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            pad = torch.nn.functional.pad
            return pad(x, (1, -1, 0, 2), value=16777217), pad(x, (-2, 2), value=-123456789)

    as_torch_has_it(Padded(), torch.tensor([[7, -5, 3], [1, 5, 2147483647]], dtype=torch.int32))


def test_a_tensor_that_is_given_twice_is_two_arguments() -> None:
    class Difference(torch.nn.Module):
        def forward(self, x: Any, y: Any, *, z: Any) -> Any:
            return x - 2 * y + 3 * z

    same = torch.ones(3)
    text = ttcodegen.torch.export(Difference().eval(), (same, same), {"z": same})
    inputs = [np.full(3, value, np.float32) for value in (10, 2, 5)]
    np.testing.assert_array_equal(run(text, *inputs)[0], [21.0, 21.0, 21.0])


def test_windows_larger_than_the_image_that_round_up_reach_its_ends() -> None:
    """As the last pools of EfficientNet, whose windows are as large as there are channels."""

    class Pooled(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            F = torch.nn.functional
            return (
                F.avg_pool2d(x, 64, ceil_mode=True),
                F.avg_pool2d(x, (9, 3), padding=1, stride=9, ceil_mode=True),
                F.avg_pool2d(x, 9, padding=1, ceil_mode=True, count_include_pad=False),
                F.max_pool2d(x, 64, ceil_mode=True),
                F.max_pool2d(x, (2, 3), stride=9, dilation=(9, 4), ceil_mode=True),
                F.avg_pool1d(x[0], 64, ceil_mode=True),
                F.max_pool3d(x[None], (2, 64, 64), ceil_mode=True),
            )

    as_torch_has_it(Pooled(), torch.arange(120.0).reshape(1, 4, 5, 6).sin())


def test_places_that_are_filled_count_from_the_end() -> None:
    class Filled(torch.nn.Module):
        def forward(self, x: Any, at: Any, value: Any) -> Any:
            return (
                torch.index_fill(x, 1, torch.tensor([0, -1]), 7),
                torch.index_fill(x, 0, at, value),
                torch.index_fill(x[0, 0], 0, at[:1], 7),
                torch.take(x, at * 3),
            )

    x = torch.arange(12.0).reshape(3, 4)
    as_torch_has_it(Filled(), x, torch.tensor([-1, 0]), torch.tensor(5.0))


def test_logarithms_of_sigmoids_are_no_logarithms_of_nothing() -> None:
    class LogSigmoid(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return torch.nn.functional.logsigmoid(x), -1 / torch.nn.functional.logsigmoid(x)

    x = [0, -0.0, 1, -1, 16, 30, 80, -80, -104, -1e10, -3e38, 3, inf, -inf, nan]
    as_torch_has_it(LogSigmoid(), torch.tensor(x))
