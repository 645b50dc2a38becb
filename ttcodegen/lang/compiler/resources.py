"""Device resources of kernels: circular buffers, tensors, semaphores, runtime arguments.

Each kernel is translated twice: the first translation collects the resources that it needs, the
second one declares them at the start of the kernel and uses them. Accesses to single elements of
blocks in L1 are translated here, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from xdsl.dialects.builtin import Float32Type, i16, i32
from xdsl.ir import SSAValue

from ttcodegen.conversions.ttir_to_ttmetal.parts.data_movement import MovementKernel
from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.dialects.ttcore.tile import FACE_SIDE, TILE_SIDE, TileType
from ttcodegen.dialects.ttkernel.attributes import (
    L1PointerType,
    NocAddressType,
    TensorAccessorArgsType,
    TensorAccessorType,
)
from ttcodegen.dialects.ttmetal.programs import (
    CircularBuffer,
    NocX,
    NocY,
    Place,
    Processor,
    RuntimeArgument,
    RuntimeValue,
)
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.lang.compiler.python.numbers import (
    Comparison,
    Condition,
    KernelFloat,
    Number,
    is_number,
)
from ttcodegen.lang.compiler.python.translation import KernelTranslator
from ttcodegen.lang.simulator.buffers import DataflowBuffer
from ttcodegen.lang.simulator.context import Node
from ttcodegen.lang.simulator.locations import location_of
from ttcodegen.lang.simulator.tensors import Tensor
from ttcodegen.lang.simulator.transfers import (
    INDEX,
    READ,
    WRITE,
    check_element_type,
    check_rank,
    checked_coordinates,
    truncated,
)
from ttcodegen.layout.placements import tile_bytes_of


@dataclass
class MovementNeeds:
    """Resources that a data movement kernel uses, in order of use."""

    buffers: set[str] = field(default_factory=set[str])
    tensors: dict[int, Tensor] = field(default_factory=dict[int, Tensor])
    """By object identity."""
    reads: set[int] = field(default_factory=set[int])
    writes: set[int] = field(default_factory=set[int])
    semaphores: dict[str, None] = field(default_factory=dict[str, None])
    initial: dict[str, int] = field(default_factory=dict[str, int])
    """Initial values of the operation's semaphores."""
    varying: set[str] = field(default_factory=set[str])
    """Dataflow buffers to which nodes may push different numbers of blocks."""
    published: set[str] = field(default_factory=set[str])
    """Tensor-backed dataflow buffers that the kernel publishes."""
    printed: dict[str, Tensor] = field(default_factory=dict[str, Tensor])
    """Tensors whose pages the kernel prints, by the circular buffers that receive the pages."""
    pointers: dict[str, None] = field(default_factory=dict[str, None])
    """Semaphores whose local values the kernel reads or sets through a pointer."""
    coordinates: set[str] = field(default_factory=set[str])
    """Names of the runtime arguments with the coordinates of the node."""
    arguments: dict[str, RuntimeArgument] = field(default_factory=dict[str, RuntimeArgument])


class MovementResources:
    """Circular buffers, tensors, semaphores and arguments of a data movement kernel."""

    def __init__(
        self,
        target: MovementKernel,
        needs: MovementNeeds,
        name_of: Callable[[Tensor], str],
        grid: tuple[int, int],
        *,
        is_first_time: bool,
    ) -> None:
        self.target = target
        self.builder = target.builder
        self.needs = needs
        self._name_of = name_of
        self._grid = grid
        self._known: set[str] = set()
        self.is_first_time = is_first_time
        self._pointers: dict[str, SSAValue] = {}

    def begin(self, circular: Sequence[CircularBuffer]) -> None:
        """Declares the resources that the kernel is known to need."""
        if self.is_first_time:
            self._known = {buffer.name for buffer in circular}
            self.target.begin(circular)
            return
        used = [buffer for buffer in circular if buffer.name in self.needs.buffers]
        self.target.begin(used, [self._name_of(each) for each in self.needs.tensors.values()])

    def buffer(self, name: str) -> SSAValue:
        """Returns a circular buffer."""
        self.needs.buffers.add(name)
        if self.is_first_time and name not in self._known:
            # A buffer whose need is only found out during the first translation.
            kind = TileType(DataType.BFLOAT16)
            return self.builder.circular_buffer(f"cb_{name}", 1, kind)
        return self.target.buffer(name)

    def printed_page(self, kernel: str, tensor: Tensor) -> SSAValue:
        """Returns a circular buffer private to a kernel, with room for one page of a tensor."""
        name = f"{kernel}_{self._name_of(tensor)}_page"
        self.needs.printed.setdefault(name, tensor)
        return self.buffer(name)

    def argument(self, name: str, value: RuntimeValue) -> SSAValue:
        """Returns the value of a runtime argument."""
        self.needs.arguments.setdefault(name, RuntimeArgument(name, value))
        if self.is_first_time:
            return self.builder.argument(0, name)
        return self.target[name]

    def tensor(self, tensor: Tensor, *, is_read: bool) -> SSAValue:
        """Returns the accessor of a tensor."""
        self.needs.tensors.setdefault(id(tensor), tensor)
        (self.needs.reads if is_read else self.needs.writes).add(id(tensor))
        if not self.is_first_time:
            return self.target.tensor(self._name_of(tensor))
        get = self.builder.get
        layout = get("TensorAccessorArgs", result_type=TensorAccessorArgsType(), cta_base=0)
        return get("TensorAccessor", layout, 0, result_type=TensorAccessorType())

    # Semaphores

    def semaphore(self, name: str) -> SSAValue:
        """Returns the L1 address of a semaphore, which is the same on all nodes."""
        return self.semaphore_of([name], 0)

    def _semaphore_id(self, name: str) -> SSAValue:
        self.needs.semaphores.setdefault(name)
        if self.is_first_time:
            return self.builder.compile_time_argument(f"{name}_semaphore")
        return self.target[f"{name}_semaphore"]

    def semaphore_of(self, names: Sequence[str], number: Number) -> SSAValue:
        """Returns the address of the semaphore with a given index; their ids are consecutive."""
        if isinstance(number, int):
            return self.builder.get("get_semaphore", self._semaphore_id(names[number]))
        first, *_ = [self._semaphore_id(name) for name in names]
        return self.builder.get(
            "get_semaphore", self.builder.sum(first, number), name_hint=names[0].rstrip("_0")
        )

    def pointer(self, address: SSAValue, name: str | None = None) -> SSAValue:
        """Returns a pointer to the local value of a semaphore."""
        return self.builder.get(
            "reinterpret_cast", address, result_type=L1PointerType(), name_hint=name
        )

    def semaphore_pointer(self, name: str) -> SSAValue:
        """Returns a pointer to the local value of a semaphore, declared at the kernel's start."""
        self.needs.pointers.setdefault(name)
        if self.is_first_time:
            return self.pointer(self.semaphore(name))
        return self._pointers[name]

    def declare_pointers(self) -> None:
        """Declares the pointers to semaphores at the start of the kernel."""
        for name in self.needs.pointers:
            self._pointers[name] = self.pointer(self.semaphore(name), name)

    # NoC addresses

    def noc_address(self, node: tuple[Number, Number], address: SSAValue) -> SSAValue:
        """Returns the NoC address of an L1 address on a node."""
        return self.builder.get(
            "get_noc_addr", *self._noc_coordinates(node), address, result_type=NocAddressType()
        )

    def page_address(
        self, accessor: SSAValue, page: Number, offset: Number, name_hint: str
    ) -> SSAValue:
        """Returns the NoC address of an offset in a page of a tensor."""
        return self.builder.get(
            "tensor_accessor.get_noc_addr",
            accessor,
            page,
            offset,
            result_type=NocAddressType(),
            name_hint=name_hint,
        )

    def multicast_address(
        self, first: tuple[Number, Number], last: tuple[Number, Number], address: SSAValue
    ) -> SSAValue:
        """Returns the multicast address of an L1 address on a rectangle of nodes."""
        # NoC 1 routes in the opposite direction: its rectangles start at their last core.
        corners = (first, last) if self.target.processor is Processor.READER else (last, first)
        ends = [value for corner in corners for value in self._noc_coordinates(corner)]
        return self.builder.get(
            "get_noc_multicast_addr", *ends, address, result_type=NocAddressType()
        )

    def here(self, address: SSAValue) -> SSAValue:
        """Returns the NoC address of an L1 address on this node."""
        x = self.argument("node_x", NocX(Place.COLUMN, Place.ROW))
        y = self.argument("node_y", NocY(Place.COLUMN, Place.ROW))
        return self.builder.get("get_noc_addr", x, y, address, result_type=NocAddressType())

    def _noc_coordinates(self, node: tuple[Number, Number]) -> tuple[SSAValue, SSAValue]:
        column, row = node
        columns = [RuntimeArgument(f"x_of_column_{n}", NocX(n, 0)) for n in range(self._grid[0])]
        rows = [RuntimeArgument(f"y_of_row_{n}", NocY(0, n)) for n in range(self._grid[1])]
        return self._indexed_argument(column, columns), self._indexed_argument(row, rows)

    def _indexed_argument(self, number: Number, arguments: Sequence[RuntimeArgument]) -> SSAValue:
        """Returns the argument with a given index.

        An index that is computed at run time needs all arguments at consecutive positions.
        """
        if isinstance(number, int):
            return self.argument(arguments[number].name, arguments[number].value)
        if self.is_first_time:
            for each in arguments:
                # One of them may have been declared alone before.
                self.needs.arguments.pop(each.name, None)
            self.needs.arguments |= {each.name: each for each in arguments}
            first = 0
        else:
            first = [each.name for each in self.target.arguments].index(arguments[0].name)
        return self.builder.argument_at(number, first, f"first_{arguments[0].name[:-2]}")


_SWAPS_OPERANDS = {"Gt": False, "Lt": True}
"""Float comparisons by name; True if the operands are exchanged."""


class ElementCalls:
    """Translation of accesses to single elements of blocks."""

    def __init__(self, translator: KernelTranslator) -> None:
        self.translator = translator
        self.builder = translator.builder

    def read(self, buffer: DataflowBuffer, address: SSAValue, coords: Sequence[Any]) -> KernelFloat:
        """Returns the value of an element as a float."""
        offset = self._offset(READ, buffer, coords)
        return KernelFloat(
            self.builder.get(
                "blocks.element_value",
                address,
                offset,
                element=_element_type(buffer),
                result_type=Float32Type(),
                name_hint=f"{buffer.name}_element",
            )
        )

    def index(self, buffer: DataflowBuffer, address: SSAValue, coords: Sequence[Any]) -> SSAValue:
        """Returns the value of an element as an index."""
        offset = self._offset(INDEX, buffer, coords)
        element, name = _element_type(buffer), f"{buffer.name}_index"
        return self.builder.get(
            "blocks.element_index", address, offset, element=element, name_hint=name
        )

    def write(
        self, buffer: DataflowBuffer, address: SSAValue, coords: Sequence[Any], value: Any
    ) -> None:
        """Writes a number to an element."""
        offset = self._offset(WRITE, buffer, coords)
        if isinstance(value, int | float):
            value = truncated(float(value), buffer.data_type)
        number = self.translator.arithmetic.float_value(value)
        if number is None:
            self.translator.refuse(f"{WRITE} writes a number, not a {type(value).__name__}")
        element = _element_type(buffer)
        self.builder.op("blocks.set_element_value", address, offset, number, element=element)

    def _offset(self, what: str, buffer: DataflowBuffer, coords: Sequence[Any]) -> Number:
        """Offset of an element in the memory of a block, counted in elements."""
        check_element_type(what, buffer)
        check_rank(what, buffer, len(coords))
        if not all(is_number(each) for each in coords):
            self.translator.refuse(f"the coordinates of {what} are integers")
        arithmetic = self.translator.arithmetic
        if all(isinstance(each, int) for each in coords):
            checked_coordinates(what, buffer, coords)
        if not buffer.is_tiled:
            *outer, column = coords
            row = arithmetic.index(outer, buffer.unit_shape)
            distance = buffer.unit_bytes // buffer.element_bytes
            return arithmetic.add(arithmetic.multiply(row, distance), column)
        *outer, row, column = coords
        tile_row, tile_column = (self._tile_coordinate(each) for each in (row, column))
        tile = arithmetic.index([*outer, tile_row, tile_column], buffer.shape)
        if isinstance(tile, int) and isinstance(row, int) and isinstance(column, int):
            return tile * TILE_SIDE * TILE_SIDE + _offset_in_tile(row, column)
        return self.builder.get("blocks.block_offset", tile, row, column)

    def _tile_coordinate(self, coordinate: Number) -> Number:
        found = self.translator.arithmetic.binary("FloorDiv", coordinate, TILE_SIDE)
        if found is None:
            self.translator.refuse("the coordinates of elements are 0 or more")
        return found

    def comparison(self, symbol: str, left: Any, right: Any) -> Condition:
        """Translates a comparison of floats."""
        operands = [self.translator.arithmetic.float_value(each) for each in (left, right)]
        first, second = operands
        if symbol not in _SWAPS_OPERANDS or first is None or second is None:
            self.translator.refuse("kernels compare floats by > and < only")
        if _SWAPS_OPERANDS[symbol]:
            first, second = second, first
        return Comparison("ne", self.builder.get("blocks.is_greater", first, second), 0)


def _element_type(buffer: DataflowBuffer) -> Any:
    return i32 if buffer.data_type is DataType.FLOAT32 else i16


def _offset_in_tile(row: int, column: int) -> int:
    """Offset of an element in its tile, which is stored as four faces."""
    row, column = row % TILE_SIDE, column % TILE_SIDE
    face = row // FACE_SIDE * 2 + column // FACE_SIDE
    return (face * FACE_SIDE + row % FACE_SIDE) * FACE_SIDE + column % FACE_SIDE


@dataclass(frozen=True)
class Scratch:
    """Shape of a circular buffer that is private to the compute kernel."""

    tiles: int
    data_type: DataType
    block: int
    """Tiles of a block: blocks of another size could wrap around the end of the buffer."""


@dataclass
class Needs:
    """Requirements of a compute kernel beyond the program's circular buffers."""

    scratch: dict[str, Scratch] = field(default_factory=dict[str, Scratch])
    read_by_matrix_engine: set[str] = field(default_factory=set[str])
    needs_scaler: bool = False
    computes_once: bool = True
    """True if values with several uses are materialized, False if each use recomputes them."""
    shares_buffers: bool = False
    """True if values whose live ranges do not overlap share circular buffers."""
    is_narrow: bool = False
    """True if no dataflow buffer holds 32-bit floats."""


def check_alike(first: Node, node: Node) -> None:
    """Raises CompileError if a node has other kernels or dataflow buffers than the first node."""
    names, others = ([each.name for each in one.kernels] for one in (first, node))
    if names != others:
        raise CompileError(
            f"node {node} has the kernels {', '.join(others) or 'none'}, but node {first} has "
            f"{', '.join(names) or 'none'}",
            remedy="make the same kernels on all nodes; what some of them leave out is a condition "
            "in the kernel",
        )
    kinds, of_node = (
        [
            (each.name, each.shape, each.data_type, each.is_tiled, each.block_count)
            for each in one.made.of(DataflowBuffer)
        ]
        for one in (first, node)
    )
    if kinds != of_node:
        raise CompileError(
            f"node {node} makes other dataflow buffers than node {first}: circular buffers are the "
            "same on all cores",
            remedy="make all of them on all nodes, and choose the one to use",
        )


def check_memory(buffer: DataflowBuffer) -> None:
    """Raises CompileError if the requested memory of a buffer is not supported."""
    if buffer.group is not None:
        raise CompileError(
            f"the compiler gives each dataflow buffer memory of its own, '{buffer.name}' too",
            location_of(buffer.made_at),
            remedy="leave allocation_group out",
        )
    if buffer.backing is not None and not buffer.backing.is_whole_shard:
        raise CompileError(
            f"the blocks of '{buffer.name}' are a part of the shards of its tensor only; the "
            "compiler takes buffers that have all of a shard",
            location_of(buffer.made_at),
        )


def circular_buffer(buffer: DataflowBuffer) -> CircularBuffer:
    """The circular buffer of a dataflow buffer."""
    return CircularBuffer(
        buffer.number,
        buffer.name,
        buffer.data_type,
        buffer.pages * buffer.block_count,
        buffer.page_bytes,
    )


def own_buffer(index: int, name: str, tiles: int, data_type: DataType) -> CircularBuffer:
    """A circular buffer of tiles that is private to a compute kernel."""
    size = tile_bytes_of(data_type)
    return CircularBuffer(index, name, data_type, tiles, size)
