// Operations of operations.py among ops of the model: several results, results that other operations
// read, values of several types.
func.func @products(%a: tensor<64x96xbf16>, %b: tensor<96x64xbf16>) -> (tensor<64x64xbf16>, tensor<64x64xbf16>) {
  %0 = "ttir.exp"(%a) : (tensor<64x96xbf16>) -> tensor<64x96xbf16>
  %1:2 = "ttir.tt_lang_op"(%0, %b) <{kernel_id = "product", version_tag = "1", arg_roles = "in,in,out,out"}> : (tensor<64x96xbf16>, tensor<96x64xbf16>) -> (tensor<64x64xbf16>, tensor<64x64xbf16>)
  %2 = "ttir.neg"(%1#0) : (tensor<64x64xbf16>) -> tensor<64x64xbf16>
  return %2, %1#1 : tensor<64x64xbf16>, tensor<64x64xbf16>
}

func.func @rotations(%x: tensor<96x64xf32>) -> tensor<96x64xf32> {
  %0 = "ttir.tt_lang_op"(%x) <{kernel_id = "rotated", version_tag = "1", arg_roles = "in,out"}> : (tensor<96x64xf32>) -> tensor<96x64xf32>
  %1 = "ttir.abs"(%0) : (tensor<96x64xf32>) -> tensor<96x64xf32>
  %2 = "ttir.tt_lang_op"(%1) <{kernel_id = "rotated", version_tag = "1", arg_roles = "in,out"}> : (tensor<96x64xf32>) -> tensor<96x64xf32>
  return %2 : tensor<96x64xf32>
}
