"""Kernel configurations until mid-2025; `ttmetal` has replaced them by its kernel attributes."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import Attribute, Data
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from ttcodegen.dialects.core.attribute_syntax import WordAttribute
from ttcodegen.dialects.operations.compute_config import MathFidelity
from ttcodegen.dialects.ttcore.tile import NocIndex
from ttcodegen.dialects.ttkernel.attributes import (
    EthernetType,
    ThreadType,
    UnpackToDestination,
)


@irdl_attr_definition
class NocConfigAttr(WordAttribute[NocIndex]):
    """`#ttkernel.noc_config<noc0>`."""

    name = "ttkernel.noc_config"


@irdl_attr_definition
class EthernetConfigAttr(Data[tuple[EthernetType, NocIndex]]):
    """`#ttkernel.ethernet_config<sender, noc0>`."""

    name = "ttkernel.ethernet_config"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[EthernetType, NocIndex]:
        with parser.in_angle_brackets():
            end = parser.parse_str_enum(EthernetType)
            parser.parse_punctuation(",")
            return end, parser.parse_str_enum(NocIndex)

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(f"<{self.data[0].value}, {self.data[1].value}>")


@dataclass(frozen=True)
class TensixConfiguration:
    """Configuration of a compute kernel."""

    fidelity: MathFidelity
    fp32_destination: bool
    approximate: bool
    unpack_modes: tuple[UnpackToDestination, ...] = ()


@irdl_attr_definition
class TensixConfigAttr(Data[TensixConfiguration]):
    """`#ttkernel.tensix_config<hifi4, false, false, [default]>`."""

    name = "ttkernel.tensix_config"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> TensixConfiguration:
        modes: tuple[UnpackToDestination, ...] = ()
        with parser.in_angle_brackets():
            fidelity = parser.parse_str_enum(MathFidelity)
            flags: list[bool] = []
            for _ in range(2):
                parser.parse_punctuation(",")
                flags.append(parser.parse_boolean())
            if parser.parse_optional_punctuation(",") is not None:
                modes = tuple(
                    parser.parse_comma_separated_list(
                        parser.Delimiter.SQUARE,
                        lambda: parser.parse_str_enum(UnpackToDestination),
                    )
                )
        return TensixConfiguration(fidelity, flags[0], flags[1], modes)

    def print_parameter(self, printer: Printer) -> None:
        data = self.data
        flags = ", ".join(
            "true" if flag else "false" for flag in (data.fp32_destination, data.approximate)
        )
        modes = ", ".join(mode.value for mode in data.unpack_modes)
        printer.print_string(f"<{data.fidelity.value}, {flags}, [{modes}]>")


THREADS_OF_CONFIGURATIONS: dict[type[Attribute], ThreadType] = {
    EthernetConfigAttr: ThreadType.ETHERNET,
    NocConfigAttr: ThreadType.NOC,
    TensixConfigAttr: ThreadType.COMPUTE,
}
"""Thread of the kernels of each kind of configuration."""
