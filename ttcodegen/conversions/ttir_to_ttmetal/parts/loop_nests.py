"""Loop nests of kernels: work split over cores, page indices, access patterns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations, pairwise
from math import prod

from xdsl.ir import SSAValue

from ttcodegen.dialects.ttcore.shards import CoreRange
from ttcodegen.dialects.ttkernel.builder import KernelBuilder, Value
from ttcodegen.layout.placements import TiledShape, row_major_strides
from ttcodegen.naming.programs import dimension_names

# Work split over cores: each core gets a run of output tiles in some order.
#
# Row by row, a run is a part of a few rows. In other orders it is a block: of rows and columns, or
# of the same tiles of several batches. Cores then read fewer tiles of operands that are broadcast
# over one side of the block.

MOST_ORDERED = 4
"""Maximum number of dimensions for which all subsets are tried as the innermost ones."""
STRIPES = (2, 4, 8, 16)
"""Candidate stripe widths: within a stripe a core proceeds row by row."""


@dataclass(frozen=True)
class OrderedDimension:
    """Dimension of a grid of tiles, or a part of one."""

    name: str
    dimension: int
    size: int
    step: int = 1
    """Stride in tiles of the grid dimension."""


@dataclass(frozen=True)
class WorkOrder:
    """Order of all tiles of a grid; the last of the dimensions varies fastest."""

    grid: tuple[int, ...]
    dimensions: tuple[OrderedDimension, ...]

    @classmethod
    def row_by_row(cls, grid: Sequence[int]) -> WorkOrder:
        """Order in which the tiles are stored.

        Args:
            grid: the tiles in each dimension; the last two are rows and columns.
        """
        names = dimension_names(len(grid))
        return cls(
            tuple(grid),
            tuple(
                OrderedDimension(name, place, size)
                for place, (name, size) in enumerate(zip(names, grid, strict=True))
            ),
        )

    @property
    def names(self) -> list[str]:
        """Names of the dimensions."""
        return [each.name for each in self.dimensions]

    @property
    def sizes(self) -> list[int]:
        """Number of steps in each dimension."""
        return [each.size for each in self.dimensions]

    @property
    def is_row_by_row(self) -> bool:
        """Returns whether the number of a tile in this order is its page number."""
        used = [each for each in self.dimensions if each.size > 1]
        in_order = all(a.dimension < b.dimension for a, b in pairwise(used))
        return in_order and all(each.step == 1 for each in used)

    @property
    def text(self) -> str:
        """Names of the dimensions with more than one tile, innermost first."""
        used = [each.name for each in reversed(self.dimensions) if each.size > 1]
        return ", then ".join(used)

    def moves(self, strides: Sequence[int]) -> list[int]:
        """Page stride per dimension, given the strides per grid dimension."""
        return [strides[each.dimension] * each.step for each in self.dimensions]

    def others(self) -> Iterator[WorkOrder]:
        """Yields alternatives to row by row: other innermost dimensions, and stripes."""
        used = [each for each in self.dimensions if each.size > 1]
        found = WorkOrder(self.grid, tuple(used))
        yield from found._stripes()
        for count in range(1, len(used) if len(used) <= MOST_ORDERED else 2):
            for inner in combinations(used, count):
                before = (each for each in used if each not in inner)
                order = WorkOrder(self.grid, (*before, *inner))
                if not order.is_row_by_row:
                    yield order
                    yield from order._stripes()

    def _stripes(self) -> Iterator[WorkOrder]:
        """Yields the order with stripes of the last dimension.

        Within a stripe the last dimension but one varies slower than the stripe's columns."""
        if len(self.dimensions) < 2:
            return
        *outer, before, last = self.dimensions
        for width in (width for width in STRIPES if width < last.size and last.size % width == 0):
            count = last.size // width
            stripe = OrderedDimension(f"{last.name}_stripe", last.dimension, count, width)
            inside = OrderedDimension(f"{last.name}_in_stripe", last.dimension, width)
            yield WorkOrder(self.grid, (*outer, stripe, before, inside))


# Page numbers of operand tiles.

Page = tuple[tuple[str, int], ...]
"""Page number as a sum of named coordinates times constants."""


@dataclass(frozen=True)
class Coordinate:
    """Coordinate computed from a counter: `counter / divisor % modulus`."""

    name: str
    counter: str
    divisor: int = 1
    modulus: int = 0
    """0 for none."""

    def value(self, builder: KernelBuilder, counters: Mapping[str, SSAValue]) -> SSAValue:
        """Computes the coordinate from its counter."""
        value = counters[self.counter]
        if self.divisor != 1:
            value = builder.quotient(value, self.divisor)
        return builder.remainder(value, self.modulus) if self.modulus else value


@dataclass(frozen=True)
class _Dimension:
    name: str
    size: int
    moves: tuple[int, ...]
    """Page stride of each operand in this dimension."""


@dataclass(frozen=True)
class LoopNest:
    """Loops over output tiles (`tile`) and reduction steps (`step`), with pages."""

    tile_coordinates: list[Coordinate]
    step_coordinates: list[Coordinate]
    pages: list[Page]

    @classmethod
    def of(
        cls,
        grid: Sequence[int],
        steps: Sequence[int],
        strides: Sequence[tuple[Sequence[int], Sequence[int]]],
        tile: str = "tile",
        names: Sequence[str] | None = None,
    ) -> LoopNest:
        """Builds the nest over a grid of tiles.

        Args:
            grid: tiles of the result in each dimension, outermost first.
            steps: number of tiles that are reduced to an output tile, per dimension of its shape.
            strides: for each operand, the page strides of output tiles, per dimension of the grid,
                and those of steps, per dimension of the shape.
            tile: name of the counter of output tiles.
            names: names of the dimensions of the grid, by default those of a tensor.
        """
        outer = _merged(names or dimension_names(len(grid)), grid, [moves for moves, _ in strides])
        inner_names = [f"step_{name}" for name in dimension_names(len(steps))]
        inner = _merged(inner_names, steps, [moves for _, moves in strides])
        tile_names = _used(outer, tile)
        step_names = _used(inner, "step")
        pages = [
            (*_terms(outer, tile_names, index), *_terms(inner, step_names, index))
            for index in range(len(strides))
        ]
        return cls(
            _coordinates(outer, tile_names, tile), _coordinates(inner, step_names, "step"), pages
        )


def computed_coordinates(
    builder: KernelBuilder, coordinates: Iterable[Coordinate], known: Mapping[str, SSAValue]
) -> dict[str, SSAValue]:
    """Computes coordinates from known counters; returns both."""
    found = dict(known)
    for coordinate in coordinates:
        value = coordinate.value(builder, found)
        value.name_hint = coordinate.name
        found[coordinate.name] = value
    return found


def sum_of(builder: KernelBuilder, terms: Iterable[Value]) -> Value:
    """Sum of values, without those that are the constant 0."""
    total: Value = 0
    for term in terms:
        if isinstance(term, int) and term == 0:
            continue
        is_none = isinstance(total, int) and total == 0
        total = term if is_none else builder.sum(total, term)
    return total


def page_number(builder: KernelBuilder, page: Page, known: Mapping[str, SSAValue]) -> Value:
    """Page number, computed from coordinates."""
    return sum_of(
        builder,
        (builder.product(known[name], step) if step != 1 else known[name] for name, step in page),
    )


def page_of_tile(builder: KernelBuilder, order: WorkOrder, tile: SSAValue) -> Value:
    """Page of a tile, given its number in an order."""
    if order.is_row_by_row:
        return tile
    moves = order.moves(row_major_strides(order.grid))
    none = [0] * len(moves)
    nest = LoopNest.of(order.sizes, [1] * len(moves), [(moves, none)], names=order.names)
    known = computed_coordinates(builder, nest.tile_coordinates, {"tile": tile})
    return page_number(builder, nest.pages[0], known)


def _merged(
    names: Sequence[str], sizes: Sequence[int], strides: Sequence[Sequence[int]]
) -> list[_Dimension]:
    """Merges adjacent dimensions that all operands traverse contiguously; drops those of size 1."""
    merged: list[_Dimension] = []
    for index, (name, size) in enumerate(zip(names, sizes, strict=True)):
        if size == 1:
            continue
        moves = tuple(operand[index] for operand in strides)
        if merged and all(
            before == move * size for before, move in zip(merged[-1].moves, moves, strict=True)
        ):
            merged[-1] = _Dimension(name, merged[-1].size * size, moves)
        else:
            merged.append(_Dimension(name, size, moves))
    return merged


def _used(dimensions: Sequence[_Dimension], whole: str) -> list[str]:
    """Names of the dimensions in use; a single one is the loop counter itself."""
    return [whole] if len(dimensions) == 1 else [dimension.name for dimension in dimensions]


def _terms(dimensions: Sequence[_Dimension], names: Sequence[str], operand: int) -> Page:
    return tuple(
        (name, dimension.moves[operand])
        for dimension, name in zip(dimensions, names, strict=True)
        if dimension.moves[operand]
    )


def _coordinates(
    dimensions: Sequence[_Dimension], names: Sequence[str], whole: str
) -> list[Coordinate]:
    if len(dimensions) < 2:
        return []
    sizes = [dimension.size for dimension in dimensions]
    strides = row_major_strides(sizes)
    total = prod(sizes)
    found: list[Coordinate] = []
    for dimension, name, size, stride in zip(dimensions, names, sizes, strides, strict=True):
        if not any(dimension.moves):
            continue
        is_first = size * stride == total
        found.append(Coordinate(name, whole, stride, 0 if is_first else size))
    return found


# Page accesses of cores, and caching of pages.


@dataclass(frozen=True)
class AccessPattern:
    """Pages of a tensor in the order in which a program needs them.

    Each page is needed at least once. Dimensions are those of the nest, outermost first, with their
    page strides; none has size 1, and adjacent dimensions with contiguous or equal pages are
    merged."""

    dimensions: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, sizes: Sequence[int], moves: Sequence[int]) -> AccessPattern:
        """Builds the pattern of a nest over a grid."""
        merged: list[tuple[int, int]] = []
        for size, move in zip(sizes, moves, strict=True):
            if size == 1:
                continue
            if merged and merged[-1][1] == move * size:
                merged[-1] = (merged[-1][0] * size, move)
            else:
                merged.append((size, move))
        return cls(tuple(merged))

    @property
    def count(self) -> int:
        """Number of page accesses."""
        return prod(size for size, _ in self.dimensions)

    @property
    def pages(self) -> int:
        """Number of distinct pages."""
        return prod(size for size, move in self.dimensions if move)

    def slots(self, most: int, cores: CoreRange, units: int) -> int:
        """Number of pages, up to `most`, that a core should cache: the fewest with minimal reads.

        0 if caching spares less than half of the reads."""
        numbers = {1} if self.dimensions and self.dimensions[-1][1] == 0 else set[int]()
        choices = [n for n in sorted(numbers | {self.pages}) if n <= most]
        found = min(choices, key=lambda n: self.reads(n, cores, units), default=0)
        return found if 2 * self.reads(found, cores, units) <= self.count else 0

    def reads(self, slots: int, cores: CoreRange, units: int) -> int:
        """Number of page reads of all cores.

        Args:
            slots: number of pages that each core caches: none, all, or one if it is needed several
                times in a row.
            cores: the cores that share the nest.
            units: number of work units that the nest is divided into.
        """
        if slots == 0:
            return self.count
        length = self.count // units
        if slots == self.pages:
            return _distinct_pages(self.dimensions, length, units, cores.cores)
        shares = ((f * length, e * length) for f, e in _shares(units, cores.cores))
        repeated = self.dimensions[-1][0]
        return sum((end - 1) // repeated - first // repeated + 1 for first, end in shares)


def _shares(units: int, cores: int) -> Iterator[tuple[int, int]]:
    """Yields the first unit of each core that has some, and the one after its last."""
    first = 0
    for core in range(min(units, cores)):
        end = first + units // cores + (core < units % cores)
        yield first, end
        first = end


@cache
def _distinct_pages(
    dimensions: tuple[tuple[int, int], ...], length: int, units: int, cores: int
) -> int:
    """Distinct pages of each core's share, summed over all cores.

    A unit is `length` steps of the nest."""
    shares = ((first * length, end * length) for first, end in _shares(units, cores))
    return sum(len(_distinct(dimensions, first, end)) for first, end in shares)


def _distinct(dimensions: Sequence[tuple[int, int]], first: int, end: int) -> frozenset[int]:
    """Distinct pages of a range of steps of a nest."""
    if first >= end:
        return frozenset()
    if not dimensions:
        return frozenset([0])
    (_, move), *inner = dimensions
    length = prod(size for size, _ in inner)
    low, high = first // length, (end - 1) // length
    found: set[int] = set()
    for index in range(low, high + 1):
        begin, stop = max(first - index * length, 0), min(end - index * length, length)
        found |= {index * move + page for page in _distinct(inner, begin, stop)}
        if move == 0 and (begin, stop) == (0, length):
            # All inner pages are covered already.
            break
    return frozenset(found)


# Broadcast of operand tiles over a domain.


def broadcast_strides(operand: TiledShape, domain: TiledShape) -> list[int]:
    """Page stride of the operand in each dimension of the domain's tile grid; 0 for broadcasts."""
    missing = len(domain.grid) - len(operand.grid)
    found = [0] * missing + row_major_strides(operand.grid)
    sizes = [1] * (len(domain.grid) - len(operand.shape)) + list(operand.shape)
    # Tensors of rank 0 or 1 have a grid of two dimensions, too.
    sizes = (
        sizes[-len(domain.grid) :]
        if len(operand.shape) > 1
        else [*([1] * (len(domain.grid) - 1)), operand.width]
    )
    return [0 if size == 1 else stride for size, stride in zip(sizes, found, strict=True)]


@dataclass(frozen=True)
class Broadcast:
    """Broadcast of a tile whose operand has one row, one column or both."""

    rows: bool
    """True if the first row is broadcast."""
    columns: bool
    """True if the first column is broadcast."""

    @property
    def word(self) -> str:
        """One of none, row, column, element."""
        if self.rows:
            return "element" if self.columns else "row"
        return "column" if self.columns else "none"


def broadcast_of(operand: TiledShape, domain: TiledShape) -> Broadcast:
    """Broadcast of an operand's tiles over a domain."""
    return Broadcast(
        operand.height == 1 and domain.height > 1, operand.width == 1 and domain.width > 1
    )
