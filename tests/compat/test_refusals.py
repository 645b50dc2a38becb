"""The reasons of what is refused, held against what the compiler can do."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from ttcodegen.cli.ttcodegen import argument_parser, main
from ttcodegen.compat.refusals import (
    _REASONS,
    REFUSED_EMITC_OPTIONS,
    REFUSED_TTMETAL_OPTIONS,
    REFUSED_TTNN_OPTIONS,
)
from ttcodegen.compilation import CompileOptions, compile_module
from ttcodegen.foundation.diagnostics import Source
from ttcodegen.opt.command_line import OPTIONS as DRIVER_OPTIONS
from ttcodegen.rt.commands.arguments import COMMANDS
from ttcodegen.transforms.registry import OptionError, is_known, parse_step, schedule
from ttcodegen.transforms.ttnn.pipelines import EMITC_OPTIONS, TTNN_OPTIONS

TABLES = (REFUSED_TTNN_OPTIONS, REFUSED_EMITC_OPTIONS, REFUSED_TTMETAL_OPTIONS)
REASONS = sorted({*_REASONS, *(reason for table in TABLES for reason in table)})
OPTIONS = {option.name: option for option in (*TTNN_OPTIONS, *EMITC_OPTIONS)}


def exists(name: str) -> bool:
    """True if a word of a reason is an option of a program, a pass, or an option of a pass."""
    programs = {flag for action in argument_parser()._actions for flag in action.option_strings}
    driver = {option.name for option in DRIVER_OPTIONS}
    bare = name.lstrip("-")
    return name in programs or bare in driver or bare in OPTIONS or is_known(bare)


@pytest.mark.parametrize("reason", REASONS)
def test_what_a_reason_names_is_there(reason: str) -> None:
    named = re.findall(r"(?<![\w-])--[a-z][\w-]*", reason)
    named += re.findall(r"\b(?:ttnn|ttir|convert|enable|experimental)-[a-z-]+", reason)
    assert not [name for name in named if not exists(name)]
    if "ttcodegen-rt" in reason:
        assert "perf" in COMMANDS


def compiled(text: str) -> str:
    """The C++ of a module for ttnn."""
    files = compile_module(Source("m.mlir", text), CompileOptions(module_name="m")).files
    return "\n".join(files.values())


MATMUL = """func.func @f(%x: tensor<64x32xf32>, %w: tensor<64x64xf32>) -> tensor<32x64xf32> {
  %t = "ttir.permute"(%x) <{permutation = array<i64: 1, 0>}>
      : (tensor<64x32xf32>) -> tensor<32x64xf32>
  %0 = "ttir.matmul"(%t, %w) : (tensor<32x64xf32>, tensor<64x64xf32>) -> tensor<32x64xf32>
  return %0 : tensor<32x64xf32>
}"""
CONVOLUTION = """func.func @f(%x: tensor<1x8x8x32xbf16>,
    %w: tensor<32x32x3x3xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>},
    %s: tensor<1x1x1x32xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>})
    -> tensor<1x6x6x32xbf16> {
  %c = "ttir.conv2d"(%x, %w)
      <{stride = 1 : i32, padding = 0 : i32, dilation = 1 : i32, groups = 1 : i32}>
      : (tensor<1x8x8x32xbf16>, tensor<32x32x3x3xbf16>) -> tensor<1x6x6x32xbf16>
  %m = "ttir.multiply"(%c, %s)
      : (tensor<1x6x6x32xbf16>, tensor<1x1x1x32xbf16>) -> tensor<1x6x6x32xbf16>
  return %m : tensor<1x6x6x32xbf16>
}"""


def fuses_permutations() -> bool:
    """True if the permutation of an operand is fused into the matmul."""
    return ".transpose_a = true" in compiled(MATMUL)


def fuses_factors() -> bool:
    """True if the scale of a convolution is folded into its weights."""
    text = compiled(CONVOLUTION)
    forward = text[text.rindex("ttnn::conv2d") :]
    return "ttnn::multiply" not in forward


def keeps_types() -> bool:
    """True if f32 tensors of the source are f32 on the device."""
    return "BFLOAT" not in compiled(MATMUL).replace("BFLOAT16_B", "")


@pytest.mark.parametrize(
    ("option", "done"),
    [
        ("enable-permute-matmul-fusion", fuses_permutations),
        ("enable-fusing-conv2d-with-multiply-pattern", fuses_factors),
        ("enable-bfp8-conversion", lambda: not keeps_types()),
    ],
)
def test_the_accepted_value_says_what_is_done(option: str, done: Callable[[], bool]) -> None:
    refused = OPTIONS[option]
    assert refused.refusal is not None
    assert refused.default == done()
    with pytest.raises(OptionError, match=re.escape(refused.refusal)):
        refused.check(not refused.default)


def test_what_reasons_offer_instead_works(tmp_path: Path) -> None:
    model = tmp_path / "m.mlir"
    model.write_text(MATMUL)
    for option, captures in (("--no-format", False), ("--trace", True)):
        out = tmp_path / option
        assert main([str(model), "-o", str(out), "--no-format", "-q", option]) == 0
        files = "".join(file.read_text() for file in out.rglob("*.?pp"))
        assert ("traced_calls.hpp" in files) == captures
    assert 'ttnn::matmul' in compiled("""
        func.func @f(%x: tensor<32x32xf32>) -> tensor<32x32xf32> {
          %0 = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0]
              : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32>
          return %0 : tensor<32x32xf32>
        }""")  # fmt: skip


@pytest.mark.parametrize(
    "given", ["experimental-bfp8-weights=true", "experimental-weight-dtype=bfp_bf8"]
)
def test_weights_of_both_spellings_become_block_floats(given: str) -> None:
    steps = [step for step, _ in schedule([parse_step("ttir-to-ttnn-backend-pipeline", given)])]
    [conversion] = [step for step in steps if step.name == "ttnn-weight-dtype-conversion"]
    assert dict(conversion.options)["target"] == "bfp_bf8"
