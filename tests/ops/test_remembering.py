"""Memoization of expensive results."""

from __future__ import annotations

import numpy as np
import pytest

from ttcodegen.ops.core.engine import Memory


class Counting:
    """A function that counts its calls."""

    def __init__(self) -> None:
        self.calls = 0
        self.__qualname__ = "Counting"

    def __call__(self, array: np.ndarray, factor: int) -> np.ndarray:
        self.calls += 1
        return array * factor


def test_equal_arguments_have_one_result() -> None:
    memory, function = Memory(least_products=1), Counting()
    array = np.arange(12.0).reshape(3, 4)
    first = memory.result(10, function, array, 2)
    np.testing.assert_array_equal(first, array * 2)
    # In another order in memory as well.
    assert memory.result(10, function, np.asfortranarray(array), 2) is first
    assert function.calls == 1
    with pytest.raises(ValueError, match="read-only"):
        first[0] = 1


@pytest.mark.parametrize(
    "other",
    [
        (np.arange(12.0).reshape(4, 3), 2),
        (np.arange(12.0).reshape(3, 4) + 1, 2),
        (np.arange(12.0, dtype=np.float32).reshape(3, 4), 2),
        (np.arange(12.0).reshape(3, 4), 3),
    ],
    ids=["shape", "elements", "dtype", "number"],
)
def test_other_arguments_have_another(other: tuple[np.ndarray, int]) -> None:
    memory, function = Memory(least_products=1), Counting()
    memory.result(10, function, np.arange(12.0).reshape(3, 4), 2)
    result = memory.result(10, function, *other)
    assert function.calls == 2
    np.testing.assert_array_equal(result, other[0] * other[1])


def test_cheap_and_old_results_are_not_kept() -> None:
    memory, function = Memory(least_products=5, most_bytes=1000), Counting()
    arrays = [np.full(60, number, np.float64) for number in range(3)]
    for _ in range(2):
        memory.result(4, function, arrays[0], 2)
    assert function.calls == 2
    for array in arrays:
        memory.result(5, function, array, 2)
    memory.result(5, function, arrays[2], 2)
    assert function.calls == 5
    memory.result(5, function, arrays[0], 2)
    assert function.calls == 6
