"""Kernels that never end: a loop in which a kernel neither waits nor does anything with a block."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager

PROGRESS_SECONDS = 30.0
"""Processor time after which a kernel that has done nothing to a block is taken for an endless
loop: what kernels do between such steps takes milliseconds."""


@contextmanager
def progress_required(
    steps: Callable[[], object], refusal: Callable[[], Exception]
) -> Generator[None]:
    """Ends what runs inside with an error once it makes no more progress.

    The system asks only the main thread, and not where somebody else measures processor time.

    Args:
        steps: what changes with each step.
        refusal: makes the error, called where the program is.
    """
    is_asked = (
        hasattr(signal, "setitimer")
        and threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGPROF) is signal.SIG_DFL
    )
    if not is_asked:
        yield
        return
    last = steps()

    def ask(_number: int, _frame: object) -> None:
        nonlocal last
        before, last = last, steps()
        if before == last:
            raise refusal()

    signal.signal(signal.SIGPROF, ask)
    signal.setitimer(signal.ITIMER_PROF, PROGRESS_SECONDS, PROGRESS_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
