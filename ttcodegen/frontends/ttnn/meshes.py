"""The mesh of a module of TTNN, and how its tensors are divided among the chips."""

from __future__ import annotations

import re
from collections.abc import Callable
from math import prod

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import Rewriter
from xdsl.utils.exceptions import VerifyException

from ttcodegen.compat.ttnn_modules import DEVICE_OPS, name_of
from ttcodegen.dialects.core.datatypes import element_of, shape_of, tensor_type
from ttcodegen.dialects.operations.attribute_kinds import INTEGERS
from ttcodegen.dialects.ttcore.device import MESHES, MeshShape, declared_mesh, set_mesh, shape_in
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.frontends.ttnn.call_parts import given
from ttcodegen.ops.collectives.device_calls import Chips
from ttcodegen.ops.collectives.distributed_norms import normalize
from ttcodegen.ops.collectives.reference import mesh_axis
from ttcodegen.ops.core.builder import OpBuilder, builder_before
from ttcodegen.ops.dialects import TTNNOp, ttnn_op_classes
from ttcodegen.ops.implied_mesh import implied_mesh

_PLACEMENT = re.compile(r"<\s*(shard|replicate)\s*(?:,\s*(-?\d+))?")


def declare_mesh(module: ModuleOp) -> None:
    """Makes a module say what mesh it is for, where only its devices or its collectives do."""
    if MESHES in module.attributes:
        return
    shapes = [shape_in(op) for op in module.walk() if name_of(op) in DEVICE_OPS]
    shape = max(shapes, key=prod, default=())
    if prod(shape) <= 1:
        shape = implied_mesh(module)
    if prod(shape) > 1:
        set_mesh(module, shape)


def expand(module: ModuleOp) -> None:
    """Puts several calls in place of ops that are no call of their own here: norms of rows that
    chips have parts of, and sending from chip to chip."""
    for op in list(module.walk()):
        rule = _EXPANDED.get(name_of(op).removeprefix("ttnn."))
        if rule is None:
            continue
        builder = builder_before(op, ttnn_op_classes())
        value = rule(builder, op)
        # The module says where the result is.
        value = builder.emit("composite_to_layout", [value], op.results[0].type)
        value.name_hint = op.results[0].name_hint
        Rewriter.replace_op(op, [], [value])


def _norm(builder: OpBuilder, op: Operation) -> SSAValue:
    assert isinstance(op, TTNNOp)
    try:
        mesh_axis(op)
    except VerifyException as error:
        raise CompileError(str(error), op) from None
    for index, value in enumerate(op.operands):
        plain = tensor_type(element_of(value.type), shape_of(value.type))
        if value.type != plain:
            # The calls compute in the default placement: a typecast does not take shards away.
            op.operands[index] = builder.emit("composite_to_layout", [value], plain)
    return normalize(builder, op)


def _send(builder: OpBuilder, op: Operation) -> SSAValue:
    """One chip sends what it has to another one; all others have what they have of the second
    operand, or nothing of use."""
    mesh = declared_mesh(op)
    sender, receiver = (_chip(op, name, mesh) for name in ("send_coord", "receive_coord"))
    value, *kept = op.operands
    if any(shape_of(each.type) != shape_of(value.type) for each in kept):
        raise CompileError(f"'{name_of(op)}' sends a tensor of another shape than it keeps", op)
    filled = [isinstance(each.owner, TTNNOp) and each.owner.name == "ttnn.full" for each in kept]
    keeps = kept[0] if kept and not all(filled) else None
    if sender == receiver:
        raise CompileError(f"'{name_of(op)}': a chip sends to another one", op)
    return Chips(builder, op).send(value, sender, receiver, keeps)


def _chip(op: Operation, name: str, mesh: MeshShape) -> int:
    """The number of the chip at a position of the mesh."""
    place = given(op, {**op.attributes, **op.properties}, name, INTEGERS) or []
    if len(place) != 2 or not all(0 <= at < size for at, size in zip(place, mesh, strict=True)):
        raise CompileError(
            f"'{name_of(op)}': '{name}' should be row and column of a chip of the mesh of "
            f"{mesh[0]}x{mesh[1]}, found {place}",
            op,
        )
    return place[0] * mesh[1] + place[1]


_EXPANDED: dict[str, Callable[[OpBuilder, Operation], SSAValue]] = {
    "distributed_rms_norm": _norm,
    "distributed_layer_norm": _norm,
    "point_to_point": _send,
}


def spell_distribute(op: Operation, properties: dict[str, Attribute]) -> None:
    """`mapper_config = #ttnn.mesh_mapper_config<placements = [<shard, 3 : i64>, <replicate>]>`."""
    if "placements" in properties:
        return
    text = str(properties.pop("mapper_config", ""))
    _spell(
        op,
        properties,
        [int(dim) if kind == "shard" else None for kind, dim in _PLACEMENT.findall(text)],
    )


def spell_aggregate(op: Operation, properties: dict[str, Attribute]) -> None:
    """`composer_config = #ttnn.mesh_composer_config<dims = [0 : i64, 1 : i64]>`."""
    if "placements" in properties:
        return
    text = re.sub(r":\s*\w+", "", str(properties.pop("composer_config", "")))
    listed = re.search(r"dims = \[([^\]]*)\]", text)
    dims: list[int | None] = []
    if listed is not None:
        dims += [int(number) for number in re.findall(r"-?\d+", listed[1])]
    override = re.search(r"mesh_shape_override = [^\d]*([\d, x]+)", text)
    if override is not None:
        taken = [int(size) for size in re.findall(r"\d+", override[1])]
        if len(taken) == len(dims):
            dims = [dim if size > 1 else None for dim, size in zip(dims, taken, strict=True)]
    _spell(op, properties, dims)


def _spell(op: Operation, properties: dict[str, Attribute], dims: list[int | None]) -> None:
    """Dimensions for the axes of the mesh, None where nothing is divided. A single dimension is
    that of the axis with several chips; one of a single chip divides nothing."""
    mesh, rank = declared_mesh(op), len(shape_of(op.operands[0].type))
    if len(dims) == 1 and shape_of(op.operands[0].type) == shape_of(op.results[0].type):
        # Nothing is divided, whatever the dimension is: chips have all of it.
        dims = [None]
    if len(dims) == 1:
        dims = [None, *dims] if mesh[0] == 1 else [*dims, None]
    dims += [None] * (2 - len(dims))
    if len(dims) > 2:
        raise CompileError(
            f"'{name_of(op)}' divides along {len(dims)} axes, and a mesh has rows and columns",
            op,
            remedy="name a dimension, or none, for each of two axes",
        )
    placements: list[int] = []
    for dim, chips in zip(dims, mesh, strict=True):
        if dim is None or chips == 1:
            placements.append(-1)
        elif -rank <= dim < rank:
            placements.append(dim % rank)
        else:
            raise CompileError(
                f"'{name_of(op)}' divides dimension {dim} of a tensor of rank {rank}", op
            )
    properties["placements"] = INTEGERS.encode(placements)
    properties["mesh_shape"] = INTEGERS.encode(list(mesh))


def spell_collective(op: Operation, properties: dict[str, Attribute]) -> None:
    """A collective carries the mesh that it runs on."""
    properties["mesh_shape"] = INTEGERS.encode(list(declared_mesh(op)))
