"""Every pass and pipeline on modules of every stage: it runs, or says what it needs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

from ttcodegen.dialects.operations.verification import verify_module
from ttcodegen.foundation.diagnostics import CompileError, Source
from ttcodegen.frontends import module_for_passes
from ttcodegen.ops.dialects import load_dialects
from ttcodegen.transforms.module_text import module_text
from ttcodegen.transforms.pass_runner import PassRunner
from ttcodegen.transforms.registry import Step, entries, passes_of

WEIGHT = "{ttcore.argument_type = #ttcore.argument_type<parameter>}"
MODELS = (
    f"""func.func @f(%x: tensor<64x128xbf16>, %w: tensor<128x96xbf16> {WEIGHT})
    -> tensor<64x96xbf16> {{
  %0 = call @g(%x) : (tensor<64x128xbf16>) -> tensor<64x128xbf16>
  %1 = "ttir.matmul"(%0, %w) : (tensor<64x128xbf16>, tensor<128x96xbf16>) -> tensor<64x96xbf16>
  %2 = "ttir.softmax"(%1) <{{dimension = 1 : si32}}> : (tensor<64x96xbf16>) -> tensor<64x96xbf16>
  return %2 : tensor<64x96xbf16> }}
func.func private @g(%x: tensor<64x128xbf16>) -> tensor<64x128xbf16> {{
  %0 = "ttir.constant"() <{{value = dense<1.5> : tensor<64x128xbf16>}}> : () -> tensor<64x128xbf16>
  %1 = "ttir.add"(%x, %0) : (tensor<64x128xbf16>, tensor<64x128xbf16>) -> tensor<64x128xbf16>
  return %1 : tensor<64x128xbf16> }}""",
    """func.func @f(%c: tensor<1x4x64x32xbf16>, %x: tensor<1x4x1x32xbf16>, %i: tensor<1xi32>)
    -> tensor<1x4x64x32xbf16> {
  "ttir.update_cache"(%c, %x, %i) <{batch_offset = 0 : i32}>
      : (tensor<1x4x64x32xbf16>, tensor<1x4x1x32xbf16>, tensor<1xi32>) -> ()
  return %c : tensor<1x4x64x32xbf16> }""",
    f"""func.func @f(%x: tensor<1x8x8x32xbf16>, %w: tensor<32x32x3x3xbf16> {WEIGHT})
    -> tensor<1x6x6x32xbf16> {{
  %0 = "ttir.conv2d"(%x, %w)
      <{{stride = 1 : i32, padding = 0 : i32, dilation = 1 : i32, groups = 1 : i32}}>
      : (tensor<1x8x8x32xbf16>, tensor<32x32x3x3xbf16>) -> tensor<1x6x6x32xbf16>
  return %0 : tensor<1x6x6x32xbf16> }}""",
)
CALLS = ("inline", "ttir-element-type-normalization", "convert-ttir-to-ttnn")
STAGES: dict[str, tuple[str, ...]] = {
    "TTIR": (),
    "TTNN": CALLS,
    "TTNN with layouts": (*CALLS, "ttnn-layout"),
    "TTNN as it is emitted": ("ttir-to-ttnn-common-pipeline",),
    "EmitC": ("ttir-to-emitc-pipeline",),
    "generics": ("ttir-to-ttmetal-fe-pipeline",),
    "device programs": ("ttir-to-ttmetal-pipeline",),
}


def texts(stage: str) -> Iterator[str]:
    """The models at that stage."""
    for model in MODELS:
        module = module_for_passes(Source("model.mlir", model))
        PassRunner(load_dialects()).run(module, passes_of(*STAGES[stage]))
        yield module_text(module)


@pytest.mark.slow
@pytest.mark.parametrize("stage", STAGES)
def test_every_pass_runs_or_says_what_it_needs(stage: str) -> None:
    for text in texts(stage):
        for entry in entries():
            module = module_for_passes(Source("model.mlir", text))
            verify_module(module)
            # Whatever else a pass raises is an error of the compiler.
            with contextlib.suppress(CompileError):
                PassRunner(load_dialects()).run(module, passes_of(Step(entry.name)))


@pytest.mark.parametrize(
    ("stage", "name", "expected"),
    [
        ("TTNN", "ttnn-optimize", "--ttnn-optimize needs layouts"),
        ("TTNN", "ttnn-deallocate", "--ttnn-deallocate needs layouts"),
        ("TTIR", "ttnn-decode-caches", "--ttnn-decode-caches needs calls of TTNN"),
        ("TTNN with layouts", "ttir-primitives", "--ttir-primitives is a pass on TTIR"),
    ],
)
def test_a_pass_says_what_it_needs(stage: str, name: str, expected: str) -> None:
    refused: list[str] = []
    for text in texts(stage):
        module = module_for_passes(Source("model.mlir", text))
        try:
            PassRunner(load_dialects()).run(module, passes_of(name))
        except CompileError as error:
            refused.append(error.diagnostics[0].message)
    assert any(message.startswith(expected) for message in refused)
