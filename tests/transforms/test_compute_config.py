"""Calls that pass a compute config."""

from __future__ import annotations

import pytest

from ttcodegen.compilation import CompileOptions, compile_module
from ttcodegen.foundation.diagnostics import Source
from ttcodegen.transforms.ttnn.call_settings import LONG_SUM

PRODUCT = """
func.func @main(%a: tensor<32x{size}xbf16>, %b: tensor<{size}x32xbf16>) -> tensor<32x32xbf16> {{
  %0 = "ttir.matmul"(%a, %b)
      : (tensor<32x{size}xbf16>, tensor<{size}x32xbf16>) -> tensor<32x32xbf16>
  return %0 : tensor<32x32xbf16>
}}
"""
SOFTMAX = """
func.func @main(%a: tensor<32x{size}xbf16>) -> tensor<32x{size}xbf16> {{
  %0 = "ttir.softmax"(%a) <{{dimension = 1 : si32}}>
      : (tensor<32x{size}xbf16>) -> tensor<32x{size}xbf16>
  return %0 : tensor<32x{size}xbf16>
}}
"""
ATTENTION = """
func.func @main(%q: tensor<1x4x32x64xbf16>, %k: tensor<1x4x{size}x64xbf16>,
    %v: tensor<1x4x{size}x64xbf16>) -> tensor<1x4x32x64xbf16> {{
  %0 = "ttir.scaled_dot_product_attention"(%q, %k, %v)
      <{{is_causal = false, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>}}>
      : (tensor<1x4x32x64xbf16>, tensor<1x4x{size}x64xbf16>, tensor<1x4x{size}x64xbf16>)
      -> tensor<1x4x32x64xbf16>
  return %0 : tensor<1x4x32x64xbf16>
}}
"""


def adds_up_in_32_bits(text: str) -> bool:
    compiled = compile_module(Source("model.mlir", text), CompileOptions("model"))
    lines = "\n".join(compiled.files.values()).splitlines()
    return any(".fp32_dest_acc_en = true" in line for line in lines if not line.startswith("//"))


@pytest.mark.parametrize("text", [PRODUCT, SOFTMAX, ATTENTION])
def test_long_sums_have_32_bits_and_others_are_the_library_s(text: str) -> None:
    assert not adds_up_in_32_bits(text.format(size=LONG_SUM))
    assert adds_up_in_32_bits(text.format(size=LONG_SUM + 32))
