// Two linear layers, as a frontend prints them: argument kinds, names, locations.
module @mlp {
  func.func @forward(
      %x: tensor<32x64xbf16> {ttcore.argument_type = #ttcore.argument_type<input>, ttir.name = "x"},
      %w1: tensor<64x128xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "fc1.weight"},
      %b1: tensor<128xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "fc1.bias"},
      %w2: tensor<128x10xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "fc2.weight"})
      -> (tensor<32x10xbf16> {ttir.name = "scores"}) {
    %0 = "ttir.linear"(%x, %w1, %b1) : (tensor<32x64xbf16>, tensor<64x128xbf16>, tensor<128xbf16>) -> tensor<32x128xbf16>
    %1 = "ttir.relu"(%0) : (tensor<32x128xbf16>) -> tensor<32x128xbf16>
    %2 = "ttir.matmul"(%1, %w2) : (tensor<32x128xbf16>, tensor<128x10xbf16>) -> tensor<32x10xbf16>
    %3 = "ttir.softmax"(%2) <{dimension = 1 : si32}> : (tensor<32x10xbf16>) -> tensor<32x10xbf16>
    return %3 : tensor<32x10xbf16>
  }
}
