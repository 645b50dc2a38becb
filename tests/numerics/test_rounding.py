"""Rounding of values to each data type."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.numerics.rounding import (
    block_rounded,
    in_compute_dtype,
    in_storage_dtype,
    rounded_for_device,
)


def row(*values: float) -> np.ndarray:
    return np.array(values, dtype=np.float32)


def test_bf16_rounds_to_nearest_even() -> None:
    values = row(1.0, 1.00390625, 1.01171875, -1.00390625, 2.0**127, 3.4e38, np.nan, np.inf)
    expected = row(1.0, 1.0, 1.015625, -1.0, 2.0**127, np.inf, np.nan, np.inf)
    result = rounded_for_device(values, DataType.BFLOAT16)
    assert result.dtype == np.float32
    np.testing.assert_array_equal(result, expected)


def test_float64_goes_through_float32() -> None:
    """The device computes in float32: what is a tie there is one for bf16."""
    value = np.array([1.0 + 2.0**-8 + 2.0**-40])
    assert rounded_for_device(value, DataType.BFLOAT16)[0] == 1.0


def test_f32_stays() -> None:
    values = row(1.1, -0.0)
    assert rounded_for_device(values, DataType.FLOAT32) is values
    assert rounded_for_device(np.array([1.1]), DataType.FLOAT32).dtype == np.float32


@pytest.mark.parametrize(
    ("data_type", "values", "expected"),
    [
        (DataType.INT32, np.array([2**31, -1, 5], np.int64), [-(2**31), -1, 5]),
        (DataType.UINT32, np.array([-1, 2**32 + 1], np.int64), [2**32 - 1, 1]),
        (DataType.UINT16, np.array([65536, -1], np.int64), [0, 65535]),
        (DataType.UINT8, np.array([256, 257], np.int32), [0, 1]),
        (DataType.INT32, row(1.9, -1.9, 3e9, -3e9), [1, -1, 2**31 - 1, -(2**31)]),
        (DataType.UINT8, row(-1.0, 300.0, np.nan), [0, 255, 0]),
        (DataType.INT32, np.array([True, False]), [1, 0]),
    ],
)
def test_integers(data_type: DataType, values: np.ndarray, expected: list[int]) -> None:
    """Integers wrap; floats are cut off and saturate."""
    result = rounded_for_device(values, data_type)
    assert result.dtype.name == data_type.numpy
    assert result.tolist() == expected


def test_booleans_become_ones() -> None:
    assert rounded_for_device(np.array([True, False]), DataType.BFLOAT16).tolist() == [1.0, 0.0]


def test_broadcast_arrays_are_not_expanded() -> None:
    array = np.broadcast_to(np.array(1.00390625, np.float32), (10**5, 10**5))
    for data_type in (DataType.BFLOAT16, DataType.BFLOAT8_B, DataType.INT32):
        result = rounded_for_device(array, data_type)
        assert result.shape == array.shape
        assert result.strides == (0, 0)
        assert result[5, 7] == 1
    rows = np.broadcast_to(row(1.5, 2.5)[:, None], (2, 10**9))
    assert rounded_for_device(rows, DataType.INT32)[:, 0].tolist() == [1, 2]


def test_the_source_is_not_rounded() -> None:
    values = row(1.001)
    assert in_compute_dtype(values, "bfloat16") is values
    assert in_compute_dtype(values.astype(ml_dtypes.bfloat16), "bfloat16").dtype == np.float32
    assert in_compute_dtype(np.array([1.1]), "float64").dtype == np.float64
    assert in_compute_dtype(np.array([0.5, 0.0]), "bool").tolist() == [True, False]
    assert in_compute_dtype(np.array([300]), "int8").tolist() == [44]


def test_returned_arrays_have_the_dtype_of_the_host() -> None:
    assert in_storage_dtype(row(1.0), DataType.BFLOAT16).dtype == ml_dtypes.bfloat16
    assert in_storage_dtype(row(1.0), DataType.BFLOAT8_B).dtype == np.float32


# Block floats: expected values worked out by hand from the definition in tt-metal.


def test_block_floats_share_the_largest_exponent() -> None:
    values = np.zeros(16, np.float32)
    values[:4] = (64.0, 1.0, 0.5, 1.5)
    # 7 bits from 64 down: the last one is 1.
    assert block_rounded(values, 7)[:4].tolist() == [64.0, 1.0, 0.0, 2.0]
    # 3 bits: the last one is 16.
    values[1:4] = (8.0, 24.0, 40.0)
    assert block_rounded(values, 3)[:4].tolist() == [64.0, 0.0, 32.0, 32.0]


def test_blocks_are_of_sixteen_elements_of_a_row() -> None:
    values = np.ones((2, 20), np.float32)
    values[0, 0] = values[1, 16] = 2.0**20
    result = block_rounded(values, 7)
    assert (result[0, 1:16] == 0).all()
    assert (result[0, 16:] == 1).all()
    assert (result[1, :16] == 1).all()
    assert (result[1, 17:] == 0).all()


def test_a_mantissa_never_rounds_into_the_next_exponent() -> None:
    assert block_rounded(row(1.999), 7)[0] == 1.984375
    assert block_rounded(row(-1.999), 3)[0] == -1.75


def test_bits_lost_to_the_shared_exponent_do_not_round() -> None:
    """1 + 2**-23 is shifted by 7 bits and loses the last one: what is left is a tie, and even."""
    values = row(128.0, 1.0 + 2.0**-23)
    assert block_rounded(values, 7).tolist() == [128.0, 0.0]
    assert block_rounded(row(128.0, 1.0 + 2.0**-16), 7).tolist() == [128.0, 2.0]


def test_special_values_of_block_floats() -> None:
    result = block_rounded(row(np.inf, 1.0), 7)
    assert result.tolist() == [np.inf, 0.0]
    assert np.isnan(block_rounded(row(np.nan), 3)[0])
    zeros = block_rounded(row(-0.0, -1e-40, 0.0), 7)
    assert np.signbit(zeros).tolist() == [False, False, False]
    assert zeros.tolist() == [0.0, 0.0, 0.0]


def test_the_packer_rounds_twice_and_away_from_zero() -> None:
    """The numbers are those of the emulated device's tests (device_formats_test.cpp)."""
    tie = 1.0 + 2.0**-7
    values = row(1.0, tie, -tie)
    assert block_rounded(values, 7).tolist() == [1.0, 1.0, -1.0]
    assert block_rounded(values, 7, packed=True).tolist() == [1.0, 1.015625, -1.015625]
    assert block_rounded(row(1.0, tie / 2), 7, packed=True)[1] == 33 / 64
    narrow = block_rounded(row(1.0, 0.9375, -0.24), 3, packed=True)
    assert narrow.tolist() == [1.0, 0.75, 0.0]


@settings(deadline=None)
@given(st.lists(st.floats(-(2.0**60), 2.0**60, width=32), min_size=1, max_size=40))
def test_what_one_rounds_is_rounded_for_the_other(values: list[float]) -> None:
    """So a tensor of the host stays what it is on the device, and back."""
    array = np.array(values, np.float32)
    for first, second in ((False, True), (True, False), (True, True)):
        for bits in (7, 3):
            once = block_rounded(array, bits, packed=first)
            np.testing.assert_array_equal(block_rounded(once, bits, packed=second), once)


@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (5,), (2, 3, 17)])
def test_block_floats_of_any_shape(shape: tuple[int, ...]) -> None:
    assert block_rounded(np.ones(shape, np.float32), 7).tolist() == np.ones(shape).tolist()


@settings(deadline=None)
@given(st.lists(st.floats(-(2.0**60), 2.0**60, width=32), min_size=1, max_size=40))
def test_block_rounding_is_close_and_stable(values: list[float]) -> None:
    array = np.array(values, np.float32)
    result = block_rounded(array, 7)
    np.testing.assert_array_equal(block_rounded(result, 7), result)
    for start in range(0, len(values), 16):
        block, rounded = array[start : start + 16], result[start : start + 16]
        _, exponent = np.frexp(np.abs(block).max())
        # Subnormal numbers are zeros.
        bound = max(2.0 ** (int(exponent) - 7), 2.0**-126)
        assert (np.abs(block - rounded) <= bound).all()
