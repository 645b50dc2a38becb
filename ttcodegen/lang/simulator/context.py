"""Execution context: the running launch, node and kernel, and write coverage of tensors."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from math import prod
from typing import Any, Protocol, TypeVar, cast

import numpy as np
from greenlet import greenlet

from ttcodegen.foundation.diagnostics import Note
from ttcodegen.lang.simulator.locations import Instruction, error
from ttcodegen.lang.simulator.shapes import Shape
from ttcodegen.systems.cards import default_machine
from ttcodegen.systems.description import ChipDescription, SystemDescription


class WrittenUnits:
    """Set of written tiles or elements, by index in each dimension."""

    def __init__(self, units: Shape) -> None:
        self._is_written = np.zeros(units, bool)

    def add(self, starts: Shape, sizes: Shape) -> None:
        """Marks a part of the tensor as written."""
        ends = zip(starts, sizes, strict=True)
        self._is_written[tuple(slice(start, start + size) for start, size in ends)] = True

    @property
    def is_all(self) -> bool:
        """True if all units are written."""
        return bool(self._is_written.all())


Coordinates = tuple[int, ...]
_Object = TypeVar("_Object")


class KernelKind(Enum):
    """Kind of a kernel function, by its decorator."""

    # Hot path: hashing the names would take longer than the table lookups for blocks.
    __hash__ = object.__hash__

    COMPUTE = "compute"
    DATA_MOVEMENT = "data movement"


class Belongings:
    """Objects of a node or launch by class, such as circular buffers or pipe nets."""

    def __init__(self) -> None:
        self._by_class: dict[type, list[Any]] = {}

    def of(self, kind: type[_Object]) -> list[_Object]:
        """Objects of a class, in the order of their creation; the list can be appended to."""
        return cast("list[_Object]", self._by_class.setdefault(kind, []))


class Awaitable:
    """An object that kernels can wait for."""

    def __init__(self) -> None:
        self.waiting: list[Task] = []

    def endless_wait_reason(self) -> str | None:
        """Reason why a wait can never end, if known."""
        return None

    def wait_notes(self) -> list[Note]:
        """Notes that explain why kernels wait."""
        return []


@dataclass(eq=False)
class Task:
    """A running kernel with its greenlet."""

    kernel: Kernel
    thread: greenlet
    waits_for: Callable[[], str] | None = None
    awaited: Awaitable | None = None


class Schedule(Protocol):
    """Interface of the scheduler that runs the kernels of a launch."""

    def run(self, kernels: Sequence[Kernel]) -> None:
        """Runs kernels until they end."""
        ...

    def wait_until(
        self, awaitable: Awaitable, condition: Callable[[], bool], what: Callable[[], str]
    ) -> None:
        """Suspends the running kernel until a condition holds; `what` describes it for messages."""
        ...

    def changed(self, awaitable: Awaitable) -> None:
        """Wakes the kernels that wait for an object, to check their conditions again."""
        ...


@dataclass
class Node:
    """A node of the grid, with the objects that the operation's body created on it."""

    coordinates: Coordinates
    launch: Launch
    kernels: list[Kernel] = field(default_factory=list["Kernel"])
    made: Belongings = field(default_factory=Belongings)
    """Dataflow buffers, pipe nets and semaphores of the node."""

    def __str__(self) -> str:
        return f"({', '.join(map(str, self.coordinates))})"


@dataclass
class Kernel:
    """A kernel function on a node."""

    name: str
    kind: KernelKind
    function: Callable[[], None]
    node: Node
    defined: Instruction | None = None
    steps: int = 0
    """Number of block operations so far."""
    has_ended: bool = False

    def __str__(self) -> str:
        return f"the {self.kind.value} kernel '{self.name}' on node {self.node}"


@dataclass
class Launch:
    """One call of an operation."""

    name: str
    grid: Coordinates
    scheduler: Schedule
    nodes: dict[Coordinates, Node] = field(default_factory=dict[Coordinates, Node])
    arguments: dict[str, object] = field(default_factory=dict[str, object])
    """Arguments of the operation's call, by name."""
    written: dict[int, WrittenUnits] = field(default_factory=dict[int, WrittenUnits])
    """Tensors that kernels wrote, by identity."""
    traffic: dict[object, object] = field(default_factory=dict[object, object])
    """States of pipes and semaphores across nodes."""
    remaining_devices: int = 0
    """Number of mesh devices on which the operation will run after this one."""
    is_recorded: bool = False
    is_compiled: bool = False
    """True if the operation is also compiled, which restricts it to features of the device."""
    made: Belongings = field(default_factory=Belongings)
    """Recordings of the launch, if requested."""
    initial: dict[tuple[str, str], object] = field(default_factory=dict[tuple[str, str], object])
    """Initial values of body variables that kernels change, by kernel and variable."""


@dataclass
class _Current:
    node: Node | None = None
    kernel: Kernel | None = None
    watch: Callable[[Launch], Callable[[], None]] | None = None
    """Called with each launch before its kernels run; the function it returns is called after."""
    remaining_devices: int = 0
    """Number of mesh devices on which the called operation will run after this one."""
    system: SystemDescription = field(default_factory=default_machine)
    """Machine that runs the operations."""


current = _Current()


def current_chip() -> ChipDescription:
    """Description of the chip that operations run on."""
    return current.system.chip


@contextmanager
def on_system(system: SystemDescription) -> Generator[None]:
    """Scope in which operations run on the chips of a machine."""
    outer, current.system = current.system, system
    try:
        yield
    finally:
        current.system = outer


@contextmanager
def inside_of(kernel: Kernel | None) -> Generator[None]:
    """Scope in which a kernel, or none, is the running one."""
    outer = current.node, current.kernel
    current.node, current.kernel = kernel.node if kernel is not None else None, kernel
    try:
        yield
    finally:
        current.node, current.kernel = outer


def current_node(what: str) -> Node:
    """Returns the running node; raises ProgramError outside of operations."""
    if current.node is None:
        raise error(f"{what} can be used inside an operation function only")
    return current.node


def building_node(what: str) -> Node:
    """Returns the node whose operation body is running; raises ProgramError elsewhere."""
    node = current_node(what)
    if current.kernel is not None:
        raise error(
            f"{what} can be used in the scope of the operation function only, not in a kernel"
        )
    return node


def running_kernel(what: str, kind: KernelKind | None = None) -> Kernel:
    """Returns the running kernel; raises ProgramError if there is none, or one of another kind."""
    kernel = current.kernel
    if kernel is None:
        raise error(f"{what} can only be used inside of a kernel function")
    if kind is not None and kernel.kind is not kind:
        raise error(f"{what} can only be used inside of a {kind.value} kernel function")
    return kernel


def in_dimensions(values: Coordinates, sizes: Coordinates, dims: int, padding: int) -> Coordinates:
    """Converts coordinates to another number of dimensions: flattens the last ones, or pads."""
    if dims >= len(values):
        return values + (padding,) * (dims - len(values))
    last = 0
    for value, size in zip(values[dims - 1 :], sizes[dims - 1 :], strict=True):
        last = last * size + value
    return (*values[: dims - 1], last)


def grid_in_dimensions(grid: Coordinates, dims: int) -> Coordinates:
    """Grid size in another number of dimensions."""
    if dims >= len(grid):
        return grid + (1,) * (dims - len(grid))
    return (*grid[: dims - 1], prod(grid[dims - 1 :]))


def _checked_dims(dims: object, default: int) -> int:
    if dims is None:
        return default
    if not isinstance(dims, int) or dims < 1:
        raise error(f"dims is a positive integer, not {dims!r}")
    return dims


def grid_size(dims: int | None = None) -> int | Coordinates:
    """Size of the grid in `dims` dimensions, by default its own; an integer for one dimension."""
    grid = current_node("ttl.grid_size").launch.grid
    sizes = grid_in_dimensions(grid, _checked_dims(dims, len(grid)))
    return sizes[0] if len(sizes) == 1 else sizes


def node(dims: int | None = None) -> int | Coordinates:
    """Coordinates of the running node in `dims` dimensions, by default the grid's.

    They start at 0, and are an integer for one dimension, else a tuple.
    """
    here = current_node("ttl.node")
    grid = here.launch.grid
    found = in_dimensions(here.coordinates, grid, _checked_dims(dims, len(grid)), 0)
    return found[0] if len(found) == 1 else found
