"""Rotary embeddings: one call where the library takes the operands."""

from __future__ import annotations

from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest

from tests.ops.conftest import Evaluated

BF16 = np.dtype(ml_dtypes.bfloat16)


def operands(
    shape: tuple[int, ...], table: tuple[int, ...], dtype: np.dtype = BF16, wide: bool = False
) -> list[np.ndarray]:
    angles = np.linspace(0, 3, int(np.prod(table))).reshape(table)
    rows = np.sin(np.arange(np.prod(shape))).reshape(shape).astype(dtype)
    tables = np.dtype(np.float32) if wide else dtype
    return [rows, np.cos(angles).astype(tables), np.sin(angles).astype(tables)]


def turned(rows: np.ndarray, cosines: np.ndarray, sines: np.ndarray) -> np.ndarray:
    """Pair by pair: elements i and i + size / 2 are a point."""
    first, second = np.split(rows.astype(np.float32), 2, axis=-1)
    (c, d), (s, t) = (np.split(table.astype(np.float32), 2, axis=-1) for table in (cosines, sines))
    return np.concatenate([first * c - second * s, second * d + first * t], axis=-1)


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize(
    ("positions", "names"),
    [
        (32, ["ttnn.rotary_embedding"]),
        (5, ["ttnn.rotary_embedding", "ttnn.slice_static"]),
        (1, ["ttnn.rotary_embedding", "ttnn.slice_static"]),
    ],
)
def test_heads_that_are_turned_by_one_call(
    evaluate: Callable[..., Evaluated], positions: int, names: list[str], wide: bool
) -> None:
    given = operands((2, 3, positions, 64), (1, 1, positions, 64), wide=wide)
    ran = evaluate("rotary_embedding", given, (2, 3, positions, 64))
    assert ran.names == names
    expected = turned(*given)
    np.testing.assert_allclose(ran.golden[0].astype(np.float32), expected, atol=0.01)
    np.testing.assert_allclose(ran.lowered[0].astype(np.float32), expected, atol=0.03)


@pytest.mark.parametrize(
    ("shape", "table", "dtype"),
    [
        ((2, 3, 8, 32), (1, 1, 8, 32), BF16),
        ((2, 3, 8, 64), (2, 1, 8, 64), BF16),
        ((2, 3, 8, 64), (8, 64), BF16),
        ((3, 8, 64), (1, 8, 64), BF16),
        ((2, 3, 8, 64), (1, 1, 8, 64), np.dtype(np.float32)),
    ],
)
def test_others_are_spelled_out(
    evaluate: Callable[..., Evaluated],
    shape: tuple[int, ...],
    table: tuple[int, ...],
    dtype: np.dtype,
) -> None:
    given = operands(shape, table, dtype)
    ran = evaluate("rotary_embedding", given, shape)
    assert "ttnn.rotary_embedding" not in ran.names
    np.testing.assert_allclose(ran.lowered[0].astype(np.float32), turned(*given), atol=0.03)


@pytest.mark.parametrize(
    ("shape", "table"), [((2, 8, 63), (8, 63)), ((2, 8, 64), (8, 32)), ((2, 8, 64), (4, 64))]
)
def test_tables_have_whole_rows(
    refusal: Callable[..., str], shape: tuple[int, ...], table: tuple[int, ...]
) -> None:
    message = refusal("rotary_embedding", operands(shape, table), shape)
    assert "even" in message or "tables" in message
