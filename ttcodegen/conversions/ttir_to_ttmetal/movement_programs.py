"""Programs that put elements elsewhere: the reader puts each tile of the result together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from xdsl.ir import SSAValue

from ttcodegen.conversions.ttir_to_ttmetal.compute import float_bits
from ttcodegen.conversions.ttir_to_ttmetal.groups import Group
from ttcodegen.conversions.ttir_to_ttmetal.index_maps import Piece, Term, pieces_of
from ttcodegen.conversions.ttir_to_ttmetal.program_parts import (
    SHARE,
    Lowered,
    ProgramParts,
    element_word,
    tensor_bytes,
    tile_bytes,
)
from ttcodegen.dialects.cores import CoreRange
from ttcodegen.dialects.datatypes import DataType, shape_of
from ttcodegen.dialects.operation import CatalogueOp
from ttcodegen.dialects.placement import declared_data_type
from ttcodegen.dialects.programs import ComputeSettings, Costs, Processor
from ttcodegen.dialects.tile import TILE_FORMATS
from ttcodegen.layout.tiled_shape import TiledShape, row_major_strides

SLOTS = 32
"""Tiles that a kernel keeps of each of its sources."""
MOST_CACHED_BYTES = 512 * 1024
"""Of L1, for the tiles kept of all sources."""


def lower_movement(
    group: Group, names: Mapping[SSAValue, str], name: str, cores: CoreRange
) -> Lowered:
    """The program of a group that is one movement."""
    op = group.root
    assert op is not None
    parts = ProgramParts(names, op.operands, op.results)
    pieces = pieces_of(op)
    shape = (1,) * (2 - len(op.result_shape)) + op.result_shape
    data_type = declared_data_type(op.results[0])
    order = [parts.inputs.index(value) for value in op.operands]
    slots = _slots(len(parts.inputs), data_type)
    inputs = [_described(parts, value, slots) for value in parts.inputs]
    context = {
        "inputs": inputs,
        "element": element_word(data_type),
        "slots": slots,
        "output": parts.add_tensor_buffer(op.results[0]),
        "shape": shape,
        "pieces": [_piece(piece, order[piece.source], shape) for piece in pieces],
        "indices": _indices(shape, pieces),
        "fill": _fill(op, data_type),
    }
    return _program(op, parts, "move_elements", context, name, cores)


def lower_embedding(
    group: Group, names: Mapping[SSAValue, str], name: str, cores: CoreRange
) -> Lowered:
    """The program of a group that is one embedding; the indices are 32-bit integers."""
    op = group.root
    assert op is not None
    parts = ProgramParts(names, op.operands, op.results)
    slots = _slots(2, DataType.FLOAT32)
    indices, table = [_described(parts, value, slots) for value in op.operands]
    context = {
        "indices": indices,
        "table": table,
        "element": element_word(declared_data_type(op.results[0])),
        "slots": slots,
        "output": parts.add_tensor_buffer(op.results[0]),
        "height": TiledShape(op.result_shape).height,
    }
    return _program(op, parts, "gather_rows", context, name, cores)


def _slots(sources: int, data_type: DataType) -> int:
    return max(1, min(SLOTS, MOST_CACHED_BYTES // (sources * tile_bytes(data_type))))


def _described(parts: ProgramParts, value: SSAValue, slots: int) -> dict[str, object]:
    """What a kernel has to know of a source, for which it gets a circular buffer."""
    shape = TiledShape(shape_of(value.type))
    return {
        "name": parts.add_tensor_buffer(value, slots),
        "tensor": parts.names[value],
        "height": shape.height,
        "width": shape.width,
    }


def _fill(op: CatalogueOp, data_type: DataType) -> int | None:
    """The bits of what surrounds the pieces of a padded tensor."""
    if op.name != "ttir.pad":
        return None
    value = op.parameter("value")
    if not data_type.is_float:
        return int(value) & (2 ** TILE_FORMATS[data_type.mlir].bits - 1)
    bits = float_bits(value)
    if data_type is DataType.FLOAT32:
        return bits
    # To the nearest bf16, to even between two.
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16 & 0xFFFF


def _index_names(rank: int) -> list[str]:
    return [*(f"batch_{axis}" for axis in range(rank - 2)), "row", "column"]


def _indices(shape: Sequence[int], pieces: Sequence[Piece]) -> list[dict[str, str]]:
    """The coordinates of a tile's batch, those that the pieces ask for."""
    tiles = TiledShape(tuple(shape))
    strides = row_major_strides(tiles.grid)
    total = tiles.tiles
    found: list[dict[str, str]] = []
    for axis, size in enumerate(shape[:-2]):
        if size == 1 or not any(_asks_for(piece, axis, shape) for piece in pieces):
            continue
        value = f"tile / {strides[axis]}"
        if strides[axis] * size != total:
            value += f" % {size}"
        found.append({"name": f"batch_{axis}", "value": value})
    return found


def _asks_for(piece: Piece, axis: int, shape: Sequence[int]) -> bool:
    missing = len(shape) - len(piece.low)
    axis -= missing
    if axis < 0:
        return False
    limited = piece.low[axis] > 0 or piece.high[axis] < shape[axis + missing]
    return limited or any(term.stride for term in piece.terms[axis])


def _piece(piece: Piece, source: int, shape: Sequence[int]) -> dict[str, object]:
    missing = len(shape) - len(piece.low)
    low = (0,) * missing + piece.low
    high = (1,) * missing + piece.high
    terms = ((),) * missing + piece.terms
    names = _index_names(len(shape))
    conditions: list[str] = []
    for axis in range(len(shape) - 1):
        if low[axis] > 0:
            conditions.append(f"{names[axis]} >= {low[axis]}")
        if high[axis] < shape[axis]:
            conditions.append(f"{names[axis]} < {high[axis]}")
    outer = [
        text
        for axis in range(len(shape) - 1)
        for text in _terms(names[axis], low[axis], shape[axis], terms[axis])
    ]
    last = terms[-1]
    simple = not last or (len(last) == 1 and last[0].divisor == 1 and last[0].modulus == 0)
    begin = "first_column" if (low[-1], high[-1]) == (0, shape[-1]) else "begin"
    base = [str(piece.base)] if piece.base else []
    start = _terms(begin, low[-1], shape[-1], last) if simple else []
    number = _terms("column", low[-1], shape[-1], last)
    return {
        "source": source,
        "column_low": low[-1],
        "column_high": high[-1],
        "condition": " && ".join(conditions),
        "start": _sum([*base, *outer, *start]),
        "stride": (_unsigned(last[0].stride) if last else "0") if simple else None,
        "number": _sum([*base, *outer, *number]),
    }


def _sum(terms: Sequence[str]) -> str:
    return " + ".join(terms) or "0"


def _unsigned(stride: int) -> str:
    """Numbers of elements are unsigned and wrap around; so a step back is a very long one."""
    return str(stride) if stride >= 0 else f"static_cast<uint32_t>({stride})"


def _terms(name: str, low: int, size: int, terms: Sequence[Term]) -> list[str]:
    index = name if low == 0 else f"({name} - {low})"
    texts: list[str] = []
    for term in terms:
        if not term.stride or size == 1:
            continue
        text = index if term.divisor == 1 else f"{index} / {term.divisor}"
        if term.modulus:
            text = f"{text} % {term.modulus}"
        texts.append(text if term.stride == 1 else f"{text} * {term.stride}")
    return texts


def _program(
    op: CatalogueOp,
    parts: ProgramParts,
    template: str,
    context: Mapping[str, object],
    name: str,
    cores: CoreRange,
) -> Lowered:
    result = parts.names[op.results[0]]
    kind = op.name.partition(".")[2]
    buffers = [buffer.name for buffer in parts.buffers]
    reader = parts.data_movement(
        f"read_{name}",
        Processor.READER,
        f"Puts the tiles of {result} together ({kind}).",
        cores,
        template,
        context,
        tensors=parts.inputs,
        buffers=buffers,
        arguments=SHARE,
    )
    purpose = f"Writes the output tiles of {result} ({kind})."
    writer = parts.tile_writer(name, purpose, cores, buffers[-1:])
    return parts.program(
        name,
        kind,
        cores,
        (reader, writer),
        _costs(op, parts.inputs),
        # Nothing is computed, so that nothing is rounded.
        ComputeSettings(fp32_destination=True),
        work_units=TiledShape(op.result_shape).tiles,
    )


def _costs(op: CatalogueOp, sources: Sequence[SSAValue]) -> Costs:
    """A tile of the result takes as many tiles of the sources as its rows come from at most; one is
    the least."""
    result = TiledShape(op.result_shape)
    size = tile_bytes(declared_data_type(op.results[0]))
    held = sum(tensor_bytes(value) for value in sources)
    kept = min(result.height, 32) if _crosses_rows(op) else 1
    read = result.tiles * size * kept
    written = result.tiles * size
    least = min(held, prod(op.result_shape) * size // 1024 + size)
    return Costs(0, read + written, read, written, least, written, least + written)


def _crosses_rows(op: CatalogueOp) -> bool:
    """Whether neighbouring rows of the result may come from different tiles."""
    return op.name in ("ttir.reshape", "ttir.permute", "ttir.embedding")
