func.func @f(%x: tensor<64x128xf32>)
    attributes {ttcodegen.source_types = (tensor<64x128xf32>) -> tensor<64x128xf32>} {
  %0 = "ttnn.relu"(%x) : (tensor<64x128xf32>) -> tensor<64x128xf32>
  return
}
func.func @g(%x: tensor<64x128xf32>) -> tensor<64x128xf32>
    attributes {ttcodegen.source_types = (index) -> tensor<64x128xf32>} {
  %0 = "ttnn.relu"(%x) : (tensor<64x128xf32>) -> tensor<64x128xf32>
  return %0 : tensor<64x128xf32>
}
