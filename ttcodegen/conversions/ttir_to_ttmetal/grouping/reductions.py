"""The reductions that device kernels are made for."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from ttcodegen.dialects.core.datatypes import DataType, shape_of
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttkernel.attributes import ReduceType
from ttcodegen.dialects.ttnn.placement import declared_data_type
from ttcodegen.ops.core.tile_lowering import Tile, TileBuilder
from ttcodegen.ops.reduction.reduce import is_on_integer_tiles

GREATEST, LEAST = 0, 1
"""The registers of the extremes so far: of the first one alone if nothing is compared."""


@dataclass(frozen=True)
class Reduction:
    """What an op of the catalogue sums up or compares, and along what."""

    noun: str
    """What it leaves, in a sentence."""
    combine: str
    """The op on two registers that the partial results come together by."""
    neutral: float
    pool: ReduceType
    negated: bool = False
    """The minimum of numbers is the negated maximum of their negatives."""
    averages: bool = False
    of_integers: str = ""
    """The op on two registers of integers, which takes their type, or is named after it."""
    neutral_integers: tuple[int, int] = (0, 0)
    """Signed, and without a sign."""

    @property
    def is_extreme(self) -> bool:
        """True if floats are compared, which the vector engine does exactly."""
        return self.pool is ReduceType.MAX

    def prepared(self, builder: TileBuilder, tile: Tile) -> Tile:
        """What comes together of a tile."""
        is_negated = self.negated and tile.data_type.is_float
        return builder.call("negative_tile", tile) if is_negated else tile

    def start(self, builder: TileBuilder, data_type: DataType) -> Tile:
        """What changes nothing."""
        if data_type.is_float:
            return builder.fill(self.neutral, DataType.FLOAT32)
        signed, unsigned = self.neutral_integers
        return builder.fill(signed if data_type is DataType.INT32 else unsigned, data_type)

    def combined(self, builder: TileBuilder, first: Tile, second: Tile) -> Tile:
        """What two tiles come to."""
        if first.data_type.is_float:
            return builder.call(self.combine, first, second)
        if self.of_integers.endswith("_tile"):
            return builder.call(self.of_integers, first, second, dtype=first.data_type)
        kind = "int32" if first.data_type is DataType.INT32 else "uint32"
        return builder.call(f"{self.of_integers}_{kind}_tile", first, second)

    def finished(self, builder: TileBuilder, total: Tile, elements: int) -> Tile:
        """The result of what came together of so many elements."""
        if self.negated and total.data_type.is_float:
            total = builder.call("negative_tile", total)
        if self.averages:
            total = builder.call("mul_unary_tile", total, parameters=(1.0 / elements,))
        return total


def where_shown(builder: TileBuilder, shown: Tile, tile: Tile, hidden: float) -> Tile:
    """The tile where `shown` is not 0, and a number in place of its other elements."""
    other = builder.fill(hidden, DataType.FLOAT32)
    wide = DataType.FLOAT32
    return builder.call("where_tile", shown, tile, other, data_type=wide, dtype=wide)


def accumulated_type(op: CatalogueOp) -> DataType:
    """What comes together in, of an op around which a program is built."""
    return declared_data_type(op.operands[0]) if is_on_integer_tiles(op) else DataType.FLOAT32


def reduced_elements(op: CatalogueOp) -> int:
    """How many elements come together in one of the result."""
    return prod(shape_of(op.operands[0].type)) // max(1, prod(op.result_shape))


_LEAST, _GREATEST = (-(2**31), 0), (2**31 - 1, 2**32 - 1)

REDUCTIONS = {
    "ttir.sum": Reduction(
        "sum", "add_binary_tile", 0.0, ReduceType.SUM, of_integers="add_int_tile"
    ),
    "ttir.mean": Reduction("mean", "add_binary_tile", 0.0, ReduceType.SUM, averages=True),
    "ttir.max": Reduction(
        "maximum",
        "binary_max_tile",
        float("-inf"),
        ReduceType.MAX,
        of_integers="binary_max",
        neutral_integers=_LEAST,
    ),
    # Over leading dimensions only, so that no elements of a tile come together.
    "ttir.prod": Reduction(
        "product",
        "mul_binary_tile",
        1.0,
        ReduceType.SUM,
        of_integers="mul_int_tile",
        neutral_integers=(1, 1),
    ),
    "ttir.min": Reduction(
        "minimum",
        "binary_max_tile",
        float("-inf"),
        ReduceType.MAX,
        negated=True,
        of_integers="binary_min",
        neutral_integers=_GREATEST,
    ),
}
