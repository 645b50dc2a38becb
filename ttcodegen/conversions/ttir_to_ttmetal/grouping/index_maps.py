"""Data movement ops as affine maps from the result to its sources, and the tiles these read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from xdsl.ir import Operation

from ttcodegen.dialects.core.datatypes import shape_of
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttcore.tile import TILE_SIDE
from ttcodegen.dialects.ttnn.placement import declared_data_type
from ttcodegen.foundation.lazy_numpy import Array, np
from ttcodegen.layout.placements import TiledShape, row_major_strides, tile_bytes_of

# Ops that move elements, as affine maps from the result to its sources.
#
# Elements of a tensor are counted row by row over its logical shape. A piece of the result is a
# box; the element with local index i in it comes from `base` plus, for every dimension d and each
# of its terms, `i[d] // divisor % modulus * stride`.


@dataclass(frozen=True)
class Term:
    """Contribution of an index of the result to the index of the source element."""

    stride: int
    divisor: int = 1
    modulus: int = 0
    """0 for none."""


@dataclass(frozen=True)
class Piece:
    """Box of the result, and the map of its elements to the source."""

    source: int
    """Index of the operand."""
    low: tuple[int, ...]
    high: tuple[int, ...]
    base: int
    terms: tuple[tuple[Term, ...], ...]
    """Terms of each dimension."""


def is_view(source: Sequence[int], result: Sequence[int]) -> bool:
    """Returns whether a reshape leaves all elements in their tiles."""
    before, after = TiledShape(tuple(source)), TiledShape(tuple(result))
    if before.width != after.width or before.tiles != after.tiles:
        return False
    whole = before.height % TILE_SIDE == 0 and after.height % TILE_SIDE == 0
    return before.height == after.height or whole


def _reshape(op: CatalogueOp) -> list[Piece]:
    strides = row_major_strides(op.result_shape)
    return [_whole(op, 0, [[Term(stride)] for stride in strides])]


def _permute(op: CatalogueOp) -> list[Piece]:
    strides = row_major_strides(shape_of(op.operands[0].type))
    order: list[int] = op.parameter("permutation")
    return [_whole(op, 0, [[Term(strides[axis])] for axis in order])]


def _whole(op: CatalogueOp, base: int, terms: Sequence[Sequence[Term]]) -> Piece:
    shape = op.result_shape
    return Piece(0, (0,) * len(shape), shape, base, tuple(tuple(t) for t in terms))


def slice_from(op: CatalogueOp, begins: Sequence[int]) -> Piece:
    """Strided slice of the first operand from these positions on."""
    strides = row_major_strides(shape_of(op.operands[0].type))
    base = sum(begin * stride for begin, stride in zip(begins, strides, strict=True))
    steps = op.parameter("step")
    terms = [[Term(stride * step)] for stride, step in zip(strides, steps, strict=True)]
    return _whole(op, base, terms)


def _slice(op: CatalogueOp) -> Piece:
    sizes = shape_of(op.operands[0].type)
    begins: list[int] = [
        begin + size if begin < 0 else begin
        for begin, size in zip(op.parameter("begins"), sizes, strict=True)
    ]
    return slice_from(op, begins)


def _reverse(op: CatalogueOp) -> Piece:
    shape = op.result_shape
    strides = row_major_strides(shape)
    axes: set[int] = {axis % len(shape) for axis in op.parameter("dimensions")}
    base = sum((shape[axis] - 1) * strides[axis] for axis in axes)
    terms = [[Term(-s if axis in axes else s)] for axis, s in enumerate(strides)]
    return _whole(op, base, terms)


def _repeat_interleave(op: CatalogueOp) -> Piece:
    strides = row_major_strides(shape_of(op.operands[0].type))
    dim = op.parameter("dim") % len(strides)
    terms = [
        [Term(stride, divisor=op.parameter("repeats") if axis == dim else 1)]
        for axis, stride in enumerate(strides)
    ]
    return _whole(op, 0, terms)


def _upsample(op: CatalogueOp) -> Piece:
    """Nearest-neighbour upsampling of (images, rows, columns, channels)."""
    factors: list[int] = op.parameter("scale_factor")
    divisors = (1, factors[0], factors[-1], 1)
    strides = row_major_strides(shape_of(op.operands[0].type))
    terms = [
        [Term(stride, divisor=divisor)] for stride, divisor in zip(strides, divisors, strict=True)
    ]
    return _whole(op, 0, terms)


def _repeat(op: CatalogueOp) -> Piece:
    """Repetition of the source in each dimension."""
    shape = shape_of(op.operands[0].type)
    missing = len(op.result_shape) - len(shape)
    sizes = [1] * missing + list(shape)
    strides = [0] * missing + row_major_strides(shape)
    terms = [
        [Term(stride, modulus=0 if size == whole else size)] if size > 1 else []
        for size, stride, whole in zip(sizes, strides, op.result_shape, strict=True)
    ]
    return _whole(op, 0, terms)


def _concat(op: CatalogueOp) -> list[Piece]:
    rank = len(op.result_shape)
    dim: int = op.parameter("dim") % rank
    start = 0
    pieces: list[Piece] = []
    for index, value in enumerate(op.operands):
        shape = shape_of(value.type)
        low = tuple(start if axis == dim else 0 for axis in range(rank))
        high = tuple(a + size for a, size in zip(low, shape, strict=True))
        terms = tuple((Term(stride),) for stride in row_major_strides(shape))
        pieces.append(Piece(index, low, high, 0, terms))
        start += shape[dim]
    return [
        piece for piece in pieces if all(a < b for a, b in zip(piece.low, piece.high, strict=True))
    ]


def _pad(op: CatalogueOp) -> list[Piece]:
    shape = shape_of(op.operands[0].type)
    padding: list[int] = op.parameter("padding")
    low = tuple(padding[::2])
    high = tuple(a + size for a, size in zip(low, shape, strict=True))
    terms = tuple((Term(stride),) for stride in row_major_strides(shape))
    return [Piece(0, low, high, 0, terms)]


MOVEMENTS: Mapping[str, Callable[[CatalogueOp], list[Piece]]] = {
    "ttir.bitcast_convert": _reshape,
    "ttir.broadcast": lambda op: [_repeat(op)],
    "ttir.concat": _concat,
    "ttir.pad": _pad,
    "ttir.permute": _permute,
    "ttir.repeat": lambda op: [_repeat(op)],
    "ttir.repeat_interleave": lambda op: [_repeat_interleave(op)],
    "ttir.reshape": _reshape,
    "ttir.reverse": lambda op: [_reverse(op)],
    "ttir.slice_static": lambda op: [_slice(op)],
    "ttir.upsample2d": lambda op: [_upsample(op)],
}
"""Pieces of the result, for each op that device kernels support."""


def is_movement(op: Operation) -> bool:
    """Returns whether device kernels support an op that moves elements."""
    if not isinstance(op, CatalogueOp):
        return False
    if op.name == "ttir.upsample2d":
        return op.parameter("mode") == "nearest"
    if op.name == "ttir.bitcast_convert":
        sizes = {tile_bytes_of(declared_data_type(v)) for v in (*op.operands, *op.results)}
        return len(sizes) == 1
    return op.name in MOVEMENTS


def pieces_of(op: CatalogueOp) -> list[Piece]:
    """Pieces of the result of a movement; the rest is padding."""
    return MOVEMENTS[op.name](op)


REORDERINGS = ("ttir.reshape", "ttir.permute")
"""Movements that compose: a chain of them is one movement."""


def reordering(ops: Sequence[CatalogueOp]) -> list[Piece] | None:
    """Index map of a chain of reshapes and permutes; None if it is not one piece of such terms."""
    shape = shape_of(ops[0].operands[0].type)
    strides = row_major_strides(shape)
    terms: list[Sequence[Term]] = [[Term(stride)] for stride in strides]
    for op in ops:
        if op.name == "ttir.permute":
            terms = [terms[axis] for axis in op.parameter("permutation")]
        else:
            found = _regrouped(shape, op.result_shape, terms)
            if found is None:
                return None
            terms = found
        shape = op.result_shape
    return [_whole(ops[-1], 0, terms)]


def _regrouped(
    before: Sequence[int], after: Sequence[int], terms: Sequence[Sequence[Term]]
) -> list[Sequence[Term]] | None:
    """Terms after a reshape, given those before it; None if they cannot be expressed."""
    found: list[Sequence[Term]] = [[] for _ in after]
    for old, new in _axis_groups(before, after):
        kept = [axis for axis in old if before[axis] > 1]
        if any(term.divisor != 1 or term.modulus for axis in kept for term in terms[axis]):
            if [before[axis] for axis in kept] != [after[axis] for axis in new if after[axis] > 1]:
                return None
            moved = iter([terms[axis] for axis in kept])
            for axis in new:
                found[axis] = next(moved) if after[axis] > 1 else []
            continue
        digits = [(before[axis], sum(term.stride for term in terms[axis])) for axis in kept]
        if not _split(_merge_contiguous(digits), new, after, found):
            return None
    return found


def _merge_contiguous(digits: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Merges adjacent digits (size and stride) that are contiguous in the source."""
    merged: list[tuple[int, int]] = []
    for size, stride in digits:
        if merged and merged[-1][1] == stride * size:
            merged[-1] = (merged[-1][0] * size, stride)
        else:
            merged.append((size, stride))
    return merged


def _split(
    digits: list[tuple[int, int]],
    axes: Sequence[int],
    sizes: Sequence[int],
    found: list[Sequence[Term]],
) -> bool:
    """Divides digits among the axes of a shape, from the last on.

    Returns False if a digit would straddle two axes."""
    for axis in reversed(axes):
        left, inner = sizes[axis], 1
        terms: list[Term] = []
        while left > 1:
            size, stride = digits.pop()
            if left % size == 0:
                terms.append(Term(stride, inner, 0 if left == size else size))
                left, inner = left // size, inner * size
            elif size % left == 0:
                terms.append(Term(stride, inner))
                digits.append((size // left, stride * left))
                left = 1
            else:
                return False
        found[axis] = tuple(reversed(terms))
    return True


def _axis_groups(before: Sequence[int], after: Sequence[int]) -> list[tuple[list[int], list[int]]]:
    """Minimal groups of consecutive axes with equal numbers of elements in both shapes."""
    groups: list[tuple[list[int], list[int]]] = []
    old: list[int] = []
    new: list[int] = []
    first = second = 1
    at, to = 0, 0
    while at < len(before) or to < len(after):
        if at < len(before) and (first <= second or to == len(after)):
            first *= before[at]
            old.append(at)
            at += 1
        else:
            second *= after[to]
            new.append(to)
            to += 1
        if first == second and old and new:
            groups.append((old, new))
            old, new, first, second = [], [], 1, 1
    if old or new:
        if not groups:
            return [(old, new)]
        groups[-1] = (groups[-1][0] + old, groups[-1][1] + new)
    return groups


# Estimate of the tiles, or rows of tiles, that a movement reads.

_MOST_SAMPLES = 64
"""Maximum number of output tiles that are sampled."""


def tiles_and_rows_read(
    pieces: Sequence[Piece], sources: Sequence[TiledShape], result: TiledShape
) -> list[tuple[int, int]]:
    """Returns per source the numbers of tiles, and of rows of tiles, that all output tiles read.

    A kernel caches what it reads only during one output tile. For large tensors the numbers are
    extrapolated from a sample.

    Args:
        pieces: pieces of the result.
        sources: sources by number.
        result: shape of the result.
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
    """Rows of source tiles that an output tile reads, numbered over all pages."""
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
