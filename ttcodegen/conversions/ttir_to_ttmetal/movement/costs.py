"""How many tiles of its sources a movement reads, or rows of tiles."""

from __future__ import annotations

from collections.abc import Sequence

from ttcodegen.conversions.ttir_to_ttmetal.grouping.index_maps import Piece
from ttcodegen.dialects.ttcore.tile import TILE_SIDE
from ttcodegen.foundation.lazy_numpy import Array, np
from ttcodegen.layout.tiled_shape import TiledShape, row_major_strides

_MOST_SAMPLES = 64
"""Tiles of the result that are looked at."""


def tiles_and_rows_read(
    pieces: Sequence[Piece], sources: Sequence[TiledShape], result: TiledShape
) -> list[tuple[int, int]]:
    """For each source the tiles that hold the elements of each tile of the result, for all tiles
    together, and the rows of these tiles: a kernel keeps what it reads for one tile while it puts
    that together. Of large tensors a sample is counted.

    Args:
        pieces: of the result.
        sources: what their `source` numbers.
        result: what is put together.
    """
    count = result.tiles
    samples = min(count, _MOST_SAMPLES)
    tiles, rows = [0] * len(sources), [0] * len(sources)
    for index in range(samples):
        for piece in pieces:
            found = _rows(piece, sources[piece.source], result, index * count // samples)
            rows[piece.source] += len(found)
            tiles[piece.source] += len(np.unique(found // TILE_SIDE))
    return [
        (-(-of_tiles * count // samples), -(-of_rows * count // samples))
        for of_tiles, of_rows in zip(tiles, rows, strict=True)
    ]


def _rows(piece: Piece, source: TiledShape, result: TiledShape, tile: int) -> Array:
    """The rows of pages of a source that a tile of the result takes, counted through all pages."""
    numbers = np.full((1, 1), piece.base, np.int64)
    places = [
        tile // stride % size
        for stride, size in zip(row_major_strides(result.grid), result.grid, strict=True)
    ]
    sizes = (*result.batch, result.height, result.width)
    missing = len(sizes) - len(piece.terms)
    for axis, (place, size) in enumerate(zip(places, sizes, strict=True)):
        last = axis - len(sizes)
        span = range(place, place + 1)
        if last >= -2:
            span = range(place * TILE_SIDE, min((place + 1) * TILE_SIDE, size))
        if axis < missing:
            continue
        low, high = piece.low[axis - missing], piece.high[axis - missing]
        index = np.arange(max(span.start, low), min(span.stop, high), dtype=np.int64) - low
        if not index.size:
            return index
        steps = np.zeros_like(index)
        for term in piece.terms[axis - missing]:
            digit = index // term.divisor
            steps += (digit % term.modulus if term.modulus else digit) * term.stride
        numbers = numbers + (steps[None, :] if last == -1 else steps[:, None])
    rows, columns = numbers // source.width, numbers % source.width
    matrices, rows = rows // source.height, rows % source.height
    pages = (matrices * source.rows + rows // TILE_SIDE) * source.columns
    pages += columns // TILE_SIDE
    return np.unique(pages * TILE_SIDE + rows % TILE_SIDE)
