"""How the tiles of a result are split among the cores: by the order in which these go through them.

Each core gets a run of tiles in that order. Row by row, a run is a part of a few rows. In other
orders it is a block: of rows and columns, or of the same tiles of several batches. Cores then read
fewer tiles of operands that are broadcast over one of the block's sides.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

from ttcodegen.naming.programs import dimension_names

MOST_ORDERED = 4
"""Dimensions for which every order is tried that has some of them innermost."""
STRIPES = (2, 4, 8, 16)
"""How wide the stripes are that are tried: in each of them a core goes through row by row."""


@dataclass(frozen=True)
class OrderedDimension:
    """A dimension of a grid of tiles, or a part of one."""

    name: str
    dimension: int
    size: int
    step: int = 1
    """Tiles of the grid's dimension that one step goes on."""


@dataclass(frozen=True)
class WorkOrder:
    """All tiles of a grid, the last of its dimensions here varying fastest."""

    grid: tuple[int, ...]
    dimensions: tuple[OrderedDimension, ...]

    @classmethod
    def row_by_row(cls, grid: Sequence[int]) -> WorkOrder:
        """The order in which the tiles are stored.

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
        """What the dimensions are called."""
        return [each.name for each in self.dimensions]

    @property
    def sizes(self) -> list[int]:
        """The steps in each dimension."""
        return [each.size for each in self.dimensions]

    @property
    def is_row_by_row(self) -> bool:
        """True if a tile's number in this order is its page number."""
        used = [each for each in self.dimensions if each.size > 1]
        in_order = all(a.dimension < b.dimension for a, b in pairwise(used))
        return in_order and all(each.step == 1 for each in used)

    @property
    def text(self) -> str:
        """The names of the dimensions with more than one tile, from the innermost on."""
        used = [each.name for each in reversed(self.dimensions) if each.size > 1]
        return ", then ".join(used)

    def moves(self, strides: Sequence[int]) -> list[int]:
        """How far a page moves with each dimension, from what it moves with those of the grid."""
        return [strides[each.dimension] * each.step for each in self.dimensions]

    def others(self) -> Iterator[WorkOrder]:
        """Other orders of a grid that is gone through row by row: with some dimensions innermost,
        and each of these in stripes."""
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
        """The same with stripes of the last dimension, so that a run of tiles is as long in the
        last but one as it is in these."""
        if len(self.dimensions) < 2:
            return
        *outer, before, last = self.dimensions
        for width in (width for width in STRIPES if width < last.size and last.size % width == 0):
            count = last.size // width
            stripe = OrderedDimension(f"{last.name}_stripe", last.dimension, count, width)
            inside = OrderedDimension(f"{last.name}_in_stripe", last.dimension, width)
            yield WorkOrder(self.grid, (*outer, stripe, before, inside))
