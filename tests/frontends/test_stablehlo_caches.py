"""Caches of keys and values in jax's functional form: written in place where the caller gives the
old one up, and kept otherwise."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from tests.frontends.running import ops_of, read, run

STEP = """
func.func @main(%cache: tensor<2x4x64x32xf32> {ATTRIBUTE}, %row: tensor<2x4x1x32xf32>,
                %place: tensor<i32>) -> (tensor<2x4x64x32xf32>, tensor<2x4x32xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %new = func.call @write(%cache, %row, %place) :
    (tensor<2x4x64x32xf32>, tensor<2x4x1x32xf32>, tensor<i32>) -> tensor<2x4x64x32xf32>
  %init = stablehlo.constant dense<0.0> : tensor<f32>
  %sum = stablehlo.reduce(%new init: %init) applies stablehlo.add across dimensions = [2] :
    (tensor<2x4x64x32xf32>, tensor<f32>) -> tensor<2x4x32xf32>
  return %new, %sum : tensor<2x4x64x32xf32>, tensor<2x4x32xf32>
}
func.func private @write(%cache: tensor<2x4x64x32xf32>, %row: tensor<2x4x1x32xf32>,
                         %place: tensor<i32>) -> tensor<2x4x64x32xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %new = stablehlo.dynamic_update_slice %cache, %row, %zero, %zero, %place, %zero :
    (tensor<2x4x64x32xf32>, tensor<2x4x1x32xf32>, tensor<i32>, tensor<i32>, tensor<i32>,
     tensor<i32>) -> tensor<2x4x64x32xf32>
  return %new : tensor<2x4x64x32xf32>
}
"""
FILL = """
func.func @main(%cache: tensor<1x4x64x32xf32> {ATTRIBUTE}, %rows: tensor<1x4x32x32xf32>)
    -> tensor<1x4x64x32xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %new = stablehlo.dynamic_update_slice %cache, %rows, %zero, %zero, %zero, %zero :
    (tensor<1x4x64x32xf32>, tensor<1x4x32x32xf32>, tensor<i32>, tensor<i32>, tensor<i32>,
     tensor<i32>) -> tensor<1x4x64x32xf32>
  return %new : tensor<1x4x64x32xf32>
}
"""
READ_AGAIN = STEP.replace("(%new init", "(%cache init")
GENERATOR = np.random.default_rng(3)
DONATED = ["tf.aliasing_output = 0 : i32", "jax.buffer_donor = true"]


def drawn(*shape: int) -> np.ndarray:
    return GENERATOR.normal(size=shape).astype(np.float32)


def counts(text: str) -> Counter[str]:
    return Counter(ops_of(read(text)))


@pytest.mark.parametrize("attribute", [*DONATED, ""])
@pytest.mark.parametrize("place", [5, 63])
def test_one_position(attribute: str, place: int) -> None:
    text = STEP.replace("ATTRIBUTE", attribute)
    cache, row = drawn(2, 4, 64, 32), drawn(2, 4, 1, 32)
    expected = cache.copy()
    expected[:, :, place] = row[:, :, 0]
    new, total = run(text, cache.copy(), row, np.array(place, np.int32))
    np.testing.assert_array_equal(new, expected)
    np.testing.assert_allclose(total, expected.sum(2), rtol=1e-4, atol=1e-4)
    assert counts(text)["update_cache"] == (1 if attribute else 0)


@pytest.mark.parametrize("attribute", [*DONATED, ""])
def test_the_first_positions(attribute: str) -> None:
    text = FILL.replace("ATTRIBUTE", attribute)
    cache, rows = drawn(1, 4, 64, 32), drawn(1, 4, 32, 32)
    (new,) = run(text, cache.copy(), rows)
    np.testing.assert_array_equal(new, np.concatenate([rows, cache[:, :, 32:]], 2))
    assert counts(text)["fill_cache"] == (1 if attribute else 0)


def test_a_cache_that_is_read_again_is_kept() -> None:
    text = READ_AGAIN.replace("ATTRIBUTE", DONATED[0])
    cache, row = drawn(2, 4, 64, 32), drawn(2, 4, 1, 32)
    new, total = run(text, cache.copy(), row, np.array(7, np.int32))
    np.testing.assert_allclose(total, cache.sum(2), rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(new[:, :, 7], row[:, :, 0])
    assert counts(text)["update_cache"] == 0


@pytest.mark.parametrize("taken", [0, 1])
def test_a_branch_that_is_not_taken_writes_nothing(taken: int) -> None:
    text = """
    func.func @main(%cache: tensor<1x4x64x32xf32> {tf.aliasing_output = 0 : i32},
                    %rows: tensor<1x4x32x32xf32>, %which: tensor<i32>) -> tensor<1x4x64x32xf32> {
      %zero = stablehlo.constant dense<0> : tensor<i32>
      %new = "stablehlo.case"(%which) ({
        %twice = stablehlo.constant dense<2.0> : tensor<1x4x64x32xf32>
        stablehlo.return %twice : tensor<1x4x64x32xf32>
      }, {
        %1 = stablehlo.dynamic_update_slice %cache, %rows, %zero, %zero, %zero, %zero :
          (tensor<1x4x64x32xf32>, tensor<1x4x32x32xf32>, tensor<i32>, tensor<i32>, tensor<i32>,
           tensor<i32>) -> tensor<1x4x64x32xf32>
        stablehlo.return %1 : tensor<1x4x64x32xf32>
      }) : (tensor<i32>) -> tensor<1x4x64x32xf32>
      return %new : tensor<1x4x64x32xf32>
    }"""
    cache, rows = drawn(1, 4, 64, 32), drawn(1, 4, 32, 32)
    (new,) = run(text, cache.copy(), rows, np.array(taken, np.int32))
    filled = np.concatenate([rows, cache[:, :, 32:]], 2)
    np.testing.assert_array_equal(new, filled if taken else np.full_like(cache, 2))
    assert counts(text)["fill_cache"] == 0


@pytest.mark.slow
def test_the_program_writes_where_the_cache_lies(tmp_path: Path) -> None:
    from ttcodegen.cli.ttcodegen import main

    source = tmp_path / "step.mlir"
    source.write_text(STEP.replace("ATTRIBUTE", DONATED[0]))
    assert main([str(source), "-o", str(tmp_path / "out"), "--check", "-q"]) == 0
