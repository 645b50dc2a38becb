"""Custom calls of models with latent attention and experts, of which few are active: what
tt-xla calls kernels for that not every device has, made of ops that all of them have.

What they compute is what tt-xla says of them for the CPU (`tt_torch.custom_ops`, 2026).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue

from ttcodegen.dialects.core.datatypes import element_of, f32, i1, shape_of, tensor_type
from ttcodegen.frontends.stablehlo.conversion import Conversion, Value
from ttcodegen.frontends.stablehlo.reading.call_options import flag, integer, like_result, number
from ttcodegen.frontends.stablehlo.reading.operations import StableHLOOp

Operands = Sequence[SSAValue]
_INFINITY = float("inf")


def _operands(op: StableHLOOp, operands: Operands, *names: str) -> Operands:
    if len(operands) != len(names):
        raise ValueError(f"'{op['call_target_name']}' takes {', '.join(names)}")
    return operands


def prefill(
    conversion: Conversion, op: StableHLOOp, operands: Operands, attributes: Mapping[str, Any]
) -> Value:
    """Attention whose values are, where none are given, the first elements of the keys.

    query [B, heads, S, D], key [B, key heads, S, D], then, as the attributes say, value
    [B, key heads, S, head_dim_v] and an additive mask [B, 1, S, S]; gives [B, heads, S,
    head_dim_v].
    """
    builder = conversion.builder
    query, key, *rest = operands
    has_value = flag(attributes, "has_value")
    has_mask = flag(attributes, "has_attention_mask")
    if len(rest) != int(has_value) + int(has_mask):
        raise ValueError(f"{len(operands)} operands do not fit what the attributes say")
    value = rest.pop(0) if has_value else key
    mask = rest.pop(0) if has_mask else None
    return _cut(
        conversion,
        builder.emit(
            "scaled_dot_product_attention",
            [query, key, _as_wide(conversion, value, key), mask, None],
            query.type,
            is_causal=flag(attributes, "is_causal", mask is None),
            scale=number(attributes, "scale"),
        ),
        integer(attributes, "head_dim_v") or shape_of(value.type)[-1],
    )


def _as_wide(conversion: Conversion, value: SSAValue, key: SSAValue) -> SSAValue:
    """`value` with zeros after its elements, so that a head is as wide as those of the keys."""
    missing = shape_of(key.type)[-1] - shape_of(value.type)[-1]
    if missing <= 0:
        return value
    zeros = conversion.filled(0, [*shape_of(value.type)[:-1], missing], element_of(value.type))
    return conversion.builder.concat([value, zeros], len(shape_of(value.type)) - 1)


def _cut(conversion: Conversion, value: SSAValue, size: int) -> SSAValue:
    return conversion.builder.slice_dim(value, len(shape_of(value.type)) - 1, 0, size)


def indexer_score(
    conversion: Conversion, op: StableHLOOp, operands: Operands, attributes: Mapping[str, Any]
) -> Value:
    """`sum over heads of weight * relu(query key^T)`, -inf at the keys after each query.

    query [B, heads, S, D], key [B, 1, T, D], weight [B, heads, S, 1]; gives [B, 1, S, T]. The first
    query is at position `chunk_start_idx` of the keys.
    """
    builder = conversion.builder
    query, key, weight = _operands(op, operands, "query", "key", "weight")
    batch, heads, queries, depth = shape_of(query.type)
    keys = shape_of(key.type)[2]
    element = element_of(query.type)
    start = integer(attributes, "chunk_start_idx", 0) or 0
    if start < 0:
        raise ValueError(f"'chunk_start_idx' is {start}, and the first key is number 0")
    rows = builder.reshape(query, [batch, 1, heads * queries, depth])
    products = builder.emit(
        "matmul",
        [rows, key],
        tensor_type(element, [batch, 1, heads * queries, keys]),
        transpose_b=True,
    )
    products = builder.reshape(products, [batch, heads, queries, keys])
    weighted = builder.like("multiply", builder.like("relu", products), weight)
    score = builder.reduce("sum", weighted, [1])
    last = _places(conversion, start, queries, 2)
    visible = builder.broadcasting("ge", last, _places(conversion, 0, keys, 3), element=i1)
    hidden = conversion.filled(-_INFINITY, shape_of(score.type), element)
    return builder.emit(
        "where",
        [conversion.broadcast_to(visible, shape_of(score.type)), score, hidden],
        like_result(op),
    )


def _places(conversion: Conversion, start: int, count: int, dim: int) -> SSAValue:
    """The numbers from `start`, along one of four dimensions."""
    shape = [count if axis == dim else 1 for axis in range(4)]
    return conversion.builder.emit(
        "arange",
        [],
        tensor_type(f32, shape),
        start=start,
        end=start + count,
        step=1,
        arange_dimension=dim,
    )


def sparse_attention(
    conversion: Conversion, op: StableHLOOp, operands: Operands, attributes: Mapping[str, Any]
) -> Value:
    """Attention of each query to the keys that are listed for it; values are the first `v_dim`
    elements of the keys.

    query [B, heads, S, D], keys [B, 1, T, D], indices [B, 1, S, K], where what is not the index of
    a key counts for nothing; gives [B, heads, S, v_dim].
    """
    builder = conversion.builder
    query, keys, indices = _operands(op, operands, "query", "kv", "indices")
    width = integer(attributes, "v_dim")
    if width is None:
        raise ValueError(f"'{op['call_target_name']}' needs the attribute 'v_dim'")
    found = builder.emit(
        "scaled_dot_product_attention",
        [query, keys, keys, _listed(conversion, indices, keys, element_of(query.type)), None],
        query.type,
        is_causal=False,
        scale=number(attributes, "scale"),
    )
    return _cut(conversion, found, width)


def _listed(conversion: Conversion, indices: SSAValue, keys: SSAValue, element: Any) -> SSAValue:
    """The additive mask [B, 1, S, T] that hides all keys but those listed.

    What is no index of a key, a sentinel of -1 or of 2^32 - 1, is written after the last one.
    """
    builder = conversion.builder
    batch, _, queries, count = shape_of(indices.type)
    length = shape_of(keys.type)[2]
    places = builder.typecast(builder.reshape(indices, [batch, queries, count]), f32)

    def all_of(value: float) -> SSAValue:
        return conversion.filled(value, [batch, queries, count], f32)

    listed = builder.like(
        "logical_and",
        builder.like("ge", places, all_of(0), element=i1),
        builder.like("lt", places, all_of(length), element=i1),
    )
    places = builder.emit("where", [listed, places, all_of(length)], places.type)
    mask = builder.like(
        "scatter",
        conversion.filled(-_INFINITY, [batch, queries, length + 1], f32),
        builder.typecast(places, i32),
        all_of(0),
        dim=2,
    )
    mask = builder.typecast(builder.slice_dim(mask, 2, 0, length), element)
    return builder.reshape(mask, [batch, 1, queries, length])


def sparse_matmul(
    conversion: Conversion, op: StableHLOOp, operands: Operands, attributes: Mapping[str, Any]
) -> Value:
    """A product with the weights of each expert, zero where no row was sent to it.

    Weights are [1, E, K, N]. With `is_input_a_sparse`, rows [A, E, M, K] and flags [1, 1, A, E]
    give [A, E, M, N]; else rows [A, B, M, K] and flags [A, B, 1, E] give [A, B, 1, E, M, N].
    """
    rows, weights, flags = _operands(op, operands, "rows", "weights", "sparsity")
    return conversion.builder.emit(
        "sparse_matmul",
        [rows, weights, flags],
        like_result(op),
        is_input_a_sparse=flag(attributes, "is_input_a_sparse"),
        is_input_b_sparse=flag(attributes, "is_input_b_sparse", True),
    )
