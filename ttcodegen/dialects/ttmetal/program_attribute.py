"""Programs as an attribute, and what can be wrong with one, whatever it is run on."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from itertools import combinations

from xdsl.ir import Data
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from ttcodegen.dialects.core.records import parse_record, print_record
from ttcodegen.dialects.ttmetal.programs import (
    BUFFER_CONSTANT,
    CIRCULAR_BUFFERS,
    FP32_DESTINATION,
    L1_BYTES,
    MATH_APPROX_MODE,
    MATH_FIDELITY,
    BlockTiles,
    Kernel,
    Place,
    Program,
)
from ttcodegen.dialects.ttmetal.tuning import Derived, Size, names_in

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
    """Errors of a program that hold for any device."""
    faults = [*_name_faults(program), *_number_faults(program), *_tuning_faults(program)]
    yield from faults
    if not faults:
        yield from _part_faults(program)


def _name_faults(program: Program) -> Iterator[str]:
    """Errors of the C++ names of a program."""
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
    """Errors of numbers that are no expressions."""
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
    """Errors of settings and expressions: without any, each has a value."""
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
    """Every expression of the program besides derived values."""
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
