"""Loops for consecutive calls of one function."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from xdsl.ir import SSAValue

from ttcodegen.conversions.host_functions.outlining import OutlinedFunction
from ttcodegen.conversions.host_functions.statements import Counted, Loop, Statement
from ttcodegen.conversions.host_functions.step_loops import LIST, numbers_in, with_step_loops
from ttcodegen.emitc.builder import TENSOR
from ttcodegen.emitc.spelling import Text
from ttcodegen.naming.functions import common_title
from ttcodegen.naming.members import array_counts, next_element
from ttcodegen.ops.core.calls import Argument, Call, Use

# Calls without a result whose numbers are affine in the index, such as writes to successive rows
# of a cache.

FEWEST = 4
"""Minimum number of calls without a result that become a loop."""
FEWEST_LAYERS = 3
"""Minimum number of layers that become a loop, whose code takes four lines."""


def with_loops(
    statements: Sequence[Statement],
    functions: Sequence[OutlinedFunction],
    returned: Sequence[SSAValue],
    places: Mapping[SSAValue, tuple[str, str]],
) -> list[Statement]:
    """Replaces runs of calls without results, and of layers of an array, by loops.

    Args:
        statements: in order.
        functions: outlined functions.
        returned: values that the function returns.
        places: parameter and access path of weights, constants and inputs.
    """
    parameters = {each.name: [name for name, _ in each.parameters] for each in functions}
    found: list[Statement] = []
    for run in _runs(statements):
        looped = _loop(run, parameters) if len(run) >= FEWEST else None
        found += run if looped is None else [looped]
    found = list(_LayerLoops(found, returned, places).statements())
    return with_step_loops(found, functions, returned, places)


@dataclass(frozen=True)
class _Iteration:
    """Call that may be an iteration of a loop."""

    same: tuple[object, ...]
    """Values that are the same in all iterations."""
    numbers: Sequence[int]
    """Numbers that may be affine in the index."""


def _runs(statements: Sequence[Statement]) -> Iterator[list[Statement]]:
    """Yields runs of calls whose numbers have constant steps; other statements by themselves."""
    run: list[Statement] = []
    last: _Iteration | None = None
    steps: Sequence[int] | None = None
    for statement in statements:
        iteration = _as_iteration(statement)
        grown = _steps(last, iteration)
        if run and (grown is None or (len(run) > 1 and grown != steps)):
            yield run
            run = []
        run.append(statement)
        last, steps = iteration, grown
    if run:
        yield run


def _as_iteration(statement: Statement) -> _Iteration | None:
    """Returns a statement as an iteration of a loop.

    None if it calls no outlined function, has a result, or has nested calls as arguments."""
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
            fixed, found = numbers_in(argument)
            same.append(fixed)
            numbers += found
    return _Iteration(tuple(same), numbers)


def _steps(last: _Iteration | None, iteration: _Iteration | None) -> Sequence[int] | None:
    """Differences of the numbers of two calls; None if they cannot be iterations of one loop."""
    if last is None or iteration is None or last.same != iteration.same:
        return None
    return [after - before for before, after in zip(last.numbers, iteration.numbers, strict=True)]


def _loop(run: Sequence[Statement], parameters: Mapping[str, Sequence[str]]) -> Statement | None:
    """Returns the loop for a run.

    None if its lists have several element types, or an unsigned counter would have to decrease."""
    first, second = run[:2]
    call, after_call = first.call, second.call
    assert isinstance(call, Call)
    assert isinstance(after_call, Call)
    types: set[str] = set()
    arguments: list[Argument] = []
    name = "index"
    known = parameters.get(call.callee, ())
    falls = False
    pairs = zip(call.arguments, after_call.arguments, strict=True)
    for position, (one, two) in enumerate(pairs):
        starts, nexts = numbers_in(one)[1], numbers_in(two)[1]
        if starts == nexts:
            arguments.append(one)
            continue
        falls |= any(after < start for start, after in zip(starts, nexts, strict=True))
        items = [
            Text(str(start)) if start == after else Counted(str(start), after - start)
            for start, after in zip(starts, nexts, strict=True)
        ]
        assert isinstance(one, Text)
        listed = LIST.match(one.text)
        if listed is not None:
            types.add(listed[2])
            arguments.append(Call(listed[1], tuple(items), listed[1], "list"))
        else:
            arguments += items
            if items == [Counted("0", 1)] and position < len(known):
                name = known[position]
    type_ = next(iter(types), "uint32_t")
    if len(types) > 1 or (falls and type_ == "uint32_t"):
        return None
    return replace(
        first,
        call=replace(call, arguments=tuple(arguments)),
        # Operands are listed twice, so that no iteration frees what later ones use.
        uses=tuple(value for value in first.uses for _ in range(2)),
        others=tuple(op for each in run for op in each.ops)[1:],
        loop=Loop(name, type_, len(run)),
    )


# Consecutive layers, each of which takes the result of the previous one: a loop over the array of
# their weights.


class _LayerLoops:
    """Finds consecutive layers."""

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
        """Returns the statements, with loops over layers."""
        run: list[Statement] = []
        for statement in self._all:
            if run and not self._follows(run[-1], statement):
                yield from self._loop(run)
                run = []
            run.append(statement)
        if run:
            yield from self._loop(run)

    def _place(self, argument: Argument) -> tuple[str, str] | None:
        """Parameter and access path of a member, or of an element of an array."""
        if isinstance(argument, Use):
            return self._places.get(argument.value)
        if isinstance(argument, Call) and argument.form == "element":
            first = argument.arguments[0]
            assert isinstance(first, Use)
            holder, path = self._places[first.value]
            return holder, path.removesuffix(argument.fields[0]).rstrip(".")
        return None

    def _next(self, one: Argument, two: Argument) -> tuple[str, str, int, str] | None:
        """Matches neighbouring elements of an array.

        Returns the parameter, the access path of the array, the first index and the path in the
        element."""
        before, after = self._place(one), self._place(two)
        if before is None or after is None or before[0] != after[0]:
            return None
        found = next_element(before[1], after[1])
        return None if found is None else (before[0], *found)

    def _follows(self, before: Statement, after: Statement) -> bool:
        """Returns whether two statements can be successive iterations over layers.

        They call one function with neighbouring array elements and otherwise equal arguments, and
        the second takes the result of the first, which nothing else uses."""
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
        """Returns the loop for a run of layers.

        Returns the run itself if it is short, or if the input of the first layer has another
        use."""
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
        # Operands are listed twice, so that no iteration frees what later ones use.
        shared = tuple(value for value in first.uses if value != taken for _ in range(2))
        title = common_title(statement.title for statement in run) or first.title
        looped = replace(
            first,
            call=replace(call, arguments=tuple(arguments)),
            results=last.results,
            uses=(taken, *shared),
            title=title,
            others=tuple(op for each in run for op in each.ops)[1:],
            loop=Loop("index", "size_t", len(run), ((taken, 0),), starts[0], whole),
        )
        return [looped]


def _is_subscript(argument: Argument) -> bool:
    return isinstance(argument, Call) and argument.form == "subscript"
