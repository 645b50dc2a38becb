"""Legalization of element types."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from xdsl.context import Context
from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    FloatAttr,
    FunctionType,
    IntegerAttr,
    IntegerType,
    ModuleOp,
    TensorType,
    bf16,
    i32,
    i64,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, SSAValue, TypeAttribute
from xdsl.passes import ModulePass

from ttcodegen.dialects.core.datatypes import (
    DataType,
    constant_array,
    element_of,
    elements,
    f32,
    is_boolean,
    normalized_data_type,
    numpy_name,
    shape_of,
)
from ttcodegen.dialects.operations.attribute_kinds import EPSILON, NUMBER
from ttcodegen.dialects.operations.functions import SOURCE_TYPES
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.foundation.diagnostics import CompileError, Diagnostics
from ttcodegen.foundation.lazy_numpy import np
from ttcodegen.ops.core.builder import number_as, splat_of
from ttcodegen.ops.core.definition import (
    TTIRDefinition,
    has_trait,
    library_definition,
    traits_of,
)
from ttcodegen.ops.core.traits import Trait
from ttcodegen.transforms.rewriting import (
    Replacement,
    Rewriter,
    function_blocks,
    functions,
    rewrite_each,
    set_type,
)
from ttcodegen.transforms.ttir.arithmetic_rules import is_truth
from ttcodegen.transforms.ttir.integer_arithmetic import (
    concerns_narrow_bits,
    concerns_wide_order,
    express_by_parts,
    express_narrow_bits,
    is_integer_product,
    order_in_halves,
)

if TYPE_CHECKING:
    import numpy


# Booleans become bf16 zeros and ones, wider types the widest that the device computes with
# (`datatypes.normalized_data_type`). Boolean semantics are preserved: a conversion to boolean is
# a comparison with zero, a sum of booleans is a disjunction. So are those of bitwise ops on
# narrow integers (`integer_arithmetic`). Negative zeros are made positive first, since the
# device's logical ops take them for true and its `sign` for negative.


@dataclass(frozen=True)
class TTIRElementTypeNormalizationPass(ModulePass):
    """Legalizes the element types of signatures, results, constants and type attributes.

    The source type of a function is kept in its attribute `ttcodegen.source_types`. Raises
    CompileError that lists the values whose element types have no device type.
    """

    name = "ttir-element-type-normalization"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        types = _Types()
        _refuse_unsupported(op, types)
        for function in functions(op):
            rewrite_each(function, _split_conversion, _moves_and_converts)
            rewrite_each(function, _express_booleans, _needs_boolean_lowering)
            rewrite_each(function, _without_negative_zeros, _is_negative_zero_sensitive)
            rewrite_each(function, express_by_parts, is_integer_product)
            rewrite_each(function, express_narrow_bits, concerns_narrow_bits)
            rewrite_each(function, order_in_halves, concerns_wide_order)
            _Normalizer(function, types).run()
            rewrite_each(function, _drop_typecast, lambda op: op.name == "ttir.typecast")


class _Types(dict[Attribute, Attribute | None]):
    """Device types by source types, cached; None where there is none."""

    def __missing__(self, type_: Attribute) -> Attribute | None:
        found = self[type_] = _normalized(type_)
        return found

    def require(self, type_: Attribute) -> Attribute:
        """Returns the device type of a supported source type."""
        found = self[type_]
        assert found is not None
        return found


def _normalized(type_: Attribute) -> Attribute | None:
    if not isinstance(type_, TensorType):
        return type_
    tensor = cast("TensorType[Attribute]", type_)
    data_type = normalized_data_type(tensor.element_type)
    if data_type is None:
        return None
    return TensorType(data_type.element_type, tensor.get_shape(), tensor.encoding)


def _refuse_unsupported(module: ModuleOp, types: _Types) -> None:
    diagnostics = Diagnostics()
    for function in functions(module):
        for index, type_ in enumerate(function.function_type.inputs.data):
            if types[type_] is None:
                _refuse(diagnostics, function, f"argument {index} of '@{_name(function)}'", type_)
        for block in function_blocks(function):
            for op in block.ops:
                for result in op.results:
                    if types[result.type] is None:
                        _refuse(diagnostics, op, f"the result of '{op.name}'", result.type)
    diagnostics.raise_errors()


def _name(function: FuncOp) -> str:
    return function.sym_name.data


def _refuse(diagnostics: Diagnostics, place: Operation, what: str, type_: Attribute) -> None:
    diagnostics.error(
        f"{what} has elements of type {element_of(type_)}, which no device data type represents",
        place,
        remedy="convert to bf16, f32 or an integer of up to 64 bits in the source",
    )


def _moves_and_converts(op: CatalogueOp) -> bool:
    definition = op.definition
    if not isinstance(definition, TTIRDefinition) or not definition.moves or len(op.results) != 1:
        return False
    if op.name in ("ttir.typecast", "ttir.to_layout"):
        return False
    moved = op.operands if _joins(op) else op.operands[:1]
    element = op.result_type.element_type
    return any(element_of(value.type) != element for value in moved)


def _joins(op: CatalogueOp) -> bool:
    return op.definition.operands[0].count == "variadic"


def _split_conversion(rewriter: Rewriter, op: CatalogueOp) -> SSAValue:
    """Splits data movement that changes the element type into movement and a typecast.

    Ops of several operands convert each of them first, others the result.
    """
    element = op.result_type.element_type
    if _joins(op):
        return rewriter.again(op, [rewriter.typecast(value, element) for value in op.operands])
    own = TensorType(element_of(op.operands[0].type), op.result_shape)
    return rewriter.typecast(rewriter.again(op, list(op.operands), own), element)


def _needs_boolean_lowering(op: CatalogueOp) -> bool:
    definition = op.definition
    if not op.results or not isinstance(definition, TTIRDefinition):
        return False
    known = definition.on_booleans is not None or definition.counts
    if not known and op.name not in ("ttir.typecast", "ttir.pad"):
        return False
    if not is_boolean(op.result_type.element_type):
        return False
    return Trait.KEEPS_TRUTH not in definition.traits or not _of_booleans(op)


def _of_booleans(op: CatalogueOp) -> bool:
    return all(is_boolean(element_of(operand.type)) for operand in op.operands)


def _on_booleans(op: CatalogueOp) -> str | None:
    return op.definition.on_booleans if isinstance(op.definition, TTIRDefinition) else None


def _counts(op: CatalogueOp) -> bool:
    return isinstance(op.definition, TTIRDefinition) and op.definition.counts


def _express_booleans(rewriter: Rewriter, op: CatalogueOp) -> Replacement | None:
    if op.name == "ttir.pad":
        # Every number but zero is true, and true is 1.
        if op.parameter("value") in (0, 1):
            return None
        padding = op.parameter("padding")
        return rewriter.emit("pad", list(op.operands), op.result_type, padding=padding, value=1.0)
    if op.name != "ttir.typecast":
        name = _on_booleans(op)
        if name is not None and _of_booleans(op):
            parameters = {spec.name: op.parameter(spec.name) for spec in op.definition.attributes}
            return rewriter.emit(name, list(op.operands), op.result_type, **parameters)
        return _nonzero(rewriter, _on_numbers(rewriter, op), op) if _counts(op) else None
    source = op.operands[0]
    return source if is_boolean(element_of(source.type)) else _nonzero(rewriter, source, op)


def _nonzero(rewriter: Rewriter, source: SSAValue, op: CatalogueOp) -> SSAValue:
    """Rewrites `op` as a comparison of a value with zero."""
    return _compared_with_zero(rewriter, "ne", source, op.result_type)


def _compared_with_zero(
    rewriter: Rewriter, name: str, value: SSAValue, result: Attribute
) -> SSAValue:
    element = element_of(value.type)
    data_type = normalized_data_type(element)
    assert data_type is not None
    zero = rewriter.full([1] * len(shape_of(value.type)), 0.0 if data_type.is_float else 0, element)
    return rewriter.emit(name, [value, zero], result)


def _is_negative_zero_sensitive(op: CatalogueOp) -> bool:
    """Returns whether the kernel of a float op distinguishes -0.0 from 0.0."""
    is_logical = op.name.startswith("ttir.logical_") and has_trait(op, Trait.TRUTH)
    return (is_logical or op.name == "ttir.sign") and any(
        _may_be_negative_zero(value) for value in op.operands
    )


def _may_be_negative_zero(value: SSAValue) -> bool:
    if _is_integer(element_of(value.type)) or is_truth(value):
        return False
    op = value.owner
    if not isinstance(op, CatalogueOp):
        return True
    if op.name == "ttir.add":
        # x + 0.0 is never -0.0.
        return all(splat_of(operand) != 0 for operand in op.operands)
    if isinstance(op.definition, TTIRDefinition) and op.definition.moves and not _joins(op):
        return _may_be_negative_zero(op.operands[0])
    return op.name != "ttir.abs"


def _without_negative_zeros(rewriter: Rewriter, op: CatalogueOp) -> SSAValue:
    """Rewrites the op for operands without -0.0, or as a comparison with zero."""
    if op.name == "ttir.logical_not":
        return _compared_with_zero(rewriter, "eq", op.operands[0], op.result_type)
    if op.name == "ttir.sign":
        value = op.operands[0]
        zero = rewriter.full([1] * len(shape_of(value.type)), 0.0, element_of(value.type))
        return rewriter.again(op, [rewriter.emit("add", [value, zero], value.type)])
    return rewriter.again(
        op,
        [
            _compared_with_zero(rewriter, "ne", value, value.type)
            if _may_be_negative_zero(value)
            else value
            for value in op.operands
        ],
    )


def _on_numbers(rewriter: Rewriter, op: CatalogueOp) -> SSAValue:
    """Returns the op on numbers instead of booleans: on the type of its other operands, or bf16.

    Functions of one integer and means may be fractions, which are nonzero: they are computed in
    f32.
    """
    elements = [element_of(value.type) for value in op.operands]
    numbers = [element for element in elements if not is_boolean(element)]
    definition = op.definition
    assert isinstance(definition, TTIRDefinition)
    element = numbers[0] if numbers and definition.tile is not None else bf16
    if _is_integer(element) and _makes_fractions(op):
        element = f32
    operands = [
        rewriter.typecast(value, element)
        if is_boolean(each) or (element == f32 and _is_integer(each))
        else value
        for value, each in zip(op.operands, elements, strict=True)
    ]
    return rewriter.again(op, operands, TensorType(element, op.result_shape))


def _makes_fractions(op: CatalogueOp) -> bool:
    """Returns whether the op may give a fraction for integers."""
    if len(op.operands) == 1:
        return Trait.EXACT_ON_INTEGERS not in traits_of(op.definition)
    taken = library_definition(op).operands[0].data_types
    return taken is not None and all(data_type.is_float for data_type in taken)


def _is_integer(element: Attribute) -> bool:
    return isinstance(element, IntegerType)


def _drop_typecast(rewriter: Rewriter, op: CatalogueOp) -> SSAValue | None:
    return op.operands[0] if op.operands[0].type == op.result_type else None


class _Normalizer:
    """Legalizes the types of one function in place."""

    def __init__(self, function: FuncOp, types: _Types) -> None:
        self._function = function
        self._types = types

    def run(self) -> None:
        for block in function_blocks(self._function):
            for argument in block.args:
                set_type(argument, self._types.require(argument.type))
            for op in block.ops:
                self._normalize(op)
        self._normalize_signature()

    def _normalize_signature(self) -> None:
        source = self._function.function_type
        normalized = FunctionType.from_lists(
            [self._types.require(type_) for type_ in source.inputs],
            [self._types.require(type_) for type_ in source.outputs],
        )
        self._function.attributes.setdefault(SOURCE_TYPES, source)
        self._function.properties["function_type"] = normalized

    def _normalize(self, op: Operation) -> None:
        sources = [result.type for result in op.results]
        for result in op.results:
            set_type(result, self._types.require(result.type))
        if not isinstance(op, CatalogueOp):
            return
        element = element_of(sources[0]) if sources else None
        for attributes in (op.properties, op.attributes):
            for key, attribute in attributes.items():
                attributes[key] = _normalized_attribute(op, key, attribute, element)


def _normalized_attribute(
    op: CatalogueOp, key: str, attribute: Attribute, element: Attribute | None
) -> Attribute:
    match attribute:
        case DenseIntOrFPElementsAttr():
            return _normalized_elements(op, attribute)
        case IntegerAttr() | FloatAttr() if element is not None and _is_number(op, key):
            return _normalized_number(op, key, attribute, element)
        case TypeAttribute():
            data_type = normalized_data_type(attribute)
            return attribute if data_type is None else data_type.element_type
        case _:
            return attribute


def _is_number(op: CatalogueOp, key: str) -> bool:
    return any(
        spec.name == key and spec.kind in (EPSILON, NUMBER) for spec in op.definition.attributes
    )


_BOUNDS = frozenset(["min", "max", "low", "high"])
"""Attributes that bound elements: beyond the device's integers they bound nothing."""


def _normalized_number(
    op: Operation, key: str, attribute: IntegerAttr | FloatAttr, element: Attribute
) -> Attribute:
    """Normalizes a number attribute: booleans to 0 or 1, integers saturated to the device type.

    Refuses numbers that the source type represents and the device type does not, as for constants.
    """
    value = attribute.value.data
    if is_boolean(element):
        truth = value != 0
        if isinstance(attribute, FloatAttr):
            return FloatAttr(float(truth), attribute.type)
        return IntegerAttr(int(truth), i32)
    data_type = normalized_data_type(element)
    if data_type is None or data_type.is_float:
        return attribute
    if isinstance(attribute, IntegerAttr) and key not in _BOUNDS:
        own = np.iinfo(numpy_name(element) or data_type.numpy)
        if own.min <= value <= own.max:
            _require_representable(op, np.array([value], own.dtype), data_type)
    saturated = int(number_as(value, data_type.numpy))
    if isinstance(attribute, FloatAttr) and abs(value - saturated) < 1:
        # A fraction may be meaningful for integers too, such as a slope.
        return attribute
    return IntegerAttr(saturated, i32 if saturated < 2**31 else i64)


def _normalized_elements(op: Operation, attribute: DenseIntOrFPElementsAttr) -> Attribute:
    """Converts constant elements to the device type; splats stay splats."""
    element = attribute.type.get_element_type()
    data_type = normalized_data_type(element)
    if data_type is None:
        raise CompileError(f"constants of {element} are not supported", op)
    if data_type.element_type == element:
        return attribute
    try:
        values = constant_array(attribute)
    except ValueError as error:
        raise CompileError(str(error), op) from None
    # A splat is a view of one element.
    stored = values if values.size == 0 or any(values.strides) else values[(0,) * values.ndim]
    _require_representable(op, np.atleast_1d(stored), data_type)
    data = _converted(stored, data_type).tobytes()
    return elements(data_type.element_type, attribute.type.get_shape(), data)


def _require_representable(op: Operation, values: numpy.ndarray, data_type: DataType) -> None:
    """Raises CompileError for integers that the device type does not represent.

    The limits of the source type, and minus its maximum, mean 'no limit' and are exempt: they
    saturate to those of the device.
    """
    if data_type.is_float or values.dtype.itemsize <= np.dtype(data_type.numpy).itemsize:
        return
    own, target = np.iinfo(values.dtype), np.iinfo(data_type.numpy)
    outside = (values < target.min) | (values > target.max)
    lowest = -int(own.max) if own.min < 0 else 0
    outside &= (values != own.min) & (values != lowest) & (values != own.max)
    if outside.any():
        raise CompileError(
            f"the constant holds {values[outside][0]}, and integers of the device are from "
            f"{target.min} to {target.max}",
            op,
        )


def _converted(values: numpy.ndarray, data_type: DataType) -> numpy.ndarray:
    """Converts elements: integers and finite floats saturate, booleans become zeros and ones."""
    target = np.dtype(data_type.numpy)
    if values.dtype == np.bool_:
        return (values != 0).astype(target)
    if data_type is DataType.FLOAT32:
        largest = np.finfo(np.float32).max
        saturated = np.where(np.isfinite(values), np.clip(values, -largest, largest), values)
        return saturated.astype(target)
    if data_type.is_float:
        return values.astype(np.float32).astype(target)
    limits = np.iinfo(target)
    low = max(int(limits.min), int(np.iinfo(values.dtype).min))
    high = min(int(limits.max), int(np.iinfo(values.dtype).max))
    return np.clip(values, low, high).astype(target)
