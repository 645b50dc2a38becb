"""Constructors of dataflow buffers, with memory of their own or backed by sharded tensors."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from math import prod

from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.dialects.ttcore.shards import Orientation
from ttcodegen.dialects.ttcore.tile import TILE_SIDE
from ttcodegen.dialects.ttmetal.programs import CIRCULAR_BUFFERS
from ttcodegen.foundation.diagnostics import plural
from ttcodegen.lang.simulator.buffers import (
    DataflowBuffer,
    DFBAllocationGroup,
    Region,
    TensorMemory,
)
from ttcodegen.lang.simulator.context import Node, building_node, current_chip
from ttcodegen.lang.simulator.expressions import Array
from ttcodegen.lang.simulator.locations import error
from ttcodegen.lang.simulator.shapes import Shape, checked_shape, is_integer, shape_text
from ttcodegen.lang.simulator.tensors import Tensor
from ttcodegen.layout.placements import tile_bytes_of

_TILE = (TILE_SIDE, TILE_SIDE)


def make_dfb_allocation_group() -> DFBAllocationGroup:
    """Creates a group of dataflow buffers that share memory."""
    building_node("ttl.make_dfb_allocation_group")
    return DFBAllocationGroup()


def make_dfb(
    dtype: DataType | str,
    shape: int | Shape,
    block_count: int = 2,
    tile: tuple[int, int] = _TILE,
    *,
    allocation_group: DFBAllocationGroup | None = None,
) -> DataflowBuffer:
    """Creates a dataflow buffer of tiles.

    Args:
        dtype: the element type, such as `ttnn.bfloat16` or `"bf16"`.
        shape: shape of a block, in tiles.
        block_count: capacity in blocks.
        tile: rows and columns of a tile, 32 each.
        allocation_group: group of buffers to share memory with.
    """
    what = "ttl.make_dfb"
    node = building_node(what)
    data_type: object = dtype
    if isinstance(dtype, str):
        with suppress(KeyError):
            data_type = DataType.from_mlir(dtype)
    if not isinstance(data_type, DataType):
        raise error(f"{what} takes a data type, such as ttnn.bfloat16, not {dtype!r}")
    check_tile(what, tile)
    blocks = _checked_blocks(shape, block_count, is_tiled=True)
    return _new_buffer(node, data_type, True, *blocks, allocation_group)


def check_tile(what: str, tile: object) -> None:
    """Raises ProgramError unless tiles have the size that the device supports."""
    if tile != _TILE:
        raise error(f"{what} has tiles of {TILE_SIDE}x{TILE_SIDE} elements, not {tile!r}")


def make_dataflow_buffer_like(
    likeness_tensor: Tensor,
    shape: int | Shape,
    block_count: int = 2,
    *,
    allocation_group: DFBAllocationGroup | None = None,
) -> DataflowBuffer:
    """Creates a dataflow buffer with the data type and layout of a tensor.

    Args:
        likeness_tensor: the tensor.
        shape: shape of a block: at least two dimensions, in tiles, if the tensor is tiled, else in
            elements.
        block_count: capacity in blocks.
        allocation_group: group of buffers to share memory with.
    """
    node = building_node("ttl.make_dataflow_buffer_like")
    if not isinstance(likeness_tensor, Tensor):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise error(
            "a dataflow buffer is made in the likeness of a TT-NN tensor, not of a "
            f"{type(likeness_tensor).__name__}"
        )
    data_type, is_tiled = likeness_tensor.data_type, likeness_tensor.is_tiled
    blocks = _checked_blocks(shape, block_count, is_tiled=is_tiled)
    return _new_buffer(node, data_type, is_tiled, *blocks, allocation_group)


def make_tensor_backed_dfb(
    tensor: Tensor,
    shape: int | Shape,
    *,
    block_count: int = 1,
    byte_offset: int = 0,
    allocation_group: DFBAllocationGroup | None = None,
) -> DataflowBuffer:
    """Creates a dataflow buffer whose blocks are the memory of a tensor's shard on the node.

    Args:
        tensor: a tiled tensor in L1, sharded by height, width or blocks.
        shape: shape of a block, in tiles.
        block_count: number of blocks.
        byte_offset: offset of the first block in the shard, a whole number of tiles.
        allocation_group: group of buffers to share memory with.
    """
    what = "ttl.make_tensor_backed_dfb"
    node = building_node(what)
    if not isinstance(tensor, Tensor):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise error(f"{what} takes a TT-NN tensor, not a {type(tensor).__name__}")
    if not tensor.is_tiled or not tensor.memory_config().is_sharded():
        raise error(
            f"{what} takes a tiled tensor in L1 that is sharded by height, width or blocks",
            remedy="ttnn.create_sharded_memory_config places it so",
        )
    if tensor.data_type not in (DataType.BFLOAT16, DataType.FLOAT32):
        raise error(f"{what} takes tensors of bfloat16 and float32, not {tensor.data_type.name}")
    page = tile_bytes_of(tensor.data_type)
    if not is_integer(byte_offset) or int(byte_offset) < 0 or int(byte_offset) % page:
        raise error(f"the byte_offset of {what} is a multiple of {page} bytes, not {byte_offset!r}")
    sizes, count = _checked_blocks(shape, block_count, is_tiled=True)
    first = int(byte_offset) // page
    blocks = _shard_blocks(tensor, node, sizes, count, first)
    is_whole_shard = first == 0 and count * prod(sizes) == _shard_tiles(tensor)
    backing = TensorMemory(tensor, blocks, is_whole_shard)
    return _new_buffer(node, tensor.data_type, True, sizes, count, allocation_group, backing)


def _shard_tiles(tensor: Tensor) -> int:
    """Number of tiles of a shard."""
    shards = tensor.placement.shards
    assert shards is not None
    return prod(shards.shape) // (TILE_SIDE * TILE_SIDE)


def _shard_blocks(
    tensor: Tensor, node: Node, shape: Shape, count: int, first: int
) -> list[tuple[Array, Region]]:
    """Memory of the blocks in a node's shard, and the part of the tensor that each of them covers.

    The blocks begin at tile `first`. Empty if the node has no whole shard.
    """
    shards = tensor.placement.shards
    assert shards is not None
    if prod(tensor.padded.shape[:-2]) != 1:
        raise error("ttl.make_tensor_backed_dfb takes tensors of two dimensions")
    rows, columns = (size // TILE_SIDE for size in shards.shape)
    taken, (*outer, height, width) = prod(shape), shape
    if prod(outer) != 1 or first + count * taken > rows * columns:
        raise error(
            f"{plural(count, 'block')} of the shape {shape_text(shape)}, from tile {first} on, do "
            f"not fit into a shard of {rows} x {columns} tiles"
        )
    is_row = height == 1 and columns % width == 0 and first % width == 0
    is_whole = width == columns and first % columns == 0
    if not (is_row or is_whole):
        raise error(
            f"blocks of a tensor's memory are parts of a row of the shard's {rows} x {columns} "
            f"tiles, or whole rows, not of the shape {shape_text(shape)}"
        )
    position = _shard_of(tensor, node)
    if position is None:
        return []
    array = tensor.padded.reshape(-1, tensor.padded.shape[-1])
    top, left = position[0] * shards.shape[0], position[1] * shards.shape[1]
    found: list[tuple[Array, Region]] = []
    leading = tuple(1 for _ in tensor.units[:-2])
    for block in range(count):
        row, column = divmod(first + block * taken, columns)
        row, column = top + row * TILE_SIDE, left + column * TILE_SIDE
        starts = (*(0 for _ in leading), row // TILE_SIDE, column // TILE_SIDE)
        part = array[row : row + height * TILE_SIDE, column : column + width * TILE_SIDE]
        if part.shape != (height * TILE_SIDE, width * TILE_SIDE):
            return []
        view = part.reshape(*(1 for _ in outer), *part.shape)
        found.append((view, (starts, (*leading, height, width))))
    return found


def _shard_of(tensor: Tensor, node: Node) -> tuple[int, int] | None:
    """Row and column of a node's shard in the grid of shards; None if the node has no shard."""
    placement = tensor.placement
    shards, layout = placement.shards, tensor.memory_config().memory_layout
    assert shards is not None
    column, row = (*node.coordinates, 0)[:2]
    by_column = shards.orientation is Orientation.COL_MAJOR
    if layout == "block_sharded":
        bounds = shards.bounding_box()
        across, down = column - bounds.first_column, row - bounds.first_row
        inside = 0 <= across < bounds.columns and 0 <= down < bounds.rows
        found = (across, down) if by_column else (down, across)
        return found if inside else None
    cores = [core for each in shards.core_ranges for core in each.coordinates(by_column=by_column)]
    if (column, row) not in cores:
        return None
    number = cores.index((column, row))
    return (number, 0) if layout == "height_sharded" else (0, number)


def _checked_blocks(shape: object, block_count: object, *, is_tiled: bool) -> tuple[Shape, int]:
    """Validates the shape and number of blocks."""
    sizes = checked_shape("a dataflow buffer", shape)
    if is_tiled and len(sizes) < 2:
        raise error(
            f"the shape {shape_text(sizes)} has one dimension, but blocks of tiled tensors have at "
            "least two",
            remedy=f"sizes are counted in tiles of {TILE_SIDE}x{TILE_SIDE}",
        )
    if not is_integer(block_count) or int(block_count) < 1:
        raise error(f"block_count is a positive integer, not {block_count!r}")
    return sizes, int(block_count)


def _new_buffer(
    node: Node,
    data_type: DataType,
    is_tiled: bool,
    shape: Shape,
    block_count: int,
    group: DFBAllocationGroup | None,
    backing: TensorMemory | None = None,
) -> DataflowBuffer:
    buffer = DataflowBuffer(data_type, is_tiled, shape, block_count, node, backing)
    buffers = node.made.of(DataflowBuffer)
    _join(buffer, group, buffers)
    buffers.append(buffer)
    _check_l1_size(buffers)
    return buffer


def _join(
    buffer: DataflowBuffer, group: DFBAllocationGroup | None, others: Sequence[DataflowBuffer]
) -> None:
    """Adds a buffer to an allocation group, whose buffers all have the same page format."""
    if group is None:
        return
    if not isinstance(group, DFBAllocationGroup):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise error(
            "allocation_group is what ttl.make_dfb_allocation_group gives, not "
            f"{type(group).__name__}"
        )
    for other in others:
        if other.group is group and (other.data_type, other.is_tiled) != (
            buffer.data_type,
            buffer.is_tiled,
        ):
            raise error(
                f"'{other.name}' and '{buffer.name}' cannot share memory: one holds "
                f"{other.data_type.name}, one {buffer.data_type.name}"
            )
    buffer.group = group


def _l1_bytes(buffers: Sequence[DataflowBuffer]) -> dict[str, int]:
    """L1 bytes by buffer name.

    A group takes the memory of its largest buffer; tensor-backed buffers take none.
    """
    found: dict[str, int] = {}
    largest: dict[DFBAllocationGroup, DataflowBuffer] = {}
    for buffer in buffers:
        if buffer.backing is not None:
            continue
        if buffer.group is None:
            found[buffer.name] = buffer.bytes
        elif buffer.group not in largest or largest[buffer.group].bytes < buffer.bytes:
            largest[buffer.group] = buffer
    return found | {buffer.name: buffer.bytes for buffer in largest.values()}


def _check_l1_size(buffers: Sequence[DataflowBuffer]) -> None:
    groups = {buffer.group for buffer in buffers if buffer.group is not None}
    ungrouped = sum(buffer.group is None for buffer in buffers)
    if ungrouped + len(groups) > CIRCULAR_BUFFERS:
        raise error(f"a node has at most {CIRCULAR_BUFFERS} dataflow buffers")
    taken = _l1_bytes(buffers)
    total, available = sum(taken.values()), current_chip().l1_size
    if total > available:
        sizes = ", ".join(f"'{name}' {count}" for name, count in taken.items())
        raise error(
            f"the dataflow buffers take {plural(total, 'byte')} of L1, but a node has {available}",
            remedy=f"make blocks smaller, or fewer; bytes by buffer: {sizes}",
        )
