"""Types and attributes of the `ttkernel` dialect."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, BoolAttr, IntAttr, MemRefType, NoneAttr
from xdsl.ir import Attribute, Data, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.str_enum import StrEnum

from ttcodegen.dialects.core.attribute_syntax import WordAttribute
from ttcodegen.dialects.ttcore.tile import TileType


class ThreadType(StrEnum):
    """Processors of a core that run a kernel.

    In 2024, data movement kernels named one of the two NoCs, and so their processor.
    """

    NOC = "noc"
    NOC0 = "noc0"
    NOC1 = "noc1"
    COMPUTE = "compute"
    ETHERNET = "ethernet"

    @property
    def kind(self) -> ThreadType:
        """Returns the thread without its NoC, which determines the ops that a kernel may have."""
        return ThreadType.NOC if self in (ThreadType.NOC0, ThreadType.NOC1) else self


class ReduceType(StrEnum):
    """Kind of a reduction."""

    SUM = "reduce_sum"
    MAX = "reduce_max"
    AVG = "reduce_avg"
    MIN = "reduce_min"


class ReduceDim(StrEnum):
    """Direction of a reduction: along rows, columns, or both."""

    ROW = "reduce_dim_row"
    COL = "reduce_dim_col"
    SCALAR = "reduce_dim_scalar"
    NONE = "reduce_dim_none"


class BroadcastType(StrEnum):
    """Part of a tile that is broadcast to fill it."""

    NONE = "none"
    COL = "col"
    ROW = "row"
    SCALAR = "scalar"


class EltwiseBinaryType(StrEnum):
    """Operations of the matrix engine on two tiles."""

    ADD = "add"
    SUB = "sub"
    MUL = "mul"


class DestinationReuse(StrEnum):
    """Source operand as which a tile of the destination registers is reused."""

    DEST_TO_SRCA = "dest_to_srca"
    DEST_TO_SRCB = "dest_to_srcb"


class InputClamping(StrEnum):
    """Clamping of the exponential's input."""

    NONE = "none"
    CLAMP_TO_NEGATIVE = "clamp_to_negative"


class UnpackToDestination(StrEnum):
    """Unpacking to destination registers: as f32, or by default."""

    FP32 = "fp32"
    DEFAULT = "default"


class EthernetType(StrEnum):
    """End of a link that an ethernet core's kernel serves."""

    SENDER = "sender"
    RECEIVER = "receiver"


class KernelArgumentType(StrEnum):
    """Kind of a kernel argument."""

    CB_PORT = "cb_port"
    BUFFER_ADDRESS = "buffer_address"
    LOCAL_SEMAPHORE = "local_semaphore"
    NAMED_ARGUMENT = "named_argument"
    GLOBAL_SEMAPHORE = "global_semaphore"
    SCALAR = "scalar"
    TENSOR_ACCESSOR_ARGS = "tensor_accessor_args"


@irdl_attr_definition
class ThreadTypeAttr(WordAttribute[ThreadType]):
    """`#ttkernel.thread<compute>`: marks a function as a kernel, with the processors that run
    it."""

    name = "ttkernel.thread"
    older_words = {"tensix": "compute"}


@irdl_attr_definition
class ReduceTypeAttr(WordAttribute[ReduceType]):
    """`#ttkernel.reduce_type<reduce_sum>`."""

    name = "ttkernel.reduce_type"


@irdl_attr_definition
class ReduceDimAttr(WordAttribute[ReduceDim]):
    """`#ttkernel.reduce_dim<reduce_dim_row>`."""

    name = "ttkernel.reduce_dim"


@irdl_attr_definition
class BroadcastTypeAttr(WordAttribute[BroadcastType]):
    """`#ttkernel.bcast_type<row>`."""

    name = "ttkernel.bcast_type"


@irdl_attr_definition
class EltwiseBinaryTypeAttr(WordAttribute[EltwiseBinaryType]):
    """`#ttkernel.eltwise_binary_type<add>`."""

    name = "ttkernel.eltwise_binary_type"


@irdl_attr_definition
class DestinationReuseAttr(WordAttribute[DestinationReuse]):
    """`#ttkernel.reuse_type<dest_to_srca>`."""

    name = "ttkernel.reuse_type"


@irdl_attr_definition
class InputClampingAttr(WordAttribute[InputClamping]):
    """`#ttkernel.input_clamping<none>`."""

    name = "ttkernel.input_clamping"


@irdl_attr_definition
class KernelArgumentTypeAttr(WordAttribute[KernelArgumentType]):
    """`#ttkernel.arg_type<cb_port>`."""

    name = "ttkernel.arg_type"


_PORTS = {"cb_in": 0, "cb_dataflow": 8, "cb_out": 16, "cb_intermed": 24}
"""First port of each kind, as circular buffers were named in tt-metal in 2024."""


@dataclass(frozen=True)
class CircularBufferPlace:
    """Identity and memory of a circular buffer type of 2024."""

    port: str
    """Port as printed: a number, or a name such as `cb_in0`."""
    address: int
    """Byte address in the L1 of each core."""
    buffer: MemRefType[Attribute]
    sizes: tuple[int, ...] = ()
    """Page size in bytes, and number of buffers of the size of `buffer`."""

    @property
    def number(self) -> int | None:
        """Returns the index of the circular buffer, or None for an unknown name."""
        kind = self.port.rstrip("0123456789")
        digits = self.port[len(kind) :]
        first = _PORTS.get(kind) if kind else 0
        return None if first is None or not digits else first + int(digits)


@irdl_attr_definition
class CircularBufferPlaceAttr(Data[CircularBufferPlace]):
    """Additional parameters of circular buffer types in 2024; only used within such types."""

    name = "ttkernel.cb_place"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> CircularBufferPlace:
        parser.raise_error(f"#{cls.name} is part of !{CBType.name} only")

    def print_parameter(self, printer: Printer) -> None:
        place = self.data
        # Port numbers followed the address, port names preceded it.
        first, second = place.port, str(place.address)
        if place.port.isdecimal():
            first, second = second, first
        printer.print_string(f"<{first}, {second}, ")
        printer.print_attribute(place.buffer)
        for size in place.sizes:
            printer.print_string(f", {size}")
        printer.print_string(">")


@irdl_attr_definition
class CBType(ParametrizedAttribute, TypeAttribute):
    """`!ttkernel.cb<pages, element type>`: a circular buffer.

    In 2024 it was `cb<address, port, memref>`, then `cb<port, address, memref, page size, buffers>`
    with a named port. Both are parsed, and printed as they were; the memref has pages and element
    type.
    """

    name = "ttkernel.cb"
    pages: IntAttr
    element_type: Attribute
    place: Attribute
    """A `CircularBufferPlaceAttr` in types of 2024, else a NoneAttr."""

    def __init__(
        self,
        pages: int | IntAttr,
        element_type: Attribute,
        place: CircularBufferPlaceAttr | None = None,
    ) -> None:
        super().__init__(
            IntAttr(pages) if isinstance(pages, int) else pages,
            element_type,
            place or NoneAttr(),
        )

    @property
    def page_bytes(self) -> int:
        """Returns the bytes of a page; raises VerifyException unless pages are tiles."""
        if not isinstance(self.element_type, TileType):
            raise VerifyException(f"the pages of {self} are no tiles")
        return self.element_type.size

    def verify(self) -> None:
        if self.pages.data < 1:
            raise VerifyException(f"a circular buffer has a page at least, found {self.pages.data}")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        with parser.in_angle_brackets():
            numbers: list[int] = []
            name: str | None = None
            type_: Attribute | None = None
            while True:
                if (number := parser.parse_optional_integer()) is not None:
                    numbers.append(number)
                elif (found := parser.parse_optional_type()) is not None:
                    type_ = found
                else:
                    name = parser.parse_identifier()
                if parser.parse_optional_punctuation(",") is None:
                    break
            if isinstance(type_, MemRefType):
                buffer = cast("MemRefType[Attribute]", type_)
                pages = IntAttr(prod(buffer.get_shape()))
                return [pages, buffer.element_type, _place(parser, name, numbers, buffer)]
            if type_ is None or len(numbers) != 1 or name is not None:
                parser.raise_error("a circular buffer needs its pages and their element type")
            return [IntAttr(numbers[0]), type_, NoneAttr()]

    def print_parameters(self, printer: Printer) -> None:
        if isinstance(self.place, CircularBufferPlaceAttr):
            self.place.print_parameter(printer)
            return
        printer.print_string(f"<{self.pages.data}, ")
        printer.print_attribute(self.element_type)
        printer.print_string(">")


def _place(
    parser: AttrParser, name: str | None, numbers: list[int], buffer: MemRefType[Attribute]
) -> CircularBufferPlaceAttr:
    """Creates the parameters of a type of 2024 from its numbers in order."""
    known = 1 if name is not None else 2
    if len(numbers) < known or min(numbers) < 0:
        parser.raise_error("a circular buffer with a memref needs its port and its address")
    port = name if name is not None else str(numbers[1])
    sizes = tuple(numbers[known:])
    return CircularBufferPlaceAttr(CircularBufferPlace(port, numbers[0], buffer, sizes))


@irdl_attr_definition
class NocAddressType(ParametrizedAttribute, TypeAttribute):
    """`!ttkernel.noc_addr`: 64-bit address of a core or core range, and memory there."""

    name = "ttkernel.noc_addr"


@irdl_attr_definition
class L1AddressType(ParametrizedAttribute, TypeAttribute):
    """`!ttkernel.l1_addr`: byte address in the core's own L1."""

    name = "ttkernel.l1_addr"


@irdl_attr_definition
class L1PointerType(ParametrizedAttribute, TypeAttribute):
    """`!ttkernel.l1_addr_ptr<width>`: pointer to unsigned integers of `width` bits in L1."""

    name = "ttkernel.l1_addr_ptr"
    width: IntAttr

    def __init__(self, width: int | IntAttr = 32) -> None:
        super().__init__(IntAttr(width) if isinstance(width, int) else width)

    def verify(self) -> None:
        if self.width.data not in (8, 16, 32):
            raise VerifyException(f"no pointer has elements of {self.width.data} bits")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        if parser.parse_optional_punctuation("<") is None:
            return [IntAttr(32)]
        width = parser.parse_integer()
        parser.parse_punctuation(">")
        return [IntAttr(width)]

    def print_parameters(self, printer: Printer) -> None:
        if self.width.data != 32:
            printer.print_string(f"<{self.width.data}>")


@irdl_attr_definition
class LocalSemaphoreType(ParametrizedAttribute, TypeAttribute):
    """`!ttkernel.local_semaphore`: address of a semaphore in the core's own L1."""

    name = "ttkernel.local_semaphore"


@irdl_attr_definition
class SemaphoreType(ParametrizedAttribute, TypeAttribute):
    """`!ttkernel.semaphore<initial value>`: semaphore by its index, as in 2025."""

    name = "ttkernel.semaphore"
    initial_value: IntAttr | NoneAttr

    def __init__(self, initial_value: int | IntAttr | NoneAttr | None = None) -> None:
        value = NoneAttr() if initial_value is None else initial_value
        super().__init__(IntAttr(value) if isinstance(value, int) else value)

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        if parser.parse_optional_punctuation("<") is None:
            return [NoneAttr()]
        value = parser.parse_integer()
        parser.parse_punctuation(">")
        return [IntAttr(value)]

    def print_parameters(self, printer: Printer) -> None:
        if isinstance(self.initial_value, IntAttr):
            printer.print_string(f"<{self.initial_value.data}>")


@irdl_attr_definition
class TensorAccessorArgsType(ParametrizedAttribute, TypeAttribute):
    """`!ttkernel.TensorAccessorArgs`: positions of the kernel arguments that describe a buffer."""

    name = "ttkernel.TensorAccessorArgs"


@irdl_attr_definition
class TensorAccessorType(ParametrizedAttribute, TypeAttribute):
    """`!ttkernel.TensorAccessor`: mapping from pages of a buffer to addresses."""

    name = "ttkernel.TensorAccessor"


@irdl_attr_definition
class KeptTilesType(ParametrizedAttribute, TypeAttribute):
    """`!ttkernel.KeptTiles`: tiles kept in L1 and pushed to a circular buffer repeatedly."""

    name = "ttkernel.KeptTiles"


@irdl_attr_definition
class TileCacheType(ParametrizedAttribute, TypeAttribute):
    """`!ttkernel.TileCache`: cache of tiles for access to single elements."""

    name = "ttkernel.TileCache"


@irdl_attr_definition
class RowOrderType(ParametrizedAttribute, TypeAttribute):
    """`!ttkernel.RowOrder`: sorted indices of the elements of a row."""

    name = "ttkernel.RowOrder"


@irdl_attr_definition
class PageMappingType(ParametrizedAttribute, TypeAttribute):
    """`!ttkernel.PageMapping`: bank of a page, and its offset there."""

    name = "ttkernel.PageMapping"


@irdl_attr_definition
class DataFormatType(ParametrizedAttribute, TypeAttribute):
    """`!ttkernel.DataFormat`: data format of a circular buffer."""

    name = "ttkernel.DataFormat"


@irdl_attr_definition
class FabricConnectionManagerType(ParametrizedAttribute, TypeAttribute):
    """`!ttkernel.fabric_connection_manager`: fabric connections of a kernel."""

    name = "ttkernel.fabric_connection_manager"


@irdl_attr_definition
class MeshPositionType(ParametrizedAttribute, TypeAttribute):
    """`!ttkernel.mesh_position`: coordinates of a device in the mesh."""

    name = "ttkernel.mesh_position"


@irdl_attr_definition
class KernelArgumentAttr(ParametrizedAttribute):
    """`#ttkernel.arg<arg_type = cb_port, operand_index = 0>`: kernel argument for a program
    operand."""

    name = "ttkernel.arg"
    argument_type: KernelArgumentTypeAttr
    operand_index: IntAttr
    is_uniform: BoolAttr

    def __init__(
        self,
        argument_type: KernelArgumentType | KernelArgumentTypeAttr,
        operand_index: int | IntAttr,
        is_uniform: bool | BoolAttr = True,
    ) -> None:
        super().__init__(
            KernelArgumentTypeAttr(argument_type)
            if isinstance(argument_type, KernelArgumentType)
            else argument_type,
            IntAttr(operand_index) if isinstance(operand_index, int) else operand_index,
            BoolAttr.from_bool(is_uniform) if isinstance(is_uniform, bool) else is_uniform,
        )

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        with parser.in_angle_brackets():
            parser.parse_keyword("arg_type")
            parser.parse_punctuation("=")
            argument_type = KernelArgumentTypeAttr(KernelArgumentTypeAttr.parse_word(parser))
            parser.parse_punctuation(",")
            parser.parse_keyword("operand_index")
            parser.parse_punctuation("=")
            index = parser.parse_integer()
            uniform = True
            if parser.parse_optional_punctuation(",") is not None:
                parser.parse_keyword("is_uniform")
                parser.parse_punctuation("=")
                uniform = parser.parse_boolean()
        return [argument_type, IntAttr(index), BoolAttr.from_bool(uniform)]

    def print_parameters(self, printer: Printer) -> None:
        printer.print_string(
            f"<arg_type = {self.argument_type.data.value}, "
            f"operand_index = {self.operand_index.data}"
        )
        if not self.is_uniform.value.data:
            printer.print_string(", is_uniform = false")
        printer.print_string(">")


@irdl_attr_definition
class ArgumentSpecAttr(ParametrizedAttribute):
    """`#ttkernel.arg_spec<rt_args = [...] ct_args = [...]>`: all arguments of a kernel."""

    name = "ttkernel.arg_spec"
    runtime: ArrayAttr[KernelArgumentAttr]
    compile_time: ArrayAttr[KernelArgumentAttr]

    def __init__(
        self,
        runtime: Sequence[KernelArgumentAttr] | ArrayAttr[KernelArgumentAttr] = (),
        compile_time: Sequence[KernelArgumentAttr] | ArrayAttr[KernelArgumentAttr] = (),
    ) -> None:
        super().__init__(
            runtime if isinstance(runtime, ArrayAttr) else ArrayAttr(runtime),
            compile_time if isinstance(compile_time, ArrayAttr) else ArrayAttr(compile_time),
        )

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        lists: dict[str, ArrayAttr[Attribute]] = {}
        with parser.in_angle_brackets():
            for name in ("rt_args", "ct_args"):
                if parser.parse_optional_keyword(name) is None:
                    continue
                parser.parse_punctuation("=")
                lists[name] = ArrayAttr(
                    parser.parse_comma_separated_list(
                        parser.Delimiter.SQUARE, lambda: _parse_argument(parser)
                    )
                )
        return [lists.get("rt_args", ArrayAttr(())), lists.get("ct_args", ArrayAttr(()))]

    def print_parameters(self, printer: Printer) -> None:
        parts = (("rt_args", self.runtime), ("ct_args", self.compile_time))
        printer.print_string("<")
        for position, (name, arguments) in enumerate(p for p in parts if p[1].data):
            printer.print_string(f"{' ' if position else ''}{name} = [")
            printer.print_list(arguments.data, lambda argument: argument.print_parameters(printer))
            printer.print_string("]")
        printer.print_string(">")


def _parse_argument(parser: AttrParser) -> Attribute:
    """Parses an argument with or without its attribute name."""
    attribute = parser.parse_optional_attribute()
    return (
        KernelArgumentAttr.new(KernelArgumentAttr.parse_parameters(parser))
        if (attribute is None)
        else attribute
    )


TTKERNEL_ATTRIBUTES: list[type[Attribute]] = [
    ArgumentSpecAttr,
    BroadcastTypeAttr,
    CBType,
    CircularBufferPlaceAttr,
    DataFormatType,
    DestinationReuseAttr,
    EltwiseBinaryTypeAttr,
    FabricConnectionManagerType,
    InputClampingAttr,
    KernelArgumentAttr,
    KernelArgumentTypeAttr,
    KeptTilesType,
    L1AddressType,
    L1PointerType,
    LocalSemaphoreType,
    MeshPositionType,
    NocAddressType,
    PageMappingType,
    ReduceDimAttr,
    ReduceTypeAttr,
    RowOrderType,
    SemaphoreType,
    TensorAccessorArgsType,
    TensorAccessorType,
    ThreadTypeAttr,
    TileCacheType,
]
