"""Plan of a convolution or pooling program: work split, circular buffers and costs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from xdsl.ir import SSAValue

from ttcodegen.conversions.ttir_to_ttmetal.grouping.grouping import Group
from ttcodegen.conversions.ttir_to_ttmetal.movement_programs import source_of
from ttcodegen.conversions.ttir_to_ttmetal.parts.data_movement import Epilogue
from ttcodegen.conversions.ttir_to_ttmetal.parts.program_parts import BUFFER_DEPTH, ProgramParts
from ttcodegen.dialects.core.datatypes import shape_of
from ttcodegen.dialects.ttcore.shards import CoreRange
from ttcodegen.dialects.ttcore.tile import TILE_SIDE, tiles_along
from ttcodegen.dialects.ttmetal.programs import Costs
from ttcodegen.dialects.ttnn.placement import declared_data_type
from ttcodegen.layout.placements import TiledShape, tile_bytes_of
from ttcodegen.ops.convolution.device_windows import ARGMAX, WINDOW_PRODUCT, axes_of

_MOST_GATHERED_BYTES = 320 * 1024
"""Maximum L1 for the windows of a row of output tiles."""
_MOST_WEIGHT_BYTES = 384 * 1024
"""Maximum L1 for weight tiles that a core reuses."""
_MOST_IMAGE_BYTES = 256 * 1024
"""Maximum L1 for input tiles that are kept while rows are gathered from them."""
_MOST_AT_A_TIME = 16
"""Maximum number of weight tiles that are read at a time."""


@dataclass
class WindowPlan:
    """Plan that the kernels of a window program share.

    Args:
        group: the convolution or pool, and elementwise ops after it.
        names: unique identifiers of the values.
        name: name of the program.
        cores: the cores that share the work.
    """

    group: Group
    names: Mapping[SSAValue, str]
    name: str
    cores: CoreRange

    def __post_init__(self) -> None:
        root = self.group.root
        assert root is not None
        self.root = root
        self.is_product = root.name == WINDOW_PRODUCT
        self.finds_place = not self.is_product and root.parameter("method") == ARGMAX
        self.image = root.operand("input")
        self.weight = root.operand("weight") if self.is_product else None
        self.axes = axes_of(root)
        self.epilogue = Epilogue(self.group)
        self._divide()
        self._declare()

    def _divide(self) -> None:
        self.result = TiledShape(self.root.result_shape)
        self.groups: int = self.root.parameter("groups") if self.is_product else 1
        self.channels = shape_of(self.image.type)[-1] // self.groups
        self.taps = prod(axis.taps for axis in self.axes)
        self.channel_tiles = tiles_along(self.channels) if self.is_product else 1
        self.inner = self.taps * self.channel_tiles
        """Tiles that are gathered per output tile."""
        self.rows_of_tiles = self.result.tiles // self.result.columns
        self.unit_columns = self._unit_columns()
        self.units = self.result.tiles // self.unit_columns

    def _unit_columns(self) -> int:
        """Number of output tiles in a row that share gathered rows.

        The maximum that leaves work for all cores and stays within one channel group."""
        size = tile_bytes_of(declared_data_type(self.image))
        if not self.is_product or self.inner * size > _MOST_GATHERED_BYTES:
            return 1
        columns = self.result.columns // self.groups
        dividing = [n for n in range(1, columns + 1) if columns % n == 0]
        enough = [
            n for n in dividing
            if self.rows_of_tiles * (self.result.columns // n) >= self.cores.columns
            * self.cores.rows
        ]  # fmt: skip
        return max(enough, default=1)

    @property
    def keeps_rows(self) -> bool:
        """Returns whether gathered rows stay in L1 for several output tiles."""
        return self.unit_columns > 1

    def _declare(self) -> None:
        outputs = self.group.outputs()
        tensors = [self.image, *([] if self.weight is None else [self.weight])]
        self.parts = parts = ProgramParts(self.names, [*tensors, *self.epilogue.outer], outputs)
        data_type = declared_data_type(self.image)
        depth = BUFFER_DEPTH * self.inner if self.keeps_rows else BUFFER_DEPTH
        self.gathered = parts.buffers.add("left" if self.is_product else "seen", data_type, depth)
        self.source = source_of(parts, self.image, self._kept_tiles())
        self.memories = {self.source.buffer}
        """Circular buffers that the compute kernel does not use."""
        self.at_a_time = 1
        self.weight_slots = 0
        if self.weight is not None:
            self._declare_weight(self.weight)
        self.outer_names = [parts.buffers.add_tensor(value) for value in self.epilogue.outer]
        self.output_names = [parts.buffers.add_tensor(value) for value in outputs]

    def _declare_weight(self, weight: SSAValue) -> None:
        """Declares the circular buffers of a weight.

        Reused tiles stay in L1 if they fit; others are read several at a time. Both require whole
        channel tiles, because padding after the last channel has to be zeroed."""
        data_type = declared_data_type(weight)
        needed = self.inner * self.unit_columns
        again = self.units > self.cores.rows * self.cores.columns
        whole = self.channels % TILE_SIDE == 0
        if again and whole and needed * tile_bytes_of(data_type) <= _MOST_WEIGHT_BYTES:
            self.weight_slots = needed
        elif self.channel_tiles <= _MOST_AT_A_TIME:
            self.at_a_time = self.channel_tiles
        elif whole:
            sizes = range(1, _MOST_AT_A_TIME + 1)
            self.at_a_time = max(n for n in sizes if self.inner % n == 0)
        self.parts.buffers.add("right", data_type, BUFFER_DEPTH * self.at_a_time)
        if self.weight_slots:
            self.weight_memory = self.parts.buffers.add_kept("right", self.weight_slots)
            self.memories.add(self.weight_memory)

    def _kept_tiles(self) -> int:
        """Number of input tiles that a row of output tiles is gathered from, limited by L1."""
        shape = TiledShape(shape_of(self.image.type))
        lines = prod(axis.taps for axis in self.axes[:-1])
        size = tile_bytes_of(declared_data_type(self.image))
        needed = lines * shape.rows * shape.columns
        return max(1, min(needed, _MOST_IMAGE_BYTES // size))

    @property
    def sees_padding(self) -> bool:
        """Returns whether windows include padding."""
        return any(axis.sees_padding for axis in self.axes)

    def full_width(self) -> tuple[int, ...]:
        """Circular buffers of tiles that are copied to registers and wider than 16 bits."""
        return self.parts.buffers.wide(["seen", *self.outer_names])

    def costs(self) -> Costs:
        """Costs with each input tile read once per gathered row, if L1 has room for its tiles."""
        size = tile_bytes_of(declared_data_type(self.image))
        gatherings = self.units if self.is_product else self.result.tiles
        gathered = gatherings * min(self.source.slots, self.inner * TILE_SIDE) * size
        reads = Counter({self.image: gathered})
        if self.weight is not None:
            needed = self.units * self.inner * self.unit_columns
            if self.weight_slots:
                needed = self.cores.rows * self.cores.columns * self.weight_slots
            reads[self.weight] += needed * tile_bytes_of(declared_data_type(self.weight))
        reads.update(self.epilogue.reads(self.result))
        computed = self.result.tiles * (self.inner + len(self.group.epilogue))
        return self.parts.costs(reads, tiles_computed=computed)
