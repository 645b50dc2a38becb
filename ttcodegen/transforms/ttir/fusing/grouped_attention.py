"""Fusion of grouped-query attention and of decode attention.

`jax.nn.dot_product_attention` keeps the heads that share keys and values as a separate dimension,
merges queries and groups in one dimension of a matmul, and multiplies the values from the left. So
each dimension of the softmax is an axis here, followed through reshapes and permutes to both
matmuls: its position there determines its role.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from xdsl.dialects.builtin import IntegerType, TensorType
from xdsl.ir import SSAValue

from ttcodegen.dialects.core.datatypes import bf16, element_of, shape_of
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttcore.tile import TILE_SIDE
from ttcodegen.ops.attention.sdpa import MOST_USERS
from ttcodegen.ops.core.builder import splat_of
from ttcodegen.ops.core.dimensions import dimension_groups
from ttcodegen.transforms.rewriting import PatternSet, Rewriter
from ttcodegen.transforms.ttir.fusing.activations import product_of
from ttcodegen.transforms.ttir.fusing.attention import (
    HIDES,
    Scores,
    emit_attention,
    sum_of_masks,
)
from ttcodegen.transforms.ttir.fusing.heads import REPETITIONS
from ttcodegen.transforms.ttir.movement_passes import broadcast
from ttcodegen.transforms.ttir.position_forms import Linear
from ttcodegen.transforms.ttir.position_values import form_of
from ttcodegen.transforms.ttir.queries import is_float, same_type

GROUPED_ATTENTION = PatternSet()

Layout = tuple[tuple[int, ...], ...]
"""Axes that each dimension of a tensor consists of, outer ones first; none for size 1."""

_ORDERINGS = ("ttir.reshape", "ttir.permute")
_MOVES = (*_ORDERINGS, "ttir.typecast")
_SCALINGS = ("ttir.multiply", "ttir.div")
_MASKINGS = ("ttir.add", "ttir.where")
_LONGEST = 16
_MOST_MASKS = 4


@dataclass(frozen=True)
class _Axes:
    """Dimensions of a softmax, as axes."""

    sizes: tuple[int, ...]

    def size(self, axes: Sequence[int]) -> int:
        return prod(self.sizes[axis] for axis in axes)

    def layout(self) -> Layout:
        """Layout of the softmax."""
        return tuple((axis,) if size != 1 else () for axis, size in enumerate(self.sizes))

    def after(self, layout: Layout, op: CatalogueOp) -> Layout | None:
        """Returns the layout of the result of a move, or None if it splits an axis."""
        if op.name == "ttir.permute":
            permutation: list[int] = op.parameter("permutation")
            return tuple(layout[axis] for axis in permutation)
        if op.name == "ttir.typecast":
            return layout
        return self._regrouped(layout, shape_of(op.operands[0].type), op.result_shape)

    def before(self, layout: Layout, op: CatalogueOp) -> Layout | None:
        """Returns the layout of the operand of a move, or None if it merges parts of axes."""
        if op.name == "ttir.permute":
            places: list[int] = op.parameter("permutation")
            return tuple(layout[places.index(axis)] for axis in range(len(places)))
        if op.name == "ttir.typecast":
            return layout
        return self._regrouped(layout, op.result_shape, shape_of(op.operands[0].type))

    def _regrouped(
        self, layout: Layout, shape: tuple[int, ...], wanted: tuple[int, ...]
    ) -> Layout | None:
        found: list[tuple[int, ...]] = [()] * len(wanted)
        for first, second in dimension_groups(shape, wanted):
            axes = [axis for dim in first for axis in layout[dim]]
            for dim in second:
                taken: list[int] = []
                while self.size(taken) < wanted[dim]:
                    taken.append(axes.pop(0))
                if self.size(taken) != wanted[dim]:
                    return None
                found[dim] = tuple(taken)
        return tuple(found)


@dataclass(frozen=True)
class _Mask:
    """Mask of attention scores: additive, or a select of a fill value."""

    value: SSAValue
    layout: Layout
    """Layout of the scores that it is applied to."""
    hidden: float = 0.0
    inverted: bool = False

    def axes(self) -> list[int]:
        """Returns the axes along which the mask varies."""
        shape = shape_of(self.value.type)
        dims = self.layout[len(self.layout) - len(shape) :]
        return [axis for size, axes in zip(shape, dims, strict=True) if size != 1 for axis in axes]

    def arranged(
        self, rewriter: Rewriter, axes: _Axes, groups: Sequence[Sequence[int]]
    ) -> SSAValue:
        """Returns the mask with one dimension per group of axes."""
        varying = self.axes()
        value = self.value
        while (op := rewriter.defining(value, "ttir.reshape", "ttir.typecast")) is not None:
            if not is_float(op.operands[0]):
                break
            value = op.operands[0]
        value = rewriter.reshape(value, [axes.sizes[axis] for axis in varying])
        kept = [axis for group in groups for axis in group if axis in varying]
        value = rewriter.permute(value, [varying.index(axis) for axis in kept])
        # Grouped heads may share masks only within groups, or only between groups.
        whole = [axis for group in groups if set(group) & set(varying) for axis in group]
        value = rewriter.reshape(value, [axes.sizes[a] if a in kept else 1 for a in whole])
        if whole != kept:
            sizes = [axes.sizes[axis] for axis in whole]
            value = broadcast(rewriter, value, TensorType(element_of(value.type), sizes))
        present = [axes.size(group) if set(group) & set(varying) else 1 for group in groups]
        return rewriter.reshape(value, present)


@dataclass(frozen=True)
class _Found:
    """Decomposed scores of a softmax: matmul, scale and mask."""

    layout: Layout
    number: float = 1.0
    masks: tuple[_Mask, ...] = ()
    product: CatalogueOp | None = None


def _scores(
    rewriter: Rewriter, axes: _Axes, value: SSAValue, found: _Found, depth: int = 0
) -> _Found | None:
    """Traces scores back to the matmul, collecting scale and masks."""
    names = (*_MOVES, *_SCALINGS, *_MASKINGS, "ttir.maximum", "ttir.matmul")
    op = rewriter.sole(value, *names)
    if op is None or depth > _LONGEST or 0 in op.result_shape:
        return None
    if op.name == "ttir.matmul":
        return replace(found, product=op)
    if op.name in _MOVES:
        layout = axes.before(found.layout, op) if is_float(op.operands[0]) else None
        if layout is None:
            return None
        return _scores(rewriter, axes, op.operands[0], replace(found, layout=layout), depth + 1)
    if op.name in _SCALINGS:
        product = product_of(rewriter, op)
        if len(product.factors) != 1 or not same_type(product.factors[0], op):
            return None
        scaled = replace(found, number=found.number * product.number)
        return _scores(rewriter, axes, product.factors[0], scaled, depth + 1)
    # The scale applies to the matmul, before masks.
    if found.number != 1.0 or len(found.masks) == _MOST_MASKS:
        return None
    if op.name == "ttir.maximum":
        # Hidden scores stay hidden under so low a bound.
        least = splat_of(op.operands[1])
        if least is None or least > HIDES or not same_type(op.operands[0], op):
            return None
        return _scores(rewriter, axes, op.operands[0], found, depth + 1)
    for scores, mask in _masked(op, found.layout):
        shape = shape_of(scores.type)
        begin = len(op.result_shape) - len(shape)
        if op.result_shape == (1,) * begin + shape and element_of(scores.type) == element_of(
            op.result_type
        ):
            layout, masks = found.layout[begin:], (*found.masks, mask)
            within = replace(found, layout=layout, masks=masks)
            inner = _scores(rewriter, axes, scores, within, depth + 1)
            if inner is not None:
                return inner
    return None


def _masked(op: CatalogueOp, layout: Layout) -> list[tuple[SSAValue, _Mask]]:
    """Returns candidates for the unmasked scores, each with its mask."""
    if op.name == "ttir.add":
        lhs, rhs = op.operands
        return [(lhs, _Mask(rhs, layout)), (rhs, _Mask(lhs, layout))]
    condition, first, second = op.operands
    found: list[tuple[SSAValue, _Mask]] = []
    for scores, other, inverted in ((first, second, False), (second, first, True)):
        number = splat_of(other)
        if number is not None and number <= HIDES:
            found.append((scores, _Mask(condition, layout, float(number), inverted)))
    return found


@dataclass(frozen=True)
class _Factor:
    """Operand of a matmul, with its contracted dimension."""

    value: SSAValue
    inner: int

    def last(self, rewriter: Rewriter) -> SSAValue:
        """Returns the operand with the contracted dimension last."""
        rank = len(shape_of(self.value.type))
        if self.inner == rank - 1:
            return self.value
        return rewriter.permute(self.value, [*range(rank - 2), rank - 1, rank - 2])


def _unscaled(rewriter: Rewriter, factor: _Factor) -> tuple[_Factor, float]:
    """Strips conversions and constant factors from an operand; returns it and the product of the
    factors.

    Data movement after the stripped ops is applied again. Values computed in a wider type are used
    as they were rounded.
    """
    moves: list[CatalogueOp] = []
    value, number = factor.value, 1.0
    found = (0, value, number)
    for _ in range(_LONGEST):
        op = rewriter.sole(value, *_MOVES, *_SCALINGS, "ttir.neg")
        if op is None or not is_float(op.operands[0]):
            break
        if op.name in _MOVES:
            if op.name != "ttir.typecast":
                moves.append(op)
            value = op.operands[0]
        else:
            product = product_of(rewriter, op)
            if len(product.factors) != 1 or not same_type(product.factors[0], op):
                break
            number *= product.number
            value = product.factors[0]
        if element_of(value.type) == bf16:
            found = (len(moves), value, number)
    count, value, number = found
    for move in reversed(moves[:count]):
        moved = TensorType(element_of(value.type), move.result_shape)
        value = rewriter.again(move, [value], moved)
    return replace(factor, value=value), number


def _factors(op: CatalogueOp) -> tuple[_Factor, _Factor] | None:
    """Returns both operands if they have the batch dimensions of the result."""
    rank = len(op.result_shape)
    if any(shape_of(v.type)[:-2] != op.result_shape[:-2] for v in op.operands) or rank < 2:
        return None
    left = rank - 2 if op.parameter("transpose_a") else rank - 1
    right = rank - 1 if op.parameter("transpose_b") else rank - 2
    return _Factor(op.operands[0], left), _Factor(op.operands[1], right)


def _weights(rewriter: Rewriter, value: SSAValue) -> tuple[CatalogueOp, _Axes, Layout] | None:
    """Returns the softmax whose elements a value has, and the layout of its axes in the value."""
    moves: list[CatalogueOp] = []
    while (op := rewriter.sole(value, *_MOVES, "ttir.softmax")) is not None:
        if 0 in op.result_shape or len(moves) > _LONGEST:
            return None
        if op.name == "ttir.softmax":
            axes = _Axes(op.result_shape)
            layout: Layout | None = axes.layout()
            for move in reversed(moves):
                layout = None if layout is None else axes.after(layout, move)
            return None if layout is None else (op, axes, layout)
        moves.append(op)
        value = op.operands[0]
    return None


@GROUPED_ATTENTION.on("ttir.matmul")
def fuse_grouped_attention(rewriter: Rewriter, op: CatalogueOp) -> SSAValue | None:
    """softmax(scale * Q K^T + mask) V of bf16 tensors, in any order of dimensions."""
    factors = _factors(op)
    if factors is None:
        return None
    for place, (weights, values) in enumerate((factors, factors[::-1])):
        found = _weights(rewriter, weights.value)
        if found is None:
            continue
        softmax, axes, layout = found
        keys = softmax.parameter("dimension") % len(axes.sizes)
        if axes.sizes[keys] == 1 or layout[weights.inner] != (keys,):
            continue
        scores = _scores(rewriter, axes, softmax.operands[0], _Found(axes.layout()))
        if scores is None or not softmax.operands[0].has_one_use():
            continue
        rank = len(layout)
        (rows,) = (layout[dim] for dim in (rank - 2, rank - 1) if dim != weights.inner)
        leading = tuple(axis for dim in layout[:-2] for axis in dim)
        attention = _Attention(rewriter, axes, keys, leading, rows, scores)
        return attention.build(op, values, place == 1)
    return None


@dataclass(frozen=True)
class _Attention:
    """A matched attention."""

    rewriter: Rewriter
    axes: _Axes
    keys: int
    leading: tuple[int, ...]
    """Axes shared by queries, keys and values, in the order of the second matmul."""
    rows: tuple[int, ...]
    """Axes of queries alone, in the order of the second matmul."""
    scores: _Found

    def build(self, op: CatalogueOp, values: _Factor, is_flipped: bool) -> SSAValue | None:
        """Emits the result of the second matmul, whose rows are last if it is flipped."""
        product, layout = self.scores.product, self.scores.layout
        factors = None if product is None else _factors(product)
        if product is None or factors is None or len(layout) < 2:
            return None
        query, key = factors
        first, second = layout[-2:]
        if first == (self.keys,):
            query, key, first, second = key, query, second, first
        batch = [axis for dim in layout[:-2] for axis in dim]
        if second != (self.keys,) or set(first) != set(self.rows) or tuple(batch) != self.leading:
            return None
        (query, first_scale), (key, second_scale), (values, weight) = (
            _unscaled(self.rewriter, each) for each in (query, key, values)
        )
        if weight != 1.0:
            return None
        number = self.scores.number * first_scale * second_scale
        outer = list(layout[0]) if len(layout) > 3 else []
        heads = batch[len(outer) :]
        groups, queries = self._split_rows(first)
        sizes = self.axes.sizes
        size = shape_of(query.value.type)[query.inner]
        value_size = op.result_shape[-2 if is_flipped else -1]
        arranged = self._arranged(query, [*batch, *first], [*outer, *heads, *groups, *queries])
        shape = [self.axes.size(each) for each in (outer, [*heads, *groups], queries)]
        shared = [self.axes.size(outer), self.axes.size(heads), sizes[self.keys]]
        rewriter = self.rewriter
        found = self._found(product, number, (outer, [*heads, *groups], queries, [self.keys]))
        if found is None:
            return None
        result = emit_attention(
            rewriter,
            rewriter.reshape(arranged, [*shape, size]),
            rewriter.reshape(key.last(rewriter), [*shared, size]),
            rewriter.reshape(self._values(values), [*shared, value_size]),
            found,
            (*shape, sizes[self.keys]),
        )
        if result is None:
            return None
        order = [*outer, *heads, *groups, *queries]
        result = rewriter.reshape(result, [*(sizes[axis] for axis in order), value_size])
        places = [order.index(axis) for axis in (*self.leading, *self.rows)]
        end = len(order)
        turned = (
            [*places[: len(batch)], end, *places[len(batch) :]] if is_flipped else [*places, end]
        )
        result = rewriter.reshape(rewriter.permute(result, turned), op.result_shape)
        return rewriter.typecast(result, op.result_type.element_type)

    def _split_rows(self, rows: Sequence[int]) -> tuple[list[int], list[int]]:
        """Splits row axes into head groups and queries.

        Queries are as many as the keys, else the longest axis; any split computes the same.
        """
        sizes = self.axes.sizes
        if not rows:
            return [], []
        queries = max(rows, key=lambda axis: (sizes[axis] == sizes[self.keys], sizes[axis]))
        return [axis for axis in rows if axis != queries], [queries]

    def _arranged(self, query: _Factor, axes: Sequence[int], order: Sequence[int]) -> SSAValue:
        """Returns the queries with one dimension per axis, in another order."""
        rewriter = self.rewriter
        value = query.last(rewriter)
        sizes = [*(self.axes.sizes[axis] for axis in axes), shape_of(value.type)[-1]]
        value = rewriter.reshape(value, sizes)
        return rewriter.permute(value, [*(axes.index(axis) for axis in order), len(axes)])

    def _values(self, values: _Factor) -> SSAValue:
        """Returns the values with keys as the second last dimension."""
        rank = len(shape_of(values.value.type))
        if values.inner == rank - 2:
            return values.value
        return self.rewriter.permute(values.value, [*range(rank - 2), rank - 1, rank - 2])

    def _found(
        self, product: CatalogueOp, number: float, groups: Sequence[Sequence[int]]
    ) -> Scores | None:
        arranged = [
            Scores(
                product,
                number,
                mask.arranged(self.rewriter, self.axes, groups),
                mask.hidden,
                mask.inverted,
            )
            for mask in self.scores.masks
        ]
        if len(arranged) < 2:
            return arranged[0] if arranged else Scores(product, number, None)
        added = [each.added(self.rewriter) for each in arranged]
        total = sum_of_masks(self.rewriter, [mask for mask in added if mask is not None])
        return None if total is None else Scores(product, number, total)


DECODING = PatternSet()

_FORMS = ("ttir.typecast", "ttir.reshape", *REPETITIONS)
"""Ops that convert or repeat a mask or a position."""
_WRITES = ("ttir.update_cache", "ttir.paged_update_cache")
_KEY_UP_TO_POSITION = {"ttir.le": (0, 1), "ttir.ge": (1, 0)}
"""Comparisons that hold for visible keys, with the operand indices of key and position."""
_KEY_AFTER_POSITION = {"ttir.gt": (0, 1), "ttir.lt": (1, 0)}
"""Comparisons that hold for hidden keys."""


@DECODING.on("ttir.scaled_dot_product_attention")
def attend_up_to_position(rewriter: Rewriter, op: CatalogueOp) -> SSAValue | None:
    """Replaces a mask that hides the keys after a token's position by that position.

    The library then reads the cache up to there, and no mask. The position has to be one that a
    cache is written at, so that it is not negative and the token sees at least itself.
    """
    mask = op.optional_operand("attention_mask")
    if mask is None or op.optional_operand("attention_sink") is not None:
        return None
    if op.parameter("is_causal") or op.parameter("sliding_window_size"):
        return None
    query, key, value = (op.operand(name) for name in ("query", "key", "value"))
    users, heads, queries, size = shape_of(query.type)
    keys = shape_of(key.type)[2]
    in_library = all(element_of(tensor.type) == bf16 for tensor in (query, key, value))
    if not in_library or queries != 1 or keys % TILE_SIDE or users > MOST_USERS:
        return None
    position = _last_seen(mask, keys)
    if position is None or not _is_written_at(position):
        return None
    current = rewriter.reshape(position, [1])
    if users > 1:
        current = broadcast(rewriter, current, TensorType(element_of(current.type), [users]))
    result = rewriter.emit(
        "scaled_dot_product_attention_decode",
        [rewriter.permute(query, [2, 0, 1, 3]), key, value, None, current, None],
        TensorType(bf16, [1, users, heads, size]),
        is_causal=True,
        scale=op.parameter("scale"),
    )
    return rewriter.typecast(rewriter.permute(result, [1, 2, 0, 3]), op.result_type.element_type)


def _last_seen(mask: SSAValue, keys: int) -> SSAValue | None:
    """Returns the scalar position up to which an additive mask shows keys to all users, or None."""
    choice = _before_forms(mask, keys)
    if not isinstance(choice, CatalogueOp) or choice.name != "ttir.where":
        return None
    condition, inside, outside = choice.operands
    comparison = _before_forms(condition, keys)
    if not isinstance(comparison, CatalogueOp):
        return None
    if comparison.name in _KEY_UP_TO_POSITION:
        order = _KEY_UP_TO_POSITION[comparison.name]
    elif comparison.name in _KEY_AFTER_POSITION:
        order = _KEY_AFTER_POSITION[comparison.name]
        inside, outside = outside, inside
    else:
        return None
    shown, hidden = splat_of(inside), splat_of(outside)
    if shown != 0 or hidden is None or not hidden <= HIDES:
        return None
    counted, position = (comparison.operands[index] for index in order)
    return _scalar_source(position) if _is_key_index(counted, keys) else None


def _before_forms(value: SSAValue, keys: int) -> object:
    """Returns the op before conversions and repetitions that keep the keys last."""
    while isinstance(op := value.owner, CatalogueOp):
        source = op.operands[0] if op.operands else None
        if op.name == "ttir.maximum":
            # Hidden scores stay hidden under so low a bound.
            bound = splat_of(op.operands[1])
            if bound is None or not bound <= HIDES:
                return op
        elif op.name not in _FORMS:
            return op
        if source is None or shape_of(source.type)[-1:] != (keys,):
            return op
        value = source
    return value.owner


def _is_key_index(value: SSAValue, keys: int) -> bool:
    """Returns whether a value is the index of the key, its last dimension."""
    form = form_of(value)
    if not isinstance(form, Linear) or shape_of(value.type)[-1:] != (keys,):
        return False
    return form.constant == 0 and form.coefficients[-1] == 1 and not any(form.coefficients[:-1])


def _scalar_source(value: SSAValue) -> SSAValue | None:
    """Returns the scalar integer that a value repeats, or None."""
    while isinstance(op := value.owner, CatalogueOp) and op.name in _FORMS:
        value = op.operands[0]
    is_integer = isinstance(element_of(value.type), IntegerType)
    return value if is_integer and prod(shape_of(value.type)) == 1 else None


def _is_written_at(position: SSAValue) -> bool:
    """Returns whether a cache is updated at a position."""
    pending = [position]
    while pending:
        for use in pending.pop().uses:
            user = use.operation
            if not isinstance(user, CatalogueOp):
                continue
            if user.name in _WRITES and user.operand("update_index") is user.operands[use.index]:
                return True
            if user.name in _FORMS:
                pending += user.results
    return False
