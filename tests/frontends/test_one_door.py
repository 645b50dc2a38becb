"""Each tool reads a module as the compiler does, and decides by its operations what it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from ttcodegen.cli import opt, translate, ttcodegen
from ttcodegen.compilation import CompileOptions
from ttcodegen.explorer.graph import Graph
from ttcodegen.explorer.models import model_graphs
from ttcodegen.foundation.diagnostics import CompileError, Source
from ttcodegen.frontends import frontend_of, source_module
from ttcodegen.project.settings import ProjectOptions, compile_file
from ttcodegen.transforms.module_text import module_text

LAYOUT = """#dram = #ttnn.buffer_type<dram>
#tiles = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>,
    memref<1x1x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
"""
MODULES = {
    "plain": """func.func @f(%x: tensor<32x32xf32>) -> tensor<32x32xf32> {
  %0 = "ttnn.exp"(%x) : (tensor<32x32xf32>) -> tensor<32x32xf32>
  return %0 : tensor<32x32xf32>
}
""",
    "placed": f"""{LAYOUT}
func.func @f(%x: tensor<32x32xf32, #tiles>) -> tensor<32x32xf32, #tiles> {{
  %0 = "ttnn.get_device"() <{{mesh_shape = #ttnn<mesh_shape 1x1>}}> : () -> !ttnn.device
  %1 = "ttnn.exp"(%x) : (tensor<32x32xf32, #tiles>) -> tensor<32x32xf32, #tiles>
  return %1 : tensor<32x32xf32, #tiles>
}}
""",
    "destination": """#chip = #tt.device<workerGrid = #tt.grid<8x8, (d0, d1) -> (0, d0, d1)>,
    l1Map = (d0, d1)[s0, s1] -> (0, d0, d1, s1), dramMap = (d0, d1)[s0, s1] -> (0, 0, 0, d0),
    meshShape = 1, chipIds = [0]>
func.func @f(%x: tensor<32x32xf32>) -> tensor<32x32xf32> {
  %0 = "ttnn.open_device"() : () -> !tt.device<#chip>
  %1 = "ttnn.empty"(%0) <{shape = #ttnn.shape<32x32>}> : (!tt.device<#chip>)
      -> tensor<32x32xf32>
  %2 = "ttnn.exp"(%x, %1) <{operandSegmentSizes = array<i32: 1, 1>}>
      : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32>
  "ttnn.close_device"(%0) : (!tt.device<#chip>) -> ()
  return %2 : tensor<32x32xf32>
}
""",
    "in a library's form": """func.func @f(%x: tensor<4x8x64xbf16>, %w: tensor<4x64x8xbf16>,
    %b: tensor<4x8x8xbf16>) -> tensor<4x8x8xbf16> {
  %0 = "ttnn.linear"(%x, %w, %b) : (tensor<4x8x64xbf16>, tensor<4x64x8xbf16>, tensor<4x8x8xbf16>)
      -> tensor<4x8x8xbf16>
  return %0 : tensor<4x8x8xbf16>
}
""",
}
"""Modules of TTNN, as different tools and years print them."""


def through_all(path: Path, folder: Path) -> dict[str, str]:
    """The tools that refuse a module, with their reasons."""
    refused: dict[str, str] = {}
    lowered, emitc = str(folder / "lowered.mlir"), str(folder / "emitc.mlir")
    quiet = ["--no-format", "-q"]
    steps = {
        "ttcodegen": (ttcodegen.main, [str(path), "-o", str(folder / "cli"), *quiet]),
        "ttcodegen-opt": (opt.main, ["--ttnn-to-ttnn-pipeline", str(path), "-o", lowered]),
        "to EmitC": (opt.main, ["--convert-ttnn-to-emitc", lowered, "-o", emitc]),
        "to C++": (translate.main, ["--mlir-to-cpp", emitc, "-o", str(folder / "m.cpp")]),
        "to a flatbuffer": (
            translate.main,
            ["--ttnn-to-flatbuffer", lowered, "-o", str(folder / "m.ttnn")],
        ),
        "to a flatbuffer at once": (
            translate.main,
            ["--ttnn-to-flatbuffer", str(path), "-o", str(folder / "n.ttnn")],
        ),
    }
    for name, (main, arguments) in steps.items():
        if (status := main(arguments)) != 0:
            refused[name] = f"exit status {status}"
    try:
        graphs: list[Graph] = model_graphs(path, CompileOptions("m"))
        assert graphs
    except CompileError as error:
        refused["explorer"] = error.render()
    try:
        compile_file(path, folder / "python", ProjectOptions(format=False))
    except CompileError as error:
        refused["Python"] = error.render()
    if not refused:
        files = {each.relative_to(folder / "cli") for each in (folder / "cli").rglob("*.?pp")}
        for file in files:
            assert (folder / "python" / file).read_text() == (folder / "cli" / file).read_text()
    return refused


@pytest.mark.parametrize("name", MODULES)
def test_every_tool_reads_modules_of_calls(name: str, tmp_path: Path) -> None:
    path = tmp_path / "m.mlir"
    path.write_text(MODULES[name])
    assert through_all(path, tmp_path) == {}


@pytest.mark.slow
@pytest.mark.parametrize("part", range(6))
def test_every_tool_reads_what_the_compiler_does(part: int, corpus: Path, tmp_path: Path) -> None:
    refused: dict[str, dict[str, str]] = {}
    for path in sorted((corpus.parent / "ttnn").glob("*.mlir"))[part::6]:
        folder = tmp_path / path.stem
        folder.mkdir()
        found = through_all(path, folder)
        if found and "ttcodegen" not in found:
            refused[path.name] = found
    assert refused == {}


COMMENTS = [
    "// as linked from: { stablehlo.add %a, %b }",
    "// {tosa.abs} and { linalg.add }",
    "// #ttnn.ttnn_layout, of !tt.device, and ttnn.open_device",
    '// "ttnn.to_device" "ttmetal.dispatch" ttir.kernel operand_constraints tuple< !quant.uniform',
]


@pytest.mark.parametrize("comment", COMMENTS)
@pytest.mark.parametrize("name", MODULES)
def test_comments_decide_nothing(name: str, comment: str) -> None:
    text = MODULES[name]
    plain = module_text(source_module(Source("m.mlir", text)))
    assert module_text(source_module(Source("m.mlir", f"{comment}\n{text}{comment}\n"))) == plain


def test_strings_decide_nothing() -> None:
    text = """func.func @f(%x: tensor<4xf32> {ttir.name = "{ stablehlo.add"}) -> tensor<4xf32> {
  %0 = "ttir.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32> loc("{ tosa.exp")
  return %0 : tensor<4xf32>
}
"""
    assert frontend_of(Source("m.mlir", text)) is None


@pytest.mark.parametrize("op", ["stablehlo.exponential", '"stablehlo.exponential"'])
def test_operations_behind_strings_decide(op: str) -> None:
    operand = "(%x) : (tensor<4xf32>) ->" if '"' in op else " %x :"
    line = 'module attributes {a = "//"} { func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {'
    text = f"{line} %0 = {op}{operand} tensor<4xf32>\n  return %0 : tensor<4xf32> }} }}\n"
    frontend = frontend_of(Source("m.mlir", text))
    assert frontend is not None
    assert frontend.name == "StableHLO"
