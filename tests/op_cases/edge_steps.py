"""Quantization, training steps, and attention to pages of a cache and to rows that see nothing, on
inputs from the edges, as PyTorch and numpy have them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.op_cases.edge_case import Case, Given, in_torch
from tests.op_cases.test_edge_families import ORDINARY, tensor
from tests.op_cases.test_edge_values import SEEDS

torch = pytest.importorskip("torch")
functional = torch.nn.functional
S = SEEDS
INF = float("inf")
HALVES = (0.0, -0.0, 0.25, -0.25, 0.75, 1.25, -1.75, 63.75, 64.25, -64.25, 1e4, -1e4, INF, -INF)
"""Ties of a scale of a half, and numbers at and beyond the ends of 8 bits."""
LIMITS = "storage_min = -128 : i32, storage_max = 127 : i32"
ONE = "scale = [5.0e-1 : f32], zero_point = array<i32: 3>"
SCALES = (0.5, 0.25, 2.0, 1.0)
ZEROS = (0, 3, -2, 127)


def _quantized(x: np.ndarray, scale: Any = 0.5, zero: Any = 3) -> np.ndarray:
    rounded = np.rint(x.astype(np.float32) / scale) + zero
    return np.clip(rounded, -128, 127).astype(np.int32)


def _by_torch(x: Any) -> Any:
    real = torch.fake_quantize_per_tensor_affine(x.clamp(-1e6, 1e6), 0.5, 3, -128, 127)
    return (real / 0.5 + 3).int()


def _dequantized(x: np.ndarray, scale: Any = 0.5, zero: Any = 3) -> np.ndarray:
    return (x.astype(np.int64) - zero).astype(np.float32) * scale


def _quantization() -> list[Case]:
    column = Given((4,), "f32", SCALES), Given((4,), "i32", ZEROS)
    whole, stored = Given((S, 4), "f32", HALVES), Given((S, 4), "i32", (-128, -1, 0, 3, 127))
    integers = ((S, 4), "i32")
    places = "axis = 1 : i32"
    kept = "in_scale = [5.0e-1 : f32], in_zero_point = array<i32: 3>, "
    kept += "out_scale = [2.5e-1 : f32], out_zero_point = array<i32: -1>"
    return [
        *(
            Case("quantize", (Given((S, 8), element, HALVES),), ((S, 8), "i32"),
                 in_torch(_by_torch), f"{ONE}, {LIMITS}")
            for element in ("f32", "bf16")
        ),
        Case("dequantize", (stored,), ((S, 4), "f32"), _dequantized, ONE),
        Case("requantize", (stored,), integers,
             lambda x: _quantized(_dequantized(x), 0.25, -1), f"{kept}, {LIMITS}"),
        Case("quantize_unrolled", (Given((S, 4), "f32", [x for x in HALVES if np.isfinite(x)]),
                                   *column),
             integers, lambda x, s, z: (np.rint(x / s) + z).astype(np.int32), places),
        Case("dequantize_unrolled", (stored, *column), ((S, 4), "f32"), _dequantized, places),
        Case("requantize_unrolled", (stored, *column, *column), integers,
             lambda x, s, z, t, y: (np.rint(_dequantized(x, s, z) / t) + y).astype(np.int32),
             places),
        Case("quantize", (whole,), integers,
             lambda x: _quantized(x, np.array(SCALES, np.float32), np.array(ZEROS)),
             "scale = [5.0e-1 : f32, 2.5e-1 : f32, 2.0 : f32, 1.0 : f32], "
             f"zero_point = array<i32: 0, 3, -2, 127>, {places}, {LIMITS}"),
    ]  # fmt: skip


def _stepped(param: Any, gradient: Any, first: Any, second: Any) -> Any:
    """The second step of PyTorch's AdamW."""
    weight = torch.nn.Parameter(param.clone())
    weight.grad = gradient
    optimizer = torch.optim.AdamW([weight], lr=0.25, weight_decay=0.1)
    optimizer.state[weight] = {
        "step": torch.tensor(1.0), "exp_avg": first.clone(), "exp_avg_sq": second.clone()
    }  # fmt: skip
    optimizer.step()
    return weight.detach()


ADAMW = "lr = 2.5e-1 : f32, beta1 = 9.0e-1 : f32, beta2 = 9.99e-1 : f32, "
ADAMW += "beta1_pow = 8.1e-1 : f32, beta2_pow = 9.98001e-1 : f32, epsilon = 1.0e-8 : f32, "
ADAMW += "weight_decay = 1.0e-1 : f32"


def _training() -> list[Case]:
    found: list[Case] = []
    for element in ("f32", "bf16"):
        given = [Given((S, 8), element, pool) for pool in (ORDINARY, ORDINARY, ORDINARY)]
        variance = Given((S, 8), element, (0.0, 0.25, 1.0, 9.0))
        # Of no gradient and no variance the step is 0 / epsilon.
        found += [
            Case("adamw", (*given, variance), ((S, 8), element), in_torch(_stepped), ADAMW,
                 exact=False, others=(tensor((S, 8), element),) * 2),
            Case("dropout", (Given((S, 8), element, "numbers"),), ((S, 8), element),
                 lambda x: x.astype(np.float32) * np.float32(0.5),
                 "prob = 0.0 : f32, scale = 5.0e-1 : f32, seed = 3 : ui32"),
        ]  # fmt: skip
    return found


HIDDEN = (0.0, -INF, 0.0)


def _paged(start: int) -> Any:
    """Attention to the pages of a cache: of queries from a position on, each to what is before."""

    def attended(q: Any, k: Any, v: Any, table: Any, *_: Any) -> Any:
        # (users, pages, heads, rows of a page, size) to (users, heads, rows, size).
        keys, values = (each[table.long()].transpose(1, 2).flatten(2, 3) for each in (k, v))
        rows = start + torch.arange(q.shape[2])[:, None]
        mask = torch.arange(keys.shape[2]) <= rows
        return functional.scaled_dot_product_attention(q, keys, values, mask, enable_gqa=True)

    return attended


def _of_one(place: int) -> Any:
    """As above, for one query of each user, the second dimension of which is the user's."""

    def attended(q: Any, *others: Any) -> Any:
        found = _paged(place)(q.permute(1, 2, 0, 3), *others)
        return found.permute(2, 0, 1, 3)

    return attended


def _attention() -> list[Case]:
    square = Given((2, 2, 32, 32), "f32", ORDINARY)
    mask = Given((1, 1, 32, 32), "f32", HIDDEN)
    cache, table = Given((8, 2, 32, 32), "bf16", ORDINARY), Given((2, 4), "i32", range(8))
    one, chunk = Given((1, 2, 4, 32), "bf16", ORDINARY), Given((2, 4, 32, 32), "bf16", ORDINARY)
    found = [
        Case("sdpa_fw", (square,) * 3, ((2, 2, 32, 32), "f32"),
             in_torch(lambda q, k, v, c=causal: functional.scaled_dot_product_attention(
                 q, k, v, is_causal=c)),
             f"mask_type = #ttcore.attention_mask_type<{'causal' if causal else 'none'}>",
             exact=False)
        for causal in (True, False)
    ]  # fmt: skip
    found.append(
        Case("sdpa_fw", (square, square, square, mask), ((2, 2, 32, 32), "f32"),
             in_torch(functional.scaled_dot_product_attention),
             "mask_type = #ttcore.attention_mask_type<arbitrary>", exact=False)
    )  # fmt: skip
    found += [
        Case("paged_scaled_dot_product_attention_decode",
             (one, cache, cache, table, one, Given((2,), "i32", (place,))),
             ((1, 2, 4, 32), "bf16"), in_torch(_of_one(place)),
             "is_causal = true, operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 0, 1, 0>",
             exact=False)
        for place in (0, 31, 32, 127)
    ]  # fmt: skip
    found += [
        Case("chunked_scaled_dot_product_attention",
             (chunk, cache, cache, table, Given((1,), "i32", (start,)), chunk),
             ((2, 4, 32, 32), "bf16"), in_torch(_paged(start)), exact=False)
        for start in (0, 32, 96)
    ]  # fmt: skip
    return found


GROUPS = {"quantization": _quantization(), "training": _training(), "attention": _attention()}
