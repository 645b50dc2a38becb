"""Device programs of convolutions and pooling, and their data movement kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import reduce

from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from ttcodegen.conversions.ttir_to_ttmetal.grouping.grouping import Group
from ttcodegen.conversions.ttir_to_ttmetal.grouping.tile_operations import REDUCTIONS
from ttcodegen.conversions.ttir_to_ttmetal.movement_programs import cache_tiles
from ttcodegen.conversions.ttir_to_ttmetal.parts.compute import ComputeKernel
from ttcodegen.conversions.ttir_to_ttmetal.parts.data_movement import (
    MovementKernel,
    element_bits,
    element_word,
)
from ttcodegen.conversions.ttir_to_ttmetal.parts.program_parts import (
    COUNT,
    SHARE,
    Lowered,
    purpose_of,
)
from ttcodegen.conversions.ttir_to_ttmetal.window_plan import WindowPlan
from ttcodegen.dialects.core.datatypes import DataType, shape_of
from ttcodegen.dialects.ttcore.shards import CoreRange
from ttcodegen.dialects.ttcore.tile import TILE_SIDE
from ttcodegen.dialects.ttkernel.attributes import KeptTilesType
from ttcodegen.dialects.ttkernel.builder import Value
from ttcodegen.dialects.ttmetal.programs import (
    ComputeSettings,
    Kernel,
    Processor,
)
from ttcodegen.dialects.ttnn.placement import declared_data_type
from ttcodegen.layout.placements import row_major_strides
from ttcodegen.naming.programs import kernel_name
from ttcodegen.ops.convolution.device_windows import WindowAxis
from ttcodegen.ops.core.lowering import TileBuilder, TileCall

# Data movement kernels of convolutions and pooling: the reader gathers the rows in the windows, the
# writer reads the weight and the operands of the epilogue, and writes the result.

_LINES = ("depth", "height", "width")
"""Spatial dimensions, the last of which runs along the rows of tiles."""


@dataclass(frozen=True)
class WindowMovement:
    """Builds the reader and the writer."""

    plan: WindowPlan

    def reader(self) -> tuple[Kernel, FuncOp]:
        """Kernel that gathers the rows in the windows."""
        plan = self.plan
        kernel = plan.parts.data_movement(
            kernel_name("read", plan.name),
            Processor.READER,
            f"Gathers the rows of {plan.names[plan.image]} of the windows.",
            plan.cores,
            tensors=[plan.image],
            buffers=[plan.gathered, plan.source.buffer],
            arguments=SHARE,
        )
        _Gathering(plan, kernel).write()
        return kernel.finish()

    def writer(self) -> tuple[Kernel, FuncOp]:
        """Kernel that reads weight and epilogue operands, and writes the result."""
        plan = self.plan
        weight = [] if plan.weight is None else [plan.weight]
        brought = " and ".join(plan.names[v] for v in (*weight, *plan.epilogue.outer))
        purpose = f"Reads tiles of {brought}, and writes" if brought else "Writes"
        buffers = [*plan.outer_names, *plan.output_names]
        if weight:
            buffers += ["right", *([plan.weight_memory] if plan.weight_slots else [])]
        kernel = plan.parts.data_movement(
            kernel_name("write", plan.name),
            Processor.WRITER,
            f"{purpose} the output tiles.",
            plan.cores,
            tensors=[*weight, *plan.epilogue.outer, *plan.parts.outputs],
            buffers=buffers,
            arguments=SHARE,
        )
        _Writing(plan, kernel).write()
        return kernel.finish()


def output_position(
    plan: WindowPlan, kernel: MovementKernel, unit: SSAValue
) -> tuple[Value, Value]:
    """Returns the row of output tiles of a unit of work, and its first tile column."""
    builder = kernel.builder
    if plan.unit_columns == plan.result.columns:
        return unit, 0
    place = builder.named(builder.remainder(unit, plan.rows_of_tiles), "place")
    group = builder.quotient(unit, plan.rows_of_tiles)
    if plan.unit_columns == 1:
        return place, builder.named(group, "tile_column")
    return place, builder.named(builder.product(group, plan.unit_columns), "first_tile_column")


@dataclass
class _Gathering:
    """Loops of the reader."""

    plan: WindowPlan
    kernel: MovementKernel

    def __post_init__(self) -> None:
        self.builder = self.kernel.builder
        self.element = element_word(declared_data_type(self.plan.image))
        self.strides = row_major_strides(shape_of(self.plan.image.type))
        self.lines = _LINES[-len(self.plan.axes) :]

    def write(self) -> None:
        """Writes the loop over the core's work."""
        self.cache = cache_tiles(self.kernel, self.plan.source, self.element)
        with self.kernel.share("unit") as unit:
            place, column = output_position(self.plan, self.kernel, unit)
            self.first_channel = self._first_channel(column)
            image, windows = self._windows(place)
            self.rows = self.kernel.filled(windows[-1], self.plan.axes[-1].count, "rows")
            start = [self.kernel.product(image, self.strides[0], "image_start")]
            self._gather_taps(windows, start, [], 0)

    def _first_channel(self, tile_column: Value) -> Value:
        """Returns the first input channel of the unit of work."""
        plan, builder = self.plan, self.builder
        if not plan.is_product:
            return self.kernel.product(tile_column, TILE_SIDE, "first_channel")
        if plan.groups == 1:
            return 0
        group = builder.quotient(tile_column, plan.result.columns // plan.groups)
        return self.kernel.product(group, plan.channels, "first_channel")

    def _windows(self, place: Value) -> tuple[Value, list[Value]]:
        """Returns the image of a row of output tiles, and its window index per spatial dimension.

        In the last dimension it is the index of the first window."""
        plan, builder = self.plan, self.builder
        first: Value = 0
        if plan.result.rows > 1:
            first = self.kernel.product(
                builder.remainder(place, plan.result.rows), TILE_SIDE, "first_window"
            )
            place = builder.named(builder.quotient(place, plan.result.rows), "line")
        found: list[Value] = []
        for axis, line in reversed(list(zip(plan.axes[:-1], self.lines, strict=False))):
            if axis.count == 1:
                found.append(0)
                continue
            found.append(builder.named(builder.remainder(place, axis.count), f"window_{line}"))
            place = builder.quotient(place, axis.count)
        image: Value = 0
        if plan.result.shape[0] > 1:
            assert isinstance(place, SSAValue)
            image = builder.named(place, "image")
        return image, [*reversed(found), first]

    def _gather_taps(
        self, windows: list[Value], start: list[Value], inside: list[SSAValue], dim: int
    ) -> None:
        """Writes the loops over the taps of the convolution kernel, from that dimension on."""
        axis, line = self.plan.axes[dim], self.lines[dim]
        with self.builder.loop(axis.taps, name_hint=f"tap_{line}") as tap:
            offset = self.kernel.sum([self.kernel.product(tap, axis.spacing)])
            if dim == len(self.plan.axes) - 1:
                self._gather_channels(windows[-1], offset, start, inside)
                return
            position = self._position(axis, windows[dim], offset, line)
            conditions, source = self._source(axis, position, line)
            step = self.kernel.product(source, self.strides[dim + 1], f"{line}_start")
            self._gather_taps(windows, [*start, step], [*inside, *conditions], dim + 1)

    def _position(self, axis: WindowAxis, window: Value, offset: Value, line: str) -> Value:
        """Position of a tap, relative to the first element of the input.

        Positions before it wrap around to large unsigned numbers."""
        total = self.kernel.sum([self.kernel.product(window, axis.stride), offset])
        if axis.before < 0:
            total = self.kernel.sum([total, -axis.before])
        elif axis.before > 0:
            total = self.builder.difference(total, axis.before)
        return self.builder.named(total, line) if isinstance(total, SSAValue) else total

    def _source(self, axis: WindowAxis, position: Value, line: str) -> tuple[list[SSAValue], Value]:
        """Returns the conditions for a position to be in the input, and its index there."""
        if not axis.sees_padding:
            return [], position
        is_single = axis.dilated == 1
        relation, limit = ("eq", 0) if is_single else ("ult", axis.dilated)
        conditions = [self.builder.compare(relation, position, limit)]
        if axis.apart > 1:
            rest = self.builder.remainder(position, axis.apart)
            conditions.append(self.builder.compare("eq", rest, 0))
            position = self.builder.quotient(position, axis.apart)
        return conditions, position

    def _gather_channels(
        self, first: Value, offset: Value, start: list[Value], inside: list[SSAValue]
    ) -> None:
        """Gathers the tiles of all channels for a tap."""
        plan, builder = self.plan, self.builder
        is_inside = None
        if inside:
            is_inside = builder.named(reduce(builder.both, inside), "is_inside")
        with builder.loop(plan.channel_tiles, name_hint="channel_tile") as tile:
            channel: Value = self.kernel.product(tile, TILE_SIDE, "channel")
            count = self._count(channel)
            channel = self.kernel.sum([self.first_channel, channel])
            builder.op("cb_reserve_back", self.kernel.buffer(plan.gathered), 1)
            address = self.kernel.write_pointer(plan.gathered, "address")
            target = self.kernel.elements(address, self.element)
            self._fill(address, count)
            with ExitStack() as stack:
                if is_inside is not None:
                    stack.enter_context(builder.when(is_inside))
                self._copy_rows(first, offset, [*start, channel], count, target)
            builder.op("cb_push_back", self.kernel.buffer(plan.gathered), 1)

    def _count(self, channel: Value) -> Value:
        """Number of channels in a tile that begins with this channel."""
        first = channel if self.plan.is_product else self.first_channel
        return self.kernel.filled(first, self.plan.channels, "channels")

    def _copy_rows(
        self, first: Value, offset: Value, start: list[Value], count: Value, target: SSAValue
    ) -> None:
        """Copies one row per window of an output tile."""
        plan, builder = self.plan, self.builder
        axis, stride = plan.axes[-1], self.strides[-2]
        begin = self.kernel.sum(start)
        if isinstance(begin, SSAValue):
            begin = builder.named(begin, "start")
        with builder.loop(self.rows, name_hint="row") as row:
            window = self.kernel.sum([first, row])
            position = self._position(axis, window, offset, self.lines[-1])
            conditions, source = self._source(axis, position, self.lines[-1])
            with ExitStack() as stack:
                if conditions:
                    stack.enter_context(builder.when(reduce(builder.both, conditions)))
                number = self.kernel.sum([begin, self.kernel.product(source, stride)])
                builder.op("blocks.tile_cache.copy_row", self.cache, number, 1, count, target, row,
                           0)  # fmt: skip

    def _fill(self, address: SSAValue, channels: Value) -> None:
        """Fills elements that no input row overwrites.

        These are after the last row and channel, or anywhere if windows include padding."""
        if self.plan.sees_padding:
            self.kernel.fill(address, 0, 0, self._padding_bits(), self.element)
        elif self.rows != TILE_SIDE or channels != TILE_SIDE:
            self.kernel.fill(address, self.rows, channels, self._padding_bits(), self.element)

    def _padding_bits(self) -> int:
        """Bits of the padding value."""
        if self.plan.is_product:
            return 0
        method = "max" if self.plan.finds_place else self.plan.root.parameter("method")
        reduction = REDUCTIONS[f"ttir.{method}"]
        return element_bits(reduction.neutral, declared_data_type(self.plan.image))


@dataclass
class _Writing:
    """Loops of the writer."""

    plan: WindowPlan
    kernel: MovementKernel

    def write(self) -> None:
        """Writes the loop over the core's work."""
        plan, kernel, builder = self.plan, self.kernel, self.kernel.builder
        if plan.weight is not None and plan.weight_slots:
            self.kept = builder.get(
                "blocks.keep_tiles",
                kernel.tensor(plan.names[plan.weight]),
                kernel.buffer(plan.weight_memory),
                kernel.buffer("right"),
                slots=plan.weight_slots,
                result_type=KeptTilesType(),
                name_hint="right_kept",
            )
        with kernel.share("unit") as unit:
            place, first = output_position(plan, kernel, unit)
            with builder.loop(plan.unit_columns, name_hint="column") as step:
                column = kernel.sum([first, step]) if plan.unit_columns > 1 else first
                tile = kernel.sum([builder.product(place, plan.result.columns), column])
                tile = builder.named(builder.value(tile), "tile")
                if plan.weight is not None:
                    self._read_weight(plan.weight, column)
                plan.epilogue.read(kernel, plan.names, plan.outer_names, plan.result, tile)
                outputs = [plan.names[value] for value in plan.parts.outputs]
                kernel.write_tiles(tile, outputs, plan.output_names)

    def _read_weight(self, weight: SSAValue, column: Value) -> None:
        """Reads the weight tiles of an output column, tap by tap."""
        plan, kernel, builder = self.plan, self.kernel, self.kernel.builder
        columns, size = plan.result.columns, plan.at_a_time
        with builder.loop(plan.inner // size, name_hint="step") as step:
            if plan.weight_slots:
                page = kernel.sum([builder.product(step, columns), column])
                builder.op("blocks.kept_tiles.push", self.kept, page)
                return
            builder.op("cb_reserve_back", kernel.buffer("right"), size)
            address = kernel.write_pointer("right", "right_address" if size > 1 else None)
            tile_bytes: Value = 0
            if size > 1:
                buffer = kernel.buffer("right")
                tile_bytes = builder.get("get_tile_size", buffer, name_hint="tile_bytes")
            first = builder.product(step, size)
            with builder.loop(size, name_hint="i") as i:
                row = builder.sum(first, i)
                page = kernel.sum([builder.product(row, columns), column])
                target = builder.sum(address, builder.product(i, tile_bytes)) if size > 1 else (
                    address
                )  # fmt: skip
                kernel.read_page(page, plan.names[weight], target)
            builder.op("noc_async_read_barrier")
            self._pad_weight(weight, step, address, tile_bytes)
            builder.op("cb_push_back", kernel.buffer("right"), size)

    def _pad_weight(
        self, weight: SSAValue, step: SSAValue, address: SSAValue, tile_bytes: Value
    ) -> None:
        """Writes zeros after the last channel."""
        plan, builder = self.plan, self.kernel.builder
        rows = plan.channels % TILE_SIDE
        if not rows:
            return
        last = plan.channel_tiles - 1
        element = element_word(declared_data_type(weight))
        with ExitStack() as stack:
            if plan.at_a_time == 1 and last:
                place = builder.remainder(step, plan.channel_tiles)
                stack.enter_context(builder.when(builder.compare("eq", place, last)))
            elif last:
                address = builder.sum(address, builder.product(last, tile_bytes))
            self.kernel.fill(address, rows, TILE_SIDE, 0, element)


# Programs of convolutions and pooling, optionally with an elementwise epilogue.
#
# The reader gathers one tile per tap of the convolution kernel: its rows correspond to the rows of
# an output tile. Nothing is unfolded in DRAM. A convolution multiplies each tile by the channel
# matrix of its tap and accumulates; pooling takes the maximum or the sum.


def lower_window(
    group: Group, names: Mapping[SSAValue, str], name: str, cores: CoreRange
) -> Lowered:
    """Lowers a group whose root is a convolution or a pooling op to a program."""
    plan = WindowPlan(group, names, name, cores)
    movement = WindowMovement(plan)
    return plan.parts.program(
        name,
        purpose_of(group),
        cores,
        (movement.reader(), _WindowCompute(plan).kernel(), movement.writer()),
        plan.costs(),
        ComputeSettings(fp32_destination=True, unpack_to_fp32=plan.full_width()),
        work_units=plan.units,
        work_unit="output tile" if plan.unit_columns == 1 else "row of output tiles",
    )


_Calls = Sequence[tuple[TileCall, Sequence[int]]]
"""Ops on registers, and their registers."""


@dataclass(frozen=True)
class _PoolSteps:
    """Reduction of the elements of windows, which arrive in register 1, into register 0."""

    first: _Calls
    each: _Calls
    last: _Calls = ()


def _call(kernel: ComputeKernel, calls: _Calls) -> None:
    for call, registers in calls:
        kernel.call(call, registers)


def _single_call(op: str, *parameters: float) -> TileCall:
    """Call of an op on unspecified tiles."""
    tiles = TileBuilder()
    tiles.call(op, tiles.new_tile(DataType.FLOAT32), parameters=parameters)
    return tiles.calls[0]


def _max_or_sum(plan: WindowPlan) -> _PoolSteps:
    """Maximum or sum of the elements."""
    reduction = REDUCTIONS[f"ttir.{plan.root.parameter('method')}"]
    return _PoolSteps(
        [(_single_call("fill_tile", reduction.neutral), [0])],
        [(_single_call(reduction.combine), [0, 1, 0])],
    )


def _argmax(taps: int) -> _PoolSteps:
    """Index of the maximum, from a countdown of elements since it was found.

    Register 0 counts the elements since, register 2 holds the maximum so far, and register 3 is 0
    where the next element is greater."""
    greatest, since, next_one, stays = 2, 0, 1, 3
    return _PoolSteps(
        [
            (_single_call("fill_tile", 0.0), [since]),
            (_single_call("fill_tile", float("-inf")), [greatest]),
        ],
        [
            (_single_call("le_binary_tile"), [next_one, greatest, stays]),
            (_single_call("binary_max_tile"), [greatest, next_one, greatest]),
            (_single_call("add_unary_tile", 1.0), [since]),
            (_single_call("mul_binary_tile"), [since, stays, since]),
        ],
        [
            (_single_call("mul_unary_tile", -1.0), [since]),
            (_single_call("add_unary_tile", float(taps - 1)), [since]),
            # If all elements are minus infinity, none replaced the initial maximum.
            (_single_call("relu_tile"), [since]),
        ],
    )


@dataclass(frozen=True)
class _WindowCompute:
    """Builds the compute kernel, which multiplies or reduces the gathered tiles."""

    plan: WindowPlan

    def kernel(self) -> tuple[Kernel, FuncOp]:
        """Returns the description of the kernel and its function."""
        plan = self.plan
        kernel = ComputeKernel(kernel_name("compute", plan.name), fp32_destination=True)
        buffers = [b for b in plan.parts.buffers if b.name not in plan.memories]
        kernel.declare(buffers, plan.parts.tuning.values())
        kernel.unpacks([b.name for b in buffers if b.name not in plan.output_names])
        kernel.packs(plan.output_names)
        count = kernel.builder.argument(0, "count")
        if plan.is_product:
            purpose = "Multiplies the windows with the weights of the convolution."
            self._multiply(kernel, count)
        else:
            purpose = "Reduces the elements of each window."
            self._pool(kernel, count, _argmax(plan.taps) if plan.finds_place else _max_or_sum(plan))
        return plan.parts.compute(kernel, purpose, plan.cores, buffers, COUNT)

    def _multiply(self, kernel: ComputeKernel, count: SSAValue) -> None:
        plan, builder = self.plan, kernel.builder
        kernel.op("mm_init", "left", "right", plan.output_names[0])
        with builder.loop(count, name_hint="unit"):
            if plan.keeps_rows:
                kernel.op("cb_wait_front", "left", plan.inner)
            with builder.loop(plan.unit_columns, name_hint="column"):
                with builder.destination_registers():
                    if not plan.epilogue.is_plain:
                        last = plan.outer_names[-1] if plan.outer_names else "right"
                        kernel.op("mm_init_short_with_dt", "left", "right", last)
                    with builder.loop(plan.inner, name_hint="step") as step:
                        self._multiply_step(kernel, step)
                    kernel.forget_formats()
                    self._finish(kernel)
                kernel.push(plan.output_names)
            if plan.keeps_rows:
                kernel.op("cb_pop_front", "left", plan.inner)

    def _multiply_step(self, kernel: ComputeKernel, step: SSAValue) -> None:
        brought = ["right"] if self.plan.keeps_rows else ["left", "right"]
        kernel.wait(brought)
        kernel.op("matmul_tiles", "left", "right", step if self.plan.keeps_rows else 0, 0, 0)
        kernel.pop(brought)

    def _pool(self, kernel: ComputeKernel, count: SSAValue, steps: _PoolSteps) -> None:
        plan, builder = self.plan, kernel.builder
        kernel.start(["seen"], plan.output_names[0])
        with builder.loop(count, name_hint="tile"):
            kernel.forget()
            with builder.destination_registers():
                _call(kernel, steps.first)
                with builder.loop(plan.taps, name_hint="tap"):
                    kernel.forget()
                    kernel.wait(["seen"])
                    kernel.load("seen", 1)
                    _call(kernel, steps.each)
                    kernel.pop(["seen"])
                kernel.forget()
                _call(kernel, steps.last)
                self._finish(kernel)
            kernel.push(plan.output_names)

    def _finish(self, kernel: ComputeKernel) -> None:
        """Computes the epilogue and packs the results."""
        plan = self.plan
        results = plan.epilogue.compute(kernel, plan.outer_names, plan.output_names)
        kernel.builder.start_packing()
        kernel.pack(results)
        kernel.pop(plan.outer_names)
