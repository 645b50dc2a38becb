"""Attention of one token of each user: which cores take which keys, and what their L1 holds.

The rules are those of sdpa_decode_program_factory.cpp and sdpa_decode.cpp of tt-metal.
"""

from __future__ import annotations

from dataclasses import dataclass

from ttcodegen.dialects.ttcore.tile import TILE_SIDE, tiles_along
from ttcodegen.dialects.ttnn.placement import TensorPlacement
from ttcodegen.dialects.ttnn.program_configs import SDPA
from ttcodegen.layout.collapse import align_up
from ttcodegen.layout.placements import tile_bytes
from ttcodegen.ops.attention.primitives import CONFIGURED_CORES, DecodeCores, default_chunk
from ttcodegen.optimizer.core.call import LibraryCall
from ttcodegen.optimizer.core.footprint import BF16_TILE

DECODING = (
    "scaled_dot_product_attention_decode",
    "paged_scaled_dot_product_attention_decode",
)
DYNAMIC_CHUNK = 8
"""Tiles of a chunk whose size the kernels choose: as many as the registers hold."""
HALF_TILE_HEADS = 16
"""With so many heads of queries at most, tiles are halved."""
STICK = 32
"""Bytes that a row of positions or of a page table takes at least."""


@dataclass(frozen=True)
class DecodeAttention:
    """Core assignment of a decode attention call."""

    users: int
    heads: int
    """Of queries."""
    key_heads: int
    keys: int
    """Positions of each user."""
    depth: int
    """Tiles of a head."""
    chunk: int
    """Keys that are taken at a time; 0 if the kernels choose."""
    cores_per_head: int
    heads_per_core: int
    is_causal: bool

    @staticmethod
    def of(call: LibraryCall, cores: int) -> DecodeAttention:
        """The distribution of a call on a device of so many cores."""
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
        dealt = DecodeCores(users, key_heads, cores, most)
        causal = paged or bool(call.attributes.get("is_causal", True))
        return DecodeAttention(
            users,
            heads,
            key_heads,
            keys,
            tiles_along(query.shape[3]),
            chunk,
            dealt.per_head,
            dealt.heads_per_core,
            causal,
        )

    @property
    def rows(self) -> int:
        """Tiles of the heads of a user's query."""
        return tiles_along(self.heads)

    @property
    def chunk_tiles(self) -> int:
        """Tiles of keys that are taken at a time."""
        return self.chunk // TILE_SIDE or DYNAMIC_CHUNK

    @property
    def active_cores(self) -> int:
        """The cores that have keys."""
        return self.users * self.cores_per_head * self.key_heads // self.heads_per_core

    @property
    def steps(self) -> int:
        """Chunks that the busiest core takes, one after the other."""
        chunks = -(-tiles_along(self.keys) // self.chunk_tiles)
        return -(-chunks // self.cores_per_head) * self.heads_per_core

    @property
    def rounds(self) -> int:
        """Number of tree reduction rounds over the cores of a head."""
        return (self.cores_per_head - 1).bit_length()

    def circular_buffers(self, call: LibraryCall) -> int:
        """Bytes of each L1."""
        query, key, value = call.operands[:3]
        halved = self.is_causal and self.heads <= HALF_TILE_HEADS and query.data_type.mlir == "bf16"
        small = BF16_TILE // 2 if halved else BF16_TILE
        of_query = tile_bytes(query) // (2 if halved else 1)
        out, scores = self.rows * self.depth, self.rows * self.chunk_tiles
        mask = self._mask(call)
        of_mask = BF16_TILE if mask is None else tile_bytes(mask)
        size = 2 * out * of_query
        size += 2 * self.chunk_tiles * self.depth * (tile_bytes(key) + tile_bytes(value))
        size += scores * (of_mask // (2 if halved else 1)) + scores * small
        # The sums so far three times and those that go out, and statistics of their rows.
        size += 4 * out * small + 11 * self.rows * small
        size += 2 * small + BF16_TILE
        size += (out + 2 * self.rows) * (self.cores_per_head - 1) * small
        if call.attributes.get("sliding_window_size"):
            size += scores * (of_mask // (2 if halved else 1))
        if call.result.shards is None:
            size += out * tile_bytes(call.result)
        numbers = (p for p in call.operands[3:] if not p.data_type.is_float)
        return size + sum(align_up(4 * p.shape[-1], STICK) for p in numbers)

    def _mask(self, call: LibraryCall) -> TensorPlacement | None:
        """Placement of the attention mask."""
        return next((p for p in call.operands[3:] if len(p.shape) == 4), None)
