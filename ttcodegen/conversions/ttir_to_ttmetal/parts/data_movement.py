"""Data movement kernels between DRAM, cores and circular buffers, and elementwise epilogues."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import prod

from xdsl.dialects.builtin import IntegerType
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from ttcodegen.conversions.ttir_to_ttmetal.grouping.grouping import Group
from ttcodegen.conversions.ttir_to_ttmetal.grouping.tile_operations import (
    allocate,
    capacity,
    lower_chain,
)
from ttcodegen.conversions.ttir_to_ttmetal.parts.compute import (
    ComputeKernel,
    KernelSizes,
    float_bits,
)
from ttcodegen.conversions.ttir_to_ttmetal.parts.loop_nests import (
    AccessPattern,
    Coordinate,
    LoopNest,
    Page,
    WorkOrder,
    broadcast_of,
    broadcast_strides,
    computed_coordinates,
    page_number,
    sum_of,
)
from ttcodegen.dialects.core.datatypes import DataType, shape_of
from ttcodegen.dialects.ttcore.shards import CoreRange
from ttcodegen.dialects.ttcore.tile import TILE_FORMATS, TILE_SIDE
from ttcodegen.dialects.ttkernel.attributes import (
    L1PointerType,
    NocAddressType,
    TensorAccessorArgsType,
    TensorAccessorType,
    ThreadType,
)
from ttcodegen.dialects.ttkernel.builder import KernelBuilder, Value, number_of
from ttcodegen.dialects.ttmetal.programs import (
    CircularBuffer,
    CoreArea,
    Kernel,
    NamedConstant,
    Processor,
    RuntimeArgument,
)
from ttcodegen.dialects.ttmetal.tuning import Size, evaluate
from ttcodegen.dialects.ttnn.placement import declared_data_type
from ttcodegen.layout.placements import TiledShape, tile_bytes_of
from ttcodegen.naming.programs import address_name
from ttcodegen.ops.core.lowering import Tile, TileBuilder


def element_bits(value: float, data_type: DataType) -> int:
    """Bits of an element with that value, rounded to nearest even for bf16.

    Not for block floats."""
    if not data_type.is_float:
        return int(value) & (2 ** TILE_FORMATS[data_type.mlir].bits - 1)
    bits = float_bits(value)
    if data_type is DataType.FLOAT32:
        return bits
    # Ties round to even.
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16 & 0xFFFF


def element_word(data_type: DataType) -> IntegerType:
    """Integer type of the width of an element; not for block floats, which share exponents."""
    return IntegerType({8: 8, 32: 32}.get(TILE_FORMATS[data_type.mlir].bits, 16))


FIRST_ROW_ONLY = frozenset({"row", "element"})
"""Broadcasts for which only the first row of a tile is read."""


def brought_bytes(data_type: DataType, broadcast: str) -> int:
    """Bytes that are read of a tile with this broadcast."""
    size = tile_bytes_of(data_type)
    return size // TILE_SIDE if broadcast in FIRST_ROW_ONLY else size


@dataclass(frozen=True)
class BroughtTile:
    """Tile that a reader reads."""

    page: Value
    tensor: str
    buffer: str
    """Circular buffer that it goes to."""
    broadcast: str
    """Part that is repeated: row, column, element or none."""
    data_type: DataType


@dataclass
class MovementKernel:
    """Data movement kernel under construction.

    Circular buffers, arguments and accessors are known by name; the C++ declares them first."""

    name: str
    processor: Processor
    purpose: str
    """Sentence for the head of the file."""
    cores: CoreArea
    arguments: Sequence[RuntimeArgument] = ()
    semaphores: tuple[str, ...] = ()
    accessors: tuple[int, ...] = ()
    """Operands that it has accessors of."""
    builder: KernelBuilder = field(init=False)
    _buffers: dict[str, SSAValue] = field(default_factory=dict[str, SSAValue])
    _numbers: list[NamedConstant] = field(default_factory=list[NamedConstant])
    """Numbers of the circular buffers."""
    _sizes: KernelSizes = field(init=False)
    _known: dict[str, SSAValue] = field(default_factory=dict[str, SSAValue])
    _tensors: dict[str, SSAValue] = field(default_factory=dict[str, SSAValue])

    def __post_init__(self) -> None:
        self.builder = KernelBuilder(self.name, ThreadType.NOC)
        self._sizes = KernelSizes(self.builder)

    def begin(
        self,
        buffers: Iterable[CircularBuffer],
        tensors: Sequence[str] = (),
        constants: Mapping[str, Size] | None = None,
        values: Mapping[str, int] | None = None,
    ) -> None:
        """Declares the circular buffers, arguments and tensors of the kernel; must be called first.

        Args:
            buffers: the circular buffers.
            tensors: names of the tensors that it has accessors of, in the order of `accessors`.
            constants: other sizes, by name: compile-time arguments, unless they are integers.
            values: values of the settings in the program of the kernel.
        """
        for buffer in buffers:
            self._numbers.append(NamedConstant(buffer.constant, buffer.index))
            pages = max(1, evaluate(buffer.pages, values or {}))
            self._buffers[buffer.name] = self.builder.circular_buffer(
                buffer.constant, pages, buffer.page_type
            )
        self._sizes.know(constants or {})
        self._known.update(self._sizes.values)
        for name in (f"{name}_semaphore" for name in self.semaphores):
            self._known[name] = self.builder.compile_time_argument(name)
        for position, argument in enumerate(self.arguments):
            self._known[argument.name] = self.builder.argument(position, argument.name)
        self._declare_accessors(tensors)

    def _declare_accessors(self, names: Sequence[str]) -> None:
        before: SSAValue | None = None
        for name in names:
            place = {"cta_base": 0} if before is None else {}
            before = self.builder.get(
                "TensorAccessorArgs",
                *(() if before is None else (before,)),
                result_type=TensorAccessorArgsType(),
                name_hint=f"{name}_layout",
                **place,
            )
            self._tensors[name] = self.builder.get(
                "TensorAccessor",
                before,
                self[address_name(name)],
                result_type=TensorAccessorType(),
                name_hint=f"{name}_tensor",
            )

    def __getitem__(self, name: str) -> SSAValue:
        """Argument by its name: compile-time, run-time, or `<name>_semaphore`."""
        return self._known[name]

    def buffer(self, name: str) -> SSAValue:
        """Circular buffer by its name."""
        return self._buffers[name]

    def tensor(self, name: str) -> SSAValue:
        """Accessor of a tensor."""
        return self._tensors[name]

    def semaphore(self, name: str, name_hint: str | None = None) -> SSAValue:
        """Address of a semaphore of this core."""
        known = self[f"{name}_semaphore"]
        return self.builder.get("get_semaphore", known, name_hint=name_hint)

    def semaphore_pointer(self, name: str) -> SSAValue:
        """Pointer to a semaphore of this core, to set it and to wait for it."""
        return self.builder.get(
            "reinterpret_cast", self.semaphore(name), result_type=L1PointerType(), name_hint=name
        )

    def noc_address(self, place: str, address: SSAValue, name_hint: str | None = None) -> SSAValue:
        """Address on the core that the arguments `<place>_x` and `<place>_y` name."""
        return self.builder.get(
            "get_noc_addr",
            self[f"{place}_x"],
            self[f"{place}_y"],
            address,
            result_type=NocAddressType(),
            name_hint=name_hint,
        )

    # Statements

    @contextmanager
    def share(self, counter: str) -> Generator[SSAValue]:
        """Loop over the core's share of the program's work; yields its counter."""
        end = self.builder.sum(self["first"], self["count"])
        with self.builder.loop(end, start=self["first"], name_hint=counter) as value:
            yield value

    def read_page(self, page: Value, tensor: str, address: Value) -> None:
        """Starts the read of a page of a tensor."""
        self.builder.op("noc_async_read_page", page, self.tensor(tensor), address)

    def read_tile(
        self, page: Value, tensor: str, address: Value, broadcast: str, element: IntegerType
    ) -> None:
        """Starts the read of a tile, or of its first row if that is broadcast."""
        if broadcast in FIRST_ROW_ONLY:
            accessor = self.tensor(tensor)
            self.builder.op("blocks.read_first_row", page, accessor, address, element=element)
        else:
            self.read_page(page, tensor, address)

    def write_page(self, page: Value, tensor: str, buffer: str) -> None:
        """Starts the write of the first tile of a circular buffer to a page of a tensor."""
        address = self.builder.get("get_read_ptr", self.buffer(buffer))
        self.builder.op("noc_async_write_page", page, self.tensor(tensor), address)

    def write_tiles(self, page: Value, tensors: Sequence[str], buffers: Sequence[str]) -> None:
        """Writes the next tile of each circular buffer to a page of its tensor."""
        for tensor, buffer in zip(tensors, buffers, strict=True):
            self.builder.op("cb_wait_front", self.buffer(buffer), 1)
            self.write_page(page, tensor, buffer)
        self.builder.op("noc_async_write_barrier")
        for buffer in buffers:
            self.builder.op("cb_pop_front", self.buffer(buffer), 1)

    def elements(self, address: Value, element: IntegerType, name: str = "target") -> SSAValue:
        """Pointer to the elements of the tile at an address."""
        return self.builder.get(
            "blocks.elements_at",
            address,
            element=element,
            result_type=L1PointerType(element.width.data),
            name_hint=name,
        )

    def fill(
        self, address: Value, rows: Value, columns: Value, bits: int, element: IntegerType
    ) -> None:
        """Fills the tile at an address from these rows and columns on."""
        value = self.builder.pattern(bits) if bits else 0
        self.builder.op("blocks.fill_padding", address, rows, columns, value, element=element)

    def filled(self, first: Value, size: int, name: str = "") -> Value:
        """Number of rows or columns of a tile that contain elements.

        The tile begins at row or column `first` of `size`; C++ declares the number under `name`."""
        if size % TILE_SIDE == 0:
            return TILE_SIDE
        known = number_of(first)
        if known is not None:
            return min(size - known, TILE_SIDE)
        found = self.builder.smaller(self.builder.difference(size, first), TILE_SIDE)
        return self.builder.named(found, name) if name else found

    def write_pointer(self, buffer: str, name_hint: str | None = None) -> SSAValue:
        """Address of the next free tile of a circular buffer."""
        return self.builder.get("get_write_ptr", self.buffer(buffer), name_hint=name_hint)

    def coordinates(
        self, coordinates: Iterable[Coordinate], known: Mapping[str, SSAValue]
    ) -> dict[str, SSAValue]:
        """Computes coordinates from known counters; returns both."""
        return computed_coordinates(self.builder, coordinates, known)

    def page(self, page: Page, known: Mapping[str, SSAValue]) -> Value:
        """Page number, computed from coordinates."""
        return page_number(self.builder, page, known)

    def sum(self, terms: Iterable[Value]) -> Value:
        """Sum of values, without those that are the constant 0."""
        return sum_of(self.builder, terms)

    def product(self, value: Value, factor: int, name: str = "") -> Value:
        """Product with a constant, folded if the value is constant.

        C++ declares it under `name`."""
        if not isinstance(value, SSAValue):
            return value * factor
        found = self.builder.product(value, factor)
        return self.builder.named(found, name) if name else found

    def divided(
        self, value: Value, divisor: int, rest_name: str = "", name: str = ""
    ) -> tuple[Value, Value]:
        """Remainder and quotient of a division, folded if the value is constant."""
        if isinstance(value, int):
            return value % divisor, value // divisor
        assert isinstance(value, SSAValue)
        builder = self.builder
        whole = builder.quotient(value, divisor)
        rest: Value = 0 if divisor == 1 else builder.remainder(value, divisor)
        if rest_name and isinstance(rest, SSAValue):
            rest = builder.named(rest, rest_name)
        return rest, builder.named(whole, name) if name else whole

    def repeat_first(self, buffer: str, broadcast: str, element: IntegerType) -> None:
        """Repeats a row, column or element of the tile that was read; `none` is a no-op."""
        if broadcast != "none":
            name = f"blocks.repeat_first_{broadcast}"
            self.builder.op(name, self.write_pointer(buffer), element=element)

    def push_tiles(self, tiles: Sequence[BroughtTile]) -> None:
        """Reads a tile to each circular buffer, and pushes all of them after one barrier."""
        for tile in tiles:
            self.builder.op("cb_reserve_back", self.buffer(tile.buffer), 1)
            address, element = self.write_pointer(tile.buffer), element_word(tile.data_type)
            self.read_tile(tile.page, tile.tensor, address, tile.broadcast, element)
        if tiles:
            self.builder.op("noc_async_read_barrier")
        for tile in tiles:
            self.repeat_first(tile.buffer, tile.broadcast, element_word(tile.data_type))
            self.builder.op("cb_push_back", self.buffer(tile.buffer), 1)

    def push_marks(self, buffer: str, columns: int) -> None:
        """Pushes a tile of ones in the first columns and zeros in the others."""
        word = element_word(DataType.BFLOAT16)
        self.builder.op("cb_reserve_back", self.buffer(buffer), 1)
        tile = self.write_pointer(buffer)
        self.fill(tile, 0, 0, element_bits(1.0, DataType.BFLOAT16), word)
        self.fill(tile, TILE_SIDE, columns, 0, word)
        self.builder.op("cb_push_back", self.buffer(buffer), 1)

    def finish(self) -> tuple[Kernel, FuncOp]:
        """Returns the description of the kernel, and its function."""
        described = Kernel(
            self.name,
            self.processor,
            self.purpose,
            self.cores,
            self.name,
            (*self._numbers, *self._sizes.finish()),
            self.semaphores,
            self.accessors,
            tuple(self.arguments),
        )
        return described, self.builder.finish()


@dataclass
class Epilogue:
    """Elementwise ops after the root of a group."""

    group: Group
    builder: TileBuilder = field(default_factory=TileBuilder)
    """Their tile operations."""
    outer: dict[SSAValue, Tile] = field(default_factory=dict[SSAValue, Tile])
    """Tensors that they read besides the root's result."""

    def __post_init__(self) -> None:
        root = self.group.root
        assert root is not None
        self.root_tile = self.builder.new_tile(DataType.FLOAT32)
        known: dict[SSAValue, Tile] = {root.results[0]: self.root_tile}
        lower_chain(self.builder, self.group.epilogue, known, self.outer)
        self.results = [known[value] for value in self.group.outputs()]

    @property
    def is_plain(self) -> bool:
        """Returns whether the root's result is the result of the program, unchanged."""
        return not self.outer and self.results == [self.root_tile]

    def compute(
        self, kernel: ComputeKernel, outer_names: Sequence[str], output_names: Sequence[str]
    ) -> list[tuple[int, str]]:
        """Computes the results from the root's tile in the first destination register.

        Reserves room for them; returns their registers and circular buffers. Registers have 32
        bits."""
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
        """Reads the operand tiles for an output tile, given its number."""
        shapes = [TiledShape(shape_of(value.type)) for value in self.outer]
        ones = (1,) * len(result.grid)
        strides = [(broadcast_strides(shape, result), [0] * len(ones)) for shape in shapes]
        nest = LoopNest.of(result.grid, ones, strides)
        known = kernel.coordinates(nest.tile_coordinates, {"tile": tile})
        pages = [kernel.page(page, known) for page in nest.pages]
        self.read_pages(kernel, names, outer_names, result, shapes, pages)

    def reads(self, result: TiledShape) -> Mapping[SSAValue, int]:
        """Bytes that are read of each operand, once per output tile."""
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
        """Reads a page of each operand, which have these shapes."""
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


MOST_KEPT_BYTES = 512 * 1024
"""Maximum L1 for operand tiles that are cached."""
LEAST_SPARED = 16
"""Inverse of the minimum share of reads that an order other than row by row must save.

Row by row is preferred because it matches sharded tensors."""


@dataclass(frozen=True)
class TileOperand:
    """Tensor that the reader reads tile by tile."""

    value: SSAValue
    name: str
    """Circular buffer that its tiles go to."""
    tile: Tile
    shape: TiledShape
    domain: TiledShape
    """Domain that its tiles are broadcast over."""
    moves: tuple[int, ...]
    """Page stride in each dimension of the result's tiles."""
    steps: tuple[int, ...]
    """Number of tiles per output tile, in each dimension."""
    step_moves: tuple[int, ...]
    """Page stride in each dimension of these steps."""

    @property
    def data_type(self) -> DataType:
        return declared_data_type(self.value)

    @property
    def element(self) -> IntegerType:
        return element_word(self.data_type)

    @property
    def broadcast(self) -> str:
        """Part of its tiles that is repeated: row, column, element or none."""
        return broadcast_of(self.shape, self.domain).word

    @property
    def brought_bytes(self) -> int:
        """Bytes that are read of a tile."""
        return brought_bytes(self.data_type, self.broadcast)

    def pattern(self, order: WorkOrder) -> AccessPattern:
        """Access pattern of its pages when output tiles are computed in an order."""
        sizes = (*order.sizes, *self.steps)
        return AccessPattern.of(sizes, (*order.moves(self.moves), *self.step_moves))


@dataclass(frozen=True)
class TileReads:
    """Read plan of the operands of a program."""

    order: WorkOrder
    slots: Mapping[str, int]
    """Number of tiles that are cached per circular buffer, for operands with a cache."""
    tiles: Mapping[str, int]
    """Number of tiles that all cores together read per circular buffer."""

    def bytes(self, operands: Sequence[TileOperand]) -> int:
        """Bytes that all cores together read."""
        return sum(self.tiles[operand.name] * operand.brought_bytes for operand in operands)


def plan_reads(
    operands: Sequence[TileOperand],
    keepable: Sequence[str],
    grid: Sequence[int],
    cores: CoreRange,
    free_buffers: int,
) -> TileReads:
    """Chooses the order of tiles in which the fewest bytes are read.

    Args:
        operands: the operands.
        keepable: circular buffers of operands whose tiles may be cached.
        grid: tiles of the result in each dimension.
        cores: the cores that share them.
        free_buffers: maximum number of circular buffers for caches.
    """

    def reads(order: WorkOrder) -> TileReads:
        return _reads(operands, keepable, order, cores, free_buffers)

    row_by_row = reads(WorkOrder.row_by_row(grid))
    least = sum(o.pattern(row_by_row.order).pages * o.brought_bytes for o in operands)
    read = row_by_row.bytes(operands)
    enough = read - read // LEAST_SPARED
    if not read or least > enough:
        return row_by_row
    best = min(
        map(reads, row_by_row.order.others()), key=lambda r: r.bytes(operands), default=row_by_row
    )
    return best if best.bytes(operands) <= enough else row_by_row


def _reads(
    operands: Sequence[TileOperand],
    keepable: Sequence[str],
    order: WorkOrder,
    cores: CoreRange,
    free_buffers: int,
) -> TileReads:
    """Number of reads and of cached tiles per operand in an order."""
    kept: dict[str, int] = {}
    tiles: dict[str, int] = {}
    free, units = MOST_KEPT_BYTES, prod(order.sizes)
    for operand in operands:
        pattern = operand.pattern(order)
        size = tile_bytes_of(operand.data_type)
        slots = 0
        if operand.name in keepable and len(kept) < free_buffers:
            slots = pattern.slots(free // size, cores, units)
        if slots:
            kept[operand.name] = slots
            free -= slots * size
        tiles[operand.name] = pattern.reads(slots, cores, units)
    return TileReads(order, kept, tiles)
