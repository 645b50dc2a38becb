"""Reference semantics of collectives in numpy: one result per device of the mesh."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import reduce

from ttcodegen.dialects.ttcore.mesh import (
    ONE_CHIP,
    MeshShape,
    coordinates,
    groups_along,
    two_dimensional,
)
from ttcodegen.foundation.lazy_numpy import Array, np
from ttcodegen.ops.core.definition import Call

REDUCTIONS = ("sum", "max", "min", "mean", "prod")
"""Reductions of the values of several devices, by name."""


def mesh_of(call: Call) -> MeshShape:
    """The mesh that a call runs on."""
    return two_dimensional(call.attributes.get("mesh_shape") or ()) or ONE_CHIP


def axes_of(mesh: MeshShape, axis: int | None, first: int = 0) -> list[int]:
    """The axes that a collective goes along, in order: the one that is given, or all that have
    several chips, as the library does it, beginning with `first`."""
    if axis is not None:
        return [axis]
    return [each for each in (first, 1 - first) if mesh[each] > 1]


def only_axis(mesh: MeshShape, axis: int | None) -> int | None:
    """The axis that a collective goes along, if it is one of several chips."""
    several = [each for each in axes_of(mesh, axis) if mesh[each] > 1]
    return several[0] if len(several) == 1 else None


def reduced(arrays: Iterable[Array], how: str) -> Array:
    """Arrays of several chips as one; sums are added up in the order of the chips."""
    several = list(arrays)
    functions: dict[str, Callable[[Array, Array], Array]] = {
        "max": np.maximum,
        "min": np.minimum,
        "prod": np.multiply,
    }
    result = reduce(functions.get(how, np.add), several)
    return result / len(several) if how == "mean" else result


def _along(
    call: Call, parts: Sequence[Array], axes: Sequence[int], join: Callable[[list[Array]], Array]
) -> list[Array]:
    """Joins what the chips of each group have, axis by axis; all of a group get the result."""
    mesh = mesh_of(call)
    result = list(parts)
    for axis in axes:
        for group in groups_along(mesh, axis):
            joined = join([result[chip] for chip in group])
            for chip in group:
                result[chip] = joined
    return result


def _split_along(call: Call, parts: Sequence[Array], axes: Sequence[int], dim: int) -> list[Array]:
    """Each chip's share of what its group has, by its index in the group, axis by axis."""
    mesh = mesh_of(call)
    result = list(parts)
    for axis in axes:
        for group in groups_along(mesh, axis):
            for place, chip in enumerate(group):
                result[chip] = np.split(result[chip], len(group), axis=dim)[place]
    return result


def _inputs(calls: Sequence[Call]) -> list[Array]:
    return [call.array("input") for call in calls]


def gathered(calls: Sequence[Call], dim: int, axis: int | None) -> list[Array]:
    """Concatenates the shards of the devices along an axis, for each device."""
    axes = axes_of(mesh_of(calls[0]), axis, first=1)
    return _along(calls[0], _inputs(calls), axes, lambda group: np.concatenate(group, axis=dim))


def all_reduced(calls: Sequence[Call], how: str, axis: int | None) -> list[Array]:
    """Reduces the values of the devices along an axis, for each device."""
    axes = axes_of(mesh_of(calls[0]), axis)
    return _along(calls[0], _inputs(calls), axes, lambda group: reduced(group, how))


def reduce_scattered(calls: Sequence[Call], how: str, dim: int, axis: int | None) -> list[Array]:
    """Reduces the values of the devices along an axis and gives each its shard."""
    result = _inputs(calls)
    for each in axes_of(mesh_of(calls[0]), axis):
        result = _along(calls[0], result, [each], lambda group: reduced(group, how))
        result = _split_along(calls[0], result, [each], dim)
    return result


def partitioned(calls: Sequence[Call], dim: int, axis: int | None) -> list[Array]:
    """Each chip's share of what it has, by its index along an axis or in the whole mesh."""
    if axis is None:
        return [
            np.split(array, len(calls), axis=dim)[chip] for chip, array in enumerate(_inputs(calls))
        ]
    return _split_along(calls[0], _inputs(calls), [axis], dim)


def permuted(calls: Sequence[Call], pairs: Sequence[Sequence[int]]) -> list[Array]:
    """Returns the value of each device's source, zeros without a source."""
    result = [np.zeros_like(array) for array in _inputs(calls)]
    for source, target in pairs:
        result[target] = calls[source].array("input")
    return result


def broadcast_in_groups(calls: Sequence[Call], groups: Sequence[Sequence[int]]) -> list[Array]:
    """Broadcasts the value of each group's first device; zeros outside of groups."""
    result = [np.zeros_like(array) for array in _inputs(calls)]
    for group in groups:
        for chip in group:
            result[chip] = calls[group[0]].array("input")
    return result


def exchanged(
    calls: Sequence[Call], groups: Sequence[Sequence[int]], split_dim: int, concat_dim: int
) -> list[Array]:
    """For each chip the parts that the chips of its group have for it, side by side."""
    result = _inputs(calls)
    for group in groups:
        parts = [np.split(calls[chip].array("input"), len(group), axis=split_dim) for chip in group]
        for place, chip in enumerate(group):
            result[chip] = np.concatenate([each[place] for each in parts], axis=concat_dim)
    return result


def distributed(whole: Array, mesh: MeshShape, placements: Sequence[int]) -> list[Array]:
    """The part of each chip; `placements` has for each axis of the mesh the dimension that is
    divided along it, -1 for an axis along which chips hold the same."""
    parts: list[Array] = []
    for place in coordinates(mesh):
        part = whole
        for axis, dim in enumerate(placements):
            if dim >= 0:
                part = np.split(part, mesh[axis], axis=dim)[place[axis]]
        parts.append(part)
    return parts


def composed(parts: Sequence[Array], mesh: MeshShape, placements: Sequence[int]) -> Array:
    """The whole of what chips have a part of each; the reverse of `distributed`."""
    rows, columns = mesh
    grid = [list(parts[row * columns : (row + 1) * columns]) for row in range(rows)]
    row_dim, column_dim = placements
    joined = [np.concatenate(row, axis=column_dim) if column_dim >= 0 else row[0] for row in grid]
    return np.concatenate(joined, axis=row_dim) if row_dim >= 0 else joined[0]
