"""Recording of host functions as C++ statements, with equal device programs shared."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Operation, SSAValue

from ttcodegen.conversions.host_functions.cpp_interface import DEVICE, ConstantFile, returned_type
from ttcodegen.conversions.host_functions.cpu_functions import HOST_PARTS, HOST_TENSOR, CppFunction
from ttcodegen.conversions.host_functions.expressions import DIMENSIONS, NamedConstant
from ttcodegen.conversions.host_functions.statements import (
    SourceFacts,
    Statement,
    StatementRecorder,
)
from ttcodegen.conversions.mesh import ChipExchange
from ttcodegen.dialects.operations.functions import body_of, callee_of
from ttcodegen.dialects.operations.operation import operation_name
from ttcodegen.dialects.ttcore.device import ONE_CHIP, declared_mesh
from ttcodegen.dialects.ttcore.shards import Shards
from ttcodegen.dialects.ttmetal.device_module import (
    DeviceProgram,
    Launch,
    attribute_of,
    device_programs,
    launch_of,
    launches,
)
from ttcodegen.dialects.ttmetal.programs import (
    CONSTANT,
    CREATE_BUFFER,
    ENQUEUE_READ_BUFFER,
    ENQUEUE_WRITE_BUFFER,
    RUN_PROGRAM,
    VIEW,
    Kernel,
    Program,
)
from ttcodegen.dialects.ttnn.placement import (
    TensorPlacement,
    TTNNLayoutAttr,
    has_placement,
    placement_of,
)
from ttcodegen.emitc.spelling import NameScope, Text, identifier, string_literal
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.naming.functions import purpose_of_cpu_function
from ttcodegen.naming.programs import (
    kernel_name,
    name_in_kernels,
    named_shapes,
    operand_names,
    purpose_of_program,
    run_name,
    shared_program_names,
    task_of_kernel,
)
from ttcodegen.ops.core.calls import Argument, Call, Use
from ttcodegen.parsing.structure import operation_name as structure_operation_name

if TYPE_CHECKING:
    from ttcodegen.naming.values import ValueNames


# Device programs that differ only in names are built once in C++.

KernelPaths = Mapping[tuple[str, str], str]
"""File of each kernel, by the names of the program and the kernel."""


@dataclass(frozen=True)
class SharedProgram:
    """A device program as it is built in C++."""

    described: DeviceProgram
    """The program under its C++ name, with the layouts of its operands."""
    made: tuple[int, ...]
    """Positions of the operands that the run function creates and returns; it takes the others."""

    @property
    def program(self) -> Program:
        """The device program."""
        return self.described.program

    def operand_names(self) -> list[str]:
        """Returns the names of the tensors that the program reads and writes."""
        return operand_names(self.program, len(self.described.placements))


@dataclass(frozen=True)
class SharedPrograms:
    """Device programs of a module as they are built in C++."""

    programs: Sequence[SharedProgram]
    """Programs in the order of their first launch."""
    paths: KernelPaths
    """Files of their kernels."""
    by_name: Mapping[str, SharedProgram]
    """Shared program of each program of the module, by its name in the module."""
    made: Collection[SSAValue]
    """Tensors that the run functions create."""


def share_programs(functions: Sequence[FuncOp], paths: KernelPaths) -> SharedPrograms:
    """Merges programs that run the same kernels on tensors with equal placements.

    The C++ builds each merged program once and runs it on different tensors.

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
    """Yields tensors that are created right before the launch that fills them."""
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
    """Returns per program the operands that are new and placed alike in all launches."""
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
    """Key of a program's C++: its description without names."""
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
    """Renames a program, its kernels after it, and its circular buffers.

    Circular buffers get the names used in the kernels, which several programs may share."""
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


# Shards of tensors in the C++ of host programs.


def shards_text(shards: Shards, memory_layout: str) -> str:
    """Spells the shards of a tensor as an initializer of `support::Shards`.

    Raises:
        CompileError: if the core ranges are not one rectangle.
    """
    if len(shards.core_ranges) != 1:
        raise CompileError(
            "programs take and return tensors whose shards are on one rectangle of cores",
            remedy="choose a core grid, or one CoreRange",
        )
    (cores,) = shards.core_ranges
    sizes = ", ".join(map(str, shards.shape))
    places = (cores.first_column, cores.first_row, cores.last_column, cores.last_row)
    return (
        f"{{tt::tt_metal::TensorMemoryLayout::{memory_layout.upper()}, {{{sizes}}}, "
        f"{{{', '.join(map(str, places))}}}, "
        f"tt::tt_metal::ShardOrientation::{shards.orientation.name}}}"
    )


# Statements of host functions of device programs.

TENSOR = "support::DeviceTensor"
PROGRAMS = "programs"
"""Field of the constants that holds the device programs."""


NumberedExchanges = Mapping[Operation, tuple[int, ChipExchange]]
"""Exchanges between devices that replace calls of CPU functions, numbered."""


def creation_arguments(placement: TensorPlacement) -> list[Text]:
    """Returns the arguments of `support::create_tensor` for a placement."""
    arguments = [*placement_arguments(placement), Text(DEVICE)]
    if placement.buffer_type == "l1" or placement.shards is not None:
        memory = placement.buffer_type.upper()
        arguments.append(Text(f"tt::tt_metal::BufferType::{memory}"))
    if placement.shards is not None and placement.memory_layout is not None:
        shards = shards_text(placement.shards, placement.memory_layout)
        arguments.append(Text(f"support::Shards{shards}"))
    return arguments


def placement_arguments(placement: TensorPlacement) -> list[Text]:
    """Returns shape, data type and layout as the support functions take them."""
    sizes = ", ".join(str(size) for size in placement.shape)
    return [
        NamedConstant(f"{{{sizes}}}", DIMENSIONS),
        Text(f"DataType::{placement.data_type.cpp}"),
        Text(f"Layout::{placement.layout.name}"),
    ]


class DeviceRecorder(StatementRecorder):
    """Records the statements of a host function."""

    def __init__(
        self,
        facts: SourceFacts,
        names: ValueNames,
        programs: SharedPrograms,
        cpu_functions: Mapping[str, CppFunction],
        exchanges: NumberedExchanges,
    ) -> None:
        super().__init__(facts, names)
        self.programs = programs
        self.cpu_functions = cpu_functions
        self._exchanges = exchanges
        self._on_mesh = False

    def record(self, ops: Iterable[Operation]) -> list[Statement]:
        """The statements of ops in order.

        Raises:
            CompileError: if an op cannot run on the host.
        """
        for op in ops:
            rule = _RULES.get(structure_operation_name(op))
            if rule is None:
                raise CompileError(f"'{structure_operation_name(op)}' cannot run on the host", op)
            self._op = op
            self._on_mesh = declared_mesh(op) != ONE_CHIP
            rule(self, op)
        return self.statements

    def type_of(self, value: SSAValue) -> str:
        """Returns the C++ type of a tensor: one with a layout is on the device."""
        on_device = isinstance(getattr(value.type, "encoding", None), TTNNLayoutAttr)
        return TENSOR if on_device else self._host_tensor

    @property
    def _host_tensor(self) -> str:
        return HOST_PARTS if self._on_mesh else HOST_TENSOR

    def load(self, op: Operation) -> None:
        """Loads a constant of the module from its file."""
        result = op.results[0]
        file = self.facts.constant_names.unique(identifier(self.names[result]))
        placement, value = placement_of(result), attribute_of(op, "value")
        assert value is not None
        self.facts.constants.append(ConstantFile(file, value, placement.data_type))
        name = Text(string_literal(file))
        arguments = (name, *placement_arguments(placement), Text(DEVICE))
        self._call(op, "support::load_tensor", *arguments, type=TENSOR)

    def create(self, op: Operation) -> None:
        """Creates a tensor, unless the run function or the copy that fills it does."""
        if op.results[0] not in self.programs.made and self._copied(op) is None:
            if not has_placement(op.results[0]):
                raise CompileError(
                    f"'{op.name}' makes a tensor that has no layout",
                    op,
                    remedy="give its type a layout (#ttnn.ttnn_layout), as lowering does",
                )
            arguments = creation_arguments(placement_of(op.results[0]))
            self._call(op, "support::create_tensor", *arguments, type=TENSOR)

    def view(self, op: Operation) -> None:
        """Views the same memory in another shape."""
        shape = placement_arguments(placement_of(op.results[0]))[0]
        self._call(op, "support::view", Use(op.operands[0]), shape, type=TENSOR)

    def launch(self, op: Operation) -> None:
        """Runs a program; returns the tensors that its run function creates."""
        shared = self.programs.by_name[launch_of(op).program.name]
        taken = [place for place in range(len(op.operands)) if place not in shared.made]
        results = tuple(op.operands[place] for place in shared.made)
        types = (TENSOR,) * len(results)
        programs = Call(f"*constants.{PROGRAMS}", (), "Programs", "literal")
        arguments = (programs, *(Use(op.operands[place]) for place in taken), Text(DEVICE))
        names = shared.operand_names()
        labels = ("", *(names[place] for place in taken))
        name = run_name(shared.program.name)
        type_ = returned_type(types) or "void"
        purpose = purpose_of_program(shared.program.name)
        call = Call(name, arguments, type_, parameters=labels, purpose=purpose)
        self._add(call, results, types)

    def read(self, op: Operation) -> None:
        """Copies a tensor to the host."""
        if all(use.operation in self._exchanges for use in op.results[0].uses):
            return
        callee = "parts_from_device" if self._on_mesh else "from_device"
        self._call(op, f"support::cpu::{callee}", Use(op.operands[0]), type=self._host_tensor)

    def write_back(self, op: Operation) -> None:
        """Copies a host tensor to the device, or exchanges shards between devices."""
        call = op.operands[0].owner
        if isinstance(call, Operation) and call in self._exchanges:
            self._exchange(op, *self._exchanges[call])
            return
        host, target = op.operands
        created = target.owner
        if isinstance(created, Operation) and self._copied(created) is op:
            arguments = (Use(host), *creation_arguments(placement_of(target)))
            call = Call("support::cpu::copy_to_device", arguments, TENSOR)
            self._add(call, (target,), (TENSOR,))
            return
        self._call(op, "support::cpu::to_device", Use(host), Use(target))

    def _copied(self, created: Operation) -> Operation | None:
        """Returns the host copy that follows the creation of a tensor and fills it, if any.

        Both are then written as one call."""
        after = created.next_op
        if after is None or {
            structure_operation_name(created),
            structure_operation_name(after),
        } != {
            CREATE_BUFFER,
            ENQUEUE_WRITE_BUFFER,
        }:
            return None
        is_exchanged = after.operands[0].owner in self._exchanges
        return after if after.operands[-1] is created.results[0] and not is_exchanged else None

    def call(self, op: Operation) -> None:
        """Calls a function on the CPU."""
        if op in self._exchanges:
            return
        type_ = self._host_tensor
        function = self._cpu_function(op)
        operands: list[Argument] = [*map(Use, op.operands)]
        if not self._on_mesh or function.joins_chips:
            purpose = purpose_of_cpu_function(function.name)
            call = Call(function.name, tuple(operands), type_, purpose=purpose)
            self._add(call, op.results, (type_,) * len(op.results))
        else:
            # Without operands the device determines the number of calls.
            among = operands or [Text(DEVICE)]
            called = Text(function.name)
            self._call(op, "support::cpu::on_each_chip", called, *among, type=type_)

    def _exchange(self, op: Operation, number: int, exchange: ChipExchange) -> None:
        """Exchanges shards between devices, after the target is created."""
        sharing = exchange.sharing
        fields = {
            "axis": sharing.axis,
            "pages": sharing.pages,
            "source_run": sharing.source_run,
            "target_run": sharing.target_run,
            "divides": str(sharing.divides).lower(),
            "joins": str(sharing.joins).lower(),
        }
        if sharing.pairs:
            pairs = ", ".join(f"{{{source}, {target}}}" for source, target in sharing.pairs)
            fields["pairs"] = f"{{{pairs}}}"
        self._call(
            op,
            "exchange",
            Call(f"*constants.{PROGRAMS}", (), "Programs", "literal"),
            Text(str(number)),
            Use(exchange.source),
            Use(exchange.target),
            Text("{" + ", ".join(f".{name} = {value}" for name, value in fields.items()) + "}"),
            Text(DEVICE),
        )

    def _call(self, op: Operation, callee: str, *arguments: Argument, type: str = "void") -> None:
        self._add(Call(callee, arguments, type), op.results, (type,) * len(op.results))

    def _cpu_function(self, op: Operation) -> CppFunction:
        function = self.cpu_functions.get(callee_of(op) or "")
        if function is None:
            raise CompileError("the host calls a function that is not a CPU function", op)
        return function


_RULES: Mapping[str, Callable[[DeviceRecorder, Operation], None]] = {
    CONSTANT: DeviceRecorder.load,
    CREATE_BUFFER: DeviceRecorder.create,
    RUN_PROGRAM: DeviceRecorder.launch,
    ENQUEUE_READ_BUFFER: DeviceRecorder.read,
    ENQUEUE_WRITE_BUFFER: DeviceRecorder.write_back,
    CallOp.name: DeviceRecorder.call,
    VIEW: DeviceRecorder.view,
}
"""Recording rule of each op of a host function."""
