"""Rounding by kernels that take several steps through the engines."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import ttcodegen.ops as catalogue
from ttcodegen.compilation import CompileOptions, compile_module
from ttcodegen.dialects.operations.compute_config import Arithmetic, ComputeConfig, MathFidelity
from ttcodegen.flatbuffer.reader import read_ttnn
from ttcodegen.foundation.diagnostics import Source
from ttcodegen.numerics.interpreter import Interpreter
from ttcodegen.ops.core.definition import TTNN
from ttcodegen.ops.core.engine import element_product

NUMBERS = Path(__file__).parents[2] / "docs" / "numbers.md"


def run(text: str, *inputs: np.ndarray) -> np.ndarray:
    compiled = compile_module(Source("m.mlir", text), CompileOptions("m"))
    (found,) = Interpreter(read_ttnn(compiled.flatbuffer)).run("f", inputs)
    return found.astype(np.float32)


def config(fidelity: str, wide: bool, approximate: bool = False) -> str:
    return (
        f"compute_config = #ttnn.device_compute_kernel_config<math_fidelity = {fidelity}, "
        f"math_approx_mode = {str(approximate).lower()}, "
        f"fp32_dest_acc_en = {str(wide).lower()}>"
    )


def test_the_fourth_pass_multiplies_what_is_low_in_both() -> None:
    a, b = np.float32([1 + 2.0**-5]), np.float32([1 + 2.0**-7])
    found = {
        fidelity: float(
            element_product(a, b, Arithmetic.of(ComputeConfig(fidelity, fp32_dest_acc_en=True)))[0]
        )
        for fidelity in MathFidelity
    }
    exact = (1 + 2.0**-5) * (1 + 2.0**-7)
    assert found == {
        MathFidelity.LOFI: 1.0,
        MathFidelity.HIFI2: 1 + 2.0**-5,
        MathFidelity.HIFI3: exact - 2.0**-12,
        MathFidelity.HIFI4: exact,
    }


@pytest.mark.parametrize("fidelity", MathFidelity)
def test_products_that_are_not_finite_are_those_of_ieee(fidelity: MathFidelity) -> None:
    largest = np.float32(2.0**128 - 2.0**104)
    a = np.float32([np.inf, -np.inf, np.inf, np.nan, largest, 1.0])
    b = np.float32([1.0, np.inf, 0.0, 1.0, -largest, 2.0])
    how = Arithmetic.of(ComputeConfig(fidelity, fp32_dest_acc_en=True))
    with np.errstate(all="ignore"):
        found = element_product(a, b, how)
    assert np.array_equal(found, [np.inf, -np.inf, np.nan, np.nan, -np.inf, 2.0], equal_nan=True)


def test_norms_of_a_row_with_an_infinity_are_those_of_pytorch() -> None:
    torch = pytest.importorskip("torch")
    text = f"""
func.func @f(%x: tensor<2x32xf32>) -> tensor<2x32xf32> {{
  %0 = "ttnn.rms_norm"(%x) <{{epsilon = 1.0e-5 : f32, {config("hifi3", True)},
    operandSegmentSizes = array<i32: 1, 0, 0, 0>}}> : (tensor<2x32xf32>) -> tensor<2x32xf32>
  return %0 : tensor<2x32xf32>
}}
"""
    x = np.linspace(-2, 2, 64, dtype=np.float32).reshape(2, 32)
    x[0, 5] = np.inf
    expected = torch.nn.functional.rms_norm(torch.from_numpy(x), (32,), eps=1e-5).numpy()
    assert np.isnan(expected).sum() == 1
    np.testing.assert_allclose(run(text, x), expected, rtol=0.02, atol=1e-3)


def pooled(kernel: int, configuration: str = "") -> float:
    size = kernel * kernel
    image = f"tensor<1x1x{size}x32xbf16>"
    text = f"""
func.func @f(%x: {image}) -> tensor<1x1x1x32xbf16> {{
  %0 = "ttnn.avg_pool2d"(%x) <{{batch_size = 1 : si32, input_height = {kernel} : si32,
    input_width = {kernel} : si32, channels = 32 : si32,
    kernel_size = array<i32: {kernel}, {kernel}>, stride = array<i32: 1, 1>
    {configuration}}}> : ({image}) -> tensor<1x1x1x32xbf16>
  return %0 : tensor<1x1x1x32xbf16>
}}
"""
    return float(run(text, np.ones((1, 1, size, 32), np.float32))[0, 0, 0, 0])


def test_means_of_windows_multiply_with_a_share_that_is_cut() -> None:
    """A ninth is 0.11083984 in bfloat16, cut."""
    assert pooled(3) == 0.99609375
    assert pooled(4) == 1.0


def test_sums_of_large_windows_have_32_bits_unless_configured() -> None:
    """A 289th is 0.003448486 in bfloat16; sums of 16 bits lose much of each."""
    assert pooled(17) == 0.99609375
    narrow = pooled(17, ", " + config("hifi4", wide=False))
    assert narrow != pooled(17)
    assert narrow == pytest.approx(1, abs=0.02)


def test_bilinear_weights_are_cut() -> None:
    """Between 0 and 3 lie a third of the way 1, and two thirds 2: weights of bfloat16 fall short of
    them."""
    image, result = "tensor<1x1x2x32xbf16>", "tensor<1x3x6x32xbf16>"
    text = f"""
func.func @f(%x: {image}) -> {result} {{
  %0 = "ttnn.upsample_bilinear"(%x) <{{scale_factor = array<i32: 3, 3>}}> : ({image}) -> {result}
  return %0 : {result}
}}
"""
    edge = np.zeros((1, 1, 2, 32), np.float32)
    edge[:, :, 1] = 3
    found = run(text, edge)[0, 1, :, 0]
    assert found.tolist() == [0, 0, 0.99609375, 1.9921875, 3, 3]


def normalized(element: str, configuration: str = "") -> np.ndarray:
    image, vector = f"tensor<1x2x32x32x{element}>", f"tensor<1x2x1x1x{element}>"
    text = f"""
func.func @f(%x: {image}, %m: {vector}, %v: {vector}, %s: {vector}, %o: {vector}) -> {image} {{
  %0 = "ttnn.batch_norm_inference"(%x, %m, %v, %s, %o) <{{epsilon = 1.0e-5 : f32
    {configuration}}}> : ({image}, {vector}, {vector}, {vector}, {vector}) -> {image}
  return %0 : {image}
}}
"""
    generator = np.random.default_rng(0)
    x = generator.uniform(-1, 1, (1, 2, 32, 32)).astype(np.float32)
    vectors = [np.full((1, 2, 1, 1), value, np.float32) for value in (0.1, 1.0, 1.5, -0.25)]
    return run(text, x, *vectors)


def test_batch_norm_of_float32_keeps_all_bits_unless_configured() -> None:
    x = np.random.default_rng(0).uniform(-1, 1, (1, 2, 32, 32)).astype(np.float32)
    exact = (x - np.float32(0.1)) / np.sqrt(np.float32(1 + 1e-5)) * np.float32(1.5) - 0.25
    error = np.abs(normalized("f32") - exact).max()
    narrow = np.abs(normalized("f32", ", " + config("hifi4", wide=False)) - exact).max()
    assert error < 1e-6 < 1e-3 < narrow < 0.05


def test_batch_norm_of_bfloat16_shows_its_fidelity_where_sums_have_16_bits() -> None:
    """With sums of 32 bits the vector engine computes, which knows no fidelity."""
    wide = [normalized("bf16", ", " + config(each, wide=True)) for each in ("lofi", "hifi4")]
    narrow = [normalized("bf16", ", " + config(each, wide=False)) for each in ("lofi", "hifi4")]
    assert np.array_equal(*wide)
    assert 0.01 < np.abs(narrow[0] - narrow[1]).max() < 0.2


def attended(configuration: str = "") -> np.ndarray:
    heads = "tensor<1x1x32x32xbf16>"
    text = f"""
func.func @f(%q: {heads}, %k: {heads}, %v: {heads}) -> {heads} {{
  %0 = "ttnn.scaled_dot_product_attention"(%q, %k, %v) <{{is_causal = false,
    scale = 0.25 : f32 {configuration}, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>}}>
    : ({heads}, {heads}, {heads}) -> {heads}
  return %0 : {heads}
}}
"""
    generator = np.random.default_rng(0)
    query, key = generator.standard_normal((2, 1, 1, 32, 32)).astype(np.float32)
    return run(text, query, key, np.ones((1, 1, 32, 32), np.float32))


def test_attention_divides_by_an_approximate_sum_of_approximate_exponentials() -> None:
    """The weights of ones are their own sum; the approximate reciprocal is off by up to 4 %."""
    error = np.abs(attended() - 1)
    exact = np.abs(attended(", " + config("hifi4", wide=True)) - 1)
    assert exact.max() <= 2.0**-7 < error.max() < 0.05


def test_updates_of_a_float32_cache_cut_the_tile_that_they_write_to() -> None:
    cache, row = "tensor<1x1x64x32xf32>", "tensor<1x1x1x32xf32>"
    text = f"""
func.func @f(%c: {cache} {{ttcore.kv_cache}}, %x: {row}, %i: tensor<1xi32>) -> {cache} {{
  "ttnn.update_cache"(%c, %x, %i) : ({cache}, {row}, tensor<1xi32>) -> ()
  return %c : {cache}
}}
"""
    value = np.float32(1 + 2.0**-10 + 2.0**-20)
    found = run(
        text,
        np.full((1, 1, 64, 32), value),
        np.full((1, 1, 1, 32), value),
        np.array([3], np.int32),
    )[0, 0, :, 0]
    cut = np.float32(1 + 2.0**-10)
    assert np.array_equal(found, [cut] * 32 + [value] * 32)


def test_the_document_says_of_every_call_what_it_goes_through() -> None:
    section = NUMBERS.read_text().partition("\n### Every call\n")[2].partition("\n## ")[0]
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| ")]
    named = [name for row in rows for name in re.findall(r"(?<!\*)`(\w+)`", row)]
    catalogue.load()
    assert sorted(named) == sorted(TTNN)
