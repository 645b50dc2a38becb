"""Lowerings of ops to tile operations and to CPU functions."""

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
# The catalogue gives each such op a `TileLowering`, which records calls of `ttkernel` ops with a
# `TileBuilder`. The builder numbers virtual registers; kernel generation allocates them.

Parameter = int | float | SSAValue
"""Operand that is not a register; a float is passed as its bits where the op takes an integer."""


@dataclass(frozen=True)
class Tile:
    """A 32x32 tile in a virtual destination register."""

    number: int
    data_type: DataType


@dataclass(frozen=True)
class TileCall:
    """Call of a `ttkernel` op on destination registers."""

    op: str
    reads: tuple[Tile, ...]
    result: Tile
    parameters: tuple[Parameter, ...] = ()
    attributes: tuple[tuple[str, Any], ...] = ()
    seed: int | None = None
    """Seed of an op that draws random numbers; the index of the tile is added to it."""


@dataclass
class TileBuilder:
    """Records the tile calls of an op or a chain of ops."""

    calls: list[TileCall] = field(default_factory=list[TileCall])
    tiles: int = 0
    _filled: dict[Tile, float] = field(default_factory=dict[Tile, float])

    def new_tile(self, data_type: DataType) -> Tile:
        """Allocates a virtual register."""
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
        """Records a call and returns its result, by default of the first operand's data type."""
        result = self.new_tile(data_type if data_type is not None else reads[0].data_type)
        pairs = tuple(sorted(attributes.items()))
        self.calls.append(TileCall(op, reads, result, tuple(parameters), pairs, seed))
        return result

    def fill(self, value: float | SSAValue, data_type: DataType) -> Tile:
        """Returns a tile filled with one value.

        A value computed in the kernel is a float or an integer; the integer holds the bits of the
        float if the tile is one of floats.
        """
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
        """Returns the fill value of a tile, None unless `fill` made it."""
        return self._filled.get(tile)

    def wrap(self, tile: Tile, data_type: DataType) -> Tile:
        """Wraps 32-bit integers to a narrower data type."""
        mask = self.fill(NARROW_INTEGERS[data_type], tile.data_type)
        kept = self.call("bitwise_and_binary_tile", tile, mask, dtype=tile.data_type)
        return self.convert(kept, data_type)

    def convert(self, tile: Tile, data_type: DataType) -> Tile:
        """Converts a tile to another data type; returns it unchanged if it has that type.

        The supported pairs are those of typecast_tile (tt-metal, compute/eltwise_unary/typecast.h).
        """
        if tile.data_type is data_type:
            return tile
        if {tile.data_type, data_type} == {DataType.INT32, DataType.UINT32}:
            # Reinterprets the bits: integers out of range wrap.
            return self.call("add_unary_tile_int32", tile, parameters=(0,), data_type=data_type)
        if tile.data_type.is_float and data_type is DataType.UINT16:
            # typecast_tile rounds to 16-bit integers, but truncates to others.
            tile = self.call("trunc_tile", tile)
        return self.call(
            "typecast_tile",
            tile,
            data_type=data_type,
            in_dtype=tile.data_type,
            out_dtype=data_type,
        )


NARROW_INTEGERS = {DataType.UINT16: 0xFFFF, DataType.UINT8: 0xFF}
"""Integer types of less than 32 bits, with their largest values."""

TileLowering = Callable[[TileBuilder, "CatalogueOp", Sequence[Tile]], Tile]
"""Lowers an op to tile calls and returns the tile of its only result.

Raises VerifyException if no tile op supports the operands' data types.
"""


def in_floats(builder: TileBuilder, tiles: Sequence[Tile]) -> list[Tile]:
    """Converts integer tiles to float32, for ops without an integer version."""
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
    """Converts tiles of narrow integers, which tile ops do not support, to int32."""
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
    """Lowering to one tile op on all operands.

    `int32` names the op for signed integers, if there is one; `uint32` then lowers unsigned ones.
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
    """Lowering of an op of two operands.

    Args:
        name: Op on floats.
        scalar: Op on a register of floats and the bits of a number, if there is one.
        int32: Op on signed integers.
        uint32: Op on unsigned integers.
        typed: Op on integers that takes their data type.

    Raises VerifyException for integers without such an op.
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
    """Maximum or minimum of two float tiles, NaN where either is.

    The vector engine orders floats by sign and magnitude: NaNs of one sign are beyond the infinity
    of that sign, so each extreme keeps only the NaNs of one sign.
    """
    most = builder.call("binary_max_tile", first, second)
    least = builder.call("binary_min_tile", first, second)
    found, other = (most, least) if greatest else (least, most)
    return where_nan(builder, other, found)


def where_nan(builder: TileBuilder, tile: Tile, otherwise: Tile) -> Tile:
    """Selects `tile` where it is NaN, `otherwise` elsewhere."""
    wide = DataType.FLOAT32
    is_nan = builder.call("isnan_tile", tile)
    return builder.call("where_tile", is_nan, tile, otherwise, data_type=wide, dtype=wide)


def extreme_tiles(*, greatest: bool) -> TileLowering:
    """Lowering of the maximum or minimum of two operands."""
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
    """Lowering to a float op with parameters taken from the op's attributes."""

    def lower(builder: TileBuilder, op: CatalogueOp, tiles: Sequence[Tile]) -> Tile:
        floats = in_floats(builder, tiles)
        return builder.call(name, *floats, parameters=[float(p) for p in parameters(op)])

    return lower


# Lowering of an op to a C++ function of the project's `support/cpu`.
#
# The C++ function is `cpu::<op>` unless the op's row names another one. It takes the result types,
# the operands, and the attributes as braced structures.

CpuOperand = SSAValue | Sequence[SSAValue] | None
"""A tensor, a list of tensors passed as one argument, or None for an absent optional."""


@dataclass(frozen=True)
class CpuCall:
    """Call of a function of `support/cpu`."""

    function: str
    """Function name without its namespace."""
    header: str
    """Stem of the header's file name."""
    operands: tuple[CpuOperand, ...]
    attributes: tuple[str, ...]
    """Braced initializers, one for each structure that the function takes."""
    operand_names: tuple[str, ...]


CpuLowering = Callable[[CatalogueOp], CpuCall]
"""Returns the CPU call of an op."""

CpuAttributes = Callable[[CatalogueOp], Mapping[str, Any]]
"""Returns the fields of a structure in order of declaration; None selects the default."""


def cpu_call(
    header: str,
    *structures: CpuAttributes,
    function: str | Callable[[CatalogueOp], str] = "",
    operands: Sequence[str] | None = None,
) -> CpuLowering:
    """Lowering to a CPU call.

    Args:
        header: Stem of the header that declares the function.
        structures: Attribute structures that the function takes.
        function: Name of the function, if it differs from the op's.
        operands: Names of the operands to pass; all by default.
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
    """Returns a dimension attribute counted from the front of an operand (default: the first)."""
    rank = len(op.shape(operand or op.definition.operands[0].name))
    return op.parameter(name) % max(rank, 1)


def dimension(name: str, operand: str | None = None) -> CpuAttributes:
    """Field `dim` from a dimension attribute, counted from the front of an operand."""
    return lambda op: {"dim": counted_from_front(op, name, operand)}


def number_of(value: float, data_type: DataType) -> float | int:
    """Converts a number to an element of that data type."""
    return float(value) if data_type.is_float else int(number_as(value, data_type.numpy))


def element_type(data_type: DataType) -> str:
    """Returns the `support::ElementType` of a host tensor; block floats are float32 there."""
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
