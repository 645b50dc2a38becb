"""Registration of elementwise ops, tile lowerings of binary ones, and exact integer division."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from xdsl.ir import SSAValue
from xdsl.utils.exceptions import VerifyException

from ttcodegen.dialects.core.datatypes import (
    DataType,
    element_of,
    is_boolean,
    normalized_data_type,
    shape_of,
    si32,
    ui32,
)
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttnn.placement import declared_data_type
from ttcodegen.foundation.lazy_numpy import Array, np
from ttcodegen.ops.core.builder import OpBuilder, broadcast_shapes
from ttcodegen.ops.core.lowering import (
    Tile,
    TileBuilder,
    TileLowering,
    is_all,
    no_operation,
    widened,
)
from ttcodegen.ops.core.lowering import in_floats as in_float_tiles

if TYPE_CHECKING:
    from ttcodegen.ops.core.definition import Call, Lowering, NumpyMeaning


UNARY_HEADER = "ttnn/operations/eltwise/unary/unary.hpp"
BINARY_HEADER = "ttnn/operations/eltwise/binary/binary.hpp"


def counted(x: Array) -> Array:
    """Promotes booleans and narrow signed integers to int32, as the device computes them.

    Converted back to booleans, every nonzero value is true.
    """
    return x.astype(np.int32) if x.dtype in _COUNTED else x


def in_floats(x: Array) -> Array:
    """Converts integers and booleans to float32, as the device does for fractional results."""
    return x if np.issubdtype(x.dtype, np.floating) else x.astype(np.float32)


_COUNTED = ("bool", "int8", "int16")


def verify_broadcast(op: CatalogueOp) -> None:
    """The result has the broadcast shape of the operands."""
    shapes = [shape_of(operand.type) for operand in op.operands]
    expected = broadcast_shapes(shapes)
    if expected is None:
        found = " and ".join(_shape(shape) for shape in shapes)
        raise VerifyException(f"{op.name}: operands of shapes {found} do not broadcast")
    if op.result_shape != expected:
        raise VerifyException(
            f"{op.name}: expected a result of shape {_shape(expected)}, "
            f"found {_shape(op.result_shape)}"
        )


def verify_integers(op: CatalogueOp) -> None:
    """Integers of several bits that broadcast; the result has the first operand's element type."""
    verify_broadcast(op)
    for value in (*op.operands, *op.results):
        element = element_of(value.type)
        data_type = normalized_data_type(element)
        if data_type is None or data_type.is_float:
            raise VerifyException(
                f"{op.name}: expected integers of several bits, found elements of type {element}"
            )
    taken, given = element_of(op.operands[0].type), element_of(op.result_type)
    if taken != given:
        raise VerifyException(f"{op.name}: expected a result of {taken}, found elements of {given}")


def require_floats(op: CatalogueOp, values: Sequence[SSAValue] | None = None) -> None:
    """Raises VerifyException unless operands and results, or the given values, are floats."""
    for value in (*op.operands, *op.results) if values is None else values:
        data_type = normalized_data_type(element_of(value.type))
        if data_type is None or not data_type.is_float or is_boolean(element_of(value.type)):
            raise VerifyException(
                f"{op.name}: expected floats, found elements of type {element_of(value.type)}"
            )


def verify_bits(op: CatalogueOp) -> None:
    """Integers or booleans that broadcast."""
    if not is_boolean(element_of(op.result_type)):
        return verify_integers(op)
    verify_broadcast(op)
    for value in op.operands:
        if not is_boolean(element_of(value.type)):
            raise VerifyException(
                f"{op.name}: expected booleans like the result, found elements of type "
                f"{element_of(value.type)}"
            )


def _shape(shape: Sequence[int]) -> str:
    return "x".join(str(size) for size in shape) or "()"


def on_inputs(function: Callable[..., Array]) -> NumpyMeaning:
    """Numpy semantics that apply `function` to all operands."""

    def meaning(call: Call) -> Array:
        return function(*call.inputs)

    return meaning


def same_op(name: str, *attribute_names: str, **renamed: str) -> Lowering:
    """Lowering to one TTNN op with the same operands and result types.

    `attribute_names` are copied; `renamed` maps TTNN attribute names to TTIR ones.
    """

    def lower(builder: OpBuilder, op: CatalogueOp) -> SSAValue | Sequence[SSAValue]:
        attributes: dict[str, Any] = {key: op.parameter(key) for key in attribute_names}
        attributes |= {new: op.parameter(old) for old, new in renamed.items()}
        operands = [[builder[value] for value in group] for group in op.operand_groups().values()]
        made = builder.emit_op(name, operands, [r.type for r in op.results], **attributes)
        return made.results

    return lower


# Integer quotients and remainders from ops that the library computes exactly.


def whole_quotient(builder: OpBuilder, a: SSAValue, b: SSAValue) -> SSAValue:
    """Integer quotient, truncated towards zero; 0 where the divisor is 0.

    The library divides signed 32-bit integers. An unsigned dividend is halved; the remainder gives
    the last bit of the quotient. For divisors of 2^31 and above the quotient is 0 or 1 (H. Warren,
    Hacker's Delight, 9-3).
    """
    element = element_of(a.type)
    if declared_data_type(a) is not DataType.UINT32:
        first, second = (builder.typecast(value, si32) for value in (a, b))
        return builder.typecast(builder.broadcasting("div_trunc", first, second), element)
    one = builder.full([1] * len(shape_of(b.type)), 1, ui32)
    half = builder.broadcasting("logical_right_shift", a, one)
    signed = [builder.typecast(value, si32) for value in (half, b)]
    found = builder.typecast(builder.broadcasting("div_trunc", *signed), ui32)
    found = builder.broadcasting("logical_left_shift", found, one)
    rest = builder.broadcasting("subtract", a, builder.broadcasting("multiply", found, b))
    # A divisor of 0 gives the largest number here, which no remainder exceeds.
    last = builder.broadcasting("subtract", b, one)
    found = builder.broadcasting("add", found, builder.broadcasting("gt", rest, last))
    limit = builder.full([1] * len(shape_of(b.type)), 1 << 31, ui32)
    is_large = builder.broadcasting("ge", b, limit)
    return builder.broadcasting(
        "where", is_large, builder.broadcasting("ge", a, b), found, element=ui32
    )


def whole_remainder(builder: OpBuilder, a: SSAValue, b: SSAValue) -> SSAValue:
    """Integer remainder with the sign of the divisor."""
    element = element_of(a.type)
    if declared_data_type(a) is not DataType.UINT32:
        first, second = (builder.typecast(value, si32) for value in (a, b))
        return builder.typecast(builder.broadcasting("remainder", first, second), element)
    whole = builder.broadcasting("multiply", whole_quotient(builder, a, b), b)
    return builder.broadcasting("subtract", a, whole)


def whole_power(builder: OpBuilder, a: SSAValue, b: SSAValue) -> SSAValue:
    """Integer power modulo 2^32 by repeated squaring; library kernels compute powers in float.

    A negative exponent gives 0, except for the bases 1 and -1.
    """
    filled = _filled(b)
    known = int(filled) if filled is not None and filled >= 0 else None
    base, exponent = (builder.typecast(value, si32) for value in (a, b))
    zero, one = (builder.full([1] * len(shape_of(b.type)), each, si32) for each in (0, 1))
    found, square, rest = one, base, exponent
    for bit in range(32 if known is None else known.bit_length()):
        if bit:
            square = builder.broadcasting("multiply", square, square)
        if known is None:
            rest = builder.broadcasting("logical_right_shift", rest, one) if bit else rest
            is_set = builder.broadcasting("bitwise_and", rest, one)
            raised = builder.broadcasting("multiply", square, found)
            found = builder.broadcasting("where", is_set, raised, found, element=si32)
        elif known >> bit & 1:
            found = builder.broadcasting("multiply", square, found)
    if declared_data_type(b) is DataType.INT32 and known is None:
        is_unit = builder.broadcasting("eq", builder.like("abs", base), one)
        is_whole = builder.broadcasting("ge", exponent, zero)
        is_left = builder.broadcasting("logical_or", is_unit, is_whole)
        found = builder.broadcasting("multiply", found, is_left)
    shape = broadcast_shapes([shape_of(a.type), shape_of(b.type)])
    assert shape is not None
    return builder.typecast(builder.repeat(found, shape), element_of(a.type))


def shifted_right(builder: OpBuilder, a: SSAValue, b: SSAValue) -> SSAValue:
    """Arithmetic right shift of signed integers, logical right shift of unsigned ones.

    The library supports shift amounts from 0 to 31 only, and its arithmetic shift takes the top bit
    of all integers as a sign.
    """
    if declared_data_type(a) is not DataType.INT32:
        return builder.broadcasting("logical_right_shift", a, b)
    known = _filled(b)
    if known is None or not 0 <= known < 32:
        most = builder.full([1] * len(shape_of(b.type)), 31, ui32)
        b = builder.broadcasting("minimum", builder.typecast(b, ui32), most)
    return builder.broadcasting("bitwise_right_shift", a, builder.typecast(b, si32))


def _filled(value: SSAValue) -> float | None:
    """Returns the fill value of a `ttnn.full`, None for other ops."""
    op = value.owner
    if not isinstance(op, CatalogueOp) or op.name != "ttnn.full":
        return None
    return op.parameter("fill_value")


def comparison_tiles(name: str) -> TileLowering:
    """Lowering of a comparison to tiles of 0 or 1.

    Integers are compared by subtraction, after a maximum for an order: the header of `lt_int_tile`
    compiles only after certain others.
    """

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
    """Applies tile op `name` to operands that are normalized to 0 or 1."""

    def lower(builder: TileBuilder, op: CatalogueOp, tiles: Sequence[Tile]) -> Tile:
        floats = in_float_tiles(builder, tiles)
        return builder.call(name, *(builder.call("nez_tile", tile) for tile in floats))

    return lower


def quotient_tiles(builder: TileBuilder, op: CatalogueOp, tiles: Sequence[Tile]) -> Tile:
    """Lowering of a division; division by a number multiplies with its reciprocal."""
    if not any(tile.data_type.is_float for tile in tiles):
        if not is_all(tiles, DataType.INT32):
            # Narrow integers divide by zero differently than signed 32-bit ones.
            raise no_operation(op, tiles[0].data_type)
        return builder.call("div_int32_trunc_tile", *tiles)
    tiles = in_float_tiles(builder, tiles)
    number = builder.value_of(tiles[1])
    if number:
        return builder.call("mul_unary_tile", tiles[0], parameters=(1.0 / number,))
    return builder.call("div_binary_tile", *tiles)


def typed_tiles(name: str) -> TileLowering:
    """Lowering to tile op `name` on 32-bit integers."""

    def lower(builder: TileBuilder, op: CatalogueOp, tiles: Sequence[Tile]) -> Tile:
        tiles = widened(builder, tiles)
        for tile in tiles:
            if tile.data_type not in (DataType.INT32, DataType.UINT32):
                raise no_operation(op, tile.data_type)
        return builder.call(name, *tiles, dtype=tiles[0].data_type)

    return lower


def shift_right_tiles(builder: TileBuilder, op: CatalogueOp, tiles: Sequence[Tile]) -> Tile:
    """Arithmetic shift of signed tiles, logical shift of unsigned ones."""
    is_signed = widened(builder, tiles)[0].data_type is DataType.INT32
    name = "binary_right_shift_tile" if is_signed else "binary_logical_right_shift_tile"
    return typed_tiles(name)(builder, op, tiles)
