"""f16 of the source: bf16 on the device, or float32, which has all of its values."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import ttcodegen
from ttcodegen.cli.ttcodegen import main
from ttcodegen.compilation import CompileOptions, compile_module
from ttcodegen.flatbuffer.reader import read_ttnn
from ttcodegen.foundation.diagnostics import Source
from ttcodegen.numerics.interpreter import Interpreter
from ttcodegen.project.cpu_backend import CPUBackend

TEXT = """
func.func @f(%x: tensor<4xf16>) -> tensor<4xf16> {
  %c = stablehlo.constant dense<[0.0, 0.0009766, 0.0, 0.0]> : tensor<4xf16>
  %0 = stablehlo.floor %x : tensor<4xf16>
  %1 = stablehlo.add %0, %c : tensor<4xf16>
  return %1 : tensor<4xf16>
}
"""
# Three bits less, and all but the last would be rounded up to the next integer.
GIVEN = np.array([-4.004, 1.0, 1023.5, 0.75], np.float16)
EXPECTED = np.array([-5.0, 1.000977, 1023.0, 0.0], np.float16)


def test_float32_keeps_all_values_of_f16() -> None:
    compiled = compile_module(Source("f.mlir", TEXT), CompileOptions("f", f16="float32"))
    found = Interpreter(read_ttnn(compiled.flatbuffer)).run("f", [GIVEN])[0]
    np.testing.assert_array_equal(np.asarray(found).astype(np.float16), EXPECTED)


@pytest.mark.parametrize("target", ["ttnn", "ttmetal"])
def test_fractions_of_arguments_are_cut_off_before_they_are_rounded(target: str) -> None:
    text = """
    func.func @f(%x: tensor<2x3xf16>, %y: tensor<2x3xf16>) -> (tensor<2x3xf16>, tensor<2x3xf16>) {
      %0 = stablehlo.floor %x : tensor<2x3xf16>
      %1 = stablehlo.add %x, %y : tensor<2x3xf16>
      return %0, %1 : tensor<2x3xf16>, tensor<2x3xf16>
    }"""
    given = np.array([[-4.004, 6.996, 1.0], [6.004, -0.25, 2.5]], np.float16)
    compiled = compile_module(Source("f.mlir", text), CompileOptions("f", target))
    if target == "ttnn":
        program = Interpreter(read_ttnn(compiled.flatbuffer))
        floor, total = (np.asarray(each) for each in program.run("f", [given, given]))
        np.testing.assert_array_equal(floor, [[-5, 6, 1], [6, -1, 2]])
        np.testing.assert_allclose(total.astype(np.float32), 2 * given, rtol=1e-2)


def test_what_is_computed_of_arguments_before_bits_matter_is_float32() -> None:
    # As jax writes an arccosine; 1.001 is 1 in bf16, and 2.498 is 2.5.
    text = """
    func.func @f(%x: tensor<4xf16>) -> (tensor<4xf16>, tensor<4xf16>, tensor<4xi32>, tensor<4xi1>) {
      %one = stablehlo.constant dense<1.0> : tensor<4xf16>
      %0 = stablehlo.multiply %x, %x : tensor<4xf16>
      %1 = stablehlo.subtract %one, %0 : tensor<4xf16>
      %2 = stablehlo.sqrt %1 : tensor<4xf16>
      %3 = stablehlo.round_nearest_afz %x : tensor<4xf16>
      %4 = stablehlo.convert %x : (tensor<4xf16>) -> tensor<4xi32>
      %5 = stablehlo.compare NE, %x, %one : (tensor<4xf16>, tensor<4xf16>) -> tensor<4xi1>
      return %2, %3, %4, %5 : tensor<4xf16>, tensor<4xf16>, tensor<4xi32>, tensor<4xi1>
    }"""
    given = np.array([1.001, -0.999, 2.498, 5.996], np.float16)
    compiled = compile_module(Source("f.mlir", text), CompileOptions("f"))
    found = Interpreter(read_ttnn(compiled.flatbuffer)).run("f", [given])
    root, rounded, whole, differs = (np.asarray(each).astype(np.float32) for each in found)
    np.testing.assert_array_equal(np.isnan(root), [True, False, True, True])
    np.testing.assert_allclose(root[1], np.sqrt(1 - np.float32(given[1]) ** 2), rtol=1e-2)
    np.testing.assert_array_equal(rounded, np.round(given))
    np.testing.assert_array_equal(whole, given.astype(np.int32))
    np.testing.assert_array_equal(differs, given != 1)


def test_bfloat16_is_what_f16_is_without_a_word(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "f.mlir"
    file.write_text(TEXT)
    assert main([str(file), "-o", str(tmp_path / "out"), "--kind", "sources"]) == 0
    assert "f16 is bf16 on the device" in capsys.readouterr().err
    assert main([str(file), "-o", str(tmp_path / "o2"), "--f16", "float32"]) == 0
    assert "f16 is bf16" not in capsys.readouterr().err


def test_integers_of_64_bits_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "f.mlir"
    file.write_text(
        "func.func @f(%x: tensor<2xi64>) -> tensor<2xi64> {\n  return %x : tensor<2xi64>\n}"
    )
    assert main([str(file), "-o", str(tmp_path / "out"), "--kind", "sources"]) == 0
    said = capsys.readouterr().err
    assert "integers of 64 bits have 32" in said
    assert "argument 0 of '@f', result 0 of '@f'" in said


@pytest.mark.slow
def test_the_cpp_keeps_the_values_of_f16(cpu_backend: CPUBackend, tmp_path: Path) -> None:
    file, out = tmp_path / "f.mlir", tmp_path / "out"
    file.write_text(TEXT)
    assert main([str(file), "-o", str(out), "--f16", "float32", "--check"]) == 0
    found = ttcodegen.load(out).f(GIVEN)
    np.testing.assert_array_equal(np.asarray(found), EXPECTED)
    assert np.asarray(found).dtype == np.float16


@pytest.mark.frameworks
@pytest.mark.parametrize(("framework", "parts"), [("torch", "nn"), ("jax", "numpy")])
def test_frameworks_choose_what_f16_is(framework: str, parts: str, tmp_path: Path) -> None:
    pytest.importorskip(f"{framework}.{parts}", reason=f"{framework} is not installed")
    library = import_module(framework)
    if framework == "torch":
        from ttcodegen.torch import compile

        model, example = library.nn.Sigmoid(), (library.ones(4, 4, dtype=library.float16),)
        compile(model, example, out=tmp_path, f16="float32")
    else:
        from ttcodegen.jax import compile

        example = library.numpy.ones((4, 4), library.numpy.float16)
        compile(library.nn.sigmoid, example, out=tmp_path, f16="float32")
    text = "".join(path.read_text() for path in (tmp_path / "src").glob("*.cpp"))
    assert "FLOAT32" in text
    assert "BFLOAT16" not in text
