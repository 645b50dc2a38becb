"""Quantize, dequantize and requantize ops.

The parser moves scale and zero point from the types to attributes of the ops (`parsing.quantized`);
for per-axis types there is one of each per index of dimension `axis`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from math import prod
from typing import Any, cast

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, IntegerType, Signedness, TensorType
from xdsl.ir import Attribute, SSAValue
from xdsl.utils.exceptions import VerifyException

from ttcodegen.dialects.core.datatypes import (
    DataType,
    element_of,
    f32,
    normalized_data_type,
    shape_of,
    si32,
)
from ttcodegen.dialects.operations.attribute_kinds import INTEGER, INTEGERS, NUMBER, NUMBERS
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttnn.placement import declared_data_type
from ttcodegen.foundation.lazy_numpy import Array, np
from ttcodegen.ops.core.builder import OpBuilder
from ttcodegen.ops.core.calls import (
    Argument,
    ArgumentRule,
    CppCalls,
    Text,
    attribute_,
    cpp_call,
    cpp_text,
    operand_,
)
from ttcodegen.ops.core.definition import (
    AttributeSpec,
    Call,
    OperandSpec,
    ResultRule,
    TTIRDefinition,
    TTNNDefinition,
    attribute,
    operand,
    optional,
    register,
)
from ttcodegen.ops.core.dimensions import expect_shape, normalized_dim, require
from ttcodegen.ops.core.lowering import CpuAttributes, cpu_call
from ttcodegen.ops.core.traits import Trait
from ttcodegen.ops.elementwise.ternary import clamped

HEADER = "ttnn/operations/eltwise/quantization/quantization.hpp"

_PARAMETERS = {
    "quantize": ("scale", "zero_point"),
    "dequantize": ("scale", "zero_point"),
    "requantize": ("in_scale", "in_zero_point", "out_scale", "out_zero_point"),
}
"""Scale and zero point operands by op, in the order of the library's arguments."""
_AXIS = attribute("axis", INTEGER, None)
_STORAGE = (attribute("storage_min", INTEGER, None), attribute("storage_max", INTEGER, None))
"""Range of the integer result; values outside are clamped."""


# Verifiers


def _is_float(value: SSAValue) -> bool:
    data_type = normalized_data_type(element_of(value.type))
    return data_type is not None and data_type.is_float


def _verify_types(op: CatalogueOp) -> None:
    """Input and result are float and integer as the op requires, with equal shapes."""
    name = op.definition.short_name.removesuffix("_unrolled")
    expected = (name == "quantize", name == "dequantize")
    values = (op.operands[0], op.results[0])
    for value, is_float, what in zip(values, expected, ("input", "result"), strict=True):
        if _is_float(value) != is_float:
            raise VerifyException(
                f"{op.name}: expected {'floats' if is_float else 'quantized elements'} as {what}, "
                f"found {element_of(value.type)}"
            )
    known = {spec.name for spec in op.definition.attributes}
    low, high = (op.parameter(spec.name) if spec.name in known else None for spec in _STORAGE)
    if low is not None and high is not None:
        require(op, low < high, f"a storage_max above the storage_min of {low}", high)
    expect_shape(op, op.shape("input"))


def _scale_count(op: CatalogueOp) -> int:
    """Returns the required number of scales: 1, or the size of the axis."""
    axis = op.parameter("axis")
    if axis is None:
        return 1
    shape = op.shape("input")
    return shape[normalized_dim(op, axis, len(shape))]


def _verify(op: CatalogueOp) -> None:
    """One positive scale and one zero point, or one of each for every index along the axis."""
    _verify_types(op)
    count = _scale_count(op)
    for name in _PARAMETERS[op.definition.short_name]:
        values: list[float] = op.parameter(name)
        if len(values) != count:
            raise VerifyException(f"{op.name}: expected {count} in '{name}', found {len(values)}")
        if name.endswith("scale") and any(not 0 < value < math.inf for value in values):
            raise VerifyException(f"{op.name}: expected finite, positive numbers in '{name}'")
        if name.endswith("zero_point"):
            _verify_zero_points(op, name, values)


def _verify_zero_points(op: CatalogueOp, name: str, values: Sequence[float]) -> None:
    """Verifies the range of zero points; signless integers are read either way."""
    is_input = name == "in_zero_point" or op.definition.short_name == "dequantize"
    element = element_of((op.operands[0] if is_input else op.results[0]).type)
    if not isinstance(element, IntegerType):
        return
    integer = cast("IntegerType[Any, Any]", element)
    bits: int = integer.width.data
    least = 0 if integer.signedness.data is Signedness.UNSIGNED else -(1 << bits - 1)
    most = (1 << bits - 1 if integer.signedness.data is Signedness.SIGNED else 1 << bits) - 1
    for value in values:
        found = f"{value:g}"
        require(op, least <= value <= most, f"{least} to {most} in '{name}', as {element}", found)


def _verify_call(op: CatalogueOp) -> None:
    """Scales and zero points are numbers or tensors of the expected size."""
    _verify_types(op)
    count = _scale_count(op)
    for name in _PARAMETERS[op.definition.short_name]:
        value = op.optional_operand(name)
        found = () if value is None else shape_of(value.type)
        if value is None and op.parameter(name) is None:
            raise VerifyException(f"{op.name} needs '{name}', as a number or a tensor")
        if prod(found) not in (1, count):
            raise VerifyException(f"{op.name}: expected {count} in '{name}', found shape {found}")


def _verify_unrolled(op: CatalogueOp) -> None:
    """Scales and zero points are tensors of the expected size."""
    _verify_types(op)
    count = _scale_count(op)
    for name in _PARAMETERS[op.definition.short_name.removesuffix("_unrolled")]:
        found = op.shape(name)
        if len(found) > 1 or (found or (1,)) != (count,):
            raise VerifyException(f"{op.name}: expected {count} in '{name}', found shape {found}")


# Meanings


def _parameter(call: Call, name: str) -> Array:
    """Returns a scale or zero point in a shape that broadcasts with the input.

    It is a tensor operand, or a number or list of numbers in an attribute.
    """
    values = call.array(name) if call.operands.get(name) else np.asarray(call[name])
    axis = call["axis"]
    values = values.astype(np.float32)
    if axis is None or values.size == 1:
        return values.reshape(())
    rank = call.array("input").ndim
    return values.reshape([-1 if dim == axis % rank else 1 for dim in range(rank)])


def _stored(call: Call, values: Array) -> Array:
    """Clamps to the storage range; NaN follows the kernels."""
    low, high = (call.attributes.get(name) for name in ("storage_min", "storage_max"))
    if low is None:
        return values
    return clamped(values, np.asarray(low, np.float32), np.asarray(high, np.float32))


def _quantize(call: Call) -> Array:
    scaled = call.array("input").astype(np.float32) / _parameter(call, "scale")
    return _stored(call, np.rint(scaled) + _parameter(call, "zero_point"))


def _dequantize(call: Call) -> Array:
    integers = call.array("input").astype(np.float32)
    return np.asarray((integers - _parameter(call, "zero_point")) * _parameter(call, "scale"))


def _requantize(call: Call) -> Array:
    integers = call.array("input").astype(np.float32)
    real = (integers - _parameter(call, "in_zero_point")) * _parameter(call, "in_scale")
    scaled = np.rint(real / _parameter(call, "out_scale"))
    return _stored(call, scaled + _parameter(call, "out_zero_point"))


_MEANINGS = {"quantize": _quantize, "dequantize": _dequantize, "requantize": _requantize}


# Lowering


def _vector(builder: OpBuilder, numbers: Sequence[float], element: Attribute) -> SSAValue:
    type_ = TensorType(element, [len(numbers)])
    value = DenseIntOrFPElementsAttr.from_list(type_, list(numbers))  # pyright: ignore
    return builder.emit("constant", [], type_, value=value)


def _finished(builder: OpBuilder, op: CatalogueOp, value: SSAValue) -> SSAValue:
    """Clamps the call's 32-bit integers to the storage range and casts to the result type."""
    low, high = (
        op.parameter(name) if name in {spec.name for spec in op.definition.attributes} else None
        for name in ("storage_min", "storage_max")
    )
    least, most = -(2**31), 2**31 - 1
    if low is not None and high is not None and (low > least or high < most):
        value = builder.like("clamp_scalar", value, min=max(low, least), max=min(high, most))
    return builder.typecast(value, op.result_type.element_type)


def _result(op: CatalogueOp) -> TensorType:
    """Result type of the library call: bf16 on request, else f32, or int32."""
    element = op.result_type.element_type
    if not _is_float(op.results[0]):
        return TensorType(si32, op.result_shape)
    is_narrow = normalized_data_type(element) is DataType.BFLOAT16
    return TensorType(element if is_narrow else f32, op.result_shape)


def _lower(builder: OpBuilder, op: CatalogueOp) -> SSAValue:
    """Scalar arguments for per-tensor parameters, constants for per-axis ones."""
    name = op.definition.short_name
    operands: list[SSAValue | None] = [builder.operand(op, "input")]
    attributes: dict[str, Any] = {}
    axis = op.parameter("axis")
    for parameter in _PARAMETERS[name]:
        numbers: list[float] = op.parameter(parameter)
        if len(numbers) == 1:
            operands.append(None)
            attributes[parameter] = numbers[0]
        else:
            element = f32 if parameter.endswith("scale") else si32
            operands.append(_vector(builder, numbers, element))
            attributes["axis"] = axis
    return _finished(builder, op, builder.emit(name, operands, _result(op), **attributes))


def _lower_unrolled(builder: OpBuilder, op: CatalogueOp) -> SSAValue:
    name = op.definition.short_name.removesuffix("_unrolled")
    operands = [builder.operand(op, "input")]
    for parameter in _PARAMETERS[name]:
        value = builder.operand(op, parameter)
        operands.append(builder.reshape(value, shape_of(value.type) or [1]))
    axis = op.parameter("axis")
    return _finished(builder, op, builder.emit(name, operands, _result(op), axis=axis))


# Device programs


def _in_shape(builder: OpBuilder, op: CatalogueOp, name: str) -> SSAValue:
    """Returns a scale or zero point as f32 in a shape that broadcasts with the input."""
    rank, axis = len(op.shape("input")), op.parameter("axis")

    def shape(count: int) -> list[int]:
        sizes = [1] * rank
        if axis is not None and count > 1:
            sizes[axis % rank] = count
        return sizes

    if name not in {spec.name for spec in op.definition.attributes}:
        value = builder.typecast(builder.operand(op, name), f32)
        return builder.reshape(value, shape(prod(shape_of(value.type))))
    numbers = np.asarray(op.parameter(name), dtype=np.float32)
    if numbers.size == 1:
        return builder.full(shape(1), float(numbers.flat[0]), f32)
    return builder.constant(numbers.reshape(shape(numbers.size)))


def _rounded(builder: OpBuilder, value: SSAValue) -> SSAValue:
    """Rounds to the nearest integer, ties to even.

    No tile op does: the floor, plus one where the fraction is above 0.5, or is 0.5 after an odd
    number.
    """

    def number(value: float) -> SSAValue:
        return builder.full([1] * len(shape), value, f32)

    shape = shape_of(value.type)
    low = builder.like("floor", value)
    rest = builder.like("subtract", value, low)
    half = builder.broadcasting("multiply", low, number(0.5))
    is_odd = builder.like("ne", half, builder.like("floor", half))
    at_half = builder.broadcasting("eq", rest, number(0.5))
    raised = builder.like("multiply", at_half, is_odd)
    raised = builder.like("add", raised, builder.broadcasting("gt", rest, number(0.5)))
    return builder.like("add", low, raised)


def _quantized(builder: OpBuilder, op: CatalogueOp, value: SSAValue, prefix: str) -> SSAValue:
    scale, zero = (_in_shape(builder, op, f"{prefix}{name}") for name in ("scale", "zero_point"))
    value = _rounded(builder, builder.broadcasting("div", value, scale))
    value = builder.broadcasting("add", value, zero)
    low, high = op.parameter("storage_min"), op.parameter("storage_max")
    if low is not None and high is not None:
        value = builder.like("clamp_scalar", value, min=low, max=high)
    return value


def _real(builder: OpBuilder, op: CatalogueOp, value: SSAValue, prefix: str) -> SSAValue:
    scale, zero = (_in_shape(builder, op, f"{prefix}{name}") for name in ("scale", "zero_point"))
    value = builder.broadcasting("subtract", value, zero)
    return builder.broadcasting("multiply", value, scale)


def _program(builder: OpBuilder, op: CatalogueOp) -> SSAValue:
    """Decomposition to f32 tile ops."""
    value = builder.typecast(builder.operand(op, "input"), f32)
    match op.definition.short_name.removesuffix("_unrolled"):
        case "quantize":
            value = _quantized(builder, op, value, "")
        case "dequantize":
            value = _real(builder, op, value, "")
        case _:
            value = _quantized(builder, op, _real(builder, op, value, "in_"), "out_")
    return builder.typecast(value, op.result_type.element_type)


# The library's calls


def _argument(name: str) -> ArgumentRule:
    """Rule for a parameter that is a tensor or a number."""

    def rule(calls: CppCalls, op: CatalogueOp) -> Argument:
        value = op.optional_operand(name)
        if value is not None:
            return calls[value]
        number = op.parameter(name)
        return Text(cpp_text(float(number) if name.endswith("scale") else int(number)))

    return rule


def _output_data_type(calls: CppCalls, op: CatalogueOp) -> Argument:
    return Text(cpp_text(declared_data_type(op.results[0])))


def _numbers_on_cpu(name: str) -> list[CpuAttributes]:
    """Returns the fields of each `cpu::Quantization` that the function takes."""
    prefixes = ("in_", "out_") if name == "requantize" else ("",)

    def numbers(prefix: str) -> CpuAttributes:
        return lambda op: {
            field: [float(number) for number in op.parameter(f"{prefix}{field}")]
            for field in ("scale", "zero_point")
        }

    return [numbers(prefix) for prefix in prefixes]


def _storage_on_cpu(op: CatalogueOp) -> dict[str, float | int | None]:
    """Returns the fields of `cpu::Storage`."""
    axis, rank = op.parameter("axis"), len(op.shape("input"))
    known = {spec.name for spec in op.definition.attributes}
    ends = {
        end: float(op.parameter(f"storage_{end}"))
        for end in ("min", "max")
        if f"storage_{end}" in known and op.parameter(f"storage_{end}") is not None
    }
    return {"axis": None if axis is None else axis % rank, **ends}


def _register(name: str, parameters: tuple[str, ...]) -> None:
    meaning = _MEANINGS[name]
    traits = Trait.NONE if name == "dequantize" else Trait.MAKES_INTEGERS
    kinds = {p: NUMBERS if p.endswith("scale") else INTEGERS for p in parameters}
    storage: tuple[AttributeSpec, ...] = () if name == "dequantize" else _STORAGE
    register(
        TTIRDefinition(
            f"ttir.{name}",
            (operand("input"),),
            (*(attribute(p, kind) for p, kind in kinds.items()), _AXIS, *storage),
            verify=_verify,
            numpy=meaning,
            program=_program,
            lower=_lower,
            cpu=cpu_call("quantization", *_numbers_on_cpu(name), _storage_on_cpu),
            traits=traits,
        )
    )
    scales = [operand(p, domain=(0.01, 0.1)) for p in parameters if p.endswith("scale")]
    zeros = [operand(p, domain=(-8, 8)) for p in parameters if not p.endswith("scale")]
    ordered = {spec.name: spec for spec in (*scales, *zeros)}
    register(
        TTIRDefinition(
            f"ttir.{name}_unrolled",
            (operand("input"), *(ordered[p] for p in parameters)),
            (_AXIS, *storage),
            verify=_verify_unrolled,
            numpy=meaning,
            program=_program,
            lower=_lower_unrolled,
            cpu=cpu_call("quantization", _storage_on_cpu),
            traits=traits,
        )
    )
    floats = (DataType.FLOAT32, DataType.BFLOAT16)
    integers = (DataType.INT32,)
    register(
        TTNNDefinition(
            f"ttnn.{name}",
            (
                OperandSpec("input", data_types=floats if name == "quantize" else integers),
                *(
                    optional(p, data_types=floats if p.endswith("scale") else integers)
                    for p in parameters
                ),
            ),
            (*(attribute(p, NUMBER, None) for p in parameters), _AXIS),
            verify=_verify_call,
            numpy=meaning,
            result_rules=(ResultRule("declared" if name == "dequantize" else DataType.INT32),),
            cpp=cpp_call(
                f"ttnn::{name}",
                HEADER,
                operand_("input"),
                *(_argument(p) for p in parameters),
                attribute_("axis"),
                *([_output_data_type] if name == "dequantize" else []),
            ),
        )
    )


for _name, _parameters in _PARAMETERS.items():
    _register(_name, _parameters)
