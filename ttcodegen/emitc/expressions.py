"""The EmitC ops that compute a value: operators, calls, constants, access to objects."""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

from xdsl.dialects.builtin import (
    I1,
    ArrayAttr,
    FlatSymbolRefAttrConstr,
    FloatAttr,
    IndexType,
    IntegerAttr,
    StringAttr,
    SymbolRefAttr,
    UnitAttr,
    i64,
)
from xdsl.dialects.emitc import (
    EmitC_ArrayType,
    EmitC_LValueType,
    EmitC_OpaqueAttr,
    EmitC_OpaqueType,
    EmitC_PointerType,
    EmitCTypeConstr,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue, TypeAttribute
from xdsl.irdl import (
    AnyAttr,
    BaseAttr,
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import IsTerminator, Pure

from ttcodegen.diagnostics import CompileError
from ttcodegen.emitc.spelling import Precedence

LVALUE = BaseAttr(EmitC_LValueType)
LVALUE_OR_ARRAY = BaseAttr(EmitC_LValueType) | BaseAttr(EmitC_ArrayType)
BOOLEAN = BaseAttr(I1)
DICTIONARIES = BaseAttr(ArrayAttr)


def require(condition: bool, op: Operation, message: str, remedy: str | None = None) -> None:
    """Raises CompileError at `op` unless `condition` holds."""
    if not condition:
        raise CompileError(f"{op.name}: {message}", op, remedy=remedy)


# --- Operators -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OperatorSyntax:
    """How an operator is written, and what its value is called when nobody named it."""

    symbol: str
    precedence: Precedence
    noun: str


class BinaryOperation(IRDLOperation, ABC):
    """`lhs symbol rhs`; the symbol is in OPERATOR_SYNTAX."""

    lhs = operand_def(EmitCTypeConstr)
    rhs = operand_def(EmitCTypeConstr)
    result = result_def(EmitCTypeConstr)

    traits = traits_def(Pure())

    def __init__(self, lhs: SSAValue, rhs: SSAValue, result_type: Attribute) -> None:
        super().__init__(operands=[lhs, rhs], result_types=[result_type])


class UnaryOperation(IRDLOperation, ABC):
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
"""The classes of the binary operators by mnemonic (`add` for emitc.add)."""

UNARY_OPS: Mapping[str, type[UnaryOperation]] = {
    mnemonic: _operator_class(mnemonic, UnaryOperation, syntax.symbol)  # type: ignore[misc]
    for mnemonic, syntax in _UNARY_OPERATORS.items()
}
"""The classes of the unary operators by mnemonic."""

OPERATOR_SYNTAX: Mapping[type[Operation], OperatorSyntax] = {
    **{BINARY_OPS[mnemonic]: syntax for mnemonic, syntax in _BINARY_OPERATORS.items()},
    **{UNARY_OPS[mnemonic]: syntax for mnemonic, syntax in _UNARY_OPERATORS.items()},
}


class ComparisonPredicate(IntEnum):
    """The predicates of emitc.cmp with their upstream numbers."""

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
class CmpOp(IRDLOperation):
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
class ConditionalOp(IRDLOperation):
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
class CastOp(IRDLOperation):
    """An explicit conversion."""

    name = "emitc.cast"
    source = operand_def(EmitCTypeConstr)
    dest = result_def(EmitCTypeConstr)
    traits = traits_def(Pure())

    def __init__(self, source: SSAValue, result_type: Attribute) -> None:
        super().__init__(operands=[source], result_types=[result_type])


# --- Constants and calls -------------------------------------------------------------------------


@irdl_op_definition
class LiteralOp(IRDLOperation):
    """A piece of C++ that is a value, as it stands."""

    name = "emitc.literal"
    value = prop_def(StringAttr)
    result = result_def(EmitCTypeConstr)
    traits = traits_def(Pure())

    def __init__(self, value: str, result_type: Attribute) -> None:
        super().__init__(result_types=[result_type], properties={"value": StringAttr(value)})

    def verify_(self) -> None:
        require(bool(self.value.data), self, "the value must not be empty")


@irdl_op_definition
class ConstantOp(IRDLOperation):
    """A number, or a piece of C++ in an opaque attribute."""

    name = "emitc.constant"
    value = prop_def(AnyAttr())
    result = result_def(EmitCTypeConstr)
    traits = traits_def(Pure())

    def __init__(self, value: Attribute, result_type: Attribute) -> None:
        super().__init__(result_types=[result_type], properties={"value": value})

    def verify_(self) -> None:
        value = self.value
        if isinstance(value, EmitC_OpaqueAttr):
            require(bool(value.value.data), self, "the value must not be empty")
        elif isinstance(value, IntegerAttr | FloatAttr):
            same = value.type == self.result.type or isinstance(value.type, IndexType)
            require(
                same, self, f"the value is of type {value.type}, the result of {self.result.type}"
            )


@irdl_op_definition
class CallOp(IRDLOperation):
    """A call of an emitc.func of the same file."""

    name = "emitc.call"
    callee = prop_def(FlatSymbolRefAttrConstr)
    arg_attrs = opt_prop_def(DICTIONARIES)
    res_attrs = opt_prop_def(DICTIONARIES)
    arguments = var_operand_def(EmitCTypeConstr)
    res = var_result_def(EmitCTypeConstr)

    def __init__(
        self, callee: str, arguments: Sequence[SSAValue], result_types: Sequence[Attribute]
    ) -> None:
        super().__init__(
            operands=[arguments],
            result_types=[result_types],
            properties={"callee": SymbolRefAttr(callee)},
        )


@irdl_op_definition
class CallOpaqueOp(IRDLOperation):
    """A call of any C++ function.

    `args`, where present, is the argument list: an integer of type index stands for the operand of
    that number, an opaque attribute for its text, another attribute for its value.
    """

    name = "emitc.call_opaque"
    callee = prop_def(StringAttr)
    args = opt_prop_def(BaseAttr(ArrayAttr))
    template_args = opt_prop_def(BaseAttr(ArrayAttr))
    call_args = var_operand_def(EmitCTypeConstr)
    res = var_result_def(EmitCTypeConstr)

    def __init__(
        self,
        callee: str,
        call_args: Sequence[SSAValue],
        result_types: Sequence[Attribute],
        *,
        args: Sequence[Attribute] | None = None,
        template_args: Sequence[Attribute] | None = None,
        attributes: Mapping[str, Attribute] | None = None,
    ) -> None:
        super().__init__(
            operands=[call_args],
            result_types=[result_types],
            properties={
                "callee": StringAttr(callee),
                "args": None if args is None else ArrayAttr(args),
                "template_args": None if template_args is None else ArrayAttr(template_args),
            },
            attributes={} if attributes is None else dict(attributes),
        )

    def argument_list(self) -> Sequence[SSAValue | Attribute]:
        """The arguments in the order of the call: operands, and attributes that become text."""
        operands = self.operands
        if self.args is None:
            return operands
        return [
            operands[a.value.data]
            if isinstance(a, IntegerAttr) and isinstance(a.type, IndexType)
            else a
            for a in self.args.data
        ]

    def verify_(self) -> None:
        require(bool(self.callee.data), self, "the callee must not be empty")
        for argument in () if self.args is None else self.args.data:
            if isinstance(argument, IntegerAttr) and isinstance(argument.type, IndexType):
                index, count = argument.value.data, len(self.operands)
                require(0 <= index < count, self, f"args names operand {index}, there are {count}")
            require(not isinstance(argument, ArrayAttr), self, "an array argument has no type")
        for argument in () if self.template_args is None else self.template_args.data:
            allowed = TypeAttribute | IntegerAttr | FloatAttr | EmitC_OpaqueAttr
            require(
                isinstance(argument, allowed), self, f"{argument} cannot be a template argument"
            )
        for result in self.results:
            require(not isinstance(result.type, EmitC_ArrayType), self, "cannot return an array")


# --- Objects -------------------------------------------------------------------------------------


@irdl_op_definition
class LoadOp(IRDLOperation):
    """The value that an lvalue holds now."""

    name = "emitc.load"
    operand = operand_def(LVALUE)
    result = result_def()

    def __init__(self, operand: SSAValue) -> None:
        type_ = operand.type
        super().__init__(
            operands=[operand],
            result_types=[type_.value_type if isinstance(type_, EmitC_LValueType) else type_],
        )

    def verify_(self) -> None:
        held = self.operand.type
        assert isinstance(held, EmitC_LValueType)
        require(
            held.value_type == self.result.type,
            self,
            f"the lvalue holds {held.value_type}, the result is {self.result.type}",
        )


@irdl_op_definition
class MemberOp(IRDLOperation):
    """`operand.member`; an lvalue of an lvalue, a value of a value."""

    name = "emitc.member"
    member = prop_def(StringAttr)
    operand = operand_def(BaseAttr(EmitC_LValueType) | BaseAttr(EmitC_OpaqueType))
    result = result_def()

    def __init__(self, member: str, operand: SSAValue, result_type: Attribute) -> None:
        super().__init__(
            operands=[operand],
            result_types=[result_type],
            properties={"member": StringAttr(member)},
        )

    def verify_(self) -> None:
        if not isinstance(self.operand.type, EmitC_LValueType):
            place = EmitC_LValueType | EmitC_ArrayType
            require(
                not isinstance(self.result.type, place),
                self,
                "the member of a value is a value, it cannot be an lvalue or an array",
            )


@irdl_op_definition
class MemberOfPtrOp(IRDLOperation):
    """`operand->member`."""

    name = "emitc.member_of_ptr"
    member = prop_def(StringAttr)
    operand = operand_def(LVALUE)
    result = result_def(LVALUE_OR_ARRAY)

    def __init__(self, member: str, operand: SSAValue, result_type: Attribute) -> None:
        super().__init__(
            operands=[operand],
            result_types=[result_type],
            properties={"member": StringAttr(member)},
        )


@irdl_op_definition
class SubscriptOp(IRDLOperation):
    """`value[index]...` of an array, a pointer or an opaque object."""

    name = "emitc.subscript"
    value = operand_def(
        BaseAttr(EmitC_ArrayType) | BaseAttr(EmitC_OpaqueType) | BaseAttr(EmitC_PointerType)
    )
    indices = var_operand_def(EmitCTypeConstr)
    result = result_def(LVALUE)

    def __init__(
        self, value: SSAValue, indices: Sequence[SSAValue], element_type: Attribute
    ) -> None:
        super().__init__(operands=[value, indices], result_types=[EmitC_LValueType(element_type)])

    def verify_(self) -> None:
        type_ = self.value.type
        if isinstance(type_, EmitC_ArrayType):
            expected, element = len(type_.get_shape()), type_.element_type
        else:
            expected = 1
            element = type_.pointee_type if isinstance(type_, EmitC_PointerType) else None
        count = len(self.operands) - 1
        require(count == expected, self, f"{type_} takes {expected} indices, found {count}")
        held = self.result.type
        assert isinstance(held, EmitC_LValueType)
        require(
            element is None or element == held.value_type,
            self,
            f"the elements of {type_} are not {held.value_type}",
        )


@irdl_op_definition
class AddressOfOp(IRDLOperation):
    """`&reference`."""

    name = "emitc.address_of"
    reference = operand_def(LVALUE)
    result = result_def(BaseAttr(EmitC_PointerType))
    traits = traits_def(Pure())

    def __init__(self, reference: SSAValue) -> None:
        held = reference.type
        assert isinstance(held, EmitC_LValueType)
        assert isinstance(held.value_type, TypeAttribute)
        super().__init__(operands=[reference], result_types=[EmitC_PointerType(held.value_type)])


@irdl_op_definition
class DereferenceOp(IRDLOperation):
    """`*pointer`."""

    name = "emitc.dereference"
    pointer = operand_def(BaseAttr(EmitC_PointerType))
    result = result_def(LVALUE)
    traits = traits_def(Pure())

    def __init__(self, pointer: SSAValue) -> None:
        pointed = pointer.type
        assert isinstance(pointed, EmitC_PointerType)
        super().__init__(operands=[pointer], result_types=[EmitC_LValueType(pointed.pointee_type)])


@irdl_op_definition
class GetGlobalOp(IRDLOperation):
    """The variable of an emitc.global."""

    name = "emitc.get_global"
    symbol = prop_def(FlatSymbolRefAttrConstr, prop_name="name")
    result = result_def(LVALUE_OR_ARRAY)
    traits = traits_def(Pure())

    def __init__(self, symbol: str, result_type: Attribute) -> None:
        super().__init__(result_types=[result_type], properties={"name": SymbolRefAttr(symbol)})


@irdl_op_definition
class GetFieldOp(IRDLOperation):
    """The field of the object whose member function this is in."""

    name = "emitc.get_field"
    field_name = prop_def(FlatSymbolRefAttrConstr)
    result = result_def(EmitCTypeConstr)
    traits = traits_def(Pure())

    def __init__(self, field_name: str, result_type: Attribute) -> None:
        super().__init__(
            result_types=[result_type], properties={"field_name": SymbolRefAttr(field_name)}
        )


# --- Expression trees ----------------------------------------------------------------------------


@irdl_op_definition
class YieldOp(IRDLOperation):
    """Ends a region, with the value of an expression or of a loop condition."""

    name = "emitc.yield"
    result = opt_operand_def(EmitCTypeConstr)
    traits = traits_def(IsTerminator())

    def __init__(self, result: SSAValue | None = None) -> None:
        super().__init__(operands=[result])


@irdl_op_definition
class ExpressionOp(IRDLOperation):
    """A tree of value ops that becomes one C++ expression.

    The arguments of its block stand for the operands; values from outside may also be used
    directly, as LLVM before release 22 has it.
    """

    name = "emitc.expression"
    do_not_inline = opt_prop_def(UnitAttr)
    definitions = var_operand_def()
    result = result_def(EmitCTypeConstr)
    region = region_def("single_block")

    def __init__(
        self,
        body: Block,
        result_type: Attribute,
        definitions: Sequence[SSAValue] = (),
        *,
        do_not_inline: bool = False,
    ) -> None:
        super().__init__(
            operands=[definitions],
            result_types=[result_type],
            regions=[Region(body)],
            properties={"do_not_inline": UnitAttr()} if do_not_inline else {},
        )

    def verify_(self) -> None:
        block = self.region.block
        arguments, operands = len(block.args), len(self.operands)
        require(
            arguments == operands,
            self,
            f"the body takes {arguments} values, the op has {operands} operands",
        )
        last = block.last_op
        require(
            isinstance(last, YieldOp) and len(last.operands) == 1,
            self,
            "the body must end in a yield of one value",
        )
        for op in block.ops:
            require(
                isinstance(op, _ALLOWED_IN_EXPRESSION),
                self,
                f"{op.name} cannot be part of an expression",
            )


EXPRESSION_OPS: Sequence[type[Operation]] = (
    *BINARY_OPS.values(),
    *UNARY_OPS.values(),
    CmpOp,
    ConditionalOp,
    CastOp,
    LiteralOp,
    ConstantOp,
    CallOp,
    CallOpaqueOp,
    LoadOp,
    MemberOp,
    MemberOfPtrOp,
    SubscriptOp,
    AddressOfOp,
    DereferenceOp,
    GetGlobalOp,
    GetFieldOp,
    ExpressionOp,
    YieldOp,
)

_ALLOWED_IN_EXPRESSION = tuple(op for op in EXPRESSION_OPS if op is not ExpressionOp)
