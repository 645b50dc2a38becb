"""Rounding by compute configurations and the library's defaults in the numpy run."""

from __future__ import annotations

import re
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from ttcodegen.compilation import CompileOptions, compile_module
from ttcodegen.dialects.operations.compute_config import (
    COMPUTE_DEFAULTS,
    Arithmetic,
    ComputeConfig,
    MathFidelity,
)
from ttcodegen.foundation.diagnostics import Source
from ttcodegen.numerics.interpreter import Interpreter
from ttcodegen.numerics.lowered import read_flatbuffer
from ttcodegen.ops.core import engine
from ttcodegen.ops.core.engine import (
    fast_exponential,
    iterated_reciprocal,
    matrix_product,
    sum_along,
)

DEFAULTS = Path(__file__).parents[2] / "standalone" / "src" / "compute" / "compute_defaults.inc"
ROW = re.compile(
    r"^TTCODEGEN_COMPUTE_DEFAULT\((\w+), \((\w+), (\w+), (\w+)\), (\w+), (\w+)\)$", re.M
)


def test_the_cpu_backend_has_the_same_defaults() -> None:
    found = {
        name: (narrow, block, wide, approximate == "true", sums)
        for name, narrow, block, wide, approximate, sums in ROW.findall(DEFAULTS.read_text())
    }
    expected = {
        name: (row.narrow, row.block, row.wide, row.approximate, row.wide_sums)
        for name, row in COMPUTE_DEFAULTS.items()
    }
    assert found == expected


def arithmetic(
    fidelity: MathFidelity = MathFidelity.HIFI4, wide: bool = True, approximate: bool = False
) -> Arithmetic:
    return Arithmetic.of(
        ComputeConfig(fidelity, math_approx_mode=approximate, fp32_dest_acc_en=wide)
    )


def above_one(bits: int) -> float:
    return 1 + 2.0**-bits


def product(a: float, b: float, how: Arithmetic) -> float:
    left, right = np.full((1, 1), a, np.float32), np.full((1, 1), b, np.float32)
    return float(matrix_product(left, right, how)[0, 0])


@pytest.mark.parametrize(
    ("fidelity", "first", "second"),
    [
        (MathFidelity.LOFI, 6, 4),
        (MathFidelity.HIFI2, 6, 9),
        (MathFidelity.HIFI3, 10, 9),
        (MathFidelity.HIFI4, 10, 9),
    ],
)
def test_passes_of_the_multiplier(fidelity: MathFidelity, first: int, second: int) -> None:
    how = arithmetic(fidelity)
    assert product(above_one(first), 1, how) == above_one(first)
    assert product(above_one(first + 1), 1, how) == 1
    assert product(1, above_one(second), how) == above_one(second)
    assert product(1, above_one(second + 1), how) == 1


@pytest.mark.parametrize(("wide", "expected"), [(True, 4160), (False, 4096)])
def test_sums_of_16_bits_swallow_small_summands(wide: bool, expected: float) -> None:
    """Each tile after the first adds less than half of bfloat16's unit at 4096."""
    row = np.full((1, 32 * 9), 0.25, np.float32)
    row[0, :32] = 128
    how = arithmetic(wide=wide)
    assert matrix_product(row, np.ones((32 * 9, 1), np.float32), how) == expected
    assert sum_along(row, (1,), how) == expected


def test_large_sums_are_rounded_where_an_exponential_follows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(engine, "_MOST_ROUNDED", 0)
    row, ones = np.full((1, 32 * 9), 0.25, np.float32), np.ones((32 * 9, 1), np.float32)
    row[0, :32] = 128
    narrow = arithmetic(wide=False)
    assert matrix_product(row, ones, narrow) == 4160
    assert matrix_product(row, ones, narrow, in_exponent=True) == 4096


def test_deep_sums_are_rounded_however_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "_MOST_ROUNDED", 0)
    generator = np.random.default_rng(0)
    a = generator.standard_normal((70, 2048), np.float32)
    b = generator.standard_normal((2048, 300), np.float32)
    deep = matrix_product(a, b, arithmetic(wide=False))
    first, second = matrix_product(a[:5], b[:, :7], arithmetic(wide=False)), deep[:5, :7]
    assert np.array_equal(first, second)
    exact = matrix_product(a, b, arithmetic(wide=True))
    assert 0.003 < np.abs(deep - exact).max() / np.ptp(exact) < 0.02


@pytest.mark.parametrize("rows", [1, 70])
@pytest.mark.parametrize(("depth", "columns"), [(32, 128), (320, 640), (288, 130), (100, 256)])
def test_sums_are_rounded_after_each_tile(rows: int, depth: int, columns: int) -> None:
    """Of whole numbers, whose sums within a tile are exact in any order."""
    generator = np.random.default_rng(0)
    a = generator.integers(-63, 64, (rows, depth)).astype(np.float32)
    b = generator.integers(-31, 32, (columns, depth)).astype(np.float32).T
    expected = np.zeros((rows, columns), np.float32)
    for start in range(0, depth, 32):
        expected += a[:, start : start + 32] @ b[start : start + 32]
        expected = expected.astype(ml_dtypes.bfloat16).astype(np.float32)
    assert np.array_equal(matrix_product(a, b, arithmetic(wide=False)), expected)


def test_what_is_cut_lies_as_it_lay() -> None:
    """A transposed weight is not copied into another order first."""
    weight = np.full((3, 2), above_one(10), np.float32).T
    assert engine.cut(weight, 9).flags.f_contiguous
    assert (engine.cut(weight, 9) == 1).all()


def test_batches_and_vectors_are_rounded_as_matrices_are() -> None:
    generator = np.random.default_rng(0)
    a = generator.standard_normal((2, 3, 70, 100), np.float32)
    b = generator.standard_normal((3, 100, 150), np.float32)
    how = arithmetic(wide=False)
    found = matrix_product(a, b, how)
    assert np.array_equal(found[1, 2], matrix_product(a[1, 2], b[2], how))
    assert np.array_equal(found[1, 2, 5], matrix_product(a[1, 2, 5], b[2], how))
    assert np.array_equal(found[1, 2, :, 7], matrix_product(a[1, 2], b[2, :, 7], how))
    assert not np.array_equal(found, np.matmul(a, b))
    assert np.corrcoef(found.ravel(), np.matmul(a, b).ravel())[0, 1] > 0.9999


def test_approximations_are_as_good_as_those_of_the_kernels() -> None:
    x = np.geomspace(1e-3, 1e3, 1001, dtype=np.float32)
    assert 0.961 < (x * iterated_reciprocal(x, arithmetic(approximate=True))).min() < 0.963
    assert 0.998 < (x * iterated_reciprocal(x, arithmetic())).min() < 0.999
    y = np.linspace(-20, 0, 1001, dtype=np.float32)
    error = np.abs(fast_exponential(y) / np.exp(y) - 1).max()
    assert 0.02 < error < 0.04
    assert fast_exponential(np.array([-np.inf, -100], np.float32))[0] < 1e-38


def rows_of_softmax(config: str) -> np.ndarray:
    text = f"""
func.func @f(%x: tensor<64x96xf32>) -> tensor<64x96xf32> {{
  %0 = "ttnn.softmax"(%x) <{{dimension = 1 : si32 {config}}}>
    : (tensor<64x96xf32>) -> tensor<64x96xf32>
  return %0 : tensor<64x96xf32>
}}
"""
    compiled = compile_module(Source("m.mlir", text), CompileOptions("m"))
    interpreter = Interpreter(read_flatbuffer(compiled.flatbuffer))  # pyright: ignore[reportArgumentType]
    (found,) = interpreter.run(
        "f", [np.random.default_rng(0).standard_normal((64, 96), np.float32)]
    )
    return found.sum(axis=1)


def test_the_interpreter_computes_as_the_configuration_says() -> None:
    exact = rows_of_softmax("")
    approximate = rows_of_softmax(
        ", compute_config = #ttnn.device_compute_kernel_config<math_fidelity = hifi3, "
        "math_approx_mode = true, fp32_dest_acc_en = true>"
    )
    assert np.abs(exact - 1).max() < 0.003 < np.abs(approximate - 1).max() < 0.04
