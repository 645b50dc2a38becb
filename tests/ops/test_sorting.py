"""Sorting and selection against Python's own."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

RANDOM = np.random.default_rng(5)


def lines(array, dim):
    """The places of the lines of an array along a dimension, as index tuples."""
    for index in np.ndindex(*(1 if axis == dim else n for axis, n in enumerate(array.shape))):
        yield tuple(slice(None) if axis == dim else i for axis, i in enumerate(index))


def naive(x, dim, descending, count=None):
    dim %= x.ndim
    count = x.shape[dim] if count is None else count
    shape = tuple(count if axis == dim else n for axis, n in enumerate(x.shape))
    values, places = np.zeros(shape, dtype=x.dtype), np.zeros(shape, dtype=np.int32)
    for line in lines(x, dim):
        elements = list(enumerate(x[line].tolist()))
        elements.sort(key=lambda pair: pair[1], reverse=descending)
        values[line] = np.array([value for _, value in elements[:count]]).astype(x.dtype)
        places[line] = [place for place, _ in elements[:count]]
    return values, places


def drawn(shape, dtype):
    # Few different numbers, so that there are equal ones.
    return RANDOM.integers(0, 12, size=shape).astype(np.dtype(dtype))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int32", "uint16"])
@pytest.mark.parametrize(
    ("shape", "dim"),
    [((5, 7), -1), ((5, 7), 0), ((9,), 0), ((2, 3, 4, 5), 1), ((2, 3, 2, 2, 3), 1)],
)
@pytest.mark.parametrize("descending", [True, False])
def test_sort(evaluate, dtype, shape, dim, descending):
    x = drawn(shape, dtype)
    ran = evaluate("sort", [x], [shape, (shape, "int32")], dim=dim, descending=descending)
    for found in (ran.golden, ran.lowered):
        for array, expected in zip(found, naive(x, dim, descending), strict=True):
            np.testing.assert_array_equal(array, expected)


@pytest.mark.parametrize(("size", "index"), [(64, "ui16"), (32768, "ui16"), (32769, "ui32")])
def test_sort_counts_as_the_library_does(evaluate, size, index):
    x = np.zeros((1, size), dtype=np.float32)
    ran = evaluate("sort", [x], [x.shape, (x.shape, "int32")])
    assert str(ran.ops[0].results[1].type.element_type) == index


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int32"])
@pytest.mark.parametrize(
    ("shape", "dim", "k"),
    [((5, 7), -1, 3), ((8, 3), 0, 8), ((9,), 0, 1), ((2, 3, 4, 5), 2, 3), ((2, 5, 2, 2, 3), 1, 4)],
)
@pytest.mark.parametrize(("largest", "in_order"), list(itertools.product([True, False], repeat=2)))
def test_topk(evaluate, dtype, shape, dim, k, largest, in_order):
    x = drawn(shape, dtype)
    expected = naive(x, dim, largest, k)
    result = expected[0].shape
    ran = evaluate(
        "topk", [x], [result, (result, "uint16")], k=k, dim=dim, largest=largest, sorted=in_order
    )
    for found in (ran.golden, ran.lowered):
        for array, wanted in zip(found, expected, strict=True):
            np.testing.assert_array_equal(array, wanted)
    assert ("ttnn.topk" in ran.names) == (dtype == "bfloat16")


def test_refusals(refusal):
    x = drawn((3, 4), "float32")
    pair = [(3, 4), ((3, 4), "int32")]
    assert "dimension 2 is out of range" in refusal("sort", [x], pair, dim=2)
    assert "expected indices of an integer type" in refusal("sort", [x], [(3, 4), (3, 4)])
    assert "found (4, 3)" in refusal("sort", [x], [(3, 4), ((4, 3), "int32")])
    assert "expected k from 1 to 4" in refusal("topk", [x], pair, k=5)
    assert "expected k from 1 to 4" in refusal("topk", [x], pair, k=0)
    assert "expected a result of shape (3, 2), found (3, 4)" in refusal("topk", [x], pair, k=2)
