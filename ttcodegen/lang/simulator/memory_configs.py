"""Memory configurations of tensors: interleaved over the banks of a memory, or in shards on cores.

Names and forms are those of TT-NN. The simulator does not care; projects place their tensors
so.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum, StrEnum
from math import prod

from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.dialects.ttcore.shards import CoreRange as CoreRectangle
from ttcodegen.dialects.ttcore.shards import Layout, Orientation, Shards
from ttcodegen.dialects.ttcore.tile import TILE_SIDE
from ttcodegen.dialects.ttnn.placement import TensorPlacement
from ttcodegen.lang.simulator.locations import error


class BufferType(StrEnum):
    """The memories of a device."""

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
    """A core, or a number of columns and rows."""

    x: int
    y: int


@dataclass(frozen=True)
class CoreGrid:
    """Cores from the first one on: so many rows and columns."""

    y: int
    x: int

    @property
    def num_cores(self) -> int:
        """Number of cores."""
        return self.x * self.y


@dataclass(frozen=True)
class CoreRange:
    """A rectangle of cores, the last one included."""

    start: CoreCoord
    end: CoreCoord

    def rectangle(self) -> CoreRectangle:
        """The same cores, as layouts of modules name them."""
        return CoreRectangle(self.start.x, self.start.y, self.end.x, self.end.y)


class CoreRangeSet:
    """Rectangles of cores."""

    def __init__(self, ranges: Iterable[CoreRange]) -> None:
        # Programs write sets: their order must not matter.
        self._ranges = tuple(sorted(ranges, key=lambda r: (r.start.y, r.start.x, r.end.y, r.end.x)))

    def ranges(self) -> list[CoreRange]:
        """The rectangles, first rows first."""
        return list(self._ranges)

    def num_cores(self) -> int:
        """Number of cores over all ranges."""
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


@dataclass(frozen=True)
class MemoryConfig:
    """The placement of a tensor."""

    memory_layout: TensorMemoryLayout = TensorMemoryLayout.INTERLEAVED
    buffer_type: BufferType = BufferType.DRAM
    shard_spec: ShardSpec | None = None

    def is_sharded(self) -> bool:
        """True if it is divided among cores."""
        return self.memory_layout is not TensorMemoryLayout.INTERLEAVED


DRAM_MEMORY_CONFIG = MemoryConfig()
L1_MEMORY_CONFIG = MemoryConfig(buffer_type=BufferType.L1)


def create_sharded_memory_config(
    shape: Sequence[int],
    core_grid: CoreGrid | CoreRangeSet,
    strategy: ShardStrategy,
    orientation: ShardOrientation | None = None,
    use_height_and_width_as_shard_shape: bool = False,
) -> MemoryConfig:
    """Shards in L1.

    Args:
        shape: of the tensor, or of a shard (`use_height_and_width_as_shard_shape`).
        core_grid: the cores.
        strategy: what is divided.
        orientation: the order of the cores, row by row if it is not given.
        use_height_and_width_as_shard_shape: whether `shape` is the shape of a shard.

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
    """The placement of a tensor of that memory configuration on the device.

    Raises:
        ProgramError: if its shards do not suit it.
    """
    layout = Layout.TILE if is_tiled else Layout.ROW_MAJOR
    placed = TensorPlacement(tuple(shape), data_type, layout, str(config.buffer_type))
    if not config.is_sharded():
        return placed
    spec = config.shard_spec
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
    most = shards.grid(config.memory_layout)
    if down > most[0] or along > most[1]:
        raise error(
            f"a tensor of {rows}x{columns} elements has {down} x {along} shards of "
            f"{height}x{width}, but the cores have {most[0]} x {most[1]}"
        )
    return placed.sharded(config.memory_layout, shards, str(config.buffer_type))
