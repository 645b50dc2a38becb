"""Normalizations of rows that are divided among the chips of a mesh: each chip sums up what it has,
and the sums are those of all."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from xdsl.ir import SSAValue
from xdsl.utils.exceptions import VerifyException

from ttcodegen.dialects.core.datatypes import element_of, f32, shape_of
from ttcodegen.dialects.operations.attribute_kinds import EPSILON, INTEGER
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttcore.device import declared_mesh, groups_along
from ttcodegen.foundation.lazy_numpy import Array, np
from ttcodegen.ops.collectives.reference import MESH_SHAPE, mesh_axis, mesh_of
from ttcodegen.ops.core.builder import OpBuilder
from ttcodegen.ops.core.definition import (
    Call,
    TTIRDefinition,
    TTNNDefinition,
    attribute,
    operand,
    optional,
    register,
)
from ttcodegen.ops.core.dimensions import expect_shape, require

_ATTRIBUTES = (attribute("cluster_axis", INTEGER, 1), attribute("epsilon", EPSILON, 1e-5))


def _verify(op: CatalogueOp) -> None:
    """The result has the shape of the input, as has the residual; weight and bias have as many
    elements as a row of the chip."""
    shape = op.shape("input")
    require(op, len(shape) > 0, "an input of rows", shape)
    expect_shape(op, shape)
    mesh_axis(op)
    residual = op.optional_operand("residual")
    if residual is not None and shape_of(residual.type) != shape:
        raise VerifyException(
            f"{op.name}: expected a residual of shape {shape}, found {shape_of(residual.type)}"
        )
    for name in ("weight", "bias"):
        value = op.operand_groups().get(name)
        if value and prod(shape_of(value[0].type)) != shape[-1]:
            raise VerifyException(
                f"{op.name}: expected a {name} of {shape[-1]} elements, found "
                f"{shape_of(value[0].type)}"
            )


def _wide(builder: OpBuilder, op: CatalogueOp, name: str) -> SSAValue | None:
    """An operand in f32, None if it is absent; sums of squares need the range."""
    values = op.operand_groups().get(name)
    return builder.typecast(builder[values[0]], f32) if values else None


def _mean_of_all(builder: OpBuilder, op: CatalogueOp, value: SSAValue) -> SSAValue:
    """The mean of rows over all chips that have a part of them."""
    axis: int = op.parameter("cluster_axis")
    shape = shape_of(value.type)
    total = builder.reduce("sum", value, [len(shape) - 1])
    mesh = declared_mesh(op)
    if mesh[axis] > 1:
        given: dict[str, Any] = {"cluster_axis": axis, "mesh_shape": list(mesh)}
        total = builder.emit("all_reduce", [total], total.type, reduce_type="sum", **given)
    count = shape[-1] * mesh[axis]
    ones = [1] * len(shape)
    return builder.broadcasting("multiply", total, builder.full(ones, 1.0 / count, f32))


def normalize(builder: OpBuilder, op: CatalogueOp) -> SSAValue:
    """Ops, of the dialect that the builder has, for a distributed norm."""
    value = _wide(builder, op, "input")
    residual = _wide(builder, op, "residual")
    assert value is not None
    if residual is not None:
        value = builder.like("add", value, residual)
    rank = len(shape_of(value.type))
    if op.definition.short_name == "distributed_layer_norm":
        value = builder.broadcasting("subtract", value, _mean_of_all(builder, op, value))
    square = _mean_of_all(builder, op, builder.like("multiply", value, value))
    epsilon = builder.full([1] * rank, float(op.parameter("epsilon")), f32)
    scale = builder.like("rsqrt", builder.broadcasting("add", square, epsilon))
    value = builder.broadcasting("multiply", value, scale)
    for name, joined in (("weight", "multiply"), ("bias", "add")):
        vector = _wide(builder, op, name)
        if vector is not None:
            row = builder.reshape(vector, [1] * (rank - 1) + [shape_of(value.type)[-1]])
            value = builder.broadcasting(joined, value, row)
    return builder.typecast(value, element_of(op.result_type))


def _normalized(calls: Sequence[Call]) -> list[Array]:
    """Normalizes each device's rows with the statistics of all along the axis."""
    first = calls[0]
    axis, centers = first["cluster_axis"], first.name.endswith("layer_norm")
    rows = [_row(call) for call in calls]
    for group in groups_along(mesh_of(first), axis):
        if centers:
            mean = _mean([rows[chip] for chip in group])
            for chip in group:
                rows[chip] = rows[chip] - mean
        square = _mean([np.square(rows[chip]) for chip in group])
        scale = 1 / np.sqrt(square + np.float32(first["epsilon"]))
        for chip in group:
            rows[chip] = _scaled(calls[chip], rows[chip] * scale)
    return rows


def _row(call: Call) -> Array:
    residual = call.optional("residual")
    return call.array("input") if residual is None else call.array("input") + residual


def _mean(parts: Sequence[Array]) -> Array:
    return np.concatenate(parts, axis=-1).mean(axis=-1, keepdims=True)


def _scaled(call: Call, row: Array) -> Array:
    for name, join in (("weight", np.multiply), ("bias", np.add)):
        vector = call.operands.get(name)
        if vector:
            row = join(row, vector[0].reshape(-1))
    return row


for _name, _vectors in (
    ("distributed_rms_norm", ("weight", "residual")),
    ("distributed_layer_norm", ("weight", "bias", "residual")),
):
    register(
        TTIRDefinition(
            f"ttir.{_name}",
            (operand("input"), *(optional(vector) for vector in _vectors)),
            (*_ATTRIBUTES, MESH_SHAPE),
            verify=_verify,
            numpy=lambda call: _normalized([call])[0],
            chips=_normalized,
            decompose=normalize,
        )
    )
    # In modules of other tools; their front end makes ops of it that the library has with fabric
    # and buffers of its own.
    register(
        TTNNDefinition(
            f"ttnn.{_name}",
            (operand("input"), *(optional(vector) for vector in (*_vectors, "stats"))),
            (*_ATTRIBUTES, MESH_SHAPE),
            verify=_verify,
            numpy=lambda call: _normalized([call])[0],
            chips=_normalized,
        )
    )
