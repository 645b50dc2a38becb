// Elementwise ops before and after a reduction: one program of the device.
module @gelu_rows {
  func.func @forward(%x: tensor<64x96xf32>, %scale: tensor<64x1xf32>) -> tensor<64x1xf32> {
    %0 = "ttir.gelu"(%x) : (tensor<64x96xf32>) -> tensor<64x96xf32>
    %1 = "ttir.sum"(%0) <{dim_arg = [1 : i32], keep_dim = true}> : (tensor<64x96xf32>) -> tensor<64x1xf32>
    %2 = "ttir.multiply"(%1, %scale) : (tensor<64x1xf32>, tensor<64x1xf32>) -> tensor<64x1xf32>
    return %2 : tensor<64x1xf32>
  }
}
