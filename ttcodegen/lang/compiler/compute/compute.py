"""Code generation for block expressions in compute kernels.

An expression becomes a loop over the tiles of the target block; the work on one tile is done in
the destination registers. At most one matmul or row sum, or a whole reduction, is computed by the
matrix engine as the first step of the loop. Others, and operands of the engine that are not
blocks, are materialized in scratch circular buffers.
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
    Matmul,
    Reduction,
    Reshaped,
    Resident,
    Selected,
    Transposed,
    engine_part,
    is_flat,
    matmul_block_sizes,
    parts_of,
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
"""Directions of reductions by reduced dimensions, counted from the end."""
_REDUCTIONS = {"sum": ReduceType.SUM, "max": ReduceType.MAX}


class BlockWriter:
    """Emits code that computes block expressions."""

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
        self._materialized_parts: list[Resident] = []
        self._constant_type = DataType.FLOAT32
        """Data type of constants in the expression that is being written."""
        self._occupied: set[str] = set()
        """Scratch circular buffers that currently hold a block."""
        self._shared: set[str] = set()
        """Scratch buffers that may be reused once they are released."""
        self._loop_carried: set[str] = set()
        """Scratch buffers whose blocks are updated from their own previous values."""
        self._requested_names: dict[str, str] = {}
        """Requested names of the scratch buffers in use, by actual name."""
        self._memo: dict[int, tuple[Expression, Expression]] = {}
        """Parts of the current expression by identity, with their prepared replacements."""

    @property
    def mixes_formats(self) -> bool:
        """True if circular buffers have different data types."""
        return len(set(self.formats.values())) > 1

    @property
    def only_type(self) -> DataType:
        """Data type of constants: that of integers in kernels that compute with nothing else."""
        computed = (each for each in self.formats.values() if each.is_float or each in INTEGERS)
        held = set(map(_in_registers, computed))
        return held.pop() if len(held) == 1 else DataType.FLOAT32

    # Scratch circular buffers

    def scratch(self, name: str, like: Expression, copies: int) -> Resident:
        """Reserves a scratch circular buffer for blocks in the shape of an expression.

        This is the buffer of the requested name, a released buffer of the same size, or a new one.
        """
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
            # Unknown so far: a later translation of the kernel declares the buffer at its start.
            self._declare(name, tiles, data_type)
        self._occupied.add(name)
        if copies > 1:
            self._loop_carried.add(name)
        return Resident(like.shape, name, holds=data_type, elements=like.elements)

    def share(self, resident: Resident) -> None:
        """Allows others to reuse a scratch buffer once its block is released."""
        self._shared.add(resident.buffer)

    def vacate(self, resident: Resident) -> None:
        """Marks a scratch buffer as free again, because the other branch fills it as well."""
        self._occupied.discard(resident.buffer)

    def occupy(self, resident: Resident) -> None:
        """Marks a scratch buffer as occupied after branches that both fill it."""
        self._occupied.add(resident.buffer)

    def _declare(self, name: str, tiles: int, data_type: DataType) -> None:
        self.kernel.declare([CircularBuffer(0, name, data_type, tiles, 1)])
        self.formats[name] = data_type

    def fill_scratch(self, name: str, expression: Expression, copies: int = 1) -> Resident:
        """Computes an expression into a scratch buffer."""
        resident = self.scratch(name, expression, copies)
        name = resident.buffer
        pages = prod(expression.shape)
        self.kernel.op("cb_reserve_back", name, pages)
        self.write(expression, name)
        self.kernel.op("cb_push_back", name, pages)
        self.kernel.op("cb_wait_front", name, pages)
        return resident

    def replace(self, resident: Resident, expression: Expression) -> None:
        """Replaces the front block of a buffer by an expression, which may read that block."""
        pages = prod(resident.shape)
        self.kernel.op("cb_reserve_back", resident.buffer, pages)
        self.write(expression, resident.buffer)
        self.kernel.op("cb_pop_front", resident.buffer, pages)
        self.kernel.op("cb_push_back", resident.buffer, pages)
        self.kernel.op("cb_wait_front", resident.buffer, pages)

    def drop(self, resident: Resident) -> None:
        """Releases the front block of a scratch buffer."""
        self.kernel.op("cb_pop_front", resident.buffer, prod(resident.shape))
        self._occupied.discard(resident.buffer)

    # Expressions

    def write(self, expression: Expression, target: str) -> None:
        """Emits the computation of an expression into reserved pages at the back of a buffer."""
        with self.preparing(target):
            prepared = self._prepared(expression)
            engine = engine_part(prepared)
            prepared, engine = self._with_one_engine_part(prepared, engine)
            while not self._fits(prepared, engine):
                prepared = self._with_materialized_operand(prepared)
                engine = engine_part(prepared)
            self._loop(prepared, engine, target)

    @contextmanager
    def preparing(self, target: str) -> Generator[None]:
        """Scope of materialized operands: their scratch buffers are released at its end."""
        outer, self._materialized_parts = self._materialized_parts, []
        around_type = self._constant_type
        self._constant_type = _in_registers(self.formats[target])
        around = self._memo
        self._memo = dict(around)
        yield
        for held in self._materialized_parts:
            self.drop(held)
            # Later computations may use the circular buffer.
            self._names_in_use.discard(self._requested_names.pop(held.buffer))
        self._materialized_parts, self._memo, self._constant_type = outer, around, around_type

    def _memoized(
        self, expression: Expression, make: Callable[[Expression], Expression]
    ) -> Expression:
        """Memoizes a function of a subexpression, which may occur repeatedly."""
        if id(expression) not in self._memo:
            self._memo[id(expression)] = expression, make(expression)
        return self._memo[id(expression)][1]

    def _materialized(self, expression: Expression) -> Resident:
        """Materializes a part in a scratch buffer until the enclosing expression is written."""
        _, known = self._memo.get(id(expression), (expression, None))
        if isinstance(known, Resident):
            return known
        number = len(self._materialized_parts)
        name = self._scratch_name(number)
        resident = self.fill_scratch(name, expression)
        self.share(resident)
        self._requested_names[resident.buffer] = name
        self._materialized_parts.append(resident)
        self._memo[id(expression)] = expression, resident
        return resident

    def _scratch_name(self, number: int) -> str:
        taken = {held.buffer for held in self._materialized_parts}
        while (name := f"partial{number}") in taken or name in self._names_in_use:
            number += 1
        self._names_in_use.add(name)
        return name

    _names_in_use: set[str]

    def begin(self) -> None:
        """Resets the scratch buffers in use, at the start of a statement."""
        self._names_in_use = set()

    def _prepared(self, expression: Expression) -> Expression:
        """Rewrites an expression so that engine and unpacker operands are in circular buffers."""
        return self._memoized(expression, self._prepare)

    def _prepare(self, expression: Expression) -> Expression:
        match expression:
            case Resident() | Fill():
                return expression
            case Apply(shape, function, of):
                return Apply(shape, function, tuple(self._prepared(each) for each in of))
            case Matmul(shape, left, right):
                return Matmul(shape, self._readable(left), self._right_operand(right))
            case Reduction(shape, of, kind, dims):
                return Reduction(shape, self._readable(of), kind, dims)
            case Broadcast(shape, Fill(_, number)):
                return Fill(shape, number)
            case Broadcast(shape, of, kind):
                return Broadcast(shape, self._readable(of, plain=bool(kind)), kind)
            case Transposed(shape, of):
                return Transposed(shape, self._readable(of, plain=True))
            case Reshaped(shape, Fill(_, number)) | Selected(shape, Fill(_, number)):
                return Fill(shape, number)
            case Selected(shape, of, indices):
                return Selected(shape, self._readable(of), indices)
            case Reshaped(shape, of, kept):
                return Reshaped(shape, self._readable(of), kept)
            case _:
                raise AssertionError(type(expression).__name__)

    def _right_operand(self, right: Expression) -> Expression:
        """The right operand of a matmul; the unpacker transposes 16-bit tiles only."""
        if isinstance(right, Transposed):
            of = self._readable(right.of)
            if self.formats[_buffer(of)] is DataType.BFLOAT16:
                return Transposed(right.shape, of)
        return self._readable(right)

    def _readable(self, expression: Expression, *, plain: bool = True) -> Expression:
        """An operand in a circular buffer.

        If it need not be plain, it may also be one that the unpacker broadcasts or transposes.
        """
        if isinstance(expression, Resident):
            return expression
        if isinstance(expression, Reshaped):
            of = self._readable(expression.of, plain=plain)
            return Reshaped(expression.shape, of, expression.kept)
        if isinstance(expression, Selected):
            of = self._readable(expression.of, plain=plain)
            return Selected(expression.shape, of, expression.indices)
        if isinstance(expression, Broadcast) and not expression.kind:
            return Broadcast(expression.shape, self._readable(expression.of, plain=plain), "")
        if not plain and isinstance(expression, Broadcast | Transposed):
            return self._prepared(expression)
        return self._materialized(expression)

    def _with_one_engine_part(
        self, expression: Expression, engine: Expression | None
    ) -> tuple[Expression, Expression | None]:
        """Materializes all matmuls and reductions except the one that the loop starts with."""

        def rewrite(part: Expression) -> Expression:
            if part is engine:
                return part
            if isinstance(part, Matmul | Reduction):
                return self._materialized(part)
            if isinstance(part, Apply):
                return Apply(part.shape, part.function, tuple(map(rewritten, part.of)))
            return part

        def rewritten(part: Expression) -> Expression:
            return self._memoized(part, rewrite)

        return rewrite(expression), engine

    def _fits(self, expression: Expression, engine: Expression | None) -> bool:
        """True if the destination registers suffice for one tile of an expression."""
        first = [(0,) * len(expression.shape)]
        return self._allocate(expression, engine, first, {}) is not None

    def _with_materialized_operand(self, expression: Expression) -> Expression:
        """Materializes the largest operand of an expression.

        Raises:
            ValueError: if no operand is computed, so that nothing can be materialized.
        """
        operands = expression.operands if isinstance(expression, Apply) else ()
        computed = [part for part in operands if isinstance(part, Apply)]
        if not isinstance(expression, Apply) or not computed:
            raise ValueError("an expression needs more destination registers than there are")
        largest = max(computed, key=lambda part: sum(1 for _ in parts_of(part)))
        resident = self._materialized(largest)
        of = tuple(resident if part is largest else part for part in expression.of)
        return Apply(expression.shape, expression.function, of)

    # Loop over the tiles of a result

    def _loop(self, expression: Expression, engine: Expression | None, target: str) -> None:
        """Emits the loop over the tiles, or blocks of tiles, of a prepared expression."""
        kernel, builder = self.kernel, self.kernel.builder
        kernel.forget_formats()
        shape = expression.shape
        in_a_row = expression.elements is not None
        flat = in_a_row or (prod(shape) > 1 and engine is None and is_flat(expression))
        block, is_set_up = (1, 1), False
        if isinstance(engine, Matmul):
            block, copied = self._block_of(expression, engine)
            is_set_up = not copied
            if is_set_up:
                self.set_up_matmul(engine, block)
        with ExitStack() as loops:
            if flat:
                position = [self._loop_counter(loops, prod(shape), "tile")]
            else:
                position = self.positions(loops, shape, block)
            if any(not isinstance(index, int) for index in position):
                kernel.forget_formats()
            masked = False
            with builder.destination_registers():
                if isinstance(engine, Matmul):
                    if not is_set_up:
                        self.set_up_matmul(engine, block)
                    self.multiply(engine, position, block)
                elif isinstance(engine, Reduction):
                    masked = self._reduction(engine, position, target)
                if engine is not None:
                    kernel.forget_formats()
                self._finish_tiles(expression, engine, self.within(position, block), flat, target)
            if masked:
                # The packer zeroes elements outside the result until this resets it.
                kernel.op("reduce_uninit")

    def _loop_counter(self, loops: ExitStack, size: int, name: str, step: int = 1) -> Number:
        """Counter of a loop, or 0 if it would run once."""
        if size == step:
            return 0
        return loops.enter_context(self.kernel.builder.loop(size, step=step, name_hint=name))

    def positions(self, loops: ExitStack, shape: Shape, block: tuple[int, int]) -> list[Number]:
        """Opens loops over all blocks of a shape; returns the position of a block's first tile."""
        names = [*("matrix" for _ in shape[:-2]), "row", "column"][-len(shape) :]
        steps = [*(1 for _ in shape[:-2]), *block][-len(shape) :]
        return [
            self._loop_counter(loops, size, name, step)
            for size, name, step in zip(shape, names, steps, strict=True)
        ]

    def within(self, position: Sequence[Number], block: tuple[int, int]) -> list[list[Number]]:
        """Positions of the tiles of a block."""
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
        self, expression: Expression, engine: Matmul
    ) -> tuple[tuple[int, int], Mapping[Tile, Source | OperandPair]]:
        """Chooses the block size of a matmul, in rows and columns of tiles.

        It is the best one whose tiles, with what is computed from them, fit in the destination
        registers. Also returns the tiles that are copied there in addition.
        """
        blocks = (
            matmul_block_sizes(engine, capacity(True))
            if expression.shape == engine.shape
            else [(1, 1)]
        )
        for block in blocks:
            sources: dict[Tile, Source | OperandPair] = {}
            first = self.within([0] * len(expression.shape), block)
            if self._allocate(expression, engine, first, sources) is not None:
                return block, sources
        raise AssertionError("one tile fits")

    def _allocate(
        self,
        expression: Expression,
        engine: Expression | None,
        positions: Sequence[Sequence[Number]],
        sources: dict[Tile, Source | OperandPair],
        flat: bool = False,
    ) -> tuple[Allocation, list[Tile]] | None:
        """Allocates registers for the tiles at some positions; None if there are too few.

        The results of the engine are in the first registers. Adds the tiles to load to `sources`.
        """
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
        """Operand from which the matrix engine reads a tile, or None if it must be copied.

        The engine reads 19 bits of a float, which is enough if the result is rounded to 16 bits.
        Loop-carried values are rounded in each iteration, so they are read at full precision.
        """
        source = sources.get(tile)
        if not isinstance(source, Source):
            return None
        holds = self.formats[source.buffer]
        is_whole = source.buffer in self._loop_carried or not self.needs.is_narrow
        if not holds.is_float or (holds is DataType.FLOAT32 and is_whole):
            return None
        return source.operand

    def _finish_tiles(
        self,
        expression: Expression,
        engine: Expression | None,
        positions: Sequence[Sequence[Number]],
        flat: bool,
        target: str,
    ) -> None:
        """Emits the elementwise work on tiles after the matrix engine, and packs the results."""
        sources: dict[Tile, Source | OperandPair] = {}
        found = self._allocate(expression, engine, positions, sources, flat)
        assert found is not None
        allocation, results = found
        self._emit_calls(allocation, sources)
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
        """Packs registers to the positions of their tiles in a buffer."""
        if self.mixes_formats:
            self.kernel.op("pack_reconfig_data_format", target)
        for register, position in zip(registers, positions, strict=True):
            index = position[0] if flat else self.arithmetic.index(position, shape)
            self.kernel.op("pack_tile", register, target, index, out_of_order=True)

    def _emit_calls(
        self, allocation: Allocation, sources: Mapping[Tile, Source | OperandPair]
    ) -> None:
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
        """Lowers an expression to calls on one tile; shared parts are computed once."""
        if id(expression) in known:
            return known[id(expression)]
        match expression:
            case Apply(_, function, of):
                operands = [self._lower(each, tiles, known, sources, position, flat) for each in of]
                tile = function(tiles, operands)
            case Fill(_, number):
                tile = tiles.fill(number, self._constant_type)
            case _:
                tile = tiles.new_tile(expression.data_type)
                sources[tile] = source_of(self.arithmetic, expression, position, flat)
        known[id(expression)] = tile
        return tile

    # Matrix engine

    def set_up_matmul(self, part: Matmul, block: tuple[int, int]) -> None:
        """Emits the engine setup of a matmul with a block size in rows and columns of tiles."""
        left, right = _buffer(part.left), _buffer(part.right)
        self.needs.read_by_matrix_engine |= {left, right}
        self.kernel.op("reconfig_data_format", right, left)
        transposed = isinstance(part.right, Transposed)
        if block == (1, 1):
            self.kernel.op("mm_init_short", left, right, *([1] if transposed else []))
        else:
            sizes = (block[1], block[0], part.left.shape[-1])
            self.kernel.op("mm_block_init_short", left, right, int(transposed), *sizes)

    def multiply(self, part: Matmul, position: Sequence[Number], block: tuple[int, int]) -> None:
        """Emits the matmul of a block of tiles, accumulating in the first registers."""
        kernel = self.kernel
        *outer, row, column = position
        depth = part.left.shape[-1]
        left, right = _buffer(part.left), _buffer(part.right)
        with ExitStack() as loops:
            inner = self._loop_counter(loops, depth, "inner")
            a = source_of(self.arithmetic, part.left, [*outer, row, inner], False)
            b = source_of(self.arithmetic, part.right, [*outer, inner, column], False)
            if block == (1, 1):
                kernel.op("matmul_tiles", left, right, a.index, b.index, 0)
            else:
                sizes = (block[1], block[0], depth)
                transposed = int(isinstance(part.right, Transposed))
                kernel.op("matmul_block", left, right, a.index, b.index, 0, transposed, *sizes)

    def _reduction(self, part: Reduction, position: Sequence[Number], target: str) -> bool:
        """Emits a reduction into the first register; True if the packer is masked after it."""
        kernel, source, rank = self.kernel, _buffer(part.of), len(part.shape)
        kind = _REDUCTIONS[part.kind], _DIRECTIONS[frozenset(axis - rank for axis in part.dims)]
        self.needs.needs_scaler = True
        if SCALER not in self.formats:
            self._declare(SCALER, SCALER_TILES, DataType.BFLOAT16)
        self.needs.read_by_matrix_engine |= {source, SCALER}
        masks = start_reduction(kernel, source, target, *kind)
        indices = list(position)
        with ExitStack() as loops:
            for axis in part.dims:
                if part.of.shape[axis] > 1:
                    name = "column" if axis == rank - 1 else "row"
                    loop = kernel.builder.loop(part.of.shape[axis], name_hint=name)
                    indices[axis] = loops.enter_context(loop)
            index = source_of(self.arithmetic, part.of, indices, False).index
            reduce_further(kernel, source, index, *kind)
        return masks


def _in_registers(held: DataType) -> DataType:
    """Data type in destination registers of tiles that a circular buffer holds."""
    return DataType.FLOAT32 if held.is_float else held


def _buffer(expression: Expression) -> str:
    while not isinstance(expression, Resident):
        (expression,) = expression.operands
    return expression.buffer
