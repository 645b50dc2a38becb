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
    place,
)
from ttcodegen.lang.simulator.recording import RecordedValue, current_recording
from ttcodegen.lang.simulator.shapes import Shape, check_layout, shape_text
from ttcodegen.lang.simulator.tensors import Tensor
from ttcodegen.layout.collapse import align_up
from ttcodegen.layout.placements import page_bytes, tile_bytes_of
from ttcodegen.numerics.rounding import store_rounded

# The states of a block between its acquisition and its release, and what leads from one to
# another (TT-Lang specification 0.22, "Block states").


class BlockState(Enum):
    """A state, with the name and the words of the specification."""

    # Members are compared by identity; hashing their names would take longer than the rules do.
    __hash__ = object.__hash__

    MW = "Must be Written: the block was reserved and contains garbage data and therefore must be written to"  # noqa: E501
    MR = "Must be Read: the block was waited on or written to and never read and therefore must be read from or pushed"  # noqa: E501
    RW = "Read-Write: the block was waited on or written to (MR) and then read from and therefore can be either read from more times or overwritten"  # noqa: E501
    ROR = "Read Only while Reading: the block is being asynchronously read from by ttl.copy"
    NAW = "No Access while Writing: the block is being asynchronously written to"
    OS = "Out of Scope: the block was pushed or popped"


class Acquisition(Enum):
    """Acquisition of a block: reserve or wait."""

    __hash__ = object.__hash__

    RESERVE = "reserve"
    WAIT = "wait"


class Event(Enum):
    """Event in the life of a block, as messages word it."""

    __hash__ = object.__hash__

    READ = "read"
    """By a block expression, at once."""
    STORE = "store to"
    BEGIN_COPY_FROM = "copy from"
    END_COPY_FROM = "end the copy from"
    BEGIN_COPY_TO = "copy to"
    END_COPY_TO = "end the copy to"
    READ_ELEMENT = "read an element of"
    WRITE_ELEMENT = "write an element of"
    PUSH = "push"
    POP = "pop"


FIRST = {Acquisition.RESERVE: BlockState.MW, Acquisition.WAIT: BlockState.MR}

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
"""One table for each diagram of the specification. `ROR` is left with the last copy that reads."""


def following(
    transitions: Mapping[tuple[BlockState, Event], BlockState],
    state: BlockState,
    readers: int,
    event: Event,
) -> tuple[BlockState, int] | None:
    """The state after an event, and how many copies read the block then; None if the event is not
    allowed."""
    after = transitions.get((state, event))
    if after is None:
        return None
    if event is Event.BEGIN_COPY_FROM:
        return after, readers + 1
    if event is Event.END_COPY_FROM:
        return BlockState.ROR if readers > 1 else after, readers - 1
    return after, readers


def refusal(buffer: str, event: Event, state: BlockState, readers: int = 0) -> str:
    """The error of a program that breaks the rules of a block of a buffer."""
    named = f"ROR({readers})" if state is BlockState.ROR else state.name
    return f"cannot {event.value} a block of '{buffer}' in the state {named} ({state.value})"


def remedy(event: Event, state: BlockState, acquisition: Acquisition) -> str | None:
    """Remedy for an invalid event, or None."""
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
    """The error of a program that acquires a second block before it releases the first."""
    return (
        f"{acquisition.value} of '{buffer}' while a block of it is acquired and not "
        f"{released_word(acquisition)} yet"
    )


NEVER_RELEASED_REMEDY = "acquire it in a with statement, which releases it at its end"


def never_released(buffer: str, acquisition: Acquisition) -> str:
    """The error of a program that keeps a block."""
    return f"a block of '{buffer}' is never {released_word(acquisition)}"


# Dataflow buffers and their blocks.

NARROWEST = 2
"""Bytes of an element of the smallest data type of row-major blocks in block expressions."""
_COMPUTE = KernelKind.COMPUTE
_RESERVE, _WAIT = Acquisition.RESERVE, Acquisition.WAIT
_READ, _STORE, _PUSH_buffers, _POP_buffers = Event.READ, Event.STORE, Event.PUSH, Event.POP
_BEGIN_COPY_FROM, _BEGIN_COPY_TO = Event.BEGIN_COPY_FROM, Event.BEGIN_COPY_TO
_OF_COPIES = (_BEGIN_COPY_FROM, _BEGIN_COPY_TO, Event.END_COPY_FROM, Event.END_COPY_TO)


Region = tuple[Shape, Shape]
"""The start and the sizes of a part of a tensor, in units."""


@dataclass(frozen=True, eq=False)
class TensorMemory:
    """Memory of a tensor on a node that a dataflow buffer has its blocks in."""

    tensor: Tensor
    blocks: Sequence[tuple[Array, Region]]
    """The memory of each block, and the part of the tensor that it is; none if the node has no
    whole shard."""
    is_whole_shard: bool
    """True if the blocks are all that a node has of the tensor."""


class DataflowBuffer(Awaitable):
    """A queue of blocks between kernels of a node.

    Attributes:
        shape: of its blocks, in tiles if it is in the likeness of a tiled tensor, else in elements.
        block_count: how many blocks it has room for.
        backing: the memory of a tensor that its blocks are in, None if it has memory of its own.
        group: those that it is to share memory with, if there are any.
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
        """True if a compute kernel acquires its blocks; those of row-major buffers are whole tiles
        then, which the elements fill in their order."""
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
        """The kernels that acquired its last blocks."""

    @property
    def unit_bytes(self) -> int:
        """Bytes from one unit that copies move to the next: a tile, or a row of elements."""
        if self.is_tiled:
            return tile_bytes_of(self.data_type)
        if self.is_computed_with:
            return _packed_row(self.shape) * self.element_bytes
        placement = TensorPlacement(tuple(self.shape), self.data_type, Layout.ROW_MAJOR)
        return page_bytes(placement, current_chip().noc_dram_address_align_bytes)

    @property
    def unit_shape(self) -> Shape:
        """The shape of a block in units that copies move."""
        return self.shape if self.is_tiled else self.shape[:-1]

    @property
    def row_bytes(self) -> int:
        """Bytes of the elements of a row of a row-major block."""
        return self.shape[-1] * self.element_bytes

    @property
    def element_bytes(self) -> int:
        """Bytes of an element of a row-major block."""
        return tile_bytes_of(self.data_type) // TILE_ELEMENTS

    @property
    def page_bytes(self) -> int:
        """Bytes of a page: of a tile, or of a row of elements that nobody computes with."""
        return tile_bytes_of(self.data_type) if self.is_computed_with else self.unit_bytes

    @property
    def pages(self) -> int:
        """Pages of a block."""
        if self.is_computed_with:
            return prod(self.tiles)
        return prod(self.unit_shape)

    @property
    def tiles(self) -> Shape:
        """The shape of a block in tiles: all in a row, if it is row-major."""
        if self.is_tiled:
            return self.shape
        return packed_tiles(self.shape)

    @property
    def bytes(self) -> int:
        """Bytes of L1."""
        return self.pages * self.page_bytes * self.block_count

    def _mark_written(self, backing: TensorMemory, array: Array) -> None:
        """Records that a part of a tensor has its elements, as a copy to it does."""
        region = next((region for each, region in backing.blocks if each is array), None)
        if region is None:
            raise error(
                f"node {self.node} has no whole shard of the tensor whose memory '{self.name}' has"
            )
        tensor = backing.tensor
        units = self.node.launch.written.setdefault(id(tensor), WrittenUnits(tensor.units))
        units.add(*region)

    def publish(self) -> None:
        """Makes what the tensor holds whose memory this is readable: all blocks, once.

        Raises:
            ProgramError: if the buffer has memory of its own, or was published before.
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
        """A free block, to be written and pushed; waits until there is one."""
        return self._acquire(_RESERVE, self._free, "free")

    def wait(self) -> Block:
        """A block that was pushed, to be read and popped; waits until there is one."""
        return self._acquire(_WAIT, self._filled, "filled")

    def _acquire(self, acquisition: Acquisition, source: deque[Array], kind: str) -> Block:
        kernel = current.kernel
        if kernel is None:
            kernel = running_kernel(f"ttl.DataflowBuffer.{acquisition.value}")
        if kernel.kind is _COMPUTE:
            self.is_computed_with = True
        if self._users.get(acquisition) is not kernel:
            self._is_used_by(kernel, acquisition)
        held = self._held[acquisition]
        if held is not None:
            raise error(
                acquired_twice(self.name, acquisition),
                notes=[Note("it was acquired here", place(held.acquired))],
            )
        if not source:
            self._await(kernel, source, kind)
        block = Block(self, source.popleft(), acquisition, kernel, here())
        self._held[acquisition] = block
        return block

    def _is_used_by(self, kernel: Kernel, acquisition: Acquisition) -> None:
        """Another kernel than before acquires a block; on the device only one does, for it alone
        knows how far it is."""
        before = self._users.get(acquisition)
        if before is not None and kernel.node.launch.is_compiled:
            raise error(
                f"the kernels '{before.name}' and '{kernel.name}' both have {acquisition.value} of "
                f"'{self.name}' on node {kernel.node}: on the device, one kernel pushes the blocks "
                "of a buffer, and one pops them",
                remedy="give each of them a dataflow buffer of its own",
            )
        self._users[acquisition] = kernel

    def _await(self, kernel: Kernel, source: deque[Array], kind: str) -> None:
        kernel.node.launch.scheduler.wait_until(
            self, lambda: bool(source), lambda: f"a {kind} block of '{self.name}'"
        )

    def forgotten(self) -> str | None:
        """That a block is never released, if the kernel that acquired it has ended."""
        for block in self.unreleased():
            if block.kernel.has_ended:
                return never_released(self.name, block.acquisition)
        return None

    def held_up_by(self) -> list[Note]:
        """The blocks that are acquired and not released; else which kernels have ended after their
        last blocks."""
        held = [
            Note(
                f"{block.kernel} has not {released_word(block.acquisition)} the block of "
                f"'{self.name}' that it acquired by {block.acquisition.value} here",
                place(block.acquired),
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
        """Takes a block back: the next filled one after a push, a free one after a pop."""
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
        """Blocks that are still acquired."""
        return [block for block in self._held.values() if block is not None]

    def describe_size(self) -> str:
        """Its name and its sizes, for debug printing."""
        return (
            f"DataflowBuffer {self.name}: shape={shape_text(self.shape)}, "
            f"block_count={self.block_count}, size={self.bytes}, page_size={self.page_bytes}"
        )

    def describe(self) -> str:
        """Its state, for debug printing; pointers count pages from the start of its memory."""
        turn = self.pages * self.block_count
        held = self._held[Acquisition.RESERVE] is not None
        write = self._released[_RESERVE] * self.pages % turn
        read = self._released[_WAIT] * self.pages % turn
        return (
            f"{self.describe_size()}, "
            f"rd_ptr={read}, wr_ptr={write}, "
            f"wr_tile_ptr={0 if not held else write}, filled={len(self._filled)}"
        )


class DFBAllocationGroup:
    """Dataflow buffers that are to have one circular buffer, one after the other."""


NOT_BACKED_REMEDY = "ttl.make_tensor_backed_dfb makes a buffer of the memory of a tensor"


def not_backed(buffer: str) -> str:
    """The error of a program that publishes a buffer with memory of its own."""
    return f"'{buffer}' has memory of its own: there is nothing to publish"


class Block(BlockExpr):
    """Memory acquired from a dataflow buffer."""

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
        # Kernels acquire blocks more often than they do anything else.
        self._array = array
        self.shape = buffer.shape
        self.is_tiled = buffer.is_tiled
        self.is_number = False
        self._origin = None
        self.buffer = buffer
        self.acquisition = acquisition
        self.acquired = acquired
        self.state = FIRST[acquisition]
        self.readers = 0
        """Copies that are reading."""
        self.kernel = kernel
        self._transitions = TRANSITIONS[kernel.kind, acquisition]
        self._last_copy: Instruction | None = None

    def happens(self, event: Event) -> None:
        """Goes to the next state; raises ProgramError if the event is not allowed in this one."""
        self.kernel.steps += 1
        if event in _OF_COPIES:
            found = following(self._transitions, self.state, self.readers, event)
            if found is None:
                raise self._refusal(event)
            self.state, self.readers = found
            if event is _BEGIN_COPY_FROM or event is _BEGIN_COPY_TO:
                self._last_copy = here()
            return
        # No copies are counted, so there is no need for a call.
        after = self._transitions.get((self.state, event))
        if after is None:
            raise self._refusal(event)
        self.state = after

    def _refusal(self, event: Event) -> Exception:
        notes = [Note(f"it was acquired by {self.acquisition.value} here", place(self.acquired))]
        if self.state in (BlockState.ROR, BlockState.NAW):
            notes.append(Note("the copy began here", place(self._last_copy)))
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
        self.happens(_READ)
        return self._array

    def store(self, expr: BlockExpr) -> None:
        """Computes a block expression into the block, rounded to the data type of its buffer."""
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
        self.happens(_STORE)
        origin = expr.origin
        store_rounded(self._array, array, self.buffer.data_type)
        if (recording := current_recording()) is not None:
            recording.stored(self._array, origin)

    def __iadd__(self, other: BlockExpr) -> BlockExpr:
        self.store(elementwise("+=", np.add, self, other))
        return self

    def content(self) -> Array:
        """The memory of the block, whatever its state: for copies, which distinguish its states
        themselves, and for debug printing."""
        return self._array

    def push(self) -> None:
        """Hands the block to the consumer of the buffer."""
        self.happens(_PUSH_buffers)
        self.buffer.release(self, self._array)

    def pop(self) -> None:
        """Gives the block back to the producer of the buffer."""
        self.happens(_POP_buffers)
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
    """The error of a program that stores something else than a block expression."""
    return error(
        f"store takes a block expression, not a {type(value).__name__}",
        remedy="ttl.block.fill makes a block expression of a number",
    )


def _packed_row(shape: Shape) -> int:
    """Elements from one row of packed tiles to the next: the same for all data types that kernels
    compute with, and as far apart as the rows of the narrowest have to be."""
    return align_up(shape[-1], current_chip().noc_dram_address_align_bytes // NARROWEST)


def packed_tiles(shape: Shape) -> Shape:
    """The tiles that the elements of a row-major block fill, all in a row."""
    elements = prod(shape[:-1]) * _packed_row(shape)
    return (-(-elements // TILE_ELEMENTS),)
