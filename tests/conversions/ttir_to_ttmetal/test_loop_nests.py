"""Pages that kernels compute, against numpy's broadcasting."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ttcodegen.conversions.ttir_to_ttmetal.parts.loop_nests import (
    Broadcast,
    LoopNest,
    broadcast_of,
    broadcast_strides,
)
from ttcodegen.layout.placements import TiledShape

SHAPES = st.tuples(
    st.lists(st.integers(1, 3), max_size=2),
    st.lists(st.sampled_from([1, 2, 33, 70]), min_size=2, max_size=2),
).map(lambda parts: [*parts[0], *parts[1]])


def _page(nest: LoopNest, index: int, **numbers: int) -> int:
    """The page of an operand, computed as kernels do."""
    values = dict(numbers)
    for coordinate in [*nest.tile_coordinates, *nest.step_coordinates]:
        value = values[coordinate.counter] // coordinate.divisor
        values[coordinate.name] = value % coordinate.modulus if coordinate.modulus else value
    return sum(values[name] * step for name, step in nest.pages[index])


@settings(deadline=None, max_examples=60)
@given(SHAPES, st.data())
def test_pages_of_a_broadcast_operand(domain: list[int], data: st.DataObject) -> None:
    dropped = data.draw(st.integers(0, len(domain) - 1))
    operand = [size if data.draw(st.booleans()) else 1 for size in domain[dropped:]]
    whole, part = TiledShape(tuple(domain)), TiledShape(tuple(operand))
    strides = broadcast_strides(part, whole)
    nest = LoopNest.of(whole.grid, (1,) * len(whole.grid), [(strides, [0] * len(strides))])
    grid = part.grid if len(operand) > 1 else (1, part.columns)
    grid = (1,) * (len(whole.grid) - len(grid)) + tuple(grid)
    pages = np.broadcast_to(np.arange(prod(grid)).reshape(grid), whole.grid).reshape(-1)
    for tile in range(whole.tiles):
        assert _page(nest, 0, tile=tile, step=0) == pages[tile]


@settings(deadline=None, max_examples=60)
@given(SHAPES, st.data())
def test_steps_visit_each_tile_once(domain: list[int], data: st.DataObject) -> None:
    kept = [size if data.draw(st.booleans()) else 1 for size in domain]
    whole, result = TiledShape(tuple(domain)), TiledShape(tuple(kept))
    steps = [a // b for a, b in zip(whole.grid, result.grid, strict=True)]
    strides = broadcast_strides(whole, whole)
    moves = [stride * step for stride, step in zip(strides, steps, strict=True)]
    nest = LoopNest.of(result.grid, steps, [(moves, strides)])
    seen = [
        _page(nest, 0, tile=tile, step=step)
        for tile in range(result.tiles)
        for step in range(prod(steps))
    ]
    assert sorted(seen) == list(range(whole.tiles))


@pytest.mark.parametrize(
    ("operand", "domain", "expected"),
    [
        ((4, 4), (4, 4), "none"),
        ((4,), (4, 4), "row"),
        ((4, 1), (4, 4), "column"),
        ((1,), (4, 4), "element"),
        ((1, 1), (1, 4), "column"),
    ],
)
def test_what_part_of_a_tile_stands_for_the_rest(
    operand: tuple[int, ...], domain: tuple[int, ...], expected: str
) -> None:
    broadcast = broadcast_of(TiledShape(operand), TiledShape(domain))
    assert isinstance(broadcast, Broadcast)
    assert broadcast.word == expected
