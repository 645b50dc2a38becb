"""Pipe nets as kernels see them: senders, receivers, and the positions of both.

Data is sent directly into the receiver's block, if that has the same address on all nodes and all
nodes reach the transfer in the same order. Otherwise it is sent to a slot of a circular buffer that
the net has on each receiving node, from where the receiver copies it into its block. A pipe has the
same slot on all its destinations; two pipes to the same node never share a slot.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product

from ttcodegen.emitc.spelling import identifier
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.lang.compiler.python.block_lifetimes import Regions
from ttcodegen.lang.compiler.python.merging import Formula, fitted, in_grid
from ttcodegen.lang.compiler.python.numbers import Comparison, Condition, Number, joined
from ttcodegen.lang.simulator.buffers import DataflowBuffer
from ttcodegen.lang.simulator.context import Coordinates, in_dimensions
from ttcodegen.lang.simulator.pipes import Pipe, PipeNet
from ttcodegen.lang.simulator.shapes import is_range, sequence_of

Position = tuple[int, int]
MAX_BRANCHES = 64
"""Maximum number of branches for the pipes of a net in a kernel."""


@dataclass(frozen=True)
class Rectangle:
    """A rectangle of nodes, from first to last inclusive."""

    first: Position
    last: Position

    @classmethod
    def of(cls, positions: Sequence[Position]) -> Rectangle | None:
        """The rectangle that the nodes fill, or None."""
        columns, rows = zip(*positions, strict=True)
        found = cls((min(columns), min(rows)), (max(columns), max(rows)))
        return found if found.size == len(set(positions)) else None

    @property
    def size(self) -> int:
        """Number of nodes."""
        return (1 + self.last[0] - self.first[0]) * (1 + self.last[1] - self.first[1])

    @property
    def nodes(self) -> Iterator[Position]:
        """All nodes, column by column."""
        (left, top), (right, bottom) = self.first, self.last
        return product(range(left, right + 1), range(top, bottom + 1))

    def __contains__(self, position: Position) -> bool:
        return all(
            a <= b <= c for a, b, c in zip(self.first, position, self.last, strict=True)
        )  # fmt: skip

    def holds(self, position: tuple[Number, Number], grid: Position) -> Condition | bool:
        """Condition that a node is inside."""
        parts: list[Condition | bool] = []
        for number, first, last, size in zip(position, self.first, self.last, grid, strict=True):
            if first == last and size > 1:
                parts.append(_compare("eq", number, first))
                continue
            if first > 0:
                parts.append(_compare("uge", number, first))
            if last < size - 1:
                parts.append(_compare("ule", number, last))
        found = joined(parts, needs_all=True)
        return True if found is True else found


def _compare(predicate: str, number: Number, bound: int) -> Condition | bool:
    if isinstance(number, int):
        return {"eq": number == bound, "uge": number >= bound, "ule": number <= bound}[predicate]
    return Comparison(predicate, number, bound)


@dataclass(frozen=True)
class Line:
    """A pipe with its coordinates on the grid, its slot and its turn."""

    number: int
    source: Position
    target: Rectangle
    slot: int
    turn: int
    """Index among the pipes of the same source."""

    @property
    def numbers(self) -> tuple[int, ...]:
        """Source, first and last destination, slot and turn."""
        return (*self.source, *self.target.first, *self.target.last, self.slot, self.turn)

    @property
    def kind(self) -> tuple[object, ...]:
        """Key of the NoC calls that a kernel makes for the pipe."""
        return (self.source in self.target, self.target.size)


LINE_NUMBERS = (
    "source_column", "source_row", "first_column", "first_row", "last_column", "last_row", "slot",
    "turn",
)  # fmt: skip
"""Names of the entries of `Line.numbers`."""


@dataclass(frozen=True)
class Table:
    """A lookup table of numbers that no formula fits.

    The index is the linear position of the node in a rectangle, then of the pipe, pipe fastest.
    """

    numbers: tuple[int, ...]


@dataclass(frozen=True)
class Branch:
    """A rectangle of nodes whose pipes are handled by the same code.

    The numbers of each pipe are functions of the column, the row and the index of the pipe.
    """

    nodes: Rectangle
    count: int
    formulas: tuple[Formula | Table, ...]
    """Formulas or tables of `Line.numbers`."""
    example: Line


@dataclass(frozen=True)
class CompiledNet:
    """A pipe net placed on a grid of nodes."""

    net: PipeNet
    grid: Position
    lines: tuple[Line, ...]

    @classmethod
    def of(cls, net: PipeNet, grid: Coordinates) -> CompiledNet:
        """Places the pipes of a net, and assigns slots.

        Raises:
            CompileError: if the destinations of a pipe do not form a rectangle.
        """
        size = (*grid, 1)[:2]
        lines: list[Line] = []
        taken: dict[Position, set[int]] = {}
        for number, pipe in enumerate(net.pipes):
            source, target = _on_grid(pipe, grid)
            nodes = [(c, r) for c, r in product(range(size[0]), range(size[1])) if (c, r) in target]
            used = {slot for node in nodes for slot in taken.setdefault(node, set())}
            slot = next(n for n in range(len(used) + 1) if n not in used)
            for node in nodes:
                taken[node].add(slot)
            turn = sum(line.source == source for line in lines)
            lines.append(Line(number, source, target, slot, turn))
        return cls(net, (size[0], size[1]), tuple(lines))

    @property
    def slots(self) -> int:
        """Number of blocks that may be in flight to a node."""
        return 1 + max((line.slot for line in self.lines), default=0)

    @property
    def separates_ends(self) -> bool:
        """True if each node belongs to one pipe at most: as its source, a destination, or both."""
        sources = self.at_sources()
        return self.slots == self.max_sent == 1 and all(
            line.source == node or node not in sources
            for node, lines in self.at_targets().items()
            for line in lines
        )

    def without_sources(self) -> CompiledNet | None:
        """The net without loopback; None if other destinations form no rectangle."""
        lines: list[Line] = []
        for line in self.lines:
            others = [node for node in line.target.nodes if node != line.source]
            rest = Rectangle.of(others) if others else None
            if rest is None:
                return None
            lines.append(replace(line, target=rest))
        return replace(self, lines=tuple(lines))

    @property
    def max_sent(self) -> int:
        """Maximum number of pipes with the same source."""
        return max(map(len, self.at_sources().values()), default=0)

    def at_sources(self) -> dict[Position, list[Line]]:
        """Pipes by source node."""
        found: dict[Position, list[Line]] = {}
        for line in self.lines:
            found.setdefault(line.source, []).append(line)
        return found

    def at_targets(self) -> dict[Position, list[Line]]:
        """Pipes by destination node."""
        found: dict[Position, list[Line]] = {}
        for line in self.lines:
            for node in line.target.nodes:
                found.setdefault(node, []).append(line)
        return found

    def holds(
        self, positions: Sequence[Position], position: tuple[Number, Number]
    ) -> Condition | bool:
        """Condition that a node is one of several."""
        parts = [each.holds(position, self.grid) for each in covered(positions)]
        return joined(parts, needs_all=False)

    def branches(self, at: Mapping[Position, Sequence[Line]], by_kind: bool) -> list[Branch]:
        """Groups nodes into branches by the calls for their pipes.

        Args:
            at: the pipes of each node, in order.
            kinds: True if pipes that need different calls need separate branches.

        Raises:
            CompileError: if there are more branches than a kernel may have.
        """
        groups: dict[tuple[object, ...], list[Position]] = {}
        for node, lines in at.items():
            same = {line.kind for line in lines} if by_kind else {()}
            # Pipes of one node that need different calls are handled one after the other.
            key = (len(lines), *same) if len(same) == 1 else (node,)
            groups.setdefault(key, []).append(node)
        found: list[Branch] = []
        for nodes in groups.values():
            found += _branches_of({node: at[node] for node in nodes}, self.grid, by_kind)
        if len(found) > MAX_BRANCHES:
            raise CompileError(
                f"the pipes of '{self.net.name}' follow no rule that the compiler sees: its kernel "
                f"would have {len(found)} branches, more than {MAX_BRANCHES}"
            )
        return found


@dataclass(frozen=True)
class NetCall:
    """A call of `if_src` or `if_dst` in a kernel."""

    is_source: bool
    regions: Regions | None
    """Enclosing loops; None if the iterations differ between nodes or depend on conditions."""
    blocks: tuple[object, ...]
    """Reserved block copied by each pipe; None for other copies."""


@dataclass
class NetUse:
    """Uses of a pipe net by an operation's kernels."""

    compiled: CompiledNet
    name: str
    buffer: DataflowBuffer | None = None
    """A buffer whose blocks pass through the net."""
    senders: set[str] = field(default_factory=set[str])
    receivers: set[str] = field(default_factory=set[str])
    """Names of the kernels."""
    direct: CompiledNet | None = None
    """The net without loopback, if senders write directly into receivers' blocks."""

    @property
    def landing(self) -> str:
        """Circular buffer with the slots."""
        return f"{self.name}_slots"

    @property
    def arrived(self) -> list[str]:
        """Semaphores that signal a filled slot, by slot."""
        return _numbered(f"{self.name}_arrived", self.compiled.slots)

    @property
    def taken(self) -> list[str]:
        """Semaphores that count the destinations with an empty slot, by the turn of the pipe."""
        return _numbered(f"{self.name}_taken", self.compiled.max_sent)

    @property
    def one(self) -> str:
        """Semaphore whose value is multicast."""
        return f"{self.name}_one"

    @property
    def ready(self) -> str:
        """Semaphore that counts the destinations with a reserved block."""
        return f"{self.name}_ready"

    @property
    def multicasts(self) -> bool:
        """True if a pipe has several destinations."""
        return any(line.target.size > 1 for line in self.compiled.lines)


def _numbered(name: str, count: int) -> list[str]:
    return [name] if count == 1 else [f"{name}_{number}" for number in range(count)]


@dataclass
class NetUses:
    """Pipe nets of an operation, shared by its kernels."""

    grid: Coordinates
    uses: dict[object, NetUse] = field(default_factory=dict[object, NetUse])
    calls: dict[str, list[tuple[NetUse, NetCall]]] = field(
        default_factory=dict[str, list[tuple[NetUse, NetCall]]]
    )
    """Calls by kernel name, in order."""

    def choose_direct(self, varying: Collection[str]) -> bool:
        """Lets senders write directly into receivers' blocks, if all nodes proceed in one order.

        A sender then waits until its receivers have reserved their blocks. Returns True if direct
        writes are used.

        Args:
            varying: dataflow buffers with different numbers of pushes on different nodes.
        """
        for calls in self.calls.values():
            if len(calls) % 2:
                return False
            for (use, sent), (other, received) in zip(calls[::2], calls[1::2], strict=True):
                is_pair = use is other and sent.is_source and not received.is_source
                block_ids = {id(block) for block in (*sent.blocks, *received.blocks)}
                if not is_pair or len(block_ids) != 1 or None in sent.blocks:
                    return False
                if sent.regions is None or sent.regions != received.regions:
                    return False
        uses = self.uses.values()
        if not all(use.compiled.separates_ends for use in uses):
            return False
        if any(_has_varying_address(use.buffer, varying) for use in uses):
            return False
        direct = [use.compiled.without_sources() for use in uses]
        if None in direct:
            return False
        for use, net in zip(uses, direct, strict=True):
            use.direct = net
        return bool(uses)

    def __getitem__(self, net: PipeNet) -> NetUse:
        """Returns the uses of a net, which are created on first access."""
        if net.key not in self.uses:
            taken = {use.name for use in self.uses.values()}
            stem = name = identifier(net.name.removeprefix("a pipe "))
            number = 1
            while name in taken:
                number += 1
                name = f"{stem}_{number}"
            self.uses[net.key] = NetUse(CompiledNet.of(net, self.grid), name)
        return self.uses[net.key]


def _has_varying_address(buffer: DataflowBuffer | None, varying: Collection[str]) -> bool:
    """True if the addresses of a buffer's blocks may differ between nodes."""
    return buffer is None or buffer.backing is not None or buffer.name in varying


def _branches_of(
    at: Mapping[Position, Sequence[Line]], grid: Position, by_kind: bool
) -> Iterator[Branch]:
    """Yields branches for rectangles of nodes, in order."""
    for nodes in covered(list(at)):
        inside = {position: lines for position, lines in at.items() if position in nodes}
        (count,) = {len(lines) for lines in inside.values()}
        alike = not by_kind or len({line.kind for lines in inside.values() for line in lines}) == 1
        if alike:
            formulas = _formulas(inside, grid)
            yield Branch(nodes, count, formulas, next(iter(inside.values()))[0])
            continue
        for position, lines in inside.items():
            for line in lines:
                constants = tuple(Formula(number, (0, 0, 0)) for number in line.numbers)
                yield Branch(Rectangle(position, position), 1, constants, line)


def _formulas(at: Mapping[Position, Sequence[Line]], grid: Position) -> tuple[Formula | Table, ...]:
    points = {
        (*position, n): line.numbers
        for position, lines in at.items()
        for n, line in enumerate(lines)
    }
    found: list[Formula | Table] = []
    for position in range(len(next(iter(points.values())))):
        numbers = {point: each[position] for point, each in points.items()}
        formula = fitted(numbers, grid)
        found.append(formula or Table(tuple(numbers[point] for point in sorted(numbers))))
    return tuple(found)


def covered(positions: Sequence[Position]) -> list[Rectangle]:
    """Partitions nodes into rectangles: a single one if they fill it, else runs of columns."""
    whole = Rectangle.of(positions)
    if whole is not None:
        return [whole]
    columns: dict[int, list[int]] = {}
    for column, row in sorted(set(positions)):
        columns.setdefault(column, []).append(row)
    runs: list[tuple[int, int, int]] = []
    for column, rows in columns.items():
        start = rows[0]
        for row, following in zip(rows, [*rows[1:], -1], strict=True):
            if following != row + 1:
                runs.append((start, row, column))
                start = following
    found: list[Rectangle] = []
    for first, last, column in sorted(runs):
        before = found[-1] if found else None
        rows_alike = before is not None and (before.first[1], before.last[1]) == (first, last)
        if before is not None and rows_alike and before.last[0] == column - 1:
            found[-1] = Rectangle(before.first, (column, last))
        else:
            found.append(Rectangle((column, first), (column, last)))
    return found


def _on_grid(pipe: Pipe, grid: Coordinates) -> tuple[Position, Rectangle]:
    """Source and destinations of a pipe in columns and rows."""
    every = list(product(*map(range, grid)))
    ranks = pipe.rank(pipe.src), pipe.rank(pipe.dst)
    start = tuple(int(part) for part in sequence_of(pipe.src))
    (source,) = [
        node for node in every if in_dimensions(node, grid, ranks[0], 0) == start
    ]  # fmt: skip
    receivers = pipe.receivers(grid)
    targets = [
        in_grid(node) for node in every if in_dimensions(node, grid, ranks[1], 0) in receivers
    ]
    found = Rectangle.of(targets)
    if found is None:
        raise CompileError(
            f"the pipe {pipe} leads to nodes that are no rectangle of the grid",
            remedy="give the destination in as many dimensions as the grid has",
        )
    return in_grid(source), found


def has_range(pipe: Pipe) -> tuple[bool, ...]:
    """Mask of the destination coordinates that are ranges."""
    return tuple(is_range(part) for part in sequence_of(pipe.dst))
