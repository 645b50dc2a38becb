"""Weights of convolutions: prepared once, on the device, where they are the same in every call."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import ttcodegen
from tests.optimizer.modules import entry, names
from ttcodegen.cli.opt import main as opt
from ttcodegen.compilation import CompiledModule, CompileOptions, compile_module
from ttcodegen.flatbuffer.reader import read_ttnn
from ttcodegen.foundation.diagnostics import Source
from ttcodegen.project.cpu_backend import CPUBackend

PARAMETER = "{ttcore.argument_type = #ttcore.argument_type<parameter>}"


def convolution(channels: int, outputs: int, groups: int, of_weights: str = PARAMETER) -> str:
    """A module with a 3x3 convolution of images of 8x8 pixels, with a bias, in f32."""
    image = f"tensor<2x8x8x{channels}xf32>"
    weight = f"tensor<{outputs}x{channels // groups}x3x3xf32>"
    bias, result = f"tensor<1x1x1x{outputs}xf32>", f"tensor<2x8x8x{outputs}xf32>"
    return f"""
func.func @forward(%x: {image}, %w: {weight} {of_weights}, %b: {bias} {of_weights}) -> {result} {{
  %0 = "ttir.conv2d"(%x, %w, %b) <{{stride = array<i32: 1, 1>, padding = array<i32: 1, 1, 1, 1>,
    dilation = array<i32: 1, 1>, groups = {groups} : i32}}>
    : ({image}, {weight}, {bias}) -> {result}
  return %0 : {result}
}}
"""


def convolved(x: np.ndarray, w: np.ndarray, b: np.ndarray, groups: int) -> np.ndarray:
    """The same convolution, from its definition."""
    padded = np.pad(x.astype("f8"), ((0, 0), (1, 1), (1, 1), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(1, 2))
    inputs, outputs = x.shape[-1] // groups, w.shape[0] // groups
    parts = [
        np.einsum(
            "nyxcij,ocij->nyxo",
            windows[:, :, :, group * inputs : (group + 1) * inputs],
            w[group * outputs : (group + 1) * outputs].astype("f8"),
        )
        for group in range(groups)
    ]
    return np.concatenate(parts, -1) + b.reshape(-1)


def compiled(text: str, **options: bool) -> CompiledModule:
    return compile_module(Source("conv.mlir", text), CompileOptions("conv", **options))


def test_constant_weights_are_prepared_in_the_function_that_runs_once() -> None:
    module = compiled(convolution(32, 16, 1))
    (once,) = [p for p in read_ttnn(module.flatbuffer).programs if p.kind == "const_eval"]
    assert names(once) == ["prepare_conv2d_weights", "prepare_conv2d_bias"]
    weight, bias = (once.tensors[op.results[0]].type for op in once.operations[:2])
    # Shapes as the mocked device of the release gives them.
    assert (weight.shape, weight.layout, weight.buffer_type) == ((1, 1, 288, 16), "tile", "dram")
    assert (bias.shape, bias.data_type) == ((1, 1, 1, 16), weight.data_type)
    assert "conv2d" in names(entry(module))


def test_weights_that_come_with_each_call_are_left_to_the_library() -> None:
    module = compiled(convolution(32, 16, 1, of_weights=""))
    assert "prepare_conv2d_weights" not in names(entry(module))
    assert all(p.kind == "entry" for p in read_ttnn(module.flatbuffer).programs)


MIXED = """
func.func @forward(%x: tensor<1x8x8x32xbf16>, %w: tensor<32x32x3x3xbf16> {parameter},
    %y: tensor<1x8x8x32xf32>, %t: tensor<32x32x2x2xf32> {kind})
    -> (tensor<1x6x6x32xbf16>, tensor<1x16x16x32xf32>) {
  %0 = "ttir.conv2d"(%x, %w) <{stride = array<i32: 1, 1>, padding = array<i32: 0, 0, 0, 0>,
    dilation = array<i32: 1, 1>, groups = 1 : i32}>
    : (tensor<1x8x8x32xbf16>, tensor<32x32x3x3xbf16>) -> tensor<1x6x6x32xbf16>
  %1 = "ttir.conv_transpose2d"(%y, %t) <{stride = array<i32: 2, 2>,
    padding = array<i32: 0, 0, 0, 0>, output_padding = array<i32: 0, 0>,
    dilation = array<i32: 1, 1>, groups = 1 : i32}>
    : (tensor<1x8x8x32xf32>, tensor<32x32x2x2xf32>) -> tensor<1x16x16x32xf32>
  return %0, %1 : tensor<1x6x6x32xbf16>, tensor<1x16x16x32xf32>
}
"""
"""A convolution of bf16 and a transposed one of f32, which no configuration of its own keeps so."""


def test_weights_of_other_types_keep_them() -> None:
    text = MIXED.replace("{parameter}", PARAMETER).replace("{kind}", PARAMETER)
    tuning = compiled(text).files["src/tuning.hpp"]
    assert "convolution_config = std::nullopt" in tuning
    assert "_program{.weights_dtype = ttnn::DataType::BFLOAT16" in tuning


def test_a_traced_program_has_convolutions() -> None:
    traced = compiled(convolution(32, 16, 1), trace=True)
    assert "prepare_conv_weights" in "".join(traced.files.values())


@pytest.mark.parametrize("groups", [1, 4, 32])
def test_prepared_weights_are_read_back(
    groups: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "conv.mlir"
    source.write_text(convolution(32, 32, groups))
    assert opt(["--ttir-to-ttnn-backend-pipeline", str(source)]) == 0
    text = capsys.readouterr().out
    (once,) = [p for p in read_ttnn(compiled(text).flatbuffer).programs if p.kind == "const_eval"]
    assert sorted(names(once)) == ["prepare_conv2d_bias", "prepare_conv2d_weights"]


@pytest.mark.slow
@pytest.mark.parametrize("groups", [1, 4, 32])
def test_prepared_weights_give_the_convolution(
    groups: int, tmp_path: Path, cpu_backend: CPUBackend
) -> None:
    source, generator = tmp_path / "conv.mlir", np.random.default_rng(groups)
    source.write_text(convolution(32, 64, groups))
    x, w, b = (
        generator.standard_normal(shape).astype("f")
        for shape in ((2, 8, 8, 32), (64, 32 // groups, 3, 3), (1, 1, 1, 64))
    )
    wanted = convolved(x, w, b, groups)
    with ttcodegen.load(source, out=tmp_path / "out") as model:
        model.set_weight("w", w)
        model.set_weight("b", b)
        for _ in range(2):
            found = model(x)
            assert np.abs(found - wanted).max() < 2e-2 * np.abs(wanted).max()
