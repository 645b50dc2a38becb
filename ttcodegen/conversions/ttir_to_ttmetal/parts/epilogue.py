"""The elementwise ops that follow what a program is built around, on tile after tile of its
result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.ir import SSAValue

from ttcodegen.conversions.ttir_to_ttmetal.grouping.grouping import Group
from ttcodegen.conversions.ttir_to_ttmetal.grouping.tile_operations import (
    allocate,
    capacity,
    lower_chain,
)
from ttcodegen.conversions.ttir_to_ttmetal.parts.compute import ComputeKernel
from ttcodegen.conversions.ttir_to_ttmetal.parts.data_movement import (
    BroughtTile,
    MovementKernel,
    brought_bytes,
)
from ttcodegen.conversions.ttir_to_ttmetal.parts.loop_nests import (
    LoopNest,
    broadcast_of,
    broadcast_strides,
)
from ttcodegen.dialects.core.datatypes import DataType, shape_of
from ttcodegen.dialects.ttkernel.builder import Value
from ttcodegen.dialects.ttnn.placement import declared_data_type
from ttcodegen.layout.placements import TiledShape
from ttcodegen.ops.core.lowering import Tile, TileBuilder


@dataclass
class Epilogue:
    """The ops after the root of a group."""

    group: Group
    builder: TileBuilder = field(default_factory=TileBuilder)
    """The ops on tiles."""
    outer: dict[SSAValue, Tile] = field(default_factory=dict[SSAValue, Tile])
    """The tensors that they read besides the root's result."""

    def __post_init__(self) -> None:
        root = self.group.root
        assert root is not None
        self.root_tile = self.builder.new_tile(DataType.FLOAT32)
        known: dict[SSAValue, Tile] = {root.results[0]: self.root_tile}
        lower_chain(self.builder, self.group.epilogue, known, self.outer)
        self.results = [known[value] for value in self.group.outputs()]

    @property
    def is_plain(self) -> bool:
        """True if the root's result is the result of the program, unchanged."""
        return not self.outer and self.results == [self.root_tile]

    def compute(
        self, kernel: ComputeKernel, outer_names: Sequence[str], output_names: Sequence[str]
    ) -> list[tuple[int, str]]:
        """From the root's tile in the first of 32-bit destination registers to the results, for
        which there is room then; gives their registers and circular buffers."""
        sources = dict(zip(self.outer.values(), outer_names, strict=True))
        allocation = allocate(self.builder.calls, self.results, capacity(True), {self.root_tile: 0})
        assert allocation is not None, "groups are formed so that they fit"
        kernel.wait(outer_names)
        kernel.run(allocation, sources)
        kernel.reserve(output_names)
        places = [allocation.results[tile] for tile in self.results]
        return list(zip(places, output_names, strict=True))

    def read(
        self,
        kernel: MovementKernel,
        names: Mapping[SSAValue, str],
        outer_names: Sequence[str],
        result: TiledShape,
        tile: SSAValue,
    ) -> None:
        """Brings what belongs to a tile of the result, by its number."""
        shapes = [TiledShape(shape_of(value.type)) for value in self.outer]
        ones = (1,) * len(result.grid)
        strides = [(broadcast_strides(shape, result), [0] * len(ones)) for shape in shapes]
        nest = LoopNest.of(result.grid, ones, strides)
        known = kernel.coordinates(nest.tile_coordinates, {"tile": tile})
        pages = [kernel.page(page, known) for page in nest.pages]
        self.read_pages(kernel, names, outer_names, result, shapes, pages)

    def reads(self, result: TiledShape) -> Mapping[SSAValue, int]:
        """Bytes that are read of each of the tensors, for every tile of the result once."""
        return {
            value: result.tiles
            * brought_bytes(
                declared_data_type(value),
                broadcast_of(TiledShape(shape_of(value.type)), result).word,
            )
            for value in self.outer
        }

    def read_pages(
        self,
        kernel: MovementKernel,
        names: Mapping[SSAValue, str],
        outer_names: Sequence[str],
        result: TiledShape,
        shapes: Sequence[TiledShape],
        pages: Sequence[Value],
    ) -> None:
        """Brings a page of each of the tensors, which have these shapes beside the result's."""
        kernel.push_tiles(
            [
                BroughtTile(
                    page,
                    names[value],
                    name,
                    broadcast_of(shape, result).word,
                    declared_data_type(value),
                )
                for value, name, shape, page in zip(
                    self.outer, outer_names, shapes, pages, strict=True
                )
            ]
        )
