"""C++ function of an entry, for both targets: a long one calls functions of its parts."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from ttcodegen.conversions.host_functions.cpp_interface import parameters, returned_type
from ttcodegen.conversions.host_functions.function_writer import Body, SourceFile
from ttcodegen.conversions.host_functions.layer_analysis import Part, split
from ttcodegen.conversions.host_functions.statements import Statement
from ttcodegen.emitc.spelling import NameScope, Text, identifier
from ttcodegen.naming.functions import part_name
from ttcodegen.ops.core.calls import Call, Use


def write_entry_function(
    source: SourceFile, body: Body, statements: Sequence[Statement], results: Sequence[SSAValue]
) -> None:
    """Defines the function of an entry.

    Args:
        source: the file.
        body: state that the functions of the entry share.
        statements: statements of the function, in order.
        results: values that it returns.
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
        # The comments of the parts name their layers.
        function.layer_of = lambda _: None
    function.write(statements, returned=results)
    if result is not None:
        function.return_struct(result, entry.layouts["Outputs"], results)
    else:
        builder.return_()
    source.file.blank()


def _write_part(source: SourceFile, body: Body, part: Part) -> Statement:
    """Defines the function of a part; returns the statement that calls it."""
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
