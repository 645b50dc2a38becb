"""Writers of `.ttnn` and `.ttm` files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import (
    ModuleOp,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from ttcodegen.dialects.operations.functions import (
    callee_of,
    is_cpu_function,
    location_text,
)
from ttcodegen.dialects.operations.operation import operation_name
from ttcodegen.dialects.ttmetal.device_module import (
    DeviceProgram,
    device_programs,
    functions_of,
    is_host_function,
    is_meaning,
    launch_of,
)
from ttcodegen.dialects.ttmetal.programs import (
    BufferAddress,
    CircularBuffer,
    Kernel,
    NocX,
    NocY,
    Place,
    Program,
    RuntimeArgument,
)
from ttcodegen.flatbuffer import program
from ttcodegen.flatbuffer import program as device
from ttcodegen.flatbuffer import program as file
from ttcodegen.flatbuffer.decoding import encode
from ttcodegen.flatbuffer.functions import (
    Constants,
    Tensors,
    callees_first,
    function_record,
    program_kinds,
)
from ttcodegen.flatbuffer.schema import load_schema
from ttcodegen.naming.modules import FunctionNames, names_of_module, own_tensor_names, tensor_names
from ttcodegen.naming.programs import host_tensor_names
from ttcodegen.version import __version__

# Makes a `.ttnn` file of a module of TTNN functions.


@dataclass(frozen=True)
class Origin:
    """Origin and target of a file."""

    input_hash: str
    """Of the text that was compiled, in hexadecimal digits."""
    arch: str
    release: str
    """The release of tt-metal, as in `X.Y.Z`."""
    system: bytes = b""
    """The .ttsys file of the system; empty for what the architecture has by default."""


def write_ttnn(
    module: ModuleOp, origin: Origin, names: Sequence[FunctionNames] | None = None
) -> bytes:
    """The file of a module whose functions hold TTNN ops with layouts assigned.

    The same module and version give the same bytes.

    Args:
        module: the TTNN functions.
        origin: what they were made from and for.
        names: what its functions call their tensors, if that is known already.

    Raises:
        CompileError: if the constants are too large, an attribute has no form in the file, or
            functions call each other in a circle.
    """
    constants = Constants()
    functions = callees_first([op for op in module.ops if isinstance(op, FuncOp)])
    kinds = program_kinds(functions)
    called = tensor_names(names_of_module(functions) if names is None else names)
    programs = tuple(
        function_record(function, kinds[function.sym_name.data], constants, called)
        for function in functions
    )
    binary = program.Binary(
        program.MAJOR,
        program.MINOR,
        __version__,
        origin.input_hash,
        origin.arch,
        origin.release,
        programs,
        tuple(constants.records),
        origin.system,
    )
    return encode(load_schema("ttnn.fbs"), binary, constants.size)


# Makes a `.ttm` file of a module of device programs.

_HOST_OPERATIONS = (
    device.CREATE_BUFFER,
    device.DEALLOCATE_BUFFER,
    device.RUN_PROGRAM,
    device.ENQUEUE_READ_BUFFER,
    device.ENQUEUE_WRITE_BUFFER,
    device.VIEW,
)


def write_ttm(
    module: ModuleOp,
    origin: Origin,
    kernels: Mapping[tuple[str, str], str],
    links: Mapping[Operation, tuple[int, int]] | None = None,
) -> bytes:
    """The file of a module of device programs. The same module and version give the same bytes.

    Args:
        module: host functions and the meanings of their programs.
        origin: what they were made from and for.
        kernels: the C++ of the kernels, by the names of their programs and their own.
        links: for each call that chips do themselves the bytes that the busiest link carries, and
            how many links it passes at most.

    Raises:
        CompileError: if the constants are too large, or an attribute has no form in the file.
    """
    hosts = [function for function in functions_of(module) if is_host_function(function)]
    programs = device_programs(hosts)
    indices = {found.program.name: index for index, found in enumerate(programs)}
    constants, sent = Constants(), links or {}

    def host_operation(op: Operation, tensors: Tensors) -> file.Operation | None:
        found = _host_operation(op, tensors, indices)
        return found if found is not None or op not in sent else _call(op, tensors, sent[op])

    # As in other files, functions follow those that they run.
    functions = [
        function_record(function, "private_", constants, own_tensor_names(function))
        for function in functions_of(module)
        if is_meaning(function) or is_cpu_function(function)
    ]
    functions += [
        function_record(function, "entry", constants, host_tensor_names(function), host_operation)
        for function in hosts
    ]
    binary = device.DeviceBinary(
        device.TTM_MAJOR,
        device.TTM_MINOR,
        __version__,
        origin.input_hash,
        origin.arch,
        origin.release,
        tuple(functions),
        tuple(_program(found, kernels) for found in programs),
        tuple(constants.records),
        origin.system,
    )
    return encode(load_schema("ttm.fbs"), binary, constants.size)


def _host_operation(
    op: Operation, tensors: Tensors, programs: Mapping[str, int]
) -> file.Operation | None:
    name = operation_name(op)
    if name not in _HOST_OPERATIONS:
        return None
    attributes: tuple[file.Attribute, ...] = ()
    if name == device.RUN_PROGRAM:
        index = programs[launch_of(op).program.name]
        attributes = (file.Attribute(device.PROGRAM, file.Integer(index)),)
    operands = tuple(tensors.index[value] for value in op.operands)
    results = tuple(tensors.add(result, result.name_hint) for result in op.results)
    return file.Operation(
        name, operands, (len(operands),), results, attributes, None, location_text(op)
    )


def _call(op: Operation, tensors: Tensors, sent: tuple[int, int]) -> file.Operation:
    """A call that chips do themselves, with what goes over their links."""
    operands = tuple(tensors.index[value] for value in op.operands)
    return file.Operation(
        operation_name(op),
        operands,
        (len(operands),),
        tuple(tensors.add(result, result.name_hint) for result in op.results),
        tuple(
            file.Attribute(name, file.Integer(number))
            for name, number in zip((device.LINK_BYTES, device.LINK_HOPS), sent, strict=True)
        ),
        callee_of(op),
        location_text(op),
    )


def _program(found: DeviceProgram, kernels: Mapping[tuple[str, str], str]) -> device.DeviceProgram:
    program = found.program
    return device.DeviceProgram(
        program.name,
        program.purpose,
        program.inputs,
        len(found.placements) - program.inputs,
        program.core_range,
        tuple(_circular_buffer(buffer, program) for buffer in program.used_buffers),
        tuple(device.Semaphore(name, program.initial_value(name)) for name in program.semaphores),
        tuple(_kernel(k, program, kernels[program.name, k.name]) for k in program.kernels),
        program.work_units,
        program.work_unit or None,
        program.compute.fidelity.cpp,
        program.compute.fp32_destination,
        program.compute.unpack_to_fp32,
        program.costs,
        found.meaning,
        tuple(device.NamedConstant(s.name, s.value) for s in program.tuning.settings),
        program.compute.approximate,
    )


def _circular_buffer(buffer: CircularBuffer, program: Program) -> device.CircularBuffer:
    return device.CircularBuffer(
        buffer.index,
        buffer.name,
        buffer.data_type.mlir,
        program.value(buffer.pages),
        buffer.page_size,
        (buffer.operand,) if buffer.is_alias else (),
    )


def _kernel(kernel: Kernel, program: Program, source: str) -> device.Kernel:
    return device.Kernel(
        kernel.name,
        kernel.processor.value,
        kernel.purpose,
        program.cores_of(kernel),
        source,
        tuple(device.NamedConstant(c.name, program.value(c.value)) for c in kernel.constants),
        tuple(program.semaphores.index(name) for name in kernel.semaphores),
        kernel.accessors,
        tuple(_argument(argument) for argument in kernel.arguments),
    )


def _argument(argument: RuntimeArgument) -> device.RuntimeArgument:
    match argument.value:
        case BufferAddress(operand) as value:
            kind, coordinates = value.mnemonic, (operand,)
        case NocX(column, row) | NocY(column, row) as value:
            kind, coordinates = value.mnemonic, (column, row)
        case value:
            kind, coordinates = "plain", (value,)
    return device.RuntimeArgument(
        argument.name, kind, tuple(_coordinate(value) for value in coordinates)
    )


def _coordinate(value: int | Place) -> device.Coordinate:
    if isinstance(value, Place):
        return device.Coordinate(value.value)
    return device.Coordinate("number", value)
