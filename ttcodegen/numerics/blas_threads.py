"""The number of threads in which numpy computes matmuls.

Handing a small product to other threads takes longer than computing it, by far if they have to wait
for a processor.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np

_PREFIXES = ("scipy_", "")
_SUFFIXES = ("64_", "")
"""Of the names of functions: in the wheels of numpy, and in a library with indices of 64 bits."""


@contextmanager
def one_blas_thread() -> Generator[None]:
    """Matmuls are computed in the thread that asks for them, if numpy has the OpenBLAS
    that its wheels bring along; the libraries of other builds decide themselves."""
    functions = thread_functions()
    if functions is None:
        yield
        return
    threads, set_threads = functions
    before = threads()
    set_threads(1)
    try:
        yield
    finally:
        set_threads(before)


@cache
def thread_functions() -> tuple[Callable[[], int], Callable[[int], None]] | None:
    """Getter and setter of the number of threads."""
    package = Path(np.__file__).parent
    folders = (package.with_name("numpy.libs"), package / ".dylibs")
    for path in sorted(path for folder in folders for path in folder.glob("lib*openblas*")):
        library = ctypes.CDLL(str(path))
        for prefix, suffix in product(_PREFIXES, _SUFFIXES):
            names = [f"{prefix}openblas_{verb}_num_threads{suffix}" for verb in ("get", "set")]
            if all(hasattr(library, name) for name in names):
                return getattr(library, names[0]), getattr(library, names[1])
    return None
