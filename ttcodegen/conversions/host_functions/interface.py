"""Interface of a module's host functions: entry functions, arguments, results, signatures."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr, UnitAttr
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, SSAValue
from xdsl.passes import ModulePass

from ttcodegen.dialects.core.datatypes import shape_of
from ttcodegen.dialects.operations.attribute_kinds import INTEGERS
from ttcodegen.dialects.operations.functions import argument_type, attributes_at, is_loop_body
from ttcodegen.dialects.ttcore.device import MeshShape, declared_mesh, parts_of
from ttcodegen.dialects.ttcore.dialect import ArgumentType, LoadCachedOp
from ttcodegen.dialects.ttcore.loops import WhileLoopOp
from ttcodegen.dialects.ttir.annotations import DIVIDED, SHARE, WantedSharding
from ttcodegen.emitc.builder import Argument, EmitCBuilder
from ttcodegen.emitc.spelling import NameScope, Text, identifier
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.naming.arguments import (
    argument_names,
    entry_name,
    prepare_name,
    result_names,
    struct_name,
)
from ttcodegen.naming.members import (
    Array,
    Layout,
    Shape,
    Struct,
    StructTypes,
    Tensor,
    array_name,
    layout_of,
)
from ttcodegen.naming.modules import FunctionNames, load_of, names_of_loop, names_of_module
from ttcodegen.naming.sources import plain_name
from ttcodegen.transforms.rewriting import body_of

# What the outside sees of a TTNN module: its entry functions, their arguments and results.


@dataclass(frozen=True)
class InterfaceTensor:
    """One argument or result of an entry function."""

    name: str
    """As the source names it, else `arg0`, `output_0`."""
    title: str
    """Name in C++, as text with decorations of frameworks."""
    field: str
    """The title as an identifier, unique among the arguments or the results of the function."""
    kind: str
    """input, parameter, constant or output."""
    value: SSAValue
    share: str = ""
    """On a mesh, what each chip takes of it or gives to it, in words."""
    divided: tuple[int, ...] = ()
    """Of one whose value is the part that each chip has: for each axis of the mesh the dimension
    that is divided along it, -1 for none."""
    shape: tuple[int, ...] = ()
    """That of the whole."""
    path: str = ""
    """Its access path in the structure that holds it."""

    @property
    def is_weight(self) -> bool:
        """True if the value is the same in every call."""
        return self.kind in ("parameter", "constant")


@dataclass(frozen=True)
class LayerArray:
    """The weights of equal layers: a member of the constants, one structure for each layer."""

    field: str
    type: str
    function: str
    """The function of the layers."""
    fields: tuple[str, ...]
    values: tuple[tuple[SSAValue, ...], ...]
    """For each layer the weights and constants of the function that its fields hold."""


@dataclass(frozen=True)
class LoopFunction:
    """The body of a loop, and its C++ name."""

    names: FunctionNames
    cpp_name: str
    trip_count: int | None
    """None if it is only known at run time."""

    @property
    def function(self) -> FuncOp:
        """The function itself."""
        return self.names.function


@dataclass(frozen=True)
class Entry:
    """An entry function with the C++ names that its interface needs."""

    names: FunctionNames
    """Names of the tensors of the function."""
    name: str
    cpp_name: str
    arguments: tuple[InterfaceTensor, ...]
    results: tuple[InterfaceTensor, ...]
    constant_values: tuple[SSAValue, ...]
    """The constants, as the function has them."""
    constant_fields: tuple[str, ...]
    """Their access paths in the structure that holds them."""
    layouts: Mapping[str, Layout]
    """The members of its structures: Inputs, Weights, Constants, Outputs."""
    types: StructTypes
    """The structures in arrays that the functions of the module share."""
    layers: tuple[LayerArray, ...] = ()
    layered: frozenset[SSAValue] = frozenset()
    """The constants that are only held for layers."""
    loops: tuple[LoopFunction, ...] = ()
    """The bodies of loops that are not unrolled, each after those in it."""

    @property
    def function(self) -> FuncOp:
        """The function itself."""
        return self.names.function

    @property
    def const_eval(self) -> FuncOp | None:
        """The function that computes its constants, if there is any."""
        return self.names.const_eval

    @property
    def load(self) -> LoadCachedOp | None:
        """The op that brings the constants into the function, if it has any."""
        return load_of(self.function)

    @property
    def has_constants(self) -> bool:
        """True if there is something to compute or to hold before the first call."""
        return bool(self.constant_fields) or bool(self.layers)

    @cached_property
    def constants(self) -> tuple[tuple[SSAValue, str], ...]:
        """The constants as the function loads them, with their fields, but for those of layers."""
        pairs = zip(self.constant_values, self.constant_fields, strict=True)
        return tuple(pair for pair in pairs if pair[0] not in self.layered)

    @cached_property
    def inputs(self) -> tuple[InterfaceTensor, ...]:
        """The arguments that differ from call to call."""
        return tuple(tensor for tensor in self.arguments if not tensor.is_weight)

    @cached_property
    def weights(self) -> tuple[InterfaceTensor, ...]:
        """The arguments that are the same in every call."""
        return tuple(tensor for tensor in self.arguments if tensor.is_weight)

    @cached_property
    def elements(self) -> Mapping[tuple[str, str], str]:
        """The types of structures in arrays, by the parameter that holds them and their access
        paths: `LayerWeights` for `weights` and `layers[0]`."""
        return {
            (kind.lower(), path): self.types.name(struct, kind, array_name(path))
            for kind, layout in self.layouts.items()
            for path, struct in layout.elements.items()
        }

    def struct(self, suffix: str) -> str:
        """The name of one of the structures of the function: Inputs, Weights, ..."""
        return struct_name(self.cpp_name, suffix)


def entry_of(
    names: FunctionNames,
    cpp_name: str,
    constants: Sequence[SSAValue],
    types: StructTypes,
    reserved: Iterable[str] = (),
) -> Entry:
    """Describes the interface of an entry function.

    Args:
        names: the names of its tensors.
        cpp_name: the C++ name of the function.
        constants: the constants, as the function has them.
        types: structures that the functions of the module share.
        reserved: members of the constants that are no tensors.
    """
    arguments, results = list(arguments_of(names)), list(results_of(names.function))
    groups = {
        "Inputs": [tensor for tensor in arguments if not tensor.is_weight],
        "Weights": [tensor for tensor in arguments if tensor.is_weight],
        "Outputs": results,
    }
    layouts = {
        kind: layout_of([plain_name(tensor.title) for tensor in tensors])
        for kind, tensors in groups.items()
    }
    layouts["Constants"] = layout_of([*map(plain_name, names.constants)], reserved)
    paths = {
        tensor: path
        for kind, tensors in groups.items()
        for tensor, path in zip(tensors, layouts[kind].paths, strict=True)
    }
    return Entry(
        names,
        names.function.sym_name.data,
        cpp_name,
        tuple(replace(tensor, path=paths[tensor]) for tensor in arguments),
        tuple(replace(tensor, path=paths[tensor]) for tensor in results),
        tuple(constants),
        layouts["Constants"].paths,
        layouts,
        types,
    )


def entries(module: ModuleOp) -> list[Entry]:
    """The entry functions of a TTNN module, in order."""
    # `main` belongs to the program that the functions end up in.
    scope = NameScope(["main"])
    types = StructTypes()
    result: list[Entry] = []
    known = names_of_module(op for op in module.body.block.ops if isinstance(op, FuncOp))
    bodies = {each.function.sym_name.data: each for each in known if is_loop_body(each.function)}
    for names in known:
        name = names.function.sym_name.data
        if name in bodies:
            continue
        load = load_of(names.function)
        cpp_name = scope.unique(entry_name(name))
        entry = entry_of(names, cpp_name, () if load is None else load.results, types)
        loops = tuple(_loops(names, cpp_name, bodies, scope))
        result.append(replace(entry, loops=loops))
    return result


def _loops(
    names: FunctionNames, caller: str, bodies: Mapping[str, FunctionNames], scope: NameScope
) -> Iterator[LoopFunction]:
    """The bodies of the loops of a function, those in another body before that."""
    pending = [names]
    found: dict[str, tuple[FunctionNames, int | None]] = {}
    while pending:
        outside = pending.pop()
        for op in body_of(outside.function).ops:
            if isinstance(op, WhileLoopOp):
                name = op.callee.string_value()
                titles = [
                    outside.values[value] if _NAMELESS.match(title) else title
                    for value, title in zip(op.inputs, bodies[name].titles, strict=True)
                ]
                inside = names_of_loop(bodies[name].function, titles)
                # One in several bodies comes before all of them.
                found[name] = found.pop(name, (inside, op.trips))
                pending.append(inside)
    for inside, trips in reversed(found.values()):
        yield LoopFunction(inside, scope.unique(f"{caller}_loop"), trips)


_NAMELESS = re.compile(r"arg\d+$")


def required(functions: list[Entry]) -> list[Entry]:
    """The entry functions; raises CompileError if there are none."""
    if not functions:
        raise CompileError(
            "the module has no public function",
            remedy="remove 'private' from the function that is to be called",
        )
    return functions


def arguments_of(names: FunctionNames) -> Iterator[InterfaceTensor]:
    """The arguments of an entry function."""
    scope = NameScope()
    function = names.function
    mesh = declared_mesh(function)
    outside = argument_names(function)
    for argument, name, title in zip(body_of(function).args, outside, names.titles, strict=True):
        kind = argument_type(function, argument.index)
        declared = "input" if kind is ArgumentType.DEFAULT else kind.value
        field = scope.unique(identifier(plain_name(title)))
        said = attributes_at(function.arg_attrs, argument.index)
        divided, shape = _whole(argument, said, mesh)
        share = _share_text(shape, said.get(SHARE), mesh)
        yield InterfaceTensor(name, title, field, declared, argument, share, divided, shape)


def results_of(function: FuncOp) -> Iterator[InterfaceTensor]:
    """The results of an entry function."""
    terminator = body_of(function).last_op
    assert isinstance(terminator, ReturnOp)
    scope = NameScope()
    mesh = declared_mesh(function)
    named = zip(terminator.operands, result_names(function), strict=True)
    for index, (value, name) in enumerate(named):
        said = attributes_at(function.res_attrs, index)
        divided, shape = _whole(value, said, mesh)
        share = _share_text(shape, said.get(SHARE), mesh, is_result=True)
        field = scope.unique(identifier(name))
        yield InterfaceTensor(name, name, field, "output", value, share, divided, shape)


def _whole(
    value: SSAValue, said: Mapping[str, Attribute], mesh: MeshShape
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Sharding of an argument or result that is a shard, and the shape of the whole."""
    shape = shape_of(value.type)
    divided = tuple(INTEGERS.decode(said[DIVIDED])) if DIVIDED in said else ()
    counts = parts_of(shape, divided, mesh)
    return divided, tuple(size * count for size, count in zip(shape, counts, strict=True))


def _share_text(
    shape: Sequence[int], said: Attribute | None, mesh: MeshShape, is_result: bool = False
) -> str:
    """Description of the shard that each device takes or gives; empty if there is none."""
    share = WantedSharding.of(said, len(shape))
    if share is None:
        return ""
    divided = [(dim, axes) for dim, axes in enumerate(share.axes) if axes]
    if not divided:
        return "What the first chip has." if is_result else "Each chip has the whole."
    counts = [prod(mesh[axis] for axis in axes) for axes in share.axes]
    part = "x".join(str(size // count) for size, count in zip(shape, counts, strict=True))
    parts = ", ".join(
        f"dimension {dim} along "
        + (f"axis {axes[0]}" if len(axes) == 1 else "axes " + " and ".join(map(str, axes)))
        + f" of the mesh ({counts[dim]} chips)"
        for dim, axes in divided
    )
    return f"{'Put together of' if is_result else 'Each chip has'} {part}: {parts}."


def module_name(module: ModuleOp) -> str | None:
    """The symbol of the module, None if it has none."""
    name: Attribute | None = module.sym_name
    return name.data if isinstance(name, StringAttr) else None


# A second function for each entry function: a vector of tensors in, a vector of tensors out.
#
# Programs that load a library and know nothing of the model call all of its functions alike, the
# way the reference system's shared objects are called.

UNIFORM_SIGNATURE = "ttcodegen.uniform_signature"
"""Marks an entry function that gets a second one."""

_TENSOR = "ttnn::Tensor"
_TENSORS = "std::vector<ttnn::Tensor>"
_DEVICE = "device"
_PARAMETERS = [("arguments", f"const {_TENSORS}&"), (_DEVICE, "ttnn::MeshDevice&")]


@dataclass(frozen=True)
class ModifySignaturesForDylib(ModulePass):
    """Gives every public function `f` a second C++ function `call_f`, of vectors.

    Raises CompileError if the module has a function of that name.
    """

    name = "ttnn-modify-signatures-for-dylib"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        functions = {f.sym_name.data: f for f in op.body.block.ops if isinstance(f, FuncOp)}
        for name, function in functions.items():
            if f"call_{name}" in functions:
                raise CompileError(
                    f"the name 'call_{name}' is needed for a function with another signature",
                    functions[f"call_{name}"],
                    remedy="give the function another name",
                )
            visibility = function.sym_visibility
            if visibility is None or visibility.data != "private":
                function.attributes[UNIFORM_SIGNATURE] = UnitAttr()


def has_uniform_signature(entry: Entry) -> bool:
    """True if an entry function gets a second one."""
    return UNIFORM_SIGNATURE in entry.function.attributes


def uniform_name(entry: Entry) -> str:
    """The C++ name of the second function."""
    return f"call_{entry.cpp_name}"


def declare_uniform(header: EmitCBuilder, entry: Entry) -> None:
    """Declares the function in the header of the module."""
    header.comment(
        f"{entry.cpp_name} for callers without the structs: all arguments in order, all "
        "results in order."
    )
    header.declare(uniform_name(entry), _PARAMETERS, _TENSORS)


def define_uniform(file: EmitCBuilder, entry: Entry) -> None:
    """Defines the function: it puts the arguments into the structures of the other one.

    Constants are computed in every call: the caller does not say when the weights change.
    """
    body = file.function(uniform_name(entry), _PARAMETERS, _TENSORS, fixed_names=[_DEVICE])
    arguments, device = body.arguments[0], Text(_DEVICE)
    passed: list[SSAValue | Text] = []
    weights: list[SSAValue] = []
    for suffix, tensors in (("Inputs", entry.inputs), ("Weights", entry.weights)):
        if tensors:
            struct = _structure(body, entry, suffix, tensors, arguments)
            passed.append(struct)
            weights = [struct] if suffix == "Weights" else []
    if entry.has_constants:
        constants = body.call(
            prepare_name(entry.cpp_name),
            *weights,
            device,
            type=entry.struct("Constants"),
            name="constants",
        )
        passed.append(constants)
    passed.append(device)
    if not entry.results:
        body.call_void(entry.cpp_name, *passed)
        body.return_(body.braced(_TENSORS))
        return
    outputs = body.call(entry.cpp_name, *passed, type=entry.struct("Outputs"), name="outputs")
    results = [member_at(body, outputs, tensor.path, _TENSOR) for tensor in entry.results]
    body.return_(body.braced(_TENSORS, *results))


def _structure(
    body: EmitCBuilder,
    entry: Entry,
    suffix: str,
    tensors: Sequence[InterfaceTensor],
    arguments: SSAValue,
) -> SSAValue:
    """A variable that holds the arguments that belong into one of the structures."""
    fields: dict[str, Argument] = {}
    for tensor in tensors:
        place = Text(str(entry.arguments.index(tensor)))
        value = body.call_method(arguments, "at", place, type=_TENSOR, pure=True)
        assert value is not None
        fields[tensor.path] = value
    members = nested_members(body, entry.layouts[suffix].root, fields, _TENSOR)
    return body.aggregate(entry.struct(suffix), members, name=suffix.lower())


def nested_members(
    body: EmitCBuilder, struct: Struct, values: Mapping[str, Argument], tensor: str, path: str = ""
) -> dict[str, Argument]:
    """The initializers of the members of a structure.

    Args:
        body: the function that initialises it.
        struct: the structure.
        values: the tensors by their access paths.
        tensor: the C++ type of a tensor.
        path: that of the structure itself.
    """

    def initializer(shape: Shape, path: str) -> Argument:
        match shape:
            case Tensor():
                return values[path] if path in values else body.braced(tensor)
            case Struct():
                inner = nested_members(body, shape, values, tensor, f"{path}.")
                return body.aggregate(_INNER, inner, typed=False)
            case Array(element, count):
                items = [initializer(element, f"{path}[{index}]") for index in range(count)]
                elements = body.braced(_INNER, *items, typed=False)
                # Only around tensors may the braces of the array in std::array be left out.
                is_flat = isinstance(element, Tensor)
                return elements if is_flat else body.braced(_INNER, elements, typed=False)

    return {name: initializer(shape, f"{path}{name}") for name, shape in struct.members}


_INNER = "auto"
"""The type of a structure without a name, which is not written."""
_STEP = re.compile(r"\[(\d+)\]|\w+")


def member_at(body: EmitCBuilder, value: SSAValue, path: str, type_: str) -> SSAValue:
    """The member of a structure at an access path.

    Args:
        body: the function that takes it.
        value: the structure.
        path: `layers[0].weight`; the structure itself if it is empty.
        type_: the C++ type of the member.
    """
    steps = list(_STEP.finditer(path))
    for step in steps:
        reached = type_ if step is steps[-1] else _INNER
        if step[1] is not None:
            value = body.subscript(value, int(step[1]), reached)
        else:
            value = body.member(value, step[0], reached)
    return value
