"""Training steps of PyTorch: gradients inside a module, and exported joint graphs."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: pip install torch")

from ttcodegen.frontends import read_module  # noqa: E402
from ttcodegen.frontends.torch.decompositions import decomposition_of  # noqa: E402
from ttcodegen.numerics.golden_values import Golden  # noqa: E402
from ttcodegen.torch import CompileError, functions_of, model_of  # noqa: E402
from ttcodegen.torch import compile as compile_torch  # noqa: E402

pytestmark = [pytest.mark.frameworks, pytest.mark.filterwarnings("ignore")]
functional: Any = torch.nn.functional

CONVOLUTIONS = [
    # channels in and out, kernel, stride, padding, dilation, groups, transposed, output padding
    (4, 6, 3, 1, 0, 1, 1, False, 0),
    (4, 6, 3, 2, 1, 1, 2, False, 0),
    (4, 4, 2, 2, 0, 2, 4, False, 0),
    (4, 8, 3, 3, 2, 2, 4, False, 0),
    (3, 3, 1, 2, 0, 1, 1, False, 0),
    (4, 6, 3, 2, 1, 1, 2, True, 1),
    (6, 4, 2, 1, 0, 2, 1, True, 0),
]


@pytest.mark.parametrize("spatial", [1, 2, 3])
@pytest.mark.parametrize("case", CONVOLUTIONS)
def test_gradients_of_convolutions_are_those_of_torch(spatial: int, case: Any) -> None:
    torch.manual_seed(0)
    given, made, kernel, stride, padding, dilation, groups, transposed, rest = case
    x = torch.randn(2, given, *[9, 11, 8][:spatial], requires_grad=True)
    shape = (given, made // groups) if transposed else (made, given // groups)
    weight = torch.randn(*shape, *[kernel] * spatial, requires_grad=True)
    bias = torch.randn(made, requires_grad=True)
    window = [stride] * spatial, [padding] * spatial, [dilation] * spatial
    kind = transposed, [rest] * spatial, groups
    y = torch.ops.aten.convolution(x, weight, bias, *window, *kind)
    gradient = torch.randn_like(y)
    expected = torch.autograd.grad(y, (x, weight, bias), gradient)
    decomposition = decomposition_of("convolution_backward", "default")
    assert decomposition is not None
    found = decomposition(gradient, x.detach(), weight.detach(), [made], *window, *kind, [True] * 3)
    for actual, wanted in zip(found, expected, strict=True):
        torch.testing.assert_close(actual, wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "case",
    [
        ([2], [2], [0], False, True, None),
        ([3], [2], [1], False, True, None),
        ([3], [2], [1], False, False, None),
        ([3], [2], [1], True, False, None),
        ([3], [2], [1], True, True, None),
        ([3], [], [0], True, True, None),
        ([2, 3], [1, 2], [1, 0], False, True, 5),
    ],
)
def test_gradients_of_average_pools_are_those_of_torch(case: Any) -> None:
    x = torch.randn(2, 3, 8, 11, requires_grad=True)
    y = torch.ops.aten.avg_pool2d(x, *case)
    gradient = torch.randn_like(y)
    (expected,) = torch.autograd.grad(y, x, gradient)
    decomposition = decomposition_of("avg_pool2d_backward", "default")
    assert decomposition is not None
    torch.testing.assert_close(decomposition(gradient, x.detach(), *case), expected)


@pytest.mark.parametrize("size", [[1, 1], [3, 4], [7, 8]])
def test_gradients_of_adaptive_pools_are_those_of_torch(size: list[int]) -> None:
    x = torch.randn(2, 3, 7, 11, requires_grad=True)
    y = torch.ops.aten._adaptive_avg_pool2d(x, size)
    gradient = torch.randn_like(y)
    (expected,) = torch.autograd.grad(y, x, gradient)
    decomposition = decomposition_of("_adaptive_avg_pool2d_backward", "default")
    assert decomposition is not None
    torch.testing.assert_close(decomposition(gradient, x.detach()), expected)


@pytest.mark.parametrize("is_causal", [False, True])
def test_gradients_of_attention_are_those_of_torch(is_causal: bool) -> None:
    tensors = [torch.randn(2, 2, 5, 8, requires_grad=True) for _ in range(3)]
    name = "_scaled_dot_product_flash_attention_for_cpu"
    y, sums = getattr(torch.ops.aten, name)(*tensors, 0.0, is_causal)
    gradient = torch.randn_like(y)
    expected = torch.autograd.grad(y, tensors, gradient)
    decomposition = decomposition_of(f"{name}_backward", "default")
    assert decomposition is not None
    held = [each.detach() for each in tensors]
    found = decomposition(gradient, *held, y.detach(), sums.detach(), 0.0, is_causal)
    torch.testing.assert_close(found, expected)


def block() -> Any:
    """A transformer's layer with its embedding and head."""

    class Block(torch.nn.Module):
        def __init__(self) -> None:
            torch.nn.Module.__init__(self)
            torch.manual_seed(0)
            self.table = torch.nn.Embedding(20, 32)
            self.norm = torch.nn.LayerNorm(32)
            self.qkv = torch.nn.Linear(32, 96)
            self.mlp = torch.nn.Sequential(
                torch.nn.Linear(32, 64), torch.nn.GELU(), torch.nn.Linear(64, 32)
            )
            self.head = torch.nn.Linear(32, 20)

        def forward(self, tokens: Any) -> Any:
            h = self.table(tokens)
            batch, length, _ = h.shape
            parts = self.qkv(self.norm(h)).view(batch, length, 3, 2, 16).permute(2, 0, 3, 1, 4)
            attended = functional.scaled_dot_product_attention(*parts.unbind(0), is_causal=True)
            h = h + attended.transpose(1, 2).reshape(batch, length, 32)
            return self.head(h + self.mlp(h)).flatten(0, 1)

    return Block()


def network() -> Any:
    """A small CNN with a batch norm of the statistics of its input."""
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3, padding=1, bias=False),
        torch.nn.BatchNorm2d(8, track_running_stats=False),
        torch.nn.ReLU(),
        torch.nn.MaxPool2d(2),
        torch.nn.Conv2d(8, 8, 3, stride=2, padding=1),
        torch.nn.ReLU(),
        torch.nn.AdaptiveAvgPool2d(1),
        torch.nn.Flatten(),
        torch.nn.Linear(8, 5),
    )


def training(model: Any) -> Any:
    """A step of Adam, with parameters and moments as buffers."""

    class Step(torch.nn.Module):
        def __init__(self) -> None:
            torch.nn.Module.__init__(self)
            self.model = model
            self.names = [name for name, _ in model.named_parameters()]
            self.register_buffer("count", torch.zeros(()))
            for name, value in model.named_parameters():
                flat = name.replace(".", "_")
                self.register_buffer(f"value_{flat}", value.detach().clone())
                self.register_buffer(f"mean_{flat}", torch.zeros_like(value))
                self.register_buffer(f"square_{flat}", torch.zeros_like(value))

        def of(self, kind: str, name: str) -> Any:
            return getattr(self, f"{kind}_{name.replace('.', '_')}")

        def forward(self, x: Any, labels: Any) -> Any:
            def loss(values: Any) -> Any:
                found = torch.func.functional_call(self.model, values, (x,))
                return functional.cross_entropy(found, labels)

            values = {name: self.of("value", name) for name in self.names}
            gradients, found = torch.func.grad_and_value(loss)(values)
            self.count.add_(1)
            for name in self.names:
                gradient, mean, square = (
                    gradients[name], self.of("mean", name), self.of("square", name)
                )  # fmt: skip
                mean.lerp_(gradient, 0.1)
                square.mul_(0.99).addcmul_(gradient, gradient, value=0.01)
                root = (square / (1 - 0.99**self.count)).sqrt() + 1e-2
                self.of("value", name).sub_(0.01 * mean / (1 - 0.9**self.count) / root)
            return found

    return Step()


def test_a_training_step_is_recorded_with_its_names(tmp_path: Path) -> None:
    labels = torch.tensor([0, 1, 2, 3])
    step = training(network().eval())
    out = compile_torch(step, (torch.randn(4, 3, 8, 8), labels), out=tmp_path / "out")
    header = (out / "src" / "step.hpp").read_text("utf-8")
    for name in ("x", "labels", "value_0_weight", "mean_8_bias", "square_4_weight", "count"):
        assert f" {name};" in header


def _of_transforms(kind: str) -> Any:
    weight = torch.linspace(-1, 1, 12).reshape(4, 3)

    def loss(w: Any, x: Any) -> Any:
        return ((x @ w).tanh() ** 2).mean()

    def each(w: Any, x: Any) -> Any:
        return torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0))(w, x)

    class Transformed(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            if kind == "gradients of each row":
                return each(weight, x)
            if kind == "second derivatives":
                return torch.func.hessian(functools.partial(loss, weight))(x[0])
            return torch.func.jacrev(torch.sin)(x[0])

    return Transformed()


@pytest.mark.parametrize(
    "kind", ["gradients of each row", "second derivatives", "derivatives of vectors"]
)
def test_transforms_of_functions_are_recorded(kind: str) -> None:
    """One in another: torch.export ends with an error of its own."""
    module, x = _of_transforms(kind), torch.linspace(-1, 2, 20).reshape(5, 4)
    model = model_of(functions_of(module, (x,), {}), run=False)
    golden = Golden(read_module(model.source))
    (found,) = golden.run("forward", [*model.functions[0].weights.values(), x.numpy()])
    torch.testing.assert_close(torch.from_numpy(found), module(x), rtol=1e-5, atol=1e-6)


def test_values_must_not_decide(tmp_path: Path) -> None:
    class Deciding(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            def square(value: Any) -> Any:
                return (value * value).sum()

            gradient = torch.func.grad(square)(x)
            return gradient if gradient.sum() > 0 else -gradient

    with pytest.raises(CompileError, match="depends on the values of a tensor"):
        compile_torch(Deciding(), (torch.ones(3),), out=tmp_path / "out")


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["cnn", "transformer"])
def test_training_steps_agree(kind: str, tmp_path: Path) -> None:
    if kind == "cnn":
        step = training(network().train())
        examples = [
            (torch.randn(4, 3, 8, 8), torch.tensor([0, 1, 2, 3])),
            (torch.randn(4, 3, 8, 8), torch.tensor([4, 3, 2, 1])),
        ]
    else:
        step = training(block())
        examples = [(torch.randint(0, 20, (2, 16)), torch.randint(0, 20, (32,))) for _ in range(2)]
    further = [("step", each) for each in examples[1:]]
    compile_torch({"step": (step, examples[0])}, out=tmp_path / "out", check=True, steps=further)


@pytest.mark.slow
def test_an_exported_joint_graph_agrees(tmp_path: Path) -> None:
    experimental = pytest.importorskip("torch.export.experimental")
    model = block()

    class Loss(torch.nn.Module):
        def __init__(self) -> None:
            torch.nn.Module.__init__(self)
            self.model = model

        def forward(self, tokens: Any, labels: Any) -> Any:
            return functional.cross_entropy(self.model(tokens), labels)

    torch.manual_seed(1)
    example = torch.randint(0, 20, (2, 16)), torch.randint(0, 20, (32,))
    # With the fused kernel torch's own joint graph gives other gradients than torch.
    math = torch.nn.attention.SDPBackend.MATH
    with torch.nn.attention.sdpa_kernel(math):
        program = experimental._export_forward_backward(torch.export.export(Loss(), example))
    out = compile_torch(program, example, out=tmp_path / "out", check=True)
    import ttcodegen

    Loss()(*example).backward()
    with ttcodegen.load(out) as loaded:
        loss, gradients = loaded(*(each.numpy() for each in example))
        assert loss.shape == ()
        assert set(gradients) == {f"model.{name}" for name, _ in model.named_parameters()}
        for name, value in model.named_parameters():
            found = torch.from_numpy(gradients[f"model.{name}"])
            difference = (found - value.grad).abs().max()
            assert difference < 0.03 * value.grad.abs().max(), name
