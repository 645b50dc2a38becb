# ruff: noqa: E501 -- layouts as tools print them
"""Modules of TTNN whose tensors are block floats, or rows in shards that are no tiles."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.frontends.test_ttnn_input import compiled
from ttcodegen.cli.ttcodegen import main
from ttcodegen.flatbuffer.reader import read_ttnn
from ttcodegen.foundation.diagnostics import CompileError

MEMORY = """
#dram = #ttnn.buffer_type<dram>
#l1 = #ttnn.buffer_type<l1>
"""

BLOCK_FLOATS = MEMORY + (
    """
#w = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<8x8x!ttcore.tile<32x32, bfp_bf8>, #dram>, <interleaved>>
#x = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<1x8x!ttcore.tile<32x32, bf16>, #dram>, <interleaved>>
func.func @f(%x: tensor<32x256xbf16, #x>, %w: WEIGHT) -> tensor<32x256xbf16, #x> {
  %0 = "ttnn.matmul"(%x, %w) <{transpose_a = false, transpose_b = false}> : (tensor<32x256xbf16, #x>, WEIGHT) -> tensor<32x256xbf16, #x>
  return %0 : tensor<32x256xbf16, #x>
}
""".replace("WEIGHT", "tensor<256x256x!ttcore.tile<32x32, bfp_bf8>, #w>")
)


def test_elements_of_a_tensor_may_be_tiles_of_block_floats() -> None:
    (program,) = read_ttnn(compiled(BLOCK_FLOATS).flatbuffer).programs
    (product,) = (op for op in program.operations if op.name == "ttnn.matmul")
    types = [program.tensors[operand].type.placement.data_type.mlir for operand in product.operands]
    assert types == ["bf16", "bfp_bf8"]


def test_tiles_of_elements_are_those_of_the_layout() -> None:
    module = BLOCK_FLOATS.replace("32x32, bfp_bf8>, #w>", "32x32, bfp_bf4>, #w>")
    with pytest.raises(CompileError, match=r"are bfp_bf4, those of the layout bfp_bf8"):
        compiled(module)


ROWS = (
    MEMORY
    + """
#x = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<64x48xbf16, #dram>, <interleaved>>
#t = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<2x2x!ttcore.tile<32x32, bf16>, #dram>, <interleaved>>
#s = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <4x1>, memref<16x48xbf16, #l1>, <height_sharded>, core_ranges = <[#ttnn.core_range<(0, 0), (3, 0)>]>>
func.func @f(%x: tensor<64x48xbf16, #x>) -> (tensor<64x48xbf16, #x>, tensor<64x48xbf16, #t>) {
  %0 = "ttnn.to_memory_config"(%x) <{memory_config = #ttnn.memory_config<#l1, <height_sharded>, #ttnn.shard_spec<<[#ttnn.core_range<(0,0), (3,0)>]>, <16x48>, <row_major>>>}> : (tensor<64x48xbf16, #x>) -> tensor<64x48xbf16, #s>
  %1 = "ttnn.sigmoid"(%0) : (tensor<64x48xbf16, #s>) -> tensor<64x48xbf16, #s>
  %2 = "ttnn.to_memory_config"(%1) <{memory_config = #ttnn.memory_config<#dram, <interleaved>>}> : (tensor<64x48xbf16, #s>) -> tensor<64x48xbf16, #x>
  %3 = "ttnn.to_layout"(%1) <{layout = #ttnn.layout<tile>}> : (tensor<64x48xbf16, #s>) -> tensor<64x48xbf16, #t>
  return %2, %3 : tensor<64x48xbf16, #x>, tensor<64x48xbf16, #t>
}
"""
)

HEADS = (
    MEMORY
    + """
#x = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 64 + d1 * 32 + d2, d3), <1x1>, memref<2x2x!ttcore.tile<32x32, bf16>, #dram>, <interleaved>>
#h = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 64 + d1 * 32 + d2, d3), <2x1>, memref<1x2x!ttcore.tile<32x32, bf16>, #l1>, <height_sharded>, core_ranges = <[#ttnn.core_range<(0, 0), (1, 0)>]>>
#o = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 32 + d1 * 32 + d2, d3), <1x1>, memref<1x24x!ttcore.tile<32x32, bf16>, #dram>, <interleaved>>
func.func @f(%x: tensor<1x2x32x64xbf16, #x>) -> tensor<1x1x2x768xbf16, #o> {
  %0 = "ttnn.to_memory_config"(%x) : (tensor<1x2x32x64xbf16, #x>) -> tensor<1x2x32x64xbf16, #h>
  %1 = "ttnn.nlp_concat_heads_decode"(%0) <{num_heads = 12 : ui32}> : (tensor<1x2x32x64xbf16, #h>) -> tensor<1x1x2x768xbf16, #o>
  return %1 : tensor<1x1x2x768xbf16, #o>
}
"""
)


def test_rows_become_tiles_outside_shards_that_are_no_tiles() -> None:
    (program,) = read_ttnn(compiled(ROWS).flatbuffer).programs
    used = {operand for op in program.operations if op.results for operand in op.operands}
    used |= {output.tensor for output in program.outputs}
    for op in program.operations:
        places = [program.tensors[i].type.placement for i in (*op.operands, *op.results)]
        assert all(place.misfit() is None for place in places), op.name
        assert used.issuperset(op.results), f"nothing needs {op.name}"


@pytest.mark.slow
@pytest.mark.parametrize("module", [BLOCK_FLOATS, ROWS, HEADS], ids=["block", "rows", "heads"])
def test_the_meanings_agree(module: str, tmp_path: Path) -> None:
    source = tmp_path / "m.mlir"
    source.write_text(module)
    assert main([str(source), "-o", str(tmp_path / "out"), "--check", "-q"]) == 0


def test_heads_of_two_users_are_the_first_rows_of_what_the_library_returns() -> None:
    written = "".join(compiled(HEADS).files.values())
    assert "nlp_concat_heads_decode(" in written
    assert "ttsl::SmallVector<int32_t>{1, 1, 2, 768}" in written
