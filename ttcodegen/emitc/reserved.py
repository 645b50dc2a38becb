"""The names that a file's own text refers to, which no local variable of it may take."""

from __future__ import annotations

import re
from collections.abc import Iterator

from xdsl.dialects.builtin import ArrayAttr, FunctionType, StringAttr
from xdsl.dialects.emitc import EmitC_OpaqueAttr
from xdsl.ir import Attribute

from ttcodegen.emitc.expressions import CallOp, CallOpaqueOp, ConstantOp, GetGlobalOp, LiteralOp
from ttcodegen.emitc.spelling import type_text
from ttcodegen.emitc.statements import (
    ClassOp,
    FileOp,
    FuncOp,
    GlobalOp,
    VariableOp,
    VerbatimOp,
)

# Members and names behind `::` are found elsewhere than in the scope of the function.
_UNQUALIFIED_NAME = re.compile(r"(?<![\w.])(?<!->)(?<!::)[A-Za-z_]\w*")
_LINE_COMMENT = re.compile(r"//[^\n]*")


def reserved_names(file: FileOp) -> frozenset[str]:
    """All names that types, callees, literals and definitions of `file` mention unqualified."""
    texts: set[str] = set()
    types: set[Attribute] = set()
    for op in file.body.walk():
        types.update(result.type for result in op.results)
        match op:
            case CallOpaqueOp():
                texts.add(op.callee.data)
                for attributes in (op.args, op.template_args):
                    types.update(_leaves(attributes))
            case CallOp():
                texts.add(op.callee.root_reference.data)
            case GetGlobalOp():
                texts.add(op.symbol.root_reference.data)
            case LiteralOp():
                texts.add(op.value.data)
            case ConstantOp() | VariableOp():
                types.add(op.value)
            case VerbatimOp():
                texts.add(_LINE_COMMENT.sub("", op.value.data))
            case FuncOp():
                texts.add(op.sym_name.data)
                types.update(_leaves(op.function_type))
            case ClassOp() | GlobalOp():
                texts.add(op.sym_name.data)
            case _:
                pass
    for attribute in types:
        if isinstance(attribute, EmitC_OpaqueAttr):
            texts.add(attribute.value.data)
        else:
            texts.add(type_text(attribute) or "")
    return frozenset(name for text in texts for name in _UNQUALIFIED_NAME.findall(text))


def _leaves(attribute: Attribute | None) -> Iterator[Attribute]:
    match attribute:
        case None | StringAttr():
            return
        case ArrayAttr():
            yield from attribute.data
        case FunctionType():
            yield from (*attribute.inputs.data, *attribute.outputs.data)
        case _:
            yield attribute
