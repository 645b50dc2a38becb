"""The interface of a module of device programs: its entry functions, as those of a TTNN module."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from ttcodegen.conversions.host_functions.interface import Entry, arguments_of, results_of
from ttcodegen.dialects.ttmetal.device_module import functions_of, is_host_function
from ttcodegen.emitc.identifiers import NameScope, identifier
from ttcodegen.naming.interface import entry_name
from ttcodegen.naming.layers import plain_name
from ttcodegen.naming.programs import names_of_host_function
from ttcodegen.ops.device_constants import device_constants


def device_entries(module: ModuleOp) -> list[Entry]:
    """The entry functions of a module of device programs; their constants are what they compute
    of weights and constants of the module alone."""
    # `main` belongs to the program that the functions end up in.
    scope = NameScope(["main"])
    entries: list[Entry] = []
    for function in functions_of(module):
        if not is_host_function(function):
            continue
        name = function.sym_name.data
        names = names_of_host_function(function)
        # The programs are a member of the same structure.
        fields = NameScope(["programs"])
        entries.append(
            Entry(
                names,
                name,
                scope.unique(entry_name(name)),
                tuple(arguments_of(names)),
                tuple(results_of(function)),
                device_constants(function).values,
                tuple(fields.unique(identifier(plain_name(each))) for each in names.constants),
            )
        )
    return entries
