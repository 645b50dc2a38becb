"""Extremes of floats on the emulated device: elements of the input, and NaN where there is one."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import ttcodegen
from ttcodegen.cli.ttcodegen import main
from ttcodegen.runtime.library import LoadedModule

MODULE = """
!a = tensor<40x70xf32>
!column = tensor<40x1xf32>
!row = tensor<70xf32>
!narrow = tensor<40x70xbf16>
!narrow_column = tensor<40x1xbf16>
!words = tensor<2x3xui16>
!word_row = tensor<3xui16>
func.func @row_max(%a: !a) -> !column {
  %0 = "ttir.max"(%a) <{dim_arg = [1 : i32], keep_dim = true}> : (!a) -> !column
  return %0 : !column
}
func.func @column_min(%a: !a) -> !row {
  %0 = "ttir.min"(%a) <{dim_arg = [0 : i32], keep_dim = false}> : (!a) -> !row
  return %0 : !row
}
func.func @all_max(%a: !a) -> tensor<f32> {
  %0 = "ttir.max"(%a) <{dim_arg = [0 : i32, 1 : i32], keep_dim = false}> : (!a) -> tensor<f32>
  return %0 : tensor<f32>
}
func.func @where_greatest(%a: !a) -> !a {
  %0 = "ttir.max"(%a) <{dim_arg = [1 : i32], keep_dim = true}> : (!a) -> !column
  %1 = "ttir.eq"(%a, %0) : (!a, !column) -> !a
  return %1 : !a
}
func.func @below_greatest(%a: !a) -> !a {
  %0 = "ttir.max"(%a) <{dim_arg = [1 : i32], keep_dim = true}> : (!a) -> !column
  %1 = "ttir.subtract"(%a, %0) : (!a, !column) -> !a
  return %1 : !a
}
func.func @above_least(%a: !a) -> !a {
  %0 = "ttir.min"(%a) <{dim_arg = [1 : i32], keep_dim = true}> : (!a) -> !column
  %1 = "ttir.subtract"(%a, %0) : (!a, !column) -> !a
  return %1 : !a
}
func.func @softmax(%a: !a) -> !a {
  %0 = "ttir.softmax"(%a) <{dimension = 1 : si32}> : (!a) -> !a
  return %0 : !a
}
func.func @narrow_min(%a: !narrow) -> !narrow_column {
  %0 = "ttir.min"(%a) <{dim_arg = [1 : i32], keep_dim = true}> : (!narrow) -> !narrow_column
  return %0 : !narrow_column
}
func.func @greater(%a: !a, %b: !a) -> !a {
  %0 = "ttir.maximum"(%a, %b) : (!a, !a) -> !a
  return %0 : !a
}
func.func @lesser(%a: !a, %b: !a) -> !a {
  %0 = "ttir.minimum"(%a, %b) : (!a, !a) -> !a
  return %0 : !a
}
func.func @halfword_max(%a: !words) -> !word_row {
  %0 = "ttir.max"(%a) <{dim_arg = [0 : i32], keep_dim = false}> : (!words) -> !word_row
  return %0 : !word_row
}
func.func @byte_sum(%a: tensor<4x6xi8>) -> tensor<4xi8> {
  %0 = "ttir.sum"(%a) <{dim_arg = [1 : i32], keep_dim = false}> : (tensor<4x6xi8>) -> tensor<4xi8>
  return %0 : tensor<4xi8>
}
"""

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("extremes")
    source = folder / "extremes.mlir"
    source.write_text(MODULE)
    out = folder / "out"
    assert main([str(source), "-o", str(out), "--target", "ttmetal", "--build", "-q"]) == 0
    return out


@pytest.fixture(scope="module")
def model(project: Path) -> LoadedModule:
    return ttcodegen.load(project)


def numbers(seed: int, *, nan: bool) -> np.ndarray:
    """Floats with all bits of their mantissas; NaN of either sign in three rows."""
    array = np.random.default_rng(seed).standard_normal((40, 70)).astype(np.float32)
    array[3, 5], array[7, 0], array[9, 69] = np.inf, -np.inf, -0.0
    if nan:
        array[11, 12] = np.nan
        array[33, 64] = -np.float32(np.nan)
        array[39, 69] = np.nan
    return array


def row_max(a: np.ndarray) -> np.ndarray:
    return np.max(a, axis=1, keepdims=True)


OF_ONE: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "row_max": row_max,
    "column_min": lambda a: np.min(a, axis=0),
    "all_max": lambda a: np.asarray(np.max(a)),
    "where_greatest": lambda a: (a == row_max(a)).astype(np.float32),
    "above_least": lambda a: a - np.min(a, axis=1, keepdims=True),
    "below_greatest": lambda a: a - row_max(a),
}


@pytest.mark.parametrize("nan", [False, True], ids=["numbers", "nan"])
@pytest.mark.parametrize("name", OF_ONE)
def test_extremes_are_exact(model: LoadedModule, name: str, nan: bool) -> None:
    a = numbers(0, nan=nan)
    with np.errstate(invalid="ignore"):
        expected = OF_ONE[name](a)
    np.testing.assert_array_equal(getattr(model, name)(a), expected)


@pytest.mark.parametrize("nan", [False, True], ids=["numbers", "nan"])
def test_extremes_of_two_are_exact(model: LoadedModule, nan: bool) -> None:
    a, b = numbers(1, nan=nan), numbers(2, nan=False)
    for one, other in ((a, b), (b, a)):
        np.testing.assert_array_equal(model.greater(one, other), np.maximum(one, other))
        np.testing.assert_array_equal(model.lesser(one, other), np.minimum(one, other))


def test_a_softmax_keeps_what_is_no_number(model: LoadedModule) -> None:
    a = np.random.default_rng(3).standard_normal((40, 70)).astype(np.float32)
    a[5, 6] = np.nan
    a[8, 7] = -np.float32(np.nan)
    found = np.asarray(model.softmax(a))
    exponentials = np.exp(a - a.max(axis=1, keepdims=True))
    expected = exponentials / exponentials.sum(axis=1, keepdims=True)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
    np.testing.assert_allclose(found, expected, rtol=0.02, atol=1e-5)


def test_extremes_of_other_types(model: LoadedModule) -> None:
    narrow = numbers(4, nan=True)
    narrow = (narrow.view(np.uint32) & 0xFFFF0000).view(np.float32)
    found = np.asarray(model.narrow_min(narrow), np.float32)
    np.testing.assert_array_equal(found, np.min(narrow, axis=1, keepdims=True))
    words = np.array([[1, 65535, 3], [40000, 2, 3]], np.uint16)
    np.testing.assert_array_equal(model.halfword_max(words), words.max(axis=0))
    data = np.arange(-12, 12, dtype=np.int8).reshape(4, 6) * np.int8(9)
    np.testing.assert_array_equal(model.byte_sum(data), data.sum(axis=1, dtype=np.int8))


def test_many_models_are_open_in_a_process(project: Path, tmp_path: Path) -> None:
    """Each is a library of its own, as different models are; some are dropped, none is closed."""
    a = numbers(5, nan=False)
    models: list[LoadedModule] = []
    for number in range(40):
        copy = tmp_path / f"copy{number}"
        shutil.copytree(project, copy)
        models.append(ttcodegen.load(copy))
        if number % 8 == 0:
            np.testing.assert_array_equal(models[-1].row_max(a), row_max(a))
            models.append(ttcodegen.load(copy))
    for each in models[::7]:
        np.testing.assert_array_equal(each.row_max(a), row_max(a))
