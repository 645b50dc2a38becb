"""Mixture of experts: the experts' MLPs."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod, sqrt
from typing import cast

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Operation, SSAValue

from ttcodegen.dialects.core.datatypes import element_of, f32, shape_of
from ttcodegen.dialects.operations.attribute_kinds import ENUMERATOR, INTEGER
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttcore.device import declared_mesh, groups_along
from ttcodegen.foundation.lazy_numpy import Array, np
from ttcodegen.ops.collectives.reference import MESH_SHAPE, mesh_of
from ttcodegen.ops.collectives.schedule import TensorParts
from ttcodegen.ops.core.builder import OpBuilder
from ttcodegen.ops.core.definition import (
    Call,
    TTIRDefinition,
    attribute,
    operand,
    optional,
    register,
)
from ttcodegen.ops.core.dimensions import expect_rank, expect_shape, require
from ttcodegen.ops.core.traits import NeededChips, integer_of, on_axis
from ttcodegen.ops.elementwise.unary import sigmoid
from ttcodegen.ops.moe.routing import (
    expert_operand,
    experts_here,
    homes_of_experts,
    of_homes,
    owner_table,
    picked,
    picked_results,
)

Shape = tuple[int, ...]

_STEEPNESS, _LIMIT = 1.702, 7.0
"""Sigmoid steepness and clamp limit of the reference's swiglu (`_swiglu_reference`)."""
_TANH_FACTOR, _TANH_CUBIC = sqrt(0.6366197723675814), 0.044715
"""gelu(x) = x / 2 * (1 + tanh(factor * (x + cubic * x^3))), with factor^2 = 2 / pi."""
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


GATES = {"silu": _silu_gate, "gelu": _gelu_gate, "swiglu": _swiglu_gate}
"""Gating functions of the gate and up projections, by name."""


def emit_gate(builder: OpBuilder, kind: str, gate: SSAValue, up: SSAValue) -> SSAValue:
    """Emits the gating function of `GATES` with that name, in f32."""

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
    """Tokens (..., hidden), experts of each token (..., k), two weights (layers, experts, hidden,
    intermediate) and one (layers, experts, intermediate, hidden); the result is (k, tokens,
    hidden).
    """
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
    require(op, kind in GATES, f"activation_function to be one of {', '.join(GATES)}", kind)
    named, count = op.shape(_NAMED), prod(tokens[:-1])
    require(op, prod(named[:-1]) == count, f"experts of {count} tokens", named)
    ring = 1 if _has_all_experts(op) else _chips_of_tokens(op)
    require(op, count % ring == 0, f"tokens that divide among {ring} devices", tokens)
    if _other_devices(op) is None:
        expect_shape(op, (named[-1], count // ring, hidden))


def _has_all_experts(op: CatalogueOp) -> bool:
    """True if all experts of the mapping (devices, experts) have weights on each device."""
    return prod(op.shape(_OWNERS)) == op.shape("w0")[1]


def _chips_of_tokens(op: CatalogueOp) -> int:
    """Returns the number of devices along `cluster_axis`, which exchange tokens."""
    axis, mesh = op.parameter("cluster_axis"), declared_mesh(op)
    return mesh[axis] if axis in (0, 1) else 1


def _other_devices(op: CatalogueOp) -> str | None:
    """Returns why experts cannot be placed on the mesh, None if they can."""
    if _has_all_experts(op):
        return None
    local, known = op.shape("w0")[1], op.shape(_OWNERS)[-1]
    mesh, axis = declared_mesh(op), op.parameter("cluster_axis")
    if axis not in (0, 1):
        return "its experts are on several devices, and cluster_axis says along which axis"
    if known in (local * mesh[axis], local * prod(mesh)):
        return None
    return (
        f"it has {local} of {known} experts on each device, and the mesh of {mesh[0]}x{mesh[1]} "
        f"has {prod(mesh)} devices"
    )


def _made(call: Call) -> Array:
    """Returns the outputs of all local experts for all tokens, (experts, tokens, hidden)."""
    tokens = call.array(_TOKENS)
    tokens = tokens.reshape(-1, tokens.shape[-1])
    layer = call["layer_id"]
    w0, w1, w2 = (call.array(name)[layer] for name in _WEIGHTS)
    biases = [call.optional(name) for name in _BIASES]
    b0, b1, b2 = (0 if bias is None else bias[layer][:, np.newaxis] for bias in biases)
    inner = GATES[call["activation_function"]](tokens @ w0 + b0, tokens @ w1 + b1)
    return inner @ w2 + b2


def _moe_compute(call: Call) -> Array:
    return picked(_made(call), call.array(_NAMED))


def _moe_compute_on_chips(calls: Sequence[Call]) -> list[Array]:
    """Returns the experts' outputs for each device's own tokens.

    Experts may be on any device along the axis; outputs of other experts are zero.
    """
    first = calls[0]
    if first.array(_OWNERS).size == first.array("w0").shape[1]:
        return [_moe_compute(call) for call in calls]
    found: list[Array] = [np.zeros(0)] * len(calls)
    for group in groups_along(mesh_of(first), first["cluster_axis"]):
        made = [_made(calls[chip]) for chip in group]
        for index, chip in enumerate(group):
            call = calls[chip]
            owner = call.array(_OWNERS)
            owner = owner.reshape(-1, owner.shape[-1])[0].astype(np.int64)
            devices = owner.size // made[0].shape[0]
            one_hot = np.equal(owner[:, np.newaxis], cast("Array", np.arange(devices)))
            homes = homes_of_experts(one_hot, group, len(made[0]))
            found[chip] = np.split(of_homes(made, homes, call.array(_NAMED)), len(group), axis=1)[
                index
            ]
    return found


def _decompose_moe_compute(builder: OpBuilder, op: CatalogueOp) -> SSAValue:
    """Computes all experts for all tokens, one batched matmul per weight, and picks by index."""
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
    gated = emit_gate(builder, op.parameter("activation_function"), gate, up)
    made = multiplied(builder.typecast(gated, element), 2, inner, hidden)
    named = builder.operand(op, _NAMED)
    named = builder.reshape(named, (count, shape_of(named.type)[-1]))
    here = None if _has_all_experts(op) else _experts_here(builder, op)
    found = picked_results(builder, builder.typecast(made, element), named, here)
    if here is not None:
        parts = TensorParts(builder, declared_mesh(op))
        found = parts.reduce_scatter(found, "sum", 1, op.parameter("cluster_axis"))
    return builder.typecast(found, op.result_type.element_type)


def _experts_here(builder: OpBuilder, op: CatalogueOp) -> SSAValue:
    """Returns `experts_here` for a mapping of experts to device numbers."""
    local, owners = op.shape("w0")[1], builder.operand(op, _OWNERS)
    table = owner_table(builder, owners, shape_of(owners.type)[-1] // local)
    return experts_here(builder, declared_mesh(op), table, local, op.parameter("cluster_axis"))


def _hidden(op: CatalogueOp) -> int:
    return op.shape("w0")[2]


def _inner(op: CatalogueOp) -> int:
    return op.shape("w0")[3]


def _needed_chips(op: Operation) -> NeededChips:
    """Returns the devices that all experts need, and along the axis those whose tokens are
    exchanged.
    """
    if len(op.operands) < 5:
        return NeededChips()
    tokens, _, _, owners, w0 = (shape_of(value.type) for value in op.operands[:5])
    result = shape_of(op.results[0].type)
    local, own = w0[1] if len(w0) > 1 else 0, result[1] if len(result) > 1 else 0
    if not owners or prod(owners) == local or 0 in (local, own):
        return NeededChips()
    axis = integer_of(op, "cluster_axis")
    return NeededChips(on_axis(axis, prod(tokens[:-1]) // own), owners[-1] // local)


register(
    TTIRDefinition(
        "ttir.moe_compute",
        (
            operand(_TOKENS),
            expert_operand(_NAMED, lambda op: op.shape(_OWNERS)[-1]),
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
            MESH_SHAPE,
        ),
        verify=_verify_moe_compute,
        numpy=_moe_compute,
        chips=_moe_compute_on_chips,
        decompose=_decompose_moe_compute,
        refused_form=_other_devices,
        needed_chips=_needed_chips,
    )
)
