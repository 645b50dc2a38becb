"""Operations of dialects that are only read and translated."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast

from xdsl.context import Context
from xdsl.dialects.builtin import (
    FunctionType,
    ModuleOp,
    StringAttr,
    SymbolRefAttr,
    TensorType,
    UnitAttr,
)
from xdsl.ir import Attribute, Dialect, Operation, OpTraits, SSAValue
from xdsl.parser import Parser, UnresolvedOperand

from ttcodegen.dialects.core.datatypes import shape_of
from ttcodegen.dialects.operations.operation import operation_name
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.ops.dialects import load_dialects

# Operations of dialects that are read and translated, and never compiled as they are.
#
# A front end names the operations that it knows and how each is written; everything else about
# them is in the rules that translate them.

Form = Callable[[Parser, type[Operation]], Operation]
"""Reads an operation in a syntax of its own, after its name."""


class SourceOp(Operation):
    """An operation of a dialect that is translated to TTIR."""

    name = "ttcodegen.source"
    traits = OpTraits(tuple)
    source_offset: int = -1
    """Offset of the operation in its source text."""

    def given(self, *names: str) -> Attribute | None:
        """The attribute of the first of these names that is there; None if none is."""
        for name in names:
            value = self.properties.get(name, self.attributes.get(name))
            if value is not None:
                return value
        return None

    @property
    def result_type(self) -> TensorType[Attribute]:
        """The type of the first result.

        Raises:
            CompileError: if it is no tensor.
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
    """The dialects of the compiler, and those of the source: the operations of each by their short
    names, with the syntax of those that have one of their own."""
    context = load_dialects(without=dialects)
    for dialect, forms in dialects.items():
        classes: list[type[Operation]] = [
            source_operation(f"{dialect}.{name}", form) for name, form in forms.items()
        ]
        context.load_dialect(Dialect(dialect, classes, []))
    return context


def source_operation(name: str, form: Form | None) -> type[SourceOp]:
    """The class of an operation of that full name."""
    members: dict[str, Any] = {"name": name}
    if form is not None:

        def parse(cls: type[Operation], parser: Parser) -> Operation:
            return form(parser, cls)

        members["parse"] = classmethod(parse)
    return type("SourceOp_" + name.replace(".", "_"), (SourceOp,), members)


def functional_form(parser: Parser, op_type: type[Operation]) -> Operation:
    """`%a, %b {attributes} : (types) -> types`, with or without brackets around the operands."""
    operands = operand_list(parser)
    attributes = attribute_dictionary(parser)
    parser.parse_punctuation(":")
    type_ = parser.parse_type()
    if not isinstance(type_, FunctionType):
        parser.raise_error(f"expected the type of a function, found {type_}")
    return make(parser, op_type, operands, type_.inputs.data, type_.outputs.data, attributes)


def attribute_dictionary(parser: Parser) -> dict[str, Attribute]:
    """`{name = value, ...}`, where values of enumerations are bare words; empty if there is
    none."""
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
    """Values between commas, in brackets or not; none where there is none."""
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
    """The operation, with its operands looked up."""
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
    """`private mutable @name(value) : type`; the value and the words may be absent."""
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
"""The forms of the dialect."""


def drop_unused_globals(module: ModuleOp) -> None:
    """Takes the declarations of globals that no operation refers to out of the module; what is
    left is refused as any unknown operation is."""
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
