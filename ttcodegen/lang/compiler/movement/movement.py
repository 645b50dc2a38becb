"""Data movement kernels: copies between tensors in DRAM and blocks of circular buffers."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from math import gcd, prod
from typing import Any, ClassVar

from xdsl.ir import SSAValue

from ttcodegen.dialects.ttkernel.definition import PRINTED
from ttcodegen.lang.compiler.movement.synchronization import MovedPipe, PipeCalls, SemaphoreCalls
from ttcodegen.lang.compiler.python.block_lifetimes import BlockLifetime, BlockLifetimes, Regions
from ttcodegen.lang.compiler.python.captured import Captured
from ttcodegen.lang.compiler.python.numbers import (
    SPELLINGS,
    Condition,
    KernelFloat,
    Number,
    is_computed,
)
from ttcodegen.lang.compiler.python.pipe_nets import NetUses
from ttcodegen.lang.compiler.python.translation import KernelTranslator
from ttcodegen.lang.compiler.resources import ElementCalls, MovementResources
from ttcodegen.lang.simulator.buffers import (
    NOT_BACKED_REMEDY,
    Acquisition,
    Block,
    DataflowBuffer,
    Event,
    not_backed,
)
from ttcodegen.lang.simulator.context import Kernel, KernelKind, current_chip, running_kernel
from ttcodegen.lang.simulator.expressions import NotNumeric
from ttcodegen.lang.simulator.pipes import Pipe, PipeNet
from ttcodegen.lang.simulator.shapes import is_integer, is_tuple, shape_text
from ttcodegen.lang.simulator.spelling import Representation
from ttcodegen.lang.simulator.tensors import (
    Tensor,
    TensorSlice,
    ends_of,
    out_of_range,
    wrong_indices,
)
from ttcodegen.lang.simulator.transfers import (
    ADDED_AFTER_WAIT,
    GROUP_AFTER_WAIT,
    HANDLE_AFTER_WAIT,
    INDEX,
    READ,
    WRITE,
    GroupTransfer,
    Transfer,
    coordinates_and_value,
    copy,
    copy_remedy,
    no_handle,
    raw_element_read,
    raw_element_write,
    read_index,
    wrong_kind,
)


@dataclass(eq=False)
class MovedBlock(Representation, NotNumeric):
    """A block that a data movement kernel has acquired."""

    language_class: ClassVar[type] = Block
    buffer: DataflowBuffer
    life: BlockLifetime
    address: tuple[Regions, SSAValue] | None = None
    """Address of the block, and the enclosing loops and conditions of its computation."""

    @property
    def is_reserved(self) -> bool:
        """True if the block was reserved, to be written."""
        return self.life.acquisition is Acquisition.RESERVE


@dataclass(eq=False)
class MovedSlice:
    """A slice of a tensor: its starts, and its sizes where they are known."""

    language_class: ClassVar[type] = TensorSlice
    tensor: Tensor
    starts: tuple[Number, ...]
    sizes: tuple[int | None, ...]
    single: tuple[bool, ...]


@dataclass(frozen=True)
class _Columns:
    """A range of bytes in each row of a row-major tensor."""

    offset: Number
    bytes: int


@dataclass(eq=False)
class MovedTransfer:
    """A copy that has been started."""

    language_class: ClassVar[type] = Transfer
    block: MovedBlock
    end: Event
    barrier: str = ""
    """Name of the barrier op that waits for the copy; empty if there is none."""
    finish: Callable[[], None] | None = None
    """Action that replaces the wait of a receive from a pipe."""
    done_in: Regions | None = None
    """Enclosing loops and conditions of the wait, once the copy was waited for."""


@dataclass(eq=False)
class MovedGroup:
    """A group of copies that are waited for together."""

    language_class: ClassVar[type] = GroupTransfer
    transfers: list[MovedTransfer] = field(default_factory=list[MovedTransfer])
    is_done: bool = False


_SIGNS = {"USub": "-"}
_KINDS: dict[type, str] = {
    MovedBlock: "Block", MovedSlice: "TensorSlice", MovedPipe: "PipeIdentity",
}  # fmt: skip
"""Type names of copy operands in messages."""


class MovementTranslator(KernelTranslator):
    """Translates a data movement kernel."""

    def __init__(
        self, kernel: Kernel, captured: Captured, resources: MovementResources, nets: NetUses
    ) -> None:
        super().__init__(kernel, captured, resources.builder, nets)
        self.resources = resources
        self.semaphores = SemaphoreCalls(self, resources)
        self.pipes = PipeCalls(self, resources)
        self.elements = ElementCalls(self)
        self.calls |= {
            copy: self._copy,
            GroupTransfer: MovedGroup,
            raw_element_read: self._read_element,
            raw_element_write: self._write_element,
            read_index: self._read_index,
        }
        self._lifetimes = BlockLifetimes(KernelKind.DATA_MOVEMENT)
        self._tile_bytes: dict[str, SSAValue] = {}

    def begin(self, buffers: Sequence[DataflowBuffer]) -> None:
        """Emits the start of the kernel.

        These are pointers to semaphores, tile sizes of buffers whose blocks have several tiles, and
        the initialization of the pipe nets that the kernel sends to.
        """
        self.resources.declare_pointers()
        for buffer in buffers:
            if buffer.pages > 1 and buffer.is_tiled:
                self._tile_bytes[buffer.name] = self.builder.get(
                    "get_tile_size",
                    self.resources.target.buffer(buffer.name),
                    name_hint=f"{buffer.name}_tile_bytes",
                )
        for use in self.nets.uses.values():
            if self.kernel.name in use.senders:
                self.pipes.begin(use)

    def kernel_body(self) -> None:
        super().kernel_body()
        self._lifetimes.check_released()
        self.pipes.end()
        for size in self._tile_bytes.values():
            if not size.uses:
                self.builder.remove(size)

    def method(self, value: Any, name: str) -> Callable[..., Any] | None:
        match value, name:
            case DataflowBuffer(), "reserve" | "wait":
                return lambda: self._acquire(value, Acquisition(name))
            case DataflowBuffer(), "publish":
                return lambda: self._publish(value)
            case MovedBlock(), "push" | "pop":
                return lambda: self._release(value, Event(name))
            case MovedBlock(), "store":
                return self._refuse_store
            case MovedTransfer(), "wait":
                return lambda: self._wait([value])
            case MovedGroup(), "add":
                return partial(self._add, value)
            case MovedGroup(), "wait_all":
                return lambda: self._wait_all(value)
            case PipeNet(), "if_src" | "if_dst":
                return partial(self.pipes.branch, value, name)
            case _:
                found = self.semaphores.method(value, name)
                return super().method(value, name) if found is None else found

    def _refuse_store(self, _expression: object) -> None:
        self.refuse("ttl.Block.store can only be used inside of a compute kernel function")

    def attribute(self, value: Any, name: str) -> Any:
        if isinstance(value, MovedPipe):
            return self.pipes.end_of(value, name)
        return super().attribute(value, name)

    def printed_buffer(self, buffer: DataflowBuffer, operands: list[SSAValue]) -> str:
        here = self.resources.buffer(buffer.name)
        operands += [self.builder.get(f"get_{name}_ptr", here) for name in ("read", "write")]
        return f"{buffer.describe_size()}, rd_ptr={{}}, wr_ptr={{}}"

    def print_elements(self, value: Any, pages: int) -> bool:
        if not isinstance(value, MovedBlock | Tensor):
            return False
        kind = (value.buffer if isinstance(value, MovedBlock) else value).data_type.mlir
        if kind not in PRINTED:
            return False
        if isinstance(value, MovedBlock):
            self._print_block(value, kind)
        else:
            self._print_pages(value, kind, pages)
        return True

    def _print_block(self, block: MovedBlock, kind: str) -> None:
        buffer, start = block.buffer, self.address(block)

        def address(number: Number) -> SSAValue:
            return self.builder.sum(start, self.arithmetic.multiply(number, buffer.unit_bytes))

        if buffer.is_tiled:
            self.print_tiles(buffer.pages, kind, address)
            return
        with self.builder.loop(prod(buffer.unit_shape), name_hint="row") as row:
            self.builder.op("blocks.print_row", address(row), buffer.shape[-1], printed=kind)

    def _print_pages(self, tensor: Tensor, kind: str, pages: int) -> None:
        """Reads the first pages of a tensor into a private circular buffer, and prints them."""
        width = tensor.padded.shape[-1]
        count = prod(tensor.units) if tensor.is_tiled else tensor.padded.size // width
        accessor = self.resources.tensor(tensor, is_read=True)
        there = self.resources.printed_page(self.kernel.name, tensor)
        with self.builder.loop(min(pages, count), name_hint="page") as page:
            self.builder.op("dprint", page, fmt="page {}")
            address = self.builder.get("get_write_ptr", there, name_hint="page_address")
            self.builder.op("noc_async_read_page", page, accessor, address)
            self.builder.op("noc_async_read_barrier")
            if tensor.is_tiled:
                self.builder.op("blocks.print_tile", address, printed=kind)
            else:
                self.builder.op("blocks.print_row", address, width, printed=kind)

    def unary(self, symbol: str, value: Any, node: ast.AST) -> Any:
        if isinstance(value, MovedBlock):
            self._no_expression(_SIGNS.get(symbol, symbol))
        return super().unary(symbol, value, node)

    def binary(self, symbol: str, left: Any, right: Any, node: ast.AST) -> Any:
        if isinstance(left, MovedBlock) or isinstance(right, MovedBlock):
            self._no_expression(SPELLINGS.get(symbol, symbol))
        return super().binary(symbol, left, right, node)

    def _no_expression(self, symbol: str) -> None:
        running_kernel(f"{symbol} of block expressions", KernelKind.COMPUTE)

    def leave(self, held: Any, node: ast.stmt) -> None:
        if isinstance(held, MovedBlock):
            self._release(held, Event.PUSH if held.is_reserved else Event.POP)
        else:
            super().leave(held, node)

    def _acquire(self, buffer: DataflowBuffer, acquisition: Acquisition) -> MovedBlock:
        life = self._lifetimes.acquire(buffer.name, acquisition, self.where, self.regions)
        name = "cb_reserve_back" if acquisition is Acquisition.RESERVE else "cb_wait_front"
        self.builder.op(name, self.resources.buffer(buffer.name), buffer.pages)
        block = MovedBlock(buffer, life)
        if block.is_reserved and not self.is_uniform:
            self.resources.needs.varying.add(buffer.name)
        if block.is_reserved and buffer.is_computed_with and not buffer.is_tiled:
            self._clear_gaps(block)
        return block

    def _publish(self, buffer: DataflowBuffer) -> None:
        """Makes all blocks of a tensor-backed buffer readable."""
        if buffer.backing is None:
            self.refuse(not_backed(buffer.name), remedy=NOT_BACKED_REMEDY)
        if self.regions:
            self.refuse(
                f"the compiler publishes '{buffer.name}' outside of loops and conditions only"
            )
        self.resources.needs.published.add(buffer.name)
        pages = buffer.pages * buffer.block_count
        for op in ("cb_reserve_back", "cb_push_back"):
            self.builder.op(op, self.resources.buffer(buffer.name), pages)

    def _clear_gaps(self, block: MovedBlock) -> None:
        """Zeroes tile padding that copies do not write, but compute kernels read."""
        buffer = block.buffer
        rows, total = prod(buffer.unit_shape), buffer.pages * buffer.page_bytes
        if rows * buffer.row_bytes < total:
            sizes = rows, buffer.row_bytes, buffer.unit_bytes, total
            self.builder.op("blocks.clear_gaps", self.address(block), *sizes)

    def record(self, block: MovedBlock, event: Event) -> None:
        """Records an event in the life of a block."""
        block.life.record(event, self.where, self.regions)

    def _release(self, block: MovedBlock, event: Event) -> None:
        self.record(block, event)
        name = "cb_push_back" if block.is_reserved else "cb_pop_front"
        self.builder.op(name, self.resources.buffer(block.buffer.name), block.buffer.pages)

    # Transfers

    def _add(self, group: MovedGroup, xf: Any) -> None:
        if group.is_done:
            self.refuse(ADDED_AFTER_WAIT)
        if not isinstance(xf, MovedTransfer):
            self.refuse(no_handle(xf))
        group.transfers.append(xf)

    def _wait_all(self, group: MovedGroup) -> None:
        if group.is_done:
            self.refuse(GROUP_AFTER_WAIT)
        group.is_done = True
        self._wait(group.transfers)

    # Elements

    def _accessed(self, what: str, block: Any, event: Event) -> tuple[DataflowBuffer, SSAValue]:
        if not isinstance(block, MovedBlock):
            self.refuse(f"{what} takes a block, not a {_kind_of(block)}")
        self.record(block, event)
        return block.buffer, self.address(block)

    def _read_element(self, block: Any, *coords: Any) -> KernelFloat:
        return self.elements.read(*self._accessed(READ, block, Event.READ_ELEMENT), coords)

    def _read_index(self, block: Any, *coords: Any) -> SSAValue:
        return self.elements.index(*self._accessed(INDEX, block, Event.READ_ELEMENT), coords)

    def _write_element(self, block: Any, *given: Any, value: Any = None) -> None:
        coords, number = coordinates_and_value(given, value)
        target = self._accessed(WRITE, block, Event.WRITE_ELEMENT)
        self.elements.write(*target, coords, number)

    def _comparison(self, symbol: str, first: Any, second: Any, node: ast.AST) -> Condition | bool:
        if isinstance(first, KernelFloat) or isinstance(second, KernelFloat):
            self.here = node
            return self.elements.comparison(symbol, first, second)
        return super()._comparison(symbol, first, second, node)

    def _wait(self, transfers: Sequence[MovedTransfer]) -> None:
        """Waits for copies; a barrier also completes all other copies of its direction."""
        for transfer in transfers:
            done_in = transfer.done_in
            if done_in is not None and self.regions[: len(done_in)] == done_in:
                self.refuse(HANDLE_AFTER_WAIT)
        for barrier in dict.fromkeys(t.barrier for t in transfers if t.barrier):
            if not self.builder.is_last(barrier):
                self.builder.op(barrier)
        for transfer in transfers:
            if transfer.finish is not None:
                transfer.finish()
            self.record(transfer.block, transfer.end)
            transfer.done_in = self.regions

    def subscript(self, value: Any, index: Any, node: ast.AST) -> Any:
        if not isinstance(value, Tensor):
            return super().subscript(value, index, node)
        parts: tuple[Any, ...] = index if is_tuple(index) else (index,)
        units = value.units
        if len(parts) != len(units):
            self.refuse(wrong_indices(len(parts), value), node)
        starts: list[Number] = []
        sizes: list[int | None] = []
        for axis, (part, unit) in enumerate(zip(parts, units, strict=True)):
            start, size = self._ends(part, unit)
            starts.append(start)
            sizes.append(size)
            if (
                isinstance(start, int)
                and isinstance(size, int)
                and not 0 <= start < start + size <= unit
            ):
                self.refuse(out_of_range(axis, start, start + size, unit, value.unit), node)
        single = tuple(not isinstance(part, slice) for part in parts)
        return MovedSlice(value, tuple(starts), tuple(sizes), single)

    def _ends(self, part: Any, unit: int) -> tuple[Number, int | None]:
        start, stop = ends_of(part, unit, lambda each: is_computed(each) or is_integer(each))
        return start, 1 if stop is None else self.arithmetic.known_difference(stop, start)

    def _copy(self, src: Any, dst: Any) -> MovedTransfer:
        match src, dst:
            case MovedSlice(), MovedBlock():
                self.record(dst, Event.BEGIN_COPY_TO)
                self._copy_pages(src, dst, is_read=True)
                return MovedTransfer(dst, Event.END_COPY_TO, "noc_async_read_barrier")
            case MovedBlock(), MovedSlice():
                self.record(src, Event.BEGIN_COPY_FROM)
                self._copy_pages(dst, src, is_read=False)
                return MovedTransfer(src, Event.END_COPY_FROM, "noc_async_write_barrier")
            case MovedBlock(), MovedPipe(is_source=True):
                self.record(src, Event.BEGIN_COPY_FROM)
                self.pipes.copies(dst, src if src.is_reserved else None)
                self.pipes.send(dst, src.buffer, self.address(src))
                return MovedTransfer(src, Event.END_COPY_FROM)
            case MovedPipe(is_source=False), MovedBlock():
                self.record(dst, Event.BEGIN_COPY_TO)
                finish = partial(self._receive, src, dst)
                return MovedTransfer(dst, Event.END_COPY_TO, finish=finish)
            case _:
                kinds = [_kind_of(src), _kind_of(dst)]
                self.refuse(
                    f"there is no ttl.copy from a {kinds[0]} to a {kinds[1]}",
                    remedy=copy_remedy(
                        has_tensor=isinstance(src, Tensor) or isinstance(dst, Tensor),
                        has_pipe=isinstance(src, Pipe) or isinstance(dst, Pipe),
                        is_wrong_end=isinstance(src, MovedPipe) or isinstance(dst, MovedPipe),
                    ),
                )

    def _receive(self, pipe: MovedPipe, block: MovedBlock) -> None:
        self.pipes.copies(pipe, block)
        self.pipes.receive(pipe, block.buffer, partial(self.address, block))

    def address(self, block: MovedBlock) -> SSAValue:
        """Returns the address of a block, which is constant until the block is released."""
        if block.address is not None:
            regions, known = block.address
            if self.regions[: len(regions)] == regions:
                return known
        pointer = "get_write_ptr" if block.is_reserved else "get_read_ptr"
        buffer = self.resources.buffer(block.buffer.name)
        found = self.builder.get(pointer, buffer, name_hint=f"{block.buffer.name}_block")
        block.address = self.regions, found
        return found

    def _copy_pages(self, part: MovedSlice, block: MovedBlock, *, is_read: bool) -> None:
        """Emits the copy of a block page by page: tiles, or rows of a row-major tensor."""
        buffer = block.buffer
        self._check_types(part, buffer)
        axes = self._axes(part, buffer)
        tensor = self.resources.tensor(part.tensor, is_read=is_read)
        address = self.address(block)
        units = part.tensor.units
        rank = len(units)
        columns: _Columns | None = None
        if not buffer.is_tiled:
            # A page is a row.
            columns = self._columns(part, axes, buffer, is_read=is_read)
            part = MovedSlice(part.tensor, part.starts[:-1], part.sizes[:-1], part.single[:-1])
            axes, units = axes[:-1], units[:-1]
        for axis, start in enumerate(part.starts):
            if isinstance(start, SSAValue) and start.name_hint is None:
                start.name_hint = f"first_{_axis_name(axis, rank)}"
        with ExitStack() as loops:
            counters: list[Number] = []
            for axis, size in zip(axes, buffer.unit_shape, strict=True):
                if size == 1:
                    counters.append(0)
                    continue
                loop = self.builder.loop(size, name_hint=_axis_name(axis, rank))
                counters.append(loops.enter_context(loop))
            position = list(part.starts)
            for axis, counter in zip(axes, counters, strict=True):
                position[axis] = self.arithmetic.add(position[axis], counter)
            page = self.arithmetic.index(position, units)
            unit = self.arithmetic.index(counters, buffer.unit_shape)
            if isinstance(unit, SSAValue):
                offset = self.arithmetic.multiply(unit, self._tile_size(buffer))
                address = self.builder.sum(address, offset)
            if columns is not None:
                self._copy_columns(columns, page, tensor, address, is_read=is_read)
            else:
                op = "noc_async_read_page" if is_read else "noc_async_write_page"
                self.builder.op(op, page, tensor, address)

    def _check_types(self, part: MovedSlice, buffer: DataflowBuffer) -> None:
        """Refuses a copy between different layouts or data types."""
        mismatch = wrong_kind(buffer, part.tensor)
        if mismatch is not None:
            self.refuse(mismatch)

    def _columns(
        self, part: MovedSlice, axes: list[int], buffer: DataflowBuffer, *, is_read: bool
    ) -> _Columns | None:
        """Returns the part of each row that a slice covers, or None for whole rows."""
        start, width = part.starts[-1], part.tensor.units[-1]
        if axes[-1] != len(part.starts) - 1:
            self.refuse(
                "the compiler copies rows of row-major tensors, or parts of rows, into blocks of "
                "rows",
                remedy="give the block a last dimension of 1",
            )
        size = part.sizes[-1]
        assert size is not None
        if start == 0 and isinstance(start, int) and size == width:
            return None
        element = buffer.element_bytes
        chip = current_chip()
        # Writes to DRAM need no more alignment than those to L1 (tt-metal, noc_parameters.h).
        in_dram, in_l1 = chip.noc_dram_address_align_bytes, chip.noc_l1_address_align_bytes
        unit = in_dram if is_read else in_l1
        aligned = gcd(*self.arithmetic.terms(start).values()) * element % unit == 0
        if not aligned:
            self.refuse(
                f"this slice begins within {unit} bytes of a row: the NoC "
                f"{'reads from' if is_read else 'writes to'} DRAM at multiples of that",
                remedy=f"let parts of rows begin at multiples of {unit // element} elements",
            )
        offset = self.arithmetic.multiply(start, element)
        if isinstance(offset, SSAValue):
            offset.name_hint = f"{buffer.name}_offset"
        return _Columns(offset, size * element)

    def _copy_columns(
        self,
        columns: _Columns,
        page: Number,
        tensor: SSAValue,
        address: SSAValue,
        *,
        is_read: bool,
    ) -> None:
        """Emits the copy of a part of a row."""
        noc_address = self.resources.page_address(tensor, page, columns.offset, "part_of_row")
        if is_read:
            self.builder.op("noc_async_read", noc_address, address, columns.bytes)
        else:
            self.builder.op("noc_async_write", address, noc_address, columns.bytes)

    def _tile_size(self, buffer: DataflowBuffer) -> Number:
        return self._tile_bytes.get(buffer.name, buffer.unit_bytes)

    def _axes(self, part: MovedSlice, buffer: DataflowBuffer) -> list[int]:
        """Maps each dimension of a block to a dimension of the tensor."""
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


def _kind_of(value: object) -> str:
    """Type name of a copy operand in messages."""
    kind = type(value)
    return _KINDS.get(kind, kind.__name__)


def _axis_name(axis: int, rank: int) -> str:
    """Name of a tensor dimension, for loop counters."""
    return {rank - 1: "column", rank - 2: "row"}.get(axis, "matrix")
