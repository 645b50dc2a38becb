"""Inputs that both numpy runs read are converted once, and kept no longer than the runs take."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import ml_dtypes
import numpy as np

from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.numerics.rounding import (
    in_compute_dtype,
    rounded_for_device,
    shared_conversions,
    widened,
)


def test_both_runs_get_one_array() -> None:
    array = np.linspace(-1, 1, 12).astype(ml_dtypes.bfloat16).reshape(3, 4)
    with shared_conversions([array, array]):
        source = in_compute_dtype(array, "bfloat16")
        device = rounded_for_device(array, DataType.BFLOAT16)
        assert source is device
        assert not source.flags.writeable
    assert np.array_equal(source, array.astype(np.float32))
    assert widened(array) is not source


def test_narrower_types_are_rounded_as_ever() -> None:
    array = np.linspace(-1, 1, 64).astype(ml_dtypes.bfloat16)
    with shared_conversions([array]):
        narrow = rounded_for_device(array, DataType.BFLOAT8_B)
    assert np.array_equal(narrow, rounded_for_device(array.astype(np.float32), DataType.BFLOAT8_B))


def test_threads_convert_once() -> None:
    array = np.ones(1 << 20, ml_dtypes.bfloat16)
    with shared_conversions([array]), ThreadPoolExecutor(4) as pool:
        found = list(pool.map(widened, [array] * 8))
    assert len({id(each) for each in found}) == 1
