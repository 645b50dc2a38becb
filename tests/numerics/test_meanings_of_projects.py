"""Outputs of a project's C++ against both numpy runs, on inputs hard to agree on."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ttcodegen
from ttcodegen.cli.rt import main as run_tool
from ttcodegen.cli.ttcodegen import main as compile_file
from ttcodegen.compilation import CompileOptions, compile_module
from ttcodegen.foundation.diagnostics import Source
from ttcodegen.frontends import read_module
from ttcodegen.numerics.golden_values import Golden
from ttcodegen.numerics.lowered import interpreter_of, read_flatbuffer

pytestmark = pytest.mark.slow

NAN, INF = np.nan, np.inf
WIDE = np.array([2**31 - 1, -(2**31), 2**24 + 1, -(2**24) - 1, 1, 7], np.int32)

MODULE = """
func.func @shift_left(%a: tensor<6xi32>, %b: tensor<6xi32>) -> tensor<6xi32> {
  %0 = "ttir.logical_left_shift"(%a, %b) : (tensor<6xi32>, tensor<6xi32>) -> tensor<6xi32>
  return %0 : tensor<6xi32>
}
func.func @shift_right_logical(%a: tensor<6xi32>, %b: tensor<6xi32>) -> tensor<6xi32> {
  %0 = "ttir.logical_right_shift"(%a, %b) : (tensor<6xi32>, tensor<6xi32>) -> tensor<6xi32>
  return %0 : tensor<6xi32>
}
func.func @shift_right(%a: tensor<6xi32>, %b: tensor<6xi32>) -> tensor<6xi32> {
  %0 = "ttir.right_shift"(%a, %b) : (tensor<6xi32>, tensor<6xi32>) -> tensor<6xi32>
  return %0 : tensor<6xi32>
}
func.func @total(%a: tensor<2x3xi32>) -> tensor<2xi32> {
  %0 = "ttir.sum"(%a) <{dim_arg = [1 : i32], keep_dim = false}>
    : (tensor<2x3xi32>) -> tensor<2xi32>
  return %0 : tensor<2xi32>
}
func.func @greatest(%a: tensor<2x3xi32>) -> tensor<2xi32> {
  %0 = "ttir.max"(%a) <{dim_arg = [1 : i32], keep_dim = false}>
    : (tensor<2x3xi32>) -> tensor<2xi32>
  return %0 : tensor<2xi32>
}
func.func @least(%a: tensor<2x3xi32>) -> tensor<2xi32> {
  %0 = "ttir.min"(%a) <{dim_arg = [1 : i32], keep_dim = false}>
    : (tensor<2x3xi32>) -> tensor<2xi32>
  return %0 : tensor<2xi32>
}
func.func @clamped(%a: tensor<6xf32>) -> tensor<6xf32> {
  %low = "ttir.full"() <{shape = array<i32: 6>, fill_value = -2.0 : f32}> : () -> tensor<6xf32>
  %high = "ttir.full"() <{shape = array<i32: 6>, fill_value = 5.0 : f32}> : () -> tensor<6xf32>
  %0 = "ttir.clamp_tensor"(%a, %low, %high)
    : (tensor<6xf32>, tensor<6xf32>, tensor<6xf32>) -> tensor<6xf32>
  return %0 : tensor<6xf32>
}
func.func @pooled(%a: tensor<1x4x4x1xbf16>) -> (tensor<1x2x2x1xbf16>, tensor<1x2x2x1xi32>) {
  %0, %1 = "ttir.max_pool2d_with_indices"(%a) <{kernel = array<i32: 2, 2>,
    stride = array<i32: 2, 2>, dilation = array<i32: 1, 1>, padding = array<i32: 0, 0, 0, 0>,
    ceil_mode = false}> : (tensor<1x4x4x1xbf16>) -> (tensor<1x2x2x1xbf16>, tensor<1x2x2x1xi32>)
  return %0, %1 : tensor<1x2x2x1xbf16>, tensor<1x2x2x1xi32>
}
"""
AMOUNTS = np.array([-1, 32, 33, 0, 31, -5], np.int32)
POOLED = np.arange(16, dtype=np.float32).reshape(1, 4, 4, 1)
POOLED[0, 0, 1, 0] = NAN
POOLED[0, 2, 2, 0] = INF
CASES = {
    "shift_left": [WIDE, AMOUNTS],
    "shift_right_logical": [WIDE, AMOUNTS],
    "shift_right": [WIDE, AMOUNTS],
    "total": [np.array([[2**30, 2**29, 7], [-(2**30), -(2**29), -1]], np.int32)],
    "greatest": [WIDE.reshape(2, 3)],
    "least": [WIDE.reshape(2, 3)],
    "clamped": [np.array([NAN, -NAN, INF, -INF, 7, 1], np.float32)],
    "pooled": [POOLED],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project of the module."""
    folder = tmp_path_factory.mktemp("meanings")
    source = folder / "m.mlir"
    source.write_text(MODULE)
    assert compile_file([str(source), "-o", str(folder / "out"), "-q"]) == 0
    return folder / "out"


@pytest.mark.parametrize("name", CASES)
def test_all_meanings_give_the_same(folder: Path, name: str) -> None:
    source = Source("m.mlir", MODULE)
    inputs = CASES[name]
    expected = Golden(read_module(source)).run(name, inputs)
    flatbuffer = compile_module(source, CompileOptions("m")).flatbuffer
    lowered = interpreter_of(read_flatbuffer(flatbuffer)).run(name, inputs)
    with ttcodegen.load(folder) as model:
        found: Any = getattr(model, name)(*inputs)
    results: Sequence[np.ndarray] = found if isinstance(found, tuple) else [found]
    for golden, device, cpp in zip(expected, lowered, results, strict=True):
        np.testing.assert_array_equal(np.asarray(device, golden.dtype), golden)
        np.testing.assert_array_equal(np.asarray(cpp, golden.dtype), golden)


SHIFTS = ("right_shift", "logical_right_shift", "logical_left_shift")
SHIFTED = "".join(
    f"""
func.func @{op}_{element}(%a: tensor<3x7x{element}>, %b: tensor<3x7x{element}>)
    -> tensor<3x7x{element}> {{
  %0 = "ttir.{op}"(%a, %b)
    : (tensor<3x7x{element}>, tensor<3x7x{element}>) -> tensor<3x7x{element}>
  return %0 : tensor<3x7x{element}>
}}"""
    for op in SHIFTS
    for element in ("i32", "i16", "i8", "ui32", "ui8")
)


@pytest.mark.parametrize("target", ["ttnn", "ttmetal"])
def test_shifts_by_any_amount_give_the_same(target: str, tmp_path: Path) -> None:
    """Negative ones, too, and those that shift everything out."""
    source = Source("m.mlir", SHIFTED)
    path, out = tmp_path / "m.mlir", tmp_path / "out"
    path.write_text(SHIFTED)
    assert compile_file([str(path), "-o", str(out), "-q", "--target", target]) == 0
    flatbuffer = compile_module(source, CompileOptions("m", target=target)).flatbuffer
    lowered = interpreter_of(read_flatbuffer(flatbuffer))
    golden = Golden(read_module(source))
    amounts = [-1, -40, 0, 3, 7, 31, 40]
    with ttcodegen.load(out) as model:
        for name in re.findall(r"@(\w+)", SHIFTED):
            element = np.dtype(name.rpartition("_")[2].replace("i", "int"))
            limits = np.iinfo(element)
            numbers = [[limits.max], [limits.min], [limits.max // 3]]
            a = np.broadcast_to(np.array(numbers), (3, 7)).astype(element)
            b = np.broadcast_to(np.clip(amounts, limits.min, None), (3, 7)).astype(element)
            [expected] = golden.run(name, [a, b])
            [device] = lowered.run(name, [a, b])
            cpp: Any = getattr(model, name)(a, b)
            np.testing.assert_array_equal(np.asarray(device, element), expected, name)
            np.testing.assert_array_equal(np.asarray(cpp, element), expected, name)


PRODUCT = """
func.func @f(%a: tensor<64x96xf32>, %b: tensor<96x128xf32>) -> tensor<64x128xf32> {
  %0 = "ttir.matmul"(%a, %b) : (tensor<64x96xf32>, tensor<96x128xf32>) -> tensor<64x128xf32>
  return %0 : tensor<64x128xf32>
}
"""


def error_of_run(folder: Path, report: Path) -> float:
    """The largest difference between C++ and flatbuffer."""
    run_tool(["run", str(folder), "--result-file", str(report), "--quiet"])
    (entry,) = json.loads(report.read_text())["results"]
    (output,) = entry["programs"][0]["outputs"]
    (error,) = [each["max_abs_err"] for each in output["checks"] if each["check"] == "flatbuffer"]
    return error


def test_an_edit_to_lofi_shows_what_it_costs(tmp_path: Path) -> None:
    source, out = tmp_path / "p.mlir", tmp_path / "out"
    source.write_text(PRODUCT)
    assert compile_file([str(source), "-o", str(out), "-q"]) == 0
    exact = error_of_run(out, tmp_path / "exact.json")
    tuning = out / "src" / "tuning.hpp"
    text = tuning.read_text()
    assert "MathFidelity::HiFi3" in text
    tuning.write_text(text.replace("MathFidelity::HiFi3", "MathFidelity::LoFi"))
    cheap = error_of_run(out, tmp_path / "cheap.json")
    assert cheap > 100 * max(exact, 1e-6)
