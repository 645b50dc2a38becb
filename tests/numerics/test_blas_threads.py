"""The number of threads in which numpy computes matmuls."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ttcodegen.lang.simulator.operations import one_blas_thread, thread_functions


def break_off(threads: Callable[[], int]) -> None:
    with one_blas_thread():
        assert threads() == 1
        raise ValueError("broken off")


def test_one_thread_inside_and_as_many_as_before_afterwards() -> None:
    functions = thread_functions()
    if functions is None:
        pytest.skip("numpy has no OpenBLAS of its own")
    threads, set_threads = functions
    outer = threads()
    set_threads(2)
    try:
        with pytest.raises(ValueError, match="broken off"):
            break_off(threads)
        assert threads() == 2
    finally:
        set_threads(outer)
