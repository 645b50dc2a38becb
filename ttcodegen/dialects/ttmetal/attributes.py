"""Types and attributes of the `ttmetal` dialect: cores and arguments of kernels."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import SymbolRefAttr
from xdsl.ir import Attribute, Data, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from ttcodegen.dialects.core.attribute_syntax import WordAttribute
from ttcodegen.dialects.operations.compute_config import MathFidelity
from ttcodegen.dialects.ttcore.layouts import parse_shape, shape_text
from ttcodegen.dialects.ttcore.tile import NocIndex, NocIndexAttr
from ttcodegen.dialects.ttkernel.attributes import (
    EthernetType,
    KernelArgumentType,
    KernelArgumentTypeAttr,
    ThreadType,
    UnpackToDestination,
)


@irdl_attr_definition
class MathFidelityAttr(WordAttribute[MathFidelity]):
    """`#ttmetal.math_fidelity<hifi4>`."""

    name = "ttmetal.math_fidelity"


@irdl_attr_definition
class UnpackToDestinationAttr(WordAttribute[UnpackToDestination]):
    """`#ttmetal.unpack_to_dest_mode<default>`."""

    name = "ttmetal.unpack_to_dest_mode"


@irdl_attr_definition
class EthernetTypeAttr(WordAttribute[EthernetType]):
    """`#ttmetal.eth_type<sender>`."""

    name = "ttmetal.eth_type"


@dataclass(frozen=True)
class Cores:
    """A rectangle of cores: offset and size, in rows and columns."""

    offset: tuple[int, ...]
    size: tuple[int, ...]

    def __str__(self) -> str:
        return f"#ttmetal.core_range<{shape_text(self.offset)}, {shape_text(self.size)}>"


@irdl_attr_definition
class CoreRangeAttr(Data[Cores]):
    """`#ttmetal.core_range<0x0, 8x8>`: rows and columns."""

    name = "ttmetal.core_range"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Cores:
        with parser.in_angle_brackets():
            offset = parse_shape(parser)
            parser.parse_punctuation(",")
            return Cores(offset, parse_shape(parser))

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(str(self.data).removeprefix(f"#{self.name}"))

    def verify(self) -> None:
        if len(self.data.offset) != 2 or len(self.data.size) != 2 or 0 in self.data.size:
            raise VerifyException(f"{self.data} is no rectangle of cores")


@dataclass(frozen=True)
class BoundArgument:
    """An argument of a kernel with the program operand that it is bound to."""

    type: KernelArgumentType
    operand_index: int

    def __str__(self) -> str:
        return f"<{self.type.value}[{self.operand_index}]>"


def _parse_argument(parser: AttrParser) -> BoundArgument:
    attribute = parser.parse_optional_attribute()
    if isinstance(attribute, BoundArgumentAttr):
        return attribute.data
    with parser.in_angle_brackets():
        kind = KernelArgumentTypeAttr.parse_word(parser)
        with parser.in_square_brackets():
            return BoundArgument(kind, parser.parse_integer())


@irdl_attr_definition
class BoundArgumentAttr(Data[BoundArgument]):
    """`#ttmetal.kernel_arg<cb_port[0]>`."""

    name = "ttmetal.kernel_arg"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> BoundArgument:
        return _parse_argument(parser)

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(str(self.data))


@dataclass(frozen=True)
class BoundArguments:
    """Arguments of a kernel: common run-time, per-core run-time, and compile-time arguments."""

    common: tuple[BoundArgument, ...] = ()
    runtime: tuple[BoundArgument, ...] = ()
    compile_time: tuple[BoundArgument, ...] = ()

    def __str__(self) -> str:
        named = (
            ("common_rt_args", self.common),
            ("rt_args", self.runtime),
            ("ct_args", self.compile_time),
        )
        words = [f"{name} = [{', '.join(map(str, items))}]" for name, items in named if items]
        return f"#ttmetal.kernel_args<{' '.join(words)}>"

    @property
    def all(self) -> tuple[BoundArgument, ...]:
        """All arguments."""
        return self.common + self.runtime + self.compile_time


@irdl_attr_definition
class BoundArgumentsAttr(Data[BoundArguments]):
    """`#ttmetal.kernel_args<rt_args = [<buffer_address[0]>] ct_args = [<cb_port[0]>]>`."""

    name = "ttmetal.kernel_args"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> BoundArguments:
        found: dict[str, tuple[BoundArgument, ...]] = {}
        with parser.in_angle_brackets():
            while (name := parser.parse_optional_identifier()) is not None:
                parser.parse_punctuation("=")
                found[name] = tuple(
                    parser.parse_comma_separated_list(
                        parser.Delimiter.SQUARE, lambda: _parse_argument(parser)
                    )
                )
                parser.parse_optional_punctuation(",")
        if unknown := set(found) - {"common_rt_args", "rt_args", "ct_args"}:
            parser.raise_error(f"kernels have no '{min(unknown)}'")
        return BoundArguments(
            found.get("common_rt_args", ()), found.get("rt_args", ()), found.get("ct_args", ())
        )

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(str(self.data).removeprefix(f"#{self.name}"))


# Kernels of a program


@dataclass(frozen=True)
class KernelPlace:
    """Common fields of the kernels of a program: function, cores and arguments."""

    kernel: str
    cores: Cores
    arguments: BoundArguments

    def __str__(self) -> str:
        return f"@{self.kernel}, {self.cores}, {self.arguments}"


def _parse_place(parser: AttrParser) -> KernelPlace:
    symbol = parser.parse_attribute()
    if not isinstance(symbol, SymbolRefAttr):
        parser.raise_error("a kernel is named by its symbol")
    parser.parse_punctuation(",")
    cores = parser.parse_attribute()
    if not isinstance(cores, CoreRangeAttr):
        parser.raise_error("a kernel runs on a #ttmetal.core_range")
    parser.parse_punctuation(",")
    arguments = parser.parse_attribute()
    if not isinstance(arguments, BoundArgumentsAttr):
        parser.raise_error("a kernel has #ttmetal.kernel_args")
    parser.parse_punctuation(",")
    return KernelPlace(symbol.string_value(), cores.data, arguments.data)


@dataclass(frozen=True)
class ComputeKernel:
    """Configuration of a compute kernel."""

    place: KernelPlace
    fidelity: MathFidelity
    fp32_destination: bool
    full_sync: bool
    approximate: bool
    unpack_modes: tuple[UnpackToDestination, ...] = ()


@irdl_attr_definition
class ComputeConfigAttr(Data[ComputeKernel]):
    """Compute kernel: `#ttmetal.compute_config<@k, core_range, kernel_args, hifi4, ...>`.

    The last parameters are fp32_dest_acc_en, dst_full_sync_en, math_approx_mode and [unpack modes];
    texts of 2025 have no dst_full_sync_en.
    """

    name = "ttmetal.compute_config"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> ComputeKernel:
        with parser.in_angle_brackets():
            place = _parse_place(parser)
            fidelity = MathFidelityAttr.parse_word(parser)
            flags: list[bool] = []
            modes: tuple[UnpackToDestination, ...] = ()
            while parser.parse_optional_punctuation(",") is not None:
                flag = parser.parse_optional_boolean()
                if flag is None:
                    modes = tuple(
                        parser.parse_comma_separated_list(
                            parser.Delimiter.SQUARE,
                            lambda: UnpackToDestinationAttr.parse_word(parser),
                        )
                    )
                    break
                flags.append(flag)
        if len(flags) == 2:
            flags.insert(1, False)
        if len(flags) != 3:
            parser.raise_error("a compute kernel has three flags")
        return ComputeKernel(place, fidelity, flags[0], flags[1], flags[2], modes)

    def print_parameter(self, printer: Printer) -> None:
        data = self.data
        flags = (data.fp32_destination, data.full_sync, data.approximate)
        words = [
            str(data.place),
            data.fidelity.value,
            *("true" if flag else "false" for flag in flags),
            f"[{', '.join(mode.value for mode in data.unpack_modes)}]",
        ]
        printer.print_string(f"<{', '.join(words)}>")


@dataclass(frozen=True)
class DataMovementKernel:
    """Data movement kernel: its processor and its NoC."""

    place: KernelPlace
    noc: NocIndex
    processor: int
    fabric: int | None = None
    """Index in the program's fabricConnectionConfigs."""


@irdl_attr_definition
class NocConfigAttr(Data[DataMovementKernel]):
    """`#ttmetal.noc_config<@k, core_range, kernel_args, dm_core = 0, noc0>`.

    Texts of 2025 have no dm_core; NoC 0 belongs to processor 1 there.
    """

    name = "ttmetal.noc_config"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> DataMovementKernel:
        with parser.in_angle_brackets():
            place = _parse_place(parser)
            processor: int | None = None
            fabric: int | None = None
            if parser.parse_optional_keyword("dm_core") is not None:
                parser.parse_punctuation("=")
                processor = parser.parse_integer()
                parser.parse_punctuation(",")
            noc = NocIndexAttr.parse_word(parser)
            if parser.parse_optional_punctuation(",") is not None:
                parser.parse_keyword("fabric_config_index")
                parser.parse_punctuation("=")
                fabric = parser.parse_integer()
        if processor is None:
            processor = 1 if noc is NocIndex.NOC0 else 0
        return DataMovementKernel(place, noc, processor, fabric)

    def print_parameter(self, printer: Printer) -> None:
        data = self.data
        text = f"<{data.place}, dm_core = {data.processor}, {data.noc.value}"
        if data.fabric is not None:
            text += f", fabric_config_index = {data.fabric}"
        printer.print_string(f"{text}>")

    def verify(self) -> None:
        if self.data.processor not in (0, 1):
            raise VerifyException(
                f"a core has the data-movement processors 0 and 1, found {self.data.processor}"
            )


@dataclass(frozen=True)
class EthernetKernel:
    """Ethernet kernel: its end of a link and its NoC."""

    place: KernelPlace
    end: EthernetType
    noc: NocIndex


@irdl_attr_definition
class EthernetConfigAttr(Data[EthernetKernel]):
    """`#ttmetal.ethernet_config<@k, core_range, kernel_args, sender, noc0>`."""

    name = "ttmetal.ethernet_config"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> EthernetKernel:
        with parser.in_angle_brackets():
            place = _parse_place(parser)
            end = EthernetTypeAttr.parse_word(parser)
            parser.parse_punctuation(",")
            noc = NocIndexAttr.parse_word(parser)
        return EthernetKernel(place, end, noc)

    def print_parameter(self, printer: Printer) -> None:
        data = self.data
        printer.print_string(f"<{data.place}, {data.end.value}, {data.noc.value}>")


THREADS: dict[type[Attribute], ThreadType] = {
    ComputeConfigAttr: ThreadType.COMPUTE,
    NocConfigAttr: ThreadType.NOC,
    EthernetConfigAttr: ThreadType.ETHERNET,
}
"""Thread of the kernels of each kind of configuration."""


@irdl_attr_definition
class GlobalSemaphoreType(ParametrizedAttribute, TypeAttribute):
    """`!ttmetal.global_semaphore`: semaphore at the same address on several devices."""

    name = "ttmetal.global_semaphore"


@irdl_attr_definition
class ProgramSemaphoreType(ParametrizedAttribute, TypeAttribute):
    """`!ttmetal.local_semaphore`: semaphore on the cores of a program."""

    name = "ttmetal.local_semaphore"


TTMETAL_ATTRIBUTES: list[type[Attribute]] = [
    BoundArgumentAttr,
    BoundArgumentsAttr,
    ComputeConfigAttr,
    CoreRangeAttr,
    EthernetConfigAttr,
    EthernetTypeAttr,
    GlobalSemaphoreType,
    MathFidelityAttr,
    NocConfigAttr,
    ProgramSemaphoreType,
    UnpackToDestinationAttr,
]
