"""Registers that tiles get, tried out by running the steps on numbers."""

from __future__ import annotations

import operator

from hypothesis import given, settings
from hypothesis import strategies as st

from ttcodegen.conversions.ttir_to_ttmetal.grouping.tile_operations import (
    Compute,
    Copy,
    Load,
    allocate,
    capacity,
    needed_calls,
)
from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.ops.core.lowering import Tile, TileBuilder

MEANINGS = {
    "add_binary_tile": operator.add,
    "sub_binary_tile": operator.sub,
    "negative_tile": operator.neg,
    "square_tile": lambda x: x * x % 1009,
}


@st.composite
def chains(draw: st.DrawFn) -> tuple[TileBuilder, list[Tile], list[Tile]]:
    """A builder with calls, the tiles that come from outside, and the results."""
    builder = TileBuilder()
    inputs = [builder.new_tile(DataType.FLOAT32) for _ in range(draw(st.integers(1, 4)))]
    tiles = list(inputs)
    for _ in range(draw(st.integers(1, 10))):
        name = draw(st.sampled_from(sorted(MEANINGS)))
        reads = [draw(st.sampled_from(tiles)) for _ in range(2 if "binary" in name else 1)]
        tiles.append(builder.call(name, *reads))
    results = draw(st.lists(st.sampled_from(tiles), min_size=1, max_size=2, unique=True))
    return builder, inputs, results


def _expected(builder: TileBuilder, inputs: list[Tile]) -> dict[Tile, int]:
    values = {tile: 3 * number + 5 for number, tile in enumerate(inputs)}
    for call in builder.calls:
        values[call.result] = MEANINGS[call.op](*(values[tile] for tile in call.reads))
    return values


@settings(deadline=None)
@given(chains(), st.sampled_from([2, 3, 4, 8]), st.booleans())
def test_steps_compute_what_the_calls_say(
    chain: tuple[TileBuilder, list[Tile], list[Tile]], registers: int, holds_first: bool
) -> None:
    builder, inputs, results = chain
    held = {inputs[0]: 0} if holds_first else {}
    found = allocate(builder.calls, results, registers, held)
    if found is None:
        assert registers < 8 or len(needed_calls(builder.calls, results)) > 4
        return
    values = _expected(builder, inputs)
    file: dict[int, int] = {place: values[tile] for tile, place in held.items()}
    for step in found.steps:
        match step:
            case Load(tile, register):
                file[register] = values[tile]
            case Copy(_, source, register):
                file[register] = file[source]
            case Compute(call, places):
                arguments = [file[p] for p in places[: len(call.reads)]]
                file[places[-1 if len(call.reads) == 2 else 0]] = MEANINGS[call.op](*arguments)
        assert all(0 <= register < registers for register in file)
    assert {tile: file[place] for tile, place in found.results.items()} == {
        tile: values[tile] for tile in results
    }


def test_registers_of_32_bits_are_half_as_many() -> None:
    assert (capacity(False), capacity(True)) == (8, 4)
