"""The `ttcore` dialect: types and attributes that all other dialects share."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import FlatSymbolRefAttr, StringAttr, SymbolRefAttr
from xdsl.ir import Attribute, Dialect, ParametrizedAttribute, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    prop_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.str_enum import StrEnum

from ttcodegen.dialects.enumerations import WordAttribute
from ttcodegen.dialects.system import DeviceOp
from ttcodegen.dialects.tile import TileType
from ttcodegen.dialects.ttcore_device import DEVICE_ATTRIBUTES
from ttcodegen.dialects.ttcore_enumerations import WORD_ATTRIBUTES
from ttcodegen.dialects.ttcore_layouts import LAYOUT_ATTRIBUTES
from ttcodegen.dialects.ttcore_system import SystemDescAttr


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


TTCore = Dialect(
    "ttcore",
    [LoadCachedOp, DeviceOp],
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
