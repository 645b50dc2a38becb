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


# Groups of devices that participate in a collective, derived from its attributes.


def _decode_groups(groups: Attribute) -> list[list[int]]:
    numbers = INTEGERS.decode(groups)
    size = len(numbers)
    if isinstance(groups, DenseIntOrFPElementsAttr):
        shape = shape_of(cast("Attribute", groups.type))  # pyright: ignore[reportUnknownMemberType]
        if len(shape) != 2 or prod(shape) > 2 * MOST_CHIPS:
            # A list of groups names each chip once, one of sources and targets twice.
            raise ValueError
        size = shape[1]
        # A splat has its number once.
        numbers *= prod(shape) // max(len(numbers), 1)
    return [numbers[start : start + size] for start in range(0, len(numbers), max(size, 1))]


def _encode_groups(groups: Sequence[Sequence[int]]) -> Attribute:
    type_ = tensor_type(i64, (len(groups), len(groups[0]) if groups else 0))
    numbers = [chip for group in groups for chip in group]
    return DenseIntOrFPElementsAttr.from_list(type_, numbers)  # pyright: ignore


CHIP_GROUPS = AttributeKind[list[list[int]]]("rows of chips", _decode_groups, _encode_groups)

MESH_SHAPE = attribute("mesh_shape", INTEGERS, None)
"""Rows and columns of the mesh that an op runs on; an op of TTIR leaves it to its module."""


def mesh_axis(op: CatalogueOp) -> int | None:
    """The axis of the mesh that an op goes along; None for all of it. Raises VerifyException if a
    mesh has no such axis, or the op goes over no links."""
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
    """The chips that exchange among themselves: `replica_groups`; without it, all."""
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
    """The axis of a mesh that its chips are grouped along; None if they are grouped otherwise."""
    written = [list(group) for group in groups]
    return next((axis for axis in (1, 0) if groups_along(mesh, axis) == written), None)


def chips_of_groups(op: Operation) -> NeededChips | None:
    """The chips that an op between chips lists, in groups or as sources and targets; None if it
    lists none."""
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
    """The mesh whose columns or rows are joined, (1, 1) if it is neither, or no system has it."""
    if chips > MOST_CHIPS:
        return 1, 1
    size = max(map(len, groups), default=1)
    for shape, axis in (((chips // size, size), 1), ((size, chips // size), 0)):
        if axis_of_groups(shape, groups) == axis:
            return shape
    return 1, 1


def chips_of_collective(op: Operation) -> NeededChips:
    """The chips that a collective lists, else as many as it puts together, or divides among."""
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


# Attributes, whose names changed from year to year

GATHER_DIMS = ("all_gather_dim", "dim")
SCATTER_DIMS = ("scatter_dim", "scatter_split_dim")


def first_given(given: Callable[[str], Any], names: Sequence[str]) -> int | None:
    """The first of the attributes that is there; `given` has the value of each."""
    return next((given(name) for name in names if given(name) is not None), None)


def dim_of(op: CatalogueOp, *names: str) -> int:
    """The dimension that the first of the attributes names that is there; counted from the front.
    Their names changed from year to year."""
    dim = first_given(op.parameter, names)
    if dim is None:
        raise VerifyException(f"{op.name} needs the attribute '{names[0]}'")
    return normalized_dim(op, dim, len(op.shape("input")))


# Verifiers


def _expect_scaled(op: CatalogueOp, dim: int, grows: bool) -> None:
    """One dimension has as many parts more, or less, as chips participate; the others stay. A
    module that names no mesh does not say how many these are."""
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
    """The result has the parts of all chips along one dimension."""
    _expect_scaled(op, dim_of(op, *GATHER_DIMS), grows=True)


def verify_reduction(op: CatalogueOp) -> None:
    if op.parameter("reduce_type") not in REDUCTIONS:
        raise VerifyException(
            f"{op.name}: chips reduce by {', '.join(REDUCTIONS)}, found "
            f"'{op.parameter('reduce_type')}'"
        )


def _verify_sum(op: CatalogueOp) -> None:
    """The library adds up the values of chips, and has no other reduction."""
    how = op.parameter("reduce_type")
    require(op, how == "sum", "a reduce_type of 'sum', as the library reduces", f"'{how}'")


def verify_library_all_reduce(op: CatalogueOp) -> None:
    """The shape stays; the values are added up."""
    verify_all_reduce(op)
    _verify_sum(op)


def verify_library_reduce_scatter(op: CatalogueOp) -> None:
    """The result is a part of the sum along one dimension: of one chip, all of it."""
    verify_reduce_scatter(op)
    _verify_sum(op)


def verify_reduce_scatter(op: CatalogueOp) -> None:
    """The result is a part of the input along one dimension: of one chip, all of it."""
    verify_reduction(op)
    _expect_scaled(op, dim_of(op, *SCATTER_DIMS), grows=False)


def verify_partition(op: CatalogueOp) -> None:
    """The result is a part of the input along one dimension."""
    _expect_scaled(op, dim_of(op, "dim"), grows=False)


def verify_all_reduce(op: CatalogueOp) -> None:
    """The shape stays."""
    verify_reduction(op)
    mesh_axis(op)
    expect_shape(op, op.shape("input"))


def verify_permute(op: CatalogueOp) -> None:
    """The shape stays; a chip sends to one at most, and receives from one at most."""
    expect_shape(op, op.shape("input"))
    pairs: list[list[int]] = op.parameter("source_target_pairs") or []
    chips = prod(declared_mesh(op))
    if any(len(pair) != 2 for pair in pairs):
        raise VerifyException(f"{op.name}: source_target_pairs are pairs, found {pairs}")
    for place, name in enumerate(("source", "target")):
        side = [pair[place] for pair in pairs]
        if len(set(side)) != len(side):
            raise VerifyException(f"{op.name}: a chip is the {name} of two pairs: {side}")
    if chips > 1 and any(not 0 <= chip < chips for pair in pairs for chip in pair):
        raise VerifyException(f"{op.name}: the mesh has the chips 0 to {chips - 1}, found {pairs}")


def verify_broadcast(op: CatalogueOp) -> None:
    """The shape stays."""
    expect_shape(op, op.shape("input"))
    groups_of(op)


def expect_exchanged(op: CatalogueOp, split: int, concat: int, count: int) -> None:
    """Raises VerifyException unless one dimension is divided by a number and another multiplied."""
    shape = list(op.shape("input"))
    shape[split] //= count
    shape[concat] *= count
    expect_shape(op, shape)


def verify_all_to_all(op: CatalogueOp) -> None:
    """One dimension is divided among the chips of a group, another one put together of theirs."""
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
