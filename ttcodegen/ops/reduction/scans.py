"""Cumulative sums and products."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, SSAValue

from ttcodegen.dialects.core.datatypes import DataType, element_of, f32, shape_of
from ttcodegen.dialects.operations.attribute_kinds import DATA_TYPE, INTEGER
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttnn.placement import declared_data_type
from ttcodegen.foundation.lazy_numpy import Array, np
from ttcodegen.ops.core.builder import OpBuilder
from ttcodegen.ops.core.calls import (
    attribute_,
    cpp_call,
    operand_,
)
from ttcodegen.ops.core.definition import (
    Call,
    OperandSpec,
    ResultRule,
    TTIRDefinition,
    TTNNDefinition,
    attribute,
    operand,
    register,
)
from ttcodegen.ops.core.dimensions import along, expect_shape, normalized_dim
from ttcodegen.ops.core.lowering import cpu_call, dimension
from ttcodegen.ops.core.traits import CallKind, Trait
from ttcodegen.ops.elementwise.registration import same_op
from ttcodegen.ops.reduction.reduce import accumulator


def _verify_scan(op: CatalogueOp) -> None:
    """The dimension exists and the shape is unchanged."""
    normalized_dim(op, op.parameter("dim"), len(op.shape("input")))
    expect_shape(op, op.shape("input"))


def _scan(function: str) -> Callable[[Call], Array]:
    def meaning(call: Call) -> Array:
        array = call.array("input")
        return getattr(np, function)(array, axis=call["dim"], dtype=accumulator(array))

    return meaning


_MOST_SUMMED = 4096
"""Largest extent of a cumulative sum that is computed as a matmul."""


def _cumsum_primitives(builder: OpBuilder, op: CatalogueOp) -> SSAValue | None:
    """Matmul with a lower triangular matrix of ones.

    None for integers, of which the matrix engine takes the upper bits only, and for long rows.
    """
    shape = op.shape("input")
    if not declared_data_type(op.operands[0]).is_float or 0 in shape or not shape:
        return None
    axis: int = op.parameter("dim") % len(shape)
    size = shape[axis]
    if size > _MOST_SUMMED:
        return None
    order = [each for each in range(len(shape)) if each != axis]
    # Keeps the last dimension in place unless it is the scanned one.
    last = order.pop() if order else None
    order = [*order, axis, *(() if last is None else (last,))]
    value = builder.permute(builder.operand(op, "input"), order)
    if last is None:
        value = builder.reshape(value, [size, 1])
    line = np.arange(size, dtype=np.float32)
    rows, columns = builder.constant(line[:, None]), builder.constant(line[None])
    summed = builder.broadcasting("ge", rows, columns)
    summed = builder.typecast(summed, element_of(value.type))
    result = TensorType(element_of(value.type), shape_of(value.type))
    value = builder.emit("matmul", [summed, value], result)
    if last is None:
        value = builder.reshape(value, shape)
    value = builder.permute(value, [order.index(each) for each in range(len(shape))])
    return builder.typecast(value, op.result_type.element_type)


_MOST_MULTIPLIED = 1024
"""Largest extent of a cumulative product that is computed in quadratic work."""
_WIDE_INTEGERS = (DataType.INT32, DataType.UINT32)


def _cumprod_primitives(builder: OpBuilder, op: CatalogueOp) -> SSAValue | None:
    """Quadratic cumulative product; None for integers and long rows."""
    is_float = declared_data_type(op.operands[0]).is_float
    return _masked_scan(builder, op, element_of(op.operands[0].type)) if is_float else None


def _masked_scan(builder: OpBuilder, op: CatalogueOp, element: Attribute) -> SSAValue | None:
    """Computes a scan as one masked reduction.

    Position i reduces the elements up to i, and neutral elements after it, along a new leading
    dimension. None for long rows.
    """
    shape = op.shape("input")
    if 0 in shape or not shape:
        return None
    axis: int = op.parameter("dim") % len(shape)
    size = shape[axis]
    if size > _MOST_MULTIPLIED:
        return None
    is_sum = op.definition.short_name == "cumsum"
    order = [axis, *(each for each in range(len(shape)) if each != axis)]
    value = builder.permute(builder.typecast(builder.operand(op, "input"), element), order)
    moved = shape_of(value.type)
    value = builder.reshape(value, [size, 1, prod(shape) // size])
    line = np.arange(size)
    is_before = (line[:, None] <= line[None]).astype(np.float32).reshape(size, size, 1)
    mask = builder.typecast(builder.constant(is_before), element)
    neutral = builder.full([1, 1, 1], 0.0 if is_sum else 1.0, element)
    parts = builder.broadcasting("where", mask, value, neutral, element=element)
    value = builder.reshape(builder.reduce("sum" if is_sum else "prod", parts, [0]), moved)
    value = builder.permute(value, [order.index(each) for each in range(len(shape))])
    return builder.typecast(value, element_of(op.result_type))


def _scan_program(builder: OpBuilder, op: CatalogueOp) -> SSAValue | None:
    """Hillis-Steele scan for integers and long rows: log2(n) steps with shifts 1, 2, 4, 8, ...

    Shorter float rows use a matmul or a masked reduction.
    """
    shape = op.shape("input")
    if 0 in shape or not shape:
        return None
    axis: int = op.parameter("dim") % len(shape)
    if shape[axis] == 1:
        return builder.typecast(builder.operand(op, "input"), op.result_type.element_type)
    is_sum = op.definition.short_name == "cumsum"
    found = (_cumsum_primitives if is_sum else _cumprod_primitives)(builder, op)
    if found is not None:
        return found
    # 16-bit floats would lose precision in each step.
    data_type = declared_data_type(op.results[0])
    computed = f32 if data_type.is_float else op.result_type.element_type
    if data_type in _WIDE_INTEGERS:
        found = _masked_scan(builder, op, computed)
        if found is not None:
            return found
    value = builder.typecast(builder.operand(op, "input"), computed)
    distance = 1
    while distance < shape[axis]:
        widths = [0] * (2 * len(shape))
        widths[2 * axis] = distance
        before = builder.slice_dim(value, axis, 0, shape[axis] - distance)
        neutral = 0.0 if is_sum else 1.0
        before = builder.emit("pad", [before], value.type, padding=widths, value=neutral)
        value = builder.like("add" if is_sum else "multiply", value, before)
        distance *= 2
    return builder.typecast(value, op.result_type.element_type)


for _name in ("cumsum", "cumprod"):
    register(
        TTIRDefinition(
            f"ttir.{_name}",
            (operand("input", domain=(0.5, 1.5) if _name == "cumprod" else None),),
            (attribute("dim", INTEGER),),
            verify=_verify_scan,
            dimensions=along("dim"),
            numpy=_scan(_name),
            counts=_name == "cumsum",
            traits=Trait.WRAPS
            | (
                Trait.SUMS | Trait.EXACT_ON_INTEGERS | Trait.OWN_NAN_IN_TILES
                if _name == "cumsum"
                else Trait.NONE
            ),
            primitives=_cumsum_primitives if _name == "cumsum" else _cumprod_primitives,
            program=_scan_program,
            lower=same_op(_name, "dim"),
            cpu=cpu_call("reduction", dimension("dim")),
        )
    )
    register(
        TTNNDefinition(
            f"ttnn.{_name}",
            (OperandSpec("input"),),
            (attribute("dim", INTEGER), attribute("dtype", DATA_TYPE, None)),
            verify=_verify_scan,
            numpy=_scan(_name),
            call_kind=CallKind.SCAN,
            result_rules=(ResultRule("attribute"),),
            cpp=cpp_call(
                f"ttnn::{_name}",
                f"ttnn/operations/reduction/accumulation/{_name}/{_name}.hpp",
                operand_("input"),
                attribute_("dim"),
                attribute_("dtype"),
            ),
        )
    )
