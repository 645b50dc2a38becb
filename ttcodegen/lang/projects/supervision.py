"""Supervisor process of the process that runs a user's program.

A program can stop its process, end it by a signal, leave it from an exit handler, or loop in C
code,
which no handler inside the process survives. The supervisor detects that, reports it, and ends the
process.
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
"""Default time limit of a program."""
_POLL_SECONDS = 0.02
"""Polling interval in seconds."""
_SI_USER = 0
"""Signal code of signals from another process (SI_USER of sigaction(2))."""
_FAILED = 1
"""Exit status of a program that did not report its own."""


def supervise(seconds: float = SECONDS, remedy: str = "") -> Callable[[int], int]:
    """Forks: the caller continues in the child, and the parent supervises it without returning.

    Args:
        seconds: initial time limit, until `limit_seconds` changes it; 0 for none.
        remedy: hint how to raise the limit, if there is a way.

    Returns:
        A function to call with the exit status, which the parent exits with whatever exit handlers
        of the program do.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    read, write = os.pipe()
    watched = os.fork()
    if watched != 0:
        os.close(write)
        os._exit(_watch(watched, read, seconds, remedy))
    os.close(read)
    _die_with_parent()
    _limit_memory()

    def report_status(status: int) -> int:
        with contextlib.suppress(OSError):  # The program may have closed all descriptors.
            os.write(write, bytes([status & 0xFF]))
        return status

    global _report_descriptor
    _report_descriptor = write
    return report_status


_report_descriptor = -1
"""File descriptor for reports to the supervisor."""


def limit_seconds(seconds: float) -> None:
    """Restarts the time limit with another value; 0 for none."""
    if _report_descriptor >= 0:
        with contextlib.suppress(OSError):  # The program may have closed all descriptors.
            os.write(_report_descriptor, b"\xff" + f"{seconds:g}\n".encode())


@contextmanager
def limited_seconds() -> Generator[None]:
    """Scope with the default time limit, and none after it."""
    limit_seconds(SECONDS)
    try:
        yield
    finally:
        limit_seconds(0)


def _die_with_parent() -> None:
    death_signal = 1  # PR_SET_PDEATHSIG of prctl(2)
    ctypes.CDLL(None).prctl(death_signal, signal.SIGKILL)


def _limit_memory() -> None:
    """Limits memory, so that allocations fail before the system kills processes."""
    physical = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    limit = physical * 3 // 4
    if soft == resource.RLIM_INFINITY or soft > limit:
        resource.setrlimit(resource.RLIMIT_DATA, (limit, hard))


def _watch(process: int, reports: int, seconds: float, remedy: str) -> int:
    """Waits for the supervised process, and returns the exit status."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    signal.signal(signal.SIGTERM, lambda number, frame: os.kill(process, number))
    os.set_blocking(reports, False)
    start = time.monotonic()
    text = b""
    while True:
        with contextlib.suppress(BlockingIOError):
            text += os.read(reports, 1 << 16)
        while text.startswith(b"\xff") and b"\n" in text:
            limit_text, _, text = text[1:].partition(b"\n")
            seconds, start = float(limit_text), time.monotonic()
        status = _reported_status(text)
        found, wait_status = os.waitpid(process, os.WNOHANG | os.WUNTRACED)
        if found and os.WIFSTOPPED(wait_status) and os.WSTOPSIG(wait_status) == signal.SIGSTOP:
            return _kill_with_error(process, "the program stopped its process")
        if found and not os.WIFSTOPPED(wait_status):
            with contextlib.suppress(BlockingIOError):
                text += os.read(reports, 1 << 16)
            return _exit_status(os.waitstatus_to_exitcode(wait_status), _reported_status(text))
        if seconds and time.monotonic() - start > seconds:
            if status is not None:
                _kill(process)
                return status
            return _kill_with_error(process, f"the program took longer than {seconds:g} s", remedy)
        interrupt = signal.sigtimedwait({signal.SIGINT}, _POLL_SECONDS)
        # A terminal interrupts both processes, but other senders may only interrupt this one.
        if interrupt is not None and interrupt.si_code == _SI_USER:
            os.kill(process, signal.SIGINT)


def _reported_status(text: bytes) -> int | None:
    """Reported exit status, if any; changes of the time limit precede it."""
    while text.startswith(b"\xff"):
        text = text.partition(b"\n")[2]
    return text[0] if text else None


def _exit_status(code: int, reported: int | None) -> int:
    if reported is not None:
        return reported
    if code < 0:
        name = signal.strsignal(-code) or f"signal {-code}"
        report(Level.ERROR, f"error: the program ended its process: {name}")
        return _FAILED
    if code == 0:
        report(Level.ERROR, "error: the program ended its process before it was done")
    return code or _FAILED


def _kill_with_error(process: int, fault: str, remedy: str = "") -> int:
    _kill(process)
    report(Level.ERROR, f"error: {fault}" + (f"\nnote: {remedy}" if remedy else ""))
    return _FAILED


def _kill(process: int) -> None:
    """Kills a process and its descendants."""
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
