"""Statements in groups: what comes in, what goes out, and when two groups are equal but for what
they are called with."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from xdsl.ir import SSAValue

from ttcodegen.conversions.recording import TENSOR, Statement
from ttcodegen.dialects.datatypes import shape_of
from ttcodegen.emitc.text import Text
from ttcodegen.ops.cpp_calls import Argument, Call, Use
from ttcodegen.ops.cpp_parameters import PARAMETERS, SIZES

_INTEGER = re.compile(r"\d+$")
_TYPES: Sequence[tuple[re.Pattern[str], str, str]] = tuple(
    (re.compile(pattern), type_, noun)
    for pattern, type_, noun in (
        (r"-?[\d.]+(?:e[+-]?\d+)?f$", "float", "factor"),
        (r"(?:true|false)$", "bool", "flag"),
        (r'"', "const char*", "name"),
        (r"ttnn::Shape\(", "const ttnn::Shape&", "shape"),
        (r"ttnn::DataType::", "ttnn::DataType", "data_type"),
        (r"ttnn::Layout::", "ttnn::Layout", "layout"),
    )
)
"""Pieces of C++ that a parameter can stand for: their form, the type and a name for it."""
_ARRAY = re.compile(r"(std::array<\w+, \d+>)\{")


@dataclass(frozen=True, eq=False)
class Group:
    """Statements that belong together, in order."""

    statements: tuple[Statement, ...]
    live_in: tuple[SSAValue, ...]
    """The values of others that they use, in the order of their first use."""
    live_out: tuple[SSAValue, ...]
    """Their values that others use."""


def components(statements: Sequence[Statement], returned: Iterable[SSAValue]) -> list[Group]:
    """Divides statements that may run in any order into groups that share no values.

    What several groups use and nothing is made of (a number that fills a tensor) is a group of its
    own, before all others.
    """
    maker = {result: index for index, s in enumerate(statements) for result in s.results}
    sets = _DisjointSets(len(statements))
    users: dict[int, list[int]] = {}
    calls: dict[int, int] = {}
    for index, statement in enumerate(statements):
        # Several results of one call: the first statement writes it for all of them.
        for call in _calls(statement.call):
            if call.type != TENSOR and any(True for _ in _uses(call)):
                sets.join(calls.setdefault(id(call), index), index)
        for value in _uses(statement.call):
            made = maker.get(value)
            if made is not None and statements[made].uses:
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
    """Numbers in sets that are joined; the least of a set stands for it."""

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


def _uses(argument: Argument) -> Iterator[SSAValue]:
    """The values in an expression, also of a call that an earlier statement has written."""
    if isinstance(argument, Use):
        yield argument.value
    for call in _calls(argument):
        for inner in call.arguments:
            if isinstance(inner, Use):
                yield inner.value


def group_of(inside: Sequence[Statement], wanted: Collection[SSAValue]) -> Group:
    """The group of some statements; `wanted` are the values that others use."""
    made = {result for statement in inside for result in statement.results}
    used = dict.fromkeys(value for statement in inside for value in _uses(statement.call))
    return Group(
        tuple(inside),
        tuple(value for value in used if value not in made),
        tuple(value for s in inside for value in s.results if value in wanted),
    )


def texts_of(each: Group, names: Mapping[SSAValue, str]) -> list[tuple[str, str]]:
    """The pieces of C++ of a group in order, each with the name of a parameter for it, or ''."""
    found: list[tuple[str, str]] = []
    for statement in each.statements:
        for text, told in _texts(statement.call, ""):
            if not told and text.startswith("ttnn::Shape(") and statement.results:
                told = _shape_name(statement, names)
            found.append((text, told))
    return found


def _shape_name(statement: Statement, names: Mapping[SSAValue, str]) -> str:
    """The name of the parameter that says the shape of what a statement makes."""
    result = statement.results[0]
    name = f"{names.get(result, 'result')}_shape".removeprefix("result_")
    if not statement.uses:
        return name
    before, after = shape_of(statement.uses[0].type), shape_of(result.type)
    is_flat = len(after) < len(before) or (
        len(after) == len(before) > 2 and after[:2] == (1, 1) != before[:2]
    )
    return f"flat_{name}" if is_flat else name


def _texts(argument: Argument, parameter: str) -> Iterator[tuple[str, str]]:
    if isinstance(argument, Text):
        yield argument.text, parameter
    elif isinstance(argument, Call):
        parameters = _parameters_of(argument.callee, len(argument.arguments))
        for inner, told in zip(argument.arguments, parameters, strict=True):
            if isinstance(inner, Text):
                yield inner.text, told
            elif isinstance(inner, Call):
                yield from _texts(inner, told)


def signature(each: Group) -> object:
    """What two groups must have in common to be one function."""
    places = {
        result: (row, column)
        for row, statement in enumerate(each.statements)
        for column, result in enumerate(statement.results)
    }
    outer = {value: index for index, value in enumerate(each.live_in)}

    def place(value: SSAValue) -> object:
        return places.get(value) or outer[value]

    rows = tuple((shape_of_call(s.call, place), len(s.results)) for s in each.statements)
    return rows, tuple(places[value] for value in each.live_out)


def shape_of_call(
    argument: Argument, place: Callable[[SSAValue], object], parameter: str = ""
) -> Hashable:
    """An expression without what may differ where it is one function.

    Args:
        argument: the expression.
        place: what stands for a value in it.
        parameter: the name of the parameter that takes the expression, or ''.
    """
    if isinstance(argument, Text):
        return kind_of(argument.text, parameter)[0] or argument.text
    if isinstance(argument, Use):
        return place(argument.value)
    arguments = argument.arguments
    parameters = _parameters_of(argument.callee, len(arguments))
    inner = tuple(
        [shape_of_call(each, place, told) for each, told in zip(arguments, parameters, strict=True)]
    )
    return argument.callee, argument.form, argument.index, argument.fields, inner


# Asked for each piece of each run of statements that might be a function; few are different.
@lru_cache(maxsize=1 << 14)
def kind_of(text: str, parameter: str) -> tuple[str, str]:
    """The type of the parameter that a piece of C++ can be, and a name; empty if it cannot.

    `parameter` is the name of the parameter of the library that takes it: an integer is one only
    where it is known that the library takes it as a size.
    """
    if _INTEGER.match(text):
        return ("uint32_t", parameter) if parameter in SIZES else ("", "")
    array = _ARRAY.match(text)
    if array is not None:
        return f"const {array[1]}&", "sizes"
    return next(((t, noun) for pattern, t, noun in _TYPES if pattern.match(text)), ("", ""))


@lru_cache(maxsize=1 << 12)
def _parameters_of(callee: str, count: int) -> tuple[str, ...]:
    """The names of the parameters of a number of arguments, '' where nobody knows it."""
    known = PARAMETERS.get(callee.partition("<")[0].rpartition("::")[2], ())
    return (*known[:count], *[""] * (count - len(known)))
