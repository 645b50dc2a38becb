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

# Ops between the chips of a mesh in steps: movements between the chips along one axis of the
# mesh, of whole tiles, and what each chip does with what it has before and after them. Programs
# of the device are made of the latter, and the chips do the former over their links.
#
# What has no whole tiles along a dimension is moved along a new first dimension, before the two
# that tiles have.

Pairs = Sequence[tuple[int, int]]
"""Chips that send, each with one that receives."""

_TILED = 2
"""So many dimensions of a tensor, the last ones, have tiles."""


def has_whole_tiles(part: Sequence[int], dim: int) -> bool:
    """True if parts of that shape, side by side along a dimension, are parts in whole tiles."""
    return dim < len(part) - _TILED or part[dim] % TILE_SIDE == 0


class _Steps:
    """Makes the steps along one axis of the mesh."""

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
        """The share of each chip of what it has."""
        shape = list(shape_of(value.type))
        shape[dim] //= self.chips
        return self._emit("mesh_partition", value, shape, dim=dim, cluster_axis=self._axis)

    def exchange(self, value: SSAValue, split: int, concat: int) -> SSAValue:
        """The parts that the chips have for each, side by side."""
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
        """`value` with a new first dimension of one part, before those that tiles have."""
        shape = shape_of(value.type)
        ones = [1] * (1 + max(0, _TILED - len(shape)))
        return self._builder.reshape(value, [*ones, *shape])

    def apart(self, value: SSAValue, dim: int) -> SSAValue:
        """`value` with the parts of a dimension along a new first one."""
        shape = list(shape_of(value.type))
        parts = [*shape[:dim], self.chips, shape[dim] // self.chips, *shape[dim + 1 :]]
        others = [axis for axis in range(len(parts)) if axis != dim]
        value = self._builder.permute(self._builder.reshape(value, parts), [dim, *others])
        first, *rest = shape_of(value.type)
        ones = [1] * max(0, _TILED - len(rest))
        return self._builder.reshape(value, [first, *ones, *rest])

    def side_by_side(self, value: SSAValue, shape: Sequence[int], dim: int) -> SSAValue:
        """Parts of that shape along a first dimension, along another one of theirs."""
        value = self._builder.reshape(value, [self.chips, *shape])
        before, after = range(1, dim + 1), range(dim + 1, len(shape) + 1)
        value = self._builder.permute(value, [*before, 0, *after])
        whole = list(shape)
        whole[dim] *= self.chips
        return self._builder.reshape(value, whole)

    def reduce(self, value: SSAValue, how: str, shape: Sequence[int]) -> SSAValue:
        """Tensors of that shape along a first dimension, as one."""
        return self._builder.reshape(self._builder.reduce(how, value, [0]), shape)

    def _emit(self, name: str, value: SSAValue, shape: Sequence[int], **given: object) -> SSAValue:
        result = tensor_type(element_of(value.type), shape)
        return self._builder.emit(name, [value], result, **given)


def gather_in_steps(
    builder: OpBuilder, op: CatalogueOp, axis: int | None, dim: int
) -> SSAValue | None:
    """Decomposes an all-gather into steps along mesh axes, or returns None.

    None says that it is a single step already.

    Args:
        builder: makes ops of TTIR.
        op: has the operand.
        axis: that of the mesh; None for all of it.
        dim: of the operand.
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
    """The share of each chip of what it has; None if that is one step already. The arguments are
    those of `gather_in_steps`."""
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
    """The parts that the chips have for each, side by side; None if that is one step already. The
    arguments are those of `gather_in_steps`, with the dimension to divide and the one to join."""
    mesh, value = declared_mesh(op), builder.operand(op, "input")
    part = list(shape_of(value.type))
    part[split] //= op.parameter("split_count")
    if axis is not None:
        if has_whole_tiles(part, split) and has_whole_tiles(part, concat):
            return None
        steps = _Steps(builder, mesh, axis)
        return steps.side_by_side(steps.exchange(steps.apart(value, split), 0, 0), part, concat)
    # All chips are one group: those of each column, and then those of each row.
    several = _Steps(builder, (mesh[0] * mesh[1], 1), 0)
    value = several.apart(value, split)
    rest = shape_of(value.type)[1:]
    value = builder.reshape(value, [*mesh, *rest])
    for each in _several(mesh, [0, 1]):
        value = _Steps(builder, mesh, each).exchange(value, each, each)
    return several.side_by_side(value, part, concat)


def broadcast_in_steps(builder: OpBuilder, op: CatalogueOp, axis: int | None) -> SSAValue | None:
    """Decomposes a broadcast into steps along mesh axes, or returns None.

    The arguments are those of `gather_in_steps`.
    """
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

    Where every device gets the result and there are more than two, each first reduces its share and
    the shares are gathered: no device has to hold the tensors of all.

    Args:
        builder: makes ops of TTIR.
        op: has the operand and says how to reduce.
        axis: that of the mesh; None for all of it.
        divided: the dimension that each chip gets its share of; None if each gets all.
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
    """The first dimension that divides among more than two chips in whole tiles, None if none
    does: of two chips, each has as much of the other's tensor either way."""
    if chips <= 2:
        return None
    for dim, size in enumerate(shape):
        part = [*shape[:dim], size // chips, *shape[dim + 1 :]]
        if size % chips == 0 and size and has_whole_tiles(part, dim):
            return dim
    return None


def axis_of_pairs(mesh: MeshShape, pairs: Pairs) -> int | None:
    """The axis of several chips that all pairs lie along, None if there is none."""

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
    """Decomposes a collective permute into point-to-point rounds, or returns None.

    What goes to another row and another column goes along its row first. Rounds in which no chip
    holds two tensors at a time are added up: no chip receives in two of them.
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
    """Sources, the chips of their rows that are in the columns of their targets, and targets; in
    each round each chip between them once."""
    rounds: list[dict[int, tuple[int, int, int]]] = []
    for source, target in pairs:
        between = source // mesh[1] * mesh[1] + target % mesh[1]
        free = next((each for each in rounds if between not in each), None)
        if free is None:
            rounds.append(free := dict[int, tuple[int, int, int]]())
        free[between] = (source, between, target)
    return (list(each.values()) for each in rounds)


def _several(mesh: MeshShape, axes: Sequence[int]) -> list[int]:
    """Those of the axes that have several chips."""
    return [axis for axis in axes if mesh[axis] > 1]


# Whole tensors and their parts on the chips of a mesh, in ops of TTIR.


class TensorParts:
    """Makes ops of TTIR that divide tensors among the chips of a mesh, and join what they have."""

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
        """The share of each chip of what it has."""
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
        """The parts that a sharding makes of a tensor that all have; `inside` a computation on
        parts, of what each chip has."""
        first, rest = _in_order(sharding, inside)
        value = self._mesh_shard(value, first, "full_to_shard")
        for dim, axis in rest:
            value = self.partition(value, dim, axis)
        return value

    def unite(self, value: SSAValue, sharding: Sharding, inside: bool) -> SSAValue:
        """The whole of the parts that a sharding made."""
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
    """Splits a sharding into the part of one op and the part that follows it.

    The first is a tensor dimension per mesh axis, the second pairs of dimension and axis. Where
    both mesh axes shard one dimension, one op takes the rows of the major axis. That op goes
    between host and devices: `inside` a computation on shards nothing is left to it.
    """
    first: dict[int, int] = {}
    rest: list[tuple[int, int]] = []
    for dim, axes in enumerate(sharding):
        in_one = () if inside else axes[:1] if list(axes) == [1, 0] else axes
        first |= dict.fromkeys(in_one, dim)
        rest += [(dim, axis) for axis in axes[len(in_one) :]]
    return first, rest


# Ops between the chips of a mesh of a tensor of one number, which all chips have: what they get
# is known without sending anything.


def of_one_number(builder: OpBuilder, op: CatalogueOp) -> SSAValue | None:
    """Returns a one-element operand of a collective on all devices, else None."""
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
    """1 on the chips that receive something, 0 on all others; None if all do."""
    mesh, rank = declared_mesh(op), len(op.result_shape)
    targets = {target for _, target in op.parameter("source_target_pairs") or ()}
    if len(targets) == prod(mesh):
        return None
    flags = np.array([chip in targets for chip in range(prod(mesh))], np.float32)
    sharding = tuple((axis,) if mesh[axis] > 1 else () for axis in (0, 1))
    whole = builder.constant(flags.reshape(mesh), f32)
    flag = builder.reshape(TensorParts(builder, mesh).divide(whole, sharding, False), [1] * rank)
    return builder.typecast(flag, element_of(op.result_type))
