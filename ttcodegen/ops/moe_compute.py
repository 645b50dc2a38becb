"""Mixture of experts: what the experts compute."""

from __future__ import annotations

from math import prod, sqrt

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, SSAValue

from ttcodegen.dialects.attribute_kinds import ENUMERATOR, INTEGER
from ttcodegen.dialects.datatypes import element_of, f32, shape_of
from ttcodegen.dialects.operation import CatalogueOp
from ttcodegen.lazy_numpy import Array, np
from ttcodegen.ops.definition import (
    Call,
    TTIRDefinition,
    attribute,
    operand,
    optional,
    register,
)
from ttcodegen.ops.elementwise_unary import sigmoid
from ttcodegen.ops.experts import expert_operand, picked, picked_results
from ttcodegen.ops.op_builder import OpBuilder
from ttcodegen.ops.refusals import SEVERAL_DEVICES
from ttcodegen.ops.shape_checks import expect_rank, expect_shape, require

Shape = tuple[int, ...]

_STEEPNESS, _LIMIT = 1.702, 7.0
"""Of the gated activation that the reference calls swiglu: how steep its sigmoid is, and where gate
and value are cut off (its `_swiglu_reference`)."""
_TANH_FACTOR, _TANH_CUBIC = sqrt(0.6366197723675814), 0.044715
"""gelu(x) = x / 2 * (1 + tanh(factor * (x + cubic * x^3))), factor^2 being 2 / pi."""
_WEIGHTS, _BIASES = ("w0", "w1", "w2"), ("bias_0", "bias_1", "bias_2")
_TOKENS = "tilize_input_tensor"
_NAMED = "tilize_expert_indices_tensor"
_OWNERS = "tilize_expert_mapping_tensor"


def _silu_gate(gate: Array, up: Array) -> Array:
    return gate * sigmoid(gate) * up


def _gelu_gate(gate: Array, up: Array) -> Array:
    inner = np.tanh(_TANH_FACTOR * (gate + _TANH_CUBIC * gate**3))
    return 0.5 * gate * (1 + inner) * up


def _swiglu_gate(gate: Array, up: Array) -> Array:
    gate, up = np.minimum(gate, _LIMIT), np.clip(up, -_LIMIT, _LIMIT)
    return (up + 1) * gate * sigmoid(_STEEPNESS * gate)


_GATES = {"silu": _silu_gate, "gelu": _gelu_gate, "swiglu": _swiglu_gate}


def _emit_gate(builder: OpBuilder, kind: str, gate: SSAValue, up: SSAValue) -> SSAValue:
    """As the function of `_GATES`, of f32."""

    def number(value: float) -> SSAValue:
        return builder.full([1] * len(shape_of(gate.type)), value, f32)

    def with_number(name: str, value: SSAValue, operand_: float) -> SSAValue:
        return builder.broadcasting(name, value, number(operand_))

    def product(*values: SSAValue) -> SSAValue:
        result = values[0]
        for value in values[1:]:
            result = builder.like("multiply", result, value)
        return result

    if kind == "silu":
        return product(builder.like("silu", gate), up)
    if kind == "gelu":
        cubed = with_number("multiply", product(gate, gate, gate), _TANH_CUBIC)
        inner = with_number("multiply", builder.like("add", gate, cubed), _TANH_FACTOR)
        inner = with_number("add", builder.like("tanh", inner), 1.0)
        return product(with_number("multiply", gate, 0.5), inner, up)
    gate = with_number("minimum", gate, _LIMIT)
    up = builder.like("clamp_scalar", up, min=-_LIMIT, max=_LIMIT)
    share = builder.like("sigmoid", with_number("multiply", gate, _STEEPNESS))
    return product(with_number("add", up, 1.0), gate, share)


def _verify_moe_compute(op: CatalogueOp) -> None:
    """Tokens (..., hidden), experts of each (..., k), weights (layers, experts, hidden,
    intermediate), twice, and (layers, experts, intermediate, hidden), to (k, tokens, hidden)."""
    tokens = op.shape(_TOKENS)
    require(op, len(tokens) > 1, f"{_TOKENS} of rank 2 or more", tokens)
    expect_rank(op, 4, *_WEIGHTS)
    layers, experts, hidden, inner = op.shape("w0")
    require(op, tokens[-1] == hidden, f"tokens of {hidden} elements, as w0 has it", tokens)
    sizes = {"w1": (layers, experts, hidden, inner), "w2": (layers, experts, inner, hidden)}
    widths = (inner, inner, hidden)
    sizes |= {name: (layers, experts, width) for name, width in zip(_BIASES, widths, strict=True)}
    given = [op.optional_operand(name) is not None for name in _BIASES]
    require(op, len(set(given)) == 1, "all three biases or none", f"{sum(given)} of them")
    for name, expected in sizes.items():
        value = op.optional_operand(name)
        if value is not None:
            found = shape_of(value.type)
            require(op, found == expected, f"{name} of shape {expected}", found)
    layer, size = op.parameter("layer_id"), op.parameter("intermediate_size")
    require(op, 0 <= layer < layers, f"a layer_id from 0 to {layers - 1}", layer)
    require(op, size == inner, f"an intermediate_size of {inner}, as w0 has it", size)
    kind = op.parameter("activation_function")
    require(op, kind in _GATES, f"activation_function to be one of {', '.join(_GATES)}", kind)
    named, count = op.shape(_NAMED), prod(tokens[:-1])
    require(op, prod(named[:-1]) == count, f"experts of {count} tokens", named)
    if _moe_on_several_devices(op) is None:
        expect_shape(op, (named[-1], count, hidden))


def _moe_on_several_devices(op: CatalogueOp) -> str | None:
    """All experts of the mapping (devices, experts) have weights here if there is one device."""
    owners = op.shape(_OWNERS)
    return None if prod(owners) == op.shape("w0")[1] else SEVERAL_DEVICES


def _moe_compute(call: Call) -> Array:
    tokens = call.array(_TOKENS)
    tokens = tokens.reshape(-1, tokens.shape[-1])
    layer = call["layer_id"]
    w0, w1, w2 = (call.array(name)[layer] for name in _WEIGHTS)
    biases = [call.optional(name) for name in _BIASES]
    b0, b1, b2 = (0 if bias is None else bias[layer][:, np.newaxis] for bias in biases)
    inner = _GATES[call["activation_function"]](tokens @ w0 + b0, tokens @ w1 + b1)
    return picked(inner @ w2 + b2, call.array(_NAMED))


def _decompose_moe_compute(builder: OpBuilder, op: CatalogueOp) -> SSAValue:
    """All experts compute all tokens, in one product each; those that were asked are picked."""
    tokens = builder.operand(op, _TOKENS)
    element = element_of(tokens.type)
    _, experts, hidden, inner = op.shape("w0")
    count, layer = prod(op.shape(_TOKENS)[:-1]), op.parameter("layer_id")
    tokens = builder.reshape(tokens, (1, count, hidden))

    def layered(name: str, shape: Shape, wanted: Attribute) -> SSAValue | None:
        value = builder.optional(op, name)
        if value is None:
            return None
        value = builder.reshape(builder.slice_dim(value, 0, layer, layer + 1), shape)
        return builder.typecast(value, wanted)

    def multiplied(value: SSAValue, index: int, rows: int, columns: int) -> SSAValue:
        weight = layered(_WEIGHTS[index], (experts, rows, columns), element)
        assert weight is not None
        result = TensorType(f32, [experts, count, columns])
        product = builder.emit("matmul", [value, weight], result)
        bias = layered(_BIASES[index], (experts, 1, columns), f32)
        return product if bias is None else builder.broadcasting("add", product, bias)

    gate, up = (multiplied(tokens, index, hidden, inner) for index in (0, 1))
    gated = _emit_gate(builder, op.parameter("activation_function"), gate, up)
    made = multiplied(builder.typecast(gated, element), 2, inner, hidden)
    named = builder.operand(op, _NAMED)
    named = builder.reshape(named, (count, shape_of(named.type)[-1]))
    found = picked_results(builder, builder.typecast(made, element), named)
    return builder.typecast(found, op.result_type.element_type)


def _hidden(op: CatalogueOp) -> int:
    return op.shape("w0")[2]


def _inner(op: CatalogueOp) -> int:
    return op.shape("w0")[3]


register(
    TTIRDefinition(
        "ttir.moe_compute",
        (
            operand(_TOKENS),
            expert_operand(_NAMED, lambda op: op.shape("w0")[1]),
            operand("tilize_expert_scores_tensor"),
            operand(_OWNERS),
            operand("w0", input_kind="weight", fan_in=_hidden),
            operand("w1", input_kind="weight", fan_in=_hidden),
            operand("w2", input_kind="weight", fan_in=_inner),
            *(optional(name) for name in _BIASES),
        ),
        (
            attribute("layer_id", INTEGER),
            attribute("output_height_shard_dim", INTEGER, 1),
            attribute("intermediate_size", INTEGER),
            attribute("activation_function", ENUMERATOR, "silu"),
            attribute("cluster_axis", INTEGER, None),
        ),
        verify=_verify_moe_compute,
        numpy=_moe_compute,
        decompose=_decompose_moe_compute,
        refused_form=_moe_on_several_devices,
    )
)
