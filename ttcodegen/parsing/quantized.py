"""Quantized tensors, as integers and ops that say what they represent.

`!quant.uniform<...>` says in a type what an op has to know. Once a module is read, its tensors hold
the integers that are stored, and what the types said is in attributes of the ops that convert.
An op that only moves elements moves integers; any other one is meant for the real numbers, so that
its operands are dequantized before it and its results quantized after it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    FunctionType,
    IntegerType,
    ModuleOp,
    TensorType,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, SSAValue
from xdsl.rewriter import Rewriter

from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttir.quant import Quantization, quantization_of
from ttcodegen.foundation.diagnostics import copy_source_offset
from ttcodegen.ops.core.builder import OpBuilder, builder_before
from ttcodegen.ops.core.definition import TTIRDefinition
from ttcodegen.ops.dialects import ttir_op_classes

_CONVERSIONS = ("quantize", "dequantize", "requantize")
_NEW_VALUES = ("pad", "typecast")
"""Ops that move elements but may put others beside them."""


def express_quantized(module: ModuleOp) -> None:
    """Replaces quantized element types by those of their integers, in place.

    Types that are not understood stay, for `check_supported` to list.
    """
    for function in module.ops:
        if isinstance(function, FuncOp):
            for block in function.body.blocks:
                for op in list(block.ops):
                    if isinstance(op, CatalogueOp):
                        _express(op)
    for function in module.ops:
        if isinstance(function, FuncOp):
            _store(function)


def _quantization(value: SSAValue) -> Quantization | None:
    type_ = value.type
    if not isinstance(type_, TensorType):
        return None
    return quantization_of(cast("TensorType[Attribute]", type_).element_type)


def _express(op: CatalogueOp) -> None:
    operands = [_quantization(value) for value in op.operands]
    results = [_quantization(value) for value in op.results]
    if not any(operands) and not any(results):
        return
    name = op.definition.short_name
    if name.removesuffix("_unrolled") in _CONVERSIONS:
        if len(operands) >= 1 and len(results) == 1:
            _convert(op, operands[0], results[0])
    elif not _moves(op, operands, results) and not _is_stored(op):
        _compute_on_reals(op, operands, results)


def _is_stored(op: CatalogueOp) -> bool:
    """True if the op is a constant that names the integers that are stored, not what they mean."""
    value = op.properties.get("value") or op.attributes.get("value")
    if not isinstance(value, DenseIntOrFPElementsAttr):
        return False
    return isinstance(value.get_element_type(), IntegerType)


def _moves(
    op: CatalogueOp,
    operands: Sequence[Quantization | None],
    results: Sequence[Quantization | None],
) -> bool:
    """True if the op moves integers that represent the same numbers everywhere."""
    definition = op.definition
    if not isinstance(definition, TTIRDefinition) or not definition.moves:
        return False
    moved = operands if definition.operands[0].count == "variadic" else operands[:1]
    found = {*moved, *results}
    (one,) = found if len(found) == 1 else (None,)
    return one is not None and one.axis is None and definition.short_name not in _NEW_VALUES


def _convert(op: CatalogueOp, source: Quantization | None, target: Quantization | None) -> None:
    """Puts into attributes what the types say. An op whose types say too little is left to its
    verifier."""
    attributes: dict[str, Any] = {}
    name = op.definition.short_name
    if target is not None:
        attributes |= {"storage_min": target.low, "storage_max": target.high}
    if not name.endswith("_unrolled"):
        if name == "requantize":
            if source is None or target is None:
                return
            if source.axis != target.axis:
                _requantize_along_other_axes(op, source, target)
                return
            attributes |= _parameters(source, "in_") | _parameters(target, "out_")
        else:
            one = source if name == "dequantize" else target
            attributes |= {} if one is None else _parameters(one)
    for key, value in attributes.items():
        if value is not None:
            op.properties[key] = op.definition.attribute(key).kind.encode(value)


def _parameters(quantization: Quantization, prefix: str = "") -> dict[str, Any]:
    return {
        f"{prefix}scale": list(quantization.scales),
        f"{prefix}zero_point": list(quantization.zero_points),
        "axis": quantization.axis,
    }


def _dequantized(builder: OpBuilder, value: SSAValue, quantization: Quantization) -> SSAValue:
    type_ = cast("TensorType[Attribute]", value.type)
    real = TensorType(quantization.expressed, type_.get_shape())
    return builder.emit("dequantize", [value], real, **_parameters(quantization))


def _quantized(
    builder: OpBuilder, value: SSAValue, type_: Attribute, quantization: Quantization
) -> SSAValue:
    limits = {"storage_min": quantization.low, "storage_max": quantization.high}
    return builder.emit("quantize", [value], type_, **_parameters(quantization), **limits)


def _requantize_along_other_axes(
    op: CatalogueOp, source: Quantization, target: Quantization
) -> None:
    builder = builder_before(op, ttir_op_classes())
    real = _dequantized(builder, op.operands[0], source)
    made = _quantized(builder, real, op.results[0].type, target)
    Rewriter.replace_op(op, [], [made])


def _compute_on_reals(
    op: CatalogueOp,
    operands: Sequence[Quantization | None],
    results: Sequence[Quantization | None],
) -> None:
    builder = builder_before(op, ttir_op_classes())
    for index, quantization in enumerate(operands):
        if quantization is not None:
            op.operands[index] = _dequantized(builder, op.operands[index], quantization)
    types = [result.type for result in op.results]
    for index, quantization in enumerate(results):
        if quantization is not None:
            shape = cast("TensorType[Attribute]", types[index]).get_shape()
            types[index] = TensorType(quantization.expressed, shape)
    if types == [result.type for result in op.results]:
        return
    real = type(op).create(
        operands=list(op.operands),
        result_types=types,
        properties=op.properties,
        attributes=op.attributes,
        location=op.location,
    )
    copy_source_offset(op, real)
    builder.insert(real)
    replacements = [
        made if quantization is None else _quantized(builder, made, old.type, quantization)
        for made, old, quantization in zip(real.results, op.results, results, strict=True)
    ]
    Rewriter.replace_op(op, [], replacements)


def _store(function: FuncOp) -> None:
    """Gives every value that is quantized the type of its integers."""
    for block in function.body.blocks:
        for argument in block.args:
            _retype(argument)
        for op in block.ops:
            for result in op.results:
                _retype(result)
    type_ = function.function_type
    function.function_type = FunctionType.from_lists(
        [_stored(each) for each in type_.inputs], [_stored(each) for each in type_.outputs]
    )


def _retype(value: SSAValue) -> None:
    stored = _stored(value.type)
    if stored is not value.type:
        Rewriter.replace_value_with_new_type(value, stored)


def _stored(type_: Attribute) -> Attribute:
    if not isinstance(type_, TensorType):
        return type_
    tensor = cast("TensorType[Attribute]", type_)
    quantization = quantization_of(tensor.element_type)
    if quantization is None:
        return tensor
    return TensorType(quantization.storage, tensor.get_shape(), tensor.encoding)
