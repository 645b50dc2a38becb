"""Functions whose results another compiler kept from one run to the next."""

from __future__ import annotations

from pathlib import Path

import pytest

from ttcodegen.cli.opt import main as opt
from ttcodegen.compilation import CompileOptions, compile_module
from ttcodegen.conversions.host_functions.layer_analysis import cuts
from ttcodegen.foundation.diagnostics import Source

CACHED = """
func.func %s @prepared(%%arg0: tensor<32x32xbf16>) -> tensor<32x32xbf16> attributes {const_eval} {
  %%0 = "ttir.exp"(%%arg0) : (tensor<32x32xbf16>) -> tensor<32x32xbf16>
  return %%0 : tensor<32x32xbf16>
}
func.func @forward(%%x: tensor<32x32xbf16> {ttcore.argument_type = #ttcore.argument_type<input>}, %%w: tensor<32x32xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>}) -> tensor<32x32xbf16> {
  %%0 = ttcore.load_cached(@prepared, [%%w]) : (tensor<32x32xbf16>) -> tensor<32x32xbf16>
  %%1 = "ttir.add"(%%x, %%0) : (tensor<32x32xbf16>, tensor<32x32xbf16>) -> tensor<32x32xbf16>
  return %%1 : tensor<32x32xbf16>
}
"""  # noqa: E501 -- MLIR as it is printed


@pytest.mark.parametrize("visibility", ["", "private"])
@pytest.mark.parametrize("target", ["ttnn", "ttmetal"])
def test_what_a_cached_function_computes_is_a_part_of_its_caller(
    visibility: str, target: str
) -> None:
    source = Source("m.mlir", CACHED % visibility)
    module = compile_module(source, CompileOptions("m", target=target))
    assert [function.name for function in module.description.functions] == ["forward"]


@pytest.mark.parametrize("name", ["sum", "mean", "max", "min"])
def test_a_call_that_names_no_dimensions_reduces_all(name: str) -> None:
    text = f"""
#dram = #ttnn.buffer_type<dram>
#a = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<1x1x!ttcore.tile<32x32, bf16>, #dram>, <interleaved>>
func.func @forward(%x: tensor<32x32xbf16, #a>) -> tensor<1x1xbf16, #a> {{
  %0 = "ttnn.{name}"(%x) <{{keep_dim = true}}> : (tensor<32x32xbf16, #a>) -> tensor<1x1xbf16, #a>
  return %0 : tensor<1x1xbf16, #a>
}}
"""  # noqa: E501 -- MLIR as it is printed
    module = compile_module(Source("m.mlir", text), CompileOptions("m"))
    assert f"ttnn::{name}(inputs.x, std::nullopt, true)" in "\n".join(module.files.values())


def test_nothing_to_divide_has_no_cuts() -> None:
    assert cuts([], []) == []


def test_a_buffer_without_layout_is_refused_by_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    module = tmp_path / "m.mlir"
    module.write_text(
        "func.func @f() -> tensor<32x32xf32> {\n"
        '  %0 = "ttmetal.create_buffer"() <{address = 1024 : i64}> : () -> tensor<32x32xf32>\n'
        "  return %0 : tensor<32x32xf32>\n}\n"
    )
    assert opt([str(module), "--convert-ttmetal-to-emitc"]) == 1
    assert "makes a tensor that has no layout" in capsys.readouterr().err
