"""The ops that pack tensors into tuples and take them out again."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IntegerAttr, TupleType, i32
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    var_operand_def,
)
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException


@irdl_op_definition
class TupleOp(IRDLOperation):
    """`ttcore.tuple %a, %b : tuple<...>`."""

    name = "ttcore.tuple"
    elements = var_operand_def()
    result = result_def(TupleType)

    def __init__(self, elements: Sequence[SSAValue], type_: TupleType) -> None:
        super().__init__(operands=[elements], result_types=[type_])

    def verify_(self) -> None:
        found = [element.type for element in self.elements]
        if found != list(self.result.type.types):
            raise VerifyException(f"{self.name}: the elements are not those of {self.result.type}")

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_list(self.elements, printer.print_ssa_value)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.result.type)


@irdl_op_definition
class GetTupleElementOp(IRDLOperation):
    """`ttcore.get_tuple_element %t[0] : (tuple<...>) -> type`."""

    name = "ttcore.get_tuple_element"
    operand = operand_def(TupleType)
    index = prop_def(IntegerAttr)
    result = result_def()

    def __init__(self, operand: SSAValue, index: int, type_: Attribute) -> None:
        super().__init__(
            operands=[operand], result_types=[type_], properties={"index": IntegerAttr(index, i32)}
        )

    def verify_(self) -> None:
        type_, index = self.operand.type, self.index.value.data
        elements = list(type_.types) if isinstance(type_, TupleType) else []
        if index >= len(elements) or elements[index] != self.result.type:
            raise VerifyException(
                f"{self.name}: element {index} of {type_} is not of type {self.result.type}"
            )

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.operand)
        printer.print_string(f"[{self.index.value.data}]")
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : (")
        printer.print_attribute(self.operand.type)
        printer.print_string(") -> ")
        printer.print_attribute(self.result.type)
