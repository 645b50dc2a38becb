"""The interface of a module of device programs: its entry functions, as those of a TTNN module."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from ttcodegen.conversions.interface import Entry, arguments_of, results_of
from ttcodegen.dialects.device_module import constants_of, functions_of, is_host_function
from ttcodegen.emitc.identifiers import NameScope, identifier
from ttcodegen.naming.interface import entry_name
from ttcodegen.naming.sources import name_or_kind


def device_entries(module: ModuleOp) -> list[Entry]:
    """The entry functions of a module of device programs; their constants are the module's."""
    # `main` belongs to the program that the functions end up in.
    scope = NameScope(["main"])
    entries: list[Entry] = []
    for function in functions_of(module):
        if not is_host_function(function):
            continue
        name = function.sym_name.data
        arguments = tuple(arguments_of(function))
        constants = constants_of(function)
        names = tuple(map(name_or_kind, constants))
        # The programs are a member of the same structure.
        fields = NameScope(["programs"])
        entries.append(
            Entry(
                function,
                None,
                name,
                scope.unique(entry_name(name)),
                arguments,
                tuple(results_of(function)),
                tuple(op.results[0] for op in constants),
                names,
                tuple(fields.unique(identifier(constant)) for constant in names),
            )
        )
    return entries
