"""The indices of greatest elements."""

from __future__ import annotations

from math import prod

from xdsl.dialects.builtin import TensorType
from xdsl.ir import SSAValue

from ttcodegen.dialects.core.datatypes import DataType, element_of, ui32
from ttcodegen.dialects.operations.attribute_kinds import BOOLEAN, INTEGER
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.foundation.lazy_numpy import Array, np
from ttcodegen.ops.core.builder import OpBuilder
from ttcodegen.ops.core.calls import (
    attribute_,
    cpp_call,
    operand_,
)
from ttcodegen.ops.core.cpu_lowering import cpu_call
from ttcodegen.ops.core.definition import (
    Call,
    Layout,
    OperandSpec,
    ResultRule,
    TTIRDefinition,
    TTNNDefinition,
    attribute,
    operand,
    register,
)
from ttcodegen.ops.core.dimensions import of_reduction
from ttcodegen.ops.core.traits import CallKind, Trait
from ttcodegen.ops.reduction.reduce import DIMS, axes_of, dims_on_cpu, reduced_dims, verify_extreme


def _comparable(call: Call) -> Array:
    """The elements as argmax compares them: of f32 what is no number is never the greatest, of
    bfloat16, by whose bits the device compares, it is (bfloat16.h, float32.h of tt-metal)."""
    array = call.array("input")
    if call.operand_dtypes.get("input", [""])[0] != "float32":
        return array
    return np.where(np.isnan(array), np.float32(-np.inf), array)


def _argmax(call: Call) -> Array:
    """The index of the first of the largest elements; along several dimensions, in the row that
    they make up, in their order."""
    array = _comparable(call)
    axes = axes_of(call, array)
    kept = [axis for axis in range(array.ndim) if axis not in axes]
    rows = array.transpose([*kept, *axes])
    rows = rows.reshape([*rows.shape[: len(kept)], prod(rows.shape[len(kept) :])])
    return np.asarray(np.argmax(rows, axis=-1)).reshape(call.results[0].shape)


def _lower_argmax(builder: OpBuilder, op: CatalogueOp) -> SSAValue:
    """The library finds the maximum along the last dimension of row-major tensors only."""
    value = builder.operand(op, "input")
    shape = op.shape("input")
    dims = reduced_dims(op)
    axes = [axis for axis in range(len(shape)) if axis not in dims]
    kept = [shape[axis] for axis in axes] or [1]
    value = builder.permute(value, [*axes, *dims])
    value = builder.reshape(value, [*kept, prod(shape[axis] for axis in dims)])
    result = TensorType(ui32, [*kept, 1])
    value = builder.emit("argmax", [value], result, dim=len(kept), keep_dim=True)
    value = builder.typecast(value, op.result_type.element_type)
    return builder.reshape(value, op.result_shape)


def _argmax_primitives(builder: OpBuilder, op: CatalogueOp) -> SSAValue | None:
    """Along the last dimension, which stays as one of one element."""
    dims, shape = reduced_dims(op), op.shape("input")
    rank = len(shape)
    if shape and dims == [rank - 1] and op.parameter("keep_dim"):
        return None
    kept = [axis for axis in range(rank) if axis not in dims]
    value = builder.permute(builder.operand(op, "input"), [*kept, *dims])
    left = [shape[axis] for axis in kept]
    value = builder.reshape(value, [*left, prod(shape[axis] for axis in dims)])
    result = TensorType(element_of(op.result_type), [*left, 1])
    value = builder.emit("argmax", [value], result, dim_arg=[len(left)], keep_dim=True)
    return builder.reshape(value, op.result_shape)


register(
    TTIRDefinition(
        "ttir.argmax",
        (operand("input"),),
        DIMS,
        verify=verify_extreme,
        dimensions=lambda op: of_reduction(op, reduced_dims(op), None),
        numpy=_argmax,
        traits=Trait.ORDERS,
        primitives=_argmax_primitives,
        lower=_lower_argmax,
        cpu=cpu_call("reduction", dims_on_cpu),
    )
)


def _argmax_along(call: Call) -> Array:
    found = np.argmax(_comparable(call), axis=call["dim"], keepdims=call["keep_dim"])
    return np.asarray(found)


register(
    TTNNDefinition(
        "ttnn.argmax",
        (
            OperandSpec(
                "input",
                layout=Layout.ROW_MAJOR,
                data_types=(
                    DataType.FLOAT32,
                    DataType.BFLOAT16,
                    DataType.INT32,
                    DataType.UINT32,
                    DataType.UINT16,
                ),
            ),
        ),
        (attribute("dim", INTEGER), attribute("keep_dim", BOOLEAN, False)),
        verify=verify_extreme,
        numpy=_argmax_along,
        result_rules=(ResultRule(DataType.UINT32, Layout.ROW_MAJOR),),
        cpp=cpp_call(
            "ttnn::argmax",
            "ttnn/operations/reduction/argmax/argmax.hpp",
            operand_("input"),
            attribute_("dim"),
            attribute_("keep_dim", default=False),
        ),
        nouns=("indices",),
        traits=Trait.ORDERS,
        call_kind=CallKind.REDUCTION,
    )
)
