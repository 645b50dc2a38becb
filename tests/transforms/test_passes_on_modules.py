"""Every pass and pipeline on modules of every stage: it runs, or says what it needs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from xdsl.dialects.builtin import ModuleOp

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


LIT = Path(__file__).parents[1] / "lit" / "passes"
ROW = "tensor<4x32xf32>"
WRITTEN = {
    "StableHLO": f"""func.func @f(%x: {ROW}, %y: {ROW}) -> {ROW} {{
  %0 = stablehlo.add %x, %y : {ROW}
  %1 = stablehlo.exponential %0 : {ROW}
  return %1 : {ROW} }}""",
    "TOSA": f"""func.func @f(%x: {ROW}, %y: {ROW}) -> {ROW} {{
  %0 = tosa.add %x, %y : ({ROW}, {ROW}) -> {ROW}
  return %0 : {ROW} }}""",
    "linalg": f"""func.func @f(%x: {ROW}) -> {ROW} {{
  %0 = tensor.empty() : {ROW}
  %1 = linalg.exp ins(%x : {ROW}) outs(%0 : {ROW}) -> {ROW}
  return %1 : {ROW} }}""",
    "reductions that drop dimensions": f"""func.func @f(%x: {ROW})
    -> (tensor<4xf32>, tensor<f32>) {{
  %0 = "ttir.max"(%x) <{{dim_arg = [1 : i32]}}> : ({ROW}) -> tensor<4xf32>
  %1 = "ttir.sum"(%x) : ({ROW}) -> tensor<f32>
  return %0, %1 : tensor<4xf32>, tensor<f32> }}""",
    "functions without a body's work": f"""func.func @f(%x: {ROW}) -> {ROW} {{
  return %x : {ROW} }}
func.func private @g(%x: {ROW}) -> {ROW}""",
    "numbers": """func.func @f(%x: tensor<f32>, %e: tensor<0x4xf32>)
    -> (tensor<f32>, tensor<0x4xf32>) {
  %0 = "ttir.exp"(%x) : (tensor<f32>) -> tensor<f32>
  %1 = "ttir.relu"(%e) : (tensor<0x4xf32>) -> tensor<0x4xf32>
  return %0, %1 : tensor<f32>, tensor<0x4xf32> }""",
    "nothing": "module {}",
}
"""Modules of dialects that models come in, and at the edge of what they can be."""


@cache
def modules(stage: str) -> tuple[ModuleOp, ...]:
    """The models at that stage, or the modules of that kind."""
    context = load_dialects()
    if stage in WRITTEN:
        return (module_for_passes(Source("model.mlir", WRITTEN[stage])),)
    if stage not in STAGES:
        return tuple(_inputs_of(stage))
    found: list[ModuleOp] = []
    for model in MODELS:
        module = module_for_passes(Source("model.mlir", model))
        PassRunner(context).run(module, passes_of(*STAGES[stage]))
        found.append(module_for_passes(Source("model.mlir", module_text(module))))
    return tuple(found)


def _inputs_of(name: str) -> Iterator[ModuleOp]:
    """The first inputs of a test of a pass that are right."""
    for part in (LIT / f"{name}.mlir").read_text("utf-8").split("// -----")[:2]:
        lines = [line for line in part.splitlines() if not line.lstrip().startswith("//")]
        with contextlib.suppress(CompileError):
            module = module_for_passes(Source(name, "\n".join(lines)))
            verify_module(module)
            yield module


INPUTS = (
    *("convert-ttkernel-to-emitc", "convert-ttmetal-to-emitc", "convert-ttnn-to-emitc"),
    *("ttir-outline-generics", "ttir-partition", "ttmetal-share-kernels", "ttnn-decode-heads"),
    *("cpu-hoist", "ttir-lift-generic-regions", "ttmetal-complete-programs", "ttnn-optimize"),
)
"""Passes of which the inputs of the tests are modules like no others here."""


@pytest.mark.slow
@pytest.mark.parametrize("stage", [*STAGES, *WRITTEN, *INPUTS])
def test_every_pass_runs_or_says_what_it_needs(stage: str) -> None:
    runner = PassRunner(load_dialects())
    for module in modules(stage):
        verify_module(module)
        for entry in entries():
            # Whatever else a pass raises is an error of the compiler.
            with contextlib.suppress(CompileError):
                runner.run(module.clone(), passes_of(Step(entry.name)))


def test_the_matrix_has_modules_of_every_kind() -> None:
    assert all(modules(name) for name in (*WRITTEN, *INPUTS))
    assert len(STAGES) * len(MODELS) + len(WRITTEN) + len(INPUTS) >= 25


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
    for module in modules(stage):
        try:
            PassRunner(load_dialects()).run(module.clone(), passes_of(name))
        except CompileError as error:
            refused.append(error.diagnostics[0].message)
    assert any(message.startswith(expected) for message in refused)
