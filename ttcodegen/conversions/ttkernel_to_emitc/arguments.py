"""The arguments of a kernel in C++: the start of `kernel_main`, before the ops."""

from __future__ import annotations

from typing import Any, cast

from xdsl.dialects import arith
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from ttcodegen.dialects.ttkernel.attributes import CBType, CircularBufferPlaceAttr, ThreadType
from ttcodegen.dialects.ttkernel.dataflow_table import COMPILE_TIME_HEADER, DATAFLOW_HEADER
from ttcodegen.dialects.ttkernel.operation import TTKernelOp, constant_integer
from ttcodegen.dialects.ttmetal.op_names import NAMED_ARGUMENT, RUN_TIME_ARGUMENT
from ttcodegen.dialects.ttmetal.programs import CircularBuffer, Kernel, Program
from ttcodegen.emitc.builder import EmitCBuilder
from ttcodegen.emitc.identifiers import NameScope, identifier
from ttcodegen.emitc.spelling import string_literal
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.naming.sources import constant_name, name_in_text
from ttcodegen.transforms.rebuilding import body_of

ARGUMENTS_HEADER = "api/compute/common.h"

CIRCULAR_BUFFER = "ttkernel.cb"
"""The type of a circular buffer."""


class KernelArguments:
    """Writes the arguments of a kernel, and knows the names and values of its body."""

    def __init__(
        self, body: EmitCBuilder, kernel: Kernel, program: Program, thread: ThreadType
    ) -> None:
        self.body = body
        self.declarations = body
        """Where constants are declared: the file, if the kernel has several functions."""
        self.constants: dict[SSAValue, tuple[str, str]] = {}
        """What is declared there: the name and the type."""
        self.thread = thread
        self.kernel = kernel
        self.program = program
        self.headers: set[str] = set()
        self.values: dict[SSAValue, SSAValue] = {}
        self.names = NameScope(["kernel_main"])
        self.registers: dict[int, str] = {}
        """The names of the destination registers that the kernel uses, by number."""

    def write_arguments(self, function: FuncOp) -> None:
        """The arguments at the top, named; those that the compiler knows first."""
        known: dict[str, list[SSAValue]] = {}
        passed: dict[int, list[SSAValue]] = {}
        for op in function.walk():
            if op.name == NAMED_ARGUMENT:
                name = cast(StringAttr, op.properties["arg_name"]).data
                known.setdefault(name, []).append(op.results[0])
            elif (position := declared_position(op)) is not None:
                passed.setdefault(position, []).append(op.results[0])
        is_compute = self.thread is ThreadType.COMPUTE
        if not is_compute:
            self.headers.add(DATAFLOW_HEADER)
        if known and is_compute:
            self.headers.add(COMPILE_TIME_HEADER)
        self._check(set(known))
        buffers = self.program.buffers_of(self.kernel)
        for name, values in known.items():
            remark = describe_pages(buffers[name]) if name in buffers else ""
            call = f"get_named_compile_time_arg_val({string_literal(name)})"
            if remark:
                self.declarations.comment(remark)
            self.names.reserve(name)
            self.declarations.verbatim(f"constexpr uint32_t {name} = {call};")
            for value in values:
                self._declared(value, name, "uint32_t")
        if passed and is_compute:
            self.headers.add(ARGUMENTS_HEADER)
        if passed:
            self.body.comment("Runtime arguments.")
        for index, values in sorted(passed.items()):
            name = self.kernel.arguments[index].name
            self.names.reserve(name)
            self.body.verbatim(f"const uint32_t {name} = get_arg_val<uint32_t>({index});")
            literal = self.body.literal(name, "uint32_t")
            self.values.update((value, literal) for value in values)
        self._write_buffers(function)
        registers = _registers(function)
        if registers:
            self.declarations.comment("Destination registers.")
        for number in registers:
            self.registers[number] = self._constant(f"dst{number}", number)
        if known or registers:
            self.declarations.blank()
        if passed and (self.declarations is not self.body or not (known or registers)):
            self.body.blank()

    def _write_buffers(self, function: FuncOp) -> None:
        """Circular buffers that a kernel gets as arguments of its function: the numbers that their
        types say; else the first is number 0, and so on."""
        arguments = body_of(function).args
        for argument in arguments:
            if argument.type.name != CIRCULAR_BUFFER:
                raise CompileError(
                    f"a kernel cannot take an argument of type {argument.type}", argument
                )
        if arguments:
            self.declarations.comment("Circular buffers.")
        for position, argument in enumerate(arguments):
            place = cast(CBType, argument.type).place
            number, remark = position, ""
            if isinstance(place, CircularBufferPlaceAttr):
                found = place.data.number
                if found is None:
                    raise CompileError(f"there is no circular buffer '{place.data.port}'", argument)
                number = found
                remark = f"at {place.data.address:#x} in L1" if place.data.address else ""
            name = identifier(name_in_text(argument, f"cb_{number}"))
            self._declared(argument, self._constant(name, number, remark), "uint32_t")
        if arguments:
            self.declarations.blank()

    def _constant(self, name: str, number: int, remark: str = "") -> str:
        """Declares a number; gives its name in C++."""
        unique = self.names.unique(name)
        comment = f"  // {remark}" if remark else ""
        self.declarations.verbatim(f"constexpr uint32_t {unique} = {spelled(number)};{comment}")
        return unique

    def _declared(self, value: SSAValue, name: str, type_: str) -> None:
        """Lets a value be a constant that is declared under a name."""
        self.constants[value] = name, type_
        self.values[value] = self.body.literal(name, type_)

    def table(self, op: arith.ConstantOp, value: DenseIntOrFPElementsAttr[Any]) -> None:
        """Numbers that the kernel looks up."""
        name = self.names.unique(identifier(name_in_text(op.result, "table")))
        numbers = ", ".join(spelled(int(number)) for number in value.get_values())
        self.declarations.verbatim(f"constexpr uint32_t {name}[] = {{{numbers}}};")
        self._declared(op.result, name, "uint32_t*")

    def _check(self, names: set[str]) -> None:
        declared = {constant.name for constant in self.kernel.constants}
        declared |= {f"{semaphore}_semaphore" for semaphore in self.kernel.semaphores}
        if unknown := sorted(names - declared):
            raise ValueError(f"'{self.kernel.name}' has no constant '{unknown[0]}'")


def declared_position(op: Operation) -> int | None:
    """The position of a run-time argument that is declared; None for other ops, and for arguments
    whose position the kernel computes: they are chosen where they are used."""
    return constant_integer(op.operands[0]) if op.name == RUN_TIME_ARGUMENT else None


def _registers(function: FuncOp) -> list[int]:
    """The destination registers that a kernel uses by a number that has no name."""
    found = {
        number
        for op in function.walk()
        if isinstance(op, TTKernelOp)
        for value, number in op.numbered_registers()
        if constant_name(value, number) is None
    }
    return sorted(found)


def spelled(number: int) -> str:
    """An unsigned number as it is written: large ones, masks as a rule, to the base of 16."""
    number %= 2**32
    return str(number) if number < 1 << 16 else f"0x{number:08x}"


def describe_pages(buffer: CircularBuffer) -> str:
    """What a circular buffer holds, for a comment."""
    return f"Circular buffer: pages of {buffer.page_size} bytes, {buffer.data_type.mlir}."
