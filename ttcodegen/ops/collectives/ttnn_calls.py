"""Calls of the library that join the chips of a mesh.

Signatures and what they refuse: tt-metal, `ttnn/operations/ccl/` and
`ttnn/operations/experimental/ccl/`.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.utils.exceptions import VerifyException

from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.dialects.operations.attribute_kinds import INTEGER, INTEGERS
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttcore.device import declared_mesh, groups_along
from ttcodegen.foundation.lazy_numpy import Array
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
    TTNNDefinition,
    attribute,
    operand,
    register,
)
from ttcodegen.ops.core.dimensions import expect_shape
from ttcodegen.ops.core.traits import CallKind, Trait


def _first_attribute(*names: str) -> ArgumentRule:
    """The attribute of the first of the names that is there."""
    return lambda calls, op: attribute_(
        next((name for name in names if op.parameter(name) is not None), names[0])
    )(calls, op)


_CCL = "ttnn/operations/ccl"


def _required_axis(calls: CppCalls, op: CatalogueOp) -> Argument:
    """The axis of the mesh for a function that assumes none."""
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
does not do for bytes (docs/library-rules.md).
"""


def _call(name: str, *rules: ArgumentRule, axis: ArgumentRule = _OPTIONAL_AXIS) -> CppEmission:
    header = f"{_CCL}/{name}/{name}.hpp"
    return cpp_call(f"ttnn::{name}", header, operand_("input"), *rules, axis)


for _name, _attributes, _verify, _chips, _cpp, _layout in (
    ("all_gather", GATHER, verify_all_gather, all_gather,
     _call("all_gather", _first_attribute(*GATHER_DIMS)), Layout.TILE),
    ("all_reduce", SUM, verify_library_all_reduce, all_reduce, _call("all_reduce"), Layout.TILE),
    ("reduce_scatter", SCATTER, verify_library_reduce_scatter, reduce_scatter,
     _call("reduce_scatter", _first_attribute(*SCATTER_DIMS)), Layout.TILE),
    # In tiles the library divides whole tiles only.
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

# One chip of a line has what all get


def _verify_broadcast(op: CatalogueOp) -> None:
    """The shape stays; the sender is a chip of a mesh of one row or one column."""
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
            f"{_CCL}/broadcast/broadcast.hpp",
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

# Each chip has a share for each


def _verify_exchange(op: CatalogueOp) -> None:
    """Along one axis of the mesh; a dimension is divided among the chips of a group, another one
    put together of theirs."""
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
