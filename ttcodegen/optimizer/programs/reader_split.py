"""True if two processors of each core share the work of gathering the image of a convolution.

The release compares what it takes before a product can begin: figures and rule of
is_split_reader_viable (conv2d_op_program_factory_common.cpp of tt-metal).
"""

from __future__ import annotations

from dataclasses import dataclass

from ttcodegen.dialects.ttcore.tile import TILE_SIDE

LEAST_TRANSFER = 16
"""Bytes of the shortest transfer that was measured."""


@dataclass(frozen=True)
class Reading:
    """Data read before a matmul begins."""

    high: int
    """Rows of tiles of the block of the image."""
    wide: int
    channels: int
    read_at_once: int
    """Pixels that are beside each other in L1."""
    columns: int
    """Columns of a window."""
    weight_tiles: int
    weight_tile: int
    is_f32: bool
    result: str
    wide_sums: bool


@dataclass(frozen=True)
class _Rate:
    """Gigabytes per second, which grow with the length of transfers up to some length."""

    longest: int
    least: float
    most: float

    def of(self, size: int) -> float:
        length = min(max(size, LEAST_TRANSFER), self.longest)
        grown = (self.most - self.least) / (self.longest - LEAST_TRANSFER)
        return self.least + grown * (length - LEAST_TRANSFER)


@dataclass(frozen=True)
class _Speeds:
    clock: float
    local: _Rate
    dram: _Rate
    multicast: _Rate
    tilizing: dict[tuple[bool, str], tuple[int, int]]
    """Cycles of a tile of 16 bits, or of 32, with narrow and with wide sums."""


_SPEEDS = {
    "wormhole_b0": _Speeds(
        1.0,
        _Rate(1024, 0.868, 27.84),
        _Rate(2048, 0.436, 28.411),
        _Rate(65536, 0.318, 25.345),
        {
            (True, "f32"): (107, 128), (True, "bf16"): (74, 74), (True, "bfp_bf8"): (74, 70),
            (False, "f32"): (92, 117), (False, "bf16"): (61, 68), (False, "bfp_bf8"): (40, 43),
        },
    ),
    "blackhole": _Speeds(
        1.35,
        _Rate(4096, 1.124, 80.48),
        _Rate(2048, 0.671, 80.885),
        _Rate(65536, 0.182, 57.677),
        {
            (True, "f32"): (132, 132), (True, "bf16"): (132, 80), (True, "bfp_bf8"): (132, 77),
            (False, "f32"): (105, 128), (False, "bf16"): (72, 72), (False, "bfp_bf8"): (60, 60),
        },
    ),
}  # fmt: skip


def splits_reading(reading: Reading, arch: str) -> bool:
    """True if it pays to delay the weights for it."""
    speeds = _SPEEDS[arch]
    element = 4 if reading.is_f32 else 2
    unit = element * reading.channels * reading.read_at_once
    image = element * reading.high * TILE_SIDE * reading.channels * reading.columns
    gathering = speeds.clock * image / speeds.local.of(unit)
    weights = reading.weight_tile * reading.weight_tiles
    fetching = speeds.clock * weights * (
        1 / speeds.dram.of(reading.weight_tile) + 1 / speeds.multicast.of(weights)
    )  # fmt: skip
    known = speeds.tilizing.get((reading.is_f32, reading.result))
    if known is None:
        known = speeds.tilizing[reading.is_f32, "bfp_bf8"]
    tilizing = known[reading.wide_sums] * reading.high * reading.wide
    return gathering / 2 + max(fetching, tilizing) < max(gathering + tilizing, fetching)
