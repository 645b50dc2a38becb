"""The EmitC ops that are C++ operators: a table of the regular ones, classes for the others."""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

from xdsl.dialects.builtin import I1, UNKNOWN_LOC, IntegerAttr, i64
from xdsl.dialects.emitc import EmitCTypeConstr
from xdsl.ir import Attribute, Operation, Region, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure

from ttcodegen.emitc.spelling import Precedence
from ttcodegen.foundation.diagnostics import CompileError


def require(condition: bool, op: Operation, message: str, remedy: str | None = None) -> None:
    """Raises CompileError at `op` unless `condition` holds."""
    if not condition:
        raise CompileError(f"{op.name}: {message}", op, remedy=remedy)


class EmitCOperation(IRDLOperation, ABC):
    """Base of the ops of this dialect.

    The constructor bypasses IRDL's matching of arguments to definitions, which would dominate the
    time of the lowering."""

    def __init__(
        self,
        *,
        operands: Sequence[SSAValue] = (),
        result_types: Sequence[Attribute] = (),
        properties: Mapping[str, Attribute | None] | None = None,
        attributes: Mapping[str, Attribute] | None = None,
        regions: Sequence[Region] = (),
    ) -> None:
        given: Mapping[str, Attribute | None] = {} if properties is None else properties
        Operation.__init__(
            self,
            operands=operands,
            result_types=result_types,
            properties={key: value for key, value in given.items() if value is not None},
            attributes={} if attributes is None else attributes,
            location=UNKNOWN_LOC,
            regions=regions,
        )


@dataclass(frozen=True, slots=True)
class OperatorSyntax:
    """Syntax of an operator, and the default name of its value."""

    symbol: str
    precedence: Precedence
    noun: str


class BinaryOperation(EmitCOperation, ABC):
    """`lhs symbol rhs`; the symbol is in OPERATOR_SYNTAX."""

    lhs = operand_def(EmitCTypeConstr)
    rhs = operand_def(EmitCTypeConstr)
    result = result_def(EmitCTypeConstr)

    traits = traits_def(Pure())

    def __init__(self, lhs: SSAValue, rhs: SSAValue, result_type: Attribute) -> None:
        super().__init__(operands=[lhs, rhs], result_types=[result_type])


class UnaryOperation(EmitCOperation, ABC):
    """`symbol operand`; the symbol is in OPERATOR_SYNTAX."""

    operand = operand_def(EmitCTypeConstr)
    result = result_def(EmitCTypeConstr)

    traits = traits_def(Pure())

    def __init__(self, operand: SSAValue, result_type: Attribute) -> None:
        super().__init__(operands=[operand], result_types=[result_type])


_BINARY_OPERATORS = {
    "add": OperatorSyntax("+", Precedence.ADDITIVE, "sum"),
    "sub": OperatorSyntax("-", Precedence.ADDITIVE, "difference"),
    "mul": OperatorSyntax("*", Precedence.MULTIPLICATIVE, "product"),
    "div": OperatorSyntax("/", Precedence.MULTIPLICATIVE, "quotient"),
    "rem": OperatorSyntax("%", Precedence.MULTIPLICATIVE, "remainder"),
    "bitwise_and": OperatorSyntax("&", Precedence.BITWISE_AND, "bits"),
    "bitwise_or": OperatorSyntax("|", Precedence.BITWISE_OR, "bits"),
    "bitwise_xor": OperatorSyntax("^", Precedence.BITWISE_XOR, "bits"),
    "bitwise_left_shift": OperatorSyntax("<<", Precedence.SHIFT, "shifted"),
    "bitwise_right_shift": OperatorSyntax(">>", Precedence.SHIFT, "shifted"),
    "logical_and": OperatorSyntax("&&", Precedence.LOGICAL_AND, "both"),
    "logical_or": OperatorSyntax("||", Precedence.LOGICAL_OR, "either"),
}

_UNARY_OPERATORS = {
    "bitwise_not": OperatorSyntax("~", Precedence.UNARY, "bits"),
    "logical_not": OperatorSyntax("!", Precedence.UNARY, "negated"),
    "unary_minus": OperatorSyntax("-", Precedence.UNARY, "negative"),
    "unary_plus": OperatorSyntax("+", Precedence.UNARY, "value"),
}


def _operator_class(mnemonic: str, base: type[IRDLOperation], symbol: str) -> type[IRDLOperation]:
    class_name = "".join(word.capitalize() for word in mnemonic.split("_")) + "Op"
    members = {
        "name": f"emitc.{mnemonic}",
        "__doc__": f"The C++ operator `{symbol}`.",
        "__module__": __name__,
    }
    return irdl_op_definition(type(class_name, (base,), members))


BINARY_OPS: Mapping[str, type[BinaryOperation]] = {
    mnemonic: _operator_class(mnemonic, BinaryOperation, syntax.symbol)  # type: ignore[misc]
    for mnemonic, syntax in _BINARY_OPERATORS.items()
}
"""Classes of the binary operators by mnemonic (`add` for emitc.add)."""

UNARY_OPS: Mapping[str, type[UnaryOperation]] = {
    mnemonic: _operator_class(mnemonic, UnaryOperation, syntax.symbol)  # type: ignore[misc]
    for mnemonic, syntax in _UNARY_OPERATORS.items()
}
"""Classes of the unary operators by mnemonic."""

OPERATOR_SYNTAX: Mapping[type[Operation], OperatorSyntax] = {
    **{BINARY_OPS[mnemonic]: syntax for mnemonic, syntax in _BINARY_OPERATORS.items()},
    **{UNARY_OPS[mnemonic]: syntax for mnemonic, syntax in _UNARY_OPERATORS.items()},
}


class ComparisonPredicate(IntEnum):
    """Predicates of emitc.cmp with their upstream numbers."""

    EQ = 0
    NE = 1
    LT = 2
    LE = 3
    GT = 4
    GE = 5
    THREE_WAY = 6


COMPARISON_SYNTAX: Mapping[ComparisonPredicate, OperatorSyntax] = {
    ComparisonPredicate.EQ: OperatorSyntax("==", Precedence.EQUALITY, "equal"),
    ComparisonPredicate.NE: OperatorSyntax("!=", Precedence.EQUALITY, "different"),
    ComparisonPredicate.LT: OperatorSyntax("<", Precedence.RELATIONAL, "less"),
    ComparisonPredicate.LE: OperatorSyntax("<=", Precedence.RELATIONAL, "at_most"),
    ComparisonPredicate.GT: OperatorSyntax(">", Precedence.RELATIONAL, "greater"),
    ComparisonPredicate.GE: OperatorSyntax(">=", Precedence.RELATIONAL, "at_least"),
    ComparisonPredicate.THREE_WAY: OperatorSyntax("<=>", Precedence.THREE_WAY, "ordering"),
}


@irdl_op_definition
class CmpOp(EmitCOperation):
    """`lhs predicate rhs`."""

    name = "emitc.cmp"
    predicate = prop_def(IntegerAttr)
    lhs = operand_def(EmitCTypeConstr)
    rhs = operand_def(EmitCTypeConstr)
    result = result_def(EmitCTypeConstr)
    traits = traits_def(Pure())

    def __init__(
        self,
        predicate: ComparisonPredicate,
        lhs: SSAValue,
        rhs: SSAValue,
        result_type: Attribute,
    ) -> None:
        super().__init__(
            operands=[lhs, rhs],
            result_types=[result_type],
            properties={"predicate": IntegerAttr(int(predicate), i64)},
        )

    def verify_(self) -> None:
        number = self.predicate.value.data
        require(0 <= number <= 6, self, f"predicate {number} is not one of 0 to 6")


@irdl_op_definition
class ConditionalOp(EmitCOperation):
    """`condition ? true_value : false_value`."""

    name = "emitc.conditional"
    condition = operand_def(I1)
    true_value = operand_def(EmitCTypeConstr)
    false_value = operand_def(EmitCTypeConstr)
    result = result_def(EmitCTypeConstr)
    traits = traits_def(Pure())

    def __init__(self, condition: SSAValue, true_value: SSAValue, false_value: SSAValue) -> None:
        super().__init__(
            operands=[condition, true_value, false_value], result_types=[true_value.type]
        )

    def verify_(self) -> None:
        require(
            self.true_value.type == self.false_value.type == self.result.type,
            self,
            f"both values and the result need one type, found {self.true_value.type}, "
            f"{self.false_value.type} and {self.result.type}",
        )


@irdl_op_definition
class CastOp(EmitCOperation):
    """An explicit conversion."""

    name = "emitc.cast"
    source = operand_def(EmitCTypeConstr)
    dest = result_def(EmitCTypeConstr)
    traits = traits_def(Pure())

    def __init__(self, source: SSAValue, result_type: Attribute) -> None:
        super().__init__(operands=[source], result_types=[result_type])
