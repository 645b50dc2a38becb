"""The mesh of chips that a module is for, and which of them participate in an op."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from math import prod
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from ttcodegen.dialects.ttcore.device import Mesh, MeshesAttr
from ttcodegen.dialects.ttcore.layouts import shape_text
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.systems.machines import MOST_CHIPS

MESHES = "ttcore.meshes"
"""The attribute of a module with its meshes."""

MeshShape = tuple[int, int]
"""Rows and columns of chips."""

ONE_CHIP: MeshShape = (1, 1)


def two_dimensional(shape: Sequence[int]) -> MeshShape | None:
    """A mesh as rows and columns: one dimension is a row, leading ones are left out. None for a
    mesh of more dimensions, which no system of the release has."""
    sizes = list(shape)
    while len(sizes) > 2 and sizes[0] == 1:
        del sizes[0]
    if len(sizes) > 2:
        return None
    rows, columns = (1, 1, *sizes)[-2:]
    return rows, columns


def sizes_in(text: str) -> tuple[int, ...]:
    """The sizes in `2,4` or `2x4`; raises CompileError for another text."""
    if re.fullmatch(r"\d{1,9}([,x]\d{1,9})*", text) is None:
        raise CompileError(
            f"'{text}' is no mesh of chips", remedy="give rows and columns, such as 2x4"
        )
    return tuple(map(int, re.split("[,x]", text)))


def require_possible(shape: Sequence[int], place: Operation | None = None) -> None:
    """Raises CompileError for a mesh that is not rows and columns of chips, or has more chips than
    any system."""
    if two_dimensional(shape) is None or any(size < 1 for size in shape):
        raise CompileError(
            f"a mesh of {shape_text(shape)} chips is not supported",
            place,
            remedy="a mesh has rows and columns of chips",
        )
    if prod(shape) > MOST_CHIPS:
        raise CompileError(
            f"a mesh of {shape_text(shape)} has more chips than any system",
            place,
            remedy=f"the largest systems have {MOST_CHIPS} chips, such as 32x4",
        )


def declared_mesh(op: Operation) -> MeshShape:
    """The mesh that an op names, or else the module around it: the first that has several chips;
    one chip if none is named, or only one that is no grid.

    Raises:
        CompileError: if it has more chips than any system.
    """
    named = shape_in(op)
    around: Operation | None = op
    while not named and around is not None:
        meshes = around.attributes.get(MESHES)
        if isinstance(meshes, MeshesAttr):
            named = next((mesh.shape for mesh in meshes.data if prod(mesh.shape) > 1), ())
        around = around.parent_op()
    if prod(named) > MOST_CHIPS:
        require_possible(named, op)
    return two_dimensional(named) or ONE_CHIP


def shape_in(op: Operation) -> tuple[int, ...]:
    """The shape of the mesh that an op itself names, `()` if it names none."""
    mesh = op.properties.get("mesh_shape", op.attributes.get("mesh_shape"))
    if mesh is None:
        return ()
    return tuple(map(int, re.findall(r"\d+", str(mesh).rpartition(":")[2])))


def names_several_chips(module: ModuleOp) -> bool:
    """True if a module names a mesh of more than one chip: other compilers print one of a
    single chip where none was given."""
    meshes = module.attributes.get(MESHES)
    return isinstance(meshes, MeshesAttr) and any(prod(mesh.shape) > 1 for mesh in meshes.data)


def chips_of(attributes: Mapping[str, Any]) -> int:
    """How many chips the mesh has that the attributes of an op between chips name; 1 if they name
    none."""
    return prod(attributes["mesh_shape"] or ())


def set_mesh(module: ModuleOp, shape: Sequence[int]) -> None:
    """Makes a module say what mesh it is for; raises CompileError for one that no system has."""
    require_possible(shape, module)
    module.attributes[MESHES] = MeshesAttr((Mesh("mesh", tuple(shape)),))


def groups_along(mesh: MeshShape, axis: int) -> list[list[int]]:
    """The chips that a collective along an axis joins, counted row by row: for the axis 1 those of
    each row, for the axis 0 those of each column."""
    rows, columns = mesh
    if axis == 1:
        return [[row * columns + column for column in range(columns)] for row in range(rows)]
    return [[row * columns + column for row in range(rows)] for column in range(columns)]


def parts_of(shape: Sequence[int], placements: Sequence[int], mesh: MeshShape) -> list[int]:
    """How many parts the dimensions of a tensor have, by what is divided along each axis."""
    counts = [1] * len(shape)
    for axis, dim in enumerate(placements):
        if dim >= 0:
            counts[dim] *= mesh[axis]
    return counts


def coordinates(mesh: MeshShape) -> Iterator[tuple[int, int]]:
    """Row and column of each chip, in the order in which they are counted."""
    yield from product(range(mesh[0]), range(mesh[1]))
