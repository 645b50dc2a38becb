"""C++ expressions of value ops, with minimal parentheses for readability."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, cast

from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.dialects.emitc import EmitC_OpaqueAttr, EmitC_PointerType
from xdsl.ir import Attribute, Block, Operation, SSAValue, TypeAttribute

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
from ttcodegen.emitc.operators import (
    BINARY_OPS,
    COMPARISON_SYNTAX,
    OPERATOR_SYNTAX,
    UNARY_OPS,
    BinaryOperation,
    CastOp,
    CmpOp,
    ComparisonPredicate,
    ConditionalOp,
    UnaryOperation,
)
from ttcodegen.emitc.spelling import (
    Expression,
    Precedence,
    attribute_value,
    is_identifier,
    opaque_value,
    type_text,
)
from ttcodegen.foundation.diagnostics import CompileError

METHOD = "ttcodegen.method"
INITIALIZERS = "ttcodegen.initializers"
UNTYPED = "ttcodegen.untyped"
"""Marks an initializer list whose type follows from the parameter."""
ARGUMENT_NAMES = "ttcodegen.argument_names"
"""Names of the parameters of a call, written as comments before its arguments.

An argument with an empty name has no comment."""

_NOT_IN_CALLEE = re.compile(r'[;{}"\\\n\r#]')

_BITWISE = frozenset({Precedence.BITWISE_AND, Precedence.BITWISE_XOR, Precedence.BITWISE_OR})
_COMPARISONS = frozenset({Precedence.EQUALITY, Precedence.RELATIONAL, Precedence.THREE_WAY})

_CONFUSING: Mapping[Precedence, frozenset[Precedence]] = {
    Precedence.SHIFT: frozenset({Precedence.ADDITIVE}),
    **{level: _BITWISE | _COMPARISONS | {Precedence.ADDITIVE} for level in _BITWISE},
    **{level: _COMPARISONS for level in _COMPARISONS},
    Precedence.LOGICAL_OR: frozenset({Precedence.LOGICAL_AND}),
}
"""Nested operators for which compilers suggest parentheses (-Wparentheses)."""


def require_identifier(name: str, op: Operation) -> str:
    """Returns `name` if it is a valid C++ name; raises CompileError at `op` if not."""
    if not is_identifier(name):
        raise CompileError(f"{op.name}: {name!r} is not a C++ identifier", op)
    return name


def array_texts(attribute: Attribute) -> list[str]:
    """Strings of an array attribute; other elements are skipped."""
    if not isinstance(attribute, ArrayAttr):
        return []
    elements = cast("ArrayAttr[Attribute]", attribute)
    return [element.data for element in elements.data if isinstance(element, StringAttr)]


def spelled_type(type_: Attribute, op: Operation) -> str:
    """C++ spelling of a type; raises CompileError at `op` if it has none."""
    text = type_text(type_)
    if text is None:
        raise CompileError(f"{op.name}: the type {type_} has no C++ spelling", op)
    return text


def spelled_value(attribute: Attribute, op: Operation) -> Expression:
    """C++ value of an attribute; raises CompileError at `op` if it has none."""
    value = attribute_value(attribute)
    if value is None:
        raise CompileError(f"{op.name}: the attribute {attribute} has no C++ value", op)
    return value


class ValueTable:
    """C++ expressions of the visible SSA values."""

    def __init__(self) -> None:
        self._expressions: dict[SSAValue, Expression] = {}

    def define(self, value: SSAValue, expression: Expression) -> None:
        """Sets the expression of `value`."""
        self._expressions[value] = expression

    def of(self, value: SSAValue) -> Expression:
        """C++ expression of `value`."""
        try:
            return self._expressions[value]
        except KeyError:
            owner = value.owner
            place = owner if isinstance(owner, Operation) else None
            raise CompileError("a value is used before it is defined", place) from None

    def evaluate(self, op: Operation) -> Expression:
        """Returns the expression of a value op; raises CompileError for other ops."""
        rule = _RULES.get(type(op))
        if rule is None:
            raise CompileError(
                f"there is no C++ for the operation '{op.name}'",
                op,
                remedy="lower it to EmitC before printing",
            )
        return rule(self, op)

    def evaluate_block(self, block: Block) -> Expression:
        """Returns the expression that a block yields, with all ops inlined."""
        for op in block.ops:
            if isinstance(op, YieldOp):
                return self.of(op.operands[0])
            self.define(op.results[0], self.evaluate(op))
        raise CompileError("an expression without a yield", block.parent_op())


def _operand(inner: Expression, outer: Precedence, *, right: bool = False) -> str:
    """Operand of a binary operator, in parentheses if needed."""
    weakest = Precedence(outer + 1) if right else outer
    if inner.precedence in _CONFUSING.get(outer, ()) and not (
        inner.precedence is outer and not right and outer in _BITWISE
    ):
        return f"({inner.text})"
    return inner.at_least(weakest)


def _infix(symbol: str, level: Precedence, lhs: Expression, rhs: Expression) -> Expression:
    left = _operand(lhs, level)
    # Compilers warn of `!a == b`, which is often meant as `!(a == b)`.
    if level in _COMPARISONS and lhs.precedence is Precedence.UNARY and left.startswith("!"):
        left = f"({left})"
    return Expression(f"{left} {symbol} {_operand(rhs, level, right=True)}", level)


def _prefix(symbol: str, operand: Expression) -> Expression:
    text = operand.at_least(Precedence.UNARY)
    # `- -x` must not become `--x`, nor `& &x` a logical and.
    if text.startswith(symbol[-1]) and symbol in "+-&":
        text = f"({text})"
    return Expression(f"{symbol}{text}", Precedence.UNARY)


def _binary(values: ValueTable, op: BinaryOperation) -> Expression:
    syntax = OPERATOR_SYNTAX[type(op)]
    lhs, rhs = op.operands
    return _infix(syntax.symbol, syntax.precedence, values.of(lhs), values.of(rhs))


def _unary(values: ValueTable, op: UnaryOperation) -> Expression:
    return _prefix(OPERATOR_SYNTAX[type(op)].symbol, values.of(op.operands[0]))


def _comparison(values: ValueTable, op: CmpOp) -> Expression:
    syntax = COMPARISON_SYNTAX[ComparisonPredicate(op.predicate.value.data)]
    return _infix(syntax.symbol, syntax.precedence, values.of(op.lhs), values.of(op.rhs))


def _conditional(values: ValueTable, op: ConditionalOp) -> Expression:
    condition, true_value, false_value = (values.of(operand) for operand in op.operands)
    return Expression(
        f"{condition.at_least(Precedence.LOGICAL_OR)} ? "
        f"{true_value.at_least(Precedence.LOGICAL_OR)} : "
        f"{false_value.at_least(Precedence.CONDITIONAL)}",
        Precedence.CONDITIONAL,
    )


def _cast(values: ValueTable, op: CastOp) -> Expression:
    types = (op.source.type, op.dest.type)
    pointers = any(isinstance(type_, EmitC_PointerType) for type_ in types)
    kind = "reinterpret_cast" if pointers else "static_cast"
    text = f"{kind}<{spelled_type(op.dest.type, op)}>({values.of(op.source).text})"
    return Expression(text, Precedence.POSTFIX)


def _literal(_: ValueTable, op: LiteralOp) -> Expression:
    return opaque_value(op.value.data)


def _constant(_: ValueTable, op: ConstantOp) -> Expression:
    return spelled_value(op.value, op)


def _template_argument(attribute: Attribute, op: Operation) -> str:
    if isinstance(attribute, TypeAttribute):
        return spelled_type(attribute, op)
    if isinstance(attribute, EmitC_OpaqueAttr) and attribute.value.data.endswith(("*", "&")):
        # No expression ends so: it is a type.
        return attribute.value.data
    return spelled_value(attribute, op).at_least(Precedence.ADDITIVE)


def _call_opaque(values: ValueTable, op: CallOpaqueOp) -> Expression:
    callee = op.callee.data
    if _NOT_IN_CALLEE.search(callee):
        raise CompileError(f"{op.name}: {callee!r} is not the name of a function", op)
    if op.template_args is not None:
        arguments = ", ".join(_template_argument(a, op) for a in op.template_args.data)
        callee = f"{callee}<{arguments}>"
    expressions = [
        values.of(a) if isinstance(a, SSAValue) else spelled_value(a, op)
        for a in op.argument_list()
    ]
    texts = [expression.text for expression in expressions]
    if ARGUMENT_NAMES in op.attributes:
        for index, name in enumerate(array_texts(op.attributes[ARGUMENT_NAMES])[: len(texts)]):
            # A variable with the name of the parameter needs no label.
            if name not in ("", texts[index]) and not texts[index].startswith("/*"):
                texts[index] = f"/*{require_identifier(name, op)}=*/{texts[index]}"
    if INITIALIZERS in op.attributes:
        type_ = "" if UNTYPED in op.attributes else callee
        return Expression(f"{type_}{braces(op, texts)}", Precedence.POSTFIX)
    if METHOD in op.attributes:
        if not expressions or not op.operands:
            raise CompileError(f"{op.name}: a member function needs an object", op)
        receiver = expressions[0].at_least(Precedence.POSTFIX)
        arrow = "->" if isinstance(op.operands[0].type, EmitC_PointerType) else "."
        return Expression(f"{receiver}{arrow}{callee}({', '.join(texts[1:])})", Precedence.POSTFIX)
    return Expression(f"{callee}({', '.join(texts)})", Precedence.POSTFIX)


def braces(op: CallOpaqueOp, arguments: list[str]) -> str:
    """Initializer list of an aggregate: `{.a = x, .b = y}`."""
    designators = op.attributes[INITIALIZERS]
    names = array_texts(designators)
    if len(names) != len(arguments):
        raise CompileError(f"{op.name}: {len(names)} designators, {len(arguments)} values", op)
    items = [
        f".{require_identifier(name, op)} = {argument}" if name else argument
        for name, argument in zip(names, arguments, strict=True)
    ]
    return "{" + ", ".join(items) + "}"


def _call(values: ValueTable, op: CallOp) -> Expression:
    callee = require_identifier(op.callee.root_reference.data, op)
    arguments = ", ".join(values.of(operand).text for operand in op.operands)
    return Expression(f"{callee}({arguments})", Precedence.POSTFIX)


def _load(values: ValueTable, op: LoadOp) -> Expression:
    return values.of(op.operand)


def _access(separator: str) -> Callable[[ValueTable, Any], Expression]:
    def access(values: ValueTable, op: MemberOp | MemberOfPtrOp) -> Expression:
        member = require_identifier(op.member.data, op)
        owner = op.operand.owner
        if separator == "." and isinstance(owner, DereferenceOp):
            pointer = values.of(owner.pointer).at_least(Precedence.POSTFIX)
            return Expression(f"{pointer}->{member}", Precedence.POSTFIX)
        text = values.of(op.operand).at_least(Precedence.POSTFIX)
        return Expression(f"{text}{separator}{member}", Precedence.POSTFIX)

    return access


def _subscript(values: ValueTable, op: SubscriptOp) -> Expression:
    value, *indices = (values.of(operand) for operand in op.operands)
    text = value.at_least(Precedence.POSTFIX)
    return Expression(text + "".join(f"[{i.text}]" for i in indices), Precedence.POSTFIX)


def _address_of(values: ValueTable, op: AddressOfOp) -> Expression:
    return _prefix("&", values.of(op.reference))


def _dereference(values: ValueTable, op: DereferenceOp) -> Expression:
    return _prefix("*", values.of(op.pointer))


def _get_global(_: ValueTable, op: GetGlobalOp) -> Expression:
    return Expression(require_identifier(op.symbol.root_reference.data, op))


def _get_field(_: ValueTable, op: GetFieldOp) -> Expression:
    name = require_identifier(op.field_name.root_reference.data, op)
    return Expression(f"this->{name}", Precedence.POSTFIX)


def _expression(values: ValueTable, op: ExpressionOp) -> Expression:
    for argument, operand in zip(op.region.block.args, op.operands, strict=True):
        values.define(argument, values.of(operand))
    return values.evaluate_block(op.region.block)


_RULES: Mapping[type[Operation], Callable[[ValueTable, Any], Expression]] = {
    **dict.fromkeys(BINARY_OPS.values(), _binary),
    **dict.fromkeys(UNARY_OPS.values(), _unary),
    CmpOp: _comparison,
    ConditionalOp: _conditional,
    CastOp: _cast,
    LiteralOp: _literal,
    ConstantOp: _constant,
    CallOp: _call,
    CallOpaqueOp: _call_opaque,
    LoadOp: _load,
    MemberOp: _access("."),
    MemberOfPtrOp: _access("->"),
    SubscriptOp: _subscript,
    AddressOfOp: _address_of,
    DereferenceOp: _dereference,
    GetGlobalOp: _get_global,
    GetFieldOp: _get_field,
    ExpressionOp: _expression,
}
