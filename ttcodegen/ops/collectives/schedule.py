"""Collective schedule: steps along mesh axes, over shards of whole tensors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from xdsl.dialects.builtin import f32
from xdsl.ir import SSAValue

from ttcodegen.dialects.core.datatypes import element_of, is_boolean, shape_of, tensor_type
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttcore.device import (
    ONE_CHIP,
    MeshShape,
    declared_mesh,
    groups_along,
    parts_of,
)
from ttcodegen.dialects.ttcore.tile import TILE_SIDE
from ttcodegen.dialects.ttir.annotations import Sharding
from ttcodegen.foundation.lazy_numpy import np
from ttcodegen.ops.collectives.reference import axes_of, participants
from ttcodegen.ops.core.builder import OpBuilder, splat_of

# Decomposition of collectives to steps: transfers of whole tiles along one mesh axis, and local
# computation before and after them. Local computation becomes device programs; transfers use the
# links between devices.
#
# Shards that are not whole tiles along a dimension are moved along a new leading dimension,
# outside of the two tiled ones.

Pairs = Sequence[tuple[int, int]]
"""(source, target) pairs of devices."""

_TILED = 2
"""Number of trailing dimensions that are tiled."""


def has_whole_tiles(part: Sequence[int], dim: int) -> bool:
    """True if shards of that shape, concatenated along `dim`, start at tile boundaries."""
    return dim < len(part) - _TILED or part[dim] % TILE_SIDE == 0


class _Steps:
    """Emits steps along one mesh axis."""

    def __init__(self, builder: OpBuilder, mesh: MeshShape, axis: int) -> None:
        self._builder = builder
        self._groups = groups_along(mesh, axis)
        self._axis = axis
        self.chips = mesh[axis]

    def gather(self, value: SSAValue, dim: int) -> SSAValue:
        """Concatenates the shards of all devices."""
        shape = list(shape_of(value.type))
        shape[dim] *= self.chips
        return self._emit("all_gather", value, shape, all_gather_dim=dim, cluster_axis=self._axis)

    def partition(self, value: SSAValue, dim: int) -> SSAValue:
        """Returns each device's shard of its value."""
        shape = list(shape_of(value.type))
        shape[dim] //= self.chips
        return self._emit("mesh_partition", value, shape, dim=dim, cluster_axis=self._axis)

    def exchange(self, value: SSAValue, split: int, concat: int) -> SSAValue:
        """All-to-all along the axis."""
        shape = list(shape_of(value.type))
        shape[split] //= self.chips
        shape[concat] *= self.chips
        return self._emit(
            "all_to_all",
            value,
            shape,
            split_dim=split,
            concat_dim=concat,
            split_count=self.chips,
            replica_groups=self._groups,
        )

    def first(self, value: SSAValue) -> SSAValue:
        """Broadcasts the value of the first device."""
        shape = shape_of(value.type)
        return self._emit("collective_broadcast", value, shape, replica_groups=self._groups)

    def aside(self, value: SSAValue) -> SSAValue:
        """Adds a leading dimension of size 1, before the tiled ones."""
        shape = shape_of(value.type)
        ones = [1] * (1 + max(0, _TILED - len(shape)))
        return self._builder.reshape(value, [*ones, *shape])

    def apart(self, value: SSAValue, dim: int) -> SSAValue:
        """Moves the shards of a dimension to a new leading dimension."""
        shape = list(shape_of(value.type))
        parts = [*shape[:dim], self.chips, shape[dim] // self.chips, *shape[dim + 1 :]]
        others = [axis for axis in range(len(parts)) if axis != dim]
        value = self._builder.permute(self._builder.reshape(value, parts), [dim, *others])
        first, *rest = shape_of(value.type)
        ones = [1] * max(0, _TILED - len(rest))
        return self._builder.reshape(value, [first, *ones, *rest])

    def side_by_side(self, value: SSAValue, shape: Sequence[int], dim: int) -> SSAValue:
        """Moves shards from the leading dimension to another one; the inverse of `apart`."""
        value = self._builder.reshape(value, [self.chips, *shape])
        before, after = range(1, dim + 1), range(dim + 1, len(shape) + 1)
        value = self._builder.permute(value, [*before, 0, *after])
        whole = list(shape)
        whole[dim] *= self.chips
        return self._builder.reshape(value, whole)

    def reduce(self, value: SSAValue, how: str, shape: Sequence[int]) -> SSAValue:
        """Reduces along the leading dimension and reshapes the result."""
        return self._builder.reshape(self._builder.reduce(how, value, [0]), shape)

    def _emit(self, name: str, value: SSAValue, shape: Sequence[int], **given: object) -> SSAValue:
        result = tensor_type(element_of(value.type), shape)
        return self._builder.emit(name, [value], result, **given)


def gather_in_steps(
    builder: OpBuilder, op: CatalogueOp, axis: int | None, dim: int
) -> SSAValue | None:
    """Decomposes an all-gather into steps along mesh axes.

    Args:
        builder: Builder of TTIR ops.
        op: Collective with the operand.
        axis: Mesh axis; None for the whole mesh.
        dim: Dimension of the operand.

    Returns:
        None if it is a single step already.
    """
    mesh, value = declared_mesh(op), builder.operand(op, "input")
    axes = _several(mesh, axes_of(mesh, axis, first=1))
    if len(axes) == 1 and has_whole_tiles(shape_of(value.type), dim):
        return None
    for each in axes:
        steps, shape = _Steps(builder, mesh, each), shape_of(value.type)
        if has_whole_tiles(shape, dim):
            value = steps.gather(value, dim)
        else:
            value = steps.side_by_side(steps.gather(steps.aside(value), 0), shape, dim)
    return value


def partition_in_steps(
    builder: OpBuilder, op: CatalogueOp, axis: int | None, dim: int
) -> SSAValue | None:
    """Decomposes a partition into steps; arguments and None as of `gather_in_steps`."""
    mesh, value = declared_mesh(op), builder.operand(op, "input")
    axes = _several(mesh, axes_of(mesh, axis))
    if len(axes) == 1 and has_whole_tiles(op.result_shape, dim):
        return None
    for each in axes:
        steps, shape = _Steps(builder, mesh, each), list(shape_of(value.type))
        shape[dim] //= steps.chips
        if has_whole_tiles(shape, dim):
            value = steps.partition(value, dim)
        else:
            share = steps.partition(steps.apart(value, dim), 0)
            value = builder.reshape(share, shape)
    return value


def exchange_in_steps(
    builder: OpBuilder, op: CatalogueOp, axis: int | None, split: int, concat: int
) -> SSAValue | None:
    """Decomposes an all-to-all into steps; `split` and `concat` are its dimensions.

    Other arguments and None as of `gather_in_steps`.
    """
    mesh, value = declared_mesh(op), builder.operand(op, "input")
    part = list(shape_of(value.type))
    part[split] //= op.parameter("split_count")
    if axis is not None:
        if has_whole_tiles(part, split) and has_whole_tiles(part, concat):
            return None
        steps = _Steps(builder, mesh, axis)
        return steps.side_by_side(steps.exchange(steps.apart(value, split), 0, 0), part, concat)
    # All devices are one group: exchange along the columns, then along the rows.
    several = _Steps(builder, (mesh[0] * mesh[1], 1), 0)
    value = several.apart(value, split)
    rest = shape_of(value.type)[1:]
    value = builder.reshape(value, [*mesh, *rest])
    for each in _several(mesh, [0, 1]):
        value = _Steps(builder, mesh, each).exchange(value, each, each)
    return several.side_by_side(value, part, concat)


def broadcast_in_steps(builder: OpBuilder, op: CatalogueOp, axis: int | None) -> SSAValue | None:
    """Decomposes a broadcast into steps; arguments and None as of `gather_in_steps`."""
    mesh, value = declared_mesh(op), builder.operand(op, "input")
    axes = _several(mesh, axes_of(mesh, axis, first=1))
    if len(axes) == 1 and axis is not None:
        return None
    for each in axes:
        value = _Steps(builder, mesh, each).first(value)
    return value


def reduce_in_steps(
    builder: OpBuilder, op: CatalogueOp, axis: int | None, divided: int | None
) -> SSAValue:
    """Stacks the values of the devices in a new dimension and reduces along it.

    With more than two devices that all get the result, each first reduces its shard and the shards
    are gathered: no device has to hold the tensors of all.

    Args:
        builder: Builder of TTIR ops.
        op: Collective with the operand and the reduction.
        axis: Mesh axis; None for the whole mesh.
        divided: Dimension to scatter; None if each device gets the full result.
    """
    mesh, value = declared_mesh(op), builder.operand(op, "input")
    for each in axes_of(mesh, axis):
        steps, shape = _Steps(builder, mesh, each), list(shape_of(value.type))
        shared = _divisible(shape, steps.chips) if divided is None else divided
        if shared is None:
            value = steps.gather(steps.aside(value), 0)
        else:
            shape[shared] //= steps.chips
            value = steps.exchange(steps.apart(value, shared), 0, 0)
        value = steps.reduce(value, op.parameter("reduce_type"), shape)
        if divided is None and shared is not None:
            value = steps.gather(value, shared)
    return value


def _divisible(shape: Sequence[int], chips: int) -> int | None:
    """Returns the first dimension that splits among more than two devices in whole tiles.

    None if there is none. With two devices, sharing the reduction saves no memory.
    """
    if chips <= 2:
        return None
    for dim, size in enumerate(shape):
        part = [*shape[:dim], size // chips, *shape[dim + 1 :]]
        if size % chips == 0 and size and has_whole_tiles(part, dim):
            return dim
    return None


def axis_of_pairs(mesh: MeshShape, pairs: Pairs) -> int | None:
    """Returns the mesh axis along which all pairs send, None if there is none."""

    def line(chip: int, axis: int) -> int:
        return chip // mesh[1] if axis == 1 else chip % mesh[1]

    return next(
        (
            axis
            for axis in _several(mesh, [1, 0])
            if all(line(source, axis) == line(target, axis) for source, target in pairs)
        ),
        None,
    )


def permute_in_steps(builder: OpBuilder, op: CatalogueOp, pairs: Pairs) -> SSAValue | None:
    """Decomposes a collective permute into rounds along the axes.

    A transfer to another row and column goes along its row first. In a round no device holds two
    tensors; the rounds are added, because no device receives in two of them. None if it is a single
    step already.
    """
    mesh, value = declared_mesh(op), builder.operand(op, "input")
    if not pairs:
        return builder.full(shape_of(value.type), 0.0, element_of(value.type))
    if axis_of_pairs(mesh, pairs) is not None:
        return None
    received: SSAValue | None = None
    for round_ in _rounds(mesh, pairs):
        along_rows = [(source, between) for source, between, _ in round_]
        along_columns = [(between, target) for _, between, target in round_]
        found = value
        for each in (along_rows, along_columns):
            found = builder.like("collective_permute", found, source_target_pairs=each)
        received = found if received is None else builder.like("add", received, found)
    return received


def _rounds(mesh: MeshShape, pairs: Pairs) -> Iterator[list[tuple[int, int, int]]]:
    """Groups (source, between, target) into rounds that use each intermediate device once.

    The intermediate device is in the row of the source and the column of the target.
    """
    rounds: list[dict[int, tuple[int, int, int]]] = []
    for source, target in pairs:
        between = source // mesh[1] * mesh[1] + target % mesh[1]
        free = next((each for each in rounds if between not in each), None)
        if free is None:
            rounds.append(free := dict[int, tuple[int, int, int]]())
        free[between] = (source, between, target)
    return (list(each.values()) for each in rounds)


def _several(mesh: MeshShape, axes: Sequence[int]) -> list[int]:
    """Returns the axes that have several devices."""
    return [axis for axis in axes if mesh[axis] > 1]


# Sharding of tensors in TTIR ops


class TensorParts:
    """Emits TTIR ops that shard tensors over a mesh and gather the shards."""

    def __init__(self, builder: OpBuilder, mesh: MeshShape) -> None:
        self._builder = builder
        self._mesh = mesh

    def _shape(self, value: SSAValue, dim: int, axis: int | None, grows: bool) -> list[int]:
        count = prod(self._mesh) if axis is None else self._mesh[axis]
        shape = list(shape_of(value.type))
        if not grows and shape[dim] % count:
            raise ValueError(f"dimension {dim} of {tuple(shape)} does not divide among {count}")
        shape[dim] = shape[dim] * count if grows else shape[dim] // count
        return shape

    def _emit(self, name: str, value: SSAValue, shape: Sequence[int], **given: object) -> SSAValue:
        return self._builder.emit(
            name, [value], tensor_type(element_of(value.type), shape), **given
        )

    def gather(self, value: SSAValue, dim: int, axis: int | None) -> SSAValue:
        """Concatenates the shards of the devices along an axis."""
        shape = self._shape(value, dim, axis, grows=True)
        return self._emit("all_gather", value, shape, all_gather_dim=dim, cluster_axis=axis)

    def partition(self, value: SSAValue, dim: int, axis: int | None) -> SSAValue:
        """Returns each device's shard of its value."""
        shape = self._shape(value, dim, axis, grows=False)
        return self._emit("mesh_partition", value, shape, dim=dim, cluster_axis=axis)

    def reduce(self, value: SSAValue, how: str, axis: int | None) -> SSAValue:
        """Reduces the values of the devices along an axis."""
        shape = shape_of(value.type)
        return self._emit("all_reduce", value, shape, reduce_type=how, cluster_axis=axis)

    def reduce_scatter(self, value: SSAValue, how: str, dim: int, axis: int | None) -> SSAValue:
        """Reduces the values of the devices along an axis and scatters the result."""
        shape = self._shape(value, dim, axis, grows=False)
        given = {"scatter_dim": dim, "reduce_type": how, "cluster_axis": axis}
        return self._emit("reduce_scatter", value, shape, **given)

    def divide(self, value: SSAValue, sharding: Sharding, inside: bool) -> SSAValue:
        """Shards a full tensor; `inside` a computation on shards, each device's own value."""
        first, rest = _in_order(sharding, inside)
        value = self._mesh_shard(value, first, "full_to_shard")
        for dim, axis in rest:
            value = self.partition(value, dim, axis)
        return value

    def unite(self, value: SSAValue, sharding: Sharding, inside: bool) -> SSAValue:
        """Gathers the shards of a sharding to the full tensor."""
        first, rest = _in_order(sharding, inside)
        for dim, axis in reversed(rest):
            value = self.gather(value, dim, axis)
        return self._mesh_shard(value, first, "shard_to_full")

    def _mesh_shard(self, value: SSAValue, dims: dict[int, int], direction: str) -> SSAValue:
        if not dims:
            return value
        shape = list(shape_of(value.type))
        placements = [dims.get(axis, -1) for axis in (0, 1)]
        parts = parts_of(shape, placements, self._mesh)
        for dim, count in enumerate(parts):
            if direction == "shard_to_full":
                shape[dim] *= count
            elif shape[dim] % count:
                raise ValueError(f"{tuple(shape)} does not divide into {count} in dimension {dim}")
            else:
                shape[dim] //= count
        given = {
            "shard_shape": parts,
            "shard_dims": placements,
            "shard_type": "devices",
            "shard_direction": direction,
        }
        return self._emit("mesh_shard", value, shape, **given)


def _in_order(sharding: Sharding, inside: bool) -> tuple[dict[int, int], list[tuple[int, int]]]:
    """Splits a sharding into the part of one mesh_shard and the steps that follow it.

    The first is a tensor dimension per mesh axis, the second pairs of dimension and axis. If both
    mesh axes shard one dimension in the order (1, 0), mesh_shard takes the major axis. `inside` a
    computation on shards there is no mesh_shard, which goes between host and devices.
    """
    first: dict[int, int] = {}
    rest: list[tuple[int, int]] = []
    for dim, axes in enumerate(sharding):
        in_one = () if inside else axes[:1] if list(axes) == [1, 0] else axes
        first |= dict.fromkeys(in_one, dim)
        rest += [(dim, axis) for axis in axes[len(in_one) :]]
    return first, rest


# Collectives of a splat: their results are known without communication.


def fold_splat(builder: OpBuilder, op: CatalogueOp) -> SSAValue | None:
    """Folds a collective of a splat, None for other operands."""
    number = splat_of(op.operand("input"))
    element = element_of(op.result_type)
    if number is None or declared_mesh(op) == ONE_CHIP or is_boolean(element):
        return None
    result = builder.full(op.result_shape, number, element)
    factor: SSAValue | None = None
    if op.name == "ttir.collective_permute":
        factor = _receivers(builder, op)
    elif op.parameters().get("reduce_type") == "sum":
        factor = builder.full([1] * len(op.result_shape), participants(op), element)
    return result if factor is None else builder.broadcasting("multiply", result, factor)


def _receivers(builder: OpBuilder, op: CatalogueOp) -> SSAValue | None:
    """Returns 1 on devices that receive a value, 0 on others; None if all do."""
    mesh, rank = declared_mesh(op), len(op.result_shape)
    targets = {target for _, target in op.parameter("source_target_pairs") or ()}
    if len(targets) == prod(mesh):
        return None
    flags = np.array([chip in targets for chip in range(prod(mesh))], np.float32)
    sharding = tuple((axis,) if mesh[axis] > 1 else () for axis in (0, 1))
    whole = builder.constant(flags.reshape(mesh), f32)
    flag = builder.reshape(TensorParts(builder, mesh).divide(whole, sharding, False), [1] * rank)
    return builder.typecast(flag, element_of(op.result_type))
