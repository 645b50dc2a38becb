"""Slices, paddings and ranges in the forms that their descriptions permit, against numpy."""

from __future__ import annotations

import numpy as np
import pytest

from ttcodegen.ops.core.definition import Call, ResultInfo


def counted(*shape):
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


@pytest.mark.parametrize(
    ("bounds", "expected"),
    [
        ((5, -5, -1), [5, 4, 3, 2]),
        ((-1, 1, -2), [5, 3]),
        ((-4, -1, 2), [2, 4]),
        ((4, 4, -1), []),
        ((0, 6, 5), [0, 5]),
    ],
)
def test_bounds_of_slices_count_from_either_end(evaluate, bounds, expected):
    begin, end, step = bounds
    x = counted(2, 6)
    for name, attributes in (
        ("slice_static", {"begins": [0, begin], "ends": [2, end], "step": [1, step]}),
        ("index", {"dim": 1, "begin": begin, "end": end, "step": step}),
    ):
        ran = evaluate(name, [x], (2, len(expected)), **attributes)
        for found in (ran.golden[0], ran.lowered[0]):
            np.testing.assert_array_equal(found, x[:, expected])


def test_slices_stay_in_the_tensor(refusal):
    x = counted(2, 6)
    assert "step other than 0" in refusal("index", [x], (2, 1), dim=1, begin=0, end=1, step=0)
    message = refusal("index", [x], (2, 6), dim=1, begin=5, end=-7, step=-1)
    assert "5:-7:-1 is out of range in dimension 1 of (2, 6)" in message


@pytest.mark.parametrize(
    ("begin", "length", "stride", "expected"),
    [
        (0, 2, 4, [0, 1, 4, 5, 8, 9]),
        (1, 3, 4, [1, 2, 3, 5, 6, 7, 9]),
        (7, 3, 9, [7, 8, 9]),
        (2, 3, 0, [2, 3, 4]),
    ],
)
def test_the_last_part_that_is_selected_may_be_shorter(evaluate, begin, length, stride, expected):
    x = counted(3, 10)
    attributes = {"dim": -1, "begin": begin, "length": length, "stride": stride}
    ran = evaluate("index_select", [x], (3, len(expected)), **attributes)
    for found in (ran.golden[0], ran.lowered[0]):
        np.testing.assert_array_equal(found, x[:, expected])


def test_parts_fit_into_the_dimension(refusal):
    x = counted(3, 10)
    for begin, length, stride in ((8, 3, 4), (0, 5, 4), (0, 2, 11)):
        attributes = {"dim": 1, "begin": begin, "length": length, "stride": stride}
        assert "do not fit into" in refusal("index_select", [x], (3, 2), **attributes)


def test_negative_widths_cut_off(evaluate):
    x = counted(4, 7)
    ran = evaluate("pad", [x], (4, 6), padding=[1, -1, -2, 1], value=0.5)
    expected = np.pad(x[:-1, 2:], [(1, 0), (0, 1)], constant_values=0.5)
    np.testing.assert_array_equal(ran.golden[0], expected)
    np.testing.assert_array_equal(ran.lowered[0], expected)
    ran = evaluate("pad", [x], (4, 3), padding=[0, 0, -2, -2], value=0.5)
    np.testing.assert_array_equal(ran.lowered[0], x[:, 2:5])
    assert ran.names == ["ttnn.slice_static"]


def test_no_more_is_cut_off_than_there_is(refusal):
    assert "cut off more than (4,) has" in refusal("pad", [counted(4)], (1,), padding=[-5, 2])


def test_padding_of_a_scalar_is_the_scalar(evaluate):
    x = counted()
    ran = evaluate("pad", [x], (), padding=[], value=1.0)
    assert (ran.golden[0], ran.lowered[0]) == (x, x)


@pytest.mark.parametrize(("size", "expected"), [(2, [0, 2]), (3, [0, 2, 4])])
def test_a_range_may_end_with_the_last_whole_step(evaluate, size, expected):
    result = ((size,), "int32")
    ran = evaluate("arange", [], result, start=0, end=5, step=2, arange_dimension=0)
    for found in (ran.golden[0], ran.lowered[0]):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("value", "expected"),
    [(np.inf, 2**31 - 1), (-np.inf, -(2**31)), (np.nan, 0), (2.75, 2), (-7, -7)],
)
def test_what_integers_are_padded_with_is_one_of_them(make_op, value, expected):
    x = np.int32([3])
    op = make_op("pad", [x], (2,), padding=[0, 1], value=float(value))
    call = Call(op.name, {"input": [x]}, op.parameters(), [ResultInfo((2,), "int32")])
    np.testing.assert_array_equal(op.definition.numpy(call), [3, expected])
