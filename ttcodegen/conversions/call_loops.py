"""Calls of one function that follow each other, with numbers that grow evenly, become a loop: what
is stored in a cache, row after row."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ttcodegen.conversions.outlining import OutlinedFunction
from ttcodegen.conversions.recording import Counted, Loop, Statement
from ttcodegen.emitc.text import Text
from ttcodegen.ops.cpp_calls import Argument, Call, Use

FEWEST = 4
"""The fewest calls that are worth a loop."""

_INTEGER = re.compile(r"\d+$")
_LIST = re.compile(r"([\w:]+<(u?int32_t)(?:, \d+)?>)\{(\d+(?:, \d+)*)\}$")
"""A list of numbers: its type, the type of its elements, and these."""


def with_loops(
    statements: Sequence[Statement], functions: Sequence[OutlinedFunction]
) -> list[Statement]:
    """The statements, with loops for runs of calls that return nothing.

    Args:
        statements: in order.
        functions: what equal groups of statements became.
    """
    parameters = {each.name: [name for name, _ in each.parameters] for each in functions}
    found: list[Statement] = []
    for run in _runs(statements):
        looped = _loop(run, parameters) if len(run) >= FEWEST else None
        found += run if looped is None else [looped]
    return found


def _runs(statements: Sequence[Statement]) -> Iterator[list[Statement]]:
    """Calls whose numbers grow evenly; other statements by themselves."""
    run: list[Statement] = []
    before: list[int] = []
    steps: list[int] = []
    for statement in statements:
        numbers = [number for _, found in map(_numbers, _arguments(statement)) for number in found]
        grown = [b - a for a, b in zip(before, numbers, strict=False)]
        continues = run and _skeleton(run[0]) == _skeleton(statement) is not None
        if not continues or (len(run) > 1 and grown != steps):
            if run:
                yield run
            run = []
        run.append(statement)
        before, steps = numbers, grown
    if run:
        yield run


def _arguments(statement: Statement) -> Sequence[Argument]:
    """What an outlined function without results is called with; nothing of other statements."""
    call = statement.call
    is_turn = isinstance(call, Call) and call.outlined and not statement.results
    return call.arguments if is_turn and isinstance(call, Call) else ()


def _skeleton(statement: Statement) -> tuple[object, ...] | None:
    """What is the same in all turns of a loop; None if the statement cannot be one."""
    arguments = _arguments(statement)
    assert isinstance(statement.call, Call)
    if not arguments or any(isinstance(each, Call) for each in arguments):
        return None
    fixed = [each.value if isinstance(each, Use) else _numbers(each)[0] for each in arguments]
    return statement.call.callee, *fixed


def _numbers(argument: Argument) -> tuple[str, list[int]]:
    """An argument without the numbers in it, and these."""
    if not isinstance(argument, Text):
        return "", []
    if _INTEGER.match(argument.text):
        return "", [int(argument.text)]
    listed = _LIST.match(argument.text)
    if listed is None:
        return argument.text, []
    items = [int(item) for item in listed[3].split(", ")]
    return f"{listed[1]}{{{len(items)}}}", items


def _loop(run: Sequence[Statement], parameters: Mapping[str, Sequence[str]]) -> Statement | None:
    """The loop that a run is; None if its numbers are of several types."""
    first, second = run[:2]
    call = first.call
    assert isinstance(call, Call)
    types: set[str] = set()
    turns: list[Argument] = []
    name = "index"
    known = parameters.get(call.callee, ())
    for position, (one, two) in enumerate(zip(_arguments(first), _arguments(second), strict=True)):
        starts, nexts = _numbers(one)[1], _numbers(two)[1]
        if starts == nexts:
            turns.append(one)
            continue
        items = [
            Text(str(start)) if start == after else Counted(str(start), after - start)
            for start, after in zip(starts, nexts, strict=True)
        ]
        assert isinstance(one, Text)
        listed = _LIST.match(one.text)
        if listed is not None:
            types.add(listed[2])
            turns.append(Call(listed[1], tuple(items), listed[1], "list"))
        else:
            turns += items
            if items == [Counted("0", 1)] and position < len(known):
                name = known[position]
    if len(types) > 1:
        return None
    return replace(
        first,
        call=replace(call, arguments=tuple(turns)),
        # The last turn does not free what the others need as well.
        uses=tuple(value for value in first.uses for _ in range(2)),
        others=tuple(op for each in run for op in each.ops)[1:],
        loop=Loop(name, types.pop() if types else "uint32_t", len(run)),
    )
