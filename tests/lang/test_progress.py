"""Loops without an end and deadlocks: found, counted and named."""

from __future__ import annotations

import pytest

from tests.lang.running import compiler_refusal, failure, operation, run_text
from tests.lang.test_rules import READ
from ttcodegen.lang.simulator import loops

ENDLESS = """
@ttl.datamovement()
def read():
    with x_dfb.reserve() as blk:
        ttl.copy(x[0, 0], blk).wait()
@ttl.compute()
def compute():
    with x_dfb.wait() as blk, y_dfb.reserve() as out:
        out.store(blk)
        {loop}
            {step}
@ttl.datamovement()
def write():
    with y_dfb.wait() as blk:
        ttl.copy(blk, y[0, 0]).wait()
"""


def test_a_loop_without_end_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, "PROGRESS_SECONDS", 0.1)
    reported = failure(
        operation(ENDLESS.format(loop="for n in range(10**6):", step="sum(range(10**4))"))
    )
    kernel = "the compute kernel 'compute' on node (0, 0)"
    message = f"error: {kernel} makes no progress: in 0.1 s of processor time it has not waited"
    assert message in reported
    assert reported.startswith(("program.py:16:", "program.py:17:"))


def test_a_long_loop_of_block_expressions_is_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, "PROGRESS_SECONDS", 0.1)
    run_text(operation(ENDLESS.format(loop="for i in range(8000):", step="out += blk")))


PERSISTENT = """
@ttl.datamovement()
def read():
    {before}
    {loop}
        with x_dfb.reserve() as blk:
            ttl.copy(x[0, 0], blk).wait()
        {after}
@ttl.datamovement()
def write():
    while not False:
        with x_dfb.wait() as blk:
            ttl.copy(blk, y[0, 0]).wait()
            if tuple(y.shape) == (1, 1): break
"""


@pytest.mark.parametrize(
    ("before", "loop", "after"),
    [
        ("pass", "while True:", "pass"),
        ("n, m = 0, 0", "while n < 4:", "m += 1"),
        ("n = 0", "while n < 4 and 1:", "for k in range(2):\n            if k: break"),
    ],
)
def test_a_loop_that_nothing_ends_is_refused_before_it_runs(
    before: str, loop: str, after: str
) -> None:
    text = operation(PERSISTENT.format(before=before, loop=loop, after=after))
    first, shown, *_ = failure(text).splitlines()
    message = "nothing in this loop ends it, or changes what its condition reads"
    assert first.endswith(f"the kernel 'read' never ends: {message}")
    assert shown.strip() == loop


@pytest.mark.parametrize(
    ("before", "loop", "after"),
    [
        ("n = 0", "while n < 1:", "n += 1"),
        ("pass", "while True:", "if True: break"),
        ("n = 0", "while n < 1:", "n = max(n, 1)"),
    ],
)
def test_loops_that_may_end_are_run(before: str, loop: str, after: str) -> None:
    text = operation(PERSISTENT.format(before=before, loop=loop, after=after))
    assert "deadlock: no kernel can go on" in failure(text)


ENDLESS_COUNTERS = [
    ("n = 0", "while n >= 0:", "n += 1", "what this loop changes never makes its condition false"),
    ("n, m = 5, 3", "while m < n + 1 and 1:", "n = n + 2\n        m -= 1",
     "what this loop changes never makes its condition false"),
    ("import itertools", "for n in itertools.count():", "pass",
     "nothing in this loop ends it, and what it goes over has no end"),
    ("from itertools import cycle", "for n in cycle([1, 2]):", "pass",
     "nothing in this loop ends it, and what it goes over has no end"),
]  # fmt: skip


@pytest.mark.parametrize(("before", "loop", "after", "message"), ENDLESS_COUNTERS)
def test_a_counter_that_never_ends_a_loop_is_refused_before_it_runs(
    before: str, loop: str, after: str, message: str
) -> None:
    text = operation(PERSISTENT.format(before=before, loop=loop, after=after))
    first, shown, *_ = failure(text).splitlines()
    assert first.endswith(f"the kernel 'read' never ends: {message}")
    assert shown.strip() == loop


MISSED = """
@ttl.datamovement()
def read():
    {loop}
        with x_dfb.reserve() as blk:
            ttl.copy(x[0, 0], blk).wait()
        n += 2
@ttl.datamovement()
def write():
    n = 0
    {loop}
        with x_dfb.wait() as blk:
            ttl.copy(blk, y[0, 0]).wait()
        n += 2
"""


@pytest.mark.parametrize(
    "loop", ["n = 0\n    while n != 3:", "n = 0\n    for n in iter(lambda: 4, 3):"]
)
def test_the_turns_of_loops_with_blocks_are_counted(
    loop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loops, "MAX_TRIP_COUNT", 50)
    first, shown, caret, *_ = failure(operation(MISSED.format(loop=loop))).splitlines()
    assert first.endswith(
        "this loop of the data movement kernel 'read' on node (0, 0) has no end: it has gone on "
        "for 50 iterations"
    )
    assert shown.strip() == loop.splitlines()[-1].strip()
    assert caret.index("^") == 8


def test_the_compiler_goes_through_a_loop_so_often_only() -> None:
    reported = compiler_refusal(operation(MISSED.format(loop="n = 0\n    while n != 3:")))
    assert "error: this loop has not ended after 1,000 iterations" in reported.splitlines()[0]


def test_loops_over_what_has_a_length_are_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, "MAX_TRIP_COUNT", 3)
    run_text(operation(ENDLESS.format(loop="for i in list(range(8)):", step="out += blk")))


@pytest.mark.parametrize(
    "loop", ["for i in range({numbers}):", "for i in [i + 1 for i in range({numbers})]:"]
)
def test_ranges_have_so_many_numbers_only(loop: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, "MAX_TRIP_COUNT", 8)
    text = operation(ENDLESS.format(loop=loop, step="out += blk"))
    run_text(text.format(numbers=8))
    first, *_ = failure(text.format(numbers=9)).splitlines()
    assert first.endswith(
        "this loop of the compute kernel 'compute' on node (0, 0) goes over range(0, 9), more than "
        "the 8 iterations that a loop of a kernel has"
    )


READ_WITHOUT_PUSH = """
@ttl.datamovement()
def read():
    x_blk = x_dfb.reserve()
    ttl.copy(x[0, 0], x_blk).wait()
@ttl.compute()
def compute():
    with x_dfb.wait() as x_blk:
        -x_blk
"""
READ_WITHOUT_POP = """
@ttl.datamovement()
def read():
    for _ in range(3):
        with x_dfb.reserve() as x_blk:
            ttl.copy(x[0, 0], x_blk).wait()
@ttl.compute()
def compute():
    x_blk = x_dfb.wait()
    -x_blk
"""


@pytest.mark.parametrize(
    ("body", "message", "note", "line"),
    [
        (READ_WITHOUT_PUSH, "a block of 'x_dfb' is never pushed",
         "the data movement kernel 'read' on node (0, 0) has not pushed the block of 'x_dfb' that "
         "it acquired by reserve here", "x_blk = x_dfb.reserve()"),
        (READ_WITHOUT_POP, "a block of 'x_dfb' is never popped",
         "the compute kernel 'compute' on node (0, 0) has not popped the block of 'x_dfb' that it "
         "acquired by wait here", "x_blk = x_dfb.wait()"),
    ],
)  # fmt: skip
def test_a_deadlock_names_the_release_that_is_missing(
    body: str, message: str, note: str, line: str
) -> None:
    lines = failure(operation(body)).splitlines()
    assert lines[0].endswith(f"deadlock: no kernel can go on; {message}")
    (number,) = (n for n, each in enumerate(lines) if each.endswith(f"note: {note}"))
    assert lines[number + 1].strip() == line


def test_a_deadlock_names_kernels_that_have_ended() -> None:
    body = READ + "@ttl.compute()\ndef compute():\n    for _ in range(2):\n"
    reported = failure(operation(body + "        with x_dfb.wait() as x_blk:\n            -x_blk"))
    note = "the data movement kernel 'read' on node (0, 0) has ended; it pushed 1 block of 'x_dfb'"
    assert reported.splitlines()[-1].endswith(note)
