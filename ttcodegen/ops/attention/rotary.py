"""Rotary embeddings: the halves of each row turned by the angles of its position."""

from __future__ import annotations

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, SSAValue

from ttcodegen.dialects.core.datatypes import DataType, bf16, element_of, f32, shape_of
from ttcodegen.dialects.operations.attribute_kinds import INTEGER
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttcore.tile import TILE_SIDE, whole_tiles
from ttcodegen.foundation.lazy_numpy import Array, np
from ttcodegen.ops.core.builder import OpBuilder, broadcast_shapes
from ttcodegen.ops.core.calls import (
    COMPUTE_CONFIG_ATTRIBUTE,
    attribute_,
    compute_config,
    cpp_call,
    operand_,
    output_memory,
)
from ttcodegen.ops.core.definition import (
    Call,
    OperandSpec,
    ResultRule,
    TTIRDefinition,
    TTNNDefinition,
    attribute,
    operand,
    register,
)
from ttcodegen.ops.core.dimensions import Dimensions, Labels, expect_shape, require
from ttcodegen.ops.core.engine import element_product, in_destination, in_source, rounded_sums

TURNED = (DataType.BFLOAT16, DataType.FLOAT32)
TABLES = ("cos_cache", "sin_cache")


def _halves_swapped(rows: Array) -> Array:
    half = rows.shape[-1] // 2
    return np.concatenate([-rows[..., half:], rows[..., :half]], axis=-1)


# ttir.rotary_embedding: x * cos + (-second half, first half) * sin


def _verify(op: CatalogueOp) -> None:
    """The last dimension is even; cosines and sines have one shape, which broadcasts to that of the
    input, and whole rows."""
    shape, *tables = (op.shape(name) for name in ("input", *TABLES))
    require(op, bool(shape) and shape[-1] % 2 == 0, "an even last dimension", shape)
    for table in tables:
        fits = table[-1:] == shape[-1:] and broadcast_shapes([shape, table]) == shape
        require(op, fits and table == tables[0], f"tables of one shape for {shape}", table)
    expect_shape(op, shape)


def _meaning(call: Call) -> Array:
    rows, cosines, sines = (call.array(name) for name in ("input", *TABLES))
    return rows * cosines + _halves_swapped(rows) * sines


def _spelled_out(builder: OpBuilder, op: CatalogueOp) -> SSAValue:
    """Computed in the type of the tables, if that is the wider one."""
    rows, cosines, sines = (builder.operand(op, name) for name in ("input", *TABLES))
    wide = f32 if f32 in (element_of(rows.type), element_of(cosines.type)) else bf16
    rows, cosines, sines = (builder.typecast(each, wide) for each in (rows, cosines, sines))
    last = len(op.result_shape) - 1
    half, width = op.result_shape[last] // 2, op.result_shape[last]
    low, high = builder.slice_dim(rows, last, 0, half), builder.slice_dim(rows, last, half, width)
    swapped = builder.concat([builder.like("neg", high), low], last)
    straight = builder.broadcasting("multiply", rows, cosines)
    across = builder.broadcasting("multiply", swapped, sines)
    return builder.typecast(builder.like("add", straight, across), op.result_type.element_type)


def takes_rotation(rows: Attribute, tables: Attribute) -> bool:
    """True if the library turns such rows by such tables (docs/library-rules.md): (batch, heads,
    positions, size) by (1, 1, positions, size), whose halves are whole tiles."""
    shape = shape_of(rows)
    return (
        len(shape) == 4
        and shape[3] % (2 * TILE_SIDE) == 0
        and shape_of(tables) == (1, 1, *shape[2:])
        and element_of(rows) == bf16
        and element_of(tables) in (bf16, f32)
    )


def _lower(builder: OpBuilder, op: CatalogueOp) -> SSAValue:
    """One call where the library takes the operands. Its result has whole tiles of positions."""
    rows, cosines, sines = (builder.operand(op, name) for name in ("input", *TABLES))
    if not takes_rotation(rows.type, cosines.type) or cosines.type != sines.type:
        return _spelled_out(builder, op)
    batch, heads, positions, size = op.result_shape
    result = TensorType(bf16, [batch, heads, whole_tiles(positions), size])
    turned = builder.emit("rotary_embedding", [rows, cosines, sines], result)
    return builder.slice_dim(turned, 2, 0, positions)


def _rows_apart(op: CatalogueOp) -> Dimensions:
    """Rows are turned by themselves."""
    shape, table = op.shape("input"), op.shape("cos_cache")
    first = len(shape) - len(table)
    rows: Labels = (*range(len(shape) - 1), None)
    own: Labels = tuple(
        rows[first + axis] if size != 1 else None for axis, size in enumerate(table)
    )
    return Dimensions([rows, own, own], [rows])


register(
    TTIRDefinition(
        "ttir.rotary_embedding",
        (operand("input"), operand("cos_cache"), operand("sin_cache")),
        verify=_verify,
        dimensions=_rows_apart,
        numpy=_meaning,
        lower=_lower,
        primitives=_spelled_out,
    )
)


def _verify_tables(op: CatalogueOp) -> None:
    """Cosines and sines are of one shape and type, and have rows as wide as the input's."""
    (cosines, sines), width = (op.shape(name) for name in TABLES), op.shape("input")[-1]
    require(op, cosines == sines, f"tables of one shape {cosines}", sines)
    fits = width % 2 == 0 and cosines[-1:] == (width,)
    require(op, fits, f"tables of {width} columns, an even number", cosines)
    types = [element_of(op.operand(name).type) for name in TABLES]
    require(op, types[0] == types[1], f"tables of one type {types[0]}", types[1])


def _verify_call(op: CatalogueOp) -> None:
    """The result has whole tiles of positions."""
    require(op, len(op.shape("input")) == 4, "an input of rank 4", op.shape("input"))
    _verify_tables(op)
    *outer, positions, size = op.shape("input")
    expect_shape(op, [*outer, whole_tiles(positions), size])


def _library_meaning(call: Call) -> Array:
    """The products go through memory in the type of the tables before they are added."""
    rows, cosines, sines = (call.array(name) for name in ("input", *TABLES))
    positions, arithmetic = rows.shape[2], call.arithmetic
    first = call["token_index"]
    places = slice(0, positions) if first is None else slice(first, first + 1)
    factors = ((rows, cosines), (_halves_swapped(rows), sines))
    products = [element_product(a, b[:, :, places], arithmetic) for a, b in factors]
    if call.operand_dtypes["cos_cache"] == ["float32"]:
        straight, across = (in_destination(each, arithmetic) for each in products)
    else:
        straight, across = (rounded_sums(each) for each in products)
    total = in_source(straight, arithmetic) + in_source(across, arithmetic)
    missing = whole_tiles(positions) - positions
    return np.pad(in_destination(total, arithmetic), [(0, 0), (0, 0), (0, missing), (0, 0)])


register(
    TTNNDefinition(
        "ttnn.rotary_embedding",
        (
            OperandSpec("input", data_types=TURNED),
            OperandSpec("cos_cache", data_types=TURNED),
            OperandSpec("sin_cache", data_types=TURNED),
        ),
        (attribute("token_index", INTEGER, None), COMPUTE_CONFIG_ATTRIBUTE),
        verify=_verify_call,
        numpy=_library_meaning,
        compute="rotary",
        result_rules=(ResultRule(placed=True),),
        cpp=cpp_call(
            "ttnn::experimental::rotary_embedding",
            "ttnn/operations/experimental/transformer/rotary_embedding/rotary_embedding.hpp",
            operand_("input"),
            operand_("cos_cache"),
            operand_("sin_cache"),
            attribute_("token_index"),
            output_memory,
            compute_config,
        ),
        participle="turned",
    )
)
