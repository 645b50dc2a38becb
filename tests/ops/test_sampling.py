"""Drawn tokens are among those that may be drawn, as often as they should be."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

RANDOM = np.random.default_rng(29)


def settings(users, k, p, temp):
    return [
        np.full(users, k, dtype=np.uint32),
        np.full(users, p, dtype=ml_dtypes.bfloat16),
        np.full(users, temp, dtype=ml_dtypes.bfloat16),
    ]


def inputs(users, candidates):
    """Values without equal ones, and the numbers of the tokens that they belong to."""
    values = np.stack([RANDOM.permutation(candidates) for _ in range(users)]) / 8
    tokens = RANDOM.permutation(10 * candidates)[:candidates]
    return values.astype(ml_dtypes.bfloat16), np.tile(tokens, (users, 1)).astype(np.int32)


def allowed(values, k, p, temp):
    """The candidates of one user that may be drawn, with their probabilities."""
    ranked = sorted(enumerate(values.astype(np.float64) * temp), key=lambda pair: -pair[1])[:k]
    weights = [np.exp(value - ranked[0][1]) for _, value in ranked]
    total, reached, kept = sum(weights), 0.0, {}
    for (place, _), weight in zip(ranked, weights, strict=True):
        if reached >= p:
            break
        kept[place] = weight / total
        reached += weight / total
    return {place: weight / sum(kept.values()) for place, weight in kept.items()}


@pytest.mark.parametrize("users", [1, 32, 40])
@pytest.mark.parametrize(("k", "p", "temp"), [(1, 1.0, 1.0), (5, 1.0, 0.5), (30, 0.75, 2.0)])
def test_drawn_tokens_may_be_drawn(evaluate, users, k, p, temp):
    values, tokens = inputs(users, 50)
    operands = [values, tokens, *settings(users, k, p, temp)]
    ran = evaluate("sampling", operands, ((users,), "int32"), seed=3)
    for found in (ran.golden[0], ran.lowered[0]):
        for user in range(users):
            candidates = {int(tokens[user, place]) for place in allowed(values[user], k, p, temp)}
            assert int(found[user]) in candidates
    assert ran.names.count("ttnn.sampling") == -(-users // 32)
    if users <= 32:
        np.testing.assert_array_equal(ran.golden[0], ran.lowered[0])


def test_tokens_are_drawn_by_their_probabilities(evaluate):
    users = 4000
    values, tokens = inputs(1, 8)
    operands = [np.tile(values, (users, 1)), np.tile(tokens, (users, 1))]
    ran = evaluate(
        "sampling", [*operands, *settings(users, 6, 1.0, 2.0)], ((users,), "int32"), seed=1
    )
    for place, probability in allowed(values[0], 6, 1.0, 2.0).items():
        share = float((ran.golden[0] == tokens[0, place]).mean())
        assert abs(share - probability) < 0.03


def test_refusals(refusal):
    values, tokens = inputs(2, 8)
    operands = [values, tokens, *settings(3, 1, 1.0, 1.0)]
    assert "expected k of shape (2,), found (3,)" in refusal("sampling", operands, ((2,), "int32"))
    operands = [values, tokens[:1], *settings(2, 1, 1.0, 1.0)]
    message = refusal("sampling", operands, ((2,), "int32"))
    assert "expected input_indices of shape (2, 8), found (1, 8)" in message
