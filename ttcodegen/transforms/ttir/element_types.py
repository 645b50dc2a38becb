"""Legalization of element types."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from xdsl.context import Context
from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    Float16Type,
    FloatAttr,
    FunctionType,
    IntegerAttr,
    IntegerType,
    ModuleOp,
    Signedness,
    TensorType,
    bf16,
    i32,
    i64,
)
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue, TypeAttribute
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
from ttcodegen.foundation.diagnostics import CompileError, Diagnostics, Source, place_of
from ttcodegen.foundation.lazy_numpy import np
from ttcodegen.foundation.messages import Level, report
from ttcodegen.ops.core.builder import number_as
from ttcodegen.ops.core.definition import TTIRDefinition, library_definition, traits_of
from ttcodegen.ops.core.traits import Trait
from ttcodegen.ops.dialects import ttir_op_classes
from ttcodegen.transforms.rewriting import (
    Replacement,
    Rewriter,
    function_blocks,
    functions,
    rewrite_each,
    set_type,
)
from ttcodegen.transforms.ttir.integer_arithmetic import (
    concerns_narrow_bits,
    concerns_wide_order,
    express_by_parts,
    express_narrow_bits,
    is_integer_product,
    order_in_halves,
)
from ttcodegen.transforms.ttir.integer_ranges import needs_upper_half

if TYPE_CHECKING:
    import numpy


# Gives every tensor an element type that the device has.
#
# Booleans become bf16 zeros and ones, wider types the widest that the device computes with
# (`datatypes.normalized_data_type`). What an op means for booleans is kept: a conversion to a
# boolean is a comparison with zero, a sum of booleans is a disjunction. So is what ops on the
# bits of narrow integers mean (`ttir_narrow_integers`).


@dataclass(frozen=True)
class TTIRElementTypeNormalizationPass(ModulePass):
    """Rewrites signatures, results, constants and type attributes; the type that a function had is
    kept in its attribute `ttcodegen.source_types`.

    Raises CompileError that lists the values whose element types have no device type.
    """

    name = "ttir-element-type-normalization"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        types = _Types()
        _refuse_unsupported(op, types)
        for function in functions(op):
            rewrite_each(function, _convert_apart, _converts_what_it_moves)
            rewrite_each(function, _express_booleans, _concerns_booleans)
            rewrite_each(function, express_by_parts, is_integer_product)
            rewrite_each(function, express_narrow_bits, concerns_narrow_bits)
            rewrite_each(function, order_in_halves, concerns_wide_order)
            _Normalizer(function, types).run()
            rewrite_each(function, _drop_typecast, lambda op: op.name == "ttir.typecast")


class _Types(dict[Attribute, Attribute | None]):
    """The device's types by the source's, None where it has none; most values share a few."""

    def __missing__(self, type_: Attribute) -> Attribute | None:
        found = self[type_] = _normalized(type_)
        return found

    def require(self, type_: Attribute) -> Attribute:
        """As above, for a type that was looked at before."""
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


def _converts_what_it_moves(op: CatalogueOp) -> bool:
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


def _convert_apart(rewriter: Rewriter, op: CatalogueOp) -> SSAValue:
    """The op on elements of one type, and a conversion: of what it moves, or, if these are several,
    of each before."""
    element = op.result_type.element_type
    if _joins(op):
        return rewriter.again(op, [rewriter.typecast(value, element) for value in op.operands])
    own = TensorType(element_of(op.operands[0].type), op.result_shape)
    return rewriter.typecast(rewriter.again(op, list(op.operands), own), element)


def _concerns_booleans(op: CatalogueOp) -> bool:
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
        return _nonzero(rewriter, _counted(rewriter, op), op) if _counts(op) else None
    source = op.operands[0]
    return source if is_boolean(element_of(source.type)) else _nonzero(rewriter, source, op)


def _nonzero(rewriter: Rewriter, source: SSAValue, op: CatalogueOp) -> SSAValue:
    """Rewrites `op` as a comparison of a value with zero."""
    element = element_of(source.type)
    data_type = normalized_data_type(element)
    assert data_type is not None
    zero = rewriter.full(
        [1] * len(shape_of(source.type)), 0.0 if data_type.is_float else 0, element
    )
    return rewriter.emit("ne", [source, zero], op.result_type)


def _counted(rewriter: Rewriter, op: CatalogueOp) -> SSAValue:
    """The op on numbers instead of booleans: those that it is given, or floats. Of one integer a
    function may be a fraction before it is asked whether it is zero, and so may a mean."""
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
    """True if the op may make a fraction of integers."""
    if len(op.operands) == 1:
        return Trait.EXACT_ON_INTEGERS not in traits_of(op.definition)
    taken = library_definition(op).operands[0].data_types
    return taken is not None and all(data_type.is_float for data_type in taken)


def _is_integer(element: Attribute) -> bool:
    return isinstance(element, IntegerType)


def _drop_typecast(rewriter: Rewriter, op: CatalogueOp) -> SSAValue | None:
    return op.operands[0] if op.operands[0].type == op.result_type else None


class _Normalizer:
    """Changes the types of one function in place."""

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
"""Numbers that limit elements. Where the device's integers end, all of them are within."""


def _normalized_number(
    op: Operation, key: str, attribute: IntegerAttr | FloatAttr, element: Attribute
) -> Attribute:
    """A boolean as 0 or 1; of what is beyond the integers of the result, their limit. Refuses a
    number that they hold and those of the device do not, as constants do."""
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
        # What it has after the point is for the op to say: a slope is one for integers too.
        return attribute
    return IntegerAttr(saturated, i32 if saturated < 2**31 else i64)


def _normalized_elements(op: Operation, attribute: DenseIntOrFPElementsAttr) -> Attribute:
    """The elements as the device's type; what is one number throughout stays one number."""
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
    """Refuses integers that the device has no room for. The limits of the source's type (and minus
    the greatest, which is the smallest for some) mean 'no limit', and become the device's."""
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
    """Integers saturate, so do finite floats; booleans become zeros and ones."""
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


# Conversion of source element types to device types, with notes on narrowed ones.

_f16 = Float16Type()
_ui64 = IntegerType(64, Signedness.UNSIGNED)
_STEEP = frozenset(
    f"ttir.{name}" for name in ("ceil", "cos", "floor", "pow", "sin", "tan", "trunc")
)
_MOST_NAMES = 4
"""Upper bound on the values that a note names."""


def widen_f16(module: ModuleOp) -> bool:
    """Gives all tensors of f16 elements of f32, which hold their values; arguments and results of
    functions stay f16 for their callers. False if there are none."""
    found = False
    for function in functions(module):
        source = function.function_type
        widened = FunctionType.from_lists(
            [_widened(type_) for type_ in source.inputs],
            [_widened(type_) for type_ in source.outputs],
        )
        function.attributes.setdefault(SOURCE_TYPES, source)
        function.properties["function_type"] = widened
        for block in function_blocks(function):
            for value in (*block.args, *(result for op in block.ops for result in op.results)):
                found |= (type_ := _widened(value.type)) is not value.type
                set_type(value, type_)
            for op in block.ops:
                for attributes in (op.properties, op.attributes):
                    for key, attribute in attributes.items():
                        attributes[key] = _widened_attribute(attribute)
    return found


def _widened(type_: Attribute) -> Attribute:
    if not isinstance(type_, TensorType):
        return type_
    tensor = cast("TensorType[Attribute]", type_)
    if tensor.element_type != _f16:
        return tensor
    return TensorType(f32, tensor.get_shape(), tensor.encoding)


def _widened_attribute(attribute: Attribute) -> Attribute:
    match attribute:
        case Float16Type():
            return f32
        case DenseIntOrFPElementsAttr():
            return _widened_elements(attribute)
        case _:
            return _widened(attribute)


def _widened_elements(attribute: DenseIntOrFPElementsAttr) -> Attribute:
    """Numbers; one throughout stays one."""
    if attribute.type.get_element_type() != _f16:
        return attribute
    values = constant_array(attribute)
    stored = values if values.size == 0 or any(values.strides) else values[(0,) * values.ndim]
    return elements(f32, attribute.type.get_shape(), stored.astype("float32").tobytes())


def settle_source_types(module: ModuleOp, f16: str, source: Source) -> None:
    """Does with f16 what was chosen, and says what the device has less bits for: of arguments and
    results, and of ops that need the upper half of integers computed from narrower ones."""
    outer = list(_outer_elements(module))
    wide = [place for place, element in outer if element in (IntegerType(64), _ui64)]
    if wide:
        report(
            Level.INFO,
            "ttcodegen: note: integers of 64 bits have 32 on the device, and their lowest bits are "
            f"kept: {_listed(wide)}",
        )
    if lossy := [_described(op, source) for op in needs_upper_half(module)]:
        report(
            Level.INFO,
            "ttcodegen: note: integers beyond 32 bits keep their lowest 32 on the device, but all "
            f"bits are needed by {_listed(lossy)}",
        )
    if f16 == "float32":
        if not widen_f16(module):
            report(Level.INFO, "ttcodegen: note: the module has no f16 that --f16 could widen")
        return
    _keep_steep_arguments(module)
    if half := [place for place, element in outer if element == _f16]:
        report(
            Level.INFO,
            "ttcodegen: note: f16 is bf16 on the device, which has three bits less: "
            f"{_listed(half)}; --f16 float32 keeps its values",
        )


def _keep_steep_arguments(module: ModuleOp) -> None:
    """Gives functions that turn the last bits of f16 into much, or cut them off, and what makes
    float32 of f16, their arguments in float32."""
    called = {name for op in module.walk() if (name := _callee(op)) is not None}
    for function in functions(module):
        if function.is_declaration:
            continue
        block = function.body.block
        steep = [
            argument
            for argument in block.args
            if _widened(argument.type) != argument.type
            and any(_needs_all_bits(use.operation) for use in argument.uses)
        ]
        if not steep or function.sym_name.data in called:
            continue
        function.attributes.setdefault(SOURCE_TYPES, function.function_type)
        for argument in steep:
            half = argument.type
            set_type(argument, _widened(half))
            cast_ = ttir_op_classes()["typecast"].create(operands=[argument], result_types=[half])
            first = block.first_op
            assert first is not None
            block.insert_op_before(cast_, first)
            argument.replace_uses_with_if(
                cast_.results[0], lambda use, made=cast_: use.operation is not made
            )
        function.properties["function_type"] = FunctionType.from_lists(
            [argument.type for argument in block.args], list(function.function_type.outputs)
        )
        rewrite_each(function, _in_float32, _is_of_kept)


def _callee(op: Operation) -> str | None:
    return op.callee.string_value() if isinstance(op, CallOp) else None


def _needs_all_bits(op: Operation) -> bool:
    if op.name == "ttir.typecast":
        return element_of(op.results[0].type) == f32
    return op.name in _STEEP


def _is_of_kept(op: CatalogueOp) -> bool:
    return _needs_all_bits(op) and any(_kept(value) is not None for value in op.operands)


def _kept(value: SSAValue) -> SSAValue | None:
    """The argument in float32 that a value in f16 was made of."""
    owner = value.owner
    if not isinstance(owner, CatalogueOp) or owner.name != "ttir.typecast":
        return None
    source = owner.operands[0]
    kept = isinstance(source, BlockArgument) and _widened(value.type) == source.type
    return source if kept and source.type != value.type else None


def _in_float32(rewriter: Rewriter, op: CatalogueOp) -> SSAValue:
    operands = [_kept(value) or rewriter.typecast(value, f32) for value in op.operands]
    if op.name == "ttir.typecast":
        return operands[0]
    found = rewriter.again(op, operands, _widened(op.results[0].type))
    return rewriter.typecast(found, _f16)


def _described(op: CatalogueOp, source: Source) -> str:
    place = place_of(op)
    where = source.location(place) if isinstance(place, int) else place
    return f"'{op.name}'" if where is None else f"'{op.name}' ({where})"


def _listed(places: list[str]) -> str:
    more = len(places) - _MOST_NAMES
    named = ", ".join(places[:_MOST_NAMES])
    return f"{named} and {more} more" if more > 0 else named


def _outer_elements(module: ModuleOp) -> Iterator[tuple[str, Attribute]]:
    """The arguments and results of all functions, and their element types."""
    for function in functions(module):
        types = function.function_type
        for kind, each in (("argument", types.inputs.data), ("result", types.outputs.data)):
            for index, type_ in enumerate(each):
                if isinstance(type_, TensorType):
                    tensor = cast("TensorType[Attribute]", type_)
                    place = f"{kind} {index} of '@{function.sym_name.data}'"
                    yield place, tensor.element_type


def note_kept_weights(module: ModuleOp, weights: str) -> None:
    """Says it where a lowered module has no weights that could become block floats."""
    types = {value.type for op in module.walk() for value in (*op.results, *op.operands)}
    if not any("bfp_bf" in str(type_) for type_ in types):
        report(
            Level.INFO,
            f"ttcodegen: note: no matmul has weights that can be {weights}: all keep their type",
        )
