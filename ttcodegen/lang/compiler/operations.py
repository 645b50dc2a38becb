"""Compilation of operations to modules of a device program and its host function."""

from __future__ import annotations

import ast
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    ModuleOp,
    StringAttr,
    SymbolRefAttr,
    UnitAttr,
)
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Region, SSAValue

from ttcodegen.conversions.ttir_to_ttmetal.parts.compute import (
    SCALER,
    SCALER_TILES,
    ComputeKernel,
)
from ttcodegen.conversions.ttir_to_ttmetal.parts.data_movement import MovementKernel
from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.dialects.ttmetal.device_module import MEANING, ProgramAttr
from ttcodegen.dialects.ttmetal.programs import (
    CIRCULAR_BUFFERS,
    BufferAddress,
    CircularBuffer,
    ComputeSettings,
    CoreArea,
    Kernel,
    NamedConstant,
    Place,
    Processor,
    Program,
    RuntimeArgument,
)
from ttcodegen.dialects.ttnn.placement import placed_type
from ttcodegen.emission.manifest_entries import page_size
from ttcodegen.emitc.spelling import identifier
from ttcodegen.foundation.diagnostics import CompileError, Diagnostic
from ttcodegen.lang.compiler.compute.accumulation import AccumulatingWriter
from ttcodegen.lang.compiler.compute.accumulation_translation import AccumulationTranslator
from ttcodegen.lang.compiler.compute.expressions import INTEGERS
from ttcodegen.lang.compiler.movement.movement import MovementTranslator
from ttcodegen.lang.compiler.python.block_lifetimes import reserved_names
from ttcodegen.lang.compiler.python.captured import Captured, kernel_syntax, location
from ttcodegen.lang.compiler.python.numbers import Arithmetic
from ttcodegen.lang.compiler.python.pipe_nets import NetUses
from ttcodegen.lang.compiler.python.translation import KernelTranslator
from ttcodegen.lang.compiler.resources import (
    MovementNeeds,
    MovementResources,
    Needs,
    check_alike,
    check_memory,
    circular_buffer,
    own_buffer,
)
from ttcodegen.lang.simulator import context
from ttcodegen.lang.simulator.buffers import DataflowBuffer
from ttcodegen.lang.simulator.context import KernelKind, Launch
from ttcodegen.lang.simulator.tensors import Tensor
from ttcodegen.layout.placements import tile_bytes_of
from ttcodegen.naming.programs import address_name
from ttcodegen.ops.dialects import load_dialects

# Host functions that run the program of an operation

NamedTensors = dict[int, tuple[str, Tensor]]
"""Tensors with their names, by identity."""


@dataclass(frozen=True)
class OperationTensors:
    """Tensors that an operation reads or writes."""

    inputs: NamedTensors
    kept: NamedTensors
    """Partially written tensors, whose previous contents are inputs."""
    outputs: NamedTensors


def host_module(
    function: str, program: Program, kernels: Sequence[FuncOp], given: OperationTensors
) -> ModuleOp:
    """Builds a module with a program, its kernels, and a host function that runs the program."""
    inputs = [*given.inputs.values(), *given.kept.values()]
    outputs = list(given.outputs.values())
    ctx = load_dialects()
    body = Block(arg_types=[_type_of(tensor) for _, tensor in inputs])
    for argument, (name, _) in zip(body.args, inputs, strict=True):
        argument.name_hint = name
    read = list(body.args)[: len(given.inputs)]
    kept = dict(zip(given.kept, list(body.args)[len(read) :], strict=True))
    made: list[SSAValue] = []
    for key, (name, tensor) in given.outputs.items():
        if key in kept:
            made.append(kept[key])
            continue
        buffer = ctx.get_op("ttmetal.create_buffer").create(result_types=[_type_of(tensor)])
        buffer.results[0].name_hint = name
        body.add_op(buffer)
        made.append(buffer.results[0])
    meaning = f"{program.name}_meaning"
    run = ctx.get_op("ttmetal.run_program").create(
        operands=[*read, *made],
        properties={"program": ProgramAttr(program), "meaning": SymbolRefAttr(meaning)},
    )
    body.add_ops([run, ReturnOp(*made)])
    types = [value.type for value in body.args], [value.type for value in made]
    host = FuncOp(function, types, Region(body))
    host.arg_attrs = _names([name for name, _ in inputs])
    host.res_attrs = _names([name for name, _ in outputs])
    # The meaning is the Python operation itself, which TTIR has no ops for: a declaration only.
    declared = FuncOp.external(meaning, [value.type for value in read], types[1])
    declared.attributes[MEANING] = UnitAttr()
    return ModuleOp([host, declared, *kernels])


def _names(names: Sequence[str]) -> ArrayAttr[Any]:
    return ArrayAttr(DictionaryAttr({"ttir.name": StringAttr(name)}) for name in names)


def _type_of(tensor: Tensor) -> Any:
    return placed_type(tensor.placement)


# Operations become modules with a device program and a host function that runs it

_COORDINATES = (
    RuntimeArgument("node_column", Place.COLUMN),
    RuntimeArgument("node_row", Place.ROW),
)
"""Runtime arguments with the coordinates of the node that a kernel runs on."""
SEMAPHORES = 16
"""Semaphores of a program (tt-metal, tt_metal/impl/buffers/semaphore.hpp)."""


@dataclass(frozen=True)
class CompiledOperation:
    """An operation compiled to a module with a device program."""

    name: str
    module: ModuleOp
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    """Tensors that the host function takes and returns, in order."""
    warnings: tuple[Diagnostic, ...]
    """Warnings about what the kernels leave out, each with its line."""

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """Inputs, then outputs."""
        return (*self.inputs, *self.outputs)


@dataclass
class _KernelSource:
    """A kernel with its captured variables on all nodes, its syntax tree, and its needs."""

    kernel: context.Kernel
    captured: Captured
    syntax: ast.FunctionDef
    needs: MovementNeeds = field(default_factory=MovementNeeds)

    @property
    def purpose(self) -> str:
        """Description for the header comment of the kernel's source file."""
        source = location(self.captured.file, self.syntax)
        return f"`{self.kernel.name}` of {Path(source.file).name}, line {source.line}."


@dataclass(frozen=True)
class OperationProgram:
    """An operation compiled to a device program without a host function."""

    program: Program
    kernels: tuple[FuncOp, ...]
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    """Tensors that the program reads and writes, in the order of its operands."""


def operation_program(launch: Launch, name: str) -> OperationProgram:
    """Compiles an operation to a named program, for a module with several programs.

    Raises:
        CompileError: if the operation uses something that is not supported.
    """
    compiler = _OperationCompiler(launch, (), name)
    program, kernels = compiler.program()
    return OperationProgram(
        program,
        tuple(kernels),
        tuple(tensor for _, tensor in compiler.inputs.values()),
        tuple(tensor for _, tensor in compiler.outputs.values()),
    )


def compile_operation(launch: Launch, kept: Collection[int] = ()) -> CompiledOperation:
    """Compiles an operation whose body has run on all nodes.

    Args:
        launch: the operation.
        kept: identities of partially written tensors, whose previous contents become inputs.

    Raises:
        CompileError: if the operation uses something that is not supported.
    """
    return _OperationCompiler(launch, kept).compile()


class _OperationCompiler:
    """Compiler of one launch of an operation."""

    def __init__(self, launch: Launch, kept: Collection[int], name: str | None = None) -> None:
        self.launch = launch
        self.name = name or identifier(launch.name)
        self._prefix = f"{identifier(launch.name)}_" if name else ""
        """Prefix that makes kernel names unique across programs."""
        self._symbols = f"{name}_" if name else ""
        """Prefix of the symbols of the kernels' functions."""
        first = next(iter(launch.nodes.values()))
        self.buffers = first.made.of(DataflowBuffer)
        for node in launch.nodes.values():
            check_alike(first, node)
        if len(launch.grid) > 2:
            raise CompileError("the compiler takes grids of one chip: one or two dimensions")
        columns, rows = (*launch.grid, 1)[:2]
        self.grid = (columns, rows)
        self.cores = CoreArea(self.grid[0] - 1, self.grid[1] - 1)
        self.nets = NetUses(launch.grid)
        self.circular = [circular_buffer(buffer) for buffer in self.buffers]
        self._warnings: dict[Diagnostic, None] = {}
        self._tensor_names: dict[int, str] = {}
        parts = [self._kernel_source(number, kernel) for number, kernel in enumerate(first.kernels)]
        self.computing = [part for part in parts if part.kernel.kind is KernelKind.COMPUTE]
        self.moving = [part for part in parts if part.kernel.kind is not KernelKind.COMPUTE]
        if not all(buffer.is_tiled for buffer in self.buffers):
            # Compute kernels take whole tiles only: report that before translating copies.
            for part in self.computing:
                self._translate_compute(part, self.circular, Needs(), _COORDINATES)
            self.circular = [circular_buffer(buffer) for buffer in self.buffers]
        for part in self.moving:
            self._translate_movement(part, Processor.READER, is_first_time=True)
        self._choose_direct()
        self._check_balance()
        read = self._tensors([part.needs.reads for part in self.moving])
        self.outputs = self._tensors([part.needs.writes for part in self.moving])
        for buffer in self.buffers:
            self._add_backing(buffer, read)
        self.inputs = {key: each for key, each in read.items() if key not in self.outputs}
        self.kept = {k: each for k, each in self.outputs.items() if k in kept or k in read}
        """Outputs whose previous contents are needed."""

    def _add_backing(self, buffer: DataflowBuffer, read: NamedTensors) -> None:
        """Adds the tensor that backs a buffer to the tensors that the operation reads or writes."""
        check_memory(buffer)
        if buffer.backing is None:
            return
        tensor = buffer.backing.tensor
        is_read = any(buffer.name in part.needs.published for part in self.moving)
        found = read if is_read else self.outputs
        found.setdefault(id(tensor), (self._name_of(tensor), tensor))

    def _with_memory(self, circular: CircularBuffer) -> CircularBuffer:
        """Sets the operand whose memory a circular buffer uses, if a tensor backs it."""
        buffer = next((each for each in self.buffers if each.name == circular.name), None)
        if buffer is None or buffer.backing is None:
            return circular
        operands = [*self.inputs, *self.outputs]
        return replace(circular, operand=operands.index(id(buffer.backing.tensor)))

    def _choose_direct(self) -> None:
        """Translates movement kernels again if pipes can lead directly into receivers' blocks."""
        varying = {name for part in self.moving for name in part.needs.varying}
        for part in self.computing:
            varying |= reserved_names(part.syntax)
        uses_semaphores = any(part.needs.initial for part in self.moving)
        if uses_semaphores or not self.nets.choose_direct(varying):
            return
        for part in self.moving:
            part.needs = MovementNeeds()
            self._translate_movement(part, Processor.READER, is_first_time=True)

    def _check_balance(self) -> None:
        """Raises CompileError if a pipe net has senders but no receivers, or vice versa."""
        kernels = {part.kernel.name: part for part in self.moving}
        for use in self.nets.uses.values():
            if bool(use.senders) == bool(use.receivers):
                continue
            (name,) = use.senders or use.receivers
            here, there = ("if_src", "if_dst") if use.senders else ("if_dst", "if_src")
            part = kernels[name]
            raise CompileError(
                f"the pipes of '{use.compiled.net.name}' are not balanced: the kernel '{name}' "
                f"calls {here}, but no kernel calls {there}",
                location(part.captured.file, part.syntax),
                remedy="each ttl.copy into a pipe needs one out of it on each destination",
            )

    def _kernel_source(self, number: int, kernel: context.Kernel) -> _KernelSource:
        everywhere = {key: node.kernels[number] for key, node in self.launch.nodes.items()}
        return _KernelSource(kernel, Captured.of_kernel(everywhere), kernel_syntax(kernel))

    def _name_of(self, tensor: Tensor) -> str:
        """Name of a tensor: of the argument that passes it, or a generated one."""
        if id(tensor) not in self._tensor_names:
            given = (name for name, value in self.launch.arguments.items() if value is tensor)
            name = identifier(next(given, f"tensor{len(self._tensor_names)}"))
            self._tensor_names[id(tensor)] = name
        return self._tensor_names[id(tensor)]

    def _tensors(self, found: Sequence[set[int]]) -> dict[int, tuple[str, Tensor]]:
        """Tensors with their names, by identity."""
        return {
            key: (self._name_of(tensor), tensor)
            for part, wanted in zip(self.moving, found, strict=True)
            for key, tensor in part.needs.tensors.items()
            if key in wanted
        }

    def compile(self) -> CompiledOperation:
        """Compiles the operation to a module."""
        program, kernels = self.program()
        tensors = OperationTensors(self.inputs, self.kept, self.outputs)
        return CompiledOperation(
            self.name,
            host_module(self.name, program, kernels, tensors),
            tuple(tensor for _, tensor in (*self.inputs.values(), *self.kept.values())),
            tuple(tensor for _, tensor in self.outputs.values()),
            tuple(self._warnings),
        )

    def program(self) -> tuple[Program, list[FuncOp]]:
        """Returns the device program and the functions of its kernels."""
        self._add_pipe_slots()
        self._add_page_buffers()
        kernels: list[tuple[Kernel, FuncOp]] = []
        needs = Needs()
        for part in self.computing:
            kernels.append(self._compute(part, needs))
        if not self.outputs:
            raise CompileError(f"the operation '{self.name}' writes no tensor")
        movement = self.moving
        if len(movement) == 2 and movement[1].needs.reads and not movement[0].needs.reads:
            movement = movement[::-1]
        for part, processor in zip(movement, (Processor.READER, Processor.WRITER), strict=False):
            is_first = processor is Processor.READER
            kernels.append(self._movement(part, processor, is_first and needs.needs_scaler))
        order = [Processor.READER, Processor.COMPUTE, Processor.WRITER]
        kernels.sort(key=lambda each: order.index(each[0].processor))
        semaphores = self._semaphores()
        program = Program(
            self.name,
            f"the operation `{self.launch.name}`",
            len(self.inputs),
            self.cores,
            tuple(map(self._with_memory, self.circular)),
            tuple(kernel for kernel, _ in kernels),
            compute=self._settings(self.circular, needs),
            semaphores=semaphores,
            semaphore_values=self._initial_values(semaphores),
        )
        return program, [function for _, function in kernels]

    def _add_pipe_slots(self) -> None:
        """Adds the circular buffers that hold the slots of pipe nets."""
        for use in self.nets.uses.values():
            if use.buffer is None or use.direct is not None:
                continue
            like = circular_buffer(use.buffer)
            pages = use.buffer.pages * use.compiled.slots
            self.circular.append(
                replace(like, index=len(self.circular), name=use.landing, pages=pages)
            )

    def _add_page_buffers(self) -> None:
        """Adds the circular buffers that receive the pages of printed tensors."""
        for part in self.moving:
            for name, tensor in part.needs.printed.items():
                size = page_size(tensor.placement)
                self.circular.append(
                    CircularBuffer(len(self.circular), name, tensor.data_type, 1, size)
                )

    def _semaphores(self) -> tuple[str, ...]:
        """Names of the program's semaphores; those of one pipe net are consecutive."""
        needed = dict.fromkeys(name for part in self.moving for name in part.needs.semaphores)
        groups = [names for use in self.nets.uses.values() for names in (use.arrived, use.taken)]
        found: dict[str, None] = {}
        for name in needed:
            group = next((names for names in groups if name in names), [name])
            found |= dict.fromkeys(group)
        if len(found) > SEMAPHORES:
            raise CompileError(
                f"the operation '{self.name}' needs {len(found)} semaphores, but a program has "
                f"{SEMAPHORES}",
                location(self.moving[0].captured.file, self.moving[0].syntax),
                remedy="let fewer pipes of a net lead to one node",
            )
        return tuple(found)

    def _initial_values(self, semaphores: Sequence[str]) -> tuple[int, ...]:
        """Initial values of the semaphores; empty if all are 0."""
        initial = {name: n for part in self.moving for name, n in part.needs.initial.items()}
        values = tuple(initial.get(name, 0) for name in semaphores)
        return values if any(values) else ()

    def _settings(self, circular: Sequence[CircularBuffer], needs: Needs) -> ComputeSettings:
        """Compute settings; inputs that are only copied unpack to 32-bit registers."""
        full = [
            buffer.index
            for buffer in circular
            if buffer.data_type in (DataType.FLOAT32, *INTEGERS)
            and buffer.name not in needs.read_by_matrix_engine
        ]
        return ComputeSettings(fp32_destination=True, unpack_to_fp32=tuple(full))

    # Kernels

    def _symbol(self, part: _KernelSource) -> str:
        """Symbol of a kernel's function; the suffix keeps it distinct from the operation's name."""
        return f"{self._symbols}{part.kernel.name}_kernel"

    def _check_count(self, count: int) -> None:
        """Raises CompileError if the operation needs more circular buffers than a core has."""
        own = len(self.buffers)
        if count > CIRCULAR_BUFFERS:
            raise CompileError(
                f"the operation makes {own} dataflow buffers, and its compute kernel needs "
                f"{count - own} more for what it computes in between; a core has "
                f"{CIRCULAR_BUFFERS} circular buffers",
                remedy="make fewer dataflow buffers, or store results in between in those that are "
                "there",
            )

    def _compute(self, part: _KernelSource, needs: Needs) -> tuple[Kernel, FuncOp]:
        """Translates the compute kernel: trial runs find its needs, a last run declares them."""
        circular = self.circular
        found, used = Needs(), set[str]()
        needs.is_narrow = all(each.data_type is not DataType.FLOAT32 for each in circular)
        for computes_once, shares_buffers in ((True, False), (True, True), (False, True)):
            found = Needs(
                computes_once=computes_once,
                shares_buffers=shares_buffers,
                is_narrow=needs.is_narrow,
            )
            used = self._translate_compute(part, circular, found, _COORDINATES)[1]
            if self._has_room(found):
                break
        needs.computes_once, needs.shares_buffers = found.computes_once, found.shares_buffers
        for name, scratch in found.scratch.items():
            circular.append(own_buffer(len(circular), name, scratch.tiles, scratch.data_type))
        if found.needs_scaler:
            circular.append(own_buffer(len(circular), SCALER, SCALER_TILES, DataType.BFLOAT16))
        self._check_count(len(circular))
        declared = [b for b in circular if b.name in used | found.scratch.keys() | {SCALER}]
        coordinates = tuple(each for each in _COORDINATES if each.name in self._used_arguments)
        kernel, _ = self._translate_compute(part, declared, needs, coordinates, used)
        needs.needs_scaler = found.needs_scaler
        described = Kernel(
            f"{self._prefix}{part.kernel.name}",
            Processor.COMPUTE,
            part.purpose,
            self.cores,
            self._symbol(part),
            constants=tuple(NamedConstant(b.constant, b.index) for b in declared),
            arguments=coordinates,
        )
        function = kernel.builder.finish()
        _erase_unused(function)
        return described, function

    def _has_room(self, needs: Needs) -> bool:
        """True if a core has enough circular buffers and L1 memory for a compute kernel."""
        count = len(self.circular) + len(needs.scratch) + needs.needs_scaler
        own = sum(each.tiles * tile_bytes_of(each.data_type) for each in needs.scratch.values())
        taken = sum(buffer.bytes for buffer in self.buffers if buffer.backing is None)
        chip = context.current_chip()
        free = chip.l1_size - chip.l1_unreserved_base
        return count <= CIRCULAR_BUFFERS and own + taken <= free

    _used_arguments: set[str]

    def _translate_compute(
        self,
        part: _KernelSource,
        circular: Sequence[CircularBuffer],
        needs: Needs,
        coordinates: Sequence[RuntimeArgument],
        used: set[str] | None = None,
    ) -> tuple[ComputeKernel, set[str]]:
        """Returns the kernel and the dataflow buffers that it uses; `used` restricts setup."""
        kernel = ComputeKernel(self._symbol(part), True)
        kernel.declare(circular)
        known = {
            argument.name: kernel.builder.argument(position, argument.name)
            for position, argument in enumerate(coordinates)
        }
        formats = {buffer.name: buffer.data_type for buffer in circular}
        writer = AccumulatingWriter(kernel, Arithmetic(kernel.builder), needs, formats)
        translator = AccumulationTranslator(part.kernel, part.captured, writer, self.nets)
        translator.set_position(known.get("node_column"), known.get("node_row"))
        names = [b.name for b in circular if used is None or b.name in used]
        if names:
            kernel.start(names[:1], names[-1])
        if any(buffer.name == SCALER for buffer in circular):
            kernel.op("cb_wait_front", SCALER, SCALER_TILES)
        translator.kernel_body()
        self._keep_warnings(translator)
        self._used_arguments = {
            name for name, value in known.items() if value.first_use is not None
        }
        return kernel, translator.used

    def _movement(
        self, part: _KernelSource, processor: Processor, pushes_scaler: bool
    ) -> tuple[Kernel, FuncOp]:
        """Translates a data movement kernel a second time, with its needs known."""
        target = self._translate_movement(part, processor, pushes_scaler=pushes_scaler)
        described, function = target.finish()
        _erase_unused(function)
        return replace(described, name=f"{self._prefix}{part.kernel.name}"), function

    def _translate_movement(
        self,
        part: _KernelSource,
        processor: Processor,
        *,
        is_first_time: bool = False,
        pushes_scaler: bool = False,
    ) -> MovementKernel:
        """Translates a data movement kernel: collects its needs, or declares and uses them."""
        needs = part.needs
        accessors: tuple[int, ...] = ()
        arguments: list[RuntimeArgument] = []
        if not is_first_time:
            operands = [*self.inputs, *self.outputs]
            accessors = tuple(operands.index(each) for each in needs.tensors)
            arguments = [
                RuntimeArgument(address_name(self._name_of(tensor)), BufferAddress(operand))
                for tensor, operand in zip(needs.tensors.values(), accessors, strict=True)
            ]
            arguments += [each for each in _COORDINATES if each.name in needs.coordinates]
            arguments += needs.arguments.values()
        target = MovementKernel(
            self._symbol(part),
            processor,
            part.purpose,
            self.cores,
            arguments or _COORDINATES,
            tuple(needs.semaphores),
            accessors,
        )
        resources = MovementResources(
            target, needs, self._name_of, self.grid, is_first_time=is_first_time
        )
        if pushes_scaler:
            needs.buffers.add(SCALER)
        resources.begin(self.circular)
        if pushes_scaler:
            target.builder.op("blocks.push_reduce_scaler", target.buffer(SCALER))
        translator = MovementTranslator(part.kernel, part.captured, resources, self.nets)
        used = needs.coordinates
        known = [each for each in _COORDINATES if is_first_time or each.name in used]
        given = {argument.name: target[argument.name] for argument in known}
        translator.set_position(given.get("node_column"), given.get("node_row"))
        if not is_first_time:
            translator.begin([b for b in self.buffers if b.name in needs.buffers])
        translator.kernel_body()
        if is_first_time:
            needs.coordinates = {
                name for name, value in given.items() if value.first_use is not None
            }
        self._keep_warnings(translator)
        return target

    def _keep_warnings(self, translator: KernelTranslator) -> None:
        """Collects warnings; each is reported once although kernels are translated repeatedly."""
        self._warnings |= dict.fromkeys(translator.diagnostics.warnings)


_READS = ("ttkernel.get_arg_val", "memref.load")


def _erase_unused(function: FuncOp) -> None:
    """Erases dead arithmetic, such as the unused ends of slices, and unused argument reads."""
    for op in reversed(list(function.walk())):
        is_pure = op.name.startswith(("arith.", "tensor.")) or op.name in _READS
        if is_pure and op.results[0].first_use is None:
            op.detach()
            op.erase()
