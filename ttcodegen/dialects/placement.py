"""The layout of a device or host tensor: data type, page layout, memory; and its text.

    #ttnn.ttnn_layout<(d0, d1, d2) -> (d0 * 32 + d1, d2), <1x1>,
     memref<4x2x!ttcore.tile<32x32, bf16>, #ttnn.buffer_type<dram>>, <interleaved>>

The text says how many rows and columns (or tiles) a core has, not how many of them are padding: a
layout that is read has the padded shape until it becomes the encoding of a tensor type.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod
from typing import cast

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Data, SSAValue
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from ttcodegen.dialects.datatypes import DataType, element_of, normalized_data_type
from ttcodegen.dialects.memory import Layout, Memory
from ttcodegen.dialects.tile import TILE_SIDE

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
        """A copy with some fields replaced, itself if they are what they were."""
        if all([getattr(self, name) == value for name, value in changes.items()]):
            return self
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


# The text of a layout

_ELEMENT = r"(?:!\w+\.tile<\s*(?P<tile>\d+\s*x\s*\d+)\s*,\s*(?P<in_tile>\w+)\s*>|(?P<scalar>\w+))"
_TEXT = re.compile(
    r"<\s*\((?P<dims>[^()]*)\)\s*->\s*\((?P<map>[^()]*)\)\s*,"
    r"\s*<\s*(?P<rows>\d+)\s*x\s*(?P<columns>\d+)[^<>]*>\s*,"
    rf"\s*memref<\s*(?P<height>\d+)x(?P<width>\d+)x{_ELEMENT}\s*,"
    r"\s*#(?P<space>\w+(?:\.\w+<\s*\w+\s*>)?)\s*>"
    r"\s*(?:,\s*<?\s*(?P<memory>[a-z_]+)\s*>?\s*)?"
    r"(?:,\s*core_ranges\s*=\s*#?[\w.]*<\s*\[(?P<ranges>[^\]]*)\]\s*>\s*)?>"
)
_SPACES = {"dram": "dram", "l1": "l1", "system_memory": "system_memory", "system": "system_memory"}
_SCALARS = {
    **{data_type.mlir: data_type for data_type in DataType},
    **{str(d.element_type): d for d in DataType if not d.is_block_float},
}
_TERM = re.compile(r"d(\d+)(?:\s*\*\s*(\d+))?")


class LayoutTextError(ValueError):
    """A layout is malformed, or one that the compiler has no placement for."""


def layout_text(placement: TensorPlacement) -> str:
    """The text of a layout, with its brackets."""
    rank = len(placement.shape)
    dims = [f"d{i}" for i in range(rank)]
    height, width = placement.collapsed_shape()
    cores = 1
    if placement.shards is not None:
        cores = placement.shards.cores
        height, width = placement.shards.shape
        if placement.layout is Layout.TILE:
            height, width = height // TILE_SIDE, width // TILE_SIDE
    if placement.layout is Layout.TILE:
        element = f"!ttcore.tile<{TILE_SIDE}x{TILE_SIDE}, {placement.data_type.mlir}>"
    else:
        element = str(placement.data_type.element_type)
    text = f"<({', '.join(dims)}) -> ({_collapsed_map(placement, dims)}), <{cores}x1>, "
    text += f"memref<{height}x{width}x{element}, #ttnn.buffer_type<{placement.buffer_type}>>"
    if placement.memory_layout is not None:
        text += f", <{placement.memory_layout}>"
    if placement.shards is not None:
        ranges = ", ".join(
            f"#ttnn.core_range<({first[0]}, {first[1]}), ({last[0]}, {last[1]})>"
            for first, last in placement.shards.core_ranges()
        )
        text += f", core_ranges = #ttnn.core_range_set<[{ranges}]>"
    return text + ">"


def _collapsed_map(placement: TensorPlacement, dims: list[str]) -> str:
    shape = placement.shape
    if len(dims) <= 2:
        return ", ".join(dims if len(dims) == 2 else ["0", *(dims or ["0"])])
    padded = list(shape)
    if placement.layout is Layout.TILE:
        padded[-2] = -(-padded[-2] // TILE_SIDE) * TILE_SIDE
    terms = [
        f"{dim} * {stride}" if (stride := prod(padded[i + 1 : -1])) != 1 else dim
        for i, dim in enumerate(dims[:-1])
    ]
    return f"{' + '.join(terms)}, {dims[-1]}"


def parse_layout_text(text: str, start: int = 0) -> tuple[TensorPlacement, int]:
    """The placement that stands at `start`, and where its text ends.

    The shape is the padded one: that of a tensor that has this layout and no padding.

    Raises:
        LayoutTextError: if no layout stands there, or one without a placement.
    """
    match = _TEXT.match(text, start)
    if match is None:
        raise LayoutTextError("the layout is malformed, or of a form that is not supported")
    memory = match["memory"]
    buffer_type = _buffer_type(match["space"], text)
    if memory == "none_layout" or buffer_type == "system_memory":
        memory = None
    if memory not in (None, "interleaved", "height_sharded"):
        raise LayoutTextError(f"tensors that are {memory} are not supported")
    if memory is None and buffer_type != "system_memory":
        raise LayoutTextError("a layout on the device says how the tensor is divided among banks")
    layout = Layout.TILE if match["tile"] else Layout.ROW_MAJOR
    if match["tile"] and re.sub(r"\s", "", match["tile"]) != f"{TILE_SIDE}x{TILE_SIDE}":
        raise LayoutTextError(f"tiles of {match['tile']} are not supported")
    data_type = _SCALARS.get(match["in_tile"] or match["scalar"])
    if data_type is None:
        raise LayoutTextError(f"there is no data type '{match['in_tile'] or match['scalar']}'")
    side = TILE_SIDE if layout is Layout.TILE else 1
    height, width = int(match["height"]) * side, int(match["width"]) * side
    shards = None
    if memory == "height_sharded":
        if match["columns"] != "1":
            raise LayoutTextError("rows are sharded over a grid of one column")
        shards = _shards(int(match["rows"]), (height, width), match["ranges"])
        height *= shards.cores
    shape = _shape(match["dims"], match["map"], height, width)
    placement = TensorPlacement(shape, data_type, layout, buffer_type, memory, shards)
    return placement, match.end()


def _shards(cores: int, shape: tuple[int, int], ranges: str | None) -> Shards:
    """Shards that lie on these ranges of cores, by default on those that all devices have."""
    shards = Shards(cores, shape)
    if ranges is None:
        return shards
    numbers = [int(number) for number in re.findall(r"\d+", ranges)]
    corners = list(zip(numbers[0::2], numbers[1::2], strict=False))
    found = list(zip(corners[0::2], corners[1::2], strict=False))
    if len(found) > 1:
        # The first range are whole rows; of a single one the width makes no difference.
        shards = Shards(cores, shape, found[0][1][0] + 1)
    elif found and found[0][0] == (0, 0) and found[0][1][1] > 0:
        shards = Shards(cores, shape, found[0][1][0] + 1)
    if shards.core_ranges() != found:
        raise LayoutTextError("shards lie on whole rows of cores from (0, 0) on")
    return shards


def _buffer_type(space: str, text: str) -> str:
    """The kind of memory that an attribute, or an alias of one, stands for."""
    alias = space
    if "<" not in space:
        found = re.search(rf"^[ \t]*#{space}\s*=\s*#\w+\.\w+<\s*(\w+)\s*>", text, re.MULTILINE)
        name = alias if found is None else found[1]
    else:
        name = space[space.index("<") + 1 : -1].strip()
    if name not in _SPACES:
        raise LayoutTextError(f"there is no memory '{name}'")
    return _SPACES[name]


def _shape(dims: str, map_: str, height: int, width: int) -> tuple[int, ...]:
    """The padded shape: the map says how far apart two rows of each dimension are."""
    rank = len([dim for dim in dims.split(",") if dim.strip()])
    if rank == 0:
        return ()
    if rank == 1:
        return (width,)
    strides = [1] * (rank - 1)
    for dimension, stride in _TERM.findall(map_.rpartition(",")[0]):
        if int(dimension) >= rank - 1:
            raise LayoutTextError(f"d{dimension} is no outer dimension")
        strides[int(dimension)] = int(stride or 1)
    sizes: list[int] = []
    extent = height
    for stride in strides:
        if stride and extent % stride:
            raise LayoutTextError(f"{extent} rows are no multiple of {stride}")
        # Of a tensor without elements any size will do here.
        sizes.append(extent // stride if stride else 1)
        extent = stride
    return (*sizes, width)


def placed(placement: TensorPlacement, shape: tuple[int, ...]) -> TensorPlacement:
    """The placement of a tensor of that shape whose layout was read.

    Raises:
        LayoutTextError: if a tensor of that shape cannot lie so.
    """
    actual = placement.with_(shape=shape)
    if len(shape) != len(placement.shape) or layout_text(actual) != layout_text(placement):
        rows, columns = placement.collapsed_shape()
        side = TILE_SIDE if placement.layout is Layout.TILE else 1
        raise LayoutTextError(
            f"the layout is that of {rows * side}x{columns * side} elements in "
            f"{len(placement.shape)} dimensions, the tensor has the shape {list(shape)}"
        )
    return actual


# The attribute


@irdl_attr_definition
class TTNNLayoutAttr(Data[TensorPlacement]):
    """`#ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<...>, <interleaved>>`."""

    name = "ttnn.ttnn_layout"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> TensorPlacement:
        """The placement of a tensor without padding; the type that it belongs to tells the shape.

        The text is taken in one piece: layouts are most of what a printed module consists of.
        """
        try:
            placement, end = parse_layout_text(parser.lexer.input.content, parser.pos)
        except LayoutTextError as error:
            parser.raise_error(str(error))
        parser._resume_from(end)  # pyright: ignore[reportPrivateUsage]
        return placement

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(layout_text(self.data))


def placement_of(value: SSAValue) -> TensorPlacement:
    """Where and how a TTNN tensor lies; only valid after layouts were assigned."""
    type_ = value.type
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


@lru_cache(maxsize=4096)
def placed_type(placement: TensorPlacement) -> TensorType[Attribute]:
    """The tensor type of that shape, data type and placement."""
    return TensorType(placement.data_type.element_type, placement.shape, TTNNLayoutAttr(placement))
