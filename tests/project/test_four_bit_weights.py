"""Programs with four-bit weights: their rounding is no error of the program."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from ttcodegen.compilation import CompileOptions, compile_module
from ttcodegen.foundation.diagnostics import Source
from ttcodegen.numerics.drawing import draw_inputs
from ttcodegen.numerics.lowered import interpreter_of
from ttcodegen.numerics.rounding import block_rounded
from ttcodegen.project.check_summary import check_summary
from ttcodegen.project.checking import check_function, run_in_numpy
from ttcodegen.project.running import FunctionRuns

LAYERS = 6
_WEIGHT = "{ttcore.argument_type = #ttcore.argument_type<parameter>}"


def deep(layers: int, last: str = "add") -> Source:
    """Layers of square weights with a residual: each adds the rounding of its weights."""
    tensor = "tensor<32x64xbf16>"
    weights = ", ".join(f"%w{i}: tensor<64x64xbf16> {_WEIGHT}" for i in range(layers))
    lines = [f"func.func @deep(%x: {tensor}, {weights}) -> {tensor} {{"]
    value = "%x"
    for i in range(layers):
        op = last if i == layers - 1 else "add"
        lines += [
            f'  %m{i} = "ttir.matmul"({value}, %w{i}) : ({tensor}, tensor<64x64xbf16>) -> {tensor}',
            f'  %t{i} = "ttir.tanh"(%m{i}) : ({tensor}) -> {tensor}',
            f'  %s{i} = "ttir.{op}"(%t{i}, %m{i}) : ({tensor}, {tensor}) -> {tensor}',
        ]
        value = f"%s{i}"
    return Source("deep.mlir", "\n".join([*lines, f"  return {value} : {tensor}", "}"]))


def run_of(source: Source, program: Source, target: str = "ttnn") -> FunctionRuns:
    """The runs of a source in numpy, and of the program that another source becomes."""
    options = CompileOptions("deep", weights="bfp4_b", target=target)
    compiled = compile_module(program, options)
    (run,) = run_in_numpy(source, compiled, drawn)
    return run


def drawn(module: ModuleOp, function: FuncOp) -> tuple[np.ndarray, ...]:
    """Random inputs of a function."""
    return tuple(draw_inputs(module, function, 0).values())


def test_rounding_of_weights_is_a_figure() -> None:
    run = run_of(deep(LAYERS), deep(LAYERS))
    output = run.function.outputs[0].field
    (check,) = check_function(run, {output: run.flatbuffer[0]}, None)
    assert check.passed
    assert check.narrow_weights is not None
    assert check.narrow_weights < 0.99 < (check.golden.correlation or 0)
    assert check.to_json()["four_bit_weights_pcc"] == check.narrow_weights
    said = f"4-bit weights move 1 output (correlation with the source {check.narrow_weights:.4f}"
    assert said in check_summary([check], Path("out"))


def test_an_error_of_the_program_is_none_of_its_weights() -> None:
    run = run_of(deep(LAYERS), deep(LAYERS, last="subtract"))
    output = run.function.outputs[0].field
    (check,) = check_function(run, {output: run.flatbuffer[0]}, None)
    assert not check.golden.passed
    assert check.narrow_weights is None


def test_cpp_has_to_agree_with_the_rounded_weights() -> None:
    run = run_of(deep(LAYERS), deep(LAYERS))
    assert run.with_wide_weights is not None
    output = run.function.outputs[0].field
    (check,) = check_function(run, {output: run.with_wide_weights[0]}, None)
    assert check.device is not None
    assert not check.device.passed


@pytest.mark.parametrize("target", ["ttnn", "ttmetal"])
def test_weights_are_rounded_by_the_host(target: str) -> None:
    """Packers of cores would cut them off."""
    source = Source(
        "product.mlir",
        f"""
func.func @product(%x: tensor<32x32xbf16>, %w: tensor<32x32xbf16> {_WEIGHT})
    -> tensor<32x32xbf16> {{
  %0 = "ttir.matmul"(%x, %w)
      : (tensor<32x32xbf16>, tensor<32x32xbf16>) -> tensor<32x32xbf16>
  return %0 : tensor<32x32xbf16>
}}
""",
    )
    run = run_of(source, source, target)
    identity = np.eye(32, dtype=np.float32)
    weights = run.inputs[1].astype(np.float32)
    eye = replace(run, inputs=(identity.astype(run.inputs[0].dtype), run.inputs[1]))
    (found,) = interpreter_of(eye.binary).run("product", eye.inputs)
    np.testing.assert_array_equal(found.astype(np.float32), block_rounded(weights, 3))
