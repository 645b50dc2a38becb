"""Counted reads of pages against a simulation of cores that cache some of them."""

from __future__ import annotations

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from ttcodegen.conversions.ttir_to_ttmetal.parts.loop_nests import AccessPattern
from ttcodegen.dialects.ttcore.shards import CoreRange


@st.composite
def walks(draw: st.DrawFn) -> tuple[list[int], list[int]]:
    """Sizes of dimensions, and how far the page moves with each: 0 where it is broadcast."""
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    moves: list[int] = []
    stride = 1
    for size in reversed(sizes):
        moving = draw(st.booleans())
        moves.append(stride if moving else 0)
        stride *= size if moving else 1
    return sizes, moves[::-1]


def pages_of(sizes: list[int], moves: list[int]) -> list[int]:
    """The page of each step of a nest."""
    places = product(*map(range, sizes))
    return [sum(i * move for i, move in zip(place, moves, strict=True)) for place in places]


def counted(pages: list[int], slots: int, cores: int) -> int:
    """The reads of all cores, each with its part of the nest and `slots` places for pages."""
    reads = first = 0
    for core in range(cores):
        end = first + len(pages) // cores + (core < len(pages) % cores)
        kept: dict[int, int] = {}
        for page in pages[first:end]:
            if slots == 0 or kept.get(page % slots) != page:
                reads += 1
            if slots:
                kept[page % slots] = page
        first = end
    return reads


@given(walks(), st.integers(1, 4), st.integers(1, 3))
def test_reads_are_counted(nest: tuple[list[int], list[int]], columns: int, rows: int) -> None:
    pages = pages_of(*nest)
    pattern = AccessPattern.of(*nest)
    cores = CoreRange(0, 0, columns - 1, rows - 1)
    assert (pattern.count, pattern.pages) == (len(pages), len(set(pages)))
    for most in (0, 1, 3, 1000):
        slots = pattern.slots(most, cores, len(pages))
        assert slots <= most
        assert pattern.reads(slots, cores, len(pages)) == counted(pages, slots, cores.cores)


def test_few_tiles_are_kept() -> None:
    one_core = CoreRange(0, 0, 0, 0)
    row, column, element = ((8, 0), (4, 1)), ((8, 1), (4, 0)), ((32, 0),)
    needed = [
        AccessPattern(dimensions).slots(16, one_core, 32) for dimensions in (row, column, element)
    ]
    assert needed == [4, 1, 1]
    assert AccessPattern(row).slots(3, one_core, 32) == 0


def test_nothing_is_kept_that_each_core_reads_once() -> None:
    row = AccessPattern(((8, 0), (4, 1)))
    assert row.slots(16, CoreRange(0, 0, 7, 0), 32) == 0
    assert AccessPattern(((32, 1),)).slots(64, CoreRange(0, 0, 0, 0), 32) == 0
