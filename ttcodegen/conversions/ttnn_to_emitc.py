"""TTNN functions become C++ functions that call the ttnn library."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import ReturnOp
from xdsl.ir import Operation, SSAValue

from ttcodegen.conversions.cpp_interface import (
    DEVICE,
    TTNN,
    ConstantFile,
    CppProgram,
    parameters,
    prepare_parameters,
    prepend,
    title_of,
    write_header,
)
from ttcodegen.conversions.interface import Entry, Port
from ttcodegen.conversions.naming import ValueNames, layer
from ttcodegen.conversions.outlining import (
    ARGUMENTS,
    OutlinedFunction,
    components,
    outline,
    struct_name,
)
from ttcodegen.conversions.outlining import body_of as outlined_body
from ttcodegen.conversions.recording import DEALLOCATE, TENSOR, Recorder, SourceFacts, Statement
from ttcodegen.conversions.splitting import LONGEST, Part, common_layer, layers_of_ops, split
from ttcodegen.conversions.tuning import HEADER
from ttcodegen.conversions.uniform_signature import (
    define_uniform,
    has_uniform_signature,
    uniform_name,
)
from ttcodegen.conversions.variables import Lifetime, Usage, plan_variables
from ttcodegen.emitc.builder import Argument as Value
from ttcodegen.emitc.builder import EmitCBuilder, open_file
from ttcodegen.emitc.naming import NameScope, identifier
from ttcodegen.emitc.statements import VerbatimOp
from ttcodegen.emitc.text import Text
from ttcodegen.ops.cpp_calls import Argument, Call, Use
from ttcodegen.ops.cpp_parameters import parameter_names
from ttcodegen.transforms.rebuilding import body_of

__all__ = ["ConstantFile", "convert_ttnn_to_emitc"]

LAST_USE = "last_use"
"""The function that gives a variable's tensor away."""
_LAST_USE_FUNCTION = f"""\
// The tensor of a variable that is not used any more: its memory is free after the statement.
static {TENSOR} {LAST_USE}({TENSOR}& tensor) {{
    return std::move(tensor);
}}"""


def convert_ttnn_to_emitc(
    name: str, entries: Sequence[Entry], input_hash: str, release: str
) -> CppProgram:
    """Writes `src/<name>.hpp` and `src/<name>.cpp` as EmitC.

    Args:
        name: the C++ name of the module; its namespace and the stem of its files.
        entries: the entry functions.
        input_hash: identifies the input in the header line of each file.
        release: the tt-metal release that the calls are written for.
    """
    module = ModuleOp([])
    title = title_of(name, input_hash, release)
    write_header(open_file(module, f"src/{name}.hpp"), name, entries, title, TTNN)
    source = open_file(module, f"src/{name}.cpp")
    writer = _SourceWriter(source, {f"{name}.hpp"})
    writer.facts.tuning.collect(entries)
    with source.namespace(name):
        opening = source.block.last_op
        for entry in entries:
            writer.write(entry)
    if writer.facts.tuning.write(module, name, title):
        writer.facts.own_headers.add(HEADER)
    if writer.uses_last_use:
        writer.facts.headers.add("utility")
        assert opening is not None
        source.block.insert_ops_after([VerbatimOp(_LAST_USE_FUNCTION), VerbatimOp("")], opening)
    prepend(source, title, writer.facts.own_headers, writer.facts.headers)
    return CppProgram(module, writer.facts.constants)


class _SourceWriter:
    """Writes the definitions of one source file."""

    def __init__(self, file: EmitCBuilder, own_headers: Iterable[str]) -> None:
        self.file = file
        self.facts = SourceFacts()
        self.facts.own_headers.update(own_headers)
        self.function_names = NameScope()
        self.uses_last_use = False

    def write(self, entry: Entry) -> None:
        """Defines the functions of one entry."""
        self.function_names.reserve(
            entry.cpp_name, f"prepare_{entry.cpp_name}", uniform_name(entry)
        )
        if entry.const_eval is not None:
            self._write_const_eval(entry)
        members = _Members.of(entry)
        ops = [op for op in body_of(entry.function).ops if not _is_deallocation(op)]
        terminator = ops.pop()
        assert isinstance(terminator, ReturnOp)
        results = {
            value: port.name
            for value, port in zip(terminator.operands, entry.results, strict=True)
            if not port.name.startswith("output")
        }
        names = ValueNames(ops, members.names, members.weight_names, results)
        recorder = Recorder(self.facts, names)
        statements = recorder.record(ops)
        body = _Body(entry, members, recorder)
        returned = [recorder.resolved(value) for value in terminator.operands]
        parts = split(
            statements,
            lambda: members.layers(statements),
            returned,
            lambda statement: _lines(body, statement),
        )
        if len(parts) > 1:
            statements = [self._write_part(body, part) for part in parts]
        self._write_entry(body, statements, terminator)
        if has_uniform_signature(entry):
            define_uniform(self.file, entry)
            self.file.blank()

    def _write_const_eval(self, entry: Entry) -> None:
        """Defines the function that computes constants: group by group of those that are computed
        together, and equal groups by one function."""
        assert entry.const_eval is not None
        assert entry.load is not None
        ports = {port.value: port for port in entry.arguments}
        members = _Members()
        arguments = body_of(entry.const_eval).args
        for argument, value in zip(arguments, entry.load.operands, strict=True):
            members.bind_argument(argument, ports[value])
        ops = [op for op in body_of(entry.const_eval).ops if not _is_deallocation(op)]
        constants = ops.pop().operands
        names = ValueNames(
            ops,
            members.names,
            members.weight_names,
            dict(zip(constants, entry.constant_names, strict=True)),
            of_weights=True,
        )
        recorder = Recorder(self.facts, names)
        body = _Body(entry, members, recorder)
        groups = components(recorder.record(ops), [recorder.resolved(v) for v in constants])
        functions = outline(groups, names, self.function_names)
        for function in dict.fromkeys(functions.values()):
            self._write_outlined(function, recorder)
        statements = [
            [functions[index].calls[group]] if index in functions else list(group.statements)
            for index, group in enumerate(groups)
        ]
        self._write_prepare(body, statements, constants)
        self.file.blank()

    def _write_prepare(
        self, body: _Body, groups: Sequence[Sequence[Statement]], constants: Sequence[SSAValue]
    ) -> None:
        entry = body.entry
        name, struct = f"prepare_{entry.cpp_name}", entry.struct("Constants")
        statements = [statement for group in groups for statement in group]
        lines = sum(_lines(body, s) for s in statements) + len(entry.constant_fields)
        if lines <= LONGEST:
            builder = self.file.function(
                name, prepare_parameters(entry), struct, fixed_names=[DEVICE]
            )
            function = self._open(body, builder, prepare_parameters(entry))
            function.write(statements, returned=constants)
            self._return_struct(function, struct, entry.constant_fields, constants)
            return
        fields: dict[SSAValue, list[str]] = {}
        for value, field in zip(constants, entry.constant_fields, strict=True):
            fields.setdefault(body.recorder.resolved(value), []).append(field)
        called = [
            self._write_prepare_part(body, part, fields) for part in _parts(body, groups, fields)
        ]
        builder = self.file.function(name, prepare_parameters(entry), struct, fixed_names=[DEVICE])
        made = builder.variable("constants", struct)
        passed = [*builder.arguments, made]
        for part in called:
            builder.insert(VerbatimOp(f"{part}({', '.join(['{}'] * len(passed))});", passed))
        builder.return_(builder.load(made))

    def _write_prepare_part(
        self,
        body: _Body,
        statements: Sequence[Statement],
        fields: Mapping[SSAValue, Sequence[str]],
    ) -> str:
        """Defines a function that computes some of the constants; its name."""
        entry = body.entry
        title = common_layer([name for name in body.members.layers(statements) if name])
        name = self.function_names.unique(identifier(f"prepare_{entry.cpp_name}_{title or 'part'}"))
        parameters_ = [
            *prepare_parameters(entry),
            ("constants", f"{entry.struct('Constants')}&"),
        ]
        builder = self.file.function(name, parameters_, specifiers=["static"], fixed_names=[DEVICE])
        function = self._open(body, builder, parameters_)
        kept = [value for s in statements for value in s.results if value in fields]
        function.write(statements, returned=kept, reserved=["constants"], fields=fields)
        builder.return_()
        self.file.blank()
        return name

    def _write_outlined(self, function: OutlinedFunction, recorder: Recorder) -> None:
        """Defines a function that several groups of statements became."""
        taken = [(parameter.name, parameter.type) for parameter in function.parameters]
        owned = list(
            zip(function.groups[0].live_in, (p.name for p in function.tensors), strict=True)
        )
        if function.takes_struct:
            owned = []
            struct = struct_name(function)
            fields = [(name, f"const {t}&" if t == TENSOR else t) for name, t in taken]
            self.file.struct(struct, fields, f"What {function.name} is called with.")
            self.file.blank()
            taken = [(ARGUMENTS, f"const {struct}&")]
        if function.uses_device:
            taken.append((DEVICE, f"{TTNN.device}&"))
        first = function.groups[0]
        returned = first.live_out
        result = TENSOR if len(returned) == 1 else f"std::array<{TENSOR}, {len(returned)}>"
        names = [name for name, _ in taken]
        builder = self.file.function(
            function.name, taken, result, specifiers=["static"], fixed_names=names
        )
        members = _Members()
        structs = dict(zip(names, builder.arguments, strict=True))
        writer = _FunctionWriter(self, builder, members, structs, recorder)
        writer.names = recorder.names.renamed(function.names)
        writer.tells_layers = False
        for value, parameter in zip(first.live_in, function.tensors, strict=True):
            if function.takes_struct:
                members.places[value] = (ARGUMENTS, parameter.name)
            else:
                writer.values[value] = structs[parameter.name]
        reserved = [name for name in names if name not in dict(owned).values()]
        writer.write(outlined_body(function), owned=owned, returned=returned, reserved=reserved)
        results = [writer.value(Use(value)) for value in returned]
        only = _only_value(results[0])
        builder.return_(only if len(results) == 1 else builder.braced(result, *results))
        self.file.blank()

    def _return_struct(
        self,
        function: _FunctionWriter,
        struct: str,
        fields: Sequence[str],
        values: Iterable[SSAValue],
    ) -> None:
        arguments: dict[str, Value] = {
            f: function.value(Use(v)) for f, v in zip(fields, values, strict=True)
        }
        function.body.return_(function.body.aggregate(struct, arguments))

    def _write_part(self, body: _Body, part: Part[Statement]) -> Statement:
        """Defines a function that holds a part of a body; the statement that calls it."""
        entry, recorder = body.entry, body.recorder
        name = self.function_names.unique(identifier(f"{entry.cpp_name}_{part.title or 'part'}"))
        scope = NameScope(name for name, _ in parameters(entry))
        taken = [scope.unique(identifier(recorder.names[value])) for value in part.live_in]
        types = [TENSOR if value in part.dying else f"const {TENSOR}&" for value in part.live_in]
        result = part.result_type()
        self.file.comment(part.title or f"A part of {entry.cpp_name}.")
        builder = self.file.function(
            name,
            [*parameters(entry), *zip(taken, types, strict=True)],
            result,
            specifiers=["static"],
            fixed_names=[DEVICE],
        )
        function = self._open(body, builder)
        start = len(parameters(entry))
        function.values.update(zip(part.live_in, builder.arguments[start:], strict=True))
        owned = [pair for pair in zip(part.live_in, taken, strict=True) if pair[0] in part.dying]
        function.write(part.statements, owned=owned, returned=part.live_out, reserved=taken)
        results = [function.value(Use(value)) for value in part.live_out]
        if len(results) == 1:
            builder.return_(_only_value(results[0]))
        elif results:
            builder.return_(builder.braced(result or "", *results))
        else:
            builder.return_()
        self.file.blank()
        arguments = [Text(name) for name, _ in parameters(entry)]
        call = Call(name, (*arguments, *(Use(v) for v in part.live_in)), result or "void")
        op = part.statements[0].op
        return Statement(op, call, part.live_out, part.live_in)

    def _open(
        self, body: _Body, builder: EmitCBuilder, taken: Sequence[tuple[str, str]] | None = None
    ) -> _FunctionWriter:
        """A writer that knows the members of the structures as the values of the function."""
        names = [name for name, _ in (parameters(body.entry) if taken is None else taken)]
        structs = dict(zip(names, builder.arguments, strict=False))
        return _FunctionWriter(self, builder, body.members, structs, body.recorder)

    def _write_entry(
        self, body: _Body, statements: Sequence[Statement], terminator: ReturnOp
    ) -> None:
        entry = body.entry
        result = entry.struct("Outputs") if entry.results else None
        builder = self.file.function(
            entry.cpp_name, parameters(entry), result, fixed_names=[DEVICE]
        )
        function = self._open(body, builder)
        function.write(statements, returned=terminator.operands)
        if entry.results:
            fields = [port.field for port in entry.results]
            self._return_struct(function, entry.struct("Outputs"), fields, terminator.operands)
        else:
            builder.return_()
        self.file.blank()


@dataclass(frozen=True)
class _Body:
    """What the functions of an entry share."""

    entry: Entry
    members: _Members
    recorder: Recorder


def _lines(body: _Body, statement: Statement) -> int:
    """How many lines a statement takes, nearly."""
    names = body.recorder.names

    def length(argument: Argument) -> int:
        if isinstance(argument, Text):
            return len(argument.text) + 2
        if isinstance(argument, Use):
            return len(names[argument.value]) + 12
        told = sum(map(len, parameter_names(argument.callee, len(argument.arguments)))) + sum(
            len(name) + 4 for name in argument.fields
        )
        return len(argument.callee) + told + sum(map(length, argument.arguments)) + 2

    assigned = sum(len(names[result]) + 16 for result in statement.results)
    return 1 + (length(statement.call) + assigned) // 82


def _parts(
    body: _Body, groups: Sequence[Sequence[Statement]], fields: Mapping[SSAValue, Sequence[str]]
) -> Iterator[list[Statement]]:
    """Groups of statements in parts of not too many lines; what makes a value that several groups
    use is in each part that uses it, and by itself only if it is one of the constants' fields."""
    shared = {
        result: group[0]
        for group in groups
        if len(group) == 1 and not group[0].uses
        for result in group[0].results
    }
    part: list[Statement] = []
    lines = 0
    for group in groups:
        size = sum(_lines(body, statement) + len(statement.results) for statement in group)
        if lines + size > LONGEST and part:
            yield part
            part, lines = [], 0
        made = [result for statement in group for result in statement.results]
        if all(result in shared and result not in fields for result in made):
            continue
        needed = {id(shared[v]): shared[v] for s in group for v in s.uses if v in shared}
        part += [s for s in needed.values() if s not in part]
        part += [statement for statement in group if statement not in part]
        lines += size
    if part:
        yield part


def _is_deallocation(op: Operation) -> bool:
    return op.name == f"ttnn.{DEALLOCATE}"


def _only_value(value: Value) -> SSAValue:
    assert isinstance(value, SSAValue)
    return value


class _Members:
    """The values that are members of the structures that a function gets."""

    def __init__(self) -> None:
        self.places: dict[SSAValue, tuple[str, str]] = {}
        """The parameter and the field of each."""
        self.names: dict[SSAValue, str] = {}
        self.weight_names: dict[SSAValue, str] = {}

    @classmethod
    def of(cls, entry: Entry) -> _Members:
        """The members that the functions of an entry share."""
        members = cls()
        for port in entry.arguments:
            members.bind_argument(port.value, port)
        if entry.load is not None:
            names = zip(entry.constant_fields, entry.constant_names, strict=True)
            for value, (field, name) in zip(entry.load.results, names, strict=True):
                members.places[value] = ("constants", field)
                members.names[value] = members.weight_names[value] = name
        return members

    def layers(self, statements: Iterable[Statement]) -> list[str]:
        """The layer of each statement."""
        ops = (statement.op for statement in statements)
        return layers_of_ops(ops, lambda op: layer(op, self.weight_names))

    def bind_argument(self, value: SSAValue, port: Port) -> None:
        """Makes a value what a port of the entry is."""
        self.places[value] = ("weights" if port.is_weight else "inputs", port.field)
        self.names[value] = port.name
        if port.is_weight or "weight" in port.name or "bias" in port.name:
            self.weight_names[value] = port.name


class _FunctionWriter:
    """Writes the body of a function."""

    def __init__(
        self,
        writer: _SourceWriter,
        body: EmitCBuilder,
        members: _Members,
        structs: Mapping[str, SSAValue],
        recorder: Recorder,
    ) -> None:
        self.writer = writer
        self.body = body
        self.members = members
        self.structs = structs
        self.recorder = recorder
        self.values: dict[SSAValue, SSAValue] = {}
        self._written: dict[int, SSAValue] = {}
        """Expressions that are no tensors, by identity: they are written once."""
        self._moved: set[SSAValue] = set()
        self.names = recorder.names
        self.tells_layers = True
        self._layer: str | None = None

    def write(
        self,
        statements: Sequence[Statement],
        *,
        owned: Sequence[tuple[SSAValue, str]] = (),
        returned: Iterable[SSAValue] = (),
        reserved: Iterable[str] = (),
        fields: Mapping[SSAValue, Sequence[str]] | None = None,
    ) -> None:
        """Writes statements in order; a comment stands where another layer begins.

        Values that are `fields` of the constants are assigned to them at once.
        """
        lifetimes = plan_variables(
            [Usage(statement.uses, statement.results) for statement in statements],
            self.names,
            owned=owned,
            returned=[self.recorder.resolved(value) for value in returned],
            reserved=[*self.structs, DEVICE, *reserved],
        )
        used = {value for statement in statements for value in statement.uses}
        for statement, lifetime in zip(statements, lifetimes, strict=True):
            self._begin_layer(statement.op)
            self.body.origin = statement.op
            if self._write_constant(statement, used, fields):
                continue
            self._write_statement(statement, lifetime)
            for result in statement.results if fields else ():
                for field in fields.get(result, ()) if fields else ():
                    self._assign_constant(field, self.values[result])

    def _write_constant(
        self,
        statement: Statement,
        used: Collection[SSAValue],
        fields: Mapping[SSAValue, Sequence[str]] | None,
    ) -> bool:
        """Writes the call of an outlined function where its result is wanted: in the structure of
        the constants. Whether it can be."""
        call = statement.call
        if not isinstance(call, Call) or not call.outlined or len(statement.results) != 1:
            return False
        result = statement.results[0]
        wanted = () if fields is None else fields.get(result, ())
        if result in used or len(wanted) > 1:
            return False
        value = self.body.call(
            call.callee, *map(self.value, call.arguments), type=TENSOR, pure=True
        )
        self.values[result] = value
        for field in wanted:
            self._assign_constant(field, value)
        return True

    def _assign_constant(self, field: str, value: SSAValue) -> None:
        operands = [self.structs["constants"], value]
        self.body.insert(VerbatimOp(f"{{}}.{field} = {{}};", operands))

    def _write_statement(self, statement: Statement, lifetime: Lifetime) -> None:
        self._moved = lifetime.moved
        call = statement.call
        if len(statement.results) == 1:
            self._write_single(statement.results[0], statement, lifetime)
        elif statement.results:
            assert isinstance(call, Call)
            values = self.body.call_several(
                call.callee,
                *map(self.value, call.arguments),
                types=[TENSOR] * len(statement.results),
                names=[lifetime.declared[result] for result in statement.results],
            )
            self.values.update(zip(statement.results, values, strict=True))
        else:
            assert isinstance(call, Call)
            self.body.call_void(call.callee, *map(self.value, call.arguments))
        for value in lifetime.cleared:
            # Assigned, not deallocated: a view of the tensor may still be in use.
            self.body.insert(VerbatimOp(f"{{}} = {TENSOR}();", [self.values[value]]))

    def _write_single(self, result: SSAValue, statement: Statement, lifetime: Lifetime) -> None:
        assigned = lifetime.assigned.get(result)
        name = assigned or lifetime.declared[result]
        made = self._named(statement, name)
        self.values[result] = self.body.assigned(made, assigned) if assigned else made

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
            case _:
                made = self.body.call(
                    call.callee, *map(self.value, call.arguments), type=TENSOR, name=name
                )
                return self._with_names(made, call)

    def _with_names(self, made: SSAValue, call: Call) -> SSAValue:
        """Tells what the arguments of a long call are, but for tensors, which have names."""
        names = parameter_names(call.callee, len(call.arguments))
        if not names:
            return made
        told = [
            name if isinstance(argument, Text) and argument.text != f"&{DEVICE}" else ""
            for name, argument in zip(names, call.arguments, strict=False)
        ]
        return self.body.named_arguments(made, told)

    def value(self, argument: Argument) -> Value:
        """An expression as it stands in a statement."""
        if isinstance(argument, Text):
            return self.structs.get(argument.text, argument)
        if isinstance(argument, Use):
            return self._used(argument.value)
        if id(argument) not in self._written:
            made = self._inner(argument)
            if argument.type == TENSOR:
                return made
            self._written[id(argument)] = made
        return self._written[id(argument)]

    def _used(self, value: SSAValue) -> SSAValue:
        value = self.recorder.resolved(value)
        place = self.members.places.get(value)
        if place is not None:
            parameter, field = place
            return self.body.member(self.structs[parameter], field, TENSOR)
        found = self.values[value]
        if value in self._moved:
            self.writer.uses_last_use = True
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
                return self.body.subscript(inner, call.index, call.type)
            case "list" if call.fields:
                values = map(self.value, call.arguments)
                return self.body.aggregate(call.type, dict(zip(call.fields, values, strict=True)))
            case "list":
                return self.body.braced(call.type, *map(self.value, call.arguments))
            case "call":
                made = self.body.call(
                    call.callee,
                    *map(self.value, call.arguments),
                    type=call.type,
                    name=call.variable,
                    pure=call.variable is None,
                )
                return self._with_names(made, call)

    def _begin_layer(self, op: Operation) -> None:
        if not self.tells_layers:
            return
        found = layer(op, self.members.weight_names)
        if found is not None and found != self._layer and op.results:
            if self._layer is not None or self.values:
                self.body.blank()
            self.body.comment(found)
            self._layer = found
