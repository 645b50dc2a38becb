"""Queries on a module of device programs, for emission.

Such a module holds host functions, which create buffers and launch programs on them; for each
program a function that says in TTIR what it means; and the compute kernels as functions of their
own. A program may be launched several times, on buffers of the same layouts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp, StringAttr, SymbolRefAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, SSAValue

from ttcodegen.dialects.operations.functions import KERNEL_THREAD, body_of, is_cpu_function
from ttcodegen.dialects.operations.operation import operation_name
from ttcodegen.dialects.ttcore.dialect import system_of
from ttcodegen.dialects.ttcore.tile import TileType
from ttcodegen.dialects.ttkernel.attributes import CBType, ThreadType
from ttcodegen.dialects.ttkernel.operation import constant_integer, kernel_thread
from ttcodegen.dialects.ttmetal.program_attribute import ProgramAttr
from ttcodegen.dialects.ttmetal.programs import (
    ACCESSOR_ARGUMENTS,
    CONSTANT,
    NAMED_ARGUMENT,
    RUN_PROGRAM,
    RUN_TIME_ARGUMENT,
    Kernel,
    Processor,
    Program,
)
from ttcodegen.dialects.ttnn.placement import TensorPlacement, placement_of
from ttcodegen.foundation.diagnostics import CompileError, Diagnostics
from ttcodegen.systems.cards import default_system
from ttcodegen.systems.description import DEFAULT_ARCHITECTURE

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


def verify_programs(module: ModuleOp) -> None:
    """Checks that the module has the functions which its programs name, and that they fit.

    Raises:
        CompileError: with all faults, each at the op that runs the program.
    """
    known = {function.sym_name.data: function for function in functions_of(module)}
    hosts = [function for function in known.values() if is_host_function(function)]
    diagnostics = Diagnostics()
    first: dict[str, Launch] = {}
    system = system_of(module) or default_system(DEFAULT_ARCHITECTURE)
    grid = system.chip.grid
    for launch in launches(hosts):
        program = launch.program
        before = first.setdefault(program.name, launch)
        if (before.program, before.meaning) != (program, launch.meaning):
            diagnostics.error(
                f"another program is called '{program.name}' too",
                launch.op,
                remedy="give each program a name of its own",
            )
        for fault in (*_symbol_faults(launch, known), *_grid_faults(launch, grid)):
            diagnostics.error(fault, launch.op)
        if launch is before:
            for kernel in program.kernels:
                if (function := known.get(kernel.function)) is not None:
                    _check_arguments(kernel, function, diagnostics)
                    _check_buffers(kernel, function, program, diagnostics)
    diagnostics.raise_errors()


def _grid_faults(launch: Launch, grid: tuple[int, int]) -> Iterator[str]:
    program, (rows, columns) = launch.program, grid
    cores = program.core_range
    if cores.last_row >= rows or cores.last_column >= columns:
        yield (
            f"'{program.name}' runs on cores up to column {cores.last_column} and row "
            f"{cores.last_row}, but the chip has {columns} columns and {rows} rows, counted from 0"
        )


def _check_arguments(kernel: Kernel, function: FuncOp, diagnostics: Diagnostics) -> None:
    """Checks that a kernel is given the arguments that its function asks for."""
    declared = {constant.name for constant in kernel.constants}
    declared |= {f"{semaphore}_semaphore" for semaphore in kernel.semaphores}
    for op in function.walk():
        if op.name == NAMED_ARGUMENT:
            name = attribute_of(op, "arg_name")
            if isinstance(name, StringAttr) and name.data not in declared:
                diagnostics.error(f"the kernel '{kernel.name}' has no constant '{name.data}'", op)
        elif op.name == RUN_TIME_ARGUMENT:
            position = constant_integer(op.operands[0])
            count = len(kernel.arguments)
            if position is not None and not 0 <= position < count:
                diagnostics.error(
                    f"the kernel '{kernel.name}' has {count} runtime arguments, none at position "
                    f"{position}",
                    op,
                )
    accessors = [op for op in function.walk() if op.name == ACCESSOR_ARGUMENTS]
    if len(accessors) > len(kernel.accessors):
        diagnostics.error(
            f"the kernel '{kernel.name}' has accessors for {len(kernel.accessors)} operands, but "
            f"uses {len(accessors)}",
            accessors[len(kernel.accessors)],
        )


def _check_buffers(
    kernel: Kernel, function: FuncOp, program: Program, diagnostics: Diagnostics
) -> None:
    """Checks that circular buffers of tiles have pages that are such tiles."""
    buffers = program.buffers_of(kernel)
    for op in function.walk():
        if op.name != NAMED_ARGUMENT or not isinstance(op.results[0].type, CBType):
            continue
        name, tile = attribute_of(op, "arg_name"), op.results[0].type.element_type
        buffer = buffers.get(name.data) if isinstance(name, StringAttr) else None
        if buffer is None or not isinstance(tile, TileType):
            continue
        if (buffer.data_type.mlir, buffer.page_size) != (tile.format_name.data, tile.size):
            diagnostics.error(
                f"the kernel '{kernel.name}' takes the pages of '{buffer.name}' for {tile}, but "
                f"they are {buffer.data_type.mlir}, {buffer.page_size} bytes each",
                op,
            )


def _symbol_faults(launch: Launch, functions: Mapping[str, FuncOp]) -> Iterator[str]:
    program = launch.program
    meaning = functions.get(launch.meaning)
    if meaning is None:
        yield f"there is no function @{launch.meaning} with the meaning of '{program.name}'"
    else:
        type_ = meaning.function_type
        if (len(type_.inputs), len(type_.outputs)) != (len(launch.inputs), len(launch.outputs)):
            yield (
                f"'{program.name}' has {len(launch.inputs)} inputs and {len(launch.outputs)} "
                f"outputs, its meaning @{launch.meaning} has {len(type_.inputs)} and "
                f"{len(type_.outputs)}"
            )
    for kernel in program.kernels:
        function = functions.get(kernel.function)
        thread = _thread_of(kernel)
        if function is None:
            yield f"there is no function @{kernel.function} for the kernel '{kernel.name}'"
        elif KERNEL_THREAD not in function.attributes or kernel_thread(function) is not thread:
            yield (
                f"the {kernel.processor.value} '{kernel.name}' of '{program.name}' needs a kernel "
                f"of the thread {thread.value}, which @{kernel.function} is not"
            )


def _thread_of(kernel: Kernel) -> ThreadType:
    """The thread that runs a kernel."""
    return ThreadType.COMPUTE if kernel.processor is Processor.COMPUTE else ThreadType.NOC


def _same_pages(first: Iterable[TensorPlacement], second: Iterable[TensorPlacement]) -> bool:
    """True if tensors have the same kind of pages; their logical shapes may differ."""
    pairs = zip(first, second, strict=True)
    return all(
        (a.data_type, a.layout, a.buffer_type) == (b.data_type, b.layout, b.buffer_type)
        for a, b in pairs
    )
