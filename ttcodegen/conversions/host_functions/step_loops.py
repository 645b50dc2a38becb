"""Loops for steps: calls that each take results of the previous one, as in recurrent layers."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from xdsl.ir import SSAValue

from ttcodegen.conversions.host_functions.expressions import NamedConstant
from ttcodegen.conversions.host_functions.outlining import NamedValue, OutlinedFunction, body_of
from ttcodegen.conversions.host_functions.statements import (
    VECTOR,
    Counted,
    Kept,
    Loop,
    Statement,
)
from ttcodegen.emitc.spelling import Text
from ttcodegen.ops.core.calls import Argument, Call, Use

FEWEST_STEPS = 3
"""Minimum number of steps that become a loop."""

_INTEGER = re.compile(r"\d+$")
LIST = re.compile(r"([\w:]+<(u?int32_t)(?:, \d+)?>)\{(\d+(?:, \d+)*)\}$")
"""List of numbers in C++: its type, its element type, and the elements."""


def numbers_in(argument: Argument) -> tuple[str, list[int]]:
    """Splits an argument into its text without numbers, and the numbers; a value has none."""
    if not isinstance(argument, Text):
        return "", []
    if _INTEGER.match(argument.text):
        return "", [int(argument.text)]
    listed = LIST.match(argument.text)
    if listed is None:
        return argument.text, []
    items = [int(item) for item in listed[3].split(", ")]
    return f"{listed[1]}{{{len(items)}}}", items


def with_step_loops(
    statements: Sequence[Statement],
    functions: Sequence[OutlinedFunction],
    returned: Sequence[SSAValue],
    places: Mapping[SSAValue, tuple[str, str]],
) -> list[Statement]:
    """Replaces calls of one function that each take results of the previous one by loops.

    Other arguments are equal, or numbers with constant steps. Results of all steps are collected in
    a vector if one call takes them all, such as a concatenation. File constants that only such
    calls used are dropped.

    Args:
        statements: in order.
        functions: outlined functions.
        returned: values that the function returns.
        places: parameter and access path of weights, constants and inputs.
    """
    steps = _StepLoops(statements, functions, returned, places)
    found = steps.statements()
    are_looped = steps.are_looped
    for function in functions:
        members = function.places
        given = zip(function.groups[0].live_in, function.tensors, strict=True)
        held = {value: members[tensor] for value, tensor in given if tensor in members}
        inner = _StepLoops(body_of(function), functions, function.groups[0].live_out, held)
        body = inner.statements()
        if inner.are_looped:
            are_looped = True
            function.looped = body
            function.names = {**function.names, **names_of_loops(body, functions)}
    if are_looped:
        _drop_constants(found, functions)
    return found


def _drop_constants(statements: Sequence[Statement], functions: Sequence[OutlinedFunction]) -> None:
    """Drops file constants that no call uses."""
    groups = [
        group.statements if function.looped is None else function.looped
        for function in functions
        for group in function.groups
    ]
    named = {
        argument.text
        for statement in (*statements, *chain.from_iterable(groups))
        if isinstance(statement.call, Call)
        for argument in statement.call.arguments
        if isinstance(argument, NamedConstant)
    }
    for function in functions:
        function.values = [value for value in function.values if value.name in named]


def names_of_loops(
    statements: Sequence[Statement], functions: Sequence[OutlinedFunction]
) -> dict[SSAValue, str]:
    """Names of the results of loops over layers and steps.

    Carried results are named as in the function of the layer, vectors after the kept result."""
    given = {each.name: [*map(each.names.get, each.groups[0].live_out)] for each in functions}
    found: dict[SSAValue, str] = {}
    for statement in statements:
        call, loop = statement.call, statement.loop
        if loop is None or not isinstance(call, Call):
            continue
        names = given[call.callee]
        for result, (_, position) in zip(statement.results, loop.carried, strict=False):
            if (name := names[position]) is not None:
                found[result] = name
        for kept in loop.kept:
            found[kept.vector] = f"{names[kept.position] or 'result'}_by_step"
    return found


def vectors_of_loops(
    statements: Iterable[Statement], functions: Iterable[OutlinedFunction]
) -> set[SSAValue]:
    """Values that represent vectors of the results of loop iterations."""
    bodies = (function.looped or () for function in functions)
    found = chain(statements, chain.from_iterable(bodies))
    loops = [statement.loop for statement in found if statement.loop is not None]
    return {kept.vector for loop in loops for kept in loop.kept}


@dataclass(frozen=True)
class _Link:
    """Relation of two consecutive calls."""

    carried: tuple[tuple[int, int], ...]
    """Positions of arguments of the second that are results of the first, and of these results."""
    steps: tuple[tuple[int, ...], ...]
    """Differences of the numbers in each argument."""


class _StepLoops:
    """Finds consecutive steps."""

    def __init__(
        self,
        statements: Sequence[Statement],
        functions: Sequence[OutlinedFunction],
        returned: Sequence[SSAValue],
        places: Mapping[SSAValue, tuple[str, str]],
    ) -> None:
        self._all = list(statements)
        self._places = places
        self._constants = {value.name: value for each in functions for value in each.values}
        self._made_at = {
            result: index for index, each in enumerate(statements) for result in each.results
        }
        self._users: dict[SSAValue, list[int]] = {}
        for index, statement in enumerate(statements):
            for value in statement.uses:
                self._users.setdefault(value, []).append(index)
        for value in returned:
            self._users.setdefault(value, []).append(len(statements))
        self.are_looped = False
        """True if any loop was found."""

    def statements(self) -> list[Statement]:
        """Returns the statements, with loops for steps."""
        dropped: set[int] = set()
        for start, end, link in self._runs():
            # If two states start with the same value, the loop begins at the second step.
            for first in (start, start + 1):
                if end - first >= FEWEST_STEPS and self._replace(first, end, link):
                    dropped.update(range(first + 1, end))
                    break
        self.are_looped = bool(dropped)
        return [each for index, each in enumerate(self._all) if index not in dropped]

    def _runs(self) -> Iterator[tuple[int, int, _Link]]:
        """Yields start, end and relation of runs of calls with equal relations."""
        start, link = 0, None
        for index in range(1, len(self._all) + 1):
            is_end = index == len(self._all)
            found = None if is_end else self._link(self._all[index - 1], self._all[index])
            if found != link:
                if link is not None:
                    yield start, index, link
                start, link = index - 1, found

    def _link(self, before: Statement, after: Statement) -> _Link | None:
        """Relation of two calls; None if they are not steps of one loop."""
        call, other = before.call, after.call
        if not isinstance(call, Call) or not isinstance(other, Call):
            return None
        if not (call.outlined and other.outlined and call.callee == other.callee):
            return None
        is_looped = before.loop is not None or after.loop is not None
        if is_looped or not before.results or len(call.arguments) != len(other.arguments):
            return None
        carried: list[tuple[int, int]] = []
        steps: list[tuple[int, ...]] = []
        for place, (one, two) in enumerate(zip(call.arguments, other.arguments, strict=True)):
            if isinstance(two, Use) and two.value in before.results:
                carried.append((place, before.results.index(two.value)))
                steps.append(())
                continue
            grown = self._steps(one, two)
            if grown is None:
                return None
            steps.append(grown)
        return _Link(tuple(carried), tuple(steps)) if carried else None

    def _steps(self, one: Argument, two: Argument) -> tuple[int, ...] | None:
        """Differences of the numbers of an argument; None if anything else differs."""
        if self._is_same(one, two):
            return ()
        if isinstance(one, Text) and isinstance(two, Text):
            before, after = self._numbers(one), self._numbers(two)
            if [fixed for fixed, _ in before] != [fixed for fixed, _ in after]:
                return None
            pairs = zip(before, after, strict=True)
            return tuple(
                b - a for (_, old), (_, new) in pairs for a, b in zip(old, new, strict=True)
            )
        return None

    def _is_same(self, one: Argument, two: Argument) -> bool:
        """Returns whether two arguments are one tensor, or structures of the same tensors."""
        if isinstance(one, Use) and isinstance(two, Use):
            place = self._places.get(one.value)
            is_known = place is not None and place == self._places.get(two.value)
            return is_known or one.value is two.value
        if isinstance(one, Call) and isinstance(two, Call):
            kinds = [(c.form, c.callee, c.type, c.index, c.fields) for c in (one, two)]
            return (
                kinds[0] == kinds[1]
                and len(one.arguments) == len(two.arguments)
                and all(map(self._is_same, one.arguments, two.arguments))
            )
        return isinstance(one, Text) and isinstance(two, Text) and one == two

    def _numbers(self, argument: Text) -> Sequence[tuple[str, list[int]]]:
        """Pieces of C++ of an argument, each split into text and numbers."""
        value = self._constant(argument)
        if value is None:
            return [numbers_in(argument)]
        return [(value.type, []), *(numbers_in(Text(text)) for text in value.fields.values())]

    def _constant(self, argument: Text) -> NamedValue | None:
        """File constant that an argument names."""
        is_named = isinstance(argument, NamedConstant)
        return self._constants.get(argument.text) if is_named else None

    def _replace(self, start: int, end: int, link: _Link) -> bool:
        """Replaces a run of calls by a loop, if possible.

        Uses of kept results become uses of vectors."""
        run = self._all[start:end]
        first, last = run[0], run[-1]
        call = first.call
        assert isinstance(call, Call)
        taken = [call.arguments[place] for place, _ in link.carried]
        values = [each.value for each in taken if isinstance(each, Use)]
        positions = [position for _, position in link.carried]
        are_distinct = len(set(values)) == len(taken) == len(set(positions))
        counter = self._counter(call, link)
        if not are_distinct or counter is None:
            return False
        kept: list[Kept] = []
        changed: dict[int, Statement] = {}
        for position in range(len(first.results)):
            results = [statement.results[position] for statement in run]
            own = position in positions
            users = {user for value in results[:-1] for user in self._users.get(value, ())}
            users -= set(range(start, end))
            if own and not users:
                continue
            found = self._kept(position, results, users, start)
            if found is None or (not own and self._users.get(results[-1], []) != [*users]):
                return False
            user = users.pop()
            kept.append(found)
            changed[user] = _with_vector(changed.get(user, self._all[user]), found, results)
        type_, counts_from = counter
        arguments = [
            self._counted(argument, steps, counts_from) if any(steps) else argument
            for argument, steps in zip(call.arguments, link.steps, strict=True)
        ]
        # Operands are listed twice, so that no iteration frees what later ones use.
        shared = [value for value in first.uses if value not in values for _ in range(2)]
        carried = tuple(zip(values, positions, strict=True))
        self._all[start] = replace(
            first,
            call=replace(call, arguments=tuple(arguments)),
            results=(
                *(last.results[position] for position in positions),
                *(each.vector for each in kept),
            ),
            uses=(*values, *(value for each in kept for value in each.others), *shared),
            types=first.types,
            others=tuple(op for each in run for op in each.ops)[1:],
            loop=Loop("step", type_, len(run), carried, counts_from, kept=tuple(kept)),
        )
        for user, statement in changed.items():
            self._all[user] = statement
        return True

    def _kept(
        self, position: int, results: Sequence[SSAValue], users: Collection[int], start: int
    ) -> Kept | None:
        """Returns the vector of a result of all steps.

        None unless one call takes them all, in order."""
        (user,) = users if len(users) == 1 else (len(self._all),)
        if user == len(self._all):
            return None
        listed = _list_of(self._all[user].call, results[0])
        if listed is None or any(self._users[value].count(user) != 1 for value in results):
            return None
        values = [each.value for each in listed.arguments if isinstance(each, Use)]
        count = len(results)
        if values[-count:] == results:
            others, is_reversed = values[:-count], False
        elif values[:count] == results[::-1]:
            others, is_reversed = values[count:], True
        else:
            return None
        if any(self._made_at.get(value, -1) >= start for value in others):
            return None
        return Kept(results[0], position, tuple(others), is_reversed)

    def _counter(self, call: Call, link: _Link) -> tuple[str, int] | None:
        """Type and start of the counter; None if one counter cannot express all numbers."""
        types: set[str] = set()
        starts: list[int] = []
        pairs: list[tuple[int, int]] = []
        for argument, steps in zip(call.arguments, link.steps, strict=True):
            if not any(steps):
                continue
            assert isinstance(argument, Text)
            found = iter(steps)
            value = self._constant(argument)
            for text in (argument.text,) if value is None else value.fields.values():
                numbers = numbers_in(Text(text))[1]
                grown = [next(found) for _ in numbers]
                if any(grown):
                    listed = LIST.match(text)
                    types.add("uint32_t" if listed is None else listed[2])
                    pairs += zip(numbers, grown, strict=True)
        starts = [number for number, step in pairs if step == 1]
        first = min(starts, default=0)
        if any(step and number - first * step < 0 for number, step in pairs):
            first = 0
        type_ = types.pop() if types else "size_t"
        falls = any(step < 0 for _, step in pairs)
        return None if types or (falls and type_ == "uint32_t") else (type_, first)

    def _counted(self, argument: Argument, steps: Sequence[int], first: int) -> Argument:
        """Argument whose numbers depend on the counter."""
        assert isinstance(argument, Text)
        value = self._constant(argument)
        found = iter(steps)
        if value is None:
            return _counted(argument.text, found, first)
        fields = tuple(_counted(text, found, first) for text in value.fields.values())
        return Call(value.type, fields, value.type, "list", fields=tuple(value.fields))


def _counted(text: str, steps: Iterator[int], first: int) -> Argument:
    """Piece of C++ whose numbers have these steps."""
    numbers = numbers_in(Text(text))[1]
    grown = [(number, next(steps)) for number in numbers]
    if not any(step for _, step in grown):
        return Text(text)
    items = [
        Counted(str(number - first * step), step) if step else Text(str(number))
        for number, step in grown
    ]
    listed = LIST.match(text)
    return items[0] if listed is None else Call(listed[1], tuple(items), listed[1], "list")


def _list_of(call: Argument, value: SSAValue) -> Call | None:
    """Returns the argument of a call that is a list of tensors with a value, if any."""
    for each in call.arguments if isinstance(call, Call) and call.form == "call" else ():
        if isinstance(each, Call) and each.form == "list" and each.type == VECTOR:
            held = [item.value for item in each.arguments if isinstance(item, Use)]
            if len(held) == len(each.arguments) and value in held:
                return each
    return None


def _with_vector(user: Statement, kept: Kept, results: Sequence[SSAValue]) -> Statement:
    """Replaces the list of results in a statement by the vector that holds them."""
    call = user.call
    assert isinstance(call, Call)
    listed = _list_of(call, results[0])
    assert listed is not None
    arguments = tuple(Use(kept.vector) if each is listed else each for each in call.arguments)
    uses = list(user.uses)
    for value in (*results, *kept.others):
        uses.remove(value)
    # The second use empties the vector, which would otherwise keep its tensors alive.
    uses += [kept.vector] * 2
    return replace(user, call=replace(call, arguments=arguments), uses=tuple(uses))
