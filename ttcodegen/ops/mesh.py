"""Ops of a mesh of devices that mean something on one device as well."""

from __future__ import annotations

from math import prod

from ttcodegen.dialects.operation import CatalogueOp
from ttcodegen.lazy_numpy import Array
from ttcodegen.ops.attribute_kinds import INTEGERS
from ttcodegen.ops.data_movement import expect_shape
from ttcodegen.ops.definition import Call, TTIRDefinition, attribute, operand, register
from ttcodegen.ops.refusals import SEVERAL_DEVICES


def _refused(op: CatalogueOp) -> str | None:
    """One shard is the whole tensor."""
    return None if prod(op.parameter("shard_shape")) == 1 else SEVERAL_DEVICES


def _same(call: Call) -> Array:
    return call.array("input")


register(
    TTIRDefinition(
        "ttir.mesh_shard",
        (operand("input"),),
        (attribute("shard_shape", INTEGERS),),
        verify=lambda op: expect_shape(op, op.shape("input")),
        numpy=_same,
        decompose=lambda builder, op: builder.operand(op, "input"),
        refused_form=_refused,
        moves=True,
    )
)
