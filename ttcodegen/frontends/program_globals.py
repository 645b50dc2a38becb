"""Global values of `ml_program`, which exporters declare and nothing uses."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp, SymbolRefAttr
from xdsl.ir import Attribute, Operation
from xdsl.parser import Parser

from ttcodegen.dialects.operations.operation import operation_name
from ttcodegen.frontends.source_ops import Form

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
