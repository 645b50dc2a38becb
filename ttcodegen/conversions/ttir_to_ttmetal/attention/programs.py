"""Programs of attention: scores, their softmax and the sums of values, with no score in DRAM."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from ttcodegen.conversions.ttir_to_ttmetal.attention.chunked_compute import AttentionInParts
from ttcodegen.conversions.ttir_to_ttmetal.attention.compute import AttentionCompute
from ttcodegen.conversions.ttir_to_ttmetal.attention.plan import AttentionPlan
from ttcodegen.conversions.ttir_to_ttmetal.grouping.grouping import Group
from ttcodegen.conversions.ttir_to_ttmetal.parts.data_movement import (
    BroughtTile,
    MovementKernel,
    element_bits,
    element_word,
)
from ttcodegen.conversions.ttir_to_ttmetal.parts.geometry import broadcast_of, broadcast_strides
from ttcodegen.conversions.ttir_to_ttmetal.parts.loop_nests import LoopNest
from ttcodegen.conversions.ttir_to_ttmetal.parts.program_parts import SHARE, Lowered
from ttcodegen.conversions.ttir_to_ttmetal.rows.reduction import SCALER
from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.dialects.ttcore.cores import CoreRange
from ttcodegen.dialects.ttcore.tile import TILE_SIDE
from ttcodegen.dialects.ttkernel.builder import Value
from ttcodegen.dialects.ttmetal.programs import Kernel, Processor
from ttcodegen.dialects.ttnn.placement import declared_data_type
from ttcodegen.layout.tiled_shape import tile_bytes_of
from ttcodegen.naming.programs import kernel_name


def lower_attention(
    group: Group, names: Mapping[SSAValue, str], name: str, cores: CoreRange
) -> Lowered:
    """The program of a group that is one attention.

    Args:
        group: the op.
        names: what values are called: identifiers, all different.
        name: what the program is called.
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
        (movement.reader(), compute.described(), movement.writer()),
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
        """Brings keys and values of a head, then rows of queries, and what belongs to their
        scores."""
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
            self._push_shown(kernel)
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
        """Brings all rows of queries of a unit of work, then keys and values part by part, each
        with the mask of all rows."""
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
        """The number of a row of a unit of work among those of all queries."""
        if self.plan.unit_rows == 1:
            return unit
        whole = kernel.builder.sum(kernel.builder.product(unit, self.plan.unit_rows), row)
        return kernel.builder.named(whole, "query_row")

    def _read_part(
        self, kernel: MovementKernel, group: Value, first: SSAValue, count: SSAValue
    ) -> None:
        """So many rows of the keys and values of a head from one on."""
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
        """Keys and values: their tiles in a row, and what the last tiles are filled to where
        products add up."""
        plan = self.plan
        return (
            ("key", plan.key, plan.inner, (TILE_SIDE, plan.keys.last_columns)),
            ("value", plan.value, plan.width, (plan.values.last_rows, TILE_SIDE)),
        )

    def _push_shown(self, kernel: MovementKernel) -> None:
        """Makes the tile that is 1 where a query sees a key, in the last tile that it sees of."""
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
        """The keys and values of a head, with nothing in place of padding that products add up."""
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
        """Clears a tile that was read, from those rows and columns on."""
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
        """Begins to read tiles that follow each other."""
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
        """The one more score that all queries of a head have, if there is one: all over a tile."""
        plan, builder = self.plan, kernel.builder
        if plan.sink is None:
            return
        head = builder.remainder(builder.quotient(row, plan.queries.rows), plan.queries.shape[1])
        buffer, data_type = plan.buffers["sink"], declared_data_type(plan.sink)
        kernel.push_tiles([BroughtTile(head, plan.names[plan.sink], buffer, "element", data_type)])

    def _read_mask(
        self, kernel: MovementKernel, row: SSAValue, begin: Value = 0, end: Value | None = None
    ) -> None:
        """The tiles of the mask for the scores of a row that are computed, from one on up to
        another."""
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
        # What moves with a column comes last.
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
        """Writes the result."""
        plan = self.plan
        return plan.parts.tile_writer(
            self.name,
            "Writes the output tiles of the attention.",
            plan.cores,
            [plan.buffers["result"]],
            columns=plan.unit_rows * plan.width,
        )
