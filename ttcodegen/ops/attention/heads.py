"""Split and concatenation of attention heads, and rotary position embedding (RoPE)."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, SSAValue
from xdsl.utils.exceptions import VerifyException

from ttcodegen.dialects.core.datatypes import DataType, bf16, element_of, f32, shape_of
from ttcodegen.dialects.operations.attribute_kinds import BOOLEAN, INTEGER
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttcore.shards import GRID_WIDTH, MemoryLayout, Shards
from ttcodegen.dialects.ttcore.tile import TILE_SIDE, whole_tiles
from ttcodegen.foundation.lazy_numpy import Array, np
from ttcodegen.ops.core import calls as cpp_calls
from ttcodegen.ops.core.builder import OpBuilder, broadcast_shapes
from ttcodegen.ops.core.calls import (
    COMPUTE_CONFIG_ATTRIBUTE,
    NULLOPT,
    CppCalls,
    Text,
    attribute_,
    compute_config,
    cpp_call,
    cpp_text,
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
    optional,
    register,
)
from ttcodegen.ops.core.dimensions import Dimensions, Labels, expect_rank, expect_shape, require
from ttcodegen.ops.core.engine import element_product, in_destination, in_source, rounded_sums
from ttcodegen.ops.core.traits import CallKind, no_flops

# Split and concatenation of attention heads.

MOVED = (DataType.BFLOAT16, DataType.FLOAT32, DataType.BFLOAT8_B)

# concatenate_heads: (batch, heads, sequence, head size) to (batch, sequence, heads * head size)


def _verify_concatenate(op: CatalogueOp) -> None:
    """(batch, heads, sequence, size) becomes (batch, sequence, heads * size)."""
    shape = op.shape("input")
    if len(shape) != 4:
        raise VerifyException(f"{op.name}: expected an input of rank 4, found {shape}")
    batch, heads, sequence, size = shape
    expect_shape(op, [batch, sequence, heads * size])


def _concatenate(call: Call) -> Array:
    return np.swapaxes(call.array("input"), 1, 2).reshape(call.results[0].shape)


def _concatenate_primitives(builder: OpBuilder, op: CatalogueOp) -> SSAValue:
    """Permute to (batch, sequence, heads, size) and reshape."""
    value = builder.permute(builder.operand(op, "input"), [0, 2, 1, 3])
    return builder.reshape(value, op.result_shape)


def _lower_concatenate(builder: OpBuilder, op: CatalogueOp) -> SSAValue:
    value = builder.operand(op, "input")
    # The library requires heads of whole tiles (docs/library-rules.md).
    if element_of(value.type) in (bf16, f32) and shape_of(value.type)[3] % TILE_SIDE == 0:
        return builder.emit("concatenate_heads", [value], op.result_type)
    return builder.reshape(builder.permute(value, [0, 2, 1, 3]), op.result_shape)


register(
    TTIRDefinition(
        "ttir.concatenate_heads",
        (operand("input"),),
        verify=_verify_concatenate,
        numpy=_concatenate,
        lower=_lower_concatenate,
        primitives=_concatenate_primitives,
        rearranges=True,
    )
)

register(
    TTNNDefinition(
        "ttnn.concatenate_heads",
        (OperandSpec("input", data_types=MOVED),),
        verify=_verify_concatenate,
        numpy=_concatenate,
        result_rules=(ResultRule(placed=True),),
        cpp=cpp_call(
            "ttnn::transformer::concatenate_heads",
            "ttnn/operations/transformer/concatenate_heads/concatenate_heads.hpp",
            operand_("input"),
            output_memory,
        ),
        flops=no_flops,
        rearranges=True,
        participle="joined",
        call_kind=CallKind.COPY,
        block_floats=("input",),
    )
)

# split_query_key_value_and_split_heads


def _head_counts(op: CatalogueOp) -> tuple[int, int]:
    """Returns the number of query heads and of key/value heads."""
    heads, key_heads = op.parameter("num_heads"), op.parameter("num_kv_heads")
    return heads, heads if key_heads is None else key_heads


def _split_shapes(op: CatalogueOp) -> list[tuple[int, ...]]:
    """Returns the shapes of query, key and value; raises VerifyException if heads do not divide."""
    shape = op.shape("input_tensor")
    heads, key_heads = _head_counts(op)
    separate = op.optional_operand("kv_input_tensor")
    other = shape if separate is None else shape_of(separate.type)
    if len(shape) != 3 or len(other) != 3 or heads < 1 or key_heads < 1:
        raise VerifyException(
            f"{op.name}: expected tensors (batch, sequence, hidden size) and at least one head, "
            f"found {shape}, {other} and {heads} and {key_heads} heads"
        )
    counts = [(shape[2], heads + (2 * key_heads if separate is None else 0))]
    if separate is not None:
        counts.append((other[2], 2 * key_heads))
    sizes = {hidden // count for hidden, count in counts}
    if any(hidden % count for hidden, count in counts) or len(sizes) != 1:
        raise VerifyException(
            f"{op.name}: {heads} heads of the query and {key_heads} of keys and values do not "
            f"divide hidden sizes {', '.join(str(hidden) for hidden, _ in counts)} equally"
        )
    size = sizes.pop()
    keys = (other[0], key_heads, other[1], size)
    if op.parameter("transpose_key"):
        keys = (*keys[:2], size, other[1])
    return [(shape[0], heads, shape[1], size), keys, (other[0], key_heads, other[1], size)]


def _verify_split(op: CatalogueOp) -> None:
    """Query, key and value are (batch, heads, sequence, head size); a transposed key has the
    sequence last.
    """
    for index, expected in enumerate(_split_shapes(op)):
        expect_shape(op, expected, index)


def _split(call: Call) -> list[Array]:
    heads, key_heads = call["num_heads"], call["num_kv_heads"]
    key_heads = heads if key_heads is None else key_heads
    first, separate = call.array("input_tensor"), call.optional("kv_input_tensor")
    parts = [first]
    if separate is None:
        size = first.shape[2] // (heads + 2 * key_heads)
        parts = [first[..., : heads * size], first[..., heads * size :]]
    else:
        parts.append(separate)
    key, value = np.split(parts[1], 2, axis=2)
    split = [
        part.reshape(*part.shape[:2], count, -1).transpose(0, 2, 1, 3)
        for part, count in ((parts[0], heads), (key, key_heads), (value, key_heads))
    ]
    if call["transpose_key"]:
        split[1] = np.swapaxes(split[1], 2, 3)
    return split


def _lower_split(builder: OpBuilder, op: CatalogueOp) -> Sequence[SSAValue]:
    """Lowers to one call for heads that the library supports, else to slices of the projection."""
    first = builder.operand(op, "input_tensor")
    separate = builder.optional(op, "kv_input_tensor")
    shapes = _split_shapes(op)
    heads, key_heads = _head_counts(op)
    size = shapes[0][3]
    alike = separate is None or shape_of(separate.type)[:2] == shape_of(first.type)[:2]
    floats = all(element_of(v.type) in (bf16, f32) for v in (first, separate) if v is not None)
    if size % TILE_SIDE == 0 and alike and floats:
        made = builder.emit_op(
            "split_query_key_value_and_split_heads",
            [first, separate],
            [result.type for result in op.results],
            num_heads=heads,
            num_kv_heads=None if key_heads == heads else key_heads,
            transpose_key=op.parameter("transpose_key"),
        )
        return made.results
    return _split_parts(builder, op)


def _split_parts(builder: OpBuilder, op: CatalogueOp) -> Sequence[SSAValue]:
    """Slices the projection and permutes the heads before the sequence."""
    first = builder.operand(op, "input_tensor")
    separate = builder.optional(op, "kv_input_tensor")
    heads, key_heads = _head_counts(op)
    size = _split_shapes(op)[0][3]
    query_end = heads * size
    source = first if separate is None else separate
    start = query_end if separate is None else 0
    parts = [
        (first, 0, heads),
        (source, start, key_heads),
        (source, start + key_heads * size, key_heads),
    ]
    results: list[SSAValue] = []
    for index, (value, begin, count) in enumerate(parts):
        batch, sequence, _ = shape_of(value.type)
        part = builder.slice_dim(value, 2, begin, begin + count * size)
        part = builder.reshape(part, [batch, sequence, count, size])
        transposed = index == 1 and op.parameter("transpose_key")
        results.append(builder.permute(part, [0, 2, 3, 1] if transposed else [0, 2, 1, 3]))
    return results


_SPLIT = (
    attribute("num_heads", INTEGER),
    attribute("num_kv_heads", INTEGER, None),
    attribute("transpose_key", BOOLEAN),
)

register(
    TTIRDefinition(
        "ttir.split_query_key_value_and_split_heads",
        (operand("input_tensor"), optional("kv_input_tensor")),
        _SPLIT,
        results=3,
        verify=_verify_split,
        numpy=_split,
        lower=_lower_split,
        primitives=_split_parts,
    )
)


def _cpp_split(calls: CppCalls, op: CatalogueOp) -> None:
    name = op.definition.short_name
    calls.include(f"ttnn/operations/transformer/{name}/{name}.hpp")
    separate = op.optional_operand("kv_input_tensor")
    key_heads = op.parameter("num_kv_heads")
    calls.bind_several(
        op.results,
        f"ttnn::transformer::{name}",
        calls[op.operand("input_tensor")],
        NULLOPT if separate is None else calls[separate],
        Text(str(op.parameter("num_heads"))),
        NULLOPT if key_heads is None else Text(str(key_heads)),
        Text(cpp_text(bool(op.parameter("transpose_key")))),
        output_memory(calls, op),
    )


register(
    TTNNDefinition(
        "ttnn.split_query_key_value_and_split_heads",
        (
            OperandSpec("input_tensor", data_types=MOVED),
            optional("kv_input_tensor", data_types=MOVED),
        ),
        _SPLIT,
        results=3,
        verify=_verify_split,
        numpy=_split,
        result_rules=(ResultRule(placed=True),),
        cpp=_cpp_split,
        flops=no_flops,
        nouns=("queries", "keys", "values"),
        call_kind=CallKind.COPY,
        block_floats=("input_tensor", "kv_input_tensor"),
    )
)


# Decode heads: one token per user, sharded with one user per core for caches and decode attention.

MOST_USERS = 32
"""Largest number of users: the rows of one tile."""
MOVED_DECODE = (DataType.BFLOAT16, DataType.FLOAT32)


def takes_users(users: int) -> bool:
    """True if the library can concatenate the heads of that many users.

    Their cores must be a rectangle from the first core on; otherwise `nlp_concat_heads_decode`
    requires explicit cores.
    """
    return 0 < users <= MOST_USERS and (users <= GRID_WIDTH or users % GRID_WIDTH == 0)


def _user_on_each_core(shape: Sequence[int]) -> Shards:
    """Shards of heads (1, users, heads, size), one user per core."""
    _, users, heads, size = shape
    return Shards.by_rows(users, (whole_tiles(heads), whole_tiles(size)))


# nlp_create_qkv_heads_decode


def _verify_create(op: CatalogueOp) -> None:
    """Rows (1, 1, users, width) become queries, keys and values (1, users, heads, head size)."""
    shape = op.shape("input")
    heads, key_heads = _head_counts(op)
    if len(shape) != 4 or shape[:2] != (1, 1) or shape[2] > MOST_USERS:
        raise VerifyException(
            f"{op.name}: expected rows (1, 1, users, width) of at most {MOST_USERS} users, found "
            f"{shape}"
        )
    if not 0 < key_heads <= heads <= TILE_SIDE or shape[3] % (heads + 2 * key_heads):
        raise VerifyException(
            f"{op.name}: {heads} heads of queries and {key_heads} of keys and values do not "
            f"divide rows of {shape[3]}; there are at most {TILE_SIDE}"
        )
    size = shape[3] // (heads + 2 * key_heads)
    if size % TILE_SIDE:
        raise VerifyException(f"{op.name}: the library takes heads of whole tiles, found {size}")
    for index, count in enumerate((heads, key_heads, key_heads)):
        expect_shape(op, (1, shape[2], count, size), index)


def _create(call: Call) -> list[Array]:
    rows = call.array("input")
    users = rows.shape[2]
    heads = call["num_heads"]
    key_heads = heads if call["num_kv_heads"] is None else call["num_kv_heads"]
    parts = rows.reshape(1, users, heads + 2 * key_heads, -1)
    return list(np.split(parts, [heads, heads + key_heads], axis=2))


def _cpp_create(calls: CppCalls, op: CatalogueOp) -> None:
    calls.include(
        "ttnn/operations/experimental/transformer/nlp_create_qkv_heads_decode/"
        "nlp_create_qkv_heads_decode.hpp"
    )
    # The function takes a reference to optional preallocated results.
    type_ = "std::optional<std::array<ttnn::Tensor, 3>>"
    outputs = cpp_calls.Call(type_, (), type_, variable="preallocated")
    key_heads = op.parameter("num_kv_heads")
    arguments = [
        calls[op.operand("input")],
        Text(str(op.parameter("num_heads"))),
        NULLOPT if key_heads is None else Text(str(key_heads)),
        outputs,
    ]
    if not op.parameter("overlap_qk_coregrid"):
        arguments.append(Text(cpp_text(False)))
    calls.bind_several(
        op.results,
        "ttnn::experimental::nlp_create_qkv_heads_decode",
        *arguments,
    )


def _created(op: CatalogueOp, index: int) -> tuple[MemoryLayout, Shards]:
    return "height_sharded", _user_on_each_core(shape_of(op.results[index].type))


register(
    TTNNDefinition(
        "ttnn.nlp_create_qkv_heads_decode",
        (OperandSpec("input", data_types=MOVED_DECODE),),
        (
            attribute("num_heads", INTEGER),
            attribute("num_kv_heads", INTEGER, None),
            attribute("overlap_qk_coregrid", BOOLEAN, True),
        ),
        results=3,
        result_rules=(ResultRule(shards=_created),),
        verify=_verify_create,
        numpy=_create,
        cpp=_cpp_create,
        flops=no_flops,
        rearranges=True,
        nouns=("queries", "keys", "values"),
    )
)

# nlp_concat_heads_decode


def _verify_concatenate_heads_decode(op: CatalogueOp) -> None:
    """Heads (1, users, heads, head size) become rows (1, 1, 32, heads * head size)."""
    shape, heads = op.shape("input"), op.parameter("num_heads")
    if len(shape) != 4 or shape[0] != 1 or shape[3] % TILE_SIDE or not takes_users(shape[1]):
        raise VerifyException(
            f"{op.name}: expected heads (1, users, heads, head size) of whole tiles, and up to "
            f"{GRID_WIDTH} users or a multiple of that up to {MOST_USERS}, found {shape}"
        )
    if not 0 < heads <= shape[2]:
        raise VerifyException(f"{op.name}: there are no {heads} heads in {shape}")
    expect_shape(op, (1, 1, MOST_USERS, heads * shape[3]))


def _concat_heads_decode(call: Call) -> Array:
    """Concatenates the heads; padding rows are 0 here and never read."""
    heads = call.array("input")[0, :, : call["num_heads"]]
    rows = heads.reshape(heads.shape[0], -1)
    missing = MOST_USERS - rows.shape[0]
    return np.pad(rows, ((0, missing), (0, 0))).reshape(1, 1, MOST_USERS, -1)


def _head_on_each_core(op: CatalogueOp, index: int) -> tuple[MemoryLayout, Shards]:
    heads, size = op.parameter("num_heads"), op.shape("input")[3]
    return "width_sharded", Shards.by_rows(heads, (MOST_USERS, size))


def _concatenated(op: CatalogueOp) -> Shards:
    return _user_on_each_core(op.shape("input"))


register(
    TTNNDefinition(
        "ttnn.nlp_concat_heads_decode",
        (OperandSpec("input", data_types=MOVED_DECODE, shards=_concatenated),),
        (attribute("num_heads", INTEGER),),
        result_rules=(ResultRule(shards=_head_on_each_core),),
        verify=_verify_concatenate_heads_decode,
        numpy=_concat_heads_decode,
        cpp=cpp_call(
            "ttnn::experimental::nlp_concat_heads_decode",
            "ttnn/operations/experimental/transformer/nlp_concat_heads_decode/"
            "nlp_concat_heads_decode.hpp",
            operand_("input"),
            attribute_("num_heads"),
        ),
        flops=no_flops,
        rearranges=True,
        participle="joined",
    )
)


TURNED = (DataType.BFLOAT16, DataType.FLOAT32)
TABLES = ("cos_cache", "sin_cache")


def _halves_swapped(rows: Array) -> Array:
    half = rows.shape[-1] // 2
    return np.concatenate([-rows[..., half:], rows[..., :half]], axis=-1)


# ttir.rotary_embedding: x * cos + (-second half, first half) * sin


def _verify(op: CatalogueOp) -> None:
    """The last dimension is even; cosines and sines have one shape with whole rows, which
    broadcasts to the input's.
    """
    shape, *tables = (op.shape(name) for name in ("input", *TABLES))
    require(op, bool(shape) and shape[-1] % 2 == 0, "an even last dimension", shape)
    for table in tables:
        fits = table[-1:] == shape[-1:] and broadcast_shapes([shape, table]) == shape
        require(op, fits and table == tables[0], f"tables of one shape for {shape}", table)
    expect_shape(op, shape)


def _meaning(call: Call) -> Array:
    rows, cosines, sines = (call.array(name) for name in ("input", *TABLES))
    return rows * cosines + _halves_swapped(rows) * sines


def _decompose_rotation(builder: OpBuilder, op: CatalogueOp) -> SSAValue:
    """Decomposes to elementwise ops, in the wider type of input and tables."""
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
    """True if the library rotates such rows by such tables (docs/library-rules.md).

    Rows (batch, heads, positions, size) of bf16, tables (1, 1, positions, size), and halves of
    whole tiles.
    """
    shape = shape_of(rows)
    return (
        len(shape) == 4
        and shape[3] % (2 * TILE_SIDE) == 0
        and shape_of(tables) == (1, 1, *shape[2:])
        and element_of(rows) == bf16
        and element_of(tables) in (bf16, f32)
    )


def _lower(builder: OpBuilder, op: CatalogueOp) -> SSAValue:
    """Lowers to one call where the library supports the operands; its result has padded
    positions.
    """
    rows, cosines, sines = (builder.operand(op, name) for name in ("input", *TABLES))
    if not takes_rotation(rows.type, cosines.type) or cosines.type != sines.type:
        return _decompose_rotation(builder, op)
    batch, heads, positions, size = op.result_shape
    result = TensorType(bf16, [batch, heads, whole_tiles(positions), size])
    turned = builder.emit("rotary_embedding", [rows, cosines, sines], result)
    return builder.slice_dim(turned, 2, 0, positions)


def _rows_apart(op: CatalogueOp) -> Dimensions:
    """Labels of all dimensions but the last: rows are independent."""
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
        primitives=_decompose_rotation,
    )
)


def _verify_tables(op: CatalogueOp) -> None:
    """Cosines and sines have one shape and type, and rows as wide as the input's."""
    (cosines, sines), width = (op.shape(name) for name in TABLES), op.shape("input")[-1]
    require(op, cosines == sines, f"tables of one shape {cosines}", sines)
    fits = width % 2 == 0 and cosines[-1:] == (width,)
    require(op, fits, f"tables of {width} columns, an even number", cosines)
    types = [element_of(op.operand(name).type) for name in TABLES]
    require(op, types[0] == types[1], f"tables of one type {types[0]}", types[1])


def _verify_call(op: CatalogueOp) -> None:
    """The positions of the result are padded to whole tiles."""
    require(op, len(op.shape("input")) == 4, "an input of rank 4", op.shape("input"))
    _verify_tables(op)
    expect_rank(op, 4, *TABLES)
    first, known = op.parameter("token_index"), op.shape("cos_cache")[2]
    fits = first is None or 0 <= first < known
    require(op, fits, f"a token_index below {known}, the rows of the tables", first)
    *outer, positions, size = op.shape("input")
    expect_shape(op, [*outer, whole_tiles(positions), size])


def _library_meaning(call: Call) -> Array:
    """Device arithmetic: products are packed in the type of the tables before they are added."""
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
