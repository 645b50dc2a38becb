"""Pipes and semaphores of data movement kernels."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from math import prod
from typing import Any

from xdsl.ir import SSAValue

from ttcodegen.lang.compiler.python.block_lifetimes import Regions
from ttcodegen.lang.compiler.python.evaluation import is_known
from ttcodegen.lang.compiler.python.merging import Formula, NodeRemote, in_grid
from ttcodegen.lang.compiler.python.numbers import (
    Condition,
    Number,
    is_computed,
    is_condition,
    joined,
)
from ttcodegen.lang.compiler.python.pipe_nets import (
    LINE_NUMBERS,
    Branch,
    Line,
    NetCall,
    NetUse,
    Position,
    Rectangle,
    Table,
    has_range,
)
from ttcodegen.lang.compiler.python.translation import KernelTranslator
from ttcodegen.lang.compiler.resources import MovementResources
from ttcodegen.lang.simulator.buffers import DataflowBuffer
from ttcodegen.lang.simulator.pipes import (
    INCREMENT_REMEDY,
    NO_MULTICAST_INCREMENT,
    REMOTE_NODE,
    MulticastRemoteSemaphore,
    PipeNet,
    RemoteSemaphore,
    Semaphore,
    UnicastRemoteSemaphore,
    checked_value,
    nodes_of,
)
from ttcodegen.lang.simulator.shapes import Shape, is_range, sequence_of, shape_text
from ttcodegen.naming.programs import address_name

# Pipes in data movement kernels: multicasts, unicasts, and the semaphores that order them.
#
# A source waits until all destinations have consumed its previous block; then it writes the block
# into its slot on each destination, and sets a semaphore there. A destination waits for that
# semaphore, copies the slot into its own block, and increments a semaphore of the source. Slots are
# free initially, so that a node may send before it receives.
#
# Where all nodes send and receive in the same order, there are no slots: a destination increments a
# semaphore of the source once its block is reserved, and waits for the semaphore that signals a
# filled block. The source writes once all destinations are ready.


@dataclass(frozen=True, eq=False)
class MovedPipe:
    """A pipe inside an `if_src` or `if_dst` function.

    Its coordinates and numbers are known, or computed by the kernel.
    """

    use: NetUse
    example: Line
    is_source: bool
    source: tuple[Number, Number]
    first: tuple[Number, Number]
    last: tuple[Number, Number]
    slot: Number
    turn: Number
    is_own: bool = False
    """True if the node is both the source and a destination of the pipe."""
    blocks: list[object] = field(default_factory=list[object])
    """Copied blocks; None for copies inside further loops or conditions."""


class PipeCalls:
    """Translation of calls on pipe nets and pipes."""

    def __init__(self, translator: KernelTranslator, resources: MovementResources) -> None:
        self.translator = translator
        self.resources = resources
        self.builder = resources.builder

    def branch(self, net: PipeNet, method: str, cond_fun: Any) -> None:
        """Inlines a function for each pipe whose source, or destination, is this node."""
        translator = self.translator
        use = translator.nets[net]
        is_source = method == "if_src"
        (use.senders if is_source else use.receivers).add(translator.kernel.name)
        for role, kernels in (("if_src", use.senders), ("if_dst", use.receivers)):
            if len(kernels) > 1:
                translator.refuse(f"two kernels call {role} of '{net.name}': one may do that")
        compiled = use.direct or use.compiled
        at = compiled.at_sources() if is_source else compiled.at_targets()
        blocks: list[object] = []
        regions = translator.regions if translator.is_uniform else None
        for nodes, is_own in self._groups(use, at, is_source):
            for branch in compiled.branches(nodes, is_source):
                blocks += self._branch(use, branch, cond_fun, is_source, is_own)
        calls = self.translator.nets.calls.setdefault(translator.kernel.name, [])
        calls.append((use, NetCall(is_source, regions, tuple(blocks))))

    def _groups(
        self, use: NetUse, at: dict[Position, list[Line]], is_source: bool
    ) -> list[tuple[dict[Position, list[Line]], bool]]:
        """Groups nodes by pipes; a second group has sources that are their own destinations."""
        if is_source or use.direct is None:
            return [(at, False)]
        own = {line.source: [line] for line in use.compiled.lines if line.source in line.target}
        return [(nodes, is_own) for nodes, is_own in ((at, False), (own, True)) if nodes]

    def _branch(
        self, use: NetUse, branch: Branch, cond_fun: Any, is_source: bool, is_own: bool
    ) -> list[object]:
        """Inlines a function under the condition of a group of nodes; returns the copied blocks."""
        translator = self.translator
        position = translator.column, translator.row
        holds = branch.nodes.holds(position, use.compiled.grid)
        with ExitStack() as stack:
            if is_condition(holds):
                stack.enter_context(translator.scope([]))
                condition = translator.arithmetic.condition(holds)
                stack.enter_context(self.builder.when(condition))
            number: Number = 0
            if branch.count > 1:
                stack.enter_context(translator.scope([]))
                loop = self.builder.loop(branch.count, name_hint="pipe")
                number = stack.enter_context(loop)
                translator.arithmetic.bound(number, 0, branch.count - 1)
            pipe = self._pipe(use, branch, (*position, number), is_source)
            pipe = replace(pipe, is_own=is_own)
            self._regions = translator.regions
            translator.called(cond_fun, [pipe], {})
        if is_condition(holds):
            self.builder.remove_empty()
        return pipe.blocks or [None]

    def copies(self, pipe: MovedPipe, block: object) -> None:
        """Records the copy of a block into or out of a pipe."""
        is_plain = self.translator.regions == self._regions
        pipe.blocks.append(block if is_plain else None)

    _regions: Regions = ()

    def _pipe(
        self, use: NetUse, branch: Branch, point: tuple[Number, ...], is_source: bool
    ) -> MovedPipe:
        found = [
            self._number(each, use, branch, point, what)
            for each, what in zip(branch.formulas, LINE_NUMBERS, strict=True)
        ]
        position = self.translator.column, self.translator.row
        source = position if is_source else (found[0], found[1])
        return MovedPipe(
            use,
            branch.example,
            is_source,
            source,
            (found[2], found[3]),
            (found[4], found[5]),
            found[6],
            found[7],
        )

    def _number(
        self,
        formula: Formula | Table,
        use: NetUse,
        branch: Branch,
        point: tuple[Number, ...],
        what: str,
    ) -> Number:
        """Computes a number of a pipe from the position of the node, by formula or table."""
        arithmetic = self.translator.arithmetic
        if isinstance(formula, Formula):
            return arithmetic.formula(formula, point)
        first, last = branch.nodes.first, branch.nodes.last
        offsets = tuple(
            arithmetic.subtract(here, start) for here, start in zip(point, (*first, 0), strict=True)
        )
        sizes = (1 + last[0] - first[0], 1 + last[1] - first[1], branch.count)
        position = arithmetic.index(offsets, sizes)
        found = arithmetic.looked_up(formula.numbers, position, f"{use.name}_{what}")
        return self.builder.named(found, what) if is_computed(found) else found

    def end_of(self, pipe: MovedPipe, name: str) -> Any:
        """Returns the other end of a pipe: its attribute `src` or `dst`."""
        translator = self.translator
        pipes = pipe.use.compiled.net.pipes
        rank = pipes[0].rank(pipes[0].dst if name == "dst" else pipes[0].src)
        if name == "src" and not pipe.is_source:
            return pipe.source[:rank] if rank > 1 else pipe.source[0]
        if name != "dst" or not pipe.is_source:
            translator.refuse(f"a pipe has no '{name}' here: it has src in if_dst, dst in if_src")
        ranges = {has_range(each) for each in pipes}
        if len(ranges) > 1 or rank != 2:
            translator.refuse("the destinations of the pipes of this net have several forms")
        (kinds,) = ranges
        add = translator.arithmetic.add
        ends = zip(kinds, pipe.first, pipe.last, strict=True)
        return tuple(slice(a, add(b, 1)) if is_range else a for is_range, a, b in ends)

    # Copies

    def _check_block(self, pipe: MovedPipe, buffer: DataflowBuffer) -> None:
        """Refuses a block whose shape, layout or data type differs from the net's first block."""
        use = pipe.use
        first = use.buffer = use.buffer or buffer
        mine: tuple[Shape, object] = (buffer.shape, buffer.is_tiled)
        if mine != (first.shape, first.is_tiled) or buffer.data_type is not first.data_type:
            sent, received = (buffer, first) if pipe.is_source else (first, buffer)
            self.translator.refuse(
                f"a block of the shape {shape_text(sent.shape)} was sent to a pipe of "
                f"'{use.compiled.net.name}', but it is received into one of the shape "
                f"{shape_text(received.shape)}"
                if buffer.shape != first.shape
                else f"'{first.name}' and '{buffer.name}', whose blocks go through the net "
                f"'{use.compiled.net.name}', have different data types or layouts"
            )

    def _slot(self, pipe: MovedPipe, buffer: DataflowBuffer) -> SSAValue:
        """Returns the address of the slot of a pipe, which is the same on all nodes."""
        arithmetic = self.translator.arithmetic
        start = self.builder.get(
            "get_write_ptr", self.resources.buffer(pipe.use.landing), name_hint="slot"
        )
        offset = arithmetic.multiply(pipe.slot, buffer.pages * buffer.page_bytes)
        return self.builder.sum(start, offset)

    def begin(self, use: NetUse) -> None:
        """Initializes the semaphores of a sending kernel: all slots are free."""
        translator = self.translator
        resources, builder = self.resources, self.builder
        if use.direct is not None:
            if any(line.target.size > 1 for line in use.direct.lines):
                # The multicast value; a destination resets its own copy before it signals ready.
                pointer = resources.semaphore_pointer(use.arrived[0])
                builder.op("noc_semaphore_set", pointer, 1)
            return
        if use.multicasts:
            one = resources.pointer(resources.semaphore(use.one), use.one)
            builder.op("noc_semaphore_set", one, 1)
        by_turn: dict[int, dict[int, list[tuple[int, int]]]] = {}
        for line in use.compiled.lines:
            sizes = by_turn.setdefault(line.turn, {})
            sizes.setdefault(line.target.size, []).append(line.source)
        position = translator.column, translator.row
        for turn, sizes in by_turn.items():
            name = use.taken[turn]
            pointer = resources.pointer(resources.semaphore(name), name)
            for size, sources in sizes.items():
                holds = use.compiled.holds(sources, position)
                with ExitStack() as stack:
                    if is_condition(holds):
                        condition = translator.arithmetic.condition(holds)
                        stack.enter_context(builder.when(condition))
                    builder.op("noc_semaphore_set", pointer, size)

    def send(self, pipe: MovedPipe, buffer: DataflowBuffer, address: SSAValue) -> None:
        """Emits the write of a block to the slots of a pipe's destinations."""
        self._check_block(pipe, buffer)
        resources, builder = self.resources, self.builder
        use, target = pipe.use, pipe.example.target
        if use.direct is not None:
            self._send_directly(pipe, buffer, address)
            return
        size = buffer.pages * buffer.page_bytes
        taken = resources.pointer(resources.semaphore_of(use.taken, pipe.turn), "taken")
        builder.comment("The destinations have taken what was sent before.")
        builder.op("noc_semaphore_wait", taken, target.size)
        builder.op("noc_semaphore_set", taken, 0)
        slot = self._slot(pipe, buffer)
        arrived = resources.semaphore_of(use.arrived, pipe.slot)
        if target.size == 1:
            builder.op("noc_async_write", address, resources.noc_address(pipe.first, slot), size)
            builder.op("noc_async_write_barrier")
            builder.op("noc_semaphore_inc", resources.noc_address(pipe.first, arrived), 1)
            builder.op("noc_async_atomic_barrier")
            return
        builder.named(arrived, address_name(f"{use.name}_arrived"))
        loopback = "_loopback_src" if pipe.example.source in target else ""
        everywhere = resources.multicast_address(pipe.first, pipe.last, slot)
        op = f"noc_async_write_multicast{loopback}"
        builder.op(op, address, everywhere, size, target.size)
        builder.op("noc_async_write_barrier")
        everywhere = resources.multicast_address(pipe.first, pipe.last, arrived)
        op = f"noc_semaphore_set_multicast{loopback}"
        builder.op(op, resources.semaphore(use.one), everywhere, target.size)
        builder.op("noc_async_write_barrier")

    def receive(
        self, pipe: MovedPipe, buffer: DataflowBuffer, address: Callable[[], SSAValue]
    ) -> None:
        """Emits the wait for a block in the slot of a pipe, and its copy."""
        self._check_block(pipe, buffer)
        resources, builder = self.resources, self.builder
        use = pipe.use
        if use.direct is not None:
            self._receive_directly(pipe)
            return
        arrived = resources.pointer(resources.semaphore_of(use.arrived, pipe.slot), "arrived")
        builder.op("noc_semaphore_wait", arrived, 1)
        builder.op("noc_semaphore_set", arrived, 0)
        slot = self._slot(pipe, buffer)
        size = buffer.pages * buffer.page_bytes
        builder.op("noc_async_read", resources.here(slot), address(), size)
        builder.op("noc_async_read_barrier")
        taken = resources.semaphore_of(use.taken, pipe.turn)
        builder.op("noc_semaphore_inc", resources.noc_address(pipe.source, taken), 1)
        builder.op("noc_async_atomic_barrier")

    # Copies into the blocks of the receivers

    def _block_bytes(self, buffer: DataflowBuffer) -> SSAValue:
        size = buffer.pages * buffer.page_bytes
        return self.builder.named_constant(size, f"{buffer.name}_block_bytes")

    def _send_directly(self, pipe: MovedPipe, buffer: DataflowBuffer, address: SSAValue) -> None:
        """Emits the write of a block to the destinations' blocks, which have the same address."""
        resources, builder = self.resources, self.builder
        use, count = pipe.use, pipe.example.target.size
        ready = resources.semaphore_pointer(use.ready)
        builder.comment("The destinations have reserved their blocks.")
        builder.op("noc_semaphore_wait", ready, count)
        builder.op("noc_semaphore_set", ready, 0)
        size = self._block_bytes(buffer)
        arrived = resources.semaphore(use.arrived[0])
        if count == 1:
            builder.op("noc_async_write", address, resources.noc_address(pipe.first, address), size)
            builder.op("noc_async_write_barrier")
            builder.op("noc_semaphore_inc", resources.noc_address(pipe.first, arrived), 1)
            return
        builder.named(arrived, address_name(use.arrived[0]))
        everywhere = resources.multicast_address(pipe.first, pipe.last, address)
        builder.op("noc_async_write_multicast", address, everywhere, size, count)
        builder.comment("Sent after the data over the same NoC: it arrives after them.")
        builder.op("noc_async_writes_flushed")
        everywhere = resources.multicast_address(pipe.first, pipe.last, arrived)
        builder.op("noc_semaphore_set_multicast", arrived, everywhere, count)

    def _receive_directly(self, pipe: MovedPipe) -> None:
        """Emits the wait for a filled block; a source among its destinations has it already."""
        if pipe.is_own:
            return
        resources, builder = self.resources, self.builder
        use = pipe.use
        arrived = resources.semaphore_pointer(use.arrived[0])
        builder.op("noc_semaphore_set", arrived, 0)
        ready = resources.semaphore(use.ready)
        builder.op("noc_semaphore_inc", resources.noc_address(pipe.source, ready), 1)
        builder.op("noc_semaphore_wait", arrived, 1)

    def end(self) -> None:
        """Emits the final barriers of kernels that send or receive directly."""
        name = self.translator.kernel.name
        direct = [use for use in self.translator.nets.uses.values() if use.direct is not None]
        if any(name in use.senders for use in direct):
            self.builder.op("noc_async_write_barrier")
        if any(name in use.receivers for use in direct):
            self.builder.op("noc_async_atomic_barrier")


# Semaphores of operations as semaphores of the cores

_LOCAL_CALLS = {
    "wait_eq": "noc_semaphore_wait",
    "wait_ge": "noc_semaphore_wait_min",
    "set": "noc_semaphore_set",
}
"""Ops of the methods of local semaphores."""


@dataclass(frozen=True, eq=False)
class MovedRemote:
    """A semaphore on one or several other nodes."""

    semaphore: Semaphore
    first: tuple[Number, Number]
    last: tuple[Number, Number]
    count: int
    is_multicast: bool = False


def _value(given: Any) -> Number:
    """Checks a semaphore value if it is known."""
    return checked_value(given) if is_known(given) else given


class SemaphoreCalls:
    """Translation of semaphore methods."""

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
            case NodeRemote(of, first, last, count, is_multicast), "set" | "inc":
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
        """Converts a remote semaphore that was made in the operation's body."""
        positions = [in_grid(node) for node in remote.nodes]
        found = Rectangle.of(positions)
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
        position = self._position_of(node)
        return MovedRemote(semaphore, position, position, 1)

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
        """Refuses known coordinates outside the grid."""
        if is_known(node):
            list(nodes_of(node, self.translator.kernel.node.launch.grid, REMOTE_NODE))

    def _position_of(self, node: Any) -> tuple[Number, Number]:
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
        """Emits a wait for, or a set of, the value on this node."""
        value = _value(value)
        pointer = self.resources.semaphore_pointer(self._name(semaphore))
        self.builder.op(op, pointer, value)

    def _increment(self, remote: MovedRemote, value: Number) -> None:
        """Emits an increment of the value on another node."""
        value = _value(value)
        address = self.resources.semaphore(self._name(remote.semaphore))
        noc_address = self.resources.noc_address(remote.first, address)
        self.builder.op("noc_semaphore_inc", noc_address, value)
        self.builder.op("noc_async_atomic_barrier")

    def _set(self, remote: MovedRemote, value: Number) -> None:
        """Emits a set of the value on one or several other nodes.

        The value is sent from a separate source semaphore, so that the node's own value stays.
        """
        builder, resources = self.builder, self.resources
        name = self._name(remote.semaphore)
        source = f"{name}_source"
        builder.op("noc_semaphore_set", resources.semaphore_pointer(source), _value(value))
        origin, address = resources.semaphore(source), resources.semaphore(name)
        if remote.count == 1:
            noc_address = resources.noc_address(remote.first, address)
            builder.op("noc_semaphore_set_remote", origin, noc_address)
        else:
            everywhere = resources.multicast_address(remote.first, remote.last, address)
            self._multicast_set(remote, origin, everywhere)
        builder.op("noc_async_write_barrier")

    def _multicast_set(self, remote: MovedRemote, origin: Any, everywhere: Any) -> None:
        """Emits a multicast set, with loopback if this node is inside the rectangle."""
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
        """True if this node is inside the rectangle of a multicast."""
        arithmetic = self.translator.arithmetic
        parts: list[Condition | bool] = []
        here = (self.translator.column, self.translator.row)
        for coordinate, first, last, size in zip(
            here, remote.first, remote.last, grid, strict=True
        ):
            if first is last or (isinstance(first, int) and first == last):
                parts.append(arithmetic.comparison("eq", coordinate, first))
                continue
            if first != 0:
                parts.append(arithmetic.comparison("uge", coordinate, first))
            if last != size - 1:
                parts.append(arithmetic.comparison("ule", coordinate, last))
        return joined(parts, needs_all=True)
