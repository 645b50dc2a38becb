"""Fusion of head splits, head repetitions and rotary embeddings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from xdsl.ir import Operation, SSAValue

from ttcodegen.dialects.core.datatypes import bf16, element_of, f32, shape_of, tensor_type
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttcore.tile import TILE_SIDE
from ttcodegen.ops.attention.heads import takes_rotation
from ttcodegen.ops.core.dimensions import dimension_groups
from ttcodegen.transforms.rewriting import PatternSet, Rewriter
from ttcodegen.transforms.ttir.queries import is_float

# Queries, keys and values from one projection.

HEADS = PatternSet()
SPLITS = PatternSet()
"""Rules for functions in which all parts of projections are slices already."""

_SPLIT = "split_query_key_value_and_split_heads"
_HEAD_SIZE = 32
"""Sizes of split heads have to be multiples of this tile width (docs/library-rules.md)."""


@dataclass(frozen=True)
class _Part:
    """A slice of the last dimension as heads: (batch, heads, sequence, size)."""

    begin: int
    end: int
    shape: tuple[int, ...]


_Bounds = list[tuple[int, int]]
"""Begin and end of a slice by dimension."""


@HEADS.on("ttir.slice_static")
def slice_before_moves(rewriter: Rewriter, op: CatalogueOp) -> SSAValue | None:
    """Moves a slice before permutes and reshapes whose only users are slices.

    PyTorch takes queries, keys and values out of (..., 3, size) this way; less data is moved then.
    """
    value = op.operands[0]
    bounds: _Bounds = list(zip(op.parameter("begins"), op.parameter("ends"), strict=True))
    if 0 in op.result_shape or any(step != 1 for step in op.parameter("step")):
        return None
    if any(bound < 0 for pair in bounds for bound in pair):
        return None
    if any(use.operation.name != "ttir.slice_static" for use in value.uses):
        return None
    moves: list[tuple[CatalogueOp, _Bounds]] = []
    while (moved := rewriter.defining(value, "ttir.permute", "ttir.reshape")) is not None:
        before = _before(moved, bounds) if not moves or value.has_one_use() else None
        if before is None:
            break
        moves.append((moved, bounds))
        value, bounds = moved.operands[0], before
    if not moves:
        return None
    made = rewriter.slice(value, [begin for begin, _ in bounds], [end for _, end in bounds])
    for moved, after in reversed(moves):
        if moved.name == "ttir.permute":
            made = rewriter.permute(made, moved.parameter("permutation"))
        else:
            made = rewriter.reshape(made, [end - begin for begin, end in after])
    return made


def _before(moved: CatalogueOp, bounds: _Bounds) -> _Bounds | None:
    """Maps slice bounds of a move's result to its operand.

    Returns None if the slice is no outer part of a dimension there.
    """
    if moved.name == "ttir.permute":
        places: list[int] = moved.parameter("permutation")
        return [bounds[places.index(axis)] for axis in range(len(places))]
    source, shape = shape_of(moved.operands[0].type), moved.result_shape
    found: _Bounds = [(0, size) for size in source]
    cut = [axis for axis, pair in enumerate(bounds) if pair != (0, shape[axis])]
    for first, second in dimension_groups(source, shape):
        inside = [axis for axis in second if axis in cut]
        if not inside:
            continue
        if inside != second[:1] or len(first) != 1:
            return None
        inner = prod(shape[axis] for axis in second[1:])
        begin, end = bounds[second[0]]
        found[first[0]] = (begin * inner, end * inner)
    return found


@SPLITS.on("ttir.permute")
def fuse_split_heads(rewriter: Rewriter, op: CatalogueOp) -> SSAValue | None:
    """Fuses three head slices of (batch, sequence, hidden size) to one split op.

    The rule creates the op for each slice; equal ops are merged later.
    """
    reshaped = rewriter.sole(op.operands[0], "ttir.reshape")
    sliced = None if reshaped is None else rewriter.sole(reshaped.operands[0], "ttir.slice_static")
    if sliced is None:
        return None
    source = sliced.operands[0]
    shape = shape_of(source.type)
    if len(shape) != 3 or element_of(source.type) not in (bf16, f32):
        return None
    parts = {part for use in source.uses for part in _parts_of(use.operation)}
    known = sorted((part for part in parts if part is not None), key=lambda part: part.begin)
    if len(parts) != 3 or len(known) != 3 or known[0].begin != 0 or known[2].end != shape[2]:
        return None
    query, key, value = known
    if query.end != key.begin or key.end != value.begin or key.shape != value.shape:
        return None
    size = query.shape[3]
    if size % _HEAD_SIZE != 0 or query.shape[2] == 1 or key.shape[3] != size:
        return None
    heads, key_heads = query.shape[1], key.shape[1]
    made = rewriter.emit_op(
        _SPLIT,
        [source, None],
        [tensor_type(element_of(source.type), part.shape) for part in known],
        num_heads=heads,
        num_kv_heads=None if key_heads == heads else key_heads,
        transpose_key=False,
    )
    own = _part_of(sliced)
    return None if own is None else made.results[known.index(own)]


def _parts_of(user: Operation) -> list[_Part | None]:
    """Returns the parts that a use of the projection takes: one slice, or all of a split op."""
    if not isinstance(user, CatalogueOp) or user.name != f"ttir.{_SPLIT}":
        return [_part_of(user)]
    parts: list[_Part | None] = []
    begin = 0
    for result in user.results:
        shape = shape_of(result.type)
        parts.append(_Part(begin, begin + shape[1] * shape[3], shape))
        begin += shape[1] * shape[3]
    return parts


def _part_of(user: Operation) -> _Part | None:
    """Returns the part that a slice of the projection takes, if all of it becomes heads."""
    if not isinstance(user, CatalogueOp) or user.name != "ttir.slice_static":
        return None
    shape = shape_of(user.operands[0].type)
    begins, ends, steps = (user.parameter(name) for name in ("begins", "ends", "step"))
    if any(step != 1 for step in steps) or user.result_shape[:-1] != shape[:-1]:
        return None
    reshaped = _only_user(user, "ttir.reshape")
    permuted = None if reshaped is None else _only_user(reshaped, "ttir.permute")
    if permuted is None or permuted.parameter("permutation") != [0, 2, 1, 3]:
        return None
    batch, _, sequence, _ = permuted.result_shape
    if (batch, sequence) != shape[:2]:
        return None
    return _Part(begins[-1], ends[-1], permuted.result_shape)


def _only_user(op: CatalogueOp, name: str) -> CatalogueOp | None:
    user = op.results[0].get_user_of_unique_use()
    return user if isinstance(user, CatalogueOp) and user.name == name else None


# Decomposed repetitions, above all of heads that queries share.

REPEATED = PatternSet()

_FACTORS = {"ttir.broadcast": "broadcast_dimensions", "ttir.repeat": "repeat_dimensions"}
"""Ops that repeat whole dimensions, with the attribute of their factors."""

REPETITIONS = ("ttir.repeat_interleave", *_FACTORS)


def repetition(op: CatalogueOp) -> list[int]:
    """Repetition count of each dimension, or of its elements, of one of `REPETITIONS`."""
    if op.name in _FACTORS:
        return op.parameter(_FACTORS[op.name])
    rank = len(op.result_shape)
    dim = op.parameter("dim") % rank
    return [op.parameter("repeats") if axis == dim else 1 for axis in range(rank)]


def head_repetition(op: CatalogueOp) -> int:
    """Repetition count of the heads of (batch, heads, sequence, size).

    Copies are adjacent. Zero if one of `REPETITIONS` does something else.
    """
    shape = shape_of(op.operands[0].type)
    factors = repetition(op)
    if len(shape) != 4 or len(factors) != 4 or [factors[0], *factors[2:]] != [1, 1, 1]:
        return 0
    return factors[1] if op.name not in _FACTORS or shape[1] == 1 else 0


@REPEATED.on("ttir.reshape")
def fuse_repeat_interleave(rewriter: Rewriter, op: CatalogueOp) -> SSAValue | None:
    """Rewrites a broadcast dimension that a reshape merges to a repetition.

    Merged with the dimension before it, it interleaves repeated elements; with the one after, it
    repeats the whole.
    """
    repeated = rewriter.sole(op.operands[0], *_FACTORS)
    if repeated is None or 0 in op.result_shape:
        return None
    factors = repetition(repeated)
    axes = [axis for axis, factor in enumerate(factors) if factor != 1]
    if len(axes) != 1 or shape_of(repeated.operands[0].type)[axes[0]] != 1:
        return None
    before = repeated.result_shape
    for first, second in dimension_groups(before, op.result_shape):
        if first == axes and len(second) == 1:
            return _broadcast_after_reshape(rewriter, op, repeated, second[0])
        if axes[0] not in first or len(first) != 2 or len(second) != 1:
            continue
        rest = first[1] if first[0] == axes[0] else first[0]
        dim = second[0]
        shape = list(op.result_shape)
        shape[dim] = before[rest]
        source = rewriter.reshape(repeated.operands[0], shape)
        if rest < axes[0]:
            options = {"repeats": factors[axes[0]], "dim": dim}
            return rewriter.emit("repeat_interleave", [source], op.result_type, **options)
        repeats = [factors[axes[0]] if axis == dim else 1 for axis in range(len(shape))]
        return rewriter.emit("repeat", [source], op.result_type, repeat_dimensions=repeats)
    return None


def _broadcast_after_reshape(
    rewriter: Rewriter, op: CatalogueOp, repeated: CatalogueOp, dim: int
) -> SSAValue:
    """Rewrites the repetition of a single head to a broadcast of the merged dimension."""
    shape = list(op.result_shape)
    factors = [shape[dim] if axis == dim else 1 for axis in range(len(shape))]
    shape[dim] = 1
    source = rewriter.reshape(repeated.operands[0], shape)
    return rewriter.emit("broadcast", [source], op.result_type, broadcast_dimensions=factors)


@REPEATED.on("ttir.permute")
def repeat_after_permute(rewriter: Rewriter, op: CatalogueOp) -> SSAValue | None:
    """Moves a permute before a repetition, where it moves less.

    Attention also takes the heads only if the repetition is last.
    """
    repeated = rewriter.sole(op.operands[0], "ttir.repeat_interleave")
    if repeated is None:
        return None
    permutation: list[int] = op.parameter("permutation")
    dim = permutation.index(repeated.parameter("dim") % len(permutation))
    moved = rewriter.permute(repeated.operands[0], permutation)
    return rewriter.again(repeated, [moved], op.result_type, dim=dim)


@REPEATED.on("ttir.scaled_dot_product_attention")
def share_repeated_heads(rewriter: Rewriter, op: CatalogueOp) -> SSAValue | None:
    """Drops repetitions of key and value heads: attention shares heads among queries."""
    key, value = (rewriter.sole(op.operand(name), *REPETITIONS) for name in ("key", "value"))
    if key is None or value is None or not head_repetition(key) == head_repetition(value) != 0:
        return None
    query, _, _, *others = op.operands
    return rewriter.again(op, [query, key.operands[0], value.operands[0], *others])


# Decomposed rotary position embeddings (RoPE).
#
# Models rotate the halves of each row by the angles of its position, in two forms:
#
#     x * cos + concat(-x2, x1) * sin
#     concat(x1 * c - x2 * s, x2 * c + x1 * s)
#
# where c and s are half as wide as the rows.

ROTATIONS = PatternSet()

_ROOTS = ("ttir.add", "ttir.concat")


@dataclass(frozen=True)
class _Rotation:
    """Rows with tables of cosines and sines; tables of half a row apply to both halves."""

    rows: SSAValue
    cosines: SSAValue
    sines: SSAValue


@ROTATIONS.on("ttir.typecast")
def fuse_wide_rotation(rewriter: Rewriter, op: CatalogueOp) -> SSAValue | None:
    """Fuses a rotation in a wider type that is rounded to bf16.

    The library keeps products in the type of the angles, and rounds the sum.
    """
    root = rewriter.sole(op.operands[0], *_ROOTS)
    if root is None or element_of(op.result_type) != bf16 or not is_float(op.operands[0]):
        return None
    return _rotary_embedding(rewriter, root)


@ROTATIONS.on(*_ROOTS)
def fuse_rotation(rewriter: Rewriter, op: CatalogueOp) -> SSAValue | None:
    """Fuses a rotation in bf16."""
    return _rotary_embedding(rewriter, op) if element_of(op.result_type) == bf16 else None


def _rotary_embedding(rewriter: Rewriter, root: CatalogueOp) -> SSAValue | None:
    """Rewrites a bf16 rotation to the rotary embedding op, or returns None."""
    shape = root.result_shape
    if 0 in shape or len(shape) < 2:
        return None
    find = _whole_rows if root.name == "ttir.add" else _halves
    rotation = find(rewriter, root)
    if rotation is None:
        return None
    rows = _narrow(rewriter, rotation.rows)
    axis = _position_dim(shape, shape_of(rotation.cosines.type), shape_of(rotation.sines.type))
    if rows is None or axis is None:
        return None
    last = len(shape) - 1
    order = [*(dim for dim in range(last) if dim != axis), axis, last]
    moved = [shape[dim] for dim in order]
    batch = moved[0] if len(moved) > 2 else 1
    positions, size = moved[-2:]
    if positions < TILE_SIDE:
        # The library rotates whole tiles of positions: in decoding, 32 instead of one.
        return None
    heads = 1
    for count in moved[1:-2]:
        heads *= count
    rows = rewriter.permute(rewriter.reshape(rows, shape), order)
    rows = rewriter.reshape(rows, [batch, heads, positions, size])
    tables = [
        _table(rewriter, table, positions, size) for table in (rotation.cosines, rotation.sines)
    ]
    if not takes_rotation(rows.type, tables[0].type) or tables[0].type != tables[1].type:
        return None
    turned = rewriter.emit("rotary_embedding", [rows, *tables], rows.type)
    back = [order.index(dim) for dim in range(len(shape))]
    return rewriter.permute(rewriter.reshape(turned, moved), back)


def _position_dim(shape: tuple[int, ...], *tables: tuple[int, ...]) -> int | None:
    """Returns the only dimension along which the angles differ, or one of size 1; else None."""
    last = len(shape) - 1
    varying = {
        len(shape) - len(table) + dim
        for table in tables
        for dim, size in enumerate(table[:-1])
        if size != 1
    }
    if not varying:
        varying = {dim for dim in range(last) if shape[dim] == 1 and (dim or last == 1)}
        return max(varying, default=None)
    return varying.pop() if len(varying) == 1 else None


def _table(rewriter: Rewriter, table: SSAValue, positions: int, size: int) -> SSAValue:
    """Returns a table as the library takes it; a table of half rows is repeated for both halves."""
    width = shape_of(table.type)[-1]
    table = rewriter.reshape(table, [1, 1, positions, width])
    return table if width == size else rewriter.concat([table, table], 3)


def _narrow(rewriter: Rewriter, rows: SSAValue) -> SSAValue | None:
    """Returns the rows in bf16, before a widening conversion where necessary, or None."""
    if element_of(rows.type) == bf16:
        return rows
    moves: list[CatalogueOp] = []
    value = rows
    while (op := rewriter.defining(value, "ttir.reshape", "ttir.permute")) is not None:
        moves.append(op)
        value = op.operands[0]
    widened = rewriter.defining(value, "ttir.typecast")
    if widened is None or element_of(widened.operands[0].type) != bf16:
        return None
    value = widened.operands[0]
    for move in reversed(moves):
        value = rewriter.again(move, [value], tensor_type(bf16, move.result_shape))
    return value


# x * cos + concat(-x2, x1) * sin


def _whole_rows(rewriter: Rewriter, root: CatalogueOp) -> _Rotation | None:
    width = root.result_shape[-1]
    products = [rewriter.sole(operand, "ttir.multiply") for operand in root.operands]
    for straight, across in (products, products[::-1]):
        if straight is None or across is None:
            return None
        for swapped, sines in _either_way(across):
            rows = _swapped_rows(rewriter, swapped)
            if rows is None or shape_of(sines.type)[-1:] != (width,):
                continue
            for value, cosines in _either_way(straight):
                if _same_rows(rewriter, value, rows) and shape_of(cosines.type)[-1:] == (width,):
                    return _Rotation(rows, cosines, sines)
    return None


def _swapped_rows(rewriter: Rewriter, value: SSAValue) -> SSAValue | None:
    """Matches concat(-x2, x1); returns the rows (x1, x2)."""
    joined = rewriter.sole(value, "ttir.concat")
    if joined is None or not _joins_halves(joined):
        return None
    negated = rewriter.sole(joined.operands[0], "ttir.neg")
    return None if negated is None else _rows_of(rewriter, joined.operands[1], negated.operands[0])


def _same_rows(rewriter: Rewriter, first: SSAValue, second: SSAValue) -> bool:
    """Returns whether two values have the same elements, up to dimensions of size 1."""
    shapes = [[size for size in shape_of(each.type) if size != 1] for each in (first, second)]
    return shapes[0] == shapes[1] and _origin(rewriter, first) is _origin(rewriter, second)


def _origin(rewriter: Rewriter, value: SSAValue) -> SSAValue:
    """Returns the value before reshapes and conversions between floats."""
    while (op := rewriter.defining(value, "ttir.reshape", "ttir.typecast")) is not None:
        if not is_float(op.operands[0]):
            break
        value = op.operands[0]
    return value


# concat(x1 * c - x2 * s, x2 * c + x1 * s)


def _halves(rewriter: Rewriter, root: CatalogueOp) -> _Rotation | None:
    if not _joins_halves(root):
        return None
    difference = rewriter.sole(root.operands[0], "ttir.subtract")
    total = rewriter.sole(root.operands[1], "ttir.add")
    if difference is None or total is None:
        return None
    products = [
        rewriter.sole(operand, "ttir.multiply")
        for operand in (*difference.operands, *total.operands)
    ]
    low_cosine, high_sine, *others = (each for each in products if each is not None)
    if len(others) != 2:
        return None
    pairs = [{*each.operands} for each in others]
    for low, cosines in _either_way(low_cosine):
        for high, sines in _either_way(high_sine):
            if [{high, cosines}, {low, sines}] not in (pairs, pairs[::-1]):
                continue
            rows = _rows_of(rewriter, low, high)
            tables = {shape_of(each.type)[-1:] for each in (cosines, sines)}
            if rows is not None and tables == {shape_of(low.type)[-1:]}:
                return _Rotation(rows, cosines, sines)
    return None


# Halves of rows


def _either_way(product: CatalogueOp) -> Iterator[tuple[SSAValue, SSAValue]]:
    first, second = product.operands
    yield first, second
    yield second, first


def _joins_halves(op: CatalogueOp) -> bool:
    rank = len(op.result_shape)
    widths = [shape_of(operand.type)[-1] for operand in op.operands]
    return op.parameter("dim") % rank == rank - 1 and len(widths) == 2 and widths[0] == widths[1]


def _rows_of(rewriter: Rewriter, low: SSAValue, high: SSAValue) -> SSAValue | None:
    """Returns the rows whose halves two values are, moved and converted alike."""
    first, second = (
        rewriter.defining(
            half, "ttir.slice_static", "ttir.reshape", "ttir.permute", "ttir.typecast"
        )
        for half in (low, high)
    )
    if first is None or second is None or first.name != second.name:
        return None
    if first.result_type != second.result_type:
        return None
    if first.name == "ttir.slice_static":
        return first.operands[0] if _are_halves(first, second) else None
    rows = _rows_of(rewriter, first.operands[0], second.operands[0])
    if rows is None:
        return None
    *outer, width = shape_of(rows.type)
    moved = [*first.result_shape[:-1], width]
    if first.name == "ttir.permute":
        permutation: list[int] = first.parameter("permutation")
        kept = permutation == second.parameter("permutation") and permutation[-1] == len(outer)
        return rewriter.permute(rows, permutation) if kept else None
    if first.name == "ttir.typecast":
        return rewriter.typecast(rows, element_of(first.result_type)) if is_float(rows) else None
    return rewriter.reshape(rows, moved) if 2 * first.result_shape[-1] == width else None


def _are_halves(low: CatalogueOp, high: CatalogueOp) -> bool:
    """Returns whether two slices are the lower and upper half of each row of the same value."""
    shape = shape_of(low.operands[0].type)
    if low.operands[0] is not high.operands[0] or shape[-1] != 2 * low.result_shape[-1]:
        return False
    if any(step != 1 for op in (low, high) for step in op.parameter("step")):
        return False
    whole = low.result_shape[:-1] == high.result_shape[:-1] == shape[:-1]
    begins = [op.parameter("begins")[-1] for op in (low, high)]
    return whole and begins == [0, shape[-1] // 2]
