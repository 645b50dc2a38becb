"""Statements in groups: what comes in, what goes out, and when two groups are equal but for what
they are called with."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from xdsl.ir import SSAValue

from ttcodegen.conversions.host_functions.expression_forms import SHAPE, form_of, is_sharded_memory
from ttcodegen.conversions.host_functions.recording import TENSOR, Statement
from ttcodegen.naming.parameters import shape_parameter_name
from ttcodegen.ops.core.calls import Argument, Call


@dataclass(frozen=True, eq=False)
class Group:
    """Statements that belong together, in order."""

    statements: tuple[Statement, ...]
    live_in: tuple[SSAValue, ...]
    """The values of others that they use, in the order of their first use."""
    live_out: tuple[SSAValue, ...]
    """Their values that others use."""

    @property
    def results(self) -> list[SSAValue]:
        """All values that they make, in order."""
        return [result for statement in self.statements for result in statement.results]


def components(statements: Sequence[Statement], returned: Iterable[SSAValue]) -> list[Group]:
    """Divides statements that may run in any order into groups that share no values.

    What several groups use and nothing is made of (a number that fills a tensor) is a group of its
    own, before all others.
    """
    maker = {result: index for index, s in enumerate(statements) for result in s.results}
    written = {value for s in statements if not s.results for value in s.uses}
    sets = _DisjointSets(len(statements))
    users: dict[int, list[int]] = {}
    calls: dict[int, int] = {}
    for index, statement in enumerate(statements):
        # Several results of one call: the first statement writes it for all of them.
        for call in _calls(statement.call):
            if call.type != TENSOR and form_of(call).values:
                sets.join(calls.setdefault(id(call), index), index)
        for value in statement.form.values:
            made = maker.get(value)
            if made is not None and (statements[made].uses or value in written):
                sets.join(made, index)
            elif made is not None:
                users.setdefault(made, []).append(index)
    shared: set[int] = set()
    for made, using in users.items():
        if len({sets.root(index) for index in using}) > 1:
            shared.add(made)
        else:
            sets.join(made, using[0])
    members: dict[int, list[Statement]] = {}
    for index, statement in enumerate(statements):
        if index not in shared:
            members.setdefault(sets.root(index), []).append(statement)
    wanted = set(returned).union(result for index in shared for result in statements[index].results)
    alone = [[statements[index]] for index in sorted(shared)]
    return [group_of(each, wanted) for each in (*alone, *members.values())]


class _DisjointSets:
    """Numbers in sets that are joined; the smallest of a set represents it."""

    def __init__(self, count: int) -> None:
        self._parent = list(range(count))

    def root(self, index: int) -> int:
        parent = self._parent
        while parent[index] != index:
            parent[index] = parent[parent[index]]
            index = parent[index]
        return index

    def join(self, first: int, second: int) -> None:
        low, high = sorted((self.root(first), self.root(second)))
        self._parent[high] = low


def _calls(argument: Argument) -> Iterator[Call]:
    """The calls in an expression."""
    if isinstance(argument, Call):
        yield argument
        for inner in argument.arguments:
            yield from _calls(inner)


def group_of(inside: Sequence[Statement], wanted: Collection[SSAValue]) -> Group:
    """The group of some statements; `wanted` are the values that others use."""
    made = {result for statement in inside for result in statement.results}
    used = dict.fromkeys(chain.from_iterable([statement.form.used for statement in inside]))
    return Group(
        tuple(inside),
        tuple([value for value in used if value not in made]),
        tuple([value for s in inside for value in s.results if value in wanted]),
    )


def pieces_of(each: Group) -> list[str]:
    """The pieces of C++ of a group in order."""
    return [text for statement in each.statements for text, _ in statement.form.texts]


def texts_of(each: Group, names: Mapping[SSAValue, str]) -> list[tuple[str, str]]:
    """The pieces of C++ of a group in order, each with the name of a parameter for it, or ''."""
    found: list[tuple[str, str]] = []
    for statement in each.statements:
        for text, name in statement.form.texts:
            is_shape = name == SHAPE if name else text.startswith("ttnn::Shape(")
            if is_shape and statement.results:
                result = statement.results[0]
                source = next(iter(statement.uses), None)
                name = shape_parameter_name(result, source, names.get(result, "result"))
            elif is_sharded_memory(text) and statement.results:
                name = f"{names.get(statement.results[0], 'result')}_memory"
            found.append((text, name))
    return found


class Links:
    """Where the values of statements come from, for groups of statements in a row to be compared
    without looking at their values again.

    Each position at which a statement makes or takes a value has the distance to the last position
    of the same value before it. Where that is before a group, a value comes in.
    """

    def __init__(self, statements: Iterable[Statement]) -> None:
        self._distances: list[int] = []
        self._starts = [0]
        """The first position of each statement."""
        last: dict[SSAValue, int] = {}
        for statement in statements:
            for value in (*statement.form.values, *statement.results):
                place = len(self._distances)
                # What is far away is outside of all groups.
                self._distances.append(place - last.get(value, -_FAR))
                last[value] = place
            self._starts.append(len(self._distances))

    def inside(self, start: int, end: int) -> tuple[int, ...]:
        """The distances of a group, 0 where a value is seen first: alike in groups of equal
        skeletons whose values go alike."""
        places = self._distances[self._starts[start] : self._starts[end]]
        return tuple([each if each <= place else 0 for place, each in enumerate(places)])


_FAR = 1 << 62


def general_signature(each: Group) -> object:
    """The same of groups that may differ in constants of the file."""
    return _signature(each, [statement.form.general for statement in each.statements])


def signature(each: Group) -> object:
    """What two groups must have in common to be one function."""
    return _signature(each, [statement.form.skeleton for statement in each.statements])


def _signature(each: Group, skeletons: Sequence[str]) -> object:
    wanted = set(each.live_out)
    return (
        tuple([(s, len(row.results)) for s, row in zip(skeletons, each.statements, strict=True)]),
        Links(each.statements).inside(0, len(each.statements)),
        tuple(
            [
                (row, column)
                for row, statement in enumerate(each.statements)
                for column, result in enumerate(statement.results)
                if result in wanted
            ]
        ),
    )
