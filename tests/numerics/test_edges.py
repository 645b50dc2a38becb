"""Inputs of `--check=edges`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects.func import FuncOp

from ttcodegen.cli.ttcodegen import main
from ttcodegen.foundation.diagnostics import Source
from ttcodegen.numerics.drawing import draw_inputs
from ttcodegen.numerics.edges import chosen_edges, edge_cases, follows_convention, hides_values
from ttcodegen.parsing import parse_module

TEXT = """
func.func @main(%x: tensor<8x32xf32>, %i: tensor<8x32xi32>, %u: tensor<8x32xui32>,
    %at: tensor<4xi32>, %table: tensor<10x32xf32>, %positive: tensor<8x32xf32>)
    -> (tensor<8x32xf32>, tensor<8x32xi32>, tensor<8x32xui32>, tensor<4x32xf32>, tensor<8x32xf32>) {
  %0 = "ttir.neg"(%x) : (tensor<8x32xf32>) -> tensor<8x32xf32>
  %1 = "ttir.add"(%i, %i) : (tensor<8x32xi32>, tensor<8x32xi32>) -> tensor<8x32xi32>
  %2 = "ttir.bitwise_xor"(%u, %u) : (tensor<8x32xui32>, tensor<8x32xui32>) -> tensor<8x32xui32>
  %3 = "ttir.embedding"(%at, %table) : (tensor<4xi32>, tensor<10x32xf32>) -> tensor<4x32xf32>
  %4 = "ttir.sqrt"(%positive) : (tensor<8x32xf32>) -> tensor<8x32xf32>
  return %0, %1, %2, %3, %4 : tensor<8x32xf32>, tensor<8x32xi32>, tensor<8x32xui32>,
    tensor<4x32xf32>, tensor<8x32xf32>
}"""

ATTENTION = """
func.func @main(%q: tensor<1x2x32x64xf32>, %mask: tensor<1x1x32x32xf32>) -> tensor<1x2x32x64xf32> {
  %0 = "ttir.scaled_dot_product_attention"(%q, %q, %q, %mask)
    <{is_causal = false, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0>}>
    : (tensor<1x2x32x64xf32>, tensor<1x2x32x64xf32>, tensor<1x2x32x64xf32>, tensor<1x1x32x32xf32>)
    -> tensor<1x2x32x64xf32>
  return %0 : tensor<1x2x32x64xf32>
}"""


def cases(text: str) -> dict[str, tuple[np.ndarray, ...]]:
    module = parse_module(Source("m.mlir", text))
    (function,) = (op for op in module.ops if isinstance(op, FuncOp))
    return dict(edge_cases(module, function, draw_inputs(module, function, 0)))


def test_every_edge_is_among_the_cases() -> None:
    found = cases(TEXT)
    x, i, u, at, _, positive = found["first and last"]
    assert {-(2**31), 2**31 - 1, 2**24 + 1} <= set(i.reshape(-1).tolist())
    assert {0, 2**32 - 1, 2**31 + 1} <= set(u.reshape(-1).tolist())
    assert at.min() >= 0
    assert at.max() < 10
    assert positive.min() > 0
    assert np.isnan(found["NaN"][0]).any()
    assert not np.isnan(found["NaN"][0]).all()
    assert np.isinf(found["infinities"][0]).sum() > 2
    zeros = found["zeros and subnormals"][0]
    assert (np.signbit(zeros) & (zeros == 0)).any()
    assert ((zeros != 0) & (np.abs(zeros) < 1e-38)).any()
    assert len(np.unique(found["ties"][0])) < 20
    assert all(len(np.unique(each)) == 1 for each in (found["all equal"][0], found["all equal"][1]))
    assert x.shape == (8, 32)


LIMITED = """
func.func @main(%at: tensor<4xi32>, %free: tensor<4xi32>, %table: tensor<10x32xf32>)
    -> (tensor<4x32xf32>, tensor<4x32xf32>) {
  %0 = "ttir.clamp_scalar"(%at) <{min = 0 : i32, max = 9 : i32}> : (tensor<4xi32>) -> tensor<4xi32>
  %1 = "ttir.embedding"(%0, %table) : (tensor<4xi32>, tensor<10x32xf32>) -> tensor<4x32xf32>
  %2 = "ttir.embedding"(%free, %table) : (tensor<4xi32>, tensor<10x32xf32>) -> tensor<4x32xf32>
  return %1, %2 : tensor<4x32xf32>, tensor<4x32xf32>
}"""


def test_indices_are_out_of_bounds_where_the_source_limits_them() -> None:
    at, free, _ = cases(LIMITED)["one beyond"]
    assert 10 in at
    assert free.min() >= 0
    assert free.max() < 10


def test_large_numbers_are_among_the_cases() -> None:
    x, *_, positive = cases(TEXT)["largest"]
    assert {np.float32(3e38), np.float32(-3e38)} <= set(x.reshape(-1))
    assert np.abs(positive).max() < 1e38


def choices(text: str) -> dict[str, tuple[np.ndarray, ...]]:
    module = parse_module(Source("m.mlir", text))
    (function,) = (op for op in module.ops if isinstance(op, FuncOp))
    return dict(chosen_edges(module, function, draw_inputs(module, function, 0)))


def test_the_choice_has_several_kinds_without_and_with_numbers_that_are_not_finite() -> None:
    finite, all_kinds = choices(TEXT).values()
    for x, i, u, at, _, positive in (finite, all_kinds):
        assert (np.signbit(x) & (x == 0)).any()
        assert (~np.signbit(x) & (x == 0)).any()
        assert ((x != 0) & (np.abs(x) < 1e-38)).any()
        assert len(np.unique(x)) < x.size - 8
        assert {-(2**31), 2**31 - 1, 2**24 + 1} <= set(i.reshape(-1).tolist())
        assert {2**31 + 1, 2**32 - 1} <= set(u.reshape(-1).tolist())
        assert at.max() < 10
        assert (positive[np.isfinite(positive)] > 0).all()
    assert all(np.isfinite(each).all() for each in finite)
    assert np.isnan(all_kinds[0]).any()
    assert np.isposinf(all_kinds[0]).any()
    assert np.isneginf(all_kinds[0]).any()


def test_the_choice_has_indices_beyond_the_ends_and_masks_of_nothing() -> None:
    assert 10 in choices(LIMITED)["edges"][0]
    _, mask = choices(ATTENTION)["edges with NaN"]
    assert np.isneginf(mask[..., -1, :]).all()


COMPARED = """
func.func @main(%x: tensor<8x32xf32>, %i: tensor<8x32xi32>) -> (tensor<8x32xi1>, tensor<8x32xi1>) {
  %half = "ttir.full"() <{shape = array<i32: 8, 32>, fill_value = 5.000000e-01 : f32}>
    : () -> tensor<8x32xf32>
  %limit = "ttir.full"() <{shape = array<i32: 8, 32>, fill_value = 77 : i32}>
    : () -> tensor<8x32xi32>
  %0 = "ttir.gt"(%x, %half) : (tensor<8x32xf32>, tensor<8x32xf32>) -> tensor<8x32xi1>
  %1 = "ttir.ge"(%limit, %i) : (tensor<8x32xi32>, tensor<8x32xi32>) -> tensor<8x32xi1>
  return %0, %1 : tensor<8x32xi1>, tensor<8x32xi1>
}"""


def test_numbers_that_a_program_compares_with_are_among_the_edges() -> None:
    x, i = choices(COMPARED)["edges"]
    assert np.float32(0.5) in x
    assert {76, 77, 78} <= set(i.reshape(-1).tolist())
    found = cases(COMPARED)
    assert np.float32(0.5) in found["ties"][0]
    assert {76, 77, 78} <= set(found["first and last"][1].reshape(-1).tolist())


SCATTER_OF_THE_LIBRARY = """
#dram = #ttnn.buffer_type<dram>
#f32 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>,
  memref<1x1x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#si32 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>,
  memref<1x1x!ttcore.tile<32x32, si32>, #dram>, <interleaved>>
func.func @main(%a: tensor<32x32xf32, #f32>, %i: tensor<32x32xi32, #si32>,
    %s: tensor<32x32xf32, #f32>) -> tensor<32x32xf32, #f32> {
  %0 = "ttnn.scatter"(%a, %i, %s) <{dim = 1 : si32,
      scatter_reduce_type = #ttcore.reduce_type<invalid>}>
    : (tensor<32x32xf32, #f32>, tensor<32x32xi32, #si32>, tensor<32x32xf32, #f32>)
      -> tensor<32x32xf32, #f32>
  return %0 : tensor<32x32xf32, #f32>
}"""


def test_indices_of_a_scatter_of_the_library_stay_within_bounds() -> None:
    (_, given), *_ = choices(SCATTER_OF_THE_LIBRARY).items()
    assert 0 <= given[1].min() <= given[1].max() < 32
    assert "one beyond" not in cases(SCATTER_OF_THE_LIBRARY)


def test_outputs_of_which_a_convention_decides_are_known() -> None:
    text = """
func.func @main(%x: tensor<8x32xf32>) -> (tensor<8x32xf32>, tensor<8x32xf32>) {
  %0 = "ttir.clamp_scalar"(%x) <{min = 0.0 : f32, max = 9.0 : f32}>
    : (tensor<8x32xf32>) -> tensor<8x32xf32>
  %1 = "ttir.exp"(%0) : (tensor<8x32xf32>) -> tensor<8x32xf32>
  %2 = "ttir.cumsum"(%x) <{dim = 1 : i64}> : (tensor<8x32xf32>) -> tensor<8x32xf32>
  return %1, %2 : tensor<8x32xf32>, tensor<8x32xf32>
}"""
    module = parse_module(Source("m.mlir", text))
    (function,) = (op for op in module.ops if isinstance(op, FuncOp))
    assert follows_convention(module, function, "ttnn") == [True, False]
    assert follows_convention(module, function, "ttmetal") == [True, True]
    assert hides_values(module, function) == [False, False]


def test_outputs_that_attention_computes_are_known() -> None:
    module = parse_module(Source("m.mlir", ATTENTION))
    (function,) = (op for op in module.ops if isinstance(op, FuncOp))
    assert hides_values(module, function) == [True]


def test_floats_that_become_integers_are_beyond_their_ends() -> None:
    text = """
func.func @main(%x: tensor<8x32xf32>) -> tensor<8x32xi32> {
  %0 = "ttir.typecast"(%x) : (tensor<8x32xf32>) -> tensor<8x32xi32>
  return %0 : tensor<8x32xi32>
}"""
    (x,) = cases(text)["first and last"]
    assert {2.0**31, -(2.0**31), 2.0**32, 2.0**24 + 2} <= set(x.reshape(-1).tolist())
    # The device has no integers of 64 bits, so that the results of these would differ.
    assert "first and last" not in cases(text.replace("i32", "i64"))


def test_masks_hide_whole_rows() -> None:
    q, mask = cases(ATTENTION)["empty masks"]
    assert np.isneginf(mask[..., -1, :]).all()
    assert np.isfinite(mask[..., :-1, :]).all()
    assert np.isfinite(q).all()


def test_booleans_by_any_name_are_true_and_false_in_whole_rows() -> None:
    text = """
func.func @main(%x: tensor<4x32xf32>, %a: tensor<4x32xi1>, %b: tensor<32xi1>)
    -> (tensor<4x32xf32>, tensor<4x32xf32>) {
  %0 = "ttir.where"(%a, %x, %x) : (tensor<4x32xi1>, tensor<4x32xf32>, tensor<4x32xf32>)
    -> tensor<4x32xf32>
  %1 = "ttir.where"(%b, %x, %x) : (tensor<32xi1>, tensor<4x32xf32>, tensor<4x32xf32>)
    -> tensor<4x32xf32>
  return %0, %1 : tensor<4x32xf32>, tensor<4x32xf32>
}"""
    found = cases(text)
    _, rows, row = found["empty masks"]
    assert not rows[-1].any()
    assert rows[:-1].any()
    assert not row.any()
    assert all(each.all() for each in found["all equal"][1:])


@pytest.mark.slow
@pytest.mark.parametrize("text", [TEXT, ATTENTION], ids=["ops", "attention"])
def test_a_program_is_checked_on_edges(tmp_path: Path, cpu_backend: object, text: str) -> None:
    assert cpu_backend is not None
    path = tmp_path / "m.mlir"
    path.write_text(text)
    assert main([str(path), "-o", str(tmp_path / "out"), "--check=edges"]) == 0
    report = (tmp_path / "out" / "check.json").read_text()
    assert "(NaN)" in report
