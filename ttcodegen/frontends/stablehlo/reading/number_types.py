"""The numpy dtypes of elements."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ttcodegen.foundation.lazy_numpy import np

if TYPE_CHECKING:
    import numpy


def numpy_dtype(name: str) -> numpy.dtype:
    """The dtype of that name; numpy knows `bfloat16` once its package is imported."""
    import ml_dtypes

    assert ml_dtypes is not None
    return np.dtype(name)
