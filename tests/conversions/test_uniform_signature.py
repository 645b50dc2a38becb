"""The second function of an entry, of vectors, is C++ whatever the first one takes."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.conftest import ROOT
from ttcodegen.emitc.printer import print_module
from ttcodegen.foundation.diagnostics import CompileError, Source
from ttcodegen.ops.dialects import load_dialects
from ttcodegen.parsing import parse_module
from ttcodegen.project.toolchain import Toolchain
from ttcodegen.transforms.registry import passes_of, step

T = "tensor<32x32xbf16>"
WEIGHT = "{ttcore.argument_type = #ttcore.argument_type<parameter>}"
SOURCE = f"""
func.func @all(%x: {T}, %w: {T} {WEIGHT}, %y: {T}) -> ({T}, {T}) {{
  %0 = "ttir.exp"(%w) : ({T}) -> {T}
  %1 = "ttir.add"(%x, %0) : ({T}, {T}) -> {T}
  %2 = "ttir.multiply"(%y, %1) : ({T}, {T}) -> {T}
  return %1, %2 : {T}, {T}
}}
func.func @weights_alone(%w: {T} {WEIGHT}) -> {T} {{
  %0 = "ttir.exp"(%w) : ({T}) -> {T}
  return %0 : {T}
}}
func.func @nothing() -> {T} {{
  %0 = "ttir.full"() <{{shape = array<i32: 32, 32>, fill_value = 1.0 : f32}}> : () -> {T}
  return %0 : {T}
}}
func.func @main(%x: {T}) -> {T} {{
  %0 = "ttir.relu"(%x) : ({T}) -> {T}
  return %0 : {T}
}}
"""


def files(text: str) -> dict[str, str]:
    """The C++ of a module whose functions have both signatures."""
    module, context = parse_module(Source("m.mlir", text)), load_dialects()
    for pass_ in passes_of(step("ttir-to-emitc-pipeline", target_dylib=True, module_name="m")):
        pass_.apply(context, module)
    return print_module(module)


def test_every_function_has_a_second_one(tmp_path: Path, toolchain: Toolchain) -> None:
    written = files(SOURCE)
    for name in ("all", "weights_alone", "nothing", "forward"):
        assert f"std::vector<ttnn::Tensor> call_{name}(" in written["src/m.hpp"]
    assert "AllInputs inputs{.x = arguments.at(0), .y = arguments.at(2)};" in written["src/m.cpp"]
    for path, text in written.items():
        (tmp_path / Path(path).name).write_text(text)
    command = [str(toolchain.compiler), "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra"]
    command += ["-Wno-unused-parameter", "-Werror", f"-I{ROOT / 'standalone' / 'include'}"]
    done = subprocess.run(
        [*command, str(tmp_path / "m.cpp")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_a_name_that_is_taken_is_refused() -> None:
    text = f"""
        func.func @f(%x: {T}) -> {T} {{ return %x : {T} }}
        func.func @call_f(%x: {T}) -> {T} {{ return %x : {T} }}"""
    with pytest.raises(CompileError, match="the name 'call_f' is needed"):
        files(text)
