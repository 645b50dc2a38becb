"""The gradients of embedding and gelu against loops and differences, dropout against its odds, the
step of AdamW against its formula."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest

RANDOM = np.random.default_rng(23)


def drawn(*shape, dtype="float32"):
    return np.asarray(RANDOM.normal(size=shape)).astype(np.dtype(dtype))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("index_dtype", ["int32", "uint32", "float32"])
@pytest.mark.parametrize(
    ("indices", "table", "gradient"),
    [
        ((1, 32), (9, 64), (1, 32, 64)),
        ((2, 7), (5, 12), (2, 7, 12)),
        ((1, 10, 1), (1, 3, 40), (1, 10, 40)),
        ((6,), (4, 1), (6, 1)),
    ],
)
def test_embedding_backward(evaluate, dtype, index_dtype, indices, table, gradient):
    rows, columns = table[-2:]
    index = RANDOM.integers(0, rows, size=indices).astype(np.dtype(index_dtype))
    weight = drawn(*table, dtype=dtype)
    # Multiples of 1/4, whose sums have no rounding errors.
    arrived = (RANDOM.integers(-8, 9, size=gradient) / 4).astype(np.dtype(dtype))
    ran = evaluate("embedding_backward", [index, weight, arrived], (table, dtype))
    expected = np.zeros((rows, columns))
    for place, row in zip(index.reshape(-1), arrived.reshape(-1, columns), strict=True):
        expected[int(place)] += row.astype(np.float64)
    for found in (ran.golden[0], ran.lowered[0]):
        np.testing.assert_array_equal(found.astype(np.float64), expected.reshape(table))
    assert ("ttnn.embedding_bw" in ran.names) == (dtype == "bfloat16")


def test_embedding_backward_refusals(refusal):
    operands = [np.zeros((2, 3), np.int32), drawn(5, 8), drawn(2, 4, 8)]
    message = refusal("embedding_backward", operands, ((5, 8), "float32"))
    assert "expected a gradient of 6 rows of 8 elements, found shape (2, 4, 8)" in message
    operands[2] = drawn(2, 3, 8)
    message = refusal("embedding_backward", operands, ((5, 9), "float32"))
    assert "expected a result of shape (5, 8), found (5, 9)" in message


def gelu(x, approximate):
    if approximate == "none":
        return 0.5 * x * (1 + math.erf(x / math.sqrt(2)))
    return 0.5 * x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("approximate", ["none", "tanh"])
@pytest.mark.parametrize(("lhs", "rhs"), [((3, 4), (3, 4)), ((4,), (2, 3, 4)), ((3, 1), (1, 4))])
def test_gelu_bw(evaluate, dtype, approximate, lhs, rhs):
    gradient, x = drawn(*lhs, dtype=dtype), drawn(*rhs, dtype=dtype)
    shape = np.broadcast_shapes(lhs, rhs)
    ran = evaluate("gelu_bw", [gradient, x], shape, approximate=approximate)
    whole = [np.broadcast_to(each, shape).astype(np.float64) for each in (gradient, x)]
    expected, step = np.zeros(shape), 1e-5
    for where in np.ndindex(shape):
        at = float(whole[1][where])
        slope = (gelu(at + step, approximate) - gelu(at - step, approximate)) / (2 * step)
        expected[where] = whole[0][where] * slope
    tolerance = 0.02 if dtype == "bfloat16" else 1e-5
    for found in (ran.golden[0], ran.lowered[0]):
        np.testing.assert_allclose(found.astype(np.float64), expected, atol=tolerance)
    assert "ttnn.gelu_bw" in ran.names


def test_gelu_bw_refuses_other_approximations(refusal):
    x = drawn(3, 4)
    message = refusal("gelu_bw", [x, x], x.shape, approximate="fast")
    assert "expected approximate to be none or tanh, found 'fast'" in message


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_dropout(evaluate, dtype):
    x = np.ones((100, 200), dtype=np.dtype(dtype))
    ran = evaluate("dropout", [x], x.shape, prob=0.25, scale=2.0, seed=5)
    for found in (ran.golden[0], ran.lowered[0]):
        assert found.dtype == x.dtype
        assert set(np.unique(found.astype(np.float64))) == {0.0, 2.0}
        assert abs(float((found == 0).mean()) - 0.25) < 0.02
    again = evaluate("dropout", [x], x.shape, prob=0.25, scale=2.0, seed=5)
    other = evaluate("dropout", [x], x.shape, prob=0.25, scale=2.0, seed=6)
    np.testing.assert_array_equal(again.golden[0], ran.golden[0])
    assert (other.golden[0] != ran.golden[0]).any()


@pytest.mark.parametrize(("probability", "value"), [(0.0, 3.0), (1.0, 0.0)])
def test_dropout_of_all_or_nothing(evaluate, probability, value):
    x = np.full((8, 8), 2.0, dtype=ml_dtypes.bfloat16)
    ran = evaluate("dropout", [x], x.shape, prob=probability, scale=1.5)
    assert (ran.lowered[0] == value).all()


def test_dropout_refuses_what_is_no_probability(refusal):
    message = refusal("dropout", [drawn(2, 2)], (2, 2), prob=1.5)
    assert "expected prob from 0 to 1, found 1.5" in message


STEP = {
    "lr": 1e-2, "beta1": 0.9, "beta2": 0.999, "beta1_pow": 0.81, "beta2_pow": 0.998001,
    "epsilon": 1e-8, "weight_decay": 0.1,
}  # fmt: skip


def stepped(param, grad, first, second, greatest=None):
    """AdamW of one number, as its paper has it, with the decay apart from the gradient."""
    first = STEP["beta1"] * first + (1 - STEP["beta1"]) * grad
    second = STEP["beta2"] * second + (1 - STEP["beta2"]) * grad * grad
    of = second if greatest is None else max(greatest, second)
    root = math.sqrt(of / (1 - STEP["beta2_pow"])) + STEP["epsilon"]
    moved = STEP["lr"] * (first / (1 - STEP["beta1_pow"])) / root
    return param - moved - STEP["lr"] * STEP["weight_decay"] * param, first, second, of


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("amsgrad", [False, True])
@pytest.mark.parametrize("shape", [(1, 1, 4, 40), (5,), ()])
def test_adamw(evaluate, dtype, amsgrad, shape):
    operands = [drawn(*shape, dtype=dtype) for _ in range(5)]
    operands[3:] = [np.asarray(np.abs(x)) for x in operands[3:]]
    count = 4 if amsgrad else 3
    given = [*operands[:4], operands[4] if amsgrad else None]
    ran = evaluate("adamw", given, [shape] * count, **STEP)
    for where in np.ndindex(shape):
        numbers = [float(x[where]) for x in operands[: 4 + amsgrad]]
        for index, number in enumerate(stepped(*numbers)[:count]):
            for found in (ran.golden, ran.lowered):
                tolerance = 0.01 if dtype == "bfloat16" else 1e-5
                assert float(found[index][where]) == pytest.approx(number, rel=tolerance, abs=1e-6)
    assert all(found.dtype == np.dtype(dtype) for found in ran.lowered)


def test_adamw_refusals(refusal, make_op):
    x = drawn(3, 4)
    message = refusal("adamw", [x, drawn(4, 3), x, x, None], [x.shape] * 3, **STEP)
    assert "expected grad of shape (3, 4), found (4, 3)" in message
    message = refusal("adamw", [x, x, x, x, None], [x.shape] * 4, **STEP)
    assert "has a result for each of param, exp_avg, exp_avg_sq, found 4" in message
    half = ((3, 4), "bfloat16")
    message = refusal("adamw", [x, x, x, x, None], [half, x.shape, x.shape], **STEP)
    assert "expected the updated param as tensor<3x4xf32>, found tensor<3x4xbf16>" in message
    message = refusal("adamw", [x, x, x, x, None], [x.shape] * 3, **{**STEP, "beta2_pow": 1.0})
    assert "expected beta2_pow below 1" in message
    for dtype, refused in (("float32", False), ("bfloat16", True)):
        given = x.astype(np.dtype(dtype))
        operands = [given, x, x, x, None]
        results = [(x.shape, dtype), (x.shape, "float32"), (x.shape, "float32")]
        op = make_op("adamw", operands, results, **STEP, stochastic_rounding=True)
        assert (op.definition.refused_form(op) is not None) == refused
