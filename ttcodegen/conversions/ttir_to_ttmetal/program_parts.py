"""What programs are put together from: the tensors that they work on, circular buffers, kernels.

Everything that a kernel calls after a tensor is the tensor's name with an ending (`x_address`,
`x_layout`, `x_tensor`, `x_elements`) or with the prefix `cb_`, with which no name of a tensor
begins: so none collides with what the kernel or the device's API calls something else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from ttcodegen.conversions.ttir_to_ttmetal.data_movement import MovementKernel
from ttcodegen.conversions.ttir_to_ttmetal.groups import Group
from ttcodegen.dialects.cores import CoreRange
from ttcodegen.dialects.datatypes import DataType, shape_of
from ttcodegen.dialects.placement import declared_data_type
from ttcodegen.dialects.programs import (
    BufferAddress,
    CircularBuffer,
    ComputeSettings,
    Costs,
    Kernel,
    NamedConstant,
    Place,
    Processor,
    Program,
    RuntimeArgument,
)
from ttcodegen.dialects.tile import TILE_FORMATS
from ttcodegen.dialects.ttkernel.table import kernel_ops
from ttcodegen.emitc.identifiers import NameScope
from ttcodegen.layout.tiled_shape import TiledShape

DOUBLE = 2
"""Tiles of a circular buffer, so that one is filled while the other is read."""
SHARE = (RuntimeArgument("first", Place.FIRST), RuntimeArgument("count", Place.COUNT))
"""A core's share of the program's work."""
_OWN_BUFFERS = ("left", "partial", "right", "scaler")
"""Circular buffers that hold no tensor as it lies in DRAM."""


def tile_bytes(data_type: DataType) -> int:
    """Bytes of a tile."""
    return TILE_FORMATS[data_type.mlir].tile_bytes()


def tensor_bytes(value: SSAValue) -> int:
    """Bytes of a tensor's tiles."""
    return TiledShape(shape_of(value.type)).tiles * tile_bytes(declared_data_type(value))


def has_32_bits(data_type: DataType) -> bool:
    """Whether elements fill a register of 32 bits."""
    return TILE_FORMATS[data_type.mlir].bits == 32


def purpose_of(group: Group) -> str:
    """What the program of a group computes."""
    return ", ".join(op.name.partition(".")[2] for op in group.ops)


@dataclass(frozen=True)
class Lowered:
    """A program with its kernels and the values that are its operands."""

    program: Program
    kernels: tuple[FuncOp, ...]
    """The functions of its kernels."""
    inputs: tuple[SSAValue, ...]
    outputs: tuple[SSAValue, ...]


@dataclass
class ProgramParts:
    """The operands and the circular buffers of a program under construction.

    Operands are counted inputs first, then outputs, in the order given. A circular buffer is known
    by its name, which is the tensor's if no other one has it.
    """

    names: Mapping[SSAValue, str]
    """What tensors are called: identifiers, all different."""
    inputs: Sequence[SSAValue]
    outputs: Sequence[SSAValue]
    buffers: list[CircularBuffer] = field(default_factory=list[CircularBuffer])
    _scope: NameScope = field(init=False)

    def __post_init__(self) -> None:
        self.inputs = list(dict.fromkeys(self.inputs))
        self._scope = NameScope([*_OWN_BUFFERS, *_names_after_cb()])

    def add_buffer(self, name: str, data_type: DataType, pages: int) -> str:
        """A circular buffer that holds no tensor; gives its name."""
        assert name in _OWN_BUFFERS
        return self._add(name, data_type, pages)

    def add_tensor_buffer(self, value: SSAValue, pages: int = DOUBLE) -> str:
        """A circular buffer for tiles of a tensor; gives its name."""
        return self._add(self._scope.unique(self.names[value]), declared_data_type(value), pages)

    def add_kept_buffer(self, buffer: str, slots: int) -> str:
        """Room for tiles that are kept to go through another circular buffer; gives its name."""
        [kept] = [b for b in self.buffers if b.name == buffer]
        return self._add(self._scope.unique(f"{buffer}_kept"), kept.data_type, slots)

    def _add(self, name: str, data_type: DataType, pages: int) -> str:
        index = len(self.buffers)
        self.buffers.append(CircularBuffer(index, name, data_type, pages, tile_bytes(data_type)))
        return name

    def constants(self, buffers: Iterable[str]) -> tuple[NamedConstant, ...]:
        """The compile-time arguments for a kernel's circular buffers."""
        used = set(buffers)
        return tuple(NamedConstant(f"cb_{b.name}", b.index) for b in self.buffers if b.name in used)

    def data_movement(
        self,
        name: str,
        processor: Processor,
        purpose: str,
        cores: CoreRange,
        *,
        tensors: Sequence[SSAValue],
        buffers: Iterable[str],
        arguments: Sequence[RuntimeArgument] = (),
        semaphores: tuple[str, ...] = (),
        constants: Mapping[str, int] | None = None,
    ) -> MovementKernel:
        """A kernel of data movement, which has declared all that it uses.

        Args:
            name: the stem of its file.
            processor: which processor it runs on.
            purpose: a sentence on what it does.
            cores: where it runs.
            tensors: the operands that it reads or writes.
            buffers: the circular buffers that it uses.
            arguments: its run-time arguments after the addresses of the tensors.
            semaphores: those that it uses.
            constants: its compile-time arguments besides circular buffers and semaphores.
        """
        tensors = list(dict.fromkeys(tensors))
        operands = [*self.inputs, *self.outputs]
        accessors = tuple(operands.index(value) for value in tensors)
        names = [self.names[value] for value in tensors]
        addresses = [
            RuntimeArgument(f"{tensor}_address", BufferAddress(operand))
            for tensor, operand in zip(names, accessors, strict=True)
        ]
        kernel = MovementKernel(
            name, processor, purpose, cores, (*addresses, *arguments), semaphores, accessors
        )
        used = set(buffers)
        kernel.begin([b for b in self.buffers if b.name in used], names, constants)
        return kernel

    def tile_writer(
        self, name: str, purpose: str, cores: CoreRange, buffers: Sequence[str]
    ) -> tuple[Kernel, FuncOp]:
        """The kernel that writes the tiles of all outputs, from one circular buffer each."""
        kernel = self.data_movement(
            f"write_{name}",
            Processor.WRITER,
            purpose,
            cores,
            tensors=self.outputs,
            buffers=buffers,
            arguments=SHARE,
        )
        with kernel.share("tile") as tile:
            for buffer, value in zip(buffers, self.outputs, strict=True):
                kernel.builder.op("cb_wait_front", kernel.buffer(buffer), 1)
                kernel.write_page(tile, self.names[value], buffer)
            kernel.builder.op("noc_async_write_barrier")
            for buffer in buffers:
                kernel.builder.op("cb_pop_front", kernel.buffer(buffer), 1)
        return kernel.finish()

    def program(
        self,
        name: str,
        purpose: str,
        cores: CoreRange,
        kernels: Sequence[tuple[Kernel, FuncOp]],
        costs: Costs,
        compute: ComputeSettings,
        *,
        work_units: int = 0,
        semaphores: tuple[str, ...] = (),
    ) -> Lowered:
        """The program of these parts; kernels come with their functions, work units are tiles."""
        program = Program(
            name,
            purpose,
            len(self.inputs),
            cores,
            tuple(self.buffers),
            tuple(kernel for kernel, _ in kernels),
            costs,
            work_units,
            "output tile" if work_units else "",
            semaphores,
            compute,
        )
        functions = tuple(function for _, function in kernels)
        return Lowered(program, functions, tuple(self.inputs), tuple(self.outputs))


@cache
def _names_after_cb() -> frozenset[str]:
    """What may not follow `cb_` in the name of a circular buffer: functions begin in this way."""
    found = (name.removeprefix("cb_") for name in kernel_ops() if name.startswith("cb_"))
    return frozenset(found)
