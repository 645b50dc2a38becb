"""Integers that float32 does not hold are sorted exactly, those that it holds at once."""

from __future__ import annotations

import numpy as np
import pytest

from ttcodegen.compilation import CompiledModule, CompileOptions, compile_module
from ttcodegen.flatbuffer.reader import read_ttnn
from ttcodegen.foundation.diagnostics import Source
from ttcodegen.numerics.interpreter import Interpreter

WIDE = [2**24 + 3, 5, -(2**24) - 3, 2**24 + 1, 2**31 - 1, -(2**31), 2**24 + 1, 0, -1, 65536, 65535]


def _compiled(text: str) -> CompiledModule:
    return compile_module(Source("f.mlir", text), CompileOptions("f"))


def _ordered(x: np.ndarray, *, descending: bool) -> tuple[np.ndarray, np.ndarray]:
    """By Python's sort, which keeps the order of equal ones."""
    rows = [
        sorted(enumerate(row.tolist()), key=lambda pair: pair[1], reverse=descending) for row in x
    ]
    values = [[value for _, value in row] for row in rows]
    return np.array(values), np.array([[place for place, _ in row] for row in rows])


DTYPES = {"i32": np.int32, "i64": np.int64, "ui32": np.uint32}


@pytest.mark.parametrize("element", DTYPES)
@pytest.mark.parametrize("descending", [True, False])
def test_integers_beyond_what_float32_holds(element: str, descending: bool) -> None:
    flag = str(descending).lower()
    # Of unsigned integers the negative ones are those from 2^31 on.
    x = np.array([WIDE, WIDE[::-1]], np.int64).astype(DTYPES[element])
    shape, some = "2x11x", "2x4x"
    text = f"""func.func @f(%x: tensor<{shape}{element}>) -> (tensor<{shape}{element}>,
        tensor<{shape}i32>, tensor<{some}{element}>, tensor<{some}i32>) {{
      %0, %1 = "ttir.sort"(%x) <{{dim = 1 : i32, descending = {flag}}}>
          : (tensor<{shape}{element}>) -> (tensor<{shape}{element}>, tensor<{shape}i32>)
      %2, %3 = "ttir.topk"(%x) <{{k = 4 : i32, dim = -1 : i32, largest = {flag}}}>
          : (tensor<{shape}{element}>) -> (tensor<{some}{element}>, tensor<{some}i32>)
      return %0, %1, %2, %3 : tensor<{shape}{element}>, tensor<{shape}i32>,
          tensor<{some}{element}>, tensor<{some}i32>
    }}"""
    found = Interpreter(read_ttnn(_compiled(text).flatbuffer)).run("f", [x])
    values, places = _ordered(x, descending=descending)
    for array, expected in zip(found, (values, places, values[:, :4], places[:, :4]), strict=True):
        np.testing.assert_array_equal(array, expected)


SMALL = {
    "bytes": '%v = "ttir.typecast"(%x) : (tensor<2x8xi8>) -> tensor<2x8xi32>',
    "places": """%w, %p = "ttir.sort"(%f) : (tensor<2x8xf32>) -> (tensor<2x8xf32>, tensor<2x8xi32>)
      %q = "ttir.reshape"(%p) <{shape = [8 : i32, 2 : i32]}> : (tensor<2x8xi32>) -> tensor<8x2xi32>
      %v = "ttir.permute"(%q) <{permutation = array<i64: 1, 0>}>
          : (tensor<8x2xi32>) -> tensor<2x8xi32>""",
}


@pytest.mark.parametrize("kind", SMALL)
def test_integers_that_are_known_to_be_small_are_sorted_once(kind: str) -> None:
    text = f"""func.func @f(%x: tensor<2x8xi8>, %f: tensor<2x8xf32>) -> tensor<2x8xi32> {{
      {SMALL[kind]}
      %0, %1 = "ttir.sort"(%v) : (tensor<2x8xi32>) -> (tensor<2x8xi32>, tensor<2x8xi32>)
      return %0 : tensor<2x8xi32>
    }}"""
    source = _compiled(text).files["src/f.cpp"]
    assert source.count("ttnn::sort(") == (1 if kind == "bytes" else 2)
    assert "ttnn::gather(" not in source
