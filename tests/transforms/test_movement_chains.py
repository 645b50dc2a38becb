"""Reshapes and permutes in a row."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import prod

import numpy as np
import pytest

from tests.transforms.programs import Program, transformed
from ttcodegen.dialects.core.datatypes import shape_of
from ttcodegen.transforms.ttir.canonicalize import TTIRCanonicalizePass

Step = tuple[str, Sequence[int]]


def shortened(shape: Sequence[int], steps: Sequence[Step]) -> list[str]:
    p = Program()
    value = p.argument(*shape)
    for name, numbers in steps:
        value = getattr(p.make, name)(value, list(numbers))
    return transformed(p.returns(value), TTIRCanonicalizePass(), tolerance=0.0).names


CASES: dict[str, tuple[Sequence[int], Sequence[Step], list[str]]] = {
    "heads as groups and back": (
        (2, 6, 12, 8),
        [("reshape", (2, 6, 3, 4, 8)), ("permute", (0, 2, 1, 3, 4)), ("reshape", (2, 3, 24, 8)),
         ("reshape", (2, 3, 6, 4, 8)), ("permute", (0, 1, 3, 2, 4)), ("reshape", (2, 12, 6, 8))],
        ["permute"],
    ),
    "there and back": (
        (4, 6), [("permute", (1, 0)), ("reshape", (3, 2, 4)), ("permute", (2, 0, 1))], ["reshape"],
    ),
    "dimensions of one element": (
        (1, 6, 4), [("reshape", (6, 4)), ("permute", (1, 0)), ("reshape", (1, 4, 6))], ["permute"],
    ),
    "pixels that are shuffled": (
        (2, 12, 3, 5),
        [("reshape", (2, 3, 2, 2, 3, 5)), ("permute", (0, 1, 4, 2, 5, 3)),
         ("reshape", (2, 3, 6, 10))],
        ["reshape", "permute", "reshape"],
    ),
    "a part of a dimension": (
        (6, 4), [("permute", (1, 0)), ("reshape", (8, 3)), ("permute", (1, 0))],
        ["permute", "reshape", "permute"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_chains(name: str) -> None:
    shape, steps, expected = CASES[name]
    assert shortened(shape, steps) == expected


@pytest.mark.parametrize("seed", range(40))
def test_any_chain_keeps_its_elements(seed: int) -> None:
    generator = np.random.default_rng(seed)
    factors = [2, 3, 2, 5, 1, 2]
    steps: list[Step] = []
    rank = 0
    shape: list[int] = []
    for count in range(int(generator.integers(3, 8))):
        if count % 2 and rank:
            steps.append(("permute", generator.permutation(rank).tolist()))
            continue
        cuts = sorted(generator.choice(np.arange(1, 6), int(generator.integers(1, 5)), False))
        bounds = [0, *(int(cut) for cut in cuts), 6]
        order = generator.permutation(6) if seed % 2 else np.arange(6)
        ordered = [factors[int(place)] for place in order]
        sizes = [prod(ordered[first:last]) for first, last in pairwise(bounds)]
        rank, shape = len(sizes), shape or sizes
        steps.append(("reshape", sizes))
    assert len(shortened(shape, steps)) <= len(steps)


def test_what_others_use_stays() -> None:
    p = Program()
    first = p.make.reshape(p.argument(4, 6), [4, 2, 3])
    second = p.make.permute(first, [1, 0, 2])
    third = p.make.reshape(second, [8, 3])
    result = transformed(p.returns(third, second), TTIRCanonicalizePass())
    assert result.names == ["reshape", "permute", "reshape"]
    assert shape_of(third.type) == (8, 3)
