"""Queries, keys and values out of one projection."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from xdsl.ir import Operation, SSAValue

from ttcodegen.dialects.core.datatypes import bf16, element_of, f32, shape_of, tensor_type
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.ops.core.dimensions import dimension_groups
from ttcodegen.transforms.rewriting import PatternSet, Rewriter

HEADS = PatternSet()
SPLITS = PatternSet()
"""For functions in which all parts of projections are slices: other rules come before."""

_SPLIT = "split_query_key_value_and_split_heads"
_HEAD_SIZE = 32
"""The library splits off heads whose sizes are multiples of a tile (docs/library-rules.md)."""


@dataclass(frozen=True)
class _Part:
    """A slice of the last dimension as heads: (batch, heads, sequence, size)."""

    begin: int
    end: int
    shape: tuple[int, ...]


_Bounds = list[tuple[int, int]]
"""Begin and end of a slice, for each dimension."""


@HEADS.on("ttir.slice_static")
def slice_before_moves(rewriter: Rewriter, op: CatalogueOp) -> SSAValue | None:
    """A slice of what was permuted and reshaped for slices only, as torch takes queries, keys and
    values out of (..., 3, size): the slice comes first, and what is moved is a part."""
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
    """The bounds of a slice of what a move makes, for what it moves; None if what is sliced is no
    outer part of a dimension there."""
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
    """Three parts of (batch, sequence, hidden size), each made heads before the sequence. Each of
    them makes the op; equal ones are merged."""
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
    """The part that a use of the projection is, all of them for the op that another part made."""
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
    """The part that a use of the projection is, if it is all made heads."""
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
