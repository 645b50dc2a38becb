"""The EmitC ops that compute a value: operators, calls, constants, access to objects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from xdsl.dialects.builtin import (
    I1,
    ArrayAttr,
    FlatSymbolRefAttrConstr,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    StringAttr,
    SymbolRefAttr,
    UnitAttr,
)
from xdsl.dialects.emitc import (
    EmitC_ArrayType,
    EmitC_LValueType,
    EmitC_OpaqueAttr,
    EmitC_OpaqueType,
    EmitC_PointerType,
    EmitCArrayElementType,
    EmitCTypeConstr,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue, TypeAttribute
from xdsl.irdl import (
    AnyAttr,
    BaseAttr,
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

from ttcodegen.emitc.operators import (
    BINARY_OPS,
    UNARY_OPS,
    CastOp,
    CmpOp,
    ConditionalOp,
    EmitCOperation,
    require,
)

LVALUE = BaseAttr(EmitC_LValueType)
LVALUE_OR_ARRAY = BaseAttr(EmitC_LValueType) | BaseAttr(EmitC_ArrayType)
BOOLEAN = BaseAttr(I1)
DICTIONARIES = BaseAttr(ArrayAttr)


def operand_index(attribute: Attribute) -> int | None:
    """Operand number that an element of `args` refers to; None for other elements."""
    if not isinstance(attribute, IntegerAttr):
        return None
    number = cast("IntegerAttr[IntegerType | IndexType]", attribute)
    return number.value.data if isinstance(number.type, IndexType) else None


# --- Constants and calls -------------------------------------------------------------------------


@irdl_op_definition
class LiteralOp(EmitCOperation):
    """A piece of C++ that is a value, verbatim."""

    name = "emitc.literal"
    value = prop_def(StringAttr)
    result = result_def(EmitCTypeConstr)
    traits = traits_def(Pure())

    def __init__(self, value: str, result_type: Attribute) -> None:
        super().__init__(result_types=[result_type], properties={"value": StringAttr(value)})

    def verify_(self) -> None:
        require(bool(self.value.data), self, "the value must not be empty")


@irdl_op_definition
class ConstantOp(EmitCOperation):
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
            type_: Attribute = value.get_type()
            require(
                type_ == self.result.type or isinstance(type_, IndexType),
                self,
                f"the value is of type {type_}, the result of {self.result.type}",
            )


@irdl_op_definition
class CallOp(EmitCOperation):
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
            operands=arguments,
            result_types=result_types,
            properties={"callee": SymbolRefAttr(callee)},
        )


@irdl_op_definition
class CallOpaqueOp(EmitCOperation):
    """A call of any C++ function.

    `args`, where present, is the argument list: an integer of type index refers to the operand of
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
            operands=call_args,
            result_types=result_types,
            properties={
                "callee": StringAttr(callee),
                "args": None if args is None else ArrayAttr(args),
                "template_args": None if template_args is None else ArrayAttr(template_args),
            },
            attributes=attributes,
        )

    def argument_list(self) -> Sequence[SSAValue | Attribute]:
        """The arguments in the order of the call: operands, and attributes that become text."""
        operands = self.operands
        if self.args is None:
            return operands
        indices = map(operand_index, self.args.data)
        return [
            argument if index is None else operands[index]
            for index, argument in zip(indices, self.args.data, strict=True)
        ]

    def verify_(self) -> None:
        require(bool(self.callee.data), self, "the callee must not be empty")
        for argument in () if self.args is None else self.args.data:
            index, count = operand_index(argument), len(self.operands)
            valid = index is None or 0 <= index < count
            require(valid, self, f"args names operand {index}, there are {count}")
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
class LoadOp(EmitCOperation):
    """Current value of an lvalue."""

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
class MemberOp(EmitCOperation):
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
class MemberOfPtrOp(EmitCOperation):
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
class SubscriptOp(EmitCOperation):
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
        super().__init__(operands=[value, *indices], result_types=[EmitC_LValueType(element_type)])

    def verify_(self) -> None:
        type_ = self.value.type
        if isinstance(type_, EmitC_ArrayType):
            array = cast("EmitC_ArrayType[EmitCArrayElementType]", type_)
            expected, element = len(array.get_shape()), array.element_type
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
class AddressOfOp(EmitCOperation):
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
class DereferenceOp(EmitCOperation):
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
class GetGlobalOp(EmitCOperation):
    """The variable of an emitc.global."""

    name = "emitc.get_global"
    symbol = prop_def(FlatSymbolRefAttrConstr, prop_name="name")
    result = result_def(LVALUE_OR_ARRAY)
    traits = traits_def(Pure())

    def __init__(self, symbol: str, result_type: Attribute) -> None:
        super().__init__(result_types=[result_type], properties={"name": SymbolRefAttr(symbol)})


@irdl_op_definition
class GetFieldOp(EmitCOperation):
    """Field of the object whose member function contains the op."""

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
class YieldOp(EmitCOperation):
    """Ends a region, with the value of an expression or of a loop condition."""

    name = "emitc.yield"
    result = opt_operand_def(EmitCTypeConstr)
    traits = traits_def(IsTerminator())

    def __init__(self, result: SSAValue | None = None) -> None:
        super().__init__(operands=[] if result is None else [result])


@irdl_op_definition
class ExpressionOp(EmitCOperation):
    """Tree of value ops that becomes one C++ expression.

    The arguments of its block are the operands; values from outside may also be used directly, as
    in LLVM before release 22."""

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
            operands=definitions,
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
