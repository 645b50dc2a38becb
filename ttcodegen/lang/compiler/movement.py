"""Data movement kernels: copies between tensors in DRAM and blocks of circular buffers."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from xdsl.ir import SSAValue

from ttcodegen.conversions.ttir_to_ttmetal.data_movement import MovementKernel
from ttcodegen.lang.block_states import Acquisition
from ttcodegen.lang.buffers import DataflowBuffer
from ttcodegen.lang.compiler.captured import Captured
from ttcodegen.lang.compiler.numbers import Number
from ttcodegen.lang.compiler.semaphores import Remote, UsedSemaphores
from ttcodegen.lang.compiler.translation import KernelTranslator
from ttcodegen.lang.context import Kernel
from ttcodegen.lang.pipes import PipeNet
from ttcodegen.lang.semaphores import (
    MulticastRemoteSemaphore,
    Semaphore,
    UnicastRemoteSemaphore,
)
from ttcodegen.lang.shapes import is_range, is_tuple, shape_text
from ttcodegen.lang.tensors import Tensor
from ttcodegen.lang.transfers import GroupTransfer, copy

_LOCAL_CALLS = {
    "wait_eq": "noc_semaphore_wait",
    "wait_ge": "noc_semaphore_wait_min",
    "set": "noc_semaphore_set",
}
"""What methods of a semaphore of the node become."""


@dataclass(eq=False)
class MovedBlock:
    """A block that the kernel has acquired."""

    buffer: DataflowBuffer
    acquisition: Acquisition


@dataclass(eq=False)
class MovedSlice:
    """A part of a tensor: where it starts, and its sizes where they are known."""

    tensor: Tensor
    starts: tuple[Number, ...]
    sizes: tuple[int | None, ...]
    single: tuple[bool, ...]


@dataclass(eq=False)
class MovedTransfer:
    """A copy that was begun."""

    barrier: str
    is_done: bool = False


@dataclass(eq=False)
class MovedGroup:
    """Copies that are waited for together."""

    transfers: list[MovedTransfer] = field(default_factory=list[MovedTransfer])


class MovementTranslator(KernelTranslator):
    """Translates a data movement kernel."""

    def __init__(
        self,
        kernel: Kernel,
        captured: Captured,
        target: MovementKernel,
        tensors: dict[int, str],
        semaphores: UsedSemaphores,
    ) -> None:
        super().__init__(kernel, captured, target.builder)
        self.target = target
        self.tensors = tensors
        """The names of tensors, by identity."""
        self.semaphores = semaphores
        self.calls |= {copy: self._copy, GroupTransfer: MovedGroup}
        self._tile_bytes: dict[str, SSAValue] = {}

    def declare_sizes(self, buffers: Sequence[DataflowBuffer]) -> None:
        """Declares the bytes of a tile of buffers whose blocks have several tiles."""
        for buffer in buffers:
            if buffer.pages > 1:
                self._tile_bytes[buffer.name] = self.builder.get(
                    "get_tile_size",
                    self.target.buffer(buffer.name),
                    name_hint=f"{buffer.name}_tile_bytes",
                )

    def method(self, value: Any, name: str) -> Callable[..., Any] | None:
        match value, name:
            case DataflowBuffer(), "reserve" | "wait":
                return lambda: self._acquire(value, Acquisition(name))
            case MovedBlock(), "push" | "pop":
                return lambda: self._release(value)
            case MovedTransfer(), "wait":
                return lambda: self._wait([value])
            case MovedGroup(), "add":
                return value.transfers.append
            case MovedGroup(), "wait_all":
                return lambda: self._wait(value.transfers)
            case PipeNet(), _:
                self.refuse("the compiler does not take pipes yet")
            case Semaphore(), "wait_eq" | "wait_ge" | "set":
                return partial(self.semaphores.local_call, self.target, value, _LOCAL_CALLS[name])
            case UnicastRemoteSemaphore() | MulticastRemoteSemaphore(), "set":
                return partial(self.semaphores.set, self.target, self._variable(value))
            case UnicastRemoteSemaphore(), "inc":
                return partial(self.semaphores.increment, self.target, self._variable(value))
            case _:
                return None

    def _variable(self, remote: Remote) -> str:
        """The variable that holds a remote semaphore."""
        for name, value in self.semaphores.remote.items():
            if value is remote:
                return name
        self.refuse("a remote semaphore is a variable of the operation's body")

    def leave(self, held: Any, node: ast.stmt) -> None:
        if isinstance(held, MovedBlock):
            self._release(held)
        else:
            super().leave(held, node)

    def _acquire(self, buffer: DataflowBuffer, acquisition: Acquisition) -> MovedBlock:
        name = "cb_reserve_back" if acquisition is Acquisition.RESERVE else "cb_wait_front"
        self.builder.op(name, self.target.buffer(buffer.name), buffer.pages)
        return MovedBlock(buffer, acquisition)

    def _release(self, block: MovedBlock) -> None:
        is_reserved = block.acquisition is Acquisition.RESERVE
        name = "cb_push_back" if is_reserved else "cb_pop_front"
        self.builder.op(name, self.target.buffer(block.buffer.name), block.buffer.pages)

    def _wait(self, transfers: Sequence[MovedTransfer]) -> None:
        """A barrier for each direction; it also ends other copies of that direction."""
        for barrier in dict.fromkeys(t.barrier for t in transfers if not t.is_done):
            self.builder.op(barrier)
        for transfer in transfers:
            transfer.is_done = True

    def subscript(self, value: Any, index: Any, node: ast.AST) -> Any:
        if not isinstance(value, Tensor):
            return super().subscript(value, index, node)
        parts: tuple[Any, ...] = index if is_tuple(index) else (index,)
        units = value.units
        if len(parts) != len(units):
            self.refuse(
                f"a slice has {len(parts)} indices, but the tensor has {len(units)} dimensions",
                node,
            )
        starts: list[Number] = []
        sizes: list[int | None] = []
        for part, unit in zip(parts, units, strict=True):
            start, size = self._range(part, unit)
            starts.append(start)
            sizes.append(size)
            if (
                isinstance(start, int)
                and isinstance(size, int)
                and not 0 <= start < start + size <= unit
            ):
                self.refuse(
                    f"a slice goes from {start} to {start + size}, but the tensor has {unit} there",
                    node,
                )
        single = tuple(not isinstance(part, slice) for part in parts)
        return MovedSlice(value, tuple(starts), tuple(sizes), single)

    def _range(self, part: Any, unit: int) -> tuple[Number, int | None]:
        if not is_range(part):
            return part, 1
        start: Number = 0 if part.start is None else part.start
        stop: Number = unit if part.stop is None else part.stop
        return start, self.arithmetic.known_difference(stop, start)

    def _copy(self, src: Any, dst: Any) -> MovedTransfer:
        match src, dst:
            case MovedSlice(), MovedBlock():
                self._move(src, dst, "noc_async_read_page", "get_write_ptr")
                return MovedTransfer("noc_async_read_barrier")
            case MovedBlock(), MovedSlice():
                self._move(dst, src, "noc_async_write_page", "get_read_ptr")
                return MovedTransfer("noc_async_write_barrier")
            case _:
                self.refuse("the compiler copies between blocks and tensor slices only")

    def _move(self, part: MovedSlice, block: MovedBlock, op: str, pointer: str) -> None:
        """A page for each tile of a block."""
        buffer = block.buffer
        if not buffer.is_tiled or not part.tensor.is_tiled:
            self.refuse("the compiler does not take row-major tensors yet")
        expected = {"get_write_ptr": Acquisition.RESERVE, "get_read_ptr": Acquisition.WAIT}[pointer]
        if block.acquisition is not expected:
            self.refuse(
                "the compiler copies into blocks that were reserved and out of blocks that were "
                "waited for"
            )
        if id(part.tensor) not in self.tensors:
            self.refuse("the compiler takes slices of tensors that ttl.copy is given directly")
        axes = self._axes(part, buffer)
        tensor = self.target.tensor(self.tensors[id(part.tensor)])
        address = self.builder.get(
            pointer, self.target.buffer(buffer.name), name_hint=f"{buffer.name}_block"
        )
        units = part.tensor.units
        for axis, start in enumerate(part.starts):
            if isinstance(start, SSAValue) and start.name_hint is None:
                start.name_hint = f"first_{_axis_name(axis, units)}"
        with ExitStack() as loops:
            counters: list[Number] = []
            for axis, size in zip(axes, buffer.shape, strict=True):
                if size == 1:
                    counters.append(0)
                    continue
                loop = self.builder.loop(size, name_hint=_axis_name(axis, units))
                counters.append(loops.enter_context(loop))
            position = list(part.starts)
            for axis, counter in zip(axes, counters, strict=True):
                position[axis] = self.arithmetic.add(position[axis], counter)
            page = self.arithmetic.index(position, units)
            place = self.arithmetic.index(counters, buffer.shape)
            if isinstance(place, SSAValue):
                offset = self.arithmetic.multiply(place, self._tile_bytes[buffer.name])
                address = self.builder.sum(address, offset)
            self.builder.op(op, page, tensor, address)

    def _axes(self, part: MovedSlice, buffer: DataflowBuffer) -> list[int]:
        """The dimension of the tensor that each dimension of a block stands for."""
        found: list[int] = []
        left = list(buffer.shape)
        for axis, (size, single) in enumerate(zip(part.sizes, part.single, strict=True)):
            if left and size in (None, left[0]) and len(part.sizes) - axis >= len(left):
                found.append(axis)
                left.pop(0)
            elif not single:
                break
        if left or len(found) != len(buffer.shape):
            sizes = shape_text([size if size is not None else -1 for size in part.sizes])
            self.refuse(
                f"a slice of the shape {sizes} does not fit a block of '{buffer.name}', which has "
                f"the shape {shape_text(buffer.shape)}"
            )
        return found


def _axis_name(axis: int, units: Sequence[int]) -> str:
    """What a dimension of a tensor is called."""
    return {len(units) - 1: "column", len(units) - 2: "row"}.get(axis, "matrix")
