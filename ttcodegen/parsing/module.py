"""Parsing of whole files; quantized tensors and layouts of a source."""

from __future__ import annotations

import gc
import re
import struct
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any, cast

from xdsl.context import Context
from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    FunctionType,
    IntegerType,
    ModuleOp,
    TensorType,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import Rewriter
from xdsl.utils.exceptions import DiagnosticException, MultipleSpansParseError, ParseError

from ttcodegen.compat import ttmetal_programs, ttnn_modules
from ttcodegen.dialects.core.datatypes import without_encoding
from ttcodegen.dialects.operations.functions import change_types
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.operations.verification import verify_definitions
from ttcodegen.dialects.ttcore.device import TensorMeshAttr
from ttcodegen.dialects.ttcore.layouts import BufferAttr, MetalLayoutAttr
from ttcodegen.dialects.ttir.annotations import Quantization, quantization_of
from ttcodegen.dialects.ttnn.placement import TTNNLayoutAttr
from ttcodegen.foundation.diagnostics import (
    CompileError,
    Diagnostic,
    Diagnostics,
    Note,
    Source,
    copy_source_offset,
)
from ttcodegen.ops.core.builder import OpBuilder, builder_before
from ttcodegen.ops.core.definition import TTIRDefinition
from ttcodegen.ops.dialects import TTIROp, load_dialects, ttir_op_classes
from ttcodegen.parsing import tokens
from ttcodegen.parsing.attributes import plain_message
from ttcodegen.parsing.operations import OperationParser, UnknownCustomForm
from ttcodegen.parsing.structure import counted, flatten, remedy_for_operation, unsupported

# Lowering of quantized types to integers.
#
# After parsing, tensors of `!quant.uniform<...>` hold their stored integers, and the parameters of
# the types become attributes of conversion ops. Data movement operates on the integers; other ops
# operate on real numbers, with operands dequantized before and results quantized after them.

_CONVERSIONS = ("quantize", "dequantize", "requantize")
_NEW_VALUES = ("pad", "typecast")
"""Data movement ops that may add other elements."""


def express_quantized(module: ModuleOp) -> None:
    """Replaces quantized element types by their storage types, in place.

    Types that cannot be parsed are kept for `check_supported` to report.
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
    for quantization in (*operands, *results):
        if quantization is not None:
            _expect_zero_points(op, quantization)
    name = op.definition.short_name
    if name.removesuffix("_unrolled") in _CONVERSIONS:
        if len(operands) >= 1 and len(results) == 1:
            _convert(op, operands[0], results[0])
    elif not _moves(op, operands, results) and not _is_stored(op):
        _compute_on_reals(op, operands, results)


def _expect_zero_points(op: CatalogueOp, quantization: Quantization) -> None:
    """Raises CompileError if a zero point is outside of the storage range."""
    for zero_point in quantization.zero_points:
        if not quantization.low <= zero_point <= quantization.high:
            raise CompileError(
                f"{op.name}: the zero point {zero_point} is not one of the stored integers, "
                f"{quantization.low} to {quantization.high}",
                op,
            )


def _is_stored(op: CatalogueOp) -> bool:
    """Returns whether the op is a constant of stored integers instead of real numbers."""
    value = op.properties.get("value") or op.attributes.get("value")
    if not isinstance(value, DenseIntOrFPElementsAttr):
        return False
    return isinstance(value.get_element_type(), IntegerType)


def _moves(
    op: CatalogueOp,
    operands: Sequence[Quantization | None],
    results: Sequence[Quantization | None],
) -> bool:
    """Returns whether the op moves integers of the same per-tensor quantization."""
    definition = op.definition
    if not isinstance(definition, TTIRDefinition) or not definition.moves:
        return False
    moved = operands if definition.operands[0].count == "variadic" else operands[:1]
    found = {*moved, *results}
    (one,) = found if len(found) == 1 else (None,)
    return one is not None and one.axis is None and definition.short_name not in _NEW_VALUES


def _convert(op: CatalogueOp, source: Quantization | None, target: Quantization | None) -> None:
    """Sets attributes of a conversion from its types; incomplete types are left to the verifier."""
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
    """Replaces quantized types of all values by their storage types."""
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


# Layouts of TTIR tensors in the source.

_LAYOUTS = (TTNNLayoutAttr, MetalLayoutAttr, BufferAttr, TensorMeshAttr)

ENCODINGS = (
    "ttnn_layout",
    "metal_layout",
    "tt.layout",
    "tt.buffer",
    "ttcore.buffer",
    "tensor_mesh",
)
"""Words of which at least one is in a text with layouts."""


def drop_layouts(module: ModuleOp, diagnostics: Diagnostics) -> None:
    """Removes layouts from tensors of TTIR functions, since the compiler decides on placement.

    Functions lowered to TTNN, or to `ttir.generic`, keep theirs.
    """
    for function in module.walk():
        if isinstance(function, FuncOp):
            ops = list(function.walk())
            is_tensor_level = any(isinstance(op, TTIROp) for op in ops)
            if is_tensor_level and not any(op.name == "ttir.generic" for op in ops):
                _drop(function, diagnostics)


def _drop(function: FuncOp, diagnostics: Diagnostics) -> None:
    if change_types(function, _without_layout):
        diagnostics.warn(
            "tensor encodings such as #ttnn.ttnn_layout are ignored in TTIR: layouts are assigned "
            "by the compiler",
            function,
        )


def _without_layout(type_: Attribute) -> Attribute:
    encoding = cast("Attribute | None", getattr(type_, "encoding", None))
    return without_encoding(type_) if isinstance(encoding, _LAYOUTS) else type_


# Parsing of whole files.


# The start of a line with an operation, in generic or custom form.
_OPERATION = re.compile(
    r"^[ \t]*(?:%[^=\"\n]*=[ \t]*)?"
    r"(?:\"([\w.$-]+)\"[ \t]*\(|([a-z_]\w*\.[a-z_][\w.]*)(?![ \t]*=))",
    re.MULTILINE,
)


def parse_module(source: Source, diagnostics: Diagnostics | None = None) -> ModuleOp:
    """Parses a module: functions only, in the current syntax.

    Unknown operations are kept for `check_supported` to report. Dropped information is reported in
    `diagnostics`.

    Raises:
        CompileError: at the first syntax error, or with all undefined values of a function.
    """
    if diagnostics is None:
        diagnostics = Diagnostics()
    with _collector_paused():
        operations = parse_operations(source, diagnostics)
        module = flatten(operations, diagnostics)
        other_years = ttnn_modules.is_of_other_years(source.text)
        if other_years:
            ttnn_modules.take_over(module, diagnostics)
        if any(word in source.text for word in ttmetal_programs.TEXT):
            ttmetal_programs.take_over(module)
        tokens.upgrade(module)
        if other_years:
            ttnn_modules.forget_destinations(module)
        if ttnn_modules.TUPLE_TEXT in source.text:
            ttnn_modules.unpack(module)
        if "!quant." in source.text:
            express_quantized(module)
        # Afterwards: quantized operands of TTNN calls are dequantized by TTIR.
        if any(word in source.text for word in ENCODINGS):
            drop_layouts(module, diagnostics)
    return module


def parse_operations(
    source: Source, diagnostics: Diagnostics, context: Context | None = None
) -> list[Operation]:
    """Parses the top-level operations of a text.

    Args:
        source: the text.
        diagnostics: receives what is ignored.
        context: the dialects of the text; those of the compiler if None.

    Raises:
        CompileError: as `parse_module`; also with all functions, calls and returns that lack
            required attributes, operands or regions.
    """
    if not source.text.strip():
        raise CompileError("the input is empty", remedy="give a module of TTIR functions")
    parser = _open(source, diagnostics, context or load_dialects())
    try:
        operations = parser.parse_top_level()
    except UnknownCustomForm as error:
        raise _all_unknown_custom_forms(source, parser, error) from None
    except MultipleSpansParseError as error:
        notes = [Note(text or error.ref_text or "see here", s.start) for s, text in error.refs]
        raise CompileError(plain_message(error.msg), error.span.start, notes=notes) from None
    except ParseError as error:
        raise CompileError(plain_message(error.msg), error.span.start) from None
    except CompileError as error:
        raise _with_element_type_hint(error, source.text) from None
    except DiagnosticException as error:
        raise CompileError(plain_message(str(error)), parser.offset) from None
    except RecursionError:
        raise CompileError("the input is nested too deeply", parser.offset) from None
    except (ArithmeticError, AssertionError, LookupError, NotImplementedError, TypeError,
            ValueError, struct.error) as error:  # fmt: skip
        # xDSL validates some input only by assertions and conversions.
        raise _malformed(error, source, parser.offset) from error
    if not operations:
        raise CompileError("the input holds no operations", remedy="give a module of functions")
    if tokens.CONSTRAINTS in source.text:
        tokens.drop_constraints(operations)
    verify_definitions(operations)
    return operations


_ELEMENT_TYPES = {
    **dict.fromkeys(("fp16", "float16", "half"), "f16"),
    **dict.fromkeys(("fp32", "float32", "float", "single"), "f32"),
    **dict.fromkeys(("fp64", "float64", "double"), "f64"),
    **dict.fromkeys(("b16", "bfp16", "bfloat16", "bfloat", "brain16"), "bf16"),
    **dict.fromkeys(("bool", "boolean", "b1"), "i1"),
    **dict.fromkeys(("int", "integer"), "i32"),
    **dict.fromkeys(("uint", "unsigned"), "ui32"),
    **dict.fromkeys(("long", "size_t"), "i64"),
    **{name: name for name in ("f16", "f32", "f64", "bf16", "i1", "i8", "i16", "i32", "i64")},
    **{f"int{bits}": f"i{bits}" for bits in (8, 16, 32, 64)},
    **{f"s{bits}": f"si{bits}" for bits in (8, 16, 32, 64)},
    **{f"{name}{bits}": f"ui{bits}" for name in ("uint", "u") for bits in (8, 16, 32, 64)},
}
"""Names of element types in other systems."""


_TYPE_ERRORS = ("expected shape type", "type expected")
"""xDSL's messages where a type is expected."""


def _element_type_hint(text: str, offset: int) -> str:
    """Returns a hint for a message about a shape with an element type of another system."""
    found = re.match(r"(?:x?[0-9?]+x)*x?([A-Za-z]\w*)", text[offset : offset + 100])
    if found is None:
        return ""
    meant = _ELEMENT_TYPES.get(found[1].lower())
    hint = f"; did you mean {meant}?" if meant is not None else ""
    return f": there is no element type {found[1]}{hint}"


def _with_element_type_hint(error: CompileError, text: str) -> CompileError:
    """Adds a hint to an error at an element type of another system."""
    first = error.diagnostics[0]
    if first.message not in _TYPE_ERRORS or not isinstance(first.place, int):
        return error
    hint = _element_type_hint(text, first.place)
    return CompileError(first.message + hint, first.place, remedy=first.remedy)


def _malformed(error: Exception, source: Source, offset: int) -> CompileError:
    """Returns the diagnostic of an xDSL conversion that failed before `offset`."""
    if isinstance(error, UnicodeDecodeError):
        place = source.text.rfind('"', 0, source.text.rfind('"', 0, offset))
        return CompileError("a name is not UTF-8 text", offset if place < 0 else place)
    most = sys.get_int_max_str_digits()
    long = re.compile(rf"[0-9]{{{most + 1},}}").search(
        source.text, max(0, source.text.rfind("\n", 0, offset))
    )
    if "integer string conversion" in str(error) and long is not None:
        return CompileError("a number has too many digits", long.start())
    return CompileError(f"malformed input: {plain_message(str(error))}", offset)


def _open(source: Source, diagnostics: Diagnostics, context: Context) -> OperationParser:
    """Returns a parser at the first token of the text."""
    try:
        return OperationParser(context, source, diagnostics)
    except ParseError as error:
        raise CompileError(plain_message(error.msg), error.span.start) from None


def _all_unknown_custom_forms(
    source: Source, parser: OperationParser, error: UnknownCustomForm
) -> CompileError:
    """Returns one diagnostic per unknown operation, found by scanning the rest of the text.

    Parsing cannot continue after the first unknown custom form.
    """
    offsets: dict[str, list[int]] = {error.op_name: []}
    for match in _OPERATION.finditer(source.text):
        generic, custom = match.groups()
        if not parser.knows(generic or custom, in_custom_form=custom is not None):
            # Positions of generic names include the quote.
            place = match.start(2) if generic is None else match.start(1) - 1
            offsets.setdefault(generic or custom, []).append(place)
    found: list[Diagnostic] = []
    for name, places in offsets.items():
        remedy = remedy_for_operation(name) or error.diagnostics[0].remedy
        places = places or [error.offset]
        message = counted(unsupported(name), len(places))
        found.append(Diagnostic(message, places[0], remedy))
    return CompileError.from_diagnostics(found)


@contextmanager
def _collector_paused() -> Generator[None]:
    """Pauses garbage collection, which would take half of the parsing time: parsed objects live
    on."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
