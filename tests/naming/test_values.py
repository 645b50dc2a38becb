"""What the source calls values and layers, and what of it says anything."""

from __future__ import annotations

import pytest

from tests.naming.test_targets import names
from ttcodegen.naming.functions import part_title
from ttcodegen.naming.layers import common_layer, layer_of_weight, plain_name, short_layer


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


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("model.fc.parametrizations.weight.original", "fc.weight"),
        ("l__self___vit_layer_0_query_weight", "vit_layer_0_query_weight"),
        ("encoder.weight", "encoder.weight"),
        ("model.", "model."),
    ],
)
def test_names_of_arguments_without_what_frameworks_add(name: str, plain: str) -> None:
    assert plain_name(name) == plain


@pytest.mark.parametrize(
    ("layer", "short"),
    [
        ("model_vit_encoder_layer_0_attention_output_dense", "attention_output_dense"),
        ("encoder_layer_3_norm", "layer_3_norm"),
        ("patch_embeddings_projection", "patch_embeddings_projection"),
        ("fc1", "fc1"),
        ("model.layers.0.self_attn.q_proj", "self_attn.q_proj"),
    ],
)
def test_short_layers(layer: str, short: str) -> None:
    assert short_layer(layer) == short


@pytest.mark.parametrize(
    ("layers", "title"),
    [
        (["model.3.conv", "model.3.conv", "model.4.m.0.cv1"], "model.3 to model.4"),
        (["model.embed_tokens", "model.layers.0.norm"], "embed_tokens to layers.0"),
        (["model.layers.0.norm", "lm_head"], "layers.0 to lm_head"),
        (["encoder.0.norm", "", "encoder.0.linear"], "encoder.0"),
        (["vit_patch_embeddings_projection", "vit_layer_0_output_dense"],
         "embeddings_projection to output_dense"),
        (["", ""], None),
    ],
)  # fmt: skip
def test_titles_of_parts(layers: list[str], title: str | None) -> None:
    assert part_title(layers) == title
