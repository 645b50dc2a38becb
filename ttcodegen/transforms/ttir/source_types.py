"""Conversion of source element types to device types, with notes on narrowed ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    Float16Type,
    FunctionType,
    IntegerType,
    ModuleOp,
    Signedness,
    TensorType,
)
from xdsl.dialects.func import CallOp
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue

from ttcodegen.dialects.core.datatypes import constant_array, element_of, elements, f32
from ttcodegen.dialects.operations.functions import SOURCE_TYPES
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.foundation.messages import Level, report
from ttcodegen.ops.dialects import ttir_op_classes
from ttcodegen.transforms.rewriting import (
    Rewriter,
    function_blocks,
    functions,
    rewrite_each,
    set_type,
)

_f16 = Float16Type()
_ui64 = IntegerType(64, Signedness.UNSIGNED)
_STEEP = frozenset(
    f"ttir.{name}" for name in ("ceil", "cos", "floor", "pow", "sin", "tan", "trunc")
)
_MOST_NAMES = 4
"""Upper bound on the values that a note names."""


def widen_f16(module: ModuleOp) -> None:
    """Gives all tensors of f16 elements of f32, which hold their values; what the functions are
    given and give stays f16 for those who call them."""
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
                set_type(value, _widened(value.type))
            for op in block.ops:
                for attributes in (op.properties, op.attributes):
                    for key, attribute in attributes.items():
                        attributes[key] = _widened_attribute(attribute)


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


def settle_source_types(module: ModuleOp, f16: str) -> None:
    """Does with f16 what was chosen, and says what the device has less bits for, of what functions
    are given and give."""
    outer = list(_outer_elements(module))
    wide = [place for place, element in outer if element in (IntegerType(64), _ui64)]
    if wide:
        report(
            Level.INFO,
            "ttcodegen: note: integers of 64 bits have 32 on the device, and their lowest bits are "
            f"kept: {_listed(wide)}",
        )
    if f16 == "float32":
        widen_f16(module)
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
