"""Host functions of a module of device programs become C++ functions.

What they call to launch a program, `run_<program>`, is written from a template: see
`ttcodegen.project.device_sources`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import ReturnOp
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
from ttcodegen.conversions.device_module import (
    CONSTANT,
    CREATE_BUFFER,
    DEALLOCATE_BUFFER,
    ENQUEUE_PROGRAM,
    VIEW,
    attribute_of,
    constants_of,
    launch_of,
)
from ttcodegen.conversions.interface import Entry
from ttcodegen.conversions.naming import layer
from ttcodegen.conversions.rebuilding import body_of
from ttcodegen.diagnostics import CompileError
from ttcodegen.dialects.placement import TensorPlacement, placement_of
from ttcodegen.emitc.builder import Argument, EmitCBuilder, open_file
from ttcodegen.emitc.naming import NameScope, identifier
from ttcodegen.emitc.spelling import string_literal
from ttcodegen.emitc.text import Text
from ttcodegen.parsing.structure import operation_name

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
    name: str, entries: Sequence[Entry], input_hash: str, release: str
) -> CppProgram:
    """Writes `src/<name>.hpp` and `src/<name>.cpp` as EmitC.

    Args:
        name: the C++ name of the module; its namespace and the stem of its files.
        entries: the entry functions.
        input_hash: identifies the input in the header line of each file.
        release: the tt-metal release that the calls are written for.
    """
    module = ModuleOp([])
    title = title_of(name, input_hash, release)
    write_header(open_file(module, f"src/{name}.hpp"), name, entries, title, TTMETAL)
    source = open_file(module, f"src/{name}.cpp")
    writer = _SourceWriter(source)
    with source.namespace(name):
        source.verbatim("using tt::tt_metal::DataType;")
        source.verbatim("using tt::tt_metal::Layout;")
        source.blank()
        for entry in entries:
            writer.write(entry)
    own_headers = [f"src/{name}.hpp", "src/programs.hpp", "support/device_tensor.hpp"]
    prepend(source, title, own_headers, ["memory", *_ENUMERATIONS])
    return CppProgram(module, writer.constants)


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

    def __init__(self, file: EmitCBuilder) -> None:
        self.file = file
        self.constants: list[ConstantFile] = []
        self._constant_names = NameScope()

    def write(self, entry: Entry) -> None:
        """Defines the functions of one entry."""
        self._write_prepare(entry)
        names = parameters(entry, TTMETAL)
        result = entry.struct("Outputs") if entry.results else None
        # The cache of programs is named in pieces of C++.
        fixed = [DEVICE, "constants"]
        body = self.file.function(entry.cpp_name, names, result, fixed_names=fixed)
        structs = dict(zip([name for name, _ in names], body.arguments, strict=True))
        writer = _FunctionWriter(entry, body, structs)
        writer.write()
        self.file.blank()

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


class _FunctionWriter:
    """Writes the body of an entry function."""

    def __init__(self, entry: Entry, body: EmitCBuilder, structs: Mapping[str, SSAValue]) -> None:
        self.entry = entry
        self.body = body
        self.values: dict[SSAValue, SSAValue] = {}
        self.weight_names: dict[SSAValue, str] = {}
        self.names: dict[SSAValue, str] = _names_of_buffers(entry)
        self.programs = structs["constants"]
        self._layer: str | None = None
        for port in entry.arguments:
            struct = structs["weights" if port.is_weight else "inputs"]
            self.values[port.value] = body.member(struct, port.field, TENSOR)
            if port.is_weight:
                self.weight_names[port.value] = port.name
        constants = constants_of(entry.function)
        for op, field in zip(constants, entry.constant_fields, strict=True):
            self.values[op.results[0]] = body.member(structs["constants"], field, TENSOR)

    def write(self) -> None:
        """Writes all ops."""
        for op in body_of(self.entry.function).ops:
            self.body.origin = op
            rule = _RULES.get(operation_name(op))
            if rule is None:
                raise CompileError(f"'{operation_name(op)}' cannot run on the host", op)
            rule(self, op)

    def skip(self, op: Operation) -> None:
        """Constants are there before the function is called."""

    def create(self, op: Operation) -> None:
        """A new tensor."""
        result = op.results[0]
        self._begin_layer(_writer_of(result) or op)
        self.values[result] = self.body.call(
            "support::create_tensor",
            *placement_arguments(placement_of(result)),
            Text(DEVICE),
            type=f"const {TENSOR}",
            name=self.names.get(result),
        )

    def view(self, op: Operation) -> None:
        """Another shape for the same memory."""
        result = op.results[0]
        self.values[result] = self.body.call(
            "support::view",
            self.values[op.operands[0]],
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
            *(self.values[operand] for operand in op.operands),
            Text(DEVICE),
        )

    def deallocate(self, op: Operation) -> None:
        """The end of a tensor."""
        self.body.call_void("support::deallocate", self.values[op.operands[0]])

    def end(self, op: Operation) -> None:
        """What the function returns."""
        if not self.entry.results:
            self.body.return_()
            return
        fields = zip(self.entry.results, op.operands, strict=True)
        outputs: dict[str, Argument] = {port.field: self.values[value] for port, value in fields}
        self.body.return_(self.body.aggregate(self.entry.struct("Outputs"), outputs))

    def _begin_layer(self, op: Operation) -> None:
        found = layer(op, self.weight_names)
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


_RULES: Mapping[str, Callable[[_FunctionWriter, Operation], None]] = {
    CONSTANT: _FunctionWriter.skip,
    CREATE_BUFFER: _FunctionWriter.create,
    DEALLOCATE_BUFFER: _FunctionWriter.deallocate,
    ENQUEUE_PROGRAM: _FunctionWriter.launch,
    VIEW: _FunctionWriter.view,
    ReturnOp.name: _FunctionWriter.end,
}
"""How each op of a host function is written."""
