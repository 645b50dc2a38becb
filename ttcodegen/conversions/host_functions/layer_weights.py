"""Where the weights of equal layers are held: an array of structures among the constants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from xdsl.ir import SSAValue

from ttcodegen.conversions.host_functions.interface import Entry, LayerArray
from ttcodegen.conversions.host_functions.outlining import OutlinedFunction
from ttcodegen.conversions.host_functions.recording import Statement
from ttcodegen.emitc.identifiers import NameScope
from ttcodegen.emitc.text import Text
from ttcodegen.naming.functions import layer_array_name
from ttcodegen.naming.parameters import WEIGHTS
from ttcodegen.ops.core.calls import Argument, Call

_CONSTANTS = "constants"


def hold_weights(
    entry: Entry,
    statements: Sequence[Statement],
    functions: Sequence[OutlinedFunction],
    places: Mapping[SSAValue, tuple[str, str]],
    returned: Sequence[SSAValue],
) -> tuple[Entry, list[Statement]]:
    """The entry with arrays for the weights of layers, and statements that take them from there.

    Args:
        entry: the entry function.
        statements: its statements.
        functions: what they call for layers.
        places: the structure and the field of each argument and constant.
        returned: what the function returns.
    """
    scope = NameScope(entry.constant_fields)
    arrays: list[LayerArray] = []
    changed: dict[int, Statement] = {}
    for function in functions:
        found = _array(function, statements, places, scope)
        if found is not None:
            arrays.append(found)
            changed |= _calls(function, found)
    done = [changed.get(id(statement), statement) for statement in statements]
    held = {value for array in arrays for values in array.values for value in values}
    used = {value for statement in done for value in statement.uses}.union(returned)
    layered = frozenset(held.intersection(entry.constant_values) - used)
    return replace(entry, layers=tuple(arrays), layered=layered), done


def _array(
    function: OutlinedFunction,
    statements: Sequence[Statement],
    places: Mapping[SSAValue, tuple[str, str]],
    scope: NameScope,
) -> LayerArray | None:
    """The array for the weights that a function is called with; None if it is called by another
    one, or not with weights alone."""
    struct = next((each for each in function.structs if each.name == WEIGHTS), None)
    present = {id(statement) for statement in statements}
    if struct is None or any(id(call) not in present for call in function.calls.values()):
        return None
    indices = [function.tensors.index(field) for field in struct.fields]
    values = tuple(tuple(group.live_in[index] for index in indices) for group in function.groups)
    if any(places.get(value, ("", ""))[0] == "inputs" for each in values for value in each):
        return None
    function.structs = tuple(
        replace(each, is_declared=True) if each is struct else each for each in function.structs
    )
    fields = tuple(field.name for field in struct.fields)
    field = scope.unique(layer_array_name(function.name))
    return LayerArray(field, struct.type, function.name, fields, values)


def _calls(function: OutlinedFunction, array: LayerArray) -> dict[int, Statement]:
    """By identity, for the statements that call a function, those that take the weights from the
    array."""
    type_ = f"std::array<{array.type}, {len(array.values)}>"
    found: dict[int, Statement] = {}
    whole = Call(array.field, (Text(_CONSTANTS),), type_, "member")
    for index, (group, values) in enumerate(zip(function.groups, array.values, strict=True)):
        old = function.calls[group]
        assert isinstance(old.call, Call)
        element = Call("", (whole,), array.type, "subscript", index)
        arguments: list[Argument] = [
            element if isinstance(each, Call) and each.callee == array.type else each
            for each in old.call.arguments
        ]
        kept = tuple(value for value in old.uses if value not in values)
        call = replace(old.call, arguments=tuple(arguments))
        found[id(old)] = replace(old, call=call, uses=kept)
    return found
