// RUN: ttcodegen-opt --split-input-file --verify-diagnostics %s

// expected-error @below {{the layout is that of 64x32 elements in 2 dimensions, the tensor has the shape [32, 32]}}
func.func @f(%x: tensor<32x32xf32, #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<2x1x!ttcore.tile<32x32, f32>, #ttnn.buffer_type<dram>>, <interleaved>>>) { return }

// -----

// expected-error @below {{tensors that are block_sharded are not supported}}
func.func @f(%x: tensor<32x32xf32, #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<1x1x!ttcore.tile<32x32, f32>, #ttnn.buffer_type<l1>>, <block_sharded>>>) { return }

// -----

// expected-error @below {{the layout is malformed, or of a form that is not supported}}
func.func @f(%x: tensor<32x32xf32, #ttnn.ttnn_layout<tiles>>) { return }

// -----

// expected-error @below {{there is no data type 'f8'}}
func.func @f(%x: tensor<32x32xf32, #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<1x1x!ttcore.tile<32x32, f8>, #ttnn.buffer_type<dram>>, <interleaved>>>) { return }

// -----

// Where tensors of TTIR lie is what the compiler decides.
// expected-warning @below {{tensor encodings such as #ttnn.ttnn_layout are ignored in TTIR}}
func.func @f(%x: tensor<32x32xf32, #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<1x1x!ttcore.tile<32x32, f32>, #ttnn.buffer_type<dram>>, <interleaved>>>) -> tensor<32x32xf32> {
  %0 = "ttir.exp"(%x) : (tensor<32x32xf32, #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<1x1x!ttcore.tile<32x32, f32>, #ttnn.buffer_type<dram>>, <interleaved>>>) -> tensor<32x32xf32>
  return %0 : tensor<32x32xf32>
}
