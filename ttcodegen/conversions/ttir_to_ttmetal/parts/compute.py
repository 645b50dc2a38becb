"""Compute kernels of tiles: elementwise ops, maxima and row reductions."""

from __future__ import annotations

import struct
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import cast

from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

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

# Sizes that a kernel knows by name.


@dataclass
class KernelSizes:
    """The sizes of a kernel under construction: those that are no numbers are compile-time
    arguments."""

    builder: KernelBuilder
    values: dict[str, SSAValue] = field(default_factory=dict[str, SSAValue])
    _arguments: list[NamedConstant] = field(default_factory=list[NamedConstant])

    def know(self, sizes: Mapping[str, Size]) -> None:
        """Makes sizes known by name."""
        for name, size in sizes.items():
            if isinstance(size, int):
                self.values[name] = self.builder.value(size)
            else:
                self.values[name] = self.builder.compile_time_argument(name)
                self._arguments.append(NamedConstant(name, size))

    def finish(self) -> tuple[NamedConstant, ...]:
        """The compile-time arguments that the kernel uses; it declares no others."""
        used: list[NamedConstant] = []
        for argument in self._arguments:
            value = self.values[argument.name]
            if value.first_use is None:
                self.builder.remove(value)
            else:
                used.append(argument)
        return tuple(used)


# Compute kernels of tiles: what elementwise ops do between circular buffers.

InitKey = tuple[str, tuple[tuple[str, object], ...], tuple[Parameter, ...]]


REGISTER_FORMATS: Mapping[str, str] = {
    "copy_dest_values": "data_format",
    "sfpu_reduce": "data_format",
    "where_tile": "dtype",
}
"""Ops that load registers in the format of an attribute, which has to have their width."""


def float_bits(value: float) -> int:
    """The bits of a value as a float of 32 bits."""
    return struct.unpack("<I", struct.pack("<f", value))[0]


@dataclass
class ComputeKernel:
    """A compute kernel under construction.

    It knows how the engines are set up at each position, so that it sets up no more than it takes.
    """

    name: str
    fp32_destination: bool
    builder: KernelBuilder = field(init=False)
    tile: Value | None = None
    """The number of the tile that is computed, where random numbers follow from it."""
    _buffers: dict[str, SSAValue] = field(default_factory=dict[str, SSAValue])
    _formats: dict[str, DataType] = field(default_factory=dict[str, DataType])
    _sizes: KernelSizes = field(init=False)
    _unpacker: str | None = None
    _unpacked: DataType | None = None
    """The format that tiles are known to be unpacked from."""
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
        """Makes circular buffers known by name; `values` are those of the settings."""
        for buffer in buffers:
            pages = max(1, evaluate(buffer.pages, values or {}))
            self._buffers[buffer.name] = self.builder.circular_buffer(
                buffer.constant, pages, buffer.page_type
            )
            self._formats[buffer.name] = buffer.data_type

    def __getitem__(self, name: str) -> SSAValue:
        """The circular buffer of that name."""
        return self._buffers[name]

    def know(self, sizes: Mapping[str, Size]) -> None:
        """Makes sizes known by name: those that are no numbers are compile-time arguments."""
        self._sizes.know(sizes)

    def size(self, name: str) -> SSAValue:
        """A size that was made known."""
        return self._sizes.values[name]

    def finish(self) -> tuple[FuncOp, tuple[NamedConstant, ...]]:
        """The function of the kernel, and the sizes that are its compile-time arguments: those that
        it uses."""
        constants = self._sizes.finish()
        return self.builder.finish(), constants

    def op(self, op: str, *operands: Value | str, **attributes: object) -> None:
        """Adds an op; a text among the operands is the name of a circular buffer."""
        values = [self[o] if isinstance(o, str) else o for o in operands]
        self.builder.op(op, *values, **attributes)

    def unpacks(self, names: Sequence[str]) -> None:
        """Declares what the kernel reads: if formats differ, the unpacker is set up for each."""
        formats = {self._formats[name] for name in names}
        self._only_format = formats.pop() if len(formats) == 1 else None

    def forget(self) -> None:
        """The engines may be set up in any way here: at the start of a loop's body, after ops that
        set them up otherwise."""
        self._unpacker = None
        self._unpacked = self._only_format
        self._vector = None

    def forget_formats(self) -> None:
        """As above, and what is unpacked here has been in another format before."""
        self.forget()
        self._unpacked = None

    def start(self, inputs: Sequence[str], output: str) -> None:
        """Sets up the engines for the kernel."""
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
        """Pushes a tile that was packed into each of the circular buffers."""
        for name in names:
            self.op("cb_push_back", name, 1)

    def pop(self, names: Sequence[str]) -> None:
        """Gives the first tile of each of the circular buffers back."""
        for name in names:
            self.op("cb_pop_front", name, 1)

    def load(self, name: str, register: int, index: Value = 0) -> None:
        """A tile at the front of a circular buffer into a destination register."""
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
    ) -> None:
        """The steps of a section; `sources` gives the circular buffer that a tile comes from, and
        `indices` the index of the tile in it, where that is not the first."""
        for step in allocation.steps:
            match step:
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
        """The format of a register: floats have its width."""
        if not data_type.is_float:
            return data_type
        return DataType.FLOAT32 if self.fp32_destination else DataType.BFLOAT16

    def call(self, call: TileCall, registers: Sequence[int]) -> None:
        """An op of the vector engine, set up if another one was before."""
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
            # It records its own instructions over those of the initialisation, which columns need.
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
        """Declares what the kernel packs into: if formats differ, the packer is set up for each."""
        self.reconfigures_packer = len({self._formats[name] for name in names}) > 1

    def pack(self, results: Sequence[tuple[int, str]]) -> None:
        """Puts registers into circular buffers that have room."""
        for register, name in results:
            self.set_up_packer(name)
            self.op("pack_tile", register, name)

    def pack_when_free(self, results: Sequence[tuple[int, str]]) -> None:
        """Ends the computation of a section: packs registers once circular buffers have room."""
        self.reserve([name for _, name in results])
        self.builder.start_packing()
        self.pack(results)

    def set_up_packer(self, name: str) -> None:
        """Sets the packer up for a circular buffer, if it packs into several formats."""
        if self.reconfigures_packer:
            self.op("pack_reconfig_data_format", name)


# How kernels find the greatest element of tiles: exactly, and NaN if there is one.
#
# The matrix engine would cut 32 bits to 19, so that the maximum of a tensor might be none of its
# elements. The vector engine compares floats by sign and magnitude: the maximum has the NaNs
# without a sign, the minimum those with one. Both are kept, in the first two registers.

_WIDE = DataType.FLOAT32


def start_extremes(kernel: ComputeKernel) -> None:
    """Fills the registers of the extremes with what every number changes."""
    builder = TileBuilder()
    for register, number in ((GREATEST, float("-inf")), (LEAST, float("inf"))):
        builder.fill(number, _WIDE)
        kernel.call(builder.calls[-1], [register])


def take_extremes(kernel: ComputeKernel, register: int) -> None:
    """Compares the elements of a register with the extremes so far."""
    builder = TileBuilder()
    tile = builder.new_tile(_WIDE)
    for extreme, name in ((GREATEST, "binary_max_tile"), (LEAST, "binary_min_tile")):
        builder.call(name, tile, tile)
        kernel.call(builder.calls[-1], [extreme, register, extreme])


def finish_maximum(kernel: ComputeKernel, within: Sequence[ReduceDim]) -> int:
    """The register of the maximum: of each element of the tiles, or of each row, column or tile.

    Args:
        within: the directions in which the elements of a tile come together.
    """
    builder = TileBuilder()
    greatest, least = builder.new_tile(_WIDE), builder.new_tile(_WIDE)
    # Without a sign a NaN is the greatest in the next comparisons.
    result = where_nan(builder, builder.call("negative_tile", least), greatest)
    result = reduced_maximum(builder, result, within)
    held = {greatest: GREATEST, least: LEAST}
    allocation = allocate(builder.calls, [result], capacity(True), held)
    assert allocation is not None
    kernel.run(allocation, {})
    return allocation.results[result]


def reduced_maximum(builder: TileBuilder, tile: Tile, within: Sequence[ReduceDim]) -> Tile:
    """The maximum of each row, column or all of a tile."""
    for dimension in within:
        tile = builder.call(
            "sfpu_reduce",
            tile,
            reduce_type=ReduceType.MAX,
            reduce_dim=dimension,
            data_format=_WIDE,
        )
    return tile


# How compute kernels reduce rows to one element each, and repeat that over a tile.
#
# The circular buffers `scaler`, what the matrix engine multiplies by, and `reduced`, the result
# in the first column of a tile, belong to each program that does so.

SCALER, REDUCED, PARTIAL = "scaler", "reduced", "partial"
"""The names of the circular buffers; `partial` holds what tiles came to, element by element."""


def reduce_row(
    kernel: ComputeKernel, source: str, pool: ReduceType, tiles: Value, streams: bool
) -> None:
    """Reduces so many tiles of a circular buffer, which are given back one by one if they stream,
    to the first column of a tile in `reduced`."""
    kind = {"reduce_type": pool, "reduce_dim": ReduceDim.ROW}
    kernel.op("reconfig_data_format", source, SCALER)
    kernel.op("reduce_init", source, SCALER, REDUCED, **kind)
    with kernel.builder.destination_registers():
        with kernel.builder.loop(tiles, name_hint="column") as column:
            if streams:
                kernel.wait([source])
            kernel.op("reduce_tile", source, SCALER, 0 if streams else column, 0, 0, **kind)
            if streams:
                kernel.pop([source])
        kernel.pack_when_free([(0, REDUCED)])
        kernel.op("reduce_uninit")
    kernel.push([REDUCED])


@contextmanager
def repeated_row(kernel: ComputeKernel) -> Generator[None]:
    """Scope in which the first destination register holds the result of `reduce_row`, repeated over
    all columns; the code inside has to pack."""
    column = {"bcast_type": BroadcastType.COL}
    kernel.wait([REDUCED])
    kernel.op("unary_bcast_init", REDUCED, REDUCED, **column)
    with kernel.builder.destination_registers():
        kernel.op("unary_bcast", REDUCED, 0, 0, **column)
        kernel.op("unary_bcast_uninit", REDUCED, **column)
        kernel.forget_formats()
        yield
    kernel.pop([REDUCED])
