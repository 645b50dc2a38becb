"""The compute kernel of programs that go over rows of tiles several times."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from ttcodegen.conversions.ttir_to_ttmetal.grouping.registers import Allocation
from ttcodegen.conversions.ttir_to_ttmetal.grouping.row_plan import RowPass, RowPlan
from ttcodegen.conversions.ttir_to_ttmetal.parts.compute import ComputeKernel
from ttcodegen.conversions.ttir_to_ttmetal.parts.extremes import reduced_maximum
from ttcodegen.conversions.ttir_to_ttmetal.parts.program_parts import COUNT, ProgramParts
from ttcodegen.conversions.ttir_to_ttmetal.rows.reduction import (
    PARTIAL,
    REDUCED,
    SCALER,
    reduce_row,
    repeated_row,
)
from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.dialects.ttcore.cores import CoreRange
from ttcodegen.dialects.ttkernel.attributes import ReduceDim
from ttcodegen.dialects.ttkernel.builder import Value
from ttcodegen.dialects.ttmetal.programs import Kernel
from ttcodegen.dialects.ttnn.placement import declared_data_type
from ttcodegen.layout.tiled_shape import TiledShape
from ttcodegen.naming.programs import kernel_name, reduction_names
from ttcodegen.ops.core.tile_lowering import Tile, TileBuilder


@dataclass(frozen=True)
class RowOperand:
    """A tensor that the reader brings, and how."""

    value: SSAValue
    name: str
    """Of the circular buffer that it comes through."""
    shape: TiledShape
    strides: tuple[int, ...]
    """How far its page moves with each dimension of the tiles of the rows."""
    columns: int
    """Its tiles in a row."""
    stays: bool
    """True if they stay in L1 until the row is done."""
    is_constant: bool
    """True if they are the same for all rows; then they stay for all."""

    @property
    def data_type(self) -> DataType:
        """Of its elements."""
        return declared_data_type(self.value)


@dataclass
class RowCompute:
    """The compute kernel of a plan.

    Args:
        plan: the passes.
        parts: those of the program, with all circular buffers.
        operands: what the reader brings.
        kept: the circular buffers of what reductions leave for later.
        outputs: those of the results.
        columns: the tiles of a row.
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
        """What the program says of the kernel, and its function."""
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
        kernel.wait([SCALER])
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
        """What comes tile by tile in a pass."""
        values = self.plan.reads(allocation)
        return [o for o in self.operands if o.value in values and not o.stays]

    def _indices(self, column: Value) -> dict[str, Value]:
        """Where the tile of a column is in circular buffers that hold rows."""
        return {o.name: column for o in self.operands if o.stays and o.columns > 1}

    def _direct(self, each: RowPass) -> RowOperand | None:
        """The operand that the matrix engine reduces as it comes; it would cut 32 bits, and takes
        in padding."""
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
                builder = TileBuilder()
                reduced_maximum(builder, builder.new_tile(DataType.FLOAT32), [ReduceDim.ROW])
                kernel.call(builder.calls[-1], [0])
                kernel.pack_when_free([(0, REDUCED)])
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

    def _accumulate(self, each: RowPass) -> None:
        """The first register becomes what the tiles of a row come to."""
        kernel, reduction = self._kernel, each.reduction
        builder = TileBuilder(tiles=self.plan.builder.tiles)
        start = builder.fill(reduction.neutral, DataType.FLOAT32)
        kernel.forget()
        kernel.call(builder.calls[-1], [0])
        builder.call(reduction.combine, start, start)
        streamed = [operand.name for operand in self._streamed(each.over)]

        def combine(allocation: Allocation, tile: Tile, column: Value) -> None:
            kernel.forget()
            kernel.wait(streamed)
            kernel.run(allocation, self._sources, self._indices(column))
            kernel.call(builder.calls[-1], [0, allocation.results[tile], 0])
            kernel.pop(streamed)

        full = self.columns - (self.plan.padding is not None)
        if full:
            with kernel.builder.loop(full, name_hint="column") as column:
                combine(each.over, each.reduced, column)
        if full < self.columns:
            combine(each.over_last, each.selected, full)

    def _finish(self, each: RowPass, results: Mapping[SSAValue, Tile]) -> None:
        """Repeats what the reduction gave over the row, and computes what follows from it."""
        kernel = self._kernel
        packed = [
            (each.after.results[tile], buffer)
            for value, tile in results.items()
            for buffer in self._places(value)
        ]
        with repeated_row(kernel):
            kernel.run(each.after, self._sources)
            kernel.pack_when_free(packed)
        kernel.push([buffer for _, buffer in packed])
        kernel.wait([self.kept[value] for value in results if value in self.kept])

    def _places(self, value: SSAValue) -> Iterable[str]:
        """The circular buffers that a value of one element a row goes to."""
        return [places[value] for places in (self.kept, self.outputs) if value in places]

    def _results(self) -> None:
        """The last pass."""
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
