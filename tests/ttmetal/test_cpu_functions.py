"""Ops of the catalogue on the CPU, between transfers to and from the emulated device."""

from __future__ import annotations

from pathlib import Path

import pytest
from xdsl.dialects.builtin import UnitAttr
from xdsl.dialects.func import FuncOp, ReturnOp

import ttcodegen.ops as catalogue
from tests.op_cases.cases import cases, function_of
from tests.random_programs.checking import failures_built_together, module_of
from tests.random_programs.recipes import RECIPES
from ttcodegen.cli.ttcodegen import main
from ttcodegen.compilation import CompileOptions, compile_module
from ttcodegen.conversions.ttir_to_ttmetal.cpu_hoist import SHOULD_HOIST
from ttcodegen.foundation.diagnostics import Source
from ttcodegen.ops.core.definition import TTIR
from ttcodegen.project.cpu_backend import CPUBackend
from ttcodegen.project.toolchain import Toolchain

OTHERS = Path(__file__).parents[1] / "op_cases" / "without_recipe.mlir"
PARTS = 4
EVERY = 37
"""One case of so many: those of an op differ in types, ranks and sizes."""


def hoisted(name: str) -> FuncOp:
    """Some cases of an op, all of them on the CPU."""
    function = function_of(name, list(cases(name))[::EVERY])
    for op in function.body.block.ops:
        if not isinstance(op, ReturnOp):
            op.attributes[SHOULD_HOIST] = UnitAttr()
    return function


def test_every_op_has_a_meaning_on_the_cpu() -> None:
    catalogue.load()
    missing = [
        definition.name
        for definition in TTIR.values()
        if definition.numpy is not None
        and definition.cpu is None
        and definition.decompose is None
        and definition.primitives is None
    ]
    assert missing == []


@pytest.mark.parametrize("name", ["conv2d", "conv3d", "conv_transpose2d", "max_pool2d"])
def test_windows_stay_on_the_cpu(name: str) -> None:
    text = module_of([hoisted(name)])
    compiled = compile_module(Source("in.mlir", text), CompileOptions("m", "ttmetal"))
    assert any(path.endswith("cpu_functions.cpp") for path in compiled.files)


GIVEN = """
module {
ttcore.device_module { builtin.module {
  func.func @f(%a: tensor<32x32xf32>) -> tensor<32x32xf32> {
    %0 = func.call @h(%a) : (tensor<32x32xf32>) -> tensor<32x32xf32>
    %1 = "ttir.exp"(%0) : (tensor<32x32xf32>) -> tensor<32x32xf32>
    return %1 : tensor<32x32xf32>
  }
  func.func private @h(tensor<32x32xf32>) -> tensor<32x32xf32>
} }
ttcore.cpu_module { builtin.module {
  func.func private @k(%a: tensor<32x32xf32>) -> tensor<32x32xf32> {
    %0 = "ttir.neg"(%a) : (tensor<32x32xf32>) -> tensor<32x32xf32>
    return %0 : tensor<32x32xf32>
  }
  func.func @h(%a: tensor<32x32xf32>) -> tensor<32x32xf32> {
    %0 = "ttir.sigmoid"(%a) : (tensor<32x32xf32>) -> tensor<32x32xf32>
    %1 = func.call @k(%0) : (tensor<32x32xf32>) -> tensor<32x32xf32>
    return %1 : tensor<32x32xf32>
  }
} }
}
"""


def test_functions_that_are_given_for_the_cpu_stay_there() -> None:
    """Functions that they call are inlined into them."""
    compiled = compile_module(Source("in.mlir", GIVEN), CompileOptions("m", "ttmetal"))
    text = compiled.files["src/cpu_functions.cpp"]
    assert text.count("cpu::Tensor cpu_") == 1
    assert "cpu::sigmoid(" in text
    assert "cpu::neg(" in text
    assert any(path.startswith("kernels/compute_exp") for path in compiled.files)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_the_three_runs_agree(toolchain: Toolchain, cpu_backend: CPUBackend, part: int) -> None:
    text = module_of([hoisted(name) for name in sorted(RECIPES)[part::PARTS]])
    assert failures_built_together(text, toolchain, "ttmetal") == {}


@pytest.mark.slow
def test_other_ops_agree(cpu_backend: CPUBackend, tmp_path: Path) -> None:
    arguments = [str(OTHERS), "-o", str(tmp_path / "out"), "--target", "ttmetal"]
    assert main([*arguments, "--check"]) == 0


CUT_OFF = """
func.func @f(%a: tensor<32x32xsi32>) -> (tensor<32x32xsi32>, tensor<32x32xsi32>) {
  %0 = "ttir.erf"(%a) : (tensor<32x32xsi32>) -> tensor<32x32xsi32>
  %1 = "ttir.tanh"(%a) : (tensor<32x32xsi32>) -> tensor<32x32xsi32>
  return %0, %1 : tensor<32x32xsi32>, tensor<32x32xsi32>
}
"""


@pytest.mark.slow
def test_integers_are_computed_with_as_f32_has_them(
    cpu_backend: CPUBackend, tmp_path: Path
) -> None:
    """The error function of 4 is 1 in f32, and cut off to 0 in the digits that f64 has."""
    module = tmp_path / "cut_off.mlir"
    module.write_text(CUT_OFF)
    arguments = [str(module), "-o", str(tmp_path / "out"), "--target", "ttmetal"]
    assert main([*arguments, "--check"]) == 0
