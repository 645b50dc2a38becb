"""The gradients of embedding and gelu against loops and differences, dropout against its odds."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest

RANDOM = np.random.default_rng(23)


def drawn(*shape, dtype="float32"):
    return RANDOM.normal(size=shape).astype(np.dtype(dtype))


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
