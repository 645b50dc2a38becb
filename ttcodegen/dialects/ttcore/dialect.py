"""The `ttcore` dialect: types and attributes that all other dialects share."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import FlatSymbolRefAttr, ModuleOp, StringAttr, SymbolRefAttr
from xdsl.ir import (
    Attribute,
    Block,
    Dialect,
    Operation,
    ParametrizedAttribute,
    Region,
    SSAValue,
)
from xdsl.irdl import (
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    prop_def,
    region_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.traits import NoTerminator, SymbolTable
from xdsl.utils.str_enum import StrEnum

from ttcodegen.dialects.core.enumerations import WordAttribute
from ttcodegen.dialects.ttcore.device import DEVICE_ATTRIBUTES
from ttcodegen.dialects.ttcore.enumerations import WORD_ATTRIBUTES
from ttcodegen.dialects.ttcore.layouts import LAYOUT_ATTRIBUTES
from ttcodegen.dialects.ttcore.module_system import DeviceOp
from ttcodegen.dialects.ttcore.system import SystemDescAttr
from ttcodegen.dialects.ttcore.tile import TileType
from ttcodegen.dialects.ttcore.tuples import GetTupleElementOp, TupleOp


class ArgumentType(StrEnum):
    """What an argument of an entry function is, as the frontend declares it."""

    INPUT = "input"
    PARAMETER = "parameter"
    CONSTANT = "constant"
    DEFAULT = "default"


@irdl_attr_definition
class ArgumentTypeAttr(WordAttribute[ArgumentType]):
    """`#ttcore.argument_type<input>`."""

    name = "ttcore.argument_type"


@irdl_attr_definition
class DataTypeAttr(ParametrizedAttribute):
    """`#ttcore.supportedDataTypes<bf16>`."""

    name = "ttcore.supportedDataTypes"
    value: StringAttr

    def __init__(self, value: str | StringAttr) -> None:
        super().__init__(StringAttr(value) if isinstance(value, str) else value)

    def print_parameters(self, printer: Printer) -> None:
        printer.print_string(f"<{self.value.data}>")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[StringAttr]:
        with parser.in_angle_brackets():
            return [StringAttr(parser.parse_identifier())]


@irdl_op_definition
class LoadCachedOp(IRDLOperation):
    """The results of a const-eval function, which runs once: `ttcore.load_cached(@f, [...])`."""

    name = "ttcore.load_cached"
    callee = prop_def(FlatSymbolRefAttr)
    inputs = var_operand_def()
    outputs = var_result_def()

    def __init__(
        self, callee: str, inputs: Sequence[SSAValue], result_types: Sequence[Attribute]
    ) -> None:
        super().__init__(
            operands=[inputs],
            result_types=[result_types],
            properties={"callee": SymbolRefAttr(callee)},
        )


class _ModuleWrapper(IRDLOperation):
    """An op around a module."""

    body = region_def("single_block")
    traits = traits_def(NoTerminator(), SymbolTable())

    def __init__(self, operations: Sequence[Operation]) -> None:
        super().__init__(regions=[Region(Block([ModuleOp(list(operations))]))])

    def print(self, printer: Printer) -> None:
        printer.print_op_attributes(self.attributes, print_keyword=True)
        printer.print_string(" ")
        printer.print_region(self.body)


@irdl_op_definition
class DeviceModuleOp(_ModuleWrapper):
    """`ttcore.device_module { builtin.module { ... } }`: what runs on the device."""

    name = "ttcore.device_module"


@irdl_op_definition
class CPUModuleOp(_ModuleWrapper):
    """`ttcore.cpu_module { builtin.module { ... } }`: the functions that run on the CPU."""

    name = "ttcore.cpu_module"


TTCore = Dialect(
    "ttcore",
    [LoadCachedOp, DeviceOp, TupleOp, GetTupleElementOp, DeviceModuleOp, CPUModuleOp],
    [
        ArgumentTypeAttr,
        DataTypeAttr,
        SystemDescAttr,
        TileType,
        *DEVICE_ATTRIBUTES,
        *LAYOUT_ATTRIBUTES,
        *WORD_ATTRIBUTES,
    ],
)
