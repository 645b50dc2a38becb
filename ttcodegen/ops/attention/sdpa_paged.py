"""Chunked prefill over paged caches, and multi-head latent attention (MLA)."""

from __future__ import annotations

from xdsl.dialects.builtin import TensorType
from xdsl.ir import SSAValue

from ttcodegen.dialects.core.datatypes import bf16, shape_of
from ttcodegen.dialects.operations.attribute_kinds import BOOLEAN, INTEGER, NUMBER
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttcore.tile import whole_tiles
from ttcodegen.foundation.lazy_numpy import Array, np
from ttcodegen.ops.attention.primitives import (
    chunked_primitives,
    latent_decode_primitives,
    latent_vectors,
)
from ttcodegen.ops.attention.reference import attend, default_scale, hidden
from ttcodegen.ops.attention.sdpa import (
    ATTENDED,
    SCALE,
    padded_to,
    scaled,
    takes_scale,
    verify_mask,
    verify_scale,
)
from ttcodegen.ops.attention.sdpa_decode import (
    CACHES,
    PLACES,
    SCALE_ATTRIBUTE,
    TABLE,
    attention_on_cpu,
    decode,
    decode_spelled_out,
    gathered,
    scale_of,
    unpaged,
    verify_pages,
    verify_positions,
    verify_sink,
)
from ttcodegen.ops.core.builder import OpBuilder
from ttcodegen.ops.core.calls import (
    COMPUTE_CONFIG_ATTRIBUTE,
    SDPA_CONFIG_ATTRIBUTE,
    compute_config,
    cpp_call,
    operand_,
    output_memory,
    program_config,
)
from ttcodegen.ops.core.definition import (
    Call,
    OperandSpec,
    TTIRDefinition,
    TTNNDefinition,
    attribute,
    operand,
    optional,
    register,
)
from ttcodegen.ops.core.dimensions import expect_floats, expect_integers, expect_shape, require
from ttcodegen.ops.core.lowering import cpu_call
from ttcodegen.ops.core.traits import Trait, attention_flops

_OPERANDS = ("query", "key", "value", "page_table", "chunk_start_idx")


def _chunked_attention(call: Call) -> Array:
    query, table = call.array("query"), call.array("page_table")
    key, value = (unpaged(call.array(name), table) for name in ("key", "value"))
    start = int(call.array("chunk_start_idx").reshape(-1)[0])
    rows = start + np.arange(int(query.shape[2]))[:, None]
    added = hidden(np.arange(int(key.shape[2])) <= rows)
    return attend(query, key, value, scale_of(call), added, arithmetic=call.arithmetic)


def _verify_chunked(op: CatalogueOp) -> None:
    """Query (users, heads, chunk, head size), keys and values in pages."""
    query = op.shape("query")
    require(op, len(query) == 4, "a query of rank 4", query)
    verify_pages(op, query[0], query[1], query[3])
    start = op.shape("chunk_start_idx")
    require(op, start == (1,), "a chunk_start_idx of shape (1,)", start)
    expect_integers(op, "chunk_start_idx")
    expect_shape(op, query)


def _lower_chunked(builder: OpBuilder, op: CatalogueOp) -> SSAValue:
    """Lowers to the call in bf16 with head sizes padded to whole tiles.

    A scale that the library does not support is applied to the query.
    """
    size = op.shape("query")[3]
    wide = whole_tiles(size)
    query, *cached = (builder.operand(op, name) for name in ("query", "key", "value"))
    scale = op.parameter("scale")
    if scale is not None and not takes_scale(scale):
        query, scale = scaled(builder, query, scale), 1.0
    operands = [
        padded_to(builder, builder.typecast(operand, bf16), wide) for operand in (query, *cached)
    ]
    result = builder.emit(
        "chunked_scaled_dot_product_attention",
        [*operands, builder.operand(op, "page_table"), builder.operand(op, "chunk_start_idx")],
        TensorType(bf16, [*op.result_shape[:3], wide]),
        scale=default_scale(size) if scale is None and wide != size else scale,
    )
    return builder.typecast(builder.slice_dim(result, 3, 0, size), op.result_type.element_type)


def _first(op: CatalogueOp) -> int:
    """Random inputs start at 0: the kernels require a multiple of their chunk size."""
    return 1


register(
    TTIRDefinition(
        "ttir.chunked_scaled_dot_product_attention",
        (
            *CACHES,
            TABLE,
            operand("chunk_start_idx", input_kind="index", places=_first),
            operand("output"),  # preallocated result, whose contents are not used
        ),
        (SCALE_ATTRIBUTE,),
        verify=_verify_chunked,
        numpy=_chunked_attention,
        primitives=chunked_primitives,
        lower=_lower_chunked,
        cpu=cpu_call("attention", attention_on_cpu, operands=_OPERANDS),
    )
)

# TTNN


def _verify_chunked_call(op: CatalogueOp) -> None:
    """Query (users, heads, chunk, head size), keys and values in pages."""
    verify_scale(op)
    _verify_chunked(op)


register(
    TTNNDefinition(
        "ttnn.chunked_scaled_dot_product_attention",
        (
            *(OperandSpec(name, data_types=ATTENDED) for name in ("query", "key", "value")),
            operand("page_table", **PLACES),
            operand("chunk_start_idx", **PLACES),
        ),
        (SCALE_ATTRIBUTE, COMPUTE_CONFIG_ATTRIBUTE, SDPA_CONFIG_ATTRIBUTE),
        verify=_verify_chunked_call,
        numpy=_chunked_attention,
        compute="attention",
        cpp=cpp_call(
            "ttnn::transformer::chunked_scaled_dot_product_attention",
            "ttnn/operations/transformer/sdpa/sdpa.hpp",
            *(
                operand_(name)
                for name in ("query", "key", "value", "page_table", "chunk_start_idx")
            ),
            SCALE,
            output_memory,
            program_config(SDPA_CONFIG_ATTRIBUTE.name),
            compute_config,
        ),
        flops=attention_flops,
        nouns=("attention",),
        traits=Trait.ATTENDS,
    )
)


def _verify(op: CatalogueOp) -> None:
    """Query (1, users, heads, head size), keys in pages of one head; without values, the first
    `head_dim_v` elements of the keys are the values.
    """
    query, key, table = op.shape("query"), op.shape("key"), op.shape("page_table")
    require(op, len(query) == 4 and query[0] == 1, "a query (1, users, heads, head size)", query)
    _, users, heads, size = query
    fits = len(key) == 4 and (key[1], key[3]) == (1, size)
    require(op, fits, f"keys (pages, 1, page size, {size})", key)
    require(op, len(table) == 2 and table[0] == users, f"a page_table with {users} rows", table)
    expect_integers(op, "page_table")
    expect_floats(op, "query", "key", "value")
    width = op.parameter("head_dim_v")
    value = op.optional_operand("value")
    if value is None:
        require(op, 0 < width <= size, f"head_dim_v from 1 to {size}", width)
    else:
        wanted = (*key[:3], width)
        require(op, shape_of(value.type) == wanted, f"values {wanted}", shape_of(value.type))
    verify_mask(op, (users, 1, heads, table[1] * key[2]))
    verify_positions(op, users)
    verify_sink(op, heads)
    expect_shape(op, (1, users, heads, width))


def _attention(call: Call) -> Array:
    table = call.array("page_table")
    key = unpaged(call.array("key"), table)
    value = call.optional("value")
    value = key[..., : call["head_dim_v"]] if value is None else unpaged(value, table)
    return decode(call, key, value)


def _lower(builder: OpBuilder, op: CatalogueOp) -> SSAValue:
    """Gathers the pages of each user and decomposes the attention."""
    table = builder.operand(op, "page_table")
    key, value = latent_vectors(builder, op, lambda pages: gathered(builder, pages, table))
    scale = op.parameter("scale")
    factor = default_scale(op.shape("query")[3]) if scale is None else scale
    return decode_spelled_out(builder, op, key, value, factor, op.result_type.element_type)


register(
    TTIRDefinition(
        "ttir.paged_flash_multi_latent_attention_decode",
        (
            operand("query"),
            operand("key"),
            optional("value"),
            OperandSpec("page_table", input_kind="index", places=lambda op: op.shape("key")[0]),
            optional("attention_mask", input_kind="attention_mask"),
            OperandSpec(
                "cur_pos_tensor",
                "optional",
                input_kind="index",
                places=lambda op: op.shape("page_table")[1] * op.shape("key")[2],
            ),
            optional("attention_sink"),
        ),
        (
            attribute("head_dim_v", INTEGER),
            attribute("is_causal", BOOLEAN, True),
            attribute("scale", NUMBER, None),
        ),
        verify=_verify,
        numpy=_attention,
        primitives=latent_decode_primitives,
        lower=_lower,
        cpu=cpu_call("attention", attention_on_cpu),
    )
)
