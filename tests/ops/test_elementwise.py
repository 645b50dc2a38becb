"""Elementwise ops that take numbers, or bits, against numpy."""

from __future__ import annotations

import numpy as np
import pytest

from ttcodegen.ops.core.definition import Call, ResultInfo

X = np.float32([-3.0, -0.5, 0.0, 0.25, 2.0])


@pytest.mark.parametrize(
    ("numbers", "scale", "alpha"),
    [({}, 1.0507009873390197, 1.6732635498046875), ({"scale": 2.0, "alpha": 0.5}, 2.0, 0.5)],
)
def test_selu(evaluate, numbers, scale, alpha):
    ran = evaluate("selu", [X], X.shape, **numbers)
    expected = scale * np.where(X > 0, X, alpha * np.expm1(X))
    np.testing.assert_allclose(ran.golden[0], expected, rtol=1e-5)
    np.testing.assert_allclose(ran.lowered[0], expected, rtol=1e-5)


@pytest.mark.parametrize("alpha", [1.0, 0.5])
def test_elu(evaluate, alpha):
    ran = evaluate("elu", [X], X.shape, alpha=alpha)
    expected = np.where(X > 0, X, alpha * np.expm1(X))
    np.testing.assert_allclose(ran.golden[0], expected, rtol=1e-5)
    np.testing.assert_allclose(ran.lowered[0], expected, rtol=1e-5)


def test_leaky_relu(evaluate):
    ran = evaluate("leaky_relu", [X], X.shape, parameter=0.5)
    np.testing.assert_array_equal(ran.lowered[0], np.where(X > 0, X, 0.5 * X))


def test_logical_shifts_of_64_bits_are_those_of_the_source(make_op):
    op = make_op("logical_right_shift", [np.int32([0]), np.int32([0])], (1,))
    # As numpy's of unsigned integers; a device has the lower half, which a note says.
    values = {"lhs": [np.int64([-1, 3 << 32, 6])], "rhs": [np.int64([1, 12, 1])]}
    found = op.definition.numpy(Call(op.name, values, {}, [ResultInfo((3,), "int64")]))
    np.testing.assert_array_equal(found, [2**63 - 1, 3 << 20, 3])


def test_conversions_of_integers_take_the_lowest_bits(make_op):
    op = make_op("typecast", [np.int32([0, 0, 0])], (3,))
    values = {"input": [np.int32([70000, -3, 7])]}
    for dtype, expected in (("uint16", [4464, 65533, 7]), ("uint8", [112, 253, 7])):
        found = op.definition.numpy(Call(op.name, values, {}, [ResultInfo((3,), dtype)]))
        np.testing.assert_array_equal(found, expected)


def test_what_the_library_does_not_broadcast_is_repeated(evaluate):
    """It broadcasts the last six dimensions."""
    generator = np.random.default_rng(0)
    large = generator.random((2, 1, 2, 1, 3, 4, 5), np.float32)
    small = generator.random((3, 1, 2, 1, 4, 1), np.float32)
    ran = evaluate("add", [large, small], (2, 3, 2, 2, 3, 4, 5))
    np.testing.assert_allclose(ran.lowered[0], large + small, rtol=1e-6)
    assert ran.names.count("ttnn.repeat") == 1
    ran = evaluate("add", [small, small], small.shape)
    assert ran.names == ["ttnn.add"]
