"""Key and value caches against loops over users, heads and positions."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.utils.exceptions import VerifyException

RANDOM = np.random.default_rng(17)


def drawn(*shape, dtype="float32"):
    return RANDOM.normal(size=shape).astype(np.dtype(dtype))


def same(ran, expected):
    np.testing.assert_array_equal(ran.golden[-1], expected)
    np.testing.assert_array_equal(ran.lowered[-1], expected)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize(("users", "length", "offset"), [(1, 32, 1), (2, 40, 0), (3, 64, 0)])
def test_fill(evaluate, dtype, users, length, offset):
    cache, entry = drawn(3, 2, 64, 8, dtype=dtype), drawn(users, 2, length, 8, dtype=dtype)
    ran = evaluate("fill_cache", [cache, entry], [], batch_offset=offset)
    expected = cache.copy()
    for user, head, position in np.ndindex(users, 2, -(-length // 32) * 32):
        row = entry[user, head, position] if position < length else 0
        expected[user + offset, head, position] = row
    same(ran, expected)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_update(evaluate, dtype):
    cache, entry = drawn(3, 2, 64, 8, dtype=dtype), drawn(1, 2, 3, 8, dtype=dtype)
    ran = evaluate("update_cache", [cache, entry, np.array([37], dtype=np.int32)], [])
    expected = cache.copy()
    for user, head in np.ndindex(3, 2):
        expected[user, head, 37] = entry[0, head, user]
    same(ran, expected)


@pytest.mark.parametrize(
    ("users", "rows", "offset"), [(3, 3, 0), (5, 2, 3), (70, 70, 0), (90, 66, 7)]
)
@pytest.mark.parametrize("one", [True, False])
def test_update_of_some_users_and_at_positions_of_their_own(evaluate, users, rows, offset, one):
    cache, entry = drawn(users, 2, 64, 8), drawn(1, 2, rows, 8)
    places = np.array([37], np.int32) if one else RANDOM.integers(0, 64, rows, dtype=np.int32)
    ran = evaluate("update_cache", [cache, entry, places], [], batch_offset=offset)
    expected = cache.copy()
    for row, head in np.ndindex(rows, 2):
        expected[offset + row, head, places[0 if one else row]] = entry[0, head, row]
    same(ran, expected)
    plain = one and rows == users
    assert ("ttnn.update_cache" in ran.names) == plain
    assert ran.names.count("ttnn.paged_update_cache") == (0 if plain else -(-rows // 64))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("heads", [2, 32, 40])
@pytest.mark.parametrize("kind", ["pages", "users", "shared"])
def test_paged_update(evaluate, dtype, heads, kind):
    entry = drawn(1, 3, heads, 8, dtype=dtype)
    index = np.array([5, -1, 63], dtype=np.int32)
    table = RANDOM.permutation(7)[:6].reshape(3, 2).astype(np.int32)
    sizes = {"pages": (7, 2, 32, 8), "users": (3, 2, 64, 8), "shared": (1, 2, 64, 8)}
    cache = drawn(*sizes[kind], dtype=dtype)
    ran = evaluate(
        "paged_update_cache",
        [cache, entry, index, table if kind == "pages" else None],
        [],
        share_cache=kind == "shared",
    )
    expected = cache.copy()
    for user, position in ((0, 5), (2, 63)):
        for head in range(2):
            row = entry[0, user, head]
            if kind == "pages":
                expected[table[user, position // 32], head, position % 32] = row
            else:
                expected[user if kind == "users" else 0, head, position] = row
    same(ran, expected)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize(("users", "length"), [([2], 40), (None, 64), ([1, 0], 33)])
def test_paged_fill(evaluate, dtype, users, length):
    count = 1 if users is None else len(users)
    cache = drawn(9, 2, 32, 8, dtype=dtype)
    entry = drawn(count, 2, length, 8, dtype=dtype)
    table = RANDOM.permutation(9).reshape(3, 3).astype(np.int32)
    table[0, 0] = -1
    numbers = None if users is None else np.array(users, dtype=np.int32)
    ran = evaluate("paged_fill_cache", [cache, entry, table, numbers], [])
    expected = cache.copy()
    for place, user in enumerate(users or [0]):
        for head, position in np.ndindex(2, -(-length // 32) * 32):
            page = table[user, position // 32]
            row = entry[place, head, position] if position < length else 0
            if page != -1:
                expected[page, head, position % 32] = row
    same(ran, expected)


@pytest.mark.parametrize(
    ("cache", "entry"), [((70, 2, 40, 8), (1, 70, 2, 8)), ((3, 33, 64, 8), (1, 3, 33, 8))]
)
def test_what_the_library_cannot_update_is_refused(evaluate, cache, entry):
    index = np.zeros(entry[1], dtype=np.int32)
    with pytest.raises(VerifyException, match="up to 64 users at once and 32 heads"):
        evaluate("paged_update_cache", [drawn(*cache), drawn(*entry), index, None], [])


def test_refusals(refusal):
    cache = drawn(4, 2, 32, 8)
    index = np.zeros(3, dtype=np.int32)
    name = "paged_update_cache"
    message = refusal(name, [cache, drawn(1, 3, 2, 8), index, None], [])
    assert "expected a cache of 3 users, found (4, 2, 32, 8)" in message
    table = np.zeros((2, 2), dtype=np.int32)
    message = refusal(name, [cache, drawn(1, 3, 2, 8), index, table], [])
    assert "expected a page_table with 3 rows" in message
    message = refusal(name, [cache, drawn(1, 3, 1, 8), index, None], [])
    assert "expected at least the 2 heads of the cache" in message
    message = refusal(
        name, [drawn(4, 2, 24, 8), drawn(1, 3, 2, 8), index, np.zeros((3, 2), np.int32)], []
    )
    assert "expected pages of a multiple of 32 positions" in message
    message = refusal("paged_fill_cache", [cache, drawn(1, 2, 65, 8), table, None], [])
    assert "expected a page_table with pages for 65 positions" in message
    message = refusal("paged_fill_cache", [cache, drawn(2, 2, 32, 8), table, None], [])
    assert "expected one user's number for each in the input" in message
    message = refusal("update_cache", [cache, drawn(1, 2, 3, 8), index[:1]], [], batch_offset=2)
    assert "rows for the 4 users of the cache or for some of them" in message
    message = refusal("update_cache", [cache, drawn(1, 2, 4, 8), index], [])
    assert "expected an update_index of one element or of 4" in message
    message = refusal("fill_cache", [cache, drawn(2, 2, 32, 8)], [], batch_offset=3)
    assert "does not fit into a cache" in message
