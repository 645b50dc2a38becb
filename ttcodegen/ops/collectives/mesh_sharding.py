"""Mesh sharding: distribution and aggregation of tensors, and implied meshes.

The reference system takes the mesh as a pipeline option, so that modules may not name it.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects.builtin import ModuleOp, UnregisteredOp
from xdsl.dialects.func import ReturnOp
from xdsl.ir import Block, BlockArgument, Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from ttcodegen.dialects.core.datatypes import element_of, shape_of, tensor_type
from ttcodegen.dialects.operations.attribute_kinds import ENUMERATOR, INTEGERS
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttcore.device import (
    MESHES,
    ONE_CHIP,
    MeshShape,
    declared_mesh,
    parts_of,
    set_mesh,
)
from ttcodegen.foundation.lazy_numpy import Array
from ttcodegen.ops.collectives.collectives import MESH_ON_CPU, same_values
from ttcodegen.ops.collectives.device_calls import Chips
from ttcodegen.ops.collectives.reference import (
    MESH_SHAPE,
    composed,
    distributed,
    mesh_axis,
    mesh_of,
)
from ttcodegen.ops.collectives.schedule import TensorParts, fold_splat, has_whole_tiles
from ttcodegen.ops.core.builder import OpBuilder
from ttcodegen.ops.core.calls import Argument, CppCalls, Text
from ttcodegen.ops.core.definition import (
    TTIR,
    Call,
    Layout,
    Memory,
    OperandSpec,
    ResultRule,
    TTIRDefinition,
    TTNNDefinition,
    attribute,
    operand,
    register,
)
from ttcodegen.ops.core.dimensions import expect_shape, normalized_dim, require
from ttcodegen.ops.core.lowering import CpuCall, cpu_call
from ttcodegen.ops.core.traits import CallKind, ChipMovement, NeededChips, Trait, no_flops
from ttcodegen.ops.dialects import ttir_op_classes

_SHARD = (
    attribute("shard_shape", INTEGERS),
    attribute("shard_dims", INTEGERS, None),
    attribute("shard_type", ENUMERATOR, "devices"),
    attribute("shard_direction", ENUMERATOR, "full_to_shard"),
)
_KINDS = ("devices", "identity", "replicate", "manual", "maximal")
_UNDIVIDED = ("replicate", "manual", "maximal")
"""Kinds of sharding under which each device holds a tensor of the full shape.

`identity` is not among them: it means that the caller already holds shards, while programs here
take full tensors.
"""


def _is_whole(op: CatalogueOp) -> bool:
    """True if shards have the shape of the full tensor."""
    return op.parameter("shard_type") in _UNDIVIDED or prod(op.parameter("shard_shape")) == 1


def divides_among_chips(op: CatalogueOp) -> bool:
    """True if an op converts between a full tensor and its shards."""
    return op.name == "ttir.mesh_shard" and op.parameter("shard_type") not in _UNDIVIDED


def _counts(op: CatalogueOp) -> list[int]:
    """Returns the number of shards along each dimension.

    `shard_shape` gives them per dimension or, in its older form, per mesh axis.
    """
    shape, shards, dims = op.shape("input"), op.parameter("shard_shape"), op.parameter("shard_dims")
    if any(count < 1 for count in shards):
        raise VerifyException(f"{op.name}: shard_shape says parts, found {tuple(shards)}")
    counts = [1] * len(shape)
    for dim in dims or ():
        if dim >= 0:
            normalized_dim(op, dim, len(shape))
    if dims is None or (len(shards) == len(shape) and _fits(shape, op.result_shape, shards)):
        return list(shards) if len(shards) == len(shape) else counts
    if len(dims) != len(shards):
        raise VerifyException(f"{op.name}: shard_shape and shard_dims are of one length")
    for dim, count in zip(dims, shards, strict=True):
        if dim >= 0:
            counts[normalized_dim(op, dim, len(shape))] *= count
    return counts


def _fits(shape: Sequence[int], result: Sequence[int], counts: Sequence[int]) -> bool:
    larger, smaller = (shape, result) if prod(shape) >= prod(result) else (result, shape)
    if len(larger) != len(smaller):
        return False
    return list(larger) == [n * count for n, count in zip(smaller, counts, strict=True)]


def _verify_shard(op: CatalogueOp) -> None:
    """The shards of all devices make up the full tensor."""
    kind, direction = op.parameter("shard_type"), op.parameter("shard_direction")
    require(op, kind in _KINDS, f"a shard_type of {', '.join(_KINDS)}", f"'{kind}'")
    fits = direction in ("full_to_shard", "shard_to_full")
    require(op, fits, "a shard_direction of full_to_shard or shard_to_full", f"'{direction}'")
    shape, counts = op.shape("input"), _counts(op)
    if _is_whole(op):
        if op.parameter("shard_type") != "replicate" or prod(op.parameter("shard_shape")) == 1:
            expect_shape(op, shape)
        return
    if op.parameter("shard_direction") == "shard_to_full":
        expect_shape(op, [size * count for size, count in zip(shape, counts, strict=True)])
    else:
        if any(size % count for size, count in zip(shape, counts, strict=True)):
            raise VerifyException(f"{op.name}: {shape} does not divide into {tuple(counts)} parts")
        expect_shape(op, [size // count for size, count in zip(shape, counts, strict=True)])
    mesh = declared_mesh(op)
    if mesh != ONE_CHIP:
        _placements(op, mesh, counts)


def _placements(op: CatalogueOp, mesh: MeshShape, counts: Sequence[int]) -> list[int]:
    """Returns the tensor dimension that is sharded along each mesh axis, -1 for none.

    Raises VerifyException if the mesh does not match the counts.
    """
    rank, dims = len(op.shape("input")), op.parameter("shard_dims")
    if dims is None or len(dims) > 2:
        raise VerifyException(
            f"{op.name}: shard_dims says the dimension that is divided along each axis of the "
            f"mesh of {mesh[0]}x{mesh[1]}, found {dims}"
        )
    named = [normalized_dim(op, dim, rank) if dim >= 0 else -1 for dim in dims]
    dims = [-1] * (2 - len(dims)) + named
    found = parts_of(op.shape("input"), dims, mesh)
    if found != list(counts):
        raise VerifyException(
            f"{op.name}: the mesh of {mesh[0]}x{mesh[1]} divides into {tuple(found)} parts, "
            f"shard_shape into {tuple(counts)}"
        )
    return [dim if mesh[axis] > 1 else -1 for axis, dim in enumerate(dims)]


def _divided_dims(op: CatalogueOp) -> list[int]:
    """Returns the dimension that a mesh_shard shards along each mesh axis, -1 for none."""
    return [-1, -1] if _is_whole(op) else _placements(op, declared_mesh(op), _counts(op))


def divided_dims(op: Operation, *, to_parts: bool) -> list[int] | None:
    """Returns the dimension that an op shards along each mesh axis, -1 for none.

    Only for ops that make shards of a full tensor (`to_parts`), or else a full tensor of shards;
    None for all others.
    """
    if not isinstance(op, CatalogueOp):
        return None
    if op.name == ("ttnn.distribute_tensor" if to_parts else "ttnn.aggregate_tensor"):
        return list(op.parameter("placements"))
    if op.name != "ttir.mesh_shard":
        return None
    wanted = "full_to_shard" if to_parts else "shard_to_full"
    return _divided_dims(op) if op.parameter("shard_direction") == wanted else None


def partitioned_dim(op: Operation) -> tuple[int, int] | None:
    """Returns dimension and mesh axis of a `mesh_partition` along one axis, else None."""
    if not isinstance(op, CatalogueOp) or op.name not in _PARTITIONS:
        return None
    axis = mesh_axis(op)
    return None if axis is None else (normalized_dim(op, op.parameter("dim"), _rank(op)), axis)


_PARTITIONS = ("ttir.mesh_partition", "ttnn.mesh_partition")


def _rank(op: CatalogueOp) -> int:
    return len(op.shape("input"))


def _between_chips(op: CatalogueOp) -> ChipMovement | None:
    dims = _divided_dims(op)
    divided = [axis for axis, dim in enumerate(dims) if dim >= 0]
    if len(divided) != 1:
        return None
    (axis,) = divided
    is_whole = op.parameter("shard_direction") == "shard_to_full"
    return ChipMovement(axis, None if is_whole else dims[axis], dims[axis] if is_whole else None)


def _shard_on_chips(calls: Sequence[Call]) -> list[Array]:
    """Shards the full tensor, or composes the shards, along the mesh axes in order."""
    first, mesh = calls[0], mesh_of(calls[0])
    arrays = [call.array("input") for call in calls]
    if first["shard_type"] in _UNDIVIDED or prod(first["shard_shape"]) == 1:
        return arrays
    dims = first["shard_dims"]
    placements = [-1] * (2 - len(dims)) + list(dims)
    if first["shard_direction"] == "shard_to_full":
        return [composed(arrays, mesh, placements)] * len(calls)
    return distributed(arrays[0], mesh, placements)


def _decompose(builder: OpBuilder, op: CatalogueOp) -> SSAValue | None:
    """Replicated shards: each device holds the full tensor unchanged."""
    return builder.operand(op, "input") if _is_whole(op) else fold_splat(builder, op)


def _in_steps(builder: OpBuilder, op: CatalogueOp) -> SSAValue | None:
    """One gather or partition per sharded mesh axis.

    None if that is one step of whole tiles already, or the host does it for an argument or result.
    """
    if _is_at_interface(op):
        return None
    mesh, dims = declared_mesh(op), _divided_dims(op)
    divided = [axis for axis, dim in enumerate(dims) if dim >= 0]
    is_whole = op.parameter("shard_direction") == "shard_to_full"
    part = op.shape("input") if is_whole else op.result_shape
    if not divided or (len(divided) == 1 and has_whole_tiles(part, dims[divided[0]])):
        return None
    parts, value = TensorParts(builder, mesh), builder.operand(op, "input")
    for axis in reversed(divided) if is_whole else divided:
        step = parts.gather if is_whole else parts.partition
        value = step(value, dims[axis], axis)
    return value


def _is_at_interface(op: CatalogueOp) -> bool:
    """True if an op shards an argument that has no other use, or only returns a full tensor."""
    if op.parameter("shard_direction") == "shard_to_full":
        return bool(op.results[0].uses) and all(
            isinstance(use.operation, ReturnOp) for use in op.results[0].uses
        )
    value, dims = op.operand("input"), _divided_dims(op)
    return isinstance(value, BlockArgument) and all(
        divided_dims(use.operation, to_parts=True) == dims
        and not _needs_memory(use.operation.results[0])
        for use in value.uses
    )


def _needs_memory(value: SSAValue) -> bool:
    """True if a value needs its own buffer: it is returned or overwritten in place."""
    for use in value.uses:
        op = use.operation
        if isinstance(op, ReturnOp):
            return True
        place = op.definition.in_place if isinstance(op, CatalogueOp) else None
        if place is not None and isinstance(op, CatalogueOp) and op.operand(place) is value:
            return True
    return False


def _lower(builder: OpBuilder, op: CatalogueOp) -> SSAValue:
    value, mesh = builder.operand(op, "input"), declared_mesh(op)
    if _is_whole(op) or mesh == ONE_CHIP:
        return value
    placements, chips = _placements(op, mesh, _counts(op)), Chips(builder, op)
    divided = [axis for axis, dim in enumerate(placements) if dim >= 0]
    if op.parameter("shard_direction") == "shard_to_full":
        return _aggregate(builder, chips, value, placements, mesh)
    if not isinstance(op.operand("input").owner, Block):
        # All devices hold the tensor already: it need not go back to the host.
        for axis in divided:
            value = chips.partition(value, placements[axis], axis)
        return value
    if len(set(placements)) < len(placements) and len(divided) == 2:
        # The library shards a dimension along one axis only; a partition follows for the other.
        first = _distribute(builder, value, [placements[0], -1], mesh)
        return chips.partition(first, placements[1], 1)
    return _distribute(builder, value, placements, mesh)


def _on_cpu(op: CatalogueOp) -> CpuCall:
    whole = op.parameter("shard_direction") == "shard_to_full"
    return cpu_call(
        MESH_ON_CPU,
        lambda op: {
            "mesh": declared_mesh(op),
            "dims": _placements(op, declared_mesh(op), _counts(op)),
        },
        function="compose" if whole else "distribute",
    )(op)


def _shard_shape(shape: Sequence[int], placements: Sequence[int], mesh: MeshShape) -> list[int]:
    """Returns the shape of a shard."""
    counts = parts_of(shape, placements, mesh)
    return [size // count for size, count in zip(shape, counts, strict=True)]


def _full_shape(shape: Sequence[int], placements: Sequence[int], mesh: MeshShape) -> list[int]:
    """Returns the shape of the full tensor of shards."""
    counts = parts_of(shape, placements, mesh)
    return [size * count for size, count in zip(shape, counts, strict=True)]


def _distribute(
    builder: OpBuilder, value: SSAValue, placements: Sequence[int], mesh: MeshShape
) -> SSAValue:
    shape = _shard_shape(shape_of(value.type), placements, mesh)
    result = tensor_type(element_of(value.type), shape)
    given = {"placements": list(placements), "mesh_shape": list(mesh)}
    made = builder.emit("distribute_tensor", [value], result, **given)
    made.name_hint = value.name_hint
    return made


def _aggregate(
    builder: OpBuilder, chips: Chips, value: SSAValue, placements: list[int], mesh: MeshShape
) -> SSAValue:
    """Composes the shards on the host.

    A composer needs a distinct dimension for each mesh axis; otherwise the devices gather before.
    """
    divided = [axis for axis, dim in enumerate(placements) if dim >= 0]
    for axis in (1, 0):
        if axis in divided and not _composable(value, placements, mesh):
            value = chips.gather(value, placements[axis], axis)
            placements = [-1 if each == axis else dim for each, dim in enumerate(placements)]
    shape = _full_shape(shape_of(value.type), placements, mesh)
    result = tensor_type(element_of(value.type), shape)
    given = {"placements": placements, "mesh_shape": list(mesh)}
    return builder.emit("aggregate_tensor", [value], result, **given)


def _composable(value: SSAValue, placements: Sequence[int], mesh: MeshShape) -> bool:
    divided = [dim for dim in placements if dim >= 0]
    return len(set(divided)) == len(divided) and (len(shape_of(value.type)) >= 2 or mesh[0] == 1)


def _needed_chips(op: Operation) -> NeededChips:
    """Returns the number of shards along each mesh axis."""
    counts, dims = (
        INTEGERS.decode(op.properties[name]) if name in op.properties else []
        for name in ("shard_shape", "shard_dims")
    )
    along = [-1] * (2 - len(dims)) + list(dims)
    if len(along) > 2 or len(counts) != len(shape_of(op.operands[0].type)):
        return NeededChips()
    if along[0] == along[1] or any(dim >= len(counts) for dim in along):
        # One dimension is sharded along both axes: other ops determine the counts.
        return NeededChips(total=prod(counts))
    rows, columns = (counts[dim] if dim >= 0 else 1 for dim in along)
    chips = prod(counts)
    return NeededChips((rows, columns), chips, whole_mesh=rows * columns == chips > 1)


register(
    TTIRDefinition(
        "ttir.mesh_shard",
        (operand("input"),),
        (*_SHARD, MESH_SHAPE),
        verify=_verify_shard,
        numpy=same_values,
        chips=_shard_on_chips,
        decompose=_decompose,
        primitives=_in_steps,
        lower=_lower,
        cpu=_on_cpu,
        between_chips=_between_chips,
        needed_chips=_needed_chips,
        refused_form=lambda op: (
            None
            if _is_whole(op) or declared_mesh(op) != ONE_CHIP
            else "it divides a tensor among chips, and the module names no mesh of rows and "
            "columns of several: ttcore.meshes"
        ),
        moves=True,
        traits=Trait.COLLECTIVE,
    )
)
register(
    TTNNDefinition(
        "ttnn.mesh_shard",
        (operand("input", layout=None, memory=None),),
        (*_SHARD, MESH_SHAPE),
        verify=_verify_shard,
        result_rules=(ResultRule(layout=None),),
        traits=Trait.COLLECTIVE,
    )
)

_PLACEMENTS = attribute("placements", INTEGERS)
_DISTRIBUTED = "ttnn/distributed/distributed_tensor.hpp"
_CONFIG = "ttnn::distributed::Mesh"


def _expect_placements(op: CatalogueOp) -> None:
    """Raises VerifyException unless placements have a distinct dimension or -1 per mesh axis."""
    placements, rank = op.parameter("placements"), len(op.shape("input"))
    divided = [dim for dim in placements if dim != -1]
    fits = len(placements) == len(declared_mesh(op)) and len(set(divided)) == len(divided)
    if not fits or any(not 0 <= dim < rank for dim in divided):
        raise VerifyException(
            f"{op.name}: expected placements of a dimension of {rank}, or -1, for each of two axes "
            f"of the mesh, found {tuple(placements)}"
        )


def _verify_distribute(op: CatalogueOp) -> None:
    """Each device has its shard of each placed dimension."""
    _expect_placements(op)
    shape, placements, mesh = op.shape("input"), op.parameter("placements"), declared_mesh(op)
    counts = parts_of(shape, placements, mesh)
    if any(size % count for size, count in zip(shape, counts, strict=True)):
        raise VerifyException(f"{op.name}: {shape} does not divide into {tuple(counts)} parts")
    expect_shape(op, _shard_shape(shape, placements, mesh))


def _verify_aggregate(op: CatalogueOp) -> None:
    """The shards of the devices make up each placed dimension."""
    _expect_placements(op)
    shape, placements, mesh = op.shape("input"), op.parameter("placements"), declared_mesh(op)
    expect_shape(op, _full_shape(shape, placements, mesh))


def _cpp_distribute(calls: CppCalls, op: CatalogueOp) -> None:
    calls.include(_DISTRIBUTED)
    placements = op.parameter("placements")
    divided = [axis for axis, dim in enumerate(placements) if dim >= 0]
    make = "ttnn::distributed::"
    if not divided:
        mapper = calls.nested(f"*{make}replicate_tensor_to_mesh_mapper", calls.device, type="auto")
    elif len(divided) == 1:
        (axis,) = divided
        mapper = calls.nested(
            f"*{make}shard_tensor_to_mesh_mapper",
            calls.device,
            Text(f"/*dim=*/{placements[axis]}"),
            Text(f"/*cluster_axis=*/{axis}"),
            type="auto",
        )
    else:
        shards = ", ".join(f"{_CONFIG}MapperConfig::Shard{{{dim}}}" for dim in placements)
        config = Text(f"{_CONFIG}MapperConfig{{.placements = {{{shards}}}}}")
        mapper = calls.nested(f"*{make}create_mesh_mapper", calls.device, config, type="auto")
    arguments: list[Argument] = [calls[op.operands[0]], mapper, calls.device]
    calls.bind(op.results[0], calls.call(f"{make}distribute_tensor", *arguments))


def _cpp_aggregate(calls: CppCalls, op: CatalogueOp) -> None:
    placements, mesh = op.parameter("placements"), declared_mesh(op)
    divided = [dim for dim in placements if dim >= 0]
    value = calls[op.operands[0]]
    make = "ttnn::distributed::"
    if not divided:
        # Every device holds the full tensor.
        calls.include("ttnn/distributed/api.hpp")
        calls.include("ttnn/operations/core/core.hpp")
        parts = calls.nested(f"{make}get_device_tensors", value, type="std::vector<ttnn::Tensor>")
        calls.bind(op.results[0], calls.call("ttnn::from_device", calls.subscript(parts, 0)))
        return
    calls.include(_DISTRIBUTED)
    rank = len(op.shape("input"))
    if len(divided) == 1 and rank < 2:
        composer = calls.nested(
            f"*{make}concat_mesh_to_tensor_composer",
            calls.device,
            Text(f"/*dim=*/{divided[0]}"),
            type="auto",
        )
    else:
        # Along an axis without sharding the devices are replicas: the first of them is taken.
        free = [dim for dim in range(rank) if dim not in divided]
        dims = [dim if dim >= 0 else free.pop() for dim in placements]
        fields = f".dims = {{{dims[0]}, {dims[1]}}}"
        taken = [mesh[axis] if placements[axis] >= 0 else 1 for axis in (0, 1)]
        if taken != list(mesh):
            fields += f", .mesh_shape_override = ttnn::MeshShape({taken[0]}, {taken[1]})"
        composer = calls.nested(
            f"*{make}create_mesh_composer",
            calls.device,
            Text(f"{_CONFIG}ComposerConfig{{{fields}}}"),
            type="auto",
        )
    calls.bind(op.results[0], calls.call(f"{make}aggregate_tensor", value, composer))


register(
    TTNNDefinition(
        "ttnn.distribute_tensor",
        (OperandSpec("input", layout=Layout.ROW_MAJOR, memory=Memory.HOST),),
        (_PLACEMENTS, MESH_SHAPE),
        verify=_verify_distribute,
        numpy=same_values,
        chips=lambda calls: distributed(
            calls[0].array("input"), mesh_of(calls[0]), calls[0]["placements"]
        ),
        cpp=_cpp_distribute,
        result_rules=(ResultRule(layout=Layout.ROW_MAJOR),),
        flops=no_flops,
        call_kind=CallKind.COPY,
        nouns=("shards",),
    )
)
register(
    TTNNDefinition(
        "ttnn.aggregate_tensor",
        (OperandSpec("input", layout=None, memory=Memory.DEVICE),),
        (_PLACEMENTS, MESH_SHAPE),
        verify=_verify_aggregate,
        numpy=same_values,
        chips=lambda calls: (
            [
                composed(
                    [call.array("input") for call in calls],
                    mesh_of(calls[0]),
                    calls[0]["placements"],
                )
            ]
            * len(calls)
        ),
        cpp=_cpp_aggregate,
        result_rules=(ResultRule(layout=None, memory=Memory.HOST),),
        flops=no_flops,
        call_kind=CallKind.COPY,
        nouns=("whole",),
    )
)


def imply_mesh(module: ModuleOp) -> None:
    """Declares the mesh that the collectives of a module need, unless it names one."""
    if MESHES in module.attributes:
        return
    shape = implied_mesh(module)
    if prod(shape) > 1:
        set_mesh(module, shape)


def implied_mesh(module: ModuleOp) -> MeshShape:
    """Returns the mesh that the TTIR or TTNN ops of a module need, (1, 1) for one device."""
    ttir_op_classes()
    along = [1, 1]
    chips = 1
    for op in module.walk():
        name = op.op_name.data if isinstance(op, UnregisteredOp) else op.name
        dialect, _, short = name.rpartition(".")
        definition = TTIR.get(short) if dialect in ("ttir", "ttnn") else None
        if definition is None or definition.needed_chips is None or not op.operands:
            continue
        needed = definition.needed_chips(op)
        if needed.whole_mesh:
            return needed.along
        along = [max(known, count) for known, count in zip(along, needed.along, strict=True)]
        chips = max(chips, needed.total)
    if chips > prod(along) and chips % prod(along) == 0:
        # The other axis takes the remaining factor.
        along[0 if along[1] > 1 else 1] *= chips // prod(along)
    return along[0], along[1]
