"""Lowerings of ops to tile operations and to functions of the CPU."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from xdsl.dialects.builtin import Float32Type
from xdsl.ir import SSAValue
from xdsl.utils.exceptions import VerifyException

from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.ops.core.builder import number_as

# Lowering of elementwise ops to tile operations in the destination registers.
#
# The catalogue gives each such op a `TileLowering`. It asks a `TileBuilder` for ops of the
# `ttkernel` dialect by name; the builder counts registers as if there were any number of them,
# and who makes the kernel finds places for them.

Parameter = int | float | SSAValue
"""An operand that is no register; a float is passed as its bits where the op takes an integer."""


@dataclass(frozen=True)
class Tile:
    """A value of 32x32 elements in a destination register."""

    number: int
    data_type: DataType


@dataclass(frozen=True)
class TileCall:
    """A call of an op of the `ttkernel` dialect on destination registers."""

    op: str
    reads: tuple[Tile, ...]
    result: Tile
    parameters: tuple[Parameter, ...] = ()
    attributes: tuple[tuple[str, Any], ...] = ()
    seed: int | None = None
    """Of an op that draws random numbers: its generator starts anew in each tile, from this plus
    the number of the tile."""


@dataclass
class TileBuilder:
    """Collects the calls that an op, or a chain of ops, is made of."""

    calls: list[TileCall] = field(default_factory=list[TileCall])
    tiles: int = 0
    _filled: dict[Tile, float] = field(default_factory=dict[Tile, float])

    def new_tile(self, data_type: DataType) -> Tile:
        """A tile whose value is no result of the program."""
        self.tiles += 1
        return Tile(self.tiles - 1, data_type)

    def call(
        self,
        op: str,
        *reads: Tile,
        parameters: Sequence[Parameter] = (),
        data_type: DataType | None = None,
        seed: int | None = None,
        **attributes: Any,
    ) -> Tile:
        """The result of an op; `data_type` defaults to the data type of the first tile it reads."""
        result = self.new_tile(data_type if data_type is not None else reads[0].data_type)
        pairs = tuple(sorted(attributes.items()))
        self.calls.append(TileCall(op, reads, result, tuple(parameters), pairs, seed))
        return result

    def fill(self, value: float | SSAValue, data_type: DataType) -> Tile:
        """A tile of one value. One that the kernel computes is a float, or an integer: of a tile of
        floats that has the bits of the float."""
        if isinstance(value, SSAValue):
            if not data_type.is_float:
                return self.call(
                    "fill_tile_int", parameters=(value,), data_type=data_type, dtype=data_type
                )
            name = "fill_tile" if isinstance(value.type, Float32Type) else "fill_tile_bitcast"
            return self.call(name, parameters=(value,), data_type=data_type)
        if data_type.is_float:
            tile = self.call("fill_tile", parameters=(float(value),), data_type=data_type)
        else:
            bits = int(value) & 0xFFFFFFFF
            tile = self.call(
                "fill_tile_int", parameters=(bits,), data_type=data_type, dtype=data_type
            )
        self._filled[tile] = value
        return tile

    def value_of(self, tile: Tile) -> float | None:
        """The number that fills a tile, None unless it came from `fill`."""
        return self._filled.get(tile)

    def wrap(self, tile: Tile, data_type: DataType) -> Tile:
        """Integers of 32 bits as what is left of them in a narrower data type."""
        mask = self.fill(NARROW_INTEGERS[data_type], tile.data_type)
        kept = self.call("bitwise_and_binary_tile", tile, mask, dtype=tile.data_type)
        return self.convert(kept, data_type)

    def convert(self, tile: Tile, data_type: DataType) -> Tile:
        """The tile in another data type, itself if it has it.

        The pairs are those of typecast_tile (tt-metal, compute/eltwise_unary/typecast.h).
        """
        if tile.data_type is data_type:
            return tile
        if {tile.data_type, data_type} == {DataType.INT32, DataType.UINT32}:
            # The bits are kept: integers out of range wrap.
            return self.call("add_unary_tile_int32", tile, parameters=(0,), data_type=data_type)
        if tile.data_type.is_float and data_type is DataType.UINT16:
            # To 16 bits it rounds, to others it cuts the fraction off.
            tile = self.call("trunc_tile", tile)
        return self.call(
            "typecast_tile",
            tile,
            data_type=data_type,
            in_dtype=tile.data_type,
            out_dtype=data_type,
        )


NARROW_INTEGERS = {DataType.UINT16: 0xFFFF, DataType.UINT8: 0xFF}
"""Those of less than 32 bits, with the greatest of each."""

TileLowering = Callable[[TileBuilder, "CatalogueOp", Sequence[Tile]], Tile]
"""The tile of the only result of an op, given those of its operands.

Raises VerifyException where there is no such operation for the operands' data types."""


def in_floats(builder: TileBuilder, tiles: Sequence[Tile]) -> list[Tile]:
    """Tiles of integers as float32, in which what is no op of integers computes with them."""
    found: list[Tile] = []
    for tile in tiles:
        number = builder.value_of(tile)
        if tile.data_type.is_float:
            found.append(tile)
        elif number is not None:
            found.append(builder.fill(number, DataType.FLOAT32))
        else:
            found.append(builder.convert(tile, DataType.FLOAT32))
    return found


def widened(builder: TileBuilder, tiles: Sequence[Tile]) -> list[Tile]:
    """Tiles of integers of less than 32 bits, which no ops have, as signed ones of 32 bits."""
    return [
        builder.convert(tile, DataType.INT32) if tile.data_type in NARROW_INTEGERS else tile
        for tile in tiles
    ]


def is_all(tiles: Sequence[Tile], data_type: DataType) -> bool:
    return all(tile.data_type is data_type for tile in tiles)


def no_operation(op: CatalogueOp, data_type: DataType) -> VerifyException:
    return VerifyException(f"'{op.name}' of {data_type.mlir} has no operation on tiles")


def tile_function(
    name: str,
    int32: str = "",
    uint32: Callable[[TileBuilder, Tile], Tile] | None = None,
    **attributes: Any,
) -> TileLowering:
    """The lowering to one op on as many registers as there are operands, plus a result.

    `int32` names the op for signed integers, if there is one; then `uint32` says what there is for
    unsigned ones.
    """

    def lower(builder: TileBuilder, op: CatalogueOp, tiles: Sequence[Tile]) -> Tile:
        tiles = widened(builder, tiles)
        if int32 and is_all(tiles, DataType.INT32):
            return builder.call(int32, *tiles)
        if uint32 is not None and is_all(tiles, DataType.UINT32):
            return uint32(builder, *tiles)
        return builder.call(name, *in_floats(builder, tiles), **attributes)

    return lower


def binary_tiles(
    name: str, scalar: str = "", int32: str = "", uint32: str = "", typed: str = ""
) -> TileLowering:
    """The lowering of an op of two operands.

    Args:
        name: the op on floats.
        scalar: the op on one register of floats and the bits of a number, if there is one.
        int32: the op on signed integers.
        uint32: the op on unsigned integers.
        typed: the op on integers that takes their data type.

    Where integers have no such op, VerifyException is raised.
    """

    def lower(builder: TileBuilder, op: CatalogueOp, tiles: Sequence[Tile]) -> Tile:
        tiles = widened(builder, tiles)
        if any(tile.data_type.is_float for tile in tiles):
            tiles = in_floats(builder, tiles)
            number = builder.value_of(tiles[1]) if scalar else None
            if number is not None:
                return builder.call(scalar, tiles[0], parameters=(float(number),))
            return builder.call(name, *tiles)
        data_type = tiles[0].data_type
        if typed:
            return builder.call(typed, *tiles, dtype=data_type)
        of_integers = int32 if data_type is DataType.INT32 else uint32
        if not of_integers:
            raise no_operation(op, data_type)
        return builder.call(of_integers, *tiles)

    return lower


def extreme_of(builder: TileBuilder, first: Tile, second: Tile, *, greatest: bool) -> Tile:
    """The greater or the lesser of two tiles of floats, NaN where either is.

    The vector engine orders floats by sign and magnitude: one NaN is beyond each infinity, so that
    each of its two extremes has the NaNs of one sign.
    """
    most = builder.call("binary_max_tile", first, second)
    least = builder.call("binary_min_tile", first, second)
    found, other = (most, least) if greatest else (least, most)
    return where_nan(builder, other, found)


def where_nan(builder: TileBuilder, tile: Tile, otherwise: Tile) -> Tile:
    """The NaNs of a tile, and the elements of another one where it has none."""
    wide = DataType.FLOAT32
    is_nan = builder.call("isnan_tile", tile)
    return builder.call("where_tile", is_nan, tile, otherwise, data_type=wide, dtype=wide)


def extreme_tiles(*, greatest: bool) -> TileLowering:
    """The lowering of the maximum or the minimum of two operands."""
    name = "max" if greatest else "min"
    of_integers = binary_tiles(
        f"binary_{name}_tile",
        int32=f"binary_{name}_int32_tile",
        uint32=f"binary_{name}_uint32_tile",
    )

    def lower(builder: TileBuilder, op: CatalogueOp, tiles: Sequence[Tile]) -> Tile:
        if not any(tile.data_type.is_float for tile in tiles):
            return of_integers(builder, op, tiles)
        return extreme_of(builder, *in_floats(builder, tiles), greatest=greatest)

    return lower


def tile_function_with(
    name: str, parameters: Callable[[CatalogueOp], Sequence[float]]
) -> TileLowering:
    """The lowering to an op on floats with parameters that come from the op's attributes."""

    def lower(builder: TileBuilder, op: CatalogueOp, tiles: Sequence[Tile]) -> Tile:
        floats = in_floats(builder, tiles)
        return builder.call(name, *floats, parameters=[float(p) for p in parameters(op)])

    return lower


# Lowering of an op to a C++ function of the project's `support/cpu`.
#
# The C++ function is called `cpu::<op>` unless the op's row says another name. It takes the types
# of the results, the operands, and the attributes in braces.

CpuOperand = SSAValue | Sequence[SSAValue] | None
"""A tensor, several of them as one argument, or none where the function takes one that may be
absent."""


@dataclass(frozen=True)
class CpuCall:
    """A call of a function of `support/cpu`."""

    function: str
    """Without its namespace."""
    header: str
    """The stem of the header."""
    operands: tuple[CpuOperand, ...]
    attributes: tuple[str, ...]
    """C++ in braces, one for each structure that the function takes."""
    operand_names: tuple[str, ...]


CpuLowering = Callable[[CatalogueOp], CpuCall]
"""Gives the call for an op."""

CpuAttributes = Callable[[CatalogueOp], Mapping[str, Any]]
"""The fields of a structure, in the order of their declaration. None means the default."""


def cpu_call(
    header: str,
    *structures: CpuAttributes,
    function: str | Callable[[CatalogueOp], str] = "",
    operands: Sequence[str] | None = None,
) -> CpuLowering:
    """The lowering to a call.

    Args:
        header: the stem of the header with the function.
        structures: what the attributes of the op are in C++.
        function: the name of the function, if it is not that of the op.
        operands: the names of those that the function takes, if it does not take all.
    """

    def lower(op: CatalogueOp) -> CpuCall:
        specs = op.definition.operands
        groups = op.operand_groups()
        names = [spec.name for spec in specs] if operands is None else operands
        counts = {spec.name: spec.count for spec in specs}
        given: list[CpuOperand] = []
        for name in names:
            group = groups[name]
            if counts[name] == "variadic":
                given.append(group)
            else:
                given.append(group[0] if group else None)
        name = function(op) if callable(function) else function or op.definition.short_name
        fields = tuple(_braced(structure(op)) for structure in structures)
        return CpuCall(name, header, tuple(given), fields, tuple(names))

    return lower


def same_attributes(*names: str) -> CpuAttributes:
    """Fields with the names and values of attributes."""
    return lambda op: {name: op.parameter(name) for name in names}


def counted_from_front(op: CatalogueOp, name: str, operand: str | None = None) -> int:
    """An attribute that names a dimension of an operand (the first, if none is given)."""
    rank = len(op.shape(operand or op.definition.operands[0].name))
    return op.parameter(name) % max(rank, 1)


def dimension(name: str, operand: str | None = None) -> CpuAttributes:
    """The field `dim` of an attribute that names a dimension of an operand."""
    return lambda op: {"dim": counted_from_front(op, name, operand)}


def number_of(value: float, data_type: DataType) -> float | int:
    """A number as an element of that type."""
    return float(value) if data_type.is_float else int(number_as(value, data_type.numpy))


def element_type(data_type: DataType) -> str:
    """The `support::ElementType` of a tensor on the host; block floats are floats there."""
    name = "float32" if data_type.is_block_float else data_type.numpy
    return f"ElementType::{name}"


def _braced(fields: Mapping[str, Any]) -> str:
    given = [f".{name} = {_text(value)}" for name, value in fields.items() if value is not None]
    return "{" + ", ".join(given) + "}"


def _text(value: Any) -> str:
    from ttcodegen.emitc.spelling import float_value, string_literal

    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            return float_value(value).text
        case str():
            return string_literal(value)
        case _:
            return "{" + ", ".join(map(_text, value)) + "}"
