"""Writers of `.ttnn` and `.ttm` files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    DictionaryAttr,
    FunctionType,
    ModuleOp,
    NameLoc,
    StringAttr,
    TensorType,
    UnitAttr,
    UnknownLoc,
    i32,
)
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ttcodegen.dialects.core.datatypes import element_type_of, elements
from ttcodegen.dialects.operations.functions import (
    CONST_EVAL,
    SOURCE_TYPES,
    callee_of,
    is_cpu_function,
    location_text,
)
from ttcodegen.dialects.operations.operation import operation_name
from ttcodegen.dialects.operations.verification import verify_module
from ttcodegen.dialects.ttcore.dialect import (
    ArgumentType,
    ArgumentTypeAttr,
    LoadCachedOp,
    set_system,
    system_of,
)
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
from ttcodegen.dialects.ttnn.placement import TensorPlacement, placed_type
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
from ttcodegen.flatbuffer.system import read_ttsys, write_ttsys
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.naming.modules import FunctionNames, names_of_module, own_tensor_names, tensor_names
from ttcodegen.naming.programs import host_tensor_names
from ttcodegen.ops.dialects import TTNNOp, ttnn_op_classes
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


# Makes the TTNN module that a `.ttnn` file was written from.

_ORIGIN = "ttcodegen.origin"
"""The attribute of a module with what the file says of its origin."""


def module_of(binary: file.Binary) -> ModuleOp:
    """The functions of a file, with layouts, names and locations. Written again, they give the same
    file but for golden values, which a module has no place for.

    Raises:
        CompileError: if the file calls ops or has attributes that this version does not know, or
            contradicts itself.
    """
    constants = [_constant(constant) for constant in binary.constants]
    placements: dict[TensorPlacement, Attribute] = {}
    module = ModuleOp(
        [_function(program, binary, constants, placements) for program in binary.programs]
    )
    origin = {"arch": binary.arch, "release": binary.release, "input_hash": binary.input_hash}
    module.attributes[_ORIGIN] = DictionaryAttr({k: StringAttr(v) for k, v in origin.items()})
    if binary.system:
        set_system(module, read_ttsys(binary.system))
    verify_module(module)
    return module


def origin_of(module: ModuleOp, default: Origin) -> Origin:
    """Origin and system of a module that was read from a file; the rest is taken from `default`."""
    system = system_of(module)
    if system is not None:
        default = replace(default, arch=system.arch, system=write_ttsys(system))
    attribute = module.attributes.get(_ORIGIN)
    if not isinstance(attribute, DictionaryAttr):
        return default
    texts = {k: v.data for k, v in attribute.data.items() if isinstance(v, StringAttr)}
    return replace(
        default,
        input_hash=texts.get("input_hash", default.input_hash),
        arch=default.arch if system is not None else texts.get("arch", default.arch),
        release=texts.get("release", default.release),
    )


def _constant(constant: file.Constant) -> Attribute:
    element_type = element_type_of(constant.element_type)
    return elements(element_type, constant.shape, bytes(constant.elements))


def _function(
    program: file.Program,
    binary: file.Binary,
    constants: Sequence[Attribute],
    types: dict[TensorPlacement, Attribute],
) -> FuncOp:
    def type_of(tensor: int) -> Attribute:
        placement = program.tensors[tensor].type.placement
        found = types.get(placement)
        if found is None:
            found = types[placement] = placed_type(placement)
        return found

    block = Block(arg_types=[type_of(entry.tensor) for entry in program.inputs])
    values: dict[int, SSAValue] = {}
    for entry, argument in zip(program.inputs, block.args, strict=True):
        _name(argument, program, entry.tensor)
        values[entry.tensor] = argument
    for operation in program.operations:
        results = [type_of(tensor) for tensor in operation.results]
        operands = [values[tensor] for tensor in operation.operands]
        op = _operation(operation, operands, results, binary, constants)
        if operation.location is not None:
            op.location = NameLoc(StringAttr(operation.location), UnknownLoc())
        for tensor, result in zip(operation.results, op.results, strict=True):
            _name(result, program, tensor)
            values[tensor] = result
        block.add_op(op)
    returned = [values[entry.tensor] for entry in program.outputs]
    block.add_op(ReturnOp(*returned))
    function = FuncOp(
        program.name,
        FunctionType.from_lists([a.type for a in block.args], [v.type for v in returned]),
        Region(block),
        None if program.kind == "entry" else "private",
        arg_attrs=ArrayAttr([_argument_attributes(entry, program) for entry in program.inputs]),
        res_attrs=ArrayAttr(
            [DictionaryAttr({"ttir.name": StringAttr(entry.name)}) for entry in program.outputs]
        ),
    )
    if program.kind == "const_eval":
        function.attributes[CONST_EVAL] = UnitAttr()
    if (source := _source_type(program)) is not None:
        function.attributes[SOURCE_TYPES] = source
    return function


def _name(value: SSAValue, program: file.Program, tensor: int) -> None:
    name = program.tensors[tensor].source_name
    if name is not None and SSAValue.is_valid_name(name):
        value.name_hint = name


def _argument_attributes(entry: file.Input, program: file.Program) -> DictionaryAttr:
    attributes: dict[str, Attribute] = {"ttir.name": StringAttr(entry.name)}
    if program.kind == "entry":
        attributes["ttcore.argument_type"] = ArgumentTypeAttr(ArgumentType(entry.kind))
    return DictionaryAttr(attributes)


def _source_type(program: file.Program) -> FunctionType | None:
    """The type that the function had in the source, None if the file does not say."""

    def types(entries: Sequence[file.Input | file.Output]) -> list[Attribute | None]:
        return [
            TensorType(
                element_type_of(entry.element_type), program.tensors[entry.tensor].type.shape
            )
            if entry.element_type is not None
            else None
            for entry in entries
        ]

    inputs, outputs = types(program.inputs), types(program.outputs)
    if program.kind != "entry" or None in inputs or None in outputs:
        return None
    return FunctionType.from_lists(
        [type_ for type_ in inputs if type_ is not None],
        [type_ for type_ in outputs if type_ is not None],
    )


def _operation(
    operation: file.Operation,
    operands: Sequence[SSAValue],
    results: Sequence[Attribute],
    binary: file.Binary,
    constants: Sequence[Attribute],
) -> Operation:
    if operation.callee is not None:
        if operation.name == LoadCachedOp.name:
            return LoadCachedOp(operation.callee, operands, results)
        if operation.name == CallOp.name:
            return CallOp(operation.callee, list(operands), list(results))
    dialect, _, name = operation.name.partition(".")
    op_class = ttnn_op_classes().get(name) if dialect == "ttnn" else None
    if op_class is None or len(operation.operand_sizes) != len(op_class.definition.operands):
        raise CompileError(
            f"the file calls '{operation.name}' in a way that this version does not know",
            remedy="compile the model again with this version of ttcodegen",
        )
    return op_class.create(
        operands=list(operands),
        result_types=list(results),
        properties=_properties(operation, op_class, constants),
    )


def _properties(
    operation: file.Operation, op_class: type[TTNNOp], constants: Sequence[Attribute]
) -> dict[str, Attribute]:
    definition = op_class.definition
    specs = {spec.name: spec for spec in definition.attributes}
    properties: dict[str, Attribute] = {}
    for attribute in operation.attributes:
        spec = specs.get(attribute.name)
        if spec is None:
            raise CompileError(f"a '{operation.name}' of the file has no '{attribute.name}' here")
        value = file.plain_value(attribute.value, constants)
        if value is None or value == spec.default:
            continue
        try:
            properties[spec.name] = spec.kind.encode(value)
        except (TypeError, ValueError, AttributeError, OverflowError) as error:
            raise CompileError(
                f"the attribute '{spec.name}' of a '{operation.name}' of the file should be "
                f"{spec.kind.expected}"
            ) from error
    if definition.needs_segments:
        properties["operandSegmentSizes"] = DenseArrayBase.from_list(i32, operation.operand_sizes)
    return properties
