"""Calls of TTNN between the chips of a mesh, and calls that experts on several chips need."""

from __future__ import annotations

import re

import pytest

from ttcodegen.compilation import CompileOptions, compile_module
from ttcodegen.dialects.ttcore.device import declared_mesh
from ttcodegen.foundation.diagnostics import CompileError, Source
from ttcodegen.frontends import source_module

SHARDED_NORM = """#l1 = #ttnn.buffer_type<l1>
#host = #ttnn.buffer_type<system_memory>
#rows = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 32 + d1 * 32 + d2, d3), <1x2>, memref<1x1x!ttcore.tile<32x32, bf16>, #l1>, <width_sharded>>
#vector = #ttnn.ttnn_layout<(d0) -> (0, d0), <1x1>, memref<1x64xbf16, #host>>
func.func @norm(%x: tensor<1x1x32x64xbf16, #rows>, %w: tensor<64xbf16, #vector>) -> tensor<1x1x32x64xbf16, #rows> {
  %0 = "ttnn.get_device"() <{mesh_shape = #ttnn<mesh_shape 1x2>}> : () -> !ttnn.device
  %1 = "ttnn.distributed_rms_norm"(%x, %w, %0) <{cluster_axis = 1 : ui32, epsilon = 1.0e-05 : f32, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 1>}> : (tensor<1x1x32x64xbf16, #rows>, tensor<64xbf16, #vector>, !ttnn.device) -> tensor<1x1x32x64xbf16, #rows>
  return %1 : tensor<1x1x32x64xbf16, #rows>
}
"""  # noqa: E501

COMBINE = """func.func @combine(%made: tensor<2x2x4x32xbf16>, %named: tensor<1x2x4x2xsi32>, %owners: tensor<4x2xsi32>) -> tensor<2x1x4x32xbf16> {
  %0 = "ttnn.all_to_all_combine"(%made, %named, %owners) <{cluster_axis = 1 : i64, num_devices = 2 : i64, num_experts_per_tok = 2 : i64, output_shard_dim = 1 : i64}> : (tensor<2x2x4x32xbf16>, tensor<1x2x4x2xsi32>, tensor<4x2xsi32>) -> tensor<2x1x4x32xbf16>
  return %0 : tensor<2x1x4x32xbf16>
}
"""  # noqa: E501


def cpp_of(text: str) -> str:
    files = compile_module(Source("m.mlir", text), CompileOptions("m")).files
    (source,) = (file for name, file in files.items() if name.endswith("/m.cpp"))
    return source


def test_norms_of_shards_take_their_operands_out_of_shards() -> None:
    """The library refuses a typecast from shards to an interleaved tensor."""
    source = cpp_of(SHARDED_NORM)
    moved = re.search(r"x = ttnn::to_memory_config\(x, tuning::activations_memory\);", source)
    cast = re.search(r"ttnn::typecast\(x, ttnn::DataType::FLOAT32\)", source)
    assert moved is not None
    assert cast is not None
    assert moved.start() < cast.start()


def test_experts_of_the_library_have_a_mapping_of_any_rank() -> None:
    """The call takes rows of numbers of 16 bits, and a mapping of four dimensions."""
    module = source_module(Source("m.mlir", COMBINE))
    assert declared_mesh(module) == (1, 2)
    source = cpp_of(COMBINE)
    assert "ttnn::all_to_all_combine(" in source
    assert "ttnn::Shape({1, 1, 4, 2})" in source
    assert "ttnn::reduce_scatter(" in cpp_of(COMBINE.replace("bf16", "f32"))


def test_norms_along_an_axis_that_no_mesh_has_are_refused() -> None:
    text = SHARDED_NORM.replace("cluster_axis = 1", "cluster_axis = 100000")
    with pytest.raises(CompileError, match="a mesh has the axes 0 and 1, found cluster_axis"):
        source_module(Source("m.mlir", text))


def test_constants_have_the_shape_of_their_result() -> None:
    text = """func.func @f() -> tensor<32x32xbf16> {
  %0 = "ttnn.constant"() <{value = dense<0.0> : tensor<9223372036854775807x32xbf16>}>
      : () -> tensor<32x32xbf16>
  return %0 : tensor<32x32xbf16>
}"""
    with pytest.raises(CompileError, match="the value has shape"):
        cpp_of(text)
