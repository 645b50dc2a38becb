func.func @decode(
    %hidden: tensor<32x128xbf16> {ttcore.argument_type = #ttcore.argument_type<input>, ttir.name = "hidden"},
    %weight: tensor<128x10xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "weight"}
) -> (tensor<32x10xbf16> {ttir.name = "scores"}) {
  %0 = "ttir.matmul"(%hidden, %weight) : (tensor<32x128xbf16>, tensor<128x10xbf16>) -> tensor<32x10xbf16> loc("decoder/matmul")
  %1 = "ttir.softmax"(%0) <{dimension = -1 : si32}> : (tensor<32x10xbf16>) -> tensor<32x10xbf16> loc("decoder/softmax")
  return %1 : tensor<32x10xbf16>
}
