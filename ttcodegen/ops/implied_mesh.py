"""The mesh that a module needs which names none: as many chips along each axis as its ops between
chips put together, divide among or name.

The reference system gets the mesh as an option of its pipelines, so modules that it prints and
tests may leave it out.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.ir import Operation

from ttcodegen.dialects.attribute_kinds import INTEGERS
from ttcodegen.dialects.datatypes import shape_of
from ttcodegen.dialects.mesh import MESHES, MeshShape, groups_along, set_mesh
from ttcodegen.ops.chip_groups import CHIP_GROUPS
from ttcodegen.ops.collectives import collectives

_EXPERTS_TRAVEL = ("all_to_all_dispatch", "all_to_all_dispatch_metadata", "all_to_all_combine")
"""Ops with `num_devices` along `cluster_axis`, and the mapping of experts to devices as the last
operand."""


def imply_mesh(module: ModuleOp) -> None:
    """Makes a module that names no mesh say the one that its ops between chips need."""
    if MESHES in module.attributes:
        return
    shape = implied_mesh(module)
    if prod(shape) > 1:
        set_mesh(module, shape)


def implied_mesh(module: ModuleOp) -> MeshShape:
    """Rows and columns of chips that the ops of a module, of TTIR or TTNN, need; (1, 1) if they
    need no more than one chip."""
    along = [1, 1]
    chips = 1
    for op in module.walk():
        short = op.name.rpartition(".")[2]
        if op.dialect_name() not in ("ttir", "ttnn") or not op.operands:
            continue
        if short == "mesh_shard":
            counts, all_chips = _of_parts(op)
            if prod(counts) == all_chips > 1:
                # Parts say it all.
                return counts
        elif short in collectives():
            counts, all_chips = _of_collective(op)
        elif short in _EXPERTS_TRAVEL:
            counts, all_chips = _of_travel(op, scores=short.endswith("metadata"))
        elif short == "moe_expert_token_remap":
            counts, all_chips = (1, 1), shape_of(op.operands[1].type)[-1]
        else:
            continue
        along = [max(known, count) for known, count in zip(along, counts, strict=True)]
        chips = max(chips, all_chips)
    if chips > prod(along) and chips % prod(along) == 0:
        # The other axis has the rest.
        along[0 if along[1] > 1 else 1] *= chips // prod(along)
    return along[0], along[1]


def _integer(op: Operation, name: str) -> int | None:
    value = op.properties.get(name, op.attributes.get(name))
    return value.value.data if isinstance(value, IntegerAttr) else None


def _on_axis(axis: int | None, count: int) -> MeshShape:
    return (count, 1) if axis == 0 else (1, count) if axis == 1 else (1, 1)


def _of_collective(op: Operation) -> tuple[MeshShape, int]:
    """How many chips a collective needs along each axis, and in all."""
    for name in ("replica_groups", "source_target_pairs"):
        rows = op.properties.get(name, op.attributes.get(name))
        if rows is None:
            continue
        listed = CHIP_GROUPS.decode(rows)
        most = max((chip for row in listed for chip in row), default=0) + 1
        return _of_groups(listed, most) if name == "replica_groups" else (1, 1), most
    axis = _integer(op, "cluster_axis")
    sizes = [prod(shape_of(value.type)) for value in (op.operands[0], op.results[0])]
    ratio = max(sizes) // min(sizes) if min(sizes) > 0 else 1
    return _on_axis(axis, ratio), ratio


def _of_parts(op: Operation) -> tuple[MeshShape, int]:
    """How many parts a tensor is divided into along each axis, and in all."""
    counts, dims = (
        INTEGERS.decode(op.properties[name]) if name in op.properties else []
        for name in ("shard_shape", "shard_dims")
    )
    along = [-1] * (2 - len(dims)) + list(dims)
    if len(along) > 2 or len(counts) != len(shape_of(op.operands[0].type)):
        return (1, 1), 1
    if along[0] == along[1] or any(dim >= len(counts) for dim in along):
        # One dimension is divided along both: others say along which into how many.
        return (1, 1), prod(counts)
    rows, columns = (counts[dim] if dim >= 0 else 1 for dim in along)
    return (rows, columns), prod(counts)


def _of_groups(groups: Sequence[Sequence[int]], chips: int) -> MeshShape:
    """The mesh whose columns or rows are joined, (1, 1) if it is neither."""
    size = max(map(len, groups), default=1)
    for shape, axis in (((chips // size, size), 1), ((size, chips // size), 0)):
        if groups_along(shape, axis) == [list(group) for group in groups]:
            return shape
    return 1, 1


def _of_travel(op: Operation, *, scores: bool) -> tuple[MeshShape, int]:
    """How many chips experts need along an axis, and in all."""
    owners = shape_of(op.operands[-1].type)[-2 if scores else -1]
    along = _on_axis(_integer(op, "cluster_axis"), _integer(op, "num_devices") or 1)
    return along, owners if owners % prod(along) == 0 else 1
