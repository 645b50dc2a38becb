"""The model of cost against kernel times that were measured on cards."""

from __future__ import annotations

import statistics
from collections import defaultdict
from functools import cache

import pytest

from tests.cost.measured import Measured, estimate, measured

KNOWN = ("product, 1D", "product, 2D", "product, DRAM-sharded")
"""The kinds whose estimates are near the cards; docs/optimizer.md has the figures of all."""


@cache
def ratios() -> list[tuple[Measured, float]]:
    """Card / model of every call of the table."""
    return [(row, row.nanoseconds / estimate(row)) for row in measured()]


@pytest.mark.parametrize("kind", KNOWN)
def test_estimates_of_a_kind_are_near_the_cards(kind: str) -> None:
    found = [ratio for row, ratio in ratios() if row.kind == kind]
    assert len(found) > 100
    assert 0.9 <= statistics.median(found) <= 1.1
    assert sum(1 / 1.5 <= ratio <= 1.5 for ratio in found) / len(found) >= 0.9


def test_estimates_of_all_calls_are_right_in_the_median() -> None:
    found = [ratio for _, ratio in ratios()]
    assert len(found) > 2000
    assert 0.9 <= statistics.median(found) <= 1.1


def test_the_fastest_configuration_is_picked() -> None:
    """Of calls of the same shapes, the fastest by the model is so on the card, or within 10 %."""
    families: defaultdict[str, list[Measured]] = defaultdict(list)
    for row, _ in ratios():
        families[row.family].append(row)
    picked: list[bool] = []
    for rows in families.values():
        if len({row.key for row in rows}) > 1:
            best = min(row.nanoseconds for row in rows)
            picked.append(min(rows, key=estimate).nanoseconds <= 1.1 * best)
    assert len(picked) > 150
    assert sum(picked) / len(picked) >= 0.85
