"""Queries on modules of device programs, and programs as attributes with their verification.

Such a module has host functions, which create buffers and launch programs on them; for each program
a function with its semantics in TTIR; and the kernels as functions. A program may be launched
several times, on buffers of the same layouts.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations

from xdsl.dialects.builtin import ModuleOp, SymbolRefAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Data, Operation, SSAValue
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from ttcodegen.dialects.core.attribute_syntax import parse_record, print_record
from ttcodegen.dialects.operations.functions import KERNEL_THREAD, body_of, is_cpu_function
from ttcodegen.dialects.operations.operation import operation_name
from ttcodegen.dialects.ttmetal.programs import (
    BUFFER_CONSTANT,
    CIRCULAR_BUFFERS,
    CONSTANT,
    FP32_DESTINATION,
    L1_BYTES,
    MATH_APPROX_MODE,
    MATH_FIDELITY,
    RUN_PROGRAM,
    BlockTiles,
    Kernel,
    Place,
    Program,
)
from ttcodegen.dialects.ttmetal.tuning import Derived, Size, names_in
from ttcodegen.dialects.ttnn.placement import TensorPlacement, placement_of
from ttcodegen.foundation.diagnostics import CompileError

_IDENTIFIER = re.compile(r"[A-Za-z_]\w*", re.ASCII)


@irdl_attr_definition
class ProgramAttr(Data[Program]):
    """`#ttmetal.program<name = "exp", ...>`."""

    name = "ttmetal.program"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Program:
        return parse_record(parser, Program)

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(print_record(self.data))

    def verify(self) -> None:
        for fault in _faults(self.data):
            raise VerifyException(f"the program '{self.data.name}' {fault}")


def _faults(program: Program) -> Iterator[str]:
    """Yields errors of a program that hold for any device."""
    faults = [*_name_faults(program), *_number_faults(program), *_tuning_faults(program)]
    yield from faults
    if not faults:
        yield from _part_faults(program)


def _name_faults(program: Program) -> Iterator[str]:
    """Yields names of a program that are no C++ identifiers."""
    kernels = program.kernels
    named = {
        "circular buffer": [buffer.name for buffer in program.circular_buffers],
        "setting": [each.name for each in (*program.tuning.settings, *program.tuning.derived)],
        "semaphore": list(program.semaphores),
        "constant": [each.name for kernel in kernels for each in kernel.constants],
        "argument": [each.name for kernel in kernels for each in kernel.arguments],
    }
    for what, names in named.items():
        for name in names:
            if not _IDENTIFIER.fullmatch(name):
                yield f"has a {what} '{name}', which is no identifier of C++"


def _number_faults(program: Program) -> Iterator[str]:
    """Yields errors of plain numbers."""
    counts = {"inputs": [program.inputs], "work_units": [program.work_units]}
    costs = program.costs
    counts["costs"] = [getattr(costs, field.name) for field in dataclasses.fields(costs)]
    counts["traffic"] = [n for each in program.traffic for n in (each.bytes, each.least)]
    counts["semaphore_values"] = list(program.semaphore_values)
    for name, numbers in counts.items():
        if any(number < 0 for number in numbers):
            yield f"has a negative number in '{name}'"
    arguments = [each.value for kernel in program.kernels for each in kernel.arguments]
    constants = [each.value for kernel in program.kernels for each in kernel.constants]
    numbers = (*arguments, *constants, *program.semaphore_values)
    for number in numbers:
        if isinstance(number, int) and not -(1 << 31) <= number < 1 << 32:
            yield f"gives a kernel {number}, which has more than 32 bits"


def _tuning_faults(program: Program) -> Iterator[str]:
    """Yields errors of settings and expressions; without errors, every expression has a value."""
    tuning = program.tuning
    known = {FP32_DESTINATION}
    for item in (*tuning.settings, *tuning.derived):
        if item.name in (L1_BYTES, MATH_FIDELITY, MATH_APPROX_MODE):
            yield f"has a setting '{item.name}', which is the name of something else there"
        if item.name in known:
            yield f"has two values '{item.name}'"
        if isinstance(item, Derived):
            yield from _unknown_names(item.value, known)
        known.add(item.name)
    for size in _sizes(program):
        yield from _unknown_names(size, known)
    faults = [s.name for s in tuning.settings if s.value < 0]
    yield from (f"has a setting '{name}' that is negative" for name in faults)


def _unknown_names(size: Size, known: set[str]) -> Iterator[str]:
    for name in names_in(size):
        if name not in known:
            yield f"names the value '{name}', which it does not have"


def _sizes(program: Program) -> Iterator[Size]:
    """Yields all expressions of the program besides derived values."""
    yield from (buffer.pages for buffer in program.circular_buffers)
    yield from (rule.condition for rule in program.tuning.rules)
    yield from (constant.value for kernel in program.kernels for constant in kernel.constants)
    for traffic in program.traffic:
        if isinstance(traffic.division, BlockTiles):
            yield from (traffic.division.rows, traffic.division.columns)
    for area in (program.cores, *(kernel.cores for kernel in program.kernels)):
        yield from (area.first_column, area.first_row, area.last_column, area.last_row)


def _part_faults(program: Program) -> Iterator[str]:
    try:
        broken = [rule for rule in program.tuning.rules if not program.value(rule.condition)]
        for size in _sizes(program):
            program.value(size)
    except ZeroDivisionError:
        yield "divides by a setting that is 0"
        return
    for rule in broken:
        yield f"breaks a rule: {rule.message}"
    yield from _duplicates("circular buffers", [b.name for b in program.circular_buffers])
    yield from _duplicates("kernels", [kernel.name for kernel in program.kernels])
    yield from _duplicates("semaphores", list(program.semaphores))
    if len(program.semaphore_values) not in (0, len(program.semaphores)):
        yield (
            f"says what {len(program.semaphore_values)} semaphores start as, but has "
            f"{len(program.semaphores)}"
        )
    indices = [buffer.index for buffer in program.circular_buffers]
    yield from _duplicates("circular buffers with index", [str(index) for index in indices])
    for buffer in program.circular_buffers:
        if not 0 <= buffer.index < CIRCULAR_BUFFERS:
            yield (
                f"has a circular buffer {buffer.index}, but a core has {CIRCULAR_BUFFERS}, "
                "counted from 0"
            )
        if program.value(buffer.pages) < isinstance(buffer.pages, int) or buffer.page_size < 1:
            yield f"has a circular buffer '{buffer.name}' without room for a page"
    for index in program.compute.unpack_to_fp32:
        if index not in indices:
            yield f"unpacks the circular buffer {index}, which it does not have"
    for kernel in program.kernels:
        yield from _kernel_faults(kernel, program)
    for first, second in combinations(program.kernels, 2):
        shared = program.cores_of(first).meets(program.cores_of(second))
        if first.processor is second.processor and shared:
            yield (
                f"runs two kernels on the {first.processor.value} of one core: '{first.name}' and "
                f"'{second.name}'"
            )


def _kernel_faults(kernel: Kernel, program: Program) -> Iterator[str]:
    what = f"has a kernel '{kernel.name}' that"
    for name in kernel.semaphores:
        if name not in program.semaphores:
            yield f"{what} uses the semaphore '{name}', which the program does not have"
    yield from _duplicates(f"constants of '{kernel.name}'", [c.name for c in kernel.constants])
    yield from _duplicates(f"arguments of '{kernel.name}'", [a.name for a in kernel.arguments])
    indices = {buffer.index for buffer in program.circular_buffers}
    for constant in kernel.constants:
        is_index = constant.name.startswith(BUFFER_CONSTANT) and isinstance(constant.value, int)
        if is_index and constant.value not in indices:
            yield (
                f"{what} uses circular buffer {constant.value} as '{constant.name}', but the "
                "program has none with that index"
            )
    inner, outer = program.cores_of(kernel), program.core_range
    inside = (
        outer.first_column <= inner.first_column <= inner.last_column <= outer.last_column
        and outer.first_row <= inner.first_row <= inner.last_row <= outer.last_row
    )
    if not inside:
        yield f"{what} runs outside the cores of the program"
    shares = any(a.value in (Place.FIRST, Place.COUNT) for a in kernel.arguments)
    if shares and not program.work_units:
        yield f"{what} takes a share of the work, but the program has no work_units"


def _duplicates(what: str, names: list[str]) -> Iterator[str]:
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield f"has two {what} '{name}'"


MEANING = "ttmetal.meaning"
"""Attribute of a function with the semantics of a program."""


@dataclass(frozen=True)
class Launch:
    """A launch of a program."""

    op: Operation
    program: Program
    meaning: str
    """Symbol of the function with the program's semantics."""

    @property
    def inputs(self) -> tuple[SSAValue, ...]:
        """Tensors that are read."""
        return tuple(self.op.operands[: self.program.inputs])

    @property
    def outputs(self) -> tuple[SSAValue, ...]:
        """Tensors that are written."""
        return tuple(self.op.operands[self.program.inputs :])


@dataclass(frozen=True)
class DeviceProgram:
    """A program with the layouts of the tensors that it is launched on."""

    program: Program
    placements: tuple[TensorPlacement, ...]
    """Placements of inputs, then outputs."""
    meaning: str


def attribute_of(op: Operation, name: str) -> Attribute | None:
    """Returns a property or attribute of an op by name, or None."""
    found = op.properties.get(name)
    return found if found is not None else op.attributes.get(name)


def launch_of(op: Operation) -> Launch:
    """Returns the launch of a `run_program`.

    Raises:
        CompileError: at the op, if it has no program or no meaning.
    """
    program = attribute_of(op, "program")
    meaning = attribute_of(op, "meaning")
    if not isinstance(program, ProgramAttr) or not isinstance(meaning, SymbolRefAttr):
        raise CompileError(
            f"{op.name} needs the attributes 'program' and 'meaning'",
            op,
            remedy="let 'meaning' name a function, or a declaration of one, of what it computes",
        )
    return Launch(op, program.data, meaning.string_value())


def filling_launch(value: SSAValue) -> Operation | None:
    """Returns the launch that writes a new tensor, or None."""
    for use in value.uses:
        if operation_name(use.operation) == RUN_PROGRAM:
            if use.index >= launch_of(use.operation).program.inputs:
                return use.operation
    return None


def functions_of(module: ModuleOp) -> Iterator[FuncOp]:
    """Yields all functions of a module."""
    return (op for op in module.body.block.ops if isinstance(op, FuncOp))


def is_meaning(function: FuncOp) -> bool:
    """Returns whether a function has the semantics of a program."""
    return MEANING in function.attributes


def is_host_function(function: FuncOp) -> bool:
    """Returns whether a function may launch programs.

    Others are kernels, semantics of programs, or CPU functions.
    """
    if is_meaning(function) or is_cpu_function(function):
        return False
    return KERNEL_THREAD not in function.attributes


def constants_of(function: FuncOp) -> list[Operation]:
    """Returns the constants of a host function, in order."""
    return [op for op in body_of(function).ops if operation_name(op) == CONSTANT]


def launches(functions: Iterable[FuncOp]) -> Iterator[Launch]:
    """Yields the launches of host functions, in order."""
    for function in functions:
        for op in body_of(function).ops:
            if operation_name(op) == RUN_PROGRAM:
                yield launch_of(op)


def holds_programs(module: ModuleOp) -> bool:
    """Returns whether functions of a module launch programs."""
    hosts = (op for op in functions_of(module) if is_host_function(op) and not op.is_declaration)
    return any(operation_name(op) == RUN_PROGRAM for host in hosts for op in body_of(host).ops)


def device_programs(functions: Iterable[FuncOp]) -> list[DeviceProgram]:
    """Returns the programs that host functions launch, in the order of their first launch.

    Raises:
        ValueError: if two different programs have one name, or one is launched on tensors of
            different layouts.
    """
    known: dict[str, DeviceProgram] = {}
    for launch in launches(functions):
        program = launch.program
        placements = tuple(placement_of(value) for value in launch.op.operands)
        described = DeviceProgram(program, placements, launch.meaning)
        first = known.setdefault(program.name, described)
        if (first.program, first.meaning) != (program, launch.meaning):
            raise ValueError(f"two programs are called '{program.name}'")
        if not _same_pages(first.placements, placements):
            raise ValueError(f"'{program.name}' is launched on tensors of different layouts")
    return list(known.values())


def _same_pages(first: Iterable[TensorPlacement], second: Iterable[TensorPlacement]) -> bool:
    """Returns whether tensors have the same kind of pages; logical shapes may differ."""
    pairs = zip(first, second, strict=True)
    return all(
        (a.data_type, a.layout, a.buffer_type) == (b.data_type, b.layout, b.buffer_type)
        for a, b in pairs
    )
