"""Preparation: the function of weights and constants alone, and the arrays of layer weights."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from xdsl.ir import SSAValue

from ttcodegen.conversions.host_functions.cpp_interface import DEVICE, HostTypes, prepare_parameters
from ttcodegen.conversions.host_functions.function_writer import (
    Body,
    FunctionWriter,
    Members,
    SourceFile,
)
from ttcodegen.conversions.host_functions.interface import Entry, LayerArray
from ttcodegen.conversions.host_functions.layer_analysis import LONGEST, cuts, layers_of
from ttcodegen.conversions.host_functions.outlining import OutlinedFunction, outline, write_outlined
from ttcodegen.conversions.host_functions.statements import (
    Group,
    Recorder,
    SourceFacts,
    Statement,
    StatementRecorder,
    components,
    is_deallocation,
)
from ttcodegen.emitc.spelling import NameScope, Text
from ttcodegen.emitc.statements import VerbatimOp
from ttcodegen.naming.arguments import prepare_name
from ttcodegen.naming.functions import WEIGHTS, layer_array_name, part_name, part_title
from ttcodegen.naming.sources import common_layer, layer_of_weight
from ttcodegen.naming.values import ValueNames
from ttcodegen.ops.core.calls import Argument, Call
from ttcodegen.transforms.rewriting import body_of

# The prepare function: it computes the values that depend on weights and constants alone.


@dataclass(frozen=True)
class Preparation:
    """Computation of the constants of an entry."""

    members: Members
    recorder: StatementRecorder
    statements: Sequence[Statement]
    computed: Mapping[SSAValue, SSAValue]
    """Computed value of each constant of the entry."""


def library_preparation(facts: SourceFacts, entry: Entry) -> Preparation:
    """Returns the preparation of an entry that calls the library: its const-eval function."""
    members = _members(entry)
    if entry.const_eval is None or entry.load is None:
        return Preparation(members, Recorder(facts, ValueNames([], {}, {}, {})), [], {})
    arguments = body_of(entry.const_eval).args
    tensors = {tensor.value: tensor for tensor in entry.arguments}
    for argument, value in zip(arguments, entry.load.operands, strict=True):
        members.bind_argument(argument, tensors[value])
    ops = [op for op in body_of(entry.const_eval).ops if not is_deallocation(op)]
    constants = ops.pop().operands
    names = entry.names.prepared
    assert names is not None
    recorder = Recorder(facts, names)
    statements = recorder.record(ops)
    computed: dict[SSAValue, SSAValue] = dict(zip(entry.load.results, constants, strict=True))
    return Preparation(members, recorder, statements, computed)


def device_preparation(entry: Entry, recorder: StatementRecorder) -> Preparation:
    """Returns the preparation of an entry that runs device programs.

    The recorder has recorded its statements."""
    computed = dict(zip(entry.constant_values, entry.constant_values, strict=True))
    return Preparation(_members(entry), recorder, recorder.statements, computed)


def _members(entry: Entry) -> Members:
    members = Members()
    for tensor in entry.arguments:
        members.bind_argument(tensor.value, tensor)
    return members


def write_preparation(source: SourceFile, entry: Entry, preparation: Preparation) -> None:
    """Defines the prepare function of an entry.

    Constants that are computed together form a group; equal groups become one function."""
    recorder, computed = preparation.recorder, preparation.computed
    body = Body(entry, preparation.members, recorder)
    constants = [recorder.resolved(value) for value in computed.values()]
    groups = components(preparation.statements, constants)
    kept = [("constants", f"const {entry.struct('Constants')}&")] if source.types.kept else []
    context = (*kept, (DEVICE, f"{source.types.device}&"))
    functions = outline(groups, recorder.names, source.function_names, recorder.type_of, context)
    for function in dict.fromkeys(functions.values()):
        write_outlined(source, function, recorder)
    statements = [
        [functions[index].calls[group]] if index in functions else list(group.statements)
        for index, group in enumerate(groups)
    ]
    _write_function(source, body, statements, computed)


def _write_function(
    source: SourceFile,
    body: Body,
    groups: Sequence[Sequence[Statement]],
    computed: Mapping[SSAValue, SSAValue],
) -> None:
    """Defines the prepare function itself.

    Args:
        source: the file.
        body: state that the functions of the entry share.
        groups: the statements.
        computed: computed value of each constant of the entry.
    """
    entry = body.entry
    name, struct = prepare_name(entry.cpp_name), entry.struct("Constants")
    types = source.types
    taken = prepare_parameters(entry, types)
    statements = [statement for group in groups for statement in group]
    lines = sum(map(body.lines_of, statements)) + len(entry.constant_fields)
    needs_kept = any(_refers_to_constants(statement) for statement in statements)
    if lines <= LONGEST and not entry.layers and not needs_kept:
        builder = source.file.function(name, taken, struct, fixed_names=[DEVICE])
        function = source.open(body, builder, taken)
        function.inlines_calls = True
        function.write(statements, returned=list(computed.values()))
        others = {
            each.name: builder.call(each.maker, type=each.type, template_args=each.made, pure=True)
            for each in types.kept
        }
        values = [computed[value] for value in entry.constant_values]
        function.return_struct(struct, entry.layouts["Constants"], values, others)
        source.file.blank()
        return
    fields: dict[SSAValue, list[str]] = {}
    for value, field in _fields(entry):
        if value in computed:
            fields.setdefault(body.recorder.resolved(computed[value]), []).append(field)
    copied = [(value, field) for value, field in _fields(entry) if value in body.members.places]
    called: list[tuple[str, list[bool]]] = []
    is_short = lines + len(copied) + len(fields) <= LONGEST
    if not is_short:
        called = [_write_part(source, body, part, fields) for part in _parts(body, groups, fields)]
        called += _write_layers(source, body, copied)
    builder = source.file.function(name, taken, struct, fixed_names=[DEVICE])
    made = builder.variable("constants", struct, fixed=bool(types.kept))
    for each in types.kept:
        text = f"{each.maker}<{', '.join(each.made)}>()"
        builder.insert(VerbatimOp(f"{{}}.{each.name} = {text};", [made]))
    passed = [*builder.arguments, made]
    if is_short:
        function = source.open(body, builder, taken)
        function.structs = {**function.structs, "constants": made}
        _write_constants(function, statements, fields)
        for value, field in copied:
            function.assign_constant(field, function.used(value))
    for part, used in called:
        given = [value for value, is_used in zip(passed, used, strict=True) if is_used]
        builder.insert(VerbatimOp(f"{part}({', '.join(['{}'] * len(given))});", given))
    builder.return_(builder.load(made))
    source.file.blank()


def _refers_to_constants(statement: Statement) -> bool:
    """Returns whether a statement refers to members of the constants other than tensors."""
    names = [text for text, _ in statement.form.texts]
    return "constants" in names or "*constants." in str(statement.form.skeleton)


def _write_constants(
    function: FunctionWriter,
    statements: Sequence[Statement],
    fields: Mapping[SSAValue, Sequence[str]],
) -> None:
    """Writes statements that compute constants, and assigns each result to its field at once."""
    function.inlines_calls = True
    # The fields hold the constants, so that their variables are free after the last use.
    function.write(statements, reserved=["constants"], fields=fields)


def _fields(entry: Entry) -> Iterator[tuple[SSAValue, str]]:
    """Yields the constants and the weights of layers, each with its access path."""
    for value, field in entry.constants:
        yield value, field
    for array in entry.layers:
        for index, values in enumerate(array.values):
            for value, field in zip(values, array.fields, strict=True):
                yield value, f"{array.field}[{index}].{field}"


def _write_layers(
    source: SourceFile, body: Body, copied: Sequence[tuple[SSAValue, str]]
) -> list[tuple[str, list[bool]]]:
    """Defines functions that copy weights to the layer arrays.

    Returns their names and used parameters."""
    entry = body.entry
    called: list[tuple[str, list[bool]]] = []
    for start in range(0, len(copied), LONGEST):
        name = source.function_names.unique(f"{prepare_name(entry.cpp_name)}_layers")
        taken = _part_parameters(entry, source.types)
        builder = source.file.function(
            name, taken, specifiers=["static"], fixed_names=source.types.fixed_names
        )
        function = source.open(body, builder, taken)
        for value, field in copied[start : start + LONGEST]:
            function.assign_constant(field, function.used(value))
        builder.return_()
        source.file.blank()
        called.append((name, builder.drop_unused_parameters()))
    return called


def _part_parameters(entry: Entry, types: HostTypes) -> list[tuple[str, str]]:
    return [*prepare_parameters(entry, types), ("constants", f"{entry.struct('Constants')}&")]


def _write_part(
    source: SourceFile,
    body: Body,
    statements: Sequence[Statement],
    fields: Mapping[SSAValue, Sequence[str]],
) -> tuple[str, list[bool]]:
    """Defines a function that computes some constants; returns its name and used parameters."""
    entry = body.entry
    # Shared statements, which each part repeats, do not name the part.
    own = [statement for statement in statements if statement.uses]
    title = part_title(_layers(body, own or statements))
    name = source.function_names.unique(part_name(prepare_name(entry.cpp_name), title))
    taken = _part_parameters(entry, source.types)
    builder = source.file.function(
        name, taken, specifiers=["static"], fixed_names=source.types.fixed_names
    )
    _write_constants(source.open(body, builder, taken), statements, fields)
    builder.return_()
    source.file.blank()
    return name, builder.drop_unused_parameters()


def _layers(body: Body, statements: Iterable[Statement]) -> list[str]:
    """Returns the layer of each statement, or that of a weight it uses."""

    def found(statement: Statement) -> str | None:
        taken = (body.members.weight_names.get(value, "") for value in statement.uses)
        return body.members.layer_of(statement) or next(
            filter(None, map(layer_of_weight, taken)), None
        )

    return layers_of(statements, found)


def _parts(
    body: Body, groups: Sequence[Sequence[Statement]], fields: Mapping[SSAValue, Sequence[str]]
) -> Iterator[list[Statement]]:
    """Yields groups of statements in parts of limited length.

    Producers of values that several groups use are repeated in each part that uses them; on their
    own they are written only if they are fields of the constants."""
    shared = {
        result: group[0]
        for group in groups
        if len(group) == 1 and not group[0].uses
        for result in group[0].results
    }
    part: list[Statement] = []
    starts = _split_points(body, groups)
    for index, group in enumerate(groups):
        if index in starts and part:
            yield part
            part = []
        made = [result for statement in group for result in statement.results]
        if all(result in shared and result not in fields for result in made):
            continue
        needed = {id(shared[v]): shared[v] for s in group for v in s.uses if v in shared}
        part += [s for s in needed.values() if s not in part]
        part += [statement for statement in group if statement not in part]
    if part:
        yield part


def _split_points(body: Body, groups: Sequence[Sequence[Statement]]) -> set[int]:
    """Indices of the groups that begin a part, at layer boundaries if possible."""
    sizes = (sum(body.lines_of(s) + len(s.results) for s in group) for group in groups)
    layers: list[str] = []
    for group in groups:
        layers.append(common_layer(_layers(body, group)) or (layers[-1] if layers else ""))
    return set(cuts(layers, list(accumulate(sizes)), is_early=True))


# The weights of equal layers are an array of structures among the constants.

_CONSTANTS = "constants"


def hold_weights(
    entry: Entry,
    statements: Sequence[Statement],
    functions: Sequence[OutlinedFunction],
    places: Mapping[SSAValue, tuple[str, str]],
    returned: Sequence[SSAValue],
) -> tuple[Entry, list[Statement]]:
    """Returns the entry with arrays of layer weights, and the statements that use them.

    Args:
        entry: the entry function.
        statements: its statements.
        functions: functions of layers that they call.
        places: structure and field of each argument and constant.
        returned: values that the function returns.
    """
    scope = NameScope(entry.constant_fields)
    arrays: list[LayerArray] = []
    changed: dict[int, Statement] = {}
    for function in functions:
        found = _array(function, statements, places, scope)
        if found is not None:
            arrays.append(found)
            changed |= _calls_with_array(function, found, places)
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
    """Returns the array of the weights that a function is called with.

    None if another function calls it, or if not all fields are weights that the model holds
    flat."""
    struct = next((s for s in function.structs if s.name == WEIGHTS and not s.is_element), None)
    present = {id(statement) for statement in statements}
    if struct is None or any(id(call) not in present for call in function.calls.values()):
        return None
    indices = [function.tensors.index(field) for field in struct.fields]
    values: dict[Weights, tuple[SSAValue, ...]] = {}
    for group in function.groups:
        values.setdefault(*_weights(group, indices, places))
    held = [places.get(value, ("", "")) for each in values.values() for value in each]
    # Weights that the model nests by module stay there.
    if any(holder == "inputs" or "." in path for holder, path in held):
        return None
    function.structs = tuple(
        replace(each, is_declared=True) if each is struct else each for each in function.structs
    )
    fields = tuple(field.name for field in struct.fields)
    field = scope.unique(layer_array_name(function.name))
    return LayerArray(field, struct.type, function.name, fields, tuple(values.values()))


Weights = tuple[tuple[str, str] | SSAValue, ...]
"""The paths of a layer's weights, equal for all steps of one layer."""


def _weights(
    group: Group, indices: Sequence[int], places: Mapping[SSAValue, tuple[str, str]]
) -> tuple[Weights, tuple[SSAValue, ...]]:
    """Returns the paths of the weights that a group takes, and the values."""
    values = tuple(group.live_in[index] for index in indices)
    return tuple(places.get(value, value) for value in values), values


def _calls_with_array(
    function: OutlinedFunction, array: LayerArray, places: Mapping[SSAValue, tuple[str, str]]
) -> dict[int, Statement]:
    """Returns the calls of a function with weights from the array, by identity of the old call."""
    struct = next(s for s in function.structs if s.name == WEIGHTS and not s.is_element)
    indices = [function.tensors.index(field) for field in struct.fields]
    elements = {
        tuple(places.get(value, value) for value in values): index
        for index, values in enumerate(array.values)
    }
    type_ = f"std::array<{array.type}, {len(array.values)}>"
    found: dict[int, Statement] = {}
    whole = Call(array.field, (Text(_CONSTANTS),), type_, "member")
    for group in function.groups:
        weights, values = _weights(group, indices, places)
        index = elements[weights]
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
