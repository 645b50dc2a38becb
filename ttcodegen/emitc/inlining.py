"""Decides which values are written where they are used, and which get a variable.

The rule: a value that is only a name (`weights.conv1_weight`, a number, `&x`) is written at each
use; a value that costs a computation is written at its only use, if it has one and no name;
a call with effects always is a statement of its own. A read of memory moves to its use only if
nothing that may write runs in between.

That last condition is checked with epochs: each block counts the ops with effects in it, so two
places of a block with the same count see the same memory. One pass over the uses, backwards.
"""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.dialects.emitc import (
    EmitC_ArrayType,
    EmitC_LValueType,
    EmitC_OpaqueType,
    EmitC_PointerType,
)
from xdsl.ir import Block, Operation, Region, SSAValue

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
from ttcodegen.emitc.statements import AssignOp, DoOp, ForOp, GlobalOp, VariableOp, VerbatimOp

PURE = "ttcodegen.pure"
HELD = "ttcodegen.held"
"""Marks a load of a variable that nothing changes before the value is used for the last time."""
NAME = "ttcodegen.name"
FIXED_NAME = "ttcodegen.fixed_name"
"""Marks a parameter whose name pieces of C++ in the body refer to, so that it has to stay."""
NAMES = "ttcodegen.names"
ASSIGNS = "ttcodegen.assigns"
"""Names the variable that the result of an op goes into, instead of one of its own: that of a value
of the same type that is not used any more."""

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
"""Where a text is evaluated: a block, and how many ops with effects ran before it there."""


def has_effects(op: Operation) -> bool:
    """True if `op` may write memory (or do what no one can take back)."""
    kind = type(op)
    if kind in _WITHOUT_EFFECTS:
        return False
    if kind is CallOpaqueOp:
        return PURE not in op.attributes
    if isinstance(op, ExpressionOp):
        return any(has_effects(inner) for inner in op.region.block.ops)
    return kind is not YieldOp


def is_named(op: Operation) -> bool:
    """True if a result of `op` has a name."""
    named = NAME in op.attributes or NAMES in op.attributes or ASSIGNS in op.attributes
    return named or any(result.name_hint is not None for result in op.results)


class InliningPlan:
    """The ops of a function whose values are written where they are used."""

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
        """The one location where all uses of `op` are evaluated; None if there are several."""
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
        """True if `lvalue` holds the same value from its definition on."""
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
    """The names of the constants among the global variables."""
    return frozenset(
        op.sym_name.data
        for op in operations
        if isinstance(op, GlobalOp) and op.const_specifier is not None
    )


def _statement_of(op: Operation) -> Operation:
    """The op that `op` is a part of: an expression, a do loop for its condition, or itself."""
    parent = op.parent_op()
    if isinstance(parent, ExpressionOp):
        return _statement_of(parent)
    if isinstance(parent, DoOp) and op.parent is parent.condition.block:
        return parent
    return op


def _outside(expression: ExpressionOp, value: SSAValue) -> SSAValue:
    """The operand that an argument of an expression's body refers to; other values as they are."""
    arguments = expression.region.block.args
    for argument, operand in zip(arguments, expression.operands, strict=True):
        if argument is value:
            return operand
    return value


def _root(lvalue: SSAValue) -> SSAValue:
    """The object that a chain of members and subscripts is part of, or the pointer to it."""
    while not isinstance(lvalue.type, EmitC_PointerType):
        match lvalue.owner:
            case MemberOp() as owner:
                lvalue = owner.operand
            case SubscriptOp() as owner:
                lvalue = owner.value
            case LoadOp() as owner:
                # An object that is subscripted is loaded first; the text names the object itself.
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
