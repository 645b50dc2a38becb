"""Placement of a device or host tensor: data type, page layout and memory; and its syntax.

    #ttnn.ttnn_layout<(d0, d1, d2) -> (d0 * 32 + d1, d2), <1x1>,
     memref<4x2x!ttcore.tile<32x32, bf16>, #ttnn.buffer_type<dram>>, <interleaved>>

The text has the rows and columns (or tiles) per core including padding: a parsed layout has the
padded shape until it becomes the encoding of a tensor type.
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

from ttcodegen.dialects.core.datatypes import DataType, element_of, normalized_data_type
from ttcodegen.dialects.operations.attribute_kinds import AttributeKind
from ttcodegen.dialects.ttcore.shards import (
    CORE_RANGE,
    SHARDED,
    CoreRange,
    CoreRanges,
    Layout,
    Memory,
    Orientation,
    Shards,
    core_ranges_text,
    filled_core_ranges,
)
from ttcodegen.dialects.ttcore.tile import TILE_SIDE, tiles_along, whole_tiles
from ttcodegen.foundation.diagnostics import CompileError

MUCH_PADDING = 1 << 20
"""Padding elements above which rows are preferred to tiles, if the tensor itself has fewer."""


@dataclass(frozen=True)
class TensorPlacement:
    """Placement and layout of a tensor of one logical shape."""

    shape: tuple[int, ...]
    data_type: DataType
    layout: Layout = Layout.TILE
    buffer_type: str = "dram"
    """dram, l1 or system_memory (the host)."""
    memory_layout: str | None = "interleaved"
    """interleaved, height_sharded, width_sharded, block_sharded; None on the host."""
    shards: Shards | None = None
    """Shards of a sharded tensor."""

    def __hash__(self) -> int:
        """Returns a cached hash, since placements are often used as keys."""
        found: int | None = getattr(self, "_hash", None)
        if found is None:
            where = (self.buffer_type, self.memory_layout, self.shards)
            found = hash((self.shape, self.data_type, self.layout, *where))
            object.__setattr__(self, "_hash", found)
        return found

    @property
    def memory(self) -> Memory:
        return Memory.HOST if self.buffer_type == "system_memory" else Memory.DEVICE

    def with_(self, **changes: object) -> TensorPlacement:
        """Returns a copy with some fields replaced, or itself if nothing changes."""
        if all([getattr(self, name) == value for name, value in changes.items()]):
            return self
        return replace(self, **changes)  # pyright: ignore[reportArgumentType]

    def on_host(self) -> TensorPlacement:
        """Returns the placement in host memory."""
        return self.with_(buffer_type="system_memory", memory_layout=None, shards=None)

    def on_device(self) -> TensorPlacement:
        """Returns the placement in interleaved DRAM, or itself if it is on the device."""
        if self.memory is Memory.DEVICE:
            return self
        return self.with_(buffer_type="dram", memory_layout="interleaved")

    def sharded(
        self, memory_layout: str, shards: Shards, buffer_type: str = "l1"
    ) -> TensorPlacement:
        """Returns the placement sharded over cores (or DRAM banks)."""
        return self.with_(buffer_type=buffer_type, memory_layout=memory_layout, shards=shards)

    def height_sharded(self, shards: Shards) -> TensorPlacement:
        """Returns the placement in L1, height sharded."""
        return self.sharded("height_sharded", shards)

    def interleaved(self) -> TensorPlacement:
        """Returns the placement in interleaved DRAM if it is sharded, else itself."""
        if self.shards is None:
            return self
        return self.with_(buffer_type="dram", memory_layout="interleaved", shards=None)

    def misfit(self) -> str | None:
        """Returns why a tensor of that shape and layout cannot have these shards, or None."""
        if self.shards is None or self.memory_layout is None:
            return None
        in_tiles = self.layout is Layout.TILE
        return self.shards.misfit(self.memory_layout, *self.padded_shape(), in_tiles)

    def may_change_pages_in_shards(self) -> bool:
        """Returns whether the library tilizes and untilizes the tensor in place.

        Shards have to be in L1, of whole tiles without padding (docs/library-rules.md).
        """
        if self.shards is None:
            return True
        tiles = self.with_(layout=Layout.TILE)
        rows = self.with_(layout=Layout.ROW_MAJOR)
        return (
            self.buffer_type == "l1"
            and tiles.misfit() is None
            and tiles.padded_shape() == rows.padded_shape()
        )

    def tile_padding(self) -> int:
        """Returns the number of padding elements of the tensor in tiles."""
        height, width = self.with_(layout=Layout.TILE).collapsed_shape()
        return height * width * TILE_SIDE * TILE_SIDE - prod(self.shape)

    @property
    def is_padding_in_tiles(self) -> bool:
        """Returns whether the tensor in tiles would be mostly padding, and large."""
        return self.tile_padding() > max(MUCH_PADDING, prod(self.shape))

    def collapsed_shape(self) -> tuple[int, int]:
        """Returns height and width of the 2D view, in elements or in tiles for the tile layout.

        All dimensions but the last are collapsed into the height after padding, as with tt-mlir's
        default `collapse_dims`.
        """
        height = prod(self.shape[:-1]) if len(self.shape) > 1 else 1
        width = self.shape[-1] if self.shape else 1
        if self.layout is Layout.ROW_MAJOR:
            return height, width
        if len(self.shape) > 2:
            return prod(self.shape[:-2]) * tiles_along(self.shape[-2]), tiles_along(width)
        return tiles_along(height), tiles_along(width)

    def padded_shape(self) -> tuple[int, int]:
        """Returns height and width of the 2D view in elements, including tile padding."""
        height, width = self.collapsed_shape()
        if self.layout is Layout.TILE:
            return height * TILE_SIDE, width * TILE_SIDE
        return height, width


# The text of a layout

_ELEMENT = r"(?:!\w+\.tile<\s*(?P<tile>\d+\s*x\s*\d+)\s*,\s*(?P<in_tile>\w+)\s*>|(?P<scalar>\w+))"
_TEXT = re.compile(
    r"<\s*\((?P<dims>[^()]*)\)\s*->\s*\((?P<map>[^()]*)\)\s*,"
    r"\s*<\s*(?P<rows>\d+)\s*x\s*(?P<columns>\d+)\b(?!\s*x)(?:->|[^<>])*>\s*,"
    rf"\s*memref<\s*(?P<sizes>(?:\d+\s*x\s*)+){_ELEMENT}\s*,"
    r"\s*#(?P<space>\w+(?:\.\w+<\s*\w+\s*>)?)\s*>"
    r"\s*(?:,\s*<?\s*(?P<memory>[a-z_]+)\s*>?\s*)?"
    r"(?:,\s*exactGrid\s*=\s*\w+\s*)?"
    r"(?:,\s*core_ranges\s*=\s*(?:#(?P<ranges_alias>\w+)\b(?!\.)|"
    r"(?:#ttnn\.core_range_set)?\s*<\s*\[(?P<ranges>[^\]]*)\]\s*>)\s*)?"
    r"(?:,\s*<?\s*(?P<orientation>row_major|col_major)\s*>?\s*)?"
    r"(?:,\s*ignorePhysicalLayout\s*=\s*\w+\s*)?>"
)
_ALIAS = re.compile(r"#(\w+)\b(?!\.)")
_SPACES = {"dram": "dram", "l1": "l1", "system_memory": "system_memory", "system": "system_memory"}
_SCALARS = {
    **{data_type.mlir: data_type for data_type in DataType},
    **{str(d.element_type): d for d in DataType if not d.is_block_float},
}
_SCALARS["i32"] = DataType.INT32
# As in tensors without a layout: the library has no such type.
_SCALARS["f16"] = DataType.BFLOAT16
_SCALARS["i1"] = DataType.BFLOAT16
_TERM = re.compile(r"d(\d+)(?:\s*\*\s*(\d+))?")


class LayoutTextError(ValueError):
    """A layout that is malformed or unsupported."""


def buffer_type_text(placement: TensorPlacement) -> str:
    """Returns the text of the attribute of a tensor's memory."""
    return f"#ttnn.buffer_type<{placement.buffer_type}>"


def layout_text(placement: TensorPlacement, buffer_type: str | None = None) -> str:
    """Returns the text of a layout with brackets; `buffer_type` may be an alias of the memory."""
    rank = len(placement.shape)
    dims = [f"d{i}" for i in range(rank)]
    height, width = placement.collapsed_shape()
    grid = (1, 1)
    if placement.shards is not None:
        grid = placement.shards.grid(placement.memory_layout or "")
        height, width = placement.shards.shape
        if placement.layout is Layout.TILE:
            height, width = height // TILE_SIDE, width // TILE_SIDE
    if placement.layout is Layout.TILE:
        element = f"!ttcore.tile<{TILE_SIDE}x{TILE_SIDE}, {placement.data_type.mlir}>"
    else:
        element = str(placement.data_type.element_type)
    text = f"<({', '.join(dims)}) -> ({_collapsed_map(placement, dims)}), <{grid[0]}x{grid[1]}>, "
    text += f"memref<{height}x{width}x{element}, {buffer_type or buffer_type_text(placement)}>"
    if placement.memory_layout is not None:
        text += f", <{placement.memory_layout}>"
    if placement.shards is not None:
        text += f", core_ranges = {core_ranges_text(placement.shards.core_ranges)}"
        if placement.shards.orientation is not Orientation.ROW_MAJOR:
            text += f", <{placement.shards.orientation}>"
    return text + ">"


def _collapsed_map(placement: TensorPlacement, dims: list[str]) -> str:
    shape = placement.shape
    if len(dims) <= 2:
        return ", ".join(dims if len(dims) == 2 else ["0", *(dims or ["0"])])
    padded = list(shape)
    if placement.layout is Layout.TILE:
        padded[-2] = whole_tiles(padded[-2])
    terms = [
        f"{dim} * {stride}" if (stride := prod(padded[i + 1 : -1])) != 1 else dim
        for i, dim in enumerate(dims[:-1])
    ]
    return f"{' + '.join(terms)}, {dims[-1]}"


def parse_layout_text(text: str, start: int = 0) -> tuple[TensorPlacement, int]:
    """Parses the layout at `start`; returns the placement and the end of its text.

    The shape is the padded one: that of a tensor with this layout and no padding.

    Raises:
        LayoutTextError: if there is no layout, or an unsupported one.
    """
    match = _TEXT.match(text, start)
    if match is None:
        raise LayoutTextError("the layout is malformed, or of a form that is not supported")
    memory = match["memory"]
    buffer_type = _buffer_type(match["space"], text)
    if memory == "none_layout":
        memory = None
    if memory not in (None, "interleaved", *SHARDED):
        raise LayoutTextError(f"tensors that are {memory} are not supported")
    grid = (int(match["rows"]), int(match["columns"]))
    if 0 in grid:
        raise LayoutTextError(f"a grid has rows and columns, found {grid[0]}x{grid[1]}")
    _expect_divisible(buffer_type, memory, grid)
    if "-" in match["map"]:
        raise LayoutTextError(f"the rows and columns of a tensor are not ({match['map']})")
    layout = Layout.TILE if match["tile"] else Layout.ROW_MAJOR
    if match["tile"] and re.sub(r"\s", "", match["tile"]) != f"{TILE_SIDE}x{TILE_SIDE}":
        raise LayoutTextError(f"tiles of {match['tile']} are not supported")
    data_type = _SCALARS.get(match["in_tile"] or match["scalar"])
    if data_type is None:
        raise LayoutTextError(f"there is no data type '{match['in_tile'] or match['scalar']}'")
    if data_type.is_block_float and layout is Layout.ROW_MAJOR:
        raise LayoutTextError(f"elements of {data_type.mlir} are in tiles")
    side = TILE_SIDE if layout is Layout.TILE else 1
    *outer, width = [int(size) * side for size in re.findall(r"\d+", match["sizes"])]
    height = prod(outer[:-1]) // side ** len(outer[:-1]) * outer[-1] if outer else side
    shards = None
    if memory not in SHARDED and (match["ranges"] or match["ranges_alias"]):
        raise LayoutTextError(f"a tensor that is {memory or 'on the host'} has no ranges of cores")
    if memory in SHARDED:
        if 0 in (height, width):
            raise LayoutTextError(f"a shard has rows and columns, found {height}x{width}")
        shards = _shards(match, memory, (height, width), text)
        down, across = shards.grid(memory)
        height, width = height * down, width * across
    shape = _shape(match["dims"], match["map"], height, width)
    placement = TensorPlacement(shape, data_type, layout, buffer_type, memory, shards)
    return placement, match.end()


def _expect_divisible(buffer_type: str, memory: str | None, grid: tuple[int, int]) -> None:
    """Verifies that a memory supports a sharding (TTNNLayoutAttr::verify of tt-mlir).

    Host tensors are not sharded, and tensors in DRAM are not block sharded.
    """
    if buffer_type == "system_memory":
        if memory is not None:
            raise LayoutTextError(f"a tensor on the host is not {memory}")
    elif memory is None:
        raise LayoutTextError("a layout on the device says how the tensor is divided among banks")
    if buffer_type == "dram" and memory == "block_sharded":
        raise LayoutTextError("a tensor in DRAM is not block_sharded")
    if grid != (1, 1) and (buffer_type == "system_memory" or (buffer_type, memory) == _IN_BANKS):
        where = "on the host" if buffer_type == "system_memory" else "interleaved in DRAM"
        raise LayoutTextError(
            f"a tensor {where} has a grid of 1x1, found {'x'.join(map(str, grid))}"
        )


_IN_BANKS = ("dram", "interleaved")


def _shards(match: re.Match[str], memory: str, shape: tuple[int, int], text: str) -> Shards:
    """Returns the shards of a layout, by default on the first cores of a device."""
    rows, columns = int(match["rows"]), int(match["columns"])
    orientation = Orientation(match["orientation"] or "row_major")
    ranges = match["ranges"]
    if (alias := match["ranges_alias"]) is not None:
        ranges = _alias_text(alias, text)
    if ranges is None:
        if memory == "block_sharded":
            width, height = columns, rows
            if orientation is Orientation.COL_MAJOR:
                width, height = rows, columns
            return Shards(shape, (CoreRange(0, 0, width - 1, height - 1),), orientation)
        return Shards(shape, filled_core_ranges(rows * columns), orientation)
    found = parse_core_ranges(ranges, text)
    shards = Shards(shape, found, orientation)
    if any(r.columns < 1 or r.rows < 1 for r in found) or not found:
        raise LayoutTextError("a range of cores ends before it begins, or there is none")
    if any(a.meets(b) for i, a in enumerate(found) for b in found[:i]):
        raise LayoutTextError("two ranges of cores overlap")
    if shards.cores != rows * columns:
        raise LayoutTextError(
            f"a grid of {rows}x{columns} shards is on {shards.cores} cores: they differ"
        )
    return shards


def parse_core_ranges(ranges: str, text: str) -> CoreRanges:
    """Parses a list of core ranges; aliases are looked up in the text of the module.

    Raises:
        LayoutTextError: if an alias is undefined, or the text has anything else.
    """
    expanded = _ALIAS.sub(lambda alias: _alias_text(alias[1], text), ranges)
    rest = CORE_RANGE.sub("", expanded)
    if rest.strip(" ,\t\n"):
        raise LayoutTextError(f"'{rest.strip(' ,')}' is no range of cores")
    return tuple(CoreRange(*map(int, found)) for found in CORE_RANGE.findall(expanded))


def _alias_text(alias: str, text: str) -> str:
    """Returns the definition of an alias: the elements of a set, or one range."""
    found = re.search(
        rf"^[ \t]*#{alias}\s*=\s*(#ttnn\.core_range(_set)?\s*<(?:[^<>]|<[^<>]*>)*>)",
        text,
        re.MULTILINE,
    )
    if found is None:
        raise LayoutTextError(f"'#{alias}' is no alias of a range of cores")
    if found[2] is None:
        return found[1]
    return found[1][found[1].index("<") + 1 : -1].strip("[] ")


def _buffer_type(space: str, text: str) -> str:
    """Returns the kind of memory of an attribute or its alias."""
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
    """Returns the padded shape: the map has the row strides of the dimensions."""
    rank = len([dim for dim in dims.split(",") if dim.strip()])
    if rank == 0:
        return ()
    if rank == 1:
        return (width,)
    strides = [1] * (rank - 1)
    for dimension, stride in _TERM.findall(map_.rpartition(",")[0]):
        if int(dimension) < rank - 1:
            strides[int(dimension)] = int(stride or 1)
    sizes: list[int] = []
    extent = height
    for stride in strides:
        if stride and extent % stride:
            # The memref is one core's share, or padded differently: the tensor type has the shape.
            return (*[1] * (rank - 2), height, width)
        # Any size will do for empty tensors.
        sizes.append(extent // stride if stride else 1)
        extent = stride
    return (*sizes, width)


def placed(placement: TensorPlacement, shape: tuple[int, ...]) -> TensorPlacement:
    """Returns the placement of a tensor of that shape with a parsed layout.

    The layout determines data type, pages and memory. Its memref is not compared with the shape:
    tools divide it among L1 cores for interleaved tensors, or keep it from before a reshape. If the
    shards of a sharded layout are too small, the tensor is divided evenly among the cores of the
    layout.

    Raises:
        LayoutTextError: if the tensor cannot be divided into the shards of the layout.
    """
    actual = placement.with_(shape=shape)
    memory_layout, shards = placement.memory_layout, placement.shards
    if shards is None or memory_layout is None:
        return actual
    height, width = actual.padded_shape()
    in_tiles = placement.layout is Layout.TILE
    misfit = shards.misfit(memory_layout, height, width, in_tiles)
    if misfit is None:
        return actual
    even = shards.evenly(memory_layout, height, width, in_tiles)
    if even.misfit(memory_layout, height, width, in_tiles) is not None:
        raise LayoutTextError(
            f"a tensor of shape {list(shape)} cannot be {memory_layout}: {misfit}"
        )
    return actual.with_(shards=even)


# The attribute


@irdl_attr_definition
class TTNNLayoutAttr(Data[TensorPlacement]):
    """`#ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<...>, <interleaved>>`."""

    name = "ttnn.ttnn_layout"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> TensorPlacement:
        """Parses the placement of a tensor without padding; the enclosing type has the shape.

        The text is matched at once, since most of a printed module's text is layouts.
        """
        try:
            placement, end = parse_layout_text(parser.lexer.input.content, parser.pos)
        except LayoutTextError as error:
            parser.raise_error(str(error))
        parser._resume_from(end)  # pyright: ignore[reportPrivateUsage]
        return placement

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(layout_text(self.data))


def given_placement(value: SSAValue) -> TensorPlacement | None:
    """Returns the placement in the type of a tensor, or None."""
    encoding = getattr(value.type, "encoding", None)
    return encoding.data if isinstance(encoding, TTNNLayoutAttr) else None


def has_placement(value: SSAValue) -> bool:
    """Returns whether the type of a tensor has a placement."""
    return given_placement(value) is not None


def placement_of(value: SSAValue) -> TensorPlacement:
    """Returns the placement of a TTNN tensor; only valid after layouts were assigned."""
    type_ = value.type
    assert isinstance(type_, TensorType), type_
    assert isinstance(type_.encoding, TTNNLayoutAttr), type_
    return type_.encoding.data


def declared_data_type(value: SSAValue | Attribute) -> DataType:
    """Returns the device data type of a tensor's element type.

    Raises:
        CompileError: if there is none.
    """
    type_ = value.type if isinstance(value, SSAValue) else value
    assert isinstance(type_, TensorType)
    if isinstance(type_.encoding, TTNNLayoutAttr):
        return type_.encoding.data.data_type
    element = element_of(cast("Attribute", type_))
    data_type = normalized_data_type(element)
    if data_type is None:
        raise CompileError(
            f"elements of type {element} are not supported",
            value if isinstance(value, SSAValue) else None,
        )
    return data_type


def _placed_tensor(attribute: Attribute) -> TensorPlacement:
    encoding = getattr(attribute, "encoding", None)
    if not isinstance(encoding, TTNNLayoutAttr):
        raise TypeError
    return encoding.data


@lru_cache(maxsize=4096)
def placed_type(placement: TensorPlacement) -> TensorType[Attribute]:
    """Returns the tensor type of a placement."""
    return TensorType(placement.data_type.element_type, placement.shape, TTNNLayoutAttr(placement))


PLACEMENT = AttributeKind[TensorPlacement](
    "a tensor type with a layout", _placed_tensor, placed_type
)
