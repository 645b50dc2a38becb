"""Semantics of collectives: participants, shapes, and reference results in numpy."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from math import prod
from typing import Any, cast

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, i64
from xdsl.ir import Attribute, Operation
from xdsl.utils.exceptions import VerifyException

from ttcodegen.dialects.core.datatypes import shape_of, tensor_type
from ttcodegen.dialects.operations.attribute_kinds import INTEGERS, AttributeKind
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttcore.device import (
    ONE_CHIP,
    MeshShape,
    coordinates,
    declared_mesh,
    groups_along,
    two_dimensional,
)
from ttcodegen.foundation.lazy_numpy import Array, np
from ttcodegen.ops.core.definition import Call, attribute
from ttcodegen.ops.core.dimensions import expect_shape, normalized_dim, require
from ttcodegen.ops.core.traits import NeededChips, integer_of, on_axis
from ttcodegen.systems.cards import MOST_CHIPS

# Reference semantics of collectives in numpy: one result per device of the mesh.

REDUCTIONS = ("sum", "max", "min", "mean", "prod")
"""Names of the reductions over devices."""


def mesh_of(call: Call) -> MeshShape:
    """Returns the mesh that a call runs on."""
    return two_dimensional(call.attributes.get("mesh_shape") or ()) or ONE_CHIP


def axes_of(mesh: MeshShape, axis: int | None, first: int = 0) -> list[int]:
    """Returns the mesh axes of a collective, in order: `axis`, or all of several devices from
    `first` on.
    """
    if axis is not None:
        return [axis]
    return [each for each in (first, 1 - first) if mesh[each] > 1]


def only_axis(mesh: MeshShape, axis: int | None) -> int | None:
    """Returns the only axis of several devices that a collective uses, None for none or both."""
    several = [each for each in axes_of(mesh, axis) if mesh[each] > 1]
    return several[0] if len(several) == 1 else None


def reduced(arrays: Iterable[Array], how: str) -> Array:
    """Reduces the arrays of several devices to one; sums are in device order."""
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
    """Joins the values of each group, axis by axis; all devices of a group get the result."""
    mesh = mesh_of(call)
    result = list(parts)
    for axis in axes:
        for group in groups_along(mesh, axis):
            joined = join([result[chip] for chip in group])
            for chip in group:
                result[chip] = joined
    return result


def _split_along(call: Call, parts: Sequence[Array], axes: Sequence[int], dim: int) -> list[Array]:
    """Returns each device's shard by its index in the group, axis by axis."""
    mesh = mesh_of(call)
    result = list(parts)
    for axis in axes:
        for group in groups_along(mesh, axis):
            for index, chip in enumerate(group):
                result[chip] = np.split(result[chip], len(group), axis=dim)[index]
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
    """Returns each device's shard of its value, by its index along an axis or in the mesh."""
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
    """All-to-all within groups: splits one dimension, concatenates another."""
    result = _inputs(calls)
    for group in groups:
        parts = [np.split(calls[chip].array("input"), len(group), axis=split_dim) for chip in group]
        for index, chip in enumerate(group):
            result[chip] = np.concatenate([each[index] for each in parts], axis=concat_dim)
    return result


def distributed(whole: Array, mesh: MeshShape, placements: Sequence[int]) -> list[Array]:
    """Returns the shard of each device.

    `placements` has the dimension that is sharded along each mesh axis, -1 for replicas.
    """
    parts: list[Array] = []
    for place in coordinates(mesh):
        part = whole
        for axis, dim in enumerate(placements):
            if dim >= 0:
                part = np.split(part, mesh[axis], axis=dim)[place[axis]]
        parts.append(part)
    return parts


def composed(parts: Sequence[Array], mesh: MeshShape, placements: Sequence[int]) -> Array:
    """Composes shards to the full tensor; the inverse of `distributed`."""
    rows, columns = mesh
    grid = [list(parts[row * columns : (row + 1) * columns]) for row in range(rows)]
    row_dim, column_dim = placements
    joined = [np.concatenate(row, axis=column_dim) if column_dim >= 0 else row[0] for row in grid]
    return np.concatenate(joined, axis=row_dim) if row_dim >= 0 else joined[0]


# Groups of devices that participate in a collective, derived from its attributes.


def _decode_groups(groups: Attribute) -> list[list[int]]:
    numbers = INTEGERS.decode(groups)
    size = len(numbers)
    if isinstance(groups, DenseIntOrFPElementsAttr):
        shape = shape_of(cast("Attribute", groups.type))  # pyright: ignore[reportUnknownMemberType]
        if len(shape) != 2 or prod(shape) > 2 * MOST_CHIPS:
            # Groups name each device once, source-target pairs twice.
            raise ValueError
        size = shape[1]
        # A splat holds its value once.
        numbers *= prod(shape) // max(len(numbers), 1)
    return [numbers[start : start + size] for start in range(0, len(numbers), max(size, 1))]


def _encode_groups(groups: Sequence[Sequence[int]]) -> Attribute:
    type_ = tensor_type(i64, (len(groups), len(groups[0]) if groups else 0))
    numbers = [chip for group in groups for chip in group]
    return DenseIntOrFPElementsAttr.from_list(type_, numbers)  # pyright: ignore


CHIP_GROUPS = AttributeKind[list[list[int]]]("rows of chips", _decode_groups, _encode_groups)

MESH_SHAPE = attribute("mesh_shape", INTEGERS, None)
"""Mesh that an op runs on; TTIR ops leave it to their module."""


def mesh_axis(op: CatalogueOp) -> int | None:
    """Returns the mesh axis of a collective, None for the whole mesh.

    Raises VerifyException if the axis is out of range or `num_links` is below 1.
    """
    given = op.parameters()
    axis, links = given["cluster_axis"], given.get("num_links")
    if axis is not None and not 0 <= axis < 2:
        raise VerifyException(f"{op.name}: a mesh has the axes 0 and 1, found cluster_axis {axis}")
    if links is not None and links < 1:
        raise VerifyException(f"{op.name}: chips exchange over links, found num_links {links}")
    return axis


def participants(op: CatalogueOp) -> int:
    """Counts the devices that participate in a collective."""
    mesh = declared_mesh(op)
    axis = mesh_axis(op)
    return prod(mesh) if axis is None else mesh[axis]


def groups_of(op: CatalogueOp) -> list[list[int]]:
    """Returns the groups of a collective: `replica_groups`, by default all devices.

    Raises VerifyException unless they name devices of the mesh at most once.
    """
    mesh = declared_mesh(op)
    groups = op.parameter("replica_groups")
    if groups is None:
        return [list(range(prod(mesh)))]
    chips = [chip for group in groups for chip in group]
    if len(set(chips)) != len(chips) or not set(chips) <= set(range(prod(mesh))):
        raise VerifyException(
            f"{op.name}: replica_groups {groups} should name chips of the mesh of "
            f"{mesh[0]}x{mesh[1]}, each once"
        )
    return groups


def axis_of_groups(mesh: MeshShape, groups: Sequence[Sequence[int]]) -> int | None:
    """Returns the mesh axis that the groups follow, None for other groups."""
    written = [list(group) for group in groups]
    return next((axis for axis in (1, 0) if groups_along(mesh, axis) == written), None)


def chips_of_groups(op: Operation) -> NeededChips | None:
    """Returns the devices listed in groups or source-target pairs, None if none are."""
    for name in ("replica_groups", "source_target_pairs"):
        rows = op.properties.get(name, op.attributes.get(name))
        if rows is None:
            continue
        try:
            listed = CHIP_GROUPS.decode(rows)
        except (TypeError, ValueError):
            # Verification says what is wrong with it.
            return None
        most = max((chip for row in listed for chip in row), default=0) + 1
        along = _mesh_of_groups(listed, most) if name == "replica_groups" else (1, 1)
        return NeededChips(along, most)
    return None


def _mesh_of_groups(groups: Sequence[Sequence[int]], chips: int) -> MeshShape:
    """Returns the mesh whose rows or columns are the groups, (1, 1) if there is none."""
    if chips > MOST_CHIPS:
        return 1, 1
    size = max(map(len, groups), default=1)
    for shape, axis in (((chips // size, size), 1), ((size, chips // size), 0)):
        if axis_of_groups(shape, groups) == axis:
            return shape
    return 1, 1


def chips_of_collective(op: Operation) -> NeededChips:
    """Returns the devices that a collective lists, else the ratio of its operand and result
    sizes.
    """
    listed = chips_of_groups(op)
    if listed is not None:
        return listed
    if not op.operands or not op.results:
        # Verification says what is wrong with it.
        return NeededChips((1, 1), 1)
    sizes = [prod(shape_of(value.type)) for value in (op.operands[0], op.results[0])]
    ratio = max(sizes) // min(sizes) if min(sizes) > 0 else 1
    return NeededChips(on_axis(integer_of(op, "cluster_axis"), ratio), ratio)


# Properties of collectives: dimensions, shapes and participating devices.


# Attribute names of different versions

GATHER_DIMS = ("all_gather_dim", "dim")
SCATTER_DIMS = ("scatter_dim", "scatter_split_dim")


def first_given(given: Callable[[str], Any], names: Sequence[str]) -> int | None:
    """Returns the first of the attributes that is set; `given` gets an attribute."""
    return next((given(name) for name in names if given(name) is not None), None)


def dim_of(op: CatalogueOp, *names: str) -> int:
    """Returns the dimension in the first of the attributes that is set, counted from the front."""
    dim = first_given(op.parameter, names)
    if dim is None:
        raise VerifyException(f"{op.name} needs the attribute '{names[0]}'")
    return normalized_dim(op, dim, len(op.shape("input")))


# Verifiers


def _expect_scaled(op: CatalogueOp, dim: int, grows: bool) -> None:
    """Raises VerifyException unless one dimension scales by the number of participants.

    Without a declared mesh any integer factor is accepted.
    """
    shape, result, chips = op.shape("input"), op.result_shape, participants(op)
    parts, whole = (shape, result) if grows else (result, shape)
    fits = len(shape) == len(result) and all(
        (parts[axis] and whole[axis] % parts[axis] == 0) if axis == dim else n == result[axis]
        for axis, n in enumerate(shape)
    )
    if not fits:
        raise VerifyException(
            f"{op.name}: {shape} and {result} differ in more than the number of parts in "
            f"dimension {dim}"
        )
    if declared_mesh(op) != ONE_CHIP and parts[dim] * chips != whole[dim]:
        raise VerifyException(
            f"{op.name}: {chips} chips participate, and {shape} and {result} differ by "
            f"{whole[dim] // parts[dim]} parts in dimension {dim}"
        )


def verify_all_gather(op: CatalogueOp) -> None:
    """The result concatenates the shards of all devices along one dimension."""
    _expect_scaled(op, dim_of(op, *GATHER_DIMS), grows=True)


def verify_reduction(op: CatalogueOp) -> None:
    if op.parameter("reduce_type") not in REDUCTIONS:
        raise VerifyException(
            f"{op.name}: chips reduce by {', '.join(REDUCTIONS)}, found "
            f"'{op.parameter('reduce_type')}'"
        )


def _verify_sum(op: CatalogueOp) -> None:
    """Raises VerifyException for reductions other than sum, which the library lacks."""
    how = op.parameter("reduce_type")
    require(op, how == "sum", "a reduce_type of 'sum', as the library reduces", f"'{how}'")


def verify_library_all_reduce(op: CatalogueOp) -> None:
    """The shape is unchanged; the reduction is a sum."""
    verify_all_reduce(op)
    _verify_sum(op)


def verify_library_reduce_scatter(op: CatalogueOp) -> None:
    """The result is a shard of the sum along one dimension; on one device, all of it."""
    verify_reduce_scatter(op)
    _verify_sum(op)


def verify_reduce_scatter(op: CatalogueOp) -> None:
    """The result is a shard of the input's shape along one dimension; on one device, all of it."""
    verify_reduction(op)
    _expect_scaled(op, dim_of(op, *SCATTER_DIMS), grows=False)


def verify_partition(op: CatalogueOp) -> None:
    """The result is a shard of the input along one dimension."""
    _expect_scaled(op, dim_of(op, "dim"), grows=False)


def verify_all_reduce(op: CatalogueOp) -> None:
    """The shape is unchanged."""
    verify_reduction(op)
    mesh_axis(op)
    expect_shape(op, op.shape("input"))


def verify_permute(op: CatalogueOp) -> None:
    """The shape is unchanged; a device sends to at most one and receives from at most one."""
    expect_shape(op, op.shape("input"))
    pairs: list[list[int]] = op.parameter("source_target_pairs") or []
    chips = prod(declared_mesh(op))
    if any(len(pair) != 2 for pair in pairs):
        raise VerifyException(f"{op.name}: source_target_pairs are pairs, found {pairs}")
    for index, name in enumerate(("source", "target")):
        side = [pair[index] for pair in pairs]
        if len(set(side)) != len(side):
            raise VerifyException(f"{op.name}: a chip is the {name} of two pairs: {side}")
    if chips > 1 and any(not 0 <= chip < chips for pair in pairs for chip in pair):
        raise VerifyException(f"{op.name}: the mesh has the chips 0 to {chips - 1}, found {pairs}")


def verify_broadcast(op: CatalogueOp) -> None:
    """The shape is unchanged."""
    expect_shape(op, op.shape("input"))
    groups_of(op)


def expect_exchanged(op: CatalogueOp, split: int, concat: int, count: int) -> None:
    """Raises VerifyException unless `split` shrinks and `concat` grows by the count."""
    shape = list(op.shape("input"))
    shape[split] //= count
    shape[concat] *= count
    expect_shape(op, shape)


def verify_all_to_all(op: CatalogueOp) -> None:
    """One dimension is split among the devices of a group, another one concatenated."""
    shape = list(op.shape("input"))
    split = normalized_dim(op, op.parameter("split_dim"), len(shape))
    concat = normalized_dim(op, op.parameter("concat_dim"), len(shape))
    count = op.parameter("split_count")
    if any(len(group) != count for group in groups_of(op)) or shape[split] % max(count, 1):
        raise VerifyException(
            f"{op.name}: {tuple(shape)} should divide into {count} parts in dimension {split}, "
            f"one for each chip of a group"
        )
    expect_exchanged(op, split, concat, count)
