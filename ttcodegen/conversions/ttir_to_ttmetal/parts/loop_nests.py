"""The page that a kernel needs for each tile that it works on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from xdsl.ir import SSAValue

from ttcodegen.conversions.ttir_to_ttmetal.parts.work_split import WorkOrder
from ttcodegen.dialects.ttkernel.builder import KernelBuilder, Value
from ttcodegen.layout.tiled_shape import row_major_strides
from ttcodegen.naming.programs import dimension_names

Page = tuple[tuple[str, int], ...]
"""The number of a page: a sum of coordinates, by name, times numbers."""


@dataclass(frozen=True)
class Coordinate:
    """A part of a counter: `counter / divisor % modulus`."""

    name: str
    counter: str
    divisor: int = 1
    modulus: int = 0
    """0 for none."""

    def value(self, builder: KernelBuilder, counters: Mapping[str, SSAValue]) -> SSAValue:
        """The coordinate, computed from its counter."""
        value = counters[self.counter]
        if self.divisor != 1:
            value = builder.quotient(value, self.divisor)
        return builder.remainder(value, self.modulus) if self.modulus else value


@dataclass(frozen=True)
class _Dimension:
    name: str
    size: int
    moves: tuple[int, ...]
    """How far the page of each operand moves with it."""


@dataclass(frozen=True)
class LoopNest:
    """A loop over the tiles of a result (`tile`) and one over the tiles that each of them is made
    of (`step`), with the pages of operands in it."""

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
        """The nest over a grid of tiles.

        Args:
            grid: the tiles of the result in each dimension, from the outermost on.
            steps: how many tiles come together in one tile of the result, in each dimension of its
                shape.
            strides: for each operand, how far its page moves with a tile of the result, in each
                dimension of the grid, and with a step, in each dimension of the shape.
            tile: what the number of the result's tile is called.
            names: what the dimensions of the grid are called, if they are not those of a tensor.
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
    """Coordinates computed from the counters that are known, and these."""
    found = dict(known)
    for coordinate in coordinates:
        value = coordinate.value(builder, found)
        value.name_hint = coordinate.name
        found[coordinate.name] = value
    return found


def sum_of(builder: KernelBuilder, terms: Iterable[Value]) -> Value:
    """The sum of values that are not written where they are 0."""
    total: Value = 0
    for term in terms:
        if isinstance(term, int) and term == 0:
            continue
        is_none = isinstance(total, int) and total == 0
        total = term if is_none else builder.sum(total, term)
    return total


def page_number(builder: KernelBuilder, page: Page, known: Mapping[str, SSAValue]) -> Value:
    """The number of a page, from coordinates."""
    return sum_of(
        builder,
        (builder.product(known[name], step) if step != 1 else known[name] for name, step in page),
    )


def page_of_tile(builder: KernelBuilder, order: WorkOrder, tile: SSAValue) -> Value:
    """The page of the tile that has that number in an order."""
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
    """The same nest over fewer dimensions: neighbours are one if all operands go through them in a
    row; those of size 1 are none."""
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
    """What the dimensions are called; the only one is the loop's variable itself."""
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
