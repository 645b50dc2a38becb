"""The general convolution and pooling against loops over their definitions."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from ttcodegen.ops.convolution.device_windows import ConvolutionLayout

RANDOM = np.random.default_rng(29)


def layout(rank, kind="first"):
    """Channels first, as PyTorch has them; last, as TensorFlow; or mixed."""
    spatial = tuple(range(2, rank + 2))
    if kind == "first":
        return ConvolutionLayout(0, 1, spatial, 0, 1, spatial, 0, 1, spatial)
    inner = tuple(range(1, rank + 1))
    if kind == "last":
        front = tuple(range(rank))
        return ConvolutionLayout(0, rank + 1, inner, rank + 1, rank, front, 0, rank + 1, inner)
    return ConvolutionLayout(rank + 1, 0, inner, 1, 0, spatial, 1, 0, spatial)


def in_order(array, order):
    """`array`, whose dimensions are in that order, moved to where `order` says."""
    return np.ascontiguousarray(array.transpose(np.argsort(order)))


def convolved(x, weight, case):
    """x (N, positions..., C), weight (O, C/groups, positions...), one element after the other."""
    rank = weight.ndim - 2
    strides, padding, base_dilation, dilation, reversal, groups, batches = case
    sizes = [(n - 1) * s + 1 for n, s in zip(x.shape[1:-1], base_dilation, strict=True)]
    pairs = list(zip(padding[::2], padding[1::2], strict=True))
    counts = [
        (n + sum(p) - d * (k - 1) - 1) // s + 1
        for n, p, d, k, s in zip(sizes, pairs, dilation, weight.shape[2:], strides, strict=True)
    ]
    outputs, images = weight.shape[0], x.shape[0] // batches
    result = np.zeros((images, *counts, outputs))
    for where in product(*map(range, result.shape)):
        n, *position, o = where
        group = o // (outputs // groups)
        image = n + (o // (outputs // batches)) * images if batches > 1 else n
        for tap in product(*map(range, weight.shape[2:])):
            at = [
                p * s + t * d - before
                for p, s, t, d, (before, _) in zip(
                    position, strides, tap, dilation, pairs, strict=True
                )
            ]
            if any(
                i % s or not 0 <= i // s < n
                for i, s, n in zip(at, base_dilation, x.shape[1:-1], strict=True)
            ):
                continue
            place = [i // s for i, s in zip(at, base_dilation, strict=True)]
            used = [
                k - 1 - t if r else t
                for t, r, k in zip(tap, reversal, weight.shape[2:], strict=True)
            ]
            for c in range(weight.shape[1]):
                element = x[(image, *place, group * weight.shape[1] + c)]
                result[where] += element * weight[(o, c, *used)]
    assert rank == len(counts)
    return result


# input (N, positions..., C), weight (O, C/groups, positions...), kind of layout,
# strides, padding, input dilation, kernel dilation, reversal, groups, groups of images
CONVOLUTIONS = {
    "image": (
        (2, 6, 7, 3),
        (4, 3, 3, 2),
        "first",
        [2, 1],
        [1, 0, 1, 2],
        [1, 1],
        [1, 1],
        [0, 0],
        1,
        1,
    ),
    "channels last": (
        (1, 5, 5, 4),
        (6, 2, 3, 3),
        "last",
        [1, 1],
        [1, 1, 1, 1],
        [1, 1],
        [2, 1],
        [0, 0],
        2,
        1,
    ),
    "mixed order": (
        (2, 5, 4, 3),
        (4, 3, 2, 2),
        "mixed",
        [1, 2],
        [0, 0, 0, 0],
        [1, 1],
        [1, 1],
        [1, 0],
        1,
        1,
    ),
    "transposed": (
        (1, 4, 5, 4),
        (6, 4, 3, 3),
        "first",
        [1, 1],
        [1, 2, 2, 1],
        [2, 2],
        [1, 1],
        [1, 1],
        1,
        1,
    ),
    "transposed in groups": (
        (1, 4, 4, 4),
        (6, 2, 3, 2),
        "first",
        [1, 1],
        [2, 2, 1, 1],
        [2, 3],
        [1, 1],
        [0, 0],
        2,
        1,
    ),
    "dilated and strided": (
        (1, 4, 4, 2),
        (3, 2, 3, 3),
        "first",
        [2, 1],
        [1, 1, 0, 0],
        [3, 2],
        [1, 1],
        [0, 0],
        1,
        1,
    ),
    "dilated with much padding": (
        (1, 4, 4, 2),
        (3, 2, 2, 2),
        "first",
        [1, 1],
        [3, 2, 2, 3],
        [2, 2],
        [1, 1],
        [0, 0],
        1,
        1,
    ),
    "negative padding": (
        (1, 8, 8, 2),
        (3, 2, 3, 3),
        "first",
        [1, 1],
        [-1, 1, 2, -2],
        [1, 1],
        [1, 1],
        [0, 0],
        1,
        1,
    ),
    "groups of images": (
        (4, 5, 5, 3),
        (4, 3, 3, 3),
        "first",
        [1, 1],
        [0, 0, 1, 1],
        [1, 1],
        [1, 1],
        [0, 0],
        1,
        2,
    ),
    "sequence": ((2, 9, 4), (3, 4, 3), "first", [2], [1, 1], [1], [2], [0], 1, 1),
    "dilated sequence": ((2, 5, 4), (3, 4, 3), "first", [1], [2, 2], [2], [1], [1], 1, 1),
    "volume": (
        (1, 4, 5, 4, 2),
        (3, 2, 2, 3, 2),
        "first",
        [1, 2, 1],
        [1, 0, 1, 1, 0, 1],
        [1, 1, 1],
        [2, 1, 1],
        [0, 0, 0],
        1,
        1,
    ),
}


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolution(evaluate, name, bias):
    shape, kernel, kind, *case = CONVOLUTIONS[name]
    x = RANDOM.integers(-4, 5, size=shape).astype(np.float32)
    weight = RANDOM.integers(-4, 5, size=kernel).astype(np.float32)
    expected = convolved(x, weight, case)
    order = layout(len(case[0]), kind)
    operands = [in_order(x, order.input_order), in_order(weight, order.kernel_order)]
    if bias:
        added = RANDOM.integers(-4, 5, size=(kernel[0],)).astype(np.float32)
        expected = expected + added
        operands.append(added.reshape(1, -1))
    expected = in_order(expected, order.output_order)
    strides, padding, base_dilation, dilation, reversal, groups, batches = case
    ran = evaluate(
        "convolution",
        operands,
        expected.shape,
        convolution_layout=order,
        window_strides=strides,
        padding=padding,
        input_dilation=base_dilation,
        weight_dilation=dilation,
        window_reversal=[bool(flip) for flip in reversal],
        feature_group_count=groups,
        batch_group_count=batches,
    )
    np.testing.assert_array_equal(ran.golden[0], expected)
    np.testing.assert_array_equal(ran.lowered[0], expected)
    assert ("ttnn.conv_transpose2d" in ran.names) == name.startswith("transposed")


# shape, window, strides, base dilation, window dilation, padding
POOLINGS = {
    "channels first": (
        (2, 3, 6, 8),
        [1, 1, 2, 3],
        [1, 1, 2, 2],
        None,
        None,
        [0, 0, 0, 0, 1, 0, 1, 1],
    ),
    "channels last": (
        (2, 6, 8, 3),
        [1, 3, 3, 1],
        [1, 2, 2, 1],
        None,
        None,
        [0, 0, 1, 1, 1, 1, 0, 0],
    ),
    "nothing": ((2, 3, 4, 4), [1, 1, 1, 1], None, None, None, None),
    "stride only": ((1, 3, 7, 7), [1, 1, 1, 1], [1, 1, 2, 3], None, None, None),
    "one dimension": ((3, 10), [1, 4], [1, 2], None, None, [0, 0, 2, 1]),
    "dilated": ((1, 9, 9, 2), [1, 3, 2, 1], None, None, [1, 2, 3, 1], None),
    "volume": (
        (1, 2, 4, 6, 4),
        [1, 1, 2, 3, 2],
        [1, 1, 2, 1, 2],
        None,
        None,
        [0, 0, 0, 0, 0, 0, 1, 1, 0, 0],
    ),
    "apart": ((1, 4, 4, 2), [1, 2, 2, 1], None, [1, 2, 3, 1], None, [0, 0, 0, 0, 1, 1, 0, 0]),
    "cut off": ((1, 6, 6, 2), [1, 2, 2, 1], None, None, None, [0, 0, -1, 1, 0, -2, 0, 0]),
    "everything": ((2, 3, 4), [2, 3, 4], None, None, None, None),
}


def pooled(x, method, window, strides, base, dilation, padding):
    ones = [1] * x.ndim
    strides, base, dilation = strides or ones, base or ones, dilation or ones
    padding = padding or [0] * (2 * x.ndim)
    pairs = list(zip(padding[::2], padding[1::2], strict=True))
    shape = [
        ((n - 1) * b + 1 + sum(p) - d * (k - 1) - 1) // s + 1
        for n, b, p, d, k, s in zip(x.shape, base, pairs, dilation, window, strides, strict=True)
    ]
    result = np.zeros(shape)
    for where in np.ndindex(*shape):
        seen = []
        for tap in np.ndindex(*window):
            at = [
                w * s + t * d - before
                for w, s, t, d, (before, _) in zip(
                    where, strides, tap, dilation, pairs, strict=True
                )
            ]
            inside = all(
                i % b == 0 and 0 <= i // b < n for i, b, n in zip(at, base, x.shape, strict=True)
            )
            if inside:
                seen.append(x[tuple(i // b for i, b in zip(at, base, strict=True))])
        if method == "max":
            result[where] = max(seen, default=-np.inf)
        else:
            result[where] = sum(seen) / (np.prod(window) if method == "average" else 1)
    return result


@pytest.mark.parametrize("method", ["max", "average", "sum"])
@pytest.mark.parametrize("name", POOLINGS)
def test_pooling(evaluate, name, method):
    shape, window, strides, base, dilation, padding = POOLINGS[name]
    x = RANDOM.integers(-9, 10, size=shape).astype(np.float32)
    expected = pooled(x, method, window, strides, base, dilation, padding)
    ran = evaluate(
        "pooling",
        [[x]],
        expected.shape,
        pooling_method=method,
        window_dimensions=window,
        window_strides=strides,
        base_dilations=base,
        window_dilations=dilation,
        padding=padding,
    )
    np.testing.assert_allclose(ran.golden[0], expected, rtol=1e-6)
    np.testing.assert_allclose(ran.lowered[0], expected, rtol=1e-5, atol=1e-5)


def test_pooling_of_two_tensors(evaluate):
    """In 2024 one op pooled several tensors alike."""
    first, second = (RANDOM.integers(-9, 10, (1, 2, 4, 4)).astype(np.float32) for _ in range(2))
    ran = evaluate(
        "pooling",
        [[first, second]],
        [(1, 2, 2, 2)] * 2,
        pooling_method="Max",
        window_dimensions=[1, 1, 2, 2],
        window_strides=[1, 1, 2, 2],
    )
    for x, found in zip((first, second), ran.lowered, strict=True):
        np.testing.assert_array_equal(found, x.reshape(1, 2, 2, 2, 2, 2).max(axis=(3, 5)))
