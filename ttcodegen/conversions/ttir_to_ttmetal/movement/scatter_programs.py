"""Programs that write elements to the places of rows that indices name.

One kernel on each core reads a row of tiles of the input into that of the result, and writes the
elements there one after the other, by their bits or with arithmetic in software, as the kernels of
the library do (`reader_scatter.cpp`). A unit of work is a row of tiles, or as large a part of it as
fits into L1, for which the indices are read again.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from xdsl.ir import SSAValue

from ttcodegen.conversions.ttir_to_ttmetal.grouping.grouping import Group
from ttcodegen.conversions.ttir_to_ttmetal.movement.order_programs import (
    MOST_ROW_BYTES,
    number_kind,
    numbered_rows,
)
from ttcodegen.conversions.ttir_to_ttmetal.movement.programs import (
    cache_tiles,
    has_numbered_rows,
    row_bytes,
    slots_for,
    source_of,
)
from ttcodegen.conversions.ttir_to_ttmetal.parts.circular_buffers import DOUBLE
from ttcodegen.conversions.ttir_to_ttmetal.parts.data_movement import element_word
from ttcodegen.conversions.ttir_to_ttmetal.parts.program_parts import (
    SHARE,
    Lowered,
    ProgramParts,
    tensor_bytes,
)
from ttcodegen.dialects.core.datatypes import DataType, shape_of
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttcore.cores import CoreRange
from ttcodegen.dialects.ttcore.tile import TILE_FORMATS, TILE_SIDE
from ttcodegen.dialects.ttmetal.programs import ComputeSettings, Processor
from ttcodegen.dialects.ttnn.placement import declared_data_type
from ttcodegen.layout.tiled_shape import TiledShape, tile_bytes_of
from ttcodegen.naming.programs import kernel_name

_OVERWRITING = "invalid"
"""The reduction of a scatter whose last element stays."""
_INDICES = (DataType.INT32, DataType.UINT32)


def unsupported_scatter(op: CatalogueOp) -> str | None:
    """Why there is no program for a scatter, None if there is one."""
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
    """How many tiles of a row of so many L1 has room for, twice: a number that divides them."""
    most = MOST_ROW_BYTES // (DOUBLE * tile_bytes_of(data_type))
    return next(size for size in range(min(columns, most), 0, -1) if columns % size == 0)


def lower_scatter(
    group: Group, names: Mapping[SSAValue, str], name: str, cores: CoreRange
) -> Lowered:
    """The program of a group that is one scatter along the last dimension."""
    op = group.root
    assert op is not None
    value, index, source = (op.operand(each) for each in ("input", "index", "source"))
    parts = ProgramParts(names, [value, index, source], op.results)
    shape, count = TiledShape(op.result_shape), op.shape("index")[-1]
    data_type = declared_data_type(value)
    reduction = op.parameter("scatter_reduce_type").lower()
    # Elements of a row are read in order: the tiles of some rows of tiles are enough.
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
        # The compute engine does nothing, so that nothing is rounded.
        ComputeSettings(fp32_destination=True),
        work_units=shape.tiles // columns,
        work_unit="output tile" if columns == 1 else "row of output tiles",
    )
