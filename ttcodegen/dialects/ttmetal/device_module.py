"""Queries on a module of device programs, for emission.

Such a module holds host functions, which create buffers and launch programs on them; for each
program a function that says in TTIR what it means; and the compute kernels as functions of their
own. A program may be launched several times, on buffers of the same layouts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp, SymbolRefAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, SSAValue

from ttcodegen.dialects.operations.functions import KERNEL_THREAD, body_of, is_cpu_function
from ttcodegen.dialects.operations.operation import operation_name
from ttcodegen.dialects.ttmetal.program_attribute import ProgramAttr
from ttcodegen.dialects.ttmetal.programs import (
    CONSTANT,
    RUN_PROGRAM,
    Program,
)
from ttcodegen.dialects.ttnn.placement import TensorPlacement, placement_of
from ttcodegen.foundation.diagnostics import CompileError

MEANING = "ttmetal.meaning"
"""Marks a function that says what a program computes."""


@dataclass(frozen=True)
class Launch:
    """One run of a program."""

    op: Operation
    program: Program
    meaning: str
    """The symbol of the function that says what the program computes."""

    @property
    def inputs(self) -> tuple[SSAValue, ...]:
        """The tensors that are read."""
        return tuple(self.op.operands[: self.program.inputs])

    @property
    def outputs(self) -> tuple[SSAValue, ...]:
        """The tensors that are written."""
        return tuple(self.op.operands[self.program.inputs :])


@dataclass(frozen=True)
class DeviceProgram:
    """A program with the layouts of what it is launched on."""

    program: Program
    placements: tuple[TensorPlacement, ...]
    """Those of what it reads, then of what it writes."""
    meaning: str


def attribute_of(op: Operation, name: str) -> Attribute | None:
    """An attribute or property of an op, None if it has none of that name."""
    found = op.properties.get(name)
    return found if found is not None else op.attributes.get(name)


def launch_of(op: Operation) -> Launch:
    """The program that a `run_program` launches.

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
    """The launch that writes a new tensor, None if none does."""
    for use in value.uses:
        if operation_name(use.operation) == RUN_PROGRAM:
            if use.index >= launch_of(use.operation).program.inputs:
                return use.operation
    return None


def functions_of(module: ModuleOp) -> Iterator[FuncOp]:
    """All functions of a module."""
    return (op for op in module.body.block.ops if isinstance(op, FuncOp))


def is_meaning(function: FuncOp) -> bool:
    """True if a function says what a program computes."""
    return MEANING in function.attributes


def is_host_function(function: FuncOp) -> bool:
    """True if a function launches programs; the others are kernels, meanings of programs, or what
    the CPU computes between them."""
    if is_meaning(function) or is_cpu_function(function):
        return False
    return KERNEL_THREAD not in function.attributes


def constants_of(function: FuncOp) -> list[Operation]:
    """The constants of a host function, in order."""
    return [op for op in body_of(function).ops if operation_name(op) == CONSTANT]


def launches(functions: Iterable[FuncOp]) -> Iterator[Launch]:
    """The launches of some host functions, in order."""
    for function in functions:
        for op in body_of(function).ops:
            if operation_name(op) == RUN_PROGRAM:
                yield launch_of(op)


def holds_programs(module: ModuleOp) -> bool:
    """True if functions of a module launch programs."""
    hosts = (op for op in functions_of(module) if is_host_function(op) and not op.is_declaration)
    return any(operation_name(op) == RUN_PROGRAM for host in hosts for op in body_of(host).ops)


def device_programs(functions: Iterable[FuncOp]) -> list[DeviceProgram]:
    """The programs that host functions launch, each once, in the order of their first launch.

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
    """True if tensors have the same kind of pages; their logical shapes may differ."""
    pairs = zip(first, second, strict=True)
    return all(
        (a.data_type, a.layout, a.buffer_type) == (b.data_type, b.layout, b.buffer_type)
        for a, b in pairs
    )
