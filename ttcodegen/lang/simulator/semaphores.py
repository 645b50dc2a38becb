"""Semaphores: a number on each node that others can set and wait for."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ttcodegen.lang.simulator.context import (
    Awaitable,
    Coordinates,
    KernelKind,
    Launch,
    building_node,
    current_node,
    grid_in_dimensions,
    in_dimensions,
    running_kernel,
)
from ttcodegen.lang.simulator.locations import assigned_name, error
from ttcodegen.lang.simulator.pipes import NodeCoord, NodeRange, nodes_of
from ttcodegen.lang.simulator.shapes import is_integer


class _Cell(Awaitable):
    """The value of a semaphore on one node."""

    def __init__(self, value: int) -> None:
        super().__init__()
        self.value = value


def checked_value(value: object) -> int:
    """Validates a semaphore value.

    Raises ProgramError unless it is an unsigned integer of 32 bits.
    """
    if not is_integer(value) or not 0 <= int(value) < 2**32:
        raise error(f"the value of a semaphore is an unsigned integer of 32 bits, not {value!r}")
    return int(value)


class Semaphore:
    """A semaphore, made in the scope of an operation function."""

    def __init__(self, initial_value: int = 0) -> None:
        node = building_node("ttl.Semaphore")
        self.initial = checked_value(initial_value)
        semaphores = node.made.of(Semaphore)
        self.number = len(semaphores)
        self.name = assigned_name() or f"semaphore{self.number}"
        semaphores.append(self)

    def cell(self, launch: Launch, node: Coordinates) -> _Cell:
        """Its value on a node."""
        key = ("semaphore", self.number, node)
        found = launch.traffic.get(key)
        if not isinstance(found, _Cell):
            found = launch.traffic[key] = _Cell(self.initial)
        return found

    def wait_eq(self, value: int) -> None:
        """Waits until the local value is `value`."""
        number = checked_value(value)
        self._wait("wait_eq", lambda cell: cell.value == number, f"to be {number}")

    def wait_ge(self, value: int) -> None:
        """Waits until the local value is `value` or more."""
        number = checked_value(value)
        self._wait("wait_ge", lambda cell: cell.value >= number, f"to be at least {number}")

    def _wait(self, what: str, is_so: Callable[[_Cell], bool], text: str) -> None:
        node = running_kernel(f"ttl.Semaphore.{what}", KernelKind.DATA_MOVEMENT).node
        cell = self.cell(node.launch, node.coordinates)
        node.launch.scheduler.wait_until(
            cell, lambda: is_so(cell), lambda: f"'{self.name}' {text} (it is {cell.value})"
        )

    def set(self, value: int) -> None:
        """Sets the local value."""
        node = running_kernel("ttl.Semaphore.set", KernelKind.DATA_MOVEMENT).node
        _set(self, node.launch, [node.coordinates], value)

    def get_remote(self, node: NodeCoord) -> UnicastRemoteSemaphore:
        """The semaphore on another node."""
        return UnicastRemoteSemaphore(self, _on_grid(node))

    def get_remote_multicast(self, node_range: NodeRange | None = None) -> MulticastRemoteSemaphore:
        """The semaphore on all nodes of a range, or of the grid."""
        if node_range is None:
            node_range = (slice(None),) * len(current_node("get_remote_multicast").launch.grid)
        return MulticastRemoteSemaphore(self, _on_grid(node_range))


def _on_grid(place: object) -> list[Coordinates]:
    """The nodes of the grid that a coordinate or a range names in its own dimensions."""
    launch = current_node("a remote semaphore").launch
    named = set(nodes_of(place, launch.grid, REMOTE_NODE))
    rank = len(next(iter(named)))
    every = nodes_of(tuple(slice(None) for _ in launch.grid), launch.grid, "the grid")
    assert len(grid_in_dimensions(launch.grid, rank)) == rank
    return [node for node in every if in_dimensions(node, launch.grid, rank, 0) in named]


def _set(semaphore: Semaphore, launch: Launch, nodes: Sequence[Coordinates], value: object) -> None:
    number = checked_value(value)
    for node in nodes:
        cell = semaphore.cell(launch, node)
        cell.value = number
        launch.scheduler.changed(cell)


NO_MULTICAST_INCREMENT = "a semaphore of several nodes can be set only, not incremented"
INCREMENT_REMEDY = "increment it on each node: get_remote(...).inc"
REMOTE_NODE = "the node of a remote semaphore"


class RemoteSemaphore:
    """A semaphore on other nodes."""

    def __init__(self, semaphore: Semaphore, nodes: list[Coordinates]) -> None:
        self.semaphore = semaphore
        self.nodes = nodes

    def _launch(self, method: str) -> Launch:
        what = f"ttl.{type(self).__name__}.{method}"
        return running_kernel(what, KernelKind.DATA_MOVEMENT).node.launch

    def set(self, value: int) -> None:
        """Sets its value there."""
        _set(self.semaphore, self._launch("set"), self.nodes, value)


class UnicastRemoteSemaphore(RemoteSemaphore):
    """A semaphore on another node."""

    def inc(self, value: int) -> None:
        """Increments its value there."""
        launch = self._launch("inc")
        (node,) = self.nodes
        cell = self.semaphore.cell(launch, node)
        cell.value = (cell.value + checked_value(value)) % 2**32
        launch.scheduler.changed(cell)


class MulticastRemoteSemaphore(RemoteSemaphore):
    """A semaphore on the nodes of a range, which can be set only."""

    def inc(self, value: int) -> None:
        """Raises ProgramError: there is no such change of several nodes."""
        raise error(NO_MULTICAST_INCREMENT, remedy=INCREMENT_REMEDY)
