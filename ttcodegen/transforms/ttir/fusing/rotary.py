"""Rotary embeddings that were spelled out.

Models turn the halves of each row by the angles of its position, and write that in two ways:

    x * cos + concat(-x2, x1) * sin
    concat(x1 * c - x2 * s, x2 * c + x1 * s)

where c and s are half as wide as the rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.ir import SSAValue

from ttcodegen.dialects.core.datatypes import bf16, element_of, shape_of, tensor_type
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttcore.tile import TILE_SIDE
from ttcodegen.ops.attention.rotary import takes_rotation
from ttcodegen.transforms.rewriting import PatternSet, Rewriter
from ttcodegen.transforms.ttir.queries import is_float

ROTATIONS = PatternSet()

_ROOTS = ("ttir.add", "ttir.concat")


@dataclass(frozen=True)
class _Rotation:
    """Rows, and the cosines and sines of their elements; tables of half a row are for both."""

    rows: SSAValue
    cosines: SSAValue
    sines: SSAValue


@ROTATIONS.on("ttir.typecast")
def fuse_rotation_in_wide_numbers(rewriter: Rewriter, op: CatalogueOp) -> SSAValue | None:
    """The library keeps products in the type of the angles, and rounds the sum."""
    root = rewriter.sole(op.operands[0], *_ROOTS)
    if root is None or element_of(op.result_type) != bf16 or not is_float(op.operands[0]):
        return None
    return _turned(rewriter, root)


@ROTATIONS.on(*_ROOTS)
def fuse_rotation(rewriter: Rewriter, op: CatalogueOp) -> SSAValue | None:
    """Rows of bf16 that are turned by angles of bf16."""
    return _turned(rewriter, op) if element_of(op.result_type) == bf16 else None


def _turned(rewriter: Rewriter, root: CatalogueOp) -> SSAValue | None:
    """Rewrites a bf16 rotation to the rotary embedding op, or returns None."""
    shape = root.result_shape
    if 0 in shape or len(shape) < 2:
        return None
    find = _whole_rows if root.name == "ttir.add" else _halves
    rotation = find(rewriter, root)
    if rotation is None:
        return None
    rows = _narrow(rewriter, rotation.rows)
    axis = _positions(shape, shape_of(rotation.cosines.type), shape_of(rotation.sines.type))
    if rows is None or axis is None:
        return None
    last = len(shape) - 1
    order = [*(dim for dim in range(last) if dim != axis), axis, last]
    moved = [shape[dim] for dim in order]
    batch = moved[0] if len(moved) > 2 else 1
    positions, size = moved[-2:]
    if positions < TILE_SIDE:
        # The library turns whole tiles of positions: in decoding, 32 for one.
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


def _positions(shape: tuple[int, ...], *tables: tuple[int, ...]) -> int | None:
    """The dimension along which angles differ: one at most, or one of one element."""
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
    """A table as the library takes it; one of half rows serves both halves."""
    width = shape_of(table.type)[-1]
    table = rewriter.reshape(table, [1, 1, positions, width])
    return table if width == size else rewriter.concat([table, table], 3)


def _narrow(rewriter: Rewriter, rows: SSAValue) -> SSAValue | None:
    """The rows in bf16, if they are, or were before they were made wider."""
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
    """The rows of which `value` has the second half, negated, before the first one."""
    joined = rewriter.sole(value, "ttir.concat")
    if joined is None or not _joins_halves(joined):
        return None
    negated = rewriter.sole(joined.operands[0], "ttir.neg")
    return None if negated is None else _rows_of(rewriter, joined.operands[1], negated.operands[0])


def _same_rows(rewriter: Rewriter, first: SSAValue, second: SSAValue) -> bool:
    """True if two values hold the same elements, and differ in dimensions of one alone."""
    shapes = [[size for size in shape_of(each.type) if size != 1] for each in (first, second)]
    return shapes[0] == shapes[1] and _origin(rewriter, first) is _origin(rewriter, second)


def _origin(rewriter: Rewriter, value: SSAValue) -> SSAValue:
    """The value before its shape, or its type, was changed."""
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
    """The rows of which two values are the halves, each moved or converted as the other."""
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
    """True if two slices are the halves of each row of one value."""
    shape = shape_of(low.operands[0].type)
    if low.operands[0] is not high.operands[0] or shape[-1] != 2 * low.result_shape[-1]:
        return False
    if any(step != 1 for op in (low, high) for step in op.parameter("step")):
        return False
    whole = low.result_shape[:-1] == high.result_shape[:-1] == shape[:-1]
    begins = [op.parameter("begins")[-1] for op in (low, high)]
    return whole and begins == [0, shape[-1] // 2]
