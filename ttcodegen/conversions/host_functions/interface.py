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
from ttcodegen.emitc.builder import TENSOR, Argument, EmitCBuilder
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

DEVICE = "device"
"""Name of the device parameter of functions."""

# Public interface of a TTNN module: entry functions, their arguments and results.


@dataclass(frozen=True)
class InterfaceTensor:
    """Argument or result of an entry function."""

    name: str
    """Name in the source; by default `arg0`, `output_0`."""
    title: str
    """Name in C++, as text with decorations of frameworks."""
    field: str
    """The title as an identifier, unique among the arguments or the results of the function."""
    kind: str
    """One of input, parameter, constant, output."""
    value: SSAValue
    share: str = ""
    """On a mesh, description of the shard of each device."""
    divided: tuple[int, ...] = ()
    """For a shard, the dimension that is divided along each mesh axis, -1 for none."""
    shape: tuple[int, ...] = ()
    """Shape of the whole tensor."""
    path: str = ""
    """Access path in the structure that holds it."""

    @property
    def is_weight(self) -> bool:
        """Returns whether the value is the same in every call."""
        return self.kind in ("parameter", "constant")


@dataclass(frozen=True)
class LayerArray:
    """Array of the weights of equal layers: a member of the constants, one structure per layer."""

    field: str
    type: str
    function: str
    """Function of the layers."""
    fields: tuple[str, ...]
    values: tuple[tuple[SSAValue, ...], ...]
    """For each layer the values of its fields."""


@dataclass(frozen=True)
class LoopFunction:
    """The body of a loop, and its C++ name."""

    names: FunctionNames
    cpp_name: str
    trip_count: int | None
    """Number of iterations; None if it is only known at run time."""

    @property
    def function(self) -> FuncOp:
        """Function of the loop body."""
        return self.names.function


@dataclass(frozen=True)
class Entry:
    """Entry function with the C++ names of its interface."""

    names: FunctionNames
    """Names of the tensors of the function."""
    name: str
    cpp_name: str
    arguments: tuple[InterfaceTensor, ...]
    results: tuple[InterfaceTensor, ...]
    constant_values: tuple[SSAValue, ...]
    """Values of the constants in the function."""
    constant_fields: tuple[str, ...]
    """Access paths of the constants in the structure that holds them."""
    layouts: Mapping[str, Layout]
    """Members of its structures: Inputs, Weights, Constants, Outputs."""
    types: StructTypes
    """Structures in arrays that the functions of the module share."""
    layers: tuple[LayerArray, ...] = ()
    layered: frozenset[SSAValue] = frozenset()
    """Constants that are only used by layer arrays."""
    loops: tuple[LoopFunction, ...] = ()
    """Bodies of loops that are not unrolled, inner ones first."""

    def __post_init__(self) -> None:
        # Structures of all entry functions are named before those of layers, which avoid them.
        _ = self.elements

    @property
    def function(self) -> FuncOp:
        """The entry function."""
        return self.names.function

    @property
    def const_eval(self) -> FuncOp | None:
        """Function that computes its constants, if any."""
        return self.names.const_eval

    @property
    def load(self) -> LoadCachedOp | None:
        """Op that loads the constants in the function, if any."""
        return load_of(self.function)

    @property
    def has_constants(self) -> bool:
        """Returns whether the prepare function has anything to compute or hold."""
        return bool(self.constant_fields) or bool(self.layers)

    @cached_property
    def constants(self) -> tuple[tuple[SSAValue, str], ...]:
        """Constants with their fields, except those that only layer arrays use."""
        pairs = zip(self.constant_values, self.constant_fields, strict=True)
        return tuple(pair for pair in pairs if pair[0] not in self.layered)

    @cached_property
    def inputs(self) -> tuple[InterfaceTensor, ...]:
        """Arguments that differ from call to call."""
        return tuple(tensor for tensor in self.arguments if not tensor.is_weight)

    @cached_property
    def weights(self) -> tuple[InterfaceTensor, ...]:
        """Arguments that are the same in every call."""
        return tuple(tensor for tensor in self.arguments if tensor.is_weight)

    @cached_property
    def elements(self) -> Mapping[tuple[str, str], str]:
        """Types of structures in arrays, by parameter and access path.

        For example `LayerWeights` for `weights` and `layers[0]`."""
        return {
            (kind.lower(), path): self.types.name(struct, kind, array_name(path))
            for kind, layout in self.layouts.items()
            for path, struct in layout.elements.items()
        }

    def struct(self, suffix: str) -> str:
        """Name of a structure of the function: Inputs, Weights, ..."""
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
        names: names of its tensors.
        cpp_name: the C++ name of the function.
        constants: values of the constants in the function.
        types: structures that the functions of the module share.
        reserved: members of the constants that are not tensors.
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
    """Returns the entry functions of a TTNN module, in order."""
    # `main` is reserved for the program that links the functions.
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
    """Yields the bodies of the loops of a function, inner ones first."""
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
                # A body that several bodies call comes before all of them.
                found[name] = found.pop(name, (inside, op.trips))
                pending.append(inside)
    for inside, trips in reversed(found.values()):
        yield LoopFunction(inside, scope.unique(f"{caller}_loop"), trips)


_NAMELESS = re.compile(r"arg\d+$")


def required(functions: list[Entry]) -> list[Entry]:
    """Returns the entry functions; raises CompileError if there are none."""
    if not functions:
        raise CompileError(
            "the module has no public function",
            remedy="remove 'private' from the function that is to be called",
        )
    return functions


def arguments_of(names: FunctionNames) -> Iterator[InterfaceTensor]:
    """Yields the arguments of an entry function."""
    scope = NameScope()
    function = names.function
    mesh = declared_mesh(function)
    outside = argument_names(function)
    for argument, name, title in zip(body_of(function).args, outside, names.titles, strict=True):
        kind = argument_type(function, argument.index)
        declared = "input" if kind is ArgumentType.DEFAULT else kind.value
        field = scope.unique(identifier(plain_name(title)))
        attributes = attributes_at(function.arg_attrs, argument.index)
        divided, shape = _whole(argument, attributes, mesh)
        share = _share_text(shape, attributes.get(SHARE), mesh)
        yield InterfaceTensor(name, title, field, declared, argument, share, divided, shape)


def results_of(function: FuncOp) -> Iterator[InterfaceTensor]:
    """Yields the results of an entry function."""
    terminator = body_of(function).last_op
    assert isinstance(terminator, ReturnOp)
    scope = NameScope()
    mesh = declared_mesh(function)
    named = zip(terminator.operands, result_names(function), strict=True)
    for index, (value, name) in enumerate(named):
        attributes = attributes_at(function.res_attrs, index)
        divided, shape = _whole(value, attributes, mesh)
        share = _share_text(shape, attributes.get(SHARE), mesh, is_result=True)
        field = scope.unique(identifier(name))
        yield InterfaceTensor(name, name, field, "output", value, share, divided, shape)


def _whole(
    value: SSAValue, attributes: Mapping[str, Attribute], mesh: MeshShape
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Returns the divided dimensions of an argument or result, and the whole shape."""
    shape = shape_of(value.type)
    divided = tuple(INTEGERS.decode(attributes[DIVIDED])) if DIVIDED in attributes else ()
    counts = parts_of(shape, divided, mesh)
    return divided, tuple(size * count for size, count in zip(shape, counts, strict=True))


def _share_text(
    shape: Sequence[int], attributes: Attribute | None, mesh: MeshShape, is_result: bool = False
) -> str:
    """Describes the shard that each device takes or gives; empty if there is none."""
    share = WantedSharding.of(attributes, len(shape))
    if share is None:
        return ""
    divided = [(dim, axes) for dim, axes in enumerate(share.axes) if axes]
    if not divided:
        return "Read from the first device." if is_result else "Replicated on all devices."
    counts = [prod(mesh[axis] for axis in axes) for axes in share.axes]
    part = "x".join(str(size // count) for size, count in zip(shape, counts, strict=True))
    parts = ", ".join(
        f"dimension {dim} along "
        + (f"axis {axes[0]}" if len(axes) == 1 else "axes " + " and ".join(map(str, axes)))
        + f" of the mesh ({counts[dim]} devices)"
        for dim, axes in divided
    )
    return f"{'Concatenated from shards of' if is_result else 'Shards of'} {part}: {parts}."


def module_name(module: ModuleOp) -> str | None:
    """Symbol name of the module; None if it has none."""
    name: Attribute | None = module.sym_name
    return name.data if isinstance(name, StringAttr) else None


# Uniform signature: a second function per entry function, from a vector of tensors to a vector.
#
# Programs that load a shared library without knowledge of the model can call all of its functions
# alike.

UNIFORM_SIGNATURE = "ttcodegen.uniform_signature"
"""Marks an entry function that gets a second function with the uniform signature."""

_TENSORS = "std::vector<ttnn::Tensor>"
_PARAMETERS = [("arguments", f"const {_TENSORS}&"), (DEVICE, "ttnn::MeshDevice&")]


@dataclass(frozen=True)
class ModifySignaturesForDylib(ModulePass):
    """Adds to every public function `f` a second C++ function `call_f` of vectors.

    Raises:
        CompileError: if the module has a function of that name.
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
    """Returns whether an entry function gets a second function."""
    return UNIFORM_SIGNATURE in entry.function.attributes


def uniform_name(entry: Entry) -> str:
    """C++ name of the second function."""
    return f"call_{entry.cpp_name}"


def declare_uniform(header: EmitCBuilder, entry: Entry) -> None:
    """Declares the second function in the header of the module."""
    header.comment(
        f"{entry.cpp_name} for callers without the structs: all arguments in order, all "
        "results in order."
    )
    header.declare(uniform_name(entry), _PARAMETERS, _TENSORS)


def define_uniform(file: EmitCBuilder, entry: Entry) -> None:
    """Defines the second function, which moves the arguments into structures.

    Constants are computed in every call, because weights may change between calls."""
    body = file.function(uniform_name(entry), _PARAMETERS, _TENSORS, fixed_names=[DEVICE])
    arguments, device = body.arguments[0], Text(DEVICE)
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
    results = [member_at(body, outputs, tensor.path, TENSOR) for tensor in entry.results]
    body.return_(body.braced(_TENSORS, *results))


def _structure(
    body: EmitCBuilder,
    entry: Entry,
    suffix: str,
    tensors: Sequence[InterfaceTensor],
    arguments: SSAValue,
) -> SSAValue:
    """Returns a variable with the arguments of one structure."""
    fields: dict[str, Argument] = {}
    for tensor in tensors:
        place = Text(str(entry.arguments.index(tensor)))
        value = body.call_method(arguments, "at", place, type=TENSOR, pure=True)
        assert value is not None
        fields[tensor.path] = value
    members = nested_members(body, entry.layouts[suffix].root, fields, TENSOR)
    return body.aggregate(entry.struct(suffix), members, name=suffix.lower())


def nested_members(
    body: EmitCBuilder, struct: Struct, values: Mapping[str, Argument], tensor: str, path: str = ""
) -> dict[str, Argument]:
    """Returns the initializers of the members of a structure.

    Args:
        body: the function that initializes it.
        struct: the structure.
        values: the tensors by their access paths.
        tensor: the C++ type of a tensor.
        path: access path of the structure itself.
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
"""Type of an unnamed structure, which is not written."""
_STEP = re.compile(r"\[(\d+)\]|\w+")


def member_at(body: EmitCBuilder, value: SSAValue, path: str, type_: str) -> SSAValue:
    """Returns the member of a structure at an access path.

    Args:
        body: the function that accesses it.
        value: the structure.
        path: access path such as `layers[0].weight`; the structure itself if it is empty.
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
