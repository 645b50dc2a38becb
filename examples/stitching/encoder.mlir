func.func @encode(
    %images: tensor<32x64xbf16> {ttcore.argument_type = #ttcore.argument_type<input>, ttir.name = "images"},
    %weight: tensor<64x128xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "weight"},
    %bias: tensor<128xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "bias"}
) -> (tensor<32x128xbf16> {ttir.name = "hidden"}) {
  %0 = "ttir.linear"(%images, %weight, %bias) : (tensor<32x64xbf16>, tensor<64x128xbf16>, tensor<128xbf16>) -> tensor<32x128xbf16> loc("encoder/linear")
  %1 = "ttir.relu"(%0) : (tensor<32x128xbf16>) -> tensor<32x128xbf16> loc("encoder/relu")
  return %1 : tensor<32x128xbf16>
}
