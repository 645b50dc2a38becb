"""The names that a file's own text refers to, which no local variable of it may take."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from xdsl.dialects.emitc import EmitC_OpaqueAttr
from xdsl.ir import Attribute, Operation

from ttcodegen.emitc.expressions import CallOp, CallOpaqueOp, ConstantOp, GetGlobalOp, LiteralOp
from ttcodegen.emitc.spelling import type_text
from ttcodegen.emitc.statements import (
    ClassOp,
    FieldOp,
    FuncOp,
    GlobalOp,
    VariableOp,
    VerbatimOp,
)

# Members and names behind `::` are found elsewhere than in the scope of the function.
_UNQUALIFIED_NAME = re.compile(r"(?<![\w.])(?<!->)(?<!::)[A-Za-z_]\w*")
_LINE_COMMENT = re.compile(r"//[^\n]*")


def mentioned_names(operations: Iterable[Operation]) -> frozenset[str]:
    """All names that types, callees, literals and definitions of `operations` use unqualified."""
    texts = mentioned_texts(operations)
    return frozenset(name for text in texts for name in _UNQUALIFIED_NAME.findall(text))


def mentioned_texts(operations: Iterable[Operation]) -> set[str]:
    """The C++ of the types, callees, literals and definitions of `operations`."""
    texts: set[str] = set()
    # Types and attributes are shared between ops, so identity finds most repetitions, and it is
    # far cheaper than the hash of an attribute.
    attributes: dict[int, Attribute] = {}
    for op in operations:
        for result in op.results:
            attributes[id(result.type)] = result.type
        mention = _MENTIONS.get(type(op))
        if mention is None:
            continue
        for mentioned in mention(op):
            if isinstance(mentioned, str):
                texts.add(mentioned)
            else:
                attributes[id(mentioned)] = mentioned
    for attribute in attributes.values():
        if isinstance(attribute, EmitC_OpaqueAttr):
            texts.add(attribute.value.data)
        else:
            texts.add(type_text(attribute) or "")
    return texts


def _call_opaque(op: CallOpaqueOp) -> Iterable[str | Attribute]:
    yield op.callee.data
    for attributes in (op.args, op.template_args):
        if attributes is not None:
            yield from attributes.data


def _function(op: FuncOp) -> Iterable[str | Attribute]:
    yield op.sym_name.data
    yield from op.function_type.inputs.data
    yield from op.function_type.outputs.data


_MENTIONS: Mapping[type[Operation], Callable[[Any], Iterable[str | Attribute]]] = {
    CallOpaqueOp: _call_opaque,
    CallOp: lambda op: (op.callee.root_reference.data,),
    GetGlobalOp: lambda op: (op.symbol.root_reference.data,),
    LiteralOp: lambda op: (op.value.data,),
    ConstantOp: lambda op: (op.value,),
    VariableOp: lambda op: (op.value,),
    VerbatimOp: lambda op: (_LINE_COMMENT.sub("", op.value.data),),
    FuncOp: _function,
    ClassOp: lambda op: (op.sym_name.data,),
    GlobalOp: lambda op: (op.sym_name.data, op.type, op.initial_value or op.type),
    FieldOp: lambda op: (op.type,),
}
"""The texts and attributes of each op that may refer to a name."""
