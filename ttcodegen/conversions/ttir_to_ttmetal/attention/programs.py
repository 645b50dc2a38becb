"""Device programs of attention and of updates of the KV cache."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from math import prod

from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from ttcodegen.conversions.ttir_to_ttmetal.attention.compute import (
    AttentionCompute,
    AttentionInParts,
)
from ttcodegen.conversions.ttir_to_ttmetal.attention.plan import AttentionPlan
from ttcodegen.conversions.ttir_to_ttmetal.grouping.grouping import Group
from ttcodegen.conversions.ttir_to_ttmetal.movement_programs import cache_tiles, source_of
from ttcodegen.conversions.ttir_to_ttmetal.parts.compute import SCALER
from ttcodegen.conversions.ttir_to_ttmetal.parts.data_movement import (
    BroughtTile,
    MovementKernel,
    element_bits,
    element_word,
)
from ttcodegen.conversions.ttir_to_ttmetal.parts.loop_nests import (
    LoopNest,
    broadcast_of,
    broadcast_strides,
)
from ttcodegen.conversions.ttir_to_ttmetal.parts.program_parts import (
    SHARE,
    Lowered,
    ProgramParts,
)
from ttcodegen.dialects.core.datatypes import DataType, shape_of
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttcore.shards import CoreRange
from ttcodegen.dialects.ttcore.tile import TILE_SIDE
from ttcodegen.dialects.ttkernel.builder import Value
from ttcodegen.dialects.ttmetal.programs import ComputeSettings, Kernel, Processor
from ttcodegen.dialects.ttnn.placement import declared_data_type
from ttcodegen.layout.placements import TiledShape, tile_bytes_of
from ttcodegen.naming.programs import kernel_name

# Programs of attention: scores, softmax and weighted sums of values, without scores in DRAM.


def lower_attention(
    group: Group, names: Mapping[SSAValue, str], name: str, cores: CoreRange
) -> Lowered:
    """Lowers a group that is one attention op to a program.

    Args:
        group: the op.
        names: unique identifiers of the values.
        name: name of the program.
        cores: the cores that share the queries.
    """
    assert group.root is not None
    plan = AttentionPlan(group.root, names, cores)
    movement = _AttentionMovement(plan, name)
    compute = (AttentionInParts if plan.in_parts else AttentionCompute)(plan, name)
    return plan.parts.program(
        name,
        "scaled_dot_product_attention",
        cores,
        (movement.reader(), compute.finished(), movement.writer()),
        plan.costs(),
        plan.settings,
        work_units=plan.units,
        work_unit="group of queries with a common head of keys",
    )


@dataclass
class _AttentionMovement:
    plan: AttentionPlan
    name: str

    def reader(self) -> tuple[Kernel, FuncOp]:
        """Kernel that reads keys and values, then rows of queries with masks and sinks."""
        plan = self.plan
        made = [SCALER, *([plan.hiding] if plan.hiding else [])]
        kernel = plan.parts.data_movement(
            kernel_name("read", self.name),
            Processor.READER,
            "Reads keys, values and queries.",
            plan.cores,
            tensors=plan.parts.inputs,
            buffers=[*(b for n, b in plan.buffers.items() if n != "result"), *made],
            arguments=SHARE,
        )
        builder = kernel.builder
        builder.op("blocks.push_reduce_scaler", kernel.buffer(SCALER))
        if plan.hiding:
            self._push_visibility(kernel)
        with kernel.share("unit") as unit:
            group: Value = unit
            if plan.units_of_group > 1:
                group = builder.named(builder.quotient(unit, plan.units_of_group), "head")
            if plan.in_parts:
                self._read_parts(kernel, unit, group)
                return kernel.finish()
            self._read_head(kernel, group)
            with builder.loop(plan.unit_rows, name_hint="row") as row:
                whole = self._whole_row(kernel, unit, row)
                self._read_queries(kernel, whole)
                self._read_sink(kernel, whole)
                if plan.mask is not None:
                    self._read_mask(kernel, whole)
        return kernel.finish()

    def _read_parts(self, kernel: MovementKernel, unit: SSAValue, group: Value) -> None:
        """Reads all query rows of a unit of work, then keys, values and masks chunk by chunk."""
        plan, builder = self.plan, kernel.builder
        with builder.loop(plan.unit_rows, name_hint="row") as row:
            whole = self._whole_row(kernel, unit, row)
            self._read_queries(kernel, whole)
            self._read_sink(kernel, whole)
        visible = plan.visible(builder, unit)
        with builder.loop(visible, step=plan.part, name_hint="first_key_row") as first:
            count = builder.smaller(plan.part, builder.difference(visible, first))
            count = builder.named(count, "key_rows")
            self._read_part(kernel, group, first, count)
            if plan.mask is not None:
                with builder.loop(plan.unit_rows, name_hint="row") as row:
                    whole = self._whole_row(kernel, unit, row)
                    end = builder.sum(first, count)
                    self._read_mask(kernel, whole, first, end)

    def _whole_row(self, kernel: MovementKernel, unit: SSAValue, row: SSAValue) -> SSAValue:
        """Index of a row of a unit of work among all rows of queries."""
        if self.plan.unit_rows == 1:
            return unit
        whole = kernel.builder.sum(kernel.builder.product(unit, self.plan.unit_rows), row)
        return kernel.builder.named(whole, "query_row")

    def _read_part(
        self, kernel: MovementKernel, group: Value, first: SSAValue, count: SSAValue
    ) -> None:
        """Reads `count` rows of the keys and values of a head, from row `first` on."""
        plan, builder = self.plan, kernel.builder
        operands = self._operands_of_head
        for name, value, columns, _ in operands:
            builder.op("cb_reserve_back", kernel.buffer(plan.buffers[name]), plan.part * columns)
            row = builder.sum(builder.product(group, plan.columns), first)
            tiles = builder.product(count, columns)
            self._read_tiles(kernel, name, value, builder.product(row, columns), tiles)
        builder.op("noc_async_read_barrier")
        for name, _, columns, (rows, last) in operands:
            buffer = plan.buffers[name]
            if last != TILE_SIDE:
                with builder.loop(count, name_hint="key_row") as row:
                    place = builder.sum(builder.product(row, columns), columns - 1)
                    self._clear(kernel, buffer, place, TILE_SIDE, last)
            if rows != TILE_SIDE:
                is_last = builder.compare("eq", builder.sum(first, count), plan.columns)
                with (
                    builder.when(is_last),
                    builder.loop(columns, name_hint="column") as column,
                ):
                    row = builder.product(builder.difference(count, 1), columns)
                    self._clear(kernel, buffer, builder.sum(row, column), rows, TILE_SIDE)
            builder.op("cb_push_back", kernel.buffer(buffer), plan.part * columns)

    @property
    def _operands_of_head(self) -> tuple[tuple[str, SSAValue, int, tuple[int, int]], ...]:
        """Name, tensor, tiles in a row and filled extent of the last tile, of keys and values.

        The rest of the last tile is cleared along the dimension that products sum over."""
        plan = self.plan
        return (
            ("key", plan.key, plan.inner, (TILE_SIDE, plan.keys.last_columns)),
            ("value", plan.value, plan.width, (plan.values.last_rows, TILE_SIDE)),
        )

    def _push_visibility(self, kernel: MovementKernel) -> None:
        """Pushes the tile that is 1 where a query sees a key of its last visible tile."""
        plan, builder, word = self.plan, kernel.builder, element_word(DataType.BFLOAT16)
        if not plan.is_causal:
            kernel.push_marks(plan.hiding, plan.keys.last_rows)
            return
        builder.op("cb_reserve_back", kernel.buffer(plan.hiding), 1)
        tile = kernel.write_pointer(plan.hiding)
        one = builder.pattern(element_bits(1.0, DataType.BFLOAT16))
        builder.op("blocks.fill_triangle", tile, one, element=word)
        builder.op("cb_push_back", kernel.buffer(plan.hiding), 1)

    def _read_head(self, kernel: MovementKernel, group: Value) -> None:
        """Reads the keys and values of a head, and clears padding that products sum over."""
        plan, builder = self.plan, kernel.builder
        operands = self._operands_of_head
        for name, value, columns, _ in operands:
            tiles = plan.columns * columns
            builder.op("cb_reserve_back", kernel.buffer(plan.buffers[name]), tiles)
            self._read_tiles(kernel, name, value, builder.product(group, tiles), tiles)
        builder.op("noc_async_read_barrier")
        for name, _, columns, (rows, last) in operands:
            buffer = plan.buffers[name]
            if last != TILE_SIDE:
                with builder.loop(plan.columns, name_hint="key_row") as row:
                    place = builder.sum(builder.product(row, columns), columns - 1)
                    self._clear(kernel, buffer, place, TILE_SIDE, last)
            if rows != TILE_SIDE:
                with builder.loop(columns, name_hint="column") as column:
                    place = builder.sum(column, (plan.columns - 1) * columns)
                    self._clear(kernel, buffer, place, rows, TILE_SIDE)
            builder.op("cb_push_back", kernel.buffer(buffer), plan.columns * columns)

    def _clear(
        self, kernel: MovementKernel, buffer: str, place: Value, rows: int, columns: int
    ) -> None:
        """Clears a tile that was read, from these rows and columns on."""
        builder = kernel.builder
        offset = builder.product(place, tile_bytes_of(self._data_type))
        tile = builder.sum(kernel.write_pointer(buffer), offset)
        kernel.fill(tile, rows, columns, 0, element_word(self._data_type))

    @property
    def _data_type(self) -> DataType:
        return declared_data_type(self.plan.query)

    def _read_tiles(
        self, kernel: MovementKernel, name: str, value: SSAValue, first: Value, tiles: Value
    ) -> None:
        """Starts reads of consecutive tiles."""
        plan, builder = self.plan, kernel.builder
        address = kernel.write_pointer(plan.buffers[name], f"{name}_tiles")
        if isinstance(first, SSAValue):
            first = builder.named(first, f"first_{name}")
        with builder.loop(tiles, name_hint="tile") as tile:
            target = builder.sum(address, builder.product(tile, tile_bytes_of(self._data_type)))
            kernel.read_page(builder.sum(first, tile), plan.names[value], target)

    def _read_queries(self, kernel: MovementKernel, row: SSAValue) -> None:
        plan, builder = self.plan, kernel.builder
        buffer = kernel.buffer(plan.buffers["query"])
        builder.op("cb_reserve_back", buffer, plan.inner)
        self._read_tiles(kernel, "query", plan.query, builder.product(row, plan.inner), plan.inner)
        builder.op("noc_async_read_barrier")
        if plan.queries.last_columns != TILE_SIDE:
            self._clear(
                kernel,
                plan.buffers["query"],
                plan.inner - 1,
                TILE_SIDE,
                plan.queries.last_columns,
            )
        builder.op("cb_push_back", buffer, plan.inner)

    def _read_sink(self, kernel: MovementKernel, row: SSAValue) -> None:
        """Reads the sink of a head, a score that all of its queries share, if there is one."""
        plan, builder = self.plan, kernel.builder
        if plan.sink is None:
            return
        head = builder.remainder(builder.quotient(row, plan.queries.rows), plan.queries.shape[1])
        buffer, data_type = plan.buffers["sink"], declared_data_type(plan.sink)
        kernel.push_tiles([BroughtTile(head, plan.names[plan.sink], buffer, "element", data_type)])

    def _read_mask(
        self, kernel: MovementKernel, row: SSAValue, begin: Value = 0, end: Value | None = None
    ) -> None:
        """Reads the mask tiles for the scores of a row, from column `begin` up to `end`."""
        plan, builder = self.plan, kernel.builder
        assert plan.mask is not None
        shape = plan.shape_of_mask()
        scores = plan.scores
        *moves, step = broadcast_strides(shape, scores)
        nest = LoopNest.of(
            (*scores.grid[:3], 1),
            (1, 1, 1, plan.columns),
            [((*moves, 0), (0, 0, 0, step))],
            "query_row",
        )
        # The term that moves with the column comes last.
        page = nest.pages[0][: len(nest.pages[0]) - (plan.columns > 1)]
        known = kernel.coordinates(nest.tile_coordinates, {"query_row": row})
        first = kernel.page(page, known)
        if end is None:
            end = plan.visible(builder, row)
        with builder.loop(end, start=begin, name_hint="column") as column:
            kernel.push_tiles(
                [
                    BroughtTile(
                        kernel.sum([first, column]),
                        plan.names[plan.mask],
                        plan.buffers["mask"],
                        broadcast_of(shape, scores).word,
                        declared_data_type(plan.mask),
                    )
                ]
            )

    def writer(self) -> tuple[Kernel, FuncOp]:
        """Kernel that writes the result."""
        plan = self.plan
        return plan.parts.tile_writer(
            self.name,
            "Writes the output tiles of the attention.",
            plan.cores,
            [plan.buffers["result"]],
            columns=plan.unit_rows * plan.width,
        )


# Programs that overwrite rows of a cache of keys or values in place.

INPUT_SLOTS = 4
"""Number of tiles of new rows, and of positions, that a kernel caches."""
NOWHERE = 2**32 - 1
"""-1: a position or page number that is skipped."""


def lower_cache(
    group: Group, names: Mapping[SSAValue, str], name: str, cores: CoreRange
) -> Lowered:
    """Lowers a group that is one cache op to a program.

    Positions and page numbers are 32-bit integers."""
    op = group.root
    assert op is not None
    # The cache is an input as well: the meaning of the program returns the whole cache.
    parts = ProgramParts(names, op.operands, [op.operand("cache")])
    program = _CacheProgram(op, parts, name, cores)
    return program.fill() if op.name in _FILLS else program.update()


_FILLS = ("ttir.fill_cache", "ttir.paged_fill_cache")


@dataclass
class _CacheProgram:
    """Program of one kernel per core, which moves tiles or rows to their position in the cache."""

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
        """Copies whole tiles of the input to the cache; padding in the last ones is zero."""
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
        """Copies a tile to the page of its positions, unless that is skipped."""
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
        """Updates rows of the cache.

        Each unit of work reads a tile, replaces a part of a row, and writes the tile back."""
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
            # Rows are ordered (heads, users), or (users, heads) if the cache is paged.
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
        """Index of the cache tile that holds a position of a user's head."""
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
        """Copies the part of an input row that is in a column of tiles."""
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
        """Returns an operand of the op; None if the op has no such operand."""
        return next(iter(self.op.operand_groups().get(name, ())), None)

    def _number(self, kernel: MovementKernel, tensor: SSAValue, place: Value) -> SSAValue:
        """Loads an element of a tensor of positions or page numbers."""
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
        """Index of a tile of the cache."""
        return kernel.sum(
            [
                kernel.product(matrix, self.tiles_of_matrix),
                kernel.product(row, self.tiles.columns),
                column,
            ]
        )

    # Parts

    def _kernel(self, purpose: str, moved: Sequence[SSAValue]) -> MovementKernel:
        """Kernel with caches of the index tensors."""
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
        """Program whose units of work write one tile each.

        They read one input tile, and one of the cache if `reads_cache`."""
        size = units * tile_bytes_of(self.data_type)
        reads = {self.entry: size, self.cache: size if reads_cache else 0}
        return self.parts.program(
            self.name,
            self.op.name.partition(".")[2],
            self.cores,
            (kernel.finish(),),
            self.parts.costs(reads, least_reads=reads, written=size),
            # The compute engine is unused, so that no value is rounded.
            ComputeSettings(fp32_destination=True),
            work_units=units,
        )
