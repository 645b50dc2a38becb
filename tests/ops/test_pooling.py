"""Pooling and enlarging against loops over their definitions."""

from __future__ import annotations

import numpy as np
import pytest

from ttcodegen.ops.convolution.sliding_window import FlattenedImage, Window

RANDOM = np.random.default_rng(5)


def draw(*shape: int, dtype: str = "float32") -> np.ndarray:
    return RANDOM.normal(size=shape).astype(np.dtype(dtype))


def assert_close(found: np.ndarray, expected: np.ndarray, tolerance: float = 1e-5) -> None:
    np.testing.assert_allclose(
        found.astype(np.float64), expected.astype(np.float64), atol=tolerance, rtol=tolerance
    )


def windows(x, kernel, stride, padding, dilation, ceil_mode):
    """For each window its place, the elements that it sees as (row, column) pairs (None for
    padding), and what is after the padding left out."""
    (top, bottom), (left, right) = padding
    _, height, width, _ = x.shape

    def count(size, before, after, k, s, d):
        room = size + before + after - d * (k - 1) - 1
        number = (-(-room // s) if ceil_mode else room // s) + 1
        if ceil_mode and (number - 1) * s >= size + before:
            number -= 1
        return number

    rows = count(height, top, bottom, kernel[0], stride[0], dilation[0])
    columns = count(width, left, right, kernel[1], stride[1], dilation[1])
    for i in range(rows):
        for j in range(columns):
            seen = []
            for a in range(kernel[0]):
                for b in range(kernel[1]):
                    y = i * stride[0] + a * dilation[0] - top
                    z = j * stride[1] + b * dilation[1] - left
                    if 0 <= y < height and 0 <= z < width:
                        seen.append((y, z))
                    elif y < height + bottom and z < width + right:
                        seen.append(None)
            yield i, j, seen, (rows, columns)


CASES = [
    # kernel, stride, padding (top, left, bottom, right), dilation, ceil_mode
    ([2], [2], [0], [1], False),
    ([3, 2], [2, 1], [1, 0], [1], False),
    ([3], [2], [1, 0, 0, 1], [1], False),
    ([3], [2], [1], [1], True),
    ([2], [3], [0], [1], True),
    ([2], [2], [1], [1], True),
    ([2, 3], [1], [0], [2], False),
    ([3], [2], [1], [2], True),
    ([1], [1], [0], [1], False),
    ([2], [1], [2, 1, 0, 3], [1], False),
    ([2], [3], [2, 2, 2, 0], [1], True),
    ([3], [1], [1, 2, 2, 1], [1], False),
]


def pair(values):
    return (values[0], values[-1])


def edges(padding):
    if len(padding) == 4:
        return ((padding[0], padding[2]), (padding[1], padding[3]))
    return ((padding[0], padding[0]), (padding[-1], padding[-1]))


def attributes_of(case):
    return dict(zip(("kernel", "stride", "padding", "dilation", "ceil_mode"), case, strict=True))


def places(x, case):
    kernel, stride, padding, dilation, ceil_mode = case
    return list(windows(x, pair(kernel), pair(stride), edges(padding), pair(dilation), ceil_mode))


@pytest.mark.parametrize("case", CASES)
def test_max_pool2d(evaluate, case):
    x = draw(2, 7, 6, 3)
    found = places(x, case)
    expected = np.full((2, *found[0][3], 3), -np.inf)
    for i, j, seen, _ in found:
        for place in filter(None, seen):
            expected[:, i, j] = np.maximum(expected[:, i, j], x[:, place[0], place[1]])
    ran = evaluate("max_pool2d", [x], expected.shape, **attributes_of(case))
    assert_close(ran.golden[0], expected)
    assert_close(ran.lowered[0], expected)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("count_include_pad", [True, False])
def test_avg_pool2d(evaluate, case, count_include_pad):
    x = draw(2, 7, 6, 3)
    found = places(x, case)
    expected = np.zeros((2, *found[0][3], 3))
    for i, j, seen, _ in found:
        real = [place for place in seen if place is not None]
        total = sum((x[:, y, z].astype(np.float64) for y, z in real), np.zeros((2, 3)))
        expected[:, i, j] = total / max(len(seen) if count_include_pad else len(real), 1)
    ran = evaluate(
        "avg_pool2d",
        [x],
        expected.shape,
        count_include_pad=count_include_pad,
        **attributes_of(case),
    )
    assert_close(ran.golden[0], expected)
    assert_close(ran.lowered[0], expected)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("destinations", [True, False])
def test_max_pool2d_with_indices(evaluate, case, destinations):
    x = draw(2, 7, 6, 3)
    found = places(x, case)
    shape = (2, *found[0][3], 3)
    values, indices = np.full(shape, -np.inf), np.zeros(shape, dtype=np.int32)
    for i, j, seen, _ in found:
        for n, c in np.ndindex(2, 3):
            for y, z in filter(None, seen):
                if x[n, y, z, c] > values[n, i, j, c]:
                    values[n, i, j, c], indices[n, i, j, c] = x[n, y, z, c], y * 6 + z
    output = [np.zeros(shape, np.float32), indices * 0] if destinations else None
    ran = evaluate(
        "max_pool2d_with_indices",
        [x, output],
        [(shape, "float32"), (shape, "int32")],
        **attributes_of(case),
    )
    for results in (ran.golden, ran.lowered):
        assert_close(results[0], values)
        # A window that sees only padding has no place.
        seen = np.isfinite(values)
        np.testing.assert_array_equal(results[1][seen], indices[seen])


def test_max_pool2d_with_indices_takes_the_first_of_equals(evaluate):
    x = np.full((1, 4, 4, 1), -3.0, dtype=np.float32)
    ran = evaluate(
        "max_pool2d_with_indices",
        [x, None],
        [((1, 2, 2, 1), "float32"), ((1, 2, 2, 1), "int32")],
        kernel=[3],
        stride=[2],
        padding=[1],
        dilation=[1],
    )
    np.testing.assert_array_equal(ran.golden[1].reshape(-1), [0, 1, 4, 5])


def test_max_pool2d_counts_large_images_with_32_bits(evaluate):
    x = np.zeros((1, 257, 256, 1), dtype=np.float32)
    x[0, 256, 255, 0] = 1.0
    ran = evaluate(
        "max_pool2d_with_indices",
        [x, None],
        [((1, 2, 2, 1), "float32"), ((1, 2, 2, 1), "int32")],
        kernel=[2],
        stride=[255, 254],
        padding=[0],
        dilation=[1],
    )
    pool = ran.ops[ran.names.index("ttnn.max_pool2d_with_indices")]
    assert str(pool.results[1].type.get_element_type()) == "ui32"
    assert ran.lowered[1][0, 1, 1, 0] == 257 * 256 - 1


@pytest.mark.parametrize("name", ["max_pool2d", "avg_pool2d"])
def test_pooling_of_a_flattened_image(evaluate, name):
    x = draw(2, 6, 4, 3)
    numbers = {"kernel": [2], "stride": [2], "padding": [0], "dilation": [1]}
    flat = evaluate(
        name,
        [x.reshape(1, 1, 48, 3)],
        (1, 1, 12, 3),
        flattened_compat_info=FlattenedImage(2, 6, 4),
        **numbers,
    )
    image = evaluate(name, [x], (2, 3, 2, 3), **numbers)
    assert_close(flat.golden[0], image.golden[0].reshape(1, 1, 12, 3))
    assert_close(flat.lowered[0], image.golden[0].reshape(1, 1, 12, 3))


def test_pooling_takes_what_the_library_has(evaluate):
    x = draw(1, 8, 8, 4)
    numbers = {"kernel": [3], "stride": [1], "padding": [1, 0, 0, 1], "dilation": [1]}
    ran = evaluate("avg_pool2d", [x], (1, 7, 7, 4), **numbers)
    pool = ran.ops[ran.names.index("ttnn.avg_pool2d")]
    assert pool.parameter("padding") == [1, 0, 0, 1]  # top, bottom, left, right
    dilated = evaluate(
        "avg_pool2d", [x], (1, 4, 4, 4), **{**numbers, "padding": [0], "dilation": [2]}
    )
    assert "ttnn.avg_pool2d" not in dilated.names


@pytest.mark.parametrize(
    ("changed", "result", "message"),
    [
        ({}, (1, 4, 4, 3), "expected a result of shape (1, 3, 3, 3), found (1, 4, 4, 3)"),
        ({"kernel": [9]}, (1, 1, 1, 3), "does not fit into (6, 6)"),
        ({"kernel": [0]}, (1, 3, 3, 3), "kernel must be positive"),
        ({"kernel": [2, 2, 2]}, (1, 3, 3, 3), "expected 1 or 2 numbers in 'kernel'"),
        ({"padding": [1, 1, 1]}, (1, 3, 3, 3), "expected 1, 2 or 4 numbers in 'padding'"),
    ],
)
def test_pooling_refuses(refusal, changed, result, message):
    numbers = {"kernel": [2], "stride": [2], "padding": [0], "dilation": [1], **changed}
    assert message in refusal("max_pool2d", [draw(1, 6, 6, 3)], result, **numbers)
    assert message in refusal("avg_pool2d", [draw(1, 6, 6, 3)], result, **numbers)


def test_pooling_refuses_another_size_of_a_flattened_image(refusal):
    message = refusal(
        "max_pool2d",
        [draw(1, 1, 48, 3)],
        (1, 1, 12, 3),
        kernel=[2],
        stride=[2],
        padding=[0],
        dilation=[1],
        flattened_compat_info=FlattenedImage(2, 6, 5),
    )
    assert "expected an input of shape (1, 1, 60, 3)" in message


@pytest.mark.parametrize("shape", [(2, 7, 5, 3), (1, 5, 3), (2, 3, 4, 5, 3)])
def test_global_avg_pool2d(evaluate, shape):
    x = draw(*shape)
    *batch, height, width, channels = shape
    ran = evaluate("global_avg_pool2d", [x], (*batch, 1, 1, channels))
    expected = np.zeros((*batch, 1, 1, channels))
    for y, z in np.ndindex(height, width):
        expected[..., 0, 0, :] += x[..., y, z, :] / (height * width)
    assert_close(ran.golden[0], expected)
    assert_close(ran.lowered[0], expected)


def test_global_avg_pool2d_refuses(refusal):
    message = refusal("global_avg_pool2d", [draw(5, 3)], (1, 3))
    assert "expected an input of rank 3 or more, found (5, 3)" in message


@pytest.mark.parametrize("factors", [[2], [1, 3], [4, 2]])
def test_upsample2d_nearest(evaluate, factors):
    x = draw(2, 3, 4, 5)
    down, across = pair(factors)
    expected = np.zeros((2, 3 * down, 4 * across, 5))
    for index in np.ndindex(expected.shape):
        n, y, z, c = index
        expected[index] = x[n, y // down, z // across, c]
    ran = evaluate("upsample2d", [x], expected.shape, scale_factor=factors)
    assert_close(ran.golden[0], expected)
    assert_close(ran.lowered[0], expected)


@pytest.mark.parametrize(("factors", "channels"), [([2], 32), ([3, 1], 3), ([2, 4], 33)])
def test_upsample2d_bilinear(evaluate, factors, channels):
    x = draw(2, 3, 4, channels)
    down, across = pair(factors)
    expected = np.zeros((2, 3 * down, 4 * across, channels))
    for y, z in np.ndindex(3 * down, 4 * across):
        v = min(max((y + 0.5) / down - 0.5, 0.0), 2.0)
        u = min(max((z + 0.5) / across - 0.5, 0.0), 3.0)
        for i in range(3):
            for j in range(4):
                share = max(0.0, 1 - abs(v - i)) * max(0.0, 1 - abs(u - j))
                expected[:, y, z] += share * x[:, i, j]
    ran = evaluate("upsample2d", [x], expected.shape, scale_factor=factors, mode="bilinear")
    assert_close(ran.golden[0], expected)
    assert_close(ran.lowered[0], expected)
    enlarged = ran.ops[ran.names.index("ttnn.upsample_bilinear")]
    assert enlarged.result_shape[-1] % 32 == 0


def test_bilinear_interpolation_of_integers_lies_between_them(evaluate):
    x = np.array([0, 8], dtype=np.int32).reshape(1, 2, 1, 1)
    ran = evaluate("upsample2d", [x], (1, 8, 1, 1), scale_factor=[4, 1], mode="bilinear")
    np.testing.assert_array_equal(ran.golden[0].reshape(-1), [0, 0, 1, 3, 5, 7, 8, 8])


def test_upsample2d_refuses(refusal):
    x = draw(1, 3, 4, 5)
    message = refusal("upsample2d", [x], (1, 6, 8, 5), scale_factor=[2], mode="bicubic")
    assert "expected a mode of nearest or bilinear, found bicubic" in message
    message = refusal("upsample2d", [x], (1, 6, 8, 5), scale_factor=[0])
    assert "scale_factor must be positive" in message
    message = refusal("upsample2d", [x], (1, 6, 8, 5), scale_factor=[2, 3])
    assert "expected a result of shape (1, 6, 12, 5), found (1, 6, 8, 5)" in message


def test_overhang_is_what_the_last_window_sees_behind_the_padding():
    window = Window((2, 2), (3, 3), ((0, 0), (1, 1)), (1, 1), ceil_mode=True)
    # Windows at 0, 3 (and 6, which reaches one beyond the end of 7 rows).
    assert window.output_size(0, 7) == 3
    assert window.overhang(0, 7) == 1
    assert window.overhang(0, 8) == 0
