"""Keeps results that take long, for another run that computes the same from the same.

A convolution of a bf16 image with bf16 weights has the same operands before and after lowering,
and the same meaning.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from typing import Any, cast

from ttcodegen.foundation.lazy_numpy import Array, np

_LEAST_PRODUCTS = 10**11
"""Multiplications below which computing again is as good as remembering."""
_MOST_BYTES = 1 << 30


class Memory:
    """The last results of expensive functions, by what they were computed from."""

    def __init__(
        self, least_products: int = _LEAST_PRODUCTS, most_bytes: int = _MOST_BYTES
    ) -> None:
        self._least_products = least_products
        self._most_bytes = most_bytes
        self._results: OrderedDict[bytes, Array] = OrderedDict()
        self._lock = Lock()

    def result(self, products: int, function: Callable[..., Array], *arguments: Any) -> Array:
        """`function` of the arguments (arrays, and what has a `repr` of its own),
        for which it takes so many multiplications.

        Returns:
            An array that is not to be changed.
        """
        if products < self._least_products:
            return function(*arguments)
        key = _digest(function, arguments)
        # A run that needs what another one is computing waits for it.
        with self._lock:
            found = self._results.get(key)
            if found is None:
                found = function(*arguments)
                found.flags.writeable = False
                self._results[key] = found
                while sum(each.nbytes for each in self._results.values()) > self._most_bytes:
                    self._results.popitem(last=False)
        return found


def _digest(function: Callable[..., Array], arguments: tuple[Any, ...]) -> bytes:
    digest = hashlib.blake2b(function.__qualname__.encode(), digest_size=32)
    for argument in arguments:
        if isinstance(argument, np.ndarray):
            array = cast("Array", argument)
            digest.update(f"\0{array.dtype} {array.shape}\0".encode())
            digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
        else:
            digest.update(f"\0{argument!r}\0".encode())
    return digest.digest()
