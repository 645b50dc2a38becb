"""Equal sequences of statements become one function, called with what they differ in."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from xdsl.ir import SSAValue

from ttcodegen.conversions.naming import ValueNames
from ttcodegen.conversions.recording import TENSOR, Statement
from ttcodegen.dialects.datatypes import shape_of
from ttcodegen.emitc.naming import NameScope, identifier
from ttcodegen.emitc.text import Text
from ttcodegen.ops.cpp_calls import Argument, Call, Use
from ttcodegen.ops.cpp_parameters import MOST_UNNAMED, PARAMETERS

SHORTEST = 2
"""The fewest statements that are worth a function."""

_TOKENS = re.compile(r"[._/]+")
_DIGITS = re.compile(r"\d+")
_TYPES: Sequence[tuple[re.Pattern[str], str, str]] = tuple(
    (re.compile(pattern), type_, noun)
    for pattern, type_, noun in (
        (r"\d+$", "uint32_t", "size"),
        (r"-\d+$", "int32_t", "offset"),
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


@dataclass(frozen=True)
class Parameter:
    """A parameter of an outlined function."""

    name: str
    type: str
    places: frozenset[int]
    """Which pieces of C++ of the function, counted in order, it stands for; none for a tensor."""


@dataclass(eq=False)
class OutlinedFunction:
    """A function that several groups became."""

    name: str
    groups: Sequence[Group]
    tensors: Sequence[Parameter]
    """One for each value that comes in."""
    texts: Sequence[Parameter]
    uses_device: bool
    names: Mapping[SSAValue, str]
    """What the values of the first group are called in the function."""
    calls: dict[Group, Statement] = field(default_factory=dict[Group, Statement])
    """What stands for each group."""

    @property
    def parameters(self) -> list[Parameter]:
        """All but the device, in order."""
        return [*self.tensors, *self.texts]

    @property
    def takes_struct(self) -> bool:
        """Whether they are too many to be told apart by their order."""
        return len(self.parameters) + self.uses_device > MOST_UNNAMED


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
    return [_group(each, wanted) for each in (*alone, *members.values())]


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


def _group(inside: Sequence[Statement], wanted: Collection[SSAValue]) -> Group:
    made = {result for statement in inside for result in statement.results}
    used = dict.fromkeys(value for statement in inside for value in _uses(statement.call))
    return Group(
        tuple(inside),
        tuple(value for value in used if value not in made),
        tuple(value for s in inside for value in s.results if value in wanted),
    )


def outline(
    groups: Sequence[Group], names: ValueNames, scope: NameScope
) -> dict[int, OutlinedFunction]:
    """Finds the groups that are equal but for what they are called with.

    Args:
        groups: in order.
        names: what values are called.
        scope: the names of functions.

    Returns:
        The function of each group that has one, by the index of the group.
    """
    alike: dict[object, list[int]] = {}
    for index, each in enumerate(groups):
        if len(each.statements) >= SHORTEST and each.live_out:
            alike.setdefault(_signature(each), []).append(index)
    found: dict[int, OutlinedFunction] = {}
    for indices in alike.values():
        if len(indices) > 1:
            function = _function([groups[index] for index in indices], names, scope)
            found.update(dict.fromkeys(indices, function))
    return found


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
    is_flat = len(shape_of(result.type)) < len(shape_of(statement.uses[0].type))
    return f"flat_{name}" if is_flat else name


def _texts(argument: Argument, parameter: str) -> Iterator[tuple[str, str]]:
    if isinstance(argument, Text):
        yield argument.text, parameter
    elif isinstance(argument, Call):
        known = PARAMETERS.get(argument.callee.rpartition("::")[2], ())
        for index, inner in enumerate(argument.arguments):
            yield from _texts(inner, known[index] if index < len(known) else "")


def _signature(each: Group) -> object:
    """What two groups must have in common to be one function."""
    places = {
        result: (row, column)
        for row, statement in enumerate(each.statements)
        for column, result in enumerate(statement.results)
    }
    outer = {value: index for index, value in enumerate(each.live_in)}

    def shape(argument: Argument) -> object:
        if isinstance(argument, Text):
            return _kind(argument.text)[0] or argument.text
        if isinstance(argument, Use):
            return places.get(argument.value) or outer[argument.value]
        return (
            argument.callee,
            argument.form,
            argument.index,
            tuple(shape(inner) for inner in argument.arguments),
        )

    rows = tuple((shape(s.call), len(s.results)) for s in each.statements)
    return rows, tuple(places[value] for value in each.live_out)


def _kind(text: str) -> tuple[str, str]:
    """The type of the parameter that a piece of C++ can be, and a name; empty if it cannot."""
    array = _ARRAY.match(text)
    if array is not None:
        return f"const {array[1]}&", "sizes"
    return next(((t, noun) for pattern, t, noun in _TYPES if pattern.match(text)), ("", ""))


def common_name(names: Iterable[str]) -> str | None:
    """What several names have in common: `layer0.weight`, `layer1.weight` -> `layer_weight`."""
    found = list(names)
    if len(set(found)) == 1:
        return found[0]
    tokens = [
        [word for token in _TOKENS.split(name) if (word := _DIGITS.sub("", token))]
        for name in found
    ]
    shared: list[str] = []
    for words in zip(*(reversed(words) for words in tokens), strict=False):
        if len(set(words)) > 1:
            break
        shared.insert(0, words[0])
    return "_".join(shared) or None


def _function(groups: Sequence[Group], names: ValueNames, scope: NameScope) -> OutlinedFunction:
    first = groups[0]
    taken = NameScope(["device"])
    tensors: list[Parameter] = []
    inner: dict[SSAValue, str] = {}
    for index, value in enumerate(first.live_in):
        called = common_name(names[each.live_in[index]] for each in groups) or "operand"
        name = taken.unique(identifier(called))
        inner[value] = name
        tensors.append(Parameter(name, TENSOR, frozenset()))
    for row, statement in enumerate(first.statements):
        for column, value in enumerate(statement.results):
            called = common_name(names[g.statements[row].results[column]] for g in groups)
            inner[value] = called or "result"
    texts = list(zip(*(texts_of(each, inner) for each in groups), strict=True))
    places: dict[tuple[str, ...], list[int]] = {}
    for index, pieces in enumerate(texts):
        values = tuple(text for text, _ in pieces)
        if len(set(values)) > 1:
            places.setdefault(values, []).append(index)
    parameters: list[Parameter] = []
    for values, indices in places.items():
        type_, noun = _kind(values[0])
        told = next((texts[i][0][1] for i in indices if texts[i][0][1]), noun)
        parameters.append(Parameter(taken.unique(identifier(told)), type_, frozenset(indices)))
    device = any(text in ("device", "&device") for text, _ in texts_of(first, {}))
    name = scope.unique(identifier(_function_name(first, inner)))
    function = OutlinedFunction(name, groups, tensors, parameters, device, inner)
    function.calls = {each: _call(function, each) for each in groups}
    return function


def _call(function: OutlinedFunction, each: Group) -> Statement:
    """The statement that stands for a group."""
    found = [text for text, _ in texts_of(each, {})]
    arguments: list[Argument] = [Use(value) for value in each.live_in]
    arguments += [Text(found[min(p.places)]) for p in function.texts]
    if function.takes_struct:
        fields = tuple(parameter.name for parameter in function.parameters)
        type_ = struct_name(function)
        arguments = [Call(type_, tuple(arguments), type_, "list", fields=fields)]
    if function.uses_device:
        arguments.append(Text("device"))
    type_ = TENSOR if len(each.live_out) == 1 else f"std::array<{TENSOR}, {len(each.live_out)}>"
    call = Call(function.name, tuple(arguments), type_, outlined=True)
    return Statement(each.statements[0].op, call, each.live_out, each.live_in)


ARGUMENTS = "arguments"
"""The parameter that holds the structure of a function with many."""


def body_of(function: OutlinedFunction) -> list[Statement]:
    """The statements of a function, with its parameters in them."""
    prefix = f"{ARGUMENTS}." if function.takes_struct else ""
    named = {place: f"{prefix}{p.name}" for p in function.texts for place in p.places}
    position = 0
    done: dict[int, tuple[Call, int]] = {}

    def replaced(argument: Argument) -> Argument:
        nonlocal position
        if isinstance(argument, Text):
            name = named.get(position)
            position += 1
            return argument if name is None else Text(name)
        if isinstance(argument, Use):
            return argument
        if id(argument) not in done:
            start = position
            made = replace(argument, arguments=tuple(map(replaced, argument.arguments)))
            done[id(argument)] = made, position - start
            return made
        # What is written once, for several statements, stays one.
        made, count = done[id(argument)]
        position += count
        return made

    first = function.groups[0]
    return [replace(statement, call=replaced(statement.call)) for statement in first.statements]


def struct_name(function: OutlinedFunction) -> str:
    """The structure of the parameters of a function that has many."""
    words = "".join(word.capitalize() for word in function.name.split("_"))
    return f"{words}Arguments"


def _function_name(first: Group, names: Mapping[SSAValue, str]) -> str:
    """What a function that computes constants is called."""
    ops = {statement.op.name.rpartition(".")[2] for statement in first.statements}
    if "constant" in ops:
        return "load_parameter"
    if {"rsqrt", "subtract"} <= ops:
        return "fold_batch_norm"
    if "multiply" in ops:
        return "fold_scale"
    return f"prepare_{names[first.live_out[0]]}"
