"""Values have the same names in programs of the library and in programs of the device."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from xdsl.dialects.func import FuncOp

from ttcodegen.compilation import CompileOptions, compile_module
from ttcodegen.conversions.host_functions import interface
from ttcodegen.foundation.diagnostics import Source

PACKAGE = Path(__file__).parents[2] / "ttcodegen"

LAYER = """
func.func @forward(%x: tensor<32x64xf32>,
    %w: tensor<64x64xf32> {ttcore.argument_type = #ttcore.argument_type<parameter>,
                           ttir.name = "encoder.dense.weight"}) -> tensor<32x64xf32> {
  %3 = "ttir.matmul"(%x, %w) : (tensor<32x64xf32>, tensor<64x64xf32>) -> tensor<32x64xf32>
  %relu_7 = "ttir.sum"(%3) <{dim_arg = [1 : i32], keep_dim = true}>
    : (tensor<32x64xf32>) -> tensor<32x1xf32>
  %5 = "ttir.matmul"(%relu_7, %relu_7) <{transpose_b = true}>
    : (tensor<32x1xf32>, tensor<32x1xf32>) -> tensor<32x32xf32>
  %6 = "ttir.matmul"(%5, %3) : (tensor<32x32xf32>, tensor<32x64xf32>) -> tensor<32x64xf32>
  return %6 : tensor<32x64xf32>
}
"""


def names(text: str, target: str) -> set[str]:
    """The variables of tensors in the source file of a module."""
    source = Source("model.mlir", text)
    files = compile_module(source, CompileOptions("model", target)).files
    type_ = {"ttnn": r"ttnn::Tensor", "ttmetal": r"support::DeviceTensor"}[target]
    return set(re.findall(rf"^    {type_} (\w+) =", files["src/model.cpp"], re.MULTILINE))


@pytest.mark.parametrize("target", ["ttnn", "ttmetal"])
def test_layers_and_nouns(target: str) -> None:
    found = names(LAYER, target)
    assert {"encoder_dense", "product"} <= found
    assert not any(name.startswith(("matmul", "relu")) for name in found)


ATTENTION = """
func.func @attend(%x: tensor<64x64xf32>, %0: tensor<64x64xf32>, %1: tensor<64x64xf32>,
                  %2: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %3 = "ttir.matmul"(%x, %0) : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %4 = "ttir.matmul"(%x, %1) : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %5 = "ttir.matmul"(%3, %4) <{transpose_b = true}>
    : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %6 = "ttir.softmax"(%5) <{dimension = 1 : si32}> : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %7 = "ttir.matmul"(%x, %2) : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %8 = "ttir.matmul"(%6, %7) : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  return %8 : tensor<64x64xf32>
}
"""


@pytest.mark.parametrize("target", ["ttnn", "ttmetal"])
def test_roles_outlive_what_passes_make_of_ops(target: str) -> None:
    found = names(ATTENTION, target)
    assert {"queries", "keys", "scores", "probabilities", "values", "attention"} <= found


SHIFTED = """
func.func @forward(%x: tensor<32x64xf32>) -> tensor<32x64xf32> {
  %fc_weight = "ttir.constant"() <{value = dense<1.5> : tensor<64x64xf32>}>
    : () -> tensor<64x64xf32>
  %c = "ttir.constant"() <{value = dense<[[BIAS]]> : tensor<1x64xf32>}> : () -> tensor<1x64xf32>
  %1 = "ttir.matmul"(%x, %fc_weight)
    : (tensor<32x64xf32>, tensor<64x64xf32>) -> tensor<32x64xf32>
  %fc = "ttir.add"(%1, %c) : (tensor<32x64xf32>, tensor<1x64xf32>) -> tensor<32x64xf32>
  %3 = "ttir.softmax"(%fc) <{dimension = 1 : si32}> : (tensor<32x64xf32>) -> tensor<32x64xf32>
  return %3 : tensor<32x64xf32>
}
""".replace("BIAS", ", ".join(f"{number * number}.0" for number in range(64)))


@pytest.mark.parametrize("target", ["ttnn", "ttmetal"])
def test_a_constant_is_called_after_the_layer_that_it_is_the_bias_of(target: str) -> None:
    for constant in ("%0", "%fc_bias"):
        text = SHIFTED.replace("%c ", f"{constant} ").replace("%c)", f"{constant})")
        files = compile_module(Source("model.mlir", text), CompileOptions("model", target)).files
        assert re.search(r"Tensor fc_bias;", files["src/model.hpp"])
        assert " fc =" in files["src/model.cpp"]
        assert "fc_shifted" not in files["src/model.cpp"]


@pytest.mark.parametrize("target", ["ttnn", "ttmetal"])
def test_the_interface_is_named_once(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    found = interface.argument_names

    def counted(function: FuncOp) -> list[str]:
        asked.append(function.sym_name.data)
        return found(function)

    monkeypatch.setattr(interface, "argument_names", counted)
    compile_module(Source("model.mlir", LAYER), CompileOptions("model", target))
    assert asked == ["forward"]


def test_nothing_else_names_what_the_source_leaves_without_a_name() -> None:
    own = re.compile(r"name_hint or ")
    paths = [
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if path.parent.name != "naming" and own.search(path.read_text("utf-8"))
    ]
    # One op takes the name of another that it replaces; the printer has the counters of loops; a
    # message says %arg0 as the printed module does.
    allowed = ["compat/ttnn_modules.py", "emitc/printer.py", "frontends/stablehlo/__init__.py"]
    allowed.append("optimizer/fusing.py")
    assert sorted(paths) == allowed


def test_nothing_else_makes_a_name_of_several() -> None:
    makes = re.compile(r"\b(common_name|is_generic|given_name|noun_of)\b")
    paths = [
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if path.parent.name != "naming" and makes.search(path.read_text("utf-8"))
    ]
    assert not paths
