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
        kind: the operator or function; "slice" for a slice of a tensor.
        shape: shape in units.
        operands: operands of the function.
        details: numbers and dimensions passed to the function.
    """

    kind: str
    shape: Shape
    operands: tuple[RecordedValue, ...] = ()
    details: tuple[object, ...] = ()


@dataclass(frozen=True, eq=False)
class RecordedSlice(RecordedValue):
    """A slice of a tensor that was read."""

    tensor: Tensor | None = None
    starts: Shape = ()
    axes: tuple[int, ...] = ()
    """Tensor dimension of each dimension of the block."""


@dataclass(frozen=True)
class RecordedWrite:
    """A slice of a tensor that was written."""

    part: TensorSlice
    axes: tuple[int, ...]
    value: RecordedValue | None
    """Written value; None if its origin is unknown."""


@dataclass
class Recording:
    """Record of the writes of a launch and their origins."""

    writes: dict[int, list[RecordedWrite]] = field(default_factory=dict[int, list[RecordedWrite]])
    """Writes by tensor identity, in order."""
    _contents: dict[int, tuple[np.ndarray, RecordedValue | None]] = field(
        default_factory=dict[int, tuple[np.ndarray, "RecordedValue | None"]]
    )
    """Contents by identity of a block's memory, which is kept alive."""

    reads_elements: bool = False
    """True if kernels read single elements, so that control flow may depend on tensor values."""

    def content(self, memory: np.ndarray) -> RecordedValue | None:
        """Recorded contents of a block's memory."""
        return self._contents.get(id(memory), (memory, None))[1]

    def record_store(self, memory: np.ndarray, value: RecordedValue | None) -> None:
        """Records a store into a block's memory."""
        self._contents[id(memory)] = memory, value

    def record_load(self, memory: np.ndarray, part: TensorSlice, shape: Shape) -> None:
        """Records a copy from a tensor slice into a block's memory."""
        axes = part.axes_of(shape)
        value = RecordedSlice("slice", shape, (), (), part.tensor, part.starts, axes)
        self.record_store(memory, value)

    def record_save(self, memory: np.ndarray, part: TensorSlice, shape: Shape) -> None:
        """Records a copy from a block's memory to a tensor slice."""
        write = RecordedWrite(part, part.axes_of(shape), self.content(memory))
        self.writes.setdefault(id(part.tensor), []).append(write)


def record(launch: Launch) -> None:
    """Enables recording of a launch."""
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
    """Interface of a block expression with a recorded origin."""

    @property
    def origin(self) -> RecordedValue | None:
        """Recorded origin of the value, if known."""
        ...


def computed(
    kind: str, shape: Shape, operands: Sequence[HasOrigin], details: Sequence[object] = ()
) -> RecordedValue | None:
    """Creates a computed value; None without a recording, or if an operand's origin is unknown."""
    if current_recording() is None:
        return None
    origins = [each.origin for each in operands]
    known = [each for each in origins if each is not None]
    if len(known) != len(operands):
        return None
    return RecordedValue(kind, shape, tuple(known), tuple(details))
