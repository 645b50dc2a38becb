"""Gathering, scattering, reversing and slicing against loops over their definitions."""

from __future__ import annotations

import re

import ml_dtypes  # registers bfloat16 with numpy
import numpy as np
import pytest

assert ml_dtypes is not None

RANDOM = np.random.default_rng(11)


def drawn(shape, dtype="float32"):
    return (10 * RANDOM.normal(size=shape)).astype(np.dtype(dtype))


def indices(shape, limit, dtype="int32"):
    return RANDOM.integers(0, limit, size=shape).astype(np.dtype(dtype))


def place(where, dim, index):
    found = list(where)
    found[dim] = int(index)
    return tuple(found)


CASES = [
    # input, index, dim
    ((5, 7), (5, 3), 1),
    ((5, 7), (9, 4), 0),
    ((6,), (4,), 0),
    ((2, 3, 4, 5), (1, 3, 6, 2), 2),
    ((2, 3, 2, 4, 3), (2, 2, 5, 4, 1), 2),
    ((2, 3, 2, 4, 3), (1, 3, 2, 4, 3), -1),
]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int32", "uint8"])
@pytest.mark.parametrize(("shape", "index_shape", "dim"), CASES)
def test_gather(evaluate, dtype, shape, index_shape, dim):
    x = np.abs(drawn(shape)).astype(np.dtype(dtype))
    index = indices(index_shape, shape[dim])
    ran = evaluate("gather", [x, index], index_shape, dim=dim)
    expected = np.zeros(index_shape, dtype=x.dtype)
    for where in np.ndindex(index_shape):
        expected[where] = x[place(where, dim, index[where])]
    np.testing.assert_array_equal(ran.golden[0], expected)
    np.testing.assert_array_equal(ran.lowered[0], expected)
    assert "ttnn.gather" in ran.names


def combine(reduction, old, new):
    return {
        "sum": lambda: old + new,
        "prod": lambda: old * new,
        "min": lambda: min(old, new),
        "max": lambda: max(old, new),
    }.get(reduction, lambda: new)()


@pytest.mark.parametrize("reduction", ["invalid", "sum", "prod", "min", "max"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int32"])
@pytest.mark.parametrize(("shape", "index_shape", "dim"), CASES)
def test_scatter(evaluate, reduction, dtype, shape, index_shape, dim):
    x = RANDOM.integers(-3, 4, size=shape).astype(np.dtype(dtype))
    # The source may be longer than the index, but nowhere longer than the input elsewhere.
    longer = [min(n + 1, m) for n, m in zip(index_shape, shape, strict=True)]
    longer[dim] = index_shape[dim] + 1
    source = RANDOM.integers(-3, 4, size=longer).astype(np.dtype(dtype))
    index = indices(index_shape, shape[dim])
    ran = evaluate("scatter", [x, index, source], shape, dim=dim, scatter_reduce_type=reduction)
    expected = x.copy()
    for where in np.ndindex(index_shape):
        target = place(where, dim, index[where])
        expected[target] = combine(reduction, expected[target], source[where])
    np.testing.assert_array_equal(ran.golden[0].astype(np.float64), expected.astype(np.float64))
    np.testing.assert_array_equal(ran.lowered[0].astype(np.float64), expected.astype(np.float64))
    assert ("ttnn.scatter" in ran.names) == (reduction not in ("min", "max"))


@pytest.mark.parametrize("reduction", ["invalid", "sum", "max"])
def test_scatter_leaves_out_what_names_no_place(evaluate, reduction):
    x, source = np.zeros((4, 2), dtype=np.float32), np.full((3, 2), 5.0, dtype=np.float32)
    index = np.array([[-1, 4], [1, 0], [99, -7]], dtype=np.int32)
    ran = evaluate("scatter", [x, index, source], x.shape, dim=0, scatter_reduce_type=reduction)
    expected = x.copy()
    expected[1, 0] = expected[0, 1] = 5.0
    np.testing.assert_array_equal(ran.golden[0], expected)
    np.testing.assert_array_equal(ran.lowered[0], expected)


def test_scatter_of_nothing(evaluate):
    x = drawn((4, 3))
    nothing = np.zeros((0, 3), dtype=np.float32)
    ran = evaluate("scatter", [x, nothing.astype(np.int32), nothing], x.shape, dim=0)
    np.testing.assert_array_equal(ran.lowered[0], x)
    assert ran.names == []


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "uint16"])
@pytest.mark.parametrize(
    ("shape", "dims"),
    [((4,), [0]), ((3, 20), [1]), ((3, 20), [-1, 0]), ((9, 2, 1, 2, 10), [0, 2, 4]), ((3,), [])],
)
def test_reverse(evaluate, dtype, shape, dims):
    x = np.abs(drawn(shape)).astype(np.dtype(dtype))
    ran = evaluate("reverse", [x], shape, dimensions=dims)
    expected = np.zeros_like(x)
    for where in np.ndindex(shape):
        target = list(where)
        for dim in dims:
            target[dim] = shape[dim] - 1 - where[dim]
        expected[tuple(target)] = x[where]
    np.testing.assert_array_equal(ran.golden[0], expected)
    np.testing.assert_array_equal(ran.lowered[0], expected)


@pytest.mark.parametrize(
    ("shape", "begins", "result", "steps"),
    [
        ((9, 8), [2, 3], (4, 5), None),
        ((9, 8), [1, 0], (3, 2), [2, 4]),
        ((9, 8), [8, 5], (3, 2), [-2, -5]),
        ((12,), [11], (12,), [-1]),
        ((3, 4, 5, 2), [2, 0, 1, 1], (1, 4, 2, 1), [1, 1, 3, 1]),
    ],
)
def test_slice_dynamic(evaluate, shape, begins, result, steps):
    x = drawn(shape)
    bounds = np.array(begins, dtype=np.int32)
    ran = evaluate("slice_dynamic", [x, bounds, bounds], result, step=steps)
    expected = np.zeros(result, dtype=x.dtype)
    for where in np.ndindex(result):
        source = [
            begin + i * step
            for begin, i, step in zip(begins, where, steps or [1] * len(shape), strict=True)
        ]
        expected[where] = x[tuple(source)]
    np.testing.assert_array_equal(ran.golden[0], expected)
    np.testing.assert_array_equal(ran.lowered[0], expected)


def test_get_dimension_size(evaluate):
    ran = evaluate("get_dimension_size", [drawn((3, 5))], ((1,), "int32"), dimension=1)
    assert ran.golden[0].tolist() == [5]
    assert ran.lowered[0].tolist() == [5]
    assert ran.names == ["ttnn.full"]


def test_index_refusals(refusal):
    x = drawn((5, 7))
    message = refusal("gather", [x, indices((6, 3), 7)], (6, 3), dim=1)
    assert "expected an operand 'index' that is nowhere longer than (5, 7)" in message
    assert "dimension 2 is out of range" in refusal(
        "gather", [x, indices((5, 3), 7)], (5, 3), dim=2
    )
    message = refusal("gather", [x, indices((5, 3), 7)], (5, 7), dim=1)
    assert "expected a result of shape (5, 3), found (5, 7)" in message
    operands = [x, indices((5, 3), 7), drawn((5, 2))]
    message = refusal("scatter", operands, x.shape, dim=1)
    assert "expected a source that is nowhere shorter than the index (5, 3)" in message
    operands[2] = drawn((5, 3))
    message = refusal("scatter", operands, x.shape, dim=1, scatter_reduce_type="std")
    assert "expected a scatter_reduce_type of invalid, sum, prod, min, max, found std" in message
    assert "are not all different" in refusal("reverse", [x], x.shape, dimensions=[0, -2])


def test_slice_dynamic_refusals(refusal):
    x, two, three = drawn((5, 7)), np.zeros(2, dtype=np.int32), np.zeros(3, dtype=np.int32)
    message = refusal("slice_dynamic", [x, three, two], (2, 2))
    assert "expected begins of shape (2,), found (3,)" in message
    message = refusal("slice_dynamic", [x, two, two], (2, 3), step=[1, 4])
    assert "does not fit into (5, 7)" in message
    message = refusal("slice_dynamic", [x, two, two], (2, 3), step=[1, 0])
    assert "expected 2 steps other than 0" in message


# Rearrangement


@pytest.mark.parametrize(
    ("pattern", "shape", "result", "sizes"),
    [
        ("h w -> w h", (2, 3), (3, 2), {"h": 2, "w": 3}),
        ("b c h w -> b c (h w)", (2, 3, 4, 5), (2, 3, 20), {"b": 2, "c": 3, "h": 4, "w": 5}),
        ("b (h w) -> b h w", (2, 12), (2, 3, 4), {"b": 2, "h": 3, "w": 4}),
        ("b (h w) -> w (b h)", (2, 12), (4, 6), {"b": 2, "h": 3, "w": 4}),
        ("(a b) 1 c -> c a b 1", (6, 1, 5), (5, 2, 3, 1), {"a": 2, "b": 3, "c": 5}),
        ("(x y) (z w) -> x z (y w)", (6, 8), (2, 4, 6), {"x": 2, "y": 3, "z": 4, "w": 2}),
    ],
)
def test_rearrange(evaluate, pattern, shape, result, sizes):
    x = drawn(shape)
    ran = evaluate("rearrange", [x], result, pattern=pattern)
    sides = [[part.split() for part in side] for side in map(dimensions, pattern.split("->"))]
    expected = np.zeros(result, dtype=x.dtype)
    for values in np.ndindex(*sizes.values()):
        at = dict(zip(sizes, values, strict=True))
        source, target = (tuple(flat(group, at, sizes) for group in side) for side in sides)
        expected[target] = x[source]
    np.testing.assert_array_equal(ran.golden[0], expected)
    np.testing.assert_array_equal(ran.lowered[0], expected)


def dimensions(side):
    """`b (h w)` -> ["b", "h w"]"""
    return [inner or outer for inner, outer in re.findall(r"\(([^)]*)\)|(\w+)", side)]


def flat(group, at, sizes):
    number = 0
    for axis in group:
        if axis != "1":
            number = number * sizes[axis] + at[axis]
    return number


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("h w", "expected two sides"),
        ("h w -> h", "expected the same axes on both sides"),
        ("h h -> h h", "each of them once"),
        ("(h w -> h w", "a group is not closed"),
        ("h w) -> h w", "unexpected ')'"),
        ("h ? -> h ?", "unexpected '?'"),
        ("a b c -> a b c", "3 dimensions are described"),
        ("(a b) (c d) -> (a c) (b d)", "do not determine the sizes"),
    ],
)
def test_rearrange_refuses_patterns(refusal, pattern, message):
    assert message in refusal("rearrange", [drawn((4, 4))], (4, 4), pattern=pattern)


# Other types


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("float32", "uint32"),
        ("uint32", "float32"),
        ("int32", "uint32"),
        ("bfloat16", "uint16"),
        ("uint16", "bfloat16"),
    ],
)
def test_bitcast(evaluate, source, target):
    numbers = np.array([[0, 1, 0x3F80, 0x4000, 0x7F00]])
    x = (numbers << 16 if "32" in source else numbers).astype(np.uint32)
    x = x.view(source) if "32" in source else x.astype(np.uint16).view(np.dtype(source))
    ran = evaluate("bitcast_convert", [x], (x.shape, target))
    expected = x.view(np.dtype(target))
    np.testing.assert_array_equal(ran.golden[0], expected)
    np.testing.assert_array_equal(ran.lowered[0], expected)
    assert ran.lowered[0].dtype == np.dtype(target)


def test_bitcast_refuses_other_widths(refusal):
    message = refusal("bitcast_convert", [drawn((3,))], ((3,), "uint16"))
    assert "expected elements of as many bits as f32, found ui16" in message
