"""Dataflow buffers, their blocks, and the states of blocks."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from math import prod
from types import TracebackType
from typing import Self

import numpy as np

from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.dialects.ttcore.shards import Layout
from ttcodegen.dialects.ttcore.tile import TILE_ELEMENTS
from ttcodegen.dialects.ttnn.placement import TensorPlacement
from ttcodegen.foundation.diagnostics import Note, plural
from ttcodegen.lang.simulator.context import (
    Awaitable,
    Kernel,
    KernelKind,
    Node,
    WrittenUnits,
    current,
    current_chip,
    running_kernel,
)
from ttcodegen.lang.simulator.expressions import Array, BlockExpr, element_shape, elementwise
from ttcodegen.lang.simulator.locations import (
    Instruction,
    ProgramError,
    assigned_name,
    error,
    here,
    location_of,
)
from ttcodegen.lang.simulator.recording import RecordedValue, current_recording
from ttcodegen.lang.simulator.shapes import Shape, check_layout, shape_text
from ttcodegen.lang.simulator.tensors import Tensor
from ttcodegen.layout.collapse import align_up
from ttcodegen.layout.placements import page_bytes, tile_bytes_of
from ttcodegen.numerics.rounding import store_rounded

# States of a block between its acquisition and its release, and the events that change them
# (TT-Lang specification 0.22, "Block states").


class BlockState(Enum):
    """State of a block, with the specification's name and wording."""

    # Members are compared by identity: hashing their names would take longer than the table lookup.
    __hash__ = object.__hash__

    MW = "Must be Written: the block was reserved and contains garbage data and therefore must be written to"  # noqa: E501
    MR = "Must be Read: the block was waited on or written to and never read and therefore must be read from or pushed"  # noqa: E501
    RW = "Read-Write: the block was waited on or written to (MR) and then read from and therefore can be either read from more times or overwritten"  # noqa: E501
    ROR = "Read Only while Reading: the block is being asynchronously read from by ttl.copy"
    NAW = "No Access while Writing: the block is being asynchronously written to"
    OS = "Out of Scope: the block was pushed or popped"


class Acquisition(Enum):
    """Kind of acquisition of a block: reserve or wait."""

    __hash__ = object.__hash__

    RESERVE = "reserve"
    WAIT = "wait"


class Event(Enum):
    """Event in the lifetime of a block, worded as in messages."""

    __hash__ = object.__hash__

    READ = "read"
    """Synchronous read by a block expression."""
    STORE = "store to"
    BEGIN_COPY_FROM = "copy from"
    END_COPY_FROM = "end the copy from"
    BEGIN_COPY_TO = "copy to"
    END_COPY_TO = "end the copy to"
    READ_ELEMENT = "read an element of"
    WRITE_ELEMENT = "write an element of"
    PUSH = "push"
    POP = "pop"


INITIAL_STATES = {Acquisition.RESERVE: BlockState.MW, Acquisition.WAIT: BlockState.MR}

_S, _E = BlockState, Event
_EXPRESSIONS = {(_S.MR, _E.READ): _S.RW, (_S.RW, _E.READ): _S.RW, (_S.RW, _E.STORE): _S.MR}
_COPIES = {
    (_S.MR, _E.BEGIN_COPY_FROM): _S.ROR,
    (_S.RW, _E.BEGIN_COPY_FROM): _S.ROR,
    (_S.ROR, _E.BEGIN_COPY_FROM): _S.ROR,
    (_S.ROR, _E.END_COPY_FROM): _S.RW,
    (_S.RW, _E.BEGIN_COPY_TO): _S.NAW,
    (_S.NAW, _E.END_COPY_TO): _S.MR,
}
_ELEMENTS = {
    (_S.MR, _E.READ_ELEMENT): _S.RW,
    (_S.RW, _E.READ_ELEMENT): _S.RW,
    (_S.RW, _E.WRITE_ELEMENT): _S.RW,
}
_PUSH = {(_S.MR, _E.PUSH): _S.OS, (_S.RW, _E.PUSH): _S.OS}
_POP = {(_S.RW, _E.POP): _S.OS}

TRANSITIONS = {
    (KernelKind.COMPUTE, Acquisition.RESERVE): {
        (_S.MW, _E.STORE): _S.MR, **_EXPRESSIONS, **_PUSH,
    },
    (KernelKind.COMPUTE, Acquisition.WAIT): {**_EXPRESSIONS, **_POP},
    (KernelKind.DATA_MOVEMENT, Acquisition.RESERVE): {
        (_S.MW, _E.BEGIN_COPY_TO): _S.NAW, (_S.MW, _E.WRITE_ELEMENT): _S.RW,
        **_COPIES, **_ELEMENTS, **_PUSH,
    },
    (KernelKind.DATA_MOVEMENT, Acquisition.WAIT): {**_COPIES, **_ELEMENTS, **_POP},
}  # fmt: skip
"""State machines, one for each diagram of the specification; the last reading copy ends `ROR`."""


def next_state(
    transitions: Mapping[tuple[BlockState, Event], BlockState],
    state: BlockState,
    readers: int,
    event: Event,
) -> tuple[BlockState, int] | None:
    """State after an event, and number of reading copies; None if the event is not allowed."""
    after = transitions.get((state, event))
    if after is None:
        return None
    if event is Event.BEGIN_COPY_FROM:
        return after, readers + 1
    if event is Event.END_COPY_FROM:
        return BlockState.ROR if readers > 1 else after, readers - 1
    return after, readers


def refusal(buffer: str, event: Event, state: BlockState, readers: int = 0) -> str:
    """Error message for an event that is not allowed in the current state of a block."""
    named = f"ROR({readers})" if state is BlockState.ROR else state.name
    return f"cannot {event.value} a block of '{buffer}' in the state {named} ({state.value})"


def remedy(event: Event, state: BlockState, acquisition: Acquisition) -> str | None:
    """Hint for an event that is not allowed, or None."""
    wrong_release = {Event.PUSH: Acquisition.WAIT, Event.POP: Acquisition.RESERVE}
    if wrong_release.get(event) is acquisition:
        return "reserve is followed by push, wait by pop"
    if state in (BlockState.ROR, BlockState.NAW):
        return "wait for the transfer that ttl.copy returned"
    return None


def released_word(acquisition: Acquisition) -> str:
    """Verb for the release of a block, by its acquisition."""
    return "pushed" if acquisition is Acquisition.RESERVE else "popped"


def acquired_twice(buffer: str, acquisition: Acquisition) -> str:
    """Error message for a second acquisition before the release of the first block."""
    return (
        f"{acquisition.value} of '{buffer}' while a block of it is acquired and not "
        f"{released_word(acquisition)} yet"
    )


NEVER_RELEASED_REMEDY = "acquire it in a with statement, which releases it at its end"


def never_released(buffer: str, acquisition: Acquisition) -> str:
    """Error message for a block that is never released."""
    return f"a block of '{buffer}' is never {released_word(acquisition)}"


# Dataflow buffers and their blocks

MIN_ELEMENT_BYTES = 2
"""Bytes of the smallest element type of row-major blocks in block expressions."""
_COMPUTE = KernelKind.COMPUTE
_RESERVE, _WAIT = Acquisition.RESERVE, Acquisition.WAIT
_READ, _STORE, _PUSH_EVENT, _POP_EVENT = Event.READ, Event.STORE, Event.PUSH, Event.POP
_BEGIN_COPY_FROM, _BEGIN_COPY_TO = Event.BEGIN_COPY_FROM, Event.BEGIN_COPY_TO
_COPY_EVENTS = (_BEGIN_COPY_FROM, _BEGIN_COPY_TO, Event.END_COPY_FROM, Event.END_COPY_TO)


Region = tuple[Shape, Shape]
"""Starts and sizes of a part of a tensor, in units."""


@dataclass(frozen=True, eq=False)
class TensorMemory:
    """Memory of a node's shard of a tensor that backs the blocks of a dataflow buffer."""

    tensor: Tensor
    blocks: Sequence[tuple[Array, Region]]
    """Memory and tensor region of each block; empty if the node has no whole shard."""
    is_whole_shard: bool
    """True if the blocks cover the whole shard."""


class DataflowBuffer(Awaitable):
    """A queue of blocks between the kernels of a node.

    Attributes:
        shape: shape of a block, in tiles if the buffer is tiled, else in elements.
        block_count: capacity in blocks.
        backing: memory of a tensor that holds the blocks; None if the buffer has memory of its own.
        group: allocation group, if any.
    """

    def __init__(
        self,
        data_type: DataType,
        is_tiled: bool,
        shape: Shape,
        block_count: int,
        node: Node,
        backing: TensorMemory | None = None,
    ) -> None:
        super().__init__()
        self.data_type = data_type
        self.is_tiled = is_tiled
        self.shape = shape
        self.block_count = block_count
        self.node = node
        self.number = len(node.made.of(DataflowBuffer))
        self.made_at = here()
        self.name = assigned_name() or f"dfb{self.number}"
        self.backing = backing
        self.group: DFBAllocationGroup | None = None
        self._is_published = False
        self.is_computed_with = False
        """True if a compute kernel acquires its blocks.

        Blocks of row-major buffers are then tiles, packed with the elements in row-major order.
        """
        memory = [array for array, _ in backing.blocks] if backing is not None else []
        if not memory:
            sizes = element_shape(shape, is_tiled)
            kind = np.dtype(np.float32 if data_type.is_float else data_type.numpy)
            memory = [np.zeros(sizes, kind) for _ in range(block_count)]
        self._free = deque(memory)
        self._filled: deque[Array] = deque()
        self._held: dict[Acquisition, Block | None] = dict.fromkeys(Acquisition)
        self._released = dict.fromkeys(Acquisition, 0)
        self._users: dict[Acquisition, Kernel] = {}
        """Kernels that acquired its latest blocks."""

    @property
    def unit_bytes(self) -> int:
        """Distance in bytes between units of copies: tiles, or rows of elements."""
        if self.is_tiled:
            return tile_bytes_of(self.data_type)
        if self.is_computed_with:
            return _packed_row(self.shape) * self.element_bytes
        placement = TensorPlacement(tuple(self.shape), self.data_type, Layout.ROW_MAJOR)
        return page_bytes(placement, current_chip().noc_dram_address_align_bytes)

    @property
    def unit_shape(self) -> Shape:
        """Shape of a block in units of copies."""
        return self.shape if self.is_tiled else self.shape[:-1]

    @property
    def row_bytes(self) -> int:
        """Bytes of the elements in a row of a row-major block."""
        return self.shape[-1] * self.element_bytes

    @property
    def element_bytes(self) -> int:
        """Bytes of an element of a row-major block."""
        return tile_bytes_of(self.data_type) // TILE_ELEMENTS

    @property
    def page_bytes(self) -> int:
        """Bytes of a page: a tile, or a row of elements if no compute kernel uses the buffer."""
        return tile_bytes_of(self.data_type) if self.is_computed_with else self.unit_bytes

    @property
    def pages(self) -> int:
        """Number of pages of a block."""
        if self.is_computed_with:
            return prod(self.tiles)
        return prod(self.unit_shape)

    @property
    def tiles(self) -> Shape:
        """Shape of a block in tiles; row-major blocks are packed into a row of tiles."""
        if self.is_tiled:
            return self.shape
        return packed_tiles(self.shape)

    @property
    def bytes(self) -> int:
        """L1 size in bytes."""
        return self.pages * self.page_bytes * self.block_count

    def _mark_written(self, backing: TensorMemory, array: Array) -> None:
        """Marks the part of a tensor that a pushed block covers as written."""
        region = next((region for each, region in backing.blocks if each is array), None)
        if region is None:
            raise error(
                f"node {self.node} has no whole shard of the tensor whose memory '{self.name}' has"
            )
        tensor = backing.tensor
        units = self.node.launch.written.setdefault(id(tensor), WrittenUnits(tensor.units))
        units.add(*region)

    def publish(self) -> None:
        """Makes all blocks of a tensor-backed buffer readable, once.

        Raises:
            ProgramError: if the buffer has memory of its own, or was published or pushed to before.
        """
        running_kernel("ttl.DataflowBuffer.publish", KernelKind.DATA_MOVEMENT)
        if self.backing is None:
            raise error(not_backed(self.name), remedy=NOT_BACKED_REMEDY)
        if self._is_published or self._released[_RESERVE]:
            raise error(f"'{self.name}' is published once, before anything is pushed to it")
        self._is_published = True
        self._filled.extend(self._free)
        self._free.clear()
        self._released[_RESERVE] += self.block_count
        self.node.launch.scheduler.changed(self)

    def reserve(self) -> Block:
        """Acquires a free block for writing; waits until there is one."""
        return self._acquire(_RESERVE, self._free, "free")

    def wait(self) -> Block:
        """Acquires a filled block for reading; waits until there is one."""
        return self._acquire(_WAIT, self._filled, "filled")

    def _acquire(self, acquisition: Acquisition, source: deque[Array], kind: str) -> Block:
        kernel = current.kernel
        if kernel is None:
            kernel = running_kernel(f"ttl.DataflowBuffer.{acquisition.value}")
        if kernel.kind is _COMPUTE:
            self.is_computed_with = True
        if self._users.get(acquisition) is not kernel:
            self._set_user(kernel, acquisition)
        held = self._held[acquisition]
        if held is not None:
            raise error(
                acquired_twice(self.name, acquisition),
                notes=[Note("it was acquired here", location_of(held.acquired))],
            )
        if not source:
            self._wait_for(kernel, source, kind)
        block = Block(self, source.popleft(), acquisition, kernel, here())
        self._held[acquisition] = block
        return block

    def _set_user(self, kernel: Kernel, acquisition: Acquisition) -> None:
        """Records that another kernel acquires blocks.

        On the device a single kernel may do so, because it alone tracks the position in the buffer.
        """
        before = self._users.get(acquisition)
        if before is not None and kernel.node.launch.is_compiled:
            raise error(
                f"the kernels '{before.name}' and '{kernel.name}' both have {acquisition.value} of "
                f"'{self.name}' on node {kernel.node}: on the device, one kernel pushes the blocks "
                "of a buffer, and one pops them",
                remedy="give each of them a dataflow buffer of its own",
            )
        self._users[acquisition] = kernel

    def _wait_for(self, kernel: Kernel, source: deque[Array], kind: str) -> None:
        kernel.node.launch.scheduler.wait_until(
            self, lambda: bool(source), lambda: f"a {kind} block of '{self.name}'"
        )

    def endless_wait_reason(self) -> str | None:
        """Error message for a block that an ended kernel has not released, or None."""
        for block in self.unreleased():
            if block.kernel.has_ended:
                return never_released(self.name, block.acquisition)
        return None

    def wait_notes(self) -> list[Note]:
        """Notes on unreleased blocks, or else on kernels that have ended after their last block."""
        held = [
            Note(
                f"{block.kernel} has not {released_word(block.acquisition)} the block of "
                f"'{self.name}' that it acquired by {block.acquisition.value} here",
                location_of(block.acquired),
            )
            for block in self.unreleased()
        ]
        ended = [
            Note(
                f"{kernel} has ended; it {released_word(acquisition)} "
                f"{plural(self._released[acquisition], 'block')} of '{self.name}'"
            )
            for acquisition, kernel in self._users.items()
            if kernel.has_ended
        ]
        return held or ended

    def release(self, block: Block, array: Array) -> None:
        """Receives a released block: it is filled after a push, and free after a pop."""
        if block.acquisition is _RESERVE:
            self._filled.append(array)
            if self.backing is not None:
                self._mark_written(self.backing, array)
        else:
            self._free.append(array)
        self._released[block.acquisition] += 1
        self._held[block.acquisition] = None
        if self.waiting:
            self.node.launch.scheduler.changed(self)

    def unreleased(self) -> list[Block]:
        """Blocks that are currently acquired."""
        return [block for block in self._held.values() if block is not None]

    def describe_size(self) -> str:
        """Name and sizes, for debug printing."""
        return (
            f"DataflowBuffer {self.name}: shape={shape_text(self.shape)}, "
            f"block_count={self.block_count}, size={self.bytes}, page_size={self.page_bytes}"
        )

    def describe(self) -> str:
        """State, for debug printing; pointers are page offsets from the start of the memory."""
        capacity = self.pages * self.block_count
        held = self._held[Acquisition.RESERVE] is not None
        write = self._released[_RESERVE] * self.pages % capacity
        read = self._released[_WAIT] * self.pages % capacity
        return (
            f"{self.describe_size()}, "
            f"rd_ptr={read}, wr_ptr={write}, "
            f"wr_tile_ptr={0 if not held else write}, filled={len(self._filled)}"
        )


class DFBAllocationGroup:
    """A group of dataflow buffers that share memory, used one after the other."""


NOT_BACKED_REMEDY = "ttl.make_tensor_backed_dfb makes a buffer of the memory of a tensor"


def not_backed(buffer: str) -> str:
    """Error message for publishing a buffer that no tensor backs."""
    return f"'{buffer}' has memory of its own: there is nothing to publish"


class Block(BlockExpr):
    """A block of memory acquired from a dataflow buffer."""

    __slots__ = (
        "_last_copy", "_transitions", "acquired", "acquisition", "buffer", "kernel", "readers",
        "state",
    )  # fmt: skip

    def __init__(
        self,
        buffer: DataflowBuffer,
        array: Array,
        acquisition: Acquisition,
        kernel: Kernel,
        acquired: Instruction | None,
    ) -> None:
        # Hot path: kernels acquire blocks more often than they do anything else.
        self._array = array
        self.shape = buffer.shape
        self.is_tiled = buffer.is_tiled
        self.is_number = False
        self._origin = None
        self.buffer = buffer
        self.acquisition = acquisition
        self.acquired = acquired
        self.state = INITIAL_STATES[acquisition]
        self.readers = 0
        """Number of copies that are reading the block."""
        self.kernel = kernel
        self._transitions = TRANSITIONS[kernel.kind, acquisition]
        self._last_copy: Instruction | None = None

    def record(self, event: Event) -> None:
        """Moves to the state after an event; raises ProgramError if the event is not allowed."""
        self.kernel.steps += 1
        if event in _COPY_EVENTS:
            found = next_state(self._transitions, self.state, self.readers, event)
            if found is None:
                raise self._refusal(event)
            self.state, self.readers = found
            if event is _BEGIN_COPY_FROM or event is _BEGIN_COPY_TO:
                self._last_copy = here()
            return
        # Fast path: these events do not change the number of reading copies.
        after = self._transitions.get((self.state, event))
        if after is None:
            raise self._refusal(event)
        self.state = after

    def _refusal(self, event: Event) -> Exception:
        notes = [
            Note(f"it was acquired by {self.acquisition.value} here", location_of(self.acquired))
        ]
        if self.state in (BlockState.ROR, BlockState.NAW):
            notes.append(Note("the copy began here", location_of(self._last_copy)))
        return error(
            refusal(self.buffer.name, event, self.state, self.readers),
            notes=notes,
            remedy=remedy(event, self.state, self.acquisition),
        )

    @property
    def origin(self) -> RecordedValue | None:
        recording = current_recording()
        return None if recording is None else recording.content(self._array)

    def value(self) -> Array:
        kernel = current.kernel
        if kernel is None or kernel.kind is not _COMPUTE:
            running_kernel("a block expression", KernelKind.COMPUTE)
        self.record(_READ)
        return self._array

    def store(self, expr: BlockExpr) -> None:
        """Evaluates a block expression into the block, rounded to the data type of the buffer."""
        running_kernel("ttl.Block.store", KernelKind.COMPUTE)
        if not isinstance(expr, BlockExpr):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise no_expression(expr)
        check_layout(expr.is_tiled, self.buffer.name, self.is_tiled)
        if expr.shape != self.shape:
            raise error(
                f"an expression of the shape {shape_text(expr.shape)} does not fit into a block of "
                f"'{self.buffer.name}', which has the shape {shape_text(self.shape)}"
            )
        array = expr.value()
        if array.dtype != self._array.dtype and not expr.is_number:
            raise error(
                f"an expression of {array.dtype} does not fit into a block of "
                f"'{self.buffer.name}', which holds {self._array.dtype}: kernels do not convert"
            )
        self.record(_STORE)
        origin = expr.origin
        store_rounded(self._array, array, self.buffer.data_type)
        if (recording := current_recording()) is not None:
            recording.record_store(self._array, origin)

    def __iadd__(self, other: BlockExpr) -> BlockExpr:
        self.store(elementwise("+=", np.add, self, other))
        return self

    def content(self) -> Array:
        """Memory of the block regardless of its state, for copies and debug printing."""
        return self._array

    def push(self) -> None:
        """Passes the block to the consumer of the buffer."""
        self.record(_PUSH_EVENT)
        self.buffer.release(self, self._array)

    def pop(self) -> None:
        """Returns the block to the producer of the buffer."""
        self.record(_POP_EVENT)
        self.buffer.release(self, self._array)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        raised: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self.push() if self.acquisition is _RESERVE else self.pop()


def no_expression(value: object) -> ProgramError:
    """Error for storing something else than a block expression."""
    return error(
        f"store takes a block expression, not a {type(value).__name__}",
        remedy="ttl.block.fill makes a block expression of a number",
    )


def _packed_row(shape: Shape) -> int:
    """Distance between rows of packed tiles, in elements.

    It is the same for all data types, so that rows of the narrowest type are aligned as well.
    """
    return align_up(shape[-1], current_chip().noc_dram_address_align_bytes // MIN_ELEMENT_BYTES)


def packed_tiles(shape: Shape) -> Shape:
    """Shape in tiles of a packed row-major block: a single row of tiles."""
    elements = prod(shape[:-1]) * _packed_row(shape)
    return (-(-elements // TILE_ELEMENTS),)
