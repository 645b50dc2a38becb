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
        key: (batch, KV heads, keys, head size); KV heads divide the query heads, and each serves
            that many consecutive ones.
        value: Like `key`, of any head size.
        added: Broadcasts to (batch, heads, queries, keys); minus infinity hides a key.
        sink: Broadcasts to (batch, heads, queries, 1); an additional score in the denominator of
            the softmax, without a value.
        arithmetic: Arithmetic of the matrix engine; None for exact results.
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
    # Zero, like torch's fused attention; a softmax would be NaN.
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
    """Device arithmetic of the kernels, with all keys in one chunk.

    The scale is applied in the exponent, the division by the sum comes last, and intermediates are
    bfloat16.
    """
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
    """Approximate exp(scale * (scores - top)), whatever the compute config.

    The packer flushes the approximation of large negative numbers to zero.
    """
    difference = in_destination(scores - top, arithmetic) * np.float32(scale)
    return np.where(difference < -88, np.float32(0), rounded_sums(fast_exponential(difference)))


def _sum_of_lanes(weights: Array) -> Array:
    """Sums the last dimension: over tiles for each column, then over the columns."""
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
    """Sum of the operands that are not None."""
    if a is None or b is None:
        return b if a is None else a
    return a + b


@dataclass(frozen=True)
class Band:
    """Band of visible keys: those at most `half` away from `center` positions before the query."""

    center: float
    half: float

    @staticmethod
    def of(queries: int, keys: int, causal: bool, window: int | None) -> Band | None:
        """Returns the band of a causal or windowed attention, None if all keys are visible.

        Causal: the last `window` keys up to the query; otherwise `window // 2` keys on both sides.
        A window of zero is none. Queries count from the first key, as in the library's kernels.
        """
        if causal:
            last = window - 1 if window else max(queries, keys)
            return Band(last / 2, last / 2)
        return Band(0, window // 2) if window else None

    def visible(self, queries: int, keys: int) -> Array:
        """Returns the visibility mask, (queries, keys)."""
        before = np.arange(queries)[:, None] - np.arange(keys)[None, :]
        return np.abs(before - self.center) <= self.half
