"""Ops between the devices of a mesh. On one device they give what they take, as the reference
system folds them for a mesh of 1x1. For several devices they are read, verified and lowered, so
that modules go through the passes; no program has them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from math import prod

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from ttcodegen.dialects.attribute_kinds import ENUMERATOR, INTEGER, INTEGERS
from ttcodegen.dialects.datatypes import shape_of
from ttcodegen.dialects.operation import AttributeSpec, CatalogueOp
from ttcodegen.dialects.ttcore_device import MeshesAttr
from ttcodegen.lazy_numpy import Array
from ttcodegen.ops.definition import (
    Call,
    ResultRule,
    TTIRDefinition,
    TTNNDefinition,
    attribute,
    operand,
    register,
)
from ttcodegen.ops.op_builder import OpBuilder
from ttcodegen.ops.refusals import SEVERAL_DEVICES
from ttcodegen.ops.shape_checks import expect_shape, normalized_dim


def _dim(op: CatalogueOp, *names: str) -> int:
    """The dimension that the first of the attributes names that is there; counted from the front.
    Their names changed from year to year."""
    for name in names:
        if op.parameter(name) is not None:
            return normalized_dim(op, op.parameter(name), len(op.shape("input")))
    raise VerifyException(f"{op.name} needs the attribute '{names[0]}'")


def _scaled(op: CatalogueOp, dim: int, grows: bool) -> None:
    """All dimensions but one stay; that one has a whole number of parts."""
    shape, result = op.shape("input"), op.result_shape
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


_GATHER_DIMS = ("all_gather_dim", "dim")
_SCATTER_DIMS = ("scatter_dim", "scatter_split_dim")


def _verify_all_gather(op: CatalogueOp) -> None:
    """The result has the parts of all devices along one dimension: of one device, the operand."""
    _scaled(op, _dim(op, *_GATHER_DIMS), grows=True)


def _verify_reduce_scatter(op: CatalogueOp) -> None:
    """The result is a part of the input along one dimension: of one device, all of it."""
    _scaled(op, _dim(op, *_SCATTER_DIMS), grows=False)


def _verify_same(op: CatalogueOp) -> None:
    """The shape stays, and on one device the elements."""
    expect_shape(op, op.shape("input"))


def verify_mesh_shard(op: CatalogueOp) -> None:
    """The parts of all devices make up the whole tensor."""
    shape, shards = op.shape("input"), op.parameter("shard_shape")
    kind, direction = op.parameter("shard_type"), op.parameter("shard_direction")
    if any(count == 0 for count in shards):
        raise VerifyException(f"{op.name}: shard_shape says parts, found {tuple(shards)}")
    if kind in ("replicate", "manual", "maximal", "identity") or prod(shards) == 1:
        if kind != "replicate" or prod(shards) == 1:
            expect_shape(op, shape)
        return
    dims = op.parameter("shard_dims")
    counts = [1] * len(shape)
    if dims is None:
        if len(shards) == len(shape):
            counts = list(shards)
    else:
        if len(dims) != len(shards):
            raise VerifyException(f"{op.name}: shard_shape and shard_dims are of one length")
        for dim, count in zip(dims, shards, strict=True):
            if dim >= 0:
                counts[normalized_dim(op, dim, len(shape))] = count
    if direction == "shard_to_full":
        expect_shape(op, [size * count for size, count in zip(shape, counts, strict=True)])
        return
    if any(size % count for size, count in zip(shape, counts, strict=True)):
        raise VerifyException(f"{op.name}: {shape} does not divide into {tuple(counts)} parts")
    expect_shape(op, [size // count for size, count in zip(shape, counts, strict=True)])


MESH_SHARD = (
    attribute("shard_shape", INTEGERS),
    attribute("shard_dims", INTEGERS, None),
    attribute("shard_type", ENUMERATOR, "devices"),
    attribute("shard_direction", ENUMERATOR, "full_to_shard"),
)


def _named(*names: str) -> tuple[AttributeSpec, ...]:
    return tuple(attribute(name, INTEGER, None) for name in names)


_AXIS = _named("cluster_axis", "num_links")
_REDUCTION = attribute("reduce_type", ENUMERATOR, "sum")
_COLLECTIVES: dict[str, tuple[tuple[AttributeSpec, ...], Callable[[CatalogueOp], None]]] = {
    "all_gather": ((*_named(*_GATHER_DIMS), *_AXIS), _verify_all_gather),
    "all_reduce": ((_REDUCTION, *_named("scatter_dim", "scatter_num"), *_AXIS), _verify_same),
    "reduce_scatter": ((_REDUCTION, *_named(*_SCATTER_DIMS), *_AXIS), _verify_reduce_scatter),
    "collective_permute": (
        (attribute("source_target_pairs", INTEGERS, None),),
        _verify_same,
    ),
}


COLLECTIVES = frozenset({*_COLLECTIVES, "mesh_shard"})
"""The names of the ops, without their dialect."""


def is_local(op: Operation) -> bool:
    """Whether an op of `COLLECTIVES`, of any dialect and year, gives what it takes: the module
    names no mesh of several devices, and the first device has all parts of the result."""
    tensors = [value for value in op.operands if isinstance(value.type, TensorType)]
    if not tensors or shape_of(tensors[0].type) != shape_of(op.results[0].type):
        return False
    pairs = op.properties.get("source_target_pairs", op.attributes.get("source_target_pairs"))
    if pairs is not None and set(re.findall(r"\d+", str(pairs).partition(":")[0])) != {"0"}:
        return False
    return _devices(op) == 1


def mesh_of(op: Operation) -> tuple[int, ...]:
    """The shape of the mesh that an op opens, `()` if it says none."""
    mesh = op.properties.get("mesh_shape", op.attributes.get("mesh_shape"))
    return () if mesh is None else tuple(map(int, re.findall(r"\d+", str(mesh))))


def _devices(op: Operation) -> int:
    """The devices of the mesh that an operand stands for, or that a module around the op names."""
    for value in op.operands:
        if isinstance(value.owner, Operation) and (mesh := mesh_of(value.owner)):
            return prod(mesh)
    around: Operation | None = op
    while (around := around.parent_op()) is not None:
        meshes = around.attributes.get("ttcore.meshes")
        if isinstance(meshes, MeshesAttr):
            return max((prod(mesh.shape) for mesh in meshes.data), default=1)
    return 1


def same_values(call: Call) -> Array:
    """What one device computes: the operand."""
    return call.array("input")


def keep_local(builder: OpBuilder, op: CatalogueOp) -> SSAValue | None:
    """The operand, on one device."""
    return builder.operand(op, "input") if is_local(op) else None


def lower_collective(builder: OpBuilder, op: CatalogueOp) -> SSAValue | Sequence[SSAValue]:
    """On one device the operand, else the op of the same name, with its attributes."""
    if is_local(op):
        return builder.operand(op, "input")
    attributes = {name: value for name, value in op.parameters().items() if value is not None}
    value = builder.operand(op, "input")
    return builder.emit(op.definition.short_name, [value], op.result_type, **attributes)


for _name, (_attributes, _verify) in _COLLECTIVES.items():
    register(
        TTIRDefinition(
            f"ttir.{_name}",
            (operand("input"),),
            _attributes,
            verify=_verify,
            numpy=same_values,
            decompose=keep_local,
            lower=lower_collective,
            refused_form=lambda op: None if is_local(op) else SEVERAL_DEVICES,
            moves=True,
        )
    )
    register(
        TTNNDefinition(
            f"ttnn.{_name}",
            (operand("input", layout=None),),
            _attributes,
            verify=_verify,
            result_rules=(ResultRule(layout=None),),
        )
    )

register(
    TTNNDefinition(
        "ttnn.mesh_shard",
        (operand("input", layout=None, memory=None),),
        MESH_SHARD,
        verify=verify_mesh_shard,
        result_rules=(ResultRule(layout=None),),
    )
)
