"""Compute kernels: block expressions become loops over the tiles of the block that they are stored
in; what one tile needs is computed in the destination registers.

Products and reductions, which the matrix engine computes, are the first step of such a loop; those
that are deeper in an expression, and what the engine has to read that is no block, go through a
circular buffer of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from math import prod

from ttcodegen.conversions.ttir_to_ttmetal.grouping.tile_operations import (
    Allocation,
    Load,
    allocate,
    capacity,
)
from ttcodegen.conversions.ttir_to_ttmetal.parts.compute import ComputeKernel
from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.dialects.ttkernel.attributes import BroadcastType, ReduceDim, ReduceType
from ttcodegen.dialects.ttmetal.programs import CircularBuffer
from ttcodegen.lang.compiler.compute.expressions import (
    INTEGERS,
    Apply,
    Broadcast,
    Expression,
    Fill,
    Picked,
    Product,
    Reduction,
    Reshaped,
    Resident,
    Transposed,
    engine_part,
    is_flat,
    parts_of,
)
from ttcodegen.lang.compiler.python.numbers import Arithmetic, Number
from ttcodegen.lang.simulator.shapes import Shape
from ttcodegen.ops.core.lowering import Tile, TileBuilder

SCALER = "scaler"
"""The circular buffer of ones that reductions multiply by."""

_BROADCASTS = {"row": BroadcastType.ROW, "col": BroadcastType.COL, "scalar": BroadcastType.SCALAR}
_DIRECTIONS = {"row": ReduceDim.ROW, "col": ReduceDim.COL, "scalar": ReduceDim.SCALAR}
_REDUCTIONS = {"sum": ReduceType.SUM, "max": ReduceType.MAX}


@dataclass(frozen=True)
class Scratch:
    """A circular buffer that the compute kernel keeps for itself."""

    tiles: int
    data_type: DataType
    block: int
    """Tiles of a block: blocks of another size could go over the end of the buffer."""


@dataclass
class Needs:
    """Requirements of a compute kernel beyond the program's circular buffers."""

    scratch: dict[str, Scratch] = field(default_factory=dict[str, Scratch])
    read_by_matrix_engine: set[str] = field(default_factory=set[str])
    needs_scaler: bool = False
    computes_once: bool = True
    """True if values with several uses are kept, False if they are computed for each."""
    shares_buffers: bool = False
    """True if values whose live ranges do not overlap share circular buffers."""


@dataclass(frozen=True)
class _Source:
    """Location of an expression's tile."""

    buffer: str
    index: Number
    way: str
    """copy, transpose, or what is repeated inside of it: row, col, scalar"""


class BlockWriter:
    """Writes what computes block expressions."""

    def __init__(
        self,
        kernel: ComputeKernel,
        arithmetic: Arithmetic,
        needs: Needs,
        formats: dict[str, DataType],
    ) -> None:
        self.kernel = kernel
        self.arithmetic = arithmetic
        self.needs = needs
        self.formats = formats
        self._held: list[Resident] = []
        self._number_type = DataType.FLOAT32
        """Data type of the constants that fill tiles, where they are written."""
        self._occupied: set[str] = set()
        """Circular buffers of its own that hold a block."""
        self._shared: set[str] = set()
        """Those that others may have when they hold none."""
        self._names: dict[str, str] = {}
        """Of the circular buffers that are held: the requested names."""
        self._ready: dict[int, tuple[Expression, Expression]] = {}
        """Parts of what is being written, by identity, and what they became."""

    @property
    def mixes_formats(self) -> bool:
        """True if circular buffers hold different data types."""
        return len(set(self.formats.values())) > 1

    @property
    def only_type(self) -> DataType:
        """Data type of constants: integer in kernels without any other type."""
        computed = (each for each in self.formats.values() if each.is_float or each in INTEGERS)
        held = set(map(_in_registers, computed))
        return held.pop() if len(held) == 1 else DataType.FLOAT32

    # Circular buffers of the kernel's own

    def scratch(self, name: str, like: Expression, copies: int) -> Resident:
        """Room for blocks of the shape of an expression: in the circular buffer of that name, or
        in one whose block nobody needs any more, or in another one."""
        block, data_type = prod(like.shape), like.data_type
        tiles = block * copies
        wanted, known = Scratch(tiles, data_type, block), self.needs.scratch
        number, stem = 1, name
        if self.needs.shares_buffers and (known.get(name) != wanted or name in self._occupied):
            free = self._shared - self._occupied
            name = next((each for each in known if known[each] == wanted and each in free), name)
        while name in self._occupied or known.setdefault(name, wanted) != wanted:
            number += 1
            name = f"{stem}_{number}"
        if name not in self.formats:
            # It is not known yet: a later translation of the kernel declares it at its start.
            self._declare(name, tiles, data_type)
        self._occupied.add(name)
        return Resident(like.shape, name, holds=data_type, elements=like.elements)

    def share(self, place: Resident) -> None:
        """Lets others have a circular buffer when its block is given back."""
        self._shared.add(place.buffer)

    def vacate(self, place: Resident) -> None:
        """Notes that the other branch of a condition fills a circular buffer as well."""
        self._occupied.discard(place.buffer)

    def occupy(self, place: Resident) -> None:
        """Notes that a circular buffer holds a block, whichever branch filled it."""
        self._occupied.add(place.buffer)

    def _declare(self, name: str, tiles: int, data_type: DataType) -> None:
        self.kernel.declare([CircularBuffer(0, name, data_type, tiles, 1)])
        self.formats[name] = data_type

    def fill_scratch(self, name: str, expression: Expression, copies: int = 1) -> Resident:
        """Computes an expression into a circular buffer of the kernel's own."""
        place = self.scratch(name, expression, copies)
        name = place.buffer
        pages = prod(expression.shape)
        self.kernel.op("cb_reserve_back", name, pages)
        self.write(expression, name)
        self.kernel.op("cb_push_back", name, pages)
        self.kernel.op("cb_wait_front", name, pages)
        return place

    def replace(self, place: Resident, expression: Expression) -> None:
        """Computes an expression, which may read the front of a circular buffer, into its front."""
        pages = prod(place.shape)
        self.kernel.op("cb_reserve_back", place.buffer, pages)
        self.write(expression, place.buffer)
        self.kernel.op("cb_pop_front", place.buffer, pages)
        self.kernel.op("cb_push_back", place.buffer, pages)
        self.kernel.op("cb_wait_front", place.buffer, pages)

    def drop(self, place: Resident) -> None:
        """Gives a block of a circular buffer back."""
        self.kernel.op("cb_pop_front", place.buffer, prod(place.shape))
        self._occupied.discard(place.buffer)

    # Expressions

    def write(self, expression: Expression, target: str) -> None:
        """Computes an expression into pages that are reserved at the back of a buffer."""
        outer, self._held = self._held, []
        around_type = self._number_type
        self._number_type = _in_registers(self.formats[target])
        around = self._ready
        self._ready = dict(around)
        prepared = self._prepared(expression)
        engine = engine_part(prepared)
        prepared, engine = self._with_oneengine_part(prepared, engine)
        while not self._fits(prepared, engine):
            prepared = self._divided(prepared)
            engine = engine_part(prepared)
        self._loop(prepared, engine, target)
        for held in self._held:
            self.drop(held)
            # What is computed after this may have the circular buffer.
            self._busy.discard(self._names.pop(held.buffer))
        self._held, self._ready, self._number_type = outer, around, around_type

    def _once(self, expression: Expression, make: Callable[[Expression], Expression]) -> Expression:
        """Memoizes a subexpression that occurs several times."""
        if id(expression) not in self._ready:
            self._ready[id(expression)] = expression, make(expression)
        return self._ready[id(expression)][1]

    def _materialised(self, expression: Expression) -> Resident:
        """A part in a circular buffer, in which it stays until all is written."""
        _, known = self._ready.get(id(expression), (expression, None))
        if isinstance(known, Resident):
            return known
        number = len(self._held)
        name = self._scratch_name(number)
        place = self.fill_scratch(name, expression)
        self.share(place)
        self._names[place.buffer] = name
        self._held.append(place)
        self._ready[id(expression)] = expression, place
        return place

    def _scratch_name(self, number: int) -> str:
        taken = {held.buffer for held in self._held}
        while (name := f"partial{number}") in taken or name in self._busy:
            number += 1
        self._busy.add(name)
        return name

    _busy: set[str]

    def begin(self) -> None:
        """Forgets which circular buffers of its own are in use: at the start of a statement."""
        self._busy = set()

    def _prepared(self, expression: Expression) -> Expression:
        """The same, where the matrix engine and the unpacker read circular buffers only."""
        return self._once(expression, self._prepare)

    def _prepare(self, expression: Expression) -> Expression:
        match expression:
            case Resident() | Fill():
                return expression
            case Apply(shape, function, of):
                return Apply(shape, function, tuple(self._prepared(each) for each in of))
            case Product(shape, left, right):
                return Product(shape, self._readable(left), self._readable(right))
            case Reduction(shape, of, kind, dims):
                return Reduction(shape, self._readable(of), kind, dims)
            case Broadcast(shape, Fill(_, number)):
                return Fill(shape, number)
            case Broadcast(shape, of, kind):
                return Broadcast(shape, self._readable(of, plain=bool(kind)), kind)
            case Transposed(shape, of):
                return Transposed(shape, self._readable(of, plain=True))
            case Reshaped(shape, Fill(_, number)) | Picked(shape, Fill(_, number)):
                return Fill(shape, number)
            case Picked(shape, of, places):
                return Picked(shape, self._readable(of), places)
            case Reshaped(shape, of, kept):
                return Reshaped(shape, self._readable(of), kept)
            case _:
                raise AssertionError(type(expression).__name__)

    def _readable(self, expression: Expression, *, plain: bool = True) -> Expression:
        """Tiles of a circular buffer that are read as they are (`plain`), or that the unpacker can
        change on their way."""
        if isinstance(expression, Resident):
            return expression
        if isinstance(expression, Reshaped):
            of = self._readable(expression.of, plain=plain)
            return Reshaped(expression.shape, of, expression.kept)
        if isinstance(expression, Picked):
            of = self._readable(expression.of, plain=plain)
            return Picked(expression.shape, of, expression.places)
        if isinstance(expression, Broadcast) and not expression.kind:
            return Broadcast(expression.shape, self._readable(expression.of, plain=plain), "")
        if not plain and isinstance(expression, Broadcast | Transposed):
            return self._prepared(expression)
        return self._materialised(expression)

    def _with_oneengine_part(
        self, expression: Expression, engine: Expression | None
    ) -> tuple[Expression, Expression | None]:
        """All products and reductions but one go through circular buffers."""

        def settle(part: Expression) -> Expression:
            if part is engine:
                return part
            if isinstance(part, Product | Reduction):
                return self._materialised(part)
            if isinstance(part, Apply):
                return Apply(part.shape, part.function, tuple(map(settled, part.of)))
            return part

        def settled(part: Expression) -> Expression:
            return self._once(part, settle)

        return settle(expression), engine

    def _fits(self, expression: Expression, engine: Expression | None) -> bool:
        """True if the destination registers hold what one tile of an expression needs."""
        tiles, known, held = TileBuilder(), dict[int, Tile](), dict[Tile, int]()
        if engine is not None:
            held[known.setdefault(id(engine), tiles.new_tile(DataType.FLOAT32))] = 0
        first = (0,) * len(expression.shape)
        result = self._lower(expression, tiles, known, {}, first, False)
        return allocate(tiles.calls, [result], capacity(True), held) is not None

    def _divided(self, expression: Expression) -> Expression:
        """The same with its largest operand in a circular buffer.

        Raises:
            ValueError: if its operands are there already.
        """
        operands = expression.operands if isinstance(expression, Apply) else ()
        computed = [part for part in operands if isinstance(part, Apply)]
        if not isinstance(expression, Apply) or not computed:
            raise ValueError("an expression needs more destination registers than there are")
        largest = max(computed, key=lambda part: sum(1 for _ in parts_of(part)))
        place = self._materialised(largest)
        of = tuple(place if part is largest else part for part in expression.of)
        return Apply(expression.shape, expression.function, of)

    # The loop over the tiles of a result

    def _loop(self, expression: Expression, engine: Expression | None, target: str) -> None:
        kernel, builder = self.kernel, self.kernel.builder
        kernel.forget_formats()
        shape = expression.shape
        in_a_row = expression.elements is not None
        flat = in_a_row or (prod(shape) > 1 and engine is None and is_flat(expression))
        sizes: Shape = (prod(shape),) if flat else shape
        names = ["tile"] if flat else [*("matrix" for _ in shape[:-2]), "row", "column"]
        with ExitStack() as loops:
            position: list[Number] = []
            for size, name in zip(sizes, names, strict=True):
                if size == 1:
                    position.append(0)
                    continue
                position.append(loops.enter_context(builder.loop(size, name_hint=name)))
            if any(not isinstance(place, int) for place in position):
                kernel.forget_formats()
            with builder.destination_registers():
                self._tile(expression, engine, position, flat, target)
            if isinstance(engine, Reduction):
                # The packer leaves zeros beside the result until this.
                kernel.op("reduce_uninit")

    def _tile(
        self,
        expression: Expression,
        engine: Expression | None,
        position: Sequence[Number],
        flat: bool,
        target: str,
    ) -> None:
        """Computes one tile of a result and packs it."""
        kernel = self.kernel
        tiles = TileBuilder()
        sources: dict[Tile, _Source] = {}
        known: dict[int, Tile] = {}
        held: dict[Tile, int] = {}
        if engine is not None:
            self._engine(engine, position, target)
            held[known.setdefault(id(engine), tiles.new_tile(DataType.FLOAT32))] = 0
        result = self._lower(expression, tiles, known, sources, position, flat)
        allocation = allocate(tiles.calls, [result], capacity(True), held)
        assert allocation is not None
        self._run(allocation, sources)
        kernel.builder.start_packing()
        if self.mixes_formats:
            kernel.op("pack_reconfig_data_format", target)
        index = position[0] if flat else self.arithmetic.index(position, expression.shape)
        register = allocation.results[result]
        kernel.op("pack_tile", register, target, index, out_of_order=True)

    def _run(self, allocation: Allocation, sources: Mapping[Tile, _Source]) -> None:
        for step in allocation.steps:
            if isinstance(step, Load):
                self._load(sources[step.tile], step.register)
            else:
                self.kernel.run(Allocation((step,), {}), {})

    def _load(self, source: _Source, register: int) -> None:
        kernel, buffer = self.kernel, source.buffer
        if source.way == "copy":
            kernel.load(buffer, register, source.index)
            return
        if source.way == "transpose":
            kernel.op("reconfig_data_format_srca", buffer)
            kernel.op("transpose_wh_init_short", buffer)
            kernel.op("transpose_wh_tile", buffer, source.index, register)
        else:
            kind = _BROADCASTS[source.way]
            kernel.op("reconfig_data_format", buffer, buffer)
            # Within destination registers: unary_bcast_init would reset them.
            kernel.op("blocks.unary_bcast_init_short", buffer, bcast_type=kind)
            kernel.op("unary_bcast", buffer, source.index, register, bcast_type=kind)
            kernel.op("unary_bcast_uninit", buffer, bcast_type=kind)
        kernel.forget_formats()

    def _lower(
        self,
        expression: Expression,
        tiles: TileBuilder,
        known: dict[int, Tile],
        sources: dict[Tile, _Source],
        position: Sequence[Number],
        flat: bool,
    ) -> Tile:
        """The calls that make the tile of an expression; equal parts are computed once."""
        if id(expression) in known:
            return known[id(expression)]
        match expression:
            case Apply(_, function, of):
                operands = [self._lower(each, tiles, known, sources, position, flat) for each in of]
                tile = function(tiles, operands)
            case Fill(_, number):
                tile = tiles.fill(number, self._number_type)
            case _:
                tile = tiles.new_tile(expression.data_type)
                sources[tile] = self._source(expression, position, flat)
        known[id(expression)] = tile
        return tile

    def _source(self, expression: Expression, position: Sequence[Number], flat: bool) -> _Source:
        if flat:
            while not isinstance(expression, Resident):
                (expression,) = expression.operands
            return _Source(expression.buffer, position[0], "copy")
        way = "copy"
        places = list(position)
        while not isinstance(expression, Resident):
            match expression:
                case Broadcast(_, of, kind):
                    places = [0 if size == 1 else place
                              for place, size in zip(places, of.shape, strict=True)]  # fmt: skip
                    way = kind or way
                case Transposed():
                    places = places[::-1]
                    way = "transpose"
                case Picked(_, _, fixed):
                    for axis, place in fixed:
                        places[axis] = place
                case Reshaped(shape, of, kept):
                    if len(shape) > len(of.shape):
                        places = [places[axis] for axis in kept]
                    else:
                        wide: list[Number] = [0] * len(of.shape)
                        for axis, place in zip(kept, places, strict=True):
                            wide[axis] = place
                        places = wide
                case _:
                    raise AssertionError(type(expression).__name__)
            (expression,) = expression.operands
        return _Source(expression.buffer, self.arithmetic.index(places, expression.shape), way)

    # The matrix engine

    def _engine(self, part: Expression, position: Sequence[Number], target: str) -> None:
        """Computes a tile of a product or of a reduction in the first register."""
        if isinstance(part, Product):
            self._product(part, position)
        else:
            assert isinstance(part, Reduction)
            self._reduction(part, position, target)
        self.kernel.forget_formats()

    def _product(self, part: Product, position: Sequence[Number]) -> None:
        kernel = self.kernel
        *outer, row, column = position
        depth = part.left.shape[-1]
        left, right = _buffer(part.left), _buffer(part.right)
        self.needs.read_by_matrix_engine |= {left, right}
        kernel.op("reconfig_data_format", right, left)
        kernel.op("mm_init_short", left, right)
        with ExitStack() as loops:
            inner: Number = 0
            if depth > 1:
                inner = loops.enter_context(kernel.builder.loop(depth, name_hint="inner"))
            a = self._source(part.left, [*outer, row, inner], False)
            b = self._source(part.right, [*outer, inner, column], False)
            kernel.op("matmul_tiles", left, right, a.index, b.index, 0)

    def _reduction(self, part: Reduction, position: Sequence[Number], target: str) -> None:
        kernel = self.kernel
        rank = len(part.shape)
        source = _buffer(part.of)
        inner = {axis - rank for axis in part.dims}
        ways = {frozenset({-1}): "row", frozenset({-2}): "col", frozenset({-2, -1}): "scalar"}
        direction = ways[frozenset(inner)]
        kind = {"reduce_type": _REDUCTIONS[part.kind], "reduce_dim": _DIRECTIONS[direction]}
        self.needs.needs_scaler = True
        if SCALER not in self.formats:
            self._declare(SCALER, 1, DataType.BFLOAT16)
        self.needs.read_by_matrix_engine |= {source, SCALER}
        kernel.op("reconfig_data_format", source, SCALER)
        kernel.op("reduce_init", source, SCALER, target, **kind)
        places = list(position)
        with ExitStack() as loops:
            for axis in part.dims:
                if part.of.shape[axis] > 1:
                    name = "column" if axis == rank - 1 else "row"
                    loop = kernel.builder.loop(part.of.shape[axis], name_hint=name)
                    places[axis] = loops.enter_context(loop)
            index = self._source(part.of, places, False).index
            kernel.op("reduce_tile", source, SCALER, index, 0, 0, **kind)


def _in_registers(held: DataType) -> DataType:
    """The data type in destination registers of what a circular buffer holds."""
    return DataType.FLOAT32 if held.is_float else held


def _buffer(expression: Expression) -> str:
    while not isinstance(expression, Resident):
        (expression,) = expression.operands
    return expression.buffer
