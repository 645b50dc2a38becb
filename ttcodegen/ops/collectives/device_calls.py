"""Emission of ttnn collectives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from xdsl.ir import Operation, SSAValue

from ttcodegen.dialects.core.datatypes import element_of, shape_of, tensor_type
from ttcodegen.dialects.ttcore.device import declared_mesh
from ttcodegen.ops.collectives.reference import only_axis
from ttcodegen.ops.collectives.schedule import has_whole_tiles
from ttcodegen.ops.core.builder import OpBuilder


class Chips:
    """Emits ttnn collectives that replace a TTIR op."""

    def __init__(self, builder: OpBuilder, op: Operation) -> None:
        self._builder = builder
        self._mesh = declared_mesh(op)

    def participants(self, axis: int | None) -> int:
        """Returns the number of devices along a mesh axis; None counts the whole mesh."""
        return prod(self._mesh) if axis is None else self._mesh[axis]

    def _emit(self, name: str, value: SSAValue, shape: Sequence[int], **given: Any) -> SSAValue:
        result = tensor_type(element_of(value.type), shape)
        mesh = list(self._mesh)
        return self._builder.emit(name, [value], result, mesh_shape=mesh, **given)

    def _on_rows(
        self, value: SSAValue, dim: int, call: Callable[[SSAValue, int], SSAValue]
    ) -> SSAValue:
        """Adds dimensions up to rank 2, the minimum of the library, around a call."""
        shape = shape_of(value.type)
        if len(shape) >= 2:
            return call(value, dim)
        missing = 2 - len(shape)
        result = call(self._builder.reshape(value, (1,) * missing + shape), dim + missing)
        return self._builder.reshape(result, shape_of(result.type)[missing:])

    def gather(self, value: SSAValue, dim: int, axis: int | None) -> SSAValue:
        """Concatenates the shards of the devices along an axis."""

        def call(value: SSAValue, dim: int) -> SSAValue:
            shape = list(shape_of(value.type))
            shape[dim] *= self.participants(axis)
            given = {"all_gather_dim": dim, "cluster_axis": axis}
            return self._emit("all_gather", value, shape, **given)

        return value if self.participants(axis) == 1 else self._on_rows(value, dim, call)

    def gather_stacked(self, value: SSAValue, axis: int | None) -> SSAValue:
        """Gathers the values of the devices along an axis in a new leading dimension."""
        shape = shape_of(value.type)
        return self.gather(self._builder.reshape(value, (1, *shape)), 0, axis)

    def partition(self, value: SSAValue, dim: int, axis: int | None) -> SSAValue:
        """Returns each device's shard of a tensor that is replicated along an axis."""

        def call(value: SSAValue, dim: int) -> SSAValue:
            shape = list(shape_of(value.type))
            shape[dim] //= self.participants(axis)
            return self._emit("mesh_partition", value, shape, dim=dim, cluster_axis=axis)

        return value if self.participants(axis) == 1 else self._on_rows(value, dim, call)

    def reduce(self, value: SSAValue, how: str, axis: int | None) -> SSAValue:
        """Reduces the values of the devices along an axis.

        The library has sums only; other reductions gather, and each device reduces.
        """
        if self.participants(axis) == 1:
            return value
        shape = shape_of(value.type)
        if how == "sum":
            return self._on_rows(
                value,
                0,
                lambda value, _: self._emit(
                    "all_reduce", value, shape_of(value.type), cluster_axis=axis
                ),
            )
        result = tensor_type(element_of(value.type), (1, *shape))
        gathered = self.gather_stacked(value, axis)
        reduced = self._builder.emit(how, [gathered], result, dim_arg=[0], keep_dim=True)
        return self._builder.reshape(reduced, shape)

    def reduce_scatter(self, value: SSAValue, how: str, dim: int, axis: int | None) -> SSAValue:
        """Reduces the values of the devices along an axis and scatters the result."""
        if how != "sum":
            return self.partition(self.reduce(value, how, axis), dim, axis)

        def call(value: SSAValue, dim: int) -> SSAValue:
            shape = list(shape_of(value.type))
            shape[dim] //= self.participants(axis)
            return self._emit("reduce_scatter", value, shape, scatter_dim=dim, cluster_axis=axis)

        return value if self.participants(axis) == 1 else self._on_rows(value, dim, call)

    def first_of_group(self, value: SSAValue, axis: int | None) -> SSAValue:
        """Broadcasts the value of the first device along an axis.

        The library's broadcast has one sender, so that it serves meshes of one row or column only;
        others gather and slice.
        """
        shape = shape_of(value.type)
        if self.participants(axis) == 1:
            return value
        if 1 in self._mesh:
            return self._on_rows(
                value,
                0,
                lambda value, _: self._emit(
                    "broadcast", value, shape_of(value.type), sender_coord=[0, 0]
                ),
            )
        gathered = self.gather_stacked(value, axis)
        return self._builder.reshape(self._builder.slice_dim(gathered, 0, 0, 1), shape)

    def send(
        self, value: SSAValue, sender: int, receiver: int, kept: SSAValue | None = None
    ) -> SSAValue:
        """Sends the value of one device to another.

        Every other device keeps its part of `kept`, or an undefined value without it. The library
        sends along one axis: a transfer to another row and column goes along its row first.
        """
        place, target = (list(divmod(chip, self._mesh[1])) for chip in (sender, receiver))
        if place[0] != target[0] and place[1] != target[1]:
            between = place[0] * self._mesh[1] + target[1]
            value, place = self.send(value, sender, between), [place[0], target[1]]
        return self._builder.emit(
            "point_to_point",
            [value] if kept is None else [value, kept],
            tensor_type(element_of(value.type), shape_of(value.type)),
            send_coord=place,
            receive_coord=target,
            mesh_shape=list(self._mesh),
        )

    def permute(self, value: SSAValue, pairs: Sequence[Sequence[int]]) -> SSAValue:
        """Moves the value of each source to its target; devices without a source get zeros."""
        shape, chips = shape_of(value.type), self.participants(None)
        staying = [source for source, target in pairs if source == target]
        received: SSAValue | None = value if staying else None
        if len(pairs) < chips:
            if staying:
                return self._permute_gathered(value, pairs)
            received = self._builder.full(shape, 0.0, element_of(value.type))
        for source, target in pairs:
            if source != target:
                received = self.send(value, source, target, received)
        assert received is not None
        return received

    def _permute_gathered(self, value: SSAValue, pairs: Sequence[Sequence[int]]) -> SSAValue:
        """Permutes where some devices keep their value and others get zeros.

        All gather, reorder by target, and take their shard.
        """
        shape = shape_of(value.type)
        gathered = self.gather_stacked(value, None)
        zeros = self._builder.full((1, *shape), 0.0, element_of(value.type))
        source_of = {target: source for source, target in pairs}
        parts = [
            self._builder.slice_dim(gathered, 0, source_of[chip], source_of[chip] + 1)
            if chip in source_of
            else zeros
            for chip in range(self.participants(None))
        ]
        ordered = self._builder.concat(parts, 0)
        return self._builder.reshape(self.partition(ordered, 0, None), shape)

    def exchange(self, value: SSAValue, split: int, concat: int, axis: int | None) -> SSAValue:
        """All-to-all: splits one dimension among the devices, concatenates another."""
        chips, shape = self.participants(axis), list(shape_of(value.type))
        along = only_axis(self._mesh, axis)
        if along is not None and _exchanges_tiles(shape, split, concat, chips):
            shape[split] //= chips
            shape[concat] *= chips
            given = {"in_dim": concat, "out_dim": split, "cluster_axis": along}
            return self._emit("all_to_all_async_generic", value, shape, **given)
        if split != concat:
            return self.partition(self.gather(value, concat, axis), split, axis)
        # The shards get a new dimension.
        parts = [*shape[:split], chips, shape[split] // chips, *shape[split + 1 :]]
        gathered = self.gather(self._builder.reshape(value, parts), split + 1, axis)
        return self._builder.reshape(self.partition(gathered, split, axis), shape)


def _exchanges_tiles(shape: Sequence[int], split: int, concat: int, chips: int) -> bool:
    """True if the library can exchange a tensor of that shape: in whole tiles."""
    part = list(shape)
    part[split] //= chips
    return (
        len(shape) >= 2
        and split != concat
        and has_whole_tiles(part, split)
        and has_whole_tiles(part, concat)
    )
