"""Runs the kernels of all nodes in turn: each goes on until it has to wait for another.

The order is fixed: kernels start node by node in the order in which they are defined, and go on in
the order in which what they waited for came about.
"""

from __future__ import annotations

import traceback
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from types import FrameType

import numpy as np
from greenlet import GreenletExit, getcurrent, greenlet

from ttcodegen.foundation.diagnostics import Note
from ttcodegen.foundation.user_files import is_of_user
from ttcodegen.lang.simulator import progress
from ttcodegen.lang.simulator.context import Awaitable, Kernel, Task, current
from ttcodegen.lang.simulator.locations import ProgramError, error, place, user_frame
from ttcodegen.numerics.blas_threads import one_blas_thread

MOST_NOTES = 12
"""Waiting kernels that a deadlock names."""


class Scheduler:
    """The kernels of one launch."""

    def __init__(self) -> None:
        self._ready: deque[Task] = deque()
        self._tasks: list[Task] = []
        self._running: Task | None = None
        self._turns = 0
        self._hub = getcurrent()

    def run(self, kernels: Sequence[Kernel]) -> None:
        """Runs kernels to their ends.

        Raises:
            ProgramError: if one breaks a rule, or if those that are left wait for each other.
        """
        self._hub = getcurrent()
        self._tasks = [Task(kernel, greenlet(partial(_carry_out, kernel))) for kernel in kernels]
        self._ready.extend(self._tasks)
        outer = current.node, current.kernel
        try:
            with one_blas_thread(), progress.progress_required(self._steps, self._no_progress):
                self._run_ready()
            stuck = [task for task in self._tasks if not task.thread.dead]
            if stuck:
                raise _deadlock(stuck)
        finally:
            current.node, current.kernel = outer
            self._end()

    def _run_ready(self) -> None:
        while self._ready:
            task = self._ready.popleft()
            self._running = task
            self._turns += 1
            current.node, current.kernel = task.kernel.node, task.kernel
            task.thread.switch()

    def _steps(self) -> object:
        """Progress counter that changes with each block operation and context switch."""
        return self._turns, self._running.kernel.steps if self._running is not None else 0

    def _no_progress(self) -> ProgramError:
        kernel = self._running.kernel if self._running is not None else "no kernel"
        return error(
            f"{kernel} makes no progress: in {progress.PROGRESS_SECONDS:g} s of processor time it "
            "has not waited, and not read, written, pushed or popped a block",
            remedy="let the loop end, or wait in it",
        )

    def _end(self) -> None:
        """Unwinds the kernels that an error left where they were."""
        for task in self._tasks:
            if not task.thread.dead:
                task.thread.throw(GreenletExit)
        self._tasks = []
        self._ready.clear()

    def wait_until(
        self, thing: Awaitable, is_so: Callable[[], bool], what: Callable[[], str]
    ) -> None:
        """Lets others run until a condition holds; `what` says what is waited for."""
        task = self._running
        assert task is not None
        while not is_so():
            task.waits_for, task.waits_at = what, thing
            thing.waiting.append(task)
            self._hub.switch()
        task.waits_for = task.waits_at = None

    def changed(self, thing: Awaitable) -> None:
        """Lets those that wait for a thing look at it again."""
        if thing.waiting:
            self._ready.extend(thing.waiting)
            thing.waiting.clear()


def returned_value(kernel: Kernel) -> ProgramError:
    """The error of a kernel that returns something."""
    message = f"the kernel '{kernel.name}' returns a value; kernel functions return None"
    return error(message, at=kernel.defined)


def _carry_out(kernel: Kernel) -> None:
    # The device says nothing of infinities; each greenlet has a setting of its own.
    with np.errstate(all="ignore"):
        # The annotation of the user's function is the user's.
        try:
            returned: object = kernel.function()
        except SystemExit as raised:
            frames = [frame for frame, _ in traceback.walk_tb(raised.__traceback__)]
            at = next(
                (
                    (frame.f_code, frame.f_lasti)
                    for frame in reversed(frames)
                    if is_of_user(frame.f_code.co_filename)
                ),
                kernel.defined,
            )
            raise error(f"{kernel} ends the program; a kernel ends by return", at=at) from None
    kernel.has_ended = True
    if returned is not None:
        raise returned_value(kernel)


def _frame_of(task: Task) -> FrameType | None:
    """The user's frame in which a kernel waits."""
    frame = task.thread.gr_frame
    return None if frame is None else user_frame(frame)


def _deadlock(stuck: Sequence[Task]) -> ProgramError:
    notes: list[Note] = []
    for task in stuck[:MOST_NOTES]:
        assert task.waits_for is not None
        frame = _frame_of(task)
        where = place((frame.f_code, frame.f_lasti)) if frame is not None else None
        notes.append(Note(f"{task.kernel} waits for {task.waits_for()}", where))
    if len(stuck) > MOST_NOTES:
        notes.append(Note(f"and {len(stuck) - MOST_NOTES} more kernels wait"))
    where = notes[0].place
    awaited = {id(task.waits_at): task.waits_at for task in stuck if task.waits_at is not None}
    explained = [note for thing in awaited.values() for note in thing.held_up_by()]
    notes += explained[:MOST_NOTES]
    message = "deadlock: no kernel can go on"
    forgotten = next(filter(None, (thing.forgotten() for thing in awaited.values())), None)
    if forgotten is not None:
        message += f"; {forgotten}"
    return ProgramError(message, where, notes=notes)
