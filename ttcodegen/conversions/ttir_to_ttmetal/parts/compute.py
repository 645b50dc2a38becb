"""Compute kernels of tiles: elementwise ops, maxima and row reductions."""

from __future__ import annotations

import struct
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import cast

from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from ttcodegen.conversions.ttir_to_ttmetal.grouping.operand_pairs import (
    BROADCAST_INITS,
    OperandPair,
)
from ttcodegen.conversions.ttir_to_ttmetal.grouping.tile_operations import (
    GREATEST,
    LEAST,
    Allocation,
    Compute,
    Copy,
    Load,
    allocate,
    capacity,
)
from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.dialects.ttkernel.attributes import BroadcastType, ReduceDim, ReduceType, ThreadType
from ttcodegen.dialects.ttkernel.builder import KernelBuilder, Value
from ttcodegen.dialects.ttkernel.table import kernel_ops
from ttcodegen.dialects.ttmetal.programs import CircularBuffer, NamedConstant
from ttcodegen.dialects.ttmetal.tuning import Size, evaluate
from ttcodegen.ops.core.lowering import Parameter, Tile, TileBuilder, TileCall, where_nan

# Named sizes of a kernel.


@dataclass
class KernelSizes:
    """Named sizes of a kernel: compile-time arguments, unless they are integers."""

    builder: KernelBuilder
    values: dict[str, SSAValue] = field(default_factory=dict[str, SSAValue])
    _arguments: list[NamedConstant] = field(default_factory=list[NamedConstant])

    def know(self, sizes: Mapping[str, Size]) -> None:
        """Declares sizes by name."""
        for name, size in sizes.items():
            if isinstance(size, int):
                self.values[name] = self.builder.value(size)
            else:
                self.values[name] = self.builder.compile_time_argument(name)
                self._arguments.append(NamedConstant(name, size))

    def finish(self) -> tuple[NamedConstant, ...]:
        """Returns the compile-time arguments that the kernel uses, and removes the others."""
        used: list[NamedConstant] = []
        for argument in self._arguments:
            value = self.values[argument.name]
            if value.first_use is None:
                self.builder.remove(value)
            else:
                used.append(argument)
        return tuple(used)


# Compute kernels of tiles: elementwise ops between circular buffers.

InitKey = tuple[str, tuple[tuple[str, object], ...], tuple[Parameter, ...]]


REGISTER_FORMATS: Mapping[str, str] = {
    "copy_dest_values": "data_format",
    "sfpu_reduce": "data_format",
    "where_tile": "dtype",
}
"""Ops whose format attribute must have the width of the destination registers."""


def float_bits(value: float) -> int:
    """Bits of a value as float32."""
    return struct.unpack("<I", struct.pack("<f", value))[0]


@dataclass
class ComputeKernel:
    """Compute kernel under construction.

    Tracks how the engines are set up at each position, so that redundant set-up is omitted."""

    name: str
    fp32_destination: bool
    builder: KernelBuilder = field(init=False)
    tile: Value | None = None
    """Number of the tile that is computed, which seeds random numbers."""
    _buffers: dict[str, SSAValue] = field(default_factory=dict[str, SSAValue])
    _formats: dict[str, DataType] = field(default_factory=dict[str, DataType])
    _sizes: KernelSizes = field(init=False)
    _unpacker: str | None = None
    _unpacked: DataType | None = None
    """Format that tiles are known to be unpacked from."""
    _vector: InitKey | None = None
    reconfigures_packer: bool = False
    """True if it packs into several formats."""
    _only_format: DataType | None = None

    def __post_init__(self) -> None:
        self.builder = KernelBuilder(
            self.name,
            ThreadType.COMPUTE,
            destination_tiles=capacity(self.fp32_destination),
        )
        self._sizes = KernelSizes(self.builder)

    def declare(
        self, buffers: Sequence[CircularBuffer], values: Mapping[str, int] | None = None
    ) -> None:
        """Declares circular buffers by name; `values` are those of the settings."""
        for buffer in buffers:
            pages = max(1, evaluate(buffer.pages, values or {}))
            self._buffers[buffer.name] = self.builder.circular_buffer(
                buffer.constant, pages, buffer.page_type
            )
            self._formats[buffer.name] = buffer.data_type

    def __getitem__(self, name: str) -> SSAValue:
        """Circular buffer by its name."""
        return self._buffers[name]

    def know(self, sizes: Mapping[str, Size]) -> None:
        """Declares sizes by name: compile-time arguments, unless they are integers."""
        self._sizes.know(sizes)

    def size(self, name: str) -> SSAValue:
        """Declared size by its name."""
        return self._sizes.values[name]

    def finish(self) -> tuple[FuncOp, tuple[NamedConstant, ...]]:
        """Returns the function of the kernel, and its compile-time arguments."""
        constants = self._sizes.finish()
        return self.builder.finish(), constants

    def op(self, op: str, *operands: Value | str, **attributes: object) -> None:
        """Adds an op; a string among the operands is the name of a circular buffer."""
        values = [self[o] if isinstance(o, str) else o for o in operands]
        self.builder.op(op, *values, **attributes)

    def unpacks(self, names: Sequence[str]) -> None:
        """Declares the circular buffers that the kernel unpacks.

        If their formats differ, the unpacker is set up for each."""
        formats = {self._formats[name] for name in names}
        self._only_format = formats.pop() if len(formats) == 1 else None

    def forget(self) -> None:
        """Assumes an unknown set-up of the engines, such as at the start of a loop body."""
        self._unpacker = None
        self._unpacked = self._only_format
        self._vector = None

    def forget_formats(self) -> None:
        """Assumes an unknown set-up of the engines, including the unpacked format."""
        self.forget()
        self._unpacked = None

    @property
    def mixes_formats(self) -> bool:
        """True if what it reads has several formats, as far as is known."""
        return self._only_format is None

    def format_of(self, name: str) -> DataType:
        """Data type of what a circular buffer holds."""
        return self._formats[name]

    def start(self, inputs: Sequence[str], output: str) -> None:
        """Sets up the engines at the start of the kernel."""
        self.op("unary_op_init_common", inputs[0] if inputs else output, output)

    def wait(self, names: Sequence[str]) -> None:
        """Waits for a tile in each of the circular buffers."""
        for name in names:
            self.op("cb_wait_front", name, 1)

    def reserve(self, names: Sequence[str]) -> None:
        """Waits for room for a tile in each of the circular buffers."""
        for name in names:
            self.op("cb_reserve_back", name, 1)

    def push(self, names: Sequence[str]) -> None:
        """Pushes a packed tile into each of the circular buffers."""
        for name in names:
            self.op("cb_push_back", name, 1)

    def pop(self, names: Sequence[str]) -> None:
        """Pops the first tile of each of the circular buffers."""
        for name in names:
            self.op("cb_pop_front", name, 1)

    def load(self, name: str, register: int, index: Value = 0) -> None:
        """Copies a tile at the front of a circular buffer to a destination register."""
        if self._unpacker != name:
            if self._unpacked is not self._formats[name]:
                self.op("reconfig_data_format_srca", name)
                self._unpacked = self._formats[name]
            self.op("copy_tile_to_dst_init_short", name)
            self._unpacker = name
        self.op("copy_tile", name, index, register)

    def run(
        self,
        allocation: Allocation,
        sources: Mapping[Tile, str],
        indices: Mapping[str, Value] | None = None,
        pairs: Mapping[Tile, OperandPair] | None = None,
    ) -> None:
        """Runs the steps of an allocation.

        Args:
            allocation: the steps.
            sources: circular buffers of loaded tiles.
            indices: positions in these buffers, 0 by default.
            pairs: tiles that the matrix engine computes from two operands.
        """
        for step in allocation.steps:
            match step:
                case Load(tile, register) if pairs and tile in pairs:
                    load_pair(self, pairs[tile], register)
                case Load(tile, register):
                    self.load(sources[tile], register, (indices or {}).get(sources[tile], 0))
                case Copy(tile, source, register):
                    self._copy(tile, source, register)
                case Compute(call, registers):
                    self.call(call, registers)

    def _copy(self, tile: Tile, source: int, register: int) -> None:
        self._set_up("copy_dest_values_init", {}, ())
        data_type = self._register_format(tile.data_type)
        self.op("copy_dest_values", source, register, data_format=data_type)

    def _register_format(self, data_type: DataType) -> DataType:
        """Format of a register: floats have the width of the destination."""
        if not data_type.is_float:
            return data_type
        return DataType.FLOAT32 if self.fp32_destination else DataType.BFLOAT16

    def call(self, call: TileCall, registers: Sequence[int]) -> None:
        """Adds an op of the vector engine, with its initialization unless it is still in effect."""
        definition = kernel_ops()[call.op]
        attributes = dict(call.attributes)
        if (name := REGISTER_FORMATS.get(call.op)) is not None:
            attributes[name] = self._register_format(cast(DataType, attributes[name]))
        kinds = [o.kind for o in definition.signatures[0] if o.kind != "dst"]
        values = [
            self._parameter(kind, number)
            for kind, number in zip(kinds, call.parameters, strict=True)
        ]
        if call.seed is not None:
            assert definition.init is not None
            assert self.tile is not None, "ops that draw are in kernels that count tiles"
            self.op(definition.init, self.builder.sum(self.tile, call.seed % 2**32))
            self._vector = None
        elif definition.init is not None:
            init = kernel_ops()[definition.init]
            taken = {k: v for k, v in attributes.items() if init.attribute(k) is not None}
            numbers = call.parameters if init.signatures[0] else ()
            self._set_up(definition.init, taken, numbers)
        self.op(call.op, *registers, *values, **attributes)
        if attributes.get("reduce_dim") is ReduceDim.ROW:
            # It overwrites the instructions that its initialization recorded, which columns need.
            self._vector = None

    def _set_up(
        self, init: str, attributes: Mapping[str, object], numbers: tuple[Parameter, ...]
    ) -> None:
        key = (init, tuple(sorted(attributes.items())), numbers)
        if self._vector == key:
            return
        kinds = [o.kind for o in kernel_ops()[init].signatures[0]]
        values = [self._parameter(k, n) for k, n in zip(kinds, numbers, strict=False)]
        self.op(init, *values, **attributes)
        self._vector = key

    def _parameter(self, kind: str, number: Parameter) -> Value:
        if isinstance(number, float) and kind != "f32":
            return self.builder.bits(number)
        return number

    def packs(self, names: Sequence[str]) -> None:
        """Declares the circular buffers that the kernel packs into.

        If their formats differ, the packer is set up for each."""
        self.reconfigures_packer = len({self._formats[name] for name in names}) > 1

    def pack(self, results: Sequence[tuple[int, str]]) -> None:
        """Packs registers into circular buffers that have room."""
        for register, name in results:
            self.set_up_packer(name)
            self.op("pack_tile", register, name)

    def pack_when_free(self, results: Sequence[tuple[int, str]]) -> None:
        """Ends the computation of a section: packs registers once circular buffers have room."""
        self.reserve([name for _, name in results])
        self.builder.start_packing()
        self.pack(results)

    def set_up_packer(self, name: str) -> None:
        """Sets up the packer for a circular buffer, if the kernel packs into several formats."""
        if self.reconfigures_packer:
            self.op("pack_reconfig_data_format", name)


def load_pair(kernel: ComputeKernel, pair: OperandPair, register: int) -> None:
    """Computes a pair on the matrix engine into a register."""
    left, right = pair.left, pair.right
    if kernel.mixes_formats:
        kernel.op("reconfig_data_format", left.buffer, right.buffer)
    places = (left.buffer, right.buffer, left.index, right.index, register)
    if right.broadcast is None:
        kernel.op(f"{pair.verb}_tiles_init", left.buffer, right.buffer)
        kernel.op(f"{pair.verb}_tiles", *places)
    else:
        kernel.op(BROADCAST_INITS[pair.verb, right.broadcast], left.buffer, right.buffer)
        kernel.op(f"{pair.verb}_tiles_bcast", *places, bcast_type=right.broadcast)
    if kernel.mixes_formats:
        kernel.forget_formats()
    else:
        kernel.forget()


# Exact maxima of tiles, which are NaN if any element is.
#
# The matrix engine truncates 32 bits to 19, so that its maximum might not be an element. The vector
# engine compares floats by sign and magnitude: positive NaNs are above all numbers, negative NaNs
# below. So both the maximum and the minimum are kept, in the first two registers.

_WIDE = DataType.FLOAT32


def start_extremes(kernel: ComputeKernel) -> None:
    """Initializes the registers of the maximum and the minimum."""
    builder = TileBuilder()
    for register, number in ((GREATEST, float("-inf")), (LEAST, float("inf"))):
        builder.fill(number, _WIDE)
        kernel.call(builder.calls[-1], [register])


def take_extremes(kernel: ComputeKernel, register: int) -> None:
    """Updates maximum and minimum with the elements of a register."""
    builder = TileBuilder()
    tile = builder.new_tile(_WIDE)
    for extreme, name in ((GREATEST, "binary_max_tile"), (LEAST, "binary_min_tile")):
        builder.call(name, tile, tile)
        kernel.call(builder.calls[-1], [extreme, register, extreme])


def finish_maximum(kernel: ComputeKernel, within: Sequence[ReduceDim]) -> int:
    """Returns the register of the maximum of each element, row, column or tile.

    Args:
        within: the directions in which elements of a tile are reduced.
    """
    builder = TileBuilder()
    greatest, least = builder.new_tile(_WIDE), builder.new_tile(_WIDE)
    # Negated, a negative NaN is greater than all numbers in the next comparisons.
    result = where_nan(builder, builder.call("negative_tile", least), greatest)
    result = reduced_maximum(builder, result, within)
    held = {greatest: GREATEST, least: LEAST}
    allocation = allocate(builder.calls, [result], capacity(True), held)
    assert allocation is not None
    kernel.run(allocation, {})
    return allocation.results[result]


def reduced_maximum(builder: TileBuilder, tile: Tile, within: Sequence[ReduceDim]) -> Tile:
    """Maximum of each row, each column or all elements of a tile."""
    for dimension in within:
        tile = builder.call(
            "sfpu_reduce",
            tile,
            reduce_type=ReduceType.MAX,
            reduce_dim=dimension,
            data_format=_WIDE,
        )
    return tile


# Row reductions to one element each, and their broadcast over a tile.
#
# They use the circular buffers `scaler`, the multiplier of the matrix engine, and `reduced`, with
# the result in the first column of a tile.
#
# Rows are summed by a matmul with a column of ones. `reduce_tile` would move the running total of
# each row through a source register at each tile: truncated to 7 bits of mantissa, the sum of 64
# tiles is 8 % too small.

SCALER, REDUCED, PARTIAL = "scaler", "reduced", "partial"
"""Names of circular buffers; `partial` holds the elementwise reduction of tiles."""
SCALER_TILES = 2
"""Tiles of the scaler: the multiplier of `reduce_tile`, then a column of ones."""
_ONES = 1


def start_reduction(
    kernel: ComputeKernel, source: str, target: str, pool: ReduceType, dimension: ReduceDim
) -> bool:
    """Sets up the engines for `reduce_further`.

    Returns whether `reduce_uninit` is needed after the result is packed."""
    if sums_rows(pool, dimension):
        kernel.op("reconfig_data_format", SCALER, source)
        kernel.op("mm_init_short", source, SCALER)
        return False
    kernel.op("reconfig_data_format", source, SCALER)
    kernel.op("reduce_init", source, SCALER, target, reduce_type=pool, reduce_dim=dimension)
    return True


def reduce_further(
    kernel: ComputeKernel, source: str, index: Value, pool: ReduceType, dimension: ReduceDim
) -> None:
    """Reduces a tile into the first destination register."""
    if sums_rows(pool, dimension):
        kernel.op("matmul_tiles", source, SCALER, index, _ONES, 0)
    else:
        kernel.op(
            "reduce_tile", source, SCALER, index, 0, 0, reduce_type=pool, reduce_dim=dimension
        )


def sums_rows(pool: ReduceType, dimension: ReduceDim) -> bool:
    """Returns whether the reduction is a sum of rows, computed by matmul."""
    return dimension is ReduceDim.ROW and pool is not ReduceType.MAX


def reduce_row(
    kernel: ComputeKernel, source: str, pool: ReduceType, tiles: Value, streams: bool
) -> None:
    """Reduces tiles of a circular buffer to the first column of a tile in `reduced`.

    If they stream, each tile is awaited and popped by itself."""
    masked = start_reduction(kernel, source, REDUCED, pool, ReduceDim.ROW)
    with kernel.builder.destination_registers():
        with kernel.builder.loop(tiles, name_hint="column") as column:
            if streams:
                kernel.wait([source])
            reduce_further(kernel, source, 0 if streams else column, pool, ReduceDim.ROW)
            if streams:
                kernel.pop([source])
        kernel.pack_when_free([(0, REDUCED)])
        if masked:
            kernel.op("reduce_uninit")
    kernel.push([REDUCED])


@contextmanager
def repeated_row(kernel: ComputeKernel) -> Generator[None]:
    """Scope in which the first register holds the result of `reduce_row` in all columns.

    The code inside has to pack."""
    column = {"bcast_type": BroadcastType.COL}
    kernel.wait([REDUCED])
    kernel.op("unary_bcast_init", REDUCED, REDUCED, **column)
    with kernel.builder.destination_registers():
        kernel.op("unary_bcast", REDUCED, 0, 0, **column)
        kernel.op("unary_bcast_uninit", REDUCED, **column)
        kernel.forget_formats()
        yield
    kernel.pop([REDUCED])
