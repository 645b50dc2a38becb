"""A call of the library with several results is one variable, whichever of them are used."""

from __future__ import annotations

from ttcodegen.compilation import CompileOptions, compile_module
from ttcodegen.foundation.diagnostics import Source

SORT = """func.func @f(%x: tensor<33x5xf32>, %w: tensor<1x32x64xbf16>
    {ttcore.argument_type = #ttcore.argument_type<parameter>})
    -> (tensor<33x5xf32>, tensor<33x5xui16>, tensor<1x32x64xbf16>, tensor<1x32x64xui32>) {
  %0, %1 = "ttir.sort"(%x) <{stable = true}> : (tensor<33x5xf32>)
      -> (tensor<33x5xf32>, tensor<33x5xui16>)
  %2, %3 = "ttir.sort"(%w) <{dim = -3 : i32, descending = true, stable = true}>
      : (tensor<1x32x64xbf16>) -> (tensor<1x32x64xbf16>, tensor<1x32x64xui32>)
  return %0, %1, %2, %3 : tensor<33x5xf32>, tensor<33x5xui16>, tensor<1x32x64xbf16>,
      tensor<1x32x64xui32>
}
"""


def test_both_results_of_a_sorted_weight() -> None:
    files = compile_module(Source("m.mlir", SORT), CompileOptions("m")).files
    # One of the input, one of the weight; each gives values and indices.
    assert files["src/m.cpp"].count("ttnn::sort(") == 2
