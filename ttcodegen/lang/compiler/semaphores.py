"""Semaphores of operations as semaphores of the cores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod

from xdsl.ir import SSAValue

from ttcodegen.conversions.ttir_to_ttmetal.data_movement import MovementKernel
from ttcodegen.dialects.programs import NocX, NocY, Processor, RuntimeArgument
from ttcodegen.dialects.ttkernel.attributes import NocAddressType
from ttcodegen.lang.compiler.captured import Captured, in_grid
from ttcodegen.lang.compiler.numbers import Number
from ttcodegen.lang.context import Coordinates
from ttcodegen.lang.semaphores import (
    MulticastRemoteSemaphore,
    Semaphore,
    UnicastRemoteSemaphore,
)

Remote = UnicastRemoteSemaphore | MulticastRemoteSemaphore


@dataclass
class UsedSemaphores:
    """The semaphores that a kernel refers to, by the names of its variables."""

    local: Mapping[str, Semaphore]
    remote: Mapping[str, Remote]
    grid: Coordinates
    _pointers: dict[str, SSAValue] = field(default_factory=dict[str, SSAValue])

    @classmethod
    def of(cls, captured: Captured, loaded: set[str], grid: Coordinates) -> UsedSemaphores:
        """Those among the variables that a kernel reads.

        Raises:
            ValueError: for what the compiler does not take.
        """
        local = {n: s for n, s in captured.all(Semaphore).items() if n in loaded}
        remote: dict[str, Remote] = {
            name: value
            for kind in (UnicastRemoteSemaphore, MulticastRemoteSemaphore)
            for name, value in captured.all(kind).items()
            if name in loaded
        }
        for value in (*local.values(), *(each.semaphore for each in remote.values())):
            if value.initial:
                raise ValueError(f"'{value.name}' does not start as 0, as semaphores of cores do")
        for name, value in remote.items():
            if isinstance(value, MulticastRemoteSemaphore) and len(value.nodes) != prod(grid):
                raise ValueError(f"'{name}' is not a semaphore of the entire grid")
        return cls(local, remote, grid)

    @property
    def names(self) -> tuple[str, ...]:
        """The semaphores of the core that the kernel uses. Values that are sent away lie in one of
        their own."""
        found = [semaphore.name for semaphore in self.local.values()]
        for value in self.remote.values():
            found += [value.semaphore.name, _source(value.semaphore.name)]
        return tuple(dict.fromkeys(found))

    def arguments(self, processor: Processor) -> tuple[RuntimeArgument, ...]:
        """Where other nodes are on the NoC."""
        found: list[RuntimeArgument] = []
        for name, value in self.remote.items():
            places = [in_grid(node) for node in value.nodes]
            if isinstance(value, UnicastRemoteSemaphore):
                found += _place(name, places[0])
                continue
            corners = min(places), max(places)
            # NoC 1 goes the other way: its rectangles begin at their last core.
            first, last = corners if processor is Processor.READER else corners[::-1]
            found += [*_place(f"{name}_first", first), *_place(f"{name}_last", last)]
        return tuple(found)

    def declare(self, target: MovementKernel) -> None:
        """Declares where the semaphores of this node lie."""
        for name in self.names:
            self._pointers[name] = target.semaphore_pointer(name)

    def local_call(
        self, target: MovementKernel, semaphore: Semaphore, op: str, value: Number
    ) -> None:
        """Waits for the value of this node, or sets it."""
        target.builder.op(op, self._pointers[semaphore.name], value)

    def increment(self, target: MovementKernel, name: str, value: Number) -> None:
        """Increments the value on another node."""
        address = target.semaphore(self.remote[name].semaphore.name)
        target.builder.op("noc_semaphore_inc", target.noc_address(name, address), value)
        target.builder.op("noc_async_atomic_barrier")

    def set(self, target: MovementKernel, name: str, value: Number) -> None:
        """Sets the value on another node, or on all."""
        remote = self.remote[name]
        builder = target.builder
        source = _source(remote.semaphore.name)
        builder.op("noc_semaphore_set", self._pointers[source], value)
        origin, address = target.semaphore(source), target.semaphore(remote.semaphore.name)
        if isinstance(remote, UnicastRemoteSemaphore):
            builder.op("noc_semaphore_set_remote", origin, target.noc_address(name, address))
        elif len(remote.nodes) == 1:
            builder.op("noc_semaphore_set", self._pointers[remote.semaphore.name], value)
        else:
            corners = [target[f"{name}_{end}_{axis}"] for end in ("first", "last") for axis in "xy"]
            everywhere = builder.get(
                "get_noc_multicast_addr", *corners, address, result_type=NocAddressType()
            )
            count = len(remote.nodes)
            builder.op("noc_semaphore_set_multicast_loopback_src", origin, everywhere, count)
        builder.op("noc_async_write_barrier")


def _source(name: str) -> str:
    return f"{name}_source"


def _place(name: str, place: tuple[int, int]) -> list[RuntimeArgument]:
    return [
        RuntimeArgument(f"{name}_x", NocX(*place)),
        RuntimeArgument(f"{name}_y", NocY(*place)),
    ]
