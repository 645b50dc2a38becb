"""Data movement programs: the reader assembles each output tile from elements of its sources."""

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
"""Maximum number of tiles that a kernel caches per source."""
MOST_CACHED_BYTES = 512 * 1024
"""Maximum L1 for the cached tiles of all sources."""


INDEX_OPERANDS = {"ttir.embedding": "input", "ttir.gather": "index", SLICE_AT: "begins"}
"""Index operand of each op that gathers elements."""
TABLE_OPERANDS = {"ttir.embedding": "weight", "ttir.gather": "input"}


@dataclass(frozen=True)
class Source:
    """Tensor whose elements are read individually."""

    tensor: str
    buffer: str
    """Circular buffer of the cached tiles."""
    shape: TiledShape
    slots: int
    by_row: bool
    """True if rows of tiles are cached instead of whole tiles."""


def lower_movement(
    group: Group, names: Mapping[SSAValue, str], name: str, cores: CoreRange
) -> Lowered:
    """Lowers a group that is one movement, or a chain of reshapes and permutes, to a program."""
    op = group.root
    assert op is not None
    operands = op.operands if len(group.ops) == 1 else group.inputs()
    pieces = pieces_of(op) if len(group.ops) == 1 else reordering(group.ops)
    assert pieces is not None
    parts = ProgramParts(names, operands, op.results)
    element = element_word(declared_data_type(op.results[0]))
    slots = slots_for(len(parts.inputs), declared_data_type(op.results[0]))
    reads, by_row = _reads(pieces, operands, TiledShape(op.result_shape))
    sources = [source_of(parts, value, slots, by_row=value in by_row) for value in parts.inputs]
    output = parts.buffers.add_tensor(op.results[0])
    reader = _reader(op, parts, name, cores)
    caches = [cache_tiles(reader, source, element) for source in sources]
    order = [parts.inputs.index(value) for value in operands]
    _TileAssembly(op, reader, output, element).write(
        [(piece, caches[order[piece.source]]) for piece in pieces]
    )
    return _program(group, parts, reader, name, cores, reads)


def _reads(
    pieces: Sequence[Piece], operands: Sequence[SSAValue], result: TiledShape
) -> tuple[Mapping[SSAValue, int], Collection[SSAValue]]:
    """Returns the bytes read of each tensor, and the tensors that are read by rows of tiles.

    Rows are preferred unless they take more than twice as many transfers as tiles."""
    shapes = [TiledShape(shape_of(value.type)) for value in operands]
    tiles, rows = Counter[SSAValue](), Counter[SSAValue]()
    counts = tiles_and_rows_read(pieces, shapes, result)
    for value, (of_tiles, of_rows) in zip(operands, counts, strict=True):
        tiles[value] += of_tiles
        rows[value] += of_rows
    by_row = {
        value
        for value, shape in zip(operands, shapes, strict=True)
        if has_numbered_rows(shape) and rows[value] <= 2 * tiles[value]
    }
    reads = {
        value: rows[value] * row_bytes(shape, declared_data_type(value))
        if value in by_row
        else tiles[value] * tile_bytes_of(declared_data_type(value))
        for value, shape in zip(operands, shapes, strict=True)
    }
    return reads, by_row


def lower_indexed(
    group: Group, names: Mapping[SSAValue, str], name: str, cores: CoreRange
) -> Lowered:
    """Lowers a group that is one embedding, gather or dynamic slice to a program.

    The indices are 32-bit integers."""
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
    # One row of a table tile per row of an output tile, or per element; cached rows are not read
    # again.
    result = TiledShape(op.result_shape)
    if by_row:
        in_row = result.columns if op.name == "ttir.embedding" else op.result_shape[-1]
        rows = prod(op.result_shape[:-1]) * in_row
        reads = {table_of: rows * row_bytes(shape, declared_data_type(table_of))}
    else:
        size = tile_bytes_of(declared_data_type(table_of))
        reads = {table_of: min(result.tiles, cores.cores) * shape.tiles * size}
    # Each row of output tiles reads one tile of indices.
    needed = AccessPattern.of((result.tiles // result.columns, result.columns), (1, 0))
    reads[indexed] = needed.reads(1, cores, result.tiles) * tile_bytes_of(DataType.INT32)
    return _program(group, parts, reader, name, cores, reads)


def _lower_slice(
    group: Group, names: Mapping[SSAValue, str], name: str, cores: CoreRange
) -> Lowered:
    """Lowers a slice with dynamic begins: a static movement with a run-time origin."""
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
            # Negative begins count from the end; the top bit is the sign.
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
    """Assembles output tiles from single elements, row by row."""

    op: CatalogueOp
    kernel: MovementKernel
    output: str
    element: IntegerType
    origin: SSAValue | None = None
    """Element of the source that all pieces are relative to; None for the first."""

    def __post_init__(self) -> None:
        self.builder = self.kernel.builder
        shape = self.op.result_shape
        self.shape = (1,) * (2 - len(shape)) + shape
        self.height, self.width = self.shape[-2:]
        self.tiles = TiledShape(self.shape)

    def write(self, pieces: Sequence[tuple[Piece, SSAValue]]) -> None:
        """Writes the loop over output tiles; pieces come with the cache of their source."""
        with self.kernel.share("tile") as tile:
            self._locate(tile)
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
        """Writes the loop over the tiles of an embedding: each row is a row of the table."""
        builder = self.builder
        height = TiledShape(self.op.result_shape).height
        with self.kernel.share("tile") as tile:
            self._locate(tile)
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
        """Writes the loop over the tiles of a gather, from a table of these sizes."""
        builder = self.builder
        dim: int = self.op.parameter("dim") % len(sizes)
        inner, count = prod(sizes[dim + 1 :]), self.op.result_shape[dim]
        with self.kernel.share("tile") as tile:
            self._locate(tile)
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

    def _locate(self, tile: SSAValue) -> None:
        """Computes the tile's position in the result matrices and its valid extent."""
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
        """Computes the batch coordinates of a tile that the pieces depend on."""
        strides = row_major_strides(self.tiles.grid)
        coordinates = [
            Coordinate(
                f"batch{axis}",
                "tile",
                strides[axis],
                0 if strides[axis] * size == self.tiles.tiles else size,
            )
            for axis, size in enumerate(self.shape[:-2])
            if size > 1 and any(_depends_on(piece, axis, self.shape) for piece in pieces)
        ]
        return {**self.kernel.coordinates(coordinates, {"tile": tile})}

    def _reserve(self, fill: int | None) -> None:
        """Reserves an output tile; elements that nothing overwrites become zero, or `fill`."""
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
        """Copies the part of a piece that is in a row of the tile."""
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
        """Returns whether a piece covers all columns of the result."""
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
        """Copies the columns from `begin` to `end`, whose source elements the terms give."""
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
        """Source stride between adjacent elements of a tile row; None if it varies."""
        if not terms:
            return 0
        [*outer, inner] = terms
        if inner.divisor != 1 or (outer and low):
            return None
        # Multiples of the tile side are constant within a tile.
        sizes = [*(term.divisor for term in outer), inner.modulus]
        return inner.stride if all(size % TILE_SIDE == 0 for size in sizes) else None

    def _conditions(
        self, low: Sequence[int], high: Sequence[int], known: Mapping[str, Value]
    ) -> list[SSAValue]:
        """Conditions for a row to be in a piece."""
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
        """Column range of the tile that is in a piece."""
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
                # Element numbers are unsigned and wrap around: negative steps are large numbers.
                step = term.stride if term.stride > 0 else builder.pattern(term.stride % 2**32)
                found.append(builder.product(value, step))
        return found


def slots_for(sources: int, data_type: DataType) -> int:
    """Number of tiles that a kernel caches of each source."""
    return max(1, min(SLOTS, MOST_CACHED_BYTES // (sources * tile_bytes_of(data_type))))


def row_bytes(shape: TiledShape, data_type: DataType) -> int:
    """Bytes that are read of a row of a tile: in its left face, or in both faces."""
    faces = 2 if shape.width > FACE_SIDE else 1
    return faces * FACE_SIDE * tile_bytes_of(data_type) // TILE_SIDE**2


def has_numbered_rows(shape: TiledShape) -> bool:
    """Returns whether 32 bits can number the rows of all tiles."""
    return shape.tiles * TILE_SIDE < 2**32


def source_of(parts: ProgramParts, value: SSAValue, slots: int, *, by_row: bool = False) -> Source:
    """Adds a circular buffer for the cached tiles of a tensor whose elements are read."""
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
    """Bits of the padding of a padded tensor; None for other ops."""
    if op.name != "ttir.pad":
        return None
    return element_bits(op.parameter("value"), declared_data_type(op.results[0]))


def _index_name(axis: int, rank: int) -> str:
    """Name of the coordinate in a dimension of the result."""
    return "row" if axis == rank - 2 else f"batch{axis}"


def _depends_on(piece: Piece, axis: int, shape: Sequence[int]) -> bool:
    missing = len(shape) - len(piece.low)
    axis -= missing
    if axis < 0:
        return False
    limited = piece.low[axis] > 0 or piece.high[axis] < shape[axis + missing]
    return limited or any(term.stride for term in piece.terms[axis])


def _reader(op: CatalogueOp, parts: ProgramParts, name: str, cores: CoreRange) -> MovementKernel:
    """Kernel that assembles the output tiles."""
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
    """Program of a reader that reads these numbers of bytes of each source.

    At most as many bytes as the result has are counted as necessary per source."""
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
        # The compute engine is unused, so that no value is rounded.
        ComputeSettings(fp32_destination=True),
        work_units=result.tiles,
    )
