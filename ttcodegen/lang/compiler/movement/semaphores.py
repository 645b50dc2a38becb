"""Semaphores of operations as semaphores of the cores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any

from ttcodegen.lang.compiler.movement.resources import MovementResources
from ttcodegen.lang.compiler.python.evaluation import is_known
from ttcodegen.lang.compiler.python.merging import RemoteOfPlace, in_grid
from ttcodegen.lang.compiler.python.numbers import Condition, Number, joined
from ttcodegen.lang.compiler.python.pipe_nets import Rectangle
from ttcodegen.lang.compiler.python.translation import KernelTranslator
from ttcodegen.lang.simulator.pipes import nodes_of
from ttcodegen.lang.simulator.semaphores import (
    INCREMENT_REMEDY,
    NO_MULTICAST_INCREMENT,
    REMOTE_NODE,
    MulticastRemoteSemaphore,
    RemoteSemaphore,
    Semaphore,
    UnicastRemoteSemaphore,
    checked_value,
)
from ttcodegen.lang.simulator.shapes import is_range, sequence_of

_LOCAL_CALLS = {
    "wait_eq": "noc_semaphore_wait",
    "wait_ge": "noc_semaphore_wait_min",
    "set": "noc_semaphore_set",
}
"""Translations of the methods of local semaphores."""


@dataclass(frozen=True, eq=False)
class MovedRemote:
    """A semaphore on other nodes."""

    semaphore: Semaphore
    first: tuple[Number, Number]
    last: tuple[Number, Number]
    count: int
    is_multicast: bool = False


def _value(given: Any) -> Number:
    """A value of a semaphore, checked where it is known."""
    return checked_value(given) if is_known(given) else given


class SemaphoreCalls:
    """Translation of semaphore calls."""

    def __init__(self, translator: KernelTranslator, resources: MovementResources) -> None:
        self.translator = translator
        self.resources = resources
        self.builder = resources.builder

    def method(self, value: Any, name: str) -> Callable[..., Any] | None:
        """Returns the translation of a semaphore method, or None for other values."""
        match value, name:
            case Semaphore(), "wait_eq" | "wait_ge" | "set":
                return partial(self._local, value, _LOCAL_CALLS[name])
            case Semaphore(), "get_remote":
                return partial(self._remote, value)
            case Semaphore(), "get_remote_multicast":
                return partial(self._multicast, value)
            case RemoteSemaphore(), "set":
                return partial(self._set, self._on_grid(value))
            case UnicastRemoteSemaphore(), "inc":
                return partial(self._increment, self._on_grid(value))
            case MulticastRemoteSemaphore(), "inc":
                return self._refuse_increment
            case RemoteOfPlace(of, first, last, count, is_multicast), "set" | "inc":
                return self.method(MovedRemote(of, first, last, count, is_multicast), name)
            case MovedRemote(), "set":
                return partial(self._set, value)
            case MovedRemote(is_multicast=True), "inc":
                return self._refuse_increment
            case MovedRemote(), "inc":
                return partial(self._increment, value)
            case _:
                return None

    def _on_grid(self, remote: RemoteSemaphore) -> MovedRemote:
        """A remote semaphore of the operation's body."""
        places = [in_grid(node) for node in remote.nodes]
        found = Rectangle.of(places)
        if found is None:
            self.translator.refuse("the nodes of this semaphore are no rectangle of the grid")
        return MovedRemote(
            remote.semaphore,
            found.first,
            found.last,
            found.size,
            is_multicast=isinstance(remote, MulticastRemoteSemaphore),
        )

    def _remote(self, semaphore: Semaphore, node: Any) -> MovedRemote:
        self._check_on_grid(node)
        place = self._place(node)
        return MovedRemote(semaphore, place, place, 1)

    def _multicast(self, semaphore: Semaphore, node_range: Any = None) -> MovedRemote:
        if node_range is None:
            columns, rows = (*self.translator.kernel.node.launch.grid, 1)[:2]
            last = (columns - 1, rows - 1)
            return MovedRemote(semaphore, (0, 0), last, columns * rows, is_multicast=True)
        grid = self.translator.kernel.node.launch.grid
        parts = (*sequence_of(node_range), 0)[:2]
        if len(sequence_of(node_range)) != len(grid):
            self.translator.refuse("a range of nodes has as many dimensions as the grid")
        ends: list[tuple[Number, Number]] = []
        sizes: list[int] = []
        for part, size in zip(parts, (*grid, 1), strict=False):
            start, stop = (part.start, part.stop) if is_range(part) else (part, None)
            first = 0 if start is None else start
            add = self.translator.arithmetic.add
            after = stop if stop is not None else size if is_range(part) else add(first, 1)
            count = self.translator.arithmetic.known_difference(after, first)
            if count is None:
                self.translator.refuse("the size of a range of nodes is known to the compiler")
            ends.append((first, self.translator.arithmetic.subtract(after, 1)))
            sizes.append(count)
        self._check_on_grid(node_range)
        first, last = zip(*ends, strict=True)
        return MovedRemote(semaphore, first, last, prod(sizes), is_multicast=True)

    def _refuse_increment(self, _value: object) -> None:
        self.translator.refuse(NO_MULTICAST_INCREMENT, remedy=INCREMENT_REMEDY)

    def _check_on_grid(self, node: Any) -> None:
        """Refuses coordinates that are known not to be on the grid."""
        if is_known(node):
            list(nodes_of(node, self.translator.kernel.node.launch.grid, REMOTE_NODE))

    def _place(self, node: Any) -> tuple[Number, Number]:
        parts, grid = sequence_of(node), self.translator.kernel.node.launch.grid
        if len(parts) == len(grid):
            return parts[0], parts[1] if len(parts) > 1 else 0
        if len(parts) == 1 and len(grid) == 2:
            binary = self.translator.arithmetic.binary
            column, row = binary("FloorDiv", parts[0], grid[1]), binary("Mod", parts[0], grid[1])
            if column is not None and row is not None:
                return column, row
        self.translator.refuse("a node has as many coordinates as the grid has dimensions")

    def _name(self, semaphore: Semaphore) -> str:
        self.resources.needs.initial[semaphore.name] = semaphore.initial
        return semaphore.name

    def _local(self, semaphore: Semaphore, op: str, value: Number) -> None:
        """Waits for the value of this node, or sets it."""
        value = _value(value)
        pointer = self.resources.semaphore_pointer(self._name(semaphore))
        self.builder.op(op, pointer, value)

    def _increment(self, remote: MovedRemote, value: Number) -> None:
        """Increments the value on another node."""
        value = _value(value)
        address = self.resources.semaphore(self._name(remote.semaphore))
        place = self.resources.noc_address(remote.first, address)
        self.builder.op("noc_semaphore_inc", place, value)
        self.builder.op("noc_async_atomic_barrier")

    def _set(self, remote: MovedRemote, value: Number) -> None:
        """Sets the value on another node, or on several: values that are sent away are in a
        semaphore of their own."""
        builder, resources = self.builder, self.resources
        name = self._name(remote.semaphore)
        source = f"{name}_source"
        builder.op("noc_semaphore_set", resources.semaphore_pointer(source), _value(value))
        origin, address = resources.semaphore(source), resources.semaphore(name)
        if remote.count == 1:
            place = resources.noc_address(remote.first, address)
            builder.op("noc_semaphore_set_remote", origin, place)
        else:
            everywhere = resources.multicast_address(remote.first, remote.last, address)
            self._multicast_set(remote, origin, everywhere)
        builder.op("noc_async_write_barrier")

    def _multicast_set(self, remote: MovedRemote, origin: Any, everywhere: Any) -> None:
        """This node may be among those that are set, or not."""
        builder = self.builder
        op = "noc_semaphore_set_multicast"
        columns, rows = (*self.translator.kernel.node.launch.grid, 1)[:2]
        if remote.count == columns * rows:
            builder.op(f"{op}_loopback_src", origin, everywhere, remote.count)
            return
        inside = self._is_inside(remote, (columns, rows))
        if inside is True or inside is False:
            builder.op(f"{op}_loopback_src" if inside else op, origin, everywhere, remote.count)
            return
        with builder.when(self.translator.arithmetic.condition(inside)):
            builder.op(f"{op}_loopback_src", origin, everywhere, remote.count)
        with builder.otherwise():
            builder.op(op, origin, everywhere, remote.count)

    def _is_inside(self, remote: MovedRemote, grid: tuple[int, int]) -> Condition | bool:
        """True if this node is among several."""
        arithmetic = self.translator.arithmetic
        parts: list[Condition | bool] = []
        here = (self.translator.column, self.translator.row)
        for place, first, last, size in zip(here, remote.first, remote.last, grid, strict=True):
            if first is last or (isinstance(first, int) and first == last):
                parts.append(arithmetic.comparison("eq", place, first))
                continue
            if first != 0:
                parts.append(arithmetic.comparison("uge", place, first))
            if last != size - 1:
                parts.append(arithmetic.comparison("ule", place, last))
        return joined(parts, needs_all=True)
