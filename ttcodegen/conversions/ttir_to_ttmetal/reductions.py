"""The reductions that device kernels are made for."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from ttcodegen.dialects.datatypes import DataType, shape_of
from ttcodegen.dialects.operation import CatalogueOp
from ttcodegen.dialects.ttkernel.attributes import ReduceType
from ttcodegen.ops.tile_lowering import Tile, TileBuilder


@dataclass(frozen=True)
class Reduction:
    """What an op of the catalogue sums up or compares, and along what."""

    combine: str
    """The op on two registers that the partial results come together by."""
    neutral: float
    pool: ReduceType
    negated: bool = False
    """The minimum of numbers is the negated maximum of their negatives."""
    averages: bool = False

    def prepared(self, builder: TileBuilder, tile: Tile) -> Tile:
        """What comes together of a tile."""
        return builder.call("negative_tile", tile) if self.negated else tile

    def finished(self, builder: TileBuilder, total: Tile, elements: int) -> Tile:
        """The result of what came together of so many elements."""
        if self.negated:
            total = builder.call("negative_tile", total)
        if self.averages:
            total = builder.call("mul_unary_tile", total, parameters=(1.0 / elements,))
        return total


def where_shown(builder: TileBuilder, shown: Tile, tile: Tile, hidden: float) -> Tile:
    """The tile where `shown` is not 0, and a number in place of its other elements."""
    other = builder.fill(hidden, DataType.FLOAT32)
    wide = DataType.FLOAT32
    return builder.call("where_tile", shown, tile, other, data_type=wide, dtype=wide)


def reduced_elements(op: CatalogueOp) -> int:
    """How many elements come together in one of the result."""
    return prod(shape_of(op.operands[0].type)) // max(1, prod(op.result_shape))


REDUCTIONS = {
    "ttir.sum": Reduction("add_binary_tile", 0.0, ReduceType.SUM),
    "ttir.mean": Reduction("add_binary_tile", 0.0, ReduceType.SUM, averages=True),
    "ttir.max": Reduction("binary_max_tile", float("-inf"), ReduceType.MAX),
    # Over leading dimensions only, so that no elements of a tile come together.
    "ttir.prod": Reduction("mul_binary_tile", 1.0, ReduceType.SUM),
    "ttir.min": Reduction("binary_max_tile", float("-inf"), ReduceType.MAX, negated=True),
}
