"""Groups of devices that participate in a collective, derived from its attributes."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import cast

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, i64
from xdsl.ir import Attribute, Operation
from xdsl.utils.exceptions import VerifyException

from ttcodegen.dialects.core.datatypes import shape_of, tensor_type
from ttcodegen.dialects.operations.attribute_kinds import INTEGERS, AttributeKind
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttcore.mesh import MeshShape, declared_mesh, groups_along
from ttcodegen.ops.core.definition import attribute
from ttcodegen.ops.core.required_devices import NeededChips, integer_of, on_axis
from ttcodegen.systems.machines import MOST_CHIPS


def _decode_groups(groups: Attribute) -> list[list[int]]:
    numbers = INTEGERS.decode(groups)
    size = len(numbers)
    if isinstance(groups, DenseIntOrFPElementsAttr):
        *_, size = shape = shape_of(cast("Attribute", groups.type))  # pyright: ignore[reportUnknownMemberType]
        if prod(shape) > 2 * MOST_CHIPS:
            # A list of groups names each chip once, one of sources and targets twice.
            raise ValueError
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
    sizes = [prod(shape_of(value.type)) for value in (op.operands[0], op.results[0])]
    ratio = max(sizes) // min(sizes) if min(sizes) > 0 else 1
    return NeededChips(on_axis(integer_of(op, "cluster_axis"), ratio), ratio)
