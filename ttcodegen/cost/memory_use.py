"""Device memory use of a program's tensors, op by op."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import ttcodegen.ops as catalogue
from ttcodegen.dialects.ttnn.placement import TensorPlacement
from ttcodegen.flatbuffer.program import DEALLOCATE_BUFFER, VIEW, Operation, Program
from ttcodegen.layout.placements import is_view, stored_bytes
from ttcodegen.ops.core.definition import TTNN

_DEALLOCATIONS = ("ttnn.deallocate", DEALLOCATE_BUFFER)

MEMORIES: tuple[str, ...] = ("dram", "l1")
"""The memories of the device."""


@dataclass(frozen=True)
class MemoryStep:
    """The memory after an op, while its operands are still allocated beside its results."""

    op: str
    location: str | None
    allocated: dict[str, int]
    """Bytes by memory."""


@dataclass(frozen=True)
class Leak:
    """A tensor that the program made and neither returns nor deallocates."""

    name: str
    memory: str
    size: int
    """Bytes."""


@dataclass(frozen=True)
class MemoryUse:
    """Memory use of a program's tensors.

    Arguments and constants are included, circular buffers and kernel-internal memory are not.
    """

    steps: tuple[MemoryStep, ...]
    peak: dict[str, int]
    """The most bytes at any time, by memory."""
    leaks: tuple[Leak, ...]

    def to_json(self) -> dict[str, Any]:
        """The entry of a result file."""
        return {
            "peak_bytes": self.peak,
            "leaks": [
                {"tensor": leak.name, "memory": leak.memory, "bytes": leak.size}
                for leak in self.leaks
            ],
        }


def memory_use(
    program: Program, bytes_of: Callable[[TensorPlacement], int] = stored_bytes
) -> MemoryUse:
    """Computes the memory use of a program's run, in which tensors take `bytes_of` a placement."""
    catalogue.load()
    device = _Memory(program, bytes_of)
    for entry in program.inputs:
        device.allocate(entry.tensor)
    steps = tuple(_steps(program, device))
    kept = {entry.tensor for entry in (*program.inputs, *program.outputs)}
    for operation in program.operations:
        if operation.name == "ttcore.load_cached":
            kept.update(operation.results)
    # What is given back with a result, because it may share its memory.
    for operation in reversed(program.operations):
        if _may_alias(operation) and not kept.isdisjoint(operation.results):
            kept.add(operation.operands[0])
    return MemoryUse(steps, device.peak, tuple(device.leaks(kept)))


def _steps(program: Program, device: _Memory) -> Iterator[MemoryStep]:
    for operation in program.operations:
        if operation.name in _DEALLOCATIONS:
            device.free(operation.operands[0])
            continue
        aliased = _aliased(program, operation)
        for tensor in operation.results:
            device.allocate(tensor, aliased)
        yield MemoryStep(operation.name, operation.location, dict(device.allocated))


def _aliased(program: Program, operation: Operation) -> int | None:
    """The operand whose memory the results of an op share, if it is there for both."""
    if not _may_alias(operation):
        return None
    source = operation.operands[0]
    if operation.name == VIEW:
        return source
    before, after = (program.tensors[t].type.placement for t in (source, operation.results[0]))
    return source if is_view(before, after) else None


def _may_alias(operation: Operation) -> bool:
    # A file may say what it likes of an op.
    if not operation.operands or not operation.results:
        return False
    definition = TTNN.get(operation.name.partition(".")[2])
    return operation.name == VIEW or (definition is not None and definition.may_alias)


class _Memory:
    """Allocation state. Tensors that share a buffer count once."""

    def __init__(self, program: Program, bytes_of: Callable[[TensorPlacement], int]) -> None:
        self._program = program
        self._bytes_of = bytes_of
        self._owner: dict[int, int] = {}
        self._sizes: dict[int, tuple[str, int]] = {}
        self.allocated = dict.fromkeys(MEMORIES, 0)
        self.peak = dict.fromkeys(MEMORIES, 0)

    def allocate(self, tensor: int, aliased: int | None = None) -> None:
        """Takes memory for a tensor; none if it shares that of another one."""
        owner = self._owner.get(aliased, tensor) if aliased is not None else tensor
        self._owner[tensor] = owner
        placement = self._program.tensors[tensor].type.placement
        if owner != tensor or placement.buffer_type not in MEMORIES:
            return
        size = self._bytes_of(placement)
        self._sizes[tensor] = (placement.buffer_type, size)
        total = self.allocated[placement.buffer_type] + size
        self.allocated[placement.buffer_type] = total
        self.peak[placement.buffer_type] = max(self.peak[placement.buffer_type], total)

    def free(self, tensor: int) -> None:
        """Gives the memory of a tensor back, once."""
        memory, size = self._sizes.pop(self._owner.get(tensor, tensor), ("", 0))
        if memory:
            self.allocated[memory] -= size

    def leaks(self, kept: set[int]) -> Iterator[Leak]:
        """Yields allocations that share no buffer with the kept tensors."""
        owners = {self._owner.get(tensor, tensor) for tensor in kept}
        for tensor, (memory, size) in self._sizes.items():
            if tensor not in owners:
                yield Leak(self._program.tensors[tensor].name or f"tensor {tensor}", memory, size)
