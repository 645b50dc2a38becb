// RUN: ttcodegen-opt --split-input-file --verify-diagnostics %s

// A tensor that does not fit the shards of its layout gets other shards.
// expected-warning @below {{the shards of the layout do not hold a tensor of this shape}}
func.func @f(%x: tensor<64x32xf32, #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<1x1x!ttcore.tile<32x32, f32>, #ttnn.buffer_type<l1>>, <height_sharded>>>) { return }

// -----

// expected-error @below {{a grid of 2x2 shards is on 2 cores: they differ}}
func.func @f(%x: tensor<64x64xf32, #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <2x2>, memref<1x1x!ttcore.tile<32x32, f32>, #ttnn.buffer_type<l1>>, <block_sharded>, core_ranges = #ttnn.core_range_set<[#ttnn.core_range<(0, 0), (1, 0)>]>>>) { return }

// -----

// expected-warning @below {{the shards of the layout do not hold a tensor of this shape}}
func.func @f(%x: tensor<32x64xf32, #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x2>, memref<2x1x!ttcore.tile<32x32, f32>, #ttnn.buffer_type<l1>>, <width_sharded>>>) { return }

// -----

// expected-error @below {{the layout is malformed, or of a form that is not supported}}
func.func @f(%x: tensor<32x32xf32, #ttnn.ttnn_layout<tiles>>) { return }

// -----

// expected-error @below {{there is no data type 'f8'}}
func.func @f(%x: tensor<32x32xf32, #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<1x1x!ttcore.tile<32x32, f8>, #ttnn.buffer_type<dram>>, <interleaved>>>) { return }

// -----

// The compiler decides the placement of tensors of TTIR.
// expected-warning @below {{tensor encodings such as #ttnn.ttnn_layout are ignored in TTIR}}
func.func @f(%x: tensor<32x32xf32, #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<1x1x!ttcore.tile<32x32, f32>, #ttnn.buffer_type<dram>>, <interleaved>>>) -> tensor<32x32xf32> {
  %0 = "ttir.exp"(%x) : (tensor<32x32xf32, #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<1x1x!ttcore.tile<32x32, f32>, #ttnn.buffer_type<dram>>, <interleaved>>>) -> tensor<32x32xf32>
  return %0 : tensor<32x32xf32>
}
