"""Device programs of sort, topk, argmax and scatter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from xdsl.ir import SSAValue

from ttcodegen.conversions.ttir_to_ttmetal.grouping.grouping import Group
from ttcodegen.conversions.ttir_to_ttmetal.movement_programs import (
    cache_tiles,
    has_numbered_rows,
    row_bytes,
    slots_for,
    source_of,
)
from ttcodegen.conversions.ttir_to_ttmetal.parts.data_movement import MovementKernel, element_word
from ttcodegen.conversions.ttir_to_ttmetal.parts.program_parts import (
    BUFFER_DEPTH,
    DOUBLE,
    SHARE,
    Lowered,
    ProgramParts,
    tensor_bytes,
)
from ttcodegen.dialects.core.datatypes import DataType, shape_of
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttcore.shards import CoreRange
from ttcodegen.dialects.ttcore.tile import TILE_FORMATS, TILE_SIDE, tiles_along
from ttcodegen.dialects.ttkernel.attributes import RowOrderType
from ttcodegen.dialects.ttkernel.builder import Value
from ttcodegen.dialects.ttmetal.programs import ComputeSettings, Costs, Processor
from ttcodegen.dialects.ttnn.placement import declared_data_type
from ttcodegen.layout.placements import TiledShape, tile_bytes_of
from ttcodegen.naming.programs import kernel_name

# Programs that order the elements of rows: sort, topk and argmax.
#
# One kernel per core compares the bits of elements; the compute engine is unused, so every data
# type is exact. A unit of work is a row of output tiles.

_ENTRY_BYTES = 8
"""Bytes of an entry of the order: the sort key and the index of the element."""
MOST_ROW_BYTES = 1024 * 1024
"""Maximum L1 for rows of tiles that are assembled, and the order of a row."""

_FEW_ROWS = 2
"""Maximum number of rows of a tile that are read one by one instead of together."""


def order_bytes(op: CatalogueOp) -> int:
    """L1 bytes for the order of a row and two rows of tiles of each result."""
    kept = op.result_shape[-1]
    tiles = sum(tile_bytes_of(declared_data_type(value)) for value in op.results)
    return kept * _ENTRY_BYTES + DOUBLE * tiles_along(kept) * tiles


def unsupported_order(op: CatalogueOp) -> str | None:
    """Returns the reason for which a sort has no device program; None if it has one."""
    value = op.operands[0]
    data_type = declared_data_type(value)
    *values, indices = (declared_data_type(result) for result in op.results)
    if TILE_FORMATS[data_type.mlir].shares_exponent or values not in ([], [data_type]):
        return f"'{op.name}' of {data_type.mlir} has no lowering"
    if indices.is_float or not _is_along_last(op):
        return f"'{op.name}' has no lowering"
    if order_bytes(op) > MOST_ROW_BYTES:
        return f"'{op.name}' of rows that do not fit into L1 has no lowering"
    return None


def _is_along_last(op: CatalogueOp) -> bool:
    rank = len(shape_of(op.operands[0].type))
    if op.name == "ttir.argmax":
        dims = [dim % rank for dim in op.parameter("dim_arg") or ()] if rank else []
        return dims == [rank - 1] and bool(op.parameter("keep_dim"))
    return rank > 0 and op.parameter("dim") % rank == rank - 1


def lower_order(
    group: Group, names: Mapping[SSAValue, str], name: str, cores: CoreRange
) -> Lowered:
    """Lowers a group that is one ordering op to a program."""
    op = group.root
    assert op is not None
    return _OrderProgram(op, names, name, cores).lower()


def number_kind(data_type: DataType) -> str:
    """Number kind of an element, as kernels/blocks/row_order.hpp names it."""
    if data_type.is_float:
        return "floating"
    return "signed_integer" if data_type is DataType.INT32 else "unsigned_integer"


def numbered_rows(kernel: MovementKernel, shape: TiledShape, unit: SSAValue) -> tuple[Value, Value]:
    """Returns the first row, counted over all matrices, and the number of rows of a tile row."""
    builder = kernel.builder
    height = shape.height
    if height % TILE_SIDE == 0:
        return builder.named(builder.product(unit, TILE_SIDE), "first_row"), TILE_SIDE
    if shape.rows == 1:
        return builder.named(builder.product(unit, height), "first_row"), height
    in_matrix = builder.product(builder.remainder(unit, shape.rows), TILE_SIDE)
    builder.named(in_matrix, "row_in_matrix")
    matrix = builder.product(builder.quotient(unit, shape.rows), height)
    first = builder.named(builder.sum(matrix, in_matrix), "first_row")
    return first, kernel.filled(in_matrix, height, "rows")


@dataclass
class _OrderProgram:
    op: CatalogueOp
    names: Mapping[SSAValue, str]
    name: str
    cores: CoreRange

    def lower(self) -> Lowered:
        op = self.op
        self.value = op.operands[0]
        self.parts = ProgramParts(self.names, [self.value], op.results)
        self.shape = TiledShape(shape_of(self.value.type))
        self.result = TiledShape(op.result_shape)
        self.element = element_word(declared_data_type(self.value))
        slots = min(self.shape.columns, slots_for(1, declared_data_type(self.value)))
        # Otherwise tiles that are not kept would be read again for each of their rows.
        few = self.shape.columns > slots or self.shape.height <= _FEW_ROWS
        by_row = few and has_numbered_rows(self.shape)
        self.source = source_of(self.parts, self.value, slots, by_row=by_row)
        pages = -(-self.result.width * _ENTRY_BYTES // tile_bytes_of(DataType.UINT32))
        self.parts.buffers.add("order", DataType.UINT32, pages)
        depth = BUFFER_DEPTH * self.result.columns
        self.outputs = [self.parts.buffers.add_tensor(value, depth) for value in op.results]
        kind = op.name.partition(".")[2]
        columns = self.result.columns
        writer = self.parts.tile_writer(
            self.name,
            f"Writes the output tiles ({kind}).",
            self.cores,
            self.outputs,
            columns=columns,
        )
        reader = self._reader(kind)
        return self.parts.program(
            self.name,
            kind,
            self.cores,
            (reader.finish(), writer),
            self._costs(),
            # The compute engine is unused, so that no value is rounded.
            ComputeSettings(fp32_destination=True),
            work_units=self.result.tiles // columns,
            work_unit="output tile" if columns == 1 else "row of output tiles",
        )

    def _reader(self, kind: str) -> MovementKernel:
        kernel = self.parts.data_movement(
            kernel_name("read", self.name),
            Processor.READER,
            f"Sorts the elements of each row of {self.names[self.value]} ({kind}).",
            self.cores,
            tensors=[self.value],
            buffers=[buffer.name for buffer in self.parts.buffers],
            arguments=SHARE,
        )
        builder = kernel.builder
        elements = cache_tiles(kernel, self.source, self.element)
        order = builder.get(
            "blocks.order_rows",
            kernel.buffer("order"),
            kept=self.result.width,
            result_type=RowOrderType(),
            name_hint="order",
            **self._comparison(),
        )
        with kernel.share("tile_row") as unit:
            first, rows = numbered_rows(kernel, self.shape, unit)
            self._reserve(kernel)
            with builder.loop(rows, name_hint="row") as row:
                start = builder.product(builder.sum(first, row), self.shape.width)
                start = builder.named(start, "start")
                builder.op("blocks.row_order.sort", order, elements, start, self.shape.width)
                self._write_row(kernel, elements, order, start, row)
            for name in self.outputs:
                builder.op("cb_push_back", kernel.buffer(name), self.result.columns)
        return kernel

    def _comparison(self) -> dict[str, object]:
        """Comparison that orders elements: NaN is the greatest, except for argmax of float32."""
        data_type = declared_data_type(self.value)
        which = {"ttir.sort": "descending", "ttir.topk": "largest"}.get(self.op.name)
        is_argmax = self.op.name == "ttir.argmax"
        return {
            "number": number_kind(data_type),
            "descending": is_argmax if which is None else bool(self.op.parameter(which)),
            "nan_is_least": is_argmax and data_type is DataType.FLOAT32,
        }

    def _reserve(self, kernel: MovementKernel) -> None:
        """Reserves a row of tiles of each result, and clears partially filled ones."""
        builder = kernel.builder
        self._addresses: list[SSAValue] = []
        is_full = self.shape.height % TILE_SIDE == 0 == self.result.width % TILE_SIDE
        for name, value in zip(self.outputs, self.op.results, strict=True):
            builder.op("cb_reserve_back", kernel.buffer(name), self.result.columns)
            self._addresses.append(kernel.write_pointer(name, f"{name}_tiles"))
            if is_full:
                continue
            with builder.loop(self.result.columns, name_hint="tile_column") as column:
                element = element_word(declared_data_type(value))
                address = self._tile(kernel, name, self._addresses[-1], column)
                kernel.fill(address, 0, 0, 0, element)

    def _tile(
        self, kernel: MovementKernel, name: str, address: SSAValue, column: SSAValue
    ) -> SSAValue:
        """Address of a tile in a row of tiles."""
        builder = kernel.builder
        if self.result.columns == 1:
            return address
        size = builder.get("get_tile_size", kernel.buffer(name))
        return builder.sum(address, builder.product(column, size))

    def _write_row(
        self,
        kernel: MovementKernel,
        elements: SSAValue,
        order: SSAValue,
        start: SSAValue,
        row: SSAValue,
    ) -> None:
        """Writes the first elements of the order, and their indices, to a row of tiles."""
        builder = kernel.builder
        with builder.loop(self.result.columns, name_hint="tile_column") as tile_column:
            first = builder.named(builder.product(tile_column, TILE_SIDE), "first_column")
            targets: list[SSAValue] = []
            for name, value, address in zip(
                self.outputs, self.op.results, self._addresses, strict=True
            ):
                element = element_word(declared_data_type(value))
                tile = self._tile(kernel, name, address, tile_column)
                targets.append(kernel.elements(tile, element, f"{name}_target"))
            columns = kernel.filled(first, self.result.width, "columns")
            with builder.loop(columns, name_hint="column") as column:
                position = builder.sum(first, column)
                place = builder.get("blocks.row_order.place", order, position, name_hint="origin")
                *values, indices = targets
                for target in values:
                    number = builder.sum(start, place)
                    builder.op(
                        "blocks.tile_cache.copy_element", elements, number, target, row, column
                    )
                builder.op("blocks.set_element", indices, row, column, place)

    def _costs(self) -> Costs:
        if self.source.by_row:
            rows = prod(shape_of(self.value.type)[:-1]) * self.shape.columns
            read = rows * row_bytes(self.shape, declared_data_type(self.value))
            least = {self.value: min(read, tensor_bytes(self.value))}
            return self.parts.costs({self.value: read}, least_reads=least)
        return self.parts.costs({self.value: tensor_bytes(self.value)})


# Programs of scatter along rows.
#
# One kernel per core copies a row of input tiles to the result, and writes or accumulates the
# elements one after the other, by their bits or with arithmetic in software, as the kernels of the
# library do (`reader_scatter.cpp`). A unit of work is a row of tiles, or as large a part of it as
# fits into L1, for which the indices are read again.

_OVERWRITING = "invalid"
"""Scatter reduction in which the last element wins."""
_INDICES = (DataType.INT32, DataType.UINT32)


def unsupported_scatter(op: CatalogueOp) -> str | None:
    """Returns the reason for which a scatter has no device program; None if it has one."""
    shape, index = op.shape("input"), op.shape("index")
    data_type = declared_data_type(op.operand("input"))
    types = {declared_data_type(v) for v in (op.operand("source"), op.results[0])}
    if TILE_FORMATS[data_type.mlir].shares_exponent or types != {data_type}:
        return f"'{op.name}' of {data_type.mlir} has no lowering"
    if declared_data_type(op.operand("index")) not in _INDICES:
        return f"'{op.name}' has no lowering for other indices than those of 32 bits"
    dim = op.parameter("dim")
    if not shape or dim is None or dim % len(shape) != len(shape) - 1:
        return f"'{op.name}' has no lowering"
    if index[:-1] != shape[:-1] or op.shape("source") != index:
        return f"'{op.name}' of a part of the rows has no lowering"
    return None


def _columns_at_once(columns: int, data_type: DataType) -> int:
    """Number of tiles of a row that fit into L1 twice, a divisor of the row length."""
    most = MOST_ROW_BYTES // (DOUBLE * tile_bytes_of(data_type))
    return next(size for size in range(min(columns, most), 0, -1) if columns % size == 0)


def lower_scatter(
    group: Group, names: Mapping[SSAValue, str], name: str, cores: CoreRange
) -> Lowered:
    """Lowers a group that is one scatter along the last dimension to a program."""
    op = group.root
    assert op is not None
    value, index, source = (op.operand(each) for each in ("input", "index", "source"))
    parts = ProgramParts(names, [value, index, source], op.results)
    shape, count = TiledShape(op.result_shape), op.shape("index")[-1]
    data_type = declared_data_type(value)
    reduction = op.parameter("scatter_reduce_type").lower()
    # Elements of a row are read in order, so a few cached tiles are enough.
    by_row = has_numbered_rows(TiledShape(op.shape("index")))
    slots = slots_for(2, DataType.FLOAT32)
    indices, elements = (source_of(parts, v, slots, by_row=by_row) for v in (index, source))
    columns = _columns_at_once(shape.columns, data_type)
    chunks = shape.columns // columns
    output = parts.buffers.add_tensor(op.results[0], DOUBLE * columns)
    kernel = parts.data_movement(
        kernel_name("read", name),
        Processor.READER,
        f"Writes {parts.names[source]} to the places in {parts.names[value]} that "
        f"{parts.names[index]} names (scatter).",
        cores,
        tensors=parts.inputs,
        buffers=[buffer.name for buffer in parts.buffers],
        arguments=SHARE,
    )
    builder = kernel.builder
    index_cache = cache_tiles(kernel, indices, element_word(DataType.INT32))
    element_cache = cache_tiles(kernel, elements, element_word(data_type))
    with kernel.share("tile_row" if chunks == 1 else "unit") as unit:
        chunk, tile_row = kernel.divided(unit, chunks, "chunk", "tile_row")
        first, rows = numbered_rows(kernel, shape, builder.value(tile_row))
        builder.op("cb_reserve_back", kernel.buffer(output), columns)
        address = kernel.write_pointer(output, f"{output}_tiles")
        tile_bytes = builder.get("get_tile_size", kernel.buffer(output), name_hint="tile_bytes")
        with builder.loop(columns, name_hint="tile_column") as column:
            page = builder.sum(builder.product(unit, columns), column)
            tile = builder.sum(address, builder.product(column, tile_bytes))
            kernel.read_page(page, parts.names[value], tile)
        builder.op("noc_async_read_barrier")
        target = kernel.elements(address, element_word(data_type))
        first_column = kernel.product(chunk, columns * TILE_SIDE, "first_column")
        with builder.loop(rows, name_hint="row") as row:
            start = builder.product(builder.sum(first, row), count)
            builder.op(
                "blocks.scatter_row",
                index_cache,
                element_cache,
                builder.named(start, "start"),
                count,
                target,
                row,
                first_column,
                width=shape.width,
                columns=columns * TILE_SIDE,
                number=number_kind(data_type),
                reduction="none" if reduction == _OVERWRITING else reduction,
            )
        builder.op("cb_push_back", kernel.buffer(output), columns)
    writer = parts.tile_writer(
        name, "Writes the output tiles (scatter).", cores, [output], columns=columns
    )
    reads = {value: tensor_bytes(value)}
    for operand in (index, source):
        tiled = TiledShape(shape_of(operand.type))
        of_rows = chunks * prod(op.shape("index")[:-1]) * tiled.columns
        reads[operand] = of_rows * row_bytes(tiled, declared_data_type(operand))
    return parts.program(
        name,
        "scatter",
        cores,
        (kernel.finish(), writer),
        parts.costs(reads, least_reads={v: min(n, tensor_bytes(v)) for v, n in reads.items()}),
        # The compute engine is unused, so that no value is rounded.
        ComputeSettings(fp32_destination=True),
        work_units=shape.tiles // columns,
        work_unit="output tile" if columns == 1 else "row of output tiles",
    )
