"""Copies between blocks, tensors and pipes, and single elements of blocks."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.lang.simulator.buffers import Block, DataflowBuffer, Event
from ttcodegen.lang.simulator.context import KernelKind, WrittenUnits, running_kernel
from ttcodegen.lang.simulator.expressions import element_shape
from ttcodegen.lang.simulator.locations import error
from ttcodegen.lang.simulator.pipes import DstPipeIdentity, Pipe, SrcPipeIdentity, receive, send
from ttcodegen.lang.simulator.recording import current_recording
from ttcodegen.lang.simulator.shapes import is_integer, shape_text
from ttcodegen.lang.simulator.tensors import Tensor, TensorSlice

_BEGIN_COPY_TO, _END_COPY_TO = Event.BEGIN_COPY_TO, Event.END_COPY_TO
HANDLE_AFTER_WAIT = "a transfer handle cannot be used after wait was called"
GROUP_AFTER_WAIT = "a group transfer cannot be used after wait_all was called"
ADDED_AFTER_WAIT = "ttl.GroupTransfer.add cannot be called after wait_all was called"


def no_handle(value: object) -> str:
    """Error message for adding something else than a transfer to a group."""
    return f"a group takes transfer handles, not a {type(value).__name__}"


class Transfer:
    """Handle of an asynchronous copy."""

    def __init__(self, finish: Callable[[], None]) -> None:
        self._finish: Callable[[], None] | None = finish

    def wait(self) -> None:
        """Waits until the copy is complete; the handle is invalid afterwards."""
        running_kernel("ttl.Transfer.wait", KernelKind.DATA_MOVEMENT)
        if self._finish is None:
            raise error(HANDLE_AFTER_WAIT)
        finish, self._finish = self._finish, None
        finish()

    @property
    def is_open(self) -> bool:
        """True until the transfer is waited for."""
        return self._finish is not None


class GroupTransfer:
    """A group of transfers that are waited for together."""

    def __init__(self) -> None:
        running_kernel("ttl.GroupTransfer", KernelKind.DATA_MOVEMENT)
        self._transfers: list[Transfer] | None = []

    def add(self, xf: Transfer) -> None:
        """Adds a transfer."""
        if self._transfers is None:
            raise error(ADDED_AFTER_WAIT)
        if not isinstance(xf, Transfer):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise error(no_handle(xf))
        self._transfers.append(xf)

    def wait_all(self) -> None:
        """Waits for all transfers; the group is invalid afterwards."""
        if self._transfers is None:
            raise error(GROUP_AFTER_WAIT)
        transfers, self._transfers = self._transfers, None
        for transfer in transfers:
            transfer.wait()


def copy(src: object, dst: object) -> Transfer:
    """Starts a copy between a block and a tensor slice or a pipe.

    The returned transfer must be waited for before the block is used or released.
    """
    running_kernel("ttl.copy", KernelKind.DATA_MOVEMENT)
    if isinstance(src, TensorSlice) and isinstance(dst, Block):
        return _load(src, dst)
    match src, dst:
        case Block(), TensorSlice():
            return _save(src, dst)
        case Block(), SrcPipeIdentity():
            return _send(src, dst)
        case DstPipeIdentity(), Block():
            return _receive(src, dst)
        case _:
            raise _no_copy(src, dst)


def copy_remedy(*, has_tensor: bool, has_pipe: bool, is_wrong_end: bool) -> str:
    """Hint for a copy with invalid operands.

    Args:
        has_tensor: True if an operand is a whole tensor.
        has_pipe: True if an operand is a pipe outside of `if_src` and `if_dst` functions.
        is_turned: True if a pipe is used at its wrong end.
    """
    if is_wrong_end:
        return "in if_src a pipe is the destination of a copy, in if_dst it is the source"
    if has_pipe:
        return "a copy with a pipe is in a function that the net's if_src or if_dst calls"
    if has_tensor:
        return "give the part of the tensor as a slice, such as a[0, :]"
    return "copies go between a block and a tensor slice, or between a block and a pipe"


def _no_copy(src: object, dst: object) -> Exception:
    both = (src, dst)
    remedy = copy_remedy(
        has_tensor=any(isinstance(each, Tensor) for each in both),
        has_pipe=any(isinstance(each, Pipe) for each in both),
        is_wrong_end=isinstance(src, SrcPipeIdentity) or isinstance(dst, DstPipeIdentity),
    )
    kinds = [type(each).__name__ for each in both]
    return error(f"there is no ttl.copy from a {kinds[0]} to a {kinds[1]}", remedy=remedy)


def wrong_kind(buffer: DataflowBuffer, tensor: Tensor) -> str | None:
    """Error message for a copy between different layouts or data types; None if they match."""
    if buffer.is_tiled is not tensor.is_tiled:
        names = {True: "tiled", False: "row-major"}
        return (
            f"a block of '{buffer.name}' is {names[buffer.is_tiled]}, the tensor is "
            f"{names[tensor.is_tiled]}"
        )
    if buffer.data_type is not tensor.data_type:
        return (
            f"a block of '{buffer.name}' holds {buffer.data_type.name}, the tensor "
            f"{tensor.data_type.name}: a copy does not convert"
        )
    return None


def _check_shapes(block: Block, part: TensorSlice) -> None:
    mismatch = wrong_kind(block.buffer, part.tensor)
    if mismatch is not None:
        raise error(mismatch)
    if not part.has_shape(block.shape):
        raise error(
            f"{part} does not fit a block of '{block.buffer.name}', which has the shape "
            f"{shape_text(block.shape)}"
        )


def _load(part: TensorSlice, block: Block) -> Transfer:
    _check_shapes(block, part)
    block.record(_BEGIN_COPY_TO)
    target = block.content()
    given = part.view()
    target[...] = given if given.shape == target.shape else given.reshape(target.shape)
    if (recording := current_recording()) is not None:
        recording.record_load(target, part, block.shape)
    return Transfer(lambda: block.record(_END_COPY_TO))


def _save(block: Block, part: TensorSlice) -> Transfer:
    _check_shapes(block, part)
    block.record(Event.BEGIN_COPY_FROM)
    target = part.view()
    target[...] = block.content().reshape(target.shape)
    if (recording := current_recording()) is not None:
        recording.record_save(block.content(), part, block.shape)
    written = running_kernel("ttl.copy").node.launch.written
    if id(part.tensor) not in written:
        written[id(part.tensor)] = WrittenUnits(part.tensor.units)
    written[id(part.tensor)].add(part.starts, part.sizes)
    return Transfer(lambda: block.record(Event.END_COPY_FROM))


def _send(block: Block, pipe: SrcPipeIdentity) -> Transfer:
    block.record(Event.BEGIN_COPY_FROM)
    send(pipe, block)
    return Transfer(lambda: block.record(Event.END_COPY_FROM))


def _receive(pipe: DstPipeIdentity, block: Block) -> Transfer:
    block.record(Event.BEGIN_COPY_TO)

    def finish() -> None:
        receive(pipe, block)
        block.record(Event.END_COPY_TO)

    return Transfer(finish)


READ, WRITE, INDEX = "ttl.raw_element_read", "ttl.raw_element_write", "ttl.read_index"


def raw_element_read(block: Block, *coords: int) -> float:
    """Reads an element of a block, at coordinates in elements."""
    return float(_element_of(READ, block, coords))


def read_index(block: Block, *coords: int) -> int:
    """Reads an element of a block as an index, truncated to an integer."""
    value = _element_of(INDEX, block, coords)
    if not 0 <= value < 2**31:
        raise error(f"{INDEX} reads {value:g}: an index is 0 or more, and less than 2^31")
    return int(value)


def raw_element_write(block: Block, *given: float, value: float | None = None) -> None:
    """Writes a number, the last positional argument or `value`, to an element of a block."""
    running_kernel(WRITE, KernelKind.DATA_MOVEMENT)
    coords, number = coordinates_and_value(given, value)
    if not isinstance(number, float) and not is_integer(number):
        raise error(f"{WRITE} writes a number, not a {type(number).__name__}")
    position = _position_of(WRITE, block, coords)
    block.record(Event.WRITE_ELEMENT)
    array = block.content()
    array[position] = truncated(float(number), block.buffer.data_type)
    if (recording := current_recording()) is not None:
        recording.record_store(array, None)


def coordinates_and_value(
    given: Sequence[object], value: object
) -> tuple[Sequence[object], object]:
    """Separates the coordinates of a write from the number, its last argument if not named."""
    return (given, value) if value is not None else (given[:-1], given[-1] if given else None)


def truncated(number: float, data_type: DataType) -> float:
    """Truncates a float32 to the element type: bfloat16 drops the lower bits."""
    word = np.array([number], np.float32).view(np.uint32)
    if data_type is DataType.BFLOAT16:
        word &= np.uint32(0xFFFF0000)
    return float(word.view(np.float32)[0])


def _element_of(what: str, block: Block, coords: Sequence[object]) -> float:
    running_kernel(what, KernelKind.DATA_MOVEMENT)
    position = _position_of(what, block, coords)
    block.record(Event.READ_ELEMENT)
    if (recording := current_recording()) is not None:
        recording.reads_elements = True
    return float(block.content()[position])


def _position_of(what: str, block: object, coords: Sequence[object]) -> tuple[int, ...]:
    if not isinstance(block, Block):
        raise error(f"{what} takes a block, not a {type(block).__name__}")
    check_element_type(what, block.buffer)
    return checked_coordinates(what, block.buffer, coords)


def check_element_type(what: str, buffer: DataflowBuffer) -> None:
    """Raises ProgramError unless kernels can access single elements of the data type."""
    if buffer.data_type not in (DataType.BFLOAT16, DataType.FLOAT32):
        raise error(
            f"{what} takes blocks of bfloat16 and float32, but '{buffer.name}' holds "
            f"{buffer.data_type.name}"
        )


def checked_coordinates(
    what: str, buffer: DataflowBuffer, coords: Sequence[object]
) -> tuple[int, ...]:
    """Validates the coordinates of an element; raises ProgramError if they are out of range."""
    sizes = element_shape(buffer.shape, buffer.is_tiled)
    check_rank(what, buffer, len(coords))
    for position, size in zip(coords, sizes, strict=True):
        if not is_integer(position) or not 0 <= int(position) < size:
            raise error(
                f"{what} has the coordinate {position!r}, but a block of '{buffer.name}' has "
                f"{shape_text(sizes)} elements"
            )
    return tuple(int(position) for position in coords if is_integer(position))


def check_rank(what: str, buffer: DataflowBuffer, rank: int) -> None:
    """Raises ProgramError unless there is one coordinate for each dimension of a block."""
    if rank != len(buffer.shape):
        raise error(
            f"{what} has {rank} coordinates, but a block of '{buffer.name}' has "
            f"{len(buffer.shape)} dimensions"
        )
