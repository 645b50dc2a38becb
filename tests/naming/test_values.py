"""Names of values and layers from the source, and the parts of them that inform."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from xdsl.dialects import test
from xdsl.dialects.builtin import NameLoc, StringAttr, UnknownLoc

from tests.naming.test_targets import names
from ttcodegen.compilation import CompileOptions, compile_module
from ttcodegen.foundation.diagnostics import Source
from ttcodegen.naming.functions import part_title
from ttcodegen.naming.sources import (
    common_layer,
    layer,
    layer_of_weight,
    numbered_layer,
    plain_name,
    short_layer,
)


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
        ("Block/Attention_0/query", "Attention_0.query"),
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


SLICES = """
func.func @forward(%x: tensor<1x8x32x64xf32> {ttir.name = "heads"}) -> tensor<1x8x32x64xf32> {
  %1 = "ttir.exp"(%x) : (tensor<1x8x32x64xf32>) -> tensor<1x8x32x64xf32>
  %2 = "ttir.slice_static"(%1) <{begins = [0 : i32, 0 : i32, 0 : i32, BEGIN : i32],
      ends = [1 : i32, 8 : i32, 32 : i32, 64 : i32], step = [1 : i32, 1 : i32, 1 : i32, 1 : i32]}>
    : (tensor<1x8x32x64xf32>) -> tensor<1x8x32xRESTxf32>
  %3 = "ttir.neg"(%2) : (tensor<1x8x32xRESTxf32>) -> tensor<1x8x32xRESTxf32>
  %4 = "ttir.slice_static"(%1) <{begins = [0 : i32, 0 : i32, 0 : i32, 0 : i32],
      ends = [1 : i32, 8 : i32, 32 : i32, BEGIN : i32],
      step = [1 : i32, 1 : i32, 1 : i32, 1 : i32]}>
    : (tensor<1x8x32x64xf32>) -> tensor<1x8x32xBEGINxf32>
  %5 = "ttir.concat"(%3, %4) <{dim = 3 : si32}>
    : (tensor<1x8x32xRESTxf32>, tensor<1x8x32xBEGINxf32>) -> tensor<1x8x32x64xf32>
  %6 = "ttir.multiply"(%5, %1) : (tensor<1x8x32x64xf32>, tensor<1x8x32x64xf32>)
    -> tensor<1x8x32x64xf32>
  return %6 : tensor<1x8x32x64xf32>
}
"""


@pytest.mark.parametrize(
    ("begin", "parts"),
    [
        (32, {"exp_first_half", "exp_second_half"}),
        (1, {"exp_first", "exp_end"}),
        (48, {"exp_start", "exp_end"}),
    ],
)
def test_parts_are_called_after_the_whole_and_what_is_made_of_them_too(
    begin: int, parts: set[str]
) -> None:
    text = SLICES.replace("BEGIN", str(begin)).replace("REST", str(64 - begin))
    assert names(text, "ttnn") == {"exp", *parts, "exp_rotated", "product"}


@pytest.mark.parametrize(
    ("location", "expected"),
    [
        ("jit(forward)/Net/Dense_0/select_and_scatter", "Net_Dense_0"),
        ("jit(forward)/reduce_sum", "normalized"),
        ("select_and_scatter_permuteSource_reshapeSource", "normalized"),
        ("hidden_permuteSource", "hidden"),
        ("jit(forward)/Net/hidden", "hidden"),
    ],
)
def test_primitives_and_what_passes_made_of_them_name_nothing(location: str, expected: str) -> None:
    test_instructions_of_hlo_name_nothing(location, expected)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("jit(forward)/jit(main)/Net/Dense_0/dot", "Net/Dense_0"),
        ("Net/Dense_0/dot", "Net/Dense_0"),
        ("jit(forward)/dot", None),
    ],
)
def test_layers_leave_out_what_is_traced(path: str, expected: str | None) -> None:
    op = test.TestOp()
    op.location = NameLoc(StringAttr(path), UnknownLoc())
    assert layer(op, {}) == expected


@pytest.mark.parametrize(
    ("values", "op", "expected"),
    [
        ("[0, 1, 2, 3]", "add", "positions"),
        ("[4, 1, 2, 3]", "add", "offset"),
        ("[4, 1, 2, 3]", "multiply", "factor"),
    ],
)
def test_constants_are_called_for_what_they_hold_or_do(values: str, op: str, expected: str) -> None:
    text = f"""
func.func @forward(%x: tensor<4xi32>) -> tensor<4xi32> {{
  %1 = "ttir.constant"() <{{value = dense<{values}> : tensor<4xi32>}}> : () -> tensor<4xi32>
  %2 = "ttir.{op}"(%x, %1) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  return %2 : tensor<4xi32>
}}
"""
    header = compile_module(Source("model.mlir", text), CompileOptions("model")).files[
        "src/model.hpp"
    ]
    assert f"ttnn::Tensor {expected};" in header


def test_constants_of_layers_are_their_weights() -> None:
    """Those of a module of `linalg`, whose values MLIR has named after what makes them."""
    text = """
func.func @forward(%x: tensor<32x64xbf16>, %y: tensor<1x8x8x4xbf16>)
    -> (tensor<32x32xbf16>, tensor<1x8x8x4xbf16>) {
  %transposed = "ttir.constant"() <{value = dense_resource<w> : tensor<64x32xbf16>}>
    : () -> tensor<64x32xbf16>
  %padded_0 = "ttir.constant"() <{value = dense_resource<b> : tensor<32xbf16>}>
    : () -> tensor<32xbf16>
  %1 = "ttir.linear"(%x, %transposed, %padded_0)
    : (tensor<32x64xbf16>, tensor<64x32xbf16>, tensor<32xbf16>) -> tensor<32x32xbf16>
  %expanded = "ttir.constant"() <{value = dense_resource<c> : tensor<4x4x1x1xbf16>}>
    : () -> tensor<4x4x1x1xbf16>
  %2 = "ttir.conv2d"(%y, %expanded) <{stride = 1 : i32, padding = 0 : i32, dilation = 1 : i32,
    groups = 1 : i32}> : (tensor<1x8x8x4xbf16>, tensor<4x4x1x1xbf16>) -> tensor<1x8x8x4xbf16>
  return %1, %2 : tensor<32x32xbf16>, tensor<1x8x8x4xbf16>
}
"""
    sizes = {"w": 64 * 32, "b": 32, "c": 16}
    blobs = ", ".join(
        f'{name}: "0x02000000{"803f0040" * (size // 2)}"' for name, size in sizes.items()
    )
    text += f"{{-# dialect_resources: {{ builtin: {{ {blobs} }} }} #-}}\n"
    files = compile_module(Source("model.mlir", text), CompileOptions("model")).files
    members = re.findall(r"ttnn::Tensor (\w+);", files["src/model.hpp"])
    assert {"projection_weight", "projection_bias", "convolution_weight"} <= set(members)


def test_scores_are_scores_under_a_mask_and_in_a_layer() -> None:
    text = """
func.func @forward(%q: tensor<1x4x32x32xf32>, %k: tensor<1x4x32x32xf32>,
    %v: tensor<1x4x32x32xf32>, %m: tensor<1x4x32x32xi1>) -> tensor<1x4x32x32xf32> {
  %0 = "ttir.exp"(%q) : (tensor<1x4x32x32xf32>) -> tensor<1x4x32x32xf32>
  %1 = "ttir.matmul"(%0, %k) <{transpose_b = true}>
    : (tensor<1x4x32x32xf32>, tensor<1x4x32x32xf32>) -> tensor<1x4x32x32xf32>
    loc("Net/Attend/dot_general")
  %2 = "ttir.constant"() <{value = dense<-1.0e+09> : tensor<1x4x32x32xf32>}>
    : () -> tensor<1x4x32x32xf32>
  %3 = "ttir.where"(%m, %1, %2) : (tensor<1x4x32x32xi1>, tensor<1x4x32x32xf32>,
    tensor<1x4x32x32xf32>) -> tensor<1x4x32x32xf32>
  %4 = "ttir.softmax"(%3) <{dimension = 3 : si32}>
    : (tensor<1x4x32x32xf32>) -> tensor<1x4x32x32xf32>
  %5 = "ttir.matmul"(%4, %v)
    : (tensor<1x4x32x32xf32>, tensor<1x4x32x32xf32>) -> tensor<1x4x32x32xf32>
    loc("Net/Attend/dot_general")
  return %5 : tensor<1x4x32x32xf32>
}
"""
    assert {"scores", "attention"} <= names(text, "ttnn")


def test_headings_stand_before_statements() -> None:
    """No heading precedes the constants that are computed in the return statement."""
    text = (Path(__file__).parents[2] / "examples" / "cnn" / "cnn.mlir").read_text("utf-8")
    source = compile_module(Source("cnn.mlir", text), CompileOptions("cnn")).files["src/cnn.cpp"]
    assert not re.search(r"^ +// [\w./]+\n\n? *(//|return)", source, re.MULTILINE)


def test_values_that_are_alive_at_once_are_called_after_the_place_of_their_layer() -> None:
    assert numbered_layer("model.2.m.1.cv2.conv") == "m.1"
    assert numbered_layer("layers/0") == "layers.0"
    assert numbered_layer("encoder.norm") is None
    assert numbered_layer("0.conv") is None
    tensor = "tensor<32x32xbf16>"
    parameter = "ttcore.argument_type = #ttcore.argument_type<parameter>"
    weights = [
        f'%w{i}: {tensor} {{{parameter}, ttir.name = "blocks.{i}.proj.weight"}}' for i in range(3)
    ]
    body = "".join(
        f"""
        %{2 * i} = "ttir.matmul"(%{last}, %w{i}) : ({tensor}, {tensor}) -> {tensor}
        %{2 * i + 1} = "ttir.add"(%{last}, %{2 * i}) : ({tensor}, {tensor}) -> {tensor}"""
        for i, last in enumerate(["x", 1, 3])
    )
    text = f"""
    func.func @f(%x: {tensor}, {", ".join(weights)}) -> tensor<32x96xbf16> {{
      {body}
      %6 = "ttir.concat"(%1, %3, %5) <{{dim = 1 : si32}}>
          : ({tensor}, {tensor}, {tensor}) -> tensor<32x96xbf16>
      return %6 : tensor<32x96xbf16>
    }}"""
    (source,) = [
        text
        for path, text in compile_module(Source("f.mlir", text), CompileOptions("f")).files.items()
        if path == "src/f.cpp"
    ]
    declared = re.findall(r"ttnn::Tensor (\w*sum) =", source)
    # The first sum is fused into the product before it.
    assert declared == ["sum", "blocks_2_sum"]


@pytest.mark.parametrize("target", ["ttnn", "ttmetal"])
def test_field_and_file_of_a_constant_have_one_name(target: str) -> None:
    """The constants are used in another order than they are defined in."""
    text = """
func.func @forward(%x: tensor<32x32xbf16>) -> tensor<32x32xbf16> {
  %1 = "ttir.constant"() <{value = dense_resource<a> : tensor<32x32xbf16>}>
    : () -> tensor<32x32xbf16>
  %2 = "ttir.constant"() <{value = dense_resource<b> : tensor<32x64xbf16>}>
    : () -> tensor<32x64xbf16>
  %3 = "ttir.matmul"(%x, %2)
    : (tensor<32x32xbf16>, tensor<32x64xbf16>) -> tensor<32x64xbf16>
  %4 = "ttir.constant"() <{value = dense_resource<c> : tensor<64x32xbf16>}>
    : () -> tensor<64x32xbf16>
  %5 = "ttir.matmul"(%3, %4)
    : (tensor<32x64xbf16>, tensor<64x32xbf16>) -> tensor<32x32xbf16>
  %6 = "ttir.matmul"(%5, %1)
    : (tensor<32x32xbf16>, tensor<32x32xbf16>) -> tensor<32x32xbf16>
  return %6 : tensor<32x32xbf16>
}
"""
    sizes = {"a": 32 * 32, "b": 32 * 64, "c": 64 * 32}
    blobs = ", ".join(
        f'{name}: "0x02000000{"803f0040" * (size // 2)}"' for name, size in sizes.items()
    )
    text += f"{{-# dialect_resources: {{ builtin: {{ {blobs} }} }} #-}}\n"
    compiled = compile_module(Source("model.mlir", text), CompileOptions("model", target))
    source = compiled.files["src/model.cpp"]
    named = dict(re.findall(r'\.(\w+)\s*=\s*load_\w+\("(\w+)"', source))
    variables = dict(re.findall(r'DeviceTensor (\w+) =\s*support::load_tensor\("(\w+)"', source))
    fields = dict(re.findall(r"constants?\.(\w+) = (\w+);", source))
    fields |= {f: v for f, v in re.findall(r"\.(\w+) = (\w+)[,}]", source) if v in variables}
    named |= {field: variables.get(variable, variable) for field, variable in fields.items()}
    assert len(named) == 3
    assert all(field == file for field, file in named.items()), named


def test_parts_of_weights_that_are_alive_at_once_are_called_after_their_place() -> None:
    sliced = "step = [1 : i32, 1 : i32]}> : (tensor<64x32xf32>) -> tensor<32x32xf32>"
    binary = "(tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32>"
    text = f"""
func.func @forward(%x: tensor<32x32xf32>, %scale: tensor<64x32xf32> {{
    ttcore.argument_type = #ttcore.argument_type<parameter>}}) -> tensor<32x32xf32> {{
  %0 = "ttir.slice_static"(%scale) <{{begins = [0 : i32, 0 : i32], ends = [32 : i32, 32 : i32],
    {sliced}
  %1 = "ttir.slice_static"(%scale) <{{begins = [32 : i32, 0 : i32], ends = [64 : i32, 32 : i32],
    {sliced}
  %2 = "ttir.multiply"(%0, %1) : {binary}
  %3 = "ttir.atan2"(%x, %2) : {binary}
  return %3 : tensor<32x32xf32>
}}
"""
    source = compile_module(Source("f.mlir", text), CompileOptions("f")).files["src/f.cpp"]
    prepare = source[source.index("prepare_forward(") : source.index("ForwardOutputs forward(")]
    declared = re.findall(r"ttnn::Tensor (\w+) =", prepare)
    assert declared == ["scale", "scale_second_half"]
