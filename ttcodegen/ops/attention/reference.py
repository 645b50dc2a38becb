"""Reference semantics of attention, exact or in device arithmetic."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

from ttcodegen.dialects.operations.compute_config import Arithmetic
from ttcodegen.dialects.ttcore.tile import TILE_SIDE
from ttcodegen.foundation.lazy_numpy import Array, np
from ttcodegen.ops.core.engine import (
    element_product,
    fast_exponential,
    in_destination,
    iterated_reciprocal,
    matrix_product,
    rounded_sums,
)


def default_scale(head_size: int) -> float:
    """Default scale of the scores of an op without a `scale` attribute."""
    return 1.0 / sqrt(head_size)


def attend(
    query: Array,
    key: Array,
    value: Array,
    scale: float,
    added: Array | None = None,
    sink: Array | None = None,
    arithmetic: Arithmetic | None = None,
) -> Array:
    """softmax(scale * Q K^T + added) V; zero in rows that see no key.

    Args:
        query: (batch, heads, queries, head size).
        key: (batch, heads of keys, keys, head size); its heads divide those of the query, and each
            serves as many heads of the query in a row.
        value: as `key`, of any head size.
        added: broadcasts to (batch, heads, queries, keys); minus infinity hides a key.
        sink: broadcasts to (batch, heads, queries, 1); one more score in the sum that the
            exponentials are divided by, to which no value belongs.
        arithmetic: that of the matrix engine; None for exact ones.
    """
    if arithmetic is not None:
        return _attend_in_engine(query, key, value, scale, added, sink, arithmetic)
    batch, heads, queries, size = query.shape
    grouped = query.reshape(batch, key.shape[1], -1, size)
    scores = np.matmul(grouped, np.swapaxes(key, -1, -2))
    scores = scores.reshape(batch, heads, queries, -1) * scale
    if added is not None:
        scores = scores + added
    top = scores.max(axis=-1, keepdims=True)
    if sink is not None:
        top = np.maximum(top, sink)
    # As torch's fused attention has it; a softmax would be NaN.
    sees_nothing = top == -np.inf
    exponentials = np.exp(scores - np.where(sees_nothing, 0, top))
    total = exponentials.sum(axis=-1, keepdims=True)
    if sink is not None:
        total = total + np.exp(sink - top)
    total = np.where(sees_nothing, 1, total)
    weights = (exponentials / total).reshape(batch, key.shape[1], -1, key.shape[2])
    return np.matmul(weights, value).reshape(batch, heads, queries, -1)


def _attend_in_engine(
    query: Array,
    key: Array,
    value: Array,
    scale: float,
    added: Array | None,
    sink: Array | None,
    arithmetic: Arithmetic,
) -> Array:
    """As the kernels attend, with all keys in one chunk: the scale is left to the exponent, the sum
    of the exponentials divides at the end, and what goes from step to step is bfloat16."""
    batch, heads, queries, size = query.shape
    grouped = query.reshape(batch, key.shape[1], -1, size)
    scores = matrix_product(grouped, np.swapaxes(key, -1, -2), arithmetic, in_exponent=True)
    scores = rounded_sums(scores.reshape(batch, heads, queries, -1))
    if added is not None:
        unscaled = rounded_sums(np.asarray(added, np.float32) / np.float32(scale))
        scores = rounded_sums(scores + unscaled)
    top = scores.max(axis=-1, keepdims=True)
    if sink is not None:
        sink = np.asarray(sink, np.float32) / np.float32(scale)
        top = np.maximum(top, sink)
    weights = _power(scores, top, scale, arithmetic)
    total = _sum_of_lanes(weights)
    if sink is not None:
        total = rounded_sums(total + _power(sink, top, scale, arithmetic))
    factor = in_destination(iterated_reciprocal(total, arithmetic), arithmetic)
    weights = weights.reshape(batch, key.shape[1], -1, key.shape[2])
    found = rounded_sums(matrix_product(weights, value, arithmetic))
    return element_product(found.reshape(batch, heads, queries, -1), factor, arithmetic)


def _power(scores: Array, top: Array, scale: float, arithmetic: Arithmetic) -> Array:
    """The exponentials of scores below the maximum, approximations whatever is configured; what the
    approximation makes of large negative numbers is turned into zero by the packer."""
    difference = in_destination(scores - top, arithmetic) * np.float32(scale)
    return np.where(difference < -88, np.float32(0), rounded_sums(fast_exponential(difference)))


def _sum_of_lanes(weights: Array) -> Array:
    """The sums along the last dimension: the columns of a tile are summed up over the tiles, then
    with each other."""
    *outer, keys = weights.shape
    lanes = np.zeros((*outer, TILE_SIDE), np.float32)
    for begin in range(0, keys, TILE_SIDE):
        part = weights[..., begin : begin + TILE_SIDE]
        lanes[..., : part.shape[-1]] = rounded_sums(lanes[..., : part.shape[-1]] + part)
    return rounded_sums(lanes.sum(axis=-1, keepdims=True))


def hidden(visible: Array) -> Array:
    """Additive mask: zero where a key is visible, minus infinity elsewhere."""
    return np.where(visible, np.float32(0), np.float32(-np.inf))


def plus(a: Array | None, b: Array | None) -> Array | None:
    """The sum of what is there."""
    if a is None or b is None:
        return b if a is None else a
    return a + b


@dataclass(frozen=True)
class Band:
    """The keys that each query sees: those at most `half` away from `center` places before it."""

    center: float
    half: float

    @staticmethod
    def of(queries: int, keys: int, causal: bool, window: int | None) -> Band | None:
        """The last `window` keys up to the query if it is causal, else as many around it; None if
        every query sees every key.

        A window of zero is none. Queries count from the first key, as the library's kernels do."""
        if causal:
            last = window - 1 if window else max(queries, keys)
            return Band(last / 2, last / 2)
        return Band(0, window // 2) if window else None

    def visible(self, queries: int, keys: int) -> Array:
        """(queries, keys)."""
        before = np.arange(queries)[:, None] - np.arange(keys)[None, :]
        return np.abs(before - self.center) <= self.half
