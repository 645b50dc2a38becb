"""Programs that move elements: the reader puts each tile of the result together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import reduce
from math import prod

from xdsl.dialects.builtin import IntegerType
from xdsl.ir import SSAValue

from ttcodegen.conversions.ttir_to_ttmetal.grouping.grouping import Group
from ttcodegen.conversions.ttir_to_ttmetal.grouping.index_maps import (
    Piece,
    Term,
    pieces_of,
    reordering,
    slice_from,
    tiles_and_rows_read,
)
from ttcodegen.conversions.ttir_to_ttmetal.parts.data_movement import (
    MovementKernel,
    element_bits,
    element_word,
)
from ttcodegen.conversions.ttir_to_ttmetal.parts.loop_nests import AccessPattern, Coordinate
from ttcodegen.conversions.ttir_to_ttmetal.parts.program_parts import (
    SHARE,
    Lowered,
    ProgramParts,
    purpose_of,
    tensor_bytes,
)
from ttcodegen.dialects.core.datatypes import DataType, shape_of
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttcore.shards import CoreRange
from ttcodegen.dialects.ttcore.tile import FACE_SIDE, TILE_SIDE
from ttcodegen.dialects.ttkernel.attributes import TileCacheType
from ttcodegen.dialects.ttkernel.builder import Value
from ttcodegen.dialects.ttmetal.programs import ComputeSettings, Processor
from ttcodegen.dialects.ttnn.placement import declared_data_type
from ttcodegen.layout.placements import TiledShape, row_major_strides, tile_bytes_of
from ttcodegen.naming.programs import kernel_name
from ttcodegen.ops.indexing.dynamic_slicing import SLICE_AT

SLOTS = 32
"""Tiles that a kernel keeps of each of its sources."""
MOST_CACHED_BYTES = 512 * 1024
"""Of L1, for the tiles kept of all sources."""


INDEX_OPERANDS = {"ttir.embedding": "input", "ttir.gather": "index", SLICE_AT: "begins"}
"""Index operand of each op that gathers elements."""
TABLE_OPERANDS = {"ttir.embedding": "weight", "ttir.gather": "input"}


@dataclass(frozen=True)
class Source:
    """A tensor that single elements are read of."""

    tensor: str
    buffer: str
    """The circular buffer with the tiles that the kernel keeps."""
    shape: TiledShape
    slots: int
    by_row: bool
    """True if it keeps rows of tiles, not whole ones."""


def lower_movement(
    group: Group, names: Mapping[SSAValue, str], name: str, cores: CoreRange
) -> Lowered:
    """The program of a group that is one movement, or reshapes and permutes of each other."""
    op = group.root
    assert op is not None
    given = op.operands if len(group.ops) == 1 else group.inputs()
    pieces = pieces_of(op) if len(group.ops) == 1 else reordering(group.ops)
    assert pieces is not None
    parts = ProgramParts(names, given, op.results)
    element = element_word(declared_data_type(op.results[0]))
    slots = slots_for(len(parts.inputs), declared_data_type(op.results[0]))
    reads, by_row = _reads(pieces, given, TiledShape(op.result_shape))
    sources = [source_of(parts, value, slots, by_row=value in by_row) for value in parts.inputs]
    output = parts.buffers.add_tensor(op.results[0])
    reader = _reader(op, parts, name, cores)
    caches = [cache_tiles(reader, source, element) for source in sources]
    order = [parts.inputs.index(value) for value in given]
    _TileAssembly(op, reader, output, element).write(
        [(piece, caches[order[piece.source]]) for piece in pieces]
    )
    return _program(group, parts, reader, name, cores, reads)


def _reads(
    pieces: Sequence[Piece], given: Sequence[SSAValue], result: TiledShape
) -> tuple[Mapping[SSAValue, int], Collection[SSAValue]]:
    """Bytes that are read of each tensor, and those tensors that rows of tiles are read of: where
    that are hardly more transfers, as each takes its time."""
    shapes = [TiledShape(shape_of(value.type)) for value in given]
    tiles, rows = Counter[SSAValue](), Counter[SSAValue]()
    counts = tiles_and_rows_read(pieces, shapes, result)
    for value, (of_tiles, of_rows) in zip(given, counts, strict=True):
        tiles[value] += of_tiles
        rows[value] += of_rows
    by_row = {
        value
        for value, shape in zip(given, shapes, strict=True)
        if has_numbered_rows(shape) and rows[value] <= 2 * tiles[value]
    }
    reads = {
        value: rows[value] * row_bytes(shape, declared_data_type(value))
        if value in by_row
        else tiles[value] * tile_bytes_of(declared_data_type(value))
        for value, shape in zip(given, shapes, strict=True)
    }
    return reads, by_row


def lower_indexed(
    group: Group, names: Mapping[SSAValue, str], name: str, cores: CoreRange
) -> Lowered:
    """The program of a group that is one embedding or gather, or a slice from where a tensor says;
    the indices are 32-bit integers."""
    op = group.root
    assert op is not None
    if op.name == SLICE_AT:
        return _lower_slice(group, names, name, cores)
    indexed, table_of = op.operand(INDEX_OPERANDS[op.name]), op.operand(TABLE_OPERANDS[op.name])
    parts = ProgramParts(names, op.operands, op.results)
    slots = slots_for(2, DataType.FLOAT32)
    element = element_word(declared_data_type(op.results[0]))
    indices = source_of(parts, indexed, slots)
    shape = TiledShape(shape_of(table_of.type))
    by_row = shape.tiles > slots and has_numbered_rows(shape)
    table = source_of(parts, table_of, slots, by_row=by_row)
    output = parts.buffers.add_tensor(op.results[0])
    reader = _reader(op, parts, name, cores)
    rows = cache_tiles(reader, indices, element_word(DataType.INT32))
    elements = cache_tiles(reader, table, element)
    assembly = _TileAssembly(op, reader, output, element)
    if op.name == "ttir.embedding":
        assembly.gather_rows(rows, elements, table.shape.width)
    else:
        assembly.gather_elements(rows, elements, shape_of(table_of.type))
    # A row of a tile of the table for each of the result, or for each element; less if the core has
    # it already.
    result = TiledShape(op.result_shape)
    if by_row:
        in_row = result.columns if op.name == "ttir.embedding" else op.result_shape[-1]
        rows = prod(op.result_shape[:-1]) * in_row
        reads = {table_of: rows * row_bytes(shape, declared_data_type(table_of))}
    else:
        size = tile_bytes_of(declared_data_type(table_of))
        reads = {table_of: min(result.tiles, cores.cores) * shape.tiles * size}
    # A row of tiles of the result needs one tile of indices, a tile of a gather another.
    needed = AccessPattern.of((result.tiles // result.columns, result.columns), (1, 0))
    reads[indexed] = needed.reads(1, cores, result.tiles) * tile_bytes_of(DataType.INT32)
    return _program(group, parts, reader, name, cores, reads)


def _lower_slice(
    group: Group, names: Mapping[SSAValue, str], name: str, cores: CoreRange
) -> Lowered:
    """The program of a slice that is a movement, but for where it begins."""
    op = group.root
    assert op is not None
    value, begins = op.operand("input"), op.operand("begins")
    data_type, sizes = declared_data_type(value), op.shape("input")
    parts = ProgramParts(names, [value, begins], op.results)
    piece = slice_from(op, [0] * len(sizes))
    reads, by_row = _reads([piece], [value], TiledShape(op.result_shape))
    source = source_of(parts, value, slots_for(2, data_type), by_row=value in by_row)
    places = source_of(parts, begins, 1)
    output = parts.buffers.add_tensor(op.results[0])
    reader = _reader(op, parts, name, cores)
    builder = reader.builder
    elements = cache_tiles(reader, source, element_word(data_type))
    indices = cache_tiles(reader, places, element_word(DataType.INT32))
    terms: list[Value] = []
    for axis, (size, stride) in enumerate(zip(sizes, row_major_strides(sizes), strict=True)):
        begin: Value = builder.get(
            "blocks.tile_cache.element", indices, axis, name_hint=f"begin{axis}"
        )
        if declared_data_type(begins) is DataType.INT32:
            # Below zero they count from the end; the first bit says so.
            is_negative = builder.quotient(begin, 2**31)
            begin = builder.sum(begin, builder.product(is_negative, size))
        terms.append(builder.product(begin, stride) if stride > 1 else begin)
    first = builder.named(builder.value(reader.sum(terms)), "first")
    _TileAssembly(op, reader, output, element_word(data_type), first).write([(piece, elements)])
    used = min(cores.cores, TiledShape(op.result_shape).tiles)
    return _program(
        group,
        parts,
        reader,
        name,
        cores,
        {**reads, begins: used * tile_bytes_of(DataType.INT32)},
    )


@dataclass
class _TileAssembly:
    """Puts the tiles of a result together from single elements, row by row."""

    op: CatalogueOp
    kernel: MovementKernel
    output: str
    element: IntegerType
    origin: SSAValue | None = None
    """The number of the element of the source that all pieces count from, if not the first."""

    def __post_init__(self) -> None:
        self.builder = self.kernel.builder
        shape = self.op.result_shape
        self.shape = (1,) * (2 - len(shape)) + shape
        self.height, self.width = self.shape[-2:]
        self.tiles = TiledShape(self.shape)

    def write(self, pieces: Sequence[tuple[Piece, SSAValue]]) -> None:
        """The loop over the tiles of a movement; pieces come with the cache of their source."""
        with self.kernel.share("tile") as tile:
            self._begin(tile)
            known = self._batch_indices(tile, [piece for piece, _ in pieces])
            self._reserve(_fill(self.op))
            self.end = self._sum(self.first_column, self.columns)
            if isinstance(self.end, SSAValue) and not all(
                self._is_whole(piece) for piece, _ in pieces
            ):
                self.builder.named(self.end, "end_column")
            with self.builder.loop(self.rows, name_hint="tile_row") as tile_row:
                known["row"] = tile_row
                if isinstance(self.first_row, SSAValue):
                    row = self.builder.sum(self.first_row, tile_row)
                    known["row"] = self.builder.named(row, "row")
                for piece, cache in pieces:
                    self._copy(piece, cache, known, tile_row)
            self._push()

    def gather_rows(self, indices: SSAValue, table: SSAValue, width: int) -> None:
        """The loop over the tiles of an embedding: each row is one of the table's."""
        builder = self.builder
        height = TiledShape(self.op.result_shape).height
        with self.kernel.share("tile") as tile:
            self._begin(tile)
            matrix = builder.quotient(tile, self.tiles.rows * self.tiles.columns)
            builder.named(matrix, "matrix")
            self._reserve(None)
            with builder.loop(self.rows, name_hint="row") as row:
                number = builder.sum(builder.product(matrix, height), self.first_row)
                index = builder.get(
                    "blocks.tile_cache.element",
                    indices,
                    builder.sum(number, row),
                    name_hint="index",
                )
                start = self._sum(builder.product(index, width), self.first_column)
                self._copy_row(table, start, 1, self.columns, row, 0)
            self._push()

    def gather_elements(self, indices: SSAValue, table: SSAValue, sizes: Sequence[int]) -> None:
        """The loop over the tiles of a gather: each element is one of those of the table, of these
        sizes, that are next to it along a dimension."""
        builder = self.builder
        dim: int = self.op.parameter("dim") % len(sizes)
        inner, count = prod(sizes[dim + 1 :]), self.op.result_shape[dim]
        with self.kernel.share("tile") as tile:
            self._begin(tile)
            matrix = builder.quotient(tile, self.tiles.rows * self.tiles.columns)
            first = self._sum(builder.product(matrix, self.height), self.first_row)
            first = builder.named(builder.value(first), "first_number")
            self._reserve(None)
            with (
                builder.loop(self.rows, name_hint="row") as row,
                builder.loop(self.columns, name_hint="column") as column,
            ):
                start = builder.product(builder.sum(first, row), self.width)
                number = self._sum(start, self.first_column, column)
                number = builder.named(builder.value(number), "number")
                index = builder.get("blocks.tile_cache.element", indices, number, name_hint="index")
                place = builder.quotient(number, count * inner)
                place = builder.sum(builder.product(place, sizes[dim]), index)
                beside = builder.remainder(number, inner)
                origin = builder.sum(builder.product(place, inner), beside)
                builder.op(
                    "blocks.tile_cache.copy_element", table, origin, self.target, row, column
                )
            self._push()

    def _begin(self, tile: SSAValue) -> None:
        """The position of the tile in the matrices of the result, and how much of it they fill."""
        builder = self.builder
        self.first_row: Value = 0
        self.first_column: Value = 0
        place = tile
        if self.tiles.columns > 1:
            column = builder.product(builder.remainder(tile, self.tiles.columns), TILE_SIDE)
            self.first_column = builder.named(column, "first_column")
            place = builder.quotient(tile, self.tiles.columns)
        if self.tiles.rows > 1:
            row = builder.product(builder.remainder(place, self.tiles.rows), TILE_SIDE)
            self.first_row = builder.named(row, "first_row")
        self.rows = self.kernel.filled(self.first_row, self.height, "rows")
        self.columns = self.kernel.filled(self.first_column, self.width, "columns")

    def _sum(self, *terms: Value) -> Value:
        return self.kernel.sum(terms)

    def _batch_indices(self, tile: SSAValue, pieces: Sequence[Piece]) -> dict[str, Value]:
        """The coordinates of a tile's batch, those that the pieces ask for."""
        strides = row_major_strides(self.tiles.grid)
        coordinates = [
            Coordinate(
                f"batch{axis}",
                "tile",
                strides[axis],
                0 if strides[axis] * size == self.tiles.tiles else size,
            )
            for axis, size in enumerate(self.shape[:-2])
            if size > 1 and any(_asks_for(piece, axis, self.shape) for piece in pieces)
        ]
        return {**self.kernel.coordinates(coordinates, {"tile": tile})}

    def _reserve(self, fill: int | None) -> None:
        """Room for a tile of the result; what holds no elements is zero, or `fill`."""
        builder = self.builder
        builder.op("cb_reserve_back", self.kernel.buffer(self.output), 1)
        address = self.kernel.write_pointer(self.output)
        self.target = self.kernel.elements(address, self.element)
        if fill is not None:
            self._fill_padding(0, 0, fill)
        elif self.rows != TILE_SIDE or self.columns != TILE_SIDE:
            self._fill_padding(self.rows, self.columns, 0)

    def _fill_padding(self, rows: Value, columns: Value, bits: int) -> None:
        address = self.kernel.write_pointer(self.output)
        self.kernel.fill(address, rows, columns, bits, self.element)

    def _push(self) -> None:
        self.builder.op("cb_push_back", self.kernel.buffer(self.output), 1)

    def _copy_row(
        self, cache: SSAValue, start: Value, stride: int, count: Value, row: Value, column: Value
    ) -> None:
        step = stride if stride >= 0 else self.builder.pattern(stride % 2**32)
        self.builder.op(
            "blocks.tile_cache.copy_row", cache, start, step, count, self.target, row, column
        )

    def _copy(
        self, piece: Piece, cache: SSAValue, known: Mapping[str, Value], tile_row: SSAValue
    ) -> None:
        """Copies what a row of the tile has of a piece."""
        builder = self.builder
        missing = len(self.shape) - len(piece.low)
        low = (0,) * missing + piece.low
        high = (1,) * missing + piece.high
        terms = ((),) * missing + piece.terms
        conditions = self._conditions(low, high, known)
        is_whole = self._is_whole(piece)
        end = self.end
        if not is_whole:
            if isinstance(self.first_column, SSAValue):
                conditions.append(builder.compare("ult", self.first_column, high[-1]))
            if isinstance(end, SSAValue) and low[-1]:
                conditions.append(builder.compare("ugt", end, low[-1]))
        with ExitStack() as stack:
            if conditions:
                stack.enter_context(builder.when(reduce(builder.both, conditions)))
            begin = self.first_column
            if not is_whole:
                begin, end = self._limits(begin, end, low[-1], high[-1])
            outer = [
                term
                for axis in range(len(self.shape) - 1)
                for term in self._terms(known.get(_index_name(axis, len(self.shape)), 0), low[axis],
                                        self.shape[axis], terms[axis])
            ]  # fmt: skip
            base: list[Value] = [builder.pattern(piece.base % 2**32)] if piece.base < 0 else []
            base += [piece.base] if piece.base > 0 else []
            base += [] if self.origin is None else [self.origin]
            self._copy_columns(cache, [*base, *outer], terms[-1], low[-1], begin, end, tile_row)

    def _is_whole(self, piece: Piece) -> bool:
        """True if a piece has all columns of the result."""
        last = (piece.low[-1], piece.high[-1]) if piece.low else (0, 1)
        return last == (0, self.width)

    def _copy_columns(
        self,
        cache: SSAValue,
        start: Sequence[Value],
        last: Sequence[Term],
        low: int,
        begin: Value,
        end: Value,
        tile_row: SSAValue,
    ) -> None:
        """Copies the columns from `begin` to `end`, whose elements are where the terms say."""
        builder = self.builder
        step = self._step(last, low)
        if step is not None:
            number = self._sum(*start, *self._terms(begin, low, self.width, last))
            stride = step
            is_whole = begin is self.first_column and isinstance(begin, SSAValue)
            count = self.columns if is_whole and end is self.end else self._difference(end, begin)
            column = self._difference(begin, self.first_column)
            self._copy_row(cache, number, stride, count, tile_row, column)
            return
        with builder.loop(end, start=begin, name_hint="column") as column:
            number = self._sum(*start, *self._terms(column, low, self.width, last))
            builder.op(
                "blocks.tile_cache.copy_element",
                cache,
                number,
                self.target,
                tile_row,
                self._difference(column, self.first_column),
            )

    @staticmethod
    def _step(terms: Sequence[Term], low: int) -> int | None:
        """Stride between the sources of neighbours in a row of a tile; None if it varies."""
        if not terms:
            return 0
        [*outer, inner] = terms
        if inner.divisor != 1 or (outer and low):
            return None
        # What moves from tile to tile stays the same within one.
        sizes = [*(term.divisor for term in outer), inner.modulus]
        return inner.stride if all(size % TILE_SIDE == 0 for size in sizes) else None

    def _conditions(
        self, low: Sequence[int], high: Sequence[int], known: Mapping[str, Value]
    ) -> list[SSAValue]:
        """The condition that a row is in a piece."""
        found: list[SSAValue] = []
        rank = len(self.shape)
        for axis in range(rank - 1):
            index = known.get(_index_name(axis, rank), 0)
            if low[axis] > 0:
                found.append(self.builder.compare("uge", index, low[axis]))
            if high[axis] < self.shape[axis]:
                found.append(self.builder.compare("ult", index, high[axis]))
        return found

    def _limits(self, begin: Value, end: Value, low: int, high: int) -> tuple[Value, Value]:
        """The columns of the tile that are in a piece."""
        builder = self.builder
        if isinstance(begin, int):
            begin = max(begin, low)
        elif low > 0:
            begin = builder.named(builder.larger(begin, low), "begin")
        if isinstance(end, int):
            end = min(end, high)
        elif high < self.width:
            end = builder.named(builder.smaller(end, high), "end")
        return begin, end

    def _difference(self, a: Value, b: Value) -> Value:
        if isinstance(b, int) and isinstance(a, int):
            return a - b
        if a is b:
            return 0
        return a if b == 0 and isinstance(b, int) else self.builder.difference(a, b)

    def _terms(self, index: Value, low: int, size: int, terms: Sequence[Term]) -> list[Value]:
        builder = self.builder
        index = self._difference(index, low)
        found: list[Value] = []
        for term in terms:
            if not term.stride or size == 1:
                continue
            if isinstance(index, int):
                place = index // term.divisor % (term.modulus or size)
                found += [place * term.stride % 2**32] if place else []
                continue
            value = index if term.divisor == 1 else builder.quotient(index, term.divisor)
            if term.modulus:
                value = builder.remainder(value, term.modulus)
            if term.stride == 1:
                found.append(value)
            else:
                # Numbers of elements are unsigned and wrap around: a step back is a very long one.
                step = term.stride if term.stride > 0 else builder.pattern(term.stride % 2**32)
                found.append(builder.product(value, step))
        return found


def slots_for(sources: int, data_type: DataType) -> int:
    """The tiles that a kernel keeps of each of so many sources."""
    return max(1, min(SLOTS, MOST_CACHED_BYTES // (sources * tile_bytes_of(data_type))))


def row_bytes(shape: TiledShape, data_type: DataType) -> int:
    """Bytes read of a row of a tile: in its left face, or in both faces."""
    faces = 2 if shape.width > FACE_SIDE else 1
    return faces * FACE_SIDE * tile_bytes_of(data_type) // TILE_SIDE**2


def has_numbered_rows(shape: TiledShape) -> bool:
    """True if kernels can number the rows of all tiles."""
    return shape.tiles * TILE_SIDE < 2**32


def source_of(parts: ProgramParts, value: SSAValue, slots: int, *, by_row: bool = False) -> Source:
    """A tensor that the kernel reads elements of; it gets a circular buffer for its tiles."""
    buffer = parts.buffers.add_tensor(value, slots)
    return Source(parts.names[value], buffer, TiledShape(shape_of(value.type)), slots, by_row)


def cache_tiles(kernel: MovementKernel, source: Source, element: IntegerType) -> SSAValue:
    return kernel.builder.get(
        f"blocks.cache_{'rows' if source.by_row else 'tiles'}",
        kernel.tensor(source.tensor),
        kernel.buffer(source.buffer),
        element=element,
        height=source.shape.height,
        width=source.shape.width,
        slots=source.slots,
        result_type=TileCacheType(),
        name_hint=f"{source.tensor}_elements",
    )


def _fill(op: CatalogueOp) -> int | None:
    """The bits of what surrounds the pieces of a padded tensor."""
    if op.name != "ttir.pad":
        return None
    return element_bits(op.parameter("value"), declared_data_type(op.results[0]))


def _index_name(axis: int, rank: int) -> str:
    """Name of the coordinate in a dimension of the result."""
    return "row" if axis == rank - 2 else f"batch{axis}"


def _asks_for(piece: Piece, axis: int, shape: Sequence[int]) -> bool:
    missing = len(shape) - len(piece.low)
    axis -= missing
    if axis < 0:
        return False
    limited = piece.low[axis] > 0 or piece.high[axis] < shape[axis + missing]
    return limited or any(term.stride for term in piece.terms[axis])


def _reader(op: CatalogueOp, parts: ProgramParts, name: str, cores: CoreRange) -> MovementKernel:
    """The kernel that puts the tiles of the result together."""
    return parts.data_movement(
        kernel_name("read", name),
        Processor.READER,
        f"Assembles the tiles of {parts.names[op.results[0]]} ({op.name.partition('.')[2]}).",
        cores,
        tensors=parts.inputs,
        buffers=[buffer.name for buffer in parts.buffers],
        arguments=SHARE,
    )


def _program(
    group: Group,
    parts: ProgramParts,
    reader: MovementKernel,
    name: str,
    cores: CoreRange,
    reads: Mapping[SSAValue, int],
) -> Lowered:
    """The program of a reader that reads so many bytes of each source; of none it needs more than
    there are in the result."""
    op = group.root
    assert op is not None
    kind = purpose_of(group)
    purpose = f"Writes the output tiles of {parts.names[op.results[0]]} ({kind})."
    writer = parts.tile_writer(name, purpose, cores, [parts.buffers[-1].name])
    result = TiledShape(op.result_shape)
    most = (prod(op.result_shape) // TILE_SIDE**2 + 1) * tile_bytes_of(
        declared_data_type(op.results[0])
    )
    least = {value: min(tensor_bytes(value), most) for value in parts.inputs}
    return parts.program(
        name,
        kind,
        cores,
        (reader.finish(), writer),
        parts.costs(reads, least_reads=least),
        # Nothing is computed, so that nothing is rounded.
        ComputeSettings(fp32_destination=True),
        work_units=result.tiles,
    )
