"""Recording of the origins of blocks during simulation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from ttcodegen.lang.simulator.context import Launch, current
from ttcodegen.lang.simulator.shapes import Shape
from ttcodegen.lang.simulator.tensors import Tensor, TensorSlice


@dataclass(frozen=True, eq=False)
class RecordedValue:
    """A value that a kernel computed or read.

    Attributes:
        kind: the operator or function; "slice" for a part of a tensor.
        shape: in units.
        operands: what it was computed from.
        details: numbers and dimensions that the function was given.
    """

    kind: str
    shape: Shape
    operands: tuple[RecordedValue, ...] = ()
    details: tuple[object, ...] = ()


@dataclass(frozen=True, eq=False)
class RecordedSlice(RecordedValue):
    """A part of a tensor that was read."""

    tensor: Tensor | None = None
    starts: Shape = ()
    axes: tuple[int, ...] = ()
    """The dimension of the tensor that each dimension of the block corresponds to."""


@dataclass(frozen=True)
class RecordedWrite:
    """A part of a tensor that was written."""

    part: TensorSlice
    axes: tuple[int, ...]
    value: RecordedValue | None
    """None if it is not known how it was computed."""


@dataclass
class Recording:
    """Record of the writes of a launch and their origins."""

    writes: dict[int, list[RecordedWrite]] = field(default_factory=dict[int, list[RecordedWrite]])
    """By the identity of the tensor, in order."""
    _contents: dict[int, tuple[np.ndarray, RecordedValue | None]] = field(
        default_factory=dict[int, tuple[np.ndarray, "RecordedValue | None"]]
    )
    """The contents of the memory of blocks, by the identity of the memory, which is kept."""

    reads_elements: bool = False
    """True if kernels read single elements: what they do may depend on what tensors hold."""

    def content(self, memory: np.ndarray) -> RecordedValue | None:
        """The contents of the memory of a block."""
        return self._contents.get(id(memory), (memory, None))[1]

    def stored(self, memory: np.ndarray, value: RecordedValue | None) -> None:
        """Something was stored into the memory of a block."""
        self._contents[id(memory)] = memory, value

    def loaded(self, memory: np.ndarray, part: TensorSlice, shape: Shape) -> None:
        """A part of a tensor was copied into the memory of a block."""
        axes = part.axes_of(shape)
        value = RecordedSlice("slice", shape, (), (), part.tensor, part.starts, axes)
        self.stored(memory, value)

    def saved(self, memory: np.ndarray, part: TensorSlice, shape: Shape) -> None:
        """The memory of a block was copied to a part of a tensor."""
        write = RecordedWrite(part, part.axes_of(shape), self.content(memory))
        self.writes.setdefault(id(part.tensor), []).append(write)


def record(launch: Launch) -> None:
    """Has the simulator record a launch, from now on."""
    launch.is_recorded = True
    launch.made.of(Recording).append(Recording())


def recording_of(launch: Launch) -> Recording | None:
    """Recording of a launch, or None if it is not recorded."""
    return launch.made.of(Recording)[0] if launch.is_recorded else None


def current_recording() -> Recording | None:
    """Recording of the running launch, or None."""
    node = current.node
    return recording_of(node.launch) if node is not None and node.launch.is_recorded else None


class HasOrigin(Protocol):
    """A block expression."""

    @property
    def origin(self) -> RecordedValue | None:
        """Recorded origin of the value, if known."""
        ...


def computed(
    kind: str, shape: Shape, operands: Sequence[HasOrigin], details: Sequence[object] = ()
) -> RecordedValue | None:
    """A computed value; None if nothing is recorded, or if it is not known what an operand is."""
    if current_recording() is None:
        return None
    origins = [each.origin for each in operands]
    known = [each for each in origins if each is not None]
    if len(known) != len(operands):
        return None
    return RecordedValue(kind, shape, tuple(known), tuple(details))
