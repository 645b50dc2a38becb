"""The names that a file's own text refers to, which no local variable of it may take."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
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

# Members and names after `::` are not looked up in the scope of the function.
_UNQUALIFIED_NAME = re.compile(r"(?<![\w.])(?<!->)(?<!::)[A-Za-z_]\w*")
_NO_CODE = re.compile(r'//[^\n]*|"(?:[^"\\\n]|\\.)*"|namespace [\w:]*')
"""Comments and string literals; and namespaces, which functions that they hold may hide."""


def mentioned_names(operations: Iterable[Operation]) -> frozenset[str]:
    """All names that types, callees, literals and definitions of `operations` use unqualified."""
    texts = mentioned_texts(operations)
    return frozenset(name for text in texts for name in _UNQUALIFIED_NAME.findall(text))


def mentions(operations: Iterable[Operation], name: str) -> bool:
    """True if the C++ of `operations` uses that name unqualified."""
    return any(
        name in text and name in _UNQUALIFIED_NAME.findall(text)
        for text in mentioned_texts(operations)
    )


def mentioned_texts(operations: Iterable[Operation]) -> Iterator[str]:
    """The C++ of the types, callees, literals and definitions of `operations`, each text once."""
    texts: set[str] = set()
    # Types and attributes are shared between ops, so identity finds most repetitions, and it is
    # far cheaper than the hash of an attribute.
    attributes: set[int] = set()
    for op in operations:
        found: list[str | Attribute] = [result.type for result in op.results]
        mention = _MENTIONS.get(type(op))
        if mention is not None:
            found += mention(op)
        for mentioned in found:
            if isinstance(mentioned, str):
                text = mentioned
            elif id(mentioned) in attributes:
                continue
            else:
                attributes.add(id(mentioned))
                text = _attribute_text(mentioned)
            if text not in texts:
                texts.add(text)
                yield _NO_CODE.sub("", text)


def _attribute_text(attribute: Attribute) -> str:
    if isinstance(attribute, EmitC_OpaqueAttr):
        return attribute.value.data
    return type_text(attribute) or ""


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
    VerbatimOp: lambda op: (op.value.data,),
    FuncOp: _function,
    ClassOp: lambda op: (op.sym_name.data,),
    GlobalOp: lambda op: (op.sym_name.data, op.type, op.initial_value or op.type),
    FieldOp: lambda op: (op.type,),
}
"""The texts and attributes of each op that may refer to a name."""
