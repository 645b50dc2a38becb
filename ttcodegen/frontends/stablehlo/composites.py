"""Operations identified by name: custom calls, composites, normalisations, quantisation.

The names are those that jax, torch_xla and tt-xla use (tt-mlir's conversion of StableHLO, 2026).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any, cast

from xdsl.dialects.builtin import IntegerType, TupleType
from xdsl.ir import BlockArgument, SSAValue

from ttcodegen.dialects.core.datatypes import element_of, shape_of, tensor_type
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.frontends.stablehlo import collectives, custom_calls, linear_algebra, movement
from ttcodegen.frontends.stablehlo.control import identity, side_effect
from ttcodegen.frontends.stablehlo.conversion import Conversion, Results, Rule, Value
from ttcodegen.frontends.stablehlo.reading.dialect import operation_class
from ttcodegen.frontends.stablehlo.reading.operations import (
    StableHLOOp,
    called_computations,
    flag,
    integer,
    integers,
    like_result,
    number,
)
from ttcodegen.frontends.stablehlo.reductions import approx_top_k
from ttcodegen.ops.core.definition import TTIR

Operands = Sequence[SSAValue]
Build = Callable[[Conversion, StableHLOOp, Operands, Mapping[str, Any]], Results]
"""Builds TTIR ops from operands and Python attribute values."""


# Attention


def _as_sink_per_head(conversion: Conversion, sink: SSAValue) -> SSAValue:
    """Attention sink as one number per head; tt-xla repeats it to a tile's width."""
    builder = conversion.builder
    shape = shape_of(sink.type)
    if len(shape) == 2:
        sink = builder.slice_dim(sink, 1, 0, 1)
        shape = (shape[0], 1)
    return builder.reshape(sink, [1, prod(shape), 1, 1])


def _attention(
    conversion: Conversion, op: StableHLOOp, operands: Operands, attributes: Mapping[str, Any]
) -> Value:
    query, key, value, *more = operands
    has_sink = flag(attributes, "has_attention_sink")
    has_mask = flag(attributes, "has_attention_mask", len(more) > int(has_sink))
    if len(more) != int(has_sink) + int(has_mask):
        raise ValueError(f"{len(operands)} operands do not fit what the attributes say")
    mask = more.pop(0) if has_mask else None
    if mask is not None and len(shape_of(mask.type)) in (2, 3):
        *batch, queries, keys = shape_of(mask.type)
        mask = conversion.builder.reshape(mask, [*(batch or [1]), 1, queries, keys])
    shape = shape_of(query.type)
    if len(shape) == 3:
        query, key, value = (_as_one_head(conversion, each) for each in (query, key, value))
    sink = _as_sink_per_head(conversion, more.pop(0)) if has_sink else None
    found = conversion.builder.emit(
        "scaled_dot_product_attention",
        [query, key, value, mask, sink],
        query.type,
        is_causal=flag(attributes, "is_causal", mask is None),
        scale=number(attributes, "scale"),
        sliding_window_size=integer(attributes, "sliding_window_size"),
    )
    return conversion.builder.reshape(found, shape)


def _as_one_head(conversion: Conversion, value: SSAValue) -> SSAValue:
    """Reshapes [batch, positions, elements] to [batch, 1, positions, elements]."""
    batch, places, elements = shape_of(value.type)
    return conversion.builder.reshape(value, [batch, 1, places, elements])


def _decode_attention(name: str) -> Build:
    """Decode attention: one new position per user over the cache."""

    def build(
        conversion: Conversion, op: StableHLOOp, operands: Operands, attributes: Mapping[str, Any]
    ) -> Value:
        rest = list(operands)
        query, key = rest.pop(0), rest.pop(0)
        latent = name == "paged_flash_multi_latent_attention_decode"
        value = rest.pop(0) if not latent or flag(attributes, "has_value") else None
        table = [rest.pop(0)] if name.startswith("paged") else []
        optionals = custom_calls.optionals(rest, attributes)
        if rest:
            raise ValueError(f"{len(operands)} operands do not fit what the attributes say")
        builder = conversion.builder
        mask, _, sink = optionals
        if sink is not None and not latent:
            optionals[2] = _as_sink_per_head(conversion, sink)
        elif sink is not None and len(shape_of(sink.type)) == 1:
            optionals[2] = builder.reshape(sink, [*shape_of(sink.type), 1])
        heads = shape_of(query.type)[2]
        if mask is not None and shape_of(mask.type)[1:3] == (heads, 1):
            optionals[0] = builder.permute(mask, [0, 2, 1, 3])
        extra: dict[str, Any] = {}
        if name == "paged_scaled_dot_product_attention_decode":
            output = conversion.filled_like(0, query)
            given: list[Any] = [query, key, value, *table, output, *optionals]
            extra["sliding_window_size"] = integer(attributes, "sliding_window_size")
        else:
            given = [query, key, value, *table, *optionals]
        if latent:
            extra["head_dim_v"] = integer(attributes, "head_dim_v")
        return builder.emit(
            name,
            given,
            like_result(op),
            is_causal=flag(attributes, "is_causal", True),
            scale=number(attributes, "scale"),
            **extra,
        )

    return build


def _chunked(
    conversion: Conversion, op: StableHLOOp, operands: Operands, attributes: Mapping[str, Any]
) -> Value:
    query = operands[0]
    output = conversion.filled_like(0, query)
    return conversion.builder.emit(
        "chunked_scaled_dot_product_attention",
        [*operands, output],
        like_result(op),
        scale=number(attributes, "scale"),
    )


def _cache_update(name: str) -> Build:
    """Ops that write rows into a cache, and may return it."""

    def build(
        conversion: Conversion, op: StableHLOOp, operands: Operands, attributes: Mapping[str, Any]
    ) -> Results:
        given: dict[str, Any] = {}
        if name in ("fill_cache", "update_cache"):
            given["batch_offset"] = integer(attributes, "batch_offset", 0)
        if name == "paged_update_cache":
            given["share_cache"] = flag(attributes, "share_cache")
        if op.results and TTIR[name].results:
            return conversion.builder.emit(name, list(operands), like_result(op), **given)
        # The op of TTIR writes in place: the result is the cache, which then has no old value.
        if op.results and _is_read_later(op, op.operands[0]):
            raise ValueError("the cache is read after it was written; use the result instead")
        conversion.builder.emit_op(name, list(operands), [], **given)
        return [operands[0]] if op.results else []

    return build


def _is_read_later(op: StableHLOOp, value: SSAValue) -> bool:
    """Returns whether an op after this one reads the value."""
    block = op.parent_block()
    assert block is not None
    users = {block.find_ancestor_op_in_block(use.operation) for use in value.uses}
    return any(user is not None and op.is_before_in_block(user) for user in users)


# Normalisations


def _normalized(name: str) -> Build:
    def build(
        conversion: Conversion, op: StableHLOOp, operands: Operands, attributes: Mapping[str, Any]
    ) -> Value:
        default = {"rms_norm": 1e-5, "layer_norm": 1e-5}[name]
        shape = attributes.get("normalized_shape")
        sizes = [shape_of(operands[0].type)[-1]] if shape is None else integers(shape)
        epsilon = number(attributes, "epsilon")
        weight = operands[1] if len(operands) > 1 else None
        bias = operands[2] if len(operands) > 2 else None
        return conversion.builder.emit(
            name,
            [operands[0], weight, bias],
            like_result(op),
            normalized_shape=sizes,
            epsilon=default if epsilon is None else epsilon,
        )

    return build


def _group_norm(
    conversion: Conversion, op: StableHLOOp, operands: Operands, attributes: Mapping[str, Any]
) -> Value:
    """Group norm of images, channels last as in the library."""
    builder = conversion.builder
    value, *rest = operands
    shape = shape_of(value.type)
    channel = (integer(attributes, "channel_dim", len(shape) - 1) or 0) % len(shape)
    order = [axis for axis in range(len(shape)) if axis != channel] + [channel]
    moved = builder.permute(value, order)
    extents = [shape[axis] for axis in order]
    image = builder.reshape(moved, [shape[order[0]], 1, prod(extents[1:-1]), extents[-1]])
    weight = rest[0] if rest else None
    bias = rest[1] if len(rest) > 1 else None
    epsilon = number(attributes, "epsilon")
    found = builder.emit(
        "group_norm",
        [image, None, weight, bias],
        image.type,
        num_groups=integer(attributes, "num_groups"),
        epsilon=1e-5 if epsilon is None else epsilon,
        channel_dim=3,
    )
    found = builder.reshape(found, extents)
    return builder.permute(found, [order.index(axis) for axis in range(len(shape))])


def _batch_norm_inference(conversion: Conversion, op: StableHLOOp) -> Value:
    operands = conversion.tensors(op)
    return conversion.builder.emit(
        "batch_norm_inference",
        operands,
        like_result(op),
        epsilon=float(op["epsilon"]),
        dimension=int(op["feature_index"]),
    )


def _statistics(
    conversion: Conversion, value: SSAValue, axes: Sequence[int]
) -> tuple[SSAValue, SSAValue, SSAValue]:
    """Mean and variance with the reduced dimensions kept, and the centred values."""
    builder = conversion.builder
    mean = builder.reduce("mean", value, axes)
    centred = builder.like("subtract", value, mean)
    variance = builder.reduce("mean", builder.like("multiply", centred, centred), axes)
    return mean, variance, centred


def _batch_norm_training(conversion: Conversion, op: StableHLOOp) -> list[Value]:
    """Batch norm with the statistics of the batch, which are results as well."""
    builder = conversion.builder
    value, scale, offset = conversion.tensors(op)
    channel = int(op["feature_index"])
    shape = shape_of(value.type)
    axes = [axis for axis in range(len(shape)) if axis != channel]
    mean, variance, centred = _statistics(conversion, value, axes)
    wide = [shape[channel] if axis == channel else 1 for axis in range(len(shape))]
    epsilon = conversion.filled(float(op["epsilon"]), wide, element_of(value.type))
    factor = builder.like("rsqrt", builder.like("add", variance, epsilon))
    factor = builder.like("multiply", factor, builder.reshape(scale, wide))
    found = builder.like("multiply", centred, factor)
    found = builder.like("add", found, builder.reshape(offset, wide))
    flat = [shape[channel]]
    return [found, builder.reshape(mean, flat), builder.reshape(variance, flat)]


def _batch_norm_grad(conversion: Conversion, op: StableHLOOp) -> list[Value]:
    """Gradients of operand, scale and offset.

    Source: https://openxla.org/stablehlo/spec#batch_norm_grad
    """
    builder = conversion.builder
    value, scale, mean, variance, gradient = conversion.tensors(op)
    channel = int(op["feature_index"])
    shape = shape_of(value.type)
    axes = [axis for axis in range(len(shape)) if axis != channel]
    wide = [shape[channel] if axis == channel else 1 for axis in range(len(shape))]
    count = prod(shape[axis] for axis in axes)
    element = element_of(value.type)
    epsilon = conversion.filled(float(op["epsilon"]), wide, element)
    inverse = builder.like("rsqrt", builder.like("add", builder.reshape(variance, wide), epsilon))
    centred = builder.like("subtract", value, builder.reshape(mean, wide))
    normal = builder.like("multiply", centred, inverse)
    weighted = builder.reduce("sum", builder.like("multiply", gradient, normal), axes)
    total = builder.reduce("sum", gradient, axes)
    inner = builder.like("multiply", gradient, conversion.filled(count, shape, element))
    inner = builder.like("subtract", inner, total)
    inner = builder.like("subtract", inner, builder.like("multiply", normal, weighted))
    factor = builder.like("multiply", builder.reshape(scale, wide), inverse)
    factor = builder.like("multiply", factor, conversion.filled(1.0 / count, wide, element))
    found = builder.like("multiply", inner, factor)
    flat = [shape[channel]]
    return [found, builder.reshape(weighted, flat), builder.reshape(total, flat)]


# Selection and activations


def _gelu(
    conversion: Conversion, op: StableHLOOp, operands: Operands, attributes: Mapping[str, Any]
) -> Value:
    return conversion.builder.like("gelu", operands[0])


def _top_k(indices: bool | None) -> Build:
    """Top-k; `indices` selects one of the two results, None both."""

    def build(
        conversion: Conversion, op: StableHLOOp, operands: Operands, attributes: Mapping[str, Any]
    ) -> list[Value]:
        value = operands[0]
        shape = list(shape_of(value.type))
        dim = (integer(attributes, "dim", -1) or 0) % len(shape)
        k = integer(attributes, "k", shape_of(op.results[0].type)[dim])
        shape[dim] = k or 1
        element = IntegerType(32) if indices is False else element_of(op.results[-1].type)
        made = conversion.builder.emit_op(
            "topk",
            [value],
            [tensor_type(element_of(value.type), shape), tensor_type(element, shape)],
            k=k,
            dim=dim,
            largest=flag(attributes, "largest", True),
            sorted=flag(attributes, "sorted", True),
        )
        if indices is None:
            return list(made.results)
        return [made.results[int(indices)]]

    return build


def _gather_along(
    conversion: Conversion, op: StableHLOOp, operands: Operands, attributes: Mapping[str, Any]
) -> Value:
    dim = (integer(attributes, "dim", 0) or 0) % len(shape_of(operands[0].type))
    return conversion.builder.emit("gather", list(operands), like_result(op), dim=dim)


def _operation(
    conversion: Conversion, op: StableHLOOp, operands: Operands, attributes: Mapping[str, Any]
) -> Results:
    """TT-Lang operation."""
    named = ("kernel_id", "version_tag", "arg_roles", "shard_spec")
    given = {name: str(attributes[name]) for name in named if name in attributes}
    results = [like_result(op, index) for index in range(len(op.results))]
    made = conversion.builder.emit_op("tt_lang_op", [list(operands)], results, **given)
    return list(made.results)


# Quantisation


def _quantized(name: str) -> Rule:
    """Quantization op; its parameters are read from the types after the whole module is
    converted."""

    def rule(conversion: Conversion, op: StableHLOOp) -> Value:
        (value,) = conversion.tensors(op)
        made = name
        if name == "quantize" and "!quant." in str(element_of(value.type)):
            made = "requantize"
        classes = conversion.builder._classes  # pyright: ignore[reportPrivateUsage]
        created = classes[made].create(operands=[value], result_types=[like_result(op)])
        created.location = op.location
        created.source_offset = op.source_offset
        conversion.builder.insert(created)
        return created.results[0]

    return rule


# Names


_BUILDS: dict[str, Build] = {
    "adamw": custom_calls.adamw,
    "all_to_all_combine": custom_calls.combine,
    "all_to_all_dispatch": custom_calls.dispatch,
    "chunked_scaled_dot_product_attention": _chunked,
    "fill_cache": _cache_update("fill_cache"),
    "flash_mla_prefill": custom_calls.prefill,
    "gather_dim": _gather_along,
    "gelu": _gelu,
    "gelu_tanh": _gelu,
    "group_norm": _group_norm,
    "indexer_score": custom_calls.indexer_score,
    "indexer_score_dsa": custom_calls.indexer_score,
    "layer_norm": _normalized("layer_norm"),
    "moe_expert_token_remap": custom_calls.remap,
    "paged_fill_cache": _cache_update("paged_fill_cache"),
    "paged_flash_mla_decode": _decode_attention("paged_flash_multi_latent_attention_decode"),
    "paged_flash_multi_latent_attention_decode": _decode_attention(
        "paged_flash_multi_latent_attention_decode"
    ),
    "paged_scaled_dot_product_attention_decode": _decode_attention(
        "paged_scaled_dot_product_attention_decode"
    ),
    "paged_update_cache": _cache_update("paged_update_cache"),
    "rms_norm": _normalized("rms_norm"),
    "sampling": custom_calls.sampled,
    "scaled_dot_product_attention": _attention,
    "scaled_dot_product_attention_decode": _decode_attention("scaled_dot_product_attention_decode"),
    "sdpa_bw": custom_calls.attention_backward,
    "sdpa_fw": custom_calls.attention_forward,
    "sparse_matmul": custom_calls.sparse_matmul,
    "sparse_sdpa": custom_calls.sparse_attention,
    "topk": _top_k(None),
    "topk_indices": _top_k(True),
    "topk_large_indices": _top_k(True),
    "topk_values": _top_k(False),
    "tt_lang_op": _operation,
    "uniform": movement.uniform,
    "update_cache": _cache_update("update_cache"),
}
"""TTIR builders of `tt.*` custom calls and `tenstorrent.*` composites, by name."""
_IDENTITIES = frozenset(
    """
    LayoutConstraint MoveToDevice MoveToHost PinToDevice Pin Unpin annotate_device_placement
    xla.sdy.FuncResultSharding xla.sdy.PropagationBarrier xla.sdy.ShardingGroup
    """.split()
)
_SHARDINGS = frozenset(
    """
    Sharding xla.sdy.GlobalToLocalShape
    xla.sdy.LocalToGlobalShape tt.sharding_constraint
    """.split()
)
_FACTORIZATIONS = re.compile(
    r"^(lapack|cusolver|hipsolver|cublas)_|^(Qr|Eigh|Schur|Hessenberg|LuDecomposition|Cholesky|"
    r"ProductOfElementaryHouseholderReflectors|InvertDiagBlocks\w+)$"
)
"""Custom calls of jax.numpy.linalg factorizations."""
_EFFECTS = re.compile(r"callback|print|infeed|outfeed|host_transfer", re.IGNORECASE)


def _custom_call(conversion: Conversion, op: StableHLOOp) -> Results:
    """Custom call, whose results may be wrapped in a tuple."""
    type_ = op.results[0].type if len(op.results) == 1 else None
    if not isinstance(type_, TupleType):
        return _called(conversion, op)
    apart = type(op).create(
        operands=op.operands,
        result_types=type_.types.data,
        properties=dict(op.properties),
        attributes=dict(op.attributes),
        location=op.location,
    )
    apart.source_offset = op.source_offset
    apart.given.update(op.given)
    try:
        found = _called(conversion, apart)
    finally:
        apart.drop_all_references()
    return tuple(found) if isinstance(found, list) else (found,)


def _called(conversion: Conversion, op: StableHLOOp) -> Results:
    name = str(op["call_target_name"])
    if name == "SPMDFullToShardShape":
        return collectives.full_to_shard(conversion, op)
    if name == "SPMDShardToFullShape":
        return collectives.shard_to_full(conversion, op)
    if name in _SHARDINGS or name in _IDENTITIES:
        return identity(conversion, op)
    if name in ("tt.mark_argument", "tt.weight_dtype_override"):
        return _marked(conversion, op)
    if name == "shape_assertion":
        raise CompileError(
            "the program has shapes that are only known at run time, which it checks here",
            op,
            remedy="export the function for arguments of fixed shape",
        )
    dialect, _, short = name.partition(".")
    if dialect in ("tt", "tenstorrent") and short in _BUILDS:
        return _BUILDS[short](conversion, op, conversion.tensors(op), _options(op))
    if dialect in ("mhlo", "chlo", "stablehlo"):
        rule = conversion.rules.get(short)
        if rule is not None and operation_class(f"mhlo.{short}") is not None:
            op.given.update(_nested(op, "mhlo.attributes"))
            return rule(conversion, op)
        if short == "topk":
            op.given.update(_nested(op, "mhlo.attributes"))
            return conversion.rules["top_k"](conversion, op)
    if name == "ApproxTopK":
        return _approx_top_k(conversion, op)
    if name == "TopK":
        op.given["k"] = shape_of(op.results[0].type)[-1]
        return conversion.rules["top_k"](conversion, op)
    if _EFFECTS.search(name):
        side_effect(conversion, op)
    factorize = linear_algebra.factorization(name)
    if factorize is not None:
        return factorize(conversion, op, _nested(op, "mhlo.backend_config"))
    if _FACTORIZATIONS.search(name):
        raise CompileError(
            f"the custom call '@{name}' factorizes a matrix in a way that is not supported",
            op,
            remedy="compute the factors before, and pass them as arguments, or keep this part in "
            "the program that calls the model",
        )
    remedy = "write what it computes in ops of StableHLO"
    if dialect in ("tt", "tenstorrent"):
        remedy = "there is no op for it; lower the model without the tt-xla pass that makes it"
    raise CompileError(f"the custom call '@{name}' is not supported", op, remedy=remedy)


def _approx_top_k(conversion: Conversion, op: StableHLOOp) -> Results:
    called = called_computations(op)
    function = conversion.functions.get(called[0]) if called else None
    if function is None or not function.body.blocks:
        raise CompileError(
            "the custom call '@ApproxTopK' names no function that compares elements",
            op,
            remedy="keep the function of its called_computations in the module",
        )
    options = _nested(op, "mhlo.backend_config") or _options(op)
    return approx_top_k(conversion, op, options, function.body.block)


def _options(op: StableHLOOp) -> dict[str, Any]:
    """Options of a custom call.

    They come from frontend attributes, `composite_attributes`, a JSON configuration, or beside the
    other attributes.
    """
    found = dict(op.attributes)
    options: dict[str, Any] = {name: op.get(name) for name in found}
    config = op.get("backend_config")
    if isinstance(config, str) and config.lstrip().startswith("{"):
        try:
            options |= json.loads(config)
        except ValueError:
            pass
    elif isinstance(config, dict):
        options |= config
    for name in ("mhlo.frontend_attributes", "composite_attributes", "tt.composite_attributes"):
        options |= _nested(op, name)
    return options


def _nested(op: StableHLOOp, name: str) -> dict[str, Any]:
    value = op.get(name)
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _marked(conversion: Conversion, op: StableHLOOp) -> Value:
    """Mark of an argument: its name, its kind and the storage type of weights."""
    (value,) = conversion.values(op)
    options = _nested(op, "mhlo.frontend_attributes")
    source = value
    while isinstance(source, SSAValue) and not isinstance(source, BlockArgument):
        owner = source.owner
        if not isinstance(owner, CatalogueOp) or owner.name != "ttir.reshape":
            break
        source = owner.operands[0]
    if isinstance(source, BlockArgument):
        said = conversion.arguments.setdefault(source, {})
        for name in ("ttir.name", "ttcore.argument_type", "ttcore.weight_dtype"):
            if name in options:
                said[name] = str(options[name])
    return value


def _composite(conversion: Conversion, op: StableHLOOp) -> Results:
    name = str(op["name"])
    decomposition = op.get("decomposition")
    dialect, _, short = name.partition(".")
    if dialect == "tenstorrent" and short in _BUILDS:
        return _BUILDS[short](
            conversion, op, conversion.tensors(op), _nested(op, "composite_attributes")
        )
    if name == "sdy.all_slice" and (found := collectives.all_slice(conversion, op)) is not None:
        return found
    if not isinstance(decomposition, str) or decomposition not in conversion.functions:
        raise CompileError(
            f"the composite '{name}' is not known, and the function that computes it is missing",
            op,
        )
    return conversion.call(decomposition, conversion.values(op), op)


RULES: dict[str, Rule] = {
    "batch_norm_grad": _batch_norm_grad,
    "batch_norm_inference": _batch_norm_inference,
    "batch_norm_training": _batch_norm_training,
    "composite": _composite,
    "custom_call": _custom_call,
    "uniform_dequantize": _quantized("dequantize"),
    "uniform_quantize": _quantized("quantize"),
}
