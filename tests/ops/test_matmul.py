"""Matmuls where numpy's own matmul would not do."""

from __future__ import annotations

import numpy as np
import pytest

from tests.numerics.sources import parse
from ttcodegen.numerics.golden_values import Golden
from ttcodegen.ops.core.engine import multiplied

RANDOM = np.random.default_rng(23)


@pytest.mark.parametrize("shape", [(), (1,)])
@pytest.mark.parametrize("bias", [None, (1,)])
def test_product_of_vectors(evaluate, shape, bias):
    a, b = (RANDOM.normal(size=33).astype(np.float32) for _ in range(2))
    added = None if bias is None else np.ones(bias, dtype=np.float32)
    shape = shape if bias is None else bias
    expected = np.float64(a @ b) + (0 if bias is None else 1)
    ran = evaluate("linear", [a, b, added], shape)
    for found in (ran.golden[0], ran.lowered[0]):
        assert found.shape == shape
        np.testing.assert_allclose(found.reshape(()), expected, rtol=1e-5)


def test_product_of_vectors_is_no_matrix(refusal):
    a, b = (RANDOM.normal(size=33).astype(np.float32) for _ in range(2))
    assert "expected a result of shape ()" in refusal("matmul", [a, b], (1, 1))


DIMS = ", ".join(
    f"{kind}_dims_{side} = array<i64{dims}>"
    for kind, side, dims in (
        *(("batch", side, "") for side in ("lhs", "rhs")),
        *(("contract", "lhs", ": 1"), ("contract", "rhs", ": 0")),
    )
)


@pytest.mark.parametrize(
    "op", ['"ttir.matmul"(%a, %b)', f'"ttir.dot_general"(%a, %b) <{{{DIMS}}}>']
)
def test_sums_of_narrow_integers_do_not_wrap(op):
    types = "(tensor<2x5xi8>, tensor<5x3xi8>) -> tensor<2x3xi32>"
    module = parse(
        "func.func @f(%a: tensor<2x5xi8>, %b: tensor<5x3xi8>) -> tensor<2x3xi32> {\n"
        f"  %0 = {op} : {types}\n  return %0 : tensor<2x3xi32>\n}}"
    )
    a, b = np.full((2, 5), 100, dtype=np.int8), np.full((5, 3), 100, dtype=np.int8)
    (product,) = Golden(module).run("f", [a, b])
    np.testing.assert_array_equal(product, np.full((2, 3), 50_000))


SHAPES = [
    ((3, 4, 5), (5, 6)),
    ((2, 3, 4, 5), (1, 1, 5, 6)),
    ((3, 4, 5), (1, 5, 6)),
    ((3, 4, 5), (3, 5, 6)),
    ((4, 5), (1, 1, 5, 6)),
    ((3, 4, 5), (5,)),
    ((5,), (5, 6)),
    ((0, 4, 5), (5, 6)),
    ((3, 4, 0), (0, 6)),
]


@pytest.mark.parametrize(("left", "right"), SHAPES)
@pytest.mark.parametrize("transposed", [False, True])
def test_product_with_one_matrix_is_that_of_numpy(left, right, transposed):
    random = np.random.default_rng(0)
    a, b = (random.standard_normal(shape, dtype=np.float32) for shape in (left, right))
    if transposed and a.ndim > 1:
        a = np.ascontiguousarray(np.swapaxes(a, -1, -2)).swapaxes(-1, -2)
    found, expected = multiplied(a, b), np.matmul(a, b)
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_one_matrix_is_multiplied_once_for_the_whole_batch(monkeypatch):
    ranks = []
    matmul = np.matmul
    monkeypatch.setattr(np, "matmul", lambda a, b: ranks.append(a.ndim) or matmul(a, b))
    multiplied(np.ones((3, 4, 5), np.float32), np.ones((1, 5, 6), np.float32))
    multiplied(np.ones((3, 4, 5), np.float32), np.ones((3, 5, 6), np.float32))
    assert ranks == [2, 3]
