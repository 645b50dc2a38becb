"""Programs that overwrite rows of a cache of keys or values in place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from math import prod

from xdsl.ir import SSAValue

from ttcodegen.conversions.ttir_to_ttmetal.grouping.grouping import Group
from ttcodegen.conversions.ttir_to_ttmetal.movement.programs import cache_tiles, source_of
from ttcodegen.conversions.ttir_to_ttmetal.parts.data_movement import MovementKernel, element_word
from ttcodegen.conversions.ttir_to_ttmetal.parts.program_parts import (
    SHARE,
    Lowered,
    ProgramParts,
)
from ttcodegen.dialects.core.datatypes import DataType, shape_of
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttcore.cores import CoreRange
from ttcodegen.dialects.ttcore.tile import TILE_SIDE
from ttcodegen.dialects.ttkernel.builder import Value
from ttcodegen.dialects.ttmetal.programs import ComputeSettings, Processor
from ttcodegen.dialects.ttnn.placement import declared_data_type
from ttcodegen.layout.tiled_shape import TiledShape, tile_bytes_of
from ttcodegen.naming.programs import kernel_name

INPUT_SLOTS = 4
"""Tiles of new rows, and of positions, that a kernel keeps."""
NOWHERE = 2**32 - 1
"""-1: the position of a user, or the number of a page, that nothing is written to."""


def lower_cache(
    group: Group, names: Mapping[SSAValue, str], name: str, cores: CoreRange
) -> Lowered:
    """The program of a group that is one op on a cache; positions and the numbers of pages are
    32-bit integers."""
    op = group.root
    assert op is not None
    # The cache is read as well: what the program means gives all of it.
    parts = ProgramParts(names, op.operands, [op.operand("cache")])
    program = _CacheProgram(op, parts, name, cores)
    return program.fill() if op.name in _FILLS else program.update()


_FILLS = ("ttir.fill_cache", "ttir.paged_fill_cache")


@dataclass
class _CacheProgram:
    """One kernel on each core, which brings a tile and takes it to its position in the cache."""

    op: CatalogueOp
    parts: ProgramParts
    name: str
    cores: CoreRange

    def __post_init__(self) -> None:
        self.cache, self.entry = self.op.operand("cache"), self.op.operand("input")
        self.tiles = TiledShape(shape_of(self.cache.type))
        self.heads = shape_of(self.cache.type)[1]
        self.tiles_of_matrix = self.tiles.rows * self.tiles.columns
        self.data_type = declared_data_type(self.cache)

    def fill(self) -> Lowered:
        """Whole tiles of the input go to where they belong; the last ones end with padding, which
        is zero."""
        tiles = TiledShape(shape_of(self.entry.type))
        buffer = self.parts.buffers.add_tensor(self.entry, 1)
        kernel = self._kernel("Copies the tiles of {} to {}.", [self.entry, self.cache])
        with kernel.share("tile") as tile:
            column, place = kernel.divided(tile, tiles.columns, "tile_column")
            row, matrix = kernel.divided(place, tiles.rows, "tile_row")
            if self.op.name == "ttir.fill_cache":
                matrix = kernel.sum([matrix, self.op.parameter("batch_offset") * self.heads])
                self._copy(kernel, buffer, tile, self._page(kernel, matrix, row, column))
            else:
                self._copy_to_page(kernel, buffer, tile, matrix, row, column)
        return self._program(kernel, tiles.tiles, reads_cache=False)

    def _copy_to_page(
        self,
        kernel: MovementKernel,
        buffer: str,
        tile: SSAValue,
        matrix: Value,
        row: Value,
        column: Value,
    ) -> None:
        """Copies a tile to the page of its positions, if they have one."""
        builder = kernel.builder
        head, user = kernel.divided(matrix, self.heads, "head", "user")
        numbers = self._optional("batch_idx_tensor")
        owner: Value = 0 if numbers is None else self._number(kernel, numbers, user)
        inside, place = kernel.divided(row, self.tiles.rows)
        page = self._page_number(kernel, owner, place)
        with builder.when(builder.compare("ne", page, builder.pattern(NOWHERE))):
            target = kernel.sum([kernel.product(page, self.heads), head])
            self._copy(kernel, buffer, tile, self._page(kernel, target, inside, column))

    def _copy(self, kernel: MovementKernel, buffer: str, tile: SSAValue, page: Value) -> None:
        kernel.read_page(tile, self.parts.names[self.entry], kernel.write_pointer(buffer))
        kernel.builder.op("noc_async_read_barrier")
        self._write(kernel, buffer, page)

    def _write(self, kernel: MovementKernel, buffer: str, page: Value) -> None:
        tensor = kernel.tensor(self.parts.names[self.cache])
        kernel.builder.op("noc_async_write_page", page, tensor, kernel.write_pointer(buffer))
        kernel.builder.op("noc_async_write_barrier")

    def update(self) -> Lowered:
        """Each unit of work is a part of a row: the tile of the cache that it is in is read, gets
        it and is written back."""
        paged = self.op.name == "ttir.paged_update_cache"
        shape = shape_of(self.entry.type)
        users = shape[1] if paged else shape[2]
        element = element_word(self.data_type)
        rows = source_of(self.parts, self.entry, INPUT_SLOTS)
        buffer = self.parts.buffers.add_tensor(self.cache, 1)
        purpose = "Packs the rows of {} into tiles of {}."
        kernel = self._kernel(purpose, [self.entry, self.cache])
        builder = kernel.builder
        elements = cache_tiles(kernel, rows, element)
        with kernel.share("part") as part:
            column, pair = kernel.divided(part, self.tiles.columns, "tile_column")
            head, user = kernel.divided(pair, self.heads, "head", "user")
            index = self.op.operand("update_index")
            single = prod(shape_of(index.type)) == 1
            position = self._number(kernel, index, 0 if single else user)
            # The rows of (heads, users), or of (users, heads).
            outer, inner, size = (user, head, shape[2]) if paged else (head, user, shape[2])
            row = kernel.sum([kernel.product(outer, size), inner])
            with ExitStack() as stack:
                if paged:
                    is_there = builder.compare("ne", position, builder.pattern(NOWHERE))
                    stack.enter_context(builder.when(is_there))
                page = self._page_of(kernel, user, head, position, column)
                kernel.read_page(page, self.parts.names[self.cache], kernel.write_pointer(buffer))
                builder.op("noc_async_read_barrier")
                self._copy_part(kernel, elements, buffer, row, column, position)
                self._write(kernel, buffer, page)
        units = users * self.heads * self.tiles.columns
        return self._program(kernel, units, reads_cache=True)

    def _page_of(
        self, kernel: MovementKernel, user: Value, head: Value, position: SSAValue, column: Value
    ) -> SSAValue:
        """The tile of the cache that holds a position of a user's head."""
        builder = kernel.builder
        owner = user
        row: Value = builder.quotient(position, TILE_SIDE)
        if self._optional("page_table") is not None:
            place = builder.quotient(position, self.tiles.height)
            owner = self._page_number(kernel, user, place)
            row = builder.remainder(row, self.tiles.rows)
        elif self.op.name == "ttir.update_cache":
            owner = kernel.sum([user, self.op.parameter("batch_offset")])
        matrix = kernel.sum([kernel.product(owner, self.heads), head])
        return builder.named(builder.value(self._page(kernel, matrix, row, column)), "page")

    def _copy_part(
        self,
        kernel: MovementKernel,
        elements: SSAValue,
        buffer: str,
        row: Value,
        column: Value,
        position: SSAValue,
    ) -> None:
        """Copies what is in a column of tiles of a row of the input."""
        builder = kernel.builder
        element, width = element_word(self.data_type), self.tiles.width
        target = kernel.elements(kernel.write_pointer(buffer), element)
        first = kernel.product(column, TILE_SIDE)
        count = kernel.filled(first, width)
        start = kernel.sum([kernel.product(row, width), first])
        inside = builder.remainder(position, TILE_SIDE)
        builder.op("blocks.tile_cache.copy_row", elements, start, 1, count, target, inside, 0)

    # Numbers

    def _optional(self, name: str) -> SSAValue | None:
        """An operand of the op, None if ops of its kind have none of that name, or it has not."""
        return next(iter(self.op.operand_groups().get(name, ())), None)

    def _number(self, kernel: MovementKernel, tensor: SSAValue, place: Value) -> SSAValue:
        """An element of a tensor of positions or page numbers."""
        hint = {"update_index": "position", "batch_idx_tensor": "owner"}
        name = next((h for key, h in hint.items() if self._optional(key) is tensor), "")
        return kernel.builder.get(
            "blocks.tile_cache.element",
            self.numbers[tensor],
            place,
            name_hint=name or "page_number",
        )

    def _page_number(self, kernel: MovementKernel, user: Value, place: Value) -> SSAValue:
        table = self.op.operand("page_table")
        start = kernel.product(user, shape_of(table.type)[-1])
        return self._number(kernel, table, kernel.sum([start, place]))

    def _page(self, kernel: MovementKernel, matrix: Value, row: Value, column: Value) -> Value:
        """The number of a tile of the cache."""
        return kernel.sum(
            [
                kernel.product(matrix, self.tiles_of_matrix),
                kernel.product(row, self.tiles.columns),
                column,
            ]
        )

    # Parts

    def _kernel(self, purpose: str, moved: Sequence[SSAValue]) -> MovementKernel:
        """The kernel, with the caches of its numbers."""
        others = [v for v in dict.fromkeys(self.op.operands) if v not in moved]
        sources = [source_of(self.parts, value, INPUT_SLOTS) for value in others]
        kernel = self.parts.data_movement(
            kernel_name("write", self.name),
            Processor.WRITER,
            purpose.format(*(self.parts.names[value] for value in moved)),
            self.cores,
            tensors=[*moved, *others],
            buffers=[buffer.name for buffer in self.parts.buffers],
            arguments=SHARE,
        )
        element = element_word(DataType.INT32)
        self.numbers = {
            value: cache_tiles(kernel, source, element)
            for value, source in zip(others, sources, strict=True)
        }
        return kernel

    def _program(self, kernel: MovementKernel, units: int, *, reads_cache: bool) -> Lowered:
        """The program; each unit of work reads a tile of the new rows, and one of the cache if
        `reads_cache`, and writes one."""
        size = units * tile_bytes_of(self.data_type)
        reads = {self.entry: size, self.cache: size if reads_cache else 0}
        return self.parts.program(
            self.name,
            self.op.name.partition(".")[2],
            self.cores,
            (kernel.finish(),),
            self.parts.costs(reads, least_reads=reads, written=size),
            # Nothing is computed, so that nothing is rounded.
            ComputeSettings(fp32_destination=True),
            work_units=units,
        )
