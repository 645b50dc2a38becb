"""TT-NN tensors, their slices and memory configs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from math import prod
from typing import Any

import numpy as np

from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.dialects.ttcore.shards import CoreRange as CoreRectangle
from ttcodegen.dialects.ttcore.shards import Layout, Orientation, Shards
from ttcodegen.dialects.ttcore.tile import TILE_SIDE, tiles_along
from ttcodegen.dialects.ttnn.placement import TensorPlacement
from ttcodegen.lang.simulator.context import KernelKind, running_kernel
from ttcodegen.lang.simulator.locations import error
from ttcodegen.lang.simulator.shapes import Shape, is_integer, is_range, is_tuple, shape_text
from ttcodegen.numerics.rounding import in_storage_dtype, rounded_for_device

# Memory configurations of tensors: interleaved over the banks of a memory, or sharded.
#
# The API follows TT-NN. The simulator ignores memory configurations; projects use them to
# place their tensors.


class BufferType(StrEnum):
    """Memory type of a device."""

    DRAM = "dram"
    L1 = "l1"


class TensorMemoryLayout(StrEnum):
    """Memory layout of a tensor: interleaved or a sharding strategy."""

    INTERLEAVED = "interleaved"
    HEIGHT_SHARDED = "height_sharded"
    WIDTH_SHARDED = "width_sharded"
    BLOCK_SHARDED = "block_sharded"


class ShardStrategy(Enum):
    """Sharding strategy: height, width or block."""

    HEIGHT = TensorMemoryLayout.HEIGHT_SHARDED
    WIDTH = TensorMemoryLayout.WIDTH_SHARDED
    BLOCK = TensorMemoryLayout.BLOCK_SHARDED


ShardOrientation = Orientation


@dataclass(frozen=True)
class CoreCoord:
    """A core position, or a number of columns and rows."""

    x: int
    y: int


@dataclass(frozen=True)
class CoreGrid:
    """A grid of cores that starts at the first core: rows and columns."""

    y: int
    x: int

    @property
    def num_cores(self) -> int:
        """Number of cores."""
        return self.x * self.y


@dataclass(frozen=True)
class CoreRange:
    """A rectangle of cores, from start to end inclusive."""

    start: CoreCoord
    end: CoreCoord

    def rectangle(self) -> CoreRectangle:
        """The same cores as a core range of the compiler's layouts."""
        return CoreRectangle(self.start.x, self.start.y, self.end.x, self.end.y)


class CoreRangeSet:
    """A set of rectangles of cores."""

    def __init__(self, ranges: Iterable[CoreRange]) -> None:
        # Programs pass Python sets, whose order must not matter.
        self._ranges = tuple(sorted(ranges, key=lambda r: (r.start.y, r.start.x, r.end.y, r.end.x)))

    def ranges(self) -> list[CoreRange]:
        """Rectangles, sorted by rows."""
        return list(self._ranges)

    def num_cores(self) -> int:
        """Number of cores in all rectangles."""
        return sum(each.rectangle().cores for each in self._ranges)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CoreRangeSet) and self._ranges == other._ranges

    def __hash__(self) -> int:
        return hash(self._ranges)

    def __repr__(self) -> str:
        return f"CoreRangeSet({list(self._ranges)})"


@dataclass(frozen=True)
class ShardSpec:
    """Shard specification: core ranges, and shard height and width in elements."""

    grid: CoreRangeSet
    shape: Sequence[int]
    orientation: ShardOrientation = ShardOrientation.ROW_MAJOR


class ShardDistributionStrategy(Enum):
    """Order in which n-dimensional shards are assigned to cores."""

    ROUND_ROBIN_1D = "round_robin_1d"
    GRID_2D = "grid_2d"


@dataclass(frozen=True)
class NdShardSpec:
    """Shard specification for any number of dimensions."""

    shard_shape: Sequence[int]
    grid: CoreRangeSet
    orientation: ShardOrientation = ShardOrientation.ROW_MAJOR
    shard_distribution_strategy: ShardDistributionStrategy = (
        ShardDistributionStrategy.ROUND_ROBIN_1D
    )


@dataclass(init=False, repr=False, unsafe_hash=True)
class MemoryConfig:
    """Placement of a tensor.

    It is created as `MemoryConfig(memory_layout, buffer_type, shard_spec)`, or as
    `MemoryConfig(buffer_type, nd_shard_spec)`.
    """

    memory_layout: TensorMemoryLayout
    buffer_type: BufferType
    shard_spec: ShardSpec | None = field(hash=False)
    nd_shard_spec: NdShardSpec | None = field(hash=False)

    def __init__(
        self,
        memory_layout: TensorMemoryLayout | BufferType = TensorMemoryLayout.INTERLEAVED,
        buffer_type: BufferType | NdShardSpec | None = None,
        shard_spec: ShardSpec | None = None,
        nd_shard_spec: NdShardSpec | None = None,
    ) -> None:
        if isinstance(buffer_type, NdShardSpec):
            nd_shard_spec, buffer_type = buffer_type, None
        if isinstance(memory_layout, BufferType):
            memory_layout, buffer_type = TensorMemoryLayout.INTERLEAVED, memory_layout
        self.memory_layout = memory_layout
        self.buffer_type = buffer_type or BufferType.DRAM
        self.shard_spec = shard_spec
        self.nd_shard_spec = nd_shard_spec

    def is_sharded(self) -> bool:
        """True if it is sharded."""
        return (
            self.memory_layout is not TensorMemoryLayout.INTERLEAVED
            or self.nd_shard_spec is not None
        )

    def __repr__(self) -> str:
        specs = [each for each in (self.shard_spec, self.nd_shard_spec) if each is not None]
        given = [self.memory_layout.name, self.buffer_type.name, *map(str, specs)]
        return f"MemoryConfig({', '.join(given)})"


DRAM_MEMORY_CONFIG = MemoryConfig()
L1_MEMORY_CONFIG = MemoryConfig(buffer_type=BufferType.L1)


def create_sharded_memory_config(
    shape: Sequence[int],
    core_grid: CoreGrid | CoreRangeSet,
    strategy: ShardStrategy,
    orientation: ShardOrientation | None = None,
    use_height_and_width_as_shard_shape: bool = False,
) -> MemoryConfig:
    """Creates a memory config for shards in L1.

    Args:
        shape: shape of the tensor, or of a shard (`use_height_and_width_as_shard_shape`).
        core_grid: the cores.
        strategy: sharding by height, width or blocks.
        orientation: order of the cores, row by row by default.
        use_height_and_width_as_shard_shape: True if `shape` is the shape of a shard.

    Raises:
        ProgramError: if the cores do not divide the tensor evenly.
    """
    order = ShardOrientation.ROW_MAJOR if orientation is None else orientation
    is_by_rows = order is ShardOrientation.ROW_MAJOR
    *batches, height, width = shape
    if use_height_and_width_as_shard_shape:
        sizes = (height, width) if is_by_rows else (width, height)
    elif isinstance(core_grid, CoreRangeSet):
        raise error("with a CoreRangeSet, the height and width have to be those of a shard")
    else:
        across = {
            ShardStrategy.HEIGHT: (core_grid.num_cores, 1),
            ShardStrategy.WIDTH: (1, core_grid.num_cores),
            ShardStrategy.BLOCK: (core_grid.y, core_grid.x),
        }[strategy]
        down, along = across if is_by_rows or strategy is not ShardStrategy.BLOCK else across[::-1]
        rows = prod(batches) * height
        if rows % down or width % along:
            raise error(
                f"{rows} rows and {width} columns cannot be divided evenly into {down} x {along} "
                "shards"
            )
        sizes = rows // down, width // along
    if isinstance(core_grid, CoreGrid):
        last = CoreCoord(core_grid.x - 1, core_grid.y - 1)
        core_grid = CoreRangeSet([CoreRange(CoreCoord(0, 0), last)])
    return MemoryConfig(strategy.value, BufferType.L1, ShardSpec(core_grid, sizes, order))


def placement(
    shape: Sequence[int], data_type: DataType, *, is_tiled: bool, config: MemoryConfig
) -> TensorPlacement:
    """Placement of a tensor on the device, by its memory config.

    Raises:
        ProgramError: if the shards do not fit the tensor.
    """
    layout = Layout.TILE if is_tiled else Layout.ROW_MAJOR
    placed = TensorPlacement(tuple(shape), data_type, layout, str(config.buffer_type))
    if not config.is_sharded():
        return placed
    spec = config.shard_spec
    if config.nd_shard_spec is not None:
        raise error(
            "the compiler places tensors in shards of two dimensions, not those of a "
            "ttnn.NdShardSpec",
            remedy="use ttnn.create_sharded_memory_config",
        )
    if spec is None:
        raise error(f"the memory layout {config.memory_layout.name} needs a shard_spec")
    height, width = spec.shape
    if is_tiled and (height % TILE_SIDE or width % TILE_SIDE):
        raise error(f"shards of a tiled tensor are whole tiles, not {height}x{width} elements")
    rows, columns = placed.padded_shape()
    if not is_tiled and width != columns:
        raise error(
            f"shards of a row-major tensor have whole rows of {columns} elements, not {width}"
        )
    ranges = tuple(each.rectangle() for each in spec.grid.ranges())
    shards = Shards((height, width), ranges, spec.orientation)
    down, along = -(-rows // height), -(-columns // width)
    max_grid = shards.grid(config.memory_layout)
    if down > max_grid[0] or along > max_grid[1]:
        raise error(
            f"a tensor of {rows}x{columns} elements has {down} x {along} shards of "
            f"{height}x{width}, but the cores have {max_grid[0]} x {max_grid[1]}"
        )
    return placed.sharded(config.memory_layout, shards, str(config.buffer_type))


# TT-NN tensors, as far as programs of TT-Lang use them, and their slices

Array = np.ndarray

TILE_LAYOUT = "tile"
ROW_MAJOR_LAYOUT = "row_major"


@dataclass(frozen=True)
class Tile:
    """Unit of storage of tiled tensors."""

    tile_shape: tuple[int, int] = (TILE_SIDE, TILE_SIDE)


@dataclass(frozen=True)
class TensorSpec:
    """Shape, data type, layout and placement of a tensor, without its elements."""

    shape: Sequence[int]
    dtype: DataType
    layout: str
    memory_config: MemoryConfig = DRAM_MEMORY_CONFIG
    tile: Tile = Tile()


class TensorShape(tuple[int, ...]):
    """A tensor shape: a tuple with a rank."""

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self)

    def __repr__(self) -> str:
        return f"Shape({list(self)})"


class Tensor:
    """A TT-NN tensor.

    Attributes:
        layout: TILE_LAYOUT or ROW_MAJOR_LAYOUT.
        padded: elements in float32 or integers; tiled tensors have at least two dimensions, the
            last two of which are zero-padded to whole tiles.
    """

    def __init__(
        self,
        elements: Array,
        data_type: DataType,
        layout: str,
        device: object = None,
        memory_config: MemoryConfig | None = None,
    ) -> None:
        self.data_type = data_type
        self.layout = layout
        self._shape = TensorShape(elements.shape)
        self._device = device
        self._memory_config = memory_config or DRAM_MEMORY_CONFIG
        if self._memory_config.is_sharded() and self._memory_config.nd_shard_spec is None:
            # Validates the shards, so that errors are reported at the creation of the tensor.
            _ = self.placement
        self.padded = _padded(rounded_for_device(elements, data_type), self.is_tiled)
        self._units: Shape = self.padded.shape
        if self.is_tiled:
            *outer, rows, columns = self.padded.shape
            self._units = (*outer, rows // TILE_SIDE, columns // TILE_SIDE)

    @property
    def is_tiled(self) -> bool:
        """True if the tensor is tiled."""
        return self.layout == TILE_LAYOUT

    @property
    def compute_dtype(self) -> np.dtype[Any]:
        """Numpy dtype of the elements in the simulator."""
        return self.padded.dtype

    @property
    def shape(self) -> TensorShape:
        """Logical shape."""
        return self._shape

    @property
    def padded_shape(self) -> TensorShape:
        """Shape including tile padding."""
        return TensorShape(self.padded.shape)

    @property
    def dtype(self) -> DataType:
        """Data type."""
        return self.data_type

    @property
    def tile(self) -> Tile:
        """Tile of tiled tensors."""
        return Tile()

    def get_layout(self) -> str:
        """Layout."""
        return self.layout

    def device(self) -> object:
        """Device that was passed at creation, or None."""
        return self._device

    def memory_config(self) -> MemoryConfig:
        """Placement: interleaved in DRAM by default."""
        return self._memory_config

    def is_sharded(self) -> bool:
        """True if the tensor is sharded."""
        return self._memory_config.is_sharded()

    @property
    def spec(self) -> TensorSpec:
        """Shape, data type, layout and placement."""
        return TensorSpec(self._shape, self.data_type, self.layout, self._memory_config)

    @property
    def placement(self) -> TensorPlacement:
        """Placement on the device."""
        return placement(
            self._shape, self.data_type, is_tiled=self.is_tiled, config=self._memory_config
        )

    def volume(self) -> int:
        """Number of elements."""
        return int(np.prod(self._shape, dtype=np.int64))

    @property
    def units(self) -> Shape:
        """Shape in units of slices: in tiles, for tiled tensors along the last two dimensions."""
        return self._units

    @property
    def unit(self) -> str:
        """Unit of slice indices: tiles or elements."""
        return "tiles" if self.is_tiled else "elements"

    def elements(self) -> Array:
        """Elements without padding, in the dtype of computations."""
        rank = len(self._shape)
        if not self.is_tiled:
            return self.padded.reshape(self._shape)
        shape = (1,) * (2 - rank) + self._shape
        return self.padded[tuple(slice(size) for size in shape)].reshape(self._shape)

    def stored(self) -> Array:
        """Elements in the numpy dtype of the data type."""
        return in_storage_dtype(self.elements(), self.data_type)

    def __getitem__(self, index: Any) -> TensorSlice:
        running_kernel("a tensor slice", KernelKind.DATA_MOVEMENT)
        return slice_of(self, index if is_tuple(index) else (index,))

    def __repr__(self) -> str:
        return (
            f"ttnn.Tensor({self.stored()}, shape={self.shape}, dtype={self.data_type.name}, "
            f"layout={self.layout})"
        )


def _padded(elements: Array, is_tiled: bool) -> Array:
    if not is_tiled:
        return np.array(elements.reshape(elements.shape or (1,)))
    shape = (1,) * (2 - elements.ndim) + elements.shape
    sizes = (*shape[:-2], *(tiles_along(size) * TILE_SIDE for size in shape[-2:]))
    padded = np.zeros(sizes, elements.dtype)
    padded[tuple(slice(size) for size in shape)] = elements.reshape(shape)
    return padded


@dataclass(eq=False, slots=True)
class TensorSlice:
    """A slice of a tensor: starts and sizes in units.

    `single` marks dimensions that were indexed by a number instead of a range.
    """

    tensor: Tensor
    starts: Shape
    sizes: Shape
    single: tuple[bool, ...]

    def has_shape(self, shape: Shape) -> bool:
        """True if a block of a shape fits; dimensions with a single index may be missing in it."""
        if shape == self.sizes:
            return True
        rest = list(shape)
        for size, single in zip(self.sizes, self.single, strict=True):
            if rest and rest[0] == size and len(rest) > 0:
                rest.pop(0)
            elif not single:
                return False
        return not rest

    def axes_of(self, shape: Shape) -> tuple[int, ...]:
        """Tensor dimensions that correspond to the dimensions of a fitting block shape."""
        rest = list(shape)
        found: list[int] = []
        for axis, size in enumerate(self.sizes):
            if rest and rest[0] == size:
                found.append(axis)
                rest.pop(0)
        return tuple(found)

    def view(self) -> Array:
        """View of the elements in the memory of the tensor."""
        array = self.tensor.padded
        starts, sizes = self.starts, self.sizes
        if not self.tensor.is_tiled:
            ends = zip(starts, sizes, strict=True)
            return array[tuple([slice(start, start + size) for start, size in ends])]
        *outer, row, column = starts
        *_, rows, columns = sizes
        if outer:
            ends = zip(outer, sizes, strict=False)
            array = array[tuple([slice(start, start + size) for start, size in ends])]
        row, column = row * TILE_SIDE, column * TILE_SIDE
        return array[..., row : row + rows * TILE_SIDE, column : column + columns * TILE_SIDE]

    def __str__(self) -> str:
        return f"a slice of the shape {shape_text(self.sizes)}"


def wrong_indices(count: int, tensor: Tensor) -> str:
    """Error message for a wrong number of slice indices."""
    return (
        f"a slice has {count} indices, but the tensor has {len(tensor.units)} dimensions: "
        f"{shape_text(tensor.units)} in {tensor.unit}"
    )


def out_of_range(axis: int, first: int, end: int, size: int, unit: str) -> str:
    """Error message for a slice outside of the tensor."""
    return (
        f"dimension {axis} of a slice goes from {first} to {end}, but the tensor has {size} {unit} "
        "there"
    )


def slice_of(tensor: Tensor, index: tuple[Any, ...]) -> TensorSlice:
    """Creates a slice by indices in units; raises ProgramError if it is outside of the tensor."""
    units = tensor.units
    if len(index) != len(units):
        raise error(wrong_indices(len(index), tensor))
    starts: list[int] = []
    sizes: list[int] = []
    single: list[bool] = []
    for part, size in zip(index, units, strict=True):
        start, stop = _range(part, size, len(starts), tensor)
        starts.append(start)
        sizes.append(stop - start)
        single.append(not isinstance(part, slice))
    return TensorSlice(tensor, tuple(starts), tuple(sizes), tuple(single))


def ends_of(part: Any, size: int, is_number: Callable[[Any], bool]) -> tuple[Any, Any]:
    """Start and stop of an index of a slice; the stop is None for a single index.

    Args:
        part: the index.
        size: tensor size along the dimension, in units.
        is_number: predicate for integers.

    Raises:
        ProgramError: if it is not a valid index.
    """
    start, stop = part, None
    if is_range(part):
        start = 0 if part.start is None else part.start
        stop = size if part.stop is None else part.stop
        if part.step not in (None, 1):
            raise error(f"a slice has the step {part.step!r}; slices are contiguous")
    for each in (start,) if stop is None else (start, stop):
        if not is_number(each):
            raise error(
                f"an index of a tensor is an integer or a slice, not a {type(each).__name__}"
            )
    return start, stop


def _range(part: Any, size: int, axis: int, tensor: Tensor) -> tuple[int, int]:
    if type(part) is int and 0 <= part < size:
        return part, part + 1
    start, stop = ends_of(part, size, is_integer)
    first, end = int(start), int(start) + 1 if stop is None else int(stop)
    if not 0 <= first < end <= size:
        raise error(out_of_range(axis, first, end, size, tensor.unit))
    return first, end
