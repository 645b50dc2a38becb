"""Readers of `.ttnn` and `.ttm` files."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from pathlib import Path
from typing import NoReturn

from ttcodegen.dialects.ttmetal import programs
from ttcodegen.flatbuffer import program as device
from ttcodegen.flatbuffer.decoding import decode
from ttcodegen.flatbuffer.program import (
    ELEMENT_SIZES,
    RECORDS,
    TRIP_COUNT,
    VERSION,
    WHILE_LOOP,
    Binary,
    Constant,
    ConstantReference,
    DeviceBinary,
    DeviceProgram,
    Golden,
    Integer,
    Operation,
    Program,
)
from ttcodegen.flatbuffer.schema import load_schema
from ttcodegen.foundation.diagnostics import CompileError

# `.ttnn` files

_LARGEST_DIMENSION = 2**32
_HIGHEST_RANK = 64


def read_ttnn_file(path: Path) -> Binary:
    """Reads a `.ttnn` file and verifies its calls like those of a module.

    Raises:
        CompileError: if the file cannot be read, or as by `read_ttnn` and `verify_ttnn`.
    """
    from ttcodegen.flatbuffer.modules import verify_ttnn

    binary = read_ttnn(read_file(path))
    verify_ttnn(binary)
    return binary


def read_file(path: Path) -> bytes:
    """Reads the bytes of a file; raises CompileError if that fails."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise CompileError(f"cannot read '{path}': {error.strerror or error}") from None


def read_ttnn(data: bytes | memoryview) -> Binary:
    """Decodes a `.ttnn` file and checks that running it is safe.

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
    """Raises CompileError if a constant's elements do not match its type and shape."""
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
    """Checks functions in the order of the file; `known` are the previous ones, by name."""

    def __init__(self, constants: Sequence[Constant], kind: str) -> None:
        self.known: dict[str, Program] = {}
        self._constants = constants
        self._kind = kind

    def fail(self, message: str) -> NoReturn:
        """Raises CompileError."""
        raise CompileError(f"the {self._kind} is inconsistent: {message}")

    def check(self, program: Program) -> None:
        """Raises CompileError if a function is inconsistent with the rest of the file."""
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
        """Checks operations specific to a kind of file; to be overridden."""

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
        # Only earlier programs are known, so that calls cannot be recursive.
        callee = self.known.get(operation.callee or "")
        if callee is None:
            self.fail(f"'{program.name}' calls '{operation.callee}', which does not precede it")
        passed, returned = list(operation.operands), list(operation.results)
        counted = any(attribute.name == TRIP_COUNT for attribute in operation.attributes)
        if operation.name == WHILE_LOOP and passed and not counted:
            # The condition comes from outside before the first iteration, later from the body.
            returned.insert(0, passed.pop(0))
        if len(callee.inputs) != len(passed) or len(callee.outputs) != len(returned):
            self.fail(
                f"'{program.name}' calls '{callee.name}' with operands or results that do not "
                "fit it"
            )
        inner = [port.tensor for port in (*callee.inputs, *callee.outputs)]
        outer = (*passed, *returned)
        for expected, found in zip(inner, outer, strict=True):
            # Results are checked against the tensor table later, when they are defined.
            if found < len(program.tensors) and (
                callee.tensors[expected].type.shape != program.tensors[found].type.shape
            ):
                self.fail(f"'{program.name}' calls '{callee.name}' with tensors of other shapes")


# `.ttm` files

_KIND = ".ttm file"


def read_ttm_file(path: Path) -> DeviceBinary:
    """Reads a `.ttm` file and verifies the semantics of its programs as a module.

    Raises:
        CompileError: if the file cannot be read, or as by `read_ttm` and `verify_ttm`.
    """
    from ttcodegen.flatbuffer.modules import verify_ttm

    binary = read_ttm(read_file(path))
    verify_ttm(binary)
    return binary


def is_ttm(data: bytes | memoryview) -> bool:
    """True if data begin like a .ttm file."""
    return bytes(data[4:8]) == load_schema("ttm.fbs").identifier.encode("ascii")


def read_ttm(data: bytes | memoryview) -> DeviceBinary:
    """Decodes a `.ttm` file and checks that running it is safe.

    Raises:
        CompileError: if it is not a .ttm file, of another version, damaged, or inconsistent.
    """
    schema = load_schema("ttm.fbs")
    binary: DeviceBinary = decode(schema, device.TTM_RECORDS, data, _KIND, device.TTM_VERSION)
    check_constants(binary.constants, _KIND)
    checks = _HostChecks(binary)
    for function in binary.functions:
        checks.check(function)
    for program in binary.programs:
        _check_program(program, checks.known)
    return binary


def _fail(message: str) -> NoReturn:
    raise CompileError(f"the {_KIND} is inconsistent: {message}")


class _HostChecks(FunctionChecks):
    """Checks functions whose operations may launch programs."""

    def __init__(self, binary: DeviceBinary) -> None:
        super().__init__(binary.constants, _KIND)
        self._programs = binary.programs

    def check_own(self, operation: Operation, function: Program) -> None:
        match operation.name:
            case programs.RUN_PROGRAM:
                program = self._program_of(operation, function)
                count = program.inputs + program.outputs
                if len(operation.operands) != count or operation.results:
                    self.fail(f"'{function.name}' runs '{program.name}' on other tensors")
                self._check_shapes(operation, function, program)
            case programs.CREATE_BUFFER:
                if operation.operands or len(operation.results) != 1:
                    self.fail(f"'{function.name}' creates no single buffer")
            case programs.ENQUEUE_READ_BUFFER:
                if len(operation.operands) != 1 or len(operation.results) != 1:
                    self.fail(f"'{function.name}' reads no single tensor")
                self._check_copy((*operation.operands, *operation.results), function)
            case programs.ENQUEUE_WRITE_BUFFER:
                if len(operation.operands) != 2 or operation.results:
                    self.fail(f"'{function.name}' writes no single tensor")
                self._check_copy(operation.operands, function)
            case programs.VIEW:
                if len(operation.operands) != 1 or len(operation.results) != 1:
                    self.fail(f"'{function.name}' views no single tensor")
                shapes = self._known_shapes((*operation.operands, *operation.results), function)
                if any(prod(shape) != prod(shapes[0]) for shape in shapes):
                    self.fail(f"'{function.name}' views a tensor with another number of elements")
            case _:
                pass

    def _known_shapes(self, tensors: Sequence[int], function: Program) -> Sequence[tuple[int, ...]]:
        # Results are checked against the tensor table later, when they are defined.
        return [function.tensors[t].type.shape for t in tensors if t < len(function.tensors)]

    def _check_copy(self, tensors: Sequence[int], function: Program) -> None:
        shapes = self._known_shapes(tensors, function)
        if any(shape != shapes[0] for shape in shapes):
            self.fail(f"'{function.name}' copies a tensor into one of another shape")

    def _program_of(self, operation: Operation, function: Program) -> DeviceProgram:
        for attribute in operation.attributes:
            value = attribute.value
            if attribute.name == device.PROGRAM and isinstance(value, Integer):
                if 0 <= value.value < len(self._programs):
                    return self._programs[value.value]
        self.fail(f"'{function.name}' runs a program that is not in the file")

    def _check_shapes(
        self, operation: Operation, function: Program, program: DeviceProgram
    ) -> None:
        meaning = self.known.get(program.meaning)
        if meaning is None:
            self.fail(f"'{program.name}' means '{program.meaning}', which does not precede it")
        if (len(meaning.inputs), len(meaning.outputs)) != (program.inputs, program.outputs):
            self.fail(f"'{program.meaning}' is not what '{program.name}' means")
        expected = [port.tensor for port in (*meaning.inputs, *meaning.outputs)]
        for inner, outer in zip(expected, operation.operands, strict=True):
            if meaning.tensors[inner].type.shape != function.tensors[outer].type.shape:
                self.fail(f"'{function.name}' runs '{program.name}' on tensors of other shapes")


def _check_program(program: DeviceProgram, functions: dict[str, Program]) -> None:
    name = program.name
    if program.meaning not in functions:
        _fail(f"there is no function '{program.meaning}', which '{name}' means")
    indices = [buffer.index for buffer in program.circular_buffers]
    if len(set(indices)) != len(indices):
        _fail(f"two circular buffers of '{name}' have one index")
    operands = program.inputs + program.outputs
    for kernel in program.kernels:
        if any(number >= len(program.semaphores) for number in kernel.semaphores):
            _fail(f"'{kernel.name}' uses a semaphore that '{name}' has not")
        if any(operand >= operands for operand in kernel.accessors):
            _fail(f"'{kernel.name}' reads an operand that '{name}' has not")
