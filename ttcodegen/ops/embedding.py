"""Rows of a table by their indices."""

from __future__ import annotations

from math import prod

from xdsl.dialects.builtin import TensorType
from xdsl.ir import SSAValue
from xdsl.utils.exceptions import VerifyException

from ttcodegen.conversions.cpp_calls import cpp_call, operand_
from ttcodegen.conversions.op_builder import OpBuilder
from ttcodegen.dialects.datatypes import DataType, element_of
from ttcodegen.dialects.operation import CatalogueOp
from ttcodegen.lazy_numpy import Array, np
from ttcodegen.ops.data_movement import expect_shape
from ttcodegen.ops.definition import (
    Call,
    Layout,
    OperandSpec,
    ResultRule,
    TTIRDefinition,
    TTNNDefinition,
    operand,
    register,
)


def _table_size(op: CatalogueOp) -> tuple[int, int]:
    """Rows and columns of the table; leading dimensions have one element."""
    shape = op.shape("weight")
    if len(shape) < 2 or prod(shape[:-2]) != 1:
        raise VerifyException(
            f"{op.name}: expected a table with two dimensions, found a weight of shape {shape}"
        )
    return shape[-2], shape[-1]


def _verify_embedding(op: CatalogueOp) -> None:
    """The result has a row of the table for every index."""
    _, columns = _table_size(op)
    expect_shape(op, [*op.shape("input"), columns])


def _embedding(call: Call) -> Array:
    table = call.array("weight")
    indices = call.array("input").astype(np.int64)
    return table.reshape(table.shape[-2:])[indices]


def _lower_embedding(builder: OpBuilder, op: CatalogueOp) -> SSAValue:
    """The library drops the middle dimensions of indices of a higher rank (rules-0.70.1.md), so
    they go in as one row."""
    rows, columns = _table_size(op)
    count = prod(op.shape("input"))
    indices = builder.reshape(builder.operand(op, "input"), [1, count])
    weight = builder.reshape(builder.operand(op, "weight"), [rows, columns])
    result = TensorType(element_of(weight.type), [1, count, columns])
    value = builder.emit("embedding", [indices, weight], result)
    return builder.reshape(builder.typecast(value, op.result_type.element_type), op.result_shape)


register(
    TTIRDefinition(
        "ttir.embedding",
        (
            OperandSpec("input", drawn_as="index", places=lambda op: _table_size(op)[0]),
            operand("weight"),
        ),
        verify=_verify_embedding,
        numpy=_embedding,
        lower=_lower_embedding,
    )
)

register(
    TTNNDefinition(
        "ttnn.embedding",
        (
            OperandSpec("input", layout=Layout.ROW_MAJOR, data_types=(DataType.UINT32,)),
            OperandSpec("weight", layout=Layout.ROW_MAJOR, data_types=(DataType.BFLOAT16,)),
        ),
        numpy=_embedding,
        # Without a layout of its own the result has that of the table.
        result_rules=(ResultRule(like=("weight",), layout=Layout.ROW_MAJOR),),
        cpp=cpp_call(
            "ttnn::embedding",
            "ttnn/operations/embedding/embedding.hpp",
            operand_("input"),
            operand_("weight"),
        ),
    )
)
