"""The `ttcore` dialect: types and attributes that all other dialects share."""

from __future__ import annotations

from enum import StrEnum

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Dialect, EnumAttribute, ParametrizedAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer


class ArgumentType(StrEnum):
    """What an argument of an entry function is, as the frontend declares it."""

    INPUT = "input"
    PARAMETER = "parameter"
    CONSTANT = "constant"
    DEFAULT = "default"


@irdl_attr_definition
class ArgumentTypeAttr(EnumAttribute[ArgumentType]):
    """`#ttcore.argument_type<input>`."""

    name = "ttcore.argument_type"

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(f"<{self.data.value}>")

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> ArgumentType:
        with parser.in_angle_brackets():
            return parser.parse_str_enum(ArgumentType)


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


TTCore = Dialect("ttcore", [], [ArgumentTypeAttr, DataTypeAttr])
