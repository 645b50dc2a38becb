"""Decode attention: one query per user over contiguous or paged KV caches.

The scale multiplies mask and sink too, as in the library's kernels and the reference system, which
passes both on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, SSAValue
from xdsl.utils.exceptions import VerifyException

from ttcodegen.dialects.core.datatypes import DataType, bf16, element_of, f32, shape_of, ui32
from ttcodegen.dialects.operations.attribute_kinds import BOOLEAN, INTEGER, NUMBER
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttcore.tile import TILE_SIDE
from ttcodegen.foundation.lazy_numpy import Array, np
from ttcodegen.ops.attention.primitives import (
    decode_primitives,
    paged_decode_primitives,
)
from ttcodegen.ops.attention.reference import attend, default_scale, hidden, plus
from ttcodegen.ops.attention.sdpa import (
    ATTENDED,
    MOST_USERS,
    SCALE,
    bounded,
    hiding,
    padded_to,
    positions,
    scaled,
    spelled_out,
    sum_of,
    takes_scale,
    verify_keys,
    verify_mask,
    verify_scale,
)
from ttcodegen.ops.core.builder import OpBuilder
from ttcodegen.ops.core.calls import (
    COMPUTE_CONFIG_ATTRIBUTE,
    SDPA_CONFIG_ATTRIBUTE,
    Argument,
    CppCalls,
    Default,
    attribute_,
    compute_config,
    cpp_call,
    nullopt,
    operand_,
    output_memory,
    program_config,
)
from ttcodegen.ops.core.definition import (
    Call,
    Layout,
    OperandSpec,
    ResultRule,
    TTIRDefinition,
    TTNNDefinition,
    attribute,
    operand,
    optional,
    register,
)
from ttcodegen.ops.core.dimensions import (
    Dimensions,
    Labels,
    expect_integers,
    expect_shape,
    require,
)
from ttcodegen.ops.core.lowering import cpu_call
from ttcodegen.ops.core.traits import CallKind, Trait, attention_flops

# Numpy semantics; the query is (1, users, heads, head size).


_PAGED_OPERANDS = (
    *("query", "key", "value", "page_table"),
    *("attention_mask", "cur_pos_tensor", "attention_sink"),
)
"""Operand names of the CPU functions, which take no destination operands."""


def attention_on_cpu(op: CatalogueOp) -> dict[str, Any]:
    """Returns the fields of `cpu::Attention`."""
    names = {spec.name for spec in op.definition.attributes}
    scale = op.parameter("scale")
    return {
        "scale": float(default_scale(op.shape("query")[3]) if scale is None else scale),
        "is_causal": op.parameter("is_causal") if "is_causal" in names else None,
        "sliding_window_size": (
            op.parameter("sliding_window_size") if "sliding_window_size" in names else None
        ),
        "head_dim_v": op.parameter("head_dim_v") if "head_dim_v" in names else None,
    }


def scale_of(call: Call) -> float:
    """Returns the scale of the scores, by default 1 / sqrt(head size)."""
    size = call.array("query").shape[3]
    return default_scale(size) if call["scale"] is None else call["scale"]


def _current(call: Call, keys: int) -> Array:
    """Returns the position of each user's token, (users, 1, 1, 1), by default the last one."""
    position = call.optional("cur_pos_tensor")
    if position is None or not call["is_causal"]:
        return np.full((1, 1, 1, 1), keys - 1)
    return position.reshape(-1, 1, 1, 1).astype(np.int64)


def decode(call: Call, key: Array, value: Array) -> Array:
    """Attention of one token per user over keys and values (users, heads, positions, size)."""
    scale = scale_of(call)
    keys = np.arange(int(key.shape[2]))
    current = _current(call, key.shape[2])
    window = call.attributes.get("sliding_window_size") or key.shape[2]
    added = hidden((keys <= current) & (keys > current - window))
    mask = call.optional("attention_mask")
    if mask is not None:
        added = plus(added, np.swapaxes(mask, 1, 2) * scale)
    sink = call.optional("attention_sink")
    if sink is not None:
        sink = sink[:, :1].reshape(1, -1, 1, 1) * scale
    query = call.array("query").transpose(1, 2, 0, 3)
    result = attend(query, key, value, scale, added, sink, call.arithmetic)
    return result.transpose(2, 0, 1, 3)


def _decode_attention(call: Call) -> Array:
    return decode(call, call.array("key"), call.array("value"))


def unpaged(pages: Array, page_table: Array) -> Array:
    """Gathers (users, heads, positions, head size) from (pages, heads, page size, head size).

    The page table (users, pages of a user) lists the pages of each user in order.
    """
    users, count = page_table.shape
    _, heads, page, size = pages.shape
    numbers = np.clip(page_table.astype(np.int64), 0, len(pages) - 1)
    found = pages[numbers].transpose(0, 2, 1, 3, 4)
    return found.reshape(users, heads, count * page, size)


def _paged_decode_attention(call: Call) -> Array:
    table = call.array("page_table")
    return decode(call, unpaged(call.array("key"), table), unpaged(call.array("value"), table))


def _users_and_heads(op: CatalogueOp) -> Dimensions | None:
    """Labels of users and heads; None with a mask or sink."""
    if any(op.optional_operand(name) for name in ("attention_mask", "attention_sink")):
        return None
    caches: list[Labels] = [(0, 1, None, None)] * 2
    query = (None, 0, 1, None)
    return Dimensions([query, *caches, (0,)], [query])


# Verification


def _verify_query(op: CatalogueOp) -> tuple[int, int, int]:
    """Returns users, heads and head size of the query, verified."""
    query = op.shape("query")
    require(op, len(query) == 4 and query[0] == 1, "a query (1, users, heads, head size)", query)
    expect_shape(op, query)
    return query[1], query[2], query[3]


def verify_positions(op: CatalogueOp, users: int) -> None:
    """Verifies that positions, if given, are integers, one per user."""
    expect_integers(op, "cur_pos_tensor")
    value = op.optional_operand("cur_pos_tensor")
    if value is not None:
        found = shape_of(value.type)
        require(op, found == (users,), f"a cur_pos_tensor of shape {(users,)}", found)


def verify_sink(op: CatalogueOp, heads: int) -> None:
    """Verifies that a sink, if given, has one row per head."""
    sink = op.optional_operand("attention_sink")
    if sink is not None:
        found = shape_of(sink.type)
        fits = len(found) == 2 and found[0] == heads
        require(op, fits, f"an attention_sink of {heads} rows", found)


def _verify_decode(op: CatalogueOp) -> None:
    """Query (1, users, heads, head size), keys and values (users, heads, positions, head size)."""
    users, heads, size = _verify_query(op)
    keys = verify_keys(op, users, heads, size)[2]
    verify_mask(op, (users, 1, heads, keys))
    verify_positions(op, users)
    verify_sink(op, heads)


def verify_pages(op: CatalogueOp, users: int, heads: int, size: int) -> int:
    """Verifies keys and values in pages of whole tiles; returns the positions per user."""
    shape = op.shape("key")
    require(op, len(shape) == 4, "keys of rank 4", shape)
    page = verify_keys(op, shape[0], heads, size)[2]
    require(op, page % TILE_SIDE == 0, f"pages of a multiple of {TILE_SIDE} positions", page)
    table = op.shape("page_table")
    fits = len(table) == 2 and table[0] == users
    require(op, fits, f"a page_table with {users} rows", table)
    expect_integers(op, "page_table")
    return table[1] * page


def _verify_paged_decode(op: CatalogueOp) -> None:
    """Query (1, users, heads, head size), keys and values in pages (pages, heads, page size, head
    size). A mask is given exactly if the op is not causal.
    """
    users, heads, size = _verify_query(op)
    keys = verify_pages(op, users, heads, size)
    verify_mask(op, (users, 1, heads, keys))
    if not op.parameter("is_causal") and op.optional_operand("attention_mask") is None:
        raise VerifyException(f"{op.name}: a mask is required when is_causal is false")
    verify_positions(op, users)
    verify_sink(op, heads)


# Lowering


def decode_spelled_out(
    builder: OpBuilder,
    op: CatalogueOp,
    key: SSAValue,
    value: SSAValue,
    scale: float,
    element: Attribute,
) -> SSAValue:
    """Decomposes decode attention to attention of sequences of one token.

    Positions and window become a mask.
    """
    query = builder.permute(builder.operand(op, "query"), [1, 2, 0, 3])
    mask = builder.optional(op, "attention_mask")
    if mask is not None:
        mask = scaled(builder, builder.permute(bounded(builder, mask), [0, 2, 1, 3]), scale)
        mask = builder.typecast(mask, element)
    keys = shape_of(key.type)[2]
    mask = sum_of(builder, mask, _past_mask(builder, op, keys, element))
    sink = builder.optional(op, "attention_sink")
    if sink is not None:
        sink = builder.slice_dim(sink, 1, 0, 1)
        sink = builder.reshape(scaled(builder, sink, scale), [1, shape_of(sink.type)[0], 1, 1])
    result = spelled_out(builder, [query, key, value], scale, mask, sink, element)
    return builder.permute(result, [2, 0, 1, 3])


def _past_mask(
    builder: OpBuilder, op: CatalogueOp, keys: int, element: Attribute
) -> SSAValue | None:
    """Returns the mask of keys past each user's position or before its window, None if all are
    visible.
    """
    names = {spec.name for spec in op.definition.attributes}
    window = op.parameter("sliding_window_size") if "sliding_window_size" in names else None
    current = builder.optional(op, "cur_pos_tensor")
    if current is None or not op.parameter("is_causal"):
        if not window or window >= keys:
            return None
        last = builder.full([1, 1, 1, 1], keys - 1, f32)
    else:
        users = shape_of(current.type)[0]
        last = builder.typecast(builder.reshape(current, [users, 1, 1, 1]), f32)
    before = builder.broadcasting("subtract", last, positions(builder, keys, 3))
    # 0 <= before < window, as a distance from the middle.
    half = (min(window or keys, keys) - 1) / 2
    before = builder.emit("subtract", [before, None], before.type, scalar=float(half))
    distance = builder.like("abs", before)
    return hiding(
        builder, builder.emit("le", [distance, None], before.type, scalar=float(half)), element
    )


def _lower_decode(builder: OpBuilder, op: CatalogueOp) -> SSAValue:
    """Lowers to the library's decode for bf16, else to a decomposition.

    The library divides the keys among cores in chunks of whole tiles, supports one user per core,
    and takes masks with all heads (docs/library-rules.md).
    """
    users, heads, size = op.shape("query")[1:]
    key, value = builder.operand(op, "key"), builder.operand(op, "value")
    keys = shape_of(key.type)[2]
    scale = op.parameter("scale")
    factor = default_scale(size) if scale is None else scale
    query = builder.operand(op, "query")
    same = all(element_of(operand.type) == bf16 for operand in (query, key, value))
    if not same or keys % TILE_SIDE or users > MOST_USERS or not takes_scale(factor):
        element = op.result_type.element_type
        return decode_spelled_out(builder, op, key, value, factor, element)
    mask = builder.optional(op, "attention_mask")
    if mask is not None:
        mask = bounded(builder, mask)
        mask = builder.repeat(mask, [shape_of(mask.type)[0], 1, heads, keys])
    return builder.emit(
        "scaled_dot_product_attention_decode",
        [query, key, value, mask, builder.optional(op, "cur_pos_tensor"), _sink(builder, op)],
        op.result_type,
        is_causal=op.parameter("is_causal"),
        scale=scale if size % TILE_SIDE == 0 else factor,
    )


def _sink(builder: OpBuilder, op: CatalogueOp) -> SSAValue | None:
    """Returns the sink with a width of one tile."""
    sink = builder.optional(op, "attention_sink")
    if sink is None:
        return None
    return padded_to(
        builder, builder.slice_dim(sink, 1, 0, min(TILE_SIDE, shape_of(sink.type)[1])), TILE_SIDE
    )


def gathered(builder: OpBuilder, pages: SSAValue, page_table: SSAValue) -> SSAValue:
    """Gathers pages like `unpaged`, by an embedding lookup in bf16."""
    users, count = shape_of(page_table.type)
    total, heads, page, size = shape_of(pages.type)
    row = heads * page * size
    table = builder.reshape(builder.typecast(pages, bf16), [total, row])
    indices = builder.reshape(builder.typecast(page_table, ui32), [1, users * count])
    found = builder.emit("embedding", [indices, table], TensorType(bf16, [1, users * count, row]))
    found = builder.reshape(found, [users, count, heads, page, size])
    found = builder.permute(found, [0, 2, 1, 3, 4])
    return builder.reshape(found, [users, heads, count * page, size])


def _lower_paged_decode(builder: OpBuilder, op: CatalogueOp) -> SSAValue:
    """Lowers to the library's paged decode, with operands cast to bf16.

    The library requires positions, and for a mask a program config that it cannot choose itself;
    otherwise the pages are gathered first.
    """
    users, _, size = op.shape("query")[1:]
    scale = op.parameter("scale")
    factor = default_scale(size) if scale is None else scale
    page_table = builder.operand(op, "page_table")
    current = builder.optional(op, "cur_pos_tensor")
    key, value = builder.operand(op, "key"), builder.operand(op, "value")
    element = op.result_type.element_type
    if (
        current is None
        or not op.parameter("is_causal")
        or users > MOST_USERS
        or not takes_scale(factor)
    ):
        key, value = (gathered(builder, pages, page_table) for pages in (key, value))
        return decode_spelled_out(builder, op, key, value, factor, element)
    result = builder.emit(
        "paged_scaled_dot_product_attention_decode",
        [
            *(builder.typecast(v, bf16) for v in (builder.operand(op, "query"), key, value)),
            page_table,
            current,
            _sink(builder, op),
        ],
        TensorType(bf16, op.result_shape),
        scale=scale if size % TILE_SIDE == 0 else factor,
        sliding_window_size=op.parameter("sliding_window_size") or None,
    )
    return builder.typecast(result, element)


def _last_position(op: CatalogueOp) -> int:
    shape = op.shape("key")
    return shape[2] * (op.shape("page_table")[1] if "paged" in op.name else 1)


def _pages(op: CatalogueOp) -> int:
    return op.shape("key")[0]


CACHES = (operand("query"), operand("key"), operand("value"))
_MASK = optional("attention_mask", input_kind="attention_mask")
_CAUSAL = attribute("is_causal", BOOLEAN, True)
SCALE_ATTRIBUTE = attribute("scale", NUMBER, None)
_WINDOW = attribute("sliding_window_size", INTEGER, None)
TABLE = operand("page_table", input_kind="index", places=_pages)

register(
    TTIRDefinition(
        "ttir.scaled_dot_product_attention_decode",
        (
            *CACHES,
            _MASK,
            OperandSpec("cur_pos_tensor", "optional", input_kind="index", places=_last_position),
            optional("attention_sink"),
        ),
        (_CAUSAL, SCALE_ATTRIBUTE),
        verify=_verify_decode,
        dimensions=_users_and_heads,
        numpy=_decode_attention,
        primitives=decode_primitives,
        lower=_lower_decode,
        cpu=cpu_call("attention", attention_on_cpu),
    )
)

register(
    TTIRDefinition(
        "ttir.paged_scaled_dot_product_attention_decode",
        (
            *CACHES,
            TABLE,
            operand("output"),  # preallocated result, whose contents are not used
            _MASK,
            optional("cur_pos_tensor", input_kind="index", places=_last_position),
            optional("attention_sink"),
        ),
        (_CAUSAL, SCALE_ATTRIBUTE, _WINDOW),
        verify=_verify_paged_decode,
        numpy=_paged_decode_attention,
        primitives=paged_decode_primitives,
        lower=_lower_paged_decode,
        cpu=cpu_call("attention", attention_on_cpu, operands=_PAGED_OPERANDS),
    )
)

# TTNN

HEADER = "ttnn/operations/transformer/sdpa_decode/sdpa_decode.hpp"
_LIBRARY_CACHES = tuple(
    OperandSpec(name, data_types=ATTENDED if name != "query" else (DataType.BFLOAT16,))
    for name in ("query", "key", "value")
)
PLACES = {"layout": Layout.ROW_MAJOR, "data_types": (DataType.INT32,)}
_LIBRARY_SINK = optional("attention_sink", data_types=(DataType.BFLOAT16,))


def _verify_decode_call(op: CatalogueOp) -> None:
    """Query (1, users, heads, head size), keys and values (users, heads, positions, head size)."""
    verify_scale(op)
    users, heads, size = _verify_query(op)
    keys = verify_keys(op, users, heads, size)[2]
    verify_mask(op, (users, 1, heads, keys))
    verify_positions(op, users)
    verify_sink(op, heads)


def _verify_paged_call(op: CatalogueOp) -> None:
    """Query (1, users, heads, head size), keys and values in pages (pages, heads, page size, head
    size).
    """
    verify_scale(op)
    users, heads, size = _verify_query(op)
    verify_pages(op, users, heads, size)
    verify_positions(op, users)
    verify_sink(op, heads)


def _no_positions(calls: CppCalls, op: CatalogueOp) -> Argument:
    """The argument for host positions, which is empty: positions are a tensor."""
    return Default("std::vector<uint32_t>{}")


register(
    TTNNDefinition(
        "ttnn.scaled_dot_product_attention_decode",
        (
            *_LIBRARY_CACHES,
            optional("attention_mask", data_types=ATTENDED),
            optional("cur_pos_tensor", **PLACES),
            _LIBRARY_SINK,
        ),
        (_CAUSAL, SCALE_ATTRIBUTE, COMPUTE_CONFIG_ATTRIBUTE, SDPA_CONFIG_ATTRIBUTE),
        result_rules=(ResultRule(placed=True),),
        verify=_verify_decode_call,
        numpy=_decode_attention,
        compute="attention",
        cpp=cpp_call(
            "ttnn::transformer::scaled_dot_product_attention_decode",
            HEADER,
            *(operand_(name) for name in ("query", "key", "value")),
            attribute_("is_causal", default=True),
            operand_("attention_mask"),
            _no_positions,
            operand_("cur_pos_tensor"),
            operand_("attention_sink"),
            SCALE,
            nullopt,  # sliding window
            output_memory,
            program_config(SDPA_CONFIG_ATTRIBUTE.name),
            compute_config,
        ),
        flops=attention_flops,
        nouns=("attention",),
        traits=Trait.ATTENDS,
        call_kind=CallKind.ATTENTION_OF_ONE,
    )
)


def _causal(calls: CppCalls, op: CatalogueOp) -> Argument:
    return Default("true")


def _no_mask(calls: CppCalls, op: CatalogueOp) -> Argument:
    return Default("std::nullopt")


def _library_paged(call: Call) -> Array:
    """Device semantics: always causal, without a mask."""
    attributes = {**call.attributes, "is_causal": True}
    operands: dict[str, Sequence[Array]] = {**call.operands, "attention_mask": []}
    return _paged_decode_attention(Call(call.name, operands, attributes, call.results))


register(
    TTNNDefinition(
        "ttnn.paged_scaled_dot_product_attention_decode",
        (
            *_LIBRARY_CACHES,
            operand("page_table", **PLACES),
            operand("cur_pos_tensor", **PLACES),
            _LIBRARY_SINK,
        ),
        (SCALE_ATTRIBUTE, _WINDOW, COMPUTE_CONFIG_ATTRIBUTE, SDPA_CONFIG_ATTRIBUTE),
        result_rules=(ResultRule(placed=True),),
        verify=_verify_paged_call,
        numpy=_library_paged,
        compute="attention",
        cpp=cpp_call(
            "ttnn::transformer::paged_scaled_dot_product_attention_decode",
            HEADER,
            *(operand_(name) for name in ("query", "key", "value", "page_table")),
            _causal,
            _no_mask,
            operand_("cur_pos_tensor"),
            operand_("attention_sink"),
            SCALE,
            attribute_("sliding_window_size"),
            output_memory,
            program_config(SDPA_CONFIG_ATTRIBUTE.name),
            compute_config,
        ),
        flops=attention_flops,
        nouns=("attention",),
        traits=Trait.ATTENDS,
        call_kind=CallKind.ATTENTION_OF_ONE,
    )
)
