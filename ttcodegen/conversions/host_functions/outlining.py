"""Outlining: equal groups of statements become one function, and equal calls a loop."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter

from xdsl.ir import SSAValue

from ttcodegen.conversions.host_functions.cpp_interface import DEVICE, returned_type
from ttcodegen.conversions.host_functions.expressions import (
    NamedConstant,
    is_sharded_memory,
    kind_of,
)
from ttcodegen.conversions.host_functions.function_writer import FunctionWriter, Members, SourceFile
from ttcodegen.conversions.host_functions.statements import (
    Group,
    Statement,
    StatementRecorder,
    general_signature,
    pieces_of,
    signature,
    texts_of,
)
from ttcodegen.emitc.builder import TENSOR
from ttcodegen.emitc.spelling import NameScope, Text, identifier
from ttcodegen.naming.arguments import struct_name
from ttcodegen.naming.functions import (
    ARGUMENTS,
    SETTINGS,
    names_inside,
    names_of_forms,
    preparation_name,
    preparation_verb,
    prepared_parameter_name,
    settings_name,
)
from ttcodegen.naming.values import ValueNames
from ttcodegen.ops.core.calls import MOST_UNNAMED, Argument, Call, Use

# Equal groups of statements become one function, whose parameters are their differences.

_FUNCTION_TYPE = "decltype("
SHORTEST = 2
"""Minimum number of statements of a function."""


@dataclass(frozen=True, eq=False)
class Parameter:
    """Parameter of an outlined function, or a field of one that is a structure."""

    name: str
    type: str
    places: frozenset[int] = frozenset()
    """Indices of the pieces of C++ that it replaces; none for a tensor."""


@dataclass(frozen=True)
class ParameterStruct:
    """Parameters that an outlined function takes as one structure."""

    name: str
    type: str
    fields: tuple[Parameter, ...]
    is_declared: bool = False
    """True if the header of the module declares it."""
    is_element: bool = False
    """True if it is an element of an array of weights, constants or inputs.

    The fields are then access paths in it."""

    def named_value(self, name: str, texts: Iterable[str], groups: Collection[Group]) -> NamedValue:
        """Returns a constant of the file with these pieces of C++ in the fields."""
        fields = dict(zip((field.name for field in self.fields), texts, strict=True))
        return NamedValue(name, self.type, fields, groups)


@dataclass(frozen=True)
class NamedValue:
    """Constant of the source file that holds one of the structures."""

    name: str
    type: str
    fields: Mapping[str, str]
    """Pieces of C++ by field name."""
    groups: Collection[Group]
    """Groups that are called with it."""


@dataclass(eq=False)
class OutlinedFunction:
    """Function that replaces several groups."""

    name: str
    groups: Sequence[Group]
    tensors: Sequence[Parameter]
    """One for each incoming value."""
    texts: Sequence[Parameter]
    names: Mapping[SSAValue, str]
    """Names of the values of the first group in the function."""
    structs: Sequence[ParameterStruct] = ()
    """Structures that hold some of the parameters."""
    titles: Sequence[str | None] = ()
    """Layer of each group, for functions of layers."""
    comment: str = ""
    layers: Sequence[str] = ()
    """Layer comments before the statements, where the layer changes; empty for none."""
    values: Sequence[NamedValue] = ()
    """Constants of the file that groups are called with."""
    type_of: Callable[[SSAValue], str] = lambda _: TENSOR
    """C++ types of values."""
    context: Sequence[tuple[str, str]] = ((DEVICE, "ttnn::MeshDevice&"),)
    """Names and types that pieces of C++ may refer to; passed on if they do."""
    calls: dict[Group, Statement] = field(default_factory=dict[Group, Statement])
    """The statement that replaces each group."""
    looped: Sequence[Statement] | None = None
    """Statements of the function if they contain loops."""

    @property
    def places(self) -> dict[Parameter, tuple[str, str]]:
        """Structure and field names of the parameters that are members of structures."""
        return {each: (struct.name, each.name) for struct in self.structs for each in struct.fields}

    @property
    def parameters(self) -> list[tuple[str, str]]:
        """Names and types of the parameters of the C++ function."""
        members = self.places
        taken = [(p.name, p.type) for p in self.tensors if p not in members]
        taken += [(struct.name, f"const {struct.type}&") for struct in self.structs]
        taken += [(p.name, p.type) for p in self.texts if p not in members]
        return [*taken, *self.used_context]

    @property
    def used_context(self) -> list[tuple[str, str]]:
        """Part of the context that the statements refer to."""
        pieces = {text.removeprefix("&") for text in pieces_of(self.groups[0])}
        skeletons = [statement.form.skeleton for statement in self.groups[0].statements]
        return [
            (name, type_)
            for name, type_ in self.context
            if name in pieces or any(f"*{name}." in text for text in skeletons)
        ]

    @property
    def result_types(self) -> tuple[str, ...]:
        """C++ types of the results."""
        return tuple(map(self.type_of, self.groups[0].live_out))


def outline(
    groups: Sequence[Group],
    names: ValueNames,
    scope: NameScope,
    type_of: Callable[[SSAValue], str],
    context: Sequence[tuple[str, str]],
) -> dict[int, OutlinedFunction]:
    """Outlines equal groups of a computation of constants.

    Args:
        groups: in order.
        names: names of the values.
        scope: names of functions.
        type_of: the C++ types of values.
        context: names and types that pieces of C++ may refer to besides values.

    Returns:
        The function of each group that has one, by the index of the group.
    """
    alike: dict[object, dict[object, list[int]]] = {}
    for index, each in enumerate(groups):
        if len(each.statements) >= SHORTEST and each.live_out:
            equal = alike.setdefault(general_signature(each), {})
            equal.setdefault(signature(each), []).append(index)
    found: dict[int, OutlinedFunction] = {}
    for equal in alike.values():
        for indices in _merged(list(equal.values())):
            if len(indices) > 1:
                members = [groups[index] for index in indices]
                function = _preparation(members, names, scope, type_of, context)
                found.update(dict.fromkeys(indices, function))
    return found


def _merged(equal: Sequence[list[int]]) -> Sequence[list[int]]:
    """Merges groups that differ in file constants, if there are more groups than such constants."""
    if len(equal) > 1 and sum(map(len, equal)) > len(equal):
        return [sorted(index for indices in equal for index in indices)]
    return equal


def _preparation(
    groups: Sequence[Group],
    names: ValueNames,
    scope: NameScope,
    type_of: Callable[[SSAValue], str],
    context: Sequence[tuple[str, str]],
) -> OutlinedFunction:
    """Returns the function that computes the constants of several groups."""
    first = groups[0]
    taken = NameScope(name for name, _ in context)
    tensors: list[Parameter] = []
    inner: dict[SSAValue, str] = {}
    kept: dict[tuple[str, ...], str] = {}
    verb = preparation_verb(statement.op for statement in first.statements)
    for index, value in enumerate(first.live_in):
        called = tuple(names[each.live_in[index]] for each in groups)
        name = taken.unique(identifier(prepared_parameter_name(called, verb)))
        inner[value] = kept[called] = name
        tensors.append(Parameter(inner[value], type_of(value)))
    results = [each.results for each in groups]
    inner |= names_inside(results, names.__getitem__, "result")
    inner |= names_of_forms(results, names.__getitem__, kept)
    texts = differing_texts(groups, inner, taken)
    given = [each.live_out[0] for each in groups]
    name = preparation_name(verb, given, inner[given[0]], scope)
    function = OutlinedFunction(
        name, groups, tensors, texts, inner, type_of=type_of, context=context
    )
    if any(p.type.startswith(_FUNCTION_TYPE) for p in texts):
        _pass_settings(function, scope)
    elif len(function.parameters) > MOST_UNNAMED:
        tensors[:] = [Parameter(p.name, f"const {p.type}&") for p in tensors]
        fields = (*tensors, *texts)
        function.structs = [ParameterStruct(ARGUMENTS, struct_name(name, ARGUMENTS), fields)]
    add_calls(function)
    return function


def _pass_settings(function: OutlinedFunction, scope: NameScope) -> None:
    """Passes settings as one structure, with a file constant per set of values."""
    fields = [
        replace(p, type=p.type.removeprefix("const ").removesuffix("&")) for p in function.texts
    ]
    function.texts = fields
    struct = ParameterStruct(SETTINGS, struct_name(function.name, SETTINGS), tuple(fields))
    function.structs = [struct]
    alike: dict[tuple[str, ...], list[Group]] = {}
    for each in function.groups:
        alike.setdefault(given_texts(each, struct), []).append(each)
    function.values = [
        struct.named_value(
            scope.unique(settings_name(function.name, groups[0].live_out[0])), texts, groups
        )
        for texts, groups in alike.items()
    ]


def given_texts(each: Group, struct: ParameterStruct) -> tuple[str, ...]:
    """Pieces of C++ of a group for the fields of a structure."""
    texts = pieces_of(each)
    return tuple(texts[min(field.places)] for field in struct.fields)


def differing_texts(
    groups: Sequence[Group], names: Mapping[SSAValue, str], scope: NameScope
) -> list[Parameter]:
    """Returns parameters for pieces of C++ that differ between groups.

    Pieces with equal values in each group share a parameter; memory configs of different results
    stay apart, because each is tuned by itself.

    Args:
        groups: equal groups.
        names: names of the values of the first group.
        scope: the names of parameters.
    """
    texts = list(zip(*(texts_of(each, names) for each in groups), strict=True))
    places: dict[tuple[str, tuple[str, ...]], list[int]] = {}
    for index, pieces in enumerate(texts):
        values = tuple(text for text, _ in pieces)
        if len(set(values)) > 1:
            owner = pieces[0][1] if is_sharded_memory(values[0]) else ""
            places.setdefault((owner, values), []).append(index)
    parameters: list[Parameter] = []
    for (_, values), indices in places.items():
        given = [texts[index][0][1] for index in indices]
        kinds = [kind_of(values[0], each) for each in given]
        type_, noun = next(kind for kind in kinds if kind[0])
        name = next((each for each in given if each and not each.startswith("const ")), noun)
        parameters.append(Parameter(scope.unique(identifier(name)), type_, frozenset(indices)))
    return parameters


def add_calls(function: OutlinedFunction) -> None:
    """Adds the calls that replace the groups."""
    for index, each in enumerate(function.groups):
        title = function.titles[index] if function.titles else None
        function.calls[each] = _call(function, each, title)


def _call(function: OutlinedFunction, each: Group, title: str | None) -> Statement:
    found = pieces_of(each)
    given: dict[Parameter, Argument] = {
        parameter: Use(value)
        for parameter, value in zip(function.tensors, each.live_in, strict=True)
    }
    given |= {p: Text(found[min(p.places)]) for p in function.texts}
    members = function.places
    arguments: list[Argument] = [given[p] for p in function.tensors if p not in members]
    names = [p.name for p in function.tensors if p not in members]
    for struct in function.structs:
        fields = tuple(parameter.name for parameter in struct.fields)
        values = tuple(given[parameter] for parameter in struct.fields)
        form = "element" if struct.is_element else "list"
        braced = Call(struct.type, values, struct.type, form, fields=fields)
        is_own = {value.type: value.name for value in function.values if each in value.groups}
        named = is_own.get(struct.type)
        arguments.append(braced if named is None else NamedConstant(named, struct.type))
        names.append(struct.name)
    arguments += [given[p] for p in function.texts if p not in members]
    arguments += [Text(name) for name, _ in function.used_context]
    texts_alone = [p.name for p in function.texts if p not in members]
    names += [*texts_alone, *(name for name, _ in function.used_context)]
    types = function.result_types
    call = Call(
        function.name,
        tuple(arguments),
        returned_type(types) or "void",
        outlined=True,
        # Tensors and the device are clear by their own names.
        parameters=tuple(names) if texts_alone else (),
    )
    ops = [op for statement in each.statements for op in statement.ops]
    return Statement(
        ops[0], call, each.live_out, each.live_in, title, types=types, others=tuple(ops[1:])
    )


def body_of(function: OutlinedFunction) -> list[Statement]:
    """Returns the statements of a function, with its parameters substituted."""
    members = function.places
    named = {
        place: ".".join(members.get(parameter, (parameter.name,)))
        for parameter in function.texts
        for place in parameter.places
    }
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
            callee = argument.callee
            if argument.purpose:
                callee = named.get(position, callee)
                position += 1
            arguments = tuple(map(replaced, argument.arguments))
            made = replace(argument, callee=callee, arguments=arguments, purpose="")
            done[id(argument)] = made, position - start
            return made
        # A call that several statements share stays one object.
        made, count = done[id(argument)]
        position += count
        return made

    rows = zip(*(each.statements for each in function.groups), strict=True)
    titles = function.layers or [""] * len(function.groups[0].statements)
    return [
        replace(
            row[0],
            call=replaced(row[0].call),
            title=title or None,
            others=tuple(op for statement in row for op in statement.ops)[1:],
        )
        for row, title in zip(rows, titles, strict=True)
    ]


# Definitions of outlined functions.


def write_outlined(
    source: SourceFile, function: OutlinedFunction, recorder: StatementRecorder
) -> None:
    """Defines an outlined function, with the structures that it takes.

    Args:
        source: the file.
        function: the outlined function.
        recorder: recorder of its statements.
    """
    for struct in function.structs:
        if struct.is_declared:
            continue
        fields = [
            (field.name, f"const {field.type}&" if _is_owned(field, function) else field.type)
            for field in struct.fields
        ]
        remark = (
            f"What {function.name} runs for tensors of certain shapes."
            if any(field.type.startswith("decltype(") for field in struct.fields)
            else f"Arguments of {function.name}."
        )
        source.file.struct(struct.type, fields, remark)
        source.file.blank()
    for value in function.values:
        braced = ", ".join(f".{name} = {text}" for name, text in value.fields.items())
        source.file.global_constant(value.name, value.type, f"{{{braced}}}")
        source.file.blank()
    first = function.groups[0]
    taken = function.parameters
    names = [name for name, _ in taken]
    if function.comment:
        source.file.comment(function.comment)
    result = returned_type(function.result_types)
    builder = source.file.function(
        function.name, taken, result, specifiers=["static"], fixed_names=names
    )
    members = Members()
    structs = dict(zip(names, builder.arguments, strict=True))
    writer = FunctionWriter(source, builder, members, structs, recorder)
    writer.layer_of = attrgetter("title")
    places = function.places
    owned = [
        (value, parameter.name)
        for value, parameter in zip(first.live_in, function.tensors, strict=True)
        if _is_owned(parameter, function) and parameter not in places
    ]
    for value, parameter in zip(first.live_in, function.tensors, strict=True):
        if parameter in places:
            members.places[value] = places[parameter]
        else:
            writer.values[value] = structs[parameter.name]
    freed = {name for _, name in owned}
    reserved = [name for name in names if name not in freed]
    renewed = {
        value: f"next_{name}"
        for value in first.live_out
        if (name := function.names.get(value)) in reserved
    }
    writer.names = recorder.names.renamed({**function.names, **renewed})
    body = function.looped or body_of(function)
    writer.write(body, owned=owned, returned=first.live_out, reserved=reserved)
    writer.return_values(first.live_out, result)
    source.file.blank()


def _is_owned(parameter: Parameter, function: OutlinedFunction) -> bool:
    """Returns whether a parameter is a tensor by value, which the function frees."""
    return parameter in function.tensors and not parameter.type.startswith("const ")
