"""Ops of a mesh of devices that mean something on one device as well."""

from __future__ import annotations

from math import prod

from xdsl.ir import SSAValue

from ttcodegen.dialects.operation import CatalogueOp
from ttcodegen.ops.collectives import (
    MESH_SHARD,
    lower_collective,
    same_values,
    verify_mesh_shard,
)
from ttcodegen.ops.definition import TTIRDefinition, operand, register
from ttcodegen.ops.op_builder import OpBuilder
from ttcodegen.ops.refusals import SEVERAL_DEVICES


def _is_whole(op: CatalogueOp) -> bool:
    """Whether one shard is the whole tensor."""
    return prod(op.parameter("shard_shape")) == 1


def _decompose(builder: OpBuilder, op: CatalogueOp) -> SSAValue | None:
    return builder.operand(op, "input") if _is_whole(op) else None


register(
    TTIRDefinition(
        "ttir.mesh_shard",
        (operand("input"),),
        MESH_SHARD,
        verify=verify_mesh_shard,
        numpy=same_values,
        decompose=_decompose,
        lower=lower_collective,
        refused_form=lambda op: None if _is_whole(op) else SEVERAL_DEVICES,
        moves=True,
    )
)
