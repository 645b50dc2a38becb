"""Writes statements as C++ functions of the host, for both targets."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field

from xdsl.ir import SSAValue

from ttcodegen.conversions.host_functions.cpp_interface import (
    DEVICE,
    LAST_USE,
    TTNN,
    HostTypes,
    parameters,
    returned_type,
)
from ttcodegen.conversions.host_functions.interface import (
    Entry,
    InterfaceTensor,
    member_at,
    nested_members,
)
from ttcodegen.conversions.host_functions.layer_analysis import Part, layers_of, split
from ttcodegen.conversions.host_functions.statements import (
    TENSOR,
    Counted,
    Loop,
    SourceFacts,
    Statement,
    StatementRecorder,
)
from ttcodegen.conversions.host_functions.variables import (
    Lifetime,
    Usage,
    options_type,
    plan_variables,
    with_options,
)
from ttcodegen.emitc.builder import Argument as Value
from ttcodegen.emitc.builder import EmitCBuilder
from ttcodegen.emitc.spelling import NameScope, Text, identifier
from ttcodegen.emitc.statements import VerbatimOp
from ttcodegen.naming.functions import part_name
from ttcodegen.naming.members import Layout
from ttcodegen.naming.modules import GivenNames
from ttcodegen.naming.sources import layer
from ttcodegen.ops.core.calls import MOST_UNNAMED, Argument, Call, Use, parameter_names

# Writes statements as the body of a C++ function on the host, for both targets.

_COLUMNS = 94
"""Of a line, without its indentation and parentheses."""
_MEMBER = 36
"""Length of the name of a value that is a member or named for its layer."""


class Members(GivenNames):
    """The values that are members of the structures that a function gets."""

    def __init__(self) -> None:
        super().__init__()
        self.places: dict[SSAValue, tuple[str, str]] = {}
        """The parameter and the field of each."""

    @classmethod
    def of(cls, entry: Entry) -> Members:
        """The members that the functions of an entry share."""
        members = cls()
        for tensor in entry.arguments:
            members.bind_argument(tensor.value, tensor)
        fields = dict(entry.constants)
        for value, name in zip(entry.constant_values, entry.names.constants, strict=True):
            members.places[value] = ("constants", fields.get(value, ""))
            members.give(value, name, is_weight=True)
        return members

    def layer_of(self, statement: Statement) -> str | None:
        """The layer that a statement belongs to, or is."""
        return statement.title or layer(statement.op, self.weight_names)

    def comment_of(self, statement: Statement) -> str | None:
        """The layer that a comment before a statement may name."""
        return self.layer_of(statement) if statement.results else None

    def layers(self, statements: Iterable[Statement]) -> list[str]:
        """The layer of each statement."""
        return layers_of(statements, self.layer_of)

    def bind_argument(self, value: SSAValue, tensor: InterfaceTensor) -> None:
        """Makes a value a tensor of the entry."""
        self.places[value] = ("weights" if tensor.is_weight else "inputs", tensor.path)
        self.give(value, tensor.title, is_weight=tensor.is_weight)


@dataclass(frozen=True)
class Body:
    """State that the functions of an entry share."""

    entry: Entry
    members: Members
    recorder: StatementRecorder

    def lines_of(self, statement: Statement) -> int:
        """Approximate number of lines of a statement."""
        names = self.recorder.names

        def length(argument: Argument) -> int:
            if isinstance(argument, Text):
                return len(argument.text) + 2
            if isinstance(argument, Use):
                return len(names[argument.value]) + 12
            if argument.form == "element":
                return _MEMBER
            if argument.fields:
                # They are written one below the other where they do not fit into a line.
                return sum(82 * (1 + length(each) // 60) for each in argument.arguments)
            labels = sum(map(len, parameter_names(argument.callee, len(argument.arguments)))) + sum(
                len(name) + 4 for name in argument.fields
            )
            return len(argument.callee) + labels + sum(map(length, argument.arguments)) + 2

        assigned = sum(len(names[result]) + 16 for result in statement.results)
        title = 0 if statement.title is None else 2
        call = statement.call
        if statement.runs_statements and isinstance(call, Call) and not assigned:
            # Arguments are aligned with the first one, which leaves less of a line to them, and
            # values have longer names in the function of a layer.
            lengths = [
                max(length(each), _MEMBER) if isinstance(each, Use) else length(each)
                for each in call.arguments
            ]
            return title + _lines_of_arguments(call.callee, lengths)
        return 1 + title + (length(call) + assigned) // 82


def _lines_of_arguments(callee: str, lengths: Iterable[int]) -> int:
    """Number of lines of a call whose arguments have these lengths."""
    room = max(_COLUMNS - len(callee), 1)
    lines, taken = 1, 0
    for length in lengths:
        if taken and taken + length > room:
            lines, taken = lines + 1, 0
        taken += length
    return lines


@dataclass
class SourceFile:
    """The source file of a module while it is written."""

    file: EmitCBuilder
    facts: SourceFacts = field(default_factory=SourceFacts)
    function_names: NameScope = field(default_factory=NameScope)
    types: HostTypes = TTNN
    uses_last_use: bool = False
    wrappers: set[str] = field(default_factory=set[str])
    """Functions that are called with a structure of their options."""

    def open(
        self, body: Body, builder: EmitCBuilder, taken: Sequence[tuple[str, str]] | None = None
    ) -> FunctionWriter:
        """A writer that knows the members of the structures as the values of the function.

        `taken` are names and types of its parameters, those of the entry if None.
        """
        taken = parameters(body.entry, self.types) if taken is None else taken
        names = [name for name, _ in taken]
        structs = dict(zip(names, builder.arguments, strict=False))
        return FunctionWriter(self, builder, body.members, structs, body.recorder)


class FunctionWriter:
    """Writes the body of a function."""

    def __init__(
        self,
        source: SourceFile,
        body: EmitCBuilder,
        members: Members,
        structs: Mapping[str, SSAValue],
        recorder: StatementRecorder,
    ) -> None:
        self.source = source
        self.body = body
        self.members = members
        self.structs = structs
        self.recorder = recorder
        self.values: dict[SSAValue, SSAValue] = {}
        self._written: dict[int, SSAValue] = {}
        """Expressions that are no tensors, by identity: they are written once."""
        self._moved: set[SSAValue] = set()
        self.names = recorder.names
        self.layer_of: Callable[[Statement], str | None] = members.comment_of
        """Comment before the statements of a layer."""
        self.inlines_calls = False
        """True if calls of outlined functions are written where their results are wanted."""
        self._layer: str | None = None
        self._counter: tuple[SSAValue, str] | None = None
        """That of the loop which is being written, and its type."""

    def write(
        self,
        statements: Sequence[Statement],
        *,
        owned: Sequence[tuple[SSAValue, str]] = (),
        returned: Iterable[SSAValue] = (),
        reserved: Iterable[str] = (),
        fields: Mapping[SSAValue, Sequence[str]] | None = None,
    ) -> None:
        """Writes statements in order; a comment marks where another layer begins.

        Values that are `fields` of the constants are assigned to them at once.
        """
        if self.inlines_calls and not fields:
            # They are written where the function returns, after all others.
            returned = [*returned, *(v for s in statements if s.runs_statements for v in s.uses)]
        usages = [Usage(s.uses, s.results, s.runs_statements) for s in statements]
        lifetimes = plan_variables(
            usages,
            self.names,
            self.recorder.type_of,
            owned=owned,
            returned=[self.recorder.resolved(value) for value in returned],
            reserved=[*self.structs, DEVICE, *reserved],
        )
        used = {value for statement in statements for value in statement.uses}
        for statement, lifetime in zip(statements, lifetimes, strict=True):
            self.body.origins = statement.ops
            if self._write_constant(statement, used, fields):
                continue
            self._begin_layer(statement)
            self._write_statement(statement, lifetime)
            for result in statement.results if fields else ():
                for name in fields.get(result, ()) if fields else ():
                    self.assign_constant(name, self.values[result])

    def _write_constant(
        self,
        statement: Statement,
        used: Collection[SSAValue],
        fields: Mapping[SSAValue, Sequence[str]] | None,
    ) -> bool:
        """Writes the call of an outlined function where its result is wanted: in the structure of
        the constants. Whether it can be."""
        call = statement.call
        if not self.inlines_calls or not isinstance(call, Call) or not call.outlined:
            return False
        if len(statement.results) != 1:
            return False
        result = statement.results[0]
        wanted = () if fields is None else fields.get(result, ())
        if result in used or len(wanted) > 1:
            return False
        value = self.body.call(
            call.callee,
            *map(self.value, call.arguments),
            type=self.source.types.tensor,
            pure=True,
            labels=_labels(call),
        )
        self.values[result] = value
        for name in wanted:
            self.assign_constant(name, value)
        return True

    def assign_constant(self, field: str, value: SSAValue) -> None:
        """Puts a value into a field of the constants, or of a layer among them."""
        operands = [self.structs["constants"], value]
        self.body.insert(VerbatimOp(f"{{}}.{field} = {{}};", operands))

    def _write_statement(self, statement: Statement, lifetime: Lifetime) -> None:
        self._moved = lifetime.moved
        call = statement.call
        if statement.loop is not None and statement.results:
            self._write_layers(statement, statement.loop, lifetime)
        elif len(statement.results) == 1:
            self._write_single(statement.results[0], statement, lifetime)
        elif statement.results:
            assert isinstance(call, Call)
            values = self.body.call_several(
                call.callee,
                *map(self.value, call.arguments),
                types=self._types(statement),
                names=[lifetime.declared[result] for result in statement.results],
                labels=_labels(call),
            )
            self.values.update(zip(statement.results, values, strict=True))
        else:
            self._run(statement)
        for value in lifetime.cleared:
            # Assigned, not deallocated: a view of the tensor may still be in use.
            empty = f"{self.recorder.type_of(value)}()"
            self.body.insert(VerbatimOp(f"{{}} = {empty};", [self.values[value]]))

    def _run(self, statement: Statement) -> None:
        """Writes a call of which nothing is wanted, in a loop if it is run several times."""
        call, loop = statement.call, statement.loop
        assert isinstance(call, Call)
        with nullcontext() if loop is None else self._turns(loop):
            arguments = map(self.value, call.arguments)
            self.body.call_void(call.callee, *arguments, labels=_labels(call))

    @contextmanager
    def _turns(self, loop: Loop) -> Generator[None]:
        """Writes statements as the body of a loop."""
        outside = self.body
        start, end, step = (
            outside.constant(number, loop.type)
            for number in (loop.first, loop.first + loop.count, 1)
        )
        if loop.array is not None:
            array = _only_value(self.value(loop.array))
            end = outside.call_method(array, "size", type=loop.type, pure=True) or end
        self.body = outside.for_(start, end, step, name=loop.counter)
        self._counter = self.body.arguments[0], loop.type
        yield
        self.body.end_block()
        self.body = outside

    def _write_layers(self, statement: Statement, loop: Loop, lifetime: Lifetime) -> None:
        """Writes a loop whose variable holds what each layer takes and makes."""
        call, (result,) = statement.call, statement.results
        assert isinstance(call, Call)
        assert loop.carried is not None
        name = lifetime.assigned.get(result) or lifetime.declared[result]
        if lifetime.taken_over is loop.carried:
            held = self.values[loop.carried]
        else:
            first = self.used(loop.carried)
            if self.recorder.resolved(loop.carried) in self.members.places:
                # The variable is another one than the member.
                first = self.body.call(self.source.types.tensor, first, type=TENSOR)
            is_there = result in lifetime.assigned
            held = self.body.assigned(first, name) if is_there else self.body.named(first, name)
        self.source.uses_last_use = True
        with self._turns(loop):
            arguments = [
                self.body.call(LAST_USE, held, pure=True)
                if isinstance(each, Use) and each.value is loop.carried
                else self.value(each)
                for each in call.arguments
            ]
            made = self.body.call(
                call.callee, *arguments, type=self._types(statement)[0], labels=_labels(call)
            )
            self.body.assigned(made, name)
        self.values[result] = held

    def _counted(self, number: Counted) -> SSAValue:
        """A number as the counter of the loop gives it."""
        assert self._counter is not None
        value, type_ = self._counter
        if number.step != 1:
            value = self.body.binary("mul", self.body.constant(number.step, type_), value, type_)
        if number.text == "0":
            return value
        return self.body.binary("add", value, self.body.constant(int(number.text), type_), type_)

    def _write_single(self, result: SSAValue, statement: Statement, lifetime: Lifetime) -> None:
        assigned = lifetime.assigned.get(result)
        name = assigned or lifetime.declared[result]
        made = self._named(statement, name)
        self.values[result] = self.body.assigned(made, assigned) if assigned else made

    def _types(self, statement: Statement) -> Sequence[str]:
        return statement.types or [self.source.types.tensor] * len(statement.results)

    def _named(self, statement: Statement, name: str) -> SSAValue:
        call = statement.call
        assert isinstance(call, Call)
        match call.form:
            case "get":
                inner = _only_value(self.value(call.arguments[0]))
                return self.body.get(inner, call.index, TENSOR, name=name)
            case "subscript":
                inner = _only_value(self.value(call.arguments[0]))
                if len(statement.op.results) == 1:
                    return self.body.subscript(inner, call.index, TENSOR, name=name)
                # The vector lives on: it must not hold the tensors any more.
                element = self.body.subscript(inner, call.index, TENSOR)
                return self.body.call("std::move", element, type=TENSOR, name=name)
            case "method":
                inner = _only_value(self.value(call.arguments[0]))
                made = self.body.call_method(inner, call.callee, type=TENSOR, name=name)
                assert made is not None
                return made
            case _:
                return self._call(call, self._types(statement)[0], name)

    def _call(self, call: Call, type_: str, name: str | None, pure: bool = False) -> SSAValue:
        """A call, with a structure of its options if there is one for the function."""
        wrapped = with_options(call, self.source.facts.tuning.shared)
        if wrapped is None:
            arguments = map(self.value, call.arguments)
            return self.body.call(
                call.callee, *arguments, type=type_, name=name, pure=pure, labels=_labels(call)
            )
        wrapper, operands, chosen = wrapped
        self.source.wrappers.add(wrapper)
        values = [self.value(operand) for operand in operands]
        given = {option: self.value(argument) for option, argument in chosen.items()}
        if given:
            values.append(self.body.aggregate(options_type(wrapper), given, typed=False))
        return self.body.call(wrapper, *values, type=type_, name=name, pure=pure)

    def value(self, argument: Argument) -> Value:
        """An expression as it is written in a statement."""
        if isinstance(argument, Counted):
            return self._counted(argument)
        if isinstance(argument, Text):
            return self.structs.get(argument.text, argument)
        if isinstance(argument, Use):
            return self.used(argument.value)
        if id(argument) not in self._written:
            made = self._inner(argument)
            if argument.type == TENSOR:
                return made
            self._written[id(argument)] = made
        return self._written[id(argument)]

    def used(self, value: SSAValue) -> SSAValue:
        """A value of the program as it is written in a statement."""
        value = self.recorder.resolved(value)
        place = self.members.places.get(value)
        if place is not None:
            parameter, field = place
            return member_at(self.body, self.structs[parameter], field, self.source.types.tensor)
        found = self.values[value]
        if value in self._moved:
            self.source.uses_last_use = True
            return self.body.call(LAST_USE, found, pure=True)
        return found

    def _inner(self, call: Call) -> SSAValue:
        """A call inside another one."""
        match call.form:
            case "literal":
                return self.body.literal(call.callee, call.type)
            case "get" | "subscript":
                inner = _only_value(self.value(call.arguments[0]))
                if call.form == "get":
                    return self.body.get(inner, call.index, call.type)
                position = (
                    call.index
                    if len(call.arguments) == 1
                    else _only_value(self.value(call.arguments[1]))
                )
                return self.body.subscript(inner, position, call.type)
            case "member":
                inner = _only_value(self.value(call.arguments[0]))
                return member_at(self.body, inner, call.callee, call.type)
            case "method":
                inner = _only_value(self.value(call.arguments[0]))
                made = self.body.call_method(inner, call.callee, type=call.type)
                assert made is not None
                return made
            case "element":
                first = call.arguments[0]
                assert isinstance(first, Use)
                parameter, path = self.members.places[self.recorder.resolved(first.value)]
                path = path.removesuffix(call.fields[0]).rstrip(".")
                return member_at(self.body, self.structs[parameter], path, call.type)
            case "list" if call.fields:
                values = map(self.value, call.arguments)
                return self.body.aggregate(call.type, dict(zip(call.fields, values, strict=True)))
            case "list":
                return self.body.braced(call.type, *map(self.value, call.arguments))
            case "call":
                return self._call(call, call.type, call.variable, pure=call.variable is None)

    def _begin_layer(self, statement: Statement) -> None:
        found = self.layer_of(statement)
        if found is not None and found != self._layer:
            if self._layer is not None or self.values:
                self.body.blank()
            self.body.comment(found)
            self._layer = found

    def return_values(self, values: Sequence[SSAValue], type: str | None) -> None:
        """Returns nothing, a tensor, or several as an array or a tuple of that type."""
        results = [self.value(Use(value)) for value in values]
        if len(results) == 1:
            self.body.return_(_only_value(results[0]))
        elif results:
            self.body.return_(self.body.braced(type or "", *results))
        else:
            self.body.return_()

    def return_struct(
        self,
        struct: str,
        layout: Layout,
        values: Iterable[SSAValue],
        others: Mapping[str, SSAValue] | None = None,
    ) -> None:
        """Returns a structure with these values in its members, and what is no value of the
        program in the `others`."""
        found = {
            path: self.value(Use(value)) for path, value in zip(layout.paths, values, strict=True)
        }
        members = nested_members(self.body, layout.root, found, self.source.types.tensor)
        self.body.return_(self.body.aggregate(struct, {**members, **(others or {})}))


def _labels(call: Call) -> Sequence[str]:
    """The names of the parameters of a long call, from the first argument on that says nothing by
    itself: tensors and the device, which begin most calls, have names."""
    if len(call.arguments) <= MOST_UNNAMED:
        return ()
    names = call.parameters or parameter_names(call.callee, len(call.arguments))
    is_device = [isinstance(a, Text) and a.text in (DEVICE, f"&{DEVICE}") for a in call.arguments]
    plain = [
        isinstance(argument, Use) or device
        for argument, device in zip(call.arguments, is_device, strict=True)
    ]
    # No more than so many tensors are left without a name before it.
    first = plain.index(False) if False in plain[: MOST_UNNAMED + 1] else 0
    return ["" if index < first or is_device[index] else name for index, name in enumerate(names)]


def _only_value(value: Value) -> SSAValue:
    assert isinstance(value, SSAValue)
    return value


# Defines the C++ function of an entry, for both targets: a long one calls functions that hold its
# parts.


def write_entry_function(
    source: SourceFile, body: Body, statements: Sequence[Statement], results: Sequence[SSAValue]
) -> None:
    """Defines the function of an entry.

    Args:
        source: the file.
        body: what the functions of the entry share.
        statements: what the function does, in order.
        results: what it returns.
    """
    entry, types = body.entry, source.types
    returned = [body.recorder.resolved(value) for value in results]
    parts = split(statements, lambda: body.members.layers(statements), returned, body.lines_of)
    if len(parts) > 1:
        statements = [_write_part(source, body, part) for part in parts]
    result = entry.struct("Outputs") if entry.results else None
    builder = source.file.function(
        entry.cpp_name, parameters(entry, types), result, fixed_names=types.fixed_names
    )
    function = source.open(body, builder)
    if len(parts) > 1:
        # The parts say themselves what they compute.
        function.layer_of = lambda _: None
    function.write(statements, returned=results)
    if result is not None:
        function.return_struct(result, entry.layouts["Outputs"], results)
    else:
        builder.return_()
    source.file.blank()


def _write_part(source: SourceFile, body: Body, part: Part) -> Statement:
    """Defines a function that holds a part of a body; the statement that calls it."""
    entry, names, type_of = body.entry, body.recorder.names, body.recorder.type_of
    shared = parameters(entry, source.types)
    name = source.function_names.unique(part_name(entry.cpp_name, part.title))
    scope = NameScope(name for name, _ in shared)
    taken = [scope.unique(identifier(names[value])) for value in part.live_in]
    owned = [
        (value, name)
        for value, name in zip(part.live_in, taken, strict=True)
        if value in part.dying
    ]
    moved_in = {value for value, _ in owned}
    types = [
        type_of(value) if value in moved_in else f"const {type_of(value)}&"
        for value in part.live_in
    ]
    results = tuple(type_of(value) for value in part.live_out)
    result = returned_type(results)
    source.file.comment(part.title or f"A part of {entry.cpp_name}.")
    builder = source.file.function(
        name,
        [*shared, *zip(taken, types, strict=True)],
        result,
        specifiers=["static"],
        fixed_names=source.types.fixed_names,
    )
    function = source.open(body, builder)
    function.values.update(zip(part.live_in, builder.arguments[len(shared) :], strict=True))
    function.write(part.statements, owned=owned, returned=part.live_out, reserved=taken)
    function.return_values(part.live_out, result)
    source.file.blank()
    used = builder.drop_unused_parameters()
    arguments = [Text(name) for (name, _), is_used in zip(shared, used, strict=False) if is_used]
    call = Call(name, (*arguments, *map(Use, part.live_in)), result or "void", outlined=True)
    return Statement(part.statements[0].op, call, part.live_out, part.live_in, types=results)
