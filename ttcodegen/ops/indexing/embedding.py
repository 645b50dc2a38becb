"""Embedding lookup and its gradient."""

from __future__ import annotations

from math import prod

from xdsl.dialects.builtin import IntegerType, TensorType
from xdsl.ir import SSAValue
from xdsl.utils.exceptions import VerifyException

from ttcodegen.dialects.core.datatypes import DataType, bf16, element_of, f32, shape_of, si32, ui32
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttcore.tile import TILE_SIDE
from ttcodegen.foundation.lazy_numpy import Array, np
from ttcodegen.ops.core.builder import OpBuilder
from ttcodegen.ops.core.calls import cpp_call, operand_
from ttcodegen.ops.core.definition import (
    Call,
    Layout,
    OperandSpec,
    ResultRule,
    TTIRDefinition,
    TTNNDefinition,
    operand,
    register,
)
from ttcodegen.ops.core.dimensions import Dimensions, expect_shape, require
from ttcodegen.ops.core.engine import places
from ttcodegen.ops.core.lowering import cpu_call
from ttcodegen.ops.core.traits import CallKind, Trait, no_flops
from ttcodegen.ops.indexing.gather_scatter import gathered
from ttcodegen.ops.reduction.exact_extremes import bits_decide, has_few_bits


def _table_size(op: CatalogueOp) -> tuple[int, int]:
    """Returns rows and columns of the table, whose leading dimensions must have size 1."""
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


def _rows_by_index(op: CatalogueOp) -> Dimensions:
    """Labels of indices and table columns; the table rows are replicated."""
    rank, table = len(op.shape("input")), len(op.shape("weight"))
    indices = tuple(range(rank))
    return Dimensions([indices, (*(None,) * (table - 1), rank)], [(*indices, rank)])


def _embedding(call: Call) -> Array:
    table = call.array("weight")
    return table.reshape(table.shape[-2:])[places(call.array("input"), table.shape[-2])]


def is_gathered(op: CatalogueOp) -> bool:
    """True if the table needs more bits than bf16 has.

    It holds wide integers, or floats that are compared, sorted, rounded or converted afterwards.
    """
    weight = op.operands[1]
    element = element_of(weight.type)
    if isinstance(element, IntegerType):
        return element.bitwidth > _INTEGER_BITS
    return not has_few_bits(weight) and bits_decide(op.results[0], _MOVING)


_INTEGER_BITS = 8
"""Width of the widest integers that bf16 represents exactly."""
_MOVING = frozenset({"ttir.where", "ttir.subtract"})
"""Users that do not depend on the last bits of table rows."""


def _lower_embedding(builder: OpBuilder, op: CatalogueOp) -> SSAValue:
    """Looks up a single row of indices in bf16; wider elements are gathered.

    The library drops the middle dimensions of indices of higher rank (docs/library-rules.md).
    """
    rows, columns = _table_size(op)
    count = prod(op.shape("input"))
    weight = builder.reshape(builder.operand(op, "weight"), [rows, columns])
    if is_gathered(op):
        indices = builder.typecast(builder.operand(op, "input"), ui32)
        indices = builder.repeat(builder.reshape(indices, [count, 1]), [count, columns])
        value = gathered(builder, weight, indices, dim=0)
        return builder.reshape(
            builder.typecast(value, op.result_type.element_type), op.result_shape
        )
    indices = builder.reshape(builder.operand(op, "input"), [1, count])
    result = TensorType(element_of(weight.type), [1, count, columns])
    value = builder.emit("embedding", [indices, weight], result)
    return builder.reshape(builder.typecast(value, op.result_type.element_type), op.result_shape)


def _embedding_primitives(builder: OpBuilder, op: CatalogueOp) -> SSAValue | None:
    """Embedding with 32-bit indices and a table of rank 2, as kernels require."""
    indices, weight = builder.operand(op, "input"), builder.operand(op, "weight")
    integers = element_of(indices.type) in (si32, ui32)
    same = element_of(weight.type) == op.result_type.element_type
    if integers and same and len(shape_of(weight.type)) == 2 and op.shape("input"):
        return None
    if not integers:
        indices = builder.typecast(indices, si32)
    if not op.shape("input"):
        indices = builder.reshape(indices, [1])
    weight = builder.reshape(weight, _table_size(op))
    rows = (*shape_of(indices.type), shape_of(weight.type)[1])
    value = builder.emit("embedding", [indices, weight], TensorType(element_of(weight.type), rows))
    return builder.reshape(builder.typecast(value, op.result_type.element_type), op.result_shape)


register(
    TTIRDefinition(
        "ttir.embedding",
        (
            OperandSpec("input", input_kind="index", places=lambda op: _table_size(op)[0]),
            operand("weight"),
        ),
        verify=_verify_embedding,
        dimensions=_rows_by_index,
        numpy=_embedding,
        lower=_lower_embedding,
        primitives=_embedding_primitives,
        cpu=cpu_call("indexing"),
    )
)

register(
    TTNNDefinition(
        "ttnn.embedding",
        (
            OperandSpec("input", layout=Layout.ROW_MAJOR, data_types=(DataType.UINT32,)),
            OperandSpec("weight", layout=Layout.ROW_MAJOR, data_types=(DataType.BFLOAT16,)),
        ),
        verify=_verify_embedding,
        numpy=_embedding,
        # The result has the layout of the table by default.
        result_rules=(ResultRule(like=("weight",), layout=Layout.ROW_MAJOR),),
        cpp=cpp_call(
            "ttnn::embedding",
            "ttnn/operations/embedding/embedding.hpp",
            operand_("input"),
            operand_("weight"),
        ),
        flops=no_flops,
        nouns=("embeddings",),
        traits=Trait.OF_LAYER,
        call_kind=CallKind.GATHER,
    )
)

# embedding_backward


def _verify_backward(op: CatalogueOp) -> None:
    """The gradient has a row for each index, the result one for each row of the table."""
    _, columns = _table_size(op)
    gradient = op.shape("in_gradient")
    indices = prod(op.shape("input"))
    if not gradient or gradient[-1] != columns or prod(gradient[:-1]) != indices:
        raise VerifyException(
            f"{op.name}: expected a gradient of {indices} rows of {columns} elements, "
            f"found shape {gradient}"
        )
    expect_shape(op, op.shape("weight"))


def _verify_library_backward(op: CatalogueOp) -> None:
    """The gradient has a row for each index, at least as wide as the table's; the result has as
    many rows as the table, of the gradient's width.
    """
    rows, columns = _table_size(op)
    gradient, result, indices = op.shape("in_gradient"), op.result_shape, prod(op.shape("input"))
    fits = bool(gradient) and prod(gradient[:-1]) == indices and gradient[-1] >= columns
    require(op, fits, f"a gradient of {indices} rows of {columns} elements or more", gradient)
    fits = result[-1:] == gradient[-1:] and prod(result[:-1]) == rows
    require(op, fits, f"a result of {rows} rows of {gradient[-1]} elements", result)


def _backward(call: Call) -> Array:
    gradient = call.array("in_gradient")
    columns = gradient.shape[-1]
    result = np.zeros((prod(call.results[0].shape) // columns, columns), dtype=gradient.dtype)
    indices = places(call.array("input").reshape(-1), result.shape[0])
    np.add.at(result, indices, gradient.reshape(-1, columns))
    return result.reshape(call.results[0].shape)


def _lower_backward(builder: OpBuilder, op: CatalogueOp) -> SSAValue:
    """Lowers to embedding_bw for bf16, else to a scatter, which preserves f32."""
    indices = builder.typecast(builder.operand(op, "input"), ui32)
    gradient = builder.operand(op, "in_gradient")
    if element_of(gradient.type) != bf16:
        return _scattered_rows(builder, op, indices)
    result = _summed_rows(builder, op, indices, gradient)
    return builder.reshape(builder.typecast(result, element_of(op.result_type)), op.result_shape)


def _scattered_rows(builder: OpBuilder, op: CatalogueOp, indices: SSAValue) -> SSAValue:
    """Sums the rows by a scatter in f32."""
    rows, columns = _table_size(op)
    count = prod(op.shape("input"))
    gradient = builder.typecast(builder.operand(op, "in_gradient"), f32)
    gradient = builder.reshape(gradient, [count, columns])
    indices = builder.repeat(builder.reshape(indices, [count, 1]), [count, columns])
    zeros = builder.full([rows, columns], 0.0, f32)
    result = builder.emit(
        "scatter", [zeros, indices, gradient], zeros.type, dim=0, scatter_reduce_type="sum"
    )
    return builder.reshape(builder.typecast(result, element_of(op.result_type)), op.result_shape)


def _summed_rows(
    builder: OpBuilder, op: CatalogueOp, indices: SSAValue, gradient: SSAValue
) -> SSAValue:
    """Emits embedding_bw with tensors padded to whole tiles.

    Padding indices are 0: zeros are added to the first row.
    """
    rows, columns = _table_size(op)
    count = prod(op.shape("input"))
    gradient = builder.reshape(gradient, [1, 1, count, columns])
    gradient = _padded(builder, gradient, -count % TILE_SIDE, -columns % TILE_SIDE)
    indices = _padded(builder, builder.reshape(indices, [1, count]), 0, -count % TILE_SIDE)
    table = builder.reshape(builder.operand(op, "weight"), [rows, columns])
    width = shape_of(gradient.type)[3]
    result = builder.emit(
        "embedding_bw", [indices, table, gradient], TensorType(bf16, [1, 1, rows, width])
    )
    return builder.slice_dim(result, 3, 0, columns)


def _padded(builder: OpBuilder, value: SSAValue, rows: int, columns: int) -> SSAValue:
    """Pads the last two dimensions with zeros."""
    return builder.pad(value, [(0, rows), (0, columns)])


register(
    TTIRDefinition(
        "ttir.embedding_backward",
        (
            OperandSpec("input", input_kind="index", places=lambda op: _table_size(op)[0]),
            operand("weight"),
            operand("in_gradient"),
        ),
        verify=_verify_backward,
        numpy=_backward,
        primitives=lambda builder, op: _scattered_rows(builder, op, builder.operand(op, "input")),
        lower=_lower_backward,
        cpu=cpu_call("indexing"),
        of_nothing=0.0,
    )
)

register(
    TTNNDefinition(
        "ttnn.embedding_bw",
        (
            OperandSpec("input", layout=Layout.ROW_MAJOR, data_types=(DataType.UINT32,)),
            # Only its number of rows is read.
            OperandSpec("weight", layout=None),
            OperandSpec("in_gradient", data_types=(DataType.BFLOAT16,)),
        ),
        verify=_verify_library_backward,
        numpy=_backward,
        result_rules=(ResultRule(like=("in_gradient",)),),
        cpp=cpp_call(
            "ttnn::embedding_bw",
            "ttnn/operations/embedding_backward/embedding_backward.hpp",
            operand_("input"),
            operand_("weight"),
            operand_("in_gradient"),
        ),
    )
)
