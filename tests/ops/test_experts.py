"""Mixture of experts on one device, against loops over tokens."""

from __future__ import annotations

import math

import numpy as np
import pytest

RANDOM = np.random.default_rng(17)


def drawn(*shape, dtype="float32"):
    return np.asarray(RANDOM.normal(size=shape)).astype(np.dtype(dtype))


def named(*shape, count, dtype="uint16"):
    """Experts of tokens, no expert twice for one token."""
    rows = [RANDOM.permutation(count)[: shape[-1]] for _ in range(math.prod(shape[:-1]))]
    return np.array(rows).reshape(shape).astype(np.dtype(dtype))


def owners(*shape):
    return np.ones(shape, np.uint16)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize(
    ("tokens", "hidden", "experts", "k"), [(32, 64, 128, 4), (3, 40, 8, 8), (1, 16, 70, 1)]
)
def test_topk_router_gpt(evaluate, dtype, tokens, hidden, experts, k):
    # Few values, whose products with one another are exact, and a bias that leaves no ties.
    x = RANDOM.integers(-2, 3, size=(tokens, hidden)).astype(np.dtype(dtype))
    weight = (RANDOM.integers(-1, 2, size=(hidden, experts)) * 0).astype(np.dtype(dtype))
    weight[0] = 1
    lines = [RANDOM.permutation(experts) / 64 for _ in range(tokens)]
    bias = np.array(lines).astype(np.dtype(dtype))
    results = [((tokens, k), "uint16"), (tokens, k)]
    ran = evaluate("topk_router_gpt", [x, weight, bias], results, k=k, num_experts=experts)
    scores = x.astype(float) @ weight.astype(float) + bias.astype(float)
    expected = np.argsort(-scores, axis=1)[:, :k]
    best = np.take_along_axis(scores, expected, 1)
    shares = np.exp(best) / np.exp(best).sum(axis=1, keepdims=True)
    for indices, weights in (ran.golden, ran.lowered):
        assert indices.dtype == np.uint16
        np.testing.assert_array_equal(
            np.take_along_axis(scores, indices.astype(int), 1).round(6), best.round(6)
        )
        np.testing.assert_allclose(weights.astype(float), shares, atol=0.01)


def test_router_refusals(refusal):
    x, weight, bias = drawn(4, 16), drawn(16, 8), drawn(4, 8)
    results = [((4, 2), "uint16"), (4, 2)]
    options = {"k": 2, "num_experts": 8}
    message = refusal("topk_router_gpt", [x, drawn(15, 8), bias], results, **options)
    assert "expected weight of shape (16, 8), found (15, 8)" in message
    message = refusal("topk_router_gpt", [x, weight, drawn(8)], results, **options)
    assert "expected bias of rank 2, found (8,)" in message
    message = refusal("topk_router_gpt", [x, weight, bias], results, **{**options, "k": 9})
    assert "expected k from 1 to 8, the number of experts, found 9" in message
    message = refusal("topk_router_gpt", [x, weight, bias], [(4, 3), (4, 2)], **options)
    assert "expected a result of shape (4, 2), found (4, 3)" in message


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize(
    ("batch", "sequence", "experts", "k", "size"),
    [(2, 16, 8, 2, 16), (1, 5, 3, 1, 2), (3, 7, 40, 4, 32), (1, 1, 1, 1, 1)],
)
def test_moe_expert_token_remap(evaluate, dtype, batch, sequence, experts, k, size):
    scores = drawn(1, batch, sequence, experts, dtype=dtype)
    metadata = named(1, batch, sequence, k, count=experts)
    groups = -(-batch * sequence // size)
    results = [scores.shape, ((1, 1, groups, experts), "uint16")]
    operands = [scores, owners(1, 1, experts, 1), metadata]
    ran = evaluate("moe_expert_token_remap", operands, results, reduction_size=size)
    kept = np.zeros(scores.shape, scores.dtype)
    reduced = np.zeros((1, 1, groups, experts), np.uint16)
    for b, s in np.ndindex(batch, sequence):
        for expert in metadata[0, b, s]:
            kept[0, b, s, expert] = scores[0, b, s, expert]
            reduced[0, 0, (b * sequence + s) // size, expert] = 1
    for found in (ran.golden, ran.lowered):
        np.testing.assert_array_equal(found[0], kept)
        np.testing.assert_array_equal(found[1], reduced)


def test_remap_refusals(refusal, make_op):
    scores, metadata = drawn(1, 2, 4, 6), named(1, 2, 4, 2, count=6)
    results = [(1, 2, 4, 6), ((1, 1, 2, 6), "uint16")]
    name = "moe_expert_token_remap"
    message = refusal(name, [scores, owners(1, 1, 5, 1), metadata], results, reduction_size=4)
    assert "expected expert_mapping of 6 experts, found (1, 1, 5, 1)" in message
    message = refusal(name, [scores, owners(1, 1, 6, 1), metadata], results, reduction_size=0)
    assert "expected a reduction_size of 1 or more, found 0" in message
    results = [(1, 2, 4, 3), ((1, 1, 2, 3), "uint16")]
    op = make_op(name, [scores, owners(1, 1, 6, 2), metadata], results, reduction_size=4)
    op.verify_()
    assert "names 2 devices, and the mesh of 1x1 has 1" in op.definition.refused_form(op)


@pytest.mark.parametrize("shape", [(2, 5, 1, 8), (4, 1, 3, 8)])
def test_dispatch_and_combine(evaluate, shape):
    batch, *middle, hidden = shape
    sequence, experts, k = max(middle), 6, 2
    tokens, metadata = drawn(*shape, dtype="bfloat16"), named(*shape[:3], k, count=experts)
    travel = {"num_devices": 1, "cluster_axis": 0}
    results = [(1, batch, sequence, hidden), ((1, batch, sequence, k), "uint16")]
    operands = [tokens, metadata, owners(1, 1, experts, 1)]
    ran = evaluate("all_to_all_dispatch", operands, results, **travel)
    for found in (ran.golden, ran.lowered):
        np.testing.assert_array_equal(found[0], tokens.reshape(results[0]))
        np.testing.assert_array_equal(found[1], metadata.reshape(results[1][0]))
    made = drawn(experts, batch, sequence, hidden, dtype="bfloat16")
    operands = [made, ran.lowered[1], owners(1, 1, experts, 1)]
    combined = evaluate(
        "all_to_all_combine",
        operands,
        (k, batch, sequence, hidden),
        **travel,
        num_experts_per_tok=k,
    )
    expected = np.zeros((k, batch, sequence, hidden), made.dtype)
    for b, s, place in np.ndindex(batch, sequence, k):
        expected[place, b, s] = made[ran.lowered[1][0, b, s, place], b, s]
    for found in (combined.golden, combined.lowered):
        np.testing.assert_array_equal(found[0], expected)


def test_dispatch_with_scores(evaluate, make_op, refusal):
    operands = [
        drawn(1, 1, 7, 16),
        named(1, 1, 7, 3, count=5),
        drawn(1, 1, 7, 3),
        owners(1, 1, 1, 5),
    ]
    name, travel = "all_to_all_dispatch_metadata", {"num_devices": 1, "cluster_axis": 1}
    results = [(1, 7, 16), ((1, 7, 3), "uint16"), (1, 7, 3)]
    ran = evaluate(name, operands, results, **travel)
    for found in (ran.golden, ran.lowered):
        for array, given in zip(found, operands, strict=False):
            np.testing.assert_array_equal(array, given[0])
    op = make_op(
        name,
        operands,
        [(1, 14, 16), ((1, 14, 3), "uint16"), (1, 14, 3)],
        **{**travel, "num_devices": 2},
    )
    op.verify_()
    assert "goes between 2 devices" in op.definition.refused_form(op)
    message = refusal(name, operands, [(1, 8, 16), *results[1:]], **travel)
    assert "expected a result of as many elements as (7, 16), found (1, 8, 16)" in message
    message = refusal(name, operands, results, **{**travel, "cluster_axis": 2})
    assert "expected a cluster_axis of 0 or 1, found 2" in message


def gated(kind, gate, up):
    if kind == "silu":
        return gate / (1 + math.exp(-gate)) * up
    if kind == "gelu":
        inner = math.tanh(math.sqrt(2 / math.pi) * (gate + 0.044715 * gate**3))
        return 0.5 * gate * (1 + inner) * up
    gate, up = min(gate, 7.0), max(-7.0, min(up, 7.0))
    return (up + 1) * gate / (1 + math.exp(-1.702 * gate))


@pytest.mark.parametrize("kind", ["silu", "gelu", "swiglu"])
@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_moe_compute(evaluate, kind, biased, dtype):
    layers, experts, hidden, inner, tokens, k = 2, 3, 32, 64, 5, 2
    x = drawn(1, tokens, hidden, dtype=dtype)
    indices = named(1, tokens, k, count=experts)
    shapes = [(hidden, inner), (hidden, inner), (inner, hidden)]
    weights = [drawn(layers, experts, *shape, dtype=dtype) for shape in shapes]
    biases = [drawn(layers, experts, shape[1], dtype=dtype) for shape in shapes]
    ran = evaluate(
        "moe_compute",
        [x, indices, drawn(1, tokens, k, dtype=dtype), owners(1, experts), *weights]
        + (biases if biased else [None] * 3),
        (k, tokens, hidden),
        layer_id=1,
        intermediate_size=inner,
        activation_function=kind,
    )
    expected = np.zeros((k, tokens, hidden))
    for place, token in np.ndindex(k, tokens):
        expert = int(indices[0, token, place])
        w0, w1, w2 = (weight[1, expert].astype(float) for weight in weights)
        b0, b1, b2 = (bias[1, expert].astype(float) * biased for bias in biases)
        row = x[0, token].astype(float)
        pairs = zip(row @ w0 + b0, row @ w1 + b1, strict=True)
        made = np.array([gated(kind, gate, up) for gate, up in pairs])
        expected[place, token] = made @ w2 + b2
    for found in (ran.golden[0], ran.lowered[0]):
        scale = np.abs(expected).max() * (0.02 if dtype == "bfloat16" else 1e-5)
        np.testing.assert_allclose(found.astype(float), expected, atol=scale)


def test_moe_compute_refusals(refusal, make_op):
    x, indices, scores = drawn(4, 32), named(4, 2, count=3), drawn(4, 2)
    weights = [drawn(1, 3, 32, 64), drawn(1, 3, 32, 64), drawn(1, 3, 64, 32)]
    options = {"layer_id": 0, "intermediate_size": 64}
    given = [x, indices, scores, owners(1, 3), *weights]
    bias = drawn(1, 3, 64)
    message = refusal("moe_compute", [*given, bias, None, None], (2, 4, 32), **options)
    assert "expected all three biases or none, found 1 of them" in message
    message = refusal("moe_compute", [*given], (2, 4, 32), **{**options, "layer_id": 1})
    assert "expected a layer_id from 0 to 0, found 1" in message
    message = refusal("moe_compute", given, (2, 4, 32), **options, activation_function="relu")
    assert "expected activation_function to be one of silu, gelu, swiglu, found relu" in message
    message = refusal("moe_compute", given, (2, 3, 32), **options)
    assert "expected a result of shape (2, 4, 32), found (2, 3, 32)" in message
    op = make_op("moe_compute", [*given[:3], owners(2, 6), *weights], (2, 2, 32), **options)
    op.verify_()
    assert "cluster_axis says along which axis" in op.definition.refused_form(op)
