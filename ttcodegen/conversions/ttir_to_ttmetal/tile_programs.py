"""Programs of elementwise ops on tiles, optionally with a reduction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from ttcodegen.conversions.ttir_to_ttmetal.grouping.grouping import Group
from ttcodegen.conversions.ttir_to_ttmetal.grouping.operand_pairs import (
    Operand,
    OperandPair,
    multiplies_afresh,
    operand_pairs,
)
from ttcodegen.conversions.ttir_to_ttmetal.grouping.tile_operations import (
    GREATEST,
    LEAST,
    REDUCTIONS,
    Allocation,
    accumulated_type,
    allocate,
    capacity,
    lower_chain,
    needs_fp32,
    reduced_elements,
)
from ttcodegen.conversions.ttir_to_ttmetal.parts.compute import (
    PARTIAL,
    SCALER,
    SCALER_TILES,
    ComputeKernel,
    finish_maximum,
    reduce_further,
    start_extremes,
    start_reduction,
    take_extremes,
)
from ttcodegen.conversions.ttir_to_ttmetal.parts.data_movement import (
    MovementKernel,
    TileOperand,
    element_bits,
    plan_reads,
)
from ttcodegen.conversions.ttir_to_ttmetal.parts.loop_nests import (
    LoopNest,
    Page,
    broadcast_strides,
    page_of_tile,
)
from ttcodegen.conversions.ttir_to_ttmetal.parts.program_parts import (
    BUFFER_DEPTH,
    COUNT,
    SHARE,
    Lowered,
    ProgramParts,
    purpose_of,
)
from ttcodegen.dialects.core.datatypes import DataType, shape_of
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttcore.shards import CoreRange
from ttcodegen.dialects.ttcore.tile import TILE_SIDE
from ttcodegen.dialects.ttkernel.attributes import KeptTilesType, ReduceDim
from ttcodegen.dialects.ttkernel.builder import Value
from ttcodegen.dialects.ttmetal.programs import (
    CIRCULAR_BUFFERS,
    ComputeSettings,
    Costs,
    Kernel,
    Processor,
    UnitTiles,
)
from ttcodegen.dialects.ttnn.placement import declared_data_type
from ttcodegen.layout.placements import TiledShape, tile_bytes_of
from ttcodegen.naming.programs import kernel_name
from ttcodegen.ops.core.lowering import Tile, TileBuilder


def lower_tiles(
    group: Group, names: Mapping[SSAValue, str], name: str, cores: CoreRange
) -> Lowered:
    """Lowers a group of ops on tiles to a program.

    Args:
        group: elementwise ops, optionally with a reduction.
        names: unique identifiers of the values.
        name: name of the program.
        cores: the cores that share the work.
    """
    return _TileProgram(group, names, name, cores).lower()


@dataclass
class _TileProgram:
    group: Group
    names: Mapping[SSAValue, str]
    name: str
    cores: CoreRange
    _builder: TileBuilder = field(default_factory=TileBuilder)

    def lower(self) -> Lowered:
        group = self.group
        self.domain = TiledShape(group.shape)
        self.result = TiledShape(group.result_shape)
        self.reduction = REDUCTIONS[group.root.name] if group.root is not None else None
        self.purpose = purpose_of(group)
        self._collect()
        settings = self._settings()
        writer = self.parts.tile_writer(
            self.name,
            f"Writes the output tiles of {self.purpose}{self._order_text}.",
            self.cores,
            self.output_names,
            order=self.reads.order,
        )
        return self.parts.program(
            self.name,
            self.purpose,
            self.cores,
            (*self._reader(), self._compute(settings), writer),
            self._costs(),
            settings,
            work_units=self.result.tiles,
        )

    # Tile operations and operands

    def _collect(self) -> None:
        group = self.group
        known: dict[SSAValue, Tile] = {}
        producer_inputs: dict[SSAValue, Tile] = {}
        lower_chain(self._builder, group.producers, known, producer_inputs)
        epilogue_inputs: dict[SSAValue, Tile] = {}
        self.wide = needs_fp32([*group.inputs(), *(r for op in group.ops for r in op.results)])
        if group.root is not None:
            self._collect_reduction(group.root, known, producer_inputs, epilogue_inputs)
        outputs = group.outputs()
        self.results = [known[value] for value in outputs]
        self.parts = ProgramParts(self.names, [*producer_inputs, *epilogue_inputs], outputs)
        self.inner = [self._input(v, t, self.domain) for v, t in producer_inputs.items()]
        self.outer = [self._input(v, t, self.result) for v, t in epilogue_inputs.items()]
        self.output_names = [self.parts.buffers.add_tensor(value) for value in outputs]
        if self.by_matrix_engine:
            self.parts.buffers.add(SCALER, DataType.BFLOAT16, SCALER_TILES)
            if not self.direct:
                self.parts.buffers.add(PARTIAL, DataType.FLOAT32, BUFFER_DEPTH)
        self._plan_reads()

    def _plan_reads(self) -> None:
        """Chooses the order of tiles, and the operands of which some stay in L1."""
        keepable = [each.name for each in self.operands if not self._is_padded(each)]
        free_buffers = CIRCULAR_BUFFERS - len(self.parts.buffers)
        self.reads = plan_reads(self.operands, keepable, self.result.grid, self.cores, free_buffers)
        self.kept = {
            name: self.parts.buffers.add_kept(name, slots)
            for name, slots in self.reads.slots.items()
        }
        if self.reads.order.is_row_by_row:
            for operand in self.operands:
                self._divide(operand)

    def _divide(self, operand: TileOperand) -> None:
        """Records the operand tiles per output tile if they are consecutive.

        That requires no broadcast, and a reduction of columns only."""
        *others, columns = operand.steps
        if set(others) <= {1} and operand.shape.tiles == self.result.tiles * columns:
            self.parts.divisions[operand.value] = UnitTiles(columns)

    @property
    def _order_text(self) -> str:
        """Describes the order of tiles for the head of kernels, unless it is row by row."""
        order = self.reads.order
        return "" if order.is_row_by_row else f", counted along {order.text}"

    @property
    def operands(self) -> list[TileOperand]:
        """All operands of the reader, in read order."""
        return [*self.inner, *self.outer]

    @property
    def _step_counts(self) -> tuple[int, ...]:
        """Number of operand tiles per output tile, in each dimension."""
        return self.steps if self.reduction is not None else (1,) * len(self.result.grid)

    def _collect_reduction(
        self,
        root: CatalogueOp,
        known: dict[SSAValue, Tile],
        producer_inputs: dict[SSAValue, Tile],
        epilogue_inputs: dict[SSAValue, Tile],
    ) -> None:
        reduction = self.reduction
        assert reduction is not None
        source = root.operands[0]
        if source not in known:
            producer_inputs[source] = self._builder.new_tile(declared_data_type(source))
            known[source] = producer_inputs[source]
        self.reduced = reduction.prepared(self._builder, known[source])
        self.wide = True
        self.accumulator = self._builder.new_tile(accumulated_type(root))
        known[root.results[0]] = reduction.finished(
            self._builder, self.accumulator, reduced_elements(root)
        )
        lower_chain(self._builder, self.group.epilogue, known, epilogue_inputs)

    def _input(self, value: SSAValue, tile: Tile, domain: TiledShape) -> TileOperand:
        buffer = self.parts.buffers.add_tensor(value)
        shape = TiledShape(shape_of(value.type))
        strides = broadcast_strides(shape, domain)
        none = (1,) * len(strides)
        steps = self._step_counts if domain is self.domain else none
        moves = tuple(stride * step for stride, step in zip(strides, steps, strict=True))
        step_moves = tuple(strides) if steps != none else (0,) * len(strides)
        return TileOperand(value, buffer, tile, shape, domain, moves, steps, step_moves)

    def _settings(self) -> ComputeSettings:
        direct = self.reduction is not None and self.direct
        copied = [operand.name for operand in (*(() if direct else self.inner), *self.outer)]
        return ComputeSettings(
            fp32_destination=self.wide, unpack_to_fp32=self.parts.buffers.wide(copied)
        )

    # Reduction

    @property
    def reduced_within(self) -> str:
        """Direction of the reduction within a tile: row, column, scalar or ""."""
        columns = self.domain.width != self.result.width
        rows = self.domain.height != self.result.height
        if columns:
            return "scalar" if rows else "row"
        return "column" if rows else ""

    @property
    def compares(self) -> bool:
        """Returns whether floats are compared, which the vector engine does exactly."""
        reduction = self.reduction
        return (
            reduction is not None and reduction.is_extreme and (self.accumulator.data_type.is_float)
        )

    @property
    def by_matrix_engine(self) -> bool:
        """Returns whether the matrix engine reduces within tiles."""
        return self.reduction is not None and bool(self.reduced_within) and not self.compares

    @property
    def direct(self) -> bool:
        """Returns whether the matrix engine reduces operand tiles directly."""
        is_input = any(operand.tile == self.reduced for operand in self.inner)
        return self.by_matrix_engine and is_input

    @property
    def steps(self) -> tuple[int, ...]:
        """Number of operand tiles per output tile of a reduction, in each dimension."""
        return tuple(
            size // kept for size, kept in zip(self.domain.grid, self.result.grid, strict=True)
        )

    # The compute kernel

    def _compute(self, settings: ComputeSettings) -> tuple[Kernel, FuncOp]:
        kernel = ComputeKernel(kernel_name("compute", self.name), settings.fp32_destination)
        kept = set(self.kept.values())
        buffers = [b for b in self.parts.buffers if b.name not in kept]
        kernel.declare(buffers, self.parts.tuning.values())
        kernel.unpacks([b.name for b in buffers if b.name not in self.output_names])
        arguments = SHARE if self.group.draws else COUNT
        places = [argument.name for argument in arguments]
        numbers = {name: kernel.builder.argument(i, name) for i, name in enumerate(places)}
        if self.reduction is None:
            self._write_elementwise(kernel, numbers["count"], numbers.get("first", 0))
        else:
            self._write_reduction(kernel, numbers["count"])
        order = self._order_text if self.group.draws else ""
        purpose = f"Computes {self.purpose}, tile by tile{order}."
        return self.parts.compute(kernel, purpose, self.cores, buffers, arguments)

    def _allocate(self, results: Sequence[Tile], held: Mapping[Tile, int]) -> Allocation:
        found = allocate(self._builder.calls, results, capacity(self.wide), held)
        assert found is not None, "groups are formed so that they fit"
        return found

    def _write_elementwise(self, kernel: ComputeKernel, count: SSAValue, first: Value) -> None:
        inputs = [operand.name for operand in self.inner]
        sources = {operand.tile: operand.name for operand in self.inner}
        allocation, pairs = self._paired(kernel, sources)
        kernel.start(inputs, self.output_names[0])
        kernel.packs(self.output_names)
        end = kernel.builder.sum(first, count)
        with kernel.builder.loop(end, start=first, name_hint="tile") as tile:
            kernel.forget()
            if self.group.draws:
                kernel.tile = page_of_tile(kernel.builder, self.reads.order, tile)
            kernel.wait(inputs)
            with kernel.builder.destination_registers():
                kernel.run(allocation, sources, pairs=pairs)
                self._pack_results(kernel, allocation)
            kernel.pop(inputs)
            kernel.push(self.output_names)

    def _paired(
        self, kernel: ComputeKernel, sources: Mapping[Tile, str]
    ) -> tuple[Allocation, Mapping[Tile, OperandPair]]:
        """The steps of a section, and what the matrix engine computes of two operands: those of 16
        bits, which it reads whole."""

        def operand(tile: Tile) -> Operand | None:
            name = sources.get(tile)
            if name is None or kernel.format_of(name) is not DataType.BFLOAT16:
                return None
            return Operand(name, 0)

        calls, pairs = operand_pairs(self._builder.calls, self.results, operand)
        allocation = allocate(calls, self.results, capacity(self.wide))
        if allocation is not None and multiplies_afresh(allocation, pairs):
            return allocation, pairs
        return self._allocate(self.results, {}), {}

    def _pack_results(self, kernel: ComputeKernel, allocation: Allocation) -> None:
        places = [allocation.results[tile] for tile in self.results]
        kernel.pack_when_free(list(zip(places, self.output_names, strict=True)))

    def _write_reduction(self, kernel: ComputeKernel, count: SSAValue) -> None:
        inner = [operand.name for operand in self.inner]
        kernel.start(inner, self.output_names[0])
        partial = [PARTIAL] if self.by_matrix_engine and not self.direct else []
        kernel.packs([*self.output_names, *partial])
        if self.by_matrix_engine:
            kernel.op("cb_wait_front", SCALER, SCALER_TILES)
        with kernel.builder.loop(count, name_hint="tile"):
            kernel.forget()
            if not self.by_matrix_engine:
                with kernel.builder.destination_registers():
                    self._accumulate(kernel, inner)
                    self._finish(kernel, self._compared(kernel) if self.compares else 0)
            else:
                if not self.direct:
                    with kernel.builder.destination_registers():
                        self._accumulate(kernel, inner)
                        kernel.pack_when_free([(0, PARTIAL)])
                    kernel.push([PARTIAL])
                self._pool(kernel, inner)
            kernel.push(self.output_names)

    def _accumulate(self, kernel: ComputeKernel, inner: Sequence[str]) -> None:
        """Accumulates the tiles of the domain in the first register."""
        reduction = self.reduction
        assert reduction is not None
        builder = TileBuilder(tiles=self._builder.tiles)
        held = {self.accumulator: GREATEST}
        start = self.accumulator
        if self.compares:
            held[builder.new_tile(DataType.FLOAT32)] = LEAST
            start_extremes(kernel)
        else:
            start = reduction.start(builder, self.accumulator.data_type)
            kernel.call(builder.calls[-1], [0])
        allocation = self._allocate([self.reduced], held)
        place = allocation.results[self.reduced]
        sources = {operand.tile: operand.name for operand in self.inner}
        with kernel.builder.loop(prod(self.steps), name_hint="step"):
            kernel.forget()
            kernel.wait(inner)
            kernel.run(allocation, sources)
            if self.compares:
                take_extremes(kernel, place)
            else:
                reduction.combined(builder, start, start)
                kernel.call(builder.calls[-1], [0, place, 0])
            kernel.pop(inner)
        kernel.forget()

    def _compared(self, kernel: ComputeKernel) -> int:
        """Returns the register of the maximum, reduced within the tile where needed."""
        along = {"row": [ReduceDim.ROW], "column": [ReduceDim.COL]}
        both = [ReduceDim.ROW, ReduceDim.COL]
        within = along.get(self.reduced_within, both) if self.reduced_within else []
        return finish_maximum(kernel, within)

    def _pool(self, kernel: ComputeKernel, inner: Sequence[str]) -> None:
        """Reduces within tiles by the matrix engine."""
        reduction = self.reduction
        assert reduction is not None
        dimensions = {"row": ReduceDim.ROW, "column": ReduceDim.COL, "scalar": ReduceDim.SCALAR}
        kind = reduction.pool, dimensions[self.reduced_within]
        source, tiles = (inner[0], prod(self.steps)) if self.direct else (PARTIAL, 1)
        masked = start_reduction(kernel, source, self.output_names[0], *kind)
        with kernel.builder.destination_registers():
            with kernel.builder.loop(tiles, name_hint="step"):
                kernel.wait([source])
                reduce_further(kernel, source, 0, *kind)
                kernel.pop([source])
            self._finish(kernel, masked=masked)

    def _finish(self, kernel: ComputeKernel, place: int = 0, masked: bool = False) -> None:
        """Computes the epilogue of the tile in a register.

        With `masked`, the packer keeps only what the matrix engine reduced."""
        outer = [operand.name for operand in self.outer]
        sources = {operand.tile: operand.name for operand in self.outer}
        allocation = self._allocate(self.results, {self.accumulator: place})
        kernel.wait(outer)
        kernel.run(allocation, sources)
        # The mask is for the first register only.
        is_first = all(allocation.results[tile] == 0 for tile in self.results)
        if masked and not is_first:
            kernel.op("reduce_uninit")
        self._pack_results(kernel, allocation)
        if masked and is_first:
            kernel.op("reduce_uninit")
        kernel.pop(outer)

    # Data movement

    def _reader(self) -> list[tuple[Kernel, FuncOp]]:
        """Kernel that reads the operands, if there are any."""
        operands = self.operands
        if not operands:
            return []
        order = self.reads.order
        nest = LoopNest.of(
            order.sizes,
            self._step_counts,
            [(order.moves(operand.moves), operand.step_moves) for operand in operands],
            names=order.names,
        )
        pages = dict(zip((operand.name for operand in operands), nest.pages, strict=True))
        scaler = [SCALER] if self.by_matrix_engine else []
        kernel = self.parts.data_movement(
            kernel_name("read", self.name),
            Processor.READER,
            f"Reads the input tiles of {self.purpose}{self._order_text}.",
            self.cores,
            tensors=self.parts.inputs,
            buffers=[*self.reads.tiles, *self.kept.values(), *scaler],
            arguments=SHARE,
        )
        self._keep_tiles(kernel)
        for name in scaler:
            kernel.builder.op("blocks.push_reduce_scaler", kernel.buffer(name))
        with kernel.share("tile") as tile:
            known = kernel.coordinates(nest.tile_coordinates, {"tile": tile})
            self._read_inner(kernel, nest, pages, known)
            self._read(kernel, self.outer, pages, known)
        return [kernel.finish()]

    def _keep_tiles(self, kernel: MovementKernel) -> None:
        """Declares the operand tiles that the reader caches."""
        self._kept_values: dict[str, SSAValue] = {}
        for operand in self.operands:
            if operand.name in self.kept:
                self._kept_values[operand.name] = kernel.builder.get(
                    "blocks.keep_tiles",
                    kernel.tensor(self.names[operand.value]),
                    kernel.buffer(self.kept[operand.name]),
                    kernel.buffer(operand.name),
                    slots=self.reads.slots[operand.name],
                    result_type=KeptTilesType(),
                    name_hint=f"{operand.name}_kept",
                )

    def _read_inner(
        self,
        kernel: MovementKernel,
        nest: LoopNest,
        pages: Mapping[str, Page],
        known: Mapping[str, SSAValue],
    ) -> None:
        """Reads the operands of each reduction step, or once without reduction."""
        steps = prod(self._step_counts)
        if not self.inner:
            return
        if steps == 1:
            self._read(kernel, self.inner, pages, known)
            return
        with kernel.builder.loop(steps, name_hint="step") as step:
            inside = kernel.coordinates(nest.step_coordinates, {**known, "step": step})
            self._read(kernel, self.inner, pages, inside)

    def _read(
        self,
        kernel: MovementKernel,
        operands: Sequence[TileOperand],
        pages: Mapping[str, Page],
        known: Mapping[str, SSAValue],
    ) -> None:
        """Pushes one tile of each operand."""
        builder = kernel.builder
        uncached = [operand for operand in operands if operand.name not in self.kept]
        for operand in uncached:
            builder.op("cb_reserve_back", kernel.buffer(operand.name), 1)
            page = kernel.page(pages[operand.name], known)
            address = kernel.write_pointer(operand.name)
            name, broadcast = self.names[operand.value], operand.broadcast
            kernel.read_tile(page, name, address, broadcast, operand.element)
        if uncached:
            builder.op("noc_async_read_barrier")
        for operand in uncached:
            if self._is_padded(operand):
                self._fill_padding(kernel, operand, kernel.page(pages[operand.name], known))
            kernel.repeat_first(operand.name, operand.broadcast, operand.element)
            builder.op("cb_push_back", kernel.buffer(operand.name), 1)
        for operand in operands:
            if operand.name in self.kept:
                broadcast = operand.broadcast
                is_whole = broadcast == "none"
                builder.op(
                    f"blocks.kept_tiles.push{'' if is_whole else f'_first_{broadcast}'}",
                    self._kept_values[operand.name],
                    kernel.page(pages[operand.name], known),
                    **({} if is_whole else {"element": operand.element}),
                )

    def _last_elements(self, shape: TiledShape) -> tuple[int, int]:
        """Filled rows and columns of the last tiles, along the reduced dimensions."""
        columns = shape.last_columns if self.reduced_within != "column" else TILE_SIDE
        rows = shape.last_rows if self.reduced_within != "row" else TILE_SIDE
        return rows, columns

    def _is_padded(self, operand: TileOperand) -> bool:
        """Returns whether the padding of the operand's last tiles affects the result."""
        if self.reduction is None or operand.domain is not self.domain or not self.reduced_within:
            return False
        # A broadcast row or column fills whole tiles, and is padded only if the domain is.
        whole = (TILE_SIDE, TILE_SIDE)
        return whole not in (self._last_elements(self.domain), self._last_elements(operand.shape))

    def _fill_padding(self, kernel: MovementKernel, operand: TileOperand, page: Value) -> None:
        """Fills the padding of the operand's last tiles with the identity of the reduction."""
        reduction = self.reduction
        assert reduction is not None
        shape = operand.shape
        rows, columns = self._last_elements(shape)
        value = -reduction.neutral if reduction.negated else reduction.neutral
        bits = element_bits(value, operand.data_type)
        builder = kernel.builder
        # The tile's row and column follow from its page for every loop nest.
        if columns != TILE_SIDE:
            column = builder.remainder(page, shape.columns) if shape.columns > 1 else None
            self._fill(kernel, operand, column, shape.columns, (TILE_SIDE, columns), bits)
        if rows != TILE_SIDE:
            row = builder.quotient(page, shape.columns) if shape.columns > 1 else page
            is_single = shape.rows == 1
            row = None if is_single else builder.remainder(row, shape.rows)
            self._fill(kernel, operand, row, shape.rows, (rows, TILE_SIDE), bits)

    def _fill(
        self,
        kernel: MovementKernel,
        operand: TileOperand,
        position: SSAValue | None,
        count: int,
        kept: tuple[int, int],
        bits: int,
    ) -> None:
        """Fills a tile from row and column `kept` on, if it is the last of `count`."""
        builder = kernel.builder

        def fill() -> None:
            kernel.fill(kernel.write_pointer(operand.name), *kept, bits, operand.element)

        if position is None:
            fill()
        else:
            with builder.when(builder.compare("eq", position, count - 1)):
                fill()

    # Costs

    def _costs(self) -> Costs:
        reads = Counter[SSAValue]()
        least: dict[SSAValue, int] = {}
        copied = 0
        for operand in self.operands:
            value, brought = operand.value, operand.brought_bytes
            pattern = operand.pattern(self.reads.order)
            reads[value] += self.reads.tiles[operand.name] * brought
            least[value] = max(pattern.pages * brought, least.get(value, 0))
            if operand.name in self.kept:
                copied += pattern.count * tile_bytes_of(operand.data_type)
        # An operand that is read both before a reduction and after it could be kept.
        computed = len(self.group.ops) * self.domain.tiles
        return self.parts.costs(
            reads, least_reads=least, tiles_computed=computed, sent=copied, own_l1_bytes=copied
        )
