"""Writers of `.ttnn` and `.ttm` files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    FunctionType,
    ModuleOp,
    TensorType,
)
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute as MLIRAttribute
from xdsl.ir import Block, Operation, SSAValue

from ttcodegen.dialects.core.datatypes import DataType, element_of, numpy_name, shape_of
from ttcodegen.dialects.operations.compute_config import ComputeConfig
from ttcodegen.dialects.operations.functions import (
    SOURCE_TYPES,
    argument_type,
    callee_of,
    is_cpu_function,
    is_loop_body,
    location_text,
)
from ttcodegen.dialects.operations.operation import CatalogueOp, operation_name
from ttcodegen.dialects.ttcore.dialect import ArgumentType
from ttcodegen.dialects.ttcore.loops import WhileLoopOp
from ttcodegen.dialects.ttmetal.device_module import (
    DeviceProgram,
    device_programs,
    functions_of,
    is_host_function,
    is_meaning,
    launch_of,
)
from ttcodegen.dialects.ttmetal.programs import (
    CREATE_BUFFER,
    DEALLOCATE_BUFFER,
    ENQUEUE_READ_BUFFER,
    ENQUEUE_WRITE_BUFFER,
    RUN_PROGRAM,
    VIEW,
    BufferAddress,
    CircularBuffer,
    Kernel,
    NocX,
    NocY,
    Place,
    Program,
    RuntimeArgument,
)
from ttcodegen.dialects.ttnn.placement import (
    TensorPlacement,
    TTNNLayoutAttr,
    declared_data_type,
    placement_of,
)
from ttcodegen.dialects.ttnn.program_configs import PROGRAM_CONFIGS, ProgramConfig
from ttcodegen.flatbuffer import program as file
from ttcodegen.flatbuffer.decoding import encode
from ttcodegen.flatbuffer.schema import load_schema
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.naming.arguments import argument_names, result_names
from ttcodegen.naming.modules import FunctionNames, names_of_module, own_tensor_names, tensor_names
from ttcodegen.naming.programs import host_tensor_names
from ttcodegen.version import __version__

Elements = DenseIntOrFPElementsAttr[Any]

_INT64 = range(-(2**63), 2**63)
_INPUT_KINDS = {ArgumentType.PARAMETER: "parameter", ArgumentType.CONSTANT: "constant"}

HostOperation = Callable[[Operation, "Tensors"], "file.Operation | None"]
"""Returns the record of an op outside the catalogue, None if it does not handle the op."""


def callees_first(functions: list[FuncOp]) -> list[FuncOp]:
    """Orders functions so that each follows those that it calls."""
    by_name = {function.sym_name.data: function for function in functions}
    ordered: dict[str, FuncOp] = {}

    def visit(name: str, callers: tuple[str, ...]) -> None:
        function = by_name.get(name)
        if name in ordered or function is None:
            return
        if name in callers:
            raise CompileError(f"function '{name}' calls itself", function)
        for op in _body(function).ops:
            if (callee := callee_of(op)) is not None:
                visit(callee, (*callers, name))
        ordered[name] = function

    for name in by_name:
        visit(name, ())
    return list(ordered.values())


def program_kinds(functions: list[FuncOp]) -> dict[str, str]:
    """Returns the program kind of each function, by symbol."""
    called = {
        callee: op.name
        for function in functions
        for op in _body(function).ops
        if (callee := callee_of(op)) is not None
    }
    kinds: dict[str, str] = {}
    for function in functions:
        name = function.sym_name.data
        if called.get(name) == "ttcore.load_cached":
            kinds[name] = "const_eval"
        elif function.sym_visibility is not None and function.sym_visibility.data == "private":
            kinds[name] = "private_"
        else:
            kinds[name] = "entry"
    return kinds


def _body(function: FuncOp) -> Block:
    block = function.body.blocks.first
    if block is None:
        raise CompileError(f"function '{function.sym_name.data}' has no body", function)
    return block


def function_record(
    function: FuncOp,
    kind: str,
    constants: Constants,
    names: Mapping[SSAValue, str],
    host_operation: HostOperation | None = None,
) -> file.Program:
    """Returns the record of a function.

    Args:
        function: Function of TTNN ops, or ops that `host_operation` handles.
        kind: Program kind in the file.
        constants: Collects the function's constants.
        names: Names of its tensors.
        host_operation: Returns the records of other ops.

    Raises:
        CompileError: if an op or attribute has no form in the file.
    """
    block = _body(function)
    tensors = Tensors(names)
    input_types, output_types = _source_types(function)
    inputs = tuple(
        file.Input(
            tensors.add(argument, name),
            _INPUT_KINDS.get(argument_type(function, argument.index), "input"),
            name,
            element_type,
        )
        for argument, name, element_type in zip(
            block.args, argument_names(function), input_types, strict=True
        )
    )
    operations: list[file.Operation] = []
    outputs: tuple[file.Output, ...] = ()
    for op in block.ops:
        if isinstance(op, ReturnOp):
            outputs = tuple(
                file.Output(tensors.index[value], name, element_type)
                for value, name, element_type in zip(
                    op.operands, result_names(function), output_types, strict=True
                )
            )
        else:
            record = host_operation(op, tensors) if host_operation is not None else None
            operations.append(record or _operation(op, tensors, constants))
    return file.Program(
        function.sym_name.data,
        kind,
        tuple(tensors.records),
        inputs,
        outputs,
        tuple(operations),
    )


def _source_types(function: FuncOp) -> tuple[list[str | None], list[str | None]]:
    """Returns the element types of arguments and results in the source, None if unknown.

    Raises:
        CompileError: if the attribute does not match the types of this function.
    """
    own = function.function_type
    # Loop bodies have no interface to the source.
    source = None if is_loop_body(function) else function.attributes.get(SOURCE_TYPES)
    if source is None:
        return [None] * len(own.inputs), [None] * len(own.outputs)
    names: list[list[str | None]] = []
    for attribute, types in ("inputs", own.inputs.data), ("outputs", own.outputs.data):
        said = getattr(source, attribute).data if isinstance(source, FunctionType) else ()
        are_alike = len(said) == len(types) and all(isinstance(each, TensorType) for each in said)
        if not are_alike:
            raise CompileError(
                f"'{SOURCE_TYPES}' of function @{function.sym_name.data} should be a function type "
                f"with {len(types)} tensors as {attribute}, found {source}",
                function,
            )
        names.append([numpy_name(element_of(each)) for each in said])
    inputs, outputs = names
    return inputs, outputs


@dataclass
class Tensors:
    """Tensors of one function."""

    names: Mapping[SSAValue, str]
    records: list[file.Tensor] = field(default_factory=list[file.Tensor])
    index: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])
    _types: dict[MLIRAttribute, file.TensorType] = field(
        default_factory=dict[MLIRAttribute, file.TensorType]
    )

    def add(self, value: SSAValue, source_name: str | None) -> int:
        """Adds a tensor and returns its index."""
        type_ = self._types.get(value.type)
        if type_ is None:
            type_ = self._types[value.type] = _tensor_type(value)
        number = self.index[value] = len(self.records)
        self.records.append(file.Tensor(type_, self.names.get(value), source_name))
        return number


def _tensor_type(value: SSAValue) -> file.TensorType:
    """Returns the type of a tensor; without a layout it is on the host."""
    if isinstance(getattr(value.type, "encoding", None), TTNNLayoutAttr):
        return file.TensorType.of(placement_of(value))
    data_type = declared_data_type(value)
    return file.TensorType(
        shape_of(value.type), data_type.mlir, "row_major", "system_memory", "none"
    )


@dataclass
class Constants:
    """Constants of the file; equal ones are stored once."""

    records: list[file.Constant] = field(default_factory=list[file.Constant])
    size: int = 0
    _index: dict[tuple[str, tuple[int, ...], bytes], int] = field(
        default_factory=dict[tuple[str, tuple[int, ...], bytes], int]
    )

    def add(self, attribute: Elements, op: Operation) -> int:
        """Returns the index of a constant with the elements of an attribute of `op`."""
        element_type = numpy_name(attribute.type.get_element_type())
        if element_type is None:
            found = attribute.type.get_element_type()
            raise CompileError(f"constants of {found} are not supported", op)
        return self._add(element_type, tuple(attribute.type.get_shape()), attribute.data.data)

    def add_rows(self, rows: Sequence[Sequence[int]]) -> int:
        """Returns the index of a constant of integer rows of equal length."""
        import numpy as np

        return self._add("int64", (len(rows), len(rows[0])), np.array(rows, dtype="<i8").tobytes())

    def _add(self, element_type: str, shape: tuple[int, ...], data: bytes) -> int:
        key = (element_type, shape, data)
        index = self._index.get(key)
        if index is None:
            index = self._index[key] = len(self.records)
            self.records.append(file.Constant(element_type, shape, data))
            # Alignment and the length take some additional bytes.
            self.size += len(data) + 32
        return index


def _operation(op: Operation, tensors: Tensors, constants: Constants) -> file.Operation:
    callee = callee_of(op)
    operands = tuple([tensors.index[value] for value in op.operands])
    if isinstance(op, CatalogueOp):
        sizes = tuple(op.segments())
        attributes = tuple(
            [
                file.Attribute(name, _attribute_value(name, value, op, constants))
                for name, value in op.parameters().items()
                # Program configs are rare and only written if set.
                if value is not None or name not in PROGRAM_CONFIGS
            ]
        )
    elif callee is not None:
        sizes, attributes = (len(operands),), ()
        if isinstance(op, WhileLoopOp) and op.trips is not None:
            attributes = (file.Attribute(file.TRIP_COUNT, file.Integer(op.trips)),)
    else:
        raise CompileError(f"'{operation_name(op)}' has no form in the flatbuffer", op)
    results = tuple([tensors.add(result, result.name_hint) for result in op.results])
    return file.Operation(op.name, operands, sizes, results, attributes, callee, location_text(op))


def _attribute_value(
    name: str, value: Any, op: Operation, constants: Constants
) -> file.AttributeValue | None:
    """Returns the file's form of an attribute's Python value."""
    match value:
        case None:
            return None
        case bool():
            return file.Boolean(value)
        case int() if value in _INT64:
            return file.Integer(value)
        case float():
            return file.Float(value)
        case str():
            return file.String(value)
        case DataType():
            return file.DataTypeName(value.mlir)
        case ComputeConfig():
            return file.ComputeConfig.of(value)
        case ProgramConfig():
            return file.ProgramConfig(value.text)
        case TensorPlacement():
            return file.TensorType.of(value)
        case DenseIntOrFPElementsAttr():
            return file.ConstantReference(constants.add(cast(Elements, value), op))
        case [[*_], *_]:
            return _rows_value(name, value, op, constants)  # pyright: ignore[reportUnknownArgumentType]
        case list() | tuple():
            return _list_value(name, list(value), op)  # pyright: ignore[reportUnknownArgumentType]
        case _:
            raise _no_form(name, value, op)


def _list_value(name: str, values: list[Any], op: Operation) -> file.AttributeValue:
    if values and all(isinstance(value, bool) for value in values):
        return file.Booleans(tuple(values))
    if all(isinstance(value, int) and value in _INT64 for value in values):
        return file.Integers(tuple(values))
    if all(isinstance(value, int | float) for value in values):
        return file.Floats(tuple([float(value) for value in values]))
    raise _no_form(name, values, op)


def _rows_value(
    name: str, rows: Sequence[Sequence[Any]], op: Operation, constants: Constants
) -> file.ConstantReference:
    """Stores integer rows of equal length as a constant of the file."""
    numbers = [number for row in rows for number in row]
    if len({len(row) for row in rows}) > 1 or not all(isinstance(n, int) for n in numbers):
        raise _no_form(name, rows, op)
    return file.ConstantReference(constants.add_rows(rows))


def _no_form(name: str, value: object, op: Operation) -> CompileError:
    return CompileError(
        f"the attribute '{name}' of '{op.name}' has no form in the flatbuffer: {value}", op
    )


# `.ttnn` files


@dataclass(frozen=True)
class Origin:
    """Origin and target of a file."""

    input_hash: str
    """Hash of the compiled text, in hexadecimal digits."""
    arch: str
    release: str
    """Release of tt-metal, as in `X.Y.Z`."""
    system: bytes = b""
    """The .ttsys file of the system; empty for the architecture's default."""


def write_ttnn(
    module: ModuleOp, origin: Origin, names: Sequence[FunctionNames] | None = None
) -> bytes:
    """Encodes a module whose functions hold TTNN ops with layouts.

    The same module and version give the same bytes.

    Args:
        module: TTNN functions.
        origin: Origin and target of the file.
        names: Tensor names of the functions, if known already.

    Raises:
        CompileError: if the constants are too large, an attribute has no form in the file, or
            functions are recursive.
    """
    constants = Constants()
    functions = callees_first([op for op in module.ops if isinstance(op, FuncOp)])
    kinds = program_kinds(functions)
    called = tensor_names(names_of_module(functions) if names is None else names)
    programs = tuple(
        function_record(function, kinds[function.sym_name.data], constants, called)
        for function in functions
    )
    binary = file.Binary(
        file.MAJOR,
        file.MINOR,
        __version__,
        origin.input_hash,
        origin.arch,
        origin.release,
        programs,
        tuple(constants.records),
        origin.system,
    )
    return encode(load_schema("ttnn.fbs"), binary, constants.size)


# `.ttm` files

_HOST_OPERATIONS = (
    CREATE_BUFFER,
    DEALLOCATE_BUFFER,
    RUN_PROGRAM,
    ENQUEUE_READ_BUFFER,
    ENQUEUE_WRITE_BUFFER,
    VIEW,
)


def write_ttm(
    module: ModuleOp,
    origin: Origin,
    kernels: Mapping[tuple[str, str], str],
    links: Mapping[Operation, tuple[int, int]] | None = None,
) -> bytes:
    """Encodes a module of device programs; the same module and version give the same bytes.

    Args:
        module: Host functions and the reference functions of their programs.
        origin: Origin and target of the file.
        kernels: C++ of the kernels, by program and kernel name.
        links: For each collective, the bytes on the busiest link and the most links passed.

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

    # Functions follow those that they run, as in `.ttnn` files.
    functions = [
        function_record(function, "private_", constants, own_tensor_names(function))
        for function in functions_of(module)
        if is_meaning(function) or is_cpu_function(function)
    ]
    functions += [
        function_record(function, "entry", constants, host_tensor_names(function), host_operation)
        for function in hosts
    ]
    binary = file.DeviceBinary(
        file.TTM_MAJOR,
        file.TTM_MINOR,
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
    if name == RUN_PROGRAM:
        index = programs[launch_of(op).program.name]
        attributes = (file.Attribute(file.PROGRAM, file.Integer(index)),)
    operands = tuple(tensors.index[value] for value in op.operands)
    results = tuple(tensors.add(result, result.name_hint) for result in op.results)
    return file.Operation(
        name, operands, (len(operands),), results, attributes, None, location_text(op)
    )


def _call(op: Operation, tensors: Tensors, sent: tuple[int, int]) -> file.Operation:
    """Returns the record of a collective with its fabric traffic."""
    operands = tuple(tensors.index[value] for value in op.operands)
    return file.Operation(
        operation_name(op),
        operands,
        (len(operands),),
        tuple(tensors.add(result, result.name_hint) for result in op.results),
        tuple(
            file.Attribute(name, file.Integer(number))
            for name, number in zip((file.LINK_BYTES, file.LINK_HOPS), sent, strict=True)
        ),
        callee_of(op),
        location_text(op),
    )


def _program(found: DeviceProgram, kernels: Mapping[tuple[str, str], str]) -> file.DeviceProgram:
    program = found.program
    return file.DeviceProgram(
        program.name,
        program.purpose,
        program.inputs,
        len(found.placements) - program.inputs,
        program.core_range,
        tuple(_circular_buffer(buffer, program) for buffer in program.used_buffers),
        tuple(file.Semaphore(name, program.initial_value(name)) for name in program.semaphores),
        tuple(_kernel(k, program, kernels[program.name, k.name]) for k in program.kernels),
        program.work_units,
        program.work_unit or None,
        program.compute.fidelity.cpp,
        program.compute.fp32_destination,
        program.compute.unpack_to_fp32,
        program.costs,
        found.meaning,
        tuple(file.NamedConstant(s.name, s.value) for s in program.tuning.settings),
        program.compute.approximate,
    )


def _circular_buffer(buffer: CircularBuffer, program: Program) -> file.CircularBuffer:
    return file.CircularBuffer(
        buffer.index,
        buffer.name,
        buffer.data_type.mlir,
        program.value(buffer.pages),
        buffer.page_size,
        (buffer.operand,) if buffer.is_alias else (),
    )


def _kernel(kernel: Kernel, program: Program, source: str) -> file.Kernel:
    return file.Kernel(
        kernel.name,
        kernel.processor.value,
        kernel.purpose,
        program.cores_of(kernel),
        source,
        tuple(file.NamedConstant(c.name, program.value(c.value)) for c in kernel.constants),
        tuple(program.semaphores.index(name) for name in kernel.semaphores),
        kernel.accessors,
        tuple(_argument(argument) for argument in kernel.arguments),
    )


def _argument(argument: RuntimeArgument) -> file.RuntimeArgument:
    match argument.value:
        case BufferAddress(operand) as value:
            kind, coordinates = value.mnemonic, (operand,)
        case NocX(column, row) | NocY(column, row) as value:
            kind, coordinates = value.mnemonic, (column, row)
        case value:
            kind, coordinates = "plain", (value,)
    return file.RuntimeArgument(
        argument.name, kind, tuple(_coordinate(value) for value in coordinates)
    )


def _coordinate(value: int | Place) -> file.Coordinate:
    if isinstance(value, Place):
        return file.Coordinate(value.value)
    return file.Coordinate("number", value)
