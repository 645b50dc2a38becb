"""Mixture of experts: which experts a token goes to, what they compute, and what is made of it.

On one device all experts are at hand: tokens need not travel to them, and dispatching and combining
is moving elements. On a mesh each device gets the tokens of all (`experts_on_meshes.py`). Ops whose
operands are buffers inside a fused kernel of the library are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod, sqrt
from typing import cast

from xdsl.dialects.builtin import TensorType, i1
from xdsl.ir import Attribute, SSAValue
from xdsl.utils.exceptions import VerifyException

from ttcodegen.dialects.attribute_kinds import ENUMERATOR, INTEGER
from ttcodegen.dialects.datatypes import element_of, f32, shape_of, si32
from ttcodegen.dialects.mesh import groups_along
from ttcodegen.dialects.operation import CatalogueOp
from ttcodegen.lazy_numpy import Array, np
from ttcodegen.ops.attention import require
from ttcodegen.ops.collectives import MESH_SHAPE
from ttcodegen.ops.definition import (
    Call,
    OperandSpec,
    TTIRDefinition,
    attribute,
    operand,
    optional,
    register,
)
from ttcodegen.ops.elementwise_unary import sigmoid
from ttcodegen.ops.experts_on_meshes import (
    experts_here,
    gathered_tokens,
    homes_of_experts,
    joined_tokens,
    other_devices,
    own_tokens,
    token_dim,
)
from ttcodegen.ops.mesh_values import mesh_of
from ttcodegen.ops.op_builder import OpBuilder
from ttcodegen.ops.places import places
from ttcodegen.ops.refusals import SEVERAL_DEVICES
from ttcodegen.ops.shape_checks import expect_shape
from ttcodegen.ops.sorting import order

Shape = tuple[int, ...]


def _expect_rank(op: CatalogueOp, rank: int, *names: str) -> None:
    for name in names:
        shape = op.shape(name)
        require(op, len(shape) == rank, f"{name} of rank {rank}", shape)


def _expect_volume(op: CatalogueOp, index: int, like: Sequence[int]) -> None:
    """A result that holds as many elements as a tensor of that shape, in its order."""
    found = shape_of(op.results[index].type)
    if prod(found) != prod(like):
        raise VerifyException(
            f"{op.name}: expected a result of as many elements as {tuple(like)}, found {found}"
        )


def _expert_operand(name: str, count: Callable[[CatalogueOp], int]) -> OperandSpec:
    """An operand that names experts."""
    return operand(name, input_kind="index", places=count)


def _chosen(builder: OpBuilder, indices: SSAValue, count: int) -> SSAValue:
    """(tokens, k, experts), true where the expert is the one that the index names; of indices
    (tokens, k)."""
    tokens, k = shape_of(indices.type)
    indices = builder.reshape(builder.typecast(indices, si32), (tokens, k, 1))
    line = TensorType(si32, [1, 1, count])
    experts = builder.emit("arange", [], line, start=0, end=count, arange_dimension=2)
    return builder.broadcasting("eq", indices, experts, element=i1)


# topk_router_gpt


def _verify_router(op: CatalogueOp) -> None:
    """(tokens, hidden) times (hidden, experts) plus (tokens, experts); results are (tokens, k)."""
    _expect_rank(op, 2, "input", "weight", "bias")
    (tokens, hidden), experts = op.shape("input"), op.parameter("num_experts")
    for name, expected in (("weight", (hidden, experts)), ("bias", (tokens, experts))):
        require(op, op.shape(name) == expected, f"{name} of shape {expected}", op.shape(name))
    k = op.parameter("k")
    require(op, 0 < k <= experts, f"k from 1 to {experts}, the number of experts", k)
    expect_shape(op, (tokens, k))
    expect_shape(op, (tokens, k), 1)


def _router(call: Call) -> list[Array]:
    """The greatest scores decide, and share a softmax among them. Scores are of the element type of
    the input, which decides where they are equal."""
    dtype = np.dtype(call.operand_dtypes["input"][0])

    def held(array: Array) -> Array:
        return array.astype(dtype).astype(array.dtype)

    scores = held(np.matmul(call.array("input"), held(call.array("weight"))))
    scores = held(scores + held(call.array("bias")))
    indices = order(scores, 1, True)[:, : call["k"]]
    scores = np.take_along_axis(scores, indices, 1)
    exponentials = np.exp(scores - scores.max(axis=1, keepdims=True))
    return [indices, exponentials / exponentials.sum(axis=1, keepdims=True)]


def _decompose_router(builder: OpBuilder, op: CatalogueOp) -> Sequence[SSAValue]:
    tokens, experts, k = op.shape("input")[0], op.parameter("num_experts"), op.parameter("k")
    indices, weights = op.results
    source = builder.operand(op, "input")
    element = element_of(source.type)
    weight, bias = (
        builder.typecast(builder.operand(op, name), element) for name in ("weight", "bias")
    )
    scores = builder.emit("matmul", [source, weight], TensorType(element, [tokens, experts]))
    scores = builder.like("add", scores, bias)
    selected = builder.emit_op(
        "topk",
        [scores],
        [TensorType(element, [tokens, k]), indices.type],
        k=k,
        dim=1,
        largest=True,
        sorted=True,
    )
    shares = builder.like("softmax", selected.results[0], dimension=1)
    return [selected.results[1], builder.typecast(shares, element_of(weights.type))]


def _router_inner(op: CatalogueOp) -> int:
    return op.shape("input")[1]


register(
    TTIRDefinition(
        "ttir.topk_router_gpt",
        (
            operand("input", fan_in=_router_inner),
            operand("weight", input_kind="weight", fan_in=_router_inner),
            operand("bias"),
        ),
        (attribute("k", INTEGER), attribute("num_experts", INTEGER)),
        results=2,
        verify=_verify_router,
        numpy=_router,
        decompose=_decompose_router,
    )
)

# moe_expert_token_remap


def _experts_remapped(op: CatalogueOp) -> int:
    return op.shape("topk_tensor")[3]


def _verify_remap(op: CatalogueOp) -> None:
    """Scores (devices, batch, sequence, experts), experts of tokens (devices, batch, sequence, k),
    the device of each expert (1, 1, experts, devices)."""
    _expect_rank(op, 4, "topk_tensor", "expert_mapping", "expert_metadata")
    _, batch, sequence, experts = op.shape("topk_tensor")
    mapping, metadata = op.shape("expert_mapping"), op.shape("expert_metadata")
    require(op, mapping[2] == experts, f"expert_mapping of {experts} experts", mapping)
    tokens = (batch, sequence)
    require(op, metadata[1:3] == tokens, f"expert_metadata of {tokens} tokens", metadata)
    size = op.parameter("reduction_size")
    require(op, size > 0, "a reduction_size of 1 or more", size)
    devices = mapping[3]
    require(op, devices > 0 and experts % devices == 0, f"devices that divide {experts}", devices)
    expect_shape(op, (1, batch, sequence, experts // devices))
    expect_shape(op, (1, 1, -(-batch * sequence // size), experts // devices), 1)


def _remap(call: Call) -> list[Array]:
    """The scores of the experts that a token goes to; and, for so many tokens each, which experts
    any of them goes to."""
    scores = call.array("topk_tensor")
    experts, size = scores.shape[3], call["reduction_size"]
    named = places(call.array("expert_metadata"), experts)
    line = cast("Array", np.arange(experts))
    hits = np.equal(named.reshape(-1, named.shape[3], 1), line)
    chosen: Array = np.max(hits, axis=1)
    kept = np.where(chosen.reshape(scores.shape), scores, np.zeros((), scores.dtype))
    chosen = np.pad(chosen, ((0, -len(chosen) % size), (0, 0)))
    reduced: Array = np.max(chosen.reshape(1, 1, -1, size, experts), axis=3)
    return [kept, reduced]


def _decompose_remap(builder: OpBuilder, op: CatalogueOp) -> Sequence[SSAValue]:
    """The library's function divides all but the first group of tokens of a core wrongly: it counts
    one less in them (its writer kernel in tt-metal 0.70.1)."""
    scores = builder.operand(op, "topk_tensor")
    shape = shape_of(scores.type)
    tokens, experts, size = shape[1] * shape[2], shape[3], op.parameter("reduction_size")
    named = builder.operand(op, "expert_metadata")
    named = builder.reshape(named, (tokens, shape_of(named.type)[3]))
    chosen = builder.typecast(_chosen(builder, named, experts), f32)
    chosen = builder.reduce("max", chosen, [1])
    hit = builder.typecast(builder.reshape(chosen, shape), i1)
    nothing = builder.full([1] * 4, 0.0, element_of(scores.type))
    kept = builder.broadcasting("where", hit, scores, nothing, element=element_of(scores.type))
    groups = -(-tokens // size)
    chosen = builder.pad(builder.reshape(chosen, (tokens, experts)), [(0, -tokens % size), (0, 0)])
    chosen = builder.reduce("max", builder.reshape(chosen, (groups, size, experts)), [1])
    chosen = builder.reshape(chosen, (1, 1, groups, experts))
    return [
        builder.typecast(value, element_of(result.type))
        for value, result in zip((kept, chosen), op.results, strict=True)
    ]


register(
    TTIRDefinition(
        "ttir.moe_expert_token_remap",
        (
            operand("topk_tensor"),
            operand("expert_mapping"),
            _expert_operand("expert_metadata", _experts_remapped),
        ),
        (attribute("reduction_size", INTEGER),),
        results=2,
        verify=_verify_remap,
        numpy=_remap,
        decompose=_decompose_remap,
        refused_form=lambda op: SEVERAL_DEVICES if op.shape("expert_mapping")[3] != 1 else None,
    )
)

# all_to_all_dispatch, all_to_all_dispatch_metadata


def _verify_devices(op: CatalogueOp) -> int:
    devices, axis = op.parameter("num_devices"), op.parameter("cluster_axis")
    require(op, devices > 0, "num_devices of 1 or more", devices)
    require(op, axis in (0, 1), "a cluster_axis of 0 or 1", axis)
    return devices


_TRAVELLERS = ("input_tensor", "expert_indices", "expert_scores")


def _dispatched_names(op: CatalogueOp) -> tuple[str, ...]:
    """The operands that come out, one for each result."""
    scores = ("expert_scores",) if op.name.endswith("metadata") else ()
    return ("input_tensor", "expert_indices", *scores)


def _verify_dispatch(op: CatalogueOp) -> None:
    """Tokens, the experts of each, and perhaps their scores; results hold those of all devices."""
    names = _dispatched_names(op)
    _expect_rank(op, 4, *names, "expert_mapping")
    devices = _verify_devices(op)
    tokens = prod(op.shape("input_tensor")[:3])
    for index, name in enumerate(names):
        shape = op.shape(name)
        require(op, prod(shape[:3]) == tokens, f"{name} of {tokens} tokens", shape)
        found = shape_of(op.results[index].type)
        require(op, found[-1:] == shape[3:], f"a result of {shape[3]} per token", found)
        _expect_volume(op, index, (devices * tokens, shape[3]))


def _dispatch(call: Call) -> list[Array]:
    """What one device has is what all have."""
    moved = [call.array(name) for name in _TRAVELLERS if name in call.operands]
    return [x.reshape(info.shape) for x, info in zip(moved, call.results, strict=True)]


def _dispatch_on_chips(calls: Sequence[Call]) -> list[list[Array]]:
    """What the devices along an axis have is what all of them have."""
    first = calls[0]
    if first["num_devices"] == 1:
        return [_dispatch(call) for call in calls]
    names = [name for name in _TRAVELLERS if name in first.operands]
    found: list[list[Array]] = [[] for _ in calls]
    for group in groups_along(mesh_of(first), first["cluster_axis"]):
        for name, info in zip(names, first.results, strict=True):
            joined = joined_tokens([calls[chip].array(name) for chip in group], info.shape)
            for chip in group:
                found[chip].append(joined)
    return found


def _decompose_dispatch(builder: OpBuilder, op: CatalogueOp) -> Sequence[SSAValue]:
    values: list[SSAValue] = []
    for name, result in zip(_dispatched_names(op), op.results, strict=True):
        value, shape = builder.operand(op, name), shape_of(result.type)
        if op.parameter("num_devices") > 1:
            value = gathered_tokens(builder, op, value, shape)
        value = builder.reshape(value, shape)
        values.append(builder.typecast(value, element_of(result.type)))
    return values


def _experts_mapped(op: CatalogueOp) -> int:
    """How many experts there are, by (1, 1, experts, devices); the other order where scores travel
    along."""
    return op.shape("expert_mapping")[3 if op.name.endswith("metadata") else 2]


_TRAVEL = (attribute("num_devices", INTEGER), attribute("cluster_axis", INTEGER))

for _name, _more in (
    ("all_to_all_dispatch", ()),
    ("all_to_all_dispatch_metadata", (operand("expert_scores"),)),
):
    register(
        TTIRDefinition(
            f"ttir.{_name}",
            (
                operand("input_tensor"),
                _expert_operand("expert_indices", _experts_mapped),
                *_more,
                operand("expert_mapping"),
            ),
            (*_TRAVEL, MESH_SHAPE),
            results=2 + len(_more),
            verify=_verify_dispatch,
            numpy=_dispatch,
            chips=_dispatch_on_chips,
            decompose=_decompose_dispatch,
            refused_form=other_devices,
        )
    )

# all_to_all_combine


def _verify_combine(op: CatalogueOp) -> None:
    """What experts made of all tokens (experts, batch, sequence, hidden), and the experts of each
    token (1, batch, sequence, k), to (k, batch, sequence, hidden)."""
    _expect_rank(op, 4, "input_tensor", "expert_metadata", "expert_mapping")
    devices = _verify_devices(op)
    experts, *_, hidden = op.shape("input_tensor")
    metadata = op.shape("expert_metadata")
    tokens, k = prod(metadata[1:3]), metadata[3]
    made = prod(op.shape("input_tensor")[1:3])
    require(op, made == tokens, f"input_tensor of {tokens} tokens", op.shape("input_tensor"))
    known = _experts_mapped(op)
    require(op, experts * devices == known, f"results of {known} experts in all", experts)
    asked = op.parameter("num_experts_per_tok")
    require(op, asked == k, f"num_experts_per_tok to be {k}, as expert_metadata has it", asked)
    found = op.result_shape
    require(op, found[:1] + found[3:] == (k, hidden), f"a result ({k}, ..., {hidden})", found)
    _expect_volume(op, 0, (k, tokens // devices, hidden))


def _combine(call: Call) -> Array:
    made, metadata = call.array("input_tensor"), call.array("expert_metadata")
    made = made.reshape(made.shape[0], -1, made.shape[3])
    named = places(metadata, made.shape[0]).reshape(-1, metadata.shape[3])
    found = made[named.T, np.arange(len(named))[np.newaxis]]
    return found.reshape(call.results[0].shape)


def _combine_on_chips(calls: Sequence[Call]) -> list[Array]:
    """Each device gets, for its own tokens, what their experts made on whatever device they are;
    zeros for experts that no device along the axis has."""
    first, mesh = calls[0], mesh_of(calls[0])
    if first["num_devices"] == 1:
        return [_combine(call) for call in calls]
    found: list[Array] = [np.zeros(0)] * len(calls)
    for group in groups_along(mesh, first["cluster_axis"]):
        made = [calls[chip].array("input_tensor") for chip in group]
        made = [each.reshape(each.shape[0], -1, each.shape[3]) for each in made]
        for place, chip in enumerate(group):
            call = calls[chip]
            homes = homes_of_experts(call.array("expert_mapping"), group)
            named = places(call.array("expert_metadata"), len(homes))
            named = named.reshape(-1, named.shape[-1])
            whole = np.zeros((named.shape[1], len(named), made[0].shape[2]), made[0].dtype)
            for (token, k), expert in np.ndenumerate(named):
                home = homes[int(expert)]
                if home is not None:
                    whole[k, token] = made[home[0]][home[1], token]
            tokens = call.array("expert_metadata").shape[1:3]
            whole = whole.reshape(len(whole), *tokens, -1)
            dim = token_dim(tokens, call.results[0].shape, len(group))
            share = np.split(whole, len(group), axis=dim)[place]
            found[chip] = share.reshape(call.results[0].shape)
    return found


def _picked(
    builder: OpBuilder, made: SSAValue, named: SSAValue, here: SSAValue | None = None
) -> SSAValue:
    """(k, tokens, hidden) of what experts made of all tokens (experts, tokens, hidden), for experts
    (tokens, k): products with a one for the expert and zeros for the others. `here` (all experts,
    experts) has a one for each expert that this device has, where it has it."""
    experts, tokens, hidden = shape_of(made.type)
    element = element_of(made.type)
    count = experts if here is None else shape_of(here.type)[0]
    chosen = builder.typecast(_chosen(builder, named, count), element)
    k = shape_of(named.type)[1]
    if here is not None:
        local = TensorType(element, [tokens, k, experts])
        chosen = builder.emit("matmul", [chosen, builder.typecast(here, element)], local)
    found = builder.emit(
        "matmul",
        [chosen, builder.permute(made, [1, 0, 2])],
        TensorType(element, [tokens, k, hidden]),
    )
    return builder.permute(found, [1, 0, 2])


def _decompose_combine(builder: OpBuilder, op: CatalogueOp) -> SSAValue:
    made, named = builder.operand(op, "input_tensor"), builder.operand(op, "expert_metadata")
    experts, *_, hidden = shape_of(made.type)
    k = shape_of(named.type)[3]
    named = builder.reshape(named, (prod(shape_of(named.type)) // max(k, 1), k))
    made = builder.reshape(made, (experts, shape_of(named.type)[0], hidden))
    here = None
    if op.parameter("num_devices") > 1:
        here = experts_here(builder, op, builder.operand(op, "expert_mapping"), experts)
    found = _picked(builder, made, named, here)
    if here is not None:
        found = own_tokens(builder, op, found)
    found = builder.reshape(found, op.result_shape)
    return builder.typecast(found, op.result_type.element_type)


register(
    TTIRDefinition(
        "ttir.all_to_all_combine",
        (
            operand("input_tensor"),
            _expert_operand("expert_metadata", _experts_mapped),
            operand("expert_mapping"),
        ),
        (
            *_TRAVEL,
            attribute("num_experts_per_tok", INTEGER),
            attribute("output_shard_dim", INTEGER, 2),
            MESH_SHAPE,
        ),
        verify=_verify_combine,
        numpy=_combine,
        chips=_combine_on_chips,
        decompose=_decompose_combine,
        refused_form=other_devices,
    )
)

# moe_compute

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
    _expect_rank(op, 4, *_WEIGHTS)
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
    made = inner @ w2 + b2
    named = call.array(_NAMED)
    named = places(named, len(made)).reshape(-1, named.shape[-1])
    return made[named.T, np.arange(len(named))[np.newaxis]]


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
    picked = _picked(builder, builder.typecast(made, element), named)
    return builder.typecast(picked, op.result_type.element_type)


def _hidden(op: CatalogueOp) -> int:
    return op.shape("w0")[2]


def _inner(op: CatalogueOp) -> int:
    return op.shape("w0")[3]


register(
    TTIRDefinition(
        "ttir.moe_compute",
        (
            operand(_TOKENS),
            _expert_operand(_NAMED, lambda op: op.shape("w0")[1]),
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
