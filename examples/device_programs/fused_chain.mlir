// A gate: four elementwise ops, which become one program of the device.
func.func @gate(
    %x: tensor<512x512xbf16> {ttir.name = "x"},
    %scale: tensor<1x512xbf16> {ttir.name = "scale", ttcore.argument_type = #ttcore.argument_type<parameter>},
    %bias: tensor<1x512xbf16> {ttir.name = "bias", ttcore.argument_type = #ttcore.argument_type<parameter>}
) -> (tensor<512x512xbf16> {ttir.name = "gated"}) {
  %scaled = "ttir.multiply"(%x, %scale) : (tensor<512x512xbf16>, tensor<1x512xbf16>) -> tensor<512x512xbf16>
  %shifted = "ttir.add"(%scaled, %bias) : (tensor<512x512xbf16>, tensor<1x512xbf16>) -> tensor<512x512xbf16>
  %gate = "ttir.sigmoid"(%shifted) : (tensor<512x512xbf16>) -> tensor<512x512xbf16>
  %gated = "ttir.multiply"(%x, %gate) : (tensor<512x512xbf16>, tensor<512x512xbf16>) -> tensor<512x512xbf16>
  return %gated : tensor<512x512xbf16>
}
