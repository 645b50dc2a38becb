"""How kernels find the greatest element of tiles: exactly, and NaN if there is one.

The matrix engine would cut 32 bits to 19, so that the maximum of a tensor might be none of its
elements. The vector engine compares floats by sign and magnitude: the maximum has the NaNs without
a sign, the minimum those with one. Both are kept, in the first two registers.
"""

from __future__ import annotations

from collections.abc import Sequence

from ttcodegen.conversions.ttir_to_ttmetal.grouping.reductions import GREATEST, LEAST
from ttcodegen.conversions.ttir_to_ttmetal.grouping.registers import allocate, capacity
from ttcodegen.conversions.ttir_to_ttmetal.parts.compute import ComputeKernel
from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.dialects.ttkernel.attributes import ReduceDim, ReduceType
from ttcodegen.ops.core.tile_lowering import Tile, TileBuilder, where_nan

_WIDE = DataType.FLOAT32


def start_extremes(kernel: ComputeKernel) -> None:
    """Fills the registers of the extremes with what every number changes."""
    builder = TileBuilder()
    for register, number in ((GREATEST, float("-inf")), (LEAST, float("inf"))):
        builder.fill(number, _WIDE)
        kernel.call(builder.calls[-1], [register])


def take_extremes(kernel: ComputeKernel, register: int) -> None:
    """Compares the elements of a register with the extremes so far."""
    builder = TileBuilder()
    tile = builder.new_tile(_WIDE)
    for extreme, name in ((GREATEST, "binary_max_tile"), (LEAST, "binary_min_tile")):
        builder.call(name, tile, tile)
        kernel.call(builder.calls[-1], [extreme, register, extreme])


def finish_maximum(kernel: ComputeKernel, within: Sequence[ReduceDim]) -> int:
    """The register of the maximum: of each element of the tiles, or of each row, column or tile.

    Args:
        within: the directions in which the elements of a tile come together.
    """
    builder = TileBuilder()
    greatest, least = builder.new_tile(_WIDE), builder.new_tile(_WIDE)
    # Without a sign a NaN is the greatest in the next comparisons.
    result = where_nan(builder, builder.call("negative_tile", least), greatest)
    result = reduced_maximum(builder, result, within)
    held = {greatest: GREATEST, least: LEAST}
    allocation = allocate(builder.calls, [result], capacity(True), held)
    assert allocation is not None
    kernel.run(allocation, {})
    return allocation.results[result]


def reduced_maximum(builder: TileBuilder, tile: Tile, within: Sequence[ReduceDim]) -> Tile:
    """The maximum of each row, column or all of a tile."""
    for dimension in within:
        tile = builder.call(
            "sfpu_reduce",
            tile,
            reduce_type=ReduceType.MAX,
            reduce_dim=dimension,
            data_format=_WIDE,
        )
    return tile
