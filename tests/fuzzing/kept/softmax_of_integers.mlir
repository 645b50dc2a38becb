func.func @f(%x: tensor<33x5xui32>) -> tensor<33x5xf32> {
  %0 = "ttir.softmax"(%x) <{dimension = 1 : si32}> : (tensor<33x5xui32>) -> tensor<33x5xf32>
  return %0 : tensor<33x5xf32>
}
