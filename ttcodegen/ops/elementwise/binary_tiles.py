"""Tile lowerings of elementwise ops of two tensors."""

from __future__ import annotations

from collections.abc import Sequence

from ttcodegen.dialects.core.datatypes import (
    DataType,
)
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.ops.core.lowering import (
    Tile,
    TileBuilder,
    TileLowering,
    is_all,
    no_operation,
    widened,
)
from ttcodegen.ops.core.lowering import in_floats as in_float_tiles


def comparison_tiles(name: str) -> TileLowering:
    """0 or 1. Integers are equal if their difference is 0, and the greater one of two is one of
    them; the header of `lt_int_tile` and its like compiles after some others only."""

    def lower(builder: TileBuilder, op: CatalogueOp, tiles: Sequence[Tile]) -> Tile:
        tiles = widened(builder, tiles)
        if any(tile.data_type.is_float for tile in tiles):
            return builder.call(f"{name}_binary_tile", *in_float_tiles(builder, tiles))
        first, second = tiles
        data_type = first.data_type
        if name in ("ge", "lt", "le", "gt"):
            kind = "int32" if data_type is DataType.INT32 else "uint32"
            greater = builder.call(f"binary_max_{kind}_tile", first, second)
            first, second = greater, first if name in ("ge", "lt") else second
        difference = builder.call("sub_int_tile", first, second, dtype=data_type)
        equal = name in ("eq", "ge", "le")
        return builder.call("eqz_tile_int32" if equal else "nez_tile_int32", difference)

    return lower


def logical_tiles(name: str) -> TileLowering:
    """The op `name` on operands that were made 0 or 1 first."""

    def lower(builder: TileBuilder, op: CatalogueOp, tiles: Sequence[Tile]) -> Tile:
        floats = in_float_tiles(builder, tiles)
        return builder.call(name, *(builder.call("nez_tile", tile) for tile in floats))

    return lower


def quotient_tiles(builder: TileBuilder, op: CatalogueOp, tiles: Sequence[Tile]) -> Tile:
    """Division by a number is a product: `div_unary_tile` is given the reciprocal as well."""
    if not any(tile.data_type.is_float for tile in tiles):
        if not is_all(tiles, DataType.INT32):
            # Those of less bits divide by zero in another way than signed ones.
            raise no_operation(op, tiles[0].data_type)
        return builder.call("div_int32_trunc_tile", *tiles)
    tiles = in_float_tiles(builder, tiles)
    number = builder.value_of(tiles[1])
    if number:
        return builder.call("mul_unary_tile", tiles[0], parameters=(1.0 / number,))
    return builder.call("div_binary_tile", *tiles)


def typed_tiles(name: str) -> TileLowering:
    """The op `name` on integers of 32 bits."""

    def lower(builder: TileBuilder, op: CatalogueOp, tiles: Sequence[Tile]) -> Tile:
        tiles = widened(builder, tiles)
        for tile in tiles:
            if tile.data_type not in (DataType.INT32, DataType.UINT32):
                raise no_operation(op, tile.data_type)
        return builder.call(name, *tiles, dtype=tiles[0].data_type)

    return lower


def shift_right_tiles(builder: TileBuilder, op: CatalogueOp, tiles: Sequence[Tile]) -> Tile:
    """The vector engine fills in the first bit, which is no sign of unsigned integers."""
    is_signed = widened(builder, tiles)[0].data_type is DataType.INT32
    name = "binary_right_shift_tile" if is_signed else "binary_logical_right_shift_tile"
    return typed_tiles(name)(builder, op, tiles)
