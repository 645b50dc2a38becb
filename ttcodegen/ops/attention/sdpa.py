"""Scaled dot product attention of sequences, and parts shared with its decode forms."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, SSAValue
from xdsl.utils.exceptions import VerifyException

from ttcodegen.dialects.core.datatypes import (
    DataType,
    bf16,
    element_of,
    f32,
    normalized_data_type,
    shape_of,
)
from ttcodegen.dialects.operations.attribute_kinds import BOOLEAN, INTEGER, NUMBER
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttcore.tile import TILE_SIDE, tiles_along, whole_tiles
from ttcodegen.dialects.ttnn.placement import declared_data_type
from ttcodegen.foundation.lazy_numpy import Array, np
from ttcodegen.ops.attention.reference import Band, attend, default_scale, hidden, plus
from ttcodegen.ops.core.builder import OpBuilder, splat_of
from ttcodegen.ops.core.calls import (
    COMPUTE_CONFIG_ATTRIBUTE,
    SDPA_CONFIG_ATTRIBUTE,
    ArgumentRule,
    attribute_,
    compute_config,
    cpp_call,
    cpp_text,
    operand_,
    output_memory,
    program_config,
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
from ttcodegen.ops.core.dimensions import Dimensions, Labels, expect_floats, expect_shape, require
from ttcodegen.ops.core.traits import CallKind, Trait, attention_flops
from ttcodegen.systems.cards import NARROWEST

# Attention as a single device program

ATTENTION = "ttir.scaled_dot_product_attention"
_MOST_TILES = 640
"""bf16 tiles that fit a core: 1.31 of the 1.43 MB of its L1."""
_FIXED_TILES = 32
"""Tiles that do not depend on shapes: masks, sums, results."""
_DATA_TYPES = {DataType.BFLOAT16, DataType.FLOAT32}


def keys_at_a_time(op: CatalogueOp) -> int:
    """Returns the tile rows of keys, with their values and scores, that fit L1.

    All keys of a head if they fit, else double-buffered blocks of 8, 4, 2 or 1; 0 if nothing fits.
    """
    size, width = (tiles_along(op.shape(name)[3]) for name in ("query", "value"))
    keys = tiles_along(op.shape("key")[2])
    # Counted in bf16 tiles; scores are f32.
    each = 2 if declared_data_type(op.operand("query")) is DataType.FLOAT32 else 1
    operands = each * (keys * (size + width + 1) + 2 * size)
    if operands + 2 * keys + _FIXED_TILES <= _MOST_TILES:
        return keys
    for rows in (8, 4, 2, 1):
        operands = each * (2 * rows * (size + width) + rows + 2 * size)
        if operands + 2 * rows + 4 * width + _FIXED_TILES <= _MOST_TILES:
            return rows
    return 0


def is_one_program(op: CatalogueOp) -> bool:
    """True if a single device program computes the op.

    It computes the scores of a tile row of queries, their softmax and the weighted values, with
    keys and values of a head in L1, in full or in blocks. Windows, and causal masks with different
    numbers of queries and keys, become masks first.
    """
    data_types = {declared_data_type(op.operand(name)) for name in ("query", "key", "value")}
    if len(data_types) > 1 or not data_types <= _DATA_TYPES:
        return False
    if any(0 in shape_of(value.type) for value in op.operands):
        return False
    if op.parameter("sliding_window_size"):
        return False
    queries, keys = op.shape("query")[2], op.shape("key")[2]
    if op.parameter("is_causal") and queries != keys:
        return False
    mask, sink = (op.optional_operand(f"attention_{name}") for name in ("mask", "sink"))
    if sink is not None and declared_data_type(sink) not in _DATA_TYPES:
        return False
    if mask is not None and (
        declared_data_type(mask) not in _DATA_TYPES or shape_of(mask.type)[-1] != keys
    ):
        return False
    return declared_data_type(op.results[0]) in _DATA_TYPES and keys_at_a_time(op) > 0


# Attention of whole sequences, and parts shared with its decode forms.
#
# `attend` is the reference of all forms; `spelled_out` decomposes to matmuls and a softmax where
# the library's attention does not support the operands.

ATTENDED = (DataType.BFLOAT16, DataType.BFLOAT8_B, DataType.BFLOAT4_B)
"""Data types that the library's attention kernels take (docs/library-rules.md)."""
MOST_USERS = NARROWEST.cores
"""Largest number of users of the library's decode: one core each, on every device."""
LOWEST_MASKED = -1e30
"""Lower bound of mask values, far below any score.

The lowest finite float would overflow when the library divides masks by the scale, and a row of
only infinities has no softmax.
"""
LEAST_SCALE = 2.0**-24
"""Smallest scale for which the library's masked scores do not overflow."""


def takes_scale(factor: float) -> bool:
    """True if the library's attention supports a scale.

    It divides masks by the scale, and applies it to the negative distances of scores to the
    maximum.
    """
    return factor >= LEAST_SCALE


def verify_scale(op: CatalogueOp) -> None:
    """Raises VerifyException if the scale of a ttnn call is too small to divide by."""
    scale = op.parameter("scale")
    fits = scale is None or abs(scale) >= LEAST_SCALE
    require(op, fits, f"a scale of {LEAST_SCALE:.1e} or more", scale)


# Numpy semantics


def seen_band(queries: int, keys: int, causal: bool, window: int | None) -> Band | None:
    """Returns the keys that each query sees, None for all.

    Follows the library, except that a single decode query with a window sees the last keys.
    """
    if window and queries == 1 < keys:
        last = keys - 1
        return Band(-last + (window - 1) / 2, (window - 1) / 2)
    return Band.of(queries, keys, causal, window)


def _attention(call: Call) -> Array:
    query, key = call.array("query"), call.array("key")
    scale = default_scale(query.shape[3]) if call["scale"] is None else call["scale"]
    queries, keys = query.shape[2], key.shape[2]
    band = seen_band(queries, keys, call["is_causal"], call["sliding_window_size"])
    added = None if band is None else hidden(band.visible(queries, keys))
    added = plus(call.optional("attention_mask"), added)
    return attend(query, key, call.array("value"), scale, added, call.optional("attention_sink"))


# Verification


def verify_keys(op: CatalogueOp, batch: int, heads: int, size: int) -> tuple[int, ...]:
    """Returns the shape of keys and values, verified against the query."""
    shape = verify_wide_keys(op, batch, heads, size)
    value = op.shape("value")
    require(op, value == shape, f"values of the shape of the keys {shape}", value)
    return shape


def verify_wide_keys(op: CatalogueOp, batch: int, heads: int, size: int) -> tuple[int, ...]:
    """Returns the shape of the keys, verified; values may have another head size.

    Values of latent vectors are the first elements of the keys. Query, keys and values are floats.
    """
    expect_floats(op, "query", "key", "value")
    shape, value = op.shape("key"), op.shape("value")
    require(op, len(shape) == 4, "keys of rank 4", shape)
    require(
        op,
        len(value) == 4 and value[:3] == shape[:3],
        f"values of the shape of the keys {shape} but for the head size",
        value,
    )
    require(op, shape[3] == size, f"keys of head size {size}", shape)
    require(
        op, shape[1] > 0 and heads % shape[1] == 0, f"heads that divide the query's {heads}", shape
    )
    require(op, shape[0] == batch, f"keys of a batch of {batch}", shape)
    return shape


def verify_mask(op: CatalogueOp, shape: Sequence[int]) -> None:
    """Verifies that a mask broadcasts to `shape`, and the op is not causal."""
    mask = op.optional_operand("attention_mask")
    if mask is None:
        return
    if op.parameter("is_causal"):
        raise VerifyException(f"{op.name}: a mask is not allowed when is_causal is true")
    found = shape_of(mask.type)
    fits = len(found) == 4 and all(a in (1, b) for a, b in zip(found, shape, strict=True))
    require(op, fits, f"a mask that broadcasts to {tuple(shape)}", found)
    data_type = normalized_data_type(element_of(mask.type))
    is_added = data_type is not None and data_type.is_float
    require(op, is_added, "a mask of floats, which are added to scores", element_of(mask.type))


def _verify_call(op: CatalogueOp) -> None:
    """Query (batch, heads, queries, head size), keys and values (batch, heads, keys, head size);
    the scale is large enough to divide by.
    """
    verify_scale(op)
    _verify_attention(op)
    batch, heads, _, size = op.shape("query")
    verify_keys(op, batch, heads, size)


def _verify_attention(op: CatalogueOp) -> None:
    """Query (batch, heads, queries, head size), keys and values (batch, heads, keys, head size)."""
    query = op.shape("query")
    require(op, len(query) == 4, "a query of rank 4", query)
    batch, heads, queries, size = query
    keys = verify_wide_keys(op, batch, heads, size)[2]
    verify_mask(op, (batch, heads, queries, keys))
    if op.parameter("is_causal"):
        require(op, queries == keys, f"{queries} keys, one per query, for is_causal", keys)
    window = op.parameter("sliding_window_size")
    require(op, window is None or window >= 0, "a sliding_window_size that is not negative", window)
    sink = op.optional_operand("attention_sink")
    if sink is not None:
        found = shape_of(sink.type)
        require(op, found == (1, heads, 1, 1), f"an attention_sink {(1, heads, 1, 1)}", found)
    expect_shape(op, (*query[:3], op.shape("value")[3]))


# Lowering


def scaled(builder: OpBuilder, value: SSAValue, factor: float) -> SSAValue:
    """Multiplies `value` by a number."""
    if factor == 1.0:
        return value
    return builder.emit("multiply", [value, None], value.type, scalar=float(factor))


def positions(builder: OpBuilder, count: int, axis: int) -> SSAValue:
    """Returns 0, 1, ... along one axis of a tensor of rank 4, in f32."""
    value = builder.emit("arange", [], TensorType(f32, [count]), start=0, end=count)
    return builder.reshape(value, [count if axis == dim else 1 for dim in range(4)])


def hiding(builder: OpBuilder, visible: SSAValue, element: Attribute) -> SSAValue:
    """Returns the additive mask: zero where `visible` is not zero, minus infinity elsewhere."""
    zero = builder.full([1, 1, 1, 1], 0.0, element)
    result = TensorType(element, shape_of(visible.type))
    return builder.emit("where", [visible, zero, None], result, false_value=float("-inf"))


def band_mask(
    builder: OpBuilder, band: Band, queries: int, keys: int, element: Attribute
) -> SSAValue:
    """Returns the additive mask (1, 1, queries, keys) that hides keys outside the band."""
    before = builder.broadcasting(
        "subtract", positions(builder, queries, 2), positions(builder, keys, 3)
    )
    type_ = before.type
    if band.center:
        before = builder.emit("subtract", [before, None], type_, scalar=float(band.center))
    distance = builder.like("abs", before)
    visible = builder.emit("le", [distance, None], type_, scalar=float(band.half))
    return hiding(builder, visible, element)


def sum_of(builder: OpBuilder, a: SSAValue | None, b: SSAValue | None) -> SSAValue | None:
    """Sum of the operands that are not None."""
    if a is None or b is None:
        return b if a is None else a
    return builder.broadcasting("add", a, b)


def padded_to(builder: OpBuilder, value: SSAValue, size: int) -> SSAValue:
    """Pads the last dimension with zeros to that size."""
    return builder.pad(value, [(0, size - shape_of(value.type)[-1])])


def bounded(builder: OpBuilder, mask: SSAValue) -> SSAValue:
    """Clamps a mask to at least `LOWEST_MASKED`."""
    return builder.emit("maximum", [mask, None], mask.type, scalar=LOWEST_MASKED)


def spelled_out(
    builder: OpBuilder,
    operands: Sequence[SSAValue],
    scale: float,
    mask: SSAValue | None,
    sink: SSAValue | None,
    element: Attribute,
) -> SSAValue:
    """Decomposes `attend` to matmuls and a softmax in the given element type."""
    query, key, value = (builder.typecast(operand, element) for operand in operands)
    batch, heads, queries, size = shape_of(query.type)
    _, groups, keys, _ = shape_of(key.type)
    # Query heads that share a KV head become rows of one matmul.
    query = builder.reshape(query, [batch, groups, heads // groups * queries, size])
    rows = shape_of(query.type)[2]
    scores = builder.emit(
        "matmul", [query, key], TensorType(element, [batch, groups, rows, keys]), transpose_b=True
    )
    scores = builder.reshape(scaled(builder, scores, scale), [batch, heads, queries, keys])
    if mask is not None:
        mask = builder.typecast(mask, element)
        scores = builder.broadcasting("add", scores, mask)
    if sink is not None:
        sink = builder.repeat(builder.typecast(sink, element), [batch, heads, queries, 1])
        scores = builder.concat([scores, sink], 3)
    weights = builder.like("softmax", scores, dimension=3)
    weights = builder.slice_dim(weights, 3, 0, keys)
    weights = builder.reshape(weights, [batch, groups, rows, keys])
    width = shape_of(value.type)[3]
    result = builder.emit(
        "matmul", [weights, value], TensorType(element, [batch, groups, rows, width])
    )
    return builder.reshape(result, [batch, heads, queries, width])


def _lower_attention(builder: OpBuilder, op: CatalogueOp) -> SSAValue:
    """Lowers to the library's attention for bf16, else to a decomposition.

    With a window the library ignores the mask, and a window that is not causal sees the padding
    after the last key: then the window becomes a mask.
    """
    operands = [builder.operand(op, name) for name in ("query", "key", "value")]
    mask, sink = (builder.optional(op, name) for name in ("attention_mask", "attention_sink"))
    batch, heads, queries, size = op.shape("query")
    keys = op.shape("key")[2]
    scale = op.parameter("scale")
    factor = default_scale(size) if scale is None else scale
    causal, window = op.parameter("is_causal"), op.parameter("sliding_window_size") or None
    same = all(element_of(operand.type) == bf16 for operand in operands)
    in_library = same and takes_scale(factor) and op.shape("value")[3] == size
    element = bf16 if in_library else op.result_type.element_type
    band = seen_band(queries, keys, causal, window)
    in_kernel = mask is None and band == Band.of(queries, keys, causal, window)
    if window and not causal and keys % TILE_SIDE:
        in_kernel = False
    if mask is not None and not _is_bounded(op.operand("attention_mask")):
        mask = bounded(builder, mask)
    if band is not None and not (in_library and in_kernel):
        mask = sum_of(builder, mask, band_mask(builder, band, queries, keys, element))
        causal, window = False, None
    if not in_library:
        result = spelled_out(builder, operands, factor, mask, sink, element)
        return builder.typecast(result, op.result_type.element_type)
    if queries == 1 and keys % TILE_SIDE == 0 and batch <= MOST_USERS:
        return _decoded(builder, op, operands, factor, mask, sink)
    if mask is not None:
        mask = builder.repeat(mask, [*shape_of(mask.type)[:2], queries, keys])
    if sink is not None:
        sink = scaled(builder, sink, 1.0 / factor)  # the kernel multiplies it with the scale
    wide = whole_tiles(size)
    operands = [padded_to(builder, operand, wide) for operand in operands]
    result = builder.emit(
        "scaled_dot_product_attention",
        [*operands, mask, sink],
        TensorType(bf16, [batch, heads, queries, wide]),
        is_causal=causal,
        scale=factor if wide != size else scale,
        sliding_window_size=window,
    )
    result = builder.slice_dim(result, 3, 0, size)
    return builder.typecast(result, op.result_type.element_type)


def _is_bounded(mask: SSAValue) -> bool:
    """True if a mask is known to be at least `LOWEST_MASKED`."""
    op = mask.owner
    if not isinstance(op, CatalogueOp) or op.name != "ttir.maximum":
        return False
    splats = [splat_of(operand) for operand in op.operands]
    # The fill value may be rounded downwards.
    return any(splat is not None and splat >= 1.01 * LOWEST_MASKED for splat in splats)


def _decoded(
    builder: OpBuilder,
    op: CatalogueOp,
    operands: Sequence[SSAValue],
    factor: float,
    mask: SSAValue | None,
    sink: SSAValue | None,
) -> SSAValue:
    """Lowers a single query to the library's decode, which divides the keys among cores.

    It takes (1, batch, heads, head size) and a mask with all heads (docs/library-rules.md), and
    multiplies mask and sink by the scale.
    """
    query, key, value = operands
    batch, heads, _, size = op.shape("query")
    if mask is not None:
        mask = bounded(builder, scaled(builder, mask, 1.0 / factor))
        mask = builder.permute(mask, [0, 2, 1, 3])
        mask = builder.repeat(mask, [shape_of(mask.type)[0], 1, heads, op.shape("key")[2]])
    if sink is not None:
        sink = builder.reshape(scaled(builder, sink, 1.0 / factor), [heads, 1])
        sink = padded_to(builder, sink, TILE_SIDE)
    result = builder.emit(
        "scaled_dot_product_attention_decode",
        [builder.permute(query, [2, 0, 1, 3]), key, value, mask, None, sink],
        TensorType(bf16, [1, batch, heads, size]),
        is_causal=False,
        scale=op.parameter("scale") if size % TILE_SIDE == 0 else factor,
    )
    result = builder.permute(result, [1, 2, 0, 3])
    return builder.typecast(result, op.result_type.element_type)


def _batch_and_heads(op: CatalogueOp) -> Dimensions | None:
    """Labels of batch, heads and, unless masked by position, queries.

    Query heads that share a KV head are adjacent, so that equal shards of both belong together.
    """
    if op.optional_operand("attention_sink") is not None or len(op.shape("query")) != 4:
        return None
    by_position = op.parameter("is_causal") or op.parameter("sliding_window_size") is not None
    rows = None if by_position else 2
    labels: list[Labels] = [(0, 1, rows, None), (0, 1, None, None), (0, 1, None, None)]
    mask = op.optional_operand("attention_mask")
    if mask is not None:
        shape, query = shape_of(mask.type), op.shape("query")
        if len(shape) != 4:
            return None
        divides = [
            label if shape[dim] == query[dim] != 1 else None
            for dim, label in enumerate((0, 1, rows))
        ]
        labels.append((*divides, None))
    return Dimensions(labels, [(0, 1, rows, None)])


def _attention_primitives(builder: OpBuilder, op: CatalogueOp) -> SSAValue:
    """Decomposes to matmuls and a softmax, or replaces causal masking and windows by a mask."""
    query, key, value = (builder.operand(op, name) for name in ("query", "key", "value"))
    mask, sink = (builder.optional(op, name) for name in ("attention_mask", "attention_sink"))
    batch, heads, queries, size = op.shape("query")
    _, groups, keys, _ = op.shape("key")
    element = op.result_type.element_type
    scale = op.parameter("scale")
    band = seen_band(queries, keys, op.parameter("is_causal"), op.parameter("sliding_window_size"))
    if band is not None:
        added = hidden(band.visible(queries, keys))[np.newaxis, np.newaxis]
        mask = sum_of(builder, mask, builder.constant(added, element))
        operands = [query, key, value, mask, sink]
        return builder.emit(
            "scaled_dot_product_attention", operands, op.result_type, is_causal=False, scale=scale
        )
    factor = builder.full([1] * 4, default_scale(size) if scale is None else scale, element)
    # Query heads that share a KV head become rows of one matmul.
    query = builder.reshape(query, [batch, groups, heads // groups * queries, size])
    rows = shape_of(query.type)[2]
    products = TensorType(element, [batch, groups, rows, keys])
    scores = builder.emit("matmul", [query, key], products, transpose_b=True)
    scores = builder.reshape(scores, [batch, heads, queries, keys])
    scores = builder.broadcasting("multiply", scores, factor)
    if mask is not None:
        scores = builder.broadcasting("add", scores, mask)
    if sink is not None:
        wide = builder.full([batch, heads, queries, 1], 0.0, element)
        scores = builder.concat([scores, builder.broadcasting("add", wide, sink)], 3)
    weights = builder.like("softmax", scores, dimension=3)
    weights = builder.slice_dim(weights, 3, 0, keys)
    weights = builder.reshape(weights, [batch, groups, rows, keys])
    width = shape_of(value.type)[3]
    result = TensorType(element, [batch, groups, rows, width])
    result_value = builder.emit("matmul", [weights, value], result)
    return builder.reshape(result_value, op.result_shape)


_ATTRIBUTES = (
    attribute("is_causal", BOOLEAN, True),
    attribute("scale", NUMBER, None),
    attribute("sliding_window_size", INTEGER, None),
)

register(
    TTIRDefinition(
        ATTENTION,
        (
            operand("query"),
            operand("key"),
            operand("value"),
            optional("attention_mask", input_kind="attention_mask"),
            optional("attention_sink"),
        ),
        _ATTRIBUTES,
        verify=_verify_attention,
        dimensions=_batch_and_heads,
        numpy=_attention,
        lower=_lower_attention,
        primitives=_attention_primitives,
        stays=is_one_program,
        matrix_engine=True,
        traits=Trait.SKIPS_HIDDEN,
    )
)


def _library_attention(call: Call) -> Array:
    """Device semantics: the sink is multiplied by the scale, a window replaces the mask."""
    query, key = call.array("query"), call.array("key")
    scale = default_scale(query.shape[3]) if call["scale"] is None else call["scale"]
    queries, keys = query.shape[2], key.shape[2]
    band = Band.of(queries, keys, call["is_causal"], call["sliding_window_size"])
    added = call.optional("attention_mask")
    if band is not None:
        added = hidden(band.visible(queries, keys))
    sink = call.optional("attention_sink")
    sink = None if sink is None else sink * scale
    return attend(query, key, call.array("value"), scale, added, sink, call.arithmetic)


def float_text(value: float) -> str:
    """Returns a number as a C++ float, whatever Python's type."""
    return cpp_text(float(value))


SCALE: ArgumentRule = attribute_("scale", float_text)

register(
    TTNNDefinition(
        "ttnn.scaled_dot_product_attention",
        (
            OperandSpec("query", data_types=ATTENDED),
            OperandSpec("key", data_types=ATTENDED),
            OperandSpec("value", data_types=ATTENDED),
            optional("attention_mask", data_types=ATTENDED),
            optional("attention_sink", data_types=ATTENDED),
        ),
        (*_ATTRIBUTES, COMPUTE_CONFIG_ATTRIBUTE, SDPA_CONFIG_ATTRIBUTE),
        verify=_verify_call,
        numpy=_library_attention,
        compute="attention",
        result_rules=(ResultRule(placed=True),),
        cpp=cpp_call(
            "ttnn::transformer::scaled_dot_product_attention",
            "ttnn/operations/transformer/sdpa/sdpa.hpp",
            operand_("query"),
            operand_("key"),
            operand_("value"),
            operand_("attention_mask"),
            attribute_("is_causal", default=True),
            SCALE,
            attribute_("sliding_window_size"),
            output_memory,
            program_config(SDPA_CONFIG_ATTRIBUTE.name),
            compute_config,
            operand_("attention_sink"),
        ),
        flops=attention_flops,
        nouns=("attention",),
        traits=Trait.ATTENDS | Trait.SKIPS_HIDDEN,
        call_kind=CallKind.ATTENTION,
        block_floats=("query", "key", "value"),
    )
)
