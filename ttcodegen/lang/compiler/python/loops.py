"""Device loops: loop-carried state, and sequences of runtime length."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from ttcodegen.lang.compiler.python.block_lifetimes import Regions
from ttcodegen.lang.compiler.python.numbers import Arithmetic, Number
from ttcodegen.lang.compiler.python.variables import Frame
from ttcodegen.lang.simulator.shapes import is_sequence

Limits: TypeAlias = tuple[Number, Number, Number]
"""Start, end and step of a loop that counts."""

# Loop-carried state of device loops, without values computed by Python.


@dataclass(eq=False)
class Loop:
    """A loop of the device that is being translated, once for all of its iterations."""

    frame: Frame
    """The function that it is in."""
    regions: Regions
    before: Mapping[str, Any]
    """Values of the assigned variables before the loop."""
    counter: Number | None = None
    """Counter of the kernel; None of a loop that a condition ends."""
    is_uniform: bool = False
    """True if it goes on for as long on all nodes."""
    _assigned: dict[str, set[Regions]] = field(default_factory=dict[str, set[Regions]])
    _read: dict[str, ast.AST] = field(default_factory=dict[str, ast.AST])

    def reads(self, frame: Frame, name: str, node: ast.AST, regions: Regions) -> None:
        """A variable of a function is read: one that this iteration may not have assigned to."""
        if frame is not self.frame or name not in self.before:
            return
        assigned = self._assigned.get(name, ())
        if not any(regions[: len(each)] == each for each in assigned):
            self._read.setdefault(name, node)

    def assigns(self, frame: Frame, name: str, regions: Regions) -> None:
        """A variable of a function is given a value: by the iterations that come to `regions`."""
        if frame is self.frame and regions[: len(self.regions)] == self.regions:
            self._assigned.setdefault(name, set()).add(regions)

    def carried(self) -> Iterator[tuple[str, ast.AST]]:
        """Variables that hold another value at the end of an iteration than the one that it read,
        and where it read that."""
        for name, node in self._read.items():
            if self.frame.names.get(name) is not self.before[name]:
                yield name, node


# Sequences whose elements only the running kernel knows: ranges with limits that it computes,
# what goes through several sequences at once, and lists that differ from node to node.


@dataclass(frozen=True, eq=False)
class KernelRange:
    """A range of Python with limits of the kernel."""

    start: Number
    stop: Number
    step: Number


@dataclass(frozen=True, eq=False)
class Zipped:
    """Tuples of the elements of several sequences, as `zip` and `enumerate` give them."""

    parts: tuple[Any, ...]
    length: Number | None = None
    """Number of elements, where known."""


@dataclass(frozen=True, eq=False)
class Listed:
    """A list with another length on each node: its elements follow from their positions."""

    length: Number
    at: Callable[[Number], Any]


KernelSequence: TypeAlias = KernelRange | Zipped | Listed


def is_kernel_sequence(value: object) -> bool:
    """True if the running kernel goes over a sequence; over ranges it does so too."""
    return isinstance(value, KernelRange | Zipped | Listed | range)


def zipped(parts: Sequence[Any]) -> Zipped | None:
    """Several sequences at once, if the kernel can go over them; None if Python does."""
    over_kernel = any(is_kernel_sequence(part) for part in parts)
    return Zipped(tuple(parts)) if over_kernel else None


def length_of(value: Any, arithmetic: Arithmetic) -> Number | None:
    """Length of a sequence, or None if kernels cannot count it."""
    match value:
        case KernelRange(start, stop, step):
            return _steps(start, stop, step, arithmetic)
        case Zipped(_, length) if length is not None:
            return length
        case Zipped(parts):
            total: Number | None = None
            for part in parts:
                length = length_of(part, arithmetic)
                if length is None:
                    return None
                total = length if total is None else arithmetic.extreme("min", total, length)
            return total
        case Listed(length, _):
            return length
        case _:
            return len(value)


def _steps(start: Number, stop: Number, step: Number, arithmetic: Arithmetic) -> Number | None:
    if not isinstance(step, int):
        return None
    if step < 0:
        start, stop, step = stop, start, -step
    distance = arithmetic.subtract(stop, start)
    if not arithmetic.is_natural(distance):
        # A range that ends before it starts is empty.
        larger = arithmetic.extreme("max", stop, start)
        if larger is None:
            return None
        distance = arithmetic.subtract(larger, start)
        arithmetic.bound(distance, 0, None)
    return arithmetic.binary("FloorDiv", arithmetic.add(distance, step - 1), step)


def element_of(value: Any, position: Number, arithmetic: Arithmetic) -> Any:
    """The element at a position; None if kernels cannot find it."""
    match value:
        case KernelRange(start, _, step):
            return arithmetic.add(start, arithmetic.multiply(position, step))
        case Zipped(parts):
            found = tuple(element_of(part, position, arithmetic) for part in parts)
            return None if any(part is None for part in found) else found
        case Listed(_, at):
            return at(position)
        case range():
            return arithmetic.add(value.start, arithmetic.multiply(position, value.step))
        case _ if isinstance(position, int):
            return value[position]
        case _:
            return looked_up(value, position, arithmetic)


def looked_up(values: Any, position: Number, arithmetic: Arithmetic, name: str = "table") -> Any:
    """An element of a sequence of integers, or of tuples of them, in a table of the kernel; None if
    there is no such table."""
    parts = list(values)
    if not parts:
        return None
    if all(hasattr(part, "__index__") for part in parts):
        return arithmetic.looked_up([int(part) for part in parts], position, name)
    if not all(is_sequence(part) and len(part) == len(parts[0]) for part in parts):
        return None
    found = tuple(
        looked_up([part[n] for part in parts], position, arithmetic, f"{name}_{n}")
        for n in range(len(parts[0]))
    )
    return None if any(part is None for part in found) else found
