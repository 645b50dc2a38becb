"""Loops for calls of one function that follow each other."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from xdsl.ir import SSAValue

from ttcodegen.conversions.host_functions.outlining import OutlinedFunction
from ttcodegen.conversions.host_functions.statements import TENSOR, Counted, Loop, Statement
from ttcodegen.emitc.spelling import Text
from ttcodegen.naming.functions import common_title
from ttcodegen.naming.members import array_counts, next_element
from ttcodegen.ops.core.calls import Argument, Call, Use

# Calls without a result whose numbers are affine in the index: what is stored in a cache, row after
# row.

FEWEST = 4
"""The fewest calls without a result that are worth a loop."""
FEWEST_LAYERS = 3
"""The fewest layers that are: the variable and the loop take four lines."""

_INTEGER = re.compile(r"\d+$")
_LIST = re.compile(r"([\w:]+<(u?int32_t)(?:, \d+)?>)\{(\d+(?:, \d+)*)\}$")
"""A list of numbers: its type, the type of its elements, and these."""


def with_loops(
    statements: Sequence[Statement],
    functions: Sequence[OutlinedFunction],
    returned: Sequence[SSAValue],
    places: Mapping[SSAValue, tuple[str, str]],
) -> list[Statement]:
    """The statements, with loops for runs of calls that return nothing, and for layers that are
    called one after the other with elements of an array.

    Args:
        statements: in order.
        functions: what equal groups of statements became.
        returned: what the function returns.
        places: the parameter and the access path of weights, constants and inputs.
    """
    parameters = {each.name: [name for name, _ in each.parameters] for each in functions}
    found: list[Statement] = []
    for run in _runs(statements):
        looped = _loop(run, parameters) if len(run) >= FEWEST else None
        found += run if looped is None else [looped]
    return list(_LayerLoops(found, returned, places).statements())


def names_of_loops(
    statements: Sequence[Statement], functions: Sequence[OutlinedFunction]
) -> dict[SSAValue, str]:
    """Names for the results of loops over layers: those that the functions of the layers have."""
    given = {
        each.name: each.names.get(each.groups[0].live_out[0])
        for each in functions
        if each.groups[0].live_out
    }
    found: dict[SSAValue, str] = {}
    for statement in statements:
        call = statement.call
        if statement.loop is None or not statement.results or not isinstance(call, Call):
            continue
        if (name := given[call.callee]) is not None:
            found[statement.results[0]] = name
    return found


@dataclass(frozen=True)
class _Turn:
    """A call that may be a turn of a loop."""

    same: tuple[object, ...]
    """Values that are the same in all iterations."""
    numbers: Sequence[int]
    """Numbers that may be affine in the index."""


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


# Layers that follow each other, each given what the one before it made: a loop over the elements
# of the array that holds their weights.


class _LayerLoops:
    """Finds layers that follow each other."""

    def __init__(
        self,
        statements: Sequence[Statement],
        returned: Sequence[SSAValue],
        places: Mapping[SSAValue, tuple[str, str]],
    ) -> None:
        self._all = statements
        self._uses = Counter(value for statement in statements for value in statement.uses)
        self._uses.update(returned)
        self._places = places
        counts: dict[str, list[str]] = {}
        for holder, path in places.values():
            counts.setdefault(holder, []).append(path)
        self._counts = {holder: array_counts(paths) for holder, paths in counts.items()}

    def statements(self) -> Iterator[Statement]:
        """The statements, with loops over layers."""
        run: list[Statement] = []
        for statement in self._all:
            if run and not self._follows(run[-1], statement):
                yield from self._loop(run)
                run = []
            run.append(statement)
        if run:
            yield from self._loop(run)

    def _place(self, argument: Argument) -> tuple[str, str] | None:
        """The parameter and the access path of a member, or of an element of an array."""
        if isinstance(argument, Use):
            return self._places.get(argument.value)
        if isinstance(argument, Call) and argument.form == "element":
            first = argument.arguments[0]
            assert isinstance(first, Use)
            holder, path = self._places[first.value]
            return holder, path.removesuffix(argument.fields[0]).rstrip(".")
        return None

    def _next(self, one: Argument, two: Argument) -> tuple[str, str, int, str] | None:
        """Neighbouring elements of an array: what holds it, its access path, the first index and
        the access path in the elements."""
        before, after = self._place(one), self._place(two)
        if before is None or after is None or before[0] != after[0]:
            return None
        found = next_element(before[1], after[1])
        return None if found is None else (before[0], *found)

    def _follows(self, before: Statement, after: Statement) -> bool:
        """True if two statements call one function with neighbouring elements of arrays and equal
        arguments, and the second takes what only the first makes."""
        call, other = before.call, after.call
        if not isinstance(call, Call) or not isinstance(other, Call):
            return False
        if not (call.outlined and other.outlined and call.callee == other.callee):
            return False
        if len(before.results) != 1 or len(after.results) != 1 or before.loop or after.loop:
            return False
        made = before.results[0]
        if self._uses[made] != 1 or len(call.arguments) != len(other.arguments):
            return False
        carried = elements = 0
        for one, two in zip(call.arguments, other.arguments, strict=True):
            if self._next(one, two) is not None:
                elements += 1
            elif self._place(one) is not None and self._place(one) == self._place(two):
                continue
            elif isinstance(one, Use) and isinstance(two, Use):
                carried += two.value is made
                if two.value is not made and one.value is not two.value:
                    return False
            elif _is_subscript(one) and _is_subscript(two):
                assert isinstance(one, Call)
                assert isinstance(two, Call)
                if one.arguments[0] is not two.arguments[0] or two.index != one.index + 1:
                    return False
                elements += 1
            elif one != two or isinstance(one, Call):
                return False
        return carried == 1 and elements > 0

    def _loop(self, run: Sequence[Statement]) -> Sequence[Statement]:
        """The loop that a run of layers is; the run itself if it is short, or if something else
        uses what the first layer is given."""
        first, last = run[0], run[-1]
        if len(run) < FEWEST_LAYERS:
            return run
        call, after_call = first.call, run[1].call
        assert isinstance(call, Call)
        assert isinstance(after_call, Call)
        pairs = list(zip(call.arguments, after_call.arguments, strict=True))
        taken = next(
            one.value
            for one, two in pairs
            if isinstance(one, Use) and isinstance(two, Use) and two.value is first.results[0]
        )
        if self._uses[taken] != 1:
            return run
        starts: list[int] = []
        whole: Call | None = None
        arguments: list[Argument] = []
        for one, two in pairs:
            element = self._next(one, two)
            if element is not None:
                holder, path, index, inside = element
                type_ = one.type if isinstance(one, Call) else TENSOR
                count = self._counts[holder][path]
                array = Call(path, (Text(holder),), f"std::array<{type_}, {count}>", "member")
            elif _is_subscript(one):
                assert isinstance(one, Call)
                index, array, inside, type_ = one.index, one.arguments[0], "", one.type
            else:
                arguments.append(one)
                continue
            assert isinstance(array, Call)
            starts.append(index)
            is_whole = array.type.endswith(f", {len(run)}>")
            if is_whole and (whole is None or TENSOR in whole.type):
                whole = replace(array)
            counted = Counted(str(index - starts[0]), 1)
            made = Call("", (replace(array), counted), type_, "subscript")
            arguments.append(Call(inside, (made,), type_, "member") if inside else made)
        if min(starts) < starts[0]:
            return run
        # The last turn does not free what the others need as well.
        shared = tuple(value for value in first.uses if value != taken for _ in range(2))
        title = common_title(statement.title for statement in run) or first.title
        looped = replace(
            first,
            call=replace(call, arguments=tuple(arguments)),
            results=last.results,
            uses=(taken, *shared),
            title=title,
            others=tuple(op for each in run for op in each.ops)[1:],
            loop=Loop("index", "size_t", len(run), taken, starts[0], whole),
        )
        return [looped]


def _is_subscript(argument: Argument) -> bool:
    return isinstance(argument, Call) and argument.form == "subscript"
