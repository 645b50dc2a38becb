"""Reads and writes of single elements of blocks by data movement kernels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.lang.simulator.buffers import Block, DataflowBuffer, Event
from ttcodegen.lang.simulator.context import KernelKind, running_kernel
from ttcodegen.lang.simulator.expressions import element_shape
from ttcodegen.lang.simulator.locations import error
from ttcodegen.lang.simulator.recording import current_recording
from ttcodegen.lang.simulator.shapes import is_integer, shape_text

READ, WRITE, INDEX = "ttl.raw_element_read", "ttl.raw_element_write", "ttl.read_index"


def raw_element_read(block: Block, *coords: int) -> float:
    """An element of a block, at its position in each dimension, counted in elements."""
    return float(_element_of(READ, block, coords))


def read_index(block: Block, *coords: int) -> int:
    """An element of a block as an index: its fraction is cut off."""
    value = _element_of(INDEX, block, coords)
    if not 0 <= value < 2**31:
        raise error(f"{INDEX} reads {value:g}: an index is 0 or more, and less than 2^31")
    return int(value)


def raw_element_write(block: Block, *given: float, value: float | None = None) -> None:
    """Writes a number, after the coordinates or by its name, to an element of a block."""
    running_kernel(WRITE, KernelKind.DATA_MOVEMENT)
    coords, number = coordinates_and_value(given, value)
    if not isinstance(number, float) and not is_integer(number):
        raise error(f"{WRITE} writes a number, not a {type(number).__name__}")
    place = _place(WRITE, block, coords)
    block.happens(Event.WRITE_ELEMENT)
    array = block.content()
    array[place] = cut_off(float(number), block.buffer.data_type)
    if (recording := current_recording()) is not None:
        recording.stored(array, None)


def coordinates_and_value(
    given: Sequence[object], value: object
) -> tuple[Sequence[object], object]:
    """The coordinates of a write, and the number after them unless it is given by its name."""
    return (given, value) if value is not None else (given[:-1], given[-1] if given else None)


def cut_off(number: float, data_type: DataType) -> float:
    """A float32 as an element: bfloat16 cuts its lower bits off."""
    word = np.array([number], np.float32).view(np.uint32)
    if data_type is DataType.BFLOAT16:
        word &= np.uint32(0xFFFF0000)
    return float(word.view(np.float32)[0])


def _element_of(what: str, block: Block, coords: Sequence[object]) -> float:
    running_kernel(what, KernelKind.DATA_MOVEMENT)
    place = _place(what, block, coords)
    block.happens(Event.READ_ELEMENT)
    if (recording := current_recording()) is not None:
        recording.reads_elements = True
    return float(block.content()[place])


def _place(what: str, block: object, coords: Sequence[object]) -> tuple[int, ...]:
    if not isinstance(block, Block):
        raise error(f"{what} takes a block, not a {type(block).__name__}")
    check_element_type(what, block.buffer)
    return checked_coordinates(what, block.buffer, coords)


def check_element_type(what: str, buffer: DataflowBuffer) -> None:
    """Raises ProgramError if the elements of a buffer are not those that kernels access."""
    if buffer.data_type not in (DataType.BFLOAT16, DataType.FLOAT32):
        raise error(
            f"{what} takes blocks of bfloat16 and float32, but '{buffer.name}' holds "
            f"{buffer.data_type.name}"
        )


def checked_coordinates(
    what: str, buffer: DataflowBuffer, coords: Sequence[object]
) -> tuple[int, ...]:
    """The position of an element; raises ProgramError if the blocks of a buffer do not have it."""
    sizes = element_shape(buffer.shape, buffer.is_tiled)
    check_rank(what, buffer, len(coords))
    for place, size in zip(coords, sizes, strict=True):
        if not is_integer(place) or not 0 <= int(place) < size:
            raise error(
                f"{what} has the coordinate {place!r}, but a block of '{buffer.name}' has "
                f"{shape_text(sizes)} elements"
            )
    return tuple(int(place) for place in coords if is_integer(place))


def check_rank(what: str, buffer: DataflowBuffer, rank: int) -> None:
    """Raises ProgramError unless there is a coordinate for each dimension of a block."""
    if rank != len(buffer.shape):
        raise error(
            f"{what} has {rank} coordinates, but a block of '{buffer.name}' has "
            f"{len(buffer.shape)} dimensions"
        )
