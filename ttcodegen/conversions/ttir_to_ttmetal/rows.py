"""Device programs with several passes over rows of tiles: softmax and norms."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from ttcodegen.conversions.ttir_to_ttmetal.grouping.grouping import Group
from ttcodegen.conversions.ttir_to_ttmetal.grouping.row_plan import (
    MOST_ROW_BYTES,
    RowPass,
    RowPlan,
    plan_rows,
)
from ttcodegen.conversions.ttir_to_ttmetal.grouping.tile_operations import Allocation
from ttcodegen.conversions.ttir_to_ttmetal.parts.compute import (
    PARTIAL,
    REDUCED,
    SCALER,
    SCALER_TILES,
    ComputeKernel,
    finish_maximum,
    reduce_row,
    reduced_maximum,
    repeated_row,
    start_extremes,
    take_extremes,
)
from ttcodegen.conversions.ttir_to_ttmetal.parts.data_movement import (
    BroughtTile,
    MovementKernel,
    brought_bytes,
    element_word,
)
from ttcodegen.conversions.ttir_to_ttmetal.parts.loop_nests import (
    LoopNest,
    broadcast_of,
    broadcast_strides,
)
from ttcodegen.conversions.ttir_to_ttmetal.parts.program_parts import (
    BUFFER_DEPTH,
    COUNT,
    DOUBLE,
    SHARE,
    Lowered,
    ProgramParts,
    purpose_of,
)
from ttcodegen.dialects.core.datatypes import DataType, shape_of
from ttcodegen.dialects.ttcore.shards import CoreRange
from ttcodegen.dialects.ttkernel.attributes import ReduceDim
from ttcodegen.dialects.ttkernel.builder import Value
from ttcodegen.dialects.ttmetal.programs import ComputeSettings, Costs, Kernel, Processor, UnitTiles
from ttcodegen.dialects.ttmetal.tuning import Size
from ttcodegen.dialects.ttnn.placement import declared_data_type
from ttcodegen.layout.placements import TiledShape, tile_bytes_of
from ttcodegen.naming.programs import kernel_name, reduction_names
from ttcodegen.ops.core.lowering import Tile, TileBuilder

# The compute kernel.


@dataclass(frozen=True)
class RowOperand:
    """Tensor that the reader reads, and its access."""

    value: SSAValue
    name: str
    """Circular buffer of its tiles."""
    shape: TiledShape
    strides: tuple[int, ...]
    """Page strides per dimension of the tiles of the rows."""
    columns: int
    """Number of its tiles in a row."""
    stays: bool
    """True if the tiles stay in L1 until the row is done."""
    is_constant: bool
    """True if the tiles are the same for all rows, and stay for all of them."""

    @property
    def data_type(self) -> DataType:
        """Data type of its elements."""
        return declared_data_type(self.value)


@dataclass
class RowCompute:
    """The compute kernel of a plan.

    Args:
        plan: the passes.
        parts: parts of the program, with all circular buffers.
        operands: operands of the reader.
        kept: circular buffers of reduction results that later passes use.
        outputs: circular buffers of the results.
        columns: number of tiles in a row.
    """

    plan: RowPlan
    parts: ProgramParts
    operands: Sequence[RowOperand]
    kept: Mapping[SSAValue, str]
    outputs: Mapping[SSAValue, str]
    columns: int
    _kernel: ComputeKernel = field(init=False)
    _sources: dict[Tile, str] = field(init=False)

    def kernel(self, name: str, purpose: str, cores: CoreRange) -> tuple[Kernel, FuncOp]:
        """Returns the description of the kernel and its function."""
        kernel = self._kernel = ComputeKernel(kernel_name("compute", name), fp32_destination=True)
        buffers = list(self.parts.buffers)
        kernel.declare(buffers, self.parts.tuning.values())
        results = list(self.outputs.values())
        kernel.unpacks([b.name for b in buffers if b.name not in results])
        kernel.packs([*results, REDUCED])
        self._sources = {
            **{self.plan.inputs[operand.value]: operand.name for operand in self.operands},
            **{self.plan.kept[value]: buffer for value, buffer in self.kept.items()},
        }
        if self.plan.padding is not None:
            self._sources[self.plan.padding] = "elements"
        count = kernel.builder.argument(0, "count")
        kernel.start([self.operands[0].name], results[0])
        self._write(count)
        purpose = f"Computes {purpose}, one row of tiles at a time."
        return self.parts.compute(kernel, purpose, cores, buffers, COUNT)

    def _write(self, count: SSAValue) -> None:
        kernel = self._kernel
        staying = [operand for operand in self.operands if operand.stays]
        kernel.op("cb_wait_front", SCALER, SCALER_TILES)
        if self.plan.padding is not None:
            kernel.wait(["elements"])
        with kernel.builder.loop(count, name_hint="tile_row"):
            for operand in staying:
                kernel.op("cb_wait_front", operand.name, operand.columns)
            names = reduction_names([each.op for each in self.plan.passes])
            for each, name, results in zip(self.plan.passes, names, self.plan.results, strict=True):
                purpose = f"Computes the {each.reduction.noun} of a row, and what follows from it."
                with kernel.builder.stage(name, purpose):
                    self._reduce(each)
                    self._finish(each, results)
            with kernel.builder.stage("finish_row", "Computes the results of a row."):
                self._results()
            for operand in staying:
                if not operand.is_constant:
                    kernel.op("cb_pop_front", operand.name, operand.columns)
            kernel.pop(list(self.kept.values()))

    # The passes

    def _streamed(self, allocation: Allocation | None) -> list[RowOperand]:
        """Operands that a pass streams tile by tile."""
        values = self.plan.reads(allocation)
        return [o for o in self.operands if o.value in values and not o.stays]

    def _indices(self, column: Value) -> dict[str, Value]:
        """Index of a column's tile in the circular buffers that hold rows."""
        return {o.name: column for o in self.operands if o.stays and o.columns > 1}

    def _direct(self, each: RowPass) -> RowOperand | None:
        """Returns the operand that the matrix engine reduces directly, if any.

        It must be bf16, because the engine truncates 32-bit floats, and must not have padding."""
        if self.plan.padding is not None:
            return None
        return next(
            (o for o in self.operands
             if self.plan.inputs[o.value] == each.reduced and o.data_type is DataType.BFLOAT16
             and o.columns == self.columns),
            None,
        )  # fmt: skip

    def _reduce(self, each: RowPass) -> None:
        """Reduces a row to the first column of a tile."""
        kernel = self._kernel
        if each.reduction.is_extreme:
            with kernel.builder.destination_registers():
                self._accumulate(each)
                kernel.forget()
                kernel.pack_when_free([(self._maximum(each), REDUCED)])
            kernel.push([REDUCED])
            return
        operand = self._direct(each)
        if operand is None:
            with kernel.builder.destination_registers():
                self._accumulate(each)
                kernel.pack_when_free([(0, PARTIAL)])
            kernel.push([PARTIAL])
        streams = operand is None or not operand.stays
        reduce_row(
            kernel,
            PARTIAL if operand is None else operand.name,
            each.reduction.pool,
            1 if operand is None else self.columns,
            streams,
        )

    def _maximum(self, each: RowPass) -> int:
        """Returns the register of the maximum of each row of elements."""
        if each.has_least:
            return finish_maximum(self._kernel, [ReduceDim.ROW])
        builder = TileBuilder()
        reduced_maximum(builder, builder.new_tile(DataType.FLOAT32), [ReduceDim.ROW])
        self._kernel.call(builder.calls[-1], [0])
        return 0

    def _accumulate(self, each: RowPass) -> None:
        """Accumulates the tiles of a row in the first register.

        The second register holds the minimum, if it is reserved for that."""
        kernel, reduction = self._kernel, each.reduction
        builder = TileBuilder(tiles=self.plan.builder.tiles)
        kernel.forget()
        start = builder.fill(reduction.neutral, DataType.FLOAT32)
        if each.has_least:
            start_extremes(kernel)
        else:
            kernel.call(builder.calls[-1], [0])
        builder.call(reduction.combine, start, start)
        streamed = [operand.name for operand in self._streamed(each.over)]

        def combine(allocation: Allocation, tile: Tile, column: Value) -> None:
            kernel.forget()
            kernel.wait(streamed)
            kernel.run(allocation, self._sources, self._indices(column))
            if each.has_least:
                take_extremes(kernel, allocation.results[tile])
            else:
                kernel.call(builder.calls[-1], [0, allocation.results[tile], 0])
            kernel.pop(streamed)

        full = self.columns - (self.plan.padding is not None)
        if full:
            with kernel.builder.loop(full, name_hint="column") as column:
                combine(each.over, each.reduced, column)
        if full < self.columns:
            combine(each.over_last, each.selected, full)

    def _finish(self, each: RowPass, results: Mapping[SSAValue, Tile]) -> None:
        """Broadcasts the reduced value over the row, and computes the ops after it."""
        kernel = self._kernel
        packed = [
            (each.after.results[tile], buffer)
            for value, tile in results.items()
            for buffer in self._buffers_of(value)
        ]
        with repeated_row(kernel):
            kernel.run(each.after, self._sources)
            kernel.pack_when_free(packed)
        kernel.push([buffer for _, buffer in packed])
        kernel.wait([self.kept[value] for value in results if value in self.kept])

    def _buffers_of(self, value: SSAValue) -> Iterable[str]:
        """Circular buffers that a value of one element per row is packed to."""
        return [places[value] for places in (self.kept, self.outputs) if value in places]

    def _results(self) -> None:
        """Computes the results in the last pass."""
        allocation, kernel = self.plan.last, self._kernel
        if allocation is None:
            return
        streamed = [operand.name for operand in self._streamed(allocation)]
        names = [self.outputs[value] for value in self.plan.outputs]
        with kernel.builder.loop(self.columns, name_hint="column") as column:
            kernel.forget()
            kernel.wait(streamed)
            with kernel.builder.destination_registers():
                kernel.run(allocation, self._sources, self._indices(column))
                places = [allocation.results[tile] for tile in self.plan.outputs.values()]
                kernel.pack_when_free(list(zip(places, names, strict=True)))
            kernel.pop(streamed)
            kernel.push(names)


# The reader reads a row of tiles of each operand once, if L1 has room for it; otherwise it streams
# the tiles again for each pass. Operands that are the same for all rows are read once.


def lower_rows(group: Group, names: Mapping[SSAValue, str], name: str, cores: CoreRange) -> Lowered:
    """Lowers a group with several passes over rows of tiles to a program.

    Args:
        group: elementwise ops and reductions of rows.
        names: unique identifiers of the values.
        name: name of the program.
        cores: the cores that share the rows of tiles.
    """
    plan = plan_rows(group.ops, group.shape, group.outputs())
    assert plan is not None, "groups are formed so that they fit"
    return _RowProgram(group, plan, names, name, cores).lower()


@dataclass
class _RowProgram:
    group: Group
    plan: RowPlan
    names: Mapping[SSAValue, str]
    name: str
    cores: CoreRange
    parts: ProgramParts = field(init=False)

    def lower(self) -> Lowered:
        outputs = self.group.outputs()
        self.domain = TiledShape(self.group.shape)
        self.purpose = purpose_of(self.group)
        self.parts = ProgramParts(self.names, list(self.plan.inputs), outputs)
        self.operands = [self._operand(value) for value in self.plan.inputs]
        self.output_names = {value: self.parts.buffers.add_tensor(value) for value in outputs}
        kept = {
            value: self.parts.buffers.add_value(value, DataType.FLOAT32, 1)
            for value in self.plan.kept
        }
        for name in (PARTIAL, REDUCED):
            self.parts.buffers.add(name, DataType.FLOAT32, 1)
        self.parts.buffers.add(SCALER, DataType.BFLOAT16, SCALER_TILES)
        if self.plan.padding is not None:
            self.parts.buffers.add("elements", DataType.BFLOAT16, 1)
        copied = [*(operand.name for operand in self.operands), *kept.values(), REDUCED]
        settings = ComputeSettings(
            fp32_destination=True, unpack_to_fp32=self.parts.buffers.wide(copied)
        )
        compute = RowCompute(
            self.plan, self.parts, self.operands, kept, self.output_names, self.domain.columns
        )
        kernels = (self._reader(), compute.kernel(self.name, self.purpose, self.cores),
                   self._writer())  # fmt: skip
        return self.parts.program(
            self.name,
            self.purpose,
            self.cores,
            kernels,
            self._costs(),
            settings,
            work_units=self._rows,
            work_unit="row of output tiles",
        )

    @property
    def _rows(self) -> int:
        return prod(self.domain.grid[:-1])

    def _operand(self, value: SSAValue) -> RowOperand:
        shape = TiledShape(shape_of(value.type))
        strides = broadcast_strides(shape, self.domain)
        columns = self.domain.columns if strides[-1] else 1
        is_constant = not any(
            stride for stride, size in zip(strides[:-1], self.domain.grid[:-1], strict=True)
            if size > 1
        )  # fmt: skip
        # A single tile per row always stays.
        stays = self.plan.stays or columns == 1
        pages: Size = BUFFER_DEPTH
        if stays:
            pages = columns * (1 if is_constant else self._row_depth)
        name = self.parts.buffers.add_tensor(value, pages)
        if shape.tiles == self._rows * columns:
            self.parts.divisions[value] = UnitTiles(columns)
        return RowOperand(value, name, shape, tuple(strides), columns, stays, is_constant)

    @property
    def _row_depth(self) -> int:
        return DOUBLE if DOUBLE * self.plan.row_bytes <= MOST_ROW_BYTES else 1

    # Data movement

    def _reader(self) -> tuple[Kernel, FuncOp]:
        kernel = self.parts.data_movement(
            kernel_name("read", self.name),
            Processor.READER,
            f"Reads the rows of tiles of {self.purpose}.",
            self.cores,
            tensors=self.parts.inputs,
            buffers=[*(operand.name for operand in self.operands), *self._constants],
            arguments=SHARE,
        )
        kernel.builder.op("blocks.push_reduce_scaler", kernel.buffer(SCALER))
        if self.plan.padding is not None:
            kernel.push_marks("elements", self.domain.last_columns)
        grid = (*self.domain.grid[:-1], 1)
        steps = (*(1 for _ in grid[:-1]), self.domain.columns)
        nest = LoopNest.of(
            grid,
            steps,
            [((*o.strides[:-1], 0), (*(0 for _ in grid[:-1]), o.strides[-1]))
             for o in self.operands],
            "tile_row",
        )  # fmt: skip
        rows = [page[:len(page) - bool(o.strides[-1] and self.domain.columns > 1)]
                for page, o in zip(nest.pages, self.operands, strict=True)]  # fmt: skip
        first = dict(zip((o.name for o in self.operands), rows, strict=True))
        constants = [operand for operand in self.operands if operand.stays and operand.is_constant]
        if constants:
            # Cores without rows do not read them.
            with kernel.builder.when(kernel.builder.compare("ne", kernel["count"], 0)):
                for operand in constants:
                    self._read_row(kernel, operand, 0)
        if len(constants) == len(self.operands):
            return kernel.finish()
        with kernel.share("tile_row") as tile_row:
            known = kernel.coordinates(nest.tile_coordinates, {"tile_row": tile_row})
            pages = {o.name: kernel.page(first[o.name], known) for o in self.operands}
            for operand in self.operands:
                if operand.stays and not operand.is_constant:
                    self._read_row(kernel, operand, pages[operand.name])
            for values in self.plan.operands_of_passes:
                passing = [o for o in self.operands if o.value in values and not o.stays]
                self._stream(kernel, passing, pages)
        return kernel.finish()

    @property
    def _constants(self) -> list[str]:
        """Circular buffers of tiles that the reader generates."""
        return [SCALER, *(["elements"] if self.plan.padding is not None else [])]

    def _read_row(self, kernel: MovementKernel, operand: RowOperand, page: Value) -> None:
        """Reads the tiles of a row at once."""
        builder = kernel.builder
        builder.op("cb_reserve_back", kernel.buffer(operand.name), operand.columns)
        address = kernel.write_pointer(operand.name, f"{operand.name}_row")
        size = tile_bytes_of(operand.data_type)
        with builder.loop(operand.columns, name_hint="column") as column:
            target = kernel.sum([address, builder.product(column, size)])
            kernel.read_tile(
                kernel.sum([page, column]) if operand.columns > 1 else page,
                self.names[operand.value],
                target if operand.columns > 1 else address,
                self._broadcast(operand),
                element_word(operand.data_type),
            )
        builder.op("noc_async_read_barrier")
        if self._broadcast(operand) != "none":
            with builder.loop(operand.columns, name_hint="column") as column:
                target = kernel.sum([address, builder.product(column, size)])
                builder.op(
                    f"blocks.repeat_first_{self._broadcast(operand)}",
                    target if operand.columns > 1 else address,
                    element=element_word(operand.data_type),
                )
        builder.op("cb_push_back", kernel.buffer(operand.name), operand.columns)

    def _stream(
        self, kernel: MovementKernel, operands: Sequence[RowOperand], pages: Mapping[str, Value]
    ) -> None:
        """Reads the tiles of a pass, column by column."""
        if not operands:
            return
        with kernel.builder.loop(self.domain.columns, name_hint="column") as column:
            kernel.push_tiles(
                [
                    BroughtTile(
                        kernel.sum([pages[operand.name], column]),
                        self.names[operand.value],
                        operand.name,
                        self._broadcast(operand),
                        operand.data_type,
                    )
                    for operand in operands
                ]
            )

    def _broadcast(self, operand: RowOperand) -> str:
        return broadcast_of(operand.shape, self.domain).word

    def _writer(self) -> tuple[Kernel, FuncOp]:
        kernel = self.parts.data_movement(
            kernel_name("write", self.name),
            Processor.WRITER,
            f"Writes the rows of tiles of {self.purpose}.",
            self.cores,
            tensors=list(self.output_names),
            buffers=list(self.output_names.values()),
            arguments=SHARE,
        )
        whole = [value for value in self.output_names if value in self.plan.outputs]
        for value in self.output_names:
            columns = self.domain.columns if value in whole else 1
            self.parts.divisions[value] = UnitTiles(columns)
        builder = kernel.builder
        with kernel.share("tile_row") as tile_row:
            for results in self.plan.results:
                single = [value for value in results if value in self.output_names]
                self._write(kernel, tile_row, single)
            if whole:
                with builder.loop(self.domain.columns, name_hint="column") as column:
                    row = builder.product(tile_row, self.domain.columns)
                    self._write(kernel, kernel.sum([row, column]), whole)
        return kernel.finish()

    def _write(self, kernel: MovementKernel, page: Value, values: Iterable[SSAValue]) -> None:
        values = list(values)
        if values:
            tensors = [self.names[value] for value in values]
            kernel.write_tiles(page, tensors, [self.output_names[value] for value in values])

    # Costs

    def _costs(self) -> Costs:
        passes = self.plan.operands_of_passes
        used = min(self._rows, self.cores.cores)
        reads = Counter[SSAValue]()
        for operand in self.operands:
            size = operand.columns * brought_bytes(operand.data_type, self._broadcast(operand))
            times = used if operand.is_constant else self._rows
            if not operand.stays:
                times = self._rows * sum(operand.value in values for values in passes)
            reads[operand.value] += times * size
        return self.parts.costs(reads, tiles_computed=len(self.group.ops) * self.domain.tiles)
