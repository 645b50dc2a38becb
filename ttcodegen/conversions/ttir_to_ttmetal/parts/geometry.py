"""Where the tiles of a tensor are, and which of them another tensor's tile needs."""

from __future__ import annotations

from dataclasses import dataclass

from ttcodegen.layout.tiled_shape import TiledShape, row_major_strides


def broadcast_strides(operand: TiledShape, domain: TiledShape) -> list[int]:
    """For each dimension of the domain's tile grid how far the operand's tile moves with it; 0
    where the operand has one element that is broadcast."""
    missing = len(domain.grid) - len(operand.grid)
    found = [0] * missing + row_major_strides(operand.grid)
    sizes = [1] * (len(domain.grid) - len(operand.shape)) + list(operand.shape)
    # A tensor of rank 0 or 1 has a grid of two dimensions all the same.
    sizes = (
        sizes[-len(domain.grid) :]
        if len(operand.shape) > 1
        else [*([1] * (len(domain.grid) - 1)), operand.width]
    )
    return [0 if size == 1 else stride for size, stride in zip(sizes, found, strict=True)]


@dataclass(frozen=True)
class Broadcast:
    """Which part of a tile is repeated because the operand has one row, one column or both."""

    rows: bool
    """The first row is broadcast."""
    columns: bool
    """The first column is broadcast."""

    @property
    def word(self) -> str:
        """none, row, column or element."""
        if self.rows:
            return "element" if self.columns else "row"
        return "column" if self.columns else "none"


def broadcast_of(operand: TiledShape, domain: TiledShape) -> Broadcast:
    """How the tiles of an operand have to be filled up for a domain it is broadcast over."""
    return Broadcast(
        operand.height == 1 and domain.height > 1, operand.width == 1 and domain.width > 1
    )
