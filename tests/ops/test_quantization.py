"""Floats as integers and back, against loops over the definition."""

from __future__ import annotations

import ml_dtypes  # registers bfloat16 with numpy
import numpy as np
import pytest

assert ml_dtypes is not None

RANDOM = np.random.default_rng(3)
SHAPES = [((), None), ((7,), 0), ((3, 40), None), ((3, 40), 1), ((2, 3, 2, 5), -3), ((1, 2, 33), 1)]


def parameters(shape, axis):
    """Scales and zero points, and both in a shape that broadcasts."""
    count = 1 if axis is None else shape[axis]
    scales = [0.25 * (1 + place) for place in range(count)]
    zeros = [place - 2 for place in range(count)]
    shape_along = [1] * len(shape)
    if axis is not None:
        shape_along[axis] = count
    return (
        scales,
        zeros,
        np.reshape(np.float32(scales), shape_along),
        np.reshape(zeros, shape_along),
    )


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize(("shape", "axis"), SHAPES)
def test_quantize(evaluate, dtype, shape, axis):
    scales, zeros, scale, zero = parameters(shape, axis)
    x = np.asarray(20 * RANDOM.normal(size=shape), dtype=np.dtype(dtype))
    ran = evaluate(
        "quantize",
        [x],
        (shape, "int32"),
        scale=scales,
        zero_point=zeros,
        axis=axis,
        storage_min=-20,
        storage_max=30,
    )
    expected = np.clip(np.rint(x.astype(np.float32) / scale) + zero, -20, 30)
    np.testing.assert_array_equal(ran.golden[0], expected)
    np.testing.assert_array_equal(ran.lowered[0], expected)
    assert "ttnn.clamp_scalar" in ran.names


def test_limits_beyond_those_of_32_bits_limit_nothing(evaluate):
    x = np.float32([-1.0, 0.0, 3.0, 1e6])
    ran = evaluate(
        "quantize",
        [x],
        (x.shape, "uint32"),
        scale=[0.5],
        zero_point=[1],
        storage_min=0,
        storage_max=2**32 - 1,
    )
    np.testing.assert_array_equal(ran.golden[0], [0, 1, 7, 2_000_001])
    np.testing.assert_array_equal(ran.lowered[0], ran.golden[0])


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize(("shape", "axis"), SHAPES)
def test_dequantize(evaluate, dtype, shape, axis):
    scales, zeros, scale, zero = parameters(shape, axis)
    x = np.asarray(RANDOM.integers(-128, 128, shape), dtype=np.int32)
    ran = evaluate("dequantize", [x], (shape, dtype), scale=scales, zero_point=zeros, axis=axis)
    expected = ((x - zero) * scale).astype(np.dtype(dtype))
    np.testing.assert_array_equal(ran.golden[0], expected)
    np.testing.assert_array_equal(ran.lowered[0], expected)
    assert "ttnn.dequantize" in ran.names


@pytest.mark.parametrize(("shape", "axis"), SHAPES)
def test_requantize(evaluate, shape, axis):
    scales, zeros, scale, zero = parameters(shape, axis)
    x = np.asarray(RANDOM.integers(-128, 128, shape), dtype=np.int32)
    ran = evaluate(
        "requantize",
        [x],
        (shape, "int32"),
        in_scale=scales,
        in_zero_point=zeros,
        out_scale=[2 * each for each in scales],
        out_zero_point=zeros,
        axis=axis,
    )
    expected = np.rint((x - zero) * scale / (2 * scale)) + zero
    np.testing.assert_array_equal(ran.golden[0], expected)
    np.testing.assert_array_equal(ran.lowered[0], expected)
    assert ran.names[-1] == "ttnn.requantize"


@pytest.mark.parametrize(("shape", "axis"), SHAPES)
def test_scales_in_tensors(evaluate, shape, axis):
    scales, zeros, scale, zero = parameters(shape, axis)
    count = (len(scales),) if axis is not None else ()
    tensors = [
        np.reshape(np.float32(scales), count),
        np.reshape(np.asarray(zeros, dtype=np.int32), count),
    ]
    x = np.asarray(8 * RANDOM.normal(size=shape), dtype=np.float32)
    ran = evaluate("quantize_unrolled", [x, *tensors], (shape, "int32"), axis=axis)
    integers = np.rint(x / scale) + zero
    np.testing.assert_array_equal(ran.golden[0], integers)
    np.testing.assert_array_equal(ran.lowered[0], integers)
    stored = np.asarray(integers, dtype=np.int32)
    ran = evaluate("dequantize_unrolled", [stored, *tensors], (shape, "float32"), axis=axis)
    np.testing.assert_array_equal(ran.lowered[0], ran.golden[0])
    ran = evaluate("requantize_unrolled", [stored, *tensors, *tensors], shape, axis=axis)
    np.testing.assert_array_equal(ran.golden[0], stored)
    np.testing.assert_array_equal(ran.lowered[0], stored)


def test_refusals(refusal):
    x = np.zeros((2, 3), dtype=np.float32)
    integers = x.astype(np.int32)
    numbers = {"scale": [0.5], "zero_point": [0]}
    quantized = ((2, 3), "int32")
    assert "expected floats as input" in refusal("quantize", [integers], quantized, **numbers)
    assert "expected quantized elements as result" in refusal("quantize", [x], (2, 3), **numbers)
    assert "expected 3 in 'scale', found 1" in refusal(
        "quantize", [x], quantized, **numbers, axis=1
    )
    assert "positive numbers" in refusal("quantize", [x], quantized, scale=[0.0], zero_point=[0])
    assert "needs the attribute 'scale'" in refusal("quantize", [x], quantized)
    assert "out of range" in refusal("quantize", [x], quantized, **numbers, axis=2)
