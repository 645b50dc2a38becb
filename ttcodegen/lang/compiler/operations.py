"""Operations become modules with a program of the device and a host function that runs it."""

from __future__ import annotations

import ast
from collections.abc import Sequence
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

from ttcodegen.conversions.ttir_to_ttmetal.compute import ComputeKernel
from ttcodegen.conversions.ttir_to_ttmetal.data_movement import MovementKernel
from ttcodegen.diagnostics import CompileError, Diagnostic
from ttcodegen.dialects.datatypes import DataType
from ttcodegen.dialects.device_module import MEANING
from ttcodegen.dialects.placement import TensorPlacement, placed_type
from ttcodegen.dialects.programs import (
    BufferAddress,
    CircularBuffer,
    ComputeSettings,
    CoreArea,
    Kernel,
    NamedConstant,
    Place,
    Processor,
    Program,
    ProgramAttr,
    RuntimeArgument,
)
from ttcodegen.emitc.identifiers import identifier
from ttcodegen.lang import context
from ttcodegen.lang.buffers import DataflowBuffer
from ttcodegen.lang.compiler.captured import (
    Captured,
    loaded_names,
    location,
    syntax_of,
)
from ttcodegen.lang.compiler.compute import SCALER, BlockWriter, Needs
from ttcodegen.lang.compiler.compute_translation import ComputeTranslator
from ttcodegen.lang.compiler.movement import MovementTranslator
from ttcodegen.lang.compiler.numbers import Arithmetic
from ttcodegen.lang.compiler.semaphores import UsedSemaphores
from ttcodegen.lang.compiler.translation import KernelTranslator
from ttcodegen.lang.context import KernelKind, Launch
from ttcodegen.lang.tensors import Tensor
from ttcodegen.layout.tiled_shape import tile_bytes_of
from ttcodegen.ops.context import load_dialects

_PLACES = (
    RuntimeArgument("node_column", Place.COLUMN),
    RuntimeArgument("node_row", Place.ROW),
)
"""The run-time arguments with the node that a kernel is on."""


@dataclass(frozen=True)
class CompiledOperation:
    """An operation as a module of device programs."""

    name: str
    module: ModuleOp
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    """The tensors that its host function takes and returns, in order."""
    warnings: tuple[Diagnostic, ...]
    """What its kernels leave out, each at its line."""


@dataclass
class _Parts:
    """A kernel of all nodes, and what it refers to."""

    kernel: context.Kernel
    captured: Captured
    syntax: ast.FunctionDef
    reads: dict[str, Tensor] = field(default_factory=dict[str, Tensor])
    writes: dict[str, Tensor] = field(default_factory=dict[str, Tensor])

    @property
    def buffers(self) -> list[DataflowBuffer]:
        """The dataflow buffers that it uses, in the order in which they were made."""
        found = self.captured.all(DataflowBuffer)
        used = [found[name] for name in loaded_names(self.syntax.body) if name in found]
        return sorted(dict.fromkeys(used), key=lambda buffer: buffer.number)

    @property
    def purpose(self) -> str:
        """What the head of its file says."""
        place = location(self.kernel, self.syntax)
        return f"`{self.kernel.name}` of {Path(place.file).name}, line {place.line}."


def compile_operation(launch: Launch) -> CompiledOperation:
    """Compiles an operation whose body has run on all nodes.

    Raises:
        CompileError: at what the compiler does not take.
    """
    return _OperationCompiler(launch).compile()


class _OperationCompiler:
    def __init__(self, launch: Launch) -> None:
        self.launch = launch
        self.name = identifier(launch.name)
        first = next(iter(launch.nodes.values()))
        self.buffers = first.buffers
        self.parts = [self._parts_of(number, kernel) for number, kernel in enumerate(first.kernels)]
        grid = (*launch.grid, 1)[:2]
        if len(launch.grid) > 2:
            raise CompileError("the compiler takes grids of one chip: one or two dimensions")
        self.cores = CoreArea(grid[0] - 1, grid[1] - 1)
        self.inputs = self._tensors([part.reads for part in self.parts])
        self.outputs = self._tensors([part.writes for part in self.parts])
        self._warnings: dict[Diagnostic, None] = {}
        self._check_tensors()

    def _parts_of(self, number: int, kernel: context.Kernel) -> _Parts:
        everywhere = {place: node.kernels[number] for place, node in self.launch.nodes.items()}
        captured = Captured(everywhere)
        parts = _Parts(kernel, captured, syntax_of(kernel))
        tensors = captured.all(Tensor)
        for node in ast.walk(parts.syntax):
            match node:
                case ast.Call(ast.Attribute(_, "copy") | ast.Name("copy"), positional, named):
                    given = dict(zip(("src", "dst"), positional, strict=False))
                    given |= {each.arg: each.value for each in named if each.arg}
                    _add_tensor(parts.reads, given.get("src"), tensors)
                    _add_tensor(parts.writes, given.get("dst"), tensors)
                case _:
                    pass
        return parts

    def _tensors(self, found: Sequence[dict[str, Tensor]]) -> dict[int, tuple[str, Tensor]]:
        """Tensors with their names, by identity."""
        return {
            id(tensor): (identifier(name), tensor)
            for part in found
            for name, tensor in part.items()
        }

    def _check_tensors(self) -> None:
        both = self.inputs.keys() & self.outputs.keys()
        if both:
            name = self.inputs[next(iter(both))][0]
            raise CompileError(
                f"the operation '{self.name}' reads and writes '{name}': the compiler takes "
                "tensors that are either read or written"
            )
        if not self.outputs:
            raise CompileError(f"the operation '{self.name}' writes no tensor")
        names = [name for name, _ in (*self.inputs.values(), *self.outputs.values())]
        if len(set(names)) != len(names):
            raise CompileError(f"the operation '{self.name}' has two tensors of one name")

    def compile(self) -> CompiledOperation:
        """The module."""
        circular = [_circular_buffer(buffer) for buffer in self.buffers]
        kernels: list[tuple[Kernel, FuncOp]] = []
        needs = Needs()
        for part in self.parts:
            if part.kernel.kind is KernelKind.COMPUTE:
                kernels.append(self._compute(part, circular, needs))
        movement = [part for part in self.parts if part.kernel.kind is not KernelKind.COMPUTE]
        if len(movement) == 2 and movement[1].reads and not movement[0].reads:
            movement.reverse()
        for part, processor in zip(movement, (Processor.READER, Processor.WRITER), strict=False):
            is_first = processor is Processor.READER
            kernels.append(
                self._movement(part, processor, circular, is_first and needs.needs_scaler)
            )
        order = [Processor.READER, Processor.COMPUTE, Processor.WRITER]
        kernels.sort(key=lambda each: order.index(each[0].processor))
        program = Program(
            self.name,
            f"the operation `{self.launch.name}`",
            len(self.inputs),
            self.cores,
            tuple(circular),
            tuple(kernel for kernel, _ in kernels),
            compute=self._settings(circular, needs),
            semaphores=tuple(
                dict.fromkeys(name for kernel, _ in kernels for name in kernel.semaphores)
            ),
        )
        module = self._module(program, [function for _, function in kernels])
        return CompiledOperation(
            self.name,
            module,
            tuple(tensor for _, tensor in self.inputs.values()),
            tuple(tensor for _, tensor in self.outputs.values()),
            tuple(self._warnings),
        )

    def _settings(self, circular: Sequence[CircularBuffer], needs: Needs) -> ComputeSettings:
        """What only copies read reaches the registers with all 32 bits."""
        full = [
            buffer.index
            for buffer in circular
            if buffer.data_type is DataType.FLOAT32
            and buffer.name not in needs.read_by_matrix_engine
        ]
        return ComputeSettings(fp32_destination=True, unpack_to_fp32=tuple(full))

    # Kernels

    def _compute(
        self, part: _Parts, circular: list[CircularBuffer], needs: Needs
    ) -> tuple[Kernel, FuncOp]:
        """Translates the compute kernel twice: first to find out what it needs, to declare that."""
        found = Needs()
        places = _PLACES
        used = {buffer.name for buffer in part.buffers}
        self._translate_compute(part, [b for b in circular if b.name in used], found, places)
        for scratch in found.scratch.values():
            circular.append(
                _own_buffer(len(circular), scratch.name, scratch.tiles, DataType.FLOAT32)
            )
        if found.needs_scaler:
            circular.append(_own_buffer(len(circular), SCALER, 1, DataType.BFLOAT16))
        mine = [b for b in circular if b.name in used | found.scratch.keys() | {SCALER}]
        places = tuple(each for each in _PLACES if each.name in self._used_places)
        kernel = self._translate_compute(part, mine, needs, places)
        needs.needs_scaler = found.needs_scaler
        described = Kernel(
            part.kernel.name,
            Processor.COMPUTE,
            part.purpose,
            self.cores,
            _symbol(part),
            constants=tuple(NamedConstant(f"cb_{b.name}", b.index) for b in mine),
            arguments=places,
        )
        function = kernel.builder.finish()
        _erase_unused(function)
        return described, function

    _used_places: set[str]

    def _translate_compute(
        self,
        part: _Parts,
        circular: Sequence[CircularBuffer],
        needs: Needs,
        places: Sequence[RuntimeArgument],
    ) -> ComputeKernel:
        kernel = ComputeKernel(_symbol(part), True)
        kernel.declare(circular)
        known = {
            place.name: kernel.builder.argument(position, place.name)
            for position, place in enumerate(places)
        }
        formats = {buffer.name: buffer.data_type for buffer in circular}
        writer = BlockWriter(kernel, Arithmetic(kernel.builder), needs, formats)
        translator = ComputeTranslator(part.kernel, part.captured, writer)
        translator.place(known.get("node_column"), known.get("node_row"))
        own = {buffer.name for buffer in part.buffers}
        names = [buffer.name for buffer in circular if buffer.name in own]
        kernel.start(names[:1], names[-1])
        if any(buffer.name == SCALER for buffer in circular):
            kernel.op("cb_wait_front", SCALER, 1)
        translator.kernel_body()
        self._keep_warnings(translator)
        self._used_places = {name for name, value in known.items() if value.first_use is not None}
        return kernel

    def _movement(
        self,
        part: _Parts,
        processor: Processor,
        circular: Sequence[CircularBuffer],
        pushes_scaler: bool,
    ) -> tuple[Kernel, FuncOp]:
        first = self._translate_movement(part, processor, circular, _PLACES, pushes_scaler)
        used = [each for each in _PLACES if first[each.name].first_use is not None]
        target = self._translate_movement(part, processor, circular, used, pushes_scaler)
        described, function = target.finish()
        _erase_unused(function)
        return replace(described, name=part.kernel.name), function

    def _translate_movement(
        self,
        part: _Parts,
        processor: Processor,
        circular: Sequence[CircularBuffer],
        places: Sequence[RuntimeArgument],
        pushes_scaler: bool,
    ) -> MovementKernel:
        operands = [*self.inputs, *self.outputs]
        known = {**self.inputs, **self.outputs}
        mine = dict.fromkeys(id(t) for t in (*part.reads.values(), *part.writes.values()))
        accessors = tuple(operands.index(each) for each in mine)
        names = [known[each][0] for each in mine]
        addresses = [
            RuntimeArgument(f"{name}_address", BufferAddress(operand))
            for name, operand in zip(names, accessors, strict=True)
        ]
        semaphores = self._semaphores(part)
        target = MovementKernel(
            _symbol(part),
            processor,
            part.purpose,
            self.cores,
            (*addresses, *places, *semaphores.arguments(processor)),
            semaphores.names,
            accessors,
        )
        used = {buffer.name for buffer in part.buffers}
        if pushes_scaler:
            used.add(SCALER)
        target.begin([b for b in circular if b.name in used], names)
        if pushes_scaler:
            target.builder.op("blocks.push_reduce_scaler", target.buffer(SCALER))
        semaphores.declare(target)
        tensors = {each: known[each][0] for each in mine}
        translator = MovementTranslator(part.kernel, part.captured, target, tensors, semaphores)
        given = {place.name: target[place.name] for place in places}
        translator.place(given.get("node_column"), given.get("node_row"))
        translator.declare_sizes(part.buffers)
        translator.inside(part.syntax.body)
        self._keep_warnings(translator)
        return target

    def _keep_warnings(self, translator: KernelTranslator) -> None:
        """Kernels are translated twice: each warning is reported once."""
        self._warnings |= dict.fromkeys(translator.diagnostics.warnings)

    def _semaphores(self, part: _Parts) -> UsedSemaphores:
        loaded = set(loaded_names(part.syntax.body))
        try:
            return UsedSemaphores.of(part.captured, loaded, self.launch.grid)
        except ValueError as wrong:
            raise CompileError(str(wrong), location(part.kernel, part.syntax)) from None

    # The host

    def _module(self, program: Program, kernels: Sequence[FuncOp]) -> ModuleOp:
        inputs = list(self.inputs.values())
        outputs = list(self.outputs.values())
        ctx = load_dialects()
        body = Block(arg_types=[_type_of(tensor) for _, tensor in inputs])
        for argument, (name, _) in zip(body.args, inputs, strict=True):
            argument.name_hint = name
        made: list[SSAValue] = []
        for name, tensor in outputs:
            buffer = ctx.get_op("ttmetal.create_buffer").create(result_types=[_type_of(tensor)])
            buffer.results[0].name_hint = name
            body.add_op(buffer)
            made.append(buffer.results[0])
        meaning = f"{program.name}_meaning"
        run = ctx.get_op("ttmetal.run_program").create(
            operands=[*body.args, *made],
            properties={"program": ProgramAttr(program), "meaning": SymbolRefAttr(meaning)},
        )
        body.add_ops([run, ReturnOp(*made)])
        types = [value.type for value in body.args], [value.type for value in made]
        host = FuncOp(self.name, types, Region(body))
        host.arg_attrs = _names([name for name, _ in inputs])
        host.res_attrs = _names([name for name, _ in outputs])
        # What it means is the operation of the program in Python: nothing that TTIR has ops for.
        declared = FuncOp.external(meaning, *types)
        declared.attributes[MEANING] = UnitAttr()
        return ModuleOp([host, declared, *kernels])


def _symbol(part: _Parts) -> str:
    """The name of a kernel's function; the operation may have the name of one of its kernels."""
    return f"{part.kernel.name}_kernel"


def _erase_unused(function: FuncOp) -> None:
    """Erases arithmetic that nothing came to need, such as the ends of slices."""
    for op in reversed(list(function.walk())):
        if op.name.startswith("arith.") and op.results[0].first_use is None:
            op.detach()
            op.erase()


def _names(names: Sequence[str]) -> ArrayAttr[Any]:
    return ArrayAttr(DictionaryAttr({"ttir.name": StringAttr(name)}) for name in names)


def _add_tensor(
    found: dict[str, Tensor], node: ast.expr | None, tensors: dict[str, Tensor]
) -> None:
    """Adds the tensor that an argument of a copy is a slice of."""
    match node:
        case ast.Subscript(ast.Name(name)) if name in tensors:
            found[name] = tensors[name]
        case _:
            pass


def _type_of(tensor: Tensor) -> Any:
    return placed_type(TensorPlacement(tuple(tensor.shape), tensor.data_type))


def _circular_buffer(buffer: DataflowBuffer) -> CircularBuffer:
    return CircularBuffer(
        buffer.number,
        buffer.name,
        buffer.data_type,
        buffer.pages * buffer.block_count,
        buffer.page_bytes,
    )


def _own_buffer(index: int, name: str, tiles: int, data_type: DataType) -> CircularBuffer:
    size = tile_bytes_of(data_type)
    return CircularBuffer(index, name, data_type, tiles, size)
