"""Makes a `.ttnn` file of a module of TTNN functions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, FunctionType, ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute as MLIRAttribute
from xdsl.ir import Block, Operation, SSAValue

import ttcodegen
from ttcodegen.diagnostics import CompileError
from ttcodegen.dialects.datatypes import DataType, element_of, numpy_name
from ttcodegen.dialects.functions import (
    SOURCE_TYPES,
    argument_names,
    argument_type,
    callee_of,
    location_text,
    result_names,
)
from ttcodegen.dialects.operation import CatalogueOp
from ttcodegen.dialects.ttcore import ArgumentType
from ttcodegen.dialects.ttnn import placement_of
from ttcodegen.flatbuffer import program
from ttcodegen.flatbuffer.encoding import encode
from ttcodegen.flatbuffer.schema import load_schema
from ttcodegen.parsing.structure import operation_name

if TYPE_CHECKING:
    import numpy as np

Elements = DenseIntOrFPElementsAttr[Any]

_INT64 = range(-(2**63), 2**63)
_INPUT_KINDS = {ArgumentType.PARAMETER: "parameter", ArgumentType.CONSTANT: "constant"}


@dataclass(frozen=True)
class Origin:
    """What a file was made from and for."""

    input_hash: str
    """Of the text that was compiled, in hexadecimal digits."""
    arch: str
    release: str
    """The release of tt-metal, as in `0.70.1`."""
    system: bytes = b""
    """The .ttsys file of the system; empty for what the architecture has by default."""


def write_ttnn(
    module: ModuleOp, origin: Origin, goldens: Mapping[SSAValue, np.ndarray] | None = None
) -> bytes:
    """The file of a module whose functions hold TTNN ops with layouts assigned.

    The same module and version give the same bytes.

    Args:
        module: the TTNN functions.
        origin: what they were made from and for.
        goldens: what values of the module should be, to be embedded in the file.

    Raises:
        CompileError: if the constants are too large, an attribute has no form in the file, or
            functions call each other in a circle.
    """
    constants = _Constants()
    functions = _callees_first([op for op in module.ops if isinstance(op, FuncOp)])
    kinds = _program_kinds(functions)
    programs = tuple(
        _program(function, kinds[function.sym_name.data], constants, goldens or {})
        for function in functions
    )
    binary = program.Binary(
        program.MAJOR,
        program.MINOR,
        ttcodegen.__version__,
        origin.input_hash,
        origin.arch,
        origin.release,
        programs,
        tuple(constants.records),
        origin.system,
    )
    return encode(load_schema("ttnn.fbs"), binary, constants.size)


def _callees_first(functions: list[FuncOp]) -> list[FuncOp]:
    """The functions in such an order that each stands behind those that it calls."""
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


def _program_kinds(functions: list[FuncOp]) -> dict[str, str]:
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


def _program(
    function: FuncOp, kind: str, constants: _Constants, goldens: Mapping[SSAValue, np.ndarray]
) -> program.Program:
    block = _body(function)
    tensors = _Tensors()
    input_types, output_types = _source_types(function)
    inputs = tuple(
        program.Input(
            tensors.add(argument, name),
            _INPUT_KINDS.get(argument_type(function, argument.index), "input"),
            name,
            element_type,
        )
        for argument, name, element_type in zip(
            block.args, argument_names(function), input_types, strict=True
        )
    )
    operations: list[program.Operation] = []
    outputs: tuple[program.Output, ...] = ()
    for op in block.ops:
        if isinstance(op, ReturnOp):
            outputs = tuple(
                program.Output(tensors.index[value], name, element_type)
                for value, name, element_type in zip(
                    op.operands, result_names(function), output_types, strict=True
                )
            )
        else:
            operations.append(_operation(op, tensors, constants))
    return program.Program(
        function.sym_name.data,
        kind,
        tuple(tensors.records),
        inputs,
        outputs,
        tuple(operations),
        tuple(
            [
                program.Golden(index, constants.add_array(goldens[value]))
                for value, index in tensors.index.items()
                if value in goldens
            ]
        ),
    )


def _source_types(function: FuncOp) -> tuple[list[str | None], list[str | None]]:
    """The element types of arguments and results before they were normalised, None if unknown."""
    source = function.attributes.get(SOURCE_TYPES)
    types = source if isinstance(source, FunctionType) else None
    inputs = types.inputs.data if types is not None else [None] * len(function.args)
    outputs = function.function_type.outputs.data
    results = types.outputs.data if types is not None else [None] * len(outputs)
    return [_element_name(type_) for type_ in inputs], [_element_name(type_) for type_ in results]


def _element_name(type_: MLIRAttribute | None) -> str | None:
    return None if type_ is None else numpy_name(element_of(type_))


@dataclass
class _Tensors:
    """The tensors of one program."""

    records: list[program.Tensor] = field(default_factory=list[program.Tensor])
    index: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])
    _types: dict[MLIRAttribute, program.TensorType] = field(
        default_factory=dict[MLIRAttribute, program.TensorType]
    )

    def add(self, value: SSAValue, name: str | None) -> int:
        type_ = self._types.get(value.type)
        if type_ is None:
            type_ = self._types[value.type] = program.TensorType.of(placement_of(value))
        number = self.index[value] = len(self.records)
        self.records.append(program.Tensor(type_, name))
        return number


@dataclass
class _Constants:
    """The constants of the file; equal ones are stored once."""

    records: list[program.Constant] = field(default_factory=list[program.Constant])
    size: int = 0
    _index: dict[tuple[str, tuple[int, ...], bytes], int] = field(
        default_factory=dict[tuple[str, tuple[int, ...], bytes], int]
    )

    def add(self, attribute: Elements, op: Operation) -> int:
        element_type = numpy_name(attribute.type.get_element_type())
        if element_type is None:
            found = attribute.type.get_element_type()
            raise CompileError(f"constants of {found} are not supported", op)
        return self._add(element_type, tuple(attribute.type.get_shape()), attribute.data.data)

    def add_array(self, array: np.ndarray) -> int:
        """The index of a constant with the elements of an array."""
        return self._add(array.dtype.name, array.shape, array.tobytes())

    def _add(self, element_type: str, shape: tuple[int, ...], data: bytes) -> int:
        key = (element_type, shape, data)
        index = self._index.get(key)
        if index is None:
            index = self._index[key] = len(self.records)
            self.records.append(program.Constant(element_type, shape, data))
            # Alignment and the length take some bytes more.
            self.size += len(data) + 32
        return index


def _operation(op: Operation, tensors: _Tensors, constants: _Constants) -> program.Operation:
    callee = callee_of(op)
    operands = tuple([tensors.index[value] for value in op.operands])
    if isinstance(op, CatalogueOp):
        sizes = tuple(op.segments())
        attributes = tuple(
            [
                program.Attribute(name, _attribute_value(name, value, op, constants))
                for name, value in op.parameters().items()
            ]
        )
    elif callee is not None:
        sizes, attributes = (len(operands),), ()
    else:
        raise CompileError(f"'{operation_name(op)}' has no form in the flatbuffer", op)
    results = tuple([tensors.add(result, result.name_hint) for result in op.results])
    return program.Operation(
        op.name, operands, sizes, results, attributes, callee, location_text(op)
    )


def _attribute_value(
    name: str, value: Any, op: Operation, constants: _Constants
) -> program.AttributeValue | None:
    """The form that the Python value of an attribute has in the file."""
    match value:
        case None:
            return None
        case bool():
            return program.Boolean(value)
        case int() if value in _INT64:
            return program.Integer(value)
        case float():
            return program.Float(value)
        case str():
            return program.String(value)
        case DataType():
            return program.DataTypeName(value.mlir)
        case DenseIntOrFPElementsAttr():
            return program.ConstantReference(constants.add(cast(Elements, value), op))
        case list() | tuple():
            return _list_value(name, list(value), op)  # pyright: ignore[reportUnknownArgumentType]
        case _:
            raise _no_form(name, value, op)


def _list_value(name: str, values: list[Any], op: Operation) -> program.AttributeValue:
    if values and all(isinstance(value, bool) for value in values):
        return program.Booleans(tuple(values))
    if all(isinstance(value, int) and value in _INT64 for value in values):
        return program.Integers(tuple(values))
    if all(isinstance(value, int | float) for value in values):
        return program.Floats(tuple([float(value) for value in values]))
    raise _no_form(name, values, op)


def _no_form(name: str, value: object, op: Operation) -> CompileError:
    return CompileError(
        f"the attribute '{name}' of '{op.name}' has no form in the flatbuffer: {value}", op
    )
