"""Formulas of PyTorch that rules of fusing and simplification match, or nearly match, on NaN,
infinities, zeros of both signs and ties, with their operands in either order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch: Any = pytest.importorskip("torch", reason="torch is not installed: pip install torch")

import ttcodegen.torch  # noqa: E402
from ttcodegen.compilation import CompileOptions, compile_module  # noqa: E402
from ttcodegen.foundation.diagnostics import Source  # noqa: E402
from ttcodegen.project.checking import run_in_numpy  # noqa: E402

pytestmark = [pytest.mark.frameworks, pytest.mark.filterwarnings("ignore")]
nan, inf = float("nan"), float("inf")
F = torch.nn.functional
X = torch.tensor(
    [
        [1, nan, 3, 2], [nan] * 4, [-inf, inf, 0.0, -0.0], [-inf] * 4,
        [2, 2, 1, 1], [1e15, -1e15, 6, 3],
    ]
)  # fmt: skip
Y = torch.tensor(
    [
        [nan, 1, 2, -0.0], [0.0, 1, nan, inf], [inf, -inf, -0.0, 0.0], [-inf, inf, 1, nan],
        [2, 1, 2, 1], [6, 0.0, -3, nan],
    ]
)  # fmt: skip
ZERO, ONE, SIX = torch.zeros(4), torch.ones(4), torch.full((4,), 6.0)


def shifted_softmax(x: Any) -> Any:
    powers = torch.exp(x - x.amax(1, keepdim=True))
    return powers / powers.sum(1, keepdim=True)


def layer_norm(x: Any) -> Any:
    variance = x.var(1, keepdim=True, unbiased=False)
    return (x - x.mean(1, keepdim=True)) * torch.rsqrt(variance + 1e-05)


FORMULAS: dict[str, Any] = {
    "relu_max0": lambda x, y: torch.maximum(x, torch.zeros(())),
    "relu_0max": lambda x, y: torch.maximum(ZERO, x),
    "where_gt": lambda x, y: torch.where(x > 0, x, 0.0),
    "where_ge": lambda x, y: torch.where(x >= 0, x, 0.0),
    "where_lt": lambda x, y: torch.where(x < 0, 0.0, x),
    "where_le": lambda x, y: torch.where(x <= 0, 0.0, x),
    "where_0lt": lambda x, y: torch.where(0 < x, x, torch.zeros_like(x)),
    "where_0gt": lambda x, y: torch.where(ZERO > x, ZERO, x),
    "mask_mul": lambda x, y: x * (x > 0),
    "mask_mul2": lambda x, y: (x > 0).float() * x,
    "relu6": lambda x, y: F.relu6(x),
    "min_max": lambda x, y: torch.minimum(torch.maximum(x, ZERO), SIX),
    "max_min": lambda x, y: torch.maximum(
        torch.full((4,), 0.0), torch.minimum(torch.full((4,), 6.0), x)
    ),
    "leaky": lambda x, y: torch.where(x > 0, x, x * 0.1),
    "leaky2": lambda x, y: torch.where(x < 0, 0.1 * x, x),
    "leaky0": lambda x, y: torch.where(x >= 0, x, x * 0.0),
    "leakymax": lambda x, y: torch.maximum(x, 0.1 * x),
    "leakyneg": lambda x, y: torch.where(x > 0, x, x * -1),
    "abs": lambda x, y: torch.where(x < 0, -x, x),
    "absmax": lambda x, y: torch.maximum(x, -x),
    "sqrt_sq": lambda x, y: (x * x).sqrt(),
    "silu": lambda x, y: x * torch.sigmoid(x),
    "silu2": lambda x, y: torch.sigmoid(x) * x,
    "silu3": lambda x, y: x / (1 + torch.exp(-x)),
    "sig": lambda x, y: 1 / (1 + torch.exp(-x)),
    "siglu": lambda x, y: y * torch.sigmoid(x),
    "gelu_e": lambda x, y: 0.5 * x * (1 + torch.erf(x / 2**0.5)),
    "gelu_t": lambda x, y: 0.5 * x * (1 + torch.tanh(0.7978845608 * (x + 0.044715 * x**3))),
    "softplus": lambda x, y: torch.log(1 + torch.exp(x)),
    "mish": lambda x, y: x * torch.tanh(F.softplus(x)),
    "mish2": lambda x, y: x * torch.tanh(torch.log1p(torch.exp(x))),
    "hardsig": lambda x, y: F.relu6(x + 3) / 6,
    "hardswish": lambda x, y: x * F.relu6(x + 3) / 6,
    "softmax": lambda x, y: (
        torch.exp(x - x.amax(1, keepdim=True))
        / torch.exp(x - x.amax(1, keepdim=True)).sum(1, keepdim=True)
    ),
    "softmax0": lambda x, y: torch.exp(x) / torch.exp(x).sum(1, keepdim=True),
    "logsumexp": lambda x, y: torch.log(torch.exp(x).sum(1)),
    "logsm": lambda x, y: x - torch.logsumexp(x, 1, keepdim=True),
    "mean": lambda x, y: x.sum(1) / 4,
    "var": lambda x, y: ((x - x.mean(1, keepdim=True)) ** 2).mean(1),
    "rms": lambda x, y: x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-05),
    "ln": lambda x, y: layer_norm(x),
    "plus zero": lambda x, y: x + 0.0,
    "zero plus": lambda x, y: 0.0 + x,
    "less zero": lambda x, y: x - 0.0,
    "zero less": lambda x, y: 0.0 - x,
    "times one": lambda x, y: x * 1.0,
    "by one": lambda x, y: x / 1.0,
    "times zero": lambda x, y: x * 0.0,
    "zero times": lambda x, y: 0.0 * x,
    "less itself": lambda x, y: x - x,
    "by itself": lambda x, y: x / x,
    "first power": lambda x, y: x**1,
    "second power": lambda x, y: x**2,
    "half power": lambda x, y: x**0.5,
    "inverse power": lambda x, y: x ** (-1),
    "no power": lambda x, y: x**0,
    "inverse half power": lambda x, y: x ** (-0.5),
    "negated twice": lambda x, y: torch.neg(torch.neg(x)),
    "times minus one": lambda x, y: x * -1,
    "doubled and halved": lambda x, y: x * 2 / 2,
    "inverse of the inverse": lambda x, y: 1 / (1 / x),
    "sqrt_rec": lambda x, y: 1 / x.sqrt(),
    "div_sqrt": lambda x, y: y / x.sqrt(),
    "times an inverse": lambda x, y: y * (1 / x),
    "log_exp": lambda x, y: torch.log(torch.exp(x)),
    "exp_log": lambda x, y: torch.exp(torch.log(x)),
    "exp*exp": lambda x, y: torch.exp(x) * torch.exp(y),
    "explog2": lambda x, y: torch.exp(y * torch.log(x)),
    "not_gt": lambda x, y: ~(x > y),
    "not_eq": lambda x, y: ~(x == y),
    "ne": lambda x, y: x != y,
    "eqself": lambda x, y: x == x,
    "neself": lambda x, y: x != x,
    "notnot": lambda x, y: ~~(x > y),
    "and_": lambda x, y: (x > 0) & (x > 0),
    "gtsub": lambda x, y: x - y > 0,
    "eqsub": lambda x, y: x - y == 0,
    "max_where": lambda x, y: torch.where(x > y, x, y),
    "max_where_ge": lambda x, y: torch.where(x >= y, x, y),
    "min_where": lambda x, y: torch.where(x < y, x, y),
    "max_where_sw": lambda x, y: torch.where(y > x, y, x),
    "where_lt_yx": lambda x, y: torch.where(x < y, y, x),
    "where_same": lambda x, y: torch.where(x > y, x, x),
    "maxself": lambda x, y: torch.maximum(x, x),
    "wherenan": lambda x, y: torch.where(torch.isnan(x), 0.0, x),
    "nantonum": lambda x, y: torch.nan_to_num(x),
    "fmax": lambda x, y: torch.fmax(x, y),
    "fmin": lambda x, y: torch.fmin(y, x),
    "amaxmin": lambda x, y: -(-x).amax(1),
    "cumsumrev": lambda x, y: x.flip(1).flip(1),
    "any": lambda x, y: (x > 0).any(1),
    "all": lambda x, y: (x > 0).all(1),
    "anynan": lambda x, y: torch.isnan(x).any(),
    "anysum": lambda x, y: (x > 0).sum(1) > 0,
    "argmax_int": lambda x, y: torch.nan_to_num(x).clamp(-5, 5).int().argmin(1),
    "sign": lambda x, y: torch.sign(torch.nan_to_num(x)),
    "copysign": lambda x, y: torch.copysign(x, y),
    "hypot": lambda x, y: torch.sqrt(x * x + y * y),
    "atan": lambda x, y: torch.atan2(x, y),
    "rem": lambda x, y: torch.remainder(x, y),
    "fmod": lambda x, y: torch.fmod(x, y),
    "fdiv": lambda x, y: torch.floor(x / y),
    "fdiv2": lambda x, y: torch.div(x, y, rounding_mode="floor"),
    "xlogy": lambda x, y: torch.xlogy(x, y),
    "logit": lambda x, y: torch.log(x / (1 - x)),
    "tanh_e": lambda x, y: (torch.exp(x) - torch.exp(-x)) / (torch.exp(x) + torch.exp(-x)),
    "celu": lambda x, y: torch.where(x > 0, x, torch.exp(x) - 1),
    "elu": lambda x, y: F.elu(x),
    "softsign": lambda x, y: x / (1 + x.abs()),
    "hardtanh": lambda x, y: torch.maximum(torch.minimum(x, ONE), -ONE),
    "logadd": lambda x, y: torch.logaddexp(x, y),
    "logadd2": lambda x, y: torch.maximum(x, y) + torch.log1p(torch.exp(-(x - y).abs())),
    "prelu": lambda x, y: torch.maximum(x, ZERO) + 0.25 * torch.minimum(x, ZERO),
    "threshold": lambda x, y: F.threshold(x, 0.0, 0.0),
    "glu": lambda x, y: F.glu(torch.cat([x, y], 1)),
    "lerp": lambda x, y: torch.lerp(x, y, 0.5),
    "addcmul": lambda x, y: torch.addcmul(x, x, y, value=0.0),
    "round2": lambda x, y: torch.round(x, decimals=1),
    "frac": lambda x, y: x - torch.trunc(x),
    "mulmask": lambda x, y: x.masked_fill(y > 0, -inf).softmax(1),
    "heaviside": lambda x, y: torch.heaviside(x, y),
    "isclose": lambda x, y: torch.isclose(x, y, equal_nan=True),
    "maxdim": lambda x, y: x.max(1)[0],
    "cummax": lambda x, y: x.cummax(1)[0],
    "prod": lambda x, y: x.prod(1),
    "norm": lambda x, y: x.norm(dim=1),
    "l1": lambda x, y: x.norm(p=1, dim=1),
    "linf": lambda x, y: x.norm(p=inf, dim=1),
    "normalize": lambda x, y: F.normalize(x, dim=1),
    "std": lambda x, y: x.std(1),
}
"""Formulas by name, of two tensors."""

ELEMENTWISE = (
    "relu", "silu", "gelu", "sigmoid", "tanh", "exp", "sqrt", "log", "reciprocal", "abs", "neg",
    "square", "relu6", "hardsigmoid", "softplus", "mish", "rsqrt", "erf", "sign", "floor",
)  # fmt: skip
OWN = ("sign", "gelu")
"""Activations that have values of their own for NaN and infinity: docs/numbers.md."""
BINARY = ("add", "sub", "mul", "div", "maximum", "minimum")


def outputs(module: Any, target: str, level: int, given: tuple[Any, Any] = (X, Y)) -> Any:
    """Results of the program before and after it is lowered."""
    source = Source("formula.mlir", ttcodegen.torch.export(module, given))
    compiled = compile_module(source, CompileOptions("m", target, optimize=level))
    inputs = tuple(each.numpy() for each in given)
    (run,) = run_in_numpy(source, compiled, lambda _module, _function: inputs)
    assert run.golden is not None
    return run.golden, run.flatbuffer


def module_of(function: Any) -> Any:
    """A module that computes a function of two tensors."""

    class Formula(torch.nn.Module):
        def forward(self, x: Any, y: Any) -> Any:
            return function(x, y)

    return Formula()


@pytest.mark.parametrize("name", FORMULAS)
@pytest.mark.parametrize("target", ["ttnn", pytest.param("ttmetal", marks=pytest.mark.slow)])
def test_formulas_are_what_torch_computes(name: str, target: str) -> None:
    module = module_of(FORMULAS[name])
    expected = module(X, Y).numpy()
    for results in outputs(module, target, 0):
        np.testing.assert_allclose(
            results[0].astype(expected.dtype), expected, rtol=2e-3, atol=1e-4
        )


@pytest.mark.parametrize("binary", BINARY)
@pytest.mark.parametrize("level", [0, 1])
def test_activations_of_binary_ops_and_of_their_operands(binary: str, level: int) -> None:
    """At level 1 a call applies them itself: the activation of its result, or of one operand."""
    combine = getattr(torch, binary)
    functions = [getattr(torch, name, None) or getattr(F, name) for name in ELEMENTWISE]

    def all_of_them(x: Any, y: Any) -> Any:
        found = [activation(combine(x, y)) for activation in functions]
        found += [combine(activation(x), y) for activation in functions]
        return tuple(found + [combine(x, activation(y)) for activation in functions])

    own = [
        index for index in range(3 * len(functions)) if ELEMENTWISE[index % len(functions)] in OWN
    ]
    module = module_of(all_of_them)
    # The inverse of a rectified -0.0 is either infinity.
    given = (X, Y + 0.0) if binary == "div" else (X, Y)
    expected = module(*given)
    for results in outputs(module, "ttnn", level, given):
        for index, (found, tensor) in enumerate(zip(results, expected, strict=True)):
            if index in own:
                continue
            np.testing.assert_allclose(
                found, tensor.numpy(), rtol=2e-3, atol=1e-4,
                err_msg=f"{ELEMENTWISE[index % len(functions)]}, {index // len(functions)}",
            )  # fmt: skip
