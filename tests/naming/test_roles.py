"""Values are called for what they are to the ops around them, whatever their layers are called."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.naming.test_targets import names
from ttcodegen.compilation import CompileOptions, compile_module
from ttcodegen.conversions.host_functions.tuning_constants import program_initializer
from ttcodegen.dialects.ttnn.program_configs import (
    CoreGrid,
    MatmulDRAMSharded,
    MatmulMultiCast,
    MatmulMultiCast1D,
    ProgramConfig,
)
from ttcodegen.foundation.diagnostics import Source
from ttcodegen.naming.functions import common_name
from ttcodegen.naming.sources import joined_weight

STANDALONE = Path(__file__).parents[2] / "standalone"
WEIGHT = "ttcore.argument_type = #ttcore.argument_type<parameter>"


def sources(text: str, optimize: int = 0) -> dict[str, str]:
    return compile_module(Source("m.mlir", text), CompileOptions("m", optimize=optimize)).files


def attention(layer: str) -> str:
    """A layer whose projections have weights with paths, as those of Hugging Face have."""
    weights = ", ".join(
        f'%{each}: tensor<64x64xbf16> {{{WEIGHT}, ttir.name = "{layer}.{each}_proj.weight"}}'
        for each in "qkv"
    )
    heads = "".join(
        f"""
  %1{i} = "ttir.matmul"(%x, %{each}) : (tensor<32x64xbf16>, tensor<64x64xbf16>)
    -> tensor<32x64xbf16>
  %2{i} = "ttir.reshape"(%1{i}) <{{shape = [1 : i32, 32 : i32, 2 : i32, 32 : i32]}}>
    : (tensor<32x64xbf16>) -> tensor<1x32x2x32xbf16>
  %3{i} = "ttir.permute"(%2{i}) <{{permutation = array<i64: 0, 2, 1, 3>}}>
    : (tensor<1x32x2x32xbf16>) -> tensor<1x2x32x32xbf16>"""
        for i, each in enumerate("qkv")
    )
    tensor = "tensor<1x2x32x32xbf16>"
    return f"""
func.func @forward(%x: tensor<32x64xbf16>, {weights}, %arg9: tensor<1x1x32x32xbf16>) -> {tensor} {{
  {heads}
  %0 = "ttir.scaled_dot_product_attention"(%30, %31, %32, %arg9) <{{is_causal = false,
      operandSegmentSizes = array<i32: 1, 1, 1, 1, 0>}}>
    : ({tensor}, {tensor}, {tensor}, tensor<1x1x32x32xbf16>) -> {tensor}
  return %0 : {tensor}
}}"""


def test_projections_of_attention_are_queries_keys_and_values() -> None:
    text = attention("model.layers.0.self_attn")
    found = names(text, "ttnn")
    assert {"queries", "keys", "values"} <= found
    assert not any("proj" in name for name in found)
    assert "ttnn::Tensor mask;" in sources(text)["src/m.hpp"]


@pytest.mark.parametrize(
    ("weights", "expected"),
    [
        (["self.query.weight", "self.key.weight", "self.value.weight"], "self.qkv.weight"),
        (["a.q_proj.bias", "a.k_proj.bias", "a.v_proj.bias"], "a.qkv.bias"),
        (["layers_0_q_proj_weight", "layers_0_k_proj_weight", "layers_0_v_proj_weight"],
         "layers_0_qkv_weight"),
        (["mlp.gate_proj.weight", "mlp.up_proj.weight"], "mlp.gate_up_proj.weight"),
        (["a.weight", "a.bias"], None),
        (["a.b.weight", "c.d.weight"], None),
        (["a.weight", "a.weight"], None),
    ],
)  # fmt: skip
def test_weights_side_by_side(weights: list[str], expected: str | None) -> None:
    assert joined_weight(weights) == expected


def test_tables_of_rotary_embeddings_are_cosine_and_sine() -> None:
    tensor = "tensor<1x4x32x64xbf16>"
    table = "tensor<1x1x32x64xbf16>"
    text = f"""
func.func @forward(%x: {tensor}, %arg1: {table}, %arg2: {table}) -> {tensor} {{
  %0 = "ttir.rotary_embedding"(%x, %arg1, %arg2) : ({tensor}, {table}, {table}) -> {tensor}
  return %0 : {tensor}
}}"""
    members = re.findall(r"ttnn::Tensor (\w+);", sources(text)["src/m.hpp"])
    assert {"cosine", "sine"} <= set(members)


def test_gates_and_states_of_an_lstm_have_their_names() -> None:
    """A cell as `torch.nn.LSTMCell` computes it: gates i, f, g, o side by side."""
    wide, state = "tensor<2x128xf32>", "tensor<2x32xf32>"
    gates = "".join(
        f"""
  %1{gate} = "ttir.slice_static"(%5) <{{begins = [0 : i32, {32 * gate} : i32],
      ends = [2 : i32, {32 * gate + 32} : i32], step = [1 : i32, 1 : i32]}}>
    : ({wide}) -> {state} loc("rnn/rnn")
  %2{gate} = "ttir.{"tanh" if gate == 2 else "sigmoid"}"(%1{gate}) : ({state}) -> {state}
    loc("rnn/rnn")"""
        for gate in range(4)
    )
    text = f"""
func.func @forward(%x: {state}, %c: {state}, %w: tensor<32x128xf32> {{{WEIGHT}}})
    -> ({state}, {state}) {{
  %5 = "ttir.matmul"(%x, %w) : ({state}, tensor<32x128xf32>) -> {wide} loc("rnn/rnn")
  {gates}
  %0 = "ttir.multiply"(%21, %c) : ({state}, {state}) -> {state} loc("rnn/rnn")
  %1 = "ttir.multiply"(%20, %22) : ({state}, {state}) -> {state} loc("rnn/rnn")
  %2 = "ttir.add"(%0, %1) : ({state}, {state}) -> {state} loc("rnn/rnn")
  %3 = "ttir.tanh"(%2) : ({state}) -> {state} loc("rnn/rnn")
  %4 = "ttir.multiply"(%23, %3) : ({state}, {state}) -> {state} loc("rnn/rnn")
  return %4, %2 : {state}, {state}
}}"""
    found = names(text, "ttnn")
    gates_ = {"input_gate", "forget_gate", "candidate", "output_gate"}
    assert gates_ | {"cell"} <= found
    assert not any(re.search(r"_\d+$", name) for name in found)


def test_gates_and_state_of_a_gru_have_their_names() -> None:
    state, weight = "tensor<2x32xf32>", "tensor<32x32xf32>"
    products = "".join(
        f"""
  %2{i} = "ttir.matmul"(%{"x" if i < 3 else "h"}, %w{i}) : ({state}, {weight}) -> {state}"""
        for i in range(6)
    )
    weights = ", ".join(f"%w{i}: {weight} {{{WEIGHT}}}" for i in range(6))
    text = f"""
func.func @forward(%x: {state}, %h: {state}, {weights}) -> {state} {{
  {products}
  %0 = "ttir.add"(%20, %23) : ({state}, {state}) -> {state}
  %1 = "ttir.sigmoid"(%0) : ({state}) -> {state}
  %2 = "ttir.add"(%21, %24) : ({state}, {state}) -> {state}
  %3 = "ttir.sigmoid"(%2) : ({state}) -> {state}
  %4 = "ttir.multiply"(%1, %25) : ({state}, {state}) -> {state}
  %5 = "ttir.add"(%22, %4) : ({state}, {state}) -> {state}
  %6 = "ttir.tanh"(%5) : ({state}) -> {state}
  %7 = "ttir.subtract"(%h, %6) : ({state}, {state}) -> {state}
  %8 = "ttir.multiply"(%7, %3) : ({state}, {state}) -> {state}
  %9 = "ttir.add"(%8, %6) : ({state}, {state}) -> {state}
  return %9 : {state}
}}"""
    assert {"reset_gate", "update_gate", "candidate", "hidden"} <= names(text, "ttnn")


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (["layer1.1.conv1.weight", "layer2.3.conv1.weight"], "layer_conv1_weight"),
        (["layers.0.fc.weight", "layers.10.fc.weight"], "layers_fc_weight"),
        (["encoder.fc.weight", "encoder.0.fc.weight"], "encoder_fc_weight"),
        (["add_1", "add_2"], "add"),
        (["a", "b"], None),
    ],
)
def test_what_numbers_no_layer_stays_in_a_common_name(
    found: list[str], expected: str | None
) -> None:
    assert common_name(found) == expected


def test_program_configurations_are_called_after_the_layers_of_their_calls() -> None:
    text = f"""
func.func @f(%x: tensor<32x2048xbf16>,
    %w: tensor<2048x8192xbf16> {{{WEIGHT}, ttir.name = "model.layers.0.mlp.up_proj.weight"}})
    -> tensor<32x8192xbf16> {{
  %0 = "ttir.matmul"(%x, %w) : (tensor<32x2048xbf16>, tensor<2048x8192xbf16>)
    -> tensor<32x8192xbf16>
  return %0 : tensor<32x8192xbf16>
}}"""
    files = sources(text, optimize=2)
    assert "ProgramConfig up_proj_program{" in files["src/tuning.hpp"]
    assert "tuning::up_proj_program" in files["src/m.cpp"]


GRID = CoreGrid(8, 8)
CONFIGS = (
    MatmulMultiCast(GRID, 1, 1, 1, 1, 1, 1, 1, transpose_mcast=False),
    MatmulMultiCast1D(GRID, 1, 1, 1, 1, 1, 1, 1),
    MatmulDRAMSharded(1, 1, 1),
)


@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: config.mnemonic)
def test_every_field_without_a_default_is_initialized(
    config: ProgramConfig, tmp_path: Path
) -> None:
    """GCC warns of fields that a designated initializer leaves out, of which the structures of
    the library have one: `std::optional<UnaryWithParam> fused_activation`."""
    text = program_initializer(config)
    assert "nullopt" not in text
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("no g++")
    source = tmp_path / "tuning.cpp"
    source.write_text(
        f"#include <{config.header}>\nextern const {config.cpp} program;\n"
        f"const {config.cpp} program{text};\n"
    )
    flags = ("-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Werror")
    include = f"-I{STANDALONE / 'include'}"
    done = subprocess.run(
        [compiler, *flags, "-Wmissing-field-initializers", include, str(source)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def rotary_attention(size: int = 32) -> str:
    """Grouped heads as Hugging Face's decoders have them, each op with the path of its module;
    angles and a mask are computed from positions."""
    heads = {"q": 4, "k": 2, "v": 2}
    weights = ", ".join(
        f'%{each}: tensor<128x{count * size}xf32> {{{WEIGHT}, ttir.name = "a.{each}_proj.weight"}}'
        for each, count in heads.items()
    )
    table = f"tensor<1x1x32x{size}xf32>"
    lines: list[str] = []
    for index, (each, count) in enumerate(heads.items(), 1):
        flat, whole = f"tensor<32x{count * size}xf32>", f"tensor<1x{count}x32x{size}xf32>"
        at = f'loc("a.{each}_proj/{each}_proj")'
        lines += [
            f'%{index}01 = "ttir.matmul"(%x, %{each}) : (tensor<32x128xf32>, '
            f"tensor<128x{count * size}xf32>) -> {flat} {at}",
            f'%{index}02 = "ttir.reshape"(%{index}01) <{{shape = [1 : i32, 32 : i32, '
            f"{count} : i32, {size} : i32]}}> : ({flat}) -> tensor<1x32x{count}x{size}xf32>",
            f'%{index}03 = "ttir.permute"(%{index}02) <{{permutation = array<i64: 0, 2, 1, 3>}}> '
            f": (tensor<1x32x{count}x{size}xf32>) -> {whole}",
        ]
        if each == "v":
            continue
        half = f"tensor<1x{count}x32x{size // 2}xf32>"
        for part, begin in (("4", 0), ("5", size // 2)):
            lines.append(
                f'%{index}0{part} = "ttir.slice_static"(%{index}03) <{{begins = [0 : i32, 0 : i32, '
                f"0 : i32, {begin} : i32], ends = [1 : i32, {count} : i32, 32 : i32, "
                f"{begin + size // 2} : i32], step = [1 : i32, 1 : i32, 1 : i32, 1 : i32]}}> "
                f": ({whole}) -> {half}"
            )
        lines += [
            f'%{index}06 = "ttir.neg"(%{index}05) : ({half}) -> {half}',
            f'%{index}07 = "ttir.concat"(%{index}06, %{index}04) <{{dim = 3 : si32}}> '
            f": ({half}, {half}) -> {whole}",
            f'%{index}08 = "ttir.multiply"(%{index}03, %10) : ({whole}, {table}) -> {whole}',
            f'%{index}09 = "ttir.multiply"(%{index}07, %11) : ({whole}, {table}) -> {whole}',
            f'%{index}10 = "ttir.add"(%{index}08, %{index}09) : ({whole}, {whole}) -> {whole}',
        ]
    body = "\n  ".join(lines)
    keys, scores = f"tensor<1x2x32x{size}xf32>", "tensor<1x2x64x32xf32>"
    grouped = f"tensor<1x2x64x{size}xf32>"
    return f"""
func.func @forward(%x: tensor<32x128xf32>, {weights}) -> {grouped} {{
  %0 = "ttir.arange"() <{{start = 0 : si64, end = 32 : si64, step = 1 : si64,
      arange_dimension = 2 : i64}}> : () -> {table}
  %10 = "ttir.cos"(%0) : ({table}) -> {table}
  %11 = "ttir.sin"(%0) : ({table}) -> {table}
  {body}
  %1 = "ttir.reshape"(%110) <{{shape = [1 : i32, 2 : i32, 64 : i32, {size} : i32]}}>
    : (tensor<1x4x32x{size}xf32>) -> {grouped}
  %2 = "ttir.matmul"(%1, %210) <{{transpose_b = true}}> : ({grouped}, {keys}) -> {scores}
  %3 = "ttir.arange"() <{{start = 0 : si64, end = 32 : si64, step = 1 : si64,
      arange_dimension = 3 : i64}}> : () -> tensor<1x1x64x32xf32>
  %4 = "ttir.sqrt"(%3) : (tensor<1x1x64x32xf32>) -> tensor<1x1x64x32xf32>
  %5 = "ttir.add"(%2, %4) : ({scores}, tensor<1x1x64x32xf32>) -> {scores}
  %6 = "ttir.softmax"(%5) <{{dimension = 3 : si32}}> : ({scores}) -> {scores}
  %7 = "ttir.matmul"(%6, %303) : ({scores}, {keys}) -> {grouped}
  return %7 : {grouped}
}}"""


def test_tables_and_masks_that_are_computed_have_the_names_of_their_roles() -> None:
    """Constants of positions are named after their use, projections that rotate after what they
    are, though each op has the path of a layer."""
    files = sources(rotary_attention())
    found = names(rotary_attention(), "ttnn")
    assert {"queries", "keys", "values", "scores", "cosine", "sine", "mask"} <= found
    assert not any("proj" in name or "sum" in name for name in found)
    constants = files["src/m.hpp"].partition("ForwardConstants {")[2].partition("}")[0]
    assert set(re.findall(r"ttnn::Tensor (\w+);", constants)) == {"cosine", "sine", "mask"}
    product = re.search(r"scores = \S+matmul\(([^{]*)", files["src/m.cpp"])
    assert product is not None
    assert re.findall(r"queries|keys|values", product[1]) == ["queries", "keys"]
