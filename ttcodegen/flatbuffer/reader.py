"""Reads a `.ttnn` file: a program that can be run, or an error that says what is wrong with it."""

from __future__ import annotations

from math import prod
from pathlib import Path
from typing import NoReturn

from ttcodegen.diagnostics import CompileError
from ttcodegen.flatbuffer.decoding import decode
from ttcodegen.flatbuffer.program import (
    RECORDS,
    VERSION,
    Binary,
    ConstantReference,
    Golden,
    Operation,
    Program,
)
from ttcodegen.flatbuffer.schema import load_schema

ELEMENT_SIZES = {
    "bool": 1,
    "int8": 1,
    "uint8": 1,
    "bfloat16": 2,
    "float16": 2,
    "int16": 2,
    "uint16": 2,
    "float32": 4,
    "int32": 4,
    "uint32": 4,
    "float64": 8,
    "int64": 8,
    "uint64": 8,
}
"""Bytes per element of a constant."""

_LARGEST_DIMENSION = 2**32
_HIGHEST_RANK = 64


def read_ttnn_file(path: Path) -> Binary:
    """The program in a file.

    Raises:
        CompileError: if the file cannot be read, or as `read_ttnn` says.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise CompileError(f"cannot read '{path}': {error.strerror or error}") from None
    return read_ttnn(data)


def read_ttnn(data: bytes | memoryview) -> Binary:
    """The program that `data` hold, checked so that whoever runs it need not doubt it.

    Raises:
        CompileError: if it is not a .ttnn file, of another version, damaged, or inconsistent.
    """
    schema = load_schema("ttnn.fbs")
    binary: Binary = decode(schema, RECORDS, data, ".ttnn file", VERSION)
    _check_constants(binary)
    known: dict[str, Program] = {}
    for program in binary.programs:
        _check_program(program, known, binary)
        known[program.name] = program
    return binary


def _fail(message: str) -> NoReturn:
    raise CompileError(f"the .ttnn file is inconsistent: {message}")


def _check_shape(shape: tuple[int, ...], what: str) -> None:
    if len(shape) > _HIGHEST_RANK or any(not 0 <= size < _LARGEST_DIMENSION for size in shape):
        _fail(f"{what} has an impossible shape")


def _check_constants(binary: Binary) -> None:
    for index, constant in enumerate(binary.constants):
        _check_shape(constant.shape, f"constant {index}")
        size = ELEMENT_SIZES[constant.element_type]
        count = prod(constant.shape)
        if len(constant.elements) not in (size * count, size if count else 0):
            _fail(
                f"constant {index} has {len(constant.elements)} bytes for {count} elements of "
                f"{constant.element_type}"
            )


def _check_program(program: Program, known: dict[str, Program], binary: Binary) -> None:
    name = program.name
    if name in known:
        _fail(f"there are two programs '{name}'")
    for index, tensor in enumerate(program.tensors):
        _check_shape(tensor.type.shape, f"tensor {index} of '{name}'")
    for entry in (*program.inputs, *program.outputs):
        if entry.element_type is not None and entry.element_type not in ELEMENT_SIZES:
            _fail(f"'{entry.name}' of '{name}' has elements of no known type")
    defined: set[int] = set()
    for input_ in program.inputs:
        _define(input_.tensor, program, defined)
    for operation in program.operations:
        _check_operation(operation, program, defined, known, binary)
    for output in program.outputs:
        _use(output.tensor, program, defined)
    for golden in program.goldens:
        _check_golden(golden, program, defined, binary)


def _check_golden(golden: Golden, program: Program, defined: set[int], binary: Binary) -> None:
    _use(golden.tensor, program, defined)
    if golden.constant >= len(binary.constants):
        _fail(f"'{program.name}' uses constant {golden.constant}, which is not in the file")
    if binary.constants[golden.constant].shape != program.tensors[golden.tensor].type.shape:
        _fail(f"a golden value in '{program.name}' has another shape than its tensor")


def _define(tensor: int, program: Program, defined: set[int]) -> None:
    if tensor >= len(program.tensors):
        _fail(f"'{program.name}' defines tensor {tensor}, which is not in its table")
    if tensor in defined:
        _fail(f"'{program.name}' defines tensor {tensor} twice")
    defined.add(tensor)


def _use(tensor: int, program: Program, defined: set[int]) -> None:
    if tensor not in defined:
        _fail(f"'{program.name}' uses tensor {tensor} before it is defined")


def _check_operation(
    operation: Operation,
    program: Program,
    defined: set[int],
    known: dict[str, Program],
    binary: Binary,
) -> None:
    for tensor in operation.operands:
        _use(tensor, program, defined)
    if sum(operation.operand_sizes) != len(operation.operands):
        _fail(f"the operands of a {operation.name} in '{program.name}' do not add up")
    for attribute in operation.attributes:
        value = attribute.value
        if isinstance(value, ConstantReference) and value.index >= len(binary.constants):
            _fail(f"'{program.name}' uses constant {value.index}, which is not in the file")
    if operation.callee is not None:
        _check_call(operation, program, known)
    for tensor in operation.results:
        _define(tensor, program, defined)


def _check_call(operation: Operation, program: Program, known: dict[str, Program]) -> None:
    # Only programs that stand before are known, so calls cannot form a circle.
    callee = known.get(operation.callee or "")
    if callee is None:
        _fail(f"'{program.name}' calls '{operation.callee}', which does not stand before it")
    if len(callee.inputs) != len(operation.operands) or len(callee.outputs) != len(
        operation.results
    ):
        _fail(f"'{program.name}' calls '{callee.name}' with operands or results that do not fit it")
