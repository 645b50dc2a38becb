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
    """The bits of an element of that value, to the nearest bf16 if elements have 16 bits; not of
    block floats, as below."""
    if not data_type.is_float:
        return int(value) & (2 ** TILE_FORMATS[data_type.mlir].bits - 1)
    bits = float_bits(value)
    if data_type is DataType.FLOAT32:
        return bits
    # To even between two.
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16 & 0xFFFF


def element_word(data_type: DataType) -> IntegerType:
    """The integer with the bits of an element; not of block floats, whose elements have none of
    their own."""
    return IntegerType({8: 8, 32: 32}.get(TILE_FORMATS[data_type.mlir].bits, 16))


FIRST_ROW_ONLY = frozenset({"row", "element"})
"""Part of a tile to be repeated if only its first row is read."""


def brought_bytes(data_type: DataType, broadcast: str) -> int:
    """Bytes that are read of a tile that is broadcast in this way."""
    size = tile_bytes_of(data_type)
    return size // TILE_SIDE if broadcast in FIRST_ROW_ONLY else size


@dataclass(frozen=True)
class BroughtTile:
    """A tile that a reader brings."""

    page: Value
    tensor: str
    buffer: str
    """The circular buffer that it goes to."""
    broadcast: str
    """The part of it that is repeated: row, column or element; none for nothing."""
    data_type: DataType


@dataclass
class MovementKernel:
    """A data-movement kernel under construction.

    Circular buffers, arguments and accessors are known by name; the C++ declares them first.
    """

    name: str
    processor: Processor
    purpose: str
    """A sentence for the head of the file."""
    cores: CoreArea
    arguments: Sequence[RuntimeArgument] = ()
    semaphores: tuple[str, ...] = ()
    accessors: tuple[int, ...] = ()
    """The operands that it has accessors of."""
    builder: KernelBuilder = field(init=False)
    _buffers: dict[str, SSAValue] = field(default_factory=dict[str, SSAValue])
    _numbers: list[NamedConstant] = field(default_factory=list[NamedConstant])
    """Of the circular buffers."""
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
        """Declares what the kernel uses; nothing else may come before.

        Args:
            buffers: the circular buffers.
            tensors: the names of the tensors that it has accessors of, in the order of `accessors`.
            constants: other sizes, by name: compile-time arguments, if they are no numbers.
            values: what settings are in the program that the kernel is made for.
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
        """An argument by its name: compile-time, run-time, or `<name>_semaphore`."""
        return self._known[name]

    def buffer(self, name: str) -> SSAValue:
        """A circular buffer."""
        return self._buffers[name]

    def tensor(self, name: str) -> SSAValue:
        """The accessor of a tensor."""
        return self._tensors[name]

    def semaphore(self, name: str, name_hint: str | None = None) -> SSAValue:
        """The address of a semaphore of this core."""
        known = self[f"{name}_semaphore"]
        return self.builder.get("get_semaphore", known, name_hint=name_hint)

    def semaphore_pointer(self, name: str) -> SSAValue:
        """A semaphore of this core, to set it and to wait for it."""
        return self.builder.get(
            "reinterpret_cast", self.semaphore(name), result_type=L1PointerType(), name_hint=name
        )

    def noc_address(self, place: str, address: SSAValue, name_hint: str | None = None) -> SSAValue:
        """An address on the core that the arguments `<place>_x` and `<place>_y` name."""
        return self.builder.get(
            "get_noc_addr",
            self[f"{place}_x"],
            self[f"{place}_y"],
            address,
            result_type=NocAddressType(),
            name_hint=name_hint,
        )

    # What it does

    @contextmanager
    def share(self, counter: str) -> Generator[SSAValue]:
        """A loop over the core's share of the program's work; gives its counter."""
        end = self.builder.sum(self["first"], self["count"])
        with self.builder.loop(end, start=self["first"], name_hint=counter) as value:
            yield value

    def read_page(self, page: Value, tensor: str, address: Value) -> None:
        """Begins to read a page of a tensor."""
        self.builder.op("noc_async_read_page", page, self.tensor(tensor), address)

    def read_tile(
        self, page: Value, tensor: str, address: Value, broadcast: str, element: IntegerType
    ) -> None:
        """Begins to read what a tile needs that is broadcast: its first row, or all of it."""
        if broadcast in FIRST_ROW_ONLY:
            accessor = self.tensor(tensor)
            self.builder.op("blocks.read_first_row", page, accessor, address, element=element)
        else:
            self.read_page(page, tensor, address)

    def write_page(self, page: Value, tensor: str, buffer: str) -> None:
        """Begins to write the first tile of a circular buffer to a page of a tensor."""
        address = self.builder.get("get_read_ptr", self.buffer(buffer))
        self.builder.op("noc_async_write_page", page, self.tensor(tensor), address)

    def write_tiles(self, page: Value, tensors: Sequence[str], buffers: Sequence[str]) -> None:
        """Writes the tile that each of the circular buffers gets to a page of its tensor."""
        for tensor, buffer in zip(tensors, buffers, strict=True):
            self.builder.op("cb_wait_front", self.buffer(buffer), 1)
            self.write_page(page, tensor, buffer)
        self.builder.op("noc_async_write_barrier")
        for buffer in buffers:
            self.builder.op("cb_pop_front", self.buffer(buffer), 1)

    def elements(self, address: Value, element: IntegerType, name: str = "target") -> SSAValue:
        """The elements of the tile at an address, for what writes single ones."""
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
        """Fills the tile at an address from those rows and columns on."""
        value = self.builder.pattern(bits) if bits else 0
        self.builder.op("blocks.fill_padding", address, rows, columns, value, element=element)

    def filled(self, first: Value, size: int, name: str = "") -> Value:
        """Number of rows or columns of a tile with elements, out of the total; the tile begins with
        the one of that number. C++ declares it under the name."""
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
        """Coordinates computed from the counters that are known, and these."""
        return computed_coordinates(self.builder, coordinates, known)

    def page(self, page: Page, known: Mapping[str, SSAValue]) -> Value:
        """The number of a page, from coordinates."""
        return page_number(self.builder, page, known)

    def sum(self, terms: Iterable[Value]) -> Value:
        """The sum of values that are not written where they are 0."""
        return sum_of(self.builder, terms)

    def product(self, value: Value, factor: int, name: str = "") -> Value:
        """A value times a number, a number if the value is one; C++ declares it under that name."""
        if not isinstance(value, SSAValue):
            return value * factor
        found = self.builder.product(value, factor)
        return self.builder.named(found, name) if name else found

    def divided(
        self, value: Value, divisor: int, rest_name: str = "", name: str = ""
    ) -> tuple[Value, Value]:
        """Remainder and quotient of a division: Python numbers if the value is one."""
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
        """Repeats a part of the tile that was read: row, column or element; none for nothing."""
        if broadcast != "none":
            name = f"blocks.repeat_first_{broadcast}"
            self.builder.op(name, self.write_pointer(buffer), element=element)

    def push_tiles(self, tiles: Sequence[BroughtTile]) -> None:
        """Brings a tile to each of the circular buffers, and hands them on together."""
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
        """Makes the tile that is 1 in the first columns and 0 in the others."""
        word = element_word(DataType.BFLOAT16)
        self.builder.op("cb_reserve_back", self.buffer(buffer), 1)
        tile = self.write_pointer(buffer)
        self.fill(tile, 0, 0, element_bits(1.0, DataType.BFLOAT16), word)
        self.fill(tile, TILE_SIDE, columns, 0, word)
        self.builder.op("cb_push_back", self.buffer(buffer), 1)

    def finish(self) -> tuple[Kernel, FuncOp]:
        """Kernel description of the program, and its function, which takes the sizes that it
        needs."""
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
    """The ops after the root of a group."""

    group: Group
    builder: TileBuilder = field(default_factory=TileBuilder)
    """The ops on tiles."""
    outer: dict[SSAValue, Tile] = field(default_factory=dict[SSAValue, Tile])
    """The tensors that they read besides the root's result."""

    def __post_init__(self) -> None:
        root = self.group.root
        assert root is not None
        self.root_tile = self.builder.new_tile(DataType.FLOAT32)
        known: dict[SSAValue, Tile] = {root.results[0]: self.root_tile}
        lower_chain(self.builder, self.group.epilogue, known, self.outer)
        self.results = [known[value] for value in self.group.outputs()]

    @property
    def is_plain(self) -> bool:
        """True if the root's result is the result of the program, unchanged."""
        return not self.outer and self.results == [self.root_tile]

    def compute(
        self, kernel: ComputeKernel, outer_names: Sequence[str], output_names: Sequence[str]
    ) -> list[tuple[int, str]]:
        """From the root's tile in the first of 32-bit destination registers to the results, for
        which there is room then; gives their registers and circular buffers."""
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
        """Brings what belongs to a tile of the result, by its number."""
        shapes = [TiledShape(shape_of(value.type)) for value in self.outer]
        ones = (1,) * len(result.grid)
        strides = [(broadcast_strides(shape, result), [0] * len(ones)) for shape in shapes]
        nest = LoopNest.of(result.grid, ones, strides)
        known = kernel.coordinates(nest.tile_coordinates, {"tile": tile})
        pages = [kernel.page(page, known) for page in nest.pages]
        self.read_pages(kernel, names, outer_names, result, shapes, pages)

    def reads(self, result: TiledShape) -> Mapping[SSAValue, int]:
        """Bytes that are read of each of the tensors, for every tile of the result once."""
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
        """Brings a page of each of the tensors, which have these shapes beside the result's."""
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
"""Of L1, for tiles of operands that are needed again and again."""
LEAST_SPARED = 16
"""Another order than row by row, in which programs find tensors in shards, has to spare this part
of what is read."""


@dataclass(frozen=True)
class TileOperand:
    """A tensor that the reader brings, tile by tile."""

    value: SSAValue
    name: str
    """Of the circular buffer that it comes through."""
    tile: Tile
    shape: TiledShape
    domain: TiledShape
    """Domain that its tiles are broadcast over."""
    moves: tuple[int, ...]
    """Page strides per dimension of the result's tiles."""
    steps: tuple[int, ...]
    """The tiles that one tile of the result needs, in each dimension."""
    step_moves: tuple[int, ...]
    """Page strides per dimension of these steps."""

    @property
    def data_type(self) -> DataType:
        return declared_data_type(self.value)

    @property
    def element(self) -> IntegerType:
        return element_word(self.data_type)

    @property
    def broadcast(self) -> str:
        """The part of its tiles that is repeated: row, column or element; none for nothing."""
        return broadcast_of(self.shape, self.domain).word

    @property
    def brought_bytes(self) -> int:
        """Bytes read of a tile."""
        return brought_bytes(self.data_type, self.broadcast)

    def pattern(self, order: WorkOrder) -> AccessPattern:
        """The pages of it that are needed, where the result is gone through in an order."""
        sizes = (*order.sizes, *self.steps)
        return AccessPattern.of(sizes, (*order.moves(self.moves), *self.step_moves))


@dataclass(frozen=True)
class TileReads:
    """Read plan of the operands of a program."""

    order: WorkOrder
    slots: Mapping[str, int]
    """The tiles that are kept of an operand, by circular buffer; only of those that keep some."""
    tiles: Mapping[str, int]
    """The tiles that all cores together read of each."""

    def bytes(self, operands: Sequence[TileOperand]) -> int:
        """Bytes read by all cores."""
        return sum(self.tiles[operand.name] * operand.brought_bytes for operand in operands)


def plan_reads(
    operands: Sequence[TileOperand],
    keepable: Sequence[str],
    grid: Sequence[int],
    cores: CoreRange,
    free_buffers: int,
) -> TileReads:
    """The order in which fewest bytes are read.

    Args:
        operands: what is read.
        keepable: the circular buffers of those of which tiles may be kept.
        grid: the tiles of the result.
        cores: the cores that share them.
        free_buffers: the circular buffers that there may be for what is kept.
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
    """Reads and kept pages of an order."""
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
