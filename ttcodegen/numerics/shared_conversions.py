"""Inputs that several runs read, converted once.

The runs of a check read the same weights: bfloat16 arrays, that each computes with in float32.
Converting them takes longer than most of what is computed with them.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from threading import Lock

import ml_dtypes
import numpy as np

_MOST_BYTES = 8 << 30
"""Of the copies that are kept; what is beyond is converted whenever it is read."""


class _Conversions:
    """The float32 copies of some arrays, made on first use."""

    def __init__(self) -> None:
        self._wide: dict[int, np.ndarray | None] = {}
        self._locks: dict[int, Lock] = {}
        self._bytes = 0

    def add(self, arrays: Sequence[np.ndarray]) -> None:
        for array in arrays:
            fits = self._bytes + 4 * array.size <= _MOST_BYTES
            if array.dtype == ml_dtypes.bfloat16 and fits and id(array) not in self._locks:
                self._bytes += 4 * array.size
                self._wide[id(array)] = None
                self._locks[id(array)] = Lock()

    def remove(self, arrays: Sequence[np.ndarray]) -> None:
        for array in arrays:
            if self._locks.pop(id(array), None) is not None:
                self._bytes -= 4 * array.size
                del self._wide[id(array)]

    def widened(self, array: np.ndarray) -> np.ndarray:
        lock = self._locks.get(id(array))
        if lock is None:
            return array.astype(np.float32)
        with lock:
            wide = self._wide[id(array)]
            if wide is None:
                wide = array.astype(np.float32)
                wide.flags.writeable = False
                self._wide[id(array)] = wide
            return wide


_CONVERSIONS = _Conversions()


@contextmanager
def shared_conversions(arrays: Sequence[np.ndarray]) -> Generator[None]:
    """Keeps what `widened` makes of these arrays; they must stay and not change meanwhile."""
    _CONVERSIONS.add(arrays)
    try:
        yield
    finally:
        _CONVERSIONS.remove(arrays)


def widened(array: np.ndarray) -> np.ndarray:
    """The elements of a bfloat16 array as float32; the array is not to be changed."""
    return _CONVERSIONS.widened(array)
