"""Writer of statements as bodies of C++ host functions, for both targets."""

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
)
from ttcodegen.conversions.host_functions.expressions import labels_of
from ttcodegen.conversions.host_functions.interface import (
    Entry,
    InterfaceTensor,
    member_at,
    nested_members,
)
from ttcodegen.conversions.host_functions.layer_analysis import layers_of
from ttcodegen.conversions.host_functions.statements import (
    VECTOR,
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
from ttcodegen.emitc.builder import TENSOR, EmitCBuilder
from ttcodegen.emitc.builder import Argument as Value
from ttcodegen.emitc.spelling import NameScope, Text
from ttcodegen.emitc.statements import VerbatimOp
from ttcodegen.naming.members import Layout
from ttcodegen.naming.modules import GivenNames
from ttcodegen.naming.sources import layer
from ttcodegen.ops.core.calls import Argument, Call, Use, parameter_names

_COLUMNS = 94
"""Width of a line without indentation and parentheses."""
_MEMBER = 36
"""Assumed length of a member access, or of a name that includes a layer."""


class Members(GivenNames):
    """Values that are members of the parameter structures of a function."""

    def __init__(self) -> None:
        super().__init__()
        self.places: dict[SSAValue, tuple[str, str]] = {}
        """Parameter and field of each value."""

    @classmethod
    def of(cls, entry: Entry) -> Members:
        """Returns the members that the functions of an entry share."""
        members = cls()
        for tensor in entry.arguments:
            members.bind_argument(tensor.value, tensor)
        fields = dict(entry.constants)
        for value, name in zip(entry.constant_values, entry.names.constants, strict=True):
            members.places[value] = ("constants", fields.get(value, ""))
            members.give(value, name, is_weight=True)
        return members

    def layer_of(self, statement: Statement) -> str | None:
        """Layer that a statement belongs to, or calls."""
        return statement.title or layer(statement.op, self.weight_names)

    def comment_of(self, statement: Statement) -> str | None:
        """Layer that a comment before a statement may name."""
        return self.layer_of(statement) if statement.results else None

    def layers(self, statements: Iterable[Statement]) -> list[str]:
        """Layer of each statement."""
        return layers_of(statements, self.layer_of)

    def bind_argument(self, value: SSAValue, tensor: InterfaceTensor) -> None:
        """Binds a value to a tensor of the entry."""
        self.places[value] = ("weights" if tensor.is_weight else "inputs", tensor.path)
        self.give(value, tensor.title, is_weight=tensor.is_weight)


@dataclass(frozen=True)
class Body:
    """State that the functions of an entry share."""

    entry: Entry
    members: Members
    recorder: StatementRecorder

    def lines_of(self, statement: Statement) -> int:
        """Estimates the lines of a statement."""
        names = self.recorder.names

        def length(argument: Argument) -> int:
            if isinstance(argument, Text):
                return len(argument.text) + 2
            if isinstance(argument, Use):
                return len(names[argument.value]) + 12
            if argument.form == "element":
                return _MEMBER
            if argument.fields:
                # Fields are written on separate lines if they do not fit into one.
                return sum(82 * (1 + length(each) // 60) for each in argument.arguments)
            labels = sum(map(len, parameter_names(argument.callee, len(argument.arguments)))) + sum(
                len(name) + 4 for name in argument.fields
            )
            return len(argument.callee) + labels + sum(map(length, argument.arguments)) + 2

        assigned = sum(len(names[result]) + 16 for result in statement.results)
        title = 0 if statement.title is None else 2
        call = statement.call
        if statement.runs_statements and isinstance(call, Call) and not assigned:
            # Arguments are aligned with the first one, so less of a line is left, and values have
            # longer names in the function of a layer.
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
    """Source file of a module while it is written."""

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
        """Returns a writer that resolves members of the structures.

        `taken` are names and types of the parameters, those of the entry if None."""
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
        """Calls that are not tensors, by identity: they are written once."""
        self._moved: set[SSAValue] = set()
        self.names = recorder.names
        self.layer_of: Callable[[Statement], str | None] = members.comment_of
        """Comment before the statements of a layer."""
        self.inlines_calls = False
        """True if calls of outlined functions are written at the use of their results."""
        self._layer: str | None = None
        self._counter: tuple[SSAValue, str] | None = None
        """Counter of the loop that is being written, and its type."""

    def write(
        self,
        statements: Sequence[Statement],
        *,
        owned: Sequence[tuple[SSAValue, str]] = (),
        returned: Iterable[SSAValue] = (),
        reserved: Iterable[str] = (),
        fields: Mapping[SSAValue, Sequence[str]] | None = None,
    ) -> None:
        """Writes statements in order, with comments where the layer changes.

        Values in `fields` are assigned to fields of the constants at once."""
        if self.inlines_calls and not fields:
            # Inlined calls are written at the return, so their operands live until then.
            returned = [*returned, *(v for s in statements if s.runs_statements for v in s.uses)]
        usages = [Usage(s.uses, s.results, s.runs_statements, s.carried) for s in statements]
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
            if self._write_field(statement, lifetime, used, fields):
                continue
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
        """Writes an outlined call directly into the field of its result, if possible."""
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
            labels=labels_of(call),
        )
        self.values[result] = value
        for name in wanted:
            self.assign_constant(name, value)
        return True

    def _write_field(
        self,
        statement: Statement,
        lifetime: Lifetime,
        used: Collection[SSAValue],
        fields: Mapping[SSAValue, Sequence[str]] | None,
    ) -> bool:
        """Assigns the result of a call to its only field without a variable, if possible."""
        call = statement.call
        if fields is None or len(statement.results) != 1 or statement.loop is not None:
            return False
        result = statement.results[0]
        wanted = fields.get(result, ())
        if len(wanted) != 1 or result in used or lifetime.assigned or lifetime.cleared:
            return False
        if not isinstance(call, Call) or call.form != "call":
            return False
        self._moved = lifetime.moved
        value = self._call(call, self._types(statement)[0], None, pure=True)
        self.values[result] = value
        self.assign_constant(wanted[0], value)
        return True

    def assign_constant(self, field: str, value: SSAValue) -> None:
        """Assigns a value to a field of the constants, or of a layer array."""
        operands = [self.structs["constants"], value]
        self.body.insert(VerbatimOp(f"{{}}.{field} = {{}};", operands))

    def _write_statement(self, statement: Statement, lifetime: Lifetime) -> None:
        self._moved = lifetime.moved
        call = statement.call
        if statement.loop is not None and statement.results:
            self._write_loop(statement, statement.loop, lifetime)
        elif len(statement.results) == 1:
            self._write_single(statement.results[0], statement, lifetime)
        elif lifetime.assigned:
            self._tie(statement, lifetime)
        elif statement.results:
            assert isinstance(call, Call)
            values = self.body.call_several(
                call.callee,
                *map(self.value, call.arguments),
                types=self._types(statement),
                names=[lifetime.declared[result] for result in statement.results],
                labels=labels_of(call),
            )
            self.values.update(zip(statement.results, values, strict=True))
        else:
            self._run(statement)
        for value in lifetime.cleared:
            # Assigned, not deallocated: a view of the tensor may still be in use.
            empty = f"{self.recorder.type_of(value)}()"
            self.body.insert(VerbatimOp(f"{{}} = {empty};", [self.values[value]]))

    def _tie(self, statement: Statement, lifetime: Lifetime) -> None:
        """Assigns several results to variables, of which some may be new."""
        call, results = statement.call, statement.results
        assert isinstance(call, Call)
        for result, type_ in zip(results, self._types(statement), strict=True):
            replaced = lifetime.replaced.get(result)
            self.values[result] = (
                self.body.braced(type_, name=lifetime.declared[result])
                if replaced is None
                else self.values[replaced]
            )
        arguments = map(self.value, call.arguments)
        made = self.body.call(
            call.callee, *arguments, type=call.type, pure=True, labels=labels_of(call)
        )
        # Only a tuple can be assigned to `std::tie`.
        right = "std::tuple_cat({})" if call.type.startswith("std::array<") else "{}"
        tied = [self.values[result] for result in results]
        self.body.verbatim(f"std::tie({', '.join('{}' for _ in tied)}) = {right};", *tied, made)

    def _run(self, statement: Statement) -> None:
        """Writes a call without results, in a loop if the statement has one."""
        call, loop = statement.call, statement.loop
        assert isinstance(call, Call)
        with nullcontext() if loop is None else self._loop_body(loop):
            arguments = map(self.value, call.arguments)
            self.body.call_void(call.callee, *arguments, labels=labels_of(call))

    @contextmanager
    def _loop_body(self, loop: Loop) -> Generator[None]:
        """Context in which statements are written into the body of a loop."""
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

    def _write_loop(self, statement: Statement, loop: Loop, lifetime: Lifetime) -> None:
        """Writes a loop with variables for carried values and vectors for kept results."""
        call, results = statement.call, statement.results
        assert isinstance(call, Call)
        vectors = [
            self._vector(kept.others, lifetime.declared[result])
            for kept, result in zip(loop.kept, results[len(loop.carried) :], strict=True)
        ]
        pairs = list(zip(loop.carried, results, strict=False))
        held = {taken: self._initial(taken, result, lifetime) for (taken, _), result in pairs}
        self.source.uses_last_use = True
        with self._loop_body(loop):
            arguments = [
                self.body.call(LAST_USE, held[each.value], pure=True)
                if isinstance(each, Use) and each.value in held
                else self.value(each)
                for each in call.arguments
            ]
            names = {at: _variable(lifetime, result) for (_, at), result in pairs}
            made = self._iteration(call, arguments, self._types(statement), names)
            for kept, vector in zip(loop.kept, vectors, strict=True):
                add = "{}.insert({}.begin(), {});" if kept.is_reversed else "{}.push_back({});"
                ends = [vector] * (1 + kept.is_reversed)
                self.body.verbatim(add, *ends, made[kept.position])
        self.values.update((result, held[taken]) for (taken, _), result in pairs)
        self.values.update(zip(results[len(loop.carried) :], vectors, strict=True))

    def _vector(self, others: Sequence[SSAValue], name: str) -> SSAValue:
        """Declares a vector of these values."""
        return self.body.braced(VECTOR, *map(self.used, others), name=name)

    def _initial(self, taken: SSAValue, result: SSAValue, lifetime: Lifetime) -> SSAValue:
        """Returns the variable of a carried value, with the operand of the first iteration."""
        if taken in lifetime.taken_over:
            return self.values[taken]
        first = self.used(taken)
        if taken not in self._moved:
            # The loop must not overwrite a member or a value that is still used: it gets a copy.
            first = self.body.call(self.source.types.tensor, first, type=TENSOR)
        name = _variable(lifetime, result)
        is_there = result in lifetime.assigned
        return self.body.assigned(first, name) if is_there else self.body.named(first, name)

    def _iteration(
        self,
        call: Call,
        arguments: Sequence[Value],
        types: Sequence[str],
        names: Mapping[int, str],
    ) -> Sequence[SSAValue]:
        """Writes the call in a loop; results are assigned to variables by position."""
        if len(types) == 1:
            made = self.body.call(call.callee, *arguments, type=types[0], labels=labels_of(call))
            return [self.body.assigned(made, names[0]) if names else made]
        several = [
            *self.body.call_several(
                call.callee,
                *arguments,
                types=types,
                names=[f"next_{names[at]}" if at in names else "made" for at in range(len(types))],
                labels=labels_of(call),
            )
        ]
        for position, name in names.items():
            moved = self.body.call(LAST_USE, several[position], type=types[position])
            several[position] = self.body.assigned(moved, name)
        return several

    def _counted(self, number: Counted) -> SSAValue:
        """Expression of a number that depends on the loop counter."""
        assert self._counter is not None
        value, type_ = self._counter
        first = self.body.constant(int(number.text), type_)
        if abs(number.step) != 1:
            step = self.body.constant(abs(number.step), type_)
            value = self.body.binary("mul", step, value, type_)
        if number.step < 0:
            return self.body.binary("sub", first, value, type_)
        return value if number.text == "0" else self.body.binary("add", value, first, type_)

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
                # The vector outlives the element, so it must not keep the tensor alive.
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
        """Writes a call, with a structure of options if the function has a wrapper."""
        wrapped = with_options(call, self.source.facts.tuning.shared)
        if wrapped is None:
            arguments = map(self.value, call.arguments)
            return self.body.call(
                call.callee, *arguments, type=type_, name=name, pure=pure, labels=labels_of(call)
            )
        wrapper, operands, chosen = wrapped
        self.source.wrappers.add(wrapper)
        values = [self.value(operand) for operand in operands]
        given = {option: self.value(argument) for option, argument in chosen.items()}
        if given:
            values.append(self.body.aggregate(options_type(wrapper), given, typed=False))
        return self.body.call(wrapper, *values, type=type_, name=name, pure=pure)

    def value(self, argument: Argument) -> Value:
        """Returns an argument as it is written in a statement."""
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
        """Returns a value of the program as it is written in a statement."""
        value = self.recorder.resolved(value)
        place = self.members.places.get(value)
        if place is not None:
            parameter, field = place
            return member_at(self.body, self.structs[parameter], field, self.source.types.tensor)
        found = self.values[value]
        if value in self._moved:
            if value in self.recorder.vectors:
                return self.body.call("std::move", found, type=VECTOR, pure=True)
            self.source.uses_last_use = True
            return self.body.call(LAST_USE, found, pure=True)
        return found

    def _inner(self, call: Call) -> SSAValue:
        """Writes a call nested in another one."""
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
        """Returns a structure with these values in its members.

        `others` are the members that are not values of the program."""
        found = {
            path: self.value(Use(value)) for path, value in zip(layout.paths, values, strict=True)
        }
        members = nested_members(self.body, layout.root, found, self.source.types.tensor)
        self.body.return_(self.body.aggregate(struct, {**members, **(others or {})}))


def _variable(lifetime: Lifetime, result: SSAValue) -> str:
    """Name of the variable that a result is assigned to."""
    return lifetime.assigned.get(result) or lifetime.declared[result]


def _only_value(value: Value) -> SSAValue:
    assert isinstance(value, SSAValue)
    return value
