"""Data movement of collectives: scatter and gather of shards along a mesh axis."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ttcodegen.dialects.operations.operation import CatalogueOp


@dataclass(frozen=True)
class ChipMovement:
    """A tensor that chips along an axis divide, put together, or both: the dimensions."""

    axis: int
    divided: int | None = None
    joined: int | None = None
    pairs: tuple[tuple[int, int], ...] | None = None
    """Chips that send all they have, each with one that receives it; others receive zeros. None if
    each gives to all along the axis."""


ChipMovementRule = Callable[[CatalogueOp], ChipMovement | None]
"""Movement of an op along one mesh axis; None for a form that also computes."""
