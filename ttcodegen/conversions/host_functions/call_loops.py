"""Calls of one function that follow each other, with numbers that grow evenly, become a loop: what
is stored in a cache, row after row."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ttcodegen.conversions.host_functions.outlining import OutlinedFunction
from ttcodegen.conversions.host_functions.recording import Counted, Loop, Statement
from ttcodegen.emitc.text import Text
from ttcodegen.ops.core.calls import Argument, Call, Use

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


@dataclass(frozen=True)
class _Turn:
    """A call that may be a turn of a loop."""

    same: tuple[object, ...]
    """What all turns have in common."""
    numbers: Sequence[int]
    """What may grow."""


def _runs(statements: Sequence[Statement]) -> Iterator[list[Statement]]:
    """Calls whose numbers grow evenly; other statements by themselves."""
    run: list[Statement] = []
    last: _Turn | None = None
    steps: Sequence[int] | None = None
    for statement in statements:
        turn = _turn(statement)
        grown = _grown(last, turn)
        if run and (grown is None or (len(run) > 1 and grown != steps)):
            yield run
            run = []
        run.append(statement)
        last, steps = turn, grown
    if run:
        yield run


def _turn(statement: Statement) -> _Turn | None:
    """A statement as a turn of a loop; None if it calls no outlined function, wants a result, or
    makes an argument of other calls."""
    call = statement.call
    if not isinstance(call, Call) or not call.outlined or statement.results:
        return None
    same: list[object] = [call.callee]
    numbers: list[int] = []
    for argument in call.arguments:
        if isinstance(argument, Call):
            return None
        if isinstance(argument, Use):
            same.append(argument.value)
        else:
            fixed, found = _numbers(argument)
            same.append(fixed)
            numbers += found
    return _Turn(tuple(same), numbers)


def _grown(last: _Turn | None, turn: _Turn | None) -> Sequence[int] | None:
    """By how much each number is greater than before; None if these are no turns of one loop."""
    if last is None or turn is None or last.same != turn.same:
        return None
    return [after - before for before, after in zip(last.numbers, turn.numbers, strict=True)]


def _numbers(argument: Argument) -> tuple[str, list[int]]:
    """An argument without the numbers in it, and these; a value has none."""
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
    """The loop that a run is; None if its lists are of several types, or an unsigned counter would
    have to make a number smaller."""
    first, second = run[:2]
    call, after_call = first.call, second.call
    assert isinstance(call, Call)
    assert isinstance(after_call, Call)
    types: set[str] = set()
    turns: list[Argument] = []
    name = "index"
    known = parameters.get(call.callee, ())
    falls = False
    pairs = zip(call.arguments, after_call.arguments, strict=True)
    for position, (one, two) in enumerate(pairs):
        starts, nexts = _numbers(one)[1], _numbers(two)[1]
        if starts == nexts:
            turns.append(one)
            continue
        falls |= any(after < start for start, after in zip(starts, nexts, strict=True))
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
    type_ = next(iter(types), "uint32_t")
    if len(types) > 1 or (falls and type_ == "uint32_t"):
        return None
    return replace(
        first,
        call=replace(call, arguments=tuple(turns)),
        # The last turn does not free what the others need as well.
        uses=tuple(value for value in first.uses for _ in range(2)),
        others=tuple(op for each in run for op in each.ops)[1:],
        loop=Loop(name, type_, len(run)),
    )
