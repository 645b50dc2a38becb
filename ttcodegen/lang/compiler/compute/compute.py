"""Compute kernels: block expressions become loops over the tiles of the block that they are stored
in; what one tile needs is computed in the destination registers.

Products and reductions, which the matrix engine computes, are the first step of such a loop; those
that are deeper in an expression, and what the engine has to read that is no block, go through a
circular buffer of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from math import prod

from xdsl.ir import SSAValue

from ttcodegen.conversions.ttir_to_ttmetal.grouping.operand_pairs import (
    Operand,
    OperandPair,
    multiplies_afresh,
    operand_pairs,
)
from ttcodegen.conversions.ttir_to_ttmetal.grouping.tile_operations import (
    Allocation,
    Load,
    allocate,
    capacity,
)
from ttcodegen.conversions.ttir_to_ttmetal.parts.compute import (
    SCALER,
    SCALER_TILES,
    ComputeKernel,
    reduce_further,
    start_reduction,
)
from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.dialects.ttkernel.attributes import ReduceDim, ReduceType
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
    product_blocks,
)
from ttcodegen.lang.compiler.compute.sources import Source, load, source_of
from ttcodegen.lang.compiler.python.numbers import Arithmetic, Number
from ttcodegen.lang.compiler.resources import Needs, Scratch
from ttcodegen.lang.simulator.shapes import Shape
from ttcodegen.ops.core.lowering import Tile, TileBuilder

_DIRECTIONS = {
    frozenset({-1}): ReduceDim.ROW,
    frozenset({-2}): ReduceDim.COL,
    frozenset({-2, -1}): ReduceDim.SCALAR,
}
"""By the dimensions that are reduced, counted from the end."""
_REDUCTIONS = {"sum": ReduceType.SUM, "max": ReduceType.MAX}


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
        self._carried: set[str] = set()
        """Those whose blocks are replaced by others that are computed from them."""
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
        if copies > 1:
            self._carried.add(name)
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
        with self.preparing(target):
            prepared = self._prepared(expression)
            engine = engine_part(prepared)
            prepared, engine = self._with_oneengine_part(prepared, engine)
            while not self._fits(prepared, engine):
                prepared = self._divided(prepared)
                engine = engine_part(prepared)
            self._loop(prepared, engine, target)

    @contextmanager
    def preparing(self, target: str) -> Generator[None]:
        """Scope in which parts of an expression may be computed into buffers, which are released
        at its end."""
        outer, self._held = self._held, []
        around_type = self._number_type
        self._number_type = _in_registers(self.formats[target])
        around = self._ready
        self._ready = dict(around)
        yield
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
                return Product(shape, self._readable(left), self._factor(right))
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

    def _factor(self, right: Expression) -> Expression:
        """The right operand of a product, of which the unpacker can transpose tiles of 16 bits."""
        if isinstance(right, Transposed):
            of = self._readable(right.of)
            if self.formats[_buffer(of)] is DataType.BFLOAT16:
                return Transposed(right.shape, of)
        return self._readable(right)

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
        first = [(0,) * len(expression.shape)]
        return self._allocated(expression, engine, first, {}) is not None

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
        block, is_set_up = (1, 1), False
        if isinstance(engine, Product):
            block, copied = self._block_of(expression, engine)
            is_set_up = not copied
            if is_set_up:
                self.set_up_product(engine, block)
        with ExitStack() as loops:
            if flat:
                position = [self._counted(loops, prod(shape), "tile")]
            else:
                position = self.positions(loops, shape, block)
            if any(not isinstance(place, int) for place in position):
                kernel.forget_formats()
            masked = False
            with builder.destination_registers():
                if isinstance(engine, Product):
                    if not is_set_up:
                        self.set_up_product(engine, block)
                    self.multiply(engine, position, block)
                elif isinstance(engine, Reduction):
                    masked = self._reduction(engine, position, target)
                if engine is not None:
                    kernel.forget_formats()
                self._tiles(expression, engine, self.within(position, block), flat, target)
            if masked:
                # The packer leaves zeros beside the result until this.
                kernel.op("reduce_uninit")

    def _counted(self, loops: ExitStack, size: int, name: str, step: int = 1) -> Number:
        """The counter of a loop, or 0 of one that runs once."""
        if size == step:
            return 0
        return loops.enter_context(self.kernel.builder.loop(size, step=step, name_hint=name))

    def positions(self, loops: ExitStack, shape: Shape, block: tuple[int, int]) -> list[Number]:
        """Position of a block of tiles, in loops over all blocks of a shape."""
        names = [*("matrix" for _ in shape[:-2]), "row", "column"][-len(shape) :]
        steps = [*(1 for _ in shape[:-2]), *block][-len(shape) :]
        return [
            self._counted(loops, size, name, step)
            for size, name, step in zip(shape, names, steps, strict=True)
        ]

    def within(self, position: Sequence[Number], block: tuple[int, int]) -> list[list[Number]]:
        """The positions of the tiles of a block."""
        if block == (1, 1):
            return [list(position)]
        *outer, row, column = position
        rows, columns = (
            [self._offset(start, number, name) for number in range(count)]
            for start, count, name in zip((row, column), block, ("row", "column"), strict=True)
        )
        return [[*outer, row, column] for row in rows for column in columns]

    def _offset(self, start: Number, number: int, name: str) -> Number:
        found = self.arithmetic.add(start, number)
        if number and isinstance(found, SSAValue):
            self.kernel.builder.named(found, f"{name}{number}")
        return found

    def _block_of(
        self, expression: Expression, engine: Product
    ) -> tuple[tuple[int, int], Mapping[Tile, Source | OperandPair]]:
        """The rows and columns of tiles that the matrix engine multiplies at a time: as many as the
        destination registers hold with what is computed of them; and the tiles that are copied
        there besides."""
        blocks = (
            product_blocks(engine, capacity(True)) if expression.shape == engine.shape else [(1, 1)]
        )
        for block in blocks:
            sources: dict[Tile, Source | OperandPair] = {}
            first = self.within([0] * len(expression.shape), block)
            if self._allocated(expression, engine, first, sources) is not None:
                return block, sources
        raise AssertionError("one tile fits")

    def _allocated(
        self,
        expression: Expression,
        engine: Expression | None,
        positions: Sequence[Sequence[Number]],
        sources: dict[Tile, Source | OperandPair],
        flat: bool = False,
    ) -> tuple[Allocation, list[Tile]] | None:
        """Registers for the tiles of an expression at some positions, of which the engine's part is
        in the first ones; None if there are too few."""
        tiles = TileBuilder()
        held: dict[Tile, int] = {}
        results: list[Tile] = []
        for number, position in enumerate(positions):
            known: dict[int, Tile] = {}
            if engine is not None:
                held[known.setdefault(id(engine), tiles.new_tile(DataType.FLOAT32))] = number
            results.append(self._lower(expression, tiles, known, sources, position, flat))
        calls, pairs = operand_pairs(
            tiles.calls, results, lambda tile: self._operand(sources, tile)
        )
        allocation = allocate(calls, results, capacity(True), held)
        if allocation is not None and not multiplies_afresh(allocation, pairs, [*held.values()]):
            pairs = {}
            allocation = allocate(tiles.calls, results, capacity(True), held)
        sources |= pairs
        return None if allocation is None else (allocation, results)

    def _operand(self, sources: Mapping[Tile, Source | OperandPair], tile: Tile) -> Operand | None:
        """Place from which the matrix engine reads a tile; None if that would cut too much off it.
        The engine reads 19 bits of a float, more than 16 bits are rounded to when they are stored.
        What a loop carries on is rounded in each step, so it is read whole."""
        source = sources.get(tile)
        if not isinstance(source, Source):
            return None
        holds = self.formats[source.buffer]
        is_whole = source.buffer in self._carried or not self.needs.is_narrow
        if not holds.is_float or (holds is DataType.FLOAT32 and is_whole):
            return None
        return source.operand

    def _tiles(
        self,
        expression: Expression,
        engine: Expression | None,
        positions: Sequence[Sequence[Number]],
        flat: bool,
        target: str,
    ) -> None:
        """Computes tiles of a result, of which the matrix engine has done its part, and packs
        them."""
        sources: dict[Tile, Source | OperandPair] = {}
        found = self._allocated(expression, engine, positions, sources, flat)
        assert found is not None
        allocation, results = found
        self._run(allocation, sources)
        self.kernel.builder.start_packing()
        registers = [allocation.results[result] for result in results]
        self.pack_tiles(registers, target, expression.shape, positions, flat)

    def pack_tiles(
        self,
        registers: Sequence[int],
        target: str,
        shape: Shape,
        positions: Sequence[Sequence[Number]],
        flat: bool = False,
    ) -> None:
        """Packs registers to the positions that their tiles have in a buffer."""
        if self.mixes_formats:
            self.kernel.op("pack_reconfig_data_format", target)
        for register, position in zip(registers, positions, strict=True):
            index = position[0] if flat else self.arithmetic.index(position, shape)
            self.kernel.op("pack_tile", register, target, index, out_of_order=True)

    def _run(self, allocation: Allocation, sources: Mapping[Tile, Source | OperandPair]) -> None:
        pairs = [each for each in sources.values() if isinstance(each, OperandPair)]
        for pair in pairs:
            self.needs.read_by_matrix_engine |= {pair.left.buffer, pair.right.buffer}
        for step in allocation.steps:
            if isinstance(step, Load):
                load(self.kernel, sources[step.tile], step.register)
            else:
                self.kernel.run(Allocation((step,), {}), {})

    def _lower(
        self,
        expression: Expression,
        tiles: TileBuilder,
        known: dict[int, Tile],
        sources: dict[Tile, Source | OperandPair],
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
                sources[tile] = source_of(self.arithmetic, expression, position, flat)
        known[id(expression)] = tile
        return tile

    # The matrix engine

    def set_up_product(self, part: Product, block: tuple[int, int]) -> None:
        """Sets the engines up for products of blocks of so many rows and columns."""
        left, right = _buffer(part.left), _buffer(part.right)
        self.needs.read_by_matrix_engine |= {left, right}
        self.kernel.op("reconfig_data_format", right, left)
        transposed = isinstance(part.right, Transposed)
        if block == (1, 1):
            self.kernel.op("mm_init_short", left, right, *([1] if transposed else []))
        else:
            sizes = (block[1], block[0], part.left.shape[-1])
            self.kernel.op("mm_block_init_short", left, right, int(transposed), *sizes)

    def multiply(self, part: Product, position: Sequence[Number], block: tuple[int, int]) -> None:
        """Adds the products of a block of tiles to the first registers."""
        kernel = self.kernel
        *outer, row, column = position
        depth = part.left.shape[-1]
        left, right = _buffer(part.left), _buffer(part.right)
        with ExitStack() as loops:
            inner = self._counted(loops, depth, "inner")
            a = source_of(self.arithmetic, part.left, [*outer, row, inner], False)
            b = source_of(self.arithmetic, part.right, [*outer, inner, column], False)
            if block == (1, 1):
                kernel.op("matmul_tiles", left, right, a.index, b.index, 0)
            else:
                sizes = (block[1], block[0], depth)
                transposed = int(isinstance(part.right, Transposed))
                kernel.op("matmul_block", left, right, a.index, b.index, 0, transposed, *sizes)

    def _reduction(self, part: Reduction, position: Sequence[Number], target: str) -> bool:
        """Reduces blocks to the first register; True if that masks what is packed."""
        kernel, source, rank = self.kernel, _buffer(part.of), len(part.shape)
        kind = _REDUCTIONS[part.kind], _DIRECTIONS[frozenset(axis - rank for axis in part.dims)]
        self.needs.needs_scaler = True
        if SCALER not in self.formats:
            self._declare(SCALER, SCALER_TILES, DataType.BFLOAT16)
        self.needs.read_by_matrix_engine |= {source, SCALER}
        masks = start_reduction(kernel, source, target, *kind)
        places = list(position)
        with ExitStack() as loops:
            for axis in part.dims:
                if part.of.shape[axis] > 1:
                    name = "column" if axis == rank - 1 else "row"
                    loop = kernel.builder.loop(part.of.shape[axis], name_hint=name)
                    places[axis] = loops.enter_context(loop)
            index = source_of(self.arithmetic, part.of, places, False).index
            reduce_further(kernel, source, index, *kind)
        return masks


def _in_registers(held: DataType) -> DataType:
    """The data type in destination registers of what a circular buffer holds."""
    return DataType.FLOAT32 if held.is_float else held


def _buffer(expression: Expression) -> str:
    while not isinstance(expression, Resident):
        (expression,) = expression.operands
    return expression.buffer
