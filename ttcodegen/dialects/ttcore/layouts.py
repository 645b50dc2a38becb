"""Grids, layouts of tensors, and layouts of memrefs: attributes of the `ttcore` dialect.

`#ttcore.metal_layout` has two forms. That of the tensor layout specification has an affine map from
the dimensions of the tensor to those of the grid, the grid, and the memref of a shard:

    #ttcore.metal_layout<(d0, d1, d2) -> (d0 * 64 + d1, d2), undef, <3x2>,
        memref<64x64xf32, #ttcore.memory_space<l1>>>

Since mid-2025 the shape of the tensor type itself consists of grid and shard, and the layout has
the logical shape, its alignment and the collapsed dimensions:

    #ttcore.metal_layout<logical_shape = 3x64x128, dim_alignments = 1x32x32,
        collapsed_intervals = dense<[[0, -1]]> : tensor<1x2xi64>, l1, sharded>

`ttcodegen.layout` computes with both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    IntAttr,
    MemRefLayoutAttr,
    MemRefType,
    TensorType,
    i64,
)
from xdsl.ir import Attribute, Data, ParametrizedAttribute
from xdsl.ir.affine import AffineExpr, AffineMap
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.str_enum import StrEnum

from ttcodegen.dialects.core.attribute_syntax import affine_map_text, parse_affine_map
from ttcodegen.dialects.ttcore.tile import (
    BufferAccess,
    BufferAccessAttr,
    MemorySpace,
    MemorySpaceAttr,
    OutOfBounds,
    OutOfBoundsAttr,
    StreamModeAttr,
    TensorMemoryLayout,
    TensorMemoryLayoutAttr,
)

if TYPE_CHECKING:
    from typing import Any

Shape = tuple[int, ...]


def shape_text(shape: Sequence[int]) -> str:
    """`2x3x64`."""
    return "x".join(map(str, shape))


def parse_shape(parser: AttrParser) -> Shape:
    """Parses `2x3x64`; empty if there is no number."""
    return tuple(parser.parse_dimension_list())


@dataclass(frozen=True)
class Grid:
    """A grid of cores or shards; the maps lead to (chip, row, column) and back."""

    shape: Shape
    mapping: AffineMap | None = None
    inverse: AffineMap | None = None

    def __str__(self) -> str:
        text = shape_text(self.shape)
        if self.mapping is None:
            return f"<{text}>"
        mapping = affine_map_text(self.mapping)
        if self.inverse is None:
            return f"<{text}, {mapping}>"
        inverse = affine_map_text(self.inverse)
        return f"<{text}, virt_to_physical_map = {mapping}, physical_to_virt_map = {inverse}>"


@irdl_attr_definition
class GridAttr(Data[Grid]):
    """`#ttcore.grid<8x8>`, `#ttcore.grid<8x8, (d0, d1) -> (0, d0, d1)>`."""

    name = "ttcore.grid"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Grid:
        with parser.in_angle_brackets():
            shape = parse_shape(parser)
            if parser.parse_optional_punctuation(",") is None:
                return Grid(shape)
            if parser.parse_optional_keyword("virt_to_physical_map") is None:
                return Grid(shape, parse_affine_map(parser))
            parser.parse_punctuation("=")
            mapping = parse_affine_map(parser)
            parser.parse_punctuation(",")
            parser.parse_keyword("physical_to_virt_map")
            parser.parse_punctuation("=")
            return Grid(shape, mapping, parse_affine_map(parser))

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(str(self.data))

    def verify(self) -> None:
        if self.data.mapping is not None and self.data.mapping.num_dims != len(self.data.shape):
            raise VerifyException(
                f"the map of a grid of rank {len(self.data.shape)} has "
                f"{self.data.mapping.num_dims} dimensions"
            )


# Layouts of tensors


@dataclass(frozen=True)
class LinearLayout:
    """Layout of the tensor layout specification; the memref is one shard."""

    linear: AffineMap
    out_of_bounds: OutOfBounds
    grid: Grid
    memref: MemRefType[Attribute]
    memory_layout: TensorMemoryLayout | None = None


@dataclass(frozen=True)
class AlignedLayout:
    """Layout of tensors whose type has the shape `grid + shard`."""

    logical_shape: Shape
    dim_alignments: Shape
    collapsed_intervals: tuple[tuple[int, int], ...]
    memory_space: MemorySpace
    memory_layout: TensorMemoryLayout | None = None
    out_of_bounds: OutOfBounds | None = None


@irdl_attr_definition
class MetalLayoutAttr(Data[LinearLayout | AlignedLayout]):
    """`#ttcore.metal_layout<...>`, the encoding of tensors."""

    name = "ttcore.metal_layout"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> LinearLayout | AlignedLayout:
        with parser.in_angle_brackets():
            if parser.parse_optional_keyword("logical_shape") is not None:
                return _parse_aligned(parser)
            return _parse_linear(parser)

    def print_parameter(self, printer: Printer) -> None:
        layout = self.data
        if isinstance(layout, AlignedLayout):
            _print_aligned(printer, layout)
            return
        printer.print_string(
            f"<{affine_map_text(layout.linear)}, {layout.out_of_bounds.value}, {layout.grid}, "
        )
        printer.print_attribute(layout.memref)
        if layout.memory_layout is not None:
            printer.print_string(f", {layout.memory_layout.value}")
        printer.print_string(">")

    def verify(self) -> None:
        layout = self.data
        if isinstance(layout, AlignedLayout):
            if len(layout.dim_alignments) != len(layout.logical_shape):
                raise VerifyException(
                    f"a layout of rank {len(layout.logical_shape)} has "
                    f"{len(layout.dim_alignments)} alignments"
                )
            if min(layout.dim_alignments, default=1) < 1:
                raise VerifyException(
                    f"alignments are positive, found {shape_text(layout.dim_alignments)}"
                )
            _verify_intervals(layout.collapsed_intervals, len(layout.logical_shape))
            return
        ranks = (
            len(layout.linear.results),
            len(layout.grid.shape),
            len(layout.memref.get_shape()),
        )
        if len(set(ranks)) != 1:
            raise VerifyException(
                f"map, grid and memref of a layout have the same rank, found {ranks[0]}, "
                f"{ranks[1]} and {ranks[2]}"
            )


def _verify_intervals(intervals: Sequence[tuple[int, int]], rank: int) -> None:
    if rank == 0:
        return
    for given in intervals:
        first, end = (bound + rank if bound < 0 else bound for bound in given)
        if not (0 <= first < rank and first <= end <= rank):
            raise VerifyException(
                f"collapsed intervals of a layout of rank {rank} lie in its dimensions, found "
                f"{given[0]} to {given[1]}"
            )


def _parse_linear(parser: AttrParser) -> LinearLayout:
    strides = parse_shape(parser)
    linear = _map_of_strides(strides) if strides else parse_affine_map(parser)
    parser.parse_punctuation(",")
    out_of_bounds = OutOfBoundsAttr.parse_word(parser)
    parser.parse_punctuation(",")
    grid = GridAttr.parse_parameter(parser)
    parser.parse_punctuation(",")
    position = parser.pos
    memref = parser.parse_type()
    if not isinstance(memref, MemRefType):
        parser.raise_error("a layout has the memref of a shard", position)
    memory_layout = None
    if parser.parse_optional_punctuation(",") is not None:
        memory_layout = TensorMemoryLayoutAttr.parse_word(parser)
    return LinearLayout(
        linear, out_of_bounds, grid, cast("MemRefType[Attribute]", memref), memory_layout
    )


def _map_of_strides(strides: Shape) -> AffineMap:
    """Returns the map of the oldest syntax, volume and strides: all dimensions but the last are
    rows."""
    rank = len(strides) - 1
    width = strides[-2] if rank > 0 else 1
    row: AffineExpr = AffineExpr.constant(0)
    for position in range(rank - 1):
        factor = strides[position + 1] // width
        dim = AffineExpr.dimension(position)
        term = dim if factor == 1 else dim * factor
        row = term if position == 0 else row + term
    return AffineMap(rank, 0, (row, AffineExpr.dimension(rank - 1)))


def _parse_aligned(parser: AttrParser) -> AlignedLayout:
    parser.parse_punctuation("=")
    logical_shape = parse_shape(parser)
    for word in (",", "dim_alignments", "="):
        parser.parse_characters(word)
    alignments = parse_shape(parser)
    for word in (",", "collapsed_intervals", "="):
        parser.parse_characters(word)
    intervals = _intervals(parser)
    out_of_bounds: OutOfBounds | None = None
    memory_space = MemorySpace.SYSTEM
    memory_layout: TensorMemoryLayout | None = None
    while parser.parse_optional_punctuation(",") is not None:
        position = parser.pos
        word = parser.parse_identifier()
        if word == "index_map":  # a view of device memory, autumn of 2025
            parser.parse_punctuation("=")
            parser.parse_attribute()
        elif word in _words(OutOfBounds):
            out_of_bounds = OutOfBounds(word)
        elif word in _words(MemorySpace):
            memory_space = MemorySpace(word)
        elif word in _words(TensorMemoryLayout):
            memory_layout = TensorMemoryLayout(word)
        else:
            parser.raise_error(f"'{word}' is no word of a layout", position)
    return AlignedLayout(
        logical_shape, alignments, intervals, memory_space, memory_layout, out_of_bounds
    )


def _words(enumeration: type[StrEnum]) -> set[str]:
    return {member.value for member in enumeration}


def _intervals(parser: AttrParser) -> tuple[tuple[int, int], ...]:
    attribute = parser.parse_attribute()
    if not isinstance(attribute, DenseIntOrFPElementsAttr):
        parser.raise_error("collapsed intervals are a dense<...> of pairs")
    numbers = [int(n) for n in cast("Any", attribute).get_values()]
    shape = attribute.get_shape()
    if len(shape) != 2 or shape[1] != 2:
        raise VerifyException(
            f"collapsed intervals are pairs, found a tensor of {shape_text(shape)}"
        )
    if len(numbers) == 1:  # a splat
        numbers *= 2 * shape[0]
    return tuple(zip(numbers[::2], numbers[1::2], strict=True))


def _print_aligned(printer: Printer, layout: AlignedLayout) -> None:
    printer.print_string(
        f"<logical_shape = {shape_text(layout.logical_shape)}, "
        f"dim_alignments = {shape_text(layout.dim_alignments)}, collapsed_intervals = "
    )
    flat = [bound for interval in layout.collapsed_intervals for bound in interval]
    type_ = TensorType(i64, [len(layout.collapsed_intervals), 2])
    printer.print_attribute(DenseIntOrFPElementsAttr.from_list(type_, flat))
    if layout.out_of_bounds is not None:
        printer.print_string(f", {layout.out_of_bounds.value}")
    printer.print_string(f", {layout.memory_space.value}")
    if layout.memory_layout is not None:
        printer.print_string(f", {layout.memory_layout.value}")
    printer.print_string(">")


# Layouts of memrefs


class StridedBufferLayout(MemRefLayoutAttr):
    """Base of memref layouts that define strides in bytes."""

    def strides_in_bytes(self) -> Shape:
        """Returns the strides of a shard's dimensions in bytes."""
        raise NotImplementedError

    def get_affine_map(self) -> AffineMap:
        """Returns the map from an index in a shard to its byte offset."""
        strides = self.strides_in_bytes()
        total: AffineExpr = AffineExpr.constant(0)
        for position, stride in enumerate(strides):
            term = AffineExpr.dimension(position) * stride
            total = term if position == 0 else total + term
        return AffineMap(len(strides), 0, (total,))


class _BufferedLayout(Data[tuple[Shape, int]], StridedBufferLayout):
    """Base of memref layouts with strides in bytes and a number of buffers."""

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[Shape, int]:
        with parser.in_angle_brackets():
            strides = parse_shape(parser)
            buffers = 1
            if parser.parse_optional_punctuation(",") is not None:
                buffers = parser.parse_integer()
        return strides, buffers

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(f"<{shape_text(self.data[0])}, {self.data[1]}>")

    def strides_in_bytes(self) -> Shape:
        return self.data[0]

    def verify(self) -> None:
        if self.data[1] < 1:
            raise VerifyException(f"a layout has one buffer at least, found {self.data[1]}")


@irdl_attr_definition
class ShardLayoutAttr(_BufferedLayout):
    """`#ttcore.shard<8192x4096, 1>`: strides of a shard in bytes, and number of buffers.

    The memref has the shape `grid + shard`, so that half of its dimensions are cores.
    """

    name = "ttcore.shard"


@irdl_attr_definition
class CBLayoutAttr(_BufferedLayout):
    """`#ttcore.cb_layout<8192x4096, 2>`: strides of a circular buffer in bytes, and number of
    buffers."""

    name = "ttcore.cb_layout"


@irdl_attr_definition
class InterleavedLayoutAttr(Data[Shape], StridedBufferLayout):
    """`#ttcore.interleaved<8192x4096>`: pages interleaved over banks; strides in bytes."""

    name = "ttcore.interleaved"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Shape:
        with parser.in_angle_brackets():
            return parse_shape(parser)

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(f"<{shape_text(self.data)}>")

    def strides_in_bytes(self) -> Shape:
        return self.data


@irdl_attr_definition
class ViewLayoutAttr(Data[int | AffineMap], MemRefLayoutAttr):
    """`#ttcore.view<4>`, `#ttcore.view<(d0, d1) -> (d1, d0)>`: a view of a memref."""

    name = "ttcore.view"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> int | AffineMap:
        with parser.in_angle_brackets():
            if parser.parse_optional_keyword("map") is not None:
                with parser.in_parens():
                    return parser.parse_integer()
            rank = parser.parse_optional_integer()
            return parse_affine_map(parser) if rank is None else rank

    def print_parameter(self, printer: Printer) -> None:
        data = self.data
        printer.print_string(f"<{data if isinstance(data, int) else affine_map_text(data)}>")

    def get_affine_map(self) -> AffineMap:
        return AffineMap.identity(self.data) if isinstance(self.data, int) else self.data


@dataclass(frozen=True)
class HostStrides:
    """Offsets of the elements of a tensor in a padded host buffer."""

    logical_shape: Shape
    host_strides: Shape
    host_volume: int
    mesh: str | None = None


@irdl_attr_definition
class HostLayoutAttr(Data[HostStrides], StridedBufferLayout):
    """`#ttcore.host_layout<logical_shape = 53x63, host_strides = 64x1, host_volume = 4096>`."""

    name = "ttcore.host_layout"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> HostStrides:
        with parser.in_angle_brackets():
            shapes: list[Shape] = []
            for name in ("logical_shape", "host_strides"):
                parser.parse_keyword(name)
                parser.parse_punctuation("=")
                shapes.append(parse_shape(parser))
                parser.parse_punctuation(",")
            parser.parse_keyword("host_volume")
            parser.parse_punctuation("=")
            volume = parser.parse_integer()
            mesh: str | None = None
            if parser.parse_optional_punctuation(",") is not None:
                with parser.in_angle_brackets():
                    mesh = parser.parse_str_literal()
        return HostStrides(shapes[0], shapes[1], volume, mesh)

    def print_parameter(self, printer: Printer) -> None:
        data = self.data
        printer.print_string(
            f"<logical_shape = {shape_text(data.logical_shape)}, "
            f"host_strides = {shape_text(data.host_strides)}, host_volume = {data.host_volume}"
        )
        if data.mesh is not None:
            printer.print_string(", <")
            printer.print_string_literal(data.mesh)
            printer.print_string(">")
        printer.print_string(">")

    def strides_in_bytes(self) -> Shape:
        raise VerifyException("a host layout counts elements, not bytes")

    def get_affine_map(self) -> AffineMap:
        """Returns the map from an index in the tensor to an element of the buffer."""
        total: AffineExpr = AffineExpr.constant(0)
        for position, stride in enumerate(self.data.host_strides):
            total = total + AffineExpr.dimension(position) * stride
        return AffineMap(len(self.data.host_strides), 0, (total,))


# Buffers and allocations of 2024 and 2025


@irdl_attr_definition
class BufferAttr(ParametrizedAttribute):
    """`#ttcore.buffer<memref<64x128xf32, #l1>, alias>`: an operand as seen by a region."""

    name = "ttcore.buffer"
    memref: MemRefType[Attribute]
    access: BufferAccessAttr

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        with parser.in_angle_brackets():
            memref = parser.parse_type()
            parser.parse_punctuation(",")
            access = BufferAccessAttr.parse_word(parser)
        return [memref, BufferAccessAttr(access)]

    def print_parameters(self, printer: Printer) -> None:
        printer.print_string("<")
        printer.print_attribute(self.memref)
        printer.print_string(f", {self.access.data.value}>")


@irdl_attr_definition
class ArgumentAllocationAttr(ParametrizedAttribute):
    """`#ttcore.arg_alloc<address, size, memory space>`: placement of an argument, in bytes."""

    name = "ttcore.arg_alloc"
    address: IntAttr
    size: IntAttr
    memory_space: MemorySpaceAttr

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        with parser.in_angle_brackets():
            address = parser.parse_integer()
            parser.parse_punctuation(",")
            size = parser.parse_integer()
            parser.parse_punctuation(",")
            space = MemorySpaceAttr(MemorySpaceAttr.parse_word(parser))
        return [IntAttr(address), IntAttr(size), space]

    def print_parameters(self, printer: Printer) -> None:
        space = self.memory_space.data.value
        printer.print_string(f"<{self.address.data}, {self.size.data}, {space}>")


@dataclass(frozen=True)
class Stream:
    """Source of a buffer: through a map, as an alias or a stream, with a number of buffers."""

    affine_map: AffineMap
    mode: BufferAccess
    buffers: int


@irdl_attr_definition
class StreamLayoutAttr(Data[Stream], MemRefLayoutAttr):
    """`#ttcore.stream<(d0, d1) -> (d0, d1), alias, 1>`."""

    name = "ttcore.stream"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Stream:
        with parser.in_angle_brackets():
            affine_map = parse_affine_map(parser)
            parser.parse_punctuation(",")
            mode = StreamModeAttr.parse_word(parser)
            buffers = 1
            if parser.parse_optional_punctuation(",") is not None:
                buffers = parser.parse_integer()
        return Stream(affine_map, mode, buffers)

    def print_parameter(self, printer: Printer) -> None:
        stream = self.data
        printer.print_string(
            f"<{affine_map_text(stream.affine_map)}, {stream.mode.value}, {stream.buffers}>"
        )

    def get_affine_map(self) -> AffineMap:
        return self.data.affine_map


LAYOUT_ATTRIBUTES: list[type[Attribute]] = [
    ArgumentAllocationAttr,
    BufferAttr,
    CBLayoutAttr,
    GridAttr,
    HostLayoutAttr,
    InterleavedLayoutAttr,
    MetalLayoutAttr,
    ShardLayoutAttr,
    StreamLayoutAttr,
    ViewLayoutAttr,
]
