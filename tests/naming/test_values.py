"""What the source calls values and layers, and what of it says anything."""

from __future__ import annotations

import pytest

from tests.naming.test_targets import names
from ttcodegen.naming.layers import common_layer, layer_of_weight


@pytest.mark.parametrize(
    ("location", "expected"),
    [
        ("custom-call.5", "normalized"),
        ("dot.31", "normalized"),
        ("gather.62_reshapeStartIndices", "normalized"),
        ("arg10", "normalized"),
        ("hidden.31", "hidden"),
        ("dotted.3", "dotted"),
        ("block/attention_norm", "attention_norm"),
    ],
)
def test_instructions_of_hlo_name_nothing(location: str, expected: str) -> None:
    text = f"""
func.func @forward(%x: tensor<32x64xf32>, %w: tensor<64xf32>) -> tensor<32x64xf32> {{
  %1 = "ttir.rms_norm"(%x, %w) <{{epsilon = 1.0e-05 : f32, normalized_shape = array<i64: 64>,
      operandSegmentSizes = array<i32: 1, 1, 0>}}>
    : (tensor<32x64xf32>, tensor<64xf32>) -> tensor<32x64xf32> loc("{location}")
  %2 = "ttir.add"(%1, %1) : (tensor<32x64xf32>, tensor<32x64xf32>) -> tensor<32x64xf32>
  return %2 : tensor<32x64xf32>
}}
"""
    assert expected in names(text, "ttnn")


def test_arguments_with_numbers_give_their_name_to_no_other_value() -> None:
    text = """
func.func @forward(%arg0: tensor<32x64xf32> {ttir.name = "pixels"}) -> tensor<32x64xf32> {
  %arg7 = "ttir.exp"(%arg0) : (tensor<32x64xf32>) -> tensor<32x64xf32>
  %1 = "ttir.add"(%arg7, %arg7) : (tensor<32x64xf32>, tensor<32x64xf32>) -> tensor<32x64xf32>
  return %1 : tensor<32x64xf32>
}
"""
    assert names(text, "ttnn") == {"exp", "sum"}


@pytest.mark.parametrize(
    ("weight", "expected"),
    [
        ("model.fc.weight", "fc"),
        ("model.fc.parametrizations.weight.original", "fc"),
        ("model.fc.parametrizations.weight.original0", "fc"),
        ("model.fc", None),
    ],
)
def test_layers_of_weights(weight: str, expected: str | None) -> None:
    assert layer_of_weight(weight) == expected


@pytest.mark.parametrize(
    ("layers", "expected"),
    [
        (["encoder.0.query", "encoder.0.key"], "encoder.0"),
        (["embedding", *["encoder.0"] * 4, *["encoder.1"] * 4], "encoder"),
        (["embedding", "encoder", "classifier"], None),
        ([], None),
    ],
)
def test_what_most_layers_have_in_common(layers: list[str], expected: str | None) -> None:
    assert common_layer(layers) == expected
