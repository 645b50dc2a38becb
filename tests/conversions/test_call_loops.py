"""Calls that become loops."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import test
from xdsl.dialects.builtin import i32

from ttcodegen.conversions.host_functions.loops import with_loops
from ttcodegen.conversions.host_functions.statements import Loop, Statement
from ttcodegen.emitc.spelling import Text
from ttcodegen.ops.core.calls import Call, Use

OP = test.TestOp(result_types=[i32])
VALUE = OP.results[0]


def fill(*texts: str) -> Statement:
    """A call of an outlined function that returns nothing."""
    call = Call("fill", (Use(VALUE), *map(Text, texts)), "void", outlined=True)
    return Statement(OP, call, (), (VALUE,))


def loops(statements: Sequence[Statement]) -> list[Loop | None]:
    return [statement.loop for statement in with_loops(statements, [], [], {})]


def test_numbers_that_grow_evenly_are_counted() -> None:
    run = [fill(str(5 + 2 * turn), "7") for turn in range(4)]
    assert loops(run) == [Loop("index", "uint32_t", 4)]
    assert loops(run[:3]) == [None] * 3
    assert loops([*run, fill("12", "7")]) == [Loop("index", "uint32_t", 4), None]


def test_other_statements_end_a_run() -> None:
    """A statement may be any expression: a call with a result, a value, or a piece of C++."""
    run = [fill(str(turn)) for turn in range(4)]
    for call in (Text("device"), Use(VALUE), Call("ttnn::abs", (Use(VALUE),), "ttnn::Tensor")):
        other = Statement(OP, call, (VALUE,), ())
        assert loops([other, *run, other, other, *run]) == [
            None,
            Loop("index", "uint32_t", 4),
            None,
            None,
            Loop("index", "uint32_t", 4),
        ]


def test_an_unsigned_counter_makes_no_number_smaller() -> None:
    numbers = range(3, -1, -1)
    assert loops([fill(str(number)) for number in numbers]) == [None] * 4
    for type_, expected in (("int32_t", [Loop("index", "int32_t", 4)]), ("uint32_t", [None] * 4)):
        lists = [f"ttsl::SmallVector<{type_}>{{{number}, 0}}" for number in numbers]
        assert loops([fill(text) for text in lists]) == expected
