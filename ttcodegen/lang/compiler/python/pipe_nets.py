"""Pipe nets as the kernels see them: which nodes send, which receive, and where the others are.

What is sent lands in the block that it is received into, if that is at the same address on all
nodes and the nodes come to it in the same order. Else it lands in a slot of a circular buffer that
the net has on each node that receives, from where the receiver copies it into its block. A pipe has
the same slot on all nodes that it leads to, no two pipes that lead to one node share one.
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

Place = tuple[int, int]
MOST_BRANCHES = 64
"""Conditions that a kernel is given for the pipes of a net that follow no rule."""


@dataclass(frozen=True)
class Rectangle:
    """Nodes from a column and a row to others, all included."""

    first: Place
    last: Place

    @classmethod
    def of(cls, places: Sequence[Place]) -> Rectangle | None:
        """The rectangle that places fill; None if they fill none."""
        columns, rows = zip(*places, strict=True)
        found = cls((min(columns), min(rows)), (max(columns), max(rows)))
        return found if found.size == len(set(places)) else None

    @property
    def size(self) -> int:
        """Number of nodes."""
        return (1 + self.last[0] - self.first[0]) * (1 + self.last[1] - self.first[1])

    @property
    def nodes(self) -> Iterator[Place]:
        """All nodes, by columns."""
        (left, top), (right, bottom) = self.first, self.last
        return product(range(left, right + 1), range(top, bottom + 1))

    def __contains__(self, place: Place) -> bool:
        return all(
            a <= b <= c for a, b, c in zip(self.first, place, self.last, strict=True)
        )  # fmt: skip

    def holds(self, place: tuple[Number, Number], grid: Place) -> Condition | bool:
        """True if a node is in it."""
        parts: list[Condition | bool] = []
        for number, first, last, size in zip(place, self.first, self.last, grid, strict=True):
            if first == last and size > 1:
                parts.append(_compared("eq", number, first))
                continue
            if first > 0:
                parts.append(_compared("uge", number, first))
            if last < size - 1:
                parts.append(_compared("ule", number, last))
        found = joined(parts, needs_all=True)
        return True if found is True else found


def _compared(predicate: str, number: Number, bound: int) -> Condition | bool:
    if isinstance(number, int):
        return {"eq": number == bound, "uge": number >= bound, "ule": number <= bound}[predicate]
    return Comparison(predicate, number, bound)


@dataclass(frozen=True)
class Line:
    """A pipe on the grid."""

    number: int
    source: Place
    target: Rectangle
    slot: int
    turn: int
    """Its number among the pipes of its source."""

    @property
    def numbers(self) -> tuple[int, ...]:
        """Numbers of the line: source, destination, slot and order."""
        return (*self.source, *self.target.first, *self.target.last, self.slot, self.turn)

    @property
    def kind(self) -> tuple[object, ...]:
        """Key of the calls that a kernel makes for the line."""
        return (self.source in self.target, self.target.size)


LINE_NUMBERS = (
    "source_column", "source_row", "first_column", "first_row", "last_column", "last_row", "slot",
    "turn",
)  # fmt: skip
"""Names of the numbers of a `Line`."""


@dataclass(frozen=True)
class Table:
    """Numbers that follow no formula, by the number of the node among those of a rectangle, and of
    the pipe among those of the node, which is counted fastest."""

    numbers: tuple[int, ...]


@dataclass(frozen=True)
class Branch:
    """Nodes that do the same: the pipes of each, by formulas of its column, its row and the number
    of the pipe among them."""

    nodes: Rectangle
    count: int
    formulas: tuple[Formula | Table, ...]
    """Of the numbers of a `Line`."""
    example: Line


@dataclass(frozen=True)
class CompiledNet:
    """A pipe net on a grid of a chip."""

    net: PipeNet
    grid: Place
    lines: tuple[Line, ...]

    @classmethod
    def of(cls, net: PipeNet, grid: Coordinates) -> CompiledNet:
        """The pipes of a net.

        Raises:
            CompileError: if one leads to nodes that are no rectangle.
        """
        size = (*grid, 1)[:2]
        lines: list[Line] = []
        taken: dict[Place, set[int]] = {}
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
        """True if a node has one pipe only, and is at one end of it, or at both of its own."""
        sources = self.at_sources()
        return self.slots == self.most_sent == 1 and all(
            line.source == node or node not in sources
            for node, lines in self.at_targets().items()
            for line in lines
        )

    def without_sources(self) -> CompiledNet | None:
        """The net without what sources send to themselves; None if the other destinations of one
        are no rectangle."""
        lines: list[Line] = []
        for line in self.lines:
            others = [node for node in line.target.nodes if node != line.source]
            rest = Rectangle.of(others) if others else None
            if rest is None:
                return None
            lines.append(replace(line, target=rest))
        return replace(self, lines=tuple(lines))

    @property
    def most_sent(self) -> int:
        """Largest number of pipes that leave a node."""
        return max(map(len, self.at_sources().values()), default=0)

    def at_sources(self) -> dict[Place, list[Line]]:
        """The pipes that lead away from each node."""
        found: dict[Place, list[Line]] = {}
        for line in self.lines:
            found.setdefault(line.source, []).append(line)
        return found

    def at_targets(self) -> dict[Place, list[Line]]:
        """The pipes that lead to each node."""
        found: dict[Place, list[Line]] = {}
        for line in self.lines:
            for node in line.target.nodes:
                found.setdefault(node, []).append(line)
        return found

    def holds(self, places: Sequence[Place], place: tuple[Number, Number]) -> Condition | bool:
        """True if a node is one of several."""
        parts = [each.holds(place, self.grid) for each in covered(places)]
        return joined(parts, needs_all=False)

    def branches(self, at: Mapping[Place, Sequence[Line]], kinds: bool) -> list[Branch]:
        """Groups nodes by what they do with their pipes.

        Args:
            at: the pipes of each node, in order.
            kinds: whether nodes that use other calls do another thing.

        Raises:
            CompileError: if there are too many.
        """
        groups: dict[tuple[object, ...], list[Place]] = {}
        for node, lines in at.items():
            same = {line.kind for line in lines} if kinds else {()}
            # Pipes of one node that use different calls are done one after the other.
            key = (len(lines), *same) if len(same) == 1 else (node,)
            groups.setdefault(key, []).append(node)
        found: list[Branch] = []
        for nodes in groups.values():
            found += _branches_of({node: at[node] for node in nodes}, self.grid, kinds)
        if len(found) > MOST_BRANCHES:
            raise CompileError(
                f"the pipes of '{self.net.name}' follow no rule that the compiler sees: its kernel "
                f"would have {len(found)} branches, more than {MOST_BRANCHES}"
            )
        return found


@dataclass(frozen=True)
class NetCall:
    """A call of `if_src` or `if_dst` in a kernel."""

    is_source: bool
    regions: Regions | None
    """The loops that are open; None if not all nodes come to it, or not as often."""
    blocks: tuple[object, ...]
    """The reserved blocks that it copies from or into, once for each pipe; None for others."""


@dataclass
class NetUse:
    """Uses of a pipe net by an operation's kernels."""

    compiled: CompiledNet
    name: str
    buffer: DataflowBuffer | None = None
    """One whose blocks go through it."""
    senders: set[str] = field(default_factory=set[str])
    receivers: set[str] = field(default_factory=set[str])
    """Kernels."""
    direct: CompiledNet | None = None
    """The net without what sources send to themselves, if what is sent lands in the block that it
    is received into."""

    @property
    def landing(self) -> str:
        """The circular buffer that what is sent lands in."""
        return f"{self.name}_slots"

    @property
    def arrived(self) -> list[str]:
        """The semaphores that say that a slot is filled, by slot."""
        return _numbered(f"{self.name}_arrived", self.compiled.slots)

    @property
    def taken(self) -> list[str]:
        """The semaphores that count the destinations that have emptied their slots, by the turn of
        the pipe."""
        return _numbered(f"{self.name}_taken", self.compiled.most_sent)

    @property
    def one(self) -> str:
        """The semaphore whose value is multicast."""
        return f"{self.name}_one"

    @property
    def ready(self) -> str:
        """The semaphore that counts the destinations that have reserved their blocks."""
        return f"{self.name}_ready"

    @property
    def multicasts(self) -> bool:
        """True if a pipe leads to several nodes."""
        return any(line.target.size > 1 for line in self.compiled.lines)


def _numbered(name: str, count: int) -> list[str]:
    return [name] if count == 1 else [f"{name}_{number}" for number in range(count)]


@dataclass
class NetUses:
    """The pipe nets of an operation, which its kernels share."""

    grid: Coordinates
    uses: dict[object, NetUse] = field(default_factory=dict[object, NetUse])
    calls: dict[str, list[tuple[NetUse, NetCall]]] = field(
        default_factory=dict[str, list[tuple[NetUse, NetCall]]]
    )
    """The calls of each kernel, in order."""

    def choose_direct(self, varying: Collection[str]) -> bool:
        """Lets senders write into the blocks of receivers, if all nodes do the same in one order:
        a sender waits until receivers have reserved theirs. True if it does.

        Args:
            varying: the dataflow buffers that nodes may have pushed to another number of times.
        """
        for calls in self.calls.values():
            if len(calls) % 2:
                return False
            for (use, sent), (other, received) in zip(calls[::2], calls[1::2], strict=True):
                is_pair = use is other and sent.is_source and not received.is_source
                places = {id(block) for block in (*sent.blocks, *received.blocks)}
                if not is_pair or len(places) != 1 or None in sent.blocks:
                    return False
                if sent.regions is None or sent.regions != received.regions:
                    return False
        uses = self.uses.values()
        if not all(use.compiled.separates_ends for use in uses):
            return False
        if any(_varies(use.buffer, varying) for use in uses):
            return False
        direct = [use.compiled.without_sources() for use in uses]
        if None in direct:
            return False
        for use, net in zip(uses, direct, strict=True):
            use.direct = net
        return bool(uses)

    def __getitem__(self, net: PipeNet) -> NetUse:
        """Returns the uses of a net."""
        if net.key not in self.uses:
            taken = {use.name for use in self.uses.values()}
            stem = name = identifier(net.name.removeprefix("a pipe "))
            number = 1
            while name in taken:
                number += 1
                name = f"{stem}_{number}"
            self.uses[net.key] = NetUse(CompiledNet.of(net, self.grid), name)
        return self.uses[net.key]


def _varies(buffer: DataflowBuffer | None, varying: Collection[str]) -> bool:
    """True if the blocks of a buffer may be at other addresses on other nodes."""
    return buffer is None or buffer.backing is not None or buffer.name in varying


def _branches_of(at: Mapping[Place, Sequence[Line]], grid: Place, kinds: bool) -> Iterator[Branch]:
    """One branch for each rectangle of nodes whose pipes follow a rule, in order."""
    for nodes in covered(list(at)):
        mine = {place: lines for place, lines in at.items() if place in nodes}
        (count,) = {len(lines) for lines in mine.values()}
        alike = not kinds or len({line.kind for lines in mine.values() for line in lines}) == 1
        if alike:
            formulas = _formulas(mine, grid)
            yield Branch(nodes, count, formulas, next(iter(mine.values()))[0])
            continue
        for place, lines in mine.items():
            for line in lines:
                constants = tuple(Formula(number, (0, 0, 0)) for number in line.numbers)
                yield Branch(Rectangle(place, place), 1, constants, line)


def _formulas(at: Mapping[Place, Sequence[Line]], grid: Place) -> tuple[Formula | Table, ...]:
    points = {
        (*place, n): line.numbers for place, lines in at.items() for n, line in enumerate(lines)
    }
    found: list[Formula | Table] = []
    for position in range(len(next(iter(points.values())))):
        numbers = {point: each[position] for point, each in points.items()}
        formula = fitted(numbers, grid)
        found.append(formula or Table(tuple(numbers[point] for point in sorted(numbers))))
    return tuple(found)


def covered(places: Sequence[Place]) -> list[Rectangle]:
    """Rectangles that together are the positions: one if they fill one, else columns of them."""
    whole = Rectangle.of(places)
    if whole is not None:
        return [whole]
    columns: dict[int, list[int]] = {}
    for column, row in sorted(set(places)):
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


def _on_grid(pipe: Pipe, grid: Coordinates) -> tuple[Place, Rectangle]:
    """The source and the targets of a pipe in columns and rows."""
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
