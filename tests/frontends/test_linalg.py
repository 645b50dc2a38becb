"""linalg to TTIR."""

from __future__ import annotations

import numpy as np

from tests.frontends.running import ops_of, read, refusals, run

MULTIPLY = """#map = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d1)>
module attributes {torch.debug_module_name = "_lambda"} {
ml_program.global private mutable @global_seed(dense<0> : tensor<i64>) : tensor<i64>
func.func @forward(%a: tensor<8x16xf32>, %b: tensor<16xf32>) -> tensor<8x16xf32> {
  %0 = tensor.empty() : tensor<8x16xf32>
  %1 = linalg.generic {indexing_maps = [#map, #row, #map],
                       iterator_types = ["parallel", "parallel"]}
      ins(%a, %b : tensor<8x16xf32>, tensor<16xf32>) outs(%0 : tensor<8x16xf32>) {
  ^bb0(%in: f32, %in_0: f32, %out: f32):
    %2 = arith.mulf %in, %in_0 : f32
    %3 = math.tanh %2 : f32
    linalg.yield %3 : f32
  } -> tensor<8x16xf32>
  return %1 : tensor<8x16xf32>
}
}
"""


def test_a_generic_on_elements() -> None:
    random = np.random.default_rng(0)
    a = random.standard_normal((8, 16)).astype(np.float32)
    b = random.standard_normal(16).astype(np.float32)
    (found,) = run(MULTIPLY, a, b)
    np.testing.assert_allclose(found, np.tanh(a * b), rtol=1e-5)
    assert ops_of(read(MULTIPLY)) == ["reshape", "multiply", "tanh"]


def test_what_is_not_known_is_refused() -> None:
    assert refusals(MULTIPLY.replace("math.tanh", "math.log1p")) == [
        "'math.log1p' in a linalg.generic is not supported"
    ]
    assert refusals(MULTIPLY.replace('"parallel"]', '"reduction"]')) == [
        "a linalg.generic that reduces is not supported"
    ]
