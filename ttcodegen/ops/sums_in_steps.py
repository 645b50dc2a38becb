"""Reductions between chips as movements between them, and reductions of what each chip has then:
what programs of the device are made of."""

from __future__ import annotations

from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from ttcodegen.dialects.datatypes import element_of, shape_of, tensor_type
from ttcodegen.dialects.functions import is_cpu_function
from ttcodegen.dialects.mesh import declared_mesh, groups_along
from ttcodegen.dialects.operation import CatalogueOp
from ttcodegen.ops.mesh_values import axes_of
from ttcodegen.ops.op_builder import OpBuilder


def reduce_in_steps(
    builder: OpBuilder, op: CatalogueOp, axis: int | None, divided: int | None
) -> SSAValue | None:
    """What the chips have side by side along a new first dimension, reduced along it; None in a
    function that the CPU runs for each chip.

    Args:
        builder: makes ops of TTIR.
        op: has the operand and says how to reduce.
        axis: that of the mesh; None for all of it.
        divided: the dimension that each chip gets its share of; None if each gets all.
    """
    function = op.parent_op()
    if isinstance(function, FuncOp) and is_cpu_function(function):
        return None
    mesh, value = declared_mesh(op), builder.operand(op, "input")
    for each in axes_of(mesh, axis):
        shape = list(shape_of(value.type))
        # Before the two dimensions that tiles have.
        before = [1] * max(1, 3 - len(shape))
        value, chips = builder.reshape(value, [*before, *shape]), mesh[each]
        element = element_of(value.type)
        if divided is None:
            result = tensor_type(element, [chips, *before[1:], *shape])
            value = builder.emit("all_gather", [value], result, all_gather_dim=0, cluster_axis=each)
        else:
            shape[divided] //= chips
            value = builder.emit(
                "all_to_all",
                [value],
                tensor_type(element, [chips, *before[1:], *shape]),
                split_dim=len(before) + divided,
                concat_dim=0,
                split_count=chips,
                replica_groups=groups_along(mesh, each),
            )
        value = builder.reduce(op.parameter("reduce_type"), value, [0])
        value = builder.reshape(value, shape)
    return value
