"""Writers of `.ttnn` and `.ttm` files, and functions of a module as records of a flatbuffer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    FunctionType,
    ModuleOp,
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
"""Gives the record of an op that is in no catalogue, None if it knows the op no better."""


def callees_first(functions: list[FuncOp]) -> list[FuncOp]:
    """The functions in such an order that each follows those that it calls."""
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
    """Program kind of each function, by its symbol."""
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
    """The record of a function.

    Args:
        function: its ops are of TTNN, or what `host_operation` knows.
        kind: a program kind of the file.
        constants: gets its constants.
        names: what its tensors are called.
        host_operation: gives the records of other ops.

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
    """The element types of arguments and results before they were normalised, None if unknown."""
    # Of the body of a loop nobody outside sees the types.
    source = None if is_loop_body(function) else function.attributes.get(SOURCE_TYPES)
    types = source if isinstance(source, FunctionType) else None
    inputs = types.inputs.data if types is not None else [None] * len(function.args)
    outputs = function.function_type.outputs.data
    results = types.outputs.data if types is not None else [None] * len(outputs)
    return [_element_name(type_) for type_ in inputs], [_element_name(type_) for type_ in results]


def _element_name(type_: MLIRAttribute | None) -> str | None:
    return None if type_ is None else numpy_name(element_of(type_))


@dataclass
class Tensors:
    """The tensors of one function."""

    names: Mapping[SSAValue, str]
    records: list[file.Tensor] = field(default_factory=list[file.Tensor])
    index: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])
    _types: dict[MLIRAttribute, file.TensorType] = field(
        default_factory=dict[MLIRAttribute, file.TensorType]
    )

    def add(self, value: SSAValue, source_name: str | None) -> int:
        """The index of a new tensor."""
        type_ = self._types.get(value.type)
        if type_ is None:
            type_ = self._types[value.type] = _tensor_type(value)
        number = self.index[value] = len(self.records)
        self.records.append(file.Tensor(type_, self.names.get(value), source_name))
        return number


def _tensor_type(value: SSAValue) -> file.TensorType:
    """The placement of a tensor; one without layout is on the host."""
    if isinstance(getattr(value.type, "encoding", None), TTNNLayoutAttr):
        return file.TensorType.of(placement_of(value))
    data_type = declared_data_type(value)
    return file.TensorType(
        shape_of(value.type), data_type.mlir, "row_major", "system_memory", "none"
    )


@dataclass
class Constants:
    """The constants of the file; equal ones are stored once."""

    records: list[file.Constant] = field(default_factory=list[file.Constant])
    size: int = 0
    _index: dict[tuple[str, tuple[int, ...], bytes], int] = field(
        default_factory=dict[tuple[str, tuple[int, ...], bytes], int]
    )

    def add(self, attribute: Elements, op: Operation) -> int:
        """The index of a constant with the elements of an attribute of `op`."""
        element_type = numpy_name(attribute.type.get_element_type())
        if element_type is None:
            found = attribute.type.get_element_type()
            raise CompileError(f"constants of {found} are not supported", op)
        return self._add(element_type, tuple(attribute.type.get_shape()), attribute.data.data)

    def add_rows(self, rows: Sequence[Sequence[int]]) -> int:
        """The index of a constant with rows of whole numbers, all of one length."""
        import numpy as np

        return self._add("int64", (len(rows), len(rows[0])), np.array(rows, dtype="<i8").tobytes())

    def _add(self, element_type: str, shape: tuple[int, ...], data: bytes) -> int:
        key = (element_type, shape, data)
        index = self._index.get(key)
        if index is None:
            index = self._index[key] = len(self.records)
            self.records.append(file.Constant(element_type, shape, data))
            # Alignment and the length take some bytes more.
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
                # Rare attributes are only written where a call has them.
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
    """The form that the Python value of an attribute has in the file."""
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
    """Rows of whole numbers, all of one length, are a constant of the file."""
    numbers = [number for row in rows for number in row]
    if len({len(row) for row in rows}) > 1 or not all(isinstance(n, int) for n in numbers):
        raise _no_form(name, rows, op)
    return file.ConstantReference(constants.add_rows(rows))


def _no_form(name: str, value: object, op: Operation) -> CompileError:
    return CompileError(
        f"the attribute '{name}' of '{op.name}' has no form in the flatbuffer: {value}", op
    )


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


# Makes a `.ttm` file of a module of device programs.

_HOST_OPERATIONS = (
    file.CREATE_BUFFER,
    file.DEALLOCATE_BUFFER,
    file.RUN_PROGRAM,
    file.ENQUEUE_READ_BUFFER,
    file.ENQUEUE_WRITE_BUFFER,
    file.VIEW,
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
    if name == file.RUN_PROGRAM:
        index = programs[launch_of(op).program.name]
        attributes = (file.Attribute(file.PROGRAM, file.Integer(index)),)
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
