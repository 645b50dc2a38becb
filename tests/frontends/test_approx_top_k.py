"""`ApproxTopK` as jax prints it: a custom call with a function that compares."""

from __future__ import annotations

import numpy as np
import pytest

from tests.frontends.running import refusals, run

X = np.random.default_rng(0).permutation(64).reshape(4, 16).astype(np.float32)


def module(direction: str, dim: int = 1, places: str = "%n", compared: str = "%a, %b") -> str:
    shape = "4x3" if dim == 1 else "3x16"
    return f"""module {{
      func.func @comparator(%a: tensor<f32>, %b: tensor<f32>, %i: tensor<i32>, %j: tensor<i32>)
          -> tensor<i1> {{
        %0 = stablehlo.compare {direction}, {compared} : (tensor<f32>, tensor<f32>) -> tensor<i1>
        stablehlo.return %0 : tensor<i1>
      }}
      func.func public @main(%x: tensor<4x16xf32>, %p: tensor<4x16xi32>)
          -> (tensor<{shape}xf32>, tensor<{shape}xi32>) {{
        %n = stablehlo.iota dim = {dim} : tensor<4x16xi32>
        %m = stablehlo.constant dense<-1> : tensor<i32>
        %l = stablehlo.constant dense<0xFF800000> : tensor<f32>
        %r:2 = stablehlo.custom_call @ApproxTopK(%x, {places}, %l, %m) {{
          called_computations = [@comparator],
          mhlo.backend_config = {{aggregate_to_topk = true, reduction_dim = {dim} : i64,
                                 top_k = 3 : i64}}
        }} : (tensor<4x16xf32>, tensor<4x16xi32>, tensor<f32>, tensor<i32>)
          -> (tensor<{shape}xf32>, tensor<{shape}xi32>)
        return %r#0, %r#1 : tensor<{shape}xf32>, tensor<{shape}xi32>
      }}
    }}"""


@pytest.mark.parametrize("direction", ["GT", "LT"])
@pytest.mark.parametrize("dim", [0, 1])
def test_the_comparator_and_the_dimension_decide(direction: str, dim: int) -> None:
    values, places = run(module(direction, dim), X, np.zeros((4, 16), np.int32))
    order = np.argsort(-X if direction == "GT" else X, axis=dim)
    expected = np.take(order, range(3), axis=dim)
    np.testing.assert_array_equal(places, expected)
    np.testing.assert_array_equal(values, np.take_along_axis(X, expected, dim))


@pytest.mark.parametrize("options", [{"places": "%p"}, {"compared": "%a, %a"}])
def test_another_selection_is_refused(options: dict[str, str]) -> None:
    (message,) = refusals(module("GT", **options))
    assert "'@ApproxTopK' does not select" in message


def test_a_call_without_its_comparator_is_refused() -> None:
    text = module("GT")
    comparator = text[text.index("func.func @comparator") : text.index("func.func public")]
    (message,) = refusals(text.replace(comparator, ""))
    assert "names no function that compares" in message
