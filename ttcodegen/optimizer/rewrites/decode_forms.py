"""The forms that the library wants of programs that make a token at a time.

Rows of caches are written from shards, a core for each user, at positions that stay on the device;
the heads of a user are put side by side from core to core; and what only moves dimensions of one
element is a reshape, of which there often need be none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from ttcodegen.dialects.core.datatypes import bf16, element_of, f32, shape_of, tensor_type
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttcore.tile import TILE_SIDE
from ttcodegen.ops.attention.heads import MOST_USERS
from ttcodegen.ops.attention.paged_kv_cache import MOST_USERS as MOST_CACHED
from ttcodegen.ops.attention.paged_kv_cache import write_rows
from ttcodegen.ops.core.builder import OpBuilder
from ttcodegen.ops.dialects import ttnn_op_classes
from ttcodegen.ops.movement.data_movement import reshaped, suits_rows
from ttcodegen.optimizer.cost.unplaced_time import apply_if_faster
from ttcodegen.optimizer.rewrites.dense_rows import RESHAPES
from ttcodegen.transforms.rebuilding import keep, rebuild
from ttcodegen.transforms.rewriting import erase_dead

Rule = Callable[[OpBuilder, CatalogueOp, Sequence[SSAValue]], Sequence[SSAValue] | None]
"""The replacements for the results of a call with these operands; None where it stays."""

HEADS_LAST = [0, 2, 1, 3]
"""From (1, heads, users, size) to (1, users, heads, size)."""


@dataclass(frozen=True)
class DecodeCaches(ModulePass):
    """Caches are updated from shards, and movements of dimensions of one element are reshapes,
    those by way of rows only where that saves time, for the calls around them want tiles."""

    name = "ttnn-decode-caches"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in _functions(op):
            _rewrite(function, _Caches())
        apply_if_faster(ctx, op, ("permute",), lambda f: _rewrite(f, _reshaped_by_rows))


@dataclass(frozen=True)
class DecodeHeads(ModulePass):
    """Heads of a token of each user are put side by side in place."""

    name = "ttnn-decode-heads"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in _functions(op):
            _rewrite(function, _joined)


def _functions(module: ModuleOp) -> list[FuncOp]:
    return [op for op in module.walk() if isinstance(op, FuncOp)]


def _rewrite(function: FuncOp, rule: Rule) -> None:
    classes = ttnn_op_classes()

    def rewrite(builder: OpBuilder, op: CatalogueOp) -> Sequence[SSAValue]:
        operands = [builder[value] for value in op.operands]
        made = rule(builder, op, operands)
        if made is None:
            keep(builder, op, operands)
            return op.results
        return made

    rebuild(function, lambda insert, m: OpBuilder(classes, insert, m), rewrite)
    erase_dead(function)


class _Caches:
    """Rewrites one function."""

    def __init__(self) -> None:
        self._positions: dict[tuple[SSAValue, int], SSAValue] = {}
        """By position and users, the position of each of them."""

    def __call__(
        self, builder: OpBuilder, op: CatalogueOp, operands: Sequence[SSAValue]
    ) -> Sequence[SSAValue] | None:
        name = op.definition.short_name
        if name == "permute":
            return [_permuted(builder, operands[0], op.parameter("permutation"))]
        if name != "update_cache" or not _updates_users(op):
            return None
        cache, rows, position = operands
        users = shape_of(cache.type)[0]
        entry = _permuted(builder, rows, HEADS_LAST)
        if (position, users) not in self._positions:
            one = builder.reshape(position, [1])
            self._positions[position, users] = builder.repeat(one, [users])
        write_rows(builder, op, cache, entry, self._positions[position, users])
        return []


def _updates_users(op: CatalogueOp) -> bool:
    """True if the rows of an update are those that cores of their own can write."""
    cache, rows = op.operand("cache"), op.operand("input")
    users, heads, _, size = shape_of(cache.type)
    return (
        op.parameter("compute_config") is None
        and users <= MOST_CACHED
        and heads <= TILE_SIDE
        and size % TILE_SIDE == 0
        and shape_of(rows.type)[2] == users
        and all(element_of(value.type) in (bf16, f32) for value in (cache, rows))
    )


def _reshaped_by_rows(
    builder: OpBuilder, op: CatalogueOp, operands: Sequence[SSAValue]
) -> Sequence[SSAValue] | None:
    if op.definition.short_name != "permute":
        return None
    return [_permuted(builder, operands[0], op.parameter("permutation"), by_rows=True)]


def _permuted(
    builder: OpBuilder, value: SSAValue, permutation: Sequence[int], by_rows: bool = False
) -> SSAValue:
    """A value with its dimensions in that order: what was done before is part of it, and a reshape
    is enough where those of more than one element stay in theirs; one that goes by way of rows if
    that is wanted."""
    order = list(permutation)
    before = value.owner
    if isinstance(before, CatalogueOp) and before.definition.short_name == "permute":
        order = [before.parameter("permutation")[axis] for axis in order]
        value = before.operands[0]
    shape = shape_of(value.type)
    moved = [axis for axis in order if shape[axis] != 1]
    permuted = tuple(shape[axis] for axis in order)
    if moved == sorted(moved) and (by_rows or not suits_rows(value, permuted)):
        return reshaped(builder, value, permuted)
    return builder.permute(value, order)


def _joined(
    builder: OpBuilder, op: CatalogueOp, operands: Sequence[SSAValue]
) -> Sequence[SSAValue] | None:
    """`reshape` of (users, heads, size) to (users, heads * size), whatever dimensions of one
    element there are besides."""
    if op.definition.short_name not in RESHAPES:
        return None
    shape = shape_of(operands[0].type)
    leading = [size for size in shape[:-2] if size != 1]
    if len(shape) < 3 or len(leading) != 1:
        return None
    (users,), (count, size) = leading, shape[-2:]
    rows = op.result_shape
    element = element_of(operands[0].type)
    if (
        rows[-1] != count * size
        or prod(rows[:-1]) != users
        or not 1 < count <= TILE_SIDE
        or size % TILE_SIDE
        or users != MOST_USERS  # Others would have to be cut out of the rows of a tile.
        or element not in (bf16, f32)
    ):
        return None
    by_user = builder.reshape(operands[0], [1, users, count, size])
    type_ = tensor_type(element, (1, 1, MOST_USERS, count * size))
    made = builder.emit("nlp_concat_heads_decode", [by_user], type_, num_heads=count)
    return [reshaped(builder, made, rows)]
