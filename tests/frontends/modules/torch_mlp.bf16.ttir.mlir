builtin.module {
  func.func @forward(%up_weight: tensor<128x64xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "up.weight"}, %up_bias: tensor<128xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "up.bias"}, %down_weight: tensor<10x128xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "down.weight"}, %down_bias: tensor<10xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "down.bias"}, %x: tensor<32x64xbf16> {ttcore.argument_type = #ttcore.argument_type<input>, ttir.name = "x"}) -> (tensor<32x10xbf16> {ttir.name = "output"}) {
    %0 = "ttir.linear"(%x, %up_weight, %up_bias) <{transpose_b = true}> : (tensor<32x64xbf16>, tensor<128x64xbf16>, tensor<128xbf16>) -> tensor<32x128xbf16>
    %1 = "ttir.relu"(%0) : (tensor<32x128xbf16>) -> tensor<32x128xbf16>
    %2 = "ttir.linear"(%1, %down_weight, %down_bias) <{transpose_b = true}> : (tensor<32x128xbf16>, tensor<10x128xbf16>, tensor<10xbf16>) -> tensor<32x10xbf16>
    func.return %2 : tensor<32x10xbf16>
  }
}
