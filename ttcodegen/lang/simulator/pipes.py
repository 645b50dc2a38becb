"""Pipes, pipe nets and semaphores."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any, TypeAlias

from ttcodegen.lang.simulator.context import (
    Awaitable,
    Coordinates,
    KernelKind,
    Launch,
    Node,
    building_node,
    current,
    current_node,
    grid_in_dimensions,
    in_dimensions,
    running_kernel,
)
from ttcodegen.lang.simulator.expressions import Array
from ttcodegen.lang.simulator.locations import Instruction, assigned_name, error, here
from ttcodegen.lang.simulator.recording import recording_of
from ttcodegen.lang.simulator.shapes import (
    Shape,
    is_integer,
    is_range,
    is_tuple,
    sequence_of,
    shape_text,
)

if TYPE_CHECKING:
    from ttcodegen.lang.simulator.buffers import Block


# Pipes between nodes, and pipe nets.
#
# A copy into a pipe is complete once the block may be reused; sent data is queued until it is
# copied out of the pipe, in the order in which it was sent.

NodeCoord = int | Coordinates
NodeRange: TypeAlias = "tuple[int | slice[Any, Any, Any], ...]"


def node_text(coordinates: object) -> str:
    """Source spelling of a node or a range of nodes."""
    if is_range(coordinates):
        return ":".join(
            "" if end is None else str(end) for end in (coordinates.start, coordinates.stop)
        )
    if is_tuple(coordinates):
        return f"({', '.join(node_text(each) for each in coordinates)})"
    return str(coordinates)


def nodes_of(coordinates: object, grid: Coordinates, what: str) -> Iterator[Coordinates]:
    """Nodes of a coordinate or a range, in its own number of dimensions.

    Raises:
        ProgramError: if one is not on the grid.
    """
    parts: tuple[Any, ...] = coordinates if is_tuple(coordinates) else (coordinates,)
    sizes = grid_in_dimensions(grid, len(parts))
    return product(
        *(
            _coordinate_range(part, size, coordinates, grid, what)
            for part, size in zip(parts, sizes, strict=True)
        )
    )


def _coordinate_range(
    part: Any, size: int, coordinates: object, grid: Coordinates, what: str
) -> range:
    """Range of coordinates in one dimension."""
    if is_range(part):
        start = 0 if part.start is None else part.start
        stop = size if part.stop is None else part.stop
        contiguous = part.step in (None, 1)
    else:
        start, stop, contiguous = part, None, True
    if not is_integer(start) or not (stop is None or is_integer(stop)):
        raise error(f"{what} is a node coordinate or a node range, not {coordinates!r}")
    first, end = int(start), int(start) + 1 if stop is None else int(stop)
    if not contiguous or not 0 <= first < end <= size:
        raise error(
            f"{what}, {node_text(coordinates)}, is not on the grid of {shape_text(grid)} nodes"
        )
    return range(first, end)


class Pipe:
    """A connection from a node to another node, or to all nodes of a range."""

    def __init__(self, src: NodeCoord, dst: NodeCoord | NodeRange) -> None:
        if any(is_range(part) for part in sequence_of(src)):
            raise error("the source of a pipe is a single node")
        self.src = src
        self.dst = dst
        self._receivers: tuple[Coordinates, frozenset[Coordinates]] | None = None

    def rank(self, coordinates: object) -> int:
        """Number of dimensions of a coordinate."""
        return len(sequence_of(coordinates))

    def receivers(self, grid: Coordinates) -> frozenset[Coordinates]:
        """Destination nodes, in the dimensions of `dst`."""
        if self._receivers is None or self._receivers[0] != grid:
            found = frozenset(nodes_of(self.dst, grid, "the destination of a pipe"))
            self._receivers = grid, found
        return self._receivers[1]

    def starts_at(self, node: Node) -> bool:
        """True if a node is the source."""
        grid = node.launch.grid
        (source,) = nodes_of(self.src, grid, "the source of a pipe")
        return in_dimensions(node.coordinates, grid, len(source), 0) == source

    def ends_at(self, node: Node) -> bool:
        """True if a node is a destination."""
        grid = node.launch.grid
        coordinates = in_dimensions(node.coordinates, grid, self.rank(self.dst), 0)
        return coordinates in self.receivers(grid)

    def __str__(self) -> str:
        return f"{node_text(self.src)} -> {node_text(self.dst)}"


class _PipeIdentity:
    """A pipe as the argument of an `if_src` or `if_dst` function."""

    def __init__(self, net: PipeNet, number: int, pipe: Pipe) -> None:
        self.net = net
        self.number = number
        self.pipe = pipe
        self.is_current = True

    def check(self) -> None:
        """Raises ProgramError if the function has returned."""
        if not self.is_current:
            raise error("a pipe can be used inside of the condition body function only")


class SrcPipeIdentity(_PipeIdentity):
    """A pipe whose source is the current node."""

    @property
    def dst(self) -> NodeCoord | NodeRange:
        """Destination node or node range."""
        return self.pipe.dst


class DstPipeIdentity(_PipeIdentity):
    """A pipe with the current node among its destinations."""

    @property
    def src(self) -> NodeCoord:
        """Source node."""
        return self.pipe.src


class PipeNet:
    """A set of pipes with common senders and receivers in the kernels."""

    def __init__(self, pipes: Sequence[Pipe]) -> None:
        if not isinstance(pipes, Iterable):  # pyright: ignore
            raise error(f"a pipe net is made of a list of pipes, not of a {type(pipes).__name__}")
        self.pipes = list(pipes)
        self.name = assigned_name() or "a pipe net"
        invalid = [each for each in self.pipes if not isinstance(each, Pipe)]  # pyright: ignore
        if invalid:
            raise error(f"a pipe net is made of pipes, not of a {type(invalid[0]).__name__}")
        self.key: object = self
        if current.kernel is not None:
            raise error(
                "a pipe net is made in the scope of an operation function, or outside of it"
            )
        if current.node is not None:
            # Each node creates its own object; those created in the same order are the same net.
            nets = current.node.made.of(PipeNet)
            self.key = len(nets)
            nets.append(self)
            if not any(current.node.coordinates):
                self._check_on_grid(current.node)

    def _check_on_grid(self, node: Node) -> None:
        """Raises ProgramError if an end of a pipe is not on the grid."""
        for pipe in self.pipes:
            pipe.starts_at(node)
            pipe.receivers(node.launch.grid)

    def if_src(self, cond_fun: Callable[[SrcPipeIdentity], None]) -> None:
        """Calls a function for each pipe whose source is the current node."""
        kernel = running_kernel("ttl.PipeNet.if_src", KernelKind.DATA_MOVEMENT)
        for number, pipe in enumerate(self.pipes):
            if pipe.starts_at(kernel.node):
                identity = SrcPipeIdentity(self, number, pipe)
                cond_fun(identity)
                identity.is_current = False

    def if_dst(self, cond_fun: Callable[[DstPipeIdentity], None]) -> None:
        """Calls a function for each pipe that has the current node among its destinations."""
        kernel = running_kernel("ttl.PipeNet.if_dst", KernelKind.DATA_MOVEMENT)
        for number, pipe in enumerate(self.pipes):
            if pipe.ends_at(kernel.node):
                identity = DstPipeIdentity(self, number, pipe)
                cond_fun(identity)
                identity.is_current = False

    def is_src(self) -> bool:
        """True if the current node is the source of a pipe."""
        node = current_node("ttl.PipeNet.is_src")
        return any(pipe.starts_at(node) for pipe in self.pipes)

    def is_dst(self) -> bool:
        """True if the current node is a destination of a pipe."""
        node = current_node("ttl.PipeNet.is_dst")
        return any(pipe.ends_at(node) for pipe in self.pipes)

    def is_active(self) -> bool:
        """True if the current node is a source or a destination of a pipe."""
        return self.is_src() or self.is_dst()


class _Channel(Awaitable):
    """Queue of the blocks in flight from a pipe to one of its destinations."""

    def __init__(self, net: PipeNet, pipe: Pipe, node: Coordinates) -> None:
        super().__init__()
        self.net = net
        self.pipe = pipe
        self.node = node
        self.blocks: deque[tuple[Array, Shape, bool]] = deque()
        self.sent = 0
        self.last: Instruction | None = None


def _channel(identity: _PipeIdentity, launch: Launch, node: Coordinates) -> _Channel:
    key = (identity.net.key, identity.number, node)
    found = launch.traffic.get(key)
    if not isinstance(found, _Channel):
        found = launch.traffic[key] = _Channel(identity.net, identity.pipe, node)
    return found


def send(identity: SrcPipeIdentity, block: Block) -> None:
    """Sends a block to the destinations of a pipe."""
    identity.check()
    launch = running_kernel("ttl.copy").node.launch
    array = block.content().copy()
    if (recording := recording_of(launch)) is not None:
        recording.record_store(array, recording.content(block.content()))
    for node in sorted(identity.pipe.receivers(launch.grid)):
        channel = _channel(identity, launch, node)
        channel.blocks.append((array, block.shape, block.is_tiled))
        channel.sent += 1
        channel.last = here()
        launch.scheduler.changed(channel)


def receive(identity: DstPipeIdentity, block: Block) -> None:
    """Waits for the next block of a pipe, and copies it into a block."""
    node = running_kernel("ttl.copy").node
    launch = node.launch
    pipe = identity.pipe
    coordinates = in_dimensions(node.coordinates, launch.grid, pipe.rank(pipe.dst), 0)
    channel = _channel(identity, launch, coordinates)
    launch.scheduler.wait_until(
        channel, lambda: bool(channel.blocks), lambda: f"a block out of the pipe {pipe}"
    )
    array, shape, is_tiled = channel.blocks.popleft()
    if (shape, is_tiled) != (block.shape, block.is_tiled):
        raise error(
            f"a block of the shape {shape_text(shape)} was sent to the pipe {pipe}, but it is "
            f"received into one of the shape {shape_text(block.shape)}"
        )
    block.content()[...] = array
    if (recording := recording_of(launch)) is not None:
        recording.record_store(block.content(), recording.content(array))


def check_balance(launch: Launch) -> None:
    """Raises ProgramError if sent data was never received."""
    for channel in launch.traffic.values():
        if isinstance(channel, _Channel) and channel.blocks:
            raise error(
                f"the pipe {channel.pipe} of '{channel.net.name}' is not balanced: "
                f"{channel.sent} copies into it, {channel.sent - len(channel.blocks)} out of it on "
                f"node {node_text(channel.node)}",
                at=channel.last,
                remedy="each ttl.copy into a pipe needs one out of it on each destination",
            )


# Semaphores: a number on each node, which kernels set and wait for.


class _Cell(Awaitable):
    """Value of a semaphore on one node."""

    def __init__(self, value: int) -> None:
        super().__init__()
        self.value = value


def checked_value(value: object) -> int:
    """Validates a semaphore value.

    Raises:
        ProgramError: if it is not an unsigned 32-bit integer.
    """
    if not is_integer(value) or not 0 <= int(value) < 2**32:
        raise error(f"the value of a semaphore is an unsigned integer of 32 bits, not {value!r}")
    return int(value)


class Semaphore:
    """A semaphore, created in the scope of an operation function."""

    def __init__(self, initial_value: int = 0) -> None:
        node = building_node("ttl.Semaphore")
        self.initial = checked_value(initial_value)
        semaphores = node.made.of(Semaphore)
        self.number = len(semaphores)
        self.name = assigned_name() or f"semaphore{self.number}"
        semaphores.append(self)

    def cell(self, launch: Launch, node: Coordinates) -> _Cell:
        """Returns the value cell of a node."""
        key = ("semaphore", self.number, node)
        found = launch.traffic.get(key)
        if not isinstance(found, _Cell):
            found = launch.traffic[key] = _Cell(self.initial)
        return found

    def wait_eq(self, value: int) -> None:
        """Waits until the local value equals `value`."""
        number = checked_value(value)
        self._wait("wait_eq", lambda cell: cell.value == number, f"to be {number}")

    def wait_ge(self, value: int) -> None:
        """Waits until the local value is at least `value`."""
        number = checked_value(value)
        self._wait("wait_ge", lambda cell: cell.value >= number, f"to be at least {number}")

    def _wait(self, what: str, condition: Callable[[_Cell], bool], text: str) -> None:
        node = running_kernel(f"ttl.Semaphore.{what}", KernelKind.DATA_MOVEMENT).node
        cell = self.cell(node.launch, node.coordinates)
        node.launch.scheduler.wait_until(
            cell, lambda: condition(cell), lambda: f"'{self.name}' {text} (it is {cell.value})"
        )

    def set(self, value: int) -> None:
        """Sets the local value."""
        node = running_kernel("ttl.Semaphore.set", KernelKind.DATA_MOVEMENT).node
        _set_values(self, node.launch, [node.coordinates], value)

    def get_remote(self, node: NodeCoord) -> UnicastRemoteSemaphore:
        """Returns the semaphore of another node."""
        return UnicastRemoteSemaphore(self, _grid_nodes(node))

    def get_remote_multicast(self, node_range: NodeRange | None = None) -> MulticastRemoteSemaphore:
        """Returns the semaphores of all nodes of a range, by default of the grid."""
        if node_range is None:
            node_range = (slice(None),) * len(current_node("get_remote_multicast").launch.grid)
        return MulticastRemoteSemaphore(self, _grid_nodes(node_range))


def _grid_nodes(coordinates: object) -> list[Coordinates]:
    """Grid nodes that a coordinate or a range refers to, in full dimensions."""
    launch = current_node("a remote semaphore").launch
    named = set(nodes_of(coordinates, launch.grid, REMOTE_NODE))
    rank = len(next(iter(named)))
    every = nodes_of(tuple(slice(None) for _ in launch.grid), launch.grid, "the grid")
    assert len(grid_in_dimensions(launch.grid, rank)) == rank
    return [node for node in every if in_dimensions(node, launch.grid, rank, 0) in named]


def _set_values(
    semaphore: Semaphore, launch: Launch, nodes: Sequence[Coordinates], value: object
) -> None:
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
        """Sets the remote values."""
        _set_values(self.semaphore, self._launch("set"), self.nodes, value)


class UnicastRemoteSemaphore(RemoteSemaphore):
    """A semaphore on another node."""

    def inc(self, value: int) -> None:
        """Increments the remote value."""
        launch = self._launch("inc")
        (node,) = self.nodes
        cell = self.semaphore.cell(launch, node)
        cell.value = (cell.value + checked_value(value)) % 2**32
        launch.scheduler.changed(cell)


class MulticastRemoteSemaphore(RemoteSemaphore):
    """A semaphore on a range of nodes, which can only be set."""

    def inc(self, value: int) -> None:
        """Raises ProgramError: increments are not multicast."""
        raise error(NO_MULTICAST_INCREMENT, remedy=INCREMENT_REMEDY)
