"""Host functions of a module of device programs become C++ functions.

What they call to launch a program, `run_<program>`, is written from a template: see
`ttcodegen.emission.program_sources`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Operation, SSAValue

from ttcodegen.conversions.cpp_interface import (
    DEVICE,
    ConstantFile,
    CppProgram,
    HostTypes,
    parameters,
    prepare_parameters,
    prepend,
    title_of,
    write_header,
)
from ttcodegen.conversions.cpu_functions_to_emitc import HEADER as CPU_HEADER
from ttcodegen.conversions.cpu_functions_to_emitc import (
    HOST_TENSOR,
    CppFunction,
    convert_cpu_functions,
)
from ttcodegen.conversions.interface import Entry
from ttcodegen.conversions.naming import layer
from ttcodegen.conversions.splitting import Part, layers_of, split
from ttcodegen.diagnostics import CompileError
from ttcodegen.dialects.device_module import (
    CONSTANT,
    CREATE_BUFFER,
    DEALLOCATE_BUFFER,
    ENQUEUE_PROGRAM,
    ENQUEUE_READ_BUFFER,
    ENQUEUE_WRITE_BUFFER,
    VIEW,
    attribute_of,
    constants_of,
    launch_of,
)
from ttcodegen.dialects.functions import callee_of
from ttcodegen.dialects.placement import TensorPlacement, TTNNLayoutAttr, placement_of
from ttcodegen.emitc.builder import Argument, EmitCBuilder, open_file
from ttcodegen.emitc.naming import NameScope, identifier
from ttcodegen.emitc.spelling import string_literal
from ttcodegen.emitc.text import Text
from ttcodegen.parsing.structure import operation_name
from ttcodegen.transforms.rebuilding import body_of

TENSOR = "support::DeviceTensor"
MESH_DEVICE = "tt::tt_metal::distributed::MeshDevice"
_ENUMERATIONS = (
    "tt-metalium/experimental/tensor/spec/layout/layout.hpp",
    "tt-metalium/experimental/tensor/tensor_types.hpp",
)
PROGRAMS = "programs"
PROGRAMS_HEADER = "src/programs.hpp"

TTMETAL = HostTypes(
    TENSOR,
    MESH_DEVICE,
    ("memory", "tt-metalium/mesh_device.hpp"),
    (PROGRAMS_HEADER, "support/device_tensor.hpp"),
    ((PROGRAMS, "std::shared_ptr<Programs>"),),
    has_prepare=True,
)


def convert_ttmetal_to_emitc(
    name: str,
    entries: Sequence[Entry],
    input_hash: str,
    release: str,
    cpu_functions: Sequence[FuncOp] = (),
) -> CppProgram:
    """Writes `src/<name>.hpp` and `src/<name>.cpp` as EmitC, and functions for the CPU.

    Args:
        name: the C++ name of the module; its namespace and the stem of its files.
        entries: the entry functions.
        input_hash: identifies the input in the header line of each file.
        release: the tt-metal release that the calls are written for.
        cpu_functions: functions of TTIR ops that run on the CPU.
    """
    module = ModuleOp([])
    title = title_of(name, input_hash, release)
    write_header(open_file(module, f"src/{name}.hpp"), name, entries, title, TTMETAL)
    cpu = convert_cpu_functions(module, name, cpu_functions, title)
    source = open_file(module, f"src/{name}.cpp")
    writer = _SourceWriter(source, cpu.by_symbol)
    with source.namespace(name):
        source.verbatim("using tt::tt_metal::DataType;")
        source.verbatim("using tt::tt_metal::Layout;")
        source.blank()
        for entry in entries:
            writer.write(entry)
    own_headers = [f"src/{name}.hpp", "src/programs.hpp", "support/device_tensor.hpp"]
    if cpu_functions:
        own_headers += [CPU_HEADER, "support/cpu/transfer.hpp"]
    prepend(source, title, own_headers, ["memory", *_ENUMERATIONS])
    return CppProgram(module, writer.constants, cpu.headers)


def placement_arguments(placement: TensorPlacement) -> list[Argument]:
    """Shape, data type and layout as the support functions take them."""
    sizes = ", ".join(str(size) for size in placement.shape)
    return [
        Text(f"{{{sizes}}}"),
        Text(f"DataType::{placement.data_type.cpp}"),
        Text(f"Layout::{placement.layout.name}"),
    ]


class _SourceWriter:
    """Writes the definitions of the source file."""

    def __init__(self, file: EmitCBuilder, cpu_functions: Mapping[str, CppFunction]) -> None:
        self.file = file
        self.cpu_functions = cpu_functions
        self.constants: list[ConstantFile] = []
        self._constant_names = NameScope()
        self._function_names = NameScope([cpp.name for cpp in cpu_functions.values()])

    def write(self, entry: Entry) -> None:
        """Defines the functions of one entry."""
        self._function_names.reserve(entry.cpp_name, f"prepare_{entry.cpp_name}")
        self._write_prepare(entry)
        *ops, terminator = (
            op for op in body_of(entry.function).ops if operation_name(op) != CONSTANT
        )
        members = _Members(entry)
        launches = [_Statement(op) for op in ops]
        parts = split(launches, lambda: layers_of(ops, members.layer_of), terminator.operands)
        names = [self._part_name(entry, part) for part in parts] if len(parts) > 1 else []
        for part, name in zip(parts, names, strict=False):
            self._write_part(entry, part, name, members)
        result = entry.struct("Outputs") if entry.results else None
        writer = self._open(entry, entry.cpp_name, [], result, members)
        if names:
            for part, name in zip(parts, names, strict=True):
                writer.call_part(part, name)
        else:
            writer.write(ops)
        writer.end(terminator)
        self.file.blank()

    def _part_name(self, entry: Entry, part: Part[_Statement]) -> str:
        return self._function_names.unique(identifier(f"{entry.cpp_name}_{part.title or 'part'}"))

    def _write_part(
        self, entry: Entry, part: Part[_Statement], name: str, members: _Members
    ) -> None:
        self.file.comment(part.title or f"A part of {entry.cpp_name}.")
        taken = [(members.name_of(v), f"const {_type_of(v)}&") for v in part.live_in]
        result = _result_type(part)
        writer = self._open(entry, name, taken, result, members, ["static"])
        start = len(writer.body.arguments) - len(taken)
        writer.values.update(zip(part.live_in, writer.body.arguments[start:], strict=True))
        writer.write([statement.op for statement in part.statements])
        results = [writer[value] for value in part.live_out]
        if len(results) == 1:
            writer.body.return_(results[0])
        elif results:
            writer.body.return_(writer.body.braced(result or "", *results))
        else:
            writer.body.return_()
        self.file.blank()

    def _open(
        self,
        entry: Entry,
        name: str,
        taken: Sequence[tuple[str, str]],
        result: str | None,
        members: _Members,
        specifiers: Sequence[str] = (),
    ) -> _FunctionWriter:
        """Begins a function that has the structures of the entry, and more parameters."""
        structs = parameters(entry, TTMETAL)
        body = self.file.function(
            name,
            [*structs, *taken],
            result,
            specifiers=specifiers,
            # The cache of programs is named in pieces of C++.
            fixed_names=[DEVICE, "constants"],
        )
        known = dict(zip([name for name, _ in structs], body.arguments, strict=False))
        return _FunctionWriter(entry, body, members, known, self.cpu_functions)

    def _write_prepare(self, entry: Entry) -> None:
        struct = entry.struct("Constants")
        body = self.file.function(
            f"prepare_{entry.cpp_name}",
            prepare_parameters(entry, TTMETAL),
            struct,
            fixed_names=[DEVICE],
        )
        fields: dict[str, Argument] = {}
        ops = constants_of(entry.function)
        for op, field in zip(ops, entry.constant_fields, strict=True):
            file = self._constant_names.unique(identifier(field))
            placement = placement_of(op.results[0])
            value = attribute_of(op, "value")
            assert value is not None
            self.constants.append(ConstantFile(file, value, placement.data_type))
            fields[field] = body.call(
                "support::load_tensor",
                Text(string_literal(file)),
                *placement_arguments(placement),
                Text(DEVICE),
                type=TENSOR,
                pure=True,
            )
        made = body.call(
            "std::make_shared",
            type="std::shared_ptr<Programs>",
            template_args=("Programs",),
            pure=True,
        )
        body.return_(body.aggregate(struct, {**fields, PROGRAMS: made}))
        self.file.blank()


class _Members:
    """What all functions of an entry know of its values."""

    def __init__(self, entry: Entry) -> None:
        self.places: dict[SSAValue, tuple[str, str]] = {}
        """The structure and the field of arguments and constants."""
        self._weights = {
            tensor.value: tensor.name for tensor in entry.arguments if tensor.is_weight
        }
        self._names = _names_of_buffers(entry)
        for tensor in entry.arguments:
            self.places[tensor.value] = ("weights" if tensor.is_weight else "inputs", tensor.field)
        constants = constants_of(entry.function)
        for op, field in zip(constants, entry.constant_fields, strict=True):
            self.places[op.results[0]] = ("constants", field)

    def name_of(self, value: SSAValue) -> str:
        """What a tensor is called."""
        return self._names.get(value) or value.name_hint or "tensor"

    def layer_of(self, op: Operation) -> str | None:
        """The layer that an op belongs to; a new tensor to that of what fills it."""
        filled = _writer_of(op.results[0]) if operation_name(op) == CREATE_BUFFER else None
        return layer(filled or op, self._weights)


@dataclass(frozen=True)
class _Statement:
    """An op of a host function."""

    op: Operation

    @property
    def uses(self) -> Sequence[SSAValue]:
        return self.op.operands

    @property
    def results(self) -> Sequence[SSAValue]:
        return self.op.results


class _FunctionWriter:
    """Writes the body of a function."""

    def __init__(
        self,
        entry: Entry,
        body: EmitCBuilder,
        members: _Members,
        structs: Mapping[str, SSAValue],
        cpu_functions: Mapping[str, CppFunction],
    ) -> None:
        self.entry = entry
        self.body = body
        self.members = members
        self.structs = structs
        self.cpu_functions = cpu_functions
        self.values: dict[SSAValue, SSAValue] = {}
        self._layer: str | None = None

    def __getitem__(self, value: SSAValue) -> SSAValue:
        place = self.members.places.get(value)
        if place is not None:
            struct, field = place
            return self.body.member(self.structs[struct], field, TENSOR)
        return self.values[value]

    def write(self, ops: Sequence[Operation]) -> None:
        """Writes ops in order."""
        for op in ops:
            self.body.origin = op
            rule = _RULES.get(operation_name(op))
            if rule is None:
                raise CompileError(f"'{operation_name(op)}' cannot run on the host", op)
            rule(self, op)

    def call_part(self, part: Part[_Statement], name: str) -> None:
        """Calls a function that holds a part of the body."""
        structs = parameters(self.entry, TTMETAL)
        arguments = [*self.body.arguments[: len(structs)], *(self[v] for v in part.live_in)]
        names = [self.members.name_of(value) for value in part.live_out]
        if len(names) == 1:
            type_ = f"const {_type_of(part.live_out[0])}"
            called = self.body.call(name, *arguments, type=type_, name=names[0])
            self.values[part.live_out[0]] = called
        elif names:
            types = [_type_of(value) for value in part.live_out]
            results = self.body.call_several(name, *arguments, types=types, names=names)
            self.values.update(zip(part.live_out, results, strict=True))
        else:
            self.body.call_void(name, *arguments)

    def create(self, op: Operation) -> None:
        """A new tensor."""
        result = op.results[0]
        self._begin_layer(op)
        self.values[result] = self.body.call(
            "support::create_tensor",
            *placement_arguments(placement_of(result)),
            Text(DEVICE),
            type=f"const {TENSOR}",
            name=self.members.name_of(result),
        )

    def view(self, op: Operation) -> None:
        """Another shape for the same memory."""
        result = op.results[0]
        self.values[result] = self.body.call(
            "support::view",
            self[op.operands[0]],
            placement_arguments(placement_of(result))[0],
            type=f"const {TENSOR}",
            name=result.name_hint or "view",
        )

    def launch(self, op: Operation) -> None:
        """A run of a program."""
        self._begin_layer(op)
        launch = launch_of(op)
        self.body.call_void(
            f"run_{identifier(launch.program.name)}",
            self.body.literal(f"*constants.{PROGRAMS}", "Programs"),
            *(self[operand] for operand in op.operands),
            Text(DEVICE),
        )

    def read(self, op: Operation) -> None:
        """A copy of a tensor on the host."""
        self._begin_layer(op)
        result = op.results[0]
        is_overwritten = any(
            isinstance(use.operation, CallOp)
            and use.index in self._cpu_function(use.operation).overwritten
            for use in result.uses
        )
        self.values[result] = self.body.call(
            "support::cpu::from_device",
            self[op.operands[0]],
            type=HOST_TENSOR if is_overwritten else f"const {HOST_TENSOR}",
            name=self.members.name_of(result),
        )

    def write_back(self, op: Operation) -> None:
        """A tensor of the host, brought to the device."""
        self.body.call_void("support::cpu::to_device", *(self[v] for v in op.operands))

    def call(self, op: Operation) -> None:
        """A function on the CPU."""
        self._begin_layer(op)
        name = self._cpu_function(op).name
        arguments = [self[operand] for operand in op.operands]
        names = [self.members.name_of(result) for result in op.results]
        if not op.results:
            self.body.call_void(name, *arguments)
        elif len(op.results) == 1:
            type_ = f"const {HOST_TENSOR}"
            self.values[op.results[0]] = self.body.call(name, *arguments, type=type_, name=names[0])
        else:
            types = [HOST_TENSOR] * len(names)
            found = self.body.call_several(name, *arguments, types=types, names=names)
            self.values.update(zip(op.results, found, strict=True))

    def _cpu_function(self, op: Operation) -> CppFunction:
        function = self.cpu_functions.get(callee_of(op) or "")
        if function is None:
            raise CompileError("the host calls a function that is not one for the CPU", op)
        return function

    def deallocate(self, op: Operation) -> None:
        """The end of a tensor."""
        self.body.call_void("support::deallocate", self[op.operands[0]])

    def end(self, op: Operation) -> None:
        """What the function returns."""
        if not self.entry.results:
            self.body.return_()
            return
        fields = zip(self.entry.results, op.operands, strict=True)
        outputs: dict[str, Argument] = {tensor.field: self[value] for tensor, value in fields}
        self.body.return_(self.body.aggregate(self.entry.struct("Outputs"), outputs))

    def _begin_layer(self, op: Operation) -> None:
        found = self.members.layer_of(op)
        if found is not None and found != self._layer:
            if self._layer is not None:
                self.body.blank()
            self.body.comment(found)
            self._layer = found


def _writer_of(value: SSAValue) -> Operation | None:
    """The op that fills a new tensor."""
    for use in value.uses:
        if operation_name(use.operation) == ENQUEUE_PROGRAM:
            if use.index >= launch_of(use.operation).program.inputs:
                return use.operation
    return None


def _names_of_buffers(entry: Entry) -> dict[SSAValue, str]:
    """What new tensors are called: as the lowering named them, else after what computes them."""
    names: dict[SSAValue, str] = {}
    for op in body_of(entry.function).ops:
        if operation_name(op) != ENQUEUE_PROGRAM:
            continue
        launch = launch_of(op)
        for value in launch.outputs:
            names.setdefault(value, value.name_hint or launch.program.name)
    return names


def _type_of(value: SSAValue) -> str:
    """The C++ type of a value: a tensor of the device has a layout."""
    on_device = isinstance(getattr(value.type, "encoding", None), TTNNLayoutAttr)
    return TENSOR if on_device else HOST_TENSOR


def _result_type(part: Part[Any]) -> str | None:
    """The C++ type of what a part of a function returns."""
    types = [_type_of(value) for value in part.live_out]
    if len(set(types)) > 1:
        return f"std::tuple<{', '.join(types)}>"
    return part.result_type(types[0] if types else TENSOR)


_RULES: Mapping[str, Callable[[_FunctionWriter, Operation], None]] = {
    CREATE_BUFFER: _FunctionWriter.create,
    DEALLOCATE_BUFFER: _FunctionWriter.deallocate,
    ENQUEUE_PROGRAM: _FunctionWriter.launch,
    ENQUEUE_READ_BUFFER: _FunctionWriter.read,
    ENQUEUE_WRITE_BUFFER: _FunctionWriter.write_back,
    CallOp.name: _FunctionWriter.call,
    VIEW: _FunctionWriter.view,
}
"""How each op of a host function is written."""
