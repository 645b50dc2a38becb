"""Constants of src/tuning.hpp that a person may change, and their effect."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from ttcodegen.cli.ttcodegen import main
from ttcodegen.compilation import CompileOptions, compile_module
from ttcodegen.emission.templates import clang_format_style
from ttcodegen.foundation.diagnostics import Source
from ttcodegen.project.building import build_project
from ttcodegen.project.sources import render_sources
from ttcodegen.project.toolchain import Toolchain
from ttcodegen.runtime.c_api import ModuleError
from ttcodegen.runtime.library import load

EXAMPLES = Path(__file__).parents[2] / "examples"
PARAMETER = "{ttcore.argument_type = #ttcore.argument_type<parameter>}"
LAYERS = f"""
func.func @f(%x: tensor<1x8x8x16xbf16>, %k: tensor<16x16x3x3xbf16> {PARAMETER},
    %w: tensor<64x32xbf16> {PARAMETER}, %v: tensor<32x32xbf16> {PARAMETER})
    -> tensor<16x32xbf16> {{
  %0 = "ttir.conv2d"(%x, %k) <{{stride = 1 : i32, padding = 1 : i32, dilation = 1 : i32,
    groups = 1 : i32}}> : (tensor<1x8x8x16xbf16>, tensor<16x16x3x3xbf16>) -> tensor<1x8x8x16xbf16>
  %1 = "ttir.reshape"(%0) <{{shape = [16 : i32, 64 : i32]}}>
    : (tensor<1x8x8x16xbf16>) -> tensor<16x64xbf16>
  %2 = "ttir.matmul"(%1, %w) : (tensor<16x64xbf16>, tensor<64x32xbf16>) -> tensor<16x32xbf16>
  %3 = "ttir.matmul"(%2, %v) : (tensor<16x32xbf16>, tensor<32x32xbf16>) -> tensor<16x32xbf16>
  return %3 : tensor<16x32xbf16>
}}"""
HALF = "ttnn::DeviceComputeKernelConfig{.math_fidelity = MathFidelity::LoFi}"
ONE_CORE = """ttnn::operations::matmul::MatmulMultiCoreReuseMultiCast1DProgramConfig{
    .compute_with_storage_grid_size = {1, 1}, .in0_block_w = 1, .out_subblock_h = 1,
    .out_subblock_w = 1, .out_block_h = 1, .out_block_w = 1, .per_core_M = 1, .per_core_N = 1,
    .fuse_batch = true, .mcast_in0 = true}"""
EDITS = {
    "product_weights_type": "ttnn::DataType::BFLOAT4_B",
    "product_memory": "ttnn::L1_MEMORY_CONFIG",
    "product_program": ONE_CORE,
    "product_compute": HALF,
    "convolution_config": "ttnn::prim::Conv2dConfig{.weights_dtype = ttnn::DataType::BFLOAT4_B, "
    ".shard_layout = {}}",
    "convolution_compute": HALF,
}
"""Another value for each kind of constant."""
SAME_NUMBERS = ("product_memory",)


def sources(text: str) -> dict[str, str]:
    """All files in src/ of a module."""
    options = CompileOptions("layers", style=clang_format_style())
    compiled = compile_module(Source("layers.mlir", text), options)
    return {**compiled.files, **render_sources(compiled.description)}


def turned(tuning: str, constant: str, value: str) -> str:
    """The text of tuning.hpp with another value of a constant."""
    text, count = re.subn(rf"(\b{constant}\s*=\s*)[^;]*;", rf"\g<1>{value};", tuning)
    assert count == 1, f"{constant} in {tuning}"
    return text


def test_what_is_left_to_the_library_has_constants() -> None:
    files = sources(LAYERS)
    tuning = files["src/tuning.hpp"]
    for constant in EDITS:
        turned(tuning, constant, EDITS[constant])
        # Each has its alternatives in the comment before it.
        comment = tuning[: tuning.index(f" {constant} =")].rpartition("\n\n")[2]
        assert comment.startswith("//")
    cpp = files["src/layers.cpp"]
    assert len(re.findall(r"call::matmul\(", cpp)) == 2
    assert "/*conv_config=*/tuning::convolution_config" in cpp
    assert "compute_kernel_config = tuning::product_compute;" in cpp
    table = files["src/entry_points.cpp"]
    assert table.count("layers::tuning::product_weights_type") == 2


def test_names_of_constants_are_not_taken_by_those_of_calls() -> None:
    options = CompileOptions("layers", style=clang_format_style(), optimize=2)
    files = compile_module(Source("layers.mlir", LAYERS), options).files
    tuning = files["src/tuning.hpp"]
    names = re.findall(r"^const .*?(\w+)(?: =|\{| \{)", tuning, re.MULTILINE)
    assert len(names) == len(set(names)) > 3
    assert tuning.count(" product_program =") == 1


def test_references_are_defined_once() -> None:
    """Two files of a project include tuning.hpp."""
    source = Source.read(str(EXAMPLES / "cnn" / "cnn.mlir"))
    tuning = compile_module(source, CompileOptions("cnn")).files["src/tuning.hpp"]
    references = re.findall(r"^.*&\s*\w+ = .*;$", tuning, re.MULTILINE)
    assert references
    assert all(line.startswith("inline ") for line in references)


def test_weights_with_other_uses_keep_their_type() -> None:
    text = LAYERS.replace("(%2, %v)", "(%2, %e)").replace(
        "  %3 =",
        '  %e = "ttir.exp"(%v) : (tensor<32x32xbf16>) -> tensor<32x32xbf16>\n  %3 =',
    )
    table = sources(text)["src/entry_points.cpp"]
    assert table.count("layers::tuning::product_weights_type") == 1


def test_constants_of_the_module_have_the_type_of_weights() -> None:
    source = Source.read(str(EXAMPLES / "digits" / "digits.mlir"))
    files = compile_module(source, CompileOptions("digits")).files
    assert files["src/digits.cpp"].count("tuning::product_weights_type") == 3
    assert "product_weights_type = ttnn::DataType::FLOAT32;" in files["src/tuning.hpp"]
    # The configuration that all products have is the one of their constant.
    assert "product_compute = exact_compute;" in files["src/tuning.hpp"]
    assert ".compute_kernel_config" not in files["src/digits.cpp"].partition("prepare_")[2]


@pytest.mark.slow
def test_each_constant_can_be_turned(toolchain: Toolchain, tmp_path: Path) -> None:
    source, out = tmp_path / "layers.mlir", tmp_path / "out"
    source.write_text(LAYERS)
    assert main([str(source), "-o", str(out), "--build", "--kind", "so"]) == 0
    tuning = out / "src" / "tuning.hpp"
    text = tuning.read_text()
    x = np.random.default_rng(0).standard_normal((1, 8, 8, 16)).astype(np.float32)

    def result() -> np.ndarray:
        with load(out, seed=0) as model:
            return np.asarray(model.f(x), np.float32)

    before = result()
    for constant, value in EDITS.items():
        tuning.write_text(turned(text, constant, value))
        build_project(out, "layers", toolchain, "so")
        after = result()
        assert np.corrcoef(before.ravel(), after.ravel())[0, 1] > 0.9, constant
        assert (before == after).all() == (constant in SAME_NUMBERS), constant
    # The library is really given what the constant says: it refuses what does not fit.
    tuning.write_text(
        turned(text, "product_program", ONE_CORE.replace("in0_block_w = 1", "in0_block_w = 3"))
    )
    build_project(out, "layers", toolchain, "so")
    with pytest.raises(ModuleError, match="divisible by in0_block_w"):
        result()
    # One layer apart: the option of a call.
    tuning.write_text(text)
    cpp = out / "src" / "layers.cpp"
    body = cpp.read_text()
    apart, count = re.subn(
        r"(call::matmul\([^;{]*?)\);", rf"\1, {{.compute_kernel_config = {HALF}}});", body, count=1
    )
    assert count == 1
    cpp.write_text(apart)
    build_project(out, "layers", toolchain, "so")
    assert not (before == result()).all()
