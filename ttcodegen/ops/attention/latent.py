"""Attention over a cache of latent vectors, which hold keys and values of all heads at once."""

from __future__ import annotations

from xdsl.ir import SSAValue

from ttcodegen.dialects.core.datatypes import shape_of
from ttcodegen.dialects.operations.attribute_kinds import BOOLEAN, INTEGER, NUMBER
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.foundation.lazy_numpy import Array
from ttcodegen.ops.attention.primitives import latent_decode_primitives, latent_vectors
from ttcodegen.ops.attention.reference import default_scale
from ttcodegen.ops.attention.sdpa import verify_mask
from ttcodegen.ops.attention.sdpa_decode import (
    attention_on_cpu,
    decode,
    decode_spelled_out,
    gathered,
    unpaged,
    verify_positions,
    verify_sink,
)
from ttcodegen.ops.core.builder import OpBuilder
from ttcodegen.ops.core.definition import (
    Call,
    OperandSpec,
    TTIRDefinition,
    attribute,
    operand,
    optional,
    register,
)
from ttcodegen.ops.core.dimensions import expect_shape, require
from ttcodegen.ops.core.lowering import cpu_call


def _verify(op: CatalogueOp) -> None:
    """Query (1, users, heads, head size), keys in pages of one head; without values, the first
    `head_dim_v` elements of the keys are the values."""
    query, key, table = op.shape("query"), op.shape("key"), op.shape("page_table")
    require(op, len(query) == 4 and query[0] == 1, "a query (1, users, heads, head size)", query)
    _, users, heads, size = query
    fits = len(key) == 4 and (key[1], key[3]) == (1, size)
    require(op, fits, f"keys (pages, 1, page size, {size})", key)
    require(op, len(table) == 2 and table[0] == users, f"a page_table with {users} rows", table)
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
    """The pages of each user are put together; the rest is attention as for any other cache."""
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
