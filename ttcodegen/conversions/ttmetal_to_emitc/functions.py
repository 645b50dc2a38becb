"""Lowering of the host functions of device programs to C++ functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Operation

from ttcodegen.conversions.host_functions import layers
from ttcodegen.conversions.host_functions.cpp_interface import (
    DEVICE,
    CppProgram,
    HostTypes,
    KeptObject,
    last_use_function,
    parameters,
    prepend,
    title_of,
    write_header,
)
from ttcodegen.conversions.host_functions.cpu_functions import HEADER as CPU_HEADER
from ttcodegen.conversions.host_functions.cpu_functions import CppFunction, convert_cpu_functions
from ttcodegen.conversions.host_functions.entry_functions import write_entry_function
from ttcodegen.conversions.host_functions.function_writer import (
    Body,
    Members,
    SourceFile,
)
from ttcodegen.conversions.host_functions.interface import Entry, entry_of
from ttcodegen.conversions.host_functions.outlining import write_outlined
from ttcodegen.conversions.host_functions.preparation import (
    device_preparation,
    hold_weights,
    write_preparation,
)
from ttcodegen.conversions.host_functions.statements import Statement
from ttcodegen.conversions.mesh import called_on_cpu, chip_exchanges
from ttcodegen.conversions.ttmetal_to_emitc.recording import (
    PROGRAMS,
    TENSOR,
    DeviceRecorder,
    NumberedExchanges,
    SharedPrograms,
)
from ttcodegen.dialects.ttcore.device import ONE_CHIP, declared_mesh
from ttcodegen.dialects.ttmetal.device_module import filling_launch, functions_of, is_host_function
from ttcodegen.dialects.ttmetal.programs import (
    CREATE_BUFFER,
    DEALLOCATE_BUFFER,
    ENQUEUE_WRITE_BUFFER,
    VIEW,
)
from ttcodegen.emitc.builder import open_file
from ttcodegen.emitc.spelling import NameScope
from ttcodegen.emitc.statements import VerbatimOp
from ttcodegen.naming.arguments import entry_name, prepare_name
from ttcodegen.naming.members import StructTypes
from ttcodegen.naming.programs import names_of_host_function
from ttcodegen.naming.sources import layer
from ttcodegen.ops.device_constants import device_constants
from ttcodegen.parsing.structure import operation_name
from ttcodegen.transforms.rewriting import body_of

# The functions that launch a program, `run_<program>`, are written from a template: see
# `ttcodegen.emission.program_sources`.

MESH_DEVICE = "tt::tt_metal::distributed::MeshDevice"
_ENUMERATIONS = (
    "tt-metalium/experimental/tensor/spec/layout/layout.hpp",
    "tt-metalium/experimental/tensor/tensor_types.hpp",
)
PROGRAMS_HEADER = "src/programs.hpp"

TTMETAL = HostTypes(
    TENSOR,
    MESH_DEVICE,
    ("memory", "tt-metalium/mesh_device.hpp"),
    (PROGRAMS_HEADER, "support/device_tensor.hpp"),
    (KeptObject(PROGRAMS, "std::shared_ptr<Programs>", "std::make_shared", ("Programs",)),),
    has_prepare=True,
    # The C++ text of launches refers to the program cache by these names.
    fixed_names=(DEVICE, "constants"),
)


def convert_ttmetal_to_emitc(
    name: str,
    entries: Sequence[Entry],
    input_hash: str,
    release: str,
    programs: SharedPrograms,
    cpu_functions: Sequence[FuncOp] = (),
) -> CppProgram:
    """Writes `src/<name>.hpp` and `src/<name>.cpp` as EmitC, and functions for the CPU.

    Args:
        name: the C++ name of the module; its namespace and the stem of its files.
        entries: the entry functions.
        input_hash: identifies the input in the header line of each file.
        release: the tt-metal release that the calls are written for.
        programs: the programs that the functions run.
        cpu_functions: functions of TTIR ops that run on the CPU.
    """
    module = ModuleOp([])
    hosts = [entry.function for entry in entries]
    found = chip_exchanges(hosts, cpu_functions)
    exchanges: NumberedExchanges = {each.call: (n, each) for n, each in enumerate(found)}
    cpu_functions = called_on_cpu(hosts, cpu_functions, found)
    title = title_of(name, input_hash, release)
    header = open_file(module, f"src/{name}.hpp")
    cpu = convert_cpu_functions(module, name, cpu_functions, title)
    source = SourceFile(open_file(module, f"src/{name}.cpp"), types=TTMETAL)
    source.function_names.reserve(*(function.name for function in cpu.by_symbol.values()))
    with source.file.namespace(name):
        source.file.verbatim("using tt::tt_metal::DataType;")
        source.file.verbatim("using tt::tt_metal::Layout;")
        source.file.blank()
        opening = source.file.block.last_op
        assert opening is not None
        known = [_write_entry(source, e, programs, cpu.by_symbol, exchanges) for e in entries]
    write_header(header, name, known, title, TTMETAL)
    if source.uses_last_use:
        text = last_use_function("auto" if cpu_functions else TENSOR)
        source.file.block.insert_ops_after([VerbatimOp(text), VerbatimOp("")], opening)
    own_headers = [f"src/{name}.hpp", "src/programs.hpp", "support/device_tensor.hpp"]
    headers = cpu.headers
    if cpu_functions:
        on_mesh = any(declared_mesh(function) != ONE_CHIP for function in cpu_functions)
        transfer = "mesh_transfer" if on_mesh else "transfer"
        own_headers += [CPU_HEADER, f"support/cpu/{transfer}.hpp"]
        headers |= {transfer}
    prepend(source.file, title, own_headers, ["memory", *_ENUMERATIONS])
    return CppProgram(module, source.facts.constants, headers, len(exchanges))


def _write_entry(
    source: SourceFile,
    entry: Entry,
    programs: SharedPrograms,
    cpu_functions: Mapping[str, CppFunction],
    exchanges: NumberedExchanges,
) -> Entry:
    """Defines the functions of one entry; returns the entry with its per-layer weight arrays."""
    source.function_names.reserve(entry.cpp_name, prepare_name(entry.cpp_name))
    once = device_constants(entry.function).ops
    done = set(once)
    ops = [op for op in body_of(entry.function).ops if op not in done]
    terminator = ops.pop()
    members = _DeviceMembers.of(entry)
    assert isinstance(terminator, ReturnOp)
    preparing, recorder = [
        DeviceRecorder(source.facts, entry.names.values, programs, cpu_functions, exchanges)
        for _ in range(2)
    ]
    preparing.record(_with_statements(once))
    statements = recorder.record(_with_statements(ops))
    body = Body(entry, members, recorder)
    known = layers.Body(
        recorder.names,
        {value: members.names[value] for value in members.places},
        {tensor.value for tensor in entry.inputs},
        members.layers,
        body.lines_of,
        terminator.operands,
        source.function_names,
        recorder.type_of,
        parameters(entry, TTMETAL)[-2:],
        places=members.places,
        elements=entry.elements,
        function=entry.cpp_name,
        is_type=entry.types.is_taken,
    )
    statements, functions = layers.outline_layers(statements, known)
    entry, statements = hold_weights(
        entry, statements, functions, members.places, terminator.operands
    )
    write_preparation(source, entry, device_preparation(entry, preparing))
    for function in functions:
        write_outlined(source, function, recorder)
    write_entry_function(source, replace(body, entry=entry), statements, terminator.operands)
    return entry


def _with_statements(ops: Iterable[Operation]) -> list[Operation]:
    """Drops deallocations, which have no C++ statement."""
    return [op for op in ops if operation_name(op) != DEALLOCATE_BUFFER]


class _DeviceMembers(Members):
    """Assigns a new buffer to the layer of the launch that fills it."""

    def layer_of(self, statement: Statement) -> str | None:
        op = statement.op
        filled = filling_launch(op.results[0]) if operation_name(op) == CREATE_BUFFER else None
        return layer(filled or op, self.weight_names)

    def comment_of(self, statement: Statement) -> str | None:
        return None if _moves_only(statement.op) else self.layer_of(statement)


def _moves_only(op: Operation) -> bool:
    return operation_name(op) in (ENQUEUE_WRITE_BUFFER, VIEW)


# Interface of a module of device programs: its entry functions.


def device_entries(module: ModuleOp) -> list[Entry]:
    """Returns the entry functions of a module of device programs.

    Their constants are the values that depend on weights and module constants alone."""
    # `main` is reserved for the program that links the functions.
    scope = NameScope(["main"])
    types = StructTypes()
    entries: list[Entry] = []
    for function in functions_of(module):
        if not is_host_function(function):
            continue
        names = names_of_host_function(function)
        name = scope.unique(entry_name(function.sym_name.data))
        # The programs are a member of the same structure.
        held = device_constants(function).values
        entries.append(entry_of(names, name, held, types, ["programs"]))
    return entries
