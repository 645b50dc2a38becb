"""Inlining of values into expressions, names reserved in a file, and headers it needs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from xdsl.dialects.emitc import (
    EmitC_ArrayType,
    EmitC_LValueType,
    EmitC_OpaqueAttr,
    EmitC_OpaqueType,
    EmitC_PointerType,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ttcodegen.emitc.expressions import (
    AddressOfOp,
    CallOp,
    CallOpaqueOp,
    ConstantOp,
    DereferenceOp,
    ExpressionOp,
    GetFieldOp,
    GetGlobalOp,
    LiteralOp,
    LoadOp,
    MemberOfPtrOp,
    MemberOp,
    SubscriptOp,
    YieldOp,
)
from ttcodegen.emitc.operators import BINARY_OPS, UNARY_OPS, CastOp, CmpOp, ConditionalOp
from ttcodegen.emitc.spelling import type_text
from ttcodegen.emitc.statements import (
    AssignOp,
    ClassOp,
    DoOp,
    FieldOp,
    ForOp,
    FuncOp,
    GlobalOp,
    VariableOp,
    VerbatimOp,
)

# Decides which values are inlined at their uses, and which get a variable.
#
# A value that is only a name (`weights.conv1_weight`, a number, `&x`) is written at each use; a
# computed value is written at its use if it has exactly one and no name; a call with effects is
# always a statement. A load moves to its use only if nothing that may write runs in between.
#
# The last condition is checked with epochs: each block counts its ops with effects, so two places
# of a block with equal counts see the same memory. This takes one backward pass.

PURE = "ttcodegen.pure"
HELD = "ttcodegen.held"
"""Marks a load of a variable that does not change before the last use of the value."""
NAME = "ttcodegen.name"
FIXED_NAME = "ttcodegen.fixed_name"
"""Marks a parameter that verbatim C++ in the body refers to by name."""
NAMES = "ttcodegen.names"
ASSIGNS = "ttcodegen.assigns"
"""Variable that the result of an op is assigned to, instead of a new one.

The variable belongs to a dead value of the same type."""

# Membership of the exact type is several times faster than `isinstance` on abstract classes.
_NAME_LIKE: frozenset[type[Operation]] = frozenset(
    (
        LiteralOp,
        ConstantOp,
        GetGlobalOp,
        GetFieldOp,
        MemberOp,
        MemberOfPtrOp,
        SubscriptOp,
        DereferenceOp,
        AddressOfOp,
    )
)
_OPERATORS: frozenset[type[Operation]] = frozenset(
    (*BINARY_OPS.values(), *UNARY_OPS.values(), CmpOp, ConditionalOp, CastOp)
)
_WITHOUT_EFFECTS = _NAME_LIKE | _OPERATORS | {LoadOp, VariableOp}

_MOVABLE = _OPERATORS | {LoadOp, ExpressionOp, CallOpaqueOp}

Place = tuple[Block, int]
"""Point of evaluation: a block, and the number of ops with effects before it there."""


def has_effects(op: Operation) -> bool:
    """Returns whether an op may write memory or have other side effects."""
    kind = type(op)
    if kind in _WITHOUT_EFFECTS:
        return False
    if kind is CallOpaqueOp:
        return PURE not in op.attributes
    if isinstance(op, ExpressionOp):
        return any(has_effects(inner) for inner in op.region.block.ops)
    return kind is not YieldOp


def is_named(op: Operation) -> bool:
    """Returns whether a result of an op has a name."""
    named = NAME in op.attributes or NAMES in op.attributes or ASSIGNS in op.attributes
    return named or any(result.name_hint is not None for result in op.results)


class InliningPlan:
    """Set of the ops of a function whose values are inlined at their uses."""

    def __init__(self, body: Region, constant_globals: frozenset[str] = frozenset()) -> None:
        self._constant_globals = constant_globals
        self._epochs: dict[Operation, int] = {}
        self._places: dict[Operation, Place | None] = {}
        self._inlined: set[Operation] = set()
        self._written = _written_roots(body.walk())
        for block in body.blocks:
            self._visit(block)

    def __contains__(self, op: Operation) -> bool:
        return op in self._inlined

    def _visit(self, block: Block) -> None:
        epoch = 0
        operations = list(block.ops)
        for op in operations:
            self._epochs[op] = epoch
            epoch += has_effects(op)
        for op in reversed(operations):
            if op.regions and not isinstance(op, ExpressionOp):
                for region in op.regions[:1] if isinstance(op, DoOp) else op.regions:
                    for nested in region.blocks:
                        self._visit(nested)
            place = (block, self._epochs[op])
            if self._is_inlined(op, place):
                self._inlined.add(op)
                self._places[op] = self._place_of_uses(op)
            else:
                self._places[op] = place

    def _is_inlined(self, op: Operation, place: Place) -> bool:
        kind = type(op)
        if kind in _NAME_LIKE:
            return True
        if kind not in _MOVABLE:
            return False
        if isinstance(op, LoadOp):
            if NAME in op.attributes or ASSIGNS in op.attributes:
                return False
            if HELD in op.attributes:
                return True
            return self._is_stable(op.operand) or self._place_of_uses(op) == place
        if isinstance(op, ExpressionOp):
            if op.do_not_inline is not None or has_effects(op):
                return False
            if not self._reads_only_stable(op) and self._place_of_uses(op) != place:
                return False
        elif kind is CallOpaqueOp and PURE not in op.attributes:
            return False
        if len(op.results) != 1 or is_named(op):
            return False
        uses = list(op.results[0].uses)
        return len(uses) == 1 and _statement_of(uses[0].operation).parent is place[0]

    def _place_of_uses(self, op: Operation) -> Place | None:
        """Place at which all uses of an op are evaluated; None if there are several."""
        places: set[Place | None] = set()
        for result in op.results:
            for use in result.uses:
                user = _statement_of(use.operation)
                # The bound and the step of a loop are evaluated in each iteration, and so is the
                # condition of a do loop, whose ops were not visited.
                if isinstance(user, DoOp) or (isinstance(user, ForOp) and use.index > 0):
                    return None
                places.add(self._places.get(user))
        return places.pop() if len(places) == 1 else None

    def _reads_only_stable(self, expression: ExpressionOp) -> bool:
        return all(
            self._is_stable(_outside(expression, op.operand))
            for op in expression.region.block.ops
            if isinstance(op, LoadOp)
        )

    def _is_stable(self, lvalue: SSAValue) -> bool:
        """Returns whether an lvalue never changes after its definition."""
        root = _root(lvalue)
        owner = root.owner
        if isinstance(owner, VariableOp):
            return root not in self._written
        if isinstance(owner, GetGlobalOp):
            return owner.symbol.root_reference.data in self._constant_globals
        if isinstance(root.type, EmitC_ArrayType):
            return False
        if isinstance(root.type, EmitC_OpaqueType):
            text = root.type.value.data
            mutable_reference = text.endswith("&") and not text.startswith("const ")
            return root not in self._written and not mutable_reference
        return (type_text(root.type) or "").startswith("const ")


def constant_globals(operations: Iterable[Operation]) -> frozenset[str]:
    """Names of the constant global variables."""
    return frozenset(
        op.sym_name.data
        for op in operations
        if isinstance(op, GlobalOp) and op.const_specifier is not None
    )


def _statement_of(op: Operation) -> Operation:
    """Statement that contains an op: an expression, a do loop, or the op itself."""
    parent = op.parent_op()
    if isinstance(parent, ExpressionOp):
        return _statement_of(parent)
    if isinstance(parent, DoOp) and op.parent is parent.condition.block:
        return parent
    return op


def _outside(expression: ExpressionOp, value: SSAValue) -> SSAValue:
    """Operand that an argument of an expression's body refers to; other values unchanged."""
    arguments = expression.region.block.args
    for argument, operand in zip(arguments, expression.operands, strict=True):
        if argument is value:
            return operand
    return value


def _root(lvalue: SSAValue) -> SSAValue:
    """Object that a chain of members and subscripts accesses, or the pointer to it."""
    while not isinstance(lvalue.type, EmitC_PointerType):
        match lvalue.owner:
            case MemberOp() as owner:
                lvalue = owner.operand
            case SubscriptOp() as owner:
                lvalue = owner.value
            case LoadOp() as owner:
                # A subscripted object is loaded first, but the text refers to the object itself.
                lvalue = owner.operand
            case _:
                break
    return lvalue


def _written_roots(operations: Iterable[Operation]) -> set[SSAValue]:
    written: set[SSAValue] = set()
    for op in operations:
        kind = type(op)
        if kind is AssignOp or kind is AddressOfOp or kind is VerbatimOp:
            written.update(_root(v) for v in op.operands if type(v.type) is EmitC_LValueType)
        elif kind is CallOp or kind is CallOpaqueOp:
            # Arrays are passed as pointers.
            written.update(_root(v) for v in op.operands if type(v.type) is EmitC_ArrayType)
    return written


# Names that the text of a file refers to, which local variables must not shadow.


# Members and names after `::` are not looked up in the scope of the function.
_UNQUALIFIED_NAME = re.compile(r"(?<![\w.])(?<!->)(?<!::)[A-Za-z_]\w*")
_NO_CODE = re.compile(r'//[^\n]*|"(?:[^"\\\n]|\\.)*"|namespace [\w:]*')
"""Comments, string literals and namespace names, which may be shadowed."""


def mentioned_names(operations: Iterable[Operation]) -> frozenset[str]:
    """Names that types, callees, literals and definitions of `operations` use unqualified."""
    texts = mentioned_texts(operations)
    return frozenset(name for text in texts for name in _UNQUALIFIED_NAME.findall(text))


def mentions(operations: Iterable[Operation], name: str) -> bool:
    """Returns whether the C++ of `operations` uses a name unqualified."""
    return any(
        name in text and name in _UNQUALIFIED_NAME.findall(text)
        for text in mentioned_texts(operations)
    )


def mentioned_texts(operations: Iterable[Operation]) -> Iterator[str]:
    """Yields the distinct texts of types, callees, literals and definitions of `operations`."""
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
"""Texts and attributes of each op that may refer to a name."""


# Headers of the standard library for the names that emitted C++ uses.

_HEADERS = {
    "array": "array",
    "get": "tuple",
    "int32_t": "cstdint",
    "int64_t": "cstdint",
    "make_tuple": "tuple",
    "max": "algorithm",
    "min": "algorithm",
    "move": "utility",
    "nullopt": "optional",
    "numeric_limits": "limits",
    "optional": "optional",
    "pair": "utility",
    "size_t": "cstddef",
    "string": "string",
    "tie": "tuple",
    "tuple": "tuple",
    "tuple_cat": "tuple",
    "uint8_t": "cstdint",
    "uint16_t": "cstdint",
    "uint32_t": "cstdint",
    "uint64_t": "cstdint",
    "variant": "variant",
    "vector": "vector",
}
_STANDARD_NAME = re.compile(r"\bstd::(\w+)|(?<![\w:.])(u?int(?:8|16|32|64)_t)\b")


def standard_headers(operations: Iterable[Operation]) -> set[str]:
    """Returns the standard headers for the names in the C++ of `operations`.

    Headers of the library include many of them, but which ones depends on the release, so each file
    includes what it uses."""
    names = {
        qualified or integer
        for text in mentioned_texts(operations)
        for qualified, integer in _STANDARD_NAME.findall(text)
    }
    return {_HEADERS[name] for name in names & _HEADERS.keys()}


# Source ops of EmitC ops.

_ORIGINS = "_made_for"


def set_origins(op: Operation, origins: Sequence[Operation]) -> None:
    """Records the source ops of an op for its lifetime."""
    setattr(op, _ORIGINS, origins)


def origins_of(op: Operation) -> Sequence[Operation]:
    """Source ops of an op; empty if it has none."""
    return getattr(op, _ORIGINS, ())
