"""Programs of the device that C++ builds once: those that differ in names only."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from ttcodegen.dialects.operations.functions import body_of
from ttcodegen.dialects.operations.operation import operation_name
from ttcodegen.dialects.ttmetal.device_module import (
    DeviceProgram,
    Launch,
    device_programs,
    launch_of,
    launches,
)
from ttcodegen.dialects.ttmetal.op_names import CREATE_BUFFER, RUN_PROGRAM
from ttcodegen.dialects.ttmetal.programs import Kernel, Program
from ttcodegen.dialects.ttnn.placement import TensorPlacement, placement_of
from ttcodegen.emitc.identifiers import NameScope
from ttcodegen.naming.programs import (
    kernel_name,
    name_in_kernels,
    named_shapes,
    operand_names,
    shared_program_names,
    task_of_kernel,
)

KernelPaths = Mapping[tuple[str, str], str]
"""The file of each kernel, by the names of its program and its own."""


@dataclass(frozen=True)
class SharedProgram:
    """A program as the C++ has it."""

    described: DeviceProgram
    """With its name in C++, and the layouts of its operands."""
    made: tuple[int, ...]
    """The operands that the function which runs it makes and returns; it takes the others."""

    @property
    def program(self) -> Program:
        """What is run."""
        return self.described.program

    def operand_names(self) -> list[str]:
        """What the function calls the tensors that are read and written."""
        return operand_names(self.program, len(self.described.placements))


@dataclass(frozen=True)
class SharedPrograms:
    """The programs of a module as the C++ has them."""

    programs: Sequence[SharedProgram]
    """In the order of their first launch."""
    paths: KernelPaths
    """The files of their kernels."""
    by_name: Mapping[str, SharedProgram]
    """What each program of the module is in C++, by its name there."""
    made: Collection[SSAValue]
    """The tensors that functions make which run programs."""


def share_programs(functions: Sequence[FuncOp], paths: KernelPaths) -> SharedPrograms:
    """Makes one program of those that run the same kernels in the same way, on tensors placed
    alike: the C++ builds it once, and runs it on other tensors.

    Args:
        functions: the host functions of a module.
        paths: the files of the kernels of its programs.
    """
    equal: dict[object, list[DeviceProgram]] = {}
    for program in device_programs(functions):
        equal.setdefault(_key(program, paths), []).append(program)
    made = _made_operands(functions)
    names = shared_program_names(named_shapes(members[0]) for members in equal.values())
    shared: list[SharedProgram] = []
    known: dict[tuple[str, str], str] = {}
    by_name: dict[str, SharedProgram] = {}
    for name, members in zip(names, equal.values(), strict=True):
        first = members[0]
        renamed = _renamed(first.program, name)
        common = set[int].intersection(*(made[member.program.name] for member in members))
        program = SharedProgram(replace(first, program=renamed), tuple(sorted(common)))
        shared.append(program)
        by_name.update((member.program.name, program) for member in members)
        for kernel, named in zip(first.program.kernels, renamed.kernels, strict=True):
            known[name, named.name] = paths[first.program.name, kernel.name]
    values = {
        value
        for launch, value in _created(functions)
        if list(launch.op.operands).index(value) in by_name[launch.program.name].made
    }
    return SharedPrograms(shared, known, by_name, values)


def _created(functions: Iterable[FuncOp]) -> Iterator[tuple[Launch, SSAValue]]:
    """The tensors that are created right before the launch which fills them."""
    for function in functions:
        created: set[SSAValue] = set()
        for op in body_of(function).ops:
            if operation_name(op) == CREATE_BUFFER:
                created.add(op.results[0])
                continue
            if operation_name(op) == RUN_PROGRAM:
                launch = launch_of(op)
                yield from ((launch, value) for value in launch.outputs if value in created)
            created.clear()


def _made_operands(functions: Sequence[FuncOp]) -> dict[str, set[int]]:
    """The operands of each program that are new, and placed alike, in all of its launches."""
    new: dict[Operation, set[SSAValue]] = {}
    for launch, value in _created(functions):
        new.setdefault(launch.op, set()).add(value)
    found: dict[str, set[int]] = {}
    placed: dict[str, list[TensorPlacement]] = {}
    for launch in launches(functions):
        name, operands = launch.program.name, launch.op.operands
        placements = [placement_of(value) for value in operands]
        known = placed.setdefault(name, placements)
        alike = {
            place
            for place, value in enumerate(operands)
            if value in new.get(launch.op, ()) and known[place] == placements[place]
        }
        found[name] = found.get(name, alike) & alike
    return found


def _key(described: DeviceProgram, paths: KernelPaths) -> object:
    """What the C++ of a program follows from, but for names."""
    program = described.program

    def unnamed(kernel: Kernel) -> Kernel:
        return replace(kernel, name=paths[program.name, kernel.name], function="")

    return (
        replace(
            program,
            name="",
            kernels=tuple(map(unnamed, program.kernels)),
            circular_buffers=tuple(replace(b, name="") for b in program.circular_buffers),
        ),
        described.placements,
    )


def _renamed(program: Program, name: str) -> Program:
    """A program under another name, after which its kernels are called; its circular buffers as
    they call them, which may be what they are for several programs."""
    scope = NameScope()
    buffers = tuple(
        replace(buffer, name=scope.unique(name_in_kernels(program, buffer)))
        for buffer in program.circular_buffers
    )
    kernels = tuple(
        replace(kernel, name=kernel_name(task_of_kernel(kernel.name, program.name), name))
        for kernel in program.kernels
    )
    return replace(program, name=name, circular_buffers=buffers, kernels=kernels)
