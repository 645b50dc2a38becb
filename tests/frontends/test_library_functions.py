"""Operations of front ends that are one function of the library."""

from __future__ import annotations

import pytest

from ttcodegen.compilation import CompileOptions, compile_module
from ttcodegen.foundation.diagnostics import Source


def calls_of(text: str) -> list[str]:
    """The elementwise functions of the library that a module calls, in order."""
    cpp = compile_module(Source("m.mlir", text), CompileOptions("m")).files["src/m.cpp"]
    lines = [line for line in cpp.splitlines() if " = ttnn::" in line]
    found = [line.partition("ttnn::Tensor")[2].partition("ttnn::")[2] for line in lines]
    names = [name.partition("(")[0] for name in found]
    return [name for name in names if name not in ("to_layout", "typecast", "reshape", "")]


@pytest.mark.parametrize("element", ["f32", "bf16"])
@pytest.mark.parametrize(
    ("op", "result", "expected"),
    [
        ("stablehlo.round_nearest_even", "", ["round"]),
        ("chlo.is_inf", "i1", ["isinf"]),
        ("stablehlo.is_finite", "i1", ["isfinite"]),
    ],
)
def test_stablehlo(op: str, result: str, expected: list[str], element: str) -> None:
    given, made = f"tensor<32x32x{element}>", f"tensor<32x32x{result or element}>"
    text = f"""func.func public @main(%x: {given}) -> {made} {{
      %0 = "{op}"(%x) : ({given}) -> {made}
      return %0 : {made}
    }}"""
    assert calls_of(text) == expected


@pytest.mark.parametrize(
    ("op", "expected"),
    [("roundeven", ["round"]), ("log2", ["log2"]), ("log10", ["log10"])],
)
def test_linalg(op: str, expected: list[str]) -> None:
    text = f"""
#map = affine_map<(d0, d1) -> (d0, d1)>
func.func @main(%x: tensor<32x32xf32>) -> tensor<32x32xf32> {{
  %empty = tensor.empty() : tensor<32x32xf32>
  %0 = linalg.generic {{indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]}}
      ins(%x : tensor<32x32xf32>) outs(%empty : tensor<32x32xf32>) {{
  ^bb0(%in: f32, %out: f32):
    %1 = math.{op} %in : f32
    linalg.yield %1 : f32
  }} -> tensor<32x32xf32>
  return %0 : tensor<32x32xf32>
}}"""
    assert calls_of(text) == expected


@pytest.mark.parametrize("name", ["round", "log2", "log10", "isnan", "isinf"])
def test_pytorch(name: str) -> None:
    torch = pytest.importorskip("torch")
    from ttcodegen.torch import export

    class Model(torch.nn.Module):
        def forward(self, x):
            return getattr(torch, name)(x)

    assert calls_of(export(Model(), (torch.ones(32, 32),))) == [name]
