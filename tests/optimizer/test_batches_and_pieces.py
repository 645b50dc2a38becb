"""Batches of matrices that are kept, wide products in pieces, searches on all cores."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from tests.cost.measured import model_of, tensor
from tests.optimizer.modules import INPUT, WEIGHT, compiled, entry, names
from ttcodegen.flatbuffer.program import Operation, Program
from ttcodegen.foundation.diagnostics import Source
from ttcodegen.numerics.drawing import draw_inputs
from ttcodegen.optimizer.call import LibraryCall
from ttcodegen.optimizer.matmul_candidates import MatmulCandidates
from ttcodegen.project.checking import run_in_numpy

PATCHES = f"""
func.func @main(%x: tensor<8x197x256xbf16> {{{INPUT}}}, %w: tensor<256x512xbf16> {{{WEIGHT}}}, %v: tensor<512x256xbf16> {{{WEIGHT}}}, %b: tensor<256xbf16> {{{WEIGHT}}}, %g: tensor<256xbf16> {{{WEIGHT}}}, %c: tensor<256x64xbf16> {{{WEIGHT}}}) -> (tensor<8x197x256xbf16>, tensor<8x64xbf16>) {{
  %0 = "ttir.exp"(%x) : (tensor<8x197x256xbf16>) -> tensor<8x197x256xbf16>
  %1 = "ttir.reshape"(%0) <{{shape = [1576 : i32, 256 : i32]}}> : (tensor<8x197x256xbf16>) -> tensor<1576x256xbf16>
  %2 = "ttir.matmul"(%1, %w) : (tensor<1576x256xbf16>, tensor<256x512xbf16>) -> tensor<1576x512xbf16>
  %3 = "ttir.relu"(%2) : (tensor<1576x512xbf16>) -> tensor<1576x512xbf16>
  %4 = "ttir.linear"(%3, %v, %b) : (tensor<1576x512xbf16>, tensor<512x256xbf16>, tensor<256xbf16>) -> tensor<1576x256xbf16>
  %5 = "ttir.add"(%4, %1) : (tensor<1576x256xbf16>, tensor<1576x256xbf16>) -> tensor<1576x256xbf16>
  %6 = "ttir.rms_norm"(%5, %g) <{{normalized_shape = array<i64: 256>, epsilon = 1.0e-5 : f32, operandSegmentSizes = array<i32: 1, 1, 0>}}> : (tensor<1576x256xbf16>, tensor<256xbf16>) -> tensor<1576x256xbf16>
  %7 = "ttir.reshape"(%6) <{{shape = [8 : i32, 197 : i32, 256 : i32]}}> : (tensor<1576x256xbf16>) -> tensor<8x197x256xbf16>
  %8 = "ttir.slice_static"(%7) <{{begins = [0 : i32, 0 : i32, 0 : i32], ends = [8 : i32, 1 : i32, 256 : i32], step = [1 : i32, 1 : i32, 1 : i32]}}> : (tensor<8x197x256xbf16>) -> tensor<8x1x256xbf16>
  %9 = "ttir.reshape"(%8) <{{shape = [8 : i32, 256 : i32]}}> : (tensor<8x1x256xbf16>) -> tensor<8x256xbf16>
  %10 = "ttir.matmul"(%9, %c) : (tensor<8x256xbf16>, tensor<256x64xbf16>) -> tensor<8x64xbf16>
  return %7, %10 : tensor<8x197x256xbf16>, tensor<8x64xbf16>
}}
"""  # noqa: E501
"""Rows of a batch whose matrices tiles pad, between reshapes to all rows and back."""

LOGITS = f"""
func.func @main(%x: tensor<72x64xbf16> {{{INPUT}}}, %w: tensor<64x8192xbf16> {{{WEIGHT}}}) -> (tensor<4x18x8192xbf16>, tensor<4xi32>) {{
  %0 = "ttir.exp"(%x) : (tensor<72x64xbf16>) -> tensor<72x64xbf16>
  %1 = "ttir.matmul"(%0, %w) : (tensor<72x64xbf16>, tensor<64x8192xbf16>) -> tensor<72x8192xbf16>
  %2 = "ttir.reshape"(%1) <{{shape = [4 : i32, 18 : i32, 8192 : i32]}}> : (tensor<72x8192xbf16>) -> tensor<4x18x8192xbf16>
  %3 = "ttir.slice_static"(%2) <{{begins = [0 : i32, 17 : i32, 0 : i32], ends = [4 : i32, 18 : i32, 8192 : i32], step = [1 : i32, 1 : i32, 1 : i32]}}> : (tensor<4x18x8192xbf16>) -> tensor<4x1x8192xbf16>
  %4 = "ttir.reshape"(%3) <{{shape = [4 : i32, 8192 : i32]}}> : (tensor<4x1x8192xbf16>) -> tensor<4x8192xbf16>
  %5 = "ttir.argmax"(%4) <{{dim_arg = [1 : i32], keep_dim = false}}> : (tensor<4x8192xbf16>) -> tensor<4xi32>
  return %2, %5 : tensor<4x18x8192xbf16>, tensor<4xi32>
}}
"""  # noqa: E501
"""A wide product whose rows are sequences, and the greatest of the last row of each."""

WIDE = f"""
func.func @main(%x: tensor<32x2048xbf16> {{{INPUT}}}, %w: tensor<2048x131072xbf16> {{{WEIGHT}}}) -> tensor<32x131072xbf16> {{
  %0 = "ttir.exp"(%x) : (tensor<32x2048xbf16>) -> tensor<32x2048xbf16>
  %1 = "ttir.matmul"(%0, %w) : (tensor<32x2048xbf16>, tensor<2048x131072xbf16>) -> tensor<32x131072xbf16>
  return %1 : tensor<32x131072xbf16>
}}
"""  # noqa: E501
"""A product whose weights no core next to a bank has room for."""

CHANNELS_FIRST = f"""
func.func @main(%x: tensor<2x3x32x32xbf16> {{{INPUT}}}, %w: tensor<64x3x8x8xbf16> {{{WEIGHT}}}) -> tensor<2x16x64xbf16> {{
  %0 = "ttir.conv2d"(%x, %w) <{{batch_dim = 0 : i64, channel_dim = 1 : i64, height_dim = 2 : i64, width_dim = 3 : i64, stride = array<i32: 8, 8>, padding = 0 : i32, dilation = 1 : i32, groups = 1 : i32}}> : (tensor<2x3x32x32xbf16>, tensor<64x3x8x8xbf16>) -> tensor<2x64x4x4xbf16>
  %1 = "ttir.reshape"(%0) <{{shape = [2 : i32, 64 : i32, 16 : i32]}}> : (tensor<2x64x4x4xbf16>) -> tensor<2x64x16xbf16>
  %2 = "ttir.permute"(%1) <{{permutation = array<i64: 0, 2, 1>}}> : (tensor<2x64x16xbf16>) -> tensor<2x16x64xbf16>
  return %2 : tensor<2x16x64xbf16>
}}
"""  # noqa: E501
"""Patches of images with channels first that become rows."""


def shapes(program: Program, name: str) -> list[tuple[int, ...]]:
    """Shapes of the results of the ops of a name."""
    return [
        program.tensors[op.results[0]].type.shape
        for op in program.operations
        if op.name == f"ttnn.{name}"
    ]


def means_the_same(text: str) -> None:
    """Holds level 2 to what level 0 computes."""
    source = Source("m.mlir", text)

    def drawn(module: ModuleOp, function: FuncOp) -> tuple[np.ndarray, ...]:
        return tuple(draw_inputs(module, function, seed=0).values())

    runs = [run_in_numpy(source, compiled(text, level), drawn)[0].flatbuffer for level in (0, 2)]
    for one, other in zip(*runs, strict=True):
        one, other = (np.asarray(each, np.float64) for each in (one, other))
        assert one.shape == other.shape
        assert np.abs(one - other).max() <= 0.02 * np.abs(one).max()


@pytest.mark.parametrize(
    "text", [PATCHES, LOGITS, CHANNELS_FIRST], ids=["batch", "rows", "patches"]
)
def test_arranged_rows_mean_the_same(text: str) -> None:
    means_the_same(text)


def test_batches_stay_batches_between_products() -> None:
    program = entry(compiled(PATCHES, 2))
    made = [*shapes(program, "matmul"), *shapes(program, "linear"), *shapes(program, "rms_norm")]
    assert {(8, 197, 512), (8, 197, 256)} <= set(made)
    assert (1576, 256) not in made
    assert (1576, 256) not in shapes(program, "reshape")


def test_rows_without_padding_have_no_batch() -> None:
    """A reshape of whole tiles is a view."""
    text = PATCHES.replace("8x197x", "8x192x").replace("1576", "1536").replace("197 :", "192 :")
    program = entry(compiled(text, 2))
    assert (1536, 256) in [*shapes(program, "linear"), *shapes(program, "matmul")]


def test_left_factors_are_reshaped_instead_of_wider_products() -> None:
    program = entry(compiled(LOGITS, 2))
    assert sorted(shapes(program, "matmul")) == [(4, 18, 8192), (4, 8192)]
    assert (4, 18, 64) in shapes(program, "reshape")
    assert (4, 18, 8192) not in shapes(program, "reshape")


def test_weights_of_wide_products_are_sharded_in_pieces() -> None:
    program = entry(compiled(WIDE, 2))
    products = [op for op in program.operations if op.name == "ttnn.matmul"]
    assert len(products) > 1
    weights = [program.tensors[op.operands[1]].type for op in products]
    assert {(each.buffer_type, each.memory_layout) for each in weights} == {
        ("dram", "width_sharded")
    }
    assert shapes(program, "concat") == [(32, 131072)]
    assert names(entry(compiled(WIDE, 1))).count("matmul") == 1


def test_patches_are_rows_without_permutes_after_the_convolution() -> None:
    made = names(entry(compiled(CHANNELS_FIRST, 0)))
    assert "permute" not in made[made.index("conv2d") :]


def searches(text: str, level: int) -> list[Operation]:
    """The ops of a module that look for the greatest of rows."""
    return [op for op in entry(compiled(text, level)).operations if op.name == "ttnn.argmax"]


@pytest.mark.parametrize("level", [0, 2])
def test_all_cores_look_for_the_greatest(level: int) -> None:
    module = compiled(LOGITS, level)
    (call,) = searches(LOGITS, level)
    given = {a.name: a.value for a in call.attributes}
    assert given["use_multicore"].value is True  # type: ignore[union-attr]
    assert any("ttnn::argmax(" in text for text in module.files.values())


def test_one_core_takes_a_hundred_milliseconds_for_logits() -> None:
    """Issue 15736 of tt-metal: a step of 32 users takes 84.6 ms longer on one core."""
    rows, found = tensor("32x128256:bf16:row_major:dram"), tensor("32x1:u32:row_major:dram")
    model = model_of("wormhole_b0", (8, 8))
    alone, together = (
        model.cost(
            LibraryCall("argmax", (rows,), (found,), {"keep_dim": True, "use_multicore": each})
        )
        for each in (False, True)
    )
    assert 0.07 <= alone.seconds <= 0.12
    assert (alone.cores, together.cores) == (1, 64)
    assert together.seconds < alone.seconds / 40


def test_configs_are_priced_with_the_attributes_of_the_call() -> None:
    """A weight that is stored transposed has as many columns as its tensor has rows."""
    model = model_of("wormhole_b0", (8, 8))
    products = MatmulCandidates(model, False, model.grid)
    rows, result = tensor("1576x256:bf16:tile:dram"), tensor("1576x2048:bf16:tile:dram")
    weights = tensor("256x2048:bf16:tile:dram"), tensor("2048x256:bf16:tile:dram")
    plain = LibraryCall("matmul", (rows, weights[0]), (result,))
    transposed = LibraryCall("matmul", (rows, weights[1]), (result,), {"transpose_b": True})
    seconds = [products.fastest_seconds(call, products.of(call)) for call in (plain, transposed)]
    assert seconds[0] == seconds[1] < model.seconds(plain)
