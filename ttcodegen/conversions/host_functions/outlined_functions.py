"""Writes the functions that equal groups of statements became."""

from __future__ import annotations

from operator import attrgetter

from ttcodegen.conversions.host_functions.cpp_interface import returned_type
from ttcodegen.conversions.host_functions.function_writer import FunctionWriter, Members, SourceFile
from ttcodegen.conversions.host_functions.outlining import OutlinedFunction, Parameter, body_of
from ttcodegen.conversions.host_functions.recording import StatementRecorder


def write_outlined(
    source: SourceFile, function: OutlinedFunction, recorder: StatementRecorder
) -> None:
    """Defines an outlined function, with the structures that it takes.

    Args:
        source: the file.
        function: what is defined.
        recorder: what recorded the statements.
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
    writer.names = recorder.names.renamed(function.names)
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
    body = body_of(function)
    writer.write(body, owned=owned, returned=first.live_out, reserved=reserved)
    writer.return_values(first.live_out, result)
    source.file.blank()


def _is_owned(parameter: Parameter, function: OutlinedFunction) -> bool:
    """True if a parameter is a tensor that the function is given, to be freed by it."""
    return parameter in function.tensors and not parameter.type.startswith("const ")
