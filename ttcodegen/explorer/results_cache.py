"""Results of requests, kept by content up to a number of bytes.

Requests for the same result that come while it is computed wait for it.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future

MOST_KEPT = 64 << 20
"""Bytes of the results that are kept."""


class ResultsCache:
    """A bounded cache of byte strings: least recently used entries are dropped first."""

    def __init__(self, most_kept: int = MOST_KEPT) -> None:
        self._most = most_kept
        self._kept: OrderedDict[str, bytes] = OrderedDict()
        self._bytes = 0
        self._computed: dict[str, Future[bytes]] = {}
        self._lock = threading.Lock()

    def get(self, key: str, compute: Callable[[], bytes]) -> bytes:
        """The result of that key, computed if it is not kept.

        Raises:
            Exception: what `compute` raises; all that wait for the result get it, later ones not.
        """
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
            waiting = self._computed.get(key)
            own: Future[bytes] = Future()
            if waiting is None:
                self._computed[key] = own
        if waiting is not None:
            return waiting.result()
        try:
            found = compute()
        except BaseException as error:
            with self._lock:
                del self._computed[key]
            own.set_exception(error)
            own.exception()
            raise
        with self._lock:
            del self._computed[key]
            self._keep(key, found)
        own.set_result(found)
        return found

    def _keep(self, key: str, found: bytes) -> None:
        # A result that would push most others out is computed again instead.
        if len(found) > self._most // 4:
            return
        self._kept[key] = found
        self._bytes += len(found)
        while self._bytes > self._most:
            _, dropped = self._kept.popitem(last=False)
            self._bytes -= len(dropped)
