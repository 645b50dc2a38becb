"""Ops between the chips of a mesh of a tensor of one number, which all chips have: what they get is
known without sending anything."""

from __future__ import annotations

from math import prod

from xdsl.dialects.builtin import f32
from xdsl.ir import SSAValue

from ttcodegen.dialects.core.datatypes import element_of, is_boolean
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttcore.mesh import ONE_CHIP, declared_mesh
from ttcodegen.foundation.lazy_numpy import np
from ttcodegen.ops.collectives.groups import participants
from ttcodegen.ops.collectives.tensor_shards import TensorParts
from ttcodegen.ops.core.builder import OpBuilder
from ttcodegen.ops.core.constant_values import splat_of


def of_one_number(builder: OpBuilder, op: CatalogueOp) -> SSAValue | None:
    """Returns a one-element operand of a collective on all devices, else None."""
    number = splat_of(op.operand("input"))
    element = element_of(op.result_type)
    if number is None or declared_mesh(op) == ONE_CHIP or is_boolean(element):
        return None
    result = builder.full(op.result_shape, number, element)
    factor: SSAValue | None = None
    if op.name == "ttir.collective_permute":
        factor = _receivers(builder, op)
    elif op.parameters().get("reduce_type") == "sum":
        factor = builder.full([1] * len(op.result_shape), participants(op), element)
    return result if factor is None else builder.broadcasting("multiply", result, factor)


def _receivers(builder: OpBuilder, op: CatalogueOp) -> SSAValue | None:
    """1 on the chips that receive something, 0 on all others; None if all do."""
    mesh, rank = declared_mesh(op), len(op.result_shape)
    targets = {target for _, target in op.parameter("source_target_pairs") or ()}
    if len(targets) == prod(mesh):
        return None
    flags = np.array([chip in targets for chip in range(prod(mesh))], np.float32)
    sharding = tuple((axis,) if mesh[axis] > 1 else () for axis in (0, 1))
    whole = builder.constant(flags.reshape(mesh), f32)
    flag = builder.reshape(TensorParts(builder, mesh).divide(whole, sharding, False), [1] * rank)
    return builder.typecast(flag, element_of(op.result_type))
