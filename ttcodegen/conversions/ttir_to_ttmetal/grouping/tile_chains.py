"""Chains of elementwise ops as operations on tiles."""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.ir import Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttnn.placement import declared_data_type
from ttcodegen.ops.core.constant_values import splat_of
from ttcodegen.ops.core.definition import TTIRDefinition
from ttcodegen.ops.core.tile_lowering import NARROW_INTEGERS, Tile, TileBuilder


def is_elementwise(op: Operation) -> bool:
    """True if the op works on tiles in registers."""
    if not isinstance(op, CatalogueOp):
        return False
    definition = op.definition
    return isinstance(definition, TTIRDefinition) and definition.tile is not None


def unsupported_on_tiles(op: CatalogueOp) -> str | None:
    """Why an elementwise op cannot be done on tiles, None if it can."""
    builder = TileBuilder()
    tiles = [builder.new_tile(declared_data_type(value)) for value in op.operands]
    try:
        lower_to_tiles(builder, op, tiles)
    except VerifyException as error:
        return str(error)
    return None


def lower_to_tiles(builder: TileBuilder, op: CatalogueOp, tiles: list[Tile]) -> Tile:
    """The tile that an op gives, in the data type of its result.

    Raises VerifyException where tiles of these data types have no such operation.
    """
    definition = op.definition
    assert isinstance(definition, TTIRDefinition)
    assert definition.tile is not None
    tile = definition.tile(builder, op, tiles)
    wanted = declared_data_type(op.results[0])
    if tile.data_type.is_float and wanted.is_float:
        return tile
    if wanted in NARROW_INTEGERS and not definition.moves and not tile.data_type.is_float:
        return builder.wrap(tile, wanted)
    return builder.convert(tile, wanted)


def needs_fp32(values: Iterable[SSAValue]) -> bool:
    """True if some value is wider than 16 bits, so that registers of 32 bits are called for."""
    return any(declared_data_type(value) is not DataType.BFLOAT16 for value in values)


def lower_chain(
    builder: TileBuilder,
    ops: Iterable[CatalogueOp],
    known: dict[SSAValue, Tile],
    inputs: dict[SSAValue, Tile],
) -> None:
    """Lowers elementwise ops and fills in order.

    `known` holds the tiles of values that ops of the group gave, and gets those of these ops;
    `inputs` gets the tiles of values that come from outside.
    """
    for op in ops:
        if (number := splat_of(op.results[0])) is not None:
            known[op.results[0]] = builder.fill(number, declared_data_type(op.results[0]))
            continue
        tiles: list[Tile] = []
        for value in op.operands:
            if value in known:
                tiles.append(known[value])
            elif (number := splat_of(value)) is not None:
                tiles.append(builder.fill(number, declared_data_type(value)))
            else:
                if value not in inputs:
                    inputs[value] = builder.new_tile(declared_data_type(value))
                tiles.append(inputs[value])
        known[op.results[0]] = lower_to_tiles(builder, op, tiles)
