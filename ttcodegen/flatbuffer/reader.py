"""Reads a `.ttnn` file: a program that can be run, or an error that says what is wrong with it."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from pathlib import Path
from typing import NoReturn

from ttcodegen.flatbuffer.decoding import decode
from ttcodegen.flatbuffer.program import (
    RECORDS,
    VERSION,
    Binary,
    Constant,
    ConstantReference,
    Golden,
    Operation,
    Program,
)
from ttcodegen.flatbuffer.schema import load_schema
from ttcodegen.foundation.diagnostics import CompileError

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
    return read_ttnn(read_file(path))


def read_file(path: Path) -> bytes:
    """The bytes of a file; raises CompileError if it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise CompileError(f"cannot read '{path}': {error.strerror or error}") from None


def read_ttnn(data: bytes | memoryview) -> Binary:
    """The program that `data` hold, checked so that running it is safe.

    Raises:
        CompileError: if it is not a .ttnn file, of another version, damaged, or inconsistent.
    """
    kind = ".ttnn file"
    schema = load_schema("ttnn.fbs")
    binary: Binary = decode(schema, RECORDS, data, kind, VERSION)
    check_constants(binary.constants, kind)
    checks = FunctionChecks(binary.constants, kind)
    for program in binary.programs:
        checks.check(program)
    return binary


def _is_shape(shape: tuple[int, ...]) -> bool:
    return len(shape) <= _HIGHEST_RANK and all(0 <= size < _LARGEST_DIMENSION for size in shape)


def check_constants(constants: Sequence[Constant], kind: str) -> None:
    """Raises CompileError if the elements of a constant are not what its type and shape say."""
    for index, constant in enumerate(constants):
        if not _is_shape(constant.shape):
            raise CompileError(
                f"the {kind} is inconsistent: constant {index} has an impossible shape"
            )
        size = ELEMENT_SIZES[constant.element_type]
        count = prod(constant.shape)
        if len(constant.elements) not in (size * count, size if count else 0):
            raise CompileError(
                f"the {kind} is inconsistent: constant {index} has {len(constant.elements)} bytes "
                f"for {count} elements of {constant.element_type}"
            )


class FunctionChecks:
    """Checks functions in the order of the file; `known` are those before, by name."""

    def __init__(self, constants: Sequence[Constant], kind: str) -> None:
        self.known: dict[str, Program] = {}
        self._constants = constants
        self._kind = kind

    def fail(self, message: str) -> NoReturn:
        """Raises CompileError."""
        raise CompileError(f"the {self._kind} is inconsistent: {message}")

    def check(self, program: Program) -> None:
        """Raises CompileError if something in a function contradicts the rest of the file."""
        name = program.name
        if name in self.known:
            self.fail(f"there are two programs '{name}'")
        for index, tensor in enumerate(program.tensors):
            if not _is_shape(tensor.type.shape):
                self.fail(f"tensor {index} of '{name}' has an impossible shape")
        for entry in (*program.inputs, *program.outputs):
            if entry.element_type is not None and entry.element_type not in ELEMENT_SIZES:
                self.fail(f"'{entry.name}' of '{name}' has elements of no known type")
        defined: set[int] = set()
        for input_ in program.inputs:
            self._define(input_.tensor, program, defined)
        for operation in program.operations:
            self._check_operation(operation, program, defined)
        for output in program.outputs:
            self._use(output.tensor, program, defined)
        for golden in program.goldens:
            self._check_golden(golden, program, defined)
        self.known[name] = program

    def check_own(self, operation: Operation, function: Program) -> None:
        """Checks an operation that only some kinds of files have."""

    def _check_golden(self, golden: Golden, program: Program, defined: set[int]) -> None:
        self._use(golden.tensor, program, defined)
        self._check_constant(golden.constant, program)
        if self._constants[golden.constant].shape != program.tensors[golden.tensor].type.shape:
            self.fail(f"a golden value in '{program.name}' has another shape than its tensor")

    def _check_constant(self, index: int, program: Program) -> None:
        if index >= len(self._constants):
            self.fail(f"'{program.name}' uses constant {index}, which is not in the file")

    def _define(self, tensor: int, program: Program, defined: set[int]) -> None:
        if tensor >= len(program.tensors):
            self.fail(f"'{program.name}' defines tensor {tensor}, which is not in its table")
        if tensor in defined:
            self.fail(f"'{program.name}' defines tensor {tensor} twice")
        defined.add(tensor)

    def _use(self, tensor: int, program: Program, defined: set[int]) -> None:
        if tensor not in defined:
            self.fail(f"'{program.name}' uses tensor {tensor} before it is defined")

    def _check_operation(self, operation: Operation, program: Program, defined: set[int]) -> None:
        for tensor in operation.operands:
            self._use(tensor, program, defined)
        if sum(operation.operand_sizes) != len(operation.operands):
            self.fail(f"the operands of a {operation.name} in '{program.name}' do not add up")
        for attribute in operation.attributes:
            if isinstance(attribute.value, ConstantReference):
                self._check_constant(attribute.value.index, program)
        if operation.callee is not None:
            self._check_call(operation, program)
        self.check_own(operation, program)
        for tensor in operation.results:
            self._define(tensor, program, defined)

    def _check_call(self, operation: Operation, program: Program) -> None:
        # Only earlier programs are known, so calls cannot form a circle.
        callee = self.known.get(operation.callee or "")
        if callee is None:
            self.fail(f"'{program.name}' calls '{operation.callee}', which does not precede it")
        if len(callee.inputs) != len(operation.operands) or len(callee.outputs) != len(
            operation.results
        ):
            self.fail(
                f"'{program.name}' calls '{callee.name}' with operands or results that do not "
                "fit it"
            )
