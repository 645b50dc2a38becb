"""Reductions in the forms that their descriptions permit, against numpy."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.utils.exceptions import VerifyException

RANDOM = np.random.default_rng(17)
NAMES = ("sum", "mean", "max", "min", "prod")


def drawn(*shape):
    return RANDOM.integers(0, 9, size=shape).astype(np.float32)


@pytest.mark.parametrize("dims", [[1, 3], [-2, 0], [3, 0, 1], [0, 1, 2, 3], None])
@pytest.mark.parametrize("keep", [True, False])
def test_argmax_along_several_dimensions(evaluate, dims, keep):
    x = drawn(2, 3, 4, 5)
    axes = list(range(4)) if dims is None else sorted(dim % 4 for dim in dims)
    kept = [axis for axis in range(4) if axis not in axes]
    rows = x.transpose([*kept, *axes]).reshape([*(x.shape[axis] for axis in kept), -1])
    shape = [1 if a in axes else n for a, n in enumerate(x.shape) if keep or a not in axes]
    result = (tuple(shape), "uint32")
    ran = evaluate("argmax", [x], result, dim_arg=dims, keep_dim=keep)
    expected = rows.argmax(axis=-1).reshape(shape)
    np.testing.assert_array_equal(ran.golden[0], expected)
    np.testing.assert_array_equal(ran.lowered[0], expected)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("keep", [True, False])
def test_the_result_tells_whether_no_dimensions_are_all_or_none(evaluate, name, keep):
    x = drawn(3, 4)
    ran = evaluate(name, [x], x.shape, dim_arg=[], keep_dim=keep)
    np.testing.assert_array_equal(ran.golden[0], x)
    np.testing.assert_array_equal(ran.lowered[0], x)
    scalar = (1, 1) if keep else ()
    ran = evaluate(name, [x], scalar, dim_arg=[], keep_dim=keep)
    np.testing.assert_allclose(ran.golden[0], getattr(np, name)(x, keepdims=keep), rtol=1e-6)
    np.testing.assert_allclose(ran.lowered[0], ran.golden[0], rtol=1e-2)


@pytest.mark.parametrize("name", NAMES)
def test_no_dimension_is_named_twice(evaluate, name):
    with pytest.raises(VerifyException, match="each reduced dimension once, found \\[1, -1\\]"):
        evaluate(name, [drawn(3, 4)], (3,), dim_arg=[1, -1], keep_dim=False)


def test_a_scalar_is_converted(evaluate):
    for name in NAMES:
        ran = evaluate(name, [np.array(2.75, dtype=np.float32)], ((), "int32"), keep_dim=False)
        assert ran.lowered[0] == 2
