func.func @layer(%x: tensor<16x64xi4>, %up: tensor<64x128xi4>) -> tensor<16x128xi4> {
  %0 = "ttnn.matmul"(%x, %up) : (tensor<16x64xi4>, tensor<64x128xi4>) -> tensor<16x128xi4>
  %1 = "ttnn.relu"(%0) : (tensor<16x128xi4>) -> tensor<16x128xi4>
  return %1 : tensor<16x128xi4>
}
