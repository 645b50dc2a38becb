"""Recognition of TTIR ops in their StableHLO decompositions."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.context import Context

from tests.frontends.running import ops_of, read
from ttcodegen.compilation import CompileOptions, compile_module
from ttcodegen.flatbuffer.reader import read_ttnn
from ttcodegen.foundation.diagnostics import Source
from ttcodegen.numerics.golden_values import Golden
from ttcodegen.numerics.interpreter import Interpreter
from ttcodegen.transforms.ttir.canonicalize import TTIRCanonicalizePass, TTIRDecomposePass
from ttcodegen.transforms.ttir.fusing.rules import TTIRFusingPass


@pytest.mark.parametrize("chosen", [False, True])
def test_a_product_with_one_hot_rows_is_a_lookup(chosen: bool) -> None:
    """jax.nn.one_hot(i, 8) @ table; the row of a place outside of the table is zero."""
    converted = "%h = stablehlo.convert %e : (tensor<2x3x8xi1>) -> tensor<2x3x8xbf16>"
    if chosen:
        converted = """%one = stablehlo.constant dense<1.0> : tensor<2x3x8xbf16>
          %zero = stablehlo.constant dense<0.0> : tensor<2x3x8xbf16>
          %h = stablehlo.select %e, %one, %zero : tensor<2x3x8xi1>, tensor<2x3x8xbf16>"""
    weight = "{ttcore.argument_type = #ttcore.argument_type<parameter>}"
    text = f"""func.func @f(%i: tensor<2x3xi32>, %t: tensor<8x5xbf16> {weight})
        -> tensor<2x3x5xbf16> {{
      %b = stablehlo.broadcast_in_dim %i, dims = [0, 1] : (tensor<2x3xi32>) -> tensor<2x3x8xi32>
      %n = stablehlo.iota dim = 2 : tensor<2x3x8xi32>
      %e = stablehlo.compare EQ, %b, %n : (tensor<2x3x8xi32>, tensor<2x3x8xi32>) -> tensor<2x3x8xi1>
      {converted}
      %r = stablehlo.dot_general %h, %t, contracting_dims = [2] x [0]
        : (tensor<2x3x8xbf16>, tensor<8x5xbf16>) -> tensor<2x3x5xbf16>
      return %r : tensor<2x3x5xbf16>
    }}"""
    indices = np.int32([[0, 7, 3], [-1, 8, 5]])
    table = np.arange(40, dtype=np.float32).reshape(8, 5)
    expected = np.where(((indices >= 0) & (indices < 8))[..., None], table[indices % 8], 0)
    module = read(text)
    for each in (TTIRDecomposePass(), TTIRCanonicalizePass(), TTIRFusingPass()):
        each.apply(Context(), module)
    assert "matmul" not in ops_of(module)
    assert "embedding" in ops_of(module)
    np.testing.assert_array_equal(Golden(module).run("f", [indices, table])[0], expected)
    compiled = compile_module(Source("m.mlir", text), CompileOptions("m"))
    (found,) = Interpreter(read_ttnn(compiled.flatbuffer)).run("f", [indices, table])
    np.testing.assert_array_equal(found.astype(np.float32), expected)
