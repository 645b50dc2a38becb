"""Prefill attention of a chunk of a prompt over key and value caches in pages."""

from __future__ import annotations

from xdsl.dialects.builtin import TensorType
from xdsl.ir import SSAValue

from ttcodegen.dialects.core.datatypes import bf16
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttcore.tile import whole_tiles
from ttcodegen.foundation.lazy_numpy import Array, np
from ttcodegen.ops.attention.primitives import chunked_primitives
from ttcodegen.ops.attention.reference import attend, default_scale, hidden
from ttcodegen.ops.attention.sdpa import (
    ATTENDED,
    SCALE,
    padded_to,
    scaled,
    takes_scale,
    verify_scale,
)
from ttcodegen.ops.attention.sdpa_decode import (
    CACHES,
    PLACES,
    SCALE_ATTRIBUTE,
    TABLE,
    attention_on_cpu,
    scale_of,
    unpaged,
    verify_pages,
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
    operand,
    register,
)
from ttcodegen.ops.core.dimensions import expect_shape, require
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
    expect_shape(op, query)


def _lower_chunked(builder: OpBuilder, op: CatalogueOp) -> SSAValue:
    """The library takes head sizes of whole tiles, and bf16. A scale that it cannot do with goes to
    the query."""
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
    """The library's kernels want a multiple of the chunks that they work in; zero is."""
    return 1


register(
    TTIRDefinition(
        "ttir.chunked_scaled_dot_product_attention",
        (
            *CACHES,
            TABLE,
            operand("chunk_start_idx", input_kind="index", places=_first),
            operand("output"),  # a destination that holds nothing of use
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
