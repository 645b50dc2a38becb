"""Translation of source dialects to TTIR, and classes of their operations."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, cast

from xdsl.context import Context
from xdsl.dialects.builtin import (
    BFloat16Type,
    Float32Type,
    FunctionType,
    ModuleOp,
    StringAttr,
    SymbolRefAttr,
    TensorType,
    UnitAttr,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Dialect, Operation, OpResult, OpTraits, SSAValue
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.utils.exceptions import VerifyException

from ttcodegen.dialects.core.datatypes import (
    DataType,
    constant_array,
    element_of,
    elements,
    f32,
    normalized_data_type,
    numpy_name,
    shape_of,
    tensor_type,
)
from ttcodegen.dialects.operations.operation import CatalogueOp, operation_name
from ttcodegen.dialects.ttcore.tile import TILE_SIDE
from ttcodegen.foundation.diagnostics import CompileError, Diagnostic, place_of, plural
from ttcodegen.foundation.lazy_numpy import Array, np
from ttcodegen.frontends.special_functions import rounded
from ttcodegen.ops.core.builder import OpBuilder
from ttcodegen.ops.dialects import load_dialects, ttir_op_classes
from ttcodegen.parsing.structure import (
    FIXED_SHAPES,
    counted,
    is_of_unknown_size,
    unsupported,
)
from ttcodegen.transforms.rewriting import erase_dead

# Operations of dialects that are read and translated, and never compiled as they are.
#
# A front end names the operations that it knows and how each is written; everything else about
# them is in the rules that translate them.

Form = Callable[[Parser, type[Operation]], Operation]
"""Parses an operation in a custom assembly format, after its name."""


class SourceOp(Operation):
    """Operation of a source dialect."""

    name = "ttcodegen.source"
    traits = OpTraits(tuple)
    source_offset: int = -1
    """Offset of the operation in its source text."""

    def given(self, *names: str) -> Attribute | None:
        """Returns the first of the named attributes that is present, else None."""
        for name in names:
            value = self.properties.get(name, self.attributes.get(name))
            if value is not None:
                return value
        return None

    @property
    def result_type(self) -> TensorType[Attribute]:
        """Type of the first result.

        Raises:
            CompileError: if it is not a tensor.
        """
        type_ = self.results[0].type
        if not isinstance(type_, TensorType):
            raise CompileError(f"{self.name}: expected a tensor as result, found {type_}", self)
        return cast("TensorType[Attribute]", type_)

    @property
    def result_shape(self) -> tuple[int, ...]:
        """The shape of the first result."""
        return shape_of(self.result_type)

    @property
    def result_element(self) -> Attribute:
        """The element type of the first result."""
        return self.result_type.element_type


def source_context(dialects: Mapping[str, Mapping[str, Form | None]]) -> Context:
    """Context of the compiler's dialects and source dialects.

    Maps each source dialect to its operations' short names, with their assembly format if custom.
    """
    context = load_dialects(without=dialects)
    for dialect, forms in dialects.items():
        classes: list[type[Operation]] = [
            source_operation(f"{dialect}.{name}", form) for name, form in forms.items()
        ]
        context.load_dialect(Dialect(dialect, classes, []))
    return context


def source_operation(name: str, form: Form | None) -> type[SourceOp]:
    """Makes the class of an operation of a full name."""
    members: dict[str, Any] = {"name": name}
    if form is not None:

        def parse(cls: type[Operation], parser: Parser) -> Operation:
            return form(parser, cls)

        members["parse"] = classmethod(parse)
    return type("SourceOp_" + name.replace(".", "_"), (SourceOp,), members)


def functional_form(parser: Parser, op_type: type[Operation]) -> Operation:
    """`%a, %b {attributes} : (types) -> types`, with or without parentheses around the operands."""
    operands = operand_list(parser)
    attributes = attribute_dictionary(parser)
    parser.parse_punctuation(":")
    type_ = parser.parse_type()
    if not isinstance(type_, FunctionType):
        parser.raise_error(f"expected the type of a function, found {type_}")
    return make(parser, op_type, operands, type_.inputs.data, type_.outputs.data, attributes)


def attribute_dictionary(parser: Parser) -> dict[str, Attribute]:
    """Parses an optional `{name = value, ...}`, in which enumerators may be bare words."""
    attributes: dict[str, Attribute] = {}
    if parser.parse_optional_punctuation("{") is None:
        return attributes
    while parser.parse_optional_punctuation("}") is None:
        name = parser.parse_optional_str_literal() or parser.parse_identifier()
        value: Attribute = UnitAttr()
        if parser.parse_optional_punctuation("=") is not None:
            found = parser.parse_optional_attribute()
            value = StringAttr(parser.parse_identifier()) if found is None else found
        attributes[name] = value
        if parser.parse_optional_punctuation(",") is None:
            parser.parse_punctuation("}")
            break
    return attributes


def operand_list(parser: Parser) -> list[UnresolvedOperand]:
    """Parses comma-separated operands, with or without parentheses."""
    bracket = parser.parse_optional_punctuation("(") is not None
    operands: list[UnresolvedOperand] = []
    while (operand := parser.parse_optional_unresolved_operand()) is not None:
        operands.append(operand)
        if parser.parse_optional_punctuation(",") is None:
            break
    if bracket:
        parser.parse_punctuation(")")
    return operands


def make(
    parser: Parser,
    op_type: type[Operation],
    operands: Sequence[UnresolvedOperand],
    operand_types: Sequence[Attribute],
    result_types: Sequence[Attribute],
    attributes: Mapping[str, Attribute],
    regions: Iterable[Any] = (),
) -> Operation:
    """Creates the operation and resolves its operands."""
    if len(operands) != len(operand_types):
        parser.raise_error(
            f"'{op_type.name}' has {len(operands)} operands, but its type lists "
            f"{len(operand_types)}"
        )
    values: list[SSAValue] = [
        parser.resolve_operand(operand, type_)
        for operand, type_ in zip(operands, operand_types, strict=True)
    ]
    return op_type.create(
        operands=values,
        result_types=list(result_types),
        attributes=dict(attributes),
        regions=list(regions),
    )


# Global values of `ml_program`, which exporters declare and nothing uses.

GLOBAL = "ml_program.global"


def _global_form(parser: Parser, op_type: type[Operation]) -> Operation:
    """`private mutable @name(value) : type`; keywords and value are optional."""
    attributes: dict[str, Attribute] = {}
    for word in ("public", "private", "nested", "mutable"):
        parser.parse_optional_keyword(word)
    attributes["sym_name"] = parser.parse_symbol_name()
    if parser.parse_optional_punctuation("(") is not None:
        attributes["value"] = parser.parse_attribute()
        parser.parse_punctuation(")")
    parser.parse_punctuation(":")
    attributes["type"] = parser.parse_type()
    return op_type.create(attributes=attributes)


GLOBALS: dict[str, Form | None] = {"global": _global_form}
"""Assembly formats of the ml_program dialect."""


def drop_unused_globals(module: ModuleOp) -> None:
    """Erases declarations of unused globals; used ones are refused as unknown operations."""
    declared = [op for op in module.body.block.ops if operation_name(op) == GLOBAL]
    if not declared:
        return
    used = {
        attribute.string_value()
        for op in module.walk()
        for attribute in (*op.attributes.values(), *op.properties.values())
        if isinstance(attribute, SymbolRefAttr)
    }
    for op in declared:
        name = op.properties.get("sym_name", op.attributes.get("sym_name"))
        if getattr(name, "data", None) not in used:
            op.detach()
            op.erase()


# From operations of another dialect to ops of TTIR, function by function.
#
# A front end is a table of rules by the names of operations. A rule gets a `Translator`, which
# makes ops at the position of the operation, and returns the replacements for its results. What a
# rule cannot translate it refuses with a CompileError; the walk goes on, so that everything is
# refused at once.


class Translator(OpBuilder):
    """Builder of the TTIR ops that source operations translate to."""

    def __init__(self, insert: Callable[[Operation], None] = lambda op: None) -> None:
        super().__init__(ttir_op_classes(), insert)

    def constant(self, array: Array, element: Attribute = f32) -> SSAValue:
        """Constant of an array with the given element type."""
        name = numpy_name(element)
        assert name is not None
        values = np.ascontiguousarray(array).astype(np.dtype(name))
        return self.elements(elements(element, array.shape, values.tobytes()))

    def elements(self, value: Attribute) -> SSAValue:
        """Constant of a dense elements attribute."""
        type_ = cast("TensorType[Attribute]", cast("Any", value).type)
        result = tensor_type(type_.element_type, shape_of(type_))
        return self.emit("constant", [], result, value=value)

    def number(self, value: float, like: SSAValue, rank: int | None = None) -> SSAValue:
        """Number that broadcasts with `like`, in its element type."""
        rank = len(shape_of(like.type)) if rank is None else rank
        element = element_of(like.type)
        kind = np.dtype(numpy_name(element) or "float32").kind
        return self.full([1] * rank, int(value) if kind in "iub" else float(value), element)

    def pad(
        self, value: SSAValue, widths: Sequence[tuple[int, int]], fill: float = 0.0
    ) -> SSAValue:
        """Pads with `fill`; negative widths crop. No-op if all widths are 0."""
        if not any(any(pair) for pair in widths):
            return value
        shape = shape_of(value.type)
        sizes = [size + sum(pair) for size, pair in zip(shape, widths, strict=True)]
        result = tensor_type(element_of(value.type), sizes)
        padding = [width for pair in widths for width in pair]
        # Integers stay exact: float32 has no 2^24 + 1.
        whole = np.dtype(numpy_name(element_of(value.type)) or "float32").kind in "iub"
        number = int(fill) if whole and math.isfinite(fill) else fill
        return self.emit("pad", [value], result, padding=padding, value=number)

    def aligned(self, value: SSAValue, shape: Sequence[int]) -> SSAValue:
        """Prepends dimensions of size 1 up to the rank of `shape`."""
        own = shape_of(value.type)
        return self.reshape(value, [1] * (len(shape) - len(own)) + list(own))

    def compare(self, name: str, lhs: SSAValue, rhs: SSAValue, element: Attribute) -> SSAValue:
        """Comparison with a result of the given element type."""
        return self.broadcasting(name, lhs, rhs, element=element)

    def rounded(self, value: SSAValue) -> SSAValue:
        """Rounds to the nearest integer, ties to even; no-op for values that are integers."""
        if getattr(value.owner, "name", "") in ("ttir.floor", "ttir.ceil", "ttir.trunc"):
            return value
        return rounded(self, value, to_even=True)

    def matmul(self, a: SSAValue, b: SSAValue, **transposed: bool) -> SSAValue:
        """Matmul of operands with the same batch dimensions."""
        left, right = shape_of(a.type), shape_of(b.type)
        rows = left[-1] if transposed.get("transpose_a") else left[-2]
        columns = right[-2] if transposed.get("transpose_b") else right[-1]
        batch = left[:-2] if len(left) >= len(right) else right[:-2]
        result = tensor_type(element_of(a.type), [*batch, rows, columns])
        return self.emit("matmul", [a, b], result, **transposed)


Rule = Callable[[Translator, Any], "SSAValue | Sequence[SSAValue] | None"]
"""Returns the replacements of an operation's results.

None for an operation that only informs the rules of its users.
"""


def constant_of(value: SSAValue) -> Array | None:
    """Returns the elements of a constant, None for other values."""
    if not isinstance(value, OpResult):
        return None
    op = value.op
    if isinstance(op, CatalogueOp):
        if op.name == "ttir.constant":
            return constant_array(op.parameter("value"))
        if op.name == "ttir.full":
            name = numpy_name(element_of(value.type))
            fill = np.asarray(op.parameter("fill_value")).astype(name)
            return np.broadcast_to(fill, shape_of(value.type))
        return None
    if isinstance(op, SourceOp) and (found := op.given("values", "value")) is not None:
        try:
            return constant_array(found)
        except ValueError:
            return None
    return None


def translate(module: ModuleOp, rules: Mapping[str, Rule]) -> None:
    """Replaces source operations by TTIR ops.

    Raises:
        CompileError: listing all operations that cannot be translated; equal messages are counted.
    """
    findings = _Findings()
    functions = [op for op in module.body.block.ops if isinstance(op, FuncOp)]
    for function in functions:
        for block in function.body.blocks:
            _translate_block(block, rules, findings)
    findings.raise_all()
    for function in functions:
        for block in function.body.blocks:
            _erase_translated(block)
        erase_dead(function)


DECOMPOSED = "export the model with the operation decomposed"


class _Findings:
    """Collected errors of a translation."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str | None], list[Diagnostic]] = {}

    def add(self, error: CompileError, op: Operation) -> None:
        for each in error.diagnostics:
            place = each.place if each.place is not None else place_of(op)
            # A text that is wrong says itself what it should be.
            remedy = each.remedy or (DECOMPOSED if "supported" in each.message else None)
            located = Diagnostic(each.message, place, remedy, each.notes)
            self._found.setdefault((each.message, remedy), []).append(located)

    def raise_all(self) -> None:
        if not self._found:
            return
        raise CompileError.from_diagnostics(
            [
                Diagnostic(
                    counted(first.message, len(all_)), first.place, first.remedy, first.notes
                )
                for all_ in self._found.values()
                for first in all_[:1]
            ]
        )


def _translate_block(block: Block, rules: Mapping[str, Rule], findings: _Findings) -> None:
    translator = Translator()
    failed: set[SSAValue] = set()
    for op in list(block.ops):
        if not isinstance(op, SourceOp):
            continue
        # What depends on something refused would only be refused for that.
        if not failed.isdisjoint(op.operands):
            failed.update(op.results)
            continue
        translator.insert = partial(_insert_before, block, op)
        translator.origin = op
        try:
            _translate_op(translator, op, rules)
        except VerifyException as error:
            findings.add(CompileError(str(error)), op)
            failed.update(op.results)
        except CompileError as error:
            findings.add(error, op)
            failed.update(op.results)
        except ILL_FORMED as error:
            # Rules read operands and attributes that no verifier has seen.
            findings.add(CompileError(f"{op.name}: {reason_of(op, error)}"), op)
            failed.update(op.results)


ILL_FORMED = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    TypeError,
    ValueError,
    struct.error,
)
"""Exceptions that rules raise at an operation that violates its definition."""

_UNPACKED = re.compile(r"values to unpack \(expected (?:at least )?(\d+)(?:, got (\d+))?\)$")


def reason_of(op: Operation, error: Exception) -> str:
    """Message for an exception of `ILL_FORMED`, in terms of the operation.

    Rules read operands and attributes that no verifier has checked.
    """
    text, found = str(error), len(op.operands)
    unpacked = _UNPACKED.search(text)
    if unpacked is not None and unpacked[2] in (None, str(found)) and int(unpacked[1]) != found:
        return f"expected {plural(int(unpacked[1]), 'operand')}, found {found}"
    if isinstance(error, ValueError) and text and unpacked is None:
        return text
    if isinstance(error, LookupError | OverflowError | struct.error):
        what = "a dimension, an attribute or an operand that it does not have is meant"
    else:
        what = "operands or attributes are not those of the operation"
    operands = ", ".join(str(value.type) for value in op.operands)
    return f"{what}: its operands are ({operands})"


def _insert_before(block: Block, following: Operation, made: Operation) -> None:
    block.insert_op_before(made, following)


def _translate_op(translator: Translator, op: SourceOp, rules: Mapping[str, Rule]) -> None:
    rule = rules.get(op.name)
    if rule is None:
        raise CompileError(unsupported(op.name))
    _require_known_sizes(op)
    made = rule(translator, op)
    if made is None:
        return
    values = [made] if isinstance(made, SSAValue) else list(made)
    if len(values) != len(op.results):
        raise CompileError(f"{op.name}: expected {len(values)} results, found {len(op.results)}")
    for old, new in zip(op.results, values, strict=True):
        if new.type != old.type:
            raise CompileError(
                f"{op.name}: its operands give a result of type {new.type}, but its type is "
                f"{old.type}"
            )
        if new.name_hint is None:
            new.name_hint = old.name_hint
        old.replace_all_uses_with(new)


def _require_known_sizes(op: Operation) -> None:
    for value in (*op.operands, *op.results):
        if is_of_unknown_size(value.type):
            raise CompileError(
                f"tensors of unknown size are not supported: {value.type}", remedy=FIXED_SHAPES
            )


def _erase_translated(block: Block) -> None:
    for op in reversed(list(block.ops)):
        if isinstance(op, SourceOp):
            op.detach()
            op.erase(safe_erase=False)


# Indices that are clamped to a tensor.


def clamped_indices(builder: OpBuilder, indices: SSAValue, last: int) -> SSAValue:
    """Clamps indices to [0, last], as si32; ui32 indices from 2^31 on clamp to `last`."""
    element = element_of(indices.type)
    if normalized_data_type(element) is DataType.UINT32:
        most = builder.full([1] * len(shape_of(indices.type)), last, element)
        indices = builder.emit("minimum", [indices, most], indices.type)
    indices = builder.typecast(indices, DataType.INT32.element_type)
    return builder.emit("clamp_scalar", [indices], indices.type, min=0, max=last)


# Writes of keys and values into caches that a program may overwrite.


def write_cache(
    builder: OpBuilder, cache: SSAValue, update: SSAValue, place: int | SSAValue
) -> bool:
    """Writes entries of all users into a cache (users, heads, positions, size) in place.

    Returns whether the library can: it writes one position of all users, or whole tiles of
    positions from the first on.
    """
    shape, sizes = shape_of(cache.type), shape_of(update.type)
    if len(shape) != 4 or shape[2] % TILE_SIDE or shape[3] % TILE_SIDE:
        return False
    if element_of(cache.type) not in (BFloat16Type(), Float32Type()):
        return False
    if len(sizes) != 4 or any(sizes[axis] != shape[axis] for axis in (0, 1, 3)):
        return False
    if isinstance(place, SSAValue) and sizes[2] == 1:
        row = builder.permute(update, [2, 1, 0, 3])
        index = builder.reshape(place, [1])
        builder.emit_op("update_cache", [cache, row, index], [], batch_offset=0)
        return True
    if not isinstance(place, SSAValue) and place == 0 and sizes[2] % TILE_SIDE == 0:
        builder.emit_op("fill_cache", [cache, update], [], batch_offset=0)
        return True
    return False
