"""Outputs that pass the check, and outputs that must not."""

from __future__ import annotations

import json
import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.numerics.comparison import (
    Agreement,
    Moments,
    OutputCheck,
    check_output,
    compare,
    golden_tolerance,
    report,
)
from ttcodegen.numerics.tolerances import EQUAL, SIXTEEN_BITS, VECTOR_ENGINE

BF16, F32 = SIXTEEN_BITS, VECTOR_ENGINE
GOLDEN = golden_tolerance(DataType.BFLOAT16, False, True)
GOLDEN_F32 = golden_tolerance(DataType.FLOAT32, False, True)
WAVE = np.sin(np.arange(1000, dtype=np.float64)).astype(np.float32)


def noisy(scale: float) -> np.ndarray:
    return WAVE + np.random.default_rng(0).uniform(-scale, scale, WAVE.shape)


def correlation(a: np.ndarray, e: np.ndarray) -> float:
    moments = Moments.of(a, e)
    assert moments is not None
    return moments.correlation


def floats(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


def test_equal_arrays_pass() -> None:
    agreement = compare(WAVE, WAVE, F32)
    assert agreement == Agreement(True, "correlation", 1.0, 0.0)


def test_tolerances_of_bf16_and_f32() -> None:
    assert compare(noisy(0.03), WAVE, BF16).passed
    assert not compare(noisy(0.03), WAVE, F32).passed
    assert compare(noisy(0.001), WAVE, F32).passed


def test_one_wrong_element_fails_although_the_correlation_is_high() -> None:
    wrong = WAVE.copy()
    wrong[7] += 0.05
    agreement = compare(wrong, WAVE, BF16)
    assert agreement.value is not None
    assert agreement.value > 0.9999
    assert not agreement.passed
    assert "the largest error is 0.05, more than 2.0% of the range 2" in agreement.reason


def test_golden_looks_at_the_correlation_only() -> None:
    assert compare(noisy(0.1), WAVE, GOLDEN).passed
    assert not compare(noisy(0.5), WAVE, GOLDEN).passed
    assert not compare(np.roll(WAVE, 1), WAVE, GOLDEN).passed
    assert not compare(-WAVE, WAVE, GOLDEN).passed


def test_shapes_must_be_equal() -> None:
    agreement = compare(WAVE.reshape(10, 100), WAVE, F32)
    assert "the shape is (10, 100) instead of (1000,)" in agreement.reason


def test_empty_outputs_pass() -> None:
    empty = np.empty((3, 0), np.float32)
    assert compare(empty, empty, F32) == Agreement(True, "none", None, 0.0)
    assert not compare(np.empty((0, 3), np.float32), empty, F32).passed


@pytest.mark.parametrize("special", [math.nan, math.inf, -math.inf])
def test_special_values_stand_in_the_same_places(special: float) -> None:
    expected = WAVE.copy()
    expected[3] = special
    assert compare(expected, expected, F32).passed
    assert not compare(WAVE, expected, F32).passed
    assert not compare(expected, WAVE, F32).passed
    elsewhere = WAVE.copy()
    elsewhere[4] = special
    assert not compare(elsewhere, expected, F32).passed


def test_infinities_have_a_sign() -> None:
    assert not compare(floats(1, 2, math.inf), floats(1, 2, -math.inf), F32).passed


def test_the_finite_elements_still_count() -> None:
    expected, actual = WAVE.copy(), -WAVE
    expected[0] = actual[0] = math.nan
    assert not compare(actual, expected, F32).passed


def test_outputs_without_a_finite_element() -> None:
    nothing = floats(math.nan, math.inf)
    assert compare(nothing, nothing, F32).measure == "none"
    assert compare(nothing, nothing, F32).passed
    assert not compare(floats(1, math.inf), nothing, F32).passed


@pytest.mark.parametrize("tolerance", [BF16, F32, GOLDEN, GOLDEN_F32])
@pytest.mark.parametrize("wrong", [-2.0, 2.3, 20.0, 0.2, 0.0, math.nan, math.inf])
def test_single_elements(tolerance: Any, wrong: float) -> None:
    """Sign and magnitude of one number: correlation would say nothing."""
    assert compare(floats(2.0), floats(2.0), tolerance).passed
    agreement = compare(floats(wrong), floats(2.0), tolerance)
    assert not agreement.passed
    assert agreement.correlation is None


def test_bounds_of_single_elements() -> None:
    assert compare(floats(2.03), floats(2.0), BF16).passed
    assert not compare(floats(2.05), floats(2.0), BF16).passed
    assert not compare(floats(2.03), floats(2.0), F32).passed
    assert compare(floats(2.08), floats(2.0), GOLDEN).passed


def test_constant_outputs() -> None:
    ones = np.ones(100, np.float32)
    assert compare(ones, ones, F32).passed
    assert compare(ones * 1.01, ones, BF16).passed
    assert not compare(ones * 2, ones, GOLDEN).passed
    one_wrong = ones.copy()
    one_wrong[5] = 1.5
    assert not compare(one_wrong, ones, GOLDEN).passed


def test_constant_in_one_but_not_in_the_other() -> None:
    constant = np.full(1000, WAVE.mean(), np.float32)
    assert not compare(constant, WAVE, GOLDEN).passed
    assert not compare(WAVE, constant, GOLDEN).passed
    # Around a large number the variation may be small, and still is one.
    assert not compare(np.full(1000, 10.0), WAVE + 10, GOLDEN).passed


def test_zeros() -> None:
    zeros = np.zeros(10, np.float32)
    assert compare(zeros, zeros, F32).passed
    assert compare(zeros + 1e-8, zeros, F32).passed
    assert not compare(zeros + 1e-3, zeros, BF16).passed


def test_noise_of_rounding_on_a_constant() -> None:
    """Softmax over one element, computed with a rounded sum."""
    noise = np.random.default_rng(1).integers(0, 2, 1000)
    actual = 1 - noise * 2.0**-9
    assert compare(actual, np.ones(1000), GOLDEN).passed
    assert compare(actual, np.roll(actual, 1), BF16).passed


def test_a_single_outlier_is_no_variation() -> None:
    """Softmax of probabilities: nearly equal numbers, of which bf16 keeps nothing."""
    rng = np.random.default_rng(2)
    expected = 1e-3 * (1 + 1e-3 * rng.standard_normal(10_000))
    expected[0] *= 1.06
    assert compare(expected.astype(ml_dtypes.bfloat16), expected, GOLDEN).passed
    assert not compare(expected * 1.1, expected, GOLDEN).passed


def test_large_numbers_do_not_overflow() -> None:
    large = WAVE.astype(np.float64) * 3e38
    assert compare(large, large, BF16).value == pytest.approx(1.0)
    huge = WAVE.astype(np.float64) * 1e300
    assert compare(huge, huge, GOLDEN).value == pytest.approx(1.0)
    assert correlation(huge, -huge) == pytest.approx(-1.0)


def test_bf16_arrays() -> None:
    rounded = WAVE.astype(ml_dtypes.bfloat16)
    assert compare(rounded, WAVE, GOLDEN).passed
    assert compare(rounded, rounded, BF16).value == pytest.approx(1.0)


def test_integers_are_exact() -> None:
    numbers = np.arange(100)
    assert compare(numbers.astype(np.int32), numbers, EQUAL).passed
    wrong = numbers.copy()
    wrong[50] = 51
    agreement = compare(wrong, numbers, EQUAL)
    assert not agreement.passed
    assert agreement.max_abs_err == 1
    assert "only 99.00% of the elements are equal" in agreement.reason


def test_large_arrays_are_compared_in_parts() -> None:
    rng = np.random.default_rng(3)
    e = rng.standard_normal(200_001).astype(np.float32)
    a = e + 1e-3 * rng.standard_normal(e.size).astype(np.float32)
    e[7], a[7] = np.nan, np.nan
    agreement = compare(a, e, BF16)
    finite = np.isfinite(e)
    wide = a[finite].astype(np.float64), e[finite].astype(np.float64)
    assert agreement.value == pytest.approx(np.corrcoef(*wide)[0, 1], abs=1e-12)
    assert agreement.max_abs_err == np.abs(wide[0] - wide[1]).max()
    a[150_000] = np.inf
    assert "+inf is at other positions (1 elements)" in compare(a, e, BF16).reason


def test_limits_of_64_bit_integers_are_those_of_the_device() -> None:
    own, device = np.iinfo(np.int64), np.iinfo(np.int32)
    limits = np.array([own.min, -own.max, own.max, 7])
    stored = np.array([device.min, device.min, device.max, 7])
    assert compare(stored, limits, EQUAL).passed
    assert not compare(stored, np.array([device.max, device.min, own.max, 7]), EQUAL).passed
    assert not compare(np.array([5]), np.array([own.max]), EQUAL).passed


def test_64_bit_integers_keep_their_bits() -> None:
    assert not compare(np.array([2**62 + 1]), np.array([2**62]), EQUAL).passed


@settings(deadline=None)
@given(st.lists(st.floats(-1e6, 1e6, width=32), min_size=2, max_size=30), st.floats(0.1, 10))
def test_correlation_is_that_of_numpy(values: list[float], scale: float) -> None:
    e = np.array(values, np.float64)
    a = e * scale + np.arange(len(values)) * (np.ptp(e) + 1)
    if np.std(e) < 1e-6 * (np.abs(e).max() + 1e-30):
        return
    assert correlation(a, e) == pytest.approx(np.corrcoef(a, e)[0, 1], abs=1e-6)


# Outputs


def check(cpp: np.ndarray | None, flatbuffer: np.ndarray, golden: np.ndarray) -> OutputCheck:
    return check_output("f", "out", DataType.BFLOAT16, cpp, flatbuffer, golden, True)


def test_booleans_of_the_device_are_floats() -> None:
    golden = WAVE > 0
    device = golden.astype(ml_dtypes.bfloat16)
    checked = check(device, device, golden)
    assert checked.passed
    assert checked.device is not None
    assert checked.device.measure == checked.golden.measure == "agreement"
    flipped = device.copy()
    flipped[0] = 1 - flipped[0]
    # One close comparison may turn out otherwise in the golden, but not between the two runs.
    assert check(flipped, flipped, golden).passed
    assert not check(flipped, device, golden).passed
    assert not check(1 - device, 1 - device, golden).passed
    assert not check(device * 2, device * 2, golden).passed


def test_integers_that_floats_decide() -> None:
    golden = np.arange(100)
    device = golden.copy()
    device[:10] = 0
    kept = check_output("f", "out", DataType.INT32, device, device, golden, True)
    assert kept.passed
    assert kept.golden.value == pytest.approx(0.91)
    exact = check_output("f", "out", DataType.INT32, device, device, golden, False)
    assert not exact.passed


def test_json_of_outputs_that_vary() -> None:
    entry = check(noisy(0.01), WAVE, WAVE).to_json()
    assert entry["function"] == "f"
    assert entry["name"] == "out"
    assert 0.999 < entry["pcc"] < 1
    assert 0 < entry["max_abs_err"] <= 0.01
    assert entry["golden_pcc"] == pytest.approx(1.0)
    assert entry["passed"] is True
    assert "reasons" not in entry


def test_json_of_outputs_that_do_not_vary() -> None:
    entry = check(floats(2.0), floats(2.0), floats(2.01)).to_json()
    assert entry["pcc"] == 1.0
    assert entry["measure"] == "relative error"
    assert entry["golden_pcc"] is None
    assert entry["golden_value"] == pytest.approx(0.005, rel=0.01)


def test_json_of_failures() -> None:
    checks = [check(-WAVE, WAVE, WAVE), check(floats(math.nan), floats(1.0), floats(1.0))]
    contents = report(checks)
    # No infinity, no NaN: JSON has neither.
    text = json.dumps(contents, allow_nan=False)
    assert json.loads(text)["passed"] is False
    assert contents["outputs"][1]["pcc"] == 0.0
    assert contents["outputs"][1]["max_abs_err"] is None
    assert checks[0].reasons == [
        "f, output 'out', C++ against flatbuffer: the correlation is -1.000000, "
        "expected at least 0.999"
    ]


def test_without_a_cpp_run() -> None:
    checked = check(None, WAVE, WAVE)
    assert checked.passed
    assert "pcc" not in checked.to_json()
    assert not check(None, -WAVE, WAVE).passed
