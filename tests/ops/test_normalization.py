"""Normalisations against loops over their definitions."""

from __future__ import annotations

import itertools

import ml_dtypes
import numpy as np
import pytest

RANDOM = np.random.default_rng(7)


def draw(*shape: int, dtype: str = "float32") -> np.ndarray:
    return RANDOM.normal(size=shape).astype(np.dtype(dtype))


def assert_close(found: np.ndarray, expected: np.ndarray, tolerance: float = 1e-5) -> None:
    np.testing.assert_allclose(
        found.astype(np.float64), expected.astype(np.float64), atol=tolerance, rtol=tolerance
    )


@pytest.mark.parametrize("dimension", [0, 1, 2, -1, -3])
def test_softmax_sums_to_one_along_its_dimension(evaluate, dimension):
    x = draw(3, 4, 5)
    ran = evaluate("softmax", [x], x.shape, dimension=dimension)
    expected = np.zeros_like(x)
    for index in np.ndindex(x.shape):
        row = list(index)
        row[dimension] = slice(None)
        expected[index] = np.exp(x[index]) / np.exp(x[tuple(row)]).sum()
    assert_close(ran.golden[0], expected)
    assert_close(ran.lowered[0], expected)
    assert ran.names == ["ttnn.softmax"]


def test_softmax_of_large_numbers_is_finite(evaluate):
    x = np.array([[1000.0, 1001.0, -1000.0]], dtype=np.float32)
    ran = evaluate("softmax", [x], x.shape, dimension=1, numericStable=True)
    assert_close(ran.golden[0], np.array([[0.26894142, 0.73105858, 0.0]]))


def test_softmax_refuses_a_dimension_that_is_not_there(refusal):
    assert "dimension 2 is out of range" in refusal("softmax", [draw(3, 4)], (3, 4), dimension=2)


def test_softmax_refuses_another_shape(refusal):
    message = refusal("softmax", [draw(3, 4)], (4, 3), dimension=0)
    assert "expected a result of shape (3, 4), found (4, 3)" in message


def trailing_norm(name, x, weight, bias, count, epsilon):
    expected = np.zeros_like(x, dtype=np.float64)
    for outer in np.ndindex(x.shape[: x.ndim - count]):
        row = x[outer].astype(np.float64)
        if name == "layer_norm":
            mean = sum(row.flat) / row.size
            row = row - mean
        power = sum(v * v for v in row.flat) / row.size
        expected[outer] = row / (power + epsilon) ** 0.5
        expected[outer] *= 1 if weight is None else weight
        expected[outer] += 0 if bias is None else bias
    return expected


@pytest.mark.parametrize("name", ["layer_norm", "rms_norm"])
@pytest.mark.parametrize(
    ("count", "has_weight", "has_bias"),
    list(itertools.product([1, 2], [True, False], [True, False])),
)
def test_trailing_norms(evaluate, name, count, has_weight, has_bias):
    x = draw(2, 3, 4, 5)
    normalized = x.shape[-count:]
    weight = draw(*normalized) if has_weight else None
    bias = draw(*normalized) if has_bias else None
    ran = evaluate(
        name, [x, weight, bias], x.shape, normalized_shape=list(normalized), epsilon=1e-3
    )
    expected = trailing_norm(name, x, weight, bias, count, 1e-3)
    assert_close(ran.golden[0], expected)
    assert_close(ran.lowered[0], expected)
    assert (ran.names == [f"ttnn.{name}"]) == (count == 1)


def test_rms_norm_keeps_bf16_with_an_f32_weight(evaluate):
    x, weight = draw(4, 64, dtype="bfloat16"), draw(64)
    ran = evaluate("rms_norm", [x, weight, None], x.shape, normalized_shape=[64])
    assert ran.lowered[0].dtype == ml_dtypes.bfloat16
    expected = trailing_norm("rms_norm", x.astype(np.float32), weight, None, 1, 1e-5)
    assert_close(ran.lowered[0], expected, 1e-2)


def test_trailing_norm_refuses_shapes_that_do_not_fit(refusal):
    x = draw(2, 3, 4)
    message = refusal("layer_norm", [x, None, None], x.shape, normalized_shape=[3])
    assert "normalized_shape (3,) is not the end of the input's shape (2, 3, 4)" in message
    message = refusal("rms_norm", [x, draw(3), None], x.shape, normalized_shape=[4])
    assert "expected a weight of shape (4,), found (3,)" in message
    assert "is not the end" in refusal("rms_norm", [x, None, None], x.shape, normalized_shape=[])


@pytest.mark.parametrize(
    ("shape", "channel", "groups"),
    [((2, 1, 8, 6), 3, 3), ((2, 6, 4, 3), 1, 2), ((2, 4, 2, 3, 5), 1, 4), ((2, 3, 4, 5), 2, 1)],
)
def test_group_norm(evaluate, shape, channel, groups):
    x = draw(*shape)
    channels = shape[channel]
    weight, bias = draw(channels), draw(channels)
    ran = evaluate(
        "group_norm",
        [x, None, weight, bias],
        shape,
        num_groups=groups,
        channel_dim=channel,
        epsilon=1e-3,
    )
    expected = np.zeros(shape)
    size = channels // groups
    for batch, group in np.ndindex(shape[0], groups):
        index = [slice(None)] * len(shape)
        index[0], index[channel] = batch, slice(group * size, (group + 1) * size)
        part = x[tuple(index)].astype(np.float64)
        expected[tuple(index)] = (part - part.mean()) / np.sqrt(part.var() + 1e-3)
    along = [1] * len(shape)
    along[channel] = channels
    expected = expected * weight.reshape(along) + bias.reshape(along)
    assert_close(ran.golden[0], expected)
    assert_close(ran.lowered[0], expected)


def test_group_norm_refuses_channels_that_do_not_divide(refusal):
    x = draw(1, 1, 8, 6)
    message = refusal("group_norm", [x, None, None, None], x.shape, num_groups=4)
    assert "6 channels do not divide into 4 groups" in message
    message = refusal("group_norm", [x, None, draw(8), None], x.shape, num_groups=3)
    assert "expected a weight of shape (6,), found (8,)" in message


BATCH_NORM_SHAPES = [((2, 3, 4, 5), 1), ((2, 4, 5, 3), 3), ((4, 3), 1), ((2, 3, 5), 1)]
BATCH_NORM_SHAPES += [((2, 3, 2, 4, 3), 1), ((3, 2, 4), 0)]


def batch_norm(x, channel, scale, offset, mean, variance, epsilon):
    expected = np.zeros(x.shape)
    for index in np.ndindex(x.shape):
        c = index[channel]
        normalized = (float(x[index]) - mean[c]) / (variance[c] + epsilon) ** 0.5
        expected[index] = normalized * scale[c] + offset[c]
    return expected


@pytest.mark.parametrize(("shape", "channel"), BATCH_NORM_SHAPES)
def test_batch_norm_inference(evaluate, shape, channel):
    x = draw(*shape)
    scale, offset, mean = (draw(shape[channel]) for _ in range(3))
    variance = np.abs(draw(shape[channel])) + np.float32(0.5)
    ran = evaluate(
        "batch_norm_inference",
        [x, scale, offset, mean, variance],
        shape,
        dimension=channel,
        epsilon=1e-3,
    )
    expected = batch_norm(x, channel, scale, offset, mean, variance, 1e-3)
    assert_close(ran.golden[0], expected, 1e-4)
    assert_close(ran.lowered[0], expected, 1e-4)
    # Elsewhere the library's op would need permutes, or tiles of padding.
    fits = channel == 1 and len(shape) >= 4
    assert ("ttnn.batch_norm_inference" in ran.names) == fits
    assert "ttnn.permute" not in ran.names


def test_batch_norm_gives_its_vectors_one_data_type(evaluate):
    x = draw(1, 4, 8, 8, dtype="bfloat16")
    vectors = [draw(4), *(np.abs(draw(4, dtype="bfloat16")) for _ in range(3))]
    ran = evaluate("batch_norm_inference", [x, *vectors], x.shape, dimension=1, epsilon=1e-5)
    norm = ran.ops[ran.names.index("ttnn.batch_norm_inference")]
    elements = {str(value.type.get_element_type()) for value in norm.operands[1:]}
    assert elements == {"f32"}
    assert_close(ran.lowered[0], ran.golden[0], 0.05)


@pytest.mark.parametrize(("shape", "channel"), BATCH_NORM_SHAPES)
def test_batch_norm_training(evaluate, shape, channel):
    x = draw(*shape)
    channels = shape[channel]
    scale, offset, mean = (draw(channels) for _ in range(3))
    variance = np.abs(draw(channels))
    ran = evaluate(
        "batch_norm_training",
        [x, scale, offset, mean, variance],
        [shape, (channels,), (channels,)],
        dimension=channel,
        epsilon=1e-3,
        momentum=0.25,
    )
    parts = [np.take(x, c, axis=channel).astype(np.float64) for c in range(channels)]
    batch_mean = np.array([part.mean() for part in parts])
    batch_variance = np.array([part.var() for part in parts])
    expected = [
        batch_norm(x, channel, scale, offset, batch_mean, batch_variance, 1e-3),
        0.25 * batch_mean + 0.75 * mean,
        0.25 * batch_variance + 0.75 * variance,
    ]
    for golden, lowered, wanted in zip(ran.golden, ran.lowered, expected, strict=True):
        assert_close(golden, wanted, 1e-4)
        assert_close(lowered, wanted, 1e-4)


def test_batch_norm_refuses_statistics_of_another_size(refusal):
    x = draw(2, 3, 4, 4)
    operands = [x, draw(3), draw(3), draw(4), draw(3)]
    message = refusal("batch_norm_inference", operands, x.shape, dimension=1, epsilon=1e-5)
    assert "expected a mean of 3 elements, found shape (4,)" in message
    operands = [draw(3), *(draw(3) for _ in range(4))]
    message = refusal("batch_norm_inference", operands, (3,), dimension=0, epsilon=1e-5)
    assert "expected an operand of rank 2 to 5" in message


INTEGERS = "expected floats, found elements of type si32"


@pytest.mark.parametrize("place", range(5))
def test_batch_norm_refuses_integers(refusal, place):
    operands = [draw(2, 3, 4, 4), *(draw(3) for _ in range(4))]
    operands[place] = operands[place].astype(np.int32)
    shape = operands[0].shape
    found = refusal("batch_norm_inference", operands, shape, dimension=1, epsilon=1e-5)
    assert INTEGERS in found


@pytest.mark.parametrize(
    ("name", "attributes"),
    [
        ("layer_norm", {"normalized_shape": [4]}),
        ("rms_norm", {"normalized_shape": [4]}),
        ("group_norm", {"num_groups": 1}),
    ],
)
def test_other_norms_refuse_integers(refusal, name, attributes):
    x = draw(1, 2, 4, 4).astype(np.int32)
    nothing = [None] * (3 if name == "group_norm" else 2)
    assert INTEGERS in refusal(name, [x, *nothing], x.shape, **attributes)
