"""The function that computes what depends on weights and constants alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from xdsl.ir import SSAValue

from ttcodegen.conversions.cpp_interface import DEVICE, prepare_parameters
from ttcodegen.conversions.function_writer import Body, Members, SourceFile
from ttcodegen.conversions.interface import Entry
from ttcodegen.conversions.outlined_functions import write_outlined
from ttcodegen.conversions.outlining import outline
from ttcodegen.conversions.recording import Recorder, Statement, is_deallocation
from ttcodegen.conversions.splitting import LONGEST
from ttcodegen.conversions.statement_groups import components
from ttcodegen.emitc.identifiers import identifier
from ttcodegen.emitc.statements import VerbatimOp
from ttcodegen.naming.layers import common_layer
from ttcodegen.naming.values import ValueNames
from ttcodegen.transforms.rebuilding import body_of


def write_preparation(source: SourceFile, entry: Entry) -> None:
    """Defines the function that computes the constants of an entry: group by group of those that
    are computed together, and equal groups by one function."""
    members = Members()
    for tensor in entry.arguments:
        members.bind_argument(tensor.value, tensor)
    if entry.const_eval is None or entry.load is None:
        recorder = Recorder(source.facts, ValueNames([], {}, {}, {}))
        _write_function(source, Body(entry, members, recorder), [], {})
        return
    arguments = body_of(entry.const_eval).args
    tensors = {tensor.value: tensor for tensor in entry.arguments}
    for argument, value in zip(arguments, entry.load.operands, strict=True):
        members.bind_argument(argument, tensors[value])
    ops = [op for op in body_of(entry.const_eval).ops if not is_deallocation(op)]
    constants = ops.pop().operands
    names = ValueNames(
        ops,
        members.names,
        members.weight_names,
        dict(zip(constants, entry.constant_names, strict=True)),
        of_weights=True,
    )
    recorder = Recorder(source.facts, names)
    body = Body(entry, members, recorder)
    groups = components(recorder.record(ops), [recorder.resolved(v) for v in constants])
    functions = outline(groups, names, source.function_names)
    for function in dict.fromkeys(functions.values()):
        write_outlined(source, function, recorder)
    statements = [
        [functions[index].calls[group]] if index in functions else list(group.statements)
        for index, group in enumerate(groups)
    ]
    computed: dict[SSAValue, SSAValue] = dict(zip(entry.load.results, constants, strict=True))
    _write_function(source, body, statements, computed)


def _write_function(
    source: SourceFile,
    body: Body,
    groups: Sequence[Sequence[Statement]],
    computed: Mapping[SSAValue, SSAValue],
) -> None:
    """Defines the function itself.

    Args:
        source: the file.
        body: what its statements share.
        groups: the statements.
        computed: for each constant as the entry loads it what is computed.
    """
    entry = body.entry
    name, struct = f"prepare_{entry.cpp_name}", entry.struct("Constants")
    taken = prepare_parameters(entry)
    statements = [statement for group in groups for statement in group]
    lines = sum(map(body.lines_of, statements)) + len(entry.constant_fields)
    if lines <= LONGEST and not entry.layers:
        builder = source.file.function(name, taken, struct, fixed_names=[DEVICE])
        function = source.open(body, builder, taken)
        function.inlines_calls = True
        function.write(statements, returned=list(computed.values()))
        function.return_struct(struct, entry.constant_fields, list(computed.values()))
        source.file.blank()
        return
    fields: dict[SSAValue, list[str]] = {}
    for value, field in _fields(entry):
        if value in computed:
            fields.setdefault(body.recorder.resolved(computed[value]), []).append(field)
    called = [_write_part(source, body, part, fields) for part in _parts(body, groups, fields)]
    called += _write_layers(source, body)
    builder = source.file.function(name, taken, struct, fixed_names=[DEVICE])
    made = builder.variable("constants", struct)
    passed = [*builder.arguments, made]
    for part in called:
        builder.insert(VerbatimOp(f"{part}({', '.join(['{}'] * len(passed))});", passed))
    builder.return_(builder.load(made))
    source.file.blank()


def _fields(entry: Entry) -> Iterator[tuple[SSAValue, str]]:
    """The constants, and the weights of layers, each with where it is held."""
    for value, field in entry.constants:
        yield value, field
    for array in entry.layers:
        for index, values in enumerate(array.values):
            for value, field in zip(values, array.fields, strict=True):
                yield value, f"{array.field}[{index}].{field}"


def _write_layers(source: SourceFile, body: Body) -> list[str]:
    """Defines functions that hand the weights to layers as they are; their names."""
    entry = body.entry
    given = [(value, field) for value, field in _fields(entry) if value in body.members.places]
    names: list[str] = []
    for start in range(0, len(given), LONGEST):
        name = source.function_names.unique(f"prepare_{entry.cpp_name}_layers")
        names.append(name)
        taken = _part_parameters(entry)
        builder = source.file.function(name, taken, specifiers=["static"], fixed_names=[DEVICE])
        function = source.open(body, builder, taken)
        for value, field in given[start : start + LONGEST]:
            function.assign_constant(field, function.used(value))
        builder.return_()
        source.file.blank()
    return names


def _part_parameters(entry: Entry) -> list[tuple[str, str]]:
    return [*prepare_parameters(entry), ("constants", f"{entry.struct('Constants')}&")]


def _write_part(
    source: SourceFile,
    body: Body,
    statements: Sequence[Statement],
    fields: Mapping[SSAValue, Sequence[str]],
) -> str:
    """Defines a function that computes some of the constants; its name."""
    entry = body.entry
    title = common_layer([name for name in body.members.layers(statements) if name])
    name = source.function_names.unique(identifier(f"prepare_{entry.cpp_name}_{title or 'part'}"))
    taken = _part_parameters(entry)
    builder = source.file.function(name, taken, specifiers=["static"], fixed_names=[DEVICE])
    function = source.open(body, builder, taken)
    function.inlines_calls = True
    kept = [value for s in statements for value in s.results if value in fields]
    function.write(statements, returned=kept, reserved=["constants"], fields=fields)
    builder.return_()
    source.file.blank()
    return name


def _parts(
    body: Body, groups: Sequence[Sequence[Statement]], fields: Mapping[SSAValue, Sequence[str]]
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
        size = sum(body.lines_of(statement) + len(statement.results) for statement in group)
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
