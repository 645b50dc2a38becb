"""Settings, branches and loops of PyTorch, which hold graphs of their own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: pip install torch")

import ttcodegen.torch  # noqa: E402
from tests.frontends.running import run  # noqa: E402
from ttcodegen.foundation.diagnostics import CompileError  # noqa: E402
from ttcodegen.frontends.torch.graph import tensor_array  # noqa: E402
from ttcodegen.torch.exporting import Example  # noqa: E402

pytestmark = [pytest.mark.frameworks, pytest.mark.filterwarnings("ignore")]
nn = torch.nn
MATRIX = torch.arange(16.0).reshape(4, 4).sin()


class WithLinear(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)


class Autocast(WithLinear):
    def forward(self, x: Any) -> Any:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = self.linear(x)
        return y, y.float() + 1


class AutocastThatIsOff(nn.Module):
    def forward(self, x: Any) -> Any:
        with torch.autocast("cpu", enabled=False):
            y = x * 2
        return y + 1


class Gradients(WithLinear):
    def forward(self, x: Any) -> Any:
        with torch.enable_grad():
            y = self.linear(x)
        with torch.no_grad():
            return self.linear(y)


class Branches(nn.Module):
    def forward(self, x: Any) -> Any:
        def rising(x: Any) -> Any:
            return x + 1, x.sinh()

        def falling(x: Any) -> Any:
            return x - 1, -x

        return torch.cond(x.sum() > 0, rising, falling, (x,))


class Loop(nn.Module):
    def forward(self, x: Any) -> Any:
        from torch._higher_order_ops.while_loop import while_loop

        def goes_on(i: Any, _: Any) -> Any:
            return i < 5

        def body(i: Any, x: Any) -> Any:
            return i + 1, x.cosh() + i

        return while_loop(goes_on, body, (torch.zeros((), dtype=torch.int64), x))


class AsLongAsValuesSay(WithLinear):
    def forward(self, x: Any) -> Any:
        from torch._higher_order_ops.while_loop import while_loop

        def goes_on(i: Any, x: Any) -> Any:
            return (x.sum() < 5) & (i < 40)

        def body(i: Any, x: Any) -> Any:
            return i + 1, x * 0.5 + self.linear(x).abs()

        return while_loop(goes_on, body, (torch.zeros((), dtype=torch.int64), x))


class Scan(nn.Module):
    def forward(self, x: Any) -> Any:
        from torch._higher_order_ops.scan import scan

        return scan(lambda carry, row: (carry + row, carry * row), torch.zeros(4), x)


class Map(nn.Module):
    def forward(self, x: Any) -> Any:
        from torch._higher_order_ops.map import map as mapped

        return mapped(lambda row: row.sin() + row.sum(), x)


class Slopes(WithLinear):
    """Gradients that the model itself computes."""

    def forward(self, x: Any) -> Any:
        def loss(parameters: Any) -> Any:
            return torch.func.functional_call(self.linear, parameters, (x,)).pow(2).mean()

        return torch.func.grad(loss)(dict(self.linear.named_parameters()))


@pytest.mark.parametrize(
    "model",
    [Autocast, AutocastThatIsOff, Gradients, Branches, Loop, AsLongAsValuesSay, Scan, Map, Slopes],
)
def test_regions(model: type[Any]) -> None:
    torch.manual_seed(0)
    module = model().eval()
    example = Example(module, (MATRIX,), {})
    exported = ttcodegen.torch.model_of({"main": example}, run=False)
    weights = list(exported.functions[0].weights.values())
    for x in (MATRIX, -MATRIX - 1):
        expected = torch.utils._pytree.tree_leaves(module(x))
        found = run(exported.source.text, *_in_order(exported, weights, tensor_array(x)))
        for array, tensor in zip(found, expected, strict=True):
            is_half = tensor.dtype == torch.bfloat16
            wanted = tensor_array(tensor).astype(np.float64)
            rough = 2e-2 if is_half or model is Autocast else 1e-5
            np.testing.assert_allclose(array, wanted, rtol=rough, atol=rough)


def _in_order(exported: Any, weights: list[Any], x: Any) -> list[Any]:
    """The arguments in the order of the function: its parameters come first."""
    return [*weights, x] if "argument_type<parameter>" in exported.source.text else [x]


def test_what_only_checks_is_left_out() -> None:
    """Factorizations check their operand, in the order of effects."""

    class Checked(nn.Module):
        def forward(self, x: Any) -> Any:
            torch._assert_async(x.sum() < 100)
            return x + 1

    text = ttcodegen.torch.export(Checked().eval(), (MATRIX,))
    (found,) = run(text, MATRIX.numpy())
    np.testing.assert_allclose(found, MATRIX.numpy() + 1)


def test_numbers_that_only_checks_read_are_left_out() -> None:
    class Checked(nn.Module):
        def forward(self, x: Any) -> Any:
            torch._check((x > 0).sum().item() <= 16)
            return x + 1

    text = ttcodegen.torch.export(Checked().eval(), (MATRIX,))
    (found,) = run(text, MATRIX.numpy())
    np.testing.assert_allclose(found, MATRIX.numpy() + 1)


def test_a_number_that_is_the_value_of_a_tensor_is_refused_at_its_line() -> None:
    class Parts(nn.Module):
        def forward(self, x: Any) -> Any:
            return x * (x > 0).sum().item()

    with pytest.raises(CompileError, match="a number that is the value of a tensor") as refused:
        ttcodegen.torch.export(Parts().eval(), (MATRIX,))
    assert "test_torch_regions.py" in str(refused.value)


@pytest.mark.parametrize("name", ["inv", "cholesky", "solve"])
def test_the_checks_of_factorizations_do_not_matter(name: str) -> None:
    class Factorized(nn.Module):
        def forward(self, x: Any) -> Any:
            arguments = (x, x) if name == "solve" else (x,)
            return getattr(torch.linalg, name)(*arguments)

    square = MATRIX @ MATRIX.T + 3 * torch.eye(4)
    said, found = "", None
    try:
        text = ttcodegen.torch.export(Factorized().eval(), (square,))
        (found,) = run(text, square.numpy())
    except CompileError as error:
        said = str(error)
    if found is None:
        assert "there is no rule for the operation" in said
        assert said.count("error:") == 1
    else:
        wanted = Factorized()(square).numpy()
        np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-4)
