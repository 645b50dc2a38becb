"""What ops between chips only move: tensors that chips divide, or put together."""

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
"""What an op moves along one axis of the mesh; None for a form of it that does more."""
