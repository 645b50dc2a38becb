"""Mixture of experts: placement on devices, routing, and remapping."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import cast

from xdsl.dialects.builtin import TensorType, i1
from xdsl.ir import Operation, SSAValue

from ttcodegen.dialects.core.datatypes import element_of, f32, shape_of, si32
from ttcodegen.dialects.operations.attribute_kinds import INTEGER
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttcore.device import MeshShape, declared_mesh
from ttcodegen.foundation.lazy_numpy import Array, np
from ttcodegen.ops.collectives.reference import MESH_SHAPE
from ttcodegen.ops.collectives.schedule import TensorParts
from ttcodegen.ops.core.builder import OpBuilder
from ttcodegen.ops.core.definition import (
    Call,
    OperandSpec,
    TTIRDefinition,
    attribute,
    operand,
    register,
)
from ttcodegen.ops.core.dimensions import expect_rank, expect_shape, require
from ttcodegen.ops.core.engine import places
from ttcodegen.ops.core.traits import NeededChips, NeededChipsRule, Trait, integer_of, on_axis
from ttcodegen.ops.reduction.sorting import order

# Routing of tokens to experts, remapping of expert indices, and selection of results.
#
# Dispatch and combine of tokens are in `dispatch.py`, the experts' computation in `compute.py`. Ops
# whose operands are buffers inside a fused kernel of the library are refused.


def expert_operand(name: str, count: Callable[[CatalogueOp], int]) -> OperandSpec:
    """Operand of expert indices."""
    return operand(name, input_kind="index", places=count)


def mapping_operand() -> OperandSpec:
    """Operand (..., experts, devices), one-hot for the device of each expert."""
    return operand("expert_mapping", input_kind="expert_mapping")


def chosen_experts(builder: OpBuilder, indices: SSAValue, count: int) -> SSAValue:
    """Returns the one-hot experts (tokens, k, experts) of indices (tokens, k)."""
    tokens, k = shape_of(indices.type)
    indices = builder.reshape(builder.typecast(indices, si32), (tokens, k, 1))
    line = TensorType(si32, [1, 1, count])
    experts = builder.emit("arange", [], line, start=0, end=count, arange_dimension=2)
    return builder.broadcasting("eq", indices, experts, element=i1)


def picked(made: Array, metadata: Array) -> Array:
    """Returns (k, tokens, hidden) of expert outputs (experts, tokens, hidden) for experts
    (..., k).
    """
    named = places(metadata, len(made)).reshape(-1, metadata.shape[-1])
    return made[named.T, np.arange(len(named))[np.newaxis]]


def picked_results(
    builder: OpBuilder, made: SSAValue, named: SSAValue, here: SSAValue | None = None
) -> SSAValue:
    """Selects expert outputs by matmul with the one-hot experts (tokens, k).

    `here` (all experts, experts) is the one-hot matrix of the experts local to this device.
    """
    experts, tokens, hidden = shape_of(made.type)
    element = element_of(made.type)
    count = experts if here is None else shape_of(here.type)[0]
    chosen = builder.typecast(chosen_experts(builder, named, count), element)
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


# topk_router_gpt


def _verify_router(op: CatalogueOp) -> None:
    """Input (tokens, hidden), weight (hidden, experts) and bias (tokens, experts); results are
    (tokens, k).
    """
    expect_rank(op, 2, "input", "weight", "bias")
    (tokens, hidden), experts = op.shape("input"), op.parameter("num_experts")
    for name, expected in (("weight", (hidden, experts)), ("bias", (tokens, experts))):
        require(op, op.shape(name) == expected, f"{name} of shape {expected}", op.shape(name))
    k = op.parameter("k")
    require(op, 0 < k <= experts, f"k from 1 to {experts}, the number of experts", k)
    expect_shape(op, (tokens, k))
    expect_shape(op, (tokens, k), 1)


def _router(call: Call) -> list[Array]:
    """Returns the top k experts and the softmax of their scores.

    Scores are rounded to the element type of the input, so that ties are those of the device.
    """
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
        traits=Trait.OWN_NAN_IN_TILES,
    )
)


# Experts distributed over the devices of a mesh.
#
# The library's fused calls send each token only to the devices of its experts, and leave the rest
# of their buffers undefined. Here all devices along the axis get all tokens, and each selects the
# outputs of its experts; the outputs of a token are summed on its device. `expert_mapping`, (1, 1,
# experts, devices), is one-hot for the device of each expert; devices are those along the axis, or
# all of the mesh.


def other_devices(op: CatalogueOp) -> str | None:
    """Returns why the device count does not match the mesh axis, None if it does."""
    devices, axis, mesh = op.parameter("num_devices"), op.parameter("cluster_axis"), _mesh(op)
    if devices not in (1, mesh[axis]):
        return (
            f"it goes between {devices} devices along the axis {axis}, and the mesh of "
            f"{mesh[0]}x{mesh[1]} has {mesh[axis]} there"
        )
    owners = op.shape("expert_mapping")[-1 if not op.name.endswith("metadata") else -2]
    if devices > 1 and op.name.endswith("combine") and owners not in (devices, prod(mesh)):
        return f"its expert_mapping names {owners} devices, and the mesh has {prod(mesh)}"
    return None


def needed_devices(mapping: int, dim: int) -> NeededChipsRule:
    """Rule for the devices of an op between experts.

    Args:
        mapping: Index of the operand that maps experts to devices.
        dim: Dimension of that operand that counts devices, from the end: -1 is the last.
    """

    def needed(op: Operation) -> NeededChips:
        shape = shape_of(op.operands[mapping].type) if mapping < len(op.operands) else ()
        devices = shape[dim] if len(shape) >= -dim else 1
        along = on_axis(integer_of(op, "cluster_axis"), integer_of(op, "num_devices") or 1)
        return NeededChips(along, devices if devices % prod(along) == 0 else 1)

    return needed


def _mesh(op: CatalogueOp) -> tuple[int, int]:
    return declared_mesh(op)


def token_dim(whole: Sequence[int], part: Sequence[int], devices: int) -> int:
    """Returns the dimension along which devices split the tokens (.., batch, sequence, ..).

    1 for the batch, unless the shapes fit a split sequence only: 2.
    """
    batch, sequence = whole
    sizes = [size for size in part[:-1] if size != 1]

    def fits(*tokens: int) -> bool:
        wanted = [size for size in tokens if size != 1]
        return sizes[len(sizes) - len(wanted) :] == wanted

    if batch % devices:
        return 1 if sequence % devices else 2
    if sequence % devices or fits(batch // devices, sequence):
        return 1
    return 2 if fits(batch, sequence // devices) else 1


# Dispatch


def _shard_layout(
    shape: Sequence[int], result: Sequence[int], devices: int
) -> tuple[int, list[int]]:
    """Returns the dimension of the result along which tokens are concatenated, and the shape of a
    shard.
    """
    dim = token_dim(result[1:3], shape, devices) if len(result) == 4 else 0
    part = list(result)
    if part[dim] % devices:
        # Tokens are split over the flattened dimensions.
        return 0, [prod(shape[:-1]), shape[-1]]
    part[dim] //= devices
    return dim, part


def joined_tokens(parts: Sequence[Array], result: Sequence[int]) -> Array:
    """Concatenates the tokens of all devices."""
    dim, part = _shard_layout(parts[0].shape, result, len(parts))
    return np.concatenate([each.reshape(part) for each in parts], axis=dim).reshape(result)


def gathered_tokens(
    builder: OpBuilder, op: CatalogueOp, value: SSAValue, result: Sequence[int]
) -> SSAValue:
    """Emits `joined_tokens` in TTIR ops."""
    dim, part = _shard_layout(shape_of(value.type), result, op.parameter("num_devices"))
    parts = TensorParts(builder, _mesh(op))
    return parts.gather(builder.reshape(value, part), dim, op.parameter("cluster_axis"))


def tokens_of_device(
    shape: Sequence[int], result: Sequence[int], devices: int
) -> tuple[int, int] | None:
    """Returns the tokens of a device as (batch, sequence).

    None if the tokens of devices are not contiguous in the `result`, which holds those of all.
    """
    dim, part = _shard_layout(shape, result, devices)
    if prod(part[:dim]) != 1:
        return None
    return (part[1], part[2]) if dim == 1 else (prod(shape[:-1]), 1)


# Combine


Home = tuple[int, int]
"""Index of a device in its group, and of an expert among those of the device."""


def homes_of_experts(mapping: Array, group: Sequence[int], experts: int) -> list[list[Home]]:
    """Returns, for each expert, its homes in a group of devices with `experts` experts each."""
    known, devices = int(mapping.size // mapping.shape[-1]), int(mapping.shape[-1])
    columns = list(range(devices)) if devices == len(group) else list(group)
    homes: list[list[Home]] = [[] for _ in range(known)]
    for device, column in enumerate(columns):
        for index, expert in enumerate(experts_of_device(mapping, column)[:experts]):
            homes[expert].append((device, index))
    return homes


def of_homes(made: Sequence[Array], homes: Sequence[Sequence[Home]], metadata: Array) -> Array:
    """Returns (k, tokens, hidden): the outputs of each token's experts (..., k).

    `made` are the outputs (experts, tokens, hidden) of the devices of a group; experts without a
    home give zeros.
    """
    named = places(metadata, len(homes))
    named = named.reshape(-1, named.shape[-1])
    whole = np.zeros((named.shape[1], len(named), made[0].shape[2]), made[0].dtype)
    for (token, k), expert in np.ndenumerate(named):
        for device, index in homes[int(expert)]:
            whole[k, token] += made[device][index, token]
    return whole


def experts_of_device(mapping: Array, device: int) -> list[int]:
    """Returns the experts of a device, in order, from a mapping (..., experts, devices)."""
    owned = mapping.reshape(-1, mapping.shape[-1])[:, device]
    return [expert for expert, mine in enumerate(owned) if mine]


def experts_here(
    builder: OpBuilder, mesh: MeshShape, mapping: SSAValue, experts: int, axis: int | None
) -> SSAValue:
    """Returns the one-hot matrix (all experts, experts) of the experts local to a device.

    The mapping is (..., all experts, owners); owners are the devices along an axis, or all of the
    mesh.
    """
    known, owners = shape_of(mapping.type)[-2:]
    mapping = builder.reshape(mapping, (known, owners))
    zero = builder.full((1, 1), 0, element_of(mapping.type))
    table = builder.typecast(builder.broadcasting("ne", mapping, zero, element=i1), f32)
    mine = table
    if owners > 1:
        parts = TensorParts(builder, mesh)
        mine = parts.partition(table, 1, None if owners == prod(mesh) else axis)
    place = builder.like("cumsum", mine, dim=0)
    line = builder.constant(np.arange(1, experts + 1, dtype=np.float32)[np.newaxis])
    found = builder.typecast(builder.broadcasting("eq", place, line, element=i1), f32)
    return builder.broadcasting("multiply", found, mine)


def owner_table(builder: OpBuilder, owner: SSAValue, devices: int) -> SSAValue:
    """Returns the one-hot matrix (experts, devices) of a mapping (..., experts) to device
    numbers.
    """
    *_, experts = shape = shape_of(owner.type)
    rows = builder.reshape(owner, (prod(shape) // experts, experts))
    first = builder.slice_dim(rows, 0, 0, 1)
    numbers = builder.typecast(builder.reshape(first, (experts, 1)), si32)
    line = TensorType(si32, [1, devices])
    all_devices = builder.emit("arange", [], line, start=0, end=devices, arange_dimension=1)
    return builder.broadcasting("eq", numbers, all_devices, element=i1)


def own_tokens(builder: OpBuilder, op: CatalogueOp, found: SSAValue) -> SSAValue:
    """Sums the partial outputs (k, tokens, hidden) over devices and scatters the tokens."""
    k, _, hidden = shape_of(found.type)
    batch, sequence = op.shape("expert_metadata")[1:3]
    devices = op.parameter("num_devices")
    dim = token_dim((batch, sequence), op.result_shape, devices)
    whole = builder.reshape(found, (k, batch, sequence, hidden))
    parts = TensorParts(builder, _mesh(op))
    return parts.reduce_scatter(whole, "sum", dim, op.parameter("cluster_axis"))


# moe_expert_token_remap


def _experts_remapped(op: CatalogueOp) -> int:
    return op.shape("topk_tensor")[3]


def _verify_remap(op: CatalogueOp) -> None:
    """Scores (1, batch, sequence, experts), experts of tokens (1, batch, sequence, k), and the
    device of each expert (1, 1, experts, devices).
    """
    expect_rank(op, 4, "topk_tensor", "expert_mapping", "expert_metadata")
    first, batch, sequence, experts = op.shape("topk_tensor")
    require(op, first == 1, "the scores that one device has", op.shape("topk_tensor"))
    mapping, metadata = op.shape("expert_mapping"), op.shape("expert_metadata")
    require(op, mapping[2] == experts, f"expert_mapping of {experts} experts", mapping)
    tokens = (batch, sequence)
    require(op, metadata[:3] == (1, *tokens), f"expert_metadata of {tokens} tokens", metadata)
    size = op.parameter("reduction_size")
    require(op, size > 0, "a reduction_size of 1 or more", size)
    devices = mapping[3]
    require(op, devices > 0 and experts % devices == 0, f"devices that divide {experts}", devices)
    expect_shape(op, (1, batch, sequence, experts // devices))
    expect_shape(op, (1, 1, -(-batch * sequence // size), experts // devices), 1)


def _remap(call: Call) -> list[Array]:
    """Returns the scores of each token's experts, and the experts used by each group of tokens.

    A group has `reduction_size` tokens; other scores are zero.
    """
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


def _remap_on_chips(calls: Sequence[Call]) -> list[list[Array]]:
    """Restricts the results to the experts of each device, padded with zeros."""
    found: list[list[Array]] = []
    for chip, call in enumerate(calls):
        mapping, of_all = call.array("expert_mapping"), _remap(call)
        if mapping.shape[3] == 1:
            found.append(of_all)
            continue
        here = experts_of_device(mapping, chip)
        missing = call.results[0].shape[3] - len(here)
        edges = ((0, 0), (0, 0), (0, 0), (0, max(missing, 0)))
        kept = here[: call.results[0].shape[3]]
        found.append([np.pad(each[..., kept], edges) for each in of_all])
    return found


def _decompose_remap(builder: OpBuilder, op: CatalogueOp) -> Sequence[SSAValue]:
    """Decomposes to one-hot selections.

    The library's function miscounts: on each core, all groups of tokens but the first have one
    token less (its writer kernel in tt-metal).
    """
    scores = builder.operand(op, "topk_tensor")
    shape = shape_of(scores.type)
    tokens, experts, size = shape[1] * shape[2], shape[3], op.parameter("reduction_size")
    named = builder.operand(op, "expert_metadata")
    named = builder.reshape(named, (tokens, shape_of(named.type)[3]))
    chosen = builder.typecast(chosen_experts(builder, named, experts), f32)
    chosen = builder.reduce("max", chosen, [1])
    hit = builder.typecast(builder.reshape(chosen, shape), i1)
    nothing = builder.full([1] * 4, 0.0, element_of(scores.type))
    kept = builder.broadcasting("where", hit, scores, nothing, element=element_of(scores.type))
    groups = -(-tokens // size)
    chosen = builder.pad(builder.reshape(chosen, (tokens, experts)), [(0, -tokens % size), (0, 0)])
    chosen = builder.reduce("max", builder.reshape(chosen, (groups, size, experts)), [1])
    chosen = builder.reshape(chosen, (groups, experts))
    kept = builder.reshape(kept, (tokens, experts))
    if op.shape("expert_mapping")[3] > 1:
        local = op.result_shape[3]
        mapping = builder.operand(op, "expert_mapping")
        here = experts_here(builder, declared_mesh(op), mapping, local, None)

        def of_device(value: SSAValue) -> SSAValue:
            """Selects the columns of the experts of a device by a one-hot matmul."""
            element = element_of(value.type)
            result = TensorType(element, [shape_of(value.type)[0], local])
            return builder.emit("matmul", [value, builder.typecast(here, element)], result)

        kept, chosen = of_device(kept), of_device(chosen)
    return [
        builder.typecast(builder.reshape(value, shape_of(result.type)), element_of(result.type))
        for value, result in zip((kept, chosen), op.results, strict=True)
    ]


def _other_devices(op: CatalogueOp) -> str | None:
    """Returns why experts cannot be placed on the mesh, None if they can."""
    devices, mesh = op.shape("expert_mapping")[3], declared_mesh(op)
    if devices in (1, prod(mesh)):
        return None
    return (
        f"its expert_mapping names {devices} devices, and the mesh of {mesh[0]}x{mesh[1]} has "
        f"{prod(mesh)}"
    )


register(
    TTIRDefinition(
        "ttir.moe_expert_token_remap",
        (
            operand("topk_tensor"),
            mapping_operand(),
            expert_operand("expert_metadata", _experts_remapped),
        ),
        (attribute("reduction_size", INTEGER), MESH_SHAPE),
        results=2,
        verify=_verify_remap,
        numpy=_remap,
        chips=_remap_on_chips,
        decompose=_decompose_remap,
        refused_form=_other_devices,
        needed_chips=needed_devices(1, -1),
    )
)
