"""The reductions that device kernels are made for."""

from __future__ import annotations

from dataclasses import dataclass

from ttcodegen.dialects.ttkernel.attributes import ReduceType


@dataclass(frozen=True)
class Reduction:
    """What an op of the catalogue sums up or compares, and along what."""

    combine: str
    """The op on two registers that the partial results come together by."""
    neutral: float
    pool: ReduceType
    negated: bool = False
    """The least of numbers is the greatest of their negatives."""


REDUCTIONS = {
    "ttir.sum": Reduction("add_binary_tile", 0.0, ReduceType.SUM),
    "ttir.mean": Reduction("add_binary_tile", 0.0, ReduceType.SUM),
    "ttir.max": Reduction("binary_max_tile", float("-inf"), ReduceType.MAX),
    # Over leading dimensions only, so that no elements of a tile come together.
    "ttir.prod": Reduction("mul_binary_tile", 1.0, ReduceType.SUM),
    "ttir.min": Reduction("binary_max_tile", float("-inf"), ReduceType.MAX, negated=True),
}
