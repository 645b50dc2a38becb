"""The layout of a device or host tensor: data type, page layout, memory."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from typing import cast

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Data, SSAValue
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from ttcodegen.dialects.datatypes import DataType, element_of, normalized_data_type
from ttcodegen.dialects.memory import Layout, Memory

TILE_SIDE = 32
MUCH_PADDING = 1 << 20
"""Elements of padding from which on rows are preferred to tiles, if the tensor has fewer itself."""
GRID_WIDTH = 8
"""The cores of one row of the grid that shards are laid out on, if the device has as many."""


@dataclass(frozen=True)
class Shards:
    """The rows of the 2D view of a tensor, divided among cores in equal parts."""

    cores: int
    shape: tuple[int, int]
    """Height and width of each core's part in elements, with the padding of its tiles."""
    grid_width: int = GRID_WIDTH
    """The cores of a row of the grid that parts are dealt out to, row by row."""

    def core_ranges(self) -> list[tuple[tuple[int, int], tuple[int, int]]]:
        """The rectangles of cores, by first and last core (column, row): whole rows and a rest."""
        rows, rest = divmod(self.cores, self.grid_width)
        whole = [((0, 0), (self.grid_width - 1, rows - 1))] if rows else []
        return whole + ([((0, rows), (rest - 1, rows))] if rest else [])


@dataclass(frozen=True)
class TensorPlacement:
    """How and where a tensor of one logical shape lies."""

    shape: tuple[int, ...]
    data_type: DataType
    layout: Layout = Layout.TILE
    buffer_type: str = "dram"
    """dram, l1 or system_memory (the host)."""
    memory_layout: str | None = "interleaved"
    """interleaved, height_sharded, width_sharded, block_sharded; None on the host."""
    shards: Shards | None = None
    """Of a sharded tensor, who has what."""

    @property
    def memory(self) -> Memory:
        return Memory.HOST if self.buffer_type == "system_memory" else Memory.DEVICE

    def with_(self, **changes: object) -> TensorPlacement:
        """A copy with some fields replaced."""
        return replace(self, **changes)  # pyright: ignore[reportArgumentType]

    def on_host(self) -> TensorPlacement:
        """The same tensor in host memory."""
        return self.with_(buffer_type="system_memory", memory_layout=None, shards=None)

    def on_device(self) -> TensorPlacement:
        """The same tensor in interleaved DRAM, unless it is on the device already."""
        if self.memory is Memory.DEVICE:
            return self
        return self.with_(buffer_type="dram", memory_layout="interleaved")

    def height_sharded(self, shards: Shards) -> TensorPlacement:
        """The same tensor in L1, its rows divided among cores."""
        return self.with_(buffer_type="l1", memory_layout="height_sharded", shards=shards)

    def tile_padding(self) -> int:
        """How many elements of padding the tensor has in tiles."""
        height, width = self.with_(layout=Layout.TILE).collapsed_shape()
        return height * width * TILE_SIDE * TILE_SIDE - prod(self.shape)

    @property
    def is_padding_in_tiles(self) -> bool:
        """Whether the tensor would be little but padding in tiles, and much of that."""
        return self.tile_padding() > max(MUCH_PADDING, prod(self.shape))

    def collapsed_shape(self) -> tuple[int, int]:
        """Height and width in elements (in tiles for the tile layout) of the 2D view of the tensor.

        All dimensions but the last are collapsed into the height after padding, as the reference
        system's default `collapse_dims` does.
        """
        height = prod(self.shape[:-1]) if len(self.shape) > 1 else 1
        width = self.shape[-1] if self.shape else 1
        if self.layout is Layout.ROW_MAJOR:
            return height, width
        if len(self.shape) > 2:
            rows = -(-self.shape[-2] // TILE_SIDE)
            return prod(self.shape[:-2]) * rows, -(-width // TILE_SIDE)
        return -(-height // TILE_SIDE), -(-width // TILE_SIDE)


@irdl_attr_definition
class TTNNLayoutAttr(Data[TensorPlacement]):
    """`#ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<...>, <interleaved>>`."""

    name = "ttnn.ttnn_layout"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> TensorPlacement:
        """The placement of a tensor without padding; the type that it belongs to tells the shape.

        The text is taken in one piece: layouts are most of what a printed module consists of.
        """
        from ttcodegen.dialects.layout_text import LayoutTextError, parse_layout_text

        try:
            placement, end = parse_layout_text(parser.lexer.input.content, parser.pos)
        except LayoutTextError as error:
            parser.raise_error(str(error))
        parser._resume_from(end)  # pyright: ignore[reportPrivateUsage]
        return placement

    def print_parameter(self, printer: Printer) -> None:
        from ttcodegen.dialects.layout_text import layout_text

        printer.print_string(layout_text(self.data))


def placement_of(value: SSAValue | Attribute) -> TensorPlacement:
    """Where and how a TTNN tensor lies; only valid after layouts were assigned."""
    type_ = value.type if isinstance(value, SSAValue) else value
    assert isinstance(type_, TensorType), type_
    assert isinstance(type_.encoding, TTNNLayoutAttr), type_
    return type_.encoding.data


def declared_data_type(value: SSAValue | Attribute) -> DataType:
    """The device data type that a tensor's element type stands for."""
    type_ = value.type if isinstance(value, SSAValue) else value
    assert isinstance(type_, TensorType)
    if isinstance(type_.encoding, TTNNLayoutAttr):
        return type_.encoding.data.data_type
    data_type = normalized_data_type(element_of(cast("Attribute", type_)))
    assert data_type is not None, type_
    return data_type


def placed_type(placement: TensorPlacement) -> TensorType[Attribute]:
    """The tensor type of that shape, data type and placement."""
    return TensorType(placement.data_type.element_type, placement.shape, TTNNLayoutAttr(placement))
