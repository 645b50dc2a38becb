"""Custom calls of models: sparse attention, decode, caches, training, mixture of experts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from xdsl.dialects.builtin import IntegerType, i32
from xdsl.ir import SSAValue

from ttcodegen.dialects.core.datatypes import element_of, f32, i1, shape_of, tensor_type
from ttcodegen.frontends.stablehlo.conversion import Conversion, Results, Value
from ttcodegen.frontends.stablehlo.reading.operations import (
    StableHLOOp,
    flag,
    integer,
    like_result,
    number,
)
from ttcodegen.frontends.translation import write_cache
from ttcodegen.ops.collectives.schedule import TensorParts
from ttcodegen.ops.training.attention import MASKS
from ttcodegen.ops.training.steps import ADAMW_NUMBERS

# Custom calls of models with latent attention and experts, of which few are active: what tt-xla
# calls kernels for that not every device has, made of ops that all of them have.
#
# What they compute is what tt-xla says of them for the CPU (`tt_torch.custom_ops`, 2026).

Operands = Sequence[SSAValue]
_INFINITY = float("inf")


def _operands(op: StableHLOOp, operands: Operands, *names: str) -> Operands:
    if len(operands) != len(names):
        raise ValueError(f"'{op['call_target_name']}' takes {', '.join(names)}")
    return operands


def prefill(
    conversion: Conversion, op: StableHLOOp, operands: Operands, attributes: Mapping[str, Any]
) -> Value:
    """Prefill attention; without values, the first elements of the keys are the values.

    query [B, heads, S, D], key [B, key heads, S, D], then, by the attributes, value [B, key heads,
    S, head_dim_v] and an additive mask [B, 1, S, S]; results in [B, heads, S, head_dim_v].
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
            [query, key, _pad_to_key_size(conversion, value, key), mask, None],
            query.type,
            is_causal=flag(attributes, "is_causal", mask is None),
            scale=number(attributes, "scale"),
        ),
        integer(attributes, "head_dim_v") or shape_of(value.type)[-1],
    )


def _pad_to_key_size(conversion: Conversion, value: SSAValue, key: SSAValue) -> SSAValue:
    """Pads `value` with zeros to the head size of `key`."""
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
    """`sum over heads of weight * relu(query key^T)`, -inf for keys after the query.

    query [B, heads, S, D], key [B, 1, T, D], weight [B, heads, S, 1]; results in [B, 1, S, T]. The
    first query is at position `chunk_start_idx` of the keys.
    """
    builder = conversion.builder
    query, key, weight = _operands(op, operands, "query", "key", "weight")
    batch, heads, queries, depth = shape_of(query.type)
    keys = shape_of(key.type)[2]
    element = element_of(query.type)
    start = integer(attributes, "chunk_start_idx", 0) or 0
    if start < 0:
        raise ValueError(f"'chunk_start_idx' is {start}, and the first key is number 0")
    axis = integer(attributes, "cluster_axis")
    if axis not in (None, 0, 1):
        raise ValueError(f"a mesh has the axes 0 and 1, found 'cluster_axis' {axis}")
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
    last = _position_range(conversion, start, queries, 2)
    visible = builder.broadcasting("ge", last, _position_range(conversion, 0, keys, 3), element=i1)
    hidden = conversion.filled(-_INFINITY, shape_of(score.type), element)
    return builder.emit(
        "where",
        [conversion.broadcast_to(visible, shape_of(score.type)), score, hidden],
        like_result(op),
    )


def _position_range(conversion: Conversion, start: int, count: int, dim: int) -> SSAValue:
    """Range of `count` integers from `start` along one of four dimensions."""
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
    """Sparse attention of each query to its listed keys; values are the keys' first `v_dim`
    elements.

    query [B, heads, S, D], keys [B, 1, T, D], indices [B, 1, S, K], of which out-of-range ones are
    ignored; results in [B, heads, S, v_dim].
    """
    builder = conversion.builder
    query, keys, indices = _operands(op, operands, "query", "kv", "indices")
    width = integer(attributes, "v_dim")
    if width is None:
        raise ValueError(f"'{op['call_target_name']}' needs the attribute 'v_dim'")
    found = builder.emit(
        "scaled_dot_product_attention",
        [
            query,
            keys,
            keys,
            _mask_of_listed(conversion, indices, keys, element_of(query.type)),
            None,
        ],
        query.type,
        is_causal=False,
        scale=number(attributes, "scale"),
    )
    return _cut(conversion, found, width)


def _mask_of_listed(
    conversion: Conversion, indices: SSAValue, keys: SSAValue, element: Any
) -> SSAValue:
    """Additive mask [B, 1, S, T] that hides all keys but the listed ones.

    Sentinels (-1 or 2^32 - 1) are scattered to an extra position after the last key.
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
    """Product of rows with each expert's weights, zero for experts without tokens.

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


# Decoding calls with optional operands, and sampling of the next token.

_OPTIONALS = ("attention_mask", "cur_pos_tensor", "attention_sink")
"""Optional operands of decode attention, whose presence `has_...` attributes declare."""


def optionals(rest: list[SSAValue], attributes: Mapping[str, Any]) -> list[SSAValue | None]:
    """Pops the optional operands of decode attention from `rest`.

    Without `has_...` attributes, types identify them: positions are integers, a mask has rank 4.
    """
    if any(f"has_{kind}" in attributes for kind in _OPTIONALS):
        return [
            rest.pop(0) if flag(attributes, f"has_{kind}") and rest else None for kind in _OPTIONALS
        ]
    found: dict[str, SSAValue] = {}
    for value in rest:
        if isinstance(element_of(value.type), IntegerType):
            kind = "cur_pos_tensor"
        else:
            kind = "attention_mask" if len(shape_of(value.type)) == 4 else "attention_sink"
        if kind in found:
            raise ValueError(f"two operands may be its {kind}: say which with has_{kind}")
        found[kind] = value
    rest.clear()
    return [found.get(kind) for kind in _OPTIONALS]


def sampled(
    conversion: Conversion,
    op: StableHLOOp,
    operands: Sequence[SSAValue],
    attributes: Mapping[str, Any],
) -> Value:
    """Sampling of a token per user from values, indices, k, p and temperature."""
    if len(operands) != 5:
        raise ValueError(f"it takes values, indices, k, p and temperatures, not {len(operands)}")
    seed = integer(attributes, "seed")
    return conversion.builder.emit("sampling", list(operands), like_result(op), seed=seed)


# Caches of keys and values that are written in place.


def cached(
    conversion: Conversion,
    cache: SSAValue,
    update: SSAValue,
    starts: Sequence[int | SSAValue],
) -> bool:
    """Writes a slice into a cache in place; returns whether it could.

    Requires a donated argument with no other reader. The library writes one position of all users
    (users, heads, positions, size), or whole tiles of positions from the first on.
    """
    if cache not in conversion.donated or not conversion.is_only_read(cache):
        return False
    if any(start != 0 for axis, start in enumerate(starts) if axis != 2):
        return False
    return len(starts) == 4 and write_cache(conversion.builder, cache, update, starts[2])


# Steps of training and mixtures of experts, as tt-xla names them: composites `tenstorrent.*` and
# custom calls `tt.*` that are one op of TTIR each.


def _emit_padded(
    conversion: Conversion, op: StableHLOOp, name: str, operands: Operands, count: int, **given: Any
) -> list[SSAValue]:
    """Emits an op with the results of the call; `count` is its number of operands, optional ones
    included."""
    if not count - 1 <= len(operands) <= count:
        raise ValueError(f"{len(operands)} operands do not fit {name}")
    padded = [*operands, *[None] * (count - len(operands))]
    types = [like_result(op, index) for index in range(len(op.results))]
    return list(conversion.builder.emit_op(name, padded, types, **given).results)


def adamw(
    conversion: Conversion, op: StableHLOOp, operands: Operands, attributes: Mapping[str, Any]
) -> Results:
    """AdamW: parameter, gradient, both moments and optionally the maximum second moment."""
    given: dict[str, Any] = {name: number(attributes, name) for name in ADAMW_NUMBERS}
    rounding = flag(attributes, "stochastic_rounding")
    return _emit_padded(conversion, op, "adamw", operands, 5, **given, stochastic_rounding=rounding)


def _mask_of(attributes: Mapping[str, Any], default: int) -> str:
    kind = integer(attributes, "mask_type", default)
    if kind is None or not 0 <= kind < len(MASKS):
        raise ValueError(f"'mask_type' has to be from 0 to {len(MASKS) - 1}, found {kind}")
    return MASKS[kind]


def attention_forward(
    conversion: Conversion, op: StableHLOOp, operands: Operands, attributes: Mapping[str, Any]
) -> Results:
    """Attention forward: query, key, value and optionally a mask; a second result holds
    intermediates."""
    return _emit_padded(
        conversion,
        op,
        "sdpa_fw",
        operands,
        4,
        mask_type=_mask_of(attributes, 1),
        dropout_probability=number(attributes, "dropout_probability") or 0.0,
        return_intermediates=len(op.results) == 2,
    )


def attention_backward(
    conversion: Conversion, op: StableHLOOp, operands: Operands, attributes: Mapping[str, Any]
) -> Results:
    """Attention backward: gradient, forward output, forward operands, intermediates,
    optional mask."""
    return _emit_padded(
        conversion,
        op,
        "sdpa_bw",
        operands,
        7,
        mask_type=_mask_of(attributes, 2),
        dropout_probability=number(attributes, "dropout_probability") or 0.0,
    )


def dispatch(
    conversion: Conversion, op: StableHLOOp, operands: Operands, attributes: Mapping[str, Any]
) -> Results:
    """Dispatch: tokens, their experts and the experts' devices."""
    given = {name: integer(attributes, name) for name in ("num_devices", "cluster_axis")}
    return _emit_padded(conversion, op, "all_to_all_dispatch", operands, 3, **given)


def combine(
    conversion: Conversion, op: StableHLOOp, operands: Operands, attributes: Mapping[str, Any]
) -> Results:
    """Combine: sums expert outputs by the tokens' experts and their devices.

    Outputs of experts along the other mesh axis are reduced as well.
    """
    names = ("num_devices", "cluster_axis", "num_experts_per_tok", "output_shard_dim")
    given = {name: integer(attributes, name) for name in names}
    made = _emit_padded(conversion, op, "all_to_all_combine", operands, 3, **given)
    devices, axis = given["num_devices"] or 1, given["cluster_axis"]
    owners = shape_of(op.operands[2].type)[-1]
    if devices == 1 or owners <= devices or axis not in (0, 1):
        return made
    parts = TensorParts(conversion.builder, conversion.mesh.shape)
    return [parts.reduce(value, "sum", 1 - axis) for value in made]


def remap(
    conversion: Conversion, op: StableHLOOp, operands: Operands, attributes: Mapping[str, Any]
) -> Results:
    """Remap: scores, devices of the experts and experts of the tokens."""
    size = integer(attributes, "reduction_size", 32)
    return _emit_padded(conversion, op, "moe_expert_token_remap", operands, 3, reduction_size=size)
