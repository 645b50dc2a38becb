// A matmul with what is computed behind it: one program, on 8x8 cores.
func.func @layer(
    %x: tensor<512x768xbf16> {ttir.name = "x"},
    %weight: tensor<768x1024xbf16> {ttir.name = "weight", ttcore.argument_type = #ttcore.argument_type<parameter>},
    %bias: tensor<1024xbf16> {ttir.name = "bias", ttcore.argument_type = #ttcore.argument_type<parameter>}
) -> (tensor<512x1024xbf16> {ttir.name = "y"}) {
  %product = "ttir.linear"(%x, %weight, %bias) : (tensor<512x768xbf16>, tensor<768x1024xbf16>, tensor<1024xbf16>) -> tensor<512x1024xbf16>
  %y = "ttir.relu"(%product) : (tensor<512x1024xbf16>) -> tensor<512x1024xbf16>
  return %y : tensor<512x1024xbf16>
}
