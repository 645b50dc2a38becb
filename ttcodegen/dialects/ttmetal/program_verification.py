"""Verification of device programs: grids, arguments, circular buffers and symbols of launches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import cast

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp

from ttcodegen.dialects.operations.functions import KERNEL_THREAD
from ttcodegen.dialects.ttcore.dialect import system_of
from ttcodegen.dialects.ttcore.tile import TileType
from ttcodegen.dialects.ttkernel.attributes import CBType, ThreadType
from ttcodegen.dialects.ttkernel.operation import constant_integer, kernel_thread
from ttcodegen.dialects.ttmetal.device_module import (
    Launch,
    attribute_of,
    functions_of,
    is_host_function,
    launches,
)
from ttcodegen.dialects.ttmetal.programs import (
    ACCESSOR_ARGUMENTS,
    NAMED_ARGUMENT,
    RUN_TIME_ARGUMENT,
    Kernel,
    Processor,
    Program,
)
from ttcodegen.foundation.diagnostics import Diagnostics
from ttcodegen.systems.cards import default_system
from ttcodegen.systems.description import DEFAULT_ARCHITECTURE


def verify_programs(module: ModuleOp) -> None:
    """Verifies that a module has the functions that its programs name, and that they fit.

    Raises:
        CompileError: with all errors, each at the op that runs the program.
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
            on_cores = (
                program.circular_buffers,
                program.kernels,
                program.tuning,
                program.semaphore_values,
            )
            for number in _numbers_beyond_words(on_cores):
                message = f"'{program.name}' has the number {number}: a core counts in 32 bits"
                diagnostics.error(message, launch.op)
            for kernel in program.kernels:
                if (function := known.get(kernel.function)) is not None:
                    _check_arguments(kernel, function, diagnostics)
                    _check_buffers(kernel, function, program, diagnostics)
    diagnostics.raise_errors()


def _numbers_beyond_words(node: object) -> Iterator[int]:
    """Yields the integers in a part of a program that exceed 32 bits."""
    match node:
        case bool():
            pass
        case int():
            if not -(1 << 31) <= node < 1 << 32:
                yield node
        case tuple():
            for part in cast("tuple[object, ...]", node):
                yield from _numbers_beyond_words(part)
        case _ if is_dataclass(node):
            for field in fields(node):
                yield from _numbers_beyond_words(getattr(node, field.name))
        case _:
            pass


def _grid_faults(launch: Launch, grid: tuple[int, int]) -> Iterator[str]:
    program, (rows, columns) = launch.program, grid
    cores = program.core_range
    if cores.last_row >= rows or cores.last_column >= columns:
        yield (
            f"'{program.name}' runs on cores up to column {cores.last_column} and row "
            f"{cores.last_row}, but the chip has {columns} columns and {rows} rows, counted from 0"
        )


def _check_arguments(kernel: Kernel, function: FuncOp, diagnostics: Diagnostics) -> None:
    """Verifies that a kernel gets the arguments that its function reads."""
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
    """Verifies that the pages of circular buffers of tiles are such tiles."""
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
    """Returns the thread that runs a kernel."""
    return ThreadType.COMPUTE if kernel.processor is Processor.COMPUTE else ThreadType.NOC
