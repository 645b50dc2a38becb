"""Reshapes and permutes of each other are one movement."""

from __future__ import annotations

import random
from math import prod

import numpy as np
import pytest

from tests.ttmetal.function_text import call, function, tensor
from tests.ttmetal.test_grouping import names, programs
from ttcodegen.conversions.ttir_to_ttmetal.grouping.index_maps import (
    Piece,
    reordering,
    tiles_and_rows_read,
)
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.foundation.diagnostics import Source
from ttcodegen.layout.placements import TiledShape
from ttcodegen.parsing import parse_module

Steps = list[tuple[str, tuple[int, ...]]]
"""Permutes with their order, reshapes with their shape."""


def text_of(shape: tuple[int, ...], steps: Steps, element: str = "bf16") -> str:
    """A function of these movements."""
    ops: list[str] = []
    types = [tensor(shape, element)]
    for number, (kind, numbers) in enumerate(steps):
        listed = ", ".join(map(str, numbers))
        if kind == "permute":
            shape = tuple(shape[axis] for axis in numbers)
            words = {"permutation": f"array<i64: {listed}>"}
        else:
            shape = numbers
            words = {"shape": f"[{', '.join(f'{size} : i32' for size in numbers)}]"}
        name = f"%{number - 1}" if number else "%a0"
        types.append(tensor(shape, element))
        ops.append(call(kind, [name], [types[-2]], types[-1], **words))
    return function("f", types[:1], ops)


def random_steps(rng: random.Random) -> tuple[tuple[int, ...], Steps]:
    """A shape and movements of it."""
    first = shape = tuple(rng.choice([1, 2, 3, 4, 6]) for _ in range(rng.randint(1, 4)))
    steps: Steps = []
    for _ in range(rng.randint(1, 3)):
        if rng.random() < 0.5:
            order = tuple(rng.sample(range(len(shape)), len(shape)))
            steps.append(("permute", order))
            shape = tuple(shape[axis] for axis in order)
            continue
        sizes: list[int] = []
        left = prod(shape)
        while left > 1 and rng.random() < 0.8:
            sizes.append(rng.choice([n for n in range(1, left + 1) if left % n == 0]))
            left //= sizes[-1]
        shape = (*sizes, left)
        steps.append(("reshape", shape))
    return first, steps


def elements_of(piece: Piece) -> np.ndarray:
    """The numbers of the source's elements."""
    indices = np.indices(piece.high)
    found = np.full(piece.high, piece.base)
    for index, terms in zip(indices, piece.terms, strict=True):
        for term in terms:
            digit = index // term.divisor
            found += (digit % term.modulus if term.modulus else digit) * term.stride
    return found


def test_elements_come_from_where_numpy_takes_them() -> None:
    rng = random.Random(0)
    found = 0
    for _ in range(200):
        shape, steps = random_steps(rng)
        expected = np.arange(prod(shape)).reshape(shape)
        for kind, numbers in steps:
            expected = (
                expected.transpose(numbers) if kind == "permute" else expected.reshape(numbers)
            )
        module = parse_module(Source("in.mlir", f"module {{\n{text_of(shape, steps)}}}\n"))
        pieces = reordering([op for op in module.walk() if isinstance(op, CatalogueOp)])
        if pieces is not None:
            found += 1
            assert (elements_of(pieces[0]) == expected).all(), (shape, steps)
    assert found > 150


@pytest.mark.parametrize(
    ("shape", "steps"),
    [
        ((64, 256), [("reshape", (1, 64, 4, 64)), ("permute", (0, 2, 1, 3))]),
        ((1, 4, 64, 64), [("permute", (0, 2, 1, 3)), ("reshape", (64, 256))]),
    ],
)
def test_heads_are_divided_and_put_together_tile_by_tile(
    shape: tuple[int, ...], steps: Steps
) -> None:
    [program] = programs(text_of(shape, steps))
    assert program.purpose == ", ".join(kind for kind, _ in steps)
    assert program.costs.dram_read_bytes == program.costs.least_dram_read_bytes == 32 * 1024


def test_what_others_read_is_a_program_of_its_own() -> None:
    x, y, z = (tensor(shape, "bf16") for shape in ((64, 96), (64, 2, 48), (2, 64, 48)))
    ops = [
        call("reshape", ["%a0"], [x], y, shape="[64 : i32, 2 : i32, 48 : i32]"),
        call("permute", ["%0"], [y], z, permutation="array<i64: 1, 0, 2>"),
    ]
    assert names(function("f", [x], ops, f"%0, %1 : {y}, {z}")) == ["reshape", "permute"]


def test_tiles_of_a_transposed_matrix_are_read_once() -> None:
    shape = TiledShape((320, 640))
    order = np.arange(320 * 640).reshape(320, 640)
    assert order.T[1, 2] == 2 * 640 + 1
    [program] = programs(text_of((320, 640), [("permute", (1, 0))]))
    assert program.costs.dram_read_bytes == shape.tiles * 2048


def test_rows_that_move_apart_take_their_tiles_each() -> None:
    """32 matrices of one row each, whose rows come together in one tile; no more of their tiles is
    read."""
    steps: Steps = [("reshape", (32, 64))]
    [program] = programs(text_of((32, 1, 64), steps))
    assert program.costs.dram_read_bytes == 2 * 32 * 64


def test_samples_stand_for_large_tensors() -> None:
    module = parse_module(
        Source("in.mlir", f"module {{\n{text_of((4096, 4096), [('permute', (1, 0))])}}}\n")
    )
    pieces = reordering([op for op in module.walk() if isinstance(op, CatalogueOp)])
    assert pieces is not None
    shape, tiles = TiledShape((4096, 4096)), 128 * 128
    assert tiles_and_rows_read(pieces, [shape], shape) == [(tiles, 32 * tiles)]
