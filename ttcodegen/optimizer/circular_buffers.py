"""L1 bytes of the circular buffers of calls.

The sizes follow the program factories of tt-metal and are checked against measured calls.
`call.matmul_buffers` has the rule for matmuls.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.dialects.ttcore.shards import Layout, Memory, Orientation
from ttcodegen.dialects.ttcore.tile import TILE_SIDE, tiles_along
from ttcodegen.dialects.ttnn.placement import TensorPlacement
from ttcodegen.dialects.ttnn.program_configs import SDPA
from ttcodegen.layout.collapse import align_up
from ttcodegen.layout.placements import (
    element_bits,
    row_bytes,
    shard_bytes,
    tile_bytes,
    tile_bytes_of,
)
from ttcodegen.ops.core.definition import call_has_trait, overwrites
from ttcodegen.ops.core.traits import Trait
from ttcodegen.ops.elementwise.binary import OPERAND_ACTIVATIONS
from ttcodegen.optimizer.call import BF16_TILE, F32_TILE, ROW_ALIGNMENT, LibraryCall, stream_bytes
from ttcodegen.optimizer.movement_buffers import (
    embedded,
    heads_joined,
    heads_split,
    pool_buffers,
    reordering_buffers,
    rotated,
    rotated_by_tables,
)
from ttcodegen.optimizer.programs.attention_and_norms import DecodeAttention, has_residual
from ttcodegen.optimizer.programs.matmul import largest_divisor
from ttcodegen.systems.cards import performance_of
from ttcodegen.systems.description import ChipDescription
from ttcodegen.transforms.ttnn.call_settings import DECODING

BF4_TILE = tile_bytes_of(DataType.BFLOAT4_B)
READ_AT_ONCE = 4_096
"""Bytes of rows that a slice reads before a barrier, unless a single row is longer."""
WRITTEN_AT_ONCE = 32_768
"""Bytes of rows that a pad writes before a barrier."""
ROW_TAIL = 128
"""Padding bytes after each row-major row in the buffers of reshape and repeat."""
ROW_LIMIT = 524_288
"""Maximum bytes of each buffer of tilize and untilize."""


def circular_buffers(call: LibraryCall, chip: ChipDescription) -> int | None:
    """Returns the bytes of a call's largest program; None if its factory is not modelled."""
    if all(placement.memory is Memory.HOST for placement in call.results) and call.results:
        return 0  # The host reads tensors without a device program.
    if not call.operands:
        return 0 if call_has_trait(call.name, Trait.USES_HOST) else None
    if not (call.results or overwrites(call.name)):
        return None
    rule = _RULES.get(call.name)
    return None if rule is None else rule(call, chip)


def _row(placement: TensorPlacement) -> int:
    """Bytes of a row of a tensor or its shards; block floats are counted as floats."""
    if placement.data_type.is_block_float:
        placement = placement.with_(data_type=DataType.FLOAT32)
    return row_bytes(placement)


def _page(placement: TensorPlacement) -> int:
    """Bytes of a page: a tile or a row."""
    return tile_bytes(placement) if placement.layout is Layout.TILE else _row(placement)


def _shard_bytes(placement: TensorPlacement) -> int:
    return shard_bytes(placement, ROW_ALIGNMENT)


def _in_l1_shards(placement: TensorPlacement) -> bool:
    return placement.shards is not None and placement.buffer_type == "l1"


def _have_same_shards(a: TensorPlacement, b: TensorPlacement) -> bool:
    """Returns whether both have the same shards in L1, which programs alias as buffers."""
    return _in_l1_shards(a) and a.shards == b.shards and a.memory_layout == b.memory_layout


def moved(source: TensorPlacement, target: TensorPlacement, chip: ChipDescription) -> int:
    """Bytes of a move to another placement."""
    if _is_copied(source, target):
        row = align_up(_row(source), chip.noc_dram_address_align_bytes)
        return row + 2 * _padded_row(target, chip)
    if source.shards is None and target.shards is not None:
        page = _page(source) if source.layout is Layout.TILE else _row(target)
        size = stream_bytes(page, chip)
        # Shards for DRAM are gathered in L1 first, as are elements before their conversion.
        gathered = source.data_type != target.data_type or target.buffer_type == "dram"
        as_it_was = target.with_(data_type=source.data_type)
        return size + (_shard_bytes(as_it_was) if gathered else 0)
    if _in_l1_shards(source) and target.shards is None:
        same = source.data_type == target.data_type
        return 0 if same else _shard_bytes(source.with_(data_type=target.data_type))
    if source.shards is not None and target.shards is not None:
        return _resharded(source, target, chip)
    if source.layout is Layout.TILE:
        double = 2 * tile_bytes(source)
        return double + (2 * tile_bytes(target) if source.data_type != target.data_type else 0)
    return _row(source) + 2 * _row(target)


def _is_copied(source: TensorPlacement, target: TensorPlacement) -> bool:
    """Returns whether a program copies rows one by one, because rows of shards are not aligned."""
    in_shards = [p for p in (source, target) if _in_l1_shards(p)]
    if not in_shards or source.layout is Layout.TILE or source == target:
        return False
    # Parts of shards of any length can be written to pages of an interleaved tensor.
    rows = (source,) if target.shards is None else (source, target)
    return any(_row(p) % ROW_ALIGNMENT for p in rows)


def _padded_row(placement: TensorPlacement, chip: ChipDescription) -> int:
    """Stride of rows in bytes, with their alignment."""
    in_l1 = placement.buffer_type == "l1"
    alignment = ROW_ALIGNMENT if in_l1 else chip.noc_dram_address_align_bytes
    return align_up(_row(placement), alignment)


def _resharded(source: TensorPlacement, target: TensorPlacement, chip: ChipDescription) -> int:
    if source.buffer_type == target.buffer_type == "dram":
        return _page(source)
    if source.data_type != target.data_type:
        return 2 * (_page(source) + _page(target))
    if source.layout is Layout.TILE or _row(source) == _row(target):
        return 0
    if source.buffer_type == "dram":
        return _row(source) + 2 * _row(target)
    size = stream_bytes(_row(target), chip)
    return size + (_shard_bytes(target) if target.buffer_type == "dram" else 0)


def _move(call: LibraryCall, chip: ChipDescription) -> int:
    return moved(call.operands[0], call.result, chip)


def _tiles_across(placement: TensorPlacement) -> int:
    return tiles_along(placement.shape[-1]) if placement.shape else 1


def _to_layout(call: LibraryCall) -> int:
    """Buffers for tile rows of both tensors up to `ROW_LIMIT`; shards are converted in place."""
    source, target = call.operands[0], call.result
    if source.layout is target.layout:
        return 0
    if _have_same_shards(source, target) and (
        target.layout is Layout.ROW_MAJOR or source.memory_layout == "height_sharded"
    ):
        return 0
    return tilized_bytes(source, target)


def tilized_bytes(source: TensorPlacement, target: TensorPlacement) -> int:
    """Bytes of tilizing or untilizing into another placement."""
    out_tiles = target.with_(layout=Layout.TILE)
    in_tiles = source.with_(layout=Layout.TILE)
    if target.layout is not Layout.TILE and _in_l1_shards(source):
        assert source.shards is not None
        height, width = (tiles_along(size) for size in source.shards.shape)
        return width * tile_bytes(out_tiles) * (2 if height > 1 else 1)
    across = _tiles_across(source)
    return sum(min(across * tile_bytes(p), ROW_LIMIT) for p in (in_tiles, out_tiles))


def _typecast(call: LibraryCall) -> int:
    source, target = call.operands[0], call.result
    sizes = [_part_of_page(p) for p in (source, target)]
    to_floats = target.layout is Layout.ROW_MAJOR and target.data_type.is_block_float
    if _have_same_shards(source, target) and sizes[0] == sizes[1] and not to_floats:
        return 0
    return 2 * sum(sizes)


def _part_of_page(placement: TensorPlacement) -> int:
    """Bytes of a page; a row counts at most as many elements as a tile."""
    if placement.layout is Layout.TILE:
        return tile_bytes(placement)
    return min(_row(placement), TILE_SIDE * TILE_SIDE * element_bits(placement) // 8)


def _reshape(call: LibraryCall) -> int | None:
    """Tiles with a table of their parts; rows in buffers of both row lengths."""
    source, target = call.operands[0], call.result
    if source.layout is Layout.TILE:
        # Tensors that are untilized in between are sharded.
        return 2 * tile_bytes(source) + 2 * BF4_TILE
    rows = [_row(p.with_(shards=None)) for p in (source, target)]
    return 2 * (2 * rows[0] + ROW_TAIL) + 2 * (rows[1] + ROW_ALIGNMENT)


def _holds_whole_rows(placement: TensorPlacement) -> bool:
    """Returns whether shards hold whole rows; True for interleaved tensors."""
    return placement.shards is None or placement.shards.shape[1] >= placement.shape[-1]


def _is_aligned(placement: TensorPlacement) -> bool:
    return all(size % TILE_SIDE == 0 for size in placement.shape[-2:])


def _slice(call: LibraryCall, chip: ChipDescription) -> int:
    """Copied pages; slices that are not aligned to tiles are computed in row-major form."""
    source, result = call.operands[0], call.result
    if source.shape == result.shape:
        return 0
    strided = any(step != 1 for step in call.attributes.get("step", ()))
    if source.layout is Layout.ROW_MAJOR:
        rows = source.shards is not None and result.shards is not None
        if strided and not rows:
            return 2 * _row(result.with_(shards=None))
        return 0 if rows else _sliced_rows(result, chip)
    if _is_aligned(result) and not strided:
        return 2 * tile_bytes(source)
    as_rows = source.with_(layout=Layout.ROW_MAJOR)
    return max(
        tilized_bytes(source, as_rows), tilized_bytes(result.with_(layout=Layout.ROW_MAJOR), result)
    )


def _sliced_rows(result: TensorPlacement, chip: ChipDescription) -> int:
    """Double-buffered rows that are read before a barrier."""
    row = _padded_row(result.with_(shards=None), chip)
    at_once = min(1 << max(READ_AT_ONCE // row, 1).bit_length() - 1, TILE_SIDE)
    return 2 * at_once * row


def _concat(call: LibraryCall) -> int:
    source, result = call.operands[0], call.result
    if _in_l1_shards(result):
        # For row-major shards and more than two operands, the shards themselves are the buffers.
        if result.layout is Layout.ROW_MAJOR or len(call.operands) > 2:
            return 0
        return sum(_shard_bytes(operand) for operand in call.operands) + 2 * _shard_bytes(result)
    if source.layout is Layout.TILE:
        return 2 * tile_bytes(source)
    return 2 * _row(result)


def _pad(call: LibraryCall) -> int:
    source, result = call.operands[0], call.result
    if source.layout is Layout.TILE:
        # Block floats are padded as 16 bits.
        return 5 * max(tile_bytes(source), BF16_TILE)
    row = align_up(_row(result.with_(shards=None)), ROW_ALIGNMENT)
    kinds = {p.memory_layout if _in_l1_shards(p) else None for p in (source, result)}
    if kinds == {"height_sharded"}:
        return row
    rows = 1 << (-(-WRITTEN_AT_ONCE // row) - 1).bit_length()
    return (max(rows, TILE_SIDE // 2) + 1) * row


def _reduction(call: LibraryCall) -> int | None:
    source, result = call.operands[0], call.result
    scaler = F32_TILE if source.data_type.mlir == "f32" else BF16_TILE
    in_tiles = source.with_(layout=Layout.TILE)
    size = 2 * tile_bytes(in_tiles) + scaler + 2 * tile_bytes(result)
    rank = len(source.shape)
    axes = {axis % rank for axis in call.attributes.get("dim_arg") or range(rank)}
    if axes and min(axes) < rank - 2:
        size += 2 * tile_bytes(result)
    if source.layout is Layout.TILE:
        columns = source.memory_layout == result.memory_layout == "width_sharded"
        in_place = columns and axes == {rank - 2} and _in_l1_shards(source)
        # Width shards are reduced along columns in place.
        return size - 2 * tile_bytes(result) if in_place else size
    return max(size, tilized_bytes(source, in_tiles))


def elementwise(call: LibraryCall) -> int:
    """Two tiles per tensor and one for a scalar; none if all have the same shards.

    Activated operands have extra buffers (binary_ng_program_factory.cpp)."""
    in_shards = all(p.shards is not None for p in (*call.operands, call.result))
    names = map(call.attributes.get, OPERAND_ACTIVATIONS)
    activated = [
        tile_bytes(operand)
        for operand, name in zip(call.operands, names, strict=False)
        if name is not None
    ]
    return _elementwise(call) + sum(activated) * (8 if in_shards else 1)


def _elementwise(call: LibraryCall) -> int:
    result, operands = call.result, call.operands
    scalar = len(operands) == 1 and call.name in _BINARY
    in_shards = any(p.shards is not None for p in operands)
    alike = (
        all(_have_same_shards(p, result) for p in operands)
        and len({p.shape for p in operands}) == 1
    )
    if result.layout is Layout.ROW_MAJOR and in_shards and len(operands) == 2:
        in_tiles = result.with_(layout=Layout.TILE)
        return 2 * _tiles_across(result) * tile_bytes(in_tiles)
    one = tile_bytes(result)
    if scalar and result.layout is Layout.ROW_MAJOR and in_shards and not _holds_whole_rows(result):
        return 2 * _tiles_across(result) * tile_bytes(result.with_(layout=Layout.TILE))
    if alike and (result.layout is Layout.TILE or _shard_bytes(result) % one == 0):
        return one if scalar else 0
    # Scalars for block floats are floats.
    number = max(one, BF16_TILE) if result.data_type.is_block_float else one
    size = sum(2 * tile_bytes(p) for p in (*operands, result)) + (number if scalar else 0)
    for axis in (-2, -1):
        most = max(((1, 1, *p.shape)[axis] for p in operands), default=1)
        if any((1, 1, *p.shape)[axis] == 1 < most for p in operands):
            # Operands that broadcast within tiles are expanded first.
            return size + 2 * tile_bytes(operands[-1])
    return size


def softmax(call: LibraryCall, chip: ChipDescription) -> int | None:
    """softmax_program_factory_attention_optimized.cpp: rows that do not fit are read in parts."""
    source = call.operands[0]
    rank = len(source.shape)
    axis: int = call.attributes.get("dimension", -1) % rank
    config = call.compute_config
    wide = source.data_type.mlir == "f32" if config is None else config.fp32_dest_acc_en
    between = F32_TILE if wide else BF16_TILE
    if axis >= max(rank - 2, 0) and (axis == rank - 2 or rank > _MOST_DIMENSIONS):
        return _general_softmax(call, tiles_along(source.shape[axis]), between)
    if axis != rank - 1:
        # softmax_program_factory_general_c_large.cpp.
        return 5 * (tile_bytes(source) + (F32_TILE if wide else tile_bytes(source)))
    across = _tiles_across(source)
    block = largest_divisor(across, 4 if wide else 8)
    rows = across
    size = rows * (tile_bytes(source) + 2 * between) + 2 * block * tile_bytes(call.result)
    if size + 5 * between > 0.9 * chip.l1_size:
        rows = 80 // block * block
        size = rows * (tile_bytes(source) + 2 * between) + 2 * block * tile_bytes(call.result)
        size += 3 * between
    return size + 3 * between + BF16_TILE + max(tile_bytes(source), BF16_TILE)


_MOST_DIMENSIONS = 4
"""Maximum rank for the optimized softmax programs."""


def _general_softmax(call: LibraryCall, count: int, between: int) -> int:
    """softmax_program_factory_general_h_small.cpp, _w_small.cpp (higher ranks) and _large.cpp."""
    source, result = call.operands[0], call.result
    each = tile_bytes(source) + tile_bytes(result) + 2 * between
    others = 3 * max(tile_bytes(source), BF16_TILE)
    if count * each + 6 * between < ROW_LIMIT + 6 * BF16_TILE:
        return count * each + 3 * between + others
    return 2 * (tile_bytes(source) + tile_bytes(result)) + 6 * between + others


def norm(call: LibraryCall, chip: ChipDescription) -> int | None:
    """layernorm_op_multi_core.cpp: sums have 32 bits by default; vectors in tiles."""
    source = call.operands[0]
    if source.layout is not Layout.TILE:
        return None
    vectors = call.operands[1:-1] if has_residual(call) else call.operands[1:]
    config = call.compute_config
    wide = config is None or config.fp32_dest_acc_en
    between = F32_TILE if wide else BF16_TILE
    if source.shards is not None:
        return _sharded_norm(call, between)
    block = 4 if wide else 8
    across = align_up(_tiles_across(source), block)
    residual = call.operands[-1] if has_residual(call) else None
    is_rms = call.name == "rms_norm"

    def size(row: int, between_rows: int) -> int:
        total = row * tile_bytes(source) + 2 * block * tile_bytes(call.result)
        if residual is not None:
            # Both addends are read in blocks, and the sum replaces the input.
            total += 2 * block * (tile_bytes(source) + tile_bytes(residual))
            total += row * (between - tile_bytes(source))
        total += sum(row * tile_bytes(vector) for vector in vectors)
        total += (2 * block * between if vectors else 0) + 4 * BF16_TILE
        total += (10 if is_rms else 12) * between
        return total + row * between * between_rows

    whole = size(across, 1 if is_rms else 2)
    if whole + 4 * between < 0.95 * chip.l1_size:
        return whole
    most = 56 if vectors or source.data_type.mlir == "f32" else 112
    in_parts = size(most * BF16_TILE // between, 1 if is_rms and residual is not None else 2)
    return in_parts + between


def _sharded_norm(call: LibraryCall, between: int) -> int:
    """sharded_layernorm_factory_helpers.cpp, without stages."""
    source = call.operands[0]
    assert source.shards is not None
    high, wide = (tiles_along(size) for size in source.shards.shape)
    box = source.shards.bounding_box()
    columns, rows = box.columns, box.rows
    if source.memory_layout == "block_sharded":
        column_major = source.shards.orientation is Orientation.COL_MAJOR
        blocks, workers = (rows, rows) if column_major else (columns, columns)
    else:
        # On several rows of cores, means are gathered in two stages.
        blocks = columns + rows - 1 if rows > 1 else columns
        workers = columns
    given = call.operands[1:-1] if has_residual(call) else call.operands[1:]
    vectors = sum(wide * max(tile_bytes(vector), BF16_TILE) for vector in given)
    if any(vector.shape == source.shape for vector in given):
        vectors = 0
    partial, external = high * between, blocks * between
    each = -(-high // workers) * between
    return (
        vectors + 2 * high * wide * between + 5 * partial + 2 * external
        + 2 * BF16_TILE + 2 * each
    )  # fmt: skip


def attention(call: LibraryCall, chip: ChipDescription) -> int:
    """sdpa_program_factory.cpp: chunks of queries and keys, of 32 rows by default."""
    config = call.program_config
    q = k = 1
    cores = chip.cores
    if isinstance(config, SDPA):
        q, k = (max(size // TILE_SIDE, 1) for size in (config.q_chunk_size, config.k_chunk_size))
        cores = config.compute_with_storage_grid_size.cores
    query, key, value = call.operands[:3]
    depth, scores = _tiles_across(query), q * k
    chunks = prod(query.shape[:-2]) * -(-tiles_along(query.shape[-2]) // q)
    size = q * depth * tile_bytes(query) * (2 if chunks > cores else 1)
    size += 2 * k * depth * (tile_bytes(key) + tile_bytes(value))
    size += scores * BF16_TILE + 2 * q * depth * BF16_TILE + 5 * q * BF16_TILE
    size += q * depth * tile_bytes(call.result) + 2 * BF16_TILE
    if len(call.operands) > 3:
        return size + 2 * scores * tile_bytes(call.operands[3])
    if call.attributes.get("is_causal", True):
        return size + 2 * BF16_TILE
    is_whole = tiles_along(key.shape[-2]) % k == 0
    return size + (0 if is_whole else 2 * scores * BF4_TILE)


def _cache_update(call: LibraryCall) -> int:
    """update_cache_multi_core_program_factory.cpp, paged_update_cache_program_factory.cpp: tile
    rows of the cache, untilized with the new row, and the results of all users."""
    cache, rows, *numbers = call.operands
    across = _tiles_across(cache)
    if call.name == "update_cache":
        of_users = min(2, cache.shape[0])
        users = tiles_along(rows.shape[-2]) * TILE_SIDE
        size = 0 if _in_l1_shards(rows) else 2 * across * tile_bytes(rows)
    else:
        of_users, users = 1, rows.shape[1]
        # Positions take a page as large as a tile, a page table one as large as its row.
        size = tile_bytes(numbers[0].with_(layout=Layout.TILE)) if numbers else 0
        size += 4 * numbers[1].shape[-1] if len(numbers) > 1 else 0
    config = call.compute_config
    between = F32_TILE if config is not None and config.fp32_dest_acc_en else BF16_TILE
    size += 2 * of_users * across * (tile_bytes(cache) + 2 * between)
    return size + users * across * tile_bytes(cache)


def _cache_fill(call: LibraryCall) -> int:
    """fill_cache_multi_core_program_factory.cpp."""
    rows = call.operands[1]
    return 0 if _in_l1_shards(rows) else 2 * tile_bytes(rows)


def _decode_attention(call: LibraryCall, chip: ChipDescription) -> int:
    return DecodeAttention.of(call, chip.cores).circular_buffers(call)


def _permute(call: LibraryCall, chip: ChipDescription) -> int:
    return reordering_buffers(call, chip.cores, performance_of(chip).l1_bank)


def _composite_to_layout(call: LibraryCall, chip: ChipDescription) -> int:
    """Change of layout, placement and data type."""
    source, target = call.operands[0], call.result
    if source.layout is target.layout:
        return _move(call, chip)
    return tilized_bytes(source, target)


def _repeat(call: LibraryCall) -> int:
    """repeat_program_factory_last_dim.cpp, _higher_dim.cpp: rows; tiles are untilized first."""
    source, result = call.operands[0], call.result
    if source.shape == result.shape:
        return 0
    rows, repeated = (_as_rows(p) for p in (source, result))
    is_longer = source.shape[-1:] != result.shape[-1:]
    size = 2 * (_row(repeated) if is_longer else _row(rows) + ROW_TAIL)
    if source.layout is Layout.TILE:
        interleaved = source.with_(shards=None)
        return max(size, tilized_bytes(interleaved, rows), tilized_bytes(repeated, result))
    return size


def _as_rows(placement: TensorPlacement) -> TensorPlacement:
    """Returns the placement of the untilized tensor: interleaved, block floats in 16 bits."""
    kind = placement.data_type
    return placement.with_(
        layout=Layout.ROW_MAJOR,
        memory_layout="interleaved",
        shards=None,
        data_type=DataType.BFLOAT16 if kind.is_block_float else kind,
    )


def _embedding(call: LibraryCall, chip: ChipDescription) -> int:
    """Embedding; rows looked up by tiled indices are tilized afterwards, height shards in place."""
    result, size = call.result, embedded(call, chip)
    becomes_tiles = call.operands[0].layout is result.layout is Layout.TILE
    if becomes_tiles and result.memory_layout != "height_sharded":
        return max(size, tilized_bytes(_as_rows(result), result))
    return size


def _prod(call: LibraryCall) -> int:
    """prod_nc_program_factory.cpp, prod_all_program_factory.cpp: three double-buffered tiles."""
    return 6 * _page(call.operands[0])


def _argmax(call: LibraryCall, chip: ChipDescription) -> int:
    """argmax_single_core_program_factory.cpp: a page of the operand and one of indices;
    argmax_multi_core_program_factory.cpp: a part of a row, and the candidates of each core."""
    (source,) = call.operands
    if not call.attributes.get("use_multicore"):
        return _page(source) + max(_row(call.result), 4)
    cores, part = argmax_cores(call, chip)
    count = 1 if call.attributes.get("keep_dim") or len(source.shape) < 2 else source.shape[-2]
    size = element_bits(source) // 8
    indices, values = (align_up(count * each, ARGMAX_ALIGNMENT) for each in (4, size))
    return align_up(part * size, ARGMAX_ALIGNMENT) + indices + cores * (indices + values)


ARGMAX_ALIGNMENT = 32
"""Alignment of each buffer of argmax in bytes."""
_ARGMAX_ELEMENT_BYTES = 2
"""Element bytes that argmax assumes when it divides rows, whatever the data type."""


def argmax_cores(call: LibraryCall, chip: ChipDescription) -> tuple[int, int]:
    """Returns the number of cores that share a row in argmax, and elements of the largest part."""
    if not call.attributes.get("use_multicore"):
        return 1, call.operands[0].shape[-1]
    (source,) = call.operands
    in_dram = source.buffer_type == "dram"
    alignment = chip.noc_dram_address_align_bytes if in_dram else chip.noc_l1_address_align_bytes
    unit = alignment // _ARGMAX_ELEMENT_BYTES
    units = -(-source.shape[-1] // unit)
    cores = min(chip.cores, units)
    return cores, -(-units // cores) * unit


def _none(call: LibraryCall) -> int:
    return 0


_BINARY = frozenset({"add", "subtract", "multiply", "divide", "pow", "maximum", "minimum"})

_Rule = Callable[[LibraryCall, ChipDescription], int | None]


def _on_any(rule: Callable[[LibraryCall], int | None]) -> _Rule:
    """Returns a rule for programs whose buffers do not depend on the chip."""
    return lambda call, chip: rule(call)


_RULES: dict[str, _Rule] = {
    "to_layout": _on_any(_to_layout),
    "typecast": _on_any(_typecast),
    **dict.fromkeys(("concat", "concat_row_major"), _on_any(_concat)),
    "pad": _on_any(_pad),
    "reshape": _on_any(_reshape),
    **dict.fromkeys(("relu", "where"), _on_any(elementwise)),
    **dict.fromkeys(("sum", "mean", "max", "min"), _on_any(_reduction)),
    "prod": _on_any(_prod),
    "repeat": _on_any(_repeat),
    "concatenate_heads": _on_any(heads_joined),
    "split_query_key_value_and_split_heads": _on_any(heads_split),
    "rotary_embedding": _on_any(rotated),
    **dict.fromkeys(("update_cache", "paged_update_cache"), _on_any(_cache_update)),
    "fill_cache": _on_any(_cache_fill),
    **dict.fromkeys(("nlp_create_qkv_heads_decode", "nlp_concat_heads_decode"), _on_any(_none)),
    **dict.fromkeys(_BINARY, _on_any(elementwise)),
    **dict.fromkeys(("to_memory_config", "to_device"), _move),
    "composite_to_layout": _composite_to_layout,
    "slice_static": _slice,
    **dict.fromkeys(("permute", "permute_row_major"), _permute),
    "transpose": _permute,
    "embedding": _embedding,
    "softmax": softmax,
    **dict.fromkeys(("layer_norm", "rms_norm", "group_norm"), norm),
    "scaled_dot_product_attention": attention,
    **dict.fromkeys(DECODING, _decode_attention),
    **dict.fromkeys(("max_pool2d", "avg_pool2d"), pool_buffers),
    "rotary_embedding_llama": rotated_by_tables,
    "argmax": _argmax,
}
