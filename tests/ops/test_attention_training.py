"""Attention with what its gradient needs, and that gradient, against loops and differences."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

RANDOM = np.random.default_rng(31)
MASKS = ["none", "causal", "arbitrary"]
SHAPES = [
    ((1, 2, 8, 16), (1, 2, 8, 16), (1, 2, 8, 16)),
    ((2, 6, 40, 8), (2, 3, 40, 8), (2, 3, 40, 12)),
    ((4, 5, 3), (2, 5, 3), (2, 5, 3)),
    ((7, 4), (7, 4), (7, 6)),
]


def drawn(*shape, dtype="float32"):
    return RANDOM.normal(size=shape).astype(np.dtype(dtype))


def in_four(x):
    return x.reshape((1, -1, *x.shape[-2:])) if x.ndim != 4 else x


def attention(query, key, value, mask, kind):
    """The output and the logarithms of the sums, head by head, in float64."""
    q, k, v = (in_four(x).astype(np.float64) for x in (query, key, value))
    batch, heads, rows, size = q.shape
    output, kept = np.zeros((batch, heads, rows, v.shape[3])), np.zeros((batch, heads, rows))
    for b, h in np.ndindex(batch, heads):
        group = h // (heads // k.shape[1])
        scores = q[b, h] @ k[b, group].T / np.sqrt(size)
        if kind == "causal":
            scores[np.triu_indices(rows, 1)] = -np.inf
        if kind == "arbitrary":
            scores = scores + mask.reshape(rows, rows)
        kept[b, h] = np.log(np.exp(scores).sum(axis=1))
        output[b, h] = np.exp(scores - kept[b, h][:, None]) @ v[b, group]
    return output, kept


def operands_of(shapes, kind, dtype="float32"):
    tensors = [drawn(*shape, dtype=dtype) for shape in shapes]
    rows = shapes[0][-2]
    mask = drawn(*[1] * (len(shapes[0]) - 2), rows, rows, dtype=dtype)
    if kind == "arbitrary":
        mask[..., 0, -1] = -np.inf
    return tensors, mask if kind == "arbitrary" else None


def results_of(shapes):
    """The shapes of the output and of what is kept."""
    outer = shapes[0][:-1]
    return (*outer, shapes[2][-1]), (*outer, 32)


@pytest.mark.parametrize("kind", MASKS)
@pytest.mark.parametrize("shapes", SHAPES)
def test_forward(evaluate, shapes, kind):
    tensors, mask = operands_of(shapes, kind)
    output, kept = results_of(shapes)
    ran = evaluate(
        "sdpa_fw", [*tensors, mask], [output, kept], mask_type=kind, return_intermediates=True
    )
    expected = attention(*tensors, mask, kind)
    for found in (ran.golden, ran.lowered):
        np.testing.assert_allclose(found[0], expected[0].reshape(output), atol=2e-5)
        wide = np.broadcast_to(expected[1].reshape(*kept[:-1], 1), kept)
        np.testing.assert_allclose(found[1], wide, atol=2e-5)


@pytest.mark.parametrize("kind", MASKS)
@pytest.mark.parametrize("shapes", SHAPES[:3])
def test_forward_alone_is_the_attention_of_the_library(evaluate, shapes, kind):
    tensors, mask = operands_of(shapes, kind, "bfloat16")
    output, _ = results_of(shapes)
    ran = evaluate("sdpa_fw", [*tensors, mask], [output], mask_type=kind)
    expected, _ = attention(*tensors, mask, kind)
    for found in (ran.golden, ran.lowered):
        assert found[0].dtype == ml_dtypes.bfloat16
        np.testing.assert_allclose(found[0].astype(np.float64), expected.reshape(output), atol=0.03)
    fused = "ttnn.scaled_dot_product_attention" in ran.names
    assert fused == (shapes[1][-1] == shapes[2][-1])


@pytest.mark.parametrize("kind", MASKS)
@pytest.mark.parametrize("shapes", SHAPES)
def test_backward_is_the_slope_of_forward(evaluate, shapes, kind):
    tensors, mask = operands_of(shapes, kind)
    output, kept = results_of(shapes)
    made, logarithms = attention(*tensors, mask, kind)
    arrived = drawn(*output)
    wide = np.broadcast_to(logarithms.reshape(*kept[:-1], 1), kept).astype(np.float32)
    operands = [arrived, made.reshape(output).astype(np.float32), *tensors, wide, mask]
    ran = evaluate("sdpa_bw", operands, list(shapes), mask_type=kind)

    def loss(changed):
        return float((attention(*changed, mask, kind)[0].reshape(output) * arrived).sum())

    for index, tensor in enumerate(tensors):
        for where in RANDOM.integers(0, tensor.size, size=4):
            changed = [x.astype(np.float64) for x in tensors]
            changed[index].flat[where] += 1e-4
            above = loss(changed)
            changed[index].flat[where] -= 2e-4
            slope = (above - loss(changed)) / 2e-4
            for found in (ran.golden, ran.lowered):
                assert found[index].flat[where] == pytest.approx(slope, abs=1e-3)


def test_backward_in_bfloat16(evaluate):
    shapes = SHAPES[1]
    tensors, _ = operands_of(shapes, "causal", "bfloat16")
    output, kept = results_of(shapes)
    made, logarithms = attention(*tensors, None, "causal")
    wide = np.broadcast_to(logarithms[..., None], kept).astype(np.float32)
    operands = [
        drawn(*output, dtype="bfloat16"),
        made.astype(ml_dtypes.bfloat16),
        *tensors,
        wide,
        None,
    ]
    ran = evaluate("sdpa_bw", operands, list(shapes), mask_type="causal")
    for golden, lowered in zip(ran.golden, ran.lowered, strict=True):
        assert lowered.dtype == ml_dtypes.bfloat16
        pair = np.corrcoef(golden.astype(float).reshape(-1), lowered.astype(float).reshape(-1))
        assert pair[0, 1] > 0.999


def test_refusals(refusal):
    q, k, v = (drawn(1, 4, 8, 16) for _ in range(3))
    mask = drawn(1, 1, 8, 8)
    out, kept = (1, 4, 8, 16), (1, 4, 8, 32)
    assert "found causal with one" in refusal("sdpa_fw", [q, k, v, mask], [out])
    message = refusal("sdpa_fw", [q, k, v, None], [out], mask_type="arbitrary")
    assert "found arbitrary without one" in message
    message = refusal("sdpa_fw", [q, k, v, None], [out], mask_type="sliding")
    assert "expected mask_type to be one of none, causal, arbitrary, found sliding" in message
    message = refusal("sdpa_fw", [q, k[:, :3], v, None], [out])
    assert "expected heads of keys that divide the query's 4, found 3" in message
    message = refusal("sdpa_fw", [q, k, v[:, :, :7], None], [out])
    assert "expected value of shape (1, 4, 8, 16), found (1, 4, 7, 16)" in message
    assert "has 1 results with return_intermediates = false, found 2" in refusal(
        "sdpa_fw", [q, k, v, None], [out, kept]
    )
    message = refusal("sdpa_fw", [q, k, v, None], [out], dropout_probability=0.5)
    assert "expected a dropout_probability of 0" in message
    narrow = drawn(1, 4, 8, 1)
    message = refusal("sdpa_bw", [q, q, q, k, v, narrow, mask], [out, out, out])
    assert "expected intermediates of shape (1, 4, 8, 32), found (1, 4, 8, 1)" in message
