"""Attention against loops over its definition, and its lowering against its meaning."""

from __future__ import annotations

import itertools
import math

import ml_dtypes
import numpy as np
import pytest

from ttcodegen.compilation import CompileOptions, compile_module
from ttcodegen.foundation.diagnostics import Source

RANDOM = np.random.default_rng(3)


def draw(*shape: int, dtype: str = "float32") -> np.ndarray:
    return RANDOM.normal(size=shape).astype(np.dtype(dtype))


def close(found: np.ndarray, expected: np.ndarray) -> None:
    tolerance = 0.03 if found.dtype == ml_dtypes.bfloat16 else 1e-5
    np.testing.assert_allclose(
        found.astype(np.float64), expected.astype(np.float64), atol=tolerance, rtol=tolerance
    )


def attention(query, key, value, scale, sees, mask=None, sink=None):
    """Loops; `sees(batch, row, key)` says which keys a row of the query sees."""
    arrays = [array.astype(np.float64) for array in (query, key, value)]
    query, key, value = arrays
    batch, heads, rows, _ = query.shape
    result = np.zeros((*query.shape[:3], value.shape[3]))
    for b, h, i in np.ndindex(batch, heads, rows):
        group = h * key.shape[1] // heads
        exponentials = {}
        for j in range(key.shape[2]):
            if sees(b, i, j):
                score = scale * float(query[b, h, i] @ key[b, group, j])
                if mask is not None:
                    score += float(
                        np.broadcast_to(mask, (batch, heads, rows, key.shape[2]))[b, h, i, j]
                    )
                exponentials[j] = math.exp(score)
        total = sum(exponentials.values()) + (0 if sink is None else math.exp(sink[h]))
        for j, weight in exponentials.items():
            result[b, h, i] += weight / total * value[b, group, j]
    return result


def window_of(rows, keys, causal, window):
    def sees(_batch, row, key):
        if window and rows == 1 < keys:
            return keys - window <= key
        if causal:
            return row - (window or keys) < key <= row
        return not window or abs(row - key) <= window // 2

    return sees


CASES = [
    # batch, heads, heads of keys, queries, keys, head size
    (2, 4, 4, 5, 5, 8),
    (1, 6, 2, 7, 7, 32),
    (2, 2, 1, 3, 9, 16),
    (2, 4, 2, 1, 6, 32),
]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize(
    ("case", "causal", "window"),
    [
        (case, causal, window)
        for case, causal, window in itertools.product(CASES, [True, False], [None, 3])
        if not causal or case[3] == case[4]
    ],
)
def test_positions(evaluate, dtype, case, causal, window):
    batch, heads, groups, rows, keys, size = case
    operands = [draw(batch, heads, rows, size, dtype=dtype)]
    operands += [draw(batch, groups, keys, size, dtype=dtype) for _ in range(2)]
    ran = evaluate(
        "scaled_dot_product_attention",
        [*operands, None, None],
        operands[0].shape,
        is_causal=causal,
        sliding_window_size=window,
    )
    expected = attention(*operands, size**-0.5, window_of(rows, keys, causal, window))
    close(ran.golden[0], expected)
    close(ran.lowered[0], expected)
    assert ("ttnn.scaled_dot_product_attention" in ran.names) == (dtype == "bfloat16")


def attended(evaluate, operands, mask, sink, scale, window):
    """Attention that is not causal, after it was found to be what it should."""
    query, key, _ = operands
    ran = evaluate(
        "scaled_dot_product_attention",
        [*operands, mask, sink],
        query.shape,
        is_causal=False,
        scale=scale,
        sliding_window_size=window,
    )
    expected = attention(
        *operands,
        query.shape[3] ** -0.5 if scale is None else scale,
        window_of(query.shape[2], key.shape[2], False, window),
        mask,
        sink.astype(np.float64).reshape(-1) if sink is not None else None,
    )
    close(ran.golden[0], expected)
    close(ran.lowered[0], expected)
    return ran


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize(
    ("shape", "scale", "window", "has_sink"),
    [
        ((1, 1, 5, 6), None, None, False),
        ((2, 1, 1, 6), 0.5, None, True),
        ((2, 4, 5, 6), 2.0, 2, False),
        ((1, 4, 5, 6), -0.5, None, True),
        ((1, 1, 5, 6), 0.0, None, True),
        ((1, 1, 5, 6), 1e-40, None, False),
    ],
)
def test_mask_and_sink(evaluate, dtype, shape, scale, window, has_sink):
    query, key, value = (draw(2, h, n, 8, dtype=dtype) for h, n in ((4, 5), (2, 6), (2, 6)))
    mask = draw(*shape, dtype=dtype)
    mask[..., -1] = -np.inf
    sink = draw(1, 4, 1, 1, dtype=dtype) if has_sink else None
    ran = attended(evaluate, [query, key, value], mask, sink, scale, window)
    in_library = dtype == "bfloat16" and (scale is None or scale > 0.1)
    assert ("ttnn.scaled_dot_product_attention" in ran.names) == in_library


def test_rows_that_the_lowest_float_hides_are_means(evaluate):
    query, key, value = (draw(1, 1, 4, 32, dtype="bfloat16") for _ in range(3))
    lowest = float(np.finfo(np.float32).min)
    mask = np.full((1, 1, 4, 4), lowest, dtype=np.float32)
    ran = evaluate(
        "scaled_dot_product_attention",
        [query, key, value, mask, None],
        query.shape,
        is_causal=False,
    )
    expected = np.broadcast_to(value.astype(np.float32).mean(axis=2, keepdims=True), query.shape)
    close(ran.lowered[0], expected)


ONE_QUERY = [
    # mask, scale, window, whether there is a sink
    (None, None, None, False),
    ((2, 4, 1, 64), 0.5, None, True),
    ((1, 1, 1, 64), 2.0, None, False),
    ((2, 1, 1, 64), None, 7, True),
]


@pytest.mark.parametrize(("shape", "scale", "window", "has_sink"), ONE_QUERY)
@pytest.mark.parametrize("size", [32, 20])
def test_one_query_is_decoded(evaluate, shape, scale, window, has_sink, size):
    query = draw(2, 4, 1, size, dtype="bfloat16")
    key, value = (draw(2, 2, 64, size, dtype="bfloat16") for _ in range(2))
    mask = None if shape is None else draw(*shape, dtype="bfloat16")
    if mask is not None:
        mask[..., :3] = -np.inf
    sink = draw(1, 4, 1, 1, dtype="bfloat16") if has_sink else None
    ran = attended(evaluate, [query, key, value], mask, sink, scale, window)
    assert ran.names.count("ttnn.scaled_dot_product_attention_decode") == 1


@pytest.mark.parametrize(("batch", "keys"), [(1, 50), (65, 32)])
def test_one_query_that_the_library_cannot_decode(evaluate, batch, keys):
    query = draw(batch, 2, 1, 32, dtype="bfloat16")
    key, value = (draw(batch, 2, keys, 32, dtype="bfloat16") for _ in range(2))
    operands = [query, key, value, None, None]
    ran = evaluate("scaled_dot_product_attention", operands, query.shape, is_causal=False)
    close(ran.lowered[0], ran.golden[0])
    assert ran.names == ["ttnn.scaled_dot_product_attention"]


def test_head_sizes_of_whole_tiles_take_one_call(evaluate):
    operands = [draw(1, 2, 32, 64, dtype="bfloat16") for _ in range(3)]
    ran = evaluate("scaled_dot_product_attention", [*operands, None, None], (1, 2, 32, 64))
    assert ran.names == ["ttnn.scaled_dot_product_attention"]
    assert ran.ops[0].parameter("scale") is None


@pytest.mark.parametrize("width", [16, 64])
def test_values_of_another_head_size_are_taken_apart(evaluate, width):
    operands = [draw(2, heads, 5, 32, dtype="bfloat16") for heads in (4, 2)]
    operands.append(draw(2, 2, 5, width, dtype="bfloat16"))
    ran = evaluate("scaled_dot_product_attention", [*operands, None, None], (2, 4, 5, width))
    expected = attention(*operands, 32**-0.5, window_of(5, 5, True, None))
    close(ran.golden[0], expected)
    close(ran.lowered[0], expected)
    assert "ttnn.scaled_dot_product_attention" not in ran.names


def test_values_of_other_keys(refusal):
    query, value = draw(1, 4, 8, 16), draw(1, 4, 7, 16)
    operands = [query, query, value, None, None]
    found = refusal("scaled_dot_product_attention", operands, query.shape)
    assert "expected values of the shape of the keys (1, 4, 8, 16) but for the head size" in found


@pytest.mark.parametrize(
    ("shapes", "mask", "attributes", "message"),
    [
        (((1, 4, 8, 16), (1, 3, 8, 16)), None, {}, "expected heads that divide the query's 4"),
        (((1, 4, 8, 16), (1, 4, 8, 8)), None, {}, "expected keys of head size 16"),
        (((2, 4, 8, 16), (1, 4, 8, 16)), None, {}, "expected keys of a batch of 2"),
        (((1, 4, 8, 16), (1, 4, 9, 16)), None, {}, "expected 8 keys, one per query"),
        (((1, 4, 8, 16), (1, 4, 8, 16)), (1, 1, 8, 8), {}, "a mask is not allowed"),
        (
            ((1, 4, 8, 16), (1, 4, 8, 16)),
            (1, 1, 8, 4),
            {"is_causal": False},
            "expected a mask that broadcasts to (1, 4, 8, 8), found (1, 1, 8, 4)",
        ),
        (((4, 8, 16), (4, 8, 16)), None, {}, "expected a query of rank 4"),
    ],
)
def test_refusals(refusal, shapes, mask, attributes, message):
    query, key = (draw(*shape) for shape in shapes)
    mask = None if mask is None else draw(*mask)
    found = refusal(
        "scaled_dot_product_attention", [query, key, key, mask, None], query.shape, **attributes
    )
    assert message in found


@pytest.mark.parametrize("place", range(3))
def test_refuses_integers(refusal, place):
    operands = [draw(1, 4, 8, 16) for _ in range(3)]
    operands[place] = operands[place].astype(np.int32)
    name = "query", "key", "value"
    found = refusal("scaled_dot_product_attention", [*operands, None, None], (1, 4, 8, 16))
    assert f"expected an operand '{name[place]}' of floats, found si32" in found


def test_refuses_a_sink_of_another_shape(refusal):
    query = draw(1, 4, 8, 16)
    found = refusal(
        "scaled_dot_product_attention", [query, query, query, None, draw(4)], query.shape
    )
    assert "expected an attention_sink (1, 4, 1, 1), found (4,)" in found


# Decoding


def decoded(query, key, value, scale, current, window=None, mask=None, sink=None):
    keys = key.shape[2]

    def sees(batch, _row, position):
        last = keys - 1 if current is None else int(current[batch])
        return last - (window or keys) < position <= last

    turned = query.transpose(1, 2, 0, 3)
    mask = None if mask is None else np.swapaxes(mask.astype(np.float64), 1, 2) * scale
    sink = None if sink is None else sink.astype(np.float64)[:, 0] * scale
    found = attention(turned, key, value, scale, sees, mask, sink)
    return found.transpose(2, 0, 1, 3)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize(
    ("users", "heads", "groups", "keys", "size", "scale"),
    [
        (3, 4, 2, 32, 32, None),
        (1, 6, 1, 64, 50, 0.25),
        (2, 2, 2, 24, 8, None),
        (2, 2, 2, 32, 8, -1),
        (2, 2, 2, 32, 8, 0),
    ],
)
def test_decode(evaluate, dtype, users, heads, groups, keys, size, scale):
    query = draw(1, users, heads, size, dtype=dtype)
    key, value = (draw(users, groups, keys, size, dtype=dtype) for _ in range(2))
    current = RANDOM.integers(0, keys, users).astype(np.int32)
    ran = evaluate(
        "scaled_dot_product_attention_decode",
        [query, key, value, None, current, None],
        query.shape,
        scale=scale,
    )
    expected = decoded(query, key, value, size**-0.5 if scale is None else scale, current)
    close(ran.golden[0], expected)
    close(ran.lowered[0], expected)
    in_library = dtype == "bfloat16" and keys % 32 == 0 and (scale is None or scale > 0)
    assert ("ttnn.scaled_dot_product_attention_decode" in ran.names) == in_library


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("shape", [(1, 1, 1, 32), (2, 1, 4, 32)])
@pytest.mark.parametrize("scale", [0.25, 0.0])
def test_decode_scales_mask_and_sink(evaluate, dtype, shape, scale):
    query = draw(1, 2, 4, 32, dtype=dtype)
    key, value = (draw(2, 2, 32, 32, dtype=dtype) for _ in range(2))
    mask, sink = draw(*shape, dtype=dtype), draw(4, 32, dtype=dtype)
    current = np.zeros(2, dtype=np.int32)
    ran = evaluate(
        "scaled_dot_product_attention_decode",
        [query, key, value, mask, current, sink],
        query.shape,
        is_causal=False,
        scale=scale,
    )
    expected = decoded(query, key, value, scale, None, None, mask, sink)
    close(ran.golden[0], expected)
    close(ran.lowered[0], expected)


def paged(cache, page_size):
    """The cache in pages of random numbers, and the table of them."""
    users, heads, keys, size = cache.shape
    count = keys // page_size
    table = RANDOM.permutation(users * count + 2)[: users * count].reshape(users, count)
    pages = np.zeros((users * count + 2, heads, page_size, size), dtype=cache.dtype)
    for user, index in np.ndindex(users, count):
        pages[table[user, index]] = cache[user, :, index * page_size : (index + 1) * page_size]
    return pages, table.astype(np.int32)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize(
    ("has_position", "window", "size"),
    [(True, None, 32), (True, 40, 16), (False, None, 32), (False, 20, 32)],
)
def test_paged_decode(evaluate, dtype, has_position, window, size):
    query = draw(1, 2, 4, size, dtype=dtype)
    key = draw(2, 2, 64, size, dtype=dtype)
    pages, table = paged(key, 32)
    current = np.array([5, 60], dtype=np.int32) if has_position else None
    ran = evaluate(
        "paged_scaled_dot_product_attention_decode",
        [query, pages, pages, table, query, None, current, draw(4, 32, dtype=dtype) * 0 - 5],
        query.shape,
        sliding_window_size=window,
    )
    sink = np.full((4, 32), -5.0)
    expected = decoded(query, key, key, size**-0.5, current, window, sink=sink)
    close(ran.golden[0], expected)
    np.testing.assert_allclose(ran.lowered[0].astype(np.float64), expected, atol=0.03)
    called = "ttnn.paged_scaled_dot_product_attention_decode" in ran.names
    assert called == has_position


def test_paged_decode_with_a_mask(evaluate):
    query, key = draw(1, 2, 4, 32), draw(2, 4, 64, 32)
    pages, table = paged(key, 32)
    mask = draw(2, 1, 1, 64)
    ran = evaluate(
        "paged_scaled_dot_product_attention_decode",
        [query, pages, pages, table, query, mask, None, None],
        query.shape,
        is_causal=False,
    )
    expected = decoded(query, key, key, 32**-0.5, None, mask=mask)
    close(ran.golden[0], expected)
    np.testing.assert_allclose(ran.lowered[0], expected, atol=0.03)
    assert "ttnn.embedding" in ran.names


@pytest.mark.parametrize("size", [32, 24])
@pytest.mark.parametrize("start", [0, 32])
@pytest.mark.parametrize("scale", [None, 0.0, -0.5])
def test_chunked(evaluate, size, start, scale):
    """The kernels leave the scale to the exponentials of what is below the greatest score."""
    query = draw(2, 4, 32, size, dtype="bfloat16")
    key = draw(2, 2, 64, size, dtype="bfloat16")
    pages, table = paged(key, 32)
    ran = evaluate(
        "chunked_scaled_dot_product_attention",
        [query, pages, pages, table, np.array([start], dtype=np.int32), query],
        query.shape,
        scale=scale,
    )
    factor = size**-0.5 if scale is None else scale
    expected = attention(query, key, key, factor, lambda _, row, k: k <= start + row)
    close(ran.golden[0], expected)
    close(ran.lowered[0], expected)
    assert "ttnn.chunked_scaled_dot_product_attention" in ran.names
    assert ("ttnn.multiply" in ran.names) == (scale is not None)


@pytest.mark.parametrize("scale", [0.0, -1e-40])
def test_calls_that_would_divide_by_zero_are_taken_apart(scale):
    module = f"""func.func @f(%q: tensor<1x1x32x32xbf16>) -> tensor<1x1x32x32xbf16> {{
  %0 = "ttnn.scaled_dot_product_attention"(%q, %q, %q) <{{scale = {scale:e} : f32,
      is_causal = false, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>}}>
      : (tensor<1x1x32x32xbf16>, tensor<1x1x32x32xbf16>, tensor<1x1x32x32xbf16>)
      -> tensor<1x1x32x32xbf16>
  return %0 : tensor<1x1x32x32xbf16>
}}"""
    compiled = compile_module(Source("scale.mlir", module), CompileOptions("scale", "ttnn"))
    text = compiled.files["src/scale.cpp"]
    assert "ttnn::softmax(" in text
    assert "scaled_dot_product_attention" not in text


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("width", [16, 32])
@pytest.mark.parametrize("has_value", [True, False])
def test_latent_decode(evaluate, dtype, width, has_value):
    query, key = draw(1, 2, 4, 32, dtype=dtype), draw(2, 1, 64, 32, dtype=dtype)
    pages, table = paged(key, 32)
    value = draw(*pages.shape[:3], width, dtype=dtype) if has_value else None
    current, sink = np.array([5, 60], dtype=np.int32), draw(4, 32, dtype=dtype)
    ran = evaluate(
        "paged_flash_multi_latent_attention_decode",
        [query, pages, value, table, None, current, sink],
        (1, 2, 4, width),
        head_dim_v=width,
        scale=0.5,
    )
    values = key[..., :width]
    if value is not None:
        parts = [value[table[user]].transpose(1, 0, 2, 3).reshape(1, 64, width) for user in (0, 1)]
        values = np.stack(parts)
    expected = decoded(query, key, values, 0.5, current, sink=sink)
    close(ran.golden[0], expected)
    np.testing.assert_allclose(ran.lowered[0].astype(np.float64), expected, atol=0.04)


def test_latent_decode_refusals(refusal):
    name, table = "paged_flash_multi_latent_attention_decode", np.zeros((2, 2), dtype=np.int32)
    query, key = draw(1, 2, 4, 32), draw(3, 1, 32, 32)
    operands = [query, key, None, table, None, None, None]
    found = refusal(name, operands, (1, 2, 4, 40), head_dim_v=40)
    assert "expected head_dim_v from 1 to 32, found 40" in found
    operands[1] = draw(3, 2, 32, 32)
    assert "expected keys (pages, 1, page size, 32)" in refusal(
        name, operands, (1, 2, 4, 32), head_dim_v=32
    )


def test_decode_refusals(refusal):
    query, key = draw(1, 2, 4, 32), draw(2, 2, 32, 32)
    name = "scaled_dot_product_attention_decode"
    current = np.zeros(3, dtype=np.int32)
    found = refusal(name, [query, key, key, None, current, None], query.shape)
    assert "expected a cur_pos_tensor of shape (2,), found (3,)" in found
    query = draw(2, 1, 4, 32)
    found = refusal(name, [query, key, key, None, current, None], query.shape)
    assert "expected a query (1, users, heads, head size), found (2, 1, 4, 32)" in found


def test_paged_refusals(refusal):
    query, pages = draw(1, 2, 4, 32), draw(9, 2, 24, 32)
    name = "paged_scaled_dot_product_attention_decode"
    table = np.zeros((2, 3), dtype=np.int32)
    operands = [query, pages, pages, table, query, None, None, None]
    assert "expected pages of a multiple of 32 positions" in refusal(name, operands, query.shape)
    operands[1] = operands[2] = draw(9, 2, 32, 32)
    found = refusal(name, operands, query.shape, is_causal=False)
    assert "a mask is required when is_causal is false" in found
    operands[3] = np.zeros((1, 3), dtype=np.int32)
    assert "expected a page_table with 2 rows" in refusal(name, operands, query.shape)


# Heads


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int32"])
@pytest.mark.parametrize("size", [32, 10])
def test_concatenate_heads(evaluate, dtype, size):
    x = (10 * draw(2, 3, 5, size)).astype(np.dtype(dtype))
    ran = evaluate("concatenate_heads", [x], (2, 5, 3 * size))
    expected = np.zeros((2, 5, 3 * size), dtype=x.dtype)
    for b, h, s in np.ndindex(2, 3, 5):
        expected[b, s, h * size : (h + 1) * size] = x[b, h, s]
    close(ran.golden[0], expected)
    close(ran.lowered[0], expected)
    called = ran.names == ["ttnn.concatenate_heads"]
    assert called == (size == 32 and dtype != "int32")


def test_concatenate_heads_refusals(refusal):
    assert "expected an input of rank 4" in refusal("concatenate_heads", [draw(3, 5, 8)], (5, 24))
    found = refusal("concatenate_heads", [draw(2, 3, 5, 8)], (2, 3, 40))
    assert "expected a result of shape (2, 5, 24), found (2, 3, 40)" in found


@pytest.mark.parametrize("transpose", [True, False])
@pytest.mark.parametrize("separate", [True, False])
@pytest.mark.parametrize(("heads", "key_heads"), [(4, None), (4, 2)])
@pytest.mark.parametrize("size", [32, 12])
def test_split_heads(evaluate, transpose, separate, heads, key_heads, size):
    groups = key_heads or heads
    query, key, value = draw(2, heads, 5, size), draw(2, groups, 5, size), draw(2, groups, 5, size)
    flat = [part.transpose(0, 2, 1, 3).reshape(2, 5, -1) for part in (query, key, value)]
    if separate:
        operands = [flat[0], np.concatenate(flat[1:], axis=2)]
    else:
        operands = [np.concatenate(flat, axis=2), None]
    if transpose:
        key = np.swapaxes(key, 2, 3)
    expected = [query, key, value]
    ran = evaluate(
        "split_query_key_value_and_split_heads",
        operands,
        [part.shape for part in expected],
        num_heads=heads,
        num_kv_heads=key_heads,
        transpose_key=transpose,
    )
    for golden, lowered, wanted in zip(ran.golden, ran.lowered, expected, strict=True):
        close(golden, wanted)
        close(lowered, wanted)
    called = ran.names == ["ttnn.split_query_key_value_and_split_heads"]
    assert called == (size == 32)


def test_split_heads_of_keys_that_are_longer(evaluate):
    query, keys = draw(1, 3, 64), draw(1, 7, 128)
    ran = evaluate(
        "split_query_key_value_and_split_heads",
        [query, keys],
        [(1, 2, 3, 32), (1, 2, 7, 32), (1, 2, 7, 32)],
        num_heads=2,
        transpose_key=False,
    )
    for golden, lowered in zip(ran.golden, ran.lowered, strict=True):
        close(lowered, golden)
    assert "ttnn.split_query_key_value_and_split_heads" not in ran.names


def test_split_heads_refusals(refusal):
    name = "split_query_key_value_and_split_heads"
    results = [(1, 2, 5, 8)] * 3
    options = {"num_heads": 2, "transpose_key": False}
    assert "do not divide hidden sizes 50" in refusal(
        name, [draw(1, 5, 50), None], results, **options
    )
    found = refusal(name, [draw(1, 5, 16), draw(1, 5, 64)], results, **options)
    assert "do not divide hidden sizes 16, 64 equally" in found
    found = refusal(name, [draw(1, 5, 48), None], [*results[:2], (1, 2, 8, 5)], **options)
    assert "expected a result of shape (1, 2, 5, 8), found (1, 2, 8, 5)" in found
