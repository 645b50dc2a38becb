"""Repetitions that were spelled out, above all those of heads that queries share."""

from __future__ import annotations

from xdsl.ir import SSAValue

from ttcodegen.dialects.core.datatypes import shape_of
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.ops.core.dimensions import dimension_groups
from ttcodegen.transforms.rewriting import PatternSet, Rewriter

REPEATED = PatternSet()

_FACTORS = {"ttir.broadcast": "broadcast_dimensions", "ttir.repeat": "repeat_dimensions"}
"""Ops that repeat whole dimensions, and the attribute that says how often."""

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
    """A dimension of one element, broadcast and put together with the one before, repeats the
    elements of that; with the one after, the whole of it."""
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
    """Keys of one head have nothing to be put together with: their one dimension is broadcast."""
    shape = list(op.result_shape)
    factors = [shape[dim] if axis == dim else 1 for axis in range(len(shape))]
    shape[dim] = 1
    source = rewriter.reshape(repeated.operands[0], shape)
    return rewriter.emit("broadcast", [source], op.result_type, broadcast_dimensions=factors)


@REPEATED.on("ttir.permute")
def repeat_after_permute(rewriter: Rewriter, op: CatalogueOp) -> SSAValue | None:
    """Each element once is less to move than all repetitions of it; and attention takes heads that
    are repeated last."""
    repeated = rewriter.sole(op.operands[0], "ttir.repeat_interleave")
    if repeated is None:
        return None
    permutation: list[int] = op.parameter("permutation")
    dim = permutation.index(repeated.parameter("dim") % len(permutation))
    moved = rewriter.permute(repeated.operands[0], permutation)
    return rewriter.again(repeated, [moved], op.result_type, dim=dim)


@REPEATED.on("ttir.scaled_dot_product_attention")
def share_repeated_heads(rewriter: Rewriter, op: CatalogueOp) -> SSAValue | None:
    """Attention reads heads of keys and values once for all queries that share them."""
    key, value = (rewriter.sole(op.operand(name), *REPETITIONS) for name in ("key", "value"))
    if key is None or value is None or not head_repetition(key) == head_repetition(value) != 0:
        return None
    query, _, _, *others = op.operands
    return rewriter.again(op, [query, key.operands[0], value.operands[0], *others])
