"""Mesh size that a collective requires by its own attributes.

A module that names no mesh gets one of that size.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Operation

from ttcodegen.dialects.ttcore.mesh import MeshShape


@dataclass(frozen=True)
class NeededChips:
    """Chips along each axis of the mesh, and in all: more than the axes have between them where an
    op does not say along which axis it needs them."""

    along: MeshShape = (1, 1)
    total: int = 1
    whole_mesh: bool = False
    """The op names all chips of the mesh along both axes, so that no other op has to be asked."""


NeededChipsRule = Callable[[Operation], NeededChips]
"""Of an op of TTIR, or one of TTNN with the same name, operands and attributes, which need not be
registered: a mesh is found before other spellings of ops are."""


def integer_of(op: Operation, name: str) -> int | None:
    """An integer attribute of an op that need not be registered; None if it has none."""
    value = op.properties.get(name, op.attributes.get(name))
    return value.value.data if isinstance(value, IntegerAttr) else None


def on_axis(axis: int | None, count: int) -> MeshShape:
    """The smallest mesh with so many chips along an axis; one chip if the axis is not known."""
    return (count, 1) if axis == 0 else (1, count) if axis == 1 else (1, 1)
