"""The random numbers of device programs.

Each tile has a generator of its own, which starts from the seed of the op plus the number of the
tile in its tensor: what is drawn depends neither on the cores that draw nor on the order in which
they do. The emulated device has the same generator (`rand_tile`, `dropout_tile`); a card has
another one for each lane of its vector engine.
"""

from __future__ import annotations

from functools import cache
from math import prod

from ttcodegen.dialects.ttcore.tile import TILE_SIDE, tiles_along
from ttcodegen.foundation.lazy_numpy import Array, np

_MULTIPLIER = 1664525
_INCREMENT = 1013904223
_FACE = TILE_SIDE // 2


@cache
def _steps() -> tuple[Array, Array]:
    """Multipliers and increments that advance the generator to each element of a tile."""
    factors, terms = [_MULTIPLIER], [_INCREMENT]
    while len(factors) < TILE_SIDE * TILE_SIDE:
        factors.append(factors[-1] * _MULTIPLIER % 2**32)
        terms.append((terms[-1] * _MULTIPLIER + _INCREMENT) % 2**32)
    return np.array(factors, np.uint32), np.array(terms, np.uint32)


def random_bits(seed: int, shape: tuple[int, ...]) -> Array:
    """32 random bits for each element of a tensor."""
    *batch, height, width = (1, 1, *shape)[-max(len(shape), 2) :]
    rows, columns = tiles_along(height), tiles_along(width)
    matrices = prod(batch)
    tiles = matrices * rows * columns
    seeds = (np.arange(tiles, dtype=np.uint64) + (seed % 2**32)).astype(np.uint32)
    factors, terms = _steps()
    bits = seeds[:, None] * factors + terms
    bits = (bits ^ (bits >> np.uint32(16))) * np.uint32(0x7FEB352D)
    bits ^= bits >> np.uint32(15)
    # A tile holds four faces, each row by row.
    faces = bits.reshape(matrices, rows, columns, 2, 2, _FACE, _FACE).transpose(0, 1, 3, 5, 2, 4, 6)
    padded = faces.reshape(matrices, rows * TILE_SIDE, columns * TILE_SIDE)
    return padded[:, :height, :width].reshape(shape)


def uniform_numbers(seed: int, shape: tuple[int, ...], low: float, scale: float) -> Array:
    """Floats from `low` to below `low + scale`, in float32."""
    unit = (random_bits(seed, shape) >> np.uint32(9)).astype(np.float32) * np.float32(2.0**-23)
    return unit * np.float32(scale) + np.float32(low)


def are_kept(seed: int, shape: tuple[int, ...], probability: float) -> Array:
    """Mask of the elements that a dropout keeps."""
    return random_bits(seed, shape) >> np.uint32(1) >= np.uint32(dropout_threshold(probability))


def dropout_threshold(probability: float) -> int:
    """A probability as the integer that 31 random bits are compared with, as ttnn::dropout of
    tt-metal 0.70.1 computes it (dropout_program_factory.cpp)."""
    return int(float(2**31 - 1) * probability)


def scale_of_range(low: float, high: float, bfloat16: bool) -> float:
    """Largest scale that rounds no number from `low` on to `high`, in float32.

    A quarter of a percent of the numbers from 0 to 1 would be 1 if bfloat16 were rounded to the
    nearest after all; ttnn::rand of tt-metal 0.70.1 cuts bits off instead (writer_uniform.cpp).
    """
    scale = np.float32(high - low)
    end = _below(high, bfloat16)
    if not _reaches(low, scale, end) or end <= np.float32(low):
        return float(scale)
    scale = np.float32(float(end) - low)
    while _reaches(low, scale, end):
        scale = np.float32(np.nextafter(scale, np.float32(0)))
    return float(scale)


def _below(high: float, bfloat16: bool) -> np.float32:
    """The smallest float32 that counts as `high` if it is rounded."""
    end = np.float32(high)
    if not bfloat16:
        return end
    # The largest bfloat16 below `high`, then half a step up.
    bits = int(np.nextafter(end, np.float32(-np.inf)).view(np.uint32))
    if bits >> 31:
        middle = (bits + 0xFFFF & 0xFFFF0000) - 0x8000
    else:
        middle = (bits & 0xFFFF0000) + 0x8000
    return np.uint32(middle).view(np.float32)


def _reaches(low: float, scale: np.float32, end: np.float32) -> bool:
    most = np.float32(1.0 - 2.0**-23) * scale + np.float32(low)
    return bool(most >= end)
