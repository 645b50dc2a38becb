"""A process that watches the one in which a user's program runs.

A program can do to its process what no handler in it outlives: stop it, end it by a signal, leave
it from an exit handler, run on in C. Another process sees that, says it and ends it.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

from ttcodegen.foundation.messages import Level, report

SECONDS = 600.0
"""The time that a program may take, if no other is given."""
_STEP = 0.02
"""Seconds between two looks at the process."""
_BY_A_PROCESS = 0
"""Code of a signal that another process sent (SI_USER of sigaction(2))."""
_FAILED = 1
"""Exit status of a program that does not say its own."""


def supervise(seconds: float = SECONDS, remedy: str = "") -> Callable[[int], int]:
    """Divides the process: the caller goes on in the new one, this one watches it and never
    returns.

    Args:
        seconds: the time that it may take until `limit_seconds` says another; 0 is any.
        remedy: what gives it more time, if anything does.

    Returns:
        A function to call with the exit status: that is what the program ends with, whatever its
        exit handlers do.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    read, write = os.pipe()
    watched = os.fork()
    if watched != 0:
        os.close(write)
        os._exit(_watch(watched, read, seconds, remedy))
    os.close(read)
    _end_with_the_parent()
    _limit_memory()

    def report_status(status: int) -> int:
        with contextlib.suppress(OSError):  # The program may have closed all descriptors.
            os.write(write, bytes([status & 0xFF]))
        return status

    global _reported
    _reported = write
    return report_status


_reported = -1
"""The descriptor that the watching process reads."""


def limit_seconds(seconds: float) -> None:
    """Sets another limit of time from now on; 0 is none."""
    if _reported >= 0:
        with contextlib.suppress(OSError):  # The program may have closed all descriptors.
            os.write(_reported, b"\xff" + f"{seconds:g}\n".encode())


@contextmanager
def limited_seconds() -> Generator[None]:
    """Limits the time of what is done in it, and of nothing after it."""
    limit_seconds(SECONDS)
    try:
        yield
    finally:
        limit_seconds(0)


def _end_with_the_parent() -> None:
    death_signal = 1  # PR_SET_PDEATHSIG of prctl(2)
    ctypes.CDLL(None).prctl(death_signal, signal.SIGKILL)


def _limit_memory() -> None:
    """Lets an allocation that the machine has no memory for fail, rather than end processes."""
    there = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    limit = there * 3 // 4
    if soft == resource.RLIM_INFINITY or soft > limit:
        resource.setrlimit(resource.RLIMIT_DATA, (limit, hard))


def _watch(process: int, reports: int, seconds: float, remedy: str) -> int:
    """Waits for the process; the exit status."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    signal.signal(signal.SIGTERM, lambda number, frame: os.kill(process, number))
    os.set_blocking(reports, False)
    began = time.monotonic()
    text = b""
    while True:
        with contextlib.suppress(BlockingIOError):
            text += os.read(reports, 1 << 16)
        while text.startswith(b"\xff") and b"\n" in text:
            given, _, text = text[1:].partition(b"\n")
            seconds, began = float(given), time.monotonic()
        status = _status_in(text)
        found, how = os.waitpid(process, os.WNOHANG | os.WUNTRACED)
        if found and os.WIFSTOPPED(how) and os.WSTOPSIG(how) == signal.SIGSTOP:
            return _ended(process, "the program stopped its process")
        if found and not os.WIFSTOPPED(how):
            with contextlib.suppress(BlockingIOError):
                text += os.read(reports, 1 << 16)
            return _status_of(os.waitstatus_to_exitcode(how), _status_in(text))
        if seconds and time.monotonic() - began > seconds:
            if status is not None:
                _kill(process)
                return status
            return _ended(process, f"the program took longer than {seconds:g} s", remedy)
        interrupt = signal.sigtimedwait({signal.SIGINT}, _STEP)
        # The terminal gives it to both processes, others may to this one alone.
        if interrupt is not None and interrupt.si_code == _BY_A_PROCESS:
            os.kill(process, signal.SIGINT)


def _status_in(text: bytes) -> int | None:
    """The exit status, if it was reported; limits come before it."""
    while text.startswith(b"\xff"):
        text = text.partition(b"\n")[2]
    return text[0] if text else None


def _status_of(code: int, reported: int | None) -> int:
    if reported is not None:
        return reported
    if code < 0:
        name = signal.strsignal(-code) or f"signal {-code}"
        report(Level.ERROR, f"error: the program ended its process: {name}")
        return _FAILED
    if code == 0:
        report(Level.ERROR, "error: the program ended its process before it was done")
    return code or _FAILED


def _ended(process: int, fault: str, remedy: str = "") -> int:
    _kill(process)
    report(Level.ERROR, f"error: {fault}" + (f"\nnote: {remedy}" if remedy else ""))
    return _FAILED


def _kill(process: int) -> None:
    """Ends a process and what it started."""
    started: list[int] = []
    for task in Path(f"/proc/{process}/task").glob("*/children"):
        with contextlib.suppress(OSError, ValueError):
            started += map(int, task.read_text().split())
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(process, signal.SIGKILL)
    for each in started:
        _kill(each)
    with contextlib.suppress(ChildProcessError):
        os.waitpid(process, 0)
