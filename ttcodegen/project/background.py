"""Work beside other work, in a thread that does not keep the program from ending."""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread
from typing import Generic, TypeVar

T = TypeVar("T")


class Background(Generic[T]):
    """A function that runs beside the caller.

    Unlike those of `concurrent.futures`, its thread is not waited for when the program ends: an
    interrupt from the keyboard need not wait for numpy.
    """

    def __init__(self, function: Callable[[], T]) -> None:
        self._function = function
        self._result: list[T] = []
        self._error: BaseException | None = None
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._result.append(self._function())
        except BaseException as error:
            self._error = error

    def result(self) -> T:
        """Waits for the end; returns what the function returned, or raises what it raised."""
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._result[0]
