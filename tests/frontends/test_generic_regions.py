"""Generics whose regions compute elements, or run kernels on buffers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from tests.ttmetal.test_generics import programs
from ttcodegen.compilation import CompileOptions, compile_module
from ttcodegen.foundation.diagnostics import CompileError, Source
from ttcodegen.project.checking import run_in_numpy

HEAD = """
#both = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (j)>
#column = affine_map<(i, j) -> (i, 0)>
#turned = affine_map<(i, j) -> (j, i)>
#left = affine_map<(m, n, k) -> (m, k)>
#right = affine_map<(m, n, k) -> (k, n)>
#result = affine_map<(m, n, k) -> (m, n)>
#p = #ttcore.iterator_type<parallel>
#r = #ttcore.iterator_type<reduction>
#l1 = #ttcore.memory_space<l1>
"""
X, ROW, COLUMN, W = "tensor<40x64xf32>", "tensor<64xf32>", "tensor<40x1xf32>", "tensor<64x96xf32>"


def generic(
    operands: str,
    maps: str,
    types: str,
    result: str,
    region: str,
    empty: str = '"ttir.empty"() : ()',
) -> str:
    """A function of one generic; `operands` are names and types in pairs."""
    pairs = [pair.split(": ") for pair in operands.split(", ")]
    names, kinds = (", ".join(column) for column in zip(*pairs, strict=True))
    return f"""{HEAD}
func.func @main({operands}) -> {result} {{
  %e = {empty} -> {result}
  %0 = ttir.generic {{grid = #ttcore.grid<4x4>, indexing_maps = [{maps}],
      iterator_types = [{types}]}} ins({names} : {kinds}) outs(%e : {result}) {{
  {region}
  }} : {result}
  return %0 : {result}
}}
"""


def computed(text: str, values: Sequence[np.ndarray]) -> np.ndarray:
    """Golden output of a module with one device program; its flatbuffer agrees."""
    assert len(programs(text)) == 1
    source = Source("main.mlir", text)
    compiled = compile_module(source, CompileOptions("main", "ttmetal"))
    (runs,) = run_in_numpy(source, compiled, lambda *_: tuple(values))
    np.testing.assert_allclose(runs.golden[0], runs.flatbuffer[0], rtol=1e-2, atol=1e-2)
    return runs.golden[0]


def numbers(*shape: int) -> np.ndarray:
    """Values between -1 and 1, the same in each run."""
    return np.random.default_rng(5).uniform(-1, 1, shape).astype(np.float32)


def test_elements_of_parallel_loops() -> None:
    region = """^bb0(%a: f32, %b: f32, %out: f32):
    %half = arith.constant 0.5 : f32
    %greater = arith.cmpf ogt, %a, %b : f32
    %chosen = arith.select %greater, %a, %b : f32
    %t = math.tanh %chosen : f32
    %scaled = arith.mulf %t, %half : f32
    ttir.yield %scaled : f32"""
    text = generic(f"%x: {X}, %s: {ROW}", "#both, #row, #both", "#p, #p", X, region)
    x, s = numbers(40, 64), numbers(64)
    np.testing.assert_allclose(computed(text, [x, s]), np.tanh(np.maximum(x, s)) / 2, atol=1e-4)


@pytest.mark.parametrize("empty", ['"ttir.empty"() : ()', '"ttir.full"() <{shape = array<i32: 40, '
                                   "1>, fill_value = 3.0 : f32}> : ()"])  # fmt: skip
def test_elements_that_are_summed_up(empty: str) -> None:
    region = """^bb0(%a: f32, %b: f32, %out: f32):
    %product = arith.mulf %a, %b : f32
    %power = math.exp %product : f32
    %sum = arith.addf %out, %power : f32
    ttir.yield %sum : f32"""
    maps = "#both, #row, #column"
    text = generic(f"%x: {X}, %s: {ROW}", maps, "#p, #r", COLUMN, region, empty)
    x, s = numbers(40, 64), numbers(64)
    expected = np.exp(x * s).sum(axis=1, keepdims=True) + 3 * ("full" in empty)
    np.testing.assert_allclose(computed(text, [x, s]), expected, rtol=1e-4)


def test_the_largest_element() -> None:
    region = """^bb0(%a: f32, %out: f32):
    %most = arith.maximumf %a, %out : f32
    ttir.yield %most : f32"""
    text = generic(f"%x: {X}", "#both, #column", "#p, #r", COLUMN, region)
    x = numbers(40, 64) - 5
    np.testing.assert_allclose(computed(text, [x]), x.max(axis=1, keepdims=True), rtol=1e-5)


def test_a_product_of_matrices() -> None:
    region = """^bb0(%a: f32, %b: f32, %out: f32):
    %product = arith.mulf %a, %b : f32
    %sum = arith.addf %out, %product : f32
    ttir.yield %sum : f32"""
    maps = "#left, #right, #result"
    result = "tensor<40x96xf32>"
    text = generic(f"%x: {X}, %w: {W}", maps, "#p, #p, #r", result, region)
    x, w = numbers(40, 64), numbers(64, 96)
    np.testing.assert_allclose(computed(text, [x, w]), x @ w, atol=1e-4)


def test_kernels_on_buffers() -> None:
    buffer = "memref<40x64xf32, #l1>"
    region = f"""^bb0(%a: {buffer}, %b: {buffer}, %out: {buffer}):
    "ttir.kernel"(%a, %b, %out) <{{kind = @eltwise, op = @mulitply,
        operandSegmentSizes = array<i32: 2, 1>}}> : ({buffer}, {buffer}, {buffer}) -> ()
    "ttir.kernel"(%out, %out) <{{kind = @eltwise, op = @exp,
        operandSegmentSizes = array<i32: 1, 1>}}> : ({buffer}, {buffer}) -> ()
    ttir.yield"""
    text = generic(f"%x: {X}, %y: {X}", "#both, #both, #both", "#p, #p", X, region)
    x, y = numbers(40, 64), numbers(40, 64) + 1
    np.testing.assert_allclose(computed(text, [x, y]), np.exp(x * y), rtol=1e-4)


@pytest.mark.parametrize(
    ("region", "reason"),
    [
        (
            '^bb0(%a: f32, %out: f32):\n    %b = "foo.bar"(%a) : (f32) -> f32\n    ttir.yield %b'
            " : f32",
            "'foo.bar' in a ttir.generic is not supported",
        ),
        (
            "^bb0(%a: memref<40x64xf32>, %out: memref<40x64xf32>):\n    ttir.yield",
            "a buffer of the region that is a result is not written",
        ),
        (
            "^bb0(%a: memref<40x64xf32>, %out: memref<40x64xf32>):\n"
            '    "ttir.kernel"(%a, %out) <{kind = @eltwise, op = @frobnicate}> : '
            "(memref<40x64xf32>, memref<40x64xf32>) -> ()\n    ttir.yield",
            "no op computes what the kernel 'frobnicate' does",
        ),
    ],
)
def test_what_no_op_computes_is_refused_at_its_line(region: str, reason: str) -> None:
    text = generic(f"%x: {X}", "#both, #both", "#p, #p", X, region)
    with pytest.raises(CompileError, match=reason) as error:
        programs(text)
    assert error.value.diagnostics[0].place is not None


def test_elements_need_loops() -> None:
    region = "^bb0(%a: f32, %out: f32):\n    ttir.yield %a : f32"
    with pytest.raises(CompileError, match="computes elements, but does not say of which loops"):
        programs(generic(f"%x: {X}", "", "", X, region))
