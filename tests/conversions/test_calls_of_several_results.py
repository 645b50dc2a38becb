"""A call of the library with several results is one variable, whichever of them are used."""

from __future__ import annotations

from ttcodegen.compilation import CompileOptions, compile_module
from ttcodegen.conversions.host_functions.layer_analysis import joined_at
from ttcodegen.conversions.host_functions.statements import Statement
from ttcodegen.emitc.spelling import Text
from ttcodegen.foundation.diagnostics import Source
from ttcodegen.frontends.translation import SourceOp

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


def test_statements_that_take_results_of_one_call_are_not_divided() -> None:
    """Even where another statement has moved between them."""
    sort, square, negate = (SourceOp.create() for _ in range(3))
    statements = [Statement(op, Text(""), (), ()) for op in (sort, square, sort, negate)]
    assert joined_at(statements) == [False, True, True, False, False]
