"""Tensor layouts: the core and address of each element.

The order follows the tensor layout specification: the dimensions of the tensor are collapsed, the
collapsed ones are divided over a grid, and each core's shard is divided into tiles. All divisions
round up; the rest of a shard is padding.

Layouts of the later form (`TensorLayout.aligned`) align sizes when dimensions are collapsed, so
that grid and tiles divide them exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

from xdsl.dialects.builtin import MemRefType, NoneAttr, TensorType
from xdsl.ir import Attribute
from xdsl.ir.affine import AffineMap

from ttcodegen.dialects.core.attribute_syntax import coefficients_of, linear_map
from ttcodegen.dialects.core.datatypes import (
    DataType,
    bf16,
    f32,
    normalized_data_type,
    si32,
    ui8,
    ui16,
    ui32,
)
from ttcodegen.dialects.ttcore.layouts import (
    AlignedLayout,
    Grid,
    LinearLayout,
    MetalLayoutAttr,
    shape_text,
)
from ttcodegen.dialects.ttcore.tile import (
    FACE_SIDE,
    TILE_FORMATS,
    TILE_SIDE,
    MemorySpace,
    MemorySpaceAttr,
    OutOfBounds,
    TensorMemoryLayout,
    TileType,
)
from ttcodegen.layout.collapse import (
    DEFAULT_INTERVALS,
    Coefficients,
    Interval,
    Shape,
    align_up,
    check_one_to_one,
    collapse,
    collapsed,
    expand,
    extents,
    normalized_intervals,
    volume,
)

# Order of the elements of a tile in memory: face by face, each face row by row.


def offset_in_tile(row: int, column: int, tile: tuple[int, int]) -> int:
    """Returns the offset in the tile of a row and column, or of arrays of them."""
    face_rows, face_columns = (min(side, FACE_SIDE) for side in tile)
    faces_in_a_row = tile[1] // face_columns
    face = (row // face_rows) * faces_in_a_row + column // face_columns
    return (face * face_rows + row % face_rows) * face_columns + column % face_columns


def place_in_tile(offset: int, tile: tuple[int, int]) -> tuple[int, int]:
    """Returns row and column of the element at an offset in a tile."""
    face_rows, face_columns = (min(side, FACE_SIDE) for side in tile)
    faces_in_a_row = tile[1] // face_columns
    rest, column = divmod(offset, face_columns)
    face, row = divmod(rest, face_rows)
    return (
        (face // faces_in_a_row) * face_rows + row,
        (face % faces_in_a_row) * face_columns + column,
    )


_SCALARS: dict[str, Attribute] = {
    "f32": f32,
    "bf16": bf16,
    "u32": ui32,
    "u16": ui16,
    "u8": ui8,
    "si32": si32,
}
"""Element types of tensors by format name; other formats exist in tiles only."""
_NAMES = {type_: name for name, type_ in _SCALARS.items()}


@dataclass(frozen=True)
class Location:
    """Location of an element."""

    core: Shape
    """Position of the core in the grid."""
    position: Shape
    """Position in the core's shard, in elements along each dimension."""
    offset: int
    """Offset in elements in the memory of the shard.

    In tiles, elements are ordered face by face (16x16).
    """


@dataclass(frozen=True)
class TensorLayout:
    """Tensor layout, made by `create`, `aligned` or `of`; other methods return modified copies."""

    shape: Shape
    """Shape of the tensor."""
    data_type: str
    """Name of the element type in `#ttcore.supportedDataTypes`."""
    coefficients: Coefficients
    """A row of factors of the tensor's dimensions for each grid dimension."""
    physical_shape: Shape
    """Sizes of the collapsed dimensions."""
    grid: Shape
    tile: tuple[int, int] | None = None
    """Rows and columns of a tile, None for row-major shards."""
    tile_format: str | None = None
    """Format of the elements in tiles, None for that of the tensor."""
    memory_space: MemorySpace = MemorySpace.L1
    out_of_bounds: OutOfBounds = OutOfBounds.UNDEF
    memory_layout: TensorMemoryLayout | None = None
    intervals: tuple[Interval, ...] = DEFAULT_INTERVALS
    """Collapsed intervals of a layout of the later form."""
    alignments: Shape | None = None
    """Alignments of a layout of the later form; None for the form of the specification."""

    def __post_init__(self) -> None:
        if any(size < 1 for size in self.shape):
            raise ValueError(f"a tensor of the shape {self.shape} has no elements")
        if self.data_type not in TILE_FORMATS or self.format not in TILE_FORMATS:
            raise ValueError(f"there is no data type {self.data_type} or {self.format}")
        if len(self.grid) != len(self.coefficients):
            raise ValueError(
                f"the grid {shape_text(self.grid)} has {len(self.grid)} dimensions, but "
                f"{len(self.coefficients)} are collapsed"
            )
        if any(side < 1 for side in self.grid):
            raise ValueError(f"the grid {shape_text(self.grid)} has no cores")
        check_one_to_one(self.coefficients, self.shape)
        if self.alignments is not None:
            self._check_division()

    def _check_division(self) -> None:
        """Verifies that the grid divides the physical shape, in layouts of the later form."""
        unit = (1,) * (len(self.grid) - 2) + (self.tile or (1, 1))
        for dim, (size, side, step) in enumerate(
            zip(self.physical_shape, self.grid, unit, strict=True)
        ):
            if size % (side * step):
                raise ValueError(
                    f"the collapsed dimension {dim} of size {size} is not divided by a grid of "
                    f"{side} with tiles of {step}: align it to {align_up(size, side * step)}"
                )

    # Making layouts

    @classmethod
    def create(
        cls,
        shape: Sequence[int],
        data_type: DataType | str = "f32",
        *,
        grid: Sequence[int] | None = None,
        collapse_intervals: Sequence[Interval] = DEFAULT_INTERVALS,
        strides: Sequence[Sequence[int]] | None = None,
        memory_space: MemorySpace | str = MemorySpace.L1,
        out_of_bounds: OutOfBounds | str = OutOfBounds.UNDEF,
    ) -> TensorLayout:
        """Creates a layout of the specification without tiles, by default on one core.

        `collapse_intervals` are half-open intervals of dimensions that are merged; negative bounds
        count from the end. `strides` gives the coefficients instead. Raises ValueError if a shape,
        an interval or a grid is invalid.
        """
        sizes = tuple(shape)
        if strides is None:
            intervals = normalized_intervals(collapse_intervals, len(sizes))
            coefficients, _ = collapsed(sizes, intervals)
        else:
            coefficients = tuple(map(tuple, strides))
        return cls(
            sizes,
            data_type.mlir if isinstance(data_type, DataType) else data_type,
            coefficients,
            extents(coefficients, sizes),
            (1,) * len(coefficients) if grid is None else tuple(grid),
            memory_space=MemorySpace(memory_space),
            out_of_bounds=OutOfBounds(out_of_bounds),
        )

    @classmethod
    def aligned(
        cls,
        shape: Sequence[int],
        data_type: DataType | str = "f32",
        *,
        grid: Sequence[int] | None = None,
        collapse_intervals: Sequence[Interval] = DEFAULT_INTERVALS,
        dim_alignments: Sequence[int] | None = None,
        tile: tuple[int, int] | None = (TILE_SIDE, TILE_SIDE),
        memory_space: MemorySpace | str = MemorySpace.L1,
        memory_layout: TensorMemoryLayout | str = TensorMemoryLayout.SHARDED,
    ) -> TensorLayout:
        """Creates a layout of the later form, by default in tiles of 32x32.

        The last dimensions of the last two intervals are aligned to tiles. Raises ValueError if a
        shape, an interval or a grid is invalid, or a collapsed dimension does not divide exactly.
        """
        sizes = tuple(shape)
        intervals = normalized_intervals(collapse_intervals, len(sizes))
        alignments = (
            tile_alignments(sizes, intervals) if dim_alignments is None else tuple(dim_alignments)
        )
        coefficients, physical = collapsed(sizes, intervals, alignments)
        if len(sizes) < 2:
            # A single row takes a whole row of tiles.
            columns = physical[-1] if sizes else TILE_SIDE
            physical = (TILE_SIDE, columns)
        return cls(
            sizes,
            data_type.mlir if isinstance(data_type, DataType) else data_type,
            coefficients,
            physical,
            (1,) * len(coefficients) if grid is None else tuple(grid),
            tile,
            memory_space=MemorySpace(memory_space),
            memory_layout=TensorMemoryLayout(memory_layout),
            intervals=tuple(collapse_intervals),
            alignments=alignments,
        )

    @classmethod
    def of(cls, type_: Attribute) -> TensorLayout:
        """Returns the layout of a tensor type.

        Raises ValueError if it has none, or its memref does not match its grid.
        """
        if not isinstance(type_, TensorType):
            raise ValueError(f"{type_} is no tensor")
        tensor = cast("TensorType[Attribute]", type_)
        if not isinstance(tensor.encoding, MetalLayoutAttr):
            raise ValueError(f"{type_} has no layout")
        layout = tensor.encoding.data
        if isinstance(layout, AlignedLayout):
            return cls._of_aligned(tensor, layout)
        space = layout.memref.memory_space
        element = layout.memref.element_type
        coefficients = coefficients_of(layout.linear)
        found = cls(
            tensor.get_shape(),
            _format_name(tensor.element_type),
            coefficients,
            extents(coefficients, tensor.get_shape()),
            layout.grid.shape,
            memory_space=space.data if isinstance(space, MemorySpaceAttr) else MemorySpace.SYSTEM,
            out_of_bounds=layout.out_of_bounds,
            memory_layout=layout.memory_layout,
        )
        if isinstance(element, TileType):
            found = found.tilize(element.shape, element.format_name.data)
        if found.memref_shape != layout.memref.get_shape():
            raise ValueError(
                f"a shard of this layout is {shape_text(found.memref_shape)}, but its memref is "
                f"{shape_text(layout.memref.get_shape())}"
            )
        return found

    @classmethod
    def _of_aligned(cls, tensor: TensorType[Attribute], layout: AlignedLayout) -> TensorLayout:
        element = tensor.element_type
        rank = len(tensor.get_shape()) // 2
        tile = element.shape if isinstance(element, TileType) else None
        name = _format_name(element)
        found = cls.aligned(
            layout.logical_shape,
            name,
            grid=tensor.get_shape()[:rank],
            collapse_intervals=layout.collapsed_intervals,
            dim_alignments=layout.dim_alignments,
            tile=tile,
            memory_space=layout.memory_space,
            memory_layout=layout.memory_layout or TensorMemoryLayout.SHARDED,
        )
        if found.memref_shape != tensor.get_shape()[rank:]:
            raise ValueError(
                f"a shard of this layout is {shape_text(found.memref_shape)}, but the tensor says "
                f"{shape_text(tensor.get_shape()[rank:])}"
            )
        return found

    def parallelize(
        self, grid: Sequence[int], collapse_intervals: Sequence[Interval] | None = None
    ) -> TensorLayout:
        """Divides the tensor over another grid.

        `collapse_intervals` collapse its dimensions anew, as in `create`. By default the dimensions
        stay collapsed as they are, or become two for a grid of two dimensions. Raises ValueError if
        the grid has another rank than the collapsed dimensions.
        """
        if collapse_intervals is None and len(self.grid) != len(grid) == 2:
            collapse_intervals = DEFAULT_INTERVALS
        if collapse_intervals is None:
            return replace(self, grid=tuple(grid))
        intervals = normalized_intervals(collapse_intervals, len(self.shape))
        if self.alignments is not None:
            raise ValueError("dimensions of a layout with alignments are collapsed when it is made")
        coefficients, _ = collapsed(self.shape, intervals)
        return replace(
            self,
            coefficients=coefficients,
            physical_shape=extents(coefficients, self.shape),
            grid=tuple(grid),
        )

    def tilize(
        self,
        tile: tuple[int, int] = (TILE_SIDE, TILE_SIDE),
        data_type: DataType | str | None = None,
    ) -> TensorLayout:
        """Returns the layout with tiled shards, optionally in another format."""
        name = data_type.mlir if isinstance(data_type, DataType) else data_type
        return replace(self, tile=tile, tile_format=None if name == self.data_type else name)

    def untilize(self) -> TensorLayout:
        """Returns the layout with row-major shards."""
        return replace(self, tile=None, tile_format=None)

    def with_memory_space(self, memory_space: MemorySpace | str) -> TensorLayout:
        """Returns the layout in another memory space."""
        return replace(self, memory_space=MemorySpace(memory_space))

    # Sizes

    @property
    def format(self) -> str:
        """Format of the elements in memory."""
        return self.data_type if self.tile_format is None else self.tile_format

    @property
    def shard_shape(self) -> Shape:
        """Shape of a shard in elements, before padding to tiles."""
        return tuple(
            -(-size // side) for size, side in zip(self.physical_shape, self.grid, strict=True)
        )

    @property
    def padded_shard_shape(self) -> Shape:
        """Shape of a shard in elements, padded to whole tiles."""
        if self.tile is None:
            return self.shard_shape
        *outer, rows, columns = self.shard_shape
        return (*outer, align_up(rows, self.tile[0]), align_up(columns, self.tile[1]))

    @property
    def stride(self) -> Shape:
        """Strides in elements as defined by TTNN, whose physical tensor is a matrix of rows.

        Raises ValueError for a layout that collapses dimensions otherwise.
        """
        inner = (*(0 for _ in self.shape[1:]), 1)
        if len(self.coefficients) != 2 or self.coefficients[1] != inner:
            raise ValueError(
                f"a tensor of the shape {self.shape} has strides in TTNN only if all dimensions "
                "but the last are collapsed into rows"
            )
        return (*(rows * self.physical_shape[1] for rows in self.coefficients[0][:-1]), 1)

    @property
    def grid_shape(self) -> Shape:
        """Cores along each dimension with a part of the tensor; the grid may have more."""
        return tuple(
            -(-size // part)
            for size, part in zip(self.physical_shape, self.shard_shape, strict=True)
        )

    @property
    def memref_shape(self) -> Shape:
        """Shape of a shard, in tiles if it is tiled."""
        if self.tile is None:
            return self.shard_shape
        *outer, rows, columns = self.padded_shard_shape
        return (*outer, rows // self.tile[0], columns // self.tile[1])

    @property
    def shard_bytes(self) -> int:
        """Bytes of a shard."""
        format_ = TILE_FORMATS[self.format]
        if self.tile is None:
            return volume(self.shard_shape) * format_.bits // 8
        return volume(self.memref_shape) * format_.tile_bytes(*self.tile)

    @property
    def cores(self) -> int:
        """Number of cores of the grid."""
        return volume(self.grid)

    @property
    def padding(self) -> int:
        """Number of padding elements in all shards."""
        return self.cores * volume(self.padded_shard_shape) - volume(self.shape)

    def occupied(self, core: Sequence[int]) -> Shape:
        """Returns the valid extent of a core's shard along each collapsed dimension.

        Raises ValueError if the grid has no such core.
        """
        self._check_core(core)
        return tuple(
            max(0, min(part, size - place * part))
            for place, part, size in zip(core, self.shard_shape, self.physical_shape, strict=True)
        )

    # Elements

    def locate(self, index: Sequence[int]) -> Location:
        """Returns the location of an element; raises ValueError if the index is out of range."""
        if len(index) != len(self.shape) or not all(
            0 <= i < size for i, size in zip(index, self.shape, strict=True)
        ):
            raise ValueError(f"{tuple(index)} is no index of a tensor of the shape {self.shape}")
        place = collapse(self.coefficients, index)
        core = tuple(p // part for p, part in zip(place, self.shard_shape, strict=True))
        position = tuple(p % part for p, part in zip(place, self.shard_shape, strict=True))
        return Location(core, position, self._offset(position))

    def index_at(self, core: Sequence[int], offset: int) -> Shape | None:
        """Returns the element at an offset of a core's shard, None for padding.

        Raises ValueError if the grid has no such core, or the offset is out of range.
        """
        self._check_core(core)
        if not 0 <= offset < volume(self.padded_shard_shape):
            raise ValueError(
                f"a shard has {volume(self.padded_shard_shape)} elements, not {offset}"
            )
        position = self._position(offset)
        parts = self.shard_shape
        if any(p >= part for p, part in zip(position, parts, strict=True)):
            return None
        place = tuple(c * part + p for c, part, p in zip(core, parts, position, strict=True))
        return expand(self.coefficients, self.shape, place)

    def _check_core(self, core: Sequence[int]) -> None:
        if len(core) != len(self.grid) or not all(
            0 <= place < side for place, side in zip(core, self.grid, strict=True)
        ):
            raise ValueError(f"{tuple(core)} is no core of the grid {shape_text(self.grid)}")

    def _offset(self, position: Shape) -> int:
        if self.tile is None:
            return _linear(position, self.shard_shape)
        *outer, row, column = position
        rows, columns = self.tile
        tile = _linear((*outer, row // rows, column // columns), self.memref_shape)
        return tile * rows * columns + offset_in_tile(row % rows, column % columns, self.tile)

    def _position(self, offset: int) -> Shape:
        if self.tile is None:
            return _unlinear(offset, self.shard_shape)
        rows, columns = self.tile
        tile, rest = divmod(offset, rows * columns)
        *outer, tile_row, tile_column = _unlinear(tile, self.memref_shape)
        row, column = place_in_tile(rest, self.tile)
        return (*outer, tile_row * rows + row, tile_column * columns + column)

    # Maps, attributes and types

    @property
    def linear_map(self) -> AffineMap:
        """Maps tensor indices to positions in the collapsed dimensions."""
        return linear_map(self.coefficients, len(self.shape))

    @property
    def core_map(self) -> AffineMap:
        """Maps tensor indices to cores."""
        linear = self.linear_map
        results = [
            expression // part
            for expression, part in zip(linear.results, self.shard_shape, strict=True)
        ]
        return AffineMap(linear.num_dims, 0, tuple(results))

    @property
    def shard_map(self) -> AffineMap:
        """Maps tensor indices to positions in the core's shard."""
        linear = self.linear_map
        results = [
            expression % part
            for expression, part in zip(linear.results, self.shard_shape, strict=True)
        ]
        return AffineMap(linear.num_dims, 0, tuple(results))

    @property
    def element_type(self) -> Attribute:
        """Element type of a shard: tiles or scalars.

        Raises ValueError for scalars of a format that exists in tiles only.
        """
        if self.tile is not None:
            return TileType(self.format, *self.tile)
        if self.format not in _SCALARS:
            raise ValueError(f"there are numbers of the format {self.format} in tiles only")
        return _SCALARS[self.format]

    @property
    def memref(self) -> MemRefType[Attribute]:
        """Type of a shard."""
        return MemRefType(
            self.element_type, self.memref_shape, NoneAttr(), MemorySpaceAttr(self.memory_space)
        )

    @property
    def attribute(self) -> MetalLayoutAttr:
        """The layout as an attribute."""
        if self.alignments is not None:
            return MetalLayoutAttr(
                AlignedLayout(
                    self.shape,
                    self.alignments,
                    self.intervals,
                    self.memory_space,
                    self.memory_layout,
                )
            )
        return MetalLayoutAttr(
            LinearLayout(
                self.linear_map,
                self.out_of_bounds,
                Grid(self.grid),
                self.memref,
                self.memory_layout,
            )
        )

    @property
    def tensor_type(self) -> TensorType[Attribute]:
        """Type of a tensor with this layout.

        In the form of the specification it has the tensor's shape and element type; in the later
        form those of grid and shard.
        """
        if self.alignments is not None:
            shape = (*self.grid, *self.memref_shape)
            return TensorType(self.element_type, shape, self.attribute)
        return TensorType(_SCALARS[self.data_type], self.shape, self.attribute)

    def __str__(self) -> str:
        return str(self.attribute)


def tile_alignments(shape: Shape, intervals: Sequence[Interval]) -> Shape:
    """Returns alignments that make whole 32x32 tiles of the last two intervals."""
    alignments = [1] * len(shape)
    for _, end in intervals[-2:]:
        if end > 0:
            alignments[end - 1] = TILE_SIDE
    return tuple(alignments)


def _format_name(element: Attribute) -> str:
    """Returns the format name of an element type; raises ValueError if there is none."""
    if isinstance(element, TileType):
        return element.format_name.data
    if (name := _NAMES.get(element)) is not None:
        return name
    data_type = normalized_data_type(element)
    if data_type is None:
        raise ValueError(f"no layout has elements of the type {element}")
    return data_type.mlir


def _linear(position: Sequence[int], shape: Sequence[int]) -> int:
    """Row-major offset of a position in a shape."""
    total = 0
    for place, size in zip(position, shape, strict=True):
        total = total * size + place
    return total


def _unlinear(offset: int, shape: Sequence[int]) -> Shape:
    """Returns the position of a row-major offset."""
    position: list[int] = []
    for size in reversed(shape):
        offset, place = divmod(offset, size)
        position.append(place)
    return tuple(reversed(position))
