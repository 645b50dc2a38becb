"""Core assignment of decode attention, and program configs of sharded norms."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from ttcodegen.dialects.ttcore.shards import CoreRange, Shards
from ttcodegen.dialects.ttcore.tile import TILE_SIDE, tiles_along
from ttcodegen.dialects.ttnn.placement import TensorPlacement
from ttcodegen.dialects.ttnn.program_configs import SDPA, CoreGrid, LayerNormSharded
from ttcodegen.layout.collapse import align_up
from ttcodegen.layout.placements import tile_bytes
from ttcodegen.ops.attention.primitives import CONFIGURED_CORES, DecodeCores, default_chunk
from ttcodegen.ops.reduction.norms import NORMS
from ttcodegen.optimizer.call import BF16_TILE, LibraryCall
from ttcodegen.optimizer.programs.matmul import divisors

# Decode attention, one token per user: assignment of keys to cores, and circular buffers.
#
# The rules follow sdpa_decode_program_factory.cpp and sdpa_decode.cpp of tt-metal.

DYNAMIC_CHUNK = 8
"""Tiles of a chunk whose size the kernels choose: the capacity of the registers."""
HALF_TILE_HEADS = 16
"""Maximum number of query heads for tiles of half height."""
STICK = 32
"""Alignment in bytes of rows of positions and of the page table."""


@dataclass(frozen=True)
class DecodeAttention:
    """Core assignment of a decode attention call."""

    users: int
    heads: int
    """Number of query heads."""
    key_heads: int
    keys: int
    """Number of key positions per user."""
    depth: int
    """Head size in tiles."""
    chunk: int
    """Number of keys per step; 0 if the kernels choose."""
    cores_per_head: int
    heads_per_core: int
    is_causal: bool

    @staticmethod
    def of(call: LibraryCall, cores: int) -> DecodeAttention:
        """Returns the core assignment of a call on a device with `cores` cores."""
        query, key = call.operands[:2]
        users, heads = query.shape[1:3]
        key_heads, keys = key.shape[1:3]
        paged = call.name.startswith("paged")
        if paged:
            keys *= call.operands[3].shape[-1]
        config = call.program_config
        most = cores
        chunk = 0 if paged else default_chunk(keys)
        if isinstance(config, SDPA):
            cores = config.compute_with_storage_grid_size.cores
            most = config.max_cores_per_head_batch or CONFIGURED_CORES
            chunk = config.k_chunk_size or chunk
        decode_cores = DecodeCores(users, key_heads, cores, most)
        causal = paged or bool(call.attributes.get("is_causal", True))
        return DecodeAttention(
            users,
            heads,
            key_heads,
            keys,
            tiles_along(query.shape[3]),
            chunk,
            decode_cores.per_head,
            decode_cores.heads_per_core,
            causal,
        )

    @property
    def rows(self) -> int:
        """Tile rows of the heads of a user's query."""
        return tiles_along(self.heads)

    @property
    def chunk_tiles(self) -> int:
        """Tile rows of keys per step."""
        return self.chunk // TILE_SIDE or DYNAMIC_CHUNK

    @property
    def active_cores(self) -> int:
        """Number of cores with keys."""
        return self.users * self.cores_per_head * self.key_heads // self.heads_per_core

    @property
    def steps(self) -> int:
        """Number of chunks of the busiest core."""
        chunks = -(-tiles_along(self.keys) // self.chunk_tiles)
        return -(-chunks // self.cores_per_head) * self.heads_per_core

    @property
    def rounds(self) -> int:
        """Number of tree reduction rounds over the cores of a head."""
        return (self.cores_per_head - 1).bit_length()

    def circular_buffers(self, call: LibraryCall) -> int:
        """Returns the bytes of circular buffers per core."""
        query, key, value = call.operands[:3]
        halved = self.is_causal and self.heads <= HALF_TILE_HEADS and query.data_type.mlir == "bf16"
        sum_tile = BF16_TILE // 2 if halved else BF16_TILE
        query_tile = tile_bytes(query) // (2 if halved else 1)
        out, scores = self.rows * self.depth, self.rows * self.chunk_tiles
        mask = self._mask(call)
        mask_tile = BF16_TILE if mask is None else tile_bytes(mask)
        size = 2 * out * query_tile
        size += 2 * self.chunk_tiles * self.depth * (tile_bytes(key) + tile_bytes(value))
        size += scores * (mask_tile // (2 if halved else 1)) + scores * sum_tile
        # Three buffers of partial sums and one for sending them, and statistics of their rows.
        size += 4 * out * sum_tile + 11 * self.rows * sum_tile
        size += 2 * sum_tile + BF16_TILE
        size += (out + 2 * self.rows) * (self.cores_per_head - 1) * sum_tile
        if call.attributes.get("sliding_window_size"):
            size += scores * (mask_tile // (2 if halved else 1))
        if call.result.shards is None:
            size += out * tile_bytes(call.result)
        numbers = (p for p in call.operands[3:] if not p.data_type.is_float)
        return size + sum(align_up(4 * p.shape[-1], STICK) for p in numbers)

    def _mask(self, call: LibraryCall) -> TensorPlacement | None:
        """Returns the placement of the attention mask, if there is one."""
        return next((p for p in call.operands[3:] if len(p.shape) == 4), None)


# Program configs of normalizations with sharded rows.


def has_residual(call: LibraryCall) -> bool:
    """Returns whether a normalization of several rows first adds its last operand to its input."""
    shape = call.operands[0].shape
    last = call.operands[-1].shape
    return call.name in NORMS and len(call.operands) > 1 and last == shape and prod(shape[:-1]) > 1


MOST_NORM_SUBBLOCK = 4
"""Capacity of the registers in 32-bit tiles: by default normalizations accumulate in 32 bits."""


def norm_misfit(source: TensorPlacement, config: LayerNormSharded) -> str | None:
    """Returns why a row normalization cannot have a config for its input's placement, or None.

    The rules are measured with tt-metal.
    """
    fitting = norm_config(source)
    if source.shards is not None and not source.shards.is_rectangle:
        return "the cores of its operand's shards are no rectangle"
    if fitting is None or source.shards is None:
        return "its operand has no shards by width or blocks that its tiles fill"
    if (config.block_h, config.block_w) != (fitting.block_h, fitting.block_w):
        blocks = f"{fitting.block_h}x{fitting.block_w}"
        return f"blocks of {config.block_h}x{config.block_w} tiles are not its shards of {blocks}"
    box, grid = source.shards.bounding_box(), config.compute_with_storage_grid_size
    if grid.columns < box.columns or grid.rows < box.rows:
        return f"its shards are on {box.columns}x{box.rows} cores"
    if config.subblock_w > MOST_NORM_SUBBLOCK:
        return f"a subblock has {MOST_NORM_SUBBLOCK} tiles at most"
    return None


def on_rectangle(source: TensorPlacement, grid: CoreGrid) -> TensorPlacement | None:
    """Reshards width shards over the most cores that form a rectangle and divide the tiles evenly.

    None for other shards, or if only a single core would be left. Programs that shard by width fill
    the grid row by row: on 11 or 13 columns few counts of cores form a rectangle, which the
    normalizations of tt-metal require."""
    if source.shards is None or source.memory_layout != "width_sharded":
        return None
    height, width = source.collapsed_shape()
    boxes = {
        columns * rows: CoreGrid(columns, rows)
        for rows in range(grid.rows, 0, -1)
        for columns in range(1, grid.columns + 1)
    }
    across = max((n for n in divisors(width) if n in boxes), default=1)
    if across == 1:
        return None
    box = boxes[across]
    cores = (CoreRange(0, 0, box.columns - 1, box.rows - 1),)
    shape = (height * TILE_SIDE, width // across * TILE_SIDE)
    return source.sharded("width_sharded", Shards(shape, cores))


def norm_config(source: TensorPlacement) -> LayerNormSharded | None:
    """Returns the program config of a normalization of sharded rows.

    None if the library does not support the shards (layernorm_device_operation.cpp of tt-metal)."""
    shards = source.shards
    if shards is None or source.memory_layout == "height_sharded" or not shards.is_rectangle:
        return None
    height, width = source.collapsed_shape()
    block_h, block_w = (size // TILE_SIDE for size in shards.shape)
    box = shards.bounding_box()
    across = shards.cores if source.memory_layout == "width_sharded" else box.columns
    down = 1 if source.memory_layout == "width_sharded" else box.rows
    if block_w * across != width or block_h * down != height:
        return None
    sub_w = max(d for d in divisors(block_w) if d <= MOST_NORM_SUBBLOCK)
    return LayerNormSharded(CoreGrid(box.columns, box.rows), sub_w, block_h, block_w)
