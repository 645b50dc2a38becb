"""Whole tensors and their parts on the chips of a mesh, in ops of TTIR."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.ir import SSAValue

from ttcodegen.dialects.core.datatypes import element_of, shape_of, tensor_type
from ttcodegen.dialects.ttcore.mesh import MeshShape, parts_of
from ttcodegen.dialects.ttir.sharding import Sharding
from ttcodegen.ops.core.builder import OpBuilder


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
