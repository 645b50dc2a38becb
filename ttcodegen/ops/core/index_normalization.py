"""Indices into a dimension, in numpy: none counts from the end, as numpy has it."""

from __future__ import annotations

from ttcodegen.foundation.lazy_numpy import Array, np


def places(indices: Array, count: int) -> Array:
    """The indices as int64.

    Raises:
        IndexError: if one of them is not from 0 to below `count`, which the device does not report
            from others: it reads or writes what is there.
    """
    # Integers of 64 bits without a sign may be too large for those with one.
    outside = (indices < 0) | (indices >= count)
    if outside.any():
        found = indices[outside].reshape(-1)[0]
        raise IndexError(f"index {found} is out of range, which is 0 to {count - 1}")
    return indices.astype(np.int64)
