"""Reads a `.ttm` file: programs of the device that can be run, or what is wrong with them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from ttcodegen.flatbuffer import ttm_program as device
from ttcodegen.flatbuffer.decoding import decode
from ttcodegen.flatbuffer.program import Integer, Operation, Program
from ttcodegen.flatbuffer.reader import FunctionChecks, check_constants, read_file
from ttcodegen.flatbuffer.schema import load_schema
from ttcodegen.flatbuffer.ttm_program import DeviceBinary, DeviceProgram
from ttcodegen.foundation.diagnostics import CompileError

_KIND = ".ttm file"


def read_ttm_file(path: Path) -> DeviceBinary:
    """The programs in a file.

    Raises:
        CompileError: if the file cannot be read, or as `read_ttm` says.
    """
    return read_ttm(read_file(path))


def is_ttm(data: bytes | memoryview) -> bool:
    """True if data begin as a .ttm file does."""
    return bytes(data[4:8]) == load_schema("ttm.fbs").identifier.encode("ascii")


def read_ttm(data: bytes | memoryview) -> DeviceBinary:
    """The programs that `data` hold, checked so that running them is safe.

    Raises:
        CompileError: if it is not a .ttm file, of another version, damaged, or inconsistent.
    """
    schema = load_schema("ttm.fbs")
    binary: DeviceBinary = decode(schema, device.RECORDS, data, _KIND, device.VERSION)
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
            case device.RUN_PROGRAM:
                program = self._program_of(operation, function)
                count = program.inputs + program.outputs
                if len(operation.operands) != count or operation.results:
                    self.fail(f"'{function.name}' runs '{program.name}' on other tensors")
                self._check_shapes(operation, function, program)
            case device.CREATE_BUFFER:
                if operation.operands or len(operation.results) != 1:
                    self.fail(f"'{function.name}' creates no single buffer")
            case device.ENQUEUE_READ_BUFFER:
                if len(operation.operands) != 1 or len(operation.results) != 1:
                    self.fail(f"'{function.name}' reads no single tensor")
                self._check_copy((*operation.operands, *operation.results), function)
            case device.ENQUEUE_WRITE_BUFFER:
                if len(operation.operands) != 2 or operation.results:
                    self.fail(f"'{function.name}' writes no single tensor")
                self._check_copy(operation.operands, function)
            case device.VIEW:
                if len(operation.operands) != 1 or len(operation.results) != 1:
                    self.fail(f"'{function.name}' views no single tensor")
            case _:
                pass

    def _check_copy(self, tensors: Sequence[int], function: Program) -> None:
        # What an operation gives is checked to be in the table when it is defined, which is later.
        known = [function.tensors[t].type.shape for t in tensors if t < len(function.tensors)]
        if any(shape != known[0] for shape in known):
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
