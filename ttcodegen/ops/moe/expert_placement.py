"""Experts that are distributed over several devices of a mesh.

The library's fused calls send each token only where its experts are, and leave the rest of their
buffers undefined. Here all devices along the axis get the tokens of all, and each picks of the
results of its experts what was requested for tokens; what devices have of a token is added up where
the token belongs. Experts and devices are those of `expert_mapping`, (1, 1, experts, devices), with
a one for the device of each expert; devices are those along the axis, or all of the mesh.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects.builtin import TensorType, i1
from xdsl.ir import Operation, SSAValue

from ttcodegen.dialects.core.datatypes import element_of, f32, shape_of, si32
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttcore.mesh import MeshShape, declared_mesh
from ttcodegen.foundation.lazy_numpy import Array, np
from ttcodegen.ops.collectives.tensor_shards import TensorParts
from ttcodegen.ops.core.builder import OpBuilder
from ttcodegen.ops.core.index_normalization import places
from ttcodegen.ops.core.required_devices import NeededChips, NeededChipsRule, integer_of, on_axis


def other_devices(op: CatalogueOp) -> str | None:
    """Returns why the device count does not match the mesh axis, or None if it does."""
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
    """The chips of an op between experts.

    Args:
        mapping: which operand says on which device each expert is.
        dim: the dimension of that operand which counts devices, from the end: -1 is the last.
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
    """Along which dimension of (.., batch, sequence, ..) devices have parts of tokens: the batch,
    unless shapes say that it is the sequence."""
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


# Dispatching


def _places(shape: Sequence[int], result: Sequence[int], devices: int) -> tuple[int, list[int]]:
    """The dimension of the result along which the tokens of devices are concatenated, and the shape
    of what one device has of it."""
    dim = token_dim(result[1:3], shape, devices) if len(result) == 4 else 0
    part = list(result)
    if part[dim] % devices:
        # Tokens are counted over all dimensions.
        return 0, [prod(shape[:-1]), shape[-1]]
    part[dim] //= devices
    return dim, part


def joined_tokens(parts: Sequence[Array], result: Sequence[int]) -> Array:
    """Concatenates the tokens of all devices."""
    dim, part = _places(parts[0].shape, result, len(parts))
    return np.concatenate([each.reshape(part) for each in parts], axis=dim).reshape(result)


def gathered_tokens(
    builder: OpBuilder, op: CatalogueOp, value: SSAValue, result: Sequence[int]
) -> SSAValue:
    """As `joined_tokens`, in ops of TTIR."""
    dim, part = _places(shape_of(value.type), result, op.parameter("num_devices"))
    parts = TensorParts(builder, _mesh(op))
    return parts.gather(builder.reshape(value, part), dim, op.parameter("cluster_axis"))


def tokens_of_device(
    shape: Sequence[int], result: Sequence[int], devices: int
) -> tuple[int, int] | None:
    """The tokens that a device has, as (batch, sequence), where those of one device come after
    those of the other; None if they do not. `result` are those of all devices."""
    dim, part = _places(shape, result, devices)
    if prod(part[:dim]) != 1:
        return None
    return (part[1], part[2]) if dim == 1 else (prod(shape[:-1]), 1)


# Combining


Home = tuple[int, int]
"""The index of a device in a group of devices, and the index of an expert among those of it."""


def homes_of_experts(mapping: Array, group: Sequence[int], experts: int) -> list[list[Home]]:
    """For each expert the devices of a group that have it, each of which has so many experts."""
    known, devices = int(mapping.size // mapping.shape[-1]), int(mapping.shape[-1])
    columns = list(range(devices)) if devices == len(group) else list(group)
    homes: list[list[Home]] = [[] for _ in range(known)]
    for place, column in enumerate(columns):
        for index, expert in enumerate(experts_of_device(mapping, column)[:experts]):
            homes[expert].append((place, index))
    return homes


def of_homes(made: Sequence[Array], homes: Sequence[Sequence[Home]], metadata: Array) -> Array:
    """(k, tokens, hidden): for each of the experts (..., k) of a token what it made of that, of
    what the devices of a group made (experts, tokens, hidden) of all; zeros for one without a
    home."""
    named = places(metadata, len(homes))
    named = named.reshape(-1, named.shape[-1])
    whole = np.zeros((named.shape[1], len(named), made[0].shape[2]), made[0].dtype)
    for (token, k), expert in np.ndenumerate(named):
        for device, index in homes[int(expert)]:
            whole[k, token] += made[device][index, token]
    return whole


def experts_of_device(mapping: Array, device: int) -> list[int]:
    """The experts that a device has, in order, of a mapping (..., experts, devices)."""
    owned = mapping.reshape(-1, mapping.shape[-1])[:, device]
    return [expert for expert, mine in enumerate(owned) if mine]


def experts_here(
    builder: OpBuilder, mesh: MeshShape, mapping: SSAValue, experts: int, axis: int | None
) -> SSAValue:
    """(all experts, experts): a one for each expert that a device has, where it has it; of a
    mapping (..., all experts, owners). Owners are the devices along an axis, or all of the mesh."""
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
    """(experts, devices) with a one for the device of each expert, of a mapping (..., experts) of
    their numbers."""
    *_, experts = shape = shape_of(owner.type)
    rows = builder.reshape(owner, (prod(shape) // experts, experts))
    first = builder.slice_dim(rows, 0, 0, 1)
    numbers = builder.typecast(builder.reshape(first, (experts, 1)), si32)
    line = TensorType(si32, [1, devices])
    all_devices = builder.emit("arange", [], line, start=0, end=devices, arange_dimension=1)
    return builder.broadcasting("eq", numbers, all_devices, element=i1)


def own_tokens(builder: OpBuilder, op: CatalogueOp, found: SSAValue) -> SSAValue:
    """Of (k, tokens, hidden), of which each device has what its experts made, the sums for the
    tokens of each device."""
    k, _, hidden = shape_of(found.type)
    batch, sequence = op.shape("expert_metadata")[1:3]
    devices = op.parameter("num_devices")
    dim = token_dim((batch, sequence), op.result_shape, devices)
    whole = builder.reshape(found, (k, batch, sequence, hidden))
    parts = TensorParts(builder, _mesh(op))
    return parts.reduce_scatter(whole, "sum", dim, op.parameter("cluster_axis"))
