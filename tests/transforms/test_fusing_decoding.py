"""Attention of one token per user, whose mask follows from its position in the cache."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.func import FuncOp

from tests.transforms.numpy_execution import run
from tests.transforms.programs import Transformed, apply
from ttcodegen.foundation.diagnostics import Source
from ttcodegen.parsing import parse_module
from ttcodegen.transforms.ttir.canonicalize import TTIRCanonicalizePass
from ttcodegen.transforms.ttir.fusing.rules import TTIRFusingPass

PASSES = (TTIRCanonicalizePass(), TTIRFusingPass())
DECODE = "scaled_dot_product_attention_decode"
KEYS = 64

# Visible are the keys up to the position; in the forms below before they are made a mask.
SHOWN = ('"ttir.le"(%n, %pb)', '"ttir.ge"(%pb, %n)')
HIDDEN = ('"ttir.gt"(%n, %pb)', '"ttir.lt"(%pb, %n)')


def step(comparison: str, written: str = "%p", hides: str = "0xFF80", start: int = 0) -> str:
    """A decode step of two users: it writes its key and value, then attends to the cache."""
    first, second = ("%low", "%zero") if comparison in HIDDEN else ("%zero", "%low")
    return f"""
func.func @step(%q: tensor<2x4x1x32xbf16>, %k: tensor<2x2x{KEYS}x32xbf16>,
    %v: tensor<2x2x{KEYS}x32xbf16>, %row: tensor<1x2x2x32xbf16>, %p: tensor<1xi64>,
    %other: tensor<1xi64>) -> tensor<2x4x1x32xbf16> {{
  "ttir.update_cache"(%k, %row, {written}) <{{batch_offset = 0 : i32}}>
      : (tensor<2x2x{KEYS}x32xbf16>, tensor<1x2x2x32xbf16>, tensor<1xi64>) -> ()
  %n = "ttir.arange"() <{{arange_dimension = 3 : i64, start = {start} : si64,
      end = {start + KEYS} : si64, step = 1 : si64}}> : () -> tensor<1x1x1x{KEYS}xi64>
  %p4 = "ttir.reshape"(%p) <{{shape = [1 : i32, 1 : i32, 1 : i32, 1 : i32]}}>
      : (tensor<1xi64>) -> tensor<1x1x1x1xi64>
  %pb = "ttir.broadcast"(%p4) <{{broadcast_dimensions = array<i64: 1, 1, 1, {KEYS}>}}>
      : (tensor<1x1x1x1xi64>) -> tensor<1x1x1x{KEYS}xi64>
  %c = {comparison} : (tensor<1x1x1x{KEYS}xi64>, tensor<1x1x1x{KEYS}xi64>)
      -> tensor<1x1x1x{KEYS}xi1>
  %zero = "ttir.constant"() <{{value = dense<0.0> : tensor<1x1x1x{KEYS}xbf16>}}>
      : () -> tensor<1x1x1x{KEYS}xbf16>
  %low = "ttir.constant"() <{{value = dense<{hides}> : tensor<1x1x1x{KEYS}xbf16>}}>
      : () -> tensor<1x1x1x{KEYS}xbf16>
  %m = "ttir.where"(%c, {first}, {second}) : (tensor<1x1x1x{KEYS}xi1>,
      tensor<1x1x1x{KEYS}xbf16>, tensor<1x1x1x{KEYS}xbf16>) -> tensor<1x1x1x{KEYS}xbf16>
  %mb = "ttir.broadcast"(%m) <{{broadcast_dimensions = array<i64: 2, 1, 1, 1>}}>
      : (tensor<1x1x1x{KEYS}xbf16>) -> tensor<2x1x1x{KEYS}xbf16>
  %a = "ttir.scaled_dot_product_attention"(%q, %k, %v, %mb) <{{is_causal = false,
      scale = 0.5 : f32, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0>}}>
      : (tensor<2x4x1x32xbf16>, tensor<2x2x{KEYS}x32xbf16>, tensor<2x2x{KEYS}x32xbf16>,
         tensor<2x1x1x{KEYS}xbf16>) -> tensor<2x4x1x32xbf16>
  return %a : tensor<2x4x1x32xbf16>
}}
"""


def function_of(text: str) -> FuncOp:
    return Transformed(parse_module(Source("step.mlir", text))).function


def fused(text: str) -> Transformed:
    return apply(parse_module(Source("step.mlir", text)), *PASSES)


@pytest.mark.parametrize("comparison", [*SHOWN, *HIDDEN])
@pytest.mark.parametrize("position", [0, 31, KEYS - 1])
def test_a_mask_up_to_the_position_becomes_the_position(comparison: str, position: int) -> None:
    text = step(comparison)
    found = fused(text)
    assert found.op(DECODE).parameter("is_causal")
    assert found.op(DECODE).optional_operand("attention_mask") is None
    assert not {"where", "le", "ge", "gt", "lt"} & set(found.names)
    generator = np.random.default_rng(position)
    shapes = [(2, 4, 1, 32), (2, 2, KEYS, 32), (2, 2, KEYS, 32), (1, 2, 2, 32)]
    inputs = [generator.standard_normal(shape).astype("f4") for shape in shapes]
    inputs += [np.array([position]), np.array([5])]
    (wanted,), (got,) = (
        run(function, [array.copy() for array in inputs])
        for function in (function_of(text), found.function)
    )
    np.testing.assert_allclose(got.astype("f4"), wanted.astype("f4"), atol=2e-2)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(step(SHOWN[0], written="%other"), id="not where the cache is written"),
        pytest.param(step(SHOWN[0], start=1), id="keys counted from one"),
        pytest.param(step(SHOWN[0], hides="-1.0"), id="a bias that hides nothing"),
        pytest.param(step('"ttir.lt"(%n, %pb)'), id="keys from the position on"),
    ],
)
def test_other_masks_stay(text: str) -> None:
    assert DECODE not in fused(text).names
