"""ttnn definitions of collectives, and distributed norms.

Signatures and restrictions: tt-metal, `ttnn/operations/ccl/` and
`ttnn/operations/experimental/ccl/`.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from xdsl.ir import SSAValue
from xdsl.utils.exceptions import VerifyException

from ttcodegen.dialects.core.datatypes import DataType, element_of, f32, shape_of
from ttcodegen.dialects.operations.attribute_kinds import EPSILON, INTEGER, INTEGERS
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttcore.device import declared_mesh, groups_along
from ttcodegen.foundation.lazy_numpy import Array, np
from ttcodegen.ops.collectives import reference as mesh_values
from ttcodegen.ops.collectives.collectives import (
    GATHER,
    PARTITION,
    SCATTER,
    SUM,
    all_gather,
    all_reduce,
    mesh_partition,
    reduce_scatter,
    same_values,
)
from ttcodegen.ops.collectives.reference import (
    GATHER_DIMS,
    MESH_SHAPE,
    SCATTER_DIMS,
    dim_of,
    expect_exchanged,
    mesh_axis,
    mesh_of,
    verify_all_gather,
    verify_library_all_reduce,
    verify_library_reduce_scatter,
    verify_partition,
)
from ttcodegen.ops.core.builder import OpBuilder
from ttcodegen.ops.core.calls import (
    Argument,
    ArgumentRule,
    CppCalls,
    CppEmission,
    Text,
    attribute_,
    cpp_call,
    cpp_text,
    nullopt,
    operand_,
)
from ttcodegen.ops.core.definition import (
    Call,
    Layout,
    ResultRule,
    TTIRDefinition,
    TTNNDefinition,
    attribute,
    operand,
    optional,
    register,
)
from ttcodegen.ops.core.dimensions import expect_shape, require
from ttcodegen.ops.core.traits import CallKind, Trait


def _first_attribute(*names: str) -> ArgumentRule:
    """Rule for the first of the attributes that is set."""
    return lambda calls, op: attribute_(
        next((name for name in names if op.parameter(name) is not None), names[0])
    )(calls, op)


CCL = "ttnn/operations/ccl"


def _required_axis(calls: CppCalls, op: CatalogueOp) -> Argument:
    """Rule for the mesh axis of a function without a default."""
    axis = op.parameter("cluster_axis")
    return Text("/*cluster_axis=*/std::nullopt" if axis is None else cpp_text(axis))


_NOUNS = {
    "all_gather": "gathered",
    "all_reduce": "reduced",
    "reduce_scatter": "reduced_shards",
    "mesh_partition": "shards",
}

_OPTIONAL_AXIS = attribute_("cluster_axis")
_GATHERED = tuple(each for each in DataType if each is not DataType.UINT8)
"""Data types that the library gathers.

Shards that are not whole tiles are untilized, concatenated and tilized again, which the library
does not support for uint8 (docs/library-rules.md).
"""


def _call(name: str, *rules: ArgumentRule, axis: ArgumentRule = _OPTIONAL_AXIS) -> CppEmission:
    header = f"{CCL}/{name}/{name}.hpp"
    return cpp_call(f"ttnn::{name}", header, operand_("input"), *rules, axis)


for _name, _attributes, _verify, _chips, _cpp, _layout in (
    ("all_gather", GATHER, verify_all_gather, all_gather,
     _call("all_gather", _first_attribute(*GATHER_DIMS)), Layout.TILE),
    ("all_reduce", SUM, verify_library_all_reduce, all_reduce, _call("all_reduce"), Layout.TILE),
    ("reduce_scatter", SCATTER, verify_library_reduce_scatter, reduce_scatter,
     _call("reduce_scatter", _first_attribute(*SCATTER_DIMS)), Layout.TILE),
    # In tile layout the library supports whole tiles only.
    ("mesh_partition", PARTITION, verify_partition, mesh_partition,
     _call("mesh_partition", attribute_("dim"), axis=_required_axis), Layout.ROW_MAJOR),
):  # fmt: skip
    register(
        TTNNDefinition(
            f"ttnn.{_name}",
            (
                operand(
                    "input",
                    layout=_layout,
                    data_types=_GATHERED if _name == "all_gather" else None,
                ),
            ),
            (*_attributes, MESH_SHAPE),
            verify=_verify,
            numpy=same_values,
            chips=_chips,
            cpp=_cpp,
            result_rules=(ResultRule(layout=_layout),),
            traits=Trait.COLLECTIVE,
            call_kind=CallKind.COPY if _name == "mesh_partition" else CallKind.COLLECTIVE,
            nouns=(_NOUNS[_name],),
        )
    )

# broadcast


def _verify_broadcast(op: CatalogueOp) -> None:
    """The shape is unchanged; the sender is on a mesh of one row or one column."""
    mesh, sender = declared_mesh(op), op.parameter("sender_coord")
    if 1 not in mesh or len(sender) != 2:
        raise VerifyException(
            f"{op.name}: one chip sends to the others of a line, found {sender} in the mesh of "
            f"{mesh[0]}x{mesh[1]}"
        )
    if not all(0 <= at < size for at, size in zip(sender, mesh, strict=True)):
        raise VerifyException(f"{op.name}: the mesh of {mesh[0]}x{mesh[1]} has no chip {sender}")
    expect_shape(op, op.shape("input"))


def _broadcast(calls: Sequence[Call]) -> list[Array]:
    row, column = calls[0]["sender_coord"]
    sender = int(row) * mesh_of(calls[0])[1] + int(column)
    return [calls[sender].array("input")] * len(calls)


register(
    TTNNDefinition(
        "ttnn.broadcast",
        (operand("input"),),
        (attribute("sender_coord", INTEGERS), MESH_SHAPE),
        verify=_verify_broadcast,
        numpy=same_values,
        chips=_broadcast,
        cpp=cpp_call(
            "ttnn::broadcast",
            f"{CCL}/broadcast/broadcast.hpp",
            operand_("input"),
            attribute_(
                "sender_coord",
                lambda place: f"ttnn::MeshCoordinate({', '.join(str(at) for at in place)})",
            ),
        ),
        traits=Trait.COLLECTIVE,
        call_kind=CallKind.COLLECTIVE,
        nouns=("received",),
    )
)

# all_to_all


def _verify_exchange(op: CatalogueOp) -> None:
    """Along one mesh axis, one dimension is split among the devices, another one concatenated."""
    shape, chips = op.shape("input"), declared_mesh(op)[mesh_axis(op) or 0]
    joined, divided = (dim_of(op, name) for name in ("in_dim", "out_dim"))
    if joined == divided or shape[divided] % chips:
        raise VerifyException(
            f"{op.name}: divides another dimension than it puts together, among {chips} chips, "
            f"found dimensions {divided} and {joined} of {shape}"
        )
    expect_exchanged(op, divided, joined, chips)


def _exchange(calls: Sequence[Call]) -> list[Array]:
    first = calls[0]
    groups = groups_along(mesh_of(first), first["cluster_axis"])
    return mesh_values.exchanged(calls, groups, first["out_dim"], first["in_dim"])


register(
    TTNNDefinition(
        "ttnn.all_to_all_async_generic",
        (operand("input"),),
        (*(attribute(name, INTEGER) for name in ("in_dim", "out_dim", "cluster_axis")), MESH_SHAPE),
        verify=_verify_exchange,
        numpy=same_values,
        chips=_exchange,
        cpp=cpp_call(
            "ttnn::experimental::all_to_all_async_generic",
            "ttnn/operations/experimental/ccl/all_to_all_async_generic/"
            "all_to_all_async_generic.hpp",
            operand_("input"),
            attribute_("in_dim"),
            attribute_("out_dim"),
            *[nullopt] * 5,
            attribute_("cluster_axis"),
        ),
        traits=Trait.COLLECTIVE,
        call_kind=CallKind.COLLECTIVE,
        nouns=("exchanged",),
    )
)


_ATTRIBUTES = (attribute("cluster_axis", INTEGER, 1), attribute("epsilon", EPSILON, 1e-5))


def _verify_rows(op: CatalogueOp) -> None:
    """The result and the residual have the input's shape; weight and bias match its last
    dimension.
    """
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
    """Returns an operand in f32, None if it is absent; sums of squares need the range."""
    values = op.operand_groups().get(name)
    return builder.typecast(builder[values[0]], f32) if values else None


def _mean_of_all(builder: OpBuilder, op: CatalogueOp, value: SSAValue) -> SSAValue:
    """Mean of the rows over all devices that have a shard of them."""
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
    """Decomposes a distributed norm to ops of the builder's dialect."""
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
            verify=_verify_rows,
            numpy=lambda call: _normalized([call])[0],
            chips=_normalized,
            decompose=normalize,
        )
    )
    # Appears in modules of other tools; the library's version needs fabric semaphores and buffers.
    register(
        TTNNDefinition(
            f"ttnn.{_name}",
            (operand("input"), *(optional(vector) for vector in (*_vectors, "stats"))),
            (*_ATTRIBUTES, MESH_SHAPE),
            verify=_verify_rows,
            numpy=lambda call: _normalized([call])[0],
            chips=_normalized,
        )
    )
